//! Estimators of the available bandwidth: what a p-stream reports of the path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample::Step;
use super::{chirp, excursion, fluid, trend};
use crate::error::{SpecError, among, refuse, some_rate};
use crate::units::{Rate, Span};

/// How the available bandwidth is distinguished from send and receive gaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Estimator {
    /// The first run of `excursion` receive gaps that exceed their send gaps by more than `epsilon`: the rate just
    /// before it; none: the highest rate of the stream.
    ///
    /// Source: Rapid UDP, (4) II.
    Gap {
        /// Growth of a gap that counts.
        epsilon_ps: Span,
        /// Gaps of a valid excursion.
        excursion: u32,
        /// How many gaps are added up before they are compared; 1: each by itself.
        sum: u32,
        /// Whether the rate is the one that was asked for, and not the one at which packets left.
        scheduled: bool,
    },
    /// As `gap`, on gaps smoothed exponentially; only an excursion that lasts to the end of the stream counts.
    ///
    /// Source: Rapid UDP, (4), and the later pages of its authors.
    Smooth {
        /// Weight of what came before.
        weight: f64,
        /// See `gap`.
        epsilon_ps: Span,
        /// See `gap`.
        excursion: u32,
    },
    /// Excursions of the queueing delay, each weighted by its time.
    ///
    /// Source: Ribeiro 2003, 2.
    Chirp {
        /// An excursion ends when the delay has fallen to this part of its maximum.
        factor: f64,
        /// Packets of a valid excursion.
        excursion: u32,
    },
    /// The rate from which on the queueing delay only grows.
    Trend {
        /// Delays that differ by less are the same.
        tolerance_ps: Span,
        /// The same, as a multiple of the shortest gap; the larger one counts.
        tolerance_gaps: f64,
    },
    /// The available bandwidth with which a queue of the bottleneck's rate would give the delays that were seen: least
    /// squares.
    Fluid {
        /// Rate of the bottleneck; none: that of the sender's link. What is above that counts as it.
        bottleneck_bps: Option<Rate>,
    },
}

/// What a stream reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Available bandwidth on the wire, bit/s.
    pub rate_bps: f64,
    /// First gap of the excursion that it rests on, and how many gaps that has; none where nothing grew: then the rate is
    /// a lower bound.
    pub excursion: Option<(u32, u32)>,
}

/// What is known of a stream besides its gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The highest rate that was asked for.
    pub high: Rate,
    /// Rate of the link.
    pub link: Rate,
    /// Queueing delay of the first sample, as far as it is known: its delay above the least one of late, s.
    pub backlog_s: f64,
}

impl Estimator {
    /// The estimate of a stream of these steps; none where there are too few.
    pub(super) fn estimate(&self, steps: &[Step], terms: &Terms) -> Option<Estimate> {
        if steps.len() < LEAST_STEPS {
            return None;
        }
        Some(match *self {
            Estimator::Gap { epsilon_ps, excursion: valid, sum, scheduled } => {
                let (epsilon, valid, sum) = (epsilon_ps.as_secs_f64(), valid as usize, sum as usize);
                excursion::first(steps, epsilon, valid, sum, scheduled, terms)
            }
            Estimator::Smooth { weight, epsilon_ps, excursion: valid } => {
                excursion::last_of_smoothed(steps, weight, epsilon_ps.as_secs_f64(), valid as usize, terms)
            }
            Estimator::Chirp { factor, excursion: valid } => chirp::estimate(steps, factor, valid as usize, terms),
            Estimator::Trend { tolerance_ps, tolerance_gaps } => {
                trend::estimate(steps, tolerance_ps.as_secs_f64(), tolerance_gaps, terms)
            }
            Estimator::Fluid { bottleneck_bps } => fluid::estimate(steps, &terms.behind(bottleneck_bps)),
        })
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        let valid = |valid: u32| match valid {
            1..=MOST_VALID => Ok(()),
            got => Err(SpecError::new("/excursion", format!("1 to {MOST_VALID} gaps (got {got})"))),
        };
        match *self {
            Estimator::Gap { excursion, sum, .. } => {
                refuse!(!(1..=MOST_VALID).contains(&sum), "/sum", "1 to {MOST_VALID} gaps (got {sum})");
                valid(excursion)
            }
            Estimator::Smooth { weight, excursion, .. } => {
                refuse!(!(0.0..1.0).contains(&weight), "/weight", "a number from 0 to below 1 (got {weight})");
                valid(excursion)
            }
            Estimator::Chirp { factor, excursion } => {
                let is_possible = factor > 1.0 && factor <= 100.0;
                refuse!(!is_possible, "/factor", "a number above 1 and at most 100 (got {factor})");
                valid(excursion)
            }
            Estimator::Trend { tolerance_gaps, .. } => among("/tolerance_gaps", tolerance_gaps, 0.0..=1000.0),
            Estimator::Fluid { bottleneck_bps } => {
                bottleneck_bps.map_or(Ok(()), |rate| some_rate("/bottleneck_bps", rate))
            }
        }
    }
}

/// Fewer steps say nothing.
const LEAST_STEPS: usize = 3;
const MOST_VALID: u32 = 1000;

impl Terms {
    /// The same where a link of the rate `bottleneck` is on the way: nothing gets through faster.
    fn behind(&self, bottleneck: Option<Rate>) -> Terms {
        match bottleneck {
            Some(rate) => Terms { high: self.high.min(rate), link: self.link.min(rate), ..*self },
            None => *self,
        }
    }

    /// Nothing grew: the highest rate that was tried.
    pub(super) fn nothing_grew(&self) -> Estimate {
        Estimate { rate_bps: self.high.bps() as f64, excursion: None }
    }

    /// From step `start` on, `length` steps; before it the rate was `rate`.
    pub(super) fn grew(&self, rate: f64, start: usize, length: usize) -> Estimate {
        let rate_bps = rate.min(self.high.bps() as f64);
        Estimate { rate_bps, excursion: Some((start as u32, length as u32)) }
    }
}
