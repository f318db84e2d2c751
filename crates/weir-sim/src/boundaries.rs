//! The ends of equal intervals, and what a port had done by them.

use weir_core::units::{Span, Time};

/// The ends of equal intervals; the last one ends with the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Boundaries {
    every: Span,
    end: Time,
}

impl Boundaries {
    /// One boundary each `every`, and one at `end`.
    pub(crate) fn new(every: Span, end: Time) -> Boundaries {
        Boundaries { every, end }
    }

    /// How many there are.
    pub(crate) fn count(self) -> u32 {
        u32::try_from(self.end.ps().div_ceil(self.every.ps())).expect("fewer rows than 2^32, as checked")
    }

    /// The end of interval `number` (from 1); none after the last.
    #[inline]
    pub(crate) fn at(self, number: u32) -> Time {
        let at = Time::from_ps(u64::from(number).saturating_mul(self.every.ps()));
        if at < self.end {
            at
        } else if number == self.count() {
            self.end
        } else {
            Time::NEVER
        }
    }

    /// The number of the interval that holds `now`.
    pub(crate) fn number(self, now: Time) -> u32 {
        if now >= self.end { self.count() + 1 } else { (now.ps() / self.every.ps()) as u32 + 1 }
    }
}

/// What a port had done by the end of an interval in which, or just before which, something happened: a cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    /// Place of the probe.
    pub(crate) probe: u32,
    /// The interval.
    pub(crate) number: u32,
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    pub(crate) drops: u64,
    pub(crate) queue_bytes: u64,
    /// Since the mark before.
    pub(crate) queue_max_bytes: u64,
    pub(crate) queue_byte_ps: u128,
}

/// How long a port had been paused by the end of an interval: of those only that ever were, next to their [`Mark`]s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Place of the probe.
    pub(crate) probe: u32,
    /// The interval.
    pub(crate) number: u32,
    pub(crate) paused_ps: u64,
    /// Whether it is paused from there on.
    pub(crate) is_paused: bool,
}
