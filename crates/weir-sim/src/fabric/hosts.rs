//! Hosts with queues of their own: what they send is worked out when its first frame arrives, or before something changes.
//!
//! What such a host sends depends on nothing else, until a frame of an agent, a notification or PAUSE comes: so a transmission needs no event
//! of its own. Hosts whose law is that all that comes at an instant comes before anything leaves then are worked out up to that instant; the
//! others with it.

use weir_core::ethernet::reaction::Feedback;
use weir_core::queue::{Lane, Offer};
use weir_core::units::{Bytes, Span, Time};

use super::Fabric;
use crate::control::host::{Host, NO_POINT};
use crate::control::plan::Law;
use crate::control::{Beyond, Extra, Task};
use crate::frames::{Frame, FrameId, Kind, NO_FRAME, Pool};
use crate::route::Flow;
use crate::timer::Alarm;
use crate::totals::DropCause;

const HAS_HOST: &str = "a line marked so has a host";
/// The shortest time there is.
const INSTANT: Span = Span::from_ps(1);

impl Fabric<'_> {
    /// Takes over the ports that have hosts with queues behind them.
    pub(super) fn start_hosts(&mut self) {
        for port in 0..self.ports {
            let Some(host) = self.control.as_mut().and_then(|control| control.host(port)) else { continue };
            host.next = if host.comes_first() { host.generated() } else { Time::ZERO };
            self.await_host(port);
        }
    }

    /// A frame comes to the port of a host: from an agent, or as a notification of the flow of another host.
    pub(super) fn offer_host(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        self.look_host(port);
        let (now, frame) = (self.now, self.frames[id]);
        let queue = self.queue_of(id);
        let Some(control) = &mut self.control else { return };
        let Some(host) = control.extras[port as usize].beyond.host_mut() else { return };
        if host.comes_first() && frame.leg > 0 && self.plan.route[frame.leg as usize - 1] == port ^ 1 {
            return self.keep_in_buffer(port, id);
        }
        let line = &mut self.lines[port as usize];
        let place = match frame.kind {
            _ if lane == Lane::Control => None,
            Kind::Notification => host.place_of_notifications(),
            _ => Some(host.place(self.plan.key(queue))),
        };
        let Some(place) = place else {
            host.know(size);
            if let Offer::Sent { end } = line.port.offer(now, id, size, lane) {
                self.set_out(port, id, end);
            }
            return self.run_host(port);
        };
        if host.has_room(now, place, size, line.port.is_free(now)) {
            host.push(now, &mut self.frames, place, id, line.port.waiting_bytes());
        } else {
            line.port.count_drop(now, size);
            let cause = cause_of_drop(host, place);
            self.drop_frame(id, cause);
        }
        self.run_host(port);
    }

    /// The flow in whose queue a frame waits at its host: what goes with data in another class, a request for credit, waits with what comes back.
    fn queue_of(&self, id: FrameId) -> u32 {
        let flow = self.frames[id].flow;
        let is_other = |planned: &Flow| {
            planned.is_open && !planned.returns && self.packet(id).is_some_and(|packet| packet.class != planned.class)
        };
        flow + u32::from(self.plan.flows.get(flow as usize).is_some_and(is_other))
    }

    /// A notification about frames with this key takes effect.
    pub(super) fn obey(&mut self, port: u32, key: u32, point: u32, feedback: Feedback) {
        self.change_host(port, |host, now, frames| {
            let place = host.place(key);
            host.on_feedback(now, place, point, feedback, frames).map(|at| (place, at))
        });
    }

    /// A change of a limiter that was due.
    pub(super) fn change_limiter(&mut self, port: u32, place: u32) {
        self.change_host(port, |host, now, frames| host.on_timeout(now, place, frames).map(|at| (place, at)));
    }

    /// Changes what a host may send; `change` says of which limiter the next change is due, and when.
    fn change_host(&mut self, port: u32, change: impl FnOnce(&mut Host, Time, &Pool) -> Option<(u32, Time)>) {
        self.look_host(port);
        let now = self.now;
        let Some(host) = self.control.as_mut().and_then(|control| control.host(port)) else { return };
        if let Some((place, at)) = change(host, now, &self.frames) {
            self.plan_task(port, at.max(now), Task::Limiter { place });
        }
        self.run_host(port);
    }

    /// The port is about to be touched: does what was to happen up to now.
    pub(crate) fn look_host(&mut self, port: u32) {
        let now = self.now;
        let is_over = !self.comes_first() || self.alarmed == now;
        self.catch_up(port, if is_over { now + INSTANT } else { now });
        self.draw_host(port, now, now);
    }

    /// Does what was to happen at `port` before `bound` and was left until it matters.
    pub(super) fn catch_up(&mut self, port: u32, bound: Time) {
        let bound = bound.min(self.end);
        while self.host(port).next < bound {
            let next = self.host(port).next;
            self.work_host(port, next);
        }
    }

    /// Something has changed at `port`: what may begin now begins, and it is known what comes next.
    pub(super) fn run_host(&mut self, port: u32) {
        let now = self.now;
        if self.comes_first() {
            self.host(port).next = now;
        } else {
            self.work_host(port, now);
        }
        self.await_host(port);
    }

    /// The event of the link behind `port` comes up: the frame that arrives, if one does.
    #[inline]
    pub(super) fn take_arrived(&mut self, port: u32) -> Option<FrameId> {
        let now = self.now;
        let bound = if self.comes_first() { now } else { now + INSTANT };
        match self.host(port).timer.on_event(now) {
            Alarm::RunOut => {}
            Alarm::Later(at) => {
                self.agenda.push(at, self.link(port));
                return None;
            }
            Alarm::Void => return None,
        }
        while self.links[port as usize].head == NO_FRAME && self.host(port).next < bound {
            let next = self.host(port).next;
            self.work_host(port, next);
        }
        let head = self.links[port as usize].head;
        let first = Some(head).filter(|&id| id != NO_FRAME && self.host(port).arrives == now);
        if first.is_some() {
            self.host(port).arrives = self.links[port as usize].take(&self.frames);
        }
        self.await_host(port);
        first
    }

    /// Enters when the next frame arrives, or may arrive at the earliest.
    fn await_host(&mut self, port: u32) {
        let (is_empty, now) = (self.links[port as usize].head == NO_FRAME, self.now);
        let host = self.host(port);
        let at = match is_empty {
            false => host.arrives,
            true if host.next == Time::NEVER => Time::NEVER,
            true => (host.next + host.lead).max(now),
        };
        if let Some(at) = host.timer.set(at) {
            self.agenda.push(at, self.link(port));
        }
    }

    /// Whether what comes to a host at an instant comes before anything leaves then.
    #[inline]
    fn comes_first(&self) -> bool {
        self.plan.law() == Law::Destinations
    }

    /// The host with queues behind `port`, which has one.
    #[inline(always)]
    fn host(&mut self, port: u32) -> &mut Host {
        let control = self.control.as_mut().expect(HAS_HOST);
        control.host(port).expect(HAS_HOST)
    }

    /// Begins what may begin at `port` at `now`, and works out when it is to be looked at again.
    fn work_host(&mut self, port: u32, now: Time) {
        self.draw_host(port, now, now);
        let comes_first = self.comes_first();
        if comes_first {
            self.wake_host(port, now);
            self.draw_host(port, now, now + INSTANT);
        }
        self.serve_host(port, now);
        if !comes_first && self.host(port).generated() == now {
            self.draw_host(port, now, now + INSTANT);
            self.serve_host(port, now);
        }
        let port_of_line = &self.lines[port as usize].port;
        let (due, free_at) = (port_of_line.due(), port_of_line.free_at());
        let (is_paused, queued) = (port_of_line.is_paused(), port_of_line.waiting_frames());
        let host = self.host(port);
        let opens = if host.may_pass(false, queued) {
            now
        } else if is_paused {
            Time::NEVER
        } else {
            free_at
        };
        host.next = host.ready().max(opens).min(due);
    }

    /// What waits in the port begins, if it may.
    #[inline(always)]
    fn wake_host(&mut self, port: u32, now: Time) {
        let line = &mut self.lines[port as usize];
        if line.port.due() <= now
            && let Some(sent) = line.port.wake(now)
        {
            self.set_out(port, sent.handle, sent.end);
        }
    }

    #[inline]
    fn serve_host(&mut self, port: u32, now: Time) {
        loop {
            self.wake_host(port, now);
            let line = &self.lines[port as usize];
            let (free, queued) = (line.port.is_free(now), line.port.waiting_frames());
            let Some(control) = &mut self.control else { return };
            let Some(host) = control.host(port) else { return };
            if !host.may_pass(free, queued) {
                return;
            }
            let Some((id, size, place)) = host.take(now, &self.frames) else { return };
            self.send_from(port, now, (id, size, place));
        }
    }

    /// A frame leaves its host's queues.
    #[inline(always)]
    fn send_from(&mut self, port: u32, now: Time, (id, size, place): (FrameId, Bytes, u32)) {
        let Some(control) = &mut self.control else { return };
        let tag = control.host(port).map_or(NO_POINT, |host| host.tag(place));
        if tag != NO_POINT || (id as usize) < control.tags.len() {
            crate::control::keep(&mut control.tags, id, tag);
        }
        // It is no control frame, so it takes effect nowhere but where it arrives.
        if let Offer::Sent { end } = self.lines[port as usize].port.offer(now, id, size, Lane::Data)
            && self.sets_out(port, id, end)
        {
            self.launch_from_host(port, id, end);
        }
    }

    /// As [`Fabric::launch`], where the event of the link is entered when all is known that is sent.
    #[inline(always)]
    pub(super) fn launch_from_host(&mut self, port: u32, id: FrameId, end: Time) {
        let arrives = end + self.lines[port as usize].lag;
        if self.links[port as usize].append(&mut self.frames, id, arrives) {
            self.host(port).arrives = arrives;
        }
    }

    /// Draws what the sources of a host generated before `bound`, and writes down what ended up to `now`.
    pub(super) fn draw_host(&mut self, port: u32, now: Time, bound: Time) {
        let bound = bound.min(self.end);
        while let Some((generated, frame)) = self.draw_until_one_passes(port, now, bound) {
            self.send_from(port, generated, frame);
        }
    }

    /// The same, up to a frame that need not wait where such a one passes all queues: it begins when it is generated.
    fn draw_until_one_passes(&mut self, port: u32, now: Time, bound: Time) -> Option<(Time, (FrameId, Bytes, u32))> {
        let control = self.control.as_mut()?;
        let Extra { boundary, beyond: Beyond::Host(host), .. } = &mut control.extras[port as usize] else {
            return None;
        };
        let line = &mut self.lines[port as usize];
        let comes_first = host.comes_first();
        loop {
            let generated = host.generated();
            let next = generated.min(now);
            host.write_rows(next, &self.frames);
            if *boundary <= next {
                host.load.settle(*boundary);
                let waiting = line.port.waiting_bytes();
                *boundary = self.port_probes.mark(port, next, &mut line.port);
                if let Some(mark) = self.port_probes.log.last_mut() {
                    mark.queue_bytes += host.load.bytes();
                    mark.queue_byte_ps += host.load.byte_ps();
                    mark.queue_max_bytes = host.load.restart_most(waiting);
                }
                // What waited through intervals in which nothing happened does not count for the one that holds `now`.
                host.load.settle(self.port_probes.begin(port));
                host.load.restart_most(waiting);
            }
            if generated >= bound {
                return None;
            }
            let drawn = host.feed.as_mut()?.draw();
            let size = drawn.size;
            let (flow, leg) = (self.plan.counted_as(drawn.flow, drawn.source), self.plan.first_leg(drawn.flow));
            self.flows[flow as usize].send(size);
            self.patience -= 1;
            self.draws += 1;
            let place = host.place_of(|| self.plan.key(drawn.flow));
            let free = line.port.is_free(generated);
            if !host.has_room(generated, place, size, free) {
                line.port.count_drop(generated, size);
                self.drops.count(leg, cause_of_drop(host, place));
                continue;
            }
            // A frame that can be marked does not say of which burst it is.
            let ends_burst = drawn.ends_burst || self.plan.is_capable(flow);
            let kind = if ends_burst { Kind::Data } else { Kind::InBurst };
            let id = self.frames.put(Frame::new(generated, flow, leg, size, Lane::Data).of_kind(kind));
            if comes_first && free && host.is_open(generated, place) {
                host.pass(place);
                host.know(size);
                return Some((generated, (id, size, place)));
            }
            host.push(generated, &mut self.frames, place, id, line.port.waiting_bytes());
        }
    }
}

/// Why a frame finds no room in the queue at `place`.
fn cause_of_drop(host: &Host, place: u32) -> DropCause {
    if host.has_own_limit(place) { DropCause::LimiterFull } else { DropCause::QueueFull }
}
