//! Round-trip time and retransmission timeout.

use crate::units::Span;

/// What is known of the round-trip time, and the timeout that follows.
///
/// Source: RFC 6298, 2. DEVIATION: every acknowledgement of data that was sent once gives a sample, as in common
/// stacks, with the gains of one sample per round trip.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt: Option<Span>,
    var: Span,
    min: Span,
    latest: Span,
    rto: Span,
    least: Span,
    /// Doublings since the last measurement.
    backoff: u32,
}

/// Timeout before the first sample.
///
/// Source: RFC 6298, 2.1.
pub(crate) const INITIAL_RTO: Span = Span::from_ms(1_000);
/// Timeout with which data begins when the SYN had to be sent again, and gave no sample.
///
/// Source: RFC 6298, 5.7.
const LOST_SYN_RTO: Span = Span::from_ms(3_000);
/// Longest timeout.
///
/// Source: RFC 6298, 2.5.
pub(crate) const MAX_RTO: Span = Span::from_ms(60_000);
/// Clock granularity G.
const GRANULARITY: Span = Span::from_ms(1);

impl RttEstimator {
    /// Nothing known; no timeout will be shorter than `least`.
    pub fn new(least: Span) -> RttEstimator {
        let longest = Span::from_ps(u64::MAX);
        let rto = INITIAL_RTO.max(least);
        RttEstimator { srtt: None, var: Span::ZERO, min: longest, latest: Span::ZERO, rto, least, backoff: 0 }
    }

    /// A segment that was sent once was acknowledged after `rtt`.
    #[inline]
    pub(crate) fn on_sample(&mut self, rtt: Span) {
        self.latest = rtt;
        self.min = self.min.min(rtt);
        let srtt = match self.srtt {
            None => {
                self.var = Span::from_ps(rtt.ps() / 2);
                rtt
            }
            Some(srtt) => {
                let error = srtt.ps().abs_diff(rtt.ps());
                self.var = Span::from_ps(self.var.ps() - self.var.ps() / 4 + error / 4);
                Span::from_ps(srtt.ps() - srtt.ps() / 8 + rtt.ps() / 8)
            }
        };
        self.srtt = Some(srtt);
        self.backoff = 0;
        self.rto = (srtt + GRANULARITY.max(self.var * 4)).max(self.least).min(MAX_RTO);
    }

    /// The timer expired: the timeout doubles.
    ///
    /// Source: RFC 6298, 5.5.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// The time stamp that a segment bore which was sent again is echoed: that ends the doubling as a sample does.
    ///
    /// Source: RFC 6298, 3 and 5. DEVIATION: what the time stamp measures, in ms, does not go into the mean.
    #[inline]
    pub(crate) fn on_stamp(&mut self) {
        self.backoff = 0;
    }

    /// The SYN was sent again, and answered.
    ///
    /// Source: RFC 6298, 5.7.
    pub(crate) fn on_lost_syn(&mut self) {
        self.backoff = 0;
        self.rto = LOST_SYN_RTO.max(self.least);
    }

    /// The timeout.
    #[inline]
    pub(crate) fn rto(&self) -> Span {
        match self.backoff {
            0 => self.rto,
            doublings => Span::from_ps(self.rto.ps().saturating_mul(1 << doublings.min(20))).min(MAX_RTO),
        }
    }

    /// Smoothed round-trip time, once there was a sample.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    /// Least round-trip time, once there was a sample.
    pub fn min(&self) -> Option<Span> {
        self.srtt.map(|_| self.min)
    }

    /// The last sample, once there was one.
    pub fn latest(&self) -> Option<Span> {
        self.srtt.map(|_| self.latest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_timeout_follows_the_samples_and_doubles_without_them() {
        let mut rtt = RttEstimator::new(Span::from_ms(1));
        assert_eq!(rtt.rto(), INITIAL_RTO);
        rtt.on_sample(Span::from_ms(100));
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(Span::from_ms(100)), Span::from_ms(300)));
        rtt.on_sample(Span::from_ms(140));
        // The variation is 3/4 of 50 ms and 1/4 of 40 ms, the mean 100 ms and 1/8 of 40 ms.
        assert_eq!(
            (rtt.srtt(), rtt.rto()),
            (Some(Span::from_ms(105)), Span::from_ms(105 + 4 * 47) + Span::from_us(2000))
        );
        let before = rtt.rto();
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), before * 4);
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), MAX_RTO);
        rtt.on_stamp();
        assert_eq!((rtt.rto(), rtt.min()), (before, Some(Span::from_ms(100))));
        rtt.back_off();
        rtt.on_sample(Span::from_ms(105));
        assert!(rtt.rto() < before, "a sample ends the doubling");
        let mut fresh = RttEstimator::new(Span::from_ms(1));
        fresh.back_off();
        fresh.on_lost_syn();
        assert_eq!(fresh.rto(), Span::from_ms(3_000));
    }

    proptest! {
        #[test]
        fn the_timeout_stays_between_its_bounds_and_above_the_mean(samples in prop::collection::vec(1u64..1 << 45, 1..50)) {
            let mut rtt = RttEstimator::new(Span::from_ms(200));
            for sample in samples {
                rtt.on_sample(Span::from_ps(sample));
                prop_assert!(rtt.rto() >= Span::from_ms(200) && rtt.rto() <= MAX_RTO);
                prop_assert!(rtt.srtt() < Some(rtt.rto()));
            }
        }
    }
}
