//! What a run counted.

mod control;

pub use self::control::{
    BufferTotals, BurstTotals, CauseTotals, ControlFrames, ControlInterval, ControlKind, ControlTotals, DeadlockTotals,
    HoldInterval, HoldTotals, InputTotals, LimiterInterval, MemoryTotals, PoolInterval, StormTotals,
};

use weir_core::estimation;
use weir_core::queue::{ClassCounters, Counters, Pauses};
use weir_core::rapid::Log;
use weir_core::tcp::{ReceiverCounters, SenderCounters};
use weir_core::units::{Bytes, Span, Time};

use crate::probes::Intervals;

/// What a run counted.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Queues of traffic classes, by port and class.
    pub classes: Vec<ClassTotals>,
    /// Where frames of which flow were dropped, in order of port, flow and cause.
    pub drops: Vec<DropTotals>,
    /// Intervals of the recorded ports, in the order of the spec.
    pub intervals: Intervals,
    /// Intervals of the recorded groups of traffic, in the order of the groups.
    pub deliveries: Vec<(u32, Vec<Delivery>)>,
    /// Intervals of the recorded flows, in their order.
    pub flow_deliveries: Vec<(u32, Vec<Delivery>)>,
    /// The bursts of the recorded flows, in their order; see [`Totals::bursts`].
    pub burst_intervals: Vec<(u32, Vec<BurstInterval>)>,
    /// Intervals of the parts of the recorded buffers, in the order of `pool_names`.
    pub pools: Vec<(u32, Vec<PoolInterval>)>,
    /// Intervals in which classes of the traffic were held at the recorded ports, by port in order of time and class.
    pub hold_intervals: Vec<(u32, Vec<HoldInterval>)>,
    /// Bins of the delay of each flow: flow, lower bound (included) and upper bound in ps, frames.
    pub delays: Vec<(u32, u64, u64, u64)>,
    /// What congestion management did.
    pub control: ControlTotals,
    /// Bursts that arrived whole, by flow; of networks with shared memories, adapters or slow outputs, and of the slotted
    /// engine.
    pub bursts: Vec<BurstTotals>,
    /// What switches held, by switch; of the same networks.
    pub memories: Vec<MemoryTotals>,
    /// By TCP connection.
    pub connections: Vec<ConnectionTotals>,
    /// Messages of which a row is kept, by group in the order in which they came.
    pub messages: Vec<MessageRow>,
    /// By group of messages.
    pub message_totals: Vec<MessageTotals>,
    /// Rounds of tasks, by group in their order.
    pub rounds: Vec<RoundTotals>,
    /// Intervals of the senders of the recorded connections, with their places in `connections`.
    pub tcp: Vec<(u32, Vec<ConnectionInterval>)>,
    /// Capture files, in the order of the spec.
    pub captures: Vec<CaptureFile>,
    /// What the recorded probing senders wrote down, with their places in `connections`.
    pub probing: Vec<(u32, Log)>,
    /// What the receiver of each estimator wrote down.
    pub estimation: Vec<estimation::Log>,
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

/// What a port did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortTotals {
    /// What it counted; here the time of transmission, and the frames of a host with queues of its own, up to the end of the run.
    pub counters: Counters,
    /// Frames lost after their transmission had begun.
    pub lost: u64,
    /// When frames were dropped first and last.
    pub drop_times: Option<(Time, Time)>,
    /// Its pauses.
    pub pauses: Pauses,
}

/// Why frames are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropCause {
    /// The queue of the port was full.
    QueueFull,
    /// They were lost on the link behind the port.
    LinkLoss,
    /// The queue of their flow's rate limiter, before the port of a host, was full.
    LimiterFull,
    /// The management of the queue dropped them before it was full.
    QueueEarly,
    /// An input before the queue lost them after the queue had been full.
    InputOverrun,
    /// The link behind the port was down, or went down.
    LinkDown,
    /// The buffer that the ports of the switch share had no room.
    BufferFull,
    /// The watchdog of flow control dropped them in a storm.
    Watchdog,
}

impl DropCause {
    /// The names of all causes; the id of a cause is its place.
    pub const NAMES: [&str; 8] = [
        "queue-full",
        "link-loss",
        "limiter-full",
        "queue-early",
        "input-overrun",
        "link-down",
        "buffer-full",
        "watchdog",
    ];

    /// The place of its name.
    pub fn id(self) -> u32 {
        self as u32
    }
}

/// A capture file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureFile {
    /// Its name.
    pub name: String,
    /// Frames in it.
    pub frames: u64,
    /// Frames that it has no room for.
    pub left_out: u64,
    /// The file, as pcapng.
    pub content: Vec<u8>,
}

/// Frames of a flow that were dropped at a port or on the link behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DropTotals {
    /// The port.
    pub port: u32,
    /// The flow.
    pub flow: u32,
    /// Why.
    pub cause: DropCause,
    /// How many.
    pub frames: u64,
}

/// What a queue of a class at a port did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassTotals {
    /// The port.
    pub port: u32,
    /// The traffic class.
    pub class: u8,
    /// What it counted.
    pub counters: ClassCounters,
}

/// Frames of a flow that the queue of a port marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkTotals {
    /// The port.
    pub port: u32,
    /// The flow.
    pub flow: u32,
    /// How many.
    pub frames: u64,
}

/// What became of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTotals {
    /// The flow of its data.
    pub flow: u32,
    /// When it was opened.
    pub opened: Option<Time>,
    /// When the sender got the answer.
    pub established: Option<Time>,
    /// When the last byte was delivered, if the application has ended.
    pub delivered: Option<Time>,
    /// When the sender knew that.
    pub acknowledged: Option<Time>,
    /// Smoothed round-trip time at the end.
    pub srtt: Option<Span>,
    /// Least round-trip time.
    pub min_rtt: Option<Span>,
    /// Counts of the sender.
    pub sender: SenderCounters,
    /// Counts of the receiver.
    pub receiver: ReceiverCounters,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// Place of its group in `traffic`.
    pub traffic: u32,
    /// The host that sent it.
    pub from: u32,
    /// The host that received it.
    pub to: u32,
    /// Segments sent again.
    pub retransmits: u32,
    /// Its number among those of its group, in the order in which they came.
    pub message: u64,
    /// Its length.
    pub bytes: Bytes,
    /// When it came.
    pub start: Time,
    /// Time from its start until its last byte has arrived in an empty network, at best.
    pub ideal: Span,
    /// When its last byte was delivered; [`Time::NEVER`] if it was not.
    pub delivered: Time,
    /// When its sender knew that; [`Time::NEVER`] if it does not.
    pub acknowledged: Time,
    /// Retransmission timeouts.
    pub timeouts: u32,
}

/// The messages of a group, all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageTotals {
    /// Place of the group in `traffic`.
    pub traffic: u32,
    /// Messages that came.
    pub arrived: u64,
    /// Their lengths.
    pub arrived_bytes: u64,
    /// Messages delivered whole.
    pub delivered: u64,
    /// Their lengths.
    pub delivered_bytes: u64,
    /// Messages whose senders know that.
    pub acknowledged: u64,
    /// Most messages under way at a time.
    pub most_live: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Rows are kept of messages whose number is a multiple of this.
    pub stride: u64,
    /// Time from their start until the last of its tasks was over; none where one is not, or there are none.
    pub job: Option<Span>,
}

/// A round of tasks: messages that wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTotals {
    /// Place of its group in `traffic`.
    pub traffic: u32,
    /// Its place among the rounds of the group.
    pub round: u32,
    /// When the first of its messages came; [`Time::NEVER`] if none did.
    pub start: Time,
    /// When the last of its messages was delivered; [`Time::NEVER`] if one was not.
    pub over: Time,
    /// Data that each host has to send in it at best.
    pub carried: Bytes,
}

/// A sender at the end of an interval: a row of the table `tcp`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionInterval {
    /// End of the interval.
    pub at: Time,
    /// What may be in flight.
    pub window: Bytes,
    /// Where slow start ends; none before the first reduction.
    pub threshold: Option<Bytes>,
    /// Smoothed round-trip time, once there was a sample.
    pub srtt: Option<Span>,
    /// What is in flight.
    pub flight: Bytes,
    /// What was acknowledged in order so far.
    pub acked: Bytes,
    /// Segments sent again so far.
    pub retransmits: u64,
    /// Whether the sender repairs losses or reduces its window.
    pub repairs: bool,
    /// Data that the receiver has reported as marked, so far.
    pub marked: Bytes,
    /// The average share of marks, of a sender that keeps one.
    pub alpha: Option<f64>,
}

/// One interval of a group of traffic, or of a flow: a row of the table `deliveries` or `flow_deliveries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// End of the interval, ps.
    pub t_ps: u64,
    /// Frames delivered.
    pub frames: u64,
    /// Bytes delivered.
    pub bytes: u64,
}

/// The bursts of a flow that arrived whole in an interval: a row of the table `burst_intervals`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstInterval {
    /// End of the interval, ps.
    pub t_ps: u64,
    /// How many.
    pub bursts: u64,
    /// Sum of their delays, ps.
    pub delay_sum_ps: u128,
}

impl BurstInterval {
    /// Counts a burst in the last of `rows`, if that is of the interval that ends at `t_ps`, or in a new one.
    pub(crate) fn count(rows: &mut Vec<BurstInterval>, t_ps: u64, delay: Span) {
        if rows.last().is_none_or(|row| row.t_ps != t_ps) {
            rows.push(BurstInterval { t_ps, ..BurstInterval::default() });
        }
        if let Some(row) = rows.last_mut() {
            row.bursts += 1;
            row.delay_sum_ps += u128::from(delay.ps());
        }
    }
}
