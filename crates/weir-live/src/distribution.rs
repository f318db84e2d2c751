//! How times are summed up: a log-linear histogram with three significant digits.

use hdrhistogram::Histogram;
use weir_core::units::Span;

const PS_PER_NS: u64 = 1_000;

/// Counts of times in bins at most 0.1 % wide; 1 ns to 213 days.
#[derive(Clone, Debug)]
pub struct Distribution {
    bins: Histogram<u64>,
}

/// A distribution in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// Smallest.
    pub min: Span,
    /// Median.
    pub p50: Span,
    /// 90th percentile.
    pub p90: Span,
    /// 99th percentile.
    pub p99: Span,
    /// 99.9th percentile.
    pub p99_9: Span,
    /// Largest.
    pub max: Span,
}

impl Distribution {
    /// Without any time in it.
    pub fn new() -> Distribution {
        Distribution { bins: Histogram::new(3).expect("three digits are legal") }
    }

    /// Add one time, in whole nanoseconds.
    pub fn record(&mut self, time: Span) {
        self.bins.record(time.ps() / PS_PER_NS).expect("a histogram that resizes holds any value");
    }

    /// Add one time `count` times, in whole nanoseconds.
    pub fn record_n(&mut self, time: Span, count: u64) {
        self.bins.record_n(time.ps() / PS_PER_NS, count).expect("a histogram that resizes holds any value");
    }

    /// Add all times of another one.
    pub fn add(&mut self, other: &Distribution) {
        self.bins.add(&other.bins).expect("a histogram that resizes holds any value");
    }

    /// How many times were added.
    pub fn count(&self) -> u64 {
        self.bins.len()
    }

    /// How many times lie in each of these ranges: 0 to the first edge, then from edge to edge, then beyond the last;
    /// an edge belongs to the range that it ends, to the precision of the bins.
    pub fn counts(&self, edges: &[Span]) -> Vec<u64> {
        let upto = |edge: &Span| self.bins.count_between(0, edge.ps() / PS_PER_NS);
        let mut before = 0;
        let ends = edges.iter().map(upto).chain([self.count()]);
        ends.map(|count| count - std::mem::replace(&mut before, count)).collect()
    }

    /// The time of which `rank` times, itself included, are no larger, to the precision of the bins; ranks are from 1.
    pub fn at_rank(&self, rank: u64) -> Span {
        let quantile = rank as f64 / self.count().max(1) as f64;
        Span::from_ns(self.bins.value_at_quantile(quantile).min(self.bins.max()))
    }

    /// The usual percentiles; nothing when no time was added. A percentile is the upper end of the bin that
    /// holds it, and never more than the largest time.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let at = |quantile| Span::from_ns(self.bins.value_at_quantile(quantile).min(self.bins.max()));
        (self.count() > 0).then(|| Percentiles {
            min: Span::from_ns(self.bins.min()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: Span::from_ns(self.bins.max()),
        })
    }
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_has_no_percentiles() {
        assert_eq!(Distribution::new().percentiles(), None);
    }

    #[test]
    fn counts_between_edges_add_up_to_all() {
        let mut times = Distribution::new();
        for us in [0, 5, 5, 60, 7_000] {
            times.record(Span::from_us(us));
        }
        assert_eq!(times.counts(&[Span::from_us(1), Span::from_us(50), Span::from_us(1000)]), [1, 2, 1, 1]);
        assert_eq!(times.counts(&[]), [5]);
        let mut both = Distribution::new();
        both.add(&times);
        both.add(&times);
        assert_eq!(both.count(), 10);
    }

    #[test]
    fn percentiles_of_an_even_spread_are_right_to_three_digits() {
        let mut times = Distribution::new();
        for us in 1..=10_000 {
            times.record(Span::from_us(us));
        }
        let found = times.percentiles().expect("ten thousand times");
        for (value, expected_us) in
            [(found.p50, 5_000.0), (found.p90, 9_000.0), (found.p99, 9_900.0), (found.p99_9, 9_990.0)]
        {
            let off = (value.as_secs_f64() * 1e6 - expected_us).abs() / expected_us;
            assert!(off < 2e-3, "{value} is not {expected_us} us");
        }
        assert!(found.min <= found.p50 && found.p99_9 <= found.max);
    }
}
