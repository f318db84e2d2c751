//! What travels between the two ends of a message.

use crate::units::Time;

/// A packet, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Data: its number, from 0. Probes: the first that is not known to have arrived. Requests: theirs, from 0.
    /// Answers: the number of the packet that they answer.
    pub number: u64,
    /// Answers: the first packet that has not arrived.
    pub next: u64,
    /// Answers: which packets have arrived of 64 from `from` on, the first one in the lowest bit.
    pub arrived: u64,
    /// Answers: see `arrived`. Data: the credit that its sender asks for, all that it has asked for counted, in bytes. Credit: what
    /// the receiver has given, in bytes.
    pub from: u64,
    /// When the data left; an answer takes it back.
    pub sent: Time,
    /// The value that switches hash, for the way.
    pub entropy: u16,
    /// What it is.
    pub kind: PacketKind,
    /// Its traffic class.
    pub class: u8,
    /// Whether a queue marked it; an answer takes it back.
    pub marked: bool,
    /// Whether marks of queues are possible, because it is data or in its class.
    pub is_capable: bool,
    /// Whether its sender asks for an answer at once.
    pub asks: bool,
    /// Of a header whose payload was cut: whether that was at the last queue on its way.
    pub at_last_hop: bool,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A part of a message.
    Data,
    /// The header of one whose payload was cut.
    Header,
    /// A sender that has data and no credit asks for some.
    Request,
    /// A sender asks what has arrived: no data, in the class of data.
    Probe,
    /// It has arrived, and what `next` and `arrived` say.
    Arrived,
    /// What `next` and `arrived` say, to a probe.
    Probed,
    /// A request has arrived, and what `next` and `arrived` say.
    Heard,
    /// Its header has arrived.
    Cut,
    /// It came out of order: the sender goes back to `next`.
    GoBack,
    /// Credit.
    Credit,
}

impl PacketKind {
    /// Whether it goes from the sender to the receiver.
    pub fn is_forward(self) -> bool {
        matches!(self, PacketKind::Data | PacketKind::Header | PacketKind::Request | PacketKind::Probe)
    }
}

impl Packet {
    /// A packet of this kind with this number, in `class`.
    pub(crate) fn new(kind: PacketKind, number: u64, class: u8) -> Packet {
        Packet {
            number,
            next: 0,
            arrived: 0,
            from: 0,
            sent: Time::ZERO,
            entropy: 0,
            kind,
            class,
            marked: false,
            is_capable: matches!(kind, PacketKind::Data | PacketKind::Probe),
            asks: false,
            at_last_hop: false,
        }
    }

    /// A queue has cut its payload: what is left takes another class.
    pub fn cut(&mut self, class: u8, at_last_hop: bool) {
        (self.kind, self.class, self.at_last_hop) = (PacketKind::Header, class, at_last_hop);
        (self.is_capable, self.marked) = (false, false);
    }
}
