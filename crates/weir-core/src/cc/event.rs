//! What a controller learns, and what it answers.

use crate::marking::Ecn;
use crate::tcp::rate;
use crate::units::{Bytes, Rate, Span, Time};

/// What a controller learns.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SenderEvent {
    /// The connection is established; its first round-trip time, unless the SYN was sent twice.
    Established {
        /// Of the handshake.
        rtt: Option<Span>,
    },
    /// It is about to be established, and the SYN had to be sent again more than once.
    LostSyn,
    /// What an acknowledgement reports of marks, before [`SenderEvent::Ack`] of the same acknowledgement; where the ends have
    /// agreed to use ECN.
    Marks(Marks),
    /// Segments were acknowledged, in order or not.
    Ack(Acked),
    /// The network is congested; reported once per window of data.
    Congestion {
        /// What shows it.
        cause: Cause,
        /// Bytes outstanding, but for what limited transmit added.
        flight: Bytes,
    },
    /// The losses are repaired; the window that is left.
    Recovered {
        /// Of the sender's recovery.
        window: Bytes,
    },
    /// What was repaired since segments were last taken for lost, had not been lost; before [`SenderEvent::Repaired`].
    Spurious,
    /// What was lost is repaired, and what was reduced stays so: the sender is open again.
    Repaired,
    /// The retransmission timer expired: nothing is known to be in flight.
    Collapse,
    /// Nothing was sent for longer than the retransmission timeout, and now is.
    LongIdle,
    /// The time of [`CongestionControl::poll_timeout`](super::CongestionControl::poll_timeout) has come.
    Timer,
    /// With [`Needs::model`]: nothing is in flight, the application had nothing to send for a while, and now has.
    Restart,
    /// With [`Needs::model`]: a segment was found lost.
    Lost(rate::Loss),
    /// With [`Needs::model`]: new data has arrived; after all other events of the acknowledgement.
    Sample(rate::Sample),
    /// With [`Needs::departures`]: a segment leaves for the first time.
    Sent(Departed),
    /// With [`Needs::departures`]: the segment that was sent last left at `at`, later than was reported.
    Left {
        /// When.
        at: Time,
    },
    /// With [`Needs::departures`]: a new segment could leave by its time, but there is none, or no window for it.
    Idle,
    /// With [`Needs::departures`]: everything below `number` has arrived in order and without loss.
    Arrived {
        /// The first number that has not.
        number: u64,
        /// When the last of it arrived, by the receiver's clock.
        received: Time,
    },
}

/// What shows congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Segments are lost.
    Loss,
    /// The retransmission timer expired.
    Timeout,
    /// The receiver echoes a mark.
    EcnEcho,
}

/// An acknowledgement in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acked {
    /// Bytes for which the window may grow: each counts once, when it is acknowledged in order, unless it arrived while
    /// losses were repaired or after marks.
    pub bytes: Bytes,
    /// The first number that is not acknowledged.
    pub number: u64,
    /// The next number to be sent for the first time.
    pub next: u64,
    /// Bytes in flight before.
    pub prior_flight: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// A round-trip time, if this acknowledgement gave one.
    pub rtt: Option<Span>,
    /// Whether the window may grow: no reduction is under way, nor ends with this acknowledgement.
    pub may_grow: bool,
}

/// What an acknowledgement reports of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marks {
    /// Bytes of which it reports whether they were marked.
    pub counted: Bytes,
    /// Those that were.
    pub marked: Bytes,
    /// Whether any were, or whatever else the receiver echoes for.
    pub is_echo: bool,
    /// The first number that is not acknowledged.
    pub number: u64,
    /// The next number to be sent for the first time.
    pub next: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Whether the window may be reduced: losses are not being repaired.
    pub may_reduce: bool,
}

/// A segment that leaves for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    /// The number behind its last byte.
    pub number: u64,
    /// The length of its frame, without preamble and gap.
    pub frame: Bytes,
}

/// What the receiver says of one packet that a sender of numbered packets has sent ([`crate::rdma`]), for a controller with
/// [`Needs::packets`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer<'a> {
    /// The number of its first byte.
    pub number: u64,
    /// The number of the byte that is sent next for the first time.
    pub next: u64,
    /// Data of which the sender has learnt by this answer that it has arrived.
    pub bytes: Bytes,
    /// What became of it.
    pub outcome: Outcome,
    /// Whether a queue marked it.
    pub marked: bool,
    /// From its departure until this answer.
    pub rtt: Span,
    /// Data in flight now.
    pub flight: Bytes,
    /// What the ports of switches wrote into it on its way.
    pub hops: &'a [Hop],
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It arrived.
    Arrived,
    /// Its header arrived: a queue had no room for its payload.
    Trimmed {
        /// Whether that was the last queue on its way.
        at_last_hop: bool,
    },
    /// It came out of order, and the receiver does not keep it.
    Refused,
}

/// What a port writes into a packet whose transmission begins there (in-band telemetry).
///
/// Source: HPCC 2019, 4.1, figure 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// Which port.
    pub port: u32,
    /// What waits there still.
    pub queue_bytes: u32,
    /// When the transmission begins.
    pub at: Time,
    /// What it has sent, this packet and framing counted.
    pub sent_bytes: u64,
    /// Its line rate.
    pub rate_bps: u64,
}

/// What is known of the path of a sender when it is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Line rate of the sender.
    pub line_rate: Rate,
    /// From the departure of a full packet until its answer.
    pub round_trip: Span,
    /// Data of a full packet, and its frame.
    pub packet: (Bytes, Bytes),
}

impl Path {
    /// 10 Gbit/s and 100 us: of a sender that knows nothing.
    pub const PLAIN: Path = Path {
        line_rate: Rate::from_gbit_per_s(10),
        round_trip: Span::from_us(100),
        packet: (Bytes::new(1448), Bytes::new(1518)),
    };

    /// What is in flight on the empty path at line rate.
    pub fn product(&self) -> Bytes {
        self.line_rate * self.round_trip
    }
}

/// What a sender may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes in flight.
    pub window: Bytes,
    /// Where a reduction of the window ends; the largest number before the first, and for a controller that knows none.
    pub threshold: Bytes,
    /// How what may be sent is spread over time.
    pub pace: Pace,
    /// Whether so little is sent on purpose that samples of the delivery rate count as limited by the application.
    pub holds_back: bool,
}

impl Allowance {
    /// A window, and nothing else.
    #[inline]
    pub fn of_window(window: Bytes, threshold: Bytes) -> Allowance {
        Allowance { window, threshold, pace: Pace::AtOnce, holds_back: false }
    }
}

/// How segments leave that the window lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At once, or as the settings of the connection say.
    AtOnce,
    /// At a rate, some together.
    Rate {
        /// Rate of leaving, frames without preamble and gap.
        rate: Rate,
        /// Data that leaves together, as far as there is so much to send; after it the sender waits for as long as it takes at
        /// the rate. Less than two segments: each leaves by itself.
        quantum: Bytes,
    },
    /// The next new segment leaves at this time; of a controller with [`Needs::departures`].
    At(Time),
}

/// What a controller learns beyond what all learn, and what it asks of the connection. It stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// It keeps a model of the path: it learns samples of the delivery rate and what is lost, and its own window holds while losses
    /// are repaired.
    pub model: bool,
    /// It times each segment by itself: it learns of departures, and of arrivals that the receiver stamped.
    pub departures: bool,
    /// It answers marks in proportion: [`SenderEvent::Congestion`] does not report them.
    pub marks: bool,
    /// That takes counters of marks: without them the sender uses Reno in its place.
    pub counters: bool,
    /// It has a timer of its own.
    pub timer: bool,
    /// It learns of each packet by itself ([`CongestionControl::on_answer`](super::CongestionControl::on_answer)), which only
    /// senders of numbered packets can do.
    pub packets: bool,
    /// Ports of switches write into each packet what waits there.
    pub telemetry: bool,
    /// What its packets say about marks, where the ends have agreed to use ECN.
    pub codepoint: Ecn,
}

impl Needs {
    /// Nothing but acknowledgements and congestion.
    pub const PLAIN: Needs = Needs {
        model: false,
        departures: false,
        marks: false,
        counters: false,
        timer: false,
        packets: false,
        telemetry: false,
        codepoint: Ecn::Ect0,
    };
}

/// What a controller shows of its state; nobody acts on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// What it does to learn about the path.
    pub stage: Option<&'static str>,
    /// The rate that it takes the path for, or sends at.
    pub rate: Option<Rate>,
    /// The least round-trip time that it knows.
    pub min_rtt: Option<Span>,
    /// The average share of the data that is marked: alpha.
    pub marked_share: Option<f64>,
}
