//! PAUSE frames: who sends them, whom they hold, and for how long.

use weir_core::ethernet::pause::{self, Pause};
use weir_core::ethernet::pfc::Says;
use weir_core::queue::{ClassSet, Lane};
use weir_core::units::{Bytes, Span, Time};

use super::Fabric;
use super::storms::STORM_FRAME;
use crate::control::Task;
use crate::frames::{Body, Frame, Kind};
use crate::totals::ControlKind;

impl Fabric<'_> {
    /// The queue of `port` has become too long, or short enough again.
    #[cold]
    pub(super) fn on_crossing(&mut self, port: u32, crossing: Pause) {
        let node = self.plan.topology.ports[port as usize].from;
        let Some(control) = &mut self.control else { return };
        let long = &mut control.long[node as usize];
        let changed = match crossing {
            Pause::Xoff => {
                long.queues += 1;
                long.queues == 1
            }
            Pause::Xon => {
                long.queues -= 1;
                long.queues == 0
            }
        };
        if changed {
            self.pause_neighbours(port, crossing);
        }
    }

    /// The node of `port` sends PAUSE frames to all its neighbours because of the queue there.
    pub(super) fn pause_neighbours(&mut self, port: u32, pause: Pause) {
        let Some(rule) = self.pause_rule(port) else { return };
        let (delay, refresh) = (rule.delay_ps, rule.refresh_ps);
        let ports = &self.plan.topology.ports;
        let node = ports[port as usize].from;
        for (out, _) in (0..).zip(ports).filter(|(_, other)| other.from == node) {
            self.plan_task(out, self.now + delay, Task::Send { says: pause.into(), queue_port: port });
        }
        let next = match pause {
            Pause::Xoff => refresh.map_or(Time::NEVER, |every| self.now + every),
            Pause::Xon => Time::NEVER,
        };
        if let Some(control) = &mut self.control {
            control.long[node as usize].refresh = next;
        }
        if next != Time::NEVER {
            self.plan_task(port, next, Task::Refresh);
        }
    }

    /// XOFF is repeated, unless XON or another XOFF was sent since it was entered.
    pub(crate) fn refresh(&mut self, port: u32) {
        let node = self.plan.topology.ports[port as usize].from;
        let Some(control) = &self.control else { return };
        if control.long[node as usize].refresh == self.now {
            self.pause_neighbours(port, Pause::Xoff);
        }
    }

    /// A PAUSE frame sets out at `port`, unless one waits there: that says this, too.
    pub(crate) fn send_pause(&mut self, port: u32, says: Says, queue_port: u32) {
        let Some((size, _)) = self.pause_frames(port) else { return };
        let control = self.lines[port as usize].port.waiting().take_while(|&id| self.frames[id].lane == Lane::Control);
        let last = control.filter(|&id| self.frames[id].kind == Kind::Pause).last();
        if let Some(id) = last
            && let Body::Pause(waiting) = self.frames.body(id)
            && (waiting == says || self.pause_rule(port).is_none())
        {
            return self.frames.change_control(id, Body::Pause(waiting.then(says)));
        }
        let kind = if says.stop.is_empty() { ControlKind::Xon } else { ControlKind::Xoff };
        self.count_control(port, queue_port, kind, size);
        let frame = Frame::new(self.now, 0, 0, size, Lane::Control).of_kind(Kind::Pause);
        let id = self.frames.put_loaded(frame, Body::Pause(says));
        self.offer(port, id, size, Lane::Control);
    }

    /// The transmission of a PAUSE frame at `port` ends at `end`: it will hold the transmitter at the other end.
    pub(crate) fn pause_peer(&mut self, port: u32, says: Says, end: Time) {
        let (Some(shared), Some((_, quanta))) = (&self.plan.control, self.pause_frames(port)) else { return };
        let link = &self.plan.topology.ports[port as usize];
        let response = shared.responses[link.to as usize].0;
        let length = quanta.map(|quanta| pause::length(quanta, link.link.rate_bps));
        self.plan_task(port ^ 1, end + link.link.delay_ps + response, Task::Hold { says, length });
    }

    /// A PAUSE frame takes effect at the transmitter of `port`.
    pub(crate) fn hold(&mut self, port: u32, says: Says, length: Option<Span>) {
        let now = self.now;
        let says = self.watch_request(port, says);
        if !says.stop.is_empty() {
            let Some(held) = self.held(port) else { return };
            let (_, until) = held.holds.stop(now, says.stop, length);
            self.look(port);
            self.stop_classes(port, says.stop);
            self.watch_for_deadlock();
            if until != Time::NEVER {
                self.plan_task(port, until, Task::Expire);
            }
        }
        if !says.go.is_empty() {
            self.release(port, says.go, now);
        }
    }

    /// No frame of `classes` begins at a port that was looked at.
    fn stop_classes(&mut self, port: u32, classes: ClassSet) {
        let now = self.now;
        if classes == ClassSet::ALL {
            return self.stop(port);
        }
        if let Some(host) = self.control.as_mut().and_then(|control| control.host(port)) {
            host.held = host.held.with(classes);
            return self.run_host(port);
        }
        self.keep(port);
        self.lines[port as usize].port.hold(now, classes);
    }

    /// A pause may have run out.
    pub(crate) fn expire(&mut self, port: u32) {
        let held = self.control.as_ref().and_then(|control| control.extras[port as usize].held.as_ref());
        let classes = held.map_or(ClassSet::NONE, |held| held.holds.run_out(self.now));
        if !classes.is_empty() {
            self.release(port, classes, self.now);
        }
    }

    /// Frames of `classes` may go again at `port`; a port that stores begins none before `after`.
    pub(super) fn release(&mut self, port: u32, classes: ClassSet, after: Time) {
        let now = self.now;
        self.look(port);
        if let Some(control) = &mut self.control {
            let extra = &mut control.extras[port as usize];
            if let Some(held) = &mut extra.held {
                for class in classes.list() {
                    if let Some(since) = held.holds.since(class) {
                        control.hold_probes.note(port, class, since, now);
                    }
                }
                held.holds.go(now, classes);
            }
            if let Some(host) = extra.beyond.host_mut() {
                host.held = host.held.without(classes);
            }
        }
        self.lines[port as usize].port.release(now, classes);
        self.go_on(port, after);
    }

    /// The size of the PAUSE frames that the node of `port` sends, and how long they last.
    fn pause_frames(&self, port: u32) -> Option<(Bytes, Option<u16>)> {
        if self.plan.topology.is_host(self.plan.topology.ports[port as usize].from) {
            return Some(STORM_FRAME);
        }
        if let Some(rule) = self.pause_rule(port) {
            return Some((rule.frame_bytes, rule.quanta));
        }
        let node = self.plan.topology.ports[port as usize].from;
        let place = self.plan.control.as_ref()?.asking[node as usize]?;
        let how = self.plan.spec.buffers[place as usize].flow_control.as_ref()?;
        Some((how.frame_bytes, how.quanta))
    }

    /// The rule of the node that `port` belongs to.
    pub(super) fn pause_rule(&self, port: u32) -> Option<&weir_core::spec::control::Pause> {
        let node = self.plan.topology.ports[port as usize].from;
        let rule = self.plan.control.as_ref()?.pausing[node as usize]?;
        Some(&self.plan.spec.control.pause[rule as usize])
    }
}
