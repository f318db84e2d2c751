//! Messages begin: with a connection, or as frames alone.

use std::rc::Rc;

use weir_core::cc::Path;
use weir_core::messages::Message;
use weir_core::queue::Lane;
use weir_core::rdma::Adaption;
use weir_core::rng::mix;
use weir_core::spec::messages::{Balancing, Messages as Spec, Packets};
use weir_core::tcp::{Receiver, Sender};
use weir_core::units::{Bytes, Span, Time};

use super::empty::{Empty, empty_of};
use super::groups::{Ends, Group, Slot};
use super::{Messages, Told};
use crate::fabric::Fabric;
use crate::rdma::RdmaEnds;
use crate::tcp::{TcpReceiver, TcpSender};
use crate::timer::Timer;
use crate::totals::MessageRow;

impl Messages {
    pub(super) fn begin(
        &mut self,
        fabric: &mut Fabric<'_>,
        now: Time,
        group: u32,
        spec: &Spec,
        message: Message,
        task: u32,
    ) {
        let Group { totals, flow, live, pairs, .. } = &mut self.groups[group as usize];
        let number = totals.arrived;
        totals.arrived += 1;
        totals.arrived_bytes += message.bytes.count();
        *live += 1;
        totals.most_live = totals.most_live.max(*live);
        let pair = pairs.get(&(message.from, message.to)).copied();
        let Empty { delivery, round_trip } = match pair {
            Some(flow) => {
                Empty { delivery: empty_of(fabric.plan, flow, spec.packets, message.bytes), round_trip: Span::ZERO }
            }
            None => fabric.empty(spec, message),
        };
        let row = MessageRow {
            traffic: totals.traffic,
            message: number,
            from: message.from,
            to: message.to,
            bytes: message.bytes,
            start: now,
            ideal: delivery,
            delivered: None,
            acknowledged: None,
            retransmits: 0,
            timeouts: 0,
        };
        let traffic = &fabric.plan.spec.traffic[totals.traffic as usize];
        let chance = |what: &str| self.seed.stream(&format!("messages/{}/{number}/{what}", traffic.name));
        let ends = match (&spec.config, &spec.rdma) {
            (Some(config), _) => {
                let control = fabric.plan.message_controller(config, Path::PLAIN, chance("sender"));
                let (mut sender, mut receiver) = (Sender::new(config, control), Receiver::new(config));
                if spec.handshake {
                    sender.open(now);
                } else {
                    sender.resume(now, &mut receiver, round_trip);
                }
                sender.write(message.bytes);
                sender.close();
                let ends = (TcpSender::of_message(sender, *flow), TcpReceiver::of_message(receiver, *flow));
                Some(Ends::Tcp(Box::new(ends)))
            }
            (None, Some(config)) => {
                if let Some(oversubscription) = config.credit.and_then(|credit| credit.oversubscription) {
                    let chance = || self.seed.stream(&format!("messages/{}/credit/{}", traffic.name, message.to));
                    let round_trip = config.round_trip_ps.unwrap_or(round_trip);
                    let make = || Adaption::new(oversubscription, round_trip, now, chance());
                    self.adapters.adapt(message.to, *flow, make);
                }
                let flow = (*flow, traffic.class);
                let ends = RdmaEnds::new(fabric.plan, spec, config, message, round_trip, flow, chance);
                Some(Ends::Rdma(Box::new(ends)))
            }
            (None, None) => None,
        };
        let slot = Slot { group, row, ends, is_live: true, task };
        if slot.ends.is_none() {
            return self.hand_over(fabric, slot, pair, spec.packets);
        }
        let place = self.place(fabric, slot);
        let hash = |end: u64| mix(self.salt ^ u64::from(group) << 48 ^ number << 1 ^ end) as u32;
        // What is sent to the receiver is sent to end 0.
        fabric.set_ends(place, [(message.to, hash(0)), (message.from, hash(1))], spec.balancing);
        self.act(fabric, 2 * place, Told::Begin);
    }

    /// A place for a message; frames of the one that had it before are no more under way.
    pub(super) fn place(&mut self, fabric: &Fabric<'_>, slot: Slot) -> u32 {
        if let Some(place) = self.idle.front().copied().filter(|&place| fabric.under_way(place) == 0) {
            self.idle.pop_front();
            self.slots[place as usize] = slot;
            return place;
        }
        self.slots.push(slot);
        self.timers.extend([Timer::IDLE; 2]);
        self.slots.len() as u32 - 1
    }

    /// All frames of a message without a connection are handed to its host.
    fn hand_over(&mut self, fabric: &mut Fabric<'_>, slot: Slot, flow: Option<u32>, packets: Packets) {
        let (bytes, now) = (slot.row.bytes.count(), fabric.now());
        let place = self.place(fabric, slot);
        let Some(flow) = flow else { return };
        fabric.watch.get_or_insert_default().bulk.get_or_insert_with(|| Rc::clone(&self.bulk));
        let full = packets.payload_bytes.count();
        self.bulk.borrow_mut().begin(flow, place, now, bytes.div_ceil(full));
        let mut left = bytes;
        while left > 0 {
            let data = left.min(full);
            fabric.send(flow, Bytes::new(data) + packets.header_bytes, Lane::Data);
            left -= data;
        }
    }
}

impl Fabric<'_> {
    /// The ends of connection `number` are those from now on: what is sent to the receiver, and what comes back.
    fn set_ends(&mut self, number: u32, ends: [(u32, u32); 2], balancing: Balancing) {
        if let Some(open) = &mut self.open {
            open.place(number, ends, balancing);
            self.frames.make_room(number);
            if open.is_full() {
                self.patience = 0; // the run ends
            }
        }
    }

    /// An end of connection `number` acts.
    #[inline]
    pub(super) fn speak(&mut self, number: u32) {
        if let Some(open) = &mut self.open {
            open.speaking = number;
        }
    }

    /// Frames of connection `number` under way.
    fn under_way(&self, number: u32) -> u32 {
        self.frames.under_way(number)
    }
}
