//! One direction of a path as it crosses the boundary from Python: integers, no defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::loss::LossModel;
use crate::check::{check_departures, check_sizes, parse};
use crate::error::{Part, SpecError, check_probability, each, refuse};
use crate::spec::aqm::Aqm;
use crate::spec::{Departures, FrameSize, Limit};
use crate::units::{Bytes, Rate, Span, Time};

/// Most transmitters side by side.
pub(crate) const MAX_LANES: u32 = 256;

/// One direction of a path between two ends: frames meet, in this order, loss, duplication, a transmitter with its
/// queue, delay, jitter and reordering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineSpec {
    /// Losses at random, before the queue.
    pub loss: LossModel,
    /// Probability that a frame comes twice, both copies in a row.
    pub duplicate: f64,
    /// How fast it transmits.
    pub rate: RateSpec,
    /// How many transmitters of this rate stand side by side, each with a queue; a flow stays with one.
    pub lanes: u32,
    /// What a frame occupies beyond its size.
    pub framing_bytes: Bytes,
    /// How much may wait before each transmitter.
    pub limit: Limit,
    /// What drops or marks before that; absent: nothing.
    pub aqm: Option<Aqm>,
    /// Traffic of others that passes the same transmitters and goes elsewhere.
    pub cross: Vec<CrossSpec>,
    /// Propagation delay, until it first changes.
    pub delay_ps: Span,
    /// How it changes.
    pub delays: DelaySteps,
    /// What is added to it.
    pub jitter: JitterSpec,
    /// Frames that others overtake.
    pub reorder: Option<ReorderSpec>,
}

/// How fast a transmitter is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RateSpec {
    /// Transmission takes no time, and nothing waits.
    Unlimited,
    /// Always the same.
    Constant {
        /// The rate.
        rate_bps: Rate,
    },
    /// Changes at given times. A transmission under way goes on at the new rate. A rate of 0 counts as 1 bit/s.
    Steps {
        /// From when on which rate; ascending, the first at 0.
        steps: Vec<(Time, Rate)>,
        /// After this time it starts again. None: the last rate stays.
        period_ps: Option<Span>,
    },
}

/// A propagation delay that changes: what counts for a frame is the delay when it leaves its transmitter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelaySteps {
    /// From when on which delay; ascending, after 0.
    pub steps: Vec<(Time, Span)>,
    /// After this time it starts again with the delay of the start. None: the last delay stays.
    pub period_ps: Option<Span>,
}

/// Frames of others, generated where they join and forgotten where they leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrossSpec {
    /// When they come.
    pub departures: Departures,
    /// How long they are.
    pub frame_size: FrameSize,
    /// Which transmitter they pass.
    pub lane: u32,
}

/// Random delay beyond the propagation delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum JitterSpec {
    /// None.
    None,
    /// Uniform between nothing and a most.
    Uniform {
        /// The most.
        most_ps: Span,
        /// Whether a frame waits for those before it.
        keeps_order: bool,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean_ps: Span,
        /// Whether a frame waits for those before it.
        keeps_order: bool,
    },
}

/// Frames that come later than their turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// Probability for each frame.
    pub probability: f64,
    /// By how much such a frame is late.
    pub later_ps: Span,
}

impl LineSpec {
    /// A line that changes nothing, to be altered.
    pub fn transparent() -> LineSpec {
        LineSpec {
            loss: LossModel::None,
            duplicate: 0.0,
            rate: RateSpec::Unlimited,
            lanes: 1,
            framing_bytes: Bytes::ZERO,
            limit: Limit::Unlimited,
            aqm: None,
            cross: Vec::new(),
            delay_ps: Span::ZERO,
            delays: DelaySteps::default(),
            jitter: JitterSpec::None,
            reorder: None,
        }
    }

    /// Reads a line from JSON and checks it.
    ///
    /// # Errors
    /// JSON that is no line, or a line that is not legal.
    pub fn from_json(text: &str) -> Result<LineSpec, SpecError> {
        let spec: LineSpec = parse(text)?;
        spec.check()?;
        Ok(spec)
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        self.loss.check().under("/loss")?;
        check_probability("/duplicate", self.duplicate)?;
        refuse!(!(1..=MAX_LANES).contains(&self.lanes), "/lanes", "1 to {MAX_LANES} transmitters (got {})", self.lanes);
        self.rate.check().under("/rate")?;
        self.delays.check().under("/delays")?;
        if let Some(aqm) = &self.aqm {
            aqm.check().under("/aqm")?;
            if let Aqm::Custom(_) = aqm {
                return Err(SpecError::new(
                    "/aqm",
                    "a management of the program: only ports of a simulated network have one",
                ));
            }
            refuse!(self.rate == RateSpec::Unlimited, "/aqm", "nothing waits without a transmitter with a rate");
        }
        each(&self.cross, "/cross", |cross| self.check_cross(cross))?;
        if let Some(reorder) = &self.reorder {
            check_probability("/reorder/probability", reorder.probability)?;
        }
        Ok(())
    }

    /// The greatest propagation delay.
    pub fn greatest_delay(&self) -> Span {
        self.delays.steps.iter().map(|&(_, delay)| delay).fold(self.delay_ps, Span::max)
    }

    fn check_cross(&self, cross: &CrossSpec) -> Result<(), SpecError> {
        check_departures(&cross.departures).under("/departures")?;
        check_sizes(&cross.frame_size).under("/frame_size")?;
        refuse!(self.rate == RateSpec::Unlimited, "", "cross traffic needs a transmitter with a rate");
        if cross.lane >= self.lanes {
            let message = format!("there are {} transmitters (got {}, counted from 0)", self.lanes, cross.lane);
            return Err(SpecError::new("/lane", message));
        }
        Ok(())
    }
}

impl RateSpec {
    fn check(&self) -> Result<(), SpecError> {
        match self {
            RateSpec::Unlimited => Ok(()),
            RateSpec::Constant { rate_bps } if rate_bps.bps() == 0 => {
                Err(SpecError::new("/rate_bps", "a rate is more than 0 bit/s"))
            }
            RateSpec::Constant { .. } => Ok(()),
            RateSpec::Steps { steps, period_ps } => {
                if steps.first().is_none_or(|&(at, _)| at != Time::ZERO) {
                    return Err(SpecError::new("/steps", "the first rate holds from 0 on"));
                }
                check_steps(steps, *period_ps, "rate")
            }
        }
    }
}

impl DelaySteps {
    fn check(&self) -> Result<(), SpecError> {
        if self.steps.first().is_some_and(|&(at, _)| at == Time::ZERO) {
            return Err(SpecError::new("/steps/0", "the delay at 0 is that of the start"));
        }
        check_steps(&self.steps, self.period_ps, "delay")
    }
}

fn check_steps<T>(steps: &[(Time, T)], period: Option<Span>, of: &str) -> Result<(), SpecError> {
    if let Some(i) = steps.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
        return Err(SpecError::new(format!("/steps/{}", i + 1), format!("times of {of}s ascend")));
    }
    let last = steps.last().map_or(0, |&(at, _)| at.ps());
    match period {
        Some(period) if period.ps() <= last => {
            Err(SpecError::new("/period_ps", format!("the period ends after the last change of {of}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::aqm::Codel;

    #[test]
    fn a_line_is_the_same_after_a_trip_through_json() {
        let mut spec = LineSpec::transparent();
        spec.rate = RateSpec::Steps {
            steps: vec![(Time::ZERO, Rate::from_bps(1)), (Time::from_ps(5), Rate::from_bps(0))],
            period_ps: Some(Span::from_ps(9)),
        };
        spec.reorder = Some(ReorderSpec { probability: 0.5, later_ps: Span::from_ps(7) });
        let json = serde_json::to_string(&spec).expect("a line has text keys only");
        assert_eq!(LineSpec::from_json(&json), Ok(spec));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let wrong = |change: fn(&mut LineSpec)| {
            let mut spec = LineSpec::transparent();
            change(&mut spec);
            spec.check().expect_err("it makes no sense").pointer
        };
        assert_eq!(wrong(|spec| spec.duplicate = 2.0), "/duplicate");
        assert_eq!(wrong(|spec| spec.lanes = 0), "/lanes");
        assert_eq!(wrong(|spec| spec.rate = RateSpec::Constant { rate_bps: Rate::from_bps(0) }), "/rate/rate_bps");
        let steps = |times: &[u64], period: Option<u64>| RateSpec::Steps {
            steps: times.iter().map(|&at| (Time::from_ps(at), Rate::from_bps(1))).collect(),
            period_ps: period.map(Span::from_ps),
        };
        assert_eq!(steps(&[], None).check().expect_err("no rate").pointer, "/steps");
        assert_eq!(steps(&[1], None).check().expect_err("no first rate").pointer, "/steps");
        assert_eq!(steps(&[0, 5, 5], None).check().expect_err("no order").pointer, "/steps/2");
        assert_eq!(steps(&[0, 5], Some(5)).check().expect_err("no end").pointer, "/period_ps");
        let delays = |times: &[u64], period: Option<u64>| DelaySteps {
            steps: times.iter().map(|&at| (Time::from_ps(at), Span::ZERO)).collect(),
            period_ps: period.map(Span::from_ps),
        };
        assert_eq!(delays(&[0], None).check().expect_err("two at the start").pointer, "/steps/0");
        assert_eq!(delays(&[5, 4], None).check().expect_err("no order").pointer, "/steps/1");
        assert_eq!(delays(&[], Some(0)).check().expect_err("no period").pointer, "/period_ps");
        let codel = Codel { target_ps: Span::from_ms(5), interval_ps: Span::from_ms(4), ecn: false };
        let mut spec = LineSpec { aqm: Some(Aqm::Codel(codel)), ..LineSpec::transparent() };
        assert_eq!(spec.check().expect_err("an interval below the target").pointer, "/aqm/interval_ps");
        spec.aqm = Some(Aqm::Codel(Codel { interval_ps: Span::from_ms(100), ..codel }));
        assert_eq!(spec.check().expect_err("nothing waits").pointer, "/aqm");
        let cross = CrossSpec {
            departures: Departures::Constant { gap_ps: 1e6 },
            frame_size: FrameSize::Fixed(Bytes::new(1500)),
            lane: 1,
        };
        let mut spec = LineSpec { cross: vec![cross], ..LineSpec::transparent() };
        assert_eq!(spec.check().expect_err("nothing transmits").pointer, "/cross/0");
        spec.rate = RateSpec::Constant { rate_bps: Rate::from_bps(1) };
        assert_eq!(spec.check().expect_err("no such transmitter").pointer, "/cross/0/lane");
    }
}
