//! Ports of hosts in networks with shared memories, adapters or slow outputs.

use weir_core::ethernet::reaction::Feedback;
use weir_core::queue::{Lane, Offer};
use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::control::Task;
use crate::control::adapter::NO_POINT;
use crate::control::switching::station::Station;
use crate::frames::{Frame, FrameId, Kind};
use crate::timer::Alarm;

impl Fabric<'_> {
    /// Whether `port` is that of a station.
    pub(crate) fn is_station(&self, port: u32) -> bool {
        self.control.as_ref().is_some_and(|control| control.role(port) == crate::control::switching::Role::Station)
    }

    /// Enters when a station is looked at next.
    pub(crate) fn call_station(&mut self, port: u32, at: Time) {
        let entity = self.port_service_of_host(port);
        if let Some(station) = self.station(port)
            && let Some(at) = station.timer.set(at)
        {
            self.agenda.push(at, entity);
        }
    }

    /// Enters when each station is looked at first.
    pub(crate) fn start_stations(&mut self) {
        for port in 0..self.lines.len() as u32 {
            if let Some(station) = self.station(port) {
                let first = station.generated();
                self.call_station(port, first);
            }
        }
    }

    /// A station may have to be looked at.
    pub(crate) fn wake_station(&mut self, port: u32) {
        let (now, entity) = (self.now, self.port_service_of_host(port));
        let Some(station) = self.station(port) else { return };
        match station.timer.on_event(now) {
            Alarm::RunOut => self.run_station(port),
            Alarm::Later(at) => self.agenda.push(at, entity),
            Alarm::Void => {}
        }
    }

    /// A frame comes to the port of a host: from an agent, or over the link into the buffer of the host.
    pub(crate) fn offer_station(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        let leg = self.frames[id].leg as usize;
        if leg > 0 && self.plan.route[leg - 1] == port ^ 1 {
            return self.keep_in_buffer(port, id);
        }
        if lane == Lane::Control {
            return self.offer_control(port, id, size);
        }
        let (now, frame) = (self.now, &self.frames[id]);
        let to = (frame.kind != Kind::Notification).then(|| self.plan.target(frame.flow));
        let begins = self.lines[port as usize].port.is_free(now);
        let Some(station) = self.control.as_mut().and_then(|control| control.station(port)) else { return };
        let place = to.map_or(station.place_of_notifications(), |to| station.place(to));
        if station.has_room(size, begins && station.is_open(place)) {
            station.push(now, &mut self.frames, id, place);
            self.call_station(port, now);
        } else {
            self.lines[port as usize].port.count_drop(now, size);
            self.drop_frame(id);
        }
    }

    /// Feedback about the frames of a station to host `to` takes effect.
    pub(crate) fn heed(&mut self, port: u32, to: u32, point: u32, feedback: Feedback) {
        let now = self.now;
        self.draw_station(port, now);
        let Some(station) = self.control.as_mut().and_then(|control| control.station(port)) else { return };
        let place = station.place(to);
        let next = station.on_feedback(now, place, point, feedback, &self.frames);
        self.after_change(port, next);
    }

    /// A change of a limiter that was due.
    pub(crate) fn change_limiter(&mut self, port: u32, id: u32) {
        let now = self.now;
        self.draw_station(port, now);
        let Some(station) = self.control.as_mut().and_then(|control| control.station(port)) else { return };
        let next = station.on_timeout(now, id, &self.frames);
        self.after_change(port, next);
    }

    pub(super) fn after_change(&mut self, port: u32, next: Option<(u32, Time)>) {
        if let Some((id, at)) = next {
            self.plan_task(port, at.max(self.now), Task::Limiter { id });
        }
        self.call_station(port, self.now);
    }

    /// Generates what is due, sends a frame if one may go, and enters when that is to be asked again.
    pub(super) fn run_station(&mut self, port: u32) {
        let now = self.now;
        self.draw_station(port, now);
        if self.lines[port as usize].port.due() <= now
            && let Some(sent) = self.lines[port as usize].port.wake(now)
        {
            self.launch_control(port, sent.handle, sent.end);
        }
        while self.station(port).is_some_and(|station| station.generated() <= now) {
            self.draw_frame(port, true);
        }
        if self.lines[port as usize].port.is_free(now) {
            self.send_waiting(port);
        }
        let line = &self.lines[port as usize];
        let (free_at, paused, owed) = (line.port.free_at(), line.port.is_paused(), line.port.due());
        let Some(station) = self.station(port) else { return };
        let next = if paused { Time::NEVER } else { station.next(now).max(free_at) };
        self.call_station(port, next.min(owed));
    }

    pub(super) fn send_waiting(&mut self, port: u32) {
        let now = self.now;
        let Some(station) = self.control.as_mut().and_then(|control| control.station(port)) else { return };
        station.open_gates(now);
        if let Some((id, size, place)) = station.take(now, &self.frames) {
            self.send_from(port, id, size, place);
        }
    }

    /// A frame of a station begins.
    pub(super) fn send_from(&mut self, port: u32, id: FrameId, size: Bytes, place: u32) {
        let Some(control) = &mut self.control else { return };
        let tag = control.station(port).map_or(NO_POINT, |station| station.tag(place));
        if tag != NO_POINT || (id as usize) < control.tags.len() {
            crate::control::keep(&mut control.tags, id, tag);
        }
        if let Offer::Sent { end } = self.lines[port as usize].port.offer(self.now, id, size, Lane::Data) {
            self.launch_watched(port, id, end);
        }
    }

    /// Draws what the sources of a station generated before `bound`, and writes down the intervals that ended.
    pub(crate) fn draw_station(&mut self, port: u32, bound: Time) {
        let bound = bound.min(self.end);
        loop {
            let Some(station) = self.station(port) else { return };
            let generated = station.generated();
            self.mark_station(port, generated.min(self.now));
            if generated >= bound {
                return;
            }
            self.draw_frame(port, false);
        }
    }

    /// Writes down the intervals that ended up to `now`: of the port, and of the limiters.
    pub(super) fn mark_station(&mut self, port: u32, now: Time) {
        let Some(control) = &mut self.control else { return };
        if let Some(station) = control.station(port) {
            station.write_rows(now, &self.frames);
        }
        let extra = &mut control.extras[port as usize];
        if extra.boundary > now {
            return;
        }
        let Some(switching) = &mut control.switching else { return };
        let Some(station) = &mut switching.stations[port as usize] else { return };
        station.load.settle(extra.boundary);
        extra.boundary = self.port_probes.mark(port, now, &mut self.lines[port as usize].port);
        if let Some(mark) = self.port_probes.log.last_mut() {
            mark.queue_bytes += station.load.bytes;
            mark.queue_byte_ps += station.load.byte_ps;
            mark.queue_max_bytes = station.load.restart_most();
        }
        // What waited through intervals in which nothing happened does not count for the one that holds `now`.
        station.load.settle(self.port_probes.begin(port));
        station.load.restart_most();
    }

    /// Generates the next frame of a station; one that need not wait `begins` at once, if it may.
    pub(super) fn draw_frame(&mut self, port: u32, begins: bool) {
        let Some(station) = self.control.as_mut().and_then(|control| control.station(port)) else { return };
        let at = station.generated();
        let Some(drawn) = station.feed.as_mut().map(|feed| feed.draw()) else { return };
        let size = drawn.size;
        self.patience -= 1;
        self.draws += 1;
        let (flow, leg) = (self.plan.counted_as(drawn.flow, drawn.source), self.plan.first_leg(drawn.flow));
        self.flows[flow as usize].send(size);
        let place = station.place(self.plan.target(drawn.flow));
        let line = &mut self.lines[port as usize];
        let begins = begins && station.is_open(place) && line.port.is_free(at);
        if !station.has_room(size, begins) {
            line.port.count_drop(at, size);
            self.drops[leg as usize] += 1;
            return;
        }
        // A frame that can be marked does not say of which burst it is.
        let ends_burst = drawn.ends_burst || self.plan.is_capable(flow);
        let kind = if ends_burst { Kind::Data } else { Kind::InBurst };
        let id = self.frames.put(Frame::new(at, flow, leg, size, Lane::Data).of_kind(kind));
        if begins {
            station.pass(place);
            self.send_from(port, id, size, place);
        } else {
            station.push(at, &mut self.frames, id, place);
        }
    }

    pub(super) fn station(&mut self, port: u32) -> Option<&mut Station> {
        self.control.as_mut()?.station(port)
    }
}
