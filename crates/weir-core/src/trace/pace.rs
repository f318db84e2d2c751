//! How fast data went: in trains, which show what the path carries while it is busy, and by round trip, which shows what
//! the sender made of it.

use crate::histogram::SparseHistogram;
use crate::units::{PS_PER_S, Span};

/// Full segments of a train. Source: Dovrolis 2004, section III: long trains show what a path carries, and short ones noise.
const TRAIN: u64 = 8;
/// A busy time is cut into pieces of this length: the rate of a path may vary, ps.
const PIECE_PS: u64 = 2_000_000_000;
/// Full segments of a busy time that count: fewer than of a train, as no pause can hide among them.
const LEAST_BUSY: u64 = 2;
/// Segments of busy times from which the trains no longer count, if there are so many for each train, too.
const ENOUGH: u64 = 64;
const FOR_EACH: f64 = 0.125;
/// Rounds shorter than this say more of the host than of the network, ps.
const LEAST_ROUND_PS: u64 = 5_000_000_000;
/// A round in which the sender sent this much more than in any before is one of growth: slow start multiplies by 1.5 with
/// delayed acknowledgments and by 2 without, congestion avoidance adds a segment. Source: RFC 5681, section 3.1.
const GROWTH: f64 = 1.35;

/// The rates of trains of segments: over the time that their acknowledgments took, or that they took to leave if that was
/// longer, since acknowledgments that were held up come closer together than any path lets data pass.
///
/// Where it is known that something waited all the time, only these times count: what waited at least as long as the
/// acknowledgment before it is ago was in the queue when that was let go, so that the path was busy between the two.
///
/// Source: Cheng 2021, section 3.2 (the larger of both times).
#[derive(Clone, Debug, Default)]
pub(crate) struct Trains {
    /// The acknowledgment before the train.
    since: Option<Mark>,
    /// The first acknowledgment of the time since which the path is busy, and the last one.
    busy: Option<(Mark, Mark)>,
    /// Bits per second.
    rates: SparseHistogram,
    /// The same of busy times.
    busy_rates: SparseHistogram,
}

/// An acknowledgment: when it came, what is acknowledged with it, and when the last of that had left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) now: u64,
    pub(crate) place: u64,
    pub(crate) sent: u64,
}

impl Mark {
    /// Bytes since `before`, and the time that they took to be acknowledged, or to leave if that was longer.
    fn since(&self, before: &Mark) -> (u64, u64) {
        let took = self.now.saturating_sub(before.now).max(self.sent.saturating_sub(before.sent));
        (self.place.saturating_sub(before.place), took)
    }
}

impl Trains {
    /// An acknowledgment came, before which the last of what it acknowledges `waited_ps`. `mss` are the bytes of a full segment.
    pub(crate) fn acknowledged(&mut self, mark: Mark, waited_ps: u64, mss: u32) {
        let mss = u64::from(mss);
        let least = TRAIN * mss;
        self.busy = Some(match self.busy.take() {
            Some((start, last)) if mark.now.saturating_sub(last.now) <= waited_ps => {
                if last.since(&start).0 >= least && last.now - start.now >= PIECE_PS {
                    self.close(start, last, mss);
                    (last, mark)
                } else {
                    (start, mark)
                }
            }
            Some((start, last)) => {
                self.close(start, last, mss);
                (mark, mark)
            }
            None => (mark, mark),
        });
        let Some(since) = self.since else {
            self.since = Some(mark);
            return;
        };
        let (bytes, took) = mark.since(&since);
        if bytes >= least && mark.now > since.now {
            self.rates.count(Span::from_ps(rate(bytes, took)));
            self.since = Some(mark);
        }
    }

    /// A busy time, or a piece of one, has ended: its rate counts as often as it had segments.
    fn close(&mut self, start: Mark, last: Mark, mss: u64) {
        let (bytes, took) = last.since(&start);
        let segments = bytes / mss.max(1);
        if segments >= LEAST_BUSY && took > 0 {
            self.busy_rates.count_many(Span::from_ps(rate(bytes, took)), segments);
        }
    }

    /// What comes next follows nothing: acknowledgments that had waited for a repair show no rate.
    pub(crate) fn broken(&mut self) {
        self.since = None;
        self.busy = None;
    }

    /// Whether `bytes` in `took_ps` are more than 4/3 of what three quarters of the trains had.
    pub(crate) fn slower_than(&self, bytes: u64, took_ps: u64) -> bool {
        let all: u64 = self.bins().map(|bin| bin.2).sum();
        let mut reached = 0;
        let usual = self.bins().find(|bin| {
            reached += bin.2;
            reached * 4 >= all * 3
        });
        let bits = u128::from(bytes) * 8 * u128::from(PS_PER_S);
        usual.is_none_or(|(_, high, _)| bits * 3 > u128::from(high) * 4 * u128::from(took_ps))
    }

    /// Rates in bit/s, with the trains that had them; of busy times, with their segments.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        if self.are_of_busy_times() { self.busy_rates.bins() } else { self.rates.bins() }
    }

    /// Whether enough is known of times in which something waited: the rates are of these alone, then.
    pub(crate) fn are_of_busy_times(&self) -> bool {
        let [busy, all] = [&self.busy_rates, &self.rates].map(|rates| rates.bins().map(|bin| bin.2).sum::<u64>());
        busy >= ENOUGH && busy as f64 >= FOR_EACH * all as f64
    }
}

/// Bits per second.
fn rate(bytes: u64, took_ps: u64) -> u64 {
    let bits = u128::from(bytes) * 8 * u128::from(PS_PER_S) / u128::from(took_ps.max(1));
    u64::try_from(bits).unwrap_or(u64::MAX / 2)
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
    fn trains_show_the_rate_within_bursts_and_not_that_between_them() {
        let mut trains = Trains::default();
        let mut place = 0;
        for burst in 0..10u64 {
            for each in 0..40u64 {
                place += 1250;
                let sent = burst * 100 * MS;
                trains.acknowledged(Mark { now: sent + each * MS, place, sent }, 0, 1250);
            }
        }
        let bins: Vec<_> = trains.bins().collect();
        let fast: u64 = bins.iter().filter(|bin| bin.0 <= 10_000_000 && 10_000_000 < bin.1).map(|bin| bin.2).sum();
        let all: u64 = bins.iter().map(|bin| bin.2).sum();
        assert!(fast * 10 >= all * 7, "{bins:?}");
    }

    #[test]
    fn where_something_waited_only_the_time_in_which_it_did_shows_the_rate() {
        let mut trains = Trains::default();
        let mut place = 0;
        // Bursts of 12 segments that leave at once, 1 ms apart on the path, and long pauses.
        for sent in (0..20u64).map(|burst| burst * 40 * MS) {
            for each in 1..=12u64 {
                place += 1250;
                trains.acknowledged(Mark { now: sent + each * MS, place, sent }, (each - 1) * MS, 1250);
            }
        }
        trains.broken();
        assert!(
            trains.bins().all(|bin| bin.0 <= 10_000_000 && 10_000_000 < bin.1),
            "{:?}",
            trains.bins().collect::<Vec<_>>()
        );
        assert_eq!(trains.bins().map(|bin| bin.2).sum::<u64>(), 19 * 11 + 8);
    }

    #[test]
    fn acknowledgments_that_were_held_up_show_no_rate_that_their_data_did_not_have() {
        let mut trains = Trains::default();
        for bunch in 0..10u64 {
            for each in 0..16u64 {
                let place = (bunch * 16 + each + 1) * 1250;
                let (now, sent) = ((bunch + 2) * 16 * MS + each * MS / 100, (bunch * 16 + each) * MS);
                trains.acknowledged(Mark { now, place, sent }, 0, 1250);
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
