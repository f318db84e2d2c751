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
use weir_core::{named, row};

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

row! {
    /// A flow: what one host sends another.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FlowTotals {
        /// Frames that the source handed to its host.
        pub sent_frames: u64,
        /// Bytes of these.
        pub sent_bytes: u64,
        /// Frames that arrived at their host.
        pub delivered_frames: u64,
        /// Bytes of these.
        pub delivered_bytes: u64,
        /// Frames dropped on the way, losses on links included.
        pub dropped_frames: u64,
        /// Frames that were under way, or waited, at the end of the run.
        pub live_frames: u64,
        /// Sum of the one-way delays of delivered frames.
        pub delay_sum_ps: u128,
        /// Least one-way delay; unknown without a delivered frame.
        pub delay_min: Option<Span>,
        /// Greatest one-way delay; unknown without a delivered frame.
        pub delay_max: Option<Span>,
    }
}

row! {
    /// A port: the transmitter of one end of a link, with its queue.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PortTotals {
        /// The time of transmission, and the frames of a host with queues of its own, up to the end of the run.
        pub counters: Counters,
        /// Frames of flows lost after their transmission had begun: on the link, or at its other end if that knew no way on.
        pub lost: u64,
        /// When the first one was dropped; unknown without drops.
        pub first_drop: Option<Time>,
        /// When the last one was dropped; unknown without drops.
        pub last_drop: Option<Time>,
        pub pauses: Pauses => paused,
    }
}

named! {
    /// Why frames are dropped.
    pub enum DropCause {
        /// The queue of the port was full.
        QueueFull = "queue-full",
        /// They were lost on the link behind the port.
        LinkLoss = "link-loss",
        /// The queue of their flow's rate limiter, before the port of a host, was full.
        LimiterFull = "limiter-full",
        /// The management of the queue dropped them before it was full.
        QueueEarly = "queue-early",
        /// An input before the queue lost them after the queue had been full.
        InputOverrun = "input-overrun",
        /// The link behind the port was down, or went down.
        LinkDown = "link-down",
        /// The buffer that the ports of the switch share had no room.
        BufferFull = "buffer-full",
        /// The watchdog of flow control dropped them in a storm.
        Watchdog = "watchdog",
    }
}

row! {
    /// A capture file, which is in the same directory as the tables.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CaptureFile {
        /// Name of the record that asks for it.
        pub name: String,
        /// Frames in it.
        pub frames: u64,
        /// Frames that it had no room for.
        pub left_out: u64 => left_out_frames,
        /// The file itself; not part of saved tables.
        pub content: Vec<u8>,
    }
}

row! {
    /// Frames of a flow that were dropped at a port for one cause.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct DropTotals {
        pub port: u32,
        pub flow: u32,
        /// Id of the cause.
        pub cause: DropCause,
        /// How many.
        pub frames: u64,
    }
}

row! {
    /// The queue of a traffic class at a port that has several.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClassTotals {
        pub port: u32,
        pub class: u8,
        pub counters: ClassCounters,
    }
}

row! {
    /// ECN-capable frames of a flow that the queue of a port marked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct MarkTotals {
        pub port: u32,
        pub flow: u32,
        /// How many.
        pub frames: u64,
    }
}

row! {
    /// A TCP connection, from its sender's side unless said otherwise.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ConnectionTotals {
        /// Id of the flow of its data.
        pub flow: u32,
        /// When it was opened; unknown where it was not.
        pub opened: Option<Time>,
        /// When the handshake ended; unknown where it did not.
        pub established: Option<Time>,
        /// When all data of the application had been delivered; unknown where it was not.
        pub delivered: Option<Time>,
        /// When all of it was acknowledged; unknown where it was not.
        pub acknowledged: Option<Time>,
        /// Smoothed round-trip time at the end; unknown without a sample.
        pub srtt: Option<Span>,
        /// Least round-trip time; unknown without a sample.
        pub min_rtt: Option<Span>,
        /// Segments that either end refused for their old time stamp.
        pub paws_rejects: u64,
        pub sender: SenderCounters,
        pub receiver: ReceiverCounters,
    }
}

row! {
    /// A message. Of many, every second, every fourth, ... has a row: see `stride` of `message_totals`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MessageRow {
        /// Number among the messages of its entry of traffic, in the order in which they came.
        pub message: u64,
        /// Id of its entry of traffic.
        pub traffic: u32,
        /// Id of the host that sent it.
        pub from: u32 => from_node,
        /// Id of the host that received it.
        pub to: u32 => to_node,
        /// Its length.
        pub bytes: Bytes => size,
        /// When it came.
        pub start: Time,
        /// When its last byte was delivered; unknown where it was not.
        pub delivered: Option<Time>,
        /// When its sender knew that; unknown where it does not.
        pub acknowledged: Option<Time>,
        /// Time from its start until its last byte would be delivered in an empty network, at best.
        pub ideal: Span,
        /// Segments sent again.
        pub retransmits: u32,
        /// Retransmission timeouts.
        pub timeouts: u32,
    }
}

row! {
    /// The messages of an entry of traffic, all of them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct MessageTotals {
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
        /// Rows of `messages` are kept of those whose number is a multiple of this.
        pub stride: u64,
        /// Time until the last message or computation of a job was over; unknown where one is not, and without jobs.
        pub job: Option<Span>,
    }
}

row! {
    /// A round of messages that wait for each other: a repetition of a collective operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RoundTotals {
        pub traffic: u32,
        /// Its place among the rounds of the entry.
        pub round: u32,
        /// When the first of its messages came; unknown where none did.
        pub start: Option<Time>,
        /// When the last of its messages was delivered; unknown where one was not.
        pub over: Option<Time>,
        /// Data that each host has to send in it at best.
        pub carried: Bytes,
    }
}

row! {
    /// An interval of the sender of a recorded connection.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ConnectionInterval {
        pub at: Time => t,
        /// Congestion window at the end of the interval.
        pub window: Bytes,
        /// Slow-start threshold; unknown before the first reduction.
        pub threshold: Option<Bytes>,
        /// Smoothed round-trip time; unknown without a sample.
        pub srtt: Option<Span>,
        /// Bytes in flight.
        pub flight: Bytes,
        /// Bytes acknowledged in order, so far.
        pub acked: Bytes,
        /// Segments sent again, so far.
        pub retransmits: u64,
        /// 1 while losses are repaired, otherwise 0.
        pub repairs: bool,
        /// Bytes reported as marked, so far.
        pub marked: Bytes,
        /// Average share of marks of DCTCP and Prague; unknown for others.
        pub alpha: Option<f64>,
    }
}

row! {
    /// An interval of a recorded entry of traffic, or of a flow of it: what arrived.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Delivery {
        pub t_ps: u64,
        /// Frames that arrived.
        pub frames: u64,
        /// Their bytes.
        pub bytes: u64,
    }
}

row! {
    /// Bursts of a recorded flow that arrived whole in an interval; intervals without one have no row.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct BurstInterval {
        pub t_ps: u64,
        /// How many.
        pub bursts: u64,
        /// Sum of their delays: from the generation of the first frame to the arrival of the last.
        pub delay_sum_ps: u128,
    }
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
