//! Special lines: what happens at the ports that measure, hold or are held.
//!
//! A special line is looked at whenever it is touched, as one whose interval has ended: so all others cost nothing.
//! What is to happen at a port later is a task of its timer.

use std::collections::BTreeSet;

use weir_core::queue::{Label, Labeled, Lane, Offer};
use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::control::Task;
use crate::control::host::NO_POINT;
use crate::frames::{Body, FrameId, Kind, NO_FRAME};
use crate::line::{ARMED, FED, HOST, SPECIAL};
use crate::route::ARRIVED;
use crate::totals::ControlKind;

impl Fabric<'_> {
    /// Takes over what special lines need: they are looked at whenever they are touched.
    pub(crate) fn start_control(&mut self) {
        let Some(control) = &mut self.control else { return };
        // A port that pulls its sources looks at its transmissions itself.
        let is_touched = |&port: &u32| !self.lines[port as usize].has(FED);
        let watched = self.wires.iter().flat_map(|wires| wires.ports()).filter(is_touched);
        let special: BTreeSet<u32> = control.special().chain(watched).collect();
        for &port in &special {
            let line = &mut self.lines[port as usize];
            line.flags |= SPECIAL;
            control.extras[port as usize].boundary = std::mem::replace(&mut line.boundary, Time::ZERO);
        }
        self.start_hosts();
    }

    /// A frame arrives at the queue of a line where there is something to look at.
    #[cold]
    pub(super) fn offer_special(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        let now = self.now;
        if !self.lines[port as usize].has(SPECIAL) {
            self.write_intervals(port, now);
            self.offer_plain(port, id, size, lane);
            return;
        }
        self.look_special(port);
        let Some(control) = &mut self.control else { return };
        if self.lines[port as usize].has(HOST) {
            return self.offer_host(port, id, size, lane);
        }
        if control.switching.is_some() {
            return self.offer_stored(port, id, size, lane);
        }
        let extra = &mut control.extras[port as usize];
        if let Some(levels) = &mut extra.levels {
            levels.settle(now, self.lines[port as usize].port.waiting_bytes());
        }
        let (is_managed, has_events) = (extra.is_managed && lane == Lane::Data, extra.has_events);
        if extra.inputs.is_some() && self.overruns(port, id, lane) {
            return;
        }
        if has_events && self.is_down(port) {
            return self.offer_down(port, id, size);
        }
        let frame = self.frames[id];
        let Some(control) = &mut self.control else { return };
        let tag = if lane == Lane::Data { control.tag(self.plan, id, frame.flow) } else { NO_POINT };
        let became = self.admit(port, id, size, lane, is_managed);
        if lane == Lane::Control {
            return;
        }
        let waiting = self.lines[port as usize].port.waiting_bytes();
        let Some(control) = &mut self.control else { return };
        let extra = &mut control.extras[port as usize];
        if let Some(inputs) = extra.inputs.as_mut().filter(|_| became == Offer::Dropped) {
            inputs.overflowed();
        }
        let waits = became != Offer::Dropped && waiting > Bytes::ZERO;
        let marks = waits && extra.marker.as_mut().is_some_and(|marker| marker.on_frame(waiting));
        if let Some(point) = &mut extra.point
            && frame.kind != Kind::Notification
            && let Some(feedback) = point.on_frame(size, became != Offer::Dropped, waiting, tag, port)
        {
            self.notify(port, frame.flow, frame.leg, feedback);
        }
        if marks {
            self.mark(port, id);
        }
        self.watch_level(port, waiting);
    }

    /// A frame joins the queue of a special line, begins at once, or is dropped; a queue that `is_managed` may drop and mark others, too.
    fn admit(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane, is_managed: bool) -> Offer {
        let label = if is_managed { self.label(id) } else { Label::default() };
        let line = &mut self.lines[port as usize];
        if lane == Lane::Control && line.port.is_ahead() {
            line.keep(&mut self.frames, self.now);
        }
        let Labeled { became, marked } = line.port.offer_labeled(self.now, id, size, lane, label);
        if is_managed {
            self.settle_discarded(port, id);
        }
        if marked {
            self.mark(port, id);
        }
        match became {
            Offer::Sent { end } => self.launch_watched(port, id, end),
            Offer::Waits => self.arm(port),
            Offer::Dropped => self.drop_frame(id),
        }
        became
    }

    /// The next frame of a special line begins, if one may.
    fn serve(&mut self, port: u32, is_managed: bool) {
        let line = &mut self.lines[port as usize];
        line.flags &= !ARMED;
        let sent = line.port.wake(self.now);
        if is_managed {
            self.settle_discarded(port, NO_FRAME);
        }
        if let Some(sent) = sent {
            if sent.marked {
                self.mark(port, sent.handle);
            }
            match sent.lane {
                Lane::Data => self.launch_watched(port, sent.handle, sent.end),
                Lane::Control => self.launch_control(port, sent.handle, sent.end),
            }
        }
        self.arm(port);
    }

    /// What waits at a special line is about to change: how long it was so is counted.
    pub(crate) fn settle_levels_of(&mut self, port: u32) {
        let (now, waiting) = (self.now, self.lines[port as usize].port.waiting_bytes());
        let levels = self.control.as_mut().and_then(|control| control.extras[port as usize].levels.as_mut());
        if let Some(levels) = levels {
            levels.settle(now, waiting);
        }
    }

    /// The transmitter of a line is free where there is something to look at.
    #[cold]
    pub(super) fn wake_special(&mut self, port: u32) {
        let now = self.now;
        if !self.lines[port as usize].has(SPECIAL) {
            self.write_intervals(port, now);
            return self.wake_plain(port);
        }
        self.look_special(port);
        let waiting = self.lines[port as usize].port.waiting_bytes();
        let Some(control) = &mut self.control else { return };
        if let Some(levels) = &mut control.extras[port as usize].levels {
            levels.settle(now, waiting);
        }
        let is_managed = control.extras[port as usize].is_managed;
        self.serve(port, is_managed);
        let waiting = self.lines[port as usize].port.waiting_bytes();
        self.watch_level(port, waiting);
    }

    /// The transmission of a frame from the control lane begins.
    #[cold]
    pub(crate) fn launch_control(&mut self, port: u32, id: FrameId, end: Time) {
        if !self.sets_out(port, id, end) {
            return;
        }
        if self.frames[id].kind != Kind::Pause {
            return match self.lines[port as usize].has(HOST) {
                true => _ = self.lines[port as usize].append(&mut self.frames, id, end),
                false => self.launch(port, id, end),
            };
        }
        if let Body::Pause(pause) = self.frames.body(id) {
            self.pause_peer(port, pause, end);
        }
        self.end_control(id);
    }

    /// A control frame has reached its end.
    pub(crate) fn end_control(&mut self, id: FrameId) {
        self.frames.forget_control(id);
        self.frames.free(id);
        if let Some(control) = &mut self.control {
            control.ended += 1;
        }
    }

    /// Enters a task of the timer of `port`.
    pub(super) fn plan_task(&mut self, port: u32, at: Time, task: Task) {
        let Some(control) = &mut self.control else { return };
        control.extras[port as usize].tasks.push((at, task));
        self.agenda.push(at, self.port_timer(port));
    }

    /// The timer of a port runs out: does its tasks that are due, in the order in which they were entered, until an agent is
    /// to be told of a frame, which is returned.
    #[cold]
    pub(crate) fn on_port_timer(&mut self, port: u32) -> Option<u32> {
        let now = self.now;
        loop {
            let tasks = &mut self.control.as_mut()?.extras[port as usize].tasks;
            let place = tasks.iter().position(|&(at, _)| at <= now)?;
            match tasks.remove(place).1 {
                Task::Notify { flow, leg, point, feedback } => self.send_notification(port, flow, leg, point, feedback),
                Task::Send { pause, queue_port } => self.send_pause(port, pause, queue_port),
                Task::Hold { pause, length } => self.hold(port, pause, length),
                Task::Expire => self.expire(port),
                Task::Refresh => self.refresh(port),
                Task::Obey { key, point, feedback } => self.obey(port, key, point, feedback),
                Task::Limiter { place } => self.change_limiter(port, place),
                Task::Repeat => self.repeat(port),
                Task::Empty => {
                    if let Some(agent) = self.empty_buffer(port) {
                        self.agenda.push(now, self.port_timer(port));
                        return Some(agent);
                    }
                }
            }
        }
    }

    /// Counts a control frame that sets out at `port`.
    pub(super) fn count_control(&mut self, port: u32, queue_port: u32, kind: ControlKind, size: Bytes) {
        if let Some(control) = &mut self.control {
            control.made += 1;
        }
        self.note_control(port, queue_port, kind, size);
    }

    /// Counts a control frame that travels beside the others.
    pub(super) fn note_control(&mut self, port: u32, queue_port: u32, kind: ControlKind, size: Bytes) {
        let Some(control) = &mut self.control else { return };
        let (frames, bytes) = control.sent.entry((port, queue_port, kind)).or_default();
        *frames += 1;
        *bytes += size.count();
        control.probes.note(queue_port, kind, self.now);
    }

    /// A control frame is queued at `port`.
    pub(super) fn offer_control(&mut self, port: u32, id: FrameId, size: Bytes) {
        self.look(port);
        let line = &mut self.lines[port as usize];
        line.keep(&mut self.frames, self.now);
        if let Some(host) = self.control.as_mut().and_then(|control| control.host(port)) {
            host.know(size);
        }
        if let Offer::Sent { end } = line.port.offer(self.now, id, size, Lane::Control) {
            self.launch_control(port, id, end);
        }
        self.go_on(port, self.now);
    }

    /// Something has changed at `port`: enters when it is to be looked at again. A port that stores begins no frame before `after`.
    pub(super) fn go_on(&mut self, port: u32, after: Time) {
        if self.lines[port as usize].has(HOST) {
            self.run_host(port);
        } else if self.plan.is_switched() {
            self.arm_stored(port, after);
        } else {
            self.arm(port);
        }
    }

    /// The intervals of a special line that ended are written.
    pub(crate) fn look_special(&mut self, port: u32) {
        let now = self.now;
        let Some(control) = &mut self.control else { return };
        let extra = &mut control.extras[port as usize];
        if extra.host.is_some() {
            return self.look_host(port);
        }
        if extra.boundary <= now {
            extra.boundary = self.port_probes.mark(port, now, &mut self.lines[port as usize].port);
        }
    }

    /// Where the route of `flow` begins, and how many ports it has up to `leg`.
    pub(super) fn ports_before(&self, flow: u32, leg: u32) -> u32 {
        leg - self.plan.flows[flow as usize].first_leg
    }

    /// How many ports the route of `flow` has.
    pub(super) fn route_length(&self, flow: u32) -> u32 {
        let first = self.plan.flows[flow as usize].first_leg as usize;
        (0..).find(|&n| self.plan.route[first + n as usize] == ARRIVED).unwrap_or(0)
    }
}
