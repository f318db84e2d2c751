//! What was counted of flow control, congestion management and memories.

use weir_core::ethernet::bcn;
use weir_core::ethernet::pause::Pause;
use weir_core::ethernet::reaction::{Feedback, Meter};
use weir_core::queue::{InputCounters, Pauses};
use weir_core::units::{Span, Time};
use weir_core::{named, row};

use super::MarkTotals;

row! {
    /// Bursts of a flow that arrived whole; in networks with shared memories, adapters or slow outputs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BurstTotals {
        pub flow: u32,
        /// How many.
        pub bursts: u64,
        /// Sum of their delays: from the generation of the first frame to the arrival of the last.
        pub delay_sum_ps: u128,
        /// The least.
        pub delay_min: Span,
        /// The greatest.
        pub delay_max: Span,
    }
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

row! {
    /// Why buffers asked a class of a port to stop: the output that most of what came from there waited for, and where it began.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CauseTotals {
        /// Id of the port that was asked to stop.
        pub port: u32,
        pub class: u8,
        /// Id of the output that most of what came from there waited for.
        pub cause: u32 => cause_port,
        /// Id of the output where nothing else held what waited.
        pub root: u32 => root_port,
        /// How often.
        pub stops: u64,
        /// How long all together, up to the release or the end of the run.
        pub time: Span => stopped,
        /// Stops from the root to here at most: 1 next to it.
        pub depth: u32,
    }
}

row! {
    /// A storm of flow control that the watchdog of a port found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StormTotals {
        /// Id of the port that was held.
        pub port: u32,
        pub class: u8,
        /// When it was found.
        pub found: Time,
        /// When it was over; unknown if it was not.
        pub over: Option<Time>,
    }
}

row! {
    /// A traffic class of a port that is held and waits for others that are: none of them releases another.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DeadlockTotals {
        pub port: u32,
        pub class: u8,
        /// Since when it is held.
        pub since: Time,
        /// When that was found: at a stop that takes effect, at most 100 us after another look.
        pub found: Time,
        /// When it was found to be over, because of a watchdog or an event; unknown if it was not.
        pub over: Option<Time>,
    }
}

row! {
    /// The buffer of a switch that is counted at inputs and outputs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BufferTotals {
        /// Id of the switch.
        pub node: u32,
        /// Most bytes that waited.
        pub max_bytes: u64,
        /// Integral over time of the bytes that waited.
        pub byte_ps: u128,
    }
}

row! {
    /// An interval of a part of the buffer of a switch of which a port is recorded: the shortest that one of them has.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PoolInterval {
        pub t_ps: u64,
        /// Bytes at the end of the interval.
        pub bytes: u64,
        /// Most bytes.
        pub max_bytes: u64,
        /// Integral over the interval of the bytes.
        pub byte_ps: u128,
    }
}

row! {
    /// What came over an input of such a switch, of one traffic class.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct InputTotals {
        /// Id of the port that leads to the switch.
        pub port: u32,
        pub class: u8,
        pub counters: InputCounters,
    }
}

row! {
    /// A traffic class that frames of flow control (PAUSE, or PFC) held at a port.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HoldTotals {
        /// Id of the port that was held.
        pub port: u32,
        /// The traffic class; PAUSE holds all.
        pub class: u8,
        pub holds: Pauses => held,
    }
}

row! {
    /// For how long frames of flow control (PAUSE, or PFC) held a class of the traffic at a recorded port in an interval; intervals in which they did not have no row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HoldInterval {
        pub t_ps: u64,
        pub class: u8,
        /// Time for which it was held.
        pub held_ps: u64,
    }
}

row! {
    /// Control frames of one kind that a port was the first to send because of a queue.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct ControlFrames {
        /// Id of the port that sent them first.
        pub port: u32,
        /// Id of the port whose queue is the cause.
        pub queue_port: u32,
        /// Id of the kind.
        pub kind: ControlKind,
        /// How many.
        pub frames: u64,
        /// Their bytes.
        pub bytes: u64,
    }
}

named! {
    /// What a control frame says.
    pub enum ControlKind {
        /// BCN with positive feedback.
        BcnPositive = "bcn+",
        /// BCN with negative feedback.
        BcnNegative = "bcn-",
        /// BCN(0,0).
        BcnStop = "bcn(0,0)",
        /// BCN(MAX).
        BcnMax = "bcn(max)",
        /// QCN.
        Qcn = "qcn",
        /// A congestion notification packet of DCQCN.
        Cnp = "cnp",
        /// PAUSE: stop.
        Xoff = "xoff",
        /// PAUSE: go on.
        Xon = "xon",
    }
}

row! {
    /// An interval of the rate limiter of a flow; with shared memories, adapters and slow outputs, of a pair of hosts, with its first flow.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct LimiterInterval {
        pub t_ps: u64,
        /// Rate at the end of the interval; unknown without a limiter.
        pub rate_bps: Option<u64>,
        /// Integral of the rate over the limited time.
        pub rate_bit: f64,
        /// Time of the interval with a limiter.
        pub limited_ps: u64,
        /// Time of the interval in which it was stopped.
        pub stopped_ps: u64,
        /// Bytes that waited in it at the end of the interval.
        pub queue_bytes: u64,
    }
}

row! {
    /// Control frames of one kind because of a recorded queue, in an interval; intervals without one have no row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct ControlInterval {
        /// Id of the port whose queue is the cause.
        pub queue_port: u32,
        /// Id of the kind.
        pub kind: ControlKind,
        pub t_ps: u64,
        /// How many.
        pub frames: u64,
    }
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
