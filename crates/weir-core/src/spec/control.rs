//! Congestion management of Ethernet: who measures, who notifies, who obeys, and every choice that the published
//! texts leave open, as a parameter of its own.
//!
//! A scheme has a *congestion point*, a queue that measures and notifies, and *reaction points*, one rate limiter
//! for each flow of a host. Notifications travel back on the way that the sampled frame came, as frames.

mod bcn;

pub use self::bcn::{
    BackOff, Bcn, BcnCongestionPoint, BcnReactionPoint, Counting, Drift, Meanwhile, Negative, Positive, Restart,
    Saturation, Severe, SevereAction, Stop, StopReset,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Limit;
use crate::units::{Bytes, Rate, Span};

/// What the network does against congestion. At most one of `bcn`, `qcn` and `dcqcn`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Backward congestion notification (2005 to 2006).
    pub bcn: Option<Bcn>,
    /// Quantized congestion notification (IEEE 802.1Qau-2010).
    pub qcn: Option<Qcn>,
    /// Data center QCN: marks, and notifications from the receiver.
    pub dcqcn: Option<Dcqcn>,
    /// PAUSE frames of switches; a node has at most one rule.
    pub pause: Vec<Pause>,
    /// How fast nodes act on control frames that they receive; a node that is not named acts at once, and a node is
    /// named at most once.
    pub responses: Vec<Response>,
}

impl Control {
    /// The hosts whose flows have rate limiters.
    pub fn limited_hosts(&self) -> &[u32] {
        match self {
            Control { bcn: Some(bcn), .. } => &bcn.reaction_point.hosts,
            Control { qcn: Some(qcn), .. } => &qcn.reaction_point.hosts,
            Control { dcqcn: Some(dcqcn), .. } => &dcqcn.reaction_point.hosts,
            _ => &[],
        }
    }

    /// The queues of the rate limiters.
    pub fn limiter(&self) -> Option<&Limiter> {
        match self {
            Control { bcn: Some(bcn), .. } => Some(&bcn.reaction_point.limiter),
            Control { qcn: Some(qcn), .. } => Some(&qcn.reaction_point.limiter),
            Control { dcqcn: Some(dcqcn), .. } => Some(&dcqcn.reaction_point.limiter),
            _ => None,
        }
    }

    /// Whether there is none.
    pub fn is_off(&self) -> bool {
        self.limited_hosts().is_empty() && self.pause.is_empty()
    }
}

/// Time between the end of reception of a control frame and its effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// Node ids.
    pub nodes: Vec<u32>,
    /// Until PAUSE holds the transmitter; the frame in transmission then still ends.
    pub pause_ps: Span,
    /// Until a notification changes a rate.
    pub notification_ps: Span,
}

/// The frames that carry notifications.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    /// Their size, framing excluded.
    pub frame_bytes: Bytes,
    /// Time from the sample until the notification is queued.
    pub delay_ps: Span,
    /// Which queue it takes on its way.
    pub lane: NotificationLane,
}

/// Which queue of a port a notification takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotificationLane {
    /// It goes first, is never dropped, and PAUSE does not hold it.
    Control,
    /// It waits with the data: it can be dropped, and PAUSE holds it.
    Data,
    /// None: it travels outside of the queues and takes the delays of links and switches only, as in the slotted engine.
    Beside,
}

/// How far it is from one sample to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sampling {
    /// Uniform in `mean x (1 - jitter .. 1 + jitter)`; with jitter 0 every distance is the mean.
    Uniform {
        /// In [0, 1].
        jitter: f64,
    },
    /// Exponential with the mean.
    Exponential,
    /// Each frame by itself, with probability `size / mean`.
    PerFrame,
}

/// Which frames count towards the next sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// All that arrive for the queue, also those that it drops.
    Received,
    /// Those that it takes.
    Accepted,
}

/// The queue of a rate limiter, and what lies between it and the wire. All schemes have it in common. By default without a limit, and paced evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limiter {
    /// What may wait of a flow at its host; more is dropped.
    pub queue: Limit,
    /// Random share of the gap between paced frames: `size / rate x ((1 - jitter) + jitter x X)`, X exponential with
    /// mean 1. In [0, 1].
    pub pacing_jitter: f64,
    /// Frames that the limiter passes on while the port is busy or held by PAUSE; 0: it passes a frame on only when
    /// its transmission can begin.
    pub fifo_frames: u32,
    /// Frames that a new limiter may send at once, where it works by credit: with shared memories, adapters and slow outputs,
    /// and in the slotted engine; 0 to the most. Absent: none at first, later what the limiter of the same pair of hosts had
    /// left when it was removed.
    pub initial_credit: Option<f64>,
    /// Frames that a limiter saves at most while nothing is sent, there; at least 1. Absent: one, and what its rate gives in
    /// the time of one.
    pub most_credit: Option<f64>,
}

/// Quantized congestion notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Qcn {
    /// The queues that measure.
    pub congestion_point: QcnCongestionPoint,
    /// The senders that obey.
    pub reaction_point: QcnReactionPoint,
}

/// A queue that samples frames and notifies their senders of `-Fb = (q - q_eq) + w (q - q at the sample before)`,
/// quantized to 6 bits, if it is positive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QcnCongestionPoint {
    /// Port ids.
    pub ports: Vec<u32>,
    /// Set point of the queue.
    pub q_eq_bytes: Bytes,
    /// Weight of the change of the queue against its offset.
    pub w: f64,
    /// Mean amount of data between two samples without congestion; up to 8.1 times less with it.
    pub sample_every_bytes: Bytes,
    /// Spread of that amount.
    pub sampling: Sampling,
    /// What counts towards the next sample.
    pub counted: Counted,
    /// The frames that carry the feedback.
    pub notification: Notification,
}

/// A rate limiter for each flow that increases by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QcnReactionPoint {
    /// Host ids.
    pub hosts: Vec<u32>,
    /// Gain of a decrease per unit of quantized feedback.
    pub gd: f64,
    /// A decrease leaves at least this share of the rate.
    pub min_decrease_factor: f64,
    /// How rates recover.
    pub recovery: Recovery,
    /// No decrease goes below.
    pub min_rate_bps: Rate,
    /// Which feedback makes a limiter.
    pub new_limiter: NewLimiter,
    /// The queue of the limiter.
    pub limiter: Limiter,
}

/// Which feedback makes the limiter of a flow that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewLimiter {
    /// Any.
    AnyFeedback,
    /// Only that of a queue above its set point: what grows fast, but is short, limits no further flow.
    AboveSetPoint,
}

/// Self-increase of a rate towards a target, in stages of a byte counter and a timer. QCN and DCQCN have it in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RateRecovery")]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Bytes sent in a stage of the byte counter; half of it beyond fast recovery, where `halve_stages`. Absent: there is only the timer.
    pub byte_counter_bytes: Option<Bytes>,
    /// Length of a stage of the timer; half of it beyond fast recovery, where `halve_stages`.
    pub timer_ps: Span,
    /// Uniform spread of both, in [0, 1].
    pub jitter: f64,
    /// Whether stages beyond fast recovery are half as long.
    pub halve_stages: bool,
    /// The target grows from the stage with this number on, of either counter.
    pub fast_recovery_stages: u32,
    /// So many stages beyond that one, of each counter, it grows by the hyper-active step.
    pub hyper_after_stages: u32,
    /// Step of the target in active increase.
    pub r_ai_bps: Rate,
    /// Step of the target in hyper-active increase.
    pub r_hai_bps: Rate,
    /// Whether each of these steps is longer by the first than the one before.
    pub hyper_grows: bool,
    /// After the first stage a target above this multiple of the rate is divided by `target_cut`; absent: never.
    pub target_cut_above: Option<f64>,
    /// See `target_cut_above`.
    pub target_cut: f64,
}

/// Data center QCN. Queues mark by their discipline, see [`super::Marking`]: what sources at `hosts` of the reaction
/// point send is ECN-capable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dcqcn {
    /// Receivers notify the sender of a marked frame, at most once in this time for each flow.
    pub notify_every_ps: Span,
    /// The frames that carry notifications; `delay_ps` counts from the arrival of the marked frame.
    pub notification: Notification,
    /// The senders that obey.
    pub reaction_point: DcqcnReactionPoint,
}

/// A rate limiter for each flow: a notification sets the target to the rate and takes `alpha / 2` of the rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DcqcnReactionPoint {
    /// Host ids.
    pub hosts: Vec<u32>,
    /// Gain of the average `alpha` of notifications.
    pub g: f64,
    /// `alpha` decays after this time without a notification.
    pub alpha_timer_ps: Span,
    /// Present: as in network adapters, the rate is cut by a timer of this length, if a notification came since; see [`crate::ethernet::dcqcn`]. Absent: at each
    /// notification.
    pub cut_timer_ps: Option<Span>,
    /// How rates recover.
    pub recovery: Recovery,
    /// No decrease goes below.
    pub min_rate_bps: Rate,
    /// The queue of the limiter.
    pub limiter: Limiter,
}

/// PAUSE (IEEE 802.3, annex 31B): a switch stops all its neighbours while one of its output queues is too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Switch ids.
    pub nodes: Vec<u32>,
    /// XOFF goes to every neighbour when a queue grows above.
    pub xoff_bytes: Bytes,
    /// XON follows when all have fallen below.
    pub xon_bytes: Bytes,
    /// Size of a PAUSE frame, framing excluded.
    pub frame_bytes: Bytes,
    /// Time from the change of the queue until the PAUSE frame is queued.
    pub delay_ps: Span,
    /// How long an XOFF holds, in units of 512 bit times of the link; absent: until XON.
    pub quanta: Option<u16>,
    /// XOFF is repeated after this time while a queue stays too long; absent: never.
    pub refresh_ps: Option<Span>,
}
