//! PAUSE frames: who sends them, whom they hold, and for how long.

use weir_core::ethernet::pause::{self, Pause};
use weir_core::queue::Lane;
use weir_core::units::{Bytes, Span, Time};

use super::Fabric;
use crate::control::Task;
use crate::frames::{Body, Frame, Kind};
use crate::totals::ControlKind;

impl Fabric<'_> {
    /// So much waits at a port now: its node may have to stop or release its neighbours.
    #[inline]
    pub(crate) fn watch_level(&mut self, port: u32, waiting: Bytes) {
        let Some(control) = &mut self.control else { return };
        let Some(guard) = control.switch(port).and_then(|switch| switch.guard.as_mut()) else { return };
        if let Some(crossing) = guard.on_level(waiting.count()) {
            self.on_crossing(port, crossing);
        }
    }

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
            self.plan_task(out, self.now + delay, Task::Send { pause, queue_port: port });
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

    /// A PAUSE frame sets out at `port`, unless one that says the same waits there as the last.
    pub(crate) fn send_pause(&mut self, port: u32, pause: Pause, queue_port: u32) {
        let Some(rule) = self.pause_rule(port) else { return };
        let control = self.lines[port as usize].port.waiting().take_while(|&id| self.frames[id].lane == Lane::Control);
        let last = control.filter(|&id| self.frames[id].kind == Kind::Pause).last();
        if last.is_some_and(|id| self.frames.body(id) == Body::Pause(pause)) {
            return;
        }
        let size = rule.frame_bytes;
        let kind = match pause {
            Pause::Xoff => ControlKind::Xoff,
            Pause::Xon => ControlKind::Xon,
        };
        self.count_control(port, queue_port, kind, size);
        let frame = Frame::new(self.now, 0, 0, size, Lane::Control).of_kind(Kind::Pause);
        let id = self.frames.put_loaded(frame, Body::Pause(pause));
        self.offer(port, id, size, Lane::Control);
    }

    /// The transmission of a PAUSE frame at `port` ends at `end`: it will hold the transmitter at the other end.
    pub(crate) fn pause_peer(&mut self, port: u32, pause: Pause, end: Time) {
        let (Some(shared), Some(rule)) = (&self.plan.control, self.pause_rule(port)) else { return };
        let link = &self.plan.topology.ports[port as usize];
        let response = shared.responses[link.to as usize].0;
        let length = rule.quanta.map(|quanta| pause::length(quanta, link.link.rate_bps));
        self.plan_task(port ^ 1, end + link.link.delay_ps + response, Task::Hold { pause, length });
    }

    /// A PAUSE frame takes effect at the transmitter of `port`.
    pub(crate) fn hold(&mut self, port: u32, pause: Pause, length: Option<Span>) {
        let now = self.now;
        let Some(control) = &mut self.control else { return };
        let hold = &mut control.extras[port as usize].hold;
        match pause {
            Pause::Xoff => {
                hold.on_xoff(now, length);
                let until = hold.until();
                self.look(port);
                self.stop(port);
                if until != Time::NEVER {
                    self.plan_task(port, until, Task::Expire);
                }
            }
            Pause::Xon => {
                self.release(port, now);
            }
        }
    }

    /// A pause may have run out.
    pub(crate) fn expire(&mut self, port: u32) {
        let Some(control) = &self.control else { return };
        if control.extras[port as usize].hold.until() <= self.now {
            self.release(port, self.now);
        }
    }

    /// Frames may go again at `port`; a port that stores begins none before `after`.
    pub(super) fn release(&mut self, port: u32, after: Time) {
        self.look(port);
        if let Some(control) = &mut self.control {
            control.extras[port as usize].hold.on_xon();
        }
        self.lines[port as usize].port.resume(self.now);
        self.go_on(port, after);
    }

    /// The rule of the node that `port` belongs to.
    pub(super) fn pause_rule(&self, port: u32) -> Option<&weir_core::spec::control::Pause> {
        let node = self.plan.topology.ports[port as usize].from;
        let rule = self.plan.control.as_ref()?.pausing[node as usize]?;
        Some(&self.plan.spec.control.pause[rule as usize])
    }
}
