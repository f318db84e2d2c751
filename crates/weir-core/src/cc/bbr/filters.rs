//! What is kept of numbers that come in a row.

use std::collections::VecDeque;

use crate::cc::bbr::scaled;
use crate::units::Rate;

/// The largest number of the last rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMax {
    /// Numbers that no later one exceeds, with the round of each.
    kept: VecDeque<(u64, u64)>,
}

impl WindowedMax {
    /// Adds `value` in `round`, which never goes back, and forgets what is `length` rounds old.
    pub(super) fn update(&mut self, round: u64, value: u64, length: u64) {
        while self.kept.back().is_some_and(|&(_, kept)| kept <= value) {
            self.kept.pop_back();
        }
        self.kept.push_back((round, value));
        while self.kept.front().is_some_and(|&(of, _)| of + length <= round) {
            self.kept.pop_front();
        }
    }

    pub(super) fn largest(&self) -> u64 {
        self.kept.front().map_or(0, |&(_, value)| value)
    }
}

/// The highest delivery rate of this and the last cycle of probing.
///
/// Source: BBR draft, 5.5.5 and 5.5.6.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    last_cycle: Rate,
    this_cycle: Rate,
}

impl MaxBandwidth {
    pub(super) fn update(&mut self, rate: Rate) {
        self.this_cycle = self.this_cycle.max(rate);
    }

    /// A cycle is over. One without a sample leaves what is known.
    pub(super) fn advance(&mut self) {
        if self.this_cycle > Rate::default() {
            (self.last_cycle, self.this_cycle) = (self.this_cycle, Rate::default());
        }
    }

    pub(super) fn largest(&self) -> Rate {
        self.last_cycle.max(self.this_cycle)
    }
}

/// Whether sending faster still raises the delivery rate.
///
/// Source: BBR draft, 5.3.1.2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Whether it was ever found that it does not.
    pub(super) is_reached: bool,
    /// Whether it was found since the last reset.
    pub(super) is_reached_now: bool,
    /// The rate that is to be exceeded, and the round trips in which it was not.
    rate: Rate,
    rounds: u32,
}

/// By how much the rate must grow.
const GROWTH: f64 = 1.25;
/// Round trips without that growth.
const ROUNDS: u32 = 3;

impl FullPipe {
    /// Starts again, from `rate`.
    pub(super) fn reset(&mut self, rate: Rate) {
        (self.is_reached_now, self.rate, self.rounds) = (false, rate, 0);
    }

    /// A round trip ended with a sample of `rate` that the application did not limit.
    pub(super) fn on_round(&mut self, rate: Rate) {
        if self.is_reached_now {
            return;
        }
        if rate >= scaled(self.rate, GROWTH) {
            self.reset(rate);
            return;
        }
        self.rounds += 1;
        self.is_reached_now = self.rounds >= ROUNDS;
        self.is_reached |= self.is_reached_now;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mbit(mbps: u64) -> Rate {
        Rate::from_bps(mbps * 1_000_000)
    }

    #[test]
    fn the_pipe_is_full_after_three_rounds_without_a_quarter_more() {
        let mut pipe = FullPipe::default();
        for rate in [10, 20, 40, 50, 62, 50] {
            pipe.on_round(mbit(rate));
            assert!(!pipe.is_reached, "{rate}");
        }
        pipe.on_round(mbit(60));
        assert!(pipe.is_reached && pipe.is_reached_now);
        pipe.reset(mbit(60));
        assert!(pipe.is_reached && !pipe.is_reached_now);
    }

    #[test]
    fn a_rate_is_known_for_two_cycles_and_longer_if_there_are_no_others() {
        let mut filter = MaxBandwidth::default();
        filter.update(mbit(100));
        filter.advance();
        filter.advance();
        assert_eq!(filter.largest(), mbit(100));
        filter.update(mbit(40));
        assert_eq!(filter.largest(), mbit(100));
        filter.advance();
        assert_eq!(filter.largest(), mbit(40));
    }

    proptest! {
        #[test]
        fn the_largest_is_that_of_the_window(
            steps in prop::collection::vec((0u64..4, 0u64..100), 1..100), length in 1u64..12,
        ) {
            let mut filter = WindowedMax::default();
            let (mut all, mut round) = (vec![], 0);
            for (step, value) in steps {
                round += step;
                all.push((round, value));
                filter.update(round, value, length);
                let largest = all.iter().filter(|&&(of, _)| of + length > round).map(|&(_, value)| value).max();
                prop_assert_eq!(Some(filter.largest()), largest);
            }
        }
    }
}
