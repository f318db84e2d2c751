//! The sending end of a message.

use super::detection::Detector;
use super::packet::{Packet, PacketKind};
use super::paths::{Fate, Paths};
use super::requests::Requests;
use super::sleek::Known;
use super::window::Window;
use super::{CREDIT_UNIT, Config, Recovery};
use crate::cc::{
    self, Acked, Answer, Cause, CongestionControl, Controller, Departed, Hop, Marks, Outcome, Pace, SenderEvent,
};
use crate::spec::messages::Packets;
use crate::units::{Bytes, Span, Time};

/// A sender without credit and without packets in flight asks for some after so many timeouts, when credit for it must have been lost: the turns
/// of many senders take long, too. In uet-htsim it never asks.
const STARVED: u64 = 100;

/// The sending end: it is asked for the next packet when the line is free, and told what comes back.
#[derive(Debug)]
pub struct Sender {
    recovery: Recovery,
    detector: Detector,
    packets: Packets,
    header: Bytes,
    class: u8,
    control_class: u8,
    /// Most data in flight.
    most: u64,
    timeout: Span,
    control: Controller,
    needs: cc::Needs,
    window: Window,
    requests: Requests,
    paths: Option<Paths>,
    credit: Option<Granted>,
    /// A packet without data that goes before all others.
    errand: Option<PacketKind>,
    /// No packet before, for the sake of the rate.
    paced: Time,
    /// When it was last known that something arrived.
    progress: Time,
    /// When a timeout was last reported. What had left by then expires with it, however late.
    collapsed: Time,
    /// Packets sent for the first time.
    fresh: u64,
    /// Losses of what was sent before this packet are of one congestion.
    recover: u64,
    srtt: Option<Span>,
    counters: Counters,
    finished: Option<Time>,
}

/// What a sender has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent again.
    pub retransmits: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Packets whose payload was cut.
    pub cuts: u64,
}

/// The credit of a sender, in bytes of frames.
#[derive(Clone, Copy, Debug)]
struct Granted {
    /// Whether it has not heard from the receiver, and what it has left is what it may send without.
    is_first: bool,
    revokes: bool,
    most: u64,
    /// All that it was given, and what is left: less than nothing after a packet that took more.
    given: u64,
    left: i64,
    /// What its last packet asked for; a request says that again.
    asked: u64,
}

impl Sender {
    /// The sender of a message of `bytes` in `class` over `path`.
    pub fn new(
        config: &Config,
        packets: Packets,
        (class, bytes): (u8, Bytes),
        path: &cc::Path,
        control: Controller,
        paths: Option<Paths>,
    ) -> Sender {
        let product = path.product().count() as f64;
        let credit = config.credit.map(|credit| Granted {
            is_first: true,
            revokes: credit.revokes,
            most: (credit.most * product) as u64,
            given: 0,
            asked: 0,
            left: (credit.initial * product).max(1.0) as i64,
        });
        let needs = control.needs();
        // Source: uet-htsim, `uec.cpp` (the round trip in which one request goes is known to senders with a window)
        let between = if config.congestion_control.has_window() { path.round_trip } else { Span::ZERO };
        Sender {
            recovery: config.recovery,
            detector: Detector::new(config.detection, path),
            packets,
            header: packets.header_bytes + config.telemetry(),
            class,
            control_class: config.control_class,
            most: config.window_bytes.map_or(u64::MAX, Bytes::count),
            timeout: config.timeout_ps,
            control,
            needs,
            window: Window::new(bytes.count(), packets.payload_bytes.count()),
            requests: Requests::new(between),
            paths,
            credit,
            errand: None,
            paced: Time::ZERO,
            progress: Time::ZERO,
            collapsed: Time::ZERO,
            fresh: 0,
            recover: 0,
            srtt: None,
            counters: Counters::default(),
            finished: None,
        }
    }

    /// The class of its next packet: a request for credit has that of answers.
    pub fn class(&self) -> u8 {
        if self.errand == Some(PacketKind::Request) { self.control_class } else { self.class }
    }

    /// When it knew that all had arrived.
    pub fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// What it has counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Its congestion control.
    pub fn control(&self) -> &Controller {
        &self.control
    }

    /// Data in flight.
    pub fn flight(&self) -> Bytes {
        Bytes::new(self.window.flight())
    }

    /// Data of packet `number`.
    pub fn data_of(&self, number: u64) -> Bytes {
        Bytes::new(self.window.bytes_of(number))
    }

    /// When the next packet may go; [`Time::NEVER`] if something else has to happen first.
    #[inline]
    pub fn next_at(&self) -> Time {
        if self.errand.is_some() { Time::ZERO } else { self.next_data_at() }
    }

    #[inline]
    fn next_data_at(&self) -> Time {
        let Some(due) = self.due() else { return Time::NEVER };
        let flight = self.window.flight();
        let bytes = if let Due::Data(number) = due { self.window.bytes_of(number) } else { 0 };
        let window = self.control.window().count().min(self.most);
        // The rate bounds what a paced sender has beyond its window.
        let bytes = if self.control.pace() == Pace::AtOnce { bytes } else { 1 };
        let fits = flight == 0 || flight.saturating_add(bytes) <= window || self.is_repairing();
        let has_credit = self.credit.is_none_or(|credit| credit.left > 0);
        if fits && has_credit { self.paced } else { Time::NEVER }
    }

    /// What goes next: lost data, lost requests, new data.
    fn due(&self) -> Option<Due> {
        let again = self.requests.due().filter(|_| !self.window.has_lost());
        again.map(Due::Request).or_else(|| self.window.due().map(Due::Data))
    }

    /// Whether packets are to be sent again whatever the window.
    fn is_repairing(&self) -> bool {
        self.detector.is_recovering() && self.window.has_lost()
    }

    /// The next packet, if one may go at `now`, while so many messages of its host are `active`.
    pub fn poll_transmit(&mut self, now: Time, active: usize) -> Option<Packet> {
        if let Some(kind) = self.errand.take() {
            return Some(self.run(kind, now, active));
        }
        if self.next_data_at() > now {
            return None;
        }
        let number = match self.due()? {
            Due::Data(number) => number,
            Due::Request(number) => return Some(self.ask_again(now, active, number)),
        };
        let entropy = self.paths.as_mut().map_or(0, Paths::pick);
        let data = self.window.bytes_of(number);
        if self.window.flight() == 0 {
            self.progress = now;
        }
        self.window.send(number, now, entropy);
        let is_again = number < self.fresh;
        if is_again {
            self.counters.retransmits += 1;
        } else {
            self.fresh = number + 1;
        }
        let frame = self.header + Bytes::new(data);
        self.credit.iter_mut().for_each(|credit| credit.left -= frame.count() as i64);
        if let Pace::Rate { rate, .. } = self.control.pace() {
            self.paced = self.paced.max(now) + frame / rate;
        }
        if self.needs.packets {
            self.control.on_event(now, &SenderEvent::Sent(Departed { number: self.fresh * self.full(), frame }));
        }
        let asks = is_again || self.window.is_last() || self.next_data_at() == Time::NEVER;
        let from = self.wanted(active);
        Some(Packet { sent: now, entropy, asks, from, ..Packet::new(PacketKind::Data, number, self.class) })
    }

    /// A packet without data: a sender that waits for credit asks for it; a probe takes the way of data.
    fn run(&mut self, kind: PacketKind, now: Time, active: usize) -> Packet {
        let entropy = self.paths.as_mut().map_or(0, Paths::pick);
        let packet = match (kind, &self.credit) {
            (PacketKind::Request, Some(credit)) => {
                let from = credit.asked;
                Packet { from, asks: true, ..Packet::new(kind, self.requests.ask(now), self.control_class) }
            }
            _ => Packet { from: self.wanted(active), ..Packet::new(kind, self.window.base(), self.class) },
        };
        Packet { sent: now, entropy, ..packet }
    }

    /// A request that was lost goes again, as data does.
    fn ask_again(&mut self, now: Time, active: usize, number: u64) -> Packet {
        self.requests.send_again(now, number);
        self.counters.retransmits += 1;
        let header = self.header.count() as i64;
        self.credit.iter_mut().for_each(|credit| credit.left -= header);
        let entropy = self.paths.as_mut().map_or(0, Paths::pick);
        let from = self.wanted(active);
        Packet { sent: now, entropy, from, ..Packet::new(PacketKind::Request, number, self.class) }
    }

    fn full(&self) -> u64 {
        self.packets.payload_bytes.count()
    }

    /// The credit that it asks for, with all that it has got: its share of what all active ones may ask for, in whole units. Before it has heard
    /// from the receiver it asks for a packet at least.
    fn wanted(&mut self, active: usize) -> u64 {
        let Some(credit) = self.credit else { return 0 };
        let header = self.header.count();
        let frame = header + self.full();
        let (packets, data) = self.window.backlog();
        let backlog = (packets + self.requests.backlog()) * header + data;
        let window = (self.control.window().count() as f64 * frame as f64 / self.full() as f64) as u64;
        let ahead = backlog.min(window.saturating_add(frame)).min(credit.most.max(frame)) as i64 - credit.left;
        let least = if credit.is_first && backlog > 0 { frame as i64 } else { i64::MIN };
        let more = ahead.max(least) / active.max(1) as i64;
        let asked = credit.given.saturating_add_signed(more).next_multiple_of(CREDIT_UNIT);
        self.credit = Some(Granted { asked, ..credit });
        asked
    }

    /// What came back, with what ports wrote into the packet that it answers.
    pub fn handle(&mut self, now: Time, packet: &Packet, hops: &[Hop]) {
        if let Some(credit) = &mut self.credit {
            if std::mem::take(&mut credit.is_first) && credit.revokes {
                credit.left = credit.left.min(0);
            }
            if packet.kind == PacketKind::Credit {
                let more = packet.from.saturating_sub(credit.given);
                let most = credit.most.max((self.header + self.packets.payload_bytes).count()) as i64;
                credit.left = (credit.left + more as i64).min(most.max(credit.left));
                credit.given += more;
                return;
            }
        }
        if packet.kind == PacketKind::Heard {
            self.requests.arrive(packet.number);
        }
        let before = self.window.flight();
        let bytes = self.settle(packet);
        if bytes > 0 {
            self.progress = now;
        }
        let (outcome, fate) = match packet.kind {
            PacketKind::Cut => {
                self.counters.cuts += 1;
                _ = self.window.lose(packet.number, packet.sent);
                // All ways come together in the last queue.
                let fate = if packet.at_last_hop { Fate::Clean } else { Fate::Cut };
                (Outcome::Trimmed { at_last_hop: packet.at_last_hop }, fate)
            }
            PacketKind::GoBack => (Outcome::Refused, Fate::Lost),
            _ => (Outcome::Arrived, if packet.marked { Fate::Marked } else { Fate::Clean }),
        };
        if let Some(paths) = &mut self.paths {
            paths.learn(packet.entropy, fate);
        }
        let rtt = self.round_trip(now, packet);
        let lost = self.find_lost(now, packet);
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| Span::from_ps((7 * srtt.ps() + rtt.ps()) / 8)));
        if self.window.is_over() && self.requests.are_over() && self.finished.is_none() {
            self.finished = Some(now);
        }
        if self.needs.packets {
            let (number, next) = (packet.number * self.full(), self.fresh * self.full());
            let flight = Bytes::new(self.window.flight());
            let marked = packet.marked;
            let answer = Answer { number, next, bytes: Bytes::new(bytes), outcome, marked, rtt, flight, hops };
            return self.control.on_answer(now, &answer);
        }
        self.report(now, packet, bytes, before, lost || outcome != Outcome::Arrived);
    }

    /// Takes over what an answer says of arrivals; data of which that was not known.
    fn settle(&mut self, packet: &Packet) -> u64 {
        let mut bytes = self.window.arrive_until(packet.next);
        if self.recovery == Recovery::Selective {
            if packet.kind == PacketKind::Arrived {
                bytes += self.window.arrive(packet.number);
            }
            let mut arrived = packet.arrived;
            while arrived != 0 {
                bytes += self.window.arrive(packet.from + u64::from(arrived.trailing_zeros()));
                arrived &= arrived - 1;
            }
        }
        bytes
    }

    /// Goes back, or finds what was overtaken; whether anything is lost.
    fn find_lost(&mut self, now: Time, packet: &Packet) -> bool {
        if packet.kind == PacketKind::GoBack && packet.next < self.window.next() {
            self.window.go_back(packet.next);
            self.progress = now;
            return true;
        }
        let range = match &mut self.detector {
            Detector::Timeout => return false,
            Detector::Overtaken(overtaken) => overtaken.find(self.window.base(), self.window.highest()),
            Detector::Sleek(sleek) => {
                let probed = (packet.kind == PacketKind::Probed).then(|| now.saturating_since(packet.sent));
                if probed.is_none() && packet.kind != PacketKind::Arrived {
                    return false;
                }
                let known = Known {
                    packets: self.window.packets(),
                    base: self.window.base(),
                    next: self.window.next(),
                    early: self.window.early(),
                    is_repairing: self.window.has_lost(),
                    window: self.control.window().count().min(self.most),
                };
                sleek.on_answer(now, probed, &known)
            }
        };
        let before = self.window.flight();
        let paths = &mut self.paths;
        self.window.lose_all(range, |entropy| learn_loss(paths, entropy));
        self.window.flight() < before
    }

    /// The time from the departure of a packet until its answer. A probe is no measure of the empty path of data, because it is shorter.
    fn round_trip(&mut self, now: Time, packet: &Packet) -> Span {
        let rtt = now.saturating_since(packet.sent);
        match self.detector.sleek() {
            Some(sleek) if packet.kind == PacketKind::Probed => rtt.max(sleek.base()),
            Some(sleek) => {
                sleek.measure(rtt);
                rtt
            }
            None => rtt,
        }
    }

    /// A controller that counts windows is told as by TCP.
    fn report(&mut self, now: Time, packet: &Packet, bytes: u64, before: u64, lost: bool) {
        let (number, next) = (self.window.base() * self.full(), self.fresh * self.full());
        let counted = Bytes::new(bytes);
        if self.needs.marks {
            let marked = if packet.marked { counted } else { Bytes::ZERO };
            let marks =
                Marks { counted, marked, is_echo: packet.marked, number, next, srtt: self.srtt, may_reduce: true };
            self.control.on_event(now, &SenderEvent::Marks(marks));
        }
        let is_new = number >= self.recover;
        let by_mark = packet.marked && !self.needs.marks;
        if is_new && (lost || by_mark) {
            self.recover = next;
            let (flight, cause) = (Bytes::new(before), if lost { Cause::Loss } else { Cause::EcnEcho });
            self.control.on_event(now, &SenderEvent::Congestion { cause, flight });
            let window = self.control.allowance().threshold.min(self.control.window());
            self.control.on_event(now, &SenderEvent::Recovered { window });
        }
        let acked = Acked {
            bytes: counted,
            number,
            next,
            prior_flight: Bytes::new(before),
            srtt: self.srtt,
            rtt: Some(now.saturating_since(packet.sent)).filter(|_| packet.kind == PacketKind::Arrived),
            may_grow: !lost,
        };
        self.control.on_event(now, &SenderEvent::Ack(acked));
    }

    /// When [`Sender::handle_timeout`] is due.
    pub fn poll_timeout(&mut self) -> Time {
        if self.finished.is_some() {
            return Time::NEVER;
        }
        let control = if self.needs.timer { self.control.poll_timeout() } else { Time::NEVER };
        let probe = self.detector.sleek().map_or(Time::NEVER, |sleek| sleek.poll_timeout());
        self.expires().min(control).min(probe)
    }

    fn expires(&mut self) -> Time {
        let has_none = self.credit.is_some_and(|credit| credit.left <= 0);
        if has_none && self.is_quiet() && self.due().is_some() {
            return self.progress + self.timeout * STARVED;
        }
        let since = match self.recovery {
            Recovery::Selective => self.window.oldest().into_iter().chain(self.requests.oldest()).min(),
            _ => self.window.oldest().map(|_| self.progress),
        };
        since.map_or(Time::NEVER, |since| since + self.timeout)
    }

    /// Whether nothing is in flight.
    fn is_quiet(&self) -> bool {
        self.window.flight() == 0 && self.requests.oldest().is_none()
    }

    /// What is due by now: what was not answered is sent again. A sender that has no credit asks for some.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.needs.timer && self.control.poll_timeout() <= now {
            self.control.on_event(now, &SenderEvent::Timer);
        }
        if self.detector.sleek().is_some_and(|sleek| sleek.takes_probe(now)) {
            self.errand = self.errand.or(Some(PacketKind::Probe));
        }
        if self.expires() > now {
            return;
        }
        self.counters.timeouts += 1;
        let is_new = self.window.oldest().is_none_or(|at| at >= self.collapsed);
        let (is_quiet, before) = (self.is_quiet(), self.window.flight());
        if is_quiet {
            self.progress = now;
        } else if self.recovery == Recovery::Selective {
            let until = Time::from_ps(now.ps().saturating_sub(self.timeout.ps()));
            let paths = &mut self.paths;
            self.window.expire(until, |entropy| learn_loss(paths, entropy));
            self.requests.expire(until);
            self.progress = now;
        } else {
            let whole = self.recovery == Recovery::GoBackZero;
            self.window.go_back(if whole { 0 } else { self.window.base() });
            self.progress = now;
        }
        // A request is no data: no window answers its loss.
        if is_quiet || self.window.flight() < before {
            self.collapse(now, is_new);
        }
        let starves = self.credit.is_some() && self.next_data_at() == Time::NEVER && self.due().is_some();
        if starves && self.requests.may_ask(now) {
            self.errand = Some(PacketKind::Request);
        } else if self.errand == Some(PacketKind::Request) {
            self.errand = None;
        }
    }

    /// The congestion control hears of a timeout, once for what was in flight at the time of the last one.
    fn collapse(&mut self, now: Time, is_new: bool) {
        if !self.needs.packets && is_new {
            let flight = Bytes::new(self.window.flight());
            self.control.on_event(now, &SenderEvent::Congestion { cause: Cause::Timeout, flight });
        }
        if self.needs.packets || is_new {
            self.control.on_event(now, &SenderEvent::Collapse);
            self.collapsed = now;
        }
    }
}

/// What a sender sends next, by its number.
#[derive(Clone, Copy, Debug)]
enum Due {
    Data(u64),
    Request(u64),
}

fn learn_loss(paths: &mut Option<Paths>, entropy: u16) {
    if let Some(paths) = paths {
        paths.learn(entropy, Fate::Lost);
    }
}
