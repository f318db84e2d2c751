//! Shared memories, hosts with a queue for each destination, slow outputs.
//!
//! In a network with any of them every host is a *station* and every port of a switch is *stored*: what arrives at an instant
//! is stored before anything that leaves then is taken out, and hosts come last. So within an instant frames arrive, in
//! the order of the ports that they come over; then control takes effect; then the ports of switches serve, in order; then
//! hosts generate and send, in order. That is the order of the slots of [`crate::slotted`], with which this
//! engine agrees to the frame where both can run a network.
//!
//! PAUSE by a shared memory travels beside the frames and takes no time of a line.

mod buffer;
mod hosts;
mod limiter;
mod memory;
mod report;
mod station;
mod stores;
mod valve;

use std::collections::BTreeMap;

use weir_core::ethernet::pause::{Pause, length};
use weir_core::ethernet::reaction::Rules;
use weir_core::queue::SharedMemory;
use weir_core::rng::Seed;
use weir_core::spec::switching::{MemoryPause, PauseScope};
use weir_core::units::{Bytes, Span, Time};

use self::buffer::Buffer;
use self::limiter::Manner;
use self::memory::Memory;
use self::station::{Obedience, Outlet, Station};
use self::valve::Valve;
use super::plan::ControlPlan;
use super::{Control, Task};
use crate::credit::Savings;
use crate::fabric::Fabric;
use crate::feed::Feed;
use crate::limiting::HostSeries;
use crate::plan::Plan;
use crate::probes::Boundaries;
use crate::totals::ControlKind;

/// A PAUSE frame: the least there is.
const PAUSE_BYTES: Bytes = Bytes::new(64);

/// What a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// One of a network without shared memories, adapters and slow outputs.
    Plain,
    /// Of a host.
    Station,
    /// Of a switch.
    Stored,
}

/// All that is beyond plain queues.
#[derive(Debug)]
pub(super) struct Switching {
    /// By port.
    stations: Vec<Option<Box<Station>>>,
    valves: Vec<Option<Box<Valve>>>,
    /// By the port of the host.
    buffers: Vec<Option<Box<Buffer>>>,
    /// By node.
    memories: Vec<Memory>,
    /// By port: bytes that came over it and wait.
    of_input: Vec<u64>,
    /// By port: whether it was asked to stop for what came over it.
    input_above: Vec<bool>,
    /// By port: when it is asked again to stop.
    repeats: Vec<Time>,
}

impl Switching {
    /// The state of `plan` at time zero, if it has any.
    pub(super) fn new(plan: &Plan, shared: &ControlPlan, seed: Seed) -> Option<Box<Switching>> {
        if !plan.is_switched() {
            return None;
        }
        let (spec, topology) = (&plan.spec.switching, &plan.topology);
        let mut memories = vec![Memory::new(); topology.nodes.len()];
        for memory in &spec.memories {
            for &node in &memory.nodes {
                let of_node = &mut memories[node as usize];
                (of_node.shared, of_node.pause) = (SharedMemory::new(memory.bytes, memory.alpha), memory.pause);
            }
        }
        for (id, port) in (0..).zip(&topology.ports) {
            memories[port.to as usize].inputs.push(id);
        }
        let ports = topology.ports.len();
        let mut switching = Switching {
            stations: (0..ports).map(|_| None).collect(),
            valves: (0..ports).map(|_| None).collect(),
            buffers: (0..ports).map(|_| None).collect(),
            memories,
            of_input: vec![0; ports],
            input_above: vec![false; ports],
            repeats: vec![Time::NEVER; ports],
        };
        switching.add_valves(plan);
        switching.add_stations(plan, shared, seed);
        Some(Box::new(switching))
    }

    /// A slow port with a buffer behind it is as fast as ever: it is the buffer that is slow.
    fn add_valves(&mut self, plan: &Plan) {
        let spec = &plan.spec.switching;
        let mut of_port: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        spec.services.iter().for_each(|service| of_port.entry(service.port).or_default().push(*service));
        for (id, port) in (0..).zip(&plan.topology.ports) {
            let egress = spec.egress.iter().find(|egress| egress.hosts.contains(&port.to));
            let services = of_port.get(&id).map_or(&[][..], Vec::as_slice);
            if let Some(egress) = egress {
                let buffer = Buffer::new(egress, Valve::of_buffer(services, port.link.rate_bps));
                self.buffers[id as usize ^ 1] = Some(Box::new(buffer));
            } else if !services.is_empty() {
                self.valves[id as usize] = Some(Box::new(Valve::of_port(services, port.link.rate_bps)));
            }
        }
    }

    fn add_stations(&mut self, plan: &Plan, shared: &ControlPlan, seed: Seed) {
        let topology = &plan.topology;
        let mut in_turn = vec![false; topology.nodes.len()];
        let adapters = plan.spec.switching.adapters.iter();
        adapters.flat_map(|adapter| &adapter.hosts).for_each(|&host| in_turn[host as usize] = true);
        let mut destinations: Vec<Vec<u32>> = vec![Vec::new(); topology.ports.len()];
        for flow in 0..plan.pairs() {
            destinations[plan.first_port(flow) as usize].push(plan.target(flow));
        }
        let mut feeds: BTreeMap<u32, Feed> = plan.feeds(seed, |_| true).collect();
        for ((id, port), destinations) in (0..).zip(&topology.ports).zip(destinations) {
            if !topology.is_host(port.from) {
                continue;
            }
            let outlet = Outlet {
                host: port.from,
                rate: port.link.rate_bps,
                framing: port.link.framing_bytes,
                limit: plan.limits[id as usize],
            };
            let rules =
                Rules::new(&plan.spec.control, port.link.rate_bps).filter(|_| shared.limited[port.from as usize]);
            let limiter = plan.spec.control.limiter();
            let jitter = limiter.map_or(0.0, |limiter| limiter.pacing_jitter);
            let how = Manner { jitter, savings: Savings::new(limiter, port.link.rate_bps) };
            let obedience = rules.map(|rules| Obedience { rules, how, seed });
            let obeys = obedience.is_some();
            let mut station =
                Station::new(outlet, feeds.remove(&id), destinations, in_turn[port.from as usize], obedience);
            let probe = plan.spec.record.limiters.iter().find(|probe| probe.host == port.from && obeys);
            if let Some(probe) = probe {
                let boundaries = Boundaries::new(probe.every_ps, Time::ZERO + plan.spec.run.duration_ps);
                station.series = Some(Box::new(HostSeries::new(boundaries, station.places())));
            }
            self.stations[id as usize] = Some(Box::new(station));
        }
    }
}

impl Control {
    /// What `port` is.
    pub(super) fn role(&self, port: u32) -> Role {
        match &self.switching {
            None => Role::Plain,
            Some(switching) if switching.stations[port as usize].is_some() => Role::Station,
            Some(_) => Role::Stored,
        }
    }
}

impl From<Pause> for ControlKind {
    fn from(pause: Pause) -> ControlKind {
        match pause {
            Pause::Xoff => ControlKind::Xoff,
            Pause::Xon => ControlKind::Xon,
        }
    }
}

impl Fabric<'_> {
    /// Time until the transmitter `port` obeys PAUSE that the other end of its link sent.
    fn hold_delay(&self, port: u32) -> Span {
        let link = &self.plan.topology.ports[port as usize];
        let response = self.plan.control.as_ref().map_or(Span::ZERO, |shared| shared.responses[link.from as usize].0);
        link.link.delay_ps + response
    }

    /// A memory asks the transmitter `port` to stop or to go on. One of a switch that goes on at once begins no frame
    /// before `after`.
    fn ask(&mut self, port: u32, pause: Pause, marks: &MemoryPause, after: Time) {
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let repeat = match (pause, marks.refresh_ps) {
            (Pause::Xoff, Some(every)) => self.now + every,
            _ => Time::NEVER,
        };
        switching.repeats[port as usize] = repeat;
        if repeat != Time::NEVER {
            self.plan_task(port, repeat, Task::Repeat);
        }
        self.send_beside(port, pause, marks, after);
    }

    fn send_beside(&mut self, port: u32, pause: Pause, marks: &MemoryPause, after: Time) {
        self.note_control(port ^ 1, port ^ 1, pause.into(), PAUSE_BYTES);
        let rate = self.plan.topology.ports[port as usize].link.rate_bps;
        let length = marks.quanta.map(|quanta| length(quanta, rate));
        let delay = marks.delay_ps + self.hold_delay(port);
        if delay > Span::ZERO {
            self.plan_task(port, self.now + delay, Task::Hold { pause, length });
        } else if pause == Pause::Xon && after > self.now {
            self.release_after(port, after);
        } else {
            self.hold(port, pause, length);
        }
    }

    /// XOFF is repeated, unless XON or another XOFF was sent since it was entered.
    pub(super) fn repeat(&mut self, port: u32) {
        let node = self.plan.topology.ports[port as usize].to;
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        if switching.repeats[port as usize] != self.now {
            return;
        }
        if let Some(marks) = switching.memories[node as usize].pause {
            self.ask(port, Pause::Xoff, &marks, self.now);
        }
    }

    /// A frame was stored that came over `input`: the memory at its end may be too full now.
    fn watch_growth(&mut self, input: u32) {
        let node = self.plan.topology.ports[input as usize].to;
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let memory = &mut switching.memories[node as usize];
        let Some(marks) = memory.pause else { return };
        let (is_above, level) = match marks.scope {
            PauseScope::Switch => (&mut memory.is_above, memory.shared.level().count()),
            PauseScope::Input => (&mut switching.input_above[input as usize], switching.of_input[input as usize]),
        };
        if *is_above || level <= marks.xoff_bytes.count() {
            return;
        }
        *is_above = true;
        memory.xoffs += 1;
        match marks.scope {
            PauseScope::Input => self.ask(input, Pause::Xoff, &marks, self.now),
            PauseScope::Switch => self.ask_all(node, Pause::Xoff, &marks, self.now),
        }
    }

    /// A frame that came over `input` began to leave by `port`, until `end`: the memory may be empty enough now.
    fn watch_fall(&mut self, port: u32, input: u32, end: Time) {
        let node = self.plan.topology.ports[port as usize].from;
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let memory = &mut switching.memories[node as usize];
        let Some(marks) = memory.pause else { return };
        let (is_above, level) = match marks.scope {
            PauseScope::Switch => (&mut memory.is_above, memory.shared.level().count()),
            PauseScope::Input => (&mut switching.input_above[input as usize], switching.of_input[input as usize]),
        };
        if !*is_above || level > marks.xon_bytes.count() {
            return;
        }
        *is_above = false;
        match marks.scope {
            // Ports are served in order: a later one still is at this instant.
            PauseScope::Input => self.ask(input, Pause::Xon, &marks, if input > port { self.now } else { end }),
            PauseScope::Switch => self.ask_all(node, Pause::Xon, &marks, end),
        }
    }

    fn ask_all(&mut self, node: u32, pause: Pause, marks: &MemoryPause, after: Time) {
        let inputs = |fabric: &Fabric<'_>| {
            let switching = fabric.control.as_ref()?.switching.as_ref()?;
            Some(switching.memories[node as usize].inputs.clone())
        };
        for input in inputs(self).unwrap_or_default() {
            self.ask(input, pause, marks, after);
        }
    }
}
