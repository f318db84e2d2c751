//! The events of the scenario happen.

use std::sync::Arc;

use weir_core::ethernet::pfc::Says;
use weir_core::queue::ClassSet;
use weir_core::spec::events::Change;
use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::control::held::Storm;
use crate::frames::FrameId;
use crate::route::LOST;
use crate::totals::DropCause;

impl Fabric<'_> {
    /// The events that are due happen.
    #[cold]
    pub(crate) fn run_script(&mut self) {
        let Some(script) = &mut self.script else { return };
        let events = Arc::clone(&script.events);
        let due = events[script.next..].iter().take_while(|event| event.at_ps <= self.now).count();
        let first = script.next;
        script.next += due;
        for event in &events[first..first + due] {
            self.change(&event.change);
        }
        self.await_script();
    }

    /// Enters the next event of the script.
    pub(crate) fn await_script(&mut self) {
        if let Some(at) = self.script.as_ref().and_then(|script| script.due()) {
            let entity = self.script_entity();
            self.agenda.push(at, entity);
        }
    }

    pub(super) fn change(&mut self, change: &Change) {
        change.ports().iter().for_each(|&port| self.look(port));
        match change {
            Change::Down { ports } => ports.iter().for_each(|&port| self.take_down(port)),
            Change::Up { ports } => ports.iter().for_each(|&port| self.set_down(port, false)),
            Change::Reroute { ports } => self.learn(ports),
            Change::Rate { ports, rate_bps } => ports.iter().for_each(|&port| {
                self.keep(port);
                self.lines[port as usize].port.set_rate(*rate_bps);
                self.arm(port);
            }),
            Change::Limit { ports, limit, class } => {
                ports.iter().for_each(|&port| self.lines[port as usize].port.set_limit((*limit).into(), *class));
            }
            Change::Hold { ports, classes } => {
                let classes: ClassSet = classes.iter().copied().collect();
                ports.iter().for_each(|&port| {
                    self.keep(port);
                    self.lines[port as usize].port.hold(self.now, classes);
                });
            }
            Change::Storm { ports, classes, every_ps } => {
                let says = Says::stop(classes.iter().copied().collect());
                let storm = Storm { says, every: *every_ps, next: self.now };
                ports.iter().for_each(|&port| self.set_storm(port, Some(storm)));
            }
            Change::Calm { ports } => ports.iter().for_each(|&port| self.set_storm(port, None)),
            Change::Release { ports, classes } => {
                let classes: ClassSet = classes.iter().copied().collect();
                ports.iter().for_each(|&port| {
                    self.lines[port as usize].port.release(self.now, classes);
                    self.arm(port);
                });
            }
        }
    }

    pub(super) fn set_down(&mut self, port: u32, down: bool) {
        if let Some(script) = &mut self.script {
            script.down[port as usize] = down;
        }
    }

    /// Whether the link behind `port` is down.
    pub(crate) fn is_down(&self, port: u32) -> bool {
        self.script.as_ref().is_some_and(|script| script.down[port as usize])
    }

    /// The link behind `port` goes down: what is on it and what waits before it is lost.
    pub(super) fn take_down(&mut self, port: u32) {
        self.set_down(port, true);
        self.keep(port);
        let flying: Vec<FrameId> = self.links[port as usize].in_flight(&self.frames).collect();
        let waiting = self.lines[port as usize].port.purge(self.now);
        for id in flying {
            let frame = &mut self.frames[id];
            // Its place in the ways is kept where its birth was, which counts no more.
            if frame.leg != self.forwarding.lost {
                (frame.born, frame.leg) = (Time::from_ps(frame.leg.into()), self.forwarding.lost);
            }
        }
        for id in waiting {
            if self.is_pooled(port) {
                let frame = self.frames[id];
                self.leave_buffer(port, &frame);
            }
            self.drop_frame(id, DropCause::LinkDown);
        }
    }

    /// A frame that was on a link when it went down would have arrived.
    #[cold]
    pub(crate) fn lose_flying(&mut self, id: FrameId) {
        debug_assert_eq!(self.forwarding.route[self.frames[id].leg as usize], LOST);
        self.hops -= 1;
        self.frames[id].leg = self.frames[id].born.ps() as u32;
        self.lose_behind_port(id);
    }

    /// A frame is lost behind the port whose place in the ways it has.
    pub(super) fn lose_behind_port(&mut self, id: FrameId) {
        let port = self.forwarding.input(self.plan, self.frames[id].leg + 1);
        self.lost[port as usize] += 1;
        self.drop_frame(id, DropCause::LinkDown);
    }

    /// A frame comes to a port. If its link is down, its node forwards the frame, if it knows a way, or loses it; whether it did.
    pub(super) fn is_detoured(&mut self, port: u32, id: FrameId, size: Bytes) -> bool {
        if !self.is_down(port) {
            return false;
        }
        let frame = self.frames[id];
        let planned = &self.plan.flows[frame.flow as usize];
        if planned.is_open {
            if self.forwarding.is_down(port)
                && let Some(onward) = self.detour_open(port, id)
            {
                self.offer(onward, id, size, frame.lane);
                return true;
            }
        } else if frame.leg != planned.first_leg && self.forwarding.is_down(port) {
            let input = self.forwarding.input(self.plan, frame.leg);
            if let Some(onward) = self.forward(id, input) {
                self.offer(onward, id, size, frame.lane);
                return true;
            }
        }
        let class = self.plan.flows[frame.flow as usize].class;
        self.lines[port as usize].port.count_drop_of(self.now, size, class);
        self.drop_frame(id, DropCause::LinkDown);
        true
    }

    /// The node behind port `input` is asked where a frame goes on; none if it knows no way.
    pub(super) fn forward(&mut self, id: FrameId, input: u32) -> Option<u32> {
        let (topology, flow) = (&self.plan.topology, self.frames[id].flow);
        let node = topology.ports[input as usize].to;
        let onward = self.forwarding.next(self.plan, node, flow)?;
        let leg = self.forwarding.leg(topology, flow, input, onward, self.plan.flows[flow as usize].to);
        let legs = self.forwarding.route.len();
        self.drops.make_room(legs);
        if let Some(control) = &mut self.control {
            control.make_room(legs);
        }
        self.frames[id].leg = leg;
        Some(onward)
    }

    /// A frame has arrived whose way is not fixed: its node is asked, or it was lost on its link.
    #[cold]
    pub(crate) fn arrive_unknown(&mut self, id: FrameId, leg: u32) {
        if self.forwarding.route[leg as usize] == LOST {
            return self.lose_flying(id);
        }
        let input = self.forwarding.input(self.plan, leg);
        let (size, lane) = (self.frames[id].size(), self.frames[id].lane);
        match self.forward(id, input) {
            Some(onward) => self.offer(onward, id, size, lane),
            None => {
                self.frames[id].leg = leg - 1;
                self.lose_behind_port(id);
            }
        }
    }

    /// Nodes come to know which of the links behind `ports` are down; of others they know what they knew.
    pub(super) fn learn(&mut self, ports: &[u32]) {
        if let Some(script) = &self.script {
            self.forwarding.learn(self.plan, ports, &script.down);
            if let Some(open) = &mut self.open {
                open.learn(&self.plan.topology, self.forwarding.known_down());
            }
        }
    }

    /// The places of the ways at which frames of `flow` were counted, each with its port.
    pub(crate) fn legs_of(&self, flow: u32) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.forwarding.added(flow).map(|(leg, port)| (port, leg as usize))
    }
}
