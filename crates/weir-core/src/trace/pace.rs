//! How fast data went: in trains, which show what the path carries while it is busy, and by round trip, which shows what
//! the sender made of it.

use crate::histogram::SparseHistogram;
use crate::units::{PS_PER_S, Span};

/// Full segments of a train. Source: Dovrolis 2004, section III: long trains show what a path carries, and short ones noise.
const TRAIN: u64 = 8;
/// Rounds shorter than this say more of the host than of the network, ps.
const LEAST_ROUND_PS: u64 = 5_000_000_000;
/// A round in which the sender sent this much more than in any before is one of growth: slow start multiplies by 1.5 with
/// delayed acknowledgments and by 2 without, congestion avoidance adds a segment. Source: RFC 5681, section 3.1.
const GROWTH: f64 = 1.35;

/// The rates of trains of segments: over the time that their acknowledgments took, or that they took to leave if that was
/// longer, since acknowledgments that were held up come closer together than any path lets data pass.
///
/// Source: Cheng 2021, section 3.2 (the larger of both times).
#[derive(Clone, Debug, Default)]
pub(crate) struct Trains {
    /// When the acknowledgment before the train came, what it acknowledged, and when that had left.
    since: Option<(u64, u64, u64)>,
    /// Bits per second.
    rates: SparseHistogram,
}

impl Trains {
    /// All below `place`, the last of which had left at `sent`, is acknowledged at `now`. `mss` are the bytes of a full segment.
    pub(crate) fn acknowledged(&mut self, now: u64, place: u64, sent: u64, mss: u32) {
        let Some((since, start, sent_since)) = self.since else {
            self.since = Some((now, place, sent));
            return;
        };
        let bytes = place.saturating_sub(start);
        if bytes < TRAIN * u64::from(mss) || now <= since {
            return;
        }
        let took = (now - since).max(sent.saturating_sub(sent_since));
        let bits = u128::from(bytes) * 8 * u128::from(PS_PER_S) / u128::from(took);
        self.rates.count(Span::from_ps(u64::try_from(bits).unwrap_or(u64::MAX / 2)));
        self.since = Some((now, place, sent));
    }

    /// What comes next follows nothing: acknowledgments that had waited for a repair tell no rate.
    pub(crate) fn broken(&mut self) {
        self.since = None;
    }

    /// Whether `bytes` in `took_ps` are more than 4/3 of what three quarters of the trains had.
    pub(crate) fn slower_than(&self, bytes: u64, took_ps: u64) -> bool {
        let all: u64 = self.rates.bins().map(|bin| bin.2).sum();
        let mut reached = 0;
        let usual = self.rates.bins().find(|bin| {
            reached += bin.2;
            reached * 4 >= all * 3
        });
        let bits = u128::from(bytes) * 8 * u128::from(PS_PER_S);
        usual.is_none_or(|(_, high, _)| bits * 3 > u128::from(high) * 4 * u128::from(took_ps))
    }

    /// Rates in bit/s, with the trains that had them.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.rates.bins()
    }
}

/// What a sender sent in each round trip.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    start: Option<u64>,
    bytes: u64,
    most: u64,
    /// Time of rounds in which more was sent than ever before.
    pub(crate) growing_ps: u64,
    sizes: SparseHistogram,
}

impl Rounds {
    /// New data of `bytes` was sent at `now`; a round trip takes `round_trip_ps`.
    pub(crate) fn sent(&mut self, now: u64, bytes: u64, round_trip_ps: u64) {
        let start = *self.start.get_or_insert(now);
        let passed = now.saturating_sub(start);
        let length = round_trip_ps.max(LEAST_ROUND_PS);
        if passed >= length {
            self.close(length);
            self.sizes.count_many(Span::from_ps(0), passed / length - 1);
            self.start = Some(now);
            self.bytes = 0;
        }
        self.bytes += bytes;
    }

    fn close(&mut self, length: u64) {
        if self.bytes as f64 >= GROWTH * self.most as f64 {
            self.growing_ps = self.growing_ps.saturating_add(length);
        }
        self.most = self.most.max(self.bytes);
        self.sizes.count(Span::from_ps(self.bytes));
    }

    /// Bytes of rounds, with the rounds that had them.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.sizes.bins()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    #[test]
    fn trains_tell_the_rate_within_bursts_and_not_that_between_them() {
        let mut trains = Trains::default();
        let mut place = 0;
        for burst in 0..10u64 {
            for each in 0..40u64 {
                place += 1250;
                trains.acknowledged(burst * 100 * MS + each * MS, place, burst * 100 * MS, 1250);
            }
        }
        let bins: Vec<_> = trains.bins().collect();
        let fast: u64 = bins.iter().filter(|bin| bin.0 <= 10_000_000 && 10_000_000 < bin.1).map(|bin| bin.2).sum();
        let all: u64 = bins.iter().map(|bin| bin.2).sum();
        assert!(fast * 10 >= all * 7, "{bins:?}");
    }

    #[test]
    fn acknowledgments_that_were_held_up_tell_no_rate_that_their_data_did_not_have() {
        let mut trains = Trains::default();
        for bunch in 0..10u64 {
            for each in 0..16u64 {
                let place = (bunch * 16 + each + 1) * 1250;
                trains.acknowledged((bunch + 2) * 16 * MS + each * MS / 100, place, (bunch * 16 + each) * MS, 1250);
            }
        }
        assert!(trains.bins().all(|bin| bin.0 <= 10_000_000), "{:?}", trains.bins().collect::<Vec<_>>());
    }

    #[test]
    fn a_window_that_doubles_grows_and_one_that_stays_does_not() {
        let mut rounds = Rounds::default();
        let mut sent =
            |round: u64, segments: u64| (0..segments).for_each(|_| rounds.sent(round * 50 * MS, 1000, 50 * MS));
        (0..5).for_each(|round| sent(round, 10 << round));
        (5..40).for_each(|round| sent(round, 160));
        assert_eq!(rounds.growing_ps, 5 * 50 * MS);
        assert_eq!(rounds.bins().map(|bin| bin.2).sum::<u64>(), 39);
    }

    #[test]
    fn rounds_without_data_are_counted_as_such() {
        let mut rounds = Rounds::default();
        (0..5).for_each(|turn| rounds.sent(turn * 500 * MS, 1000, 50 * MS));
        let empty = rounds.bins().next();
        assert_eq!(empty, Some((0, 1, 4 * 9)));
    }
}
