//! CoDel: when frames have waited for longer than a target all through an interval, one is dropped; as long as they do,
//! the next ones follow in steps that shrink with the square root of their number, so that the rate of a TCP sender
//! falls linearly.
//!
//! It looks at frames when they leave, and at nothing but how long they waited. The last frames, as many bytes as the
//! largest frame holds, are never dropped.
//!
//! Source: RFC 8289, section 5 (the pseudo-code), section 3 (why).

use super::{Backlog, Fifo, Waiting};
use crate::spec::aqm as spec;
use crate::units::{Span, Time};

/// The controller of one queue.
#[derive(Clone, Debug)]
pub(super) struct Codel {
    spec: spec::Codel,
    /// When frames will have waited too long all through an interval, if they do now.
    above_until: Option<Time>,
    /// When the next frame is dropped, or was to be dropped.
    drop_next: Time,
    /// Drops since dropping began.
    count: u32,
    /// What `count` was then.
    count_before: u32,
    is_dropping: bool,
}

/// Dropping that begins again so soon after it ended goes on where it was.
/// Source: RFC 8289, section 5.5 (16 intervals).
const SOON: u64 = 16;

impl Codel {
    pub(super) fn new(spec: spec::Codel) -> Codel {
        Codel { spec, above_until: None, drop_next: Time::ZERO, count: 0, count_before: 0, is_dropping: false }
    }

    /// The next frame of `queue`. Those before it in `backlog` may be dropped.
    pub(super) fn dequeue<H: Copy>(
        &mut self,
        now: Time,
        queue: &mut Fifo<H>,
        backlog: &mut Backlog<H>,
    ) -> Option<Waiting<H>> {
        let (mut frame, mut is_late) = self.look(now, queue, backlog);
        if self.is_dropping {
            self.is_dropping = is_late;
            while self.is_dropping && now >= self.drop_next {
                self.count += 1;
                let strike = self.strike(frame?, backlog);
                if let Some(marked) = strike {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(marked);
                }
                (frame, is_late) = self.look(now, queue, backlog);
                self.is_dropping = is_late;
                if is_late {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if is_late {
            let strike = self.strike(frame?, backlog);
            if strike.is_some() {
                frame = strike;
            } else {
                (frame, _) = self.look(now, queue, backlog);
            }
            self.begin_dropping(now);
        }
        frame
    }

    fn begin_dropping(&mut self, now: Time) {
        let drops = self.count - self.count_before;
        let is_soon = now.saturating_since(self.drop_next) < self.spec.interval_ps * SOON;
        self.is_dropping = true;
        self.count = if drops > 1 && is_soon { drops } else { 1 };
        self.count_before = self.count;
        self.drop_next = self.control_law(now);
    }

    /// The next frame, and whether all have waited too long since an interval ago.
    fn look<H: Copy>(
        &mut self,
        now: Time,
        queue: &mut Fifo<H>,
        backlog: &mut Backlog<H>,
    ) -> (Option<Waiting<H>>, bool) {
        let frame = backlog.take(queue);
        let waited = frame.map_or(Span::ZERO, |frame| now - frame.since);
        if waited < self.spec.target_ps || backlog.bytes <= backlog.largest {
            self.above_until = None;
            return (frame, false);
        }
        let until = *self.above_until.get_or_insert(now + self.spec.interval_ps);
        (frame, now >= until)
    }

    /// A frame is marked, which is given back, or dropped.
    fn strike<H: Copy>(&self, mut frame: Waiting<H>, backlog: &mut Backlog<H>) -> Option<Waiting<H>> {
        if self.spec.ecn && frame.label.ecn.is_capable() {
            frame.marked = true;
            return Some(frame);
        }
        backlog.drop_early(&frame);
        None
    }

    /// When the next frame is dropped after one at `from`: interval / sqrt(count) later.
    fn control_law(&self, from: Time) -> Time {
        let step = self.spec.interval_ps.ps() as f64 / f64::from(self.count).sqrt();
        from + Span::from_ps(step as u64)
    }
}
