//! Messages in numbered packets: their ends as agents, and the adapters of hosts, which serve their messages in turn.

use std::collections::{BTreeMap, VecDeque};

use weir_core::cc::Path;
use weir_core::messages::Message;
use weir_core::queue::Lane;
use weir_core::rdma::{Adaption, CREDIT_UNIT, Config, Demand, Packet, PacketKind, Paths, Receiver, Sender};
use weir_core::rng::Stream;
use weir_core::spec::messages::Messages as Spec;
use weir_core::units::{Bytes, Span, Time};

use crate::fabric::Fabric;
use crate::frames::{Body, Received, Trail};
use crate::line::Role;
use crate::plan::Plan;
use crate::totals::MessageRow;

/// The two ends of a message.
#[derive(Debug)]
pub(crate) struct RdmaEnds {
    /// The flow of its data; answers come in the next.
    flow: u32,
    sender: Sender,
    receiver: Receiver,
    /// What a packet has beyond its data, and the frame of an answer.
    header: Bytes,
    answer: Bytes,
    /// Packets of credit at a time, and the rate at which the receiver's line takes them, bytes of frames per second.
    credit: Option<(f64, f64)>,
    /// Whether credit adapts to the network.
    adapts: bool,
    /// The class in which the sender waits for its turn at the adapter, if it does, and whether the receiver waits there to give credit.
    asked: Option<u8>,
    has_turn: bool,
}

impl RdmaEnds {
    /// The ends of `message` in a class, with `flow` for its data; `round_trip` is that of the empty network, `chance` is named.
    pub(crate) fn new(
        plan: &Plan,
        spec: &Spec,
        config: &Config,
        message: Message,
        round_trip: Span,
        (flow, class): (u32, u8),
        chance: impl Fn(&str) -> Stream,
    ) -> RdmaEnds {
        let packets = spec.packets;
        let link = |host: u32| plan.topology.ports[plan.open.outlet(host) as usize].link;
        let frame = config.frame_of(packets, packets.payload_bytes);
        let path = Path {
            line_rate: link(message.from).rate_bps,
            round_trip: config.round_trip_ps.unwrap_or(round_trip),
            packet: (packets.payload_bytes, frame),
        };
        let connection = config.connection(packets, &path);
        let control = plan.message_controller(&connection, path, chance("sender"));
        let paths = config.paths.map(|choice| Paths::new(choice, chance("paths")));
        let credit = config.credit.map(|credit| {
            let near = link(message.to);
            let time = (frame + near.framing_bytes) / near.rate_bps;
            (credit.packets, frame.count() as f64 * credit.share / time.as_secs_f64())
        });
        RdmaEnds {
            flow,
            sender: Sender::new(config, packets, (class, message.bytes), &path, control, paths),
            receiver: Receiver::new(config, packets, message.bytes, path.product()),
            header: config.frame_of(packets, Bytes::ZERO),
            answer: config.answer(),
            credit,
            adapts: config.credit.is_some_and(|credit| credit.oversubscription.is_some()),
            asked: None,
            has_turn: false,
        }
    }

    /// An end is told of a frame, or that its time has come.
    pub(crate) fn act(
        &mut self,
        fabric: &mut Fabric<'_>,
        sends: bool,
        frame: Option<Received>,
        adaption: Option<&mut Adaption>,
    ) {
        let now = fabric.now();
        let packet = frame.and_then(|frame| if let Body::Rdma(packet) = frame.body { Some(packet) } else { None });
        if sends {
            if let Some(packet) = packet {
                self.sender.handle(now, &packet, fabric.trail.as_ref().map_or(&[], Trail::hops));
            }
            self.sender.handle_timeout(now);
        } else if let Some(packet) = packet {
            adaption.into_iter().for_each(|adaption| adaption.count(now, &packet));
            self.receiver.handle(now, &packet);
            while let Some(answer) = self.receiver.poll_transmit() {
                fabric.send_loaded(self.flow + 1, self.answer, Lane::Data, Body::Rdma(answer));
            }
        }
    }

    /// When the sender is to be told that its time has come; not for a packet that waits for its turn.
    pub(crate) fn next(&mut self) -> Time {
        let timeout = self.sender.poll_timeout();
        if self.asked.is_some() { timeout } else { timeout.min(self.sender.next_at()) }
    }

    /// What it asks of the adapter, if it has not done so: the sender, to send a packet; the receiver, to give credit.
    pub(crate) fn wish(&mut self, now: Time, sends: bool) -> Wish {
        if sends {
            let class = Some(self.sender.class()).filter(|_| self.sender.next_at() <= now);
            return match (class, self.asked) {
                (Some(class), asked) if asked != Some(class) => {
                    self.asked = Some(class);
                    Wish::Packet { class, instead: asked.is_some() }
                }
                _ => Wish::Nothing,
            };
        }
        if self.credit.is_none() || self.has_turn || self.receiver.demand() != Demand::Urgent {
            return Wish::Nothing;
        }
        self.wish_again()
    }

    /// What the receiver asks for when it has given credit.
    pub(crate) fn wish_again(&mut self) -> Wish {
        let demand = self.receiver.demand();
        self.has_turn = demand == Demand::Urgent;
        match demand {
            Demand::Nothing => Wish::Nothing,
            Demand::Idle => Wish::IdleCredit,
            Demand::Urgent => Wish::Credit,
        }
    }

    /// Sends a packet, if one may go; so many messages of its host are active.
    pub(crate) fn send(&mut self, fabric: &mut Fabric<'_>, active: usize) {
        self.asked = None;
        if let Some(packet) = self.sender.poll_transmit(fabric.now(), active) {
            let size = match packet.kind {
                PacketKind::Data => self.header + self.sender.data_of(packet.number),
                PacketKind::Probe => self.header,
                _ => self.answer,
            };
            fabric.send_loaded(self.flow, size, Lane::Data, Body::Rdma(packet));
        }
    }

    /// Gives credit to the sender; how long the receiver's line takes for what that is good for, in whole picoseconds for each unit.
    /// Without anything to give it takes the time of [`LEAST_CREDIT`].
    ///
    /// Source: uet-htsim, `uec.cpp` (time per quantum)
    pub(crate) fn give_credit(&mut self, fabric: &mut Fabric<'_>, adaption: Option<&mut Adaption>) -> Span {
        let Some((packets, rate)) = self.credit else { return Span::ZERO };
        let (packet, given): (Packet, Bytes) = self.receiver.give_credit(packets);
        fabric.send_loaded(self.flow + 1, self.answer, Lane::Data, Body::Rdma(packet));
        let bytes = if given == Bytes::ZERO { LEAST_CREDIT } else { given };
        let share = adaption.map_or(1.0, |adaption| adaption.share(fabric.now()));
        let unit = (CREDIT_UNIT as f64 / (rate * share) * 1e12) as u64;
        Span::from_ps(unit * (bytes.count() / CREDIT_UNIT))
    }

    /// Whether the sender knows that all has arrived.
    pub(crate) fn is_over(&self) -> bool {
        self.sender.finished().is_some()
    }

    /// Whether all has arrived.
    pub(crate) fn has_all(&self) -> bool {
        self.receiver.finished().is_some()
    }

    /// Writes down what became of its message.
    pub(crate) fn note_in(&self, row: &mut MessageRow) {
        let counters = self.sender.counters();
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        row.acknowledged = self.sender.finished();
        (row.retransmits, row.timeouts) = (narrow(counters.retransmits), narrow(counters.timeouts));
    }
}

/// What a message asks of the adapter of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    /// To send a packet of a class, perhaps instead of one of another class.
    Packet {
        class: u8,
        instead: bool,
    },
    Credit,
    /// Credit, if nobody else wants any.
    IdleCredit,
}

/// Source: uet-htsim, `uec.cpp` (a pull without credit)
const LEAST_CREDIT: Bytes = Bytes::new(1024);

/// What an adapter does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A packet of the message at this place.
    Packet(u32),
    /// Credit for it.
    Credit(u32),
    /// Nothing before this time.
    Later(Time),
}

/// The adapters of hosts.
#[derive(Debug, Default)]
pub(crate) struct Adapters {
    /// By node; of those that have sent or received.
    of_host: Vec<Option<Box<Adapter>>>,
}

/// The adapter of a host: its messages take turns.
#[derive(Debug, Default)]
struct Adapter {
    /// Places of messages that may send a packet, each with its class, and of those whose senders want credit.
    sending: VecDeque<(u32, u8)>,
    credited: VecDeque<u32>,
    /// Places of those that get credit when nobody wants any, once more after each turn. Source: uet-htsim, `uec.cpp`
    idle: VecDeque<u32>,
    /// No credit before.
    credit: Time,
    /// When it is looked at next, as far as that is entered.
    due: Time,
    /// By flows whose receivers adapt their credit: one for all messages of an entry of traffic.
    adaptions: BTreeMap<u32, Adaption>,
}

impl Adapters {
    fn of(&mut self, host: u32) -> &mut Adapter {
        let place = host as usize;
        if place >= self.of_host.len() {
            self.of_host.resize_with(place + 1, || None);
        }
        self.of_host[place].get_or_insert_with(|| Box::new(Adapter { due: Time::NEVER, ..Adapter::default() }))
    }

    fn known(&mut self, host: u32) -> Option<&mut Adapter> {
        self.of_host.get_mut(host as usize)?.as_deref_mut()
    }

    /// The message at `place` asks for something of the adapter of `host`.
    pub(crate) fn enter(&mut self, host: u32, place: u32, wish: Wish) {
        match wish {
            Wish::Nothing => {}
            Wish::Packet { class, instead } => {
                let sending = &mut self.of(host).sending;
                if instead {
                    sending.retain(|&(other, _)| other != place);
                }
                sending.push_back((place, class));
            }
            Wish::Credit => self.of(host).credited.push_back(place),
            Wish::IdleCredit => self.of(host).idle.push_back(place),
        }
    }

    /// The message at `place` is over: `host` gives it no more credit.
    pub(crate) fn leave(&mut self, host: u32, place: u32) {
        if let Some(adapter) = self.known(host) {
            adapter.credited.retain(|&other| other != place);
            adapter.idle.retain(|&other| other != place);
        }
    }

    /// How many messages of `host` wait for their turns to send.
    pub(crate) fn active(&mut self, host: u32) -> usize {
        self.of(host).sending.len()
    }

    /// Credit of `host` for messages with this flow adapts; `make` says how, if that is new.
    pub(crate) fn adapt(&mut self, host: u32, flow: u32, make: impl FnOnce() -> Adaption) {
        self.of(host).adaptions.entry(flow).or_insert_with(make);
    }

    /// What sets the credit that `host` gives to the sender of `ends`, where it adapts.
    pub(crate) fn adaption(&mut self, host: u32, ends: &RdmaEnds) -> Option<&mut Adaption> {
        if !ends.adapts {
            return None;
        }
        self.known(host)?.adaptions.get_mut(&ends.flow)
    }

    /// No credit is given at `host` before `until`.
    pub(crate) fn pause_credit(&mut self, host: u32, until: Time) {
        self.of(host).credit = until;
    }

    /// The time `at` has come that was entered for `host`.
    pub(crate) fn wake(&mut self, host: u32, at: Time) {
        let adapter = self.of(host);
        if adapter.due == at {
            adapter.due = Time::NEVER;
        }
    }

    /// What the adapter of `host` does next, if anything.
    pub(crate) fn next(&mut self, fabric: &mut Fabric<'_>, host: u32) -> Option<Due> {
        let now = fabric.now();
        let adapter = self.known(host)?;
        let mut later = Time::NEVER;
        if !(adapter.credited.is_empty() && adapter.idle.is_empty()) {
            if adapter.credit <= now {
                return adapter.credited.pop_front().or_else(|| adapter.idle.pop_front()).map(Due::Credit);
            }
            later = adapter.credit;
        }
        if !adapter.sending.is_empty() {
            let (turn, free) = fabric.next_turn(host, &adapter.sending);
            if free <= now {
                return adapter.sending.remove(turn).map(|(place, _)| Due::Packet(place));
            }
            later = later.min(free);
        }
        if later >= adapter.due {
            return None;
        }
        adapter.due = later;
        Some(Due::Later(later))
    }
}

/// Bytes in whose time an adapter looks again at a line that is held.
const LOOK_AGAIN: Bytes = Bytes::new(3000);

impl Fabric<'_> {
    /// Which of the messages at `host` has its turn to send, and when the line is free for its packet, as far as is known now.
    ///
    /// A class that is held has no turn while frames of it wait at the host: its messages keep no others waiting. If all are held, the first
    /// stands for them.
    fn next_turn(&mut self, host: u32, sending: &VecDeque<(u32, u8)>) -> (usize, Time) {
        let (port, now) = (self.plan.open.outlet(host), self.now());
        let is_host = self.links[port as usize].role == Role::Host;
        if is_host {
            self.look_host(port);
        }
        let (mut turn, mut waiting) = (0, 0);
        let control = self.control.as_mut().filter(|_| is_host);
        if let Some(host) = control.and_then(|control| control.host(port)) {
            waiting = host.load.bytes();
            let (back, bytes) = host.held_back();
            if let Some(other) = sending.iter().position(|&(_, class)| !back.contains(class)) {
                (turn, waiting) = (other, waiting - bytes);
            }
        }
        let line = &self.lines[port as usize].port;
        let free = line.start_of_next(now);
        if waiting == 0 && (!line.is_paused() || line.waiting_frames() == 0) {
            return (turn, free);
        }
        let rate = self.plan.topology.ports[port as usize].link.rate_bps;
        if line.free_at() > now && !line.is_paused() {
            // What waits at the host goes first, as far as nothing holds it.
            return (turn, line.free_at() + Bytes::new(waiting) / rate);
        }
        // Nobody says when it goes on.
        (turn, line.free_at().max(now + LOOK_AGAIN / rate))
    }
}
