//! Messages in numbered packets: their ends as agents, and the adapters of hosts, which serve their messages in turn.

use std::collections::{BTreeMap, VecDeque};

use weir_core::cc::Path;
use weir_core::messages::Message;
use weir_core::queue::Lane;
use weir_core::rdma::{Config, Packet, PacketKind, Paths, Receiver, Sender};
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
    /// Packets of credit at a time, and what one of them takes of the receiver's line.
    credit: Option<(u32, Span)>,
    /// Whether the receiver and the sender wait for their turns at the adapter.
    has_asked: [bool; 2],
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
            (credit.packets, Span::from_ps((time.ps() as f64 / credit.share) as u64))
        });
        RdmaEnds {
            flow,
            sender: Sender::new(config, packets, (class, message.bytes), &path, control, paths),
            receiver: Receiver::new(config, packets, message.bytes),
            header: config.frame_of(packets, Bytes::ZERO),
            answer: config.answer(),
            credit,
            has_asked: [false; 2],
        }
    }

    /// An end is told of a frame, or that its time has come.
    pub(crate) fn act(&mut self, fabric: &mut Fabric<'_>, sends: bool, frame: Option<Received>) {
        let now = fabric.now();
        let packet = frame.and_then(|frame| if let Body::Rdma(packet) = frame.body { Some(packet) } else { None });
        if sends {
            if let Some(packet) = packet {
                self.sender.handle(now, &packet, fabric.trail.as_ref().map_or(&[], Trail::hops));
            }
            self.sender.handle_timeout(now);
        } else if let Some(packet) = packet {
            self.receiver.handle(now, &packet);
            while let Some(answer) = self.receiver.poll_transmit() {
                fabric.send_loaded(self.flow + 1, self.answer, Lane::Data, Body::Rdma(answer));
            }
        }
    }

    /// When the sender is to be told that its time has come; not for a packet that waits for its turn.
    pub(crate) fn next(&mut self) -> Time {
        let timeout = self.sender.poll_timeout();
        if self.has_asked[1] { timeout } else { timeout.min(self.sender.next_at()) }
    }

    /// What it asks of the adapter, if it has not done so: the sender, to send a packet; the receiver, to give credit.
    pub(crate) fn wish(&mut self, now: Time, sends: bool) -> Wish {
        let (wish, is_so) = match sends {
            true => (Wish::Packet, self.sender.next_at() <= now),
            false => (Wish::Credit, self.credit.is_some() && self.receiver.wants_credit()),
        };
        let has_asked = &mut self.has_asked[usize::from(sends)];
        if !is_so || std::mem::replace(has_asked, true) {
            return Wish::Nothing;
        }
        wish
    }

    /// Sends a packet, if one may go.
    pub(crate) fn send(&mut self, fabric: &mut Fabric<'_>) {
        self.has_asked[1] = false;
        if let Some(packet) = self.sender.poll_transmit(fabric.now()) {
            let size = match packet.kind {
                PacketKind::Data => self.header + self.sender.data_of(packet.number),
                _ => self.answer,
            };
            fabric.send_loaded(self.flow, size, Lane::Data, Body::Rdma(packet));
        }
    }

    /// Gives credit to the sender; how long the receiver's line takes for what that is good for.
    pub(crate) fn give_credit(&mut self, fabric: &mut Fabric<'_>) -> Span {
        self.has_asked[0] = false;
        let Some((packets, time)) = self.credit.filter(|_| self.receiver.wants_credit()) else { return Span::ZERO };
        let (packet, given): (Packet, u64) = self.receiver.give_credit(packets);
        fabric.send_loaded(self.flow + 1, self.answer, Lane::Data, Body::Rdma(packet));
        time * given
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
        row.delivered = self.receiver.finished().unwrap_or(Time::NEVER);
        row.acknowledged = self.sender.finished().unwrap_or(Time::NEVER);
        (row.retransmits, row.timeouts) = (narrow(counters.retransmits), narrow(counters.timeouts));
    }
}

/// What a message asks of the adapter of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    Packet,
    Credit,
}

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
    of_host: BTreeMap<u32, Adapter>,
}

/// The adapter of a host: its messages take turns.
#[derive(Debug)]
struct Adapter {
    /// Places of messages that may send a packet, and of those whose senders want credit.
    sending: VecDeque<u32>,
    credited: VecDeque<u32>,
    /// No credit before.
    credit: Time,
    /// When it is looked at next, as far as that is entered.
    due: Time,
}

impl Adapters {
    fn of(&mut self, host: u32) -> &mut Adapter {
        let new =
            || Adapter { sending: VecDeque::new(), credited: VecDeque::new(), credit: Time::ZERO, due: Time::NEVER };
        self.of_host.entry(host).or_insert_with(new)
    }

    /// The message at `place` asks for something of the adapter of `host`.
    pub(crate) fn enter(&mut self, host: u32, place: u32, wish: Wish) {
        match wish {
            Wish::Nothing => {}
            Wish::Packet => self.of(host).sending.push_back(place),
            Wish::Credit => self.of(host).credited.push_back(place),
        }
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
        let adapter = self.of_host.get_mut(&host)?;
        let mut later = Time::NEVER;
        if !adapter.credited.is_empty() {
            if adapter.credit <= now {
                return adapter.credited.pop_front().map(Due::Credit);
            }
            later = adapter.credit;
        }
        if !adapter.sending.is_empty() {
            let free = fabric.free_from(host);
            if free <= now {
                return adapter.sending.pop_front().map(Due::Packet);
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

/// Frames in whose time an adapter looks again at a line that is held.
const LOOK_AGAIN: Bytes = Bytes::new(3000);

impl Fabric<'_> {
    /// When the line of `host` is free for a packet, as far as is known now.
    fn free_from(&mut self, host: u32) -> Time {
        let (port, now) = (self.plan.open.outlet(host), self.now());
        let is_host = self.links[port as usize].role == Role::Host;
        if is_host {
            self.look_host(port);
        }
        let control = self.control.as_mut().filter(|_| is_host);
        let waiting = control.and_then(|control| control.host(port)).map_or(0, |host| host.load.bytes());
        let line = &self.lines[port as usize].port;
        let free = line.start_of_next(now);
        if waiting == 0 && (!line.is_paused() || line.waiting_frames() == 0) {
            return free;
        }
        let rate = self.plan.topology.ports[port as usize].link.rate_bps;
        if line.free_at() > now && !line.is_paused() {
            // What waits at the host goes first, as far as nothing holds it.
            return line.free_at() + Bytes::new(waiting) / rate;
        }
        // Nobody says when it goes on.
        line.free_at().max(now + LOOK_AGAIN / rate)
    }
}
