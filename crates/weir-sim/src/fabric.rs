//! The network in motion: ports, links, frames, and what happens next.
//!
//! Every transmitter owns the frames in flight on its link, in order of arrival; only the first of them is an event.
//! A port has an event only while something waits.
//!
//! Reading order: this file, who has the next event; `plain`, the way of a frame over plain ports; `fed`, ports that pull their sources; `switch`, ports that are put together of
//! parts, with `managed`, `marks`, `overruns`, `notifying`, `pausing`, `wire`, and with shared memories `memories`, `buffers`, with pools `pools`, `storms`, `deadlocks`; `hosts`, with queues of
//! their own; `open`, frames of messages; `foresight`, what the next events need; `tasks`, what is to happen later; `script`, what happens in the course of a run. The parts of which ports and hosts consist are in
//! [`crate::control`]: they know no fabric.

mod buffers;
mod deadlocks;
mod fed;
mod foresight;
mod hosts;
mod managed;
mod marks;
mod memories;
mod notifying;
mod open;
mod overruns;
mod pausing;
mod plain;
mod pools;
mod report;
mod script;
mod storms;
mod switch;
mod tasks;
mod wire;

use weir_core::network::PortSpec;
use weir_core::queue::{ClassSet, Lane, Limit, Port};
use weir_core::rng::Seed;
use weir_core::spec::Discipline;
use weir_core::units::{Bytes, Time};

use crate::agenda::{Agenda, Entity};
use crate::control::Control;
use crate::deliveries::{FlowCounters, Watch};
use crate::drops::Drops;
use crate::feed::Feed;
use crate::forwarding::Forwarding;
use crate::frames::{Body, Frame, FrameId, Kind, Pool, Received, Trail};
use crate::line::{Line, Link, Role};
use crate::open::Open;
use crate::plan::Plan;
use crate::probes::PortProbes;
use crate::script::Script;
use crate::timer::{Alarm, Timer};
use crate::wire::Wires;

/// A network of ports and links under a scenario's load.
#[derive(Debug)]
pub struct Fabric<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) now: Time,
    pub(crate) end: Time,
    pub(crate) agenda: Agenda,
    pub(crate) lines: Vec<Line>,
    /// By port: the link behind it, and what it is.
    pub(crate) links: Vec<Link>,
    /// How many lines there are.
    ports: Entity,
    pub(crate) frames: Pool,
    pub(crate) flows: Vec<FlowCounters>,
    pub(crate) forwarding: Forwarding,
    /// What nodes know of ways, if there are messages.
    pub(crate) open: Option<Box<Open>>,
    pub(crate) script: Option<Script>,
    pub(crate) drops: Drops,
    /// Frames of flows lost behind each port, after their transmission had begun.
    pub(crate) lost: Vec<u64>,
    /// Frames received over a link.
    pub(crate) hops: u64,
    /// How much is done before the caller is asked whether to go on: events, and draws that are no event.
    pub(crate) patience: i64,
    /// Draws that were no event.
    pub(crate) draws: i64,
    pub(crate) feeds: Vec<Feed>,
    /// By port: its place in `feeds`, if it pulls its sources.
    pub(crate) feed_of: Vec<u32>,
    pub(crate) port_probes: PortProbes,
    pub(crate) watch: Option<Box<Watch>>,
    timers: Vec<Timer>,
    /// When the timer of an agent ran out last: all else of this instant is over.
    alarmed: Time,
    /// The agent that receives the frames with a body of each flow; empty if no agent receives any.
    receivers: Vec<u32>,
    /// The frame that an agent is about to be notified of.
    pub(crate) received: Option<Received>,
    /// What ports wrote into the last frame of a message that arrived, where they do.
    pub(crate) trail: Option<Trail>,
    pub(crate) control: Option<Box<Control>>,
    /// Links that lose frames, and ports whose frames are captured.
    pub(crate) wires: Option<Box<Wires>>,
    /// The entity of the first agent, behind those of the timers of ports, if they have any.
    first_agent: Entity,
}

impl<'p> Fabric<'p> {
    /// The network of `plan` at time zero, with the frames of `seed` about to come.
    pub(crate) fn new(plan: &'p Plan, seed: Seed, agents: usize) -> Fabric<'p> {
        let end = Time::ZERO + plan.spec.run.duration_ps;
        let ports = plan.topology.ports.iter().zip(&plan.limits).enumerate();
        let managements = &plan.parts.managements;
        let line = |(id, (port, limit)): (usize, (&PortSpec, &Limit))| {
            let limit = if plan.is_adapted(id as u32) { Limit::UNLIMITED } else { *limit };
            let name = || format!("queue/aqm/{}", port.name);
            let port = Port::new(port.link.rate_bps, port.link.framing_bytes, limit);
            let port = match plan.control.as_ref().and_then(|control| control.managed.get(&(id as u32))) {
                Some(Discipline::Managed { aqm, .. }) => port.managed(aqm, seed.stream(&name()), managements),
                Some(Discipline::Classes(classes)) => {
                    port.classed(classes, |class| seed.stream(&format!("{}/{class}", name())), managements)
                }
                Some(Discipline::DropTail { .. }) | None => port,
            };
            Line::new(if plan.is_stored(id as u32) { port.storing() } else { port }, plan.lag(id))
        };
        let lines: Vec<Line> = ports.map(line).collect();
        let (links, feed_of) = (vec![Link::NEW; lines.len()], vec![0; lines.len()]);
        let classes = match &plan.control {
            None => 2,
            Some(_) if !plan.is_switched() => 3,
            Some(_) => 4,
        };
        let forwarding = Forwarding::new(plan);
        let script = Script::new(plan);
        let ports = lines.len() * classes + usize::from(script.is_some());
        let mut fabric = Fabric {
            plan,
            now: Time::ZERO,
            end,
            agenda: Agenda::new(ports + agents),
            ports: lines.len() as Entity,
            first_agent: ports as Entity,
            lines,
            links,
            frames: Pool::new(),
            flows: vec![FlowCounters::NEW; plan.flows.len()],
            drops: Drops::new(plan.route.len().max(forwarding.route.len())),
            lost: vec![0; plan.topology.ports.len()],
            forwarding,
            open: plan.has_open_flows().then(|| {
                let mut open = Open::new(&plan.topology, seed.stream("balancing"));
                open.reads_entropy = plan.has_entropy();
                Box::new(open)
            }),
            script,
            hops: 0,
            patience: 0,
            draws: 0,
            feeds: Vec::new(),
            feed_of,
            port_probes: PortProbes::new(&plan.spec.record.ports, plan.topology.ports.len(), end),
            watch: Watch::new(plan, end).map(Box::new),
            timers: vec![Timer::IDLE; agents],
            alarmed: Time::NEVER,
            receivers: Vec::new(),
            received: None,
            trail: plan.spec.has_telemetry().then(Trail::default),
            control: plan.control.as_ref().map(|shared| Box::new(Control::new(plan, shared, seed, end))),
            wires: Wires::new(plan, seed).map(Box::new),
        };
        for (port, boundary) in fabric.port_probes.first() {
            fabric.lines[port as usize].boundary = boundary;
            fabric.links[port as usize].noted = true;
        }
        for port in fabric.wires.iter().flat_map(|wires| wires.ports()) {
            fabric.links[port as usize].watched = true;
        }
        fabric.add_feeds(seed);
        fabric.start_control();
        fabric.await_script();
        fabric.go_ahead();
        fabric
    }

    /// Lets ports send ahead whose sources are elsewhere, and where nobody has to know when a frame leaves its queue.
    fn go_ahead(&mut self) {
        if self.plan.is_switched() {
            return;
        }
        let asked: Vec<u32> = self.plan.bounded_adapters().collect();
        for (port, (line, link)) in (0..).zip(self.lines.iter_mut().zip(&self.links)) {
            let is_watched =
                self.control.as_ref().is_some_and(|control| control.watches(port)) || asked.contains(&port);
            if !is_watched && !link.pulls() && !link.watched {
                line.port.go_ahead();
            }
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A frame of `flow` leaves its host now.
    pub fn send(&mut self, flow: u32, size: Bytes, lane: Lane) {
        self.flows[flow as usize].send(size);
        let leg = self.plan.flows[flow as usize].first_leg;
        let frame = self.frames.put(Frame::new(self.now, flow, leg, size, lane));
        self.offer(self.forwarding.route[leg as usize], frame, size, lane);
    }

    /// A frame of `flow` that carries `body` leaves its host now. The agent that receives the flow is notified.
    pub fn send_loaded(&mut self, flow: u32, size: Bytes, lane: Lane, body: Body) {
        self.flows[flow as usize].send(size);
        let planned = &self.plan.flows[flow as usize];
        if planned.is_open {
            return self.send_open(flow, size, lane, body);
        }
        let leg = planned.first_leg;
        let frame = Frame::new(self.now, flow, leg, size, lane).of_kind(Kind::Loaded);
        let frame = self.frames.put_loaded(frame, body);
        self.offer(self.forwarding.route[leg as usize], frame, size, lane);
    }

    /// The port through which the frames of `flow` leave their host, as it is now.
    pub(crate) fn outlet(&mut self, flow: u32) -> &Port<FrameId> {
        let port = self.forwarding.route[self.plan.flows[flow as usize].first_leg as usize];
        if self.links[port as usize].role == Role::Host {
            self.look_host(port);
        }
        &self.lines[port as usize].port
    }

    /// No frame begins at `port` from now on, but for control frames; one in transmission ends. Not for a port that
    /// pulls its sources (see [`crate::Feeding`]).
    pub fn pause(&mut self, port: u32) {
        assert!(!self.links[port as usize].pulls(), "sources are pushed at a port that can be paused");
        self.look(port);
        self.stop(port);
    }

    /// As [`Fabric::pause`], at a port that was looked at.
    pub(crate) fn stop(&mut self, port: u32) {
        self.keep(port);
        self.lines[port as usize].port.pause(self.now);
    }

    /// What `port` sent ahead and has not begun waits again.
    #[inline]
    pub(crate) fn keep(&mut self, port: u32) {
        let port = port as usize;
        self.links[port].keep(&mut self.lines[port].port, &mut self.frames, self.now);
    }

    /// Frames may go again at `port`.
    pub fn resume(&mut self, port: u32) {
        self.release(port, ClassSet::ALL, self.now);
    }

    /// Enters the wake of a port, if it is owed and not entered.
    #[inline(always)]
    pub(crate) fn arm(&mut self, port: u32) {
        if let Some(due) = self.links[port as usize].arm(self.lines[port as usize].port.due()) {
            self.agenda.push(due, port);
        }
    }

    /// The next event.
    #[inline(always)]
    pub(crate) fn next_event(&mut self) -> Option<(Time, Entity)> {
        if self.agenda.is_idle() {
            self.agenda.turn();
            if self.lines.len() >= MANY_PORTS && self.agenda.has_more_to_show() {
                self.foresee();
            }
        }
        self.agenda.pop()
    }

    /// Handles an event. What an agent has to do is left to the caller: the place of the agent is returned, which is to
    /// be notified of the frame in `received`, if there is one, or else that its timer ran out.
    #[inline]
    pub(crate) fn on_event(&mut self, at: Time, entity: Entity) -> Option<u32> {
        self.now = at;
        if entity < self.ports {
            self.wake(entity);
            return None;
        }
        let port = entity - self.ports;
        if port < self.ports {
            return self.arrive(port);
        }
        if entity < self.first_agent {
            return self.on_port_event(port - self.ports);
        }
        self.on_alarm(entity - self.first_agent)
    }

    fn on_alarm(&mut self, agent: u32) -> Option<u32> {
        match self.timers[agent as usize].on_event(self.now) {
            Alarm::RunOut => {
                self.alarmed = self.now;
                return Some(agent);
            }
            Alarm::Later(at) => self.agenda.push(at, self.first_agent + agent),
            Alarm::Void => {}
        }
        None
    }

    /// The entity of the link behind a port.
    pub(crate) fn link(&self, port: u32) -> Entity {
        self.ports + port
    }

    /// The entity of the timer of a port.
    pub(crate) fn port_timer(&self, port: u32) -> Entity {
        2 * self.ports + port
    }

    /// The entity of the service of a port of a switch that stores.
    pub(crate) fn port_service(&self, port: u32) -> Entity {
        3 * self.ports + port
    }

    /// The entity of the events of the scenario: the last before agents.
    pub(crate) fn script_entity(&self) -> Entity {
        self.first_agent - 1
    }

    /// An event of a port that is neither its wake nor an arrival. Returns the agent that is to be notified.
    #[cold]
    fn on_port_event(&mut self, entity: Entity) -> Option<u32> {
        let ports = self.ports;
        if self.script.is_some() && entity + 2 * ports == self.script_entity() {
            self.run_script();
            return None;
        }
        if entity < ports {
            return self.on_port_timer(entity);
        }
        self.serve_switch(entity - ports);
        None
    }

    /// Enters the timer of an agent.
    pub(crate) fn set_timer(&mut self, agent: u32, at: Time) {
        if let Some(at) = self.timers[agent as usize].set(at) {
            self.agenda.push(at, self.first_agent + agent);
        }
    }

    /// Makes `agent` the receiver of `flow`.
    pub(crate) fn set_receiver(&mut self, flow: u32, agent: u32) {
        self.receivers.resize(self.flows.len(), NOBODY);
        self.receivers[flow as usize] = agent;
    }

    /// Writes the intervals that are left at the end.
    pub(crate) fn finish_intervals(&mut self) {
        for port in 0..self.ports {
            self.look(port);
        }
        for reckoning in self.feeds.iter_mut().filter_map(|feed| feed.take_reckoning()) {
            reckoning.finish(&mut self.port_probes.log);
        }
    }
}

/// No agent.
const NOBODY: u32 = u32::MAX;

/// From so many ports on a network does not fit into the nearer caches.
const MANY_PORTS: usize = 2000;
