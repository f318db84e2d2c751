//! What ports and hosts are beyond plain ones: queues that measure, hold and mark, hosts with queues for flows, shared memories.
//!
//! These are states and models, which know no fabric; it moves them (`fabric::switch`, `fabric::hosts` and their neighbours).

pub(crate) mod held;
pub(crate) mod host;
mod hosts;
mod occupancy;
pub(crate) mod overruns;
pub(crate) mod plan;
pub(crate) mod point;
pub(crate) mod pools;
pub(crate) mod report;
pub(crate) mod spread;
pub(crate) mod switching;

use std::collections::{BTreeMap, BTreeSet};

use weir_core::ethernet::dcqcn::NotificationPoint;
use weir_core::ethernet::pause::Watermarks;
use weir_core::ethernet::pfc::Says;
use weir_core::ethernet::reaction::Feedback;
use weir_core::marking::Marker;
use weir_core::queue::ClassSet;
use weir_core::rng::Seed;
use weir_core::spec::MarkingTime;
use weir_core::units::{Span, Time};

use self::held::Held;
use self::host::{Host, NO_POINT};
use self::overruns::Inputs;
use self::plan::ControlPlan;
use self::point::Point;
use self::pools::Pools;
use self::report::Levels;
use self::spread::Spread;
use self::switching::Switching;
use self::switching::valve::Valve;
use crate::frames::FrameId;
use crate::noticed::{ControlProbes, HoldProbes};
use crate::plan::Plan;
use crate::totals::{ControlKind, DeadlockTotals, StormTotals, Totals};

/// All that is beyond plain ports.
#[derive(Debug)]
pub(crate) struct Control {
    /// By port.
    pub(crate) extras: Vec<Extra>,
    /// By frame: the congestion point that limited its flow when it was sent.
    pub(crate) tags: Vec<u32>,
    /// By frame: the port whose queue marked it.
    pub(crate) marked_at: Vec<u32>,
    /// Frames marked at each place of [`Plan::route`]; empty if no queue marks.
    pub(crate) marks: Vec<u64>,
    /// By flow, if there is DCQCN: when its receiver may notify its sender.
    pub(crate) receivers: Vec<NotificationPoint>,
    /// By node: its queues that are too long, and when XOFF is to be repeated.
    pub(crate) long: Vec<Long>,
    /// Frames and bytes by first port, cause and kind.
    pub(crate) sent: BTreeMap<(u32, u32, ControlKind), (u64, u64)>,
    pub(crate) probes: ControlProbes,
    pub(crate) hold_probes: HoldProbes,
    /// Shared memories, adapters, slow outputs, if there are any.
    pub(crate) switching: Option<Box<Switching>>,
    /// Buffers that are counted at inputs and outputs, if there are any.
    pub(crate) pools: Option<Box<Pools>>,
    /// Who was stopped because of whom, by these buffers.
    pub(crate) spread: Spread,
    /// What watchdogs found.
    pub(crate) storms: Vec<StormTotals>,
    /// Holds that were found to wait for each other, and no look for more before.
    pub(crate) deadlocks: Vec<DeadlockTotals>,
    pub(crate) looks: Time,
    /// Control frames that were made, and that reached their end.
    pub(crate) made: u64,
    pub(crate) ended: u64,
}

/// What is to be known of a port besides its line.
#[derive(Debug)]
pub(crate) struct Extra {
    /// When the current interval ends of a port that is more than a plain one, if intervals are written down.
    pub(crate) boundary: Time,
    pub(crate) tasks: Vec<(Time, Task)>,
    /// What is known of holds of its classes, once they were held.
    pub(crate) held: Option<Box<Held>>,
    pub(crate) beyond: Beyond,
}

/// What a port is beyond a plain one.
#[derive(Debug)]
pub(crate) enum Beyond {
    Nothing,
    Switch(Box<SwitchPort>),
    Host(Box<Host>),
}

/// The parts of a port of a switch behind its queue, which is the line's.
#[derive(Debug, Default)]
pub(crate) struct SwitchPort {
    /// Before the queue: the inputs that lose frames after it was full.
    pub(crate) inputs: Option<Box<Inputs>>,
    /// Behind it, where the output is slower for a while.
    pub(crate) valve: Option<Box<Valve>>,
    /// Who observes it: a congestion point, what marks, PAUSE, the record of its levels.
    pub(crate) point: Option<Box<Point>>,
    pub(crate) marker: Option<Box<Marker>>,
    /// Whether that is its only part, and marks frames that join.
    pub(crate) only_marks: bool,
    pub(crate) guard: Option<Watermarks<u64>>,
    pub(crate) levels: Option<Box<Levels>>,
    /// Whether what waits counts in a buffer with pools.
    pub(crate) is_pooled: bool,
    /// Classes that the watchdog drops.
    pub(crate) dropping: ClassSet,
}

impl SwitchPort {
    fn has_only_marker(&self) -> bool {
        let SwitchPort { inputs, valve, point, marker, guard, levels, is_pooled, .. } = self;
        let marks = marker.as_ref().is_some_and(|marker| marker.when() == MarkingTime::Arrival);
        let has_more = inputs.is_some() || valve.is_some() || point.is_some() || guard.is_some() || levels.is_some();
        marks && !has_more && !is_pooled
    }
}

impl Beyond {
    /// Of a port that is to have parts, as soon as it has one.
    pub(crate) fn become_switch(&mut self) -> &mut SwitchPort {
        if let Beyond::Nothing = self {
            *self = Beyond::Switch(Box::default());
        }
        self.switch_mut().expect("a host with queues of its own has no parts of a switch")
    }

    #[inline]
    fn switch_mut(&mut self) -> Option<&mut SwitchPort> {
        if let Beyond::Switch(switch) = self { Some(switch) } else { None }
    }

    /// The host with queues of its own, if it is one.
    #[inline]
    pub(crate) fn host(&self) -> Option<&Host> {
        if let Beyond::Host(host) = self { Some(host) } else { None }
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn host_mut(&mut self) -> Option<&mut Host> {
        if let Beyond::Host(host) = self { Some(host) } else { None }
    }
}

/// Keeps what is to be known of a frame at its place in `of_frames`.
#[inline]
pub(crate) fn keep(of_frames: &mut Vec<u32>, id: FrameId, known: u32) {
    if of_frames.len() <= id as usize {
        of_frames.resize((id as usize + 1).next_power_of_two(), NO_POINT);
    }
    of_frames[id as usize] = known;
}

/// The queues of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Long {
    pub(crate) queues: u32,
    pub(crate) refresh: Time,
}

/// What is to happen at a port.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// A notification for `flow` sets out, at this leg of its way.
    Notify { flow: u32, leg: u32, point: u32, feedback: Feedback },
    /// A PAUSE frame sets out, because of the queue at a port.
    Send { says: Says, queue_port: u32 },
    /// A PAUSE frame takes effect.
    Hold { says: Says, length: Option<Span> },
    /// A pause runs out.
    Expire,
    /// XOFF is repeated, if the queue is still too long.
    Refresh,
    /// A notification takes effect.
    Obey { key: u32, point: u32, feedback: Feedback },
    /// The limiter of this place of a host changes by itself.
    Limiter { place: u32 },
    /// A memory asks again to stop.
    Repeat,
    /// A switch asks again to stop because of its buffer.
    Renew,
    /// A node in a storm asks again to stop.
    Storm,
    /// The watchdogs of a port look.
    Look,
    /// A host looks into its buffer.
    Empty,
}

impl Control {
    /// The state of `plan` at time zero.
    pub(crate) fn new(plan: &Plan, shared: &ControlPlan, seed: Seed, end: Time) -> Control {
        let (topology, spec) = (&plan.topology, &plan.spec.control);
        let mut control = Control {
            extras: topology.ports.iter().map(|_| Extra::NEW).collect(),
            tags: Vec::new(),
            marked_at: Vec::new(),
            marks: vec![0; if shared.marks() { plan.route.len() } else { 0 }],
            receivers: vec![NotificationPoint::NEW; if spec.dcqcn.is_some() { plan.flows.len() } else { 0 }],
            long: vec![Long { queues: 0, refresh: Time::NEVER }; topology.nodes.len()],
            sent: BTreeMap::new(),
            probes: ControlProbes::new(&plan.spec.record.ports, end),
            hold_probes: HoldProbes::new(
                &plan.spec.record.ports,
                plan.flows.iter().map(|flow| flow.class).collect(),
                end,
            ),
            switching: Switching::new(plan),
            pools: Pools::new(plan, end),
            spread: Spread::default(),
            storms: Vec::new(),
            deadlocks: Vec::new(),
            looks: Time::ZERO,
            made: 0,
            ended: 0,
        };
        let chance = |what: &str, port: u32| seed.stream(&format!("{what}/{}", topology.ports[port as usize].name));
        for (id, port) in (0..).zip(&topology.ports) {
            if let Some(rule) = shared.pausing[port.from as usize] {
                let rule = &spec.pause[rule as usize];
                control.part(id).guard = Some(Watermarks::below(rule.xoff_bytes.count(), rule.xon_bytes.count()));
            }
        }
        for &port in plan::points(&plan.spec) {
            control.part(port).point = Point::new(spec, chance("control/point", port)).map(Box::new);
        }
        for (&port, marking) in &shared.markings {
            control.part(port).marker = Some(Box::new(Marker::new(marking, chance("queue/marks", port))));
        }
        for (&port, overrun) in &shared.overruns {
            control.part(port).inputs = Some(Box::new(Inputs::new(overrun, chance("queue/overrun", port))));
        }
        for probe in &plan.spec.record.queue_levels {
            control.part(probe.port).levels = Some(Box::new(Levels::new(probe)));
        }
        for (port, services) in switching::slow_outputs(plan) {
            let line = topology.ports[port as usize].link.rate_bps;
            control.part(port).valve = Some(Box::new(Valve::of_port(&services, line)));
        }
        let changed = plan.spec.events.iter().flat_map(|event| event.change.ports());
        let stored = (0..topology.ports.len() as u32).filter(|&port| plan.is_stored(port));
        for port in changed.chain(shared.managed.keys()).copied().chain(stored) {
            control.part(port);
        }
        let pooled: Vec<u32> = plan.spec.buffers.iter().flat_map(|buffer| buffer.nodes.iter().copied()).collect();
        for (id, _) in (0..).zip(&topology.ports).filter(|(_, port)| pooled.contains(&port.from)) {
            control.part(id).is_pooled = true;
        }
        let changed: BTreeSet<u32> = plan.spec.events.iter().flat_map(|event| event.change.ports()).copied().collect();
        for &port in
            shared.markings.keys().filter(|&port| !changed.contains(port) && !shared.managed.contains_key(port))
        {
            let part = control.part(port);
            part.only_marks = !plan.is_stored(port) && part.has_only_marker();
        }
        control.add_hosts(plan, shared, seed, end);
        control
    }

    /// How many rows of series there are.
    pub(crate) fn rows(&self) -> usize {
        self.pools.as_ref().map_or(0, |pools| pools.rows()) + self.hold_probes.rows()
    }

    /// Moves the rows of the intervals that ended up to `now` to `part`.
    pub(crate) fn take_rows(&mut self, now: Time, part: &mut Totals) {
        if let Some(pools) = &mut self.pools {
            pools.take_rows(now, part);
        }
        for port in self.hold_probes.ports().collect::<Vec<_>>() {
            let held = self.extras[port as usize].held.as_ref().map(|held| &held.holds);
            let under_way = held
                .into_iter()
                .flat_map(|holds| holds.held().list().filter_map(|class| Some((class, holds.since(class)?))));
            part.hold_intervals.extend(self.hold_probes.take(port, now, under_way));
        }
    }

    /// There are so many places of the ways now.
    pub(crate) fn make_room(&mut self, legs: usize) {
        if !self.marks.is_empty() {
            self.marks.resize(legs.max(self.marks.len()), 0);
        }
    }

    /// The tag of a frame. Only what leaves through an adapter is tagged; the place of another frame may hold what an
    /// earlier one left there.
    #[inline]
    pub(crate) fn tag(&self, plan: &Plan, id: FrameId, flow: u32) -> u32 {
        let outlet = plan.route[plan.flows[flow as usize].first_leg as usize];
        if self.extras[outlet as usize].beyond.host().is_none() {
            return NO_POINT;
        }
        self.tags.get(id as usize).copied().unwrap_or(NO_POINT)
    }

    /// Whether what leaves the queue of `port` is watched.
    pub(crate) fn watches(&self, port: u32) -> bool {
        match &self.extras[port as usize].beyond {
            Beyond::Nothing => false,
            Beyond::Switch(switch) => {
                let marks = switch.marker.as_ref().is_some_and(|marker| marker.when() == MarkingTime::Departure);
                marks || switch.guard.is_some() || switch.levels.is_some() || switch.is_pooled
            }
            Beyond::Host(_) => true,
        }
    }

    /// The parts of `port`, which is to have some.
    fn part(&mut self, port: u32) -> &mut SwitchPort {
        self.extras[port as usize].beyond.become_switch()
    }

    /// The parts of `port`, if it has any.
    #[inline]
    pub(crate) fn switch(&mut self, port: u32) -> Option<&mut SwitchPort> {
        self.extras[port as usize].beyond.switch_mut()
    }

    /// The host with queues of its own behind `port`, if there is one.
    #[inline]
    pub(crate) fn host(&mut self, port: u32) -> Option<&mut Host> {
        self.extras[port as usize].beyond.host_mut()
    }

    /// All of them.
    pub(crate) fn hosts(&mut self) -> impl Iterator<Item = &mut Host> {
        self.extras.iter_mut().filter_map(|extra| extra.beyond.host_mut())
    }
}

impl Extra {
    const NEW: Extra = Extra { boundary: Time::NEVER, tasks: Vec::new(), held: None, beyond: Beyond::Nothing };
}
