//! The gaps of a p-stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{SpecError, refuse};
use crate::units::{Bytes, PS_PER_S, Rate, Span};

/// The shape of p-streams: packets at rates that grow exponentially, about a mean rate.
///
/// The gap before a packet at the rate r is P / r, so gaps fall exponentially; together they are as long as at the mean
/// rate. Streams follow each other without a pause.
///
/// Source: Konda & Kaur 2009, III.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// N.
    pub packets: u32,
    /// The highest rate, as a multiple of the lowest one.
    pub rho: f64,
    /// How many rates there are, each for as many packets; null: each packet has its own.
    pub rates: Option<u32>,
    /// Whether no rate exceeds that of the link; the others are lowered so that the mean stays.
    pub clip: bool,
}

impl Ramp {
    /// The gap before each packet of a stream of the mean rate `rate`; packets take `packet` on a link of `link`.
    pub fn gaps(&self, rate: Rate, packet: Bytes, link: Rate) -> Vec<Span> {
        let mut shares = self.shares();
        let mean = packet.count() as f64 * 8.0 * PS_PER_S as f64 / rate.bps() as f64;
        let floor = (packet / link).ps() as f64;
        let total = mean * shares.len() as f64;
        let mut scale = total;
        if self.clip {
            // The last gaps are the shortest: as many of them as need be are as long as the link makes them.
            let mut rest: f64 = 1.0;
            for (clipped, share) in shares.iter().rev().enumerate() {
                scale = (total - clipped as f64 * floor) / rest;
                if scale * share >= floor {
                    break;
                }
                rest -= share;
                scale = 0.0;
            }
        }
        for share in &mut shares {
            *share *= scale;
            if self.clip {
                *share = share.max(floor);
            }
        }
        shares.into_iter().map(|gap| Span::from_ps((gap + 0.5) as u64)).collect()
    }

    /// The rates of the first and the last gap of a stream.
    pub fn ends(gaps: &[Span], packet: Bytes) -> (Rate, Rate) {
        let rate = |gap: Option<&Span>| gap.map_or(Rate::from_bps(0), |&gap| packet / gap.max(Span::from_ps(1)));
        (rate(gaps.first()), rate(gaps.last()))
    }

    /// The share of each gap of the whole.
    fn shares(&self) -> Vec<f64> {
        let rates = self.rates.unwrap_or(self.packets).max(1);
        let ratio = |step: u32| libm::pow(self.rho, -f64::from(step) / f64::from((rates - 1).max(1)));
        let step = |place: u32| (u64::from(place) * u64::from(rates) / u64::from(self.packets)) as u32;
        let mut shares: Vec<f64> = (0..self.packets).map(|place| ratio(step(place))).collect();
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        shares
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        if !(LEAST..=MOST).contains(&self.packets) {
            let message = format!("a stream has {LEAST} to {MOST} packets (got {})", self.packets);
            return Err(SpecError::new("/packets", message));
        }
        refuse!(!(self.rho > 1.0 && self.rho <= 100.0), "/rho", "a number above 1 and at most 100 (got {})", self.rho);
        if let Some(rates) = self.rates {
            let most = self.packets;
            refuse!(rates < 2 || rates > most, "/rates", "2 to {most} rates (got {rates})");
        }
        Ok(())
    }
}

const LEAST: u32 = 4;
const MOST: u32 = 10_000;

/// When the next packet is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// A gap after the previous one was due: what is late leaves back to back until that is made up for.
    Absolute,
    /// A gap after the previous one was sent, if that was later than it was due.
    Resync,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1538);
    const GIGABIT: Rate = Rate::from_gbit_per_s(1);

    fn ramp(packets: u32, rho: f64) -> Ramp {
        Ramp { packets, rho, rates: None, clip: false }
    }

    fn mbps(rate: u64) -> Rate {
        Rate::from_bps(rate * 1_000_000)
    }

    #[test]
    fn a_packet_takes_12304_ns_on_a_gigabit_link() {
        assert_eq!(PACKET / GIGABIT, Span::from_ns(12_304));
    }

    #[test]
    fn the_highest_rate_exceeds_the_mean_by_what_theory_says() {
        // r_N / R = (rho - 1) / ln rho for many packets: 1.82 for 3, 2.16 for 4.
        for (rho, expected) in [(3.0, 1.82), (4.0, 2.16)] {
            let gaps = ramp(1000, rho).gaps(mbps(300), PACKET, GIGABIT);
            let (low, high) = Ramp::ends(&gaps, PACKET);
            assert!((high.bps() as f64 / 300e6 - expected).abs() < 0.01, "{high}");
            assert!((high.bps() as f64 / low.bps() as f64 / rho - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn few_rates_are_held_for_many_packets_each() {
        let stairs = Ramp { rates: Some(4), ..ramp(64, 4.0) };
        let gaps = stairs.gaps(mbps(300), PACKET, GIGABIT);
        assert!(gaps.chunks(16).all(|step| step.iter().all(|gap| gap == &step[0])));
        let ratio = gaps[0].ps() as f64 / gaps[16].ps() as f64;
        assert!((ratio - libm::cbrt(4.0)).abs() < 1e-6, "{ratio}");
    }

    proptest! {
        #[test]
        fn gaps_fall_and_their_mean_is_that_of_the_rate(
            packets in 4u32..400, rho in 1.1f64..10.0, rate in 1u64..1000, clip: bool, rates in prop::option::of(2u32..5),
        ) {
            let rates = rates.filter(|&rates| rates <= packets);
            let gaps = Ramp { packets, rho, rates, clip }.gaps(mbps(rate), PACKET, GIGABIT);
            prop_assert_eq!(gaps.len(), packets as usize);
            prop_assert!(gaps.windows(2).all(|pair| pair[0] >= pair[1]));
            let whole: u64 = gaps.iter().map(|gap| gap.ps()).sum();
            let expected = (PACKET / mbps(rate)).ps() as f64 * f64::from(packets);
            prop_assert!((whole as f64 / expected - 1.0).abs() < 1e-6, "{} {}", whole, expected);
            if clip {
                prop_assert!(gaps.iter().all(|&gap| gap >= PACKET / GIGABIT));
            }
        }
    }
}
