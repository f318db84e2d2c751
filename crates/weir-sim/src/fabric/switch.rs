//! Ports that are put together of parts: a queue of any discipline with its own limit or in a shared memory, a valve, and observers.
//!
//! They are looked at whenever they are touched, as a plain port whose interval has ended: so all others cost nothing. In a network with shared
//! memories what arrives at an instant is stored first, and served when all has arrived.

use weir_core::queue::{Label, Lane, Offer};
use weir_core::spec::MarkingTime;
use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::control::switching::valve::Valve;
use crate::control::{Beyond, Extra, SwitchPort};
use crate::frames::{Body, Frame, FrameId, Kind, NO_FRAME};
use crate::line::Role;
use crate::totals::DropCause;

impl Fabric<'_> {
    /// Says of each port what it is.
    pub(crate) fn start_control(&mut self) {
        let Some(control) = &mut self.control else { return };
        for port in self.wires.iter().flat_map(|wires| wires.ports()) {
            let beyond = &mut control.extras[port as usize].beyond;
            // A port that pulls its sources looks at its transmissions itself, and so does a host with queues of its own.
            if !self.links[port as usize].pulls() && beyond.host().is_none() {
                beyond.become_switch();
            }
        }
        let ports = self.lines.iter_mut().zip(&mut self.links);
        for (extra, (line, link)) in control.extras.iter_mut().zip(ports) {
            link.role = match extra.beyond {
                Beyond::Nothing => continue,
                Beyond::Switch(ref switch) => match &switch.marker {
                    Some(marker) if switch.only_marks && !link.watched => {
                        (link.role, link.noted, line.unmarked) = (Role::Marking, true, marker.least());
                        continue;
                    }
                    _ => Role::Switch,
                },
                Beyond::Host(_) => Role::Host,
            };
            extra.boundary = std::mem::replace(&mut line.boundary, Time::NEVER);
            link.noted = true;
        }
        self.start_hosts();
    }

    /// A port that is put together of parts is about to be touched: writes the intervals that ended, and counts for how long it was so.
    #[inline(always)]
    pub(super) fn look_switch(&mut self, port: u32) -> Option<&mut SwitchPort> {
        let Extra { boundary, beyond: Beyond::Switch(switch), .. } = &mut self.control.as_mut()?.extras[port as usize]
        else {
            return None;
        };
        let line = &mut self.lines[port as usize];
        if *boundary <= self.now {
            *boundary = self.port_probes.mark(port, self.now, &mut line.port);
        }
        if let Some(levels) = &mut switch.levels {
            levels.settle(self.now, line.port.waiting_bytes());
        }
        Some(switch)
    }

    /// A frame arrives at a port that is put together of parts.
    pub(super) fn offer_switch(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        let Some(switch) = self.look_switch(port) else { return };
        let (has_inputs, has_point, is_pooled) = (switch.inputs.is_some(), switch.point.is_some(), switch.is_pooled);
        if lane == Lane::Control {
            self.keep(port);
            if let Offer::Sent { end } = self.lines[port as usize].port.offer(self.now, id, size, lane) {
                self.set_out(port, id, end);
            }
            return self.go_on(port, self.now);
        }
        if has_inputs && self.is_overrun(port, id) || self.is_detoured(port, id, size) {
            return;
        }
        let seen = if has_point { self.seen_by_point(id) } else { None };
        // What a stored frame waits for is only known when it is served: until then it waits itself.
        let (is_taken, itself) = if self.plan.is_stored(port) {
            (self.store(port, id, size), size)
        } else if is_pooled && (self.is_dropped_in_storm(port, id, size) || !self.enter_buffer(port, id, size)) {
            (false, Bytes::ZERO)
        } else {
            (self.admit(port, id, size, is_pooled), Bytes::ZERO)
        };
        let waiting = self.lines[port as usize].port.waiting_bytes();
        let Some(control) = &mut self.control else { return };
        let Some(switch) = control.switch(port) else { return };
        if let Some(inputs) = switch.inputs.as_mut().filter(|_| !is_taken) {
            inputs.overflowed();
        }
        let marker = switch.marker.as_mut().filter(|_| is_taken && waiting > itself);
        let marks = marker.is_some_and(|marker| marker.on_frame(MarkingTime::Arrival, waiting));
        let feedback = seen.and_then(|(flow, leg, tag)| {
            let feedback = switch.point.as_mut()?.on_frame(size, is_taken, waiting, tag, port)?;
            Some((flow, leg, feedback))
        });
        let crossing = switch.guard.as_mut().and_then(|guard| guard.on_level(waiting.count()));
        if let Some((flow, leg, feedback)) = feedback {
            self.notify(port, flow, leg, feedback);
        }
        if marks {
            self.mark(port, id);
        }
        if let Some(crossing) = crossing {
            self.on_crossing(port, crossing);
        }
    }

    /// What a congestion point asks of a frame, unless it is a notification: its flow, where it is, and its tag.
    fn seen_by_point(&self, id: FrameId) -> Option<(u32, u32, u32)> {
        let Frame { flow, leg, kind, .. } = self.frames[id];
        let control = self.control.as_ref().filter(|_| kind != Kind::Notification)?;
        Some((flow, leg, control.tag(self.plan, id, flow)))
    }

    /// A frame joins the queue of a port, begins at once, or is dropped; the queue may drop and mark others, too. Whether it is taken.
    #[inline(always)]
    fn admit(&mut self, port: u32, id: FrameId, size: Bytes, is_pooled: bool) -> bool {
        let pooled = is_pooled.then(|| self.frames[id]);
        let line = &mut self.lines[port as usize];
        let became = if line.port.is_managed() {
            let label = self.label(id);
            let offered = self.lines[port as usize].port.offer_labeled(self.now, id, size, Lane::Data, label);
            if label.trims {
                self.settle_trimmed(port);
            }
            self.settle_discarded(port, id);
            if offered.marked {
                self.mark(port, id);
            }
            offered.became
        } else {
            line.port.offer(self.now, id, size, Lane::Data)
        };
        match became {
            Offer::Sent { end } => self.set_out_data(port, id, end),
            Offer::Waits => self.arm(port),
            Offer::Dropped => self.drop_frame(id, DropCause::QueueFull),
        }
        if let Some(frame) = pooled.filter(|_| became != Offer::Waits) {
            self.leave_buffer(port, &frame);
        }
        became != Offer::Dropped
    }

    /// A frame is stored in the memory of a switch, if there is room.
    fn store(&mut self, port: u32, id: FrameId, size: Bytes) -> bool {
        let (now, frame) = (self.now, self.frames[id]);
        let is_managed = self.lines[port as usize].port.is_managed();
        let label = if is_managed { self.label(id) } else { Label::default() };
        let input = self.plan.route[frame.leg as usize - 1];
        let node = self.plan.topology.ports[port as usize].from;
        let line = &mut self.lines[port as usize];
        let switching = self.control.as_mut().and_then(|control| control.switching.as_mut());
        let memory = switching.map(|switching| &switching.memories[node as usize].shared);
        let has_room = memory.is_none_or(|memory| memory.admits(line.port.waiting_bytes_of(label.class), size));
        let is_stored = has_room && line.port.store(now, id, size, label);
        if !has_room {
            line.port.count_drop_of(now, size, label.class);
        } else if !is_stored {
            line.port.count_drop(now, size);
        }
        // A frame that is gone has been dropped and counted.
        let is_gone = is_stored && self.settle_discarded(port, id);
        let is_taken = is_stored && !is_gone;
        if is_taken {
            if let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) {
                switching.memories[node as usize].shared.add(now, size);
                switching.of_input[input as usize] += size.count();
            }
            self.watch_memory(input, None);
            self.arm_stored(port, now);
        } else if !is_gone {
            self.drop_frame(id, DropCause::QueueFull);
        }
        is_taken
    }

    /// The transmitter of a port is free: the next frame begins, if one may. In a network with shared memories all has arrived at
    /// this instant.
    pub(super) fn serve_switch(&mut self, port: u32) {
        let now = self.now;
        let Some(switch) = self.look_switch(port) else { return };
        let (has_valve, is_pooled) = (switch.valve.is_some(), switch.is_pooled);
        self.links[port as usize].armed = false;
        if has_valve && let Some(start) = self.valve_opens(port).filter(|&start| start > now) {
            self.links[port as usize].armed = true;
            return self.agenda.push(start, self.port_service(port));
        }
        let is_stored = self.plan.is_stored(port);
        let line = &mut self.lines[port as usize];
        let sent = if is_stored { line.port.serve(now) } else { line.port.wake(now) };
        if self.lines[port as usize].port.is_managed() {
            self.settle_discarded(port, NO_FRAME);
        }
        let waiting = self.lines[port as usize].port.waiting_bytes();
        let Some(switch) = self.control.as_mut().and_then(|control| control.switch(port)) else { return };
        let crossing = switch.guard.as_mut().and_then(|guard| guard.on_level(waiting.count()));
        let marker =
            switch.marker.as_mut().filter(|_| sent.is_some_and(|sent| sent.lane == Lane::Data && !sent.marked));
        let marks = marker.is_some_and(|marker| marker.on_frame(MarkingTime::Departure, waiting));
        if let Some(sent) = sent {
            if sent.marked || marks {
                self.mark(port, sent.handle);
            }
            if sent.lane == Lane::Control {
                self.set_out(port, sent.handle, sent.end);
            } else {
                if has_valve && let Some(valve) = self.valve(port) {
                    valve.spend(now, sent.end - now);
                }
                let stored = (is_stored || is_pooled).then(|| self.frames[sent.handle]);
                self.set_out_data(port, sent.handle, sent.end);
                match stored {
                    Some(frame) if is_stored => self.free_memory_of(port, &frame, sent.end),
                    Some(frame) => self.leave_buffer(port, &frame),
                    None => {}
                }
            }
        }
        if is_stored {
            self.arm_stored(port, now);
        } else {
            self.arm(port);
        }
        if let Some(crossing) = crossing {
            self.on_crossing(port, crossing);
        }
    }

    /// The transmission of a frame begins, and ends at `end`. PAUSE takes effect at the other end of the link.
    #[inline(never)]
    pub(super) fn set_out(&mut self, port: u32, id: FrameId, end: Time) {
        if !self.sets_out(port, id, end) {
            return;
        }
        if self.frames[id].kind == Kind::Pause {
            if let Body::Pause(says) = self.frames.body(id) {
                self.pause_peer(port, says, end);
            }
            return self.end_control(id);
        }
        match self.links[port as usize].role {
            Role::Host => self.launch_from_host(port, id, end),
            _ => self.launch(port, id, end),
        }
    }

    /// The same of a frame that is no control frame, at a port of a switch.
    #[inline(always)]
    fn set_out_data(&mut self, port: u32, id: FrameId, end: Time) {
        if self.sets_out(port, id, end) {
            self.launch(port, id, end);
        }
    }

    /// Something has changed at `port`: enters when it is to be looked at again. A port that stores begins no frame before `after`.
    pub(super) fn go_on(&mut self, port: u32, after: Time) {
        if self.links[port as usize].role == Role::Host {
            self.run_host(port);
        } else if self.plan.is_switched() {
            self.arm_stored(port, after);
        } else {
            self.arm(port);
        }
    }

    /// Whether what waits at `port` counts in a buffer with pools.
    pub(super) fn is_pooled(&self, port: u32) -> bool {
        let beyond = self.control.as_ref().map(|control| &control.extras[port as usize].beyond);
        matches!(beyond, Some(Beyond::Switch(switch)) if switch.is_pooled)
    }

    /// When a slow port may begin the frame that waits, if it is slow and one may go as far as everything else is concerned.
    pub(super) fn valve_opens(&self, port: u32) -> Option<Time> {
        let Beyond::Switch(switch) = &self.control.as_ref()?.extras[port as usize].beyond else { return None };
        let (valve, line) = (switch.valve.as_ref()?, &self.lines[port as usize]);
        let id = line.port.next_waiting().filter(|_| line.port.begins_data(self.now))?;
        let link = self.plan.topology.ports[port as usize].link;
        Some(valve.ready(self.now, (self.frames[id].size() + link.framing_bytes) / link.rate_bps))
    }

    fn valve(&mut self, port: u32) -> Option<&mut Valve> {
        self.control.as_mut()?.switch(port)?.valve.as_deref_mut()
    }

    /// A frame that waited at `port` is dropped: the memory has its place again.
    pub(crate) fn free_memory(&mut self, port: u32, id: FrameId, end: Time) {
        let frame = self.frames[id];
        self.free_memory_of(port, &frame, end);
    }

    /// The memory has the place of a frame again that waited at `port` and leaves it until `end`.
    pub(super) fn free_memory_of(&mut self, port: u32, frame: &Frame, end: Time) {
        let (now, size) = (self.now, frame.size());
        let input = self.plan.route[frame.leg as usize - 1];
        let node = self.plan.topology.ports[port as usize].from;
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        switching.memories[node as usize].shared.take(now, size);
        switching.of_input[input as usize] -= size.count();
        self.watch_memory(input, Some((port, end)));
    }

    /// Enters the service of a port, if it is owed and not entered, at `from` or later.
    pub(crate) fn arm_stored(&mut self, port: u32, from: Time) {
        if let Some(due) = self.links[port as usize].arm(self.lines[port as usize].port.due()) {
            self.agenda.push(due.max(from), self.port_service(port));
        }
    }
}
