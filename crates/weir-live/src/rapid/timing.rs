//! How well a sender kept its times.

use weir_core::units::{Span, Time};

use crate::distribution::{Distribution, Percentiles};

/// Departures compared with the times that they were due at.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    last: Option<(Time, Time)>,
    /// Gaps that were longer than asked for, or just right, by how much.
    longer: Distribution,
    /// Gaps that were shorter, by how much.
    shorter: Distribution,
    late: Distribution,
    /// Gaps within a microsecond, and within a quarter, of what was asked for.
    exact: u64,
    near: u64,
}

/// [`Timing`] in a few numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Gaps between packets of streams.
    pub gaps: u64,
    /// Of these, those within a microsecond of what was asked for.
    pub exact: u64,
    /// And those within a quarter of it.
    pub near: u64,
    /// Quantiles of the achieved gap less the one that was asked for, ns: see [`QUANTILES`].
    pub error_ns: Vec<i64>,
    /// How late packets left.
    pub late: Option<Percentiles>,
}

/// Which quantiles of the gap error are reported.
pub const QUANTILES: [f64; 8] = [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0];

impl Timing {
    /// A packet left at `left` that was due at `due`; none: it had no time of its own, and the next gap none either.
    pub fn on_departure(&mut self, due: Option<Time>, left: Time) {
        let Some(due) = due else {
            self.last = Some((left, left));
            return;
        };
        self.late.record(left.saturating_since(due));
        if let Some((due_before, left_before)) = self.last.replace((due, left)) {
            let (asked, gap) = (due.saturating_since(due_before), left.saturating_since(left_before));
            let error = Span::from_ps(asked.ps().abs_diff(gap.ps()));
            if gap >= asked {
                self.longer.record(error)
            } else {
                self.shorter.record(error)
            }
            self.exact += u64::from(error <= Span::from_us(1));
            self.near += u64::from(error.ps() * 4 <= asked.ps());
        }
    }

    /// What was not part of a stream left: the next gap is none.
    pub fn on_break(&mut self) {
        self.last = None;
    }

    /// All of it.
    pub fn kept(&self) -> Kept {
        Kept {
            gaps: self.shorter.count() + self.longer.count(),
            exact: self.exact,
            near: self.near,
            error_ns: QUANTILES.iter().filter_map(|&quantile| self.error(quantile)).collect(),
            late: self.late.percentiles(),
        }
    }

    /// A quantile of the error, ns; none without a gap.
    fn error(&self, quantile: f64) -> Option<i64> {
        let (shorter, longer) = (self.shorter.count(), self.longer.count());
        let all = shorter + longer;
        if all == 0 {
            return None;
        }
        let rank = ((quantile * all as f64).ceil() as u64).clamp(1, all);
        let ns = |distribution: &Distribution, rank: u64| (distribution.at_rank(rank).ps() / 1_000) as i64;
        // The shortest come first: the largest errors downwards.
        Some(if rank <= shorter { -ns(&self.shorter, shorter + 1 - rank) } else { ns(&self.longer, rank - shorter) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn errors_of_gaps_have_signs_and_lateness_has_none() {
        let mut timing = Timing::default();
        // Due each 10 us; gaps of 10, 13, 7, 10 us.
        for (due, left) in [(0, 0), (10, 10), (20, 23), (30, 30), (40, 40)] {
            timing.on_departure(Some(at_us(due)), at_us(left));
        }
        let kept = timing.kept();
        assert_eq!((kept.gaps, kept.exact, kept.near), (4, 2, 2));
        let found = |quantile| {
            let place = QUANTILES.iter().position(|&known| known == quantile).expect("one of them");
            kept.error_ns[place] as f64 / 1e3
        };
        assert!((found(0.001) + 3.0).abs() < 0.01 && found(0.5) == 0.0 && (found(1.0) - 3.0).abs() < 0.01, "{kept:?}");
        let late = kept.late.expect("five packets");
        assert!((late.max.as_secs_f64() - 3e-6).abs() < 1e-8);
    }

    #[test]
    fn a_break_ends_a_gap_and_nothing_sent_has_no_quantiles() {
        let mut timing = Timing::default();
        assert_eq!((timing.kept().gaps, timing.kept().error_ns.len()), (0, 0));
        timing.on_departure(Some(at_us(0)), at_us(0));
        timing.on_break();
        timing.on_departure(Some(at_us(900)), at_us(950));
        assert_eq!(timing.kept().gaps, 0);
        timing.on_departure(None, at_us(1000));
        timing.on_departure(Some(at_us(1010)), at_us(1011));
        assert_eq!((timing.kept().gaps, timing.kept().exact), (1, 1));
    }
}
