//! A management that a program has besides those of this crate: frames leave in order of arrival, and it decides on each when it comes
//! and when it leaves.

use std::fmt;
use std::sync::Arc;

use super::{Backlog, Fifo, Label, Waiting};
pub use crate::custom::Custom;
use crate::custom::Makers;
use crate::error::SpecError;
use crate::rng::Stream;
use crate::units::{Bytes, Time};

/// What drops or marks the frames of a queue.
///
/// By default every frame passes. One for which there is no room is dropped before the management is asked.
pub trait Management: fmt::Debug + Send + Sync {
    /// `frame` comes at `now`, behind what waits.
    fn on_arrival(&mut self, now: Time, frame: &Queued, waits: Waits) -> Verdict {
        let _ = (now, frame, waits);
        Verdict::Pass
    }

    /// `frame` is the first and would leave at `now`; so much waits behind it.
    fn on_departure(&mut self, now: Time, frame: &Queued, waits: Waits) -> Verdict {
        let _ = (now, frame, waits);
        Verdict::Pass
    }
}

/// A frame of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// Its size.
    pub size: Bytes,
    /// Its flow, its class and its ECN field.
    pub label: Label,
    /// When it came.
    pub since: Time,
}

/// What waits in a queue, without the frame that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// Number of frames.
    pub frames: u64,
    /// Sum of their sizes.
    pub bytes: Bytes,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Pass,
    /// It goes on with a mark, if its label says that it can have one.
    Mark,
    /// It is dropped.
    Drop,
}

/// Makes a management with such settings for a queue, and its chance.
type Maker = dyn Fn(&Custom, Stream) -> Result<Box<dyn Management>, SpecError> + Send + Sync;

/// The managements of queues that a program has besides those of this crate.
#[derive(Clone, Debug, Default)]
pub struct Managements {
    makers: Makers<Maker>,
}

impl Managements {
    /// None besides those of this crate.
    pub fn new() -> Managements {
        Managements::default()
    }

    /// Queues with the management `custom` and this name have what `make` makes. It says which setting is wrong.
    #[must_use]
    pub fn add(
        mut self,
        name: &str,
        make: impl Fn(&Custom, Stream) -> Result<Box<dyn Management>, SpecError> + Send + Sync + 'static,
    ) -> Managements {
        self.makers.add(name, Arc::new(make));
        self
    }

    /// The management of a queue, from its settings.
    ///
    /// # Errors
    /// Nobody has added the management, or it refuses its settings.
    pub fn make(&self, custom: &Custom, chance: Stream) -> Result<Box<dyn Management>, SpecError> {
        self.makers.find(custom, "a management of queues")?(custom, chance)
    }
}

/// The frame that comes, perhaps marked, if it is not dropped.
pub(super) fn admit<H: Copy>(
    management: &mut dyn Management,
    frame: Waiting<H>,
    backlog: &mut Backlog<H>,
) -> Option<Waiting<H>> {
    let verdict = management.on_arrival(frame.since, &frame.view(), backlog.view());
    judge(verdict, frame, backlog)
}

/// The next frame of `queue` that is not dropped.
pub(super) fn dequeue<H: Copy>(
    management: &mut dyn Management,
    now: Time,
    queue: &mut Fifo<H>,
    backlog: &mut Backlog<H>,
) -> Option<Waiting<H>> {
    loop {
        let frame = backlog.take(queue)?;
        let verdict = management.on_departure(now, &frame.view(), backlog.view());
        if let Some(frame) = judge(verdict, frame, backlog) {
            return Some(frame);
        }
    }
}

fn judge<H: Copy>(verdict: Verdict, frame: Waiting<H>, backlog: &mut Backlog<H>) -> Option<Waiting<H>> {
    match verdict {
        Verdict::Pass => Some(frame),
        Verdict::Mark => Some(Waiting { marked: frame.marked || frame.label.ecn.is_capable(), ..frame }),
        Verdict::Drop => {
            backlog.drop_early(&frame);
            None
        }
    }
}

impl<H> Waiting<H> {
    fn view(&self) -> Queued {
        Queued { size: self.size, label: self.label, since: self.since }
    }
}

impl<H> Backlog<H> {
    fn view(&self) -> Waits {
        Waits { frames: self.frames, bytes: Bytes::new(self.bytes) }
    }
}
