//! The receiving end of a message.

use std::collections::{BTreeSet, VecDeque};

use super::packet::{Packet, PacketKind};
use super::{Config, Recovery};
use crate::spec::messages::Packets;
use crate::units::{Bytes, Span, Time};

/// After so long a receiver says again what it misses, if more comes out of order.
///
/// Source: HPCC simulator, `rdma-hw.cc` (NACK interval)
const AGAIN: Span = Span::from_us(500);

/// The receiving end: it takes what comes and answers.
#[derive(Clone, Debug)]
pub struct Receiver {
    recovery: Recovery,
    class: u8,
    every: u64,
    packets: u64,
    full: u64,
    bytes: u64,
    /// The first packet that has not arrived, and those behind it that have.
    next: u64,
    early: BTreeSet<u64>,
    /// Data that came since the last answer, and the packets that brought it; whether there was no answer.
    silent: u64,
    unsaid: Vec<Packet>,
    is_new: bool,
    /// The last packet whose sender asked for an answer.
    awaited: u64,
    /// When it asked the sender to go back, and to which packet.
    asked: Option<(Time, u64)>,
    answers: VecDeque<Packet>,
    finished: Option<Time>,
    /// Credit that was asked for and given, in bytes of data.
    wanted: u64,
    given: u64,
}

impl Receiver {
    /// The receiver of a message of `bytes`.
    pub fn new(config: &Config, packets: Packets, bytes: Bytes) -> Receiver {
        let full = packets.payload_bytes.count();
        Receiver {
            recovery: config.recovery,
            class: config.control_class,
            every: config.answer_every_bytes.count(),
            packets: bytes.count().div_ceil(full).max(1),
            full,
            bytes: bytes.count(),
            next: 0,
            early: BTreeSet::new(),
            silent: 0,
            unsaid: Vec::new(),
            is_new: true,
            awaited: 0,
            asked: None,
            answers: VecDeque::new(),
            finished: None,
            wanted: 0,
            given: 0,
        }
    }

    /// When all had arrived.
    pub fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// A packet came.
    pub fn handle(&mut self, now: Time, packet: &Packet) {
        self.wanted = self.wanted.max(packet.from);
        match packet.kind {
            PacketKind::Data => self.take(now, packet),
            PacketKind::Header => self.answer(PacketKind::Cut, packet),
            _ => {}
        }
    }

    fn take(&mut self, now: Time, packet: &Packet) {
        let number = packet.number;
        if number > self.next && self.recovery != Recovery::Selective {
            return self.refuse(now, packet);
        }
        let is_double = number < self.next || self.early.contains(&number);
        if number == self.next {
            self.next += 1;
            while self.early.remove(&self.next) {
                self.next += 1;
            }
        } else if !is_double {
            self.early.insert(number);
        }
        if self.next == self.packets && self.finished.is_none() {
            self.finished = Some(now);
        }
        let data = if number + 1 == self.packets { self.bytes - number * self.full } else { self.full };
        self.say_before(number);
        self.silent += data;
        // What comes behind a packet whose sender waits for an answer is waited for, too.
        let is_awaited = packet.asks || number < self.awaited || self.next == self.packets;
        self.awaited = self.awaited.max(if packet.asks { number } else { 0 });
        if self.silent >= self.every || self.is_new || is_double || packet.marked || is_awaited {
            self.answer(PacketKind::Arrived, packet);
        } else {
            self.unsaid.push(*packet);
        }
    }

    /// Answers packets that an answer to packet `number` would not say to have arrived.
    fn say_before(&mut self, number: u64) {
        let from = self.first_said(number);
        let is_said = |packet: &Packet| packet.number < self.next || (from..from + 64).contains(&packet.number);
        if let Some(last) = self.unsaid.last().copied().filter(|_| !self.unsaid.iter().all(is_said)) {
            self.answer(PacketKind::Arrived, &last);
        }
    }

    /// The first packet of which an answer to packet `number` says whether it has arrived.
    fn first_said(&self, number: u64) -> u64 {
        self.next.max((number + 1).saturating_sub(64))
    }

    /// A packet came out of order, and is dropped: the sender is asked to go back, once for each gap.
    fn refuse(&mut self, now: Time, packet: &Packet) {
        if self.recovery == Recovery::GoBackZero && self.finished.is_none() {
            self.next = 0;
        }
        if self.asked.is_some_and(|(at, next)| next == self.next && now.saturating_since(at) < AGAIN) {
            return;
        }
        self.asked = Some((now, self.next));
        self.answer(PacketKind::GoBack, packet);
    }

    fn answer(&mut self, kind: PacketKind, packet: &Packet) {
        let from = self.first_said(packet.number);
        let bit = |&number: &u64| if number - from < 64 { 1 << (number - from) } else { 0 };
        let arrived = self.early.range(from..).take_while(|&&number| number < from + 64).map(bit).sum();
        let answer = Packet {
            next: self.next,
            from,
            arrived,
            sent: packet.sent,
            entropy: packet.entropy,
            marked: packet.marked,
            at_last_hop: packet.at_last_hop,
            ..Packet::new(kind, packet.number, self.class)
        };
        if kind == PacketKind::Arrived {
            (self.silent, self.is_new) = (0, false);
            self.unsaid.clear();
        }
        self.answers.push_back(answer);
    }

    /// The next answer.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.answers.pop_front()
    }

    /// Whether its sender has asked for credit that it has not got.
    pub fn wants_credit(&self) -> bool {
        self.wanted > self.given && self.finished.is_none()
    }

    /// Credit for `packets` more, or as much as is wanted, and how many packets that is.
    pub fn give_credit(&mut self, packets: u32) -> (Packet, u64) {
        let more = (self.wanted - self.given).min(u64::from(packets) * self.full);
        self.given += more;
        (Packet { from: self.given, ..Packet::new(PacketKind::Credit, 0, self.class) }, more.div_ceil(self.full))
    }
}
