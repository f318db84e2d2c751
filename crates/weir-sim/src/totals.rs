//! What a run counted.

use weir_core::units::Span;

use crate::deliveries::Delivery;
use crate::probes::Intervals;

/// What a run counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// Its seed.
    pub seed: u64,
    /// Events handled.
    pub events: u64,
    /// Frames fully received over a link, each link counted.
    pub packet_hops: u64,
    /// End of the run, ps.
    pub end_ps: u64,
    /// By flow.
    pub flows: Vec<FlowTotals>,
    /// By port.
    pub ports: Vec<PortTotals>,
    /// Where frames of which flow were dropped, in order of port and flow; drop-tail only.
    pub drops: Vec<DropTotals>,
    /// Intervals of the recorded ports, in the order of the spec.
    pub intervals: Intervals,
    /// Intervals of the recorded groups of traffic, in the order of the groups.
    pub deliveries: Vec<(u32, Vec<Delivery>)>,
    /// Bins of the delay of each flow: flow, lower bound (included) and upper bound in ps, frames.
    pub delays: Vec<(u32, u64, u64, u64)>,
}

/// What became of the frames of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTotals {
    /// Frames generated.
    pub sent_frames: u64,
    /// Their sizes.
    pub sent_bytes: u64,
    /// Frames that arrived.
    pub delivered_frames: u64,
    /// Their sizes.
    pub delivered_bytes: u64,
    /// Frames dropped.
    pub dropped_frames: u64,
    /// Frames in sources, queues and on links at the end.
    pub live_frames: u64,
    /// Sum of the delays from generation to arrival, ps.
    pub delay_sum_ps: u128,
    /// Least delay; none without a delivery.
    pub delay_min: Option<Span>,
    /// Greatest delay.
    pub delay_max: Option<Span>,
}

/// What a port did. See [`weir_core::queue::Counters`]; here transmissions count up to the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortTotals {
    /// Frames whose transmission began.
    pub frames: u64,
    /// Their sizes.
    pub bytes: u64,
    /// Time of transmission, ps.
    pub busy_ps: u64,
    /// Frames dropped.
    pub drops: u64,
    /// Their sizes.
    pub dropped_bytes: u64,
    /// Most bytes waiting.
    pub queue_max_bytes: u64,
    /// Integral of the waiting bytes, byte ps.
    pub queue_byte_ps: u128,
    /// Sum of the waiting times, ps.
    pub queue_wait_ps: u128,
    /// Time of being paused, ps.
    pub paused_ps: u64,
}

/// Frames of a flow that a port dropped because its queue was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DropTotals {
    /// The port.
    pub port: u32,
    /// The flow.
    pub flow: u32,
    /// How many.
    pub frames: u64,
}
