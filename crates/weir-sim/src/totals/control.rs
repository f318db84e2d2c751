//! What was counted of flow control, congestion management and memories.

use weir_core::ethernet::bcn;
use weir_core::ethernet::pause::Pause;
use weir_core::ethernet::reaction::{Feedback, Meter};
use weir_core::queue::{InputCounters, Pauses};
use weir_core::units::{Span, Time};

use super::MarkTotals;

/// Bursts of a flow that arrived whole. A burst's delay counts from the generation of its first frame to the arrival of
/// its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstTotals {
    /// The flow.
    pub flow: u32,
    /// How many.
    pub bursts: u64,
    /// Sum of their delays, ps.
    pub delay_sum_ps: u128,
    /// Least delay.
    pub delay_min: Span,
    /// Greatest delay.
    pub delay_max: Span,
}

/// What the memory of a switch held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryTotals {
    /// The switch.
    pub node: u32,
    /// Most bytes, frames that begin to leave included.
    pub max_bytes: u64,
    /// Integral of the bytes that waited, byte ps.
    pub byte_ps: u128,
    /// How often it made neighbours stop.
    pub xoffs: u64,
}

/// What congestion management did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControlTotals {
    /// Control frames, in order of port, queue and kind.
    pub frames: Vec<ControlFrames>,
    /// Those that the queues of recorded ports caused, by interval; in order of port, kind and time.
    pub intervals: Vec<ControlInterval>,
    /// Where frames of which flow were marked, in order of port and flow.
    pub marks: Vec<MarkTotals>,
    /// What the reaction point of each flow that has one did.
    pub reaction_points: Vec<(u32, Meter)>,
    /// Intervals of the recorded limiters, in order of the flows.
    pub limiters: Vec<(u32, Vec<LimiterInterval>)>,
    /// Bins of what waited at the recorded ports: port, lower bound (included) and upper bound in bytes, time in ps.
    pub queue_levels: Vec<(u32, u64, u64, u64)>,
    /// Buffers with pools, by switch.
    pub buffers: Vec<BufferTotals>,
    /// Their inputs, in order of port and class.
    pub buffer_inputs: Vec<InputTotals>,
    /// How often and how long frames of flow control held classes, in order of port and class.
    pub holds: Vec<HoldTotals>,
    /// Why, of the stops that buffers asked for; in order of port, class, cause and root.
    pub causes: Vec<CauseTotals>,
    /// What watchdogs found, in order of time.
    pub storms: Vec<StormTotals>,
    /// Holds that waited for each other, in order of time, port and class.
    pub deadlocks: Vec<DeadlockTotals>,
}

/// Why a class of a transmitter was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseTotals {
    /// The port that was asked.
    pub port: u32,
    /// The traffic class.
    pub class: u8,
    /// The output that most of what came from there waited for.
    pub cause: u32,
    /// The output where it began.
    pub root: u32,
    /// How often.
    pub stops: u64,
    /// How long all together.
    pub time: Span,
    /// How many stops from the root, at most.
    pub depth: u32,
}

/// A storm that a watchdog found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StormTotals {
    /// The port that was held.
    pub port: u32,
    /// The traffic class.
    pub class: u8,
    /// When it was found.
    pub found: Time,
    /// When it was over, if it was.
    pub over: Option<Time>,
}

/// A class of a port that is held, and waits for others that are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlockTotals {
    /// The port.
    pub port: u32,
    /// The traffic class.
    pub class: u8,
    /// Since when it is held.
    pub since: Time,
    /// When that was found.
    pub found: Time,
    /// When it was found to be over, if it was: a watchdog or an event ended it.
    pub over: Option<Time>,
}

/// What the buffer of a switch held that is counted at inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTotals {
    /// The switch.
    pub node: u32,
    /// Most bytes.
    pub max_bytes: u64,
    /// Integral of the bytes that waited, byte ps.
    pub byte_ps: u128,
}

/// One interval of a part of such a buffer: a row of the table `pool_intervals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolInterval {
    /// End of the interval, ps.
    pub t_ps: u64,
    /// Bytes at the end.
    pub bytes: u64,
    /// Most bytes.
    pub max_bytes: u64,
    /// Integral of the bytes over the interval, byte ps.
    pub byte_ps: u128,
}

/// What came over an input of such a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputTotals {
    /// The port that leads to the switch.
    pub port: u32,
    /// The traffic class.
    pub class: u8,
    /// What it counted.
    pub counters: InputCounters,
}

/// How often and how long a class was held at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldTotals {
    /// The port.
    pub port: u32,
    /// The traffic class.
    pub class: u8,
    /// Its holds.
    pub holds: Pauses,
}

/// One interval in which a class of a recorded port was held: a row of the table `hold_intervals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldInterval {
    /// End of the interval, ps.
    pub t_ps: u64,
    /// The traffic class.
    pub class: u8,
    /// For how long, ps.
    pub held_ps: u64,
}

/// Control frames of one kind that a port sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControlFrames {
    /// The port.
    pub port: u32,
    /// The port whose queue is the cause.
    pub queue_port: u32,
    /// What they say.
    pub kind: ControlKind,
    /// How many.
    pub frames: u64,
    /// Their sizes.
    pub bytes: u64,
}

/// What a control frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControlKind {
    /// BCN with positive feedback.
    BcnPositive,
    /// BCN with negative feedback.
    BcnNegative,
    /// BCN(0,0).
    BcnStop,
    /// BCN(MAX).
    BcnMax,
    /// QCN.
    Qcn,
    /// A congestion notification packet of DCQCN.
    Cnp,
    /// PAUSE: stop.
    Xoff,
    /// PAUSE: go on.
    Xon,
}

impl ControlKind {
    /// The names of all kinds; the id of a kind is its place.
    pub const NAMES: [&str; 8] = ["bcn+", "bcn-", "bcn(0,0)", "bcn(max)", "qcn", "cnp", "xoff", "xon"];

    /// The place of its name.
    pub fn id(self) -> u32 {
        self as u32
    }
}

/// One interval of the reaction point of a flow: a row of the table `limiters`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimiterInterval {
    /// End of the interval, ps.
    pub t_ps: u64,
    /// Rate at the end, bit/s; none without a limiter.
    pub rate_bps: Option<u64>,
    /// Integral of the rate over the limited time, bits.
    pub rate_bit: f64,
    /// Time with a limiter, ps.
    pub limited_ps: u64,
    /// Time with the rate 0, ps.
    pub stopped_ps: u64,
    /// Bytes of the flow that wait at its host at the end.
    pub queue_bytes: u64,
}

/// Control frames that a queue caused in an interval: a row of the table `control_intervals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControlInterval {
    /// The port whose queue is the cause.
    pub queue_port: u32,
    /// What they say.
    pub kind: ControlKind,
    /// End of the interval, ps.
    pub t_ps: u64,
    /// How many.
    pub frames: u64,
}

impl From<Feedback> for ControlKind {
    fn from(feedback: Feedback) -> ControlKind {
        match feedback {
            Feedback::Bcn(bcn::Feedback::Stop) => ControlKind::BcnStop,
            Feedback::Bcn(bcn::Feedback::Max(_)) => ControlKind::BcnMax,
            Feedback::Bcn(bcn::Feedback::Change(fb)) if fb < 0.0 => ControlKind::BcnNegative,
            Feedback::Bcn(bcn::Feedback::Change(_)) => ControlKind::BcnPositive,
            Feedback::Qcn(_) => ControlKind::Qcn,
            Feedback::Cnp => ControlKind::Cnp,
        }
    }
}

impl From<Pause> for ControlKind {
    fn from(pause: Pause) -> ControlKind {
        match pause {
            Pause::Xoff => ControlKind::Xoff,
            Pause::Xon => ControlKind::Xon,
        }
    }
}
