//! The way of a frame over plain ports: it is offered, waits, is sent, arrives, is delivered.

use weir_core::queue::{Lane, Offer};
use weir_core::units::{Bytes, Span, Time};

use super::{Fabric, NOBODY};
use crate::frames::{Frame, FrameId, Kind, NO_END, NO_FRAME, Received};
use crate::line::Role;
use crate::route::ARRIVED;
use crate::route::{ASK, LOST, OPEN};
use crate::totals::DropCause;

impl Fabric<'_> {
    /// A frame arrives at a port.
    #[inline(always)]
    pub(crate) fn offer(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        if self.links[port as usize].noted {
            return self.look_and_offer(port, id, size, lane);
        }
        _ = self.offer_plain(port, id, size, lane);
    }

    /// The same, where there is something to look at first: an interval has ended, or the port is more than a plain one.
    #[cold]
    #[inline(never)]
    fn look_and_offer(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        match self.links[port as usize].role {
            Role::Switch => self.offer_switch(port, id, size, lane),
            Role::Host => self.offer_host(port, id, size, lane),
            Role::Marking => self.offer_marking(port, id, size, lane),
            Role::Plain | Role::Fed | Role::Unkept => {
                self.look(port);
                _ = self.offer_plain(port, id, size, lane);
            }
        }
    }

    /// The same, where the queue marks frames that join it.
    #[inline(always)]
    fn offer_marking(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        self.look(port);
        let is_taken = self.offer_plain(port, id, size, lane);
        let line = &self.lines[port as usize];
        let waiting = line.port.waiting_bytes();
        if waiting > line.unmarked && is_taken && lane == Lane::Data {
            self.mark_by_chance(port, id, waiting);
        }
    }

    /// A frame arrives at a plain port; whether it is not dropped.
    #[inline(always)]
    fn offer_plain(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) -> bool {
        let (line, link) = (&mut self.lines[port as usize], &mut self.links[port as usize]);
        if lane == Lane::Control && line.port.is_ahead() {
            link.keep(&mut line.port, &mut self.frames, self.now);
        }
        match line.port.offer(self.now, id, size, lane) {
            Offer::Sent { end } => {
                let arrives = end + line.lag;
                if link.append(&mut self.frames, id, arrives) {
                    self.agenda.push(arrives, self.ports + port);
                }
            }
            Offer::Waits => {
                if let Some(due) = link.arm(line.port.due()) {
                    self.agenda.push(due, port);
                }
            }
            Offer::Dropped => {
                self.drop_frame(id, DropCause::QueueFull);
                return false;
            }
        }
        true
    }

    /// The port is about to be touched: writes the intervals that ended.
    #[cold]
    pub(crate) fn look(&mut self, port: u32) {
        let (line, now) = (&mut self.lines[port as usize], self.now);
        match self.links[port as usize].role {
            Role::Host => self.look_host(port),
            Role::Switch => _ = self.look_switch(port),
            Role::Plain | Role::Marking | Role::Fed | Role::Unkept if line.boundary <= now => {
                line.boundary = self.port_probes.mark(port, now, &mut line.port);
            }
            Role::Plain | Role::Marking | Role::Fed | Role::Unkept => {}
        }
    }

    #[inline]
    pub(crate) fn drop_frame(&mut self, id: FrameId, cause: DropCause) {
        self.drops.count(self.frames[id].leg, cause);
        self.frames.free(id);
    }

    /// The transmitter of `port` is free and something waits.
    #[inline(always)]
    pub(super) fn wake(&mut self, port: u32) {
        if self.links[port as usize].noted {
            return self.look_and_wake(port);
        }
        self.wake_plain(port);
    }

    /// The same, where there is something to look at first.
    #[cold]
    #[inline(never)]
    fn look_and_wake(&mut self, port: u32) {
        if self.links[port as usize].role == Role::Switch {
            return self.serve_switch(port);
        }
        self.look(port);
        self.wake_plain(port);
    }

    /// The transmitter of a plain port is free.
    #[inline(always)]
    fn wake_plain(&mut self, port: u32) {
        let (line, link) = (&mut self.lines[port as usize], &mut self.links[port as usize]);
        link.armed = false;
        if let Some(sent) = line.port.wake(self.now) {
            if sent.lane == Lane::Control {
                self.set_out(port, sent.handle, sent.end);
                return self.arm(port);
            }
            let arrives = sent.end + line.lag;
            if link.append(&mut self.frames, sent.handle, arrives) {
                self.agenda.push(arrives, self.ports + port);
            }
        }
        if let Some(due) = link.arm(line.port.due()) {
            self.agenda.push(due, port);
        }
    }

    /// The transmission of a frame begins, and ends at `end`.
    #[inline(always)]
    pub(crate) fn launch(&mut self, port: u32, id: FrameId, end: Time) {
        let arrives = end + self.lines[port as usize].lag;
        if self.links[port as usize].append(&mut self.frames, id, arrives) {
            self.agenda.push(arrives, self.ports + port);
        }
    }

    /// The first frame in flight behind `port` has arrived.
    #[inline(always)]
    pub(super) fn arrive(&mut self, port: u32) -> Option<u32> {
        let link = &mut self.links[port as usize];
        if link.role == Role::Host {
            return self.arrive_from_host(port);
        }
        let id = link.head;
        if id == NO_FRAME {
            self.pull(port);
            return None;
        }
        let frame = &mut self.frames[id];
        frame.leg = frame.leg.wrapping_add(1);
        let (next, then, leg, size, lane) = (frame.next, frame.then, frame.leg, frame.size(), frame.lane);
        link.head = next;
        if next != NO_FRAME {
            self.agenda.push(then, self.ports + port);
        } else if link.pulls() {
            self.pull(port);
        }
        self.send_onward(port, id, leg, size, lane)
    }

    /// The event of the link behind a host with queues of its own comes up.
    #[inline(never)]
    fn arrive_from_host(&mut self, port: u32) -> Option<u32> {
        let id = self.take_arrived(port)?;
        let frame = &mut self.frames[id];
        frame.leg = frame.leg.wrapping_add(1);
        let (leg, size, lane) = (frame.leg, frame.size(), frame.lane);
        self.send_onward(port, id, leg, size, lane)
    }

    /// A frame has arrived by `port` whose place in the ways is `leg` now.
    #[inline(always)]
    fn send_onward(&mut self, port: u32, id: FrameId, leg: u32, size: Bytes, lane: Lane) -> Option<u32> {
        self.hops = self.hops.wrapping_add(1);
        match self.forwarding.at(leg) {
            ARRIVED => return self.deliver(id),
            OPEN => return self.arrive_open(port, id, size, lane),
            ASK | LOST => self.arrive_unknown(id, leg),
            onward => self.offer(onward, id, size, lane),
        }
        None
    }

    /// A frame has come to the end of its flow; returns the agent that acts on it.
    #[inline]
    pub(crate) fn deliver(&mut self, id: FrameId) -> Option<u32> {
        if self.frames[id].kind != Kind::Data {
            return self.deliver_special(id);
        }
        self.count_delivery(id);
        self.frames.free_data(id);
        None
    }

    /// The same, of a frame that is more than data.
    #[inline(always)]
    fn deliver_special(&mut self, id: FrameId) -> Option<u32> {
        let frame = self.frames[id];
        let Frame { flow, kind, .. } = frame;
        if kind == Kind::Notification {
            self.receive_notification(id);
            return None;
        }
        self.count_delivery(id);
        let end = self.frames.end(id).unwrap_or(NO_END);
        self.frames.free(id);
        if kind == Kind::Marked {
            self.receive_mark(flow, id);
        }
        if kind != Kind::Loaded {
            return None;
        }
        let agent = self.receivers.get(flow as usize).copied().filter(|&agent| agent != NOBODY)?;
        if self.trail.is_some() {
            self.trail = self.frames.trail(id).map_or(self.trail, |trail| Some(*trail));
        }
        self.received = Some(Received { flow, size: frame.size(), end, body: self.frames.body(id) });
        Some(agent)
    }

    #[inline(always)]
    fn count_delivery(&mut self, id: FrameId) {
        let frame = &self.frames[id];
        let delay = self.now - frame.born;
        self.flows[frame.flow as usize].deliver(frame.size(), delay);
        if self.watch.is_some() {
            self.report_delivery(id, delay);
        }
    }

    #[cold]
    #[inline(never)]
    fn report_delivery(&mut self, id: FrameId, delay: Span) {
        let Some(watch) = &mut self.watch else { return };
        let frame = &self.frames[id];
        let planned = &self.plan.flows[frame.flow as usize];
        let group = (!planned.returns).then_some(planned.traffic);
        let ends_burst = frame.kind != Kind::InBurst;
        let ends_message = watch.on_delivery(self.now, frame.flow, group, frame.size(), delay, ends_burst);
        if ends_message && let Some(&agent) = self.receivers.get(frame.flow as usize).filter(|&&agent| agent != NOBODY)
        {
            // What waits for this message begins.
            self.set_timer(agent, self.now);
        }
    }
}
