//! Series of rate limiters: rows of the table `limiters`.

use weir_core::ethernet::reaction::{Allowance, Meter, ReactionPoint, Rules};
use weir_core::units::Time;

use crate::boundaries::Boundaries;
use crate::totals::LimiterInterval;

/// The intervals of what limits one flow, or one pair of hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimiterSeries {
    before: Meter,
    rows: Vec<LimiterInterval>,
}

impl LimiterSeries {
    /// An interval ended at `at`, up to which nothing has happened that `reaction` does not know; `queue_bytes` wait. What is due
    /// by itself is only looked ahead at: it happens when the limiter is used, recorded or not.
    pub(crate) fn mark(&mut self, at: Time, reaction: Option<(&ReactionPoint, &Rules)>, queue_bytes: u64) {
        let (meter, rate_bps) = match reaction {
            None => (Meter::default(), None),
            Some((reaction, rules)) => {
                let mut reaction = reaction.clone();
                reaction.advance(at, rules);
                let rate = match reaction.allowance() {
                    Allowance::Unlimited => None,
                    Allowance::Limited(rate) => Some(rate.bps()),
                    Allowance::Stopped(_) => Some(0),
                };
                (reaction.meter(), rate)
            }
        };
        self.rows.push(LimiterInterval {
            t_ps: at.ps(),
            rate_bps,
            rate_bit: meter.rate_bit - self.before.rate_bit,
            limited_ps: meter.limited_ps - self.before.limited_ps,
            stopped_ps: meter.stopped_ps - self.before.stopped_ps,
            queue_bytes,
        });
        self.before = meter;
    }
}

/// The series of the limiters of a host, by destination.
#[derive(Debug)]
pub(crate) struct HostSeries {
    boundaries: Boundaries,
    number: u32,
    of_place: Vec<LimiterSeries>,
}

impl HostSeries {
    /// Before the first interval has ended.
    pub(crate) fn new(boundaries: Boundaries, places: usize) -> HostSeries {
        HostSeries { boundaries, number: 1, of_place: vec![LimiterSeries::default(); places] }
    }

    /// When the current interval ends.
    #[inline]
    pub(crate) fn boundary(&self) -> Time {
        self.boundaries.at(self.number)
    }

    /// The current interval has ended: what limits each place then, and what waits there.
    pub(crate) fn mark<'a>(
        &mut self,
        reaction: impl Fn(usize) -> Option<(&'a ReactionPoint, &'a Rules)>,
        queue_bytes: impl Fn(usize) -> u64,
    ) {
        let at = self.boundary();
        for (place, series) in self.of_place.iter_mut().enumerate() {
            series.mark(at, reaction(place), queue_bytes(place));
        }
        self.number += 1;
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.of_place.iter().map(|series| series.rows.len()).sum()
    }

    /// Takes the rows of each place.
    pub(crate) fn take_rows(&mut self) -> impl Iterator<Item = Vec<LimiterInterval>> + '_ {
        self.of_place.iter_mut().map(|series| std::mem::take(&mut series.rows))
    }
}
