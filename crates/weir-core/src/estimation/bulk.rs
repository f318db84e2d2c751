//! The capacity that bulks of packets back to back report.

use crate::rapid::Sample;

/// A bulk that arrived whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bulk {
    /// From the arrival of its first packet to that of its last, s.
    pub dispersion: f64,
    /// Delays of the first and of the last packet since the first was sent, s, up to an offset of the clocks.
    pub delays: (f64, f64),
    /// What its packets but the first take on the wire, bit.
    pub bits: f64,
}

impl Bulk {
    /// The rate at which its packets left the narrow link, if nothing came between them, bit/s.
    pub fn rate(&self) -> f64 {
        self.bits / self.dispersion
    }
}

/// What a bulk reports; none if fewer than two packets arrived, or all at once.
pub fn bulk(samples: &[Sample]) -> Option<Bulk> {
    let [first, .., last] = samples else { return None };
    let since = |sample: &Sample| (sample.received.ps() as f64 - first.sent.ps() as f64) * 1e-12;
    let dispersion = last.received.saturating_since(first.received).as_secs_f64();
    let bits = samples[1..].iter().map(|sample| sample.wire.count() as f64 * 8.0).sum();
    (dispersion > 0.0).then_some(Bulk { dispersion, delays: (since(first), since(last)), bits })
}

/// The bulk with the least sum of the delays of its first and its last packet: if neither waited for others, its
/// dispersion is that of the narrow link.
///
/// It is stable when that sum has not fallen for long, and is that of the least delays of all first and all last packets.
///
/// DEVIATION: these may differ by 1 % of the dispersion, and not of the delay, so that the tolerance does not depend on the
/// distance, nor on what the clocks differ by.
///
/// Source: Chen 2008; PBProbe 3.0
#[derive(Clone, Debug, Default)]
pub struct MinimumDelaySum {
    best: Option<Bulk>,
    least: (f64, f64),
    bulks: u32,
    unchanged: u32,
    dispersions: f64,
}

impl MinimumDelaySum {
    /// One more bulk.
    pub fn add(&mut self, bulk: Bulk) {
        self.bulks += 1;
        self.unchanged += 1;
        self.dispersions += bulk.dispersion;
        let Some(best) = self.best else {
            (self.best, self.least, self.unchanged) = (Some(bulk), bulk.delays, 0);
            return;
        };
        let sum = |bulk: &Bulk| bulk.delays.0 + bulk.delays.1;
        let least = (self.least.0.min(bulk.delays.0), self.least.1.min(bulk.delays.1));
        if sum(&bulk) < sum(&best) {
            self.best = Some(bulk);
            self.unchanged = 0;
        }
        if least != self.least {
            self.least = least;
            self.unchanged = 0;
        }
    }

    /// How many there were.
    pub(crate) fn bulks(&self) -> u32 {
        self.bulks
    }

    /// Mean dispersion, s; 0 where there are none.
    pub(crate) fn mean_dispersion(&self) -> f64 {
        self.dispersions / f64::from(self.bulks.max(1))
    }

    /// The one that reports the capacity.
    pub fn best(&self) -> Option<&Bulk> {
        self.best.as_ref()
    }

    /// Whether it has not changed for `bulks`, and did not wait more than others.
    pub(crate) fn is_stable(&self, bulks: u32) -> bool {
        self.unchanged >= bulks && self.best.is_some_and(|best| self.waited(&best) <= CLOSE * best.dispersion)
    }

    /// By how much the delays of a bulk exceed the least ones, s.
    fn waited(&self, bulk: &Bulk) -> f64 {
        bulk.delays.0 + bulk.delays.1 - (self.least.0 + self.least.1)
    }
}

/// Source: PBProbe 3.0, of the delay there.
const CLOSE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Span, Time};

    /// Packets that were sent at once: when they arrive, us.
    fn arrived(times: &[u64]) -> Vec<Sample> {
        let sent = Time::ZERO + Span::from_us(50);
        let sample =
            |&us: &u64| Sample { due: sent, sent, received: Time::ZERO + Span::from_us(us), wire: Bytes::new(1250) };
        times.iter().map(sample).collect()
    }

    #[test]
    fn the_dispersion_of_a_bulk_is_the_time_of_all_but_one_of_its_packets() {
        let bulk = bulk(&arrived(&[100, 110, 120, 130])).expect("four packets");
        assert!((bulk.rate() / 1e9 - 1.0).abs() < 1e-9, "3 x 10 000 bit in 30 us: {}", bulk.rate());
        assert!((bulk.delays.0 - 50e-6).abs() < 1e-12 && (bulk.delays.1 - 80e-6).abs() < 1e-12);
    }

    #[test]
    fn one_packet_or_packets_that_arrive_at_once_say_nothing() {
        assert_eq!((bulk(&arrived(&[])), bulk(&arrived(&[100])), bulk(&arrived(&[100, 100]))), (None, None, None));
    }

    #[test]
    fn the_bulk_that_waited_least_shows_the_capacity() {
        let mut sum = MinimumDelaySum::default();
        let made = |times: &[u64]| bulk(&arrived(times)).expect("packets");
        sum.add(made(&[100, 115, 140]));
        sum.add(made(&[120, 125, 130]));
        sum.add(made(&[100, 110, 120]));
        assert!(!sum.is_stable(1), "it has just changed");
        sum.add(made(&[140, 150, 160]));
        assert!((sum.best().expect("bulks").rate() / 1e9 - 1.0).abs() < 1e-9);
        assert!(sum.is_stable(1) && !sum.is_stable(2));
        assert!((sum.mean_dispersion() - 22.5e-6).abs() < 1e-12);
    }

    #[test]
    fn a_first_packet_that_did_not_wait_elsewhere_makes_it_unstable() {
        let mut sum = MinimumDelaySum::default();
        let made = |times: &[u64]| bulk(&arrived(times)).expect("packets");
        sum.add(made(&[110, 115, 120]));
        sum.add(made(&[100, 130, 140]));
        (0..5).for_each(|_| sum.add(made(&[150, 160, 170])));
        assert!(!sum.is_stable(5), "the first packet of the best one waited 10 us, half of its dispersion");
    }
}
