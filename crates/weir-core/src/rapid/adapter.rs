//! The rate that follows the estimates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{SpecError, above_zero_to, among, refuse, some_time};
use crate::units::{Rate, Span};

/// How the mean rate follows the estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adaptation {
    /// Time constant of growth: tau.
    pub tau_ps: Span,
    /// A shortfall is taken by 1 / eta with each stream: eta.
    pub eta: f64,
    /// Rate at the start.
    pub initial_bps: Rate,
    /// Least rate.
    pub least_bps: Rate,
    /// Greatest rate, and greatest estimate.
    pub most_bps: Rate,
    /// What is left of the rate when losses begin to be repaired, or a timeout comes: beta.
    pub beta: f64,
    /// Packets of the streams of the start, in which the rate doubles; null: it grows like later.
    pub start_packets: Option<u32>,
    /// The queue that is to remain; null: none is looked at.
    pub backlog: Option<Backlog>,
}

/// A queue that the sender keeps at the bottleneck, so that it never runs dry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backlog {
    /// The queueing delay that is aimed at.
    pub target_ps: Span,
    /// What differs from it is to be made up for in this time.
    pub within_ps: Span,
    /// The queue aimed at is longer by (greatest rate / own rate) to this power: senders that share a queue come to the
    /// same rate then. 0: all aim at the same one.
    pub elasticity: f64,
}

impl Adaptation {
    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        some_time("/tau_ps", self.tau_ps)?;
        among("/eta", self.eta, 1.0..=1e6)?;
        above_zero_to(1.0, "/beta", self.beta)?;
        let (least, most) = (self.least_bps, self.most_bps);
        if least.bps() == 0 || least > most {
            let message = format!("the least rate is above 0 and at most the greatest, {most} (got {least})");
            return Err(SpecError::new("/least_bps", message));
        }
        if !(least..=most).contains(&self.initial_bps) {
            let message = format!("a rate from {least} to {most} (got {})", self.initial_bps);
            return Err(SpecError::new("/initial_bps", message));
        }
        if let Some(packets) = self.start_packets {
            refuse!(!(4..=10_000).contains(&packets), "/start_packets", "4 to 10000 packets (got {packets})");
        }
        self.backlog.iter().try_for_each(|backlog| {
            let is_none = backlog.target_ps == Span::ZERO || backlog.within_ps == Span::ZERO;
            refuse!(is_none, "/backlog", "both times are above 0 s");
            among("/backlog/elasticity", backlog.elasticity, 0.0..=1.0)
        })
    }
}

/// The mean rate, and what makes it change.
#[derive(Clone, Debug)]
pub(crate) struct RateAdapter {
    config: Adaptation,
    /// Bit/s.
    rate: f64,
    starting: bool,
}

impl RateAdapter {
    /// At the initial rate.
    pub(crate) fn new(config: &Adaptation) -> RateAdapter {
        let rate = config.initial_bps.bps() as f64;
        RateAdapter { config: config.clone(), rate, starting: config.start_packets.is_some() }
    }

    /// The mean rate.
    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bps((self.rate as u64).max(1))
    }

    /// Whether the rate still doubles.
    pub(crate) fn is_starting(&self) -> bool {
        self.starting
    }

    /// A stream of length `length` gave the estimate `available` in bit/s; whether anything grew in it, and by how much
    /// more than at an empty queue its packets were delayed in the end, s.
    ///
    /// Source: Konda & Kaur 2009, III.
    pub(crate) fn on_estimate(&mut self, available: f64, grew: bool, length: Span, delay_s: f64) {
        let most = self.config.most_bps.bps() as f64;
        let available = available.min(most);
        if self.starting {
            self.starting = !grew;
            self.rate = if grew { available } else { 2.0 * self.rate };
        } else {
            let wanted = available + self.correction(delay_s, most);
            if wanted >= self.rate {
                let share = (length.as_secs_f64() / self.config.tau_ps.as_secs_f64()).min(1.0);
                self.rate += share * (wanted - self.rate);
            } else {
                self.rate -= (self.rate - wanted) / self.config.eta;
            }
        }
        self.clamp();
    }

    /// The rate that brings the queue to what is aimed at in the time that there is for it, less the one that leaves it
    /// as it is.
    ///
    /// All that share a queue see the same delay. Where it has settled, each has the delay that it aims at; as that falls
    /// with the own rate, the rates are equal.
    ///
    /// Source: Jin 2004, where the target is in proportion to 1 / rate.
    fn correction(&self, delay_s: f64, link: f64) -> f64 {
        let Some(backlog) = &self.config.backlog else { return 0.0 };
        let target = backlog.target_ps.as_secs_f64() * libm::pow(link / self.rate, backlog.elasticity);
        let missing = target - delay_s;
        missing / backlog.within_ps.as_secs_f64() * link
    }

    /// Losses begin to be repaired, or a timeout came.
    pub(crate) fn on_congestion(&mut self) {
        self.rate *= self.config.beta;
        self.starting = false;
        self.clamp();
    }

    fn clamp(&mut self) {
        self.rate = self.rate.clamp(self.config.least_bps.bps() as f64, self.config.most_bps.bps() as f64);
    }
}
