//! Log-linear histograms: values below 64 have bins of their own; from there on each octave is cut into 32, so that
//! a bin is at most 1/32 of its value wide.

use crate::units::Span;

/// Bins of one octave.
const BINS_PER_OCTAVE: u64 = 32;

/// Counts of times, for many values: one word for each bin between the smallest and the largest.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// The bin that `counts` begins with.
    first: usize,
    counts: Vec<u64>,
}

impl Histogram {
    /// Count a time.
    pub fn count(&mut self, time: Span) {
        let bin = bin(time.ps());
        if self.counts.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - bin));
            self.first = bin;
        }
        let place = bin - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// Every bin with a count: its bounds in ps, the lower one included, and the count.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = (self.first..).zip(&self.counts).filter(|&(_, &count)| count > 0);
        filled.map(|(bin, &count)| (lower_bound(bin), lower_bound(bin + 1), count))
    }
}

/// The same for few values, of which there are many histograms: memory for filled bins only.
#[derive(Clone, Debug, Default)]
pub struct SparseHistogram {
    /// Bins with a count, in their order.
    filled: Vec<(u16, u64)>,
    /// Place of the one that was counted in last, as the next value often lies there, too.
    last: u16,
}

impl SparseHistogram {
    /// Count a time.
    #[inline]
    pub fn count(&mut self, time: Span) {
        let bin = u16::try_from(bin(time.ps())).expect("64 octaves have 2048 bins");
        match self.filled.get_mut(usize::from(self.last)) {
            Some((last, count)) if *last == bin => *count += 1,
            _ => self.count_elsewhere(bin, 1),
        }
    }

    /// Count a time as often as `times` says.
    pub(crate) fn count_many(&mut self, time: Span, times: u64) {
        if times > 0 {
            self.count_elsewhere(u16::try_from(bin(time.ps())).expect("64 octaves have 2048 bins"), times);
        }
    }

    fn count_elsewhere(&mut self, bin: u16, times: u64) {
        let place = self.filled.partition_point(|&(filled, _)| filled < bin);
        match self.filled.get_mut(place) {
            Some((filled, count)) if *filled == bin => *count += times,
            _ => self.filled.insert(place, (bin, times)),
        }
        self.last = place as u16;
    }

    /// Every bin with a count: its bounds in ps, the lower one included, and the count.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.filled
            .iter()
            .map(|&(bin, count)| (lower_bound(usize::from(bin)), lower_bound(usize::from(bin) + 1), count))
    }

    /// The middle of the bin in which the share `quantile` of all values is reached; `None` without values.
    pub fn quantile(&self, quantile: f64) -> Option<Span> {
        let total: u64 = self.filled.iter().map(|&(_, count)| count).sum();
        let wanted = ((total as f64 * quantile).ceil() as u64).max(1);
        let mut counted = 0;
        for (low, high, count) in self.bins() {
            counted += count;
            if counted >= wanted {
                return Some(Span::from_ps(low + (high - low) / 2));
            }
        }
        None
    }
}

/// Values below 64 have bins of their own; from there on each octave is cut into 32.
fn bin(value: u64) -> usize {
    let octave = u64::from((value | BINS_PER_OCTAVE).ilog2()) - 5;
    (octave * BINS_PER_OCTAVE + (value >> octave)) as usize
}

fn lower_bound(bin: usize) -> u64 {
    let bin = bin as u64;
    let octave = (bin / BINS_PER_OCTAVE).saturating_sub(1);
    let mantissa = bin - octave * BINS_PER_OCTAVE;
    mantissa.checked_shl(octave as u32).filter(|value| value >> octave == mantissa).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bin_and_no_bin_is_wider_than_a_32nd() {
        let values = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, (1 << bit) + (1 << bit) / 3]);
        for value in values.chain([0, u64::MAX - 1]) {
            let (low, high) = (lower_bound(bin(value)), lower_bound(bin(value) + 1));
            assert!(low <= value && value < high, "{value} in {low}..{high}");
            assert!(high - low <= 1.max(low / 32), "{low}..{high}");
        }
    }

    #[test]
    fn a_histogram_grows_to_both_sides() {
        let mut histogram = Histogram::default();
        for ps in [1000, 10, 1_000_000, 10] {
            histogram.count(Span::from_ps(ps));
        }
        let bins: Vec<_> = histogram.bins().collect();
        assert_eq!(bins[0], (10, 11, 2));
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<u64>(), 4);
        assert!(bins.iter().zip([10, 1000, 1_000_000]).all(|(&(low, high, _), ps)| low <= ps && ps < high));
    }

    #[test]
    fn a_sparse_histogram_has_the_same_bins_and_finds_quantiles() {
        let (mut dense, mut sparse) = (Histogram::default(), SparseHistogram::default());
        for ps in (0..1000).map(|value| value * 977) {
            dense.count(Span::from_ps(ps));
            sparse.count(Span::from_ps(ps));
        }
        assert_eq!(dense.bins().collect::<Vec<_>>(), sparse.bins().collect::<Vec<_>>());
        let median = sparse.quantile(0.5).expect("there are values").ps();
        assert!(median.abs_diff(499 * 977) <= 499 * 977 / 32, "{median}");
        assert_eq!(SparseHistogram::default().quantile(0.5), None);
    }
}
