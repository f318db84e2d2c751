//! Ports of switches: what arrives is stored first, and served after all that arrives at the same instant.

use weir_core::queue::{Label, Lane};
use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::frames::{Frame, FrameId, Kind, NO_FRAME};
use crate::line::ARMED;

impl Fabric<'_> {
    /// A frame arrives at a port of a switch.
    pub(crate) fn offer_stored(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        let now = self.now;
        self.settle_levels_of(port);
        if lane == Lane::Control {
            return self.offer_control(port, id, size);
        }
        let frame = self.frames[id];
        let input = self.plan.route[frame.leg as usize - 1];
        let node = self.plan.topology.ports[port as usize].from;
        let Some(control) = &mut self.control else { return };
        let tag = control.tag(self.plan, id, frame.flow);
        let label = if control.extras[port as usize].is_managed { self.label(id) } else { Label::default() };
        let line = &mut self.lines[port as usize];
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let memory = &mut switching.memories[node as usize].shared;
        let has_room = memory.admits(line.port.waiting_bytes_of(label.class), size);
        if !has_room {
            line.port.count_drop_of(now, size, label.class);
        }
        let is_stored = has_room && line.port.store(now, id, size, label);
        if has_room && !is_stored {
            line.port.count_drop(now, size);
        }
        // A frame that is gone has been dropped and counted.
        let is_gone = is_stored && self.settle_discarded(port, id);
        let is_taken = is_stored && !is_gone;
        let waiting = self.lines[port as usize].port.waiting_bytes();
        let Some(control) = &mut self.control else { return };
        let Some(switching) = &mut control.switching else { return };
        if is_taken {
            switching.memories[node as usize].shared.add(now, size);
            switching.of_input[input as usize] += size.count();
        }
        let extra = &mut control.extras[port as usize];
        let waits = is_taken && waiting > size;
        let marks = waits && extra.marker.as_mut().is_some_and(|marker| marker.on_frame(waiting));
        let point = extra.point.as_mut().filter(|_| frame.kind != Kind::Notification);
        let feedback = point.and_then(|point| point.on_frame(size, is_taken, waiting, tag, port));
        if is_taken {
            self.watch_growth(input);
            self.arm_stored(port, now);
        } else if !is_gone {
            self.drop_frame(id);
        }
        if let Some(feedback) = feedback {
            self.notify(port, frame.flow, frame.leg, feedback);
        }
        if marks {
            self.mark(port, id);
        }
    }

    /// All has arrived at this instant: a port of a switch may serve.
    pub(crate) fn serve_stored(&mut self, port: u32) {
        let now = self.now;
        self.lines[port as usize].flags &= !ARMED;
        self.look_special(port);
        self.settle_levels_of(port);
        if let Some(start) = self.valve_opens(port).filter(|&start| start > now) {
            self.lines[port as usize].flags |= ARMED;
            return self.agenda.push(start, self.port_service(port));
        }
        let sent = self.lines[port as usize].port.serve(now);
        self.settle_discarded(port, NO_FRAME);
        if let Some(sent) = sent {
            if sent.marked {
                self.mark(port, sent.handle);
            }
            match sent.lane {
                Lane::Control => self.launch_control(port, sent.handle, sent.end),
                Lane::Data => self.leave(port, sent.handle, sent.end),
            }
        }
        self.arm_stored(port, now);
    }

    /// When a slow port may begin the frame that waits, if it is slow and one may go as far as everything else is concerned.
    pub(super) fn valve_opens(&self, port: u32) -> Option<Time> {
        let valve = self.control.as_ref()?.switching.as_ref()?.valves[port as usize].as_ref()?;
        let line = &self.lines[port as usize];
        let id = line.port.next_waiting().filter(|_| line.port.begins_data(self.now))?;
        let link = self.plan.topology.ports[port as usize].link;
        Some(valve.ready(self.now, (self.frames[id].size() + link.framing_bytes) / link.rate_bps))
    }

    /// A frame begins to leave the memory.
    pub(super) fn leave(&mut self, port: u32, id: FrameId, end: Time) {
        let now = self.now;
        let switching = self.control.as_mut().and_then(|control| control.switching.as_mut());
        if let Some(valve) = switching.and_then(|switching| switching.valves[port as usize].as_mut()) {
            valve.spend(now, end - now);
        }
        let frame = self.frames[id];
        self.launch_watched(port, id, end);
        self.free_memory_of(port, &frame, end);
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
        self.watch_fall(port, input, end);
    }

    /// Enters the service of a port, if it is owed and not entered, at `from` or later.
    pub(crate) fn arm_stored(&mut self, port: u32, from: Time) {
        if let Some(due) = self.lines[port as usize].arm() {
            self.agenda.push(due.max(from), self.port_service(port));
        }
    }
}
