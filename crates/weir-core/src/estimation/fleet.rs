//! What the streams of a fleet say together.

use super::trend::{Trend, Verdict};
use crate::named;

named! {
    /// What a fleet says of its rate.
    pub enum Aggregate {
        /// It is above the available bandwidth.
        Above = "above",
        /// It is below.
        Below = "below",
        /// It is within the range in which that varies.
        Grey = "grey",
        /// Too few of its streams are usable.
        Unusable = "unusable",
    }
}

/// Streams of one rate.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    increasing: usize,
    steady: usize,
    unclear: usize,
    discarded: usize,
    lossy: usize,
    streams: usize,
    is_aborted: bool,
}

impl Fleet {
    /// A stream of `packets`, of which `lost` did not arrive, has these trends: one, or one for each part of it.
    pub fn add(&mut self, trends: &[Option<Trend>], packets: u32, lost: u32) {
        self.streams += 1;
        let loss = f64::from(lost) / f64::from(packets);
        if loss >= HIGH_LOSS {
            self.is_aborted = true;
            return;
        }
        self.lossy += usize::from(loss >= MEDIUM_LOSS);
        for trend in trends {
            match trend.map_or(Verdict::Discarded, |trend| trend.verdict) {
                Verdict::Increasing => self.increasing += 1,
                Verdict::NoTrend => self.steady += 1,
                Verdict::Unclear => self.unclear += 1,
                Verdict::Discarded => self.discarded += 1,
            }
        }
    }

    /// How many streams it has.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Whether one of them lost so much that no more are needed.
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// What they say: that of six tenths of the usable ones, if so many agree. Losses say that the rate is too high: 15 %
    /// of one stream, or 3 % of half of the streams.
    ///
    /// Source: Jain & Dovrolis 2003; pathload 1.3.2
    pub fn aggregate(&self) -> Aggregate {
        if self.is_aborted || (self.streams > 0 && self.lossy * 2 >= self.streams) {
            return Aggregate::Above;
        }
        let usable = self.increasing + self.steady + self.unclear;
        if usable == 0 || usable * 2 < self.streams {
            return Aggregate::Unusable;
        }
        let part = |count: usize| count as f64 / usable as f64 >= MAJORITY;
        if part(self.increasing) {
            Aggregate::Above
        } else if part(self.steady) {
            Aggregate::Below
        } else {
            Aggregate::Grey
        }
    }
}

/// Source: pathload 1.3.2
const HIGH_LOSS: f64 = 0.15;
const MEDIUM_LOSS: f64 = 0.03;
const MAJORITY: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(verdicts: &[(Verdict, usize)], lost: u32) -> Fleet {
        let mut fleet = Fleet::default();
        for &(verdict, count) in verdicts {
            (0..count).for_each(|_| fleet.add(&[Some(Trend { pct: 0.5, pdt: 0.5, verdict })], 100, lost));
        }
        fleet
    }

    #[test]
    fn six_tenths_of_the_usable_streams_decide() {
        use Verdict::{Discarded, Increasing, NoTrend, Unclear};
        let of = |verdicts: &[(Verdict, usize)]| fleet(verdicts, 0).aggregate();
        assert_eq!(of(&[(Increasing, 8), (NoTrend, 4)]), Aggregate::Above);
        assert_eq!(of(&[(Increasing, 7), (NoTrend, 5)]), Aggregate::Grey);
        assert_eq!(of(&[(NoTrend, 8), (Unclear, 4)]), Aggregate::Below);
        assert_eq!(of(&[(NoTrend, 5), (Unclear, 2), (Discarded, 5)]), Aggregate::Below);
        assert_eq!(of(&[(NoTrend, 5), (Discarded, 7)]), Aggregate::Unusable);
    }

    #[test]
    fn losses_say_that_the_rate_is_too_high() {
        let steady = [(Verdict::NoTrend, 12)];
        assert_eq!(fleet(&steady, 2).aggregate(), Aggregate::Below);
        assert_eq!(fleet(&steady, 3).aggregate(), Aggregate::Above);
        let mut once = fleet(&[(Verdict::NoTrend, 3)], 0);
        once.add(&[None], 100, 15);
        assert!(once.is_aborted());
        assert_eq!(once.aggregate(), Aggregate::Above);
    }
}
