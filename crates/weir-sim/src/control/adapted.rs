//! Ports of hosts with queues of their own for each flow.

use weir_core::ethernet::reaction::Feedback;
use weir_core::queue::{Lane, Offer};
use weir_core::units::{Bytes, Span, Time};

use crate::agent::Alarm;
use crate::fabric::Fabric;
use crate::frames::{Frame, FrameId, Kind};

impl Fabric<'_> {
    /// A frame that an agent sends, or a notification, comes to the port of its host. A notification is of the flow of
    /// another host: it waits with what has been passed on to the port.
    pub(super) fn offer_adapter(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        if lane == Lane::Control || self.frames[id].kind == Kind::Notification {
            self.offer_plain(port, id, size, lane);
        } else {
            self.push_outlet(port, id, size);
        }
        self.run_adapter(port);
    }

    /// The timer of an adapter may have run out.
    pub(super) fn wake_adapter(&mut self, port: u32) {
        let Some(control) = &mut self.control else { return };
        let Some(adapter) = &mut control.extras[port as usize].adapter else { return };
        match adapter.timer.on_event(self.now) {
            Alarm::RunOut => self.run_adapter(port),
            Alarm::Later(at) => self.agenda.push(at, port),
            Alarm::Void => {}
        }
    }

    /// A notification takes effect.
    pub(super) fn obey(&mut self, port: u32, flow: u32, point: u32, feedback: Feedback) {
        if self.plan.is_switched() {
            return self.heed(port, self.plan.target(flow), point, feedback);
        }
        let now = self.now;
        self.draw_adapter(port, now);
        let Some(control) = &mut self.control else { return };
        if let Some(adapter) = &mut control.extras[port as usize].adapter {
            adapter.on_feedback(now, control.places[flow as usize], point, feedback);
        }
        self.run_adapter(port);
    }

    /// Begins what may begin at `port` now, and enters when it is to be looked at again. As everywhere, what leaves at
    /// an instant leaves before what comes then.
    pub(super) fn run_adapter(&mut self, port: u32) {
        let now = self.now;
        self.draw_adapter(port, now);
        self.serve_adapter(port);
        let Some(adapter) = self.control.as_ref().and_then(|control| control.extras[port as usize].adapter.as_ref())
        else {
            return;
        };
        if adapter.generated() == now {
            self.draw_adapter(port, now + Span::from_ps(1));
            self.serve_adapter(port);
        }
        let line = &self.lines[port as usize];
        let Some(control) = &mut self.control else { return };
        let Some(adapter) = &mut control.extras[port as usize].adapter else { return };
        let opens = if adapter.may_pass(false, line.port.waiting_frames()) {
            now
        } else if line.port.is_paused() {
            Time::NEVER
        } else {
            line.port.free_at()
        };
        let at = adapter.ready().max(opens).min(line.port.due());
        if let Some(at) = adapter.timer.set(at) {
            self.agenda.push(at, port);
        }
    }

    fn serve_adapter(&mut self, port: u32) {
        let now = self.now;
        loop {
            if self.lines[port as usize].port.due() <= now
                && let Some(sent) = self.lines[port as usize].port.wake(now)
            {
                match sent.lane {
                    Lane::Data => self.launch_watched(port, sent.handle, sent.end),
                    Lane::Control => self.launch_control(port, sent.handle, sent.end),
                }
                continue;
            }
            let line = &mut self.lines[port as usize];
            let Some(control) = &mut self.control else { return };
            let Some(adapter) = &mut control.extras[port as usize].adapter else { return };
            let (free, queued) = (line.port.is_free(now), line.port.waiting_frames());
            if !adapter.may_pass(free, queued) {
                break;
            }
            let Some((id, size, place)) = adapter.take(now) else { break };
            super::keep(&mut control.tags, id, adapter.tag(place));
            if let Offer::Sent { end } = line.port.offer(now, id, size, Lane::Data) {
                self.launch_watched(port, id, end);
            }
        }
    }

    /// Draws what the sources of an adapter generated before `bound`, and writes down what ended up to now.
    pub(crate) fn draw_adapter(&mut self, port: u32, bound: Time) {
        let (now, bound) = (self.now, bound.min(self.end));
        let Some(control) = &mut self.control else { return };
        let extra = &mut control.extras[port as usize];
        let Some(adapter) = &mut extra.adapter else { return };
        let line = &mut self.lines[port as usize];
        loop {
            let generated = adapter.generated();
            let next = generated.min(now);
            if adapter.boundary <= next {
                adapter.write_rows(next);
            }
            if extra.boundary <= next {
                adapter.settle(extra.boundary);
                let waiting = line.port.waiting_bytes().count();
                extra.boundary = self.port_probes.mark(port, next, &mut line.port);
                if let Some(mark) = self.port_probes.log.last_mut() {
                    mark.queue_bytes += adapter.waiting_bytes();
                    mark.queue_byte_ps += adapter.byte_ps;
                    mark.queue_max_bytes = adapter.restart_most(waiting);
                }
            }
            if generated >= bound {
                return;
            }
            let Some(feed) = &mut adapter.feed else { return };
            let (flow, size) = feed.take();
            self.flows[flow as usize].send(size);
            self.patience -= 1;
            self.draws += 1;
            let leg = self.plan.flows[flow as usize].first_leg;
            let place = control.places[flow as usize];
            if !adapter.has_room(generated, place, size, line.port.is_free(generated)) {
                line.port.count_drop(generated, size);
                self.drops[leg as usize] += 1;
                continue;
            }
            let id = self.frames.put(Frame::new(generated, flow, leg, size, Lane::Data));
            adapter.push(generated, place, id, size, line.port.waiting_bytes());
        }
    }

    /// A frame of an agent comes to the queue of its flow.
    fn push_outlet(&mut self, port: u32, id: FrameId, size: Bytes) {
        let (now, line) = (self.now, &mut self.lines[port as usize]);
        let Some(control) = &mut self.control else { return };
        let place = control.places[self.frames[id].flow as usize];
        let Some(adapter) = &mut control.extras[port as usize].adapter else { return };
        if adapter.has_room(now, place, size, line.port.is_free(now)) {
            adapter.push(now, place, id, size, line.port.waiting_bytes());
        } else {
            line.port.count_drop(now, size);
            self.drop_frame(id);
        }
    }
}
