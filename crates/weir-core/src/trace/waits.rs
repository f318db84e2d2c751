//! How much longer round trips took than the shortest: what waited in queues, and what hosts kept back.

use crate::histogram::SparseHistogram;
use crate::units::Span;

/// Octaves are cut into so many bins, as a power of two: a queue is not known any better.
const FINENESS: u32 = 5;

/// Samples of a round trip or of a part of it, by their excess over the least.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) count: u64,
    pub(crate) min_ps: Option<u64>,
    pub(crate) last_ps: Option<u64>,
    histogram: SparseHistogram,
}

impl Waits {
    /// It took `ps` for `packets` of the wire, each of which might have been lost.
    pub(crate) fn take(&mut self, ps: u64, packets: u64) {
        let least = self.min_ps.unwrap_or(ps);
        if ps < least {
            self.lower(least - ps);
        }
        self.min_ps = Some(least.min(ps));
        self.count += 1;
        self.last_ps = Some(ps);
        self.histogram.count_many(Span::from_ps(coarse(ps.saturating_sub(least))), packets);
    }

    /// It took `ps`, as far as another sample shows: counted, and no sample itself.
    pub(crate) fn take_reported(&mut self, ps: u64) {
        let least = self.min_ps.unwrap_or(ps);
        self.histogram.count(Span::from_ps(coarse(ps.saturating_sub(least))));
    }

    /// The least was too large by `by`: what was counted until now waited longer by as much.
    #[cold]
    fn lower(&mut self, by: u64) {
        let before = std::mem::take(&mut self.histogram);
        for (low, high, count) in before.bins() {
            let excess = low + (high - low) / 2 + by;
            self.histogram.count_many(Span::from_ps(coarse(excess)), count);
        }
    }

    /// Bins of the excess over the least, with their counts.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.histogram.bins().map(|(low, _, count)| (low, low + width(low), count))
    }
}

/// The width of the bin of `ps`.
fn width(ps: u64) -> u64 {
    1 << (ps | 1 << FINENESS).ilog2().saturating_sub(FINENESS)
}

/// The lower end of the bin of `ps`.
fn coarse(ps: u64) -> u64 {
    (ps & !(width(ps) - 1)).min(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_before_a_shorter_round_trip_waited_longer_than_it_seemed() {
        let mut waits = Waits::default();
        (0..5).for_each(|_| waits.take(50_000_000, 1));
        (0..3).for_each(|_| waits.take(20_000_000, 1));
        let bins: Vec<_> = waits.bins().collect();
        assert_eq!((waits.min_ps, waits.count), (Some(20_000_000), 8));
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<u64>(), 8);
        assert_eq!((bins[0].0, bins[0].2), (0, 3));
        assert!(bins[1].0 <= 30_000_000 && 30_000_000 <= bins[1].1 && bins[1].2 == 5, "{bins:?}");
        assert!(bins[1].1 - bins[1].0 <= bins[1].0 / 32);
    }
}
