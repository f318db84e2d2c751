//! Backward Congestion Notification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Counted, Limiter, Notification, Sampling};
use crate::units::{Bytes, Rate, Span};

/// Backward congestion notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bcn {
    /// The queues that measure.
    pub congestion_point: BcnCongestionPoint,
    /// The senders that obey.
    pub reaction_point: BcnReactionPoint,
}

/// A queue that samples frames and notifies their senders of `Fb = Qoff - w Qdelta`, in units: `Qoff = q_eq - q`,
/// `Qdelta = q - q at the sample before`, with `q` what waits after the frame was queued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BcnCongestionPoint {
    /// Port ids.
    pub ports: Vec<u32>,
    /// Set point of the queue.
    pub q_eq_bytes: Bytes,
    /// Unit of `Fb`: 1500 where the gains are per frame of 1500 B, 64 where they are per page.
    pub unit_bytes: Bytes,
    /// How the queue is counted in units.
    pub counting: Counting,
    /// Whether `Qoff` and `Qdelta` are limited.
    pub saturation: Saturation,
    /// Weight of the change of the queue against its offset.
    pub w: f64,
    /// Mean amount of data between two samples.
    pub sample_every_bytes: Bytes,
    /// Spread of that amount.
    pub sampling: Sampling,
    /// What counts towards the next sample.
    pub counted: Counted,
    /// When a positive `Fb` is sent.
    pub positive: Positive,
    /// When a negative `Fb` is sent.
    pub negative: Negative,
    /// What is sent above a second threshold; absent: nothing special.
    pub severe: Option<Severe>,
    /// The frames that carry the feedback.
    pub notification: Notification,
}

/// How a queue is counted in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Fractions of a unit count.
    Exact,
    /// Whole units, rounded down; `Qoff` and `Qdelta` then are whole, too.
    Whole,
}

/// Whether `Qoff` and `Qdelta` are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Saturation {
    /// `Qoff` to `-q_eq .. q_eq`, `Qdelta` to `-2 q_eq .. 2 q_eq`.
    SetPoint,
    /// Not at all.
    None,
}

/// When a positive `Fb` is sent; only a frame that names a congestion point in its tag can earn one, and its sender's
/// limiter put the tag there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Positive {
    /// If the tag names this congestion point.
    Tagged,
    /// If it does, and the queue is not above its set point.
    TaggedBelowSetPoint,
    /// Whichever congestion point the tag names.
    AnyTag,
}

/// When a negative `Fb` is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Negative {
    /// Always.
    Always,
    /// To a flow whose tag does not name this congestion point only while the queue is above its set point.
    UntaggedAboveSetPoint,
}

/// What is sent, instead of `Fb`, when a sample finds more waiting than a second threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Severe {
    /// The threshold, Qsc.
    pub above_bytes: Bytes,
    /// What is sent.
    pub action: SevereAction,
}

/// Feedback under severe congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SevereAction {
    /// `Fb` as ever.
    None,
    /// BCN(0,0): stop, and start again after a random time.
    Stop,
    /// BCN(MAX): the most negative `Fb`, `-(1 + 2 w) q_eq`.
    Max,
}

/// A rate limiter for each flow: `R <- R (1 - gd |Fb|)`, `R <- R + gi Fb ru`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BcnReactionPoint {
    /// Host ids.
    pub hosts: Vec<u32>,
    /// Gain of an increase, in `ru` per unit of `Fb`.
    pub gi: f64,
    /// Gain of a decrease, per unit of `Fb`.
    pub gd: f64,
    /// Unit of an increase.
    pub ru_bps: Rate,
    /// No decrease goes below.
    pub min_rate_bps: Rate,
    /// Rate of a new limiter, before the feedback that made it is applied; absent: the line rate.
    pub initial_rate_bps: Option<Rate>,
    /// A limiter whose rate reaches this is removed; absent: the line rate.
    pub removal_rate_bps: Option<Rate>,
    /// Growth without feedback; absent: none.
    pub drift: Option<Drift>,
    /// What BCN(0,0) does.
    pub stop: Stop,
    /// The queue of the limiter.
    pub limiter: Limiter,
}

/// Growth of every limited rate without feedback, at all multiples of `every_ps` since the start of the run; not of
/// a rate that is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// Added each time.
    pub step_bps: Rate,
    /// Time between two additions.
    pub every_ps: Span,
}

/// What BCN(0,0) does to a limiter: the rate is 0 for a time uniform in `0 .. Tmax`, then the restart rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Tmax of the first stop.
    pub t_max_ps: Span,
    /// Rmin of the first stop.
    pub r_min_bps: Rate,
    /// Tmax is multiplied by this at each stop (2 in the text).
    pub t_max_factor: f64,
    /// Rmin is multiplied by this at each stop (1/2 in the text; 1: it stays).
    pub r_min_factor: f64,
    /// When.
    pub back_off: BackOff,
    /// The rate after a stop.
    pub restart: Restart,
    /// When Tmax and Rmin are set back.
    pub reset: StopReset,
    /// What feedback does that comes while the rate is 0.
    pub meanwhile: Meanwhile,
}

/// When Tmax and Rmin are multiplied by their factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackOff {
    /// After they were used: the first stop has the values given.
    After,
    /// Before they are used: the first stop has the values given times the factors.
    Before,
}

/// The rate after a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Rmin, to the letter.
    RMin,
    /// The lesser of Rmin and the rate before the stop.
    LesserOfRMinAndBefore,
    /// The rate before the stop.
    Before,
}

/// When Tmax and Rmin are set back to their first values; with the removal of a limiter they always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReset {
    /// Never.
    Never,
    /// By positive feedback.
    Positive,
    /// By any feedback but a stop.
    Any,
}

/// What feedback does that comes while the rate is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Meanwhile {
    /// Nothing.
    Ignore,
    /// BCN(0,0) begins another stop (with another back-off); other feedback does nothing.
    StopAgain,
    /// `Fb` changes the rate before the stop, which some restart rules use; BCN(0,0) does nothing.
    Remember,
}
