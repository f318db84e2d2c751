//! The receiving end of a message.

use std::collections::{BTreeSet, VecDeque};

use super::packet::{Packet, PacketKind};
use super::{CREDIT_UNIT, Config, Recovery};
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
    /// Whether the sender asked for an answer since nothing was missing.
    is_awaited: bool,
    /// When it asked the sender to go back, and to which packet.
    asked: Option<(Time, u64)>,
    answers: VecDeque<Packet>,
    finished: Option<Time>,
    /// A full packet's frame.
    frame: Bytes,
    /// Credit that was asked for and given, in bytes of frames.
    wanted: u64,
    given: u64,
    /// What it gives at most beyond what was asked for.
    most: u64,
    /// Whether its sender has its turn to get some: it asks for more than before, a payload was cut, or it said that it waits.
    is_due: bool,
    /// Whether it gets some in spare time.
    is_idle: bool,
}

/// How much a sender wants credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// Not at all.
    Nothing,
    /// It has all that it asked for, and may have some more if nobody wants any.
    Idle,
    /// It has asked for more, waits, or sends again.
    Urgent,
}

impl Receiver {
    /// The receiver of a message of `bytes` over a path that holds `product`.
    pub fn new(config: &Config, packets: Packets, bytes: Bytes, product: Bytes) -> Receiver {
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
            is_awaited: false,
            asked: None,
            answers: VecDeque::new(),
            finished: None,
            frame: config.frame_of(packets, packets.payload_bytes),
            wanted: 0,
            given: 0,
            most: config.credit.map_or(0, |credit| whole_units(credit.most * product.count() as f64)),
            is_due: false,
            is_idle: false,
        }
    }

    /// When all had arrived.
    pub fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// A packet came.
    pub fn handle(&mut self, now: Time, packet: &Packet) {
        // What has come before is no news, and asks for nothing.
        if packet.kind == PacketKind::Header && self.has(packet.number) {
            return self.answer(PacketKind::Arrived, packet);
        }
        let is_call = packet.kind == PacketKind::Header || packet.kind == PacketKind::Request && packet.asks;
        self.is_due |= is_call || packet.from > self.wanted;
        self.wanted = self.wanted.max(packet.from);
        match packet.kind {
            PacketKind::Data => self.take(now, packet),
            PacketKind::Header => self.answer(PacketKind::Cut, packet),
            PacketKind::Request => self.answer(PacketKind::Heard, packet),
            PacketKind::Probe => self.answer(PacketKind::Probed, packet),
            _ => {}
        }
    }

    fn has(&self, number: u64) -> bool {
        number < self.next || self.early.contains(&number)
    }

    fn take(&mut self, now: Time, packet: &Packet) {
        let number = packet.number;
        if number > self.next && self.recovery != Recovery::Selective {
            return self.refuse(now, packet);
        }
        let is_double = self.has(number);
        let is_next = number == self.next;
        if is_next {
            self.next += 1;
            self.asked = None;
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
        // What its sender waits for is answered when it comes, and when nothing before it is missing any more.
        self.is_awaited |= packet.asks;
        let is_whole = is_next && self.early.is_empty() && std::mem::take(&mut self.is_awaited);
        let is_asked = packet.asks || is_whole || self.next == self.packets;
        if self.silent >= self.every || self.is_new || is_double || packet.marked || is_asked {
            self.answer(PacketKind::Arrived, packet);
        } else {
            // Any answer says all before `next`.
            self.unsaid.retain(|packet| packet.number >= self.next);
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

    /// Whether its sender wants credit, of which it is told whatever has arrived.
    ///
    /// Source: uet-htsim, `uec.cpp` (its two lists of senders)
    pub fn demand(&self) -> Demand {
        if self.is_due || self.wanted > self.given {
            Demand::Urgent
        } else if self.is_idle {
            Demand::Idle
        } else {
            Demand::Nothing
        }
    }

    /// Credit for `packets` more, or as much as is wanted if it is its turn, and how much that is.
    pub fn give_credit(&mut self, packets: f64) -> (Packet, Bytes) {
        let units = (packets * self.frame.count() as f64 / CREDIT_UNIT as f64).round().max(1.0);
        let most = units as u64 * CREDIT_UNIT;
        let is_urgent = self.demand() == Demand::Urgent;
        let more = if is_urgent { self.wanted.saturating_sub(self.given).min(most) } else { most };
        self.is_due = false;
        self.given += more;
        self.is_idle = is_urgent || self.given < self.wanted + self.most;
        (Packet { from: self.given, ..Packet::new(PacketKind::Credit, 0, self.class) }, Bytes::new(more))
    }
}

/// As many whole units of credit as are in so many bytes.
fn whole_units(bytes: f64) -> u64 {
    (bytes / CREDIT_UNIT as f64) as u64 * CREDIT_UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_that_seldom_answers_keeps_only_what_came_out_of_order() {
        let every = Bytes::new(u64::MAX);
        let config = Config { recovery: Recovery::Selective, answer_every_bytes: every, ..Config::default() };
        let packets = Packets { payload_bytes: Bytes::new(1000), header_bytes: Bytes::new(48) };
        let mut receiver = Receiver::new(&config, packets, Bytes::new(10_000_000), Bytes::ZERO);
        let mut most = 0;
        // Pairs of packets change places.
        for number in (0..9000).map(|number| number ^ 1) {
            receiver.handle(Time::ZERO, &Packet::new(PacketKind::Data, number, 0));
            most = most.max(receiver.unsaid.len());
        }
        assert!(receiver.answers.len() == 1 && most <= 2, "{} answers, {most} packets", receiver.answers.len());
    }
}
