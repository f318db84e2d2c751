//! What is seen of a run while it goes on.

use weir_core::units::{Span, Time};

/// What a run has counted so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Simulated time.
    pub now: Time,
    /// Frames generated that a port has asked for.
    pub sent: u64,
    /// Frames that arrived.
    pub delivered: u64,
    /// Their sizes.
    pub delivered_bytes: u64,
    /// Frames dropped in queues.
    pub dropped: u64,
    /// Frames in queues and on links, control frames included.
    pub alive: u64,
    /// Classes of ports that were found in a deadlock that is not over.
    pub deadlocked: u64,
}

/// An engine at work, as far as it is shown.
pub(crate) trait Counting: std::fmt::Debug {
    /// What has been counted.
    fn counts(&self) -> Counts;
    /// Simulated time.
    fn now(&self) -> Time;
    /// The end of the run.
    fn end(&self) -> Time;
    /// Flows and places that are added up for the counts.
    fn added(&self) -> usize;
}

/// A run, seen while it goes on.
#[derive(Debug)]
pub struct Seen<'s>(pub(crate) &'s dyn Counting);

/// Flows and places that are added up in a run for [`Counts`], about: some milliseconds.
const ADDED: usize = 20_000_000;

impl Seen<'_> {
    /// Simulated time.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// What has been counted. Takes as long as there are flows.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// The simulated time after which it is worth counting again: a four hundredth of the run, or more where there are many
    /// flows; at first an eighth of what has passed, so that a run of hours shows something after seconds.
    pub fn pause(&self) -> Span {
        let times = ADDED / self.0.added().max(1);
        Span::from_ps((self.0.end().ps() / times.clamp(20, 400) as u64).min(self.now().ps() / 8))
    }
}
