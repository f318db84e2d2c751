//! Ports of hosts with queues of their own for each flow.

use weir_core::ethernet::reaction::Feedback;
use weir_core::queue::{Lane, Offer};
use weir_core::units::{Bytes, Span, Time};

use super::Fabric;
use crate::control::adapter::{Adapter, NO_POINT};
use crate::frames::{Frame, FrameId, Kind, NO_FRAME};
use crate::timer::Alarm;

/// The shortest time there is.
const INSTANT: Span = Span::from_ps(1);

impl Fabric<'_> {
    /// A frame that an agent sends, or a notification, comes to the port of its host. A notification is of the flow of
    /// another host: it waits with what has been passed on to the port.
    pub(crate) fn offer_adapter(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        if lane == Lane::Control || self.frames[id].kind == Kind::Notification {
            let line = &mut self.lines[port as usize];
            if let Offer::Sent { end } = line.port.offer(self.now, id, size, lane) {
                self.append_watched(port, id, end);
            }
        } else {
            self.push_outlet(port, id, size);
        }
        self.run_adapter(port);
    }

    /// A notification takes effect.
    pub(crate) fn obey(&mut self, port: u32, flow: u32, point: u32, feedback: Feedback) {
        if self.plan.is_switched() {
            return self.heed(port, self.plan.target(flow), point, feedback);
        }
        self.look_adapter(port);
        let now = self.now;
        let Some(control) = &mut self.control else { return };
        if let Some(adapter) = &mut control.extras[port as usize].adapter {
            adapter.on_feedback(now, control.places[flow as usize], point, feedback);
        }
        self.run_adapter(port);
    }

    /// The port is about to be touched: does what was to happen up to now.
    pub(crate) fn look_adapter(&mut self, port: u32) {
        let now = self.now;
        self.catch_up(port, (now + INSTANT).min(self.end));
        self.draw_adapter(port, now, now);
    }

    /// Does what was to happen at `port` before `bound` and was left until it matters.
    pub(crate) fn catch_up(&mut self, port: u32, bound: Time) {
        while self.adapter(port).next < bound {
            let next = self.adapter(port).next;
            self.work_adapter(port, next);
        }
    }

    /// Something has changed at `port`: begins what may begin now, and works out what comes next.
    pub(crate) fn run_adapter(&mut self, port: u32) {
        self.work_adapter(port, self.now);
        self.await_adapter(port);
    }

    /// The event of the link behind `port` comes up: the frame that arrives, if one does.
    ///
    /// What a host sends depends on nothing else, until a notification or PAUSE comes: so a transmission needs no
    /// event of its own. It is worked out when its frame arrives, or before something changes.
    #[inline]
    pub(crate) fn take_arrived(&mut self, port: u32) -> Option<FrameId> {
        let now = self.now;
        match self.adapter(port).timer.on_event(now) {
            Alarm::RunOut => {}
            Alarm::Later(at) => {
                self.agenda.push(at, self.link(port));
                return None;
            }
            Alarm::Void => return None,
        }
        while self.lines[port as usize].head == NO_FRAME && self.adapter(port).next <= now {
            let next = self.adapter(port).next;
            self.work_adapter(port, next);
        }
        let line = &mut self.lines[port as usize];
        let first = Some(line.head).filter(|&id| id != NO_FRAME && self.frames[id].arrives == now);
        if let Some(id) = first {
            line.head = self.frames[id].next;
        }
        self.await_adapter(port);
        first
    }

    /// Enters when the next frame arrives, or may arrive at the earliest.
    pub(super) fn await_adapter(&mut self, port: u32) {
        let line = &self.lines[port as usize];
        let (head, now) = (line.head, self.now);
        // What waits in the port may be a control frame, which are shorter than others.
        let hurries = line.port.due() != Time::NEVER;
        let arrives = (head != NO_FRAME).then(|| self.frames[head].arrives);
        let adapter = self.adapter(port);
        let at = match arrives {
            Some(arrives) => arrives,
            None if hurries || adapter.next == Time::NEVER => adapter.next.max(now),
            None => (adapter.next + adapter.lead).max(now),
        };
        if let Some(at) = adapter.timer.set(at) {
            self.agenda.push(at, self.link(port));
        }
    }

    /// The adapter of `port`, which has one.
    #[inline]
    pub(super) fn adapter(&mut self, port: u32) -> &mut Adapter {
        let extra = self.control.as_mut().map(|control| &mut control.extras[port as usize]);
        extra.and_then(|extra| extra.adapter.as_deref_mut()).expect("an adapted line has an adapter")
    }

    /// Begins what may begin at `port` at `now`, and works out when it is to be looked at again. As everywhere, what
    /// leaves at an instant leaves before what comes then.
    pub(super) fn work_adapter(&mut self, port: u32, now: Time) {
        self.draw_adapter(port, now, now);
        self.serve_adapter(port, now);
        if self.adapter(port).generated() == now {
            self.draw_adapter(port, now, now + INSTANT);
            self.serve_adapter(port, now);
        }
        let line = &self.lines[port as usize];
        let (due, free_at) = (line.port.due(), line.port.free_at());
        let (is_paused, queued) = (line.port.is_paused(), line.port.waiting_frames());
        let adapter = self.adapter(port);
        let opens = if adapter.may_pass(false, queued) {
            now
        } else if is_paused {
            Time::NEVER
        } else {
            free_at
        };
        adapter.next = adapter.ready().max(opens).min(due);
    }

    #[inline]
    pub(super) fn serve_adapter(&mut self, port: u32, now: Time) {
        loop {
            let line = &mut self.lines[port as usize];
            if line.port.due() <= now
                && let Some(sent) = line.port.wake(now)
            {
                self.append_watched(port, sent.handle, sent.end);
                continue;
            }
            let Some(control) = &mut self.control else { return };
            let Some(adapter) = &mut control.extras[port as usize].adapter else { return };
            let (free, queued) = (line.port.is_free(now), line.port.waiting_frames());
            if !adapter.may_pass(free, queued) {
                break;
            }
            let Some((id, size, place)) = adapter.take(now, &self.frames) else { break };
            let tag = adapter.tag(place);
            if tag != NO_POINT || (id as usize) < control.tags.len() {
                crate::control::keep(&mut control.tags, id, tag);
            }
            if let Offer::Sent { end } = line.port.offer(now, id, size, Lane::Data) {
                self.append_watched(port, id, end);
            }
        }
    }

    /// Draws what the sources of an adapter generated before `bound`, and writes down what ended up to
    /// `now`.
    pub(crate) fn draw_adapter(&mut self, port: u32, now: Time, bound: Time) {
        let bound = bound.min(self.end);
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
                if adapter.is_limited(place) {
                    control.limiter_drops[leg as usize] += 1;
                }
                continue;
            }
            let id = self.frames.put(Frame::new(generated, flow, leg, size, Lane::Data));
            adapter.push(generated, &mut self.frames, place, id, line.port.waiting_bytes());
        }
    }

    /// A frame of an agent comes to the queue of its flow.
    pub(super) fn push_outlet(&mut self, port: u32, id: FrameId, size: Bytes) {
        let (now, line) = (self.now, &mut self.lines[port as usize]);
        let Some(control) = &mut self.control else { return };
        let place = control.places[self.frames[id].flow as usize];
        let Some(adapter) = &mut control.extras[port as usize].adapter else { return };
        if adapter.has_room(now, place, size, line.port.is_free(now)) {
            adapter.push(now, &mut self.frames, place, id, line.port.waiting_bytes());
        } else {
            line.port.count_drop(now, size);
            if adapter.is_limited(place) {
                control.limiter_drops[self.frames[id].leg as usize] += 1;
            }
            self.drop_frame(id);
        }
    }
}
