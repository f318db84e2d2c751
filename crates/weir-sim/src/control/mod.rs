//! Congestion management in motion: what happens at the ports that measure, hold or are held.
//!
//! A special line is looked at whenever it is touched, as one whose interval has ended: so all others cost nothing.
//! What is to happen at a port later is a task of its timer.

mod adapted;
mod adapter;
mod managed;
mod marks;
mod overruns;
mod pausing;
pub(crate) mod plan;
mod point;
mod report;
mod switching;

use std::collections::{BTreeMap, BTreeSet};

use weir_core::ethernet::dcqcn::NotificationPoint;
use weir_core::ethernet::pause::{Hold, Pause, Watermarks};
use weir_core::ethernet::reaction::{Feedback, Pacer, ReactionPoint, Rules};
use weir_core::marking::Marker;
use weir_core::queue::{Lane, Limit, Offer};
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Span, Time};

use self::adapter::{Adapter, Bounds, Link, NO_POINT, Outlet};
use self::overruns::Inputs;
use self::plan::ControlPlan;
use self::point::Point;
pub(crate) use self::point::kind_of;
use self::report::Levels;
pub(crate) use self::report::Waited;
use self::switching::{Role, Switching};
use crate::fabric::Fabric;
use crate::feed::Feed;
use crate::frames::{Body, FrameId, Kind};
use crate::line::{ADAPTED, FED, SPECIAL};
use crate::noticed::ControlProbes;
use crate::plan::{ARRIVED, Plan};
use crate::probes::Boundaries;
use crate::totals::ControlKind;

/// All that is beyond plain ports.
#[derive(Debug)]
pub(crate) struct Control {
    /// By port.
    extras: Vec<Extra>,
    /// By flow: the place of its outlet in the adapter of its first port.
    places: Vec<u32>,
    /// By frame: the congestion point that limited its flow when it was sent.
    tags: Vec<u32>,
    /// By frame: the port whose queue marked it.
    marked_at: Vec<u32>,
    /// Frames marked at each place of [`Plan::route`]; empty if no queue marks.
    marks: Vec<u64>,
    /// Of the frames dropped at each place of [`Plan::route`], those that limiters had no room for; empty if there are
    /// no limiters.
    limiter_drops: Vec<u64>,
    /// Of the frames dropped at each place of [`Plan::route`], those that the management of a queue dropped early; empty
    /// if no queue is managed.
    early_drops: Vec<u64>,
    /// Of the frames dropped at each place of [`Plan::route`], those that were lost before the queue; empty if no input
    /// loses any.
    overrun_drops: Vec<u64>,
    /// Of the frames dropped at each place of the ways, those that a link lost that went down; empty if none does.
    down_drops: Vec<u64>,
    /// By flow, if there is DCQCN: when its receiver may notify its sender.
    receivers: Vec<NotificationPoint>,
    /// By node: its queues that are too long, and when XOFF is to be repeated.
    long: Vec<Long>,
    /// Frames and bytes by first port, cause and kind.
    sent: BTreeMap<(u32, u32, ControlKind), (u64, u64)>,
    probes: ControlProbes,
    /// Shared memories, adapters, slow outputs, if there are any.
    switching: Option<Box<Switching>>,
    /// Control frames that were made, and that reached their end.
    made: u64,
    ended: u64,
}

/// What a port is beyond a plain one.
#[derive(Debug)]
struct Extra {
    /// When the current interval of a special line ends, if intervals are written down.
    boundary: Time,
    tasks: Vec<(Time, Task)>,
    hold: Hold,
    point: Option<Box<Point>>,
    marker: Option<Box<Marker>>,
    /// The inputs that lose frames after the queue was full.
    inputs: Option<Box<Inputs>>,
    /// Whether the queue is managed.
    is_managed: bool,
    /// Whether events of the scenario change it.
    has_events: bool,
    guard: Option<Watermarks>,
    levels: Option<Box<Levels>>,
    adapter: Option<Box<Adapter>>,
}

/// Keeps what is to be known of a frame at its place in `of_frames`.
#[inline]
fn keep(of_frames: &mut Vec<u32>, id: FrameId, known: u32) {
    if of_frames.len() <= id as usize {
        of_frames.resize((id as usize + 1).next_power_of_two(), NO_POINT);
    }
    of_frames[id as usize] = known;
}

/// The queues of a node.
#[derive(Clone, Copy, Debug)]
struct Long {
    queues: u32,
    refresh: Time,
}

/// What is to happen at a port.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// A notification for `flow` sets out, at this leg of its way.
    Notify { flow: u32, leg: u32, point: u32, feedback: Feedback },
    /// A PAUSE frame sets out, because of the queue at a port.
    Send { pause: Pause, queue_port: u32 },
    /// A PAUSE frame takes effect.
    Hold { pause: Pause, length: Option<Span> },
    /// A pause runs out.
    Expire,
    /// XOFF is repeated, if the queue is still too long.
    Refresh,
    /// A notification takes effect.
    Obey { flow: u32, point: u32, feedback: Feedback },
    /// A notification about the frames of a station to host `to` takes effect.
    Heed { to: u32, point: u32, feedback: Feedback },
    /// A limiter of a station changes by itself.
    Limiter { id: u32 },
    /// A memory asks again to stop.
    Repeat,
    /// A host looks into its buffer.
    Empty,
}

impl Control {
    /// The state of `plan` at time zero.
    pub(crate) fn new(plan: &Plan, shared: &ControlPlan, seed: Seed, end: Time) -> Control {
        let (topology, spec) = (&plan.topology, &plan.spec.control);
        let mut control = Control {
            extras: topology.ports.iter().map(|_| Extra::NEW).collect(),
            places: vec![0; plan.flows.len()],
            tags: Vec::new(),
            marked_at: Vec::new(),
            marks: vec![0; if shared.marks() { plan.route.len() } else { 0 }],
            early_drops: vec![0; if shared.managed.is_empty() { 0 } else { plan.route.len() }],
            overrun_drops: vec![0; if shared.overruns.is_empty() { 0 } else { plan.route.len() }],
            down_drops: Vec::new(),
            limiter_drops: vec![0; if spec.limiter().is_some() { plan.route.len() } else { 0 }],
            receivers: vec![NotificationPoint::NEW; if spec.dcqcn.is_some() { plan.flows.len() } else { 0 }],
            long: vec![Long { queues: 0, refresh: Time::NEVER }; topology.nodes.len()],
            sent: BTreeMap::new(),
            probes: ControlProbes::new(&plan.spec.record.ports, end),
            switching: Switching::new(plan, shared, seed),
            made: 0,
            ended: 0,
        };
        for (id, port) in topology.ports.iter().enumerate() {
            let rule = shared.pausing[port.from as usize].map(|rule| &plan.spec.control.pause[rule as usize]);
            control.extras[id].guard = rule.map(|rule| Watermarks::new(rule.xoff_bytes, rule.xon_bytes));
        }
        for &port in plan::points(&plan.spec) {
            let stream = seed.stream(&format!("control/point/{}", topology.ports[port as usize].name));
            control.extras[port as usize].point = Point::new(spec, stream).map(Box::new);
        }
        for (&port, marking) in &shared.markings {
            let stream = seed.stream(&format!("queue/marks/{}", topology.ports[port as usize].name));
            control.extras[port as usize].marker = Some(Box::new(Marker::new(marking, stream)));
        }
        for (&port, overrun) in &shared.overruns {
            let stream = seed.stream(&format!("queue/overrun/{}", topology.ports[port as usize].name));
            control.extras[port as usize].inputs = Some(Box::new(Inputs::new(overrun, stream)));
        }
        for &port in shared.managed.keys() {
            control.extras[port as usize].is_managed = true;
        }
        for probe in &plan.spec.record.queue_levels {
            control.extras[probe.port as usize].levels = Some(Box::new(Levels::new(probe)));
        }
        for port in plan.spec.events.iter().flat_map(|event| event.change.ports()) {
            control.extras[*port as usize].has_events = true;
        }
        control.add_adapters(plan, shared, seed, end);
        control
    }

    /// Counts a frame that a link lost at a place of the ways when it went down.
    pub(crate) fn count_down(&mut self, leg: usize) {
        if self.down_drops.len() <= leg {
            self.down_drops.resize(leg + 1, 0);
        }
        self.down_drops[leg] += 1;
    }

    /// There are so many places of the ways now.
    pub(crate) fn make_room(&mut self, legs: usize) {
        let counts = [&mut self.marks, &mut self.limiter_drops, &mut self.early_drops, &mut self.overrun_drops];
        for counts in counts.into_iter().filter(|counts| !counts.is_empty()) {
            counts.resize(legs.max(counts.len()), 0);
        }
    }

    /// The tag of a frame. Only what leaves through an adapter is tagged; the place of another frame may hold what an
    /// earlier one left there.
    #[inline]
    fn tag(&self, plan: &Plan, id: FrameId, flow: u32) -> u32 {
        if self.switching.is_none() {
            let outlet = plan.route[plan.flows[flow as usize].first_leg as usize];
            if self.extras[outlet as usize].adapter.is_none() {
                return NO_POINT;
            }
        }
        self.tags.get(id as usize).copied().unwrap_or(NO_POINT)
    }

    fn add_adapters(&mut self, plan: &Plan, shared: &ControlPlan, seed: Seed, end: Time) {
        let mut outlets: BTreeMap<u32, Vec<Outlet>> = BTreeMap::new();
        let jitter = plan.spec.control.limiter().map_or(0.0, |limiter| limiter.pacing_jitter);
        for (id, flow) in (0..).zip(&plan.flows) {
            let port = plan.route[flow.first_leg as usize];
            if shared.adapted[port as usize] {
                let name = shared.names.get(id as usize).map_or("", |name| name);
                let reaction = ReactionPoint::new(seed.stream(&format!("control/limiter/{name}")));
                let pacer = Pacer::new(jitter, seed.stream(&format!("control/pacing/{name}")));
                let of_port = outlets.entry(port).or_default();
                self.places[id as usize] = of_port.len() as u32;
                of_port.push(Outlet::new(id, reaction, pacer));
            }
        }
        let mut feeds: BTreeMap<u32, Feed> = plan.feeds(seed, |port| shared.adapted[port as usize]).collect();
        for (port, outlets) in outlets {
            let spec = &plan.topology.ports[port as usize];
            let limited = shared.limited[spec.from as usize];
            let rules = if limited { Rules::new(&plan.spec.control, spec.link.rate_bps) } else { None };
            let limiter = plan.spec.control.limiter();
            let bounds = Bounds {
                open: plan.limits[port as usize],
                limited: limiter.map_or(Limit::UNLIMITED, |limiter| limiter.queue.into()),
                fifo: limiter.map_or(0, |limiter| limiter.fifo_frames as usize),
            };
            let link =
                Link { rate: spec.link.rate_bps, framing: spec.link.framing_bytes, lag: plan.lag(port as usize) };
            let mut adapter = Adapter::new(feeds.remove(&port), outlets, rules, bounds, link);
            let probe = plan.spec.record.limiters.iter().find(|probe| probe.host == spec.from);
            if let Some(probe) = probe {
                adapter.record(Boundaries::new(probe.every_ps, end));
            }
            self.extras[port as usize].adapter = Some(Box::new(adapter));
        }
    }

    /// The ports whose lines are special.
    pub(crate) fn special(&self) -> impl Iterator<Item = u32> + '_ {
        let is_special = |&(_, extra): &(u32, &Extra)| self.switching.is_some() || extra.is_special();
        (0..).zip(&self.extras).filter(is_special).map(|(port, _)| port)
    }

    /// Whether what leaves the queue of `port` is watched.
    pub(crate) fn watches(&self, port: u32) -> bool {
        let extra = &self.extras[port as usize];
        extra.guard.is_some() || extra.levels.is_some() || extra.adapter.is_some()
    }

    /// The ports of hosts that are adapted.
    pub(crate) fn adapted(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.extras).filter(|(_, extra)| extra.adapter.is_some()).map(|(port, _)| port)
    }
}

impl Extra {
    const NEW: Extra = Extra {
        boundary: Time::NEVER,
        tasks: Vec::new(),
        hold: Hold::NONE,
        point: None,
        marker: None,
        inputs: None,
        is_managed: false,
        has_events: false,
        guard: None,
        levels: None,
        adapter: None,
    };

    fn is_special(&self) -> bool {
        self.point.is_some()
            || self.marker.is_some()
            || self.inputs.is_some()
            || self.is_managed
            || self.has_events
            || self.guard.is_some()
            || self.levels.is_some()
            || self.adapter.is_some()
    }
}

impl Fabric<'_> {
    /// Takes over what special lines need: they are looked at whenever they are touched.
    pub(crate) fn start_control(&mut self) {
        let Some(control) = &mut self.control else { return };
        // A port that pulls its sources looks at its transmissions itself.
        let is_touched = |&port: &u32| !self.lines[port as usize].has(FED);
        let watched = self.wires.iter().flat_map(|wires| wires.ports()).filter(is_touched);
        let special: BTreeSet<u32> = control.special().chain(watched).collect();
        for &port in &special {
            let line = &mut self.lines[port as usize];
            line.flags |= SPECIAL;
            control.extras[port as usize].boundary = std::mem::replace(&mut line.boundary, Time::ZERO);
        }
        let adapted: Vec<u32> = control.adapted().collect();
        for port in adapted {
            self.lines[port as usize].flags |= ADAPTED;
            self.run_adapter(port);
        }
        self.start_stations();
    }

    /// A frame arrives at the queue of a special line.
    pub(crate) fn offer_special(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) {
        let now = self.now;
        self.look_special(port);
        let Some(control) = &mut self.control else { return };
        match control.role(port) {
            Role::Plain => {}
            Role::Station => return self.offer_station(port, id, size, lane),
            Role::Stored => return self.offer_stored(port, id, size, lane),
        }
        let extra = &mut control.extras[port as usize];
        if extra.adapter.is_some() {
            return self.offer_adapter(port, id, size, lane);
        }
        if let Some(levels) = &mut extra.levels {
            levels.settle(now, self.lines[port as usize].port.waiting_bytes());
        }
        let is_managed = extra.is_managed && lane == Lane::Data;
        if extra.has_events && self.is_down(port) {
            return self.offer_down(port, id, size);
        }
        let Some(control) = &mut self.control else { return };
        let extra = &mut control.extras[port as usize];
        if extra.inputs.is_some() && self.overruns(port, id, lane) {
            return;
        }
        let frame = self.frames[id];
        let Some(control) = &mut self.control else { return };
        let tag = if lane == Lane::Data { control.tag(self.plan, id, frame.flow) } else { NO_POINT };
        let became =
            if is_managed { self.offer_managed(port, id, size) } else { self.offer_watched(port, id, size, lane) };
        if lane == Lane::Control {
            return;
        }
        let waiting = self.lines[port as usize].port.waiting_bytes();
        let Some(control) = &mut self.control else { return };
        let extra = &mut control.extras[port as usize];
        if let Some(inputs) = extra.inputs.as_mut().filter(|_| became == Offer::Dropped) {
            inputs.overflowed();
        }
        let waits = became != Offer::Dropped && waiting > Bytes::ZERO;
        let marks = waits && extra.marker.as_mut().is_some_and(|marker| marker.on_frame(waiting));
        if let Some(point) = &mut extra.point
            && frame.kind != Kind::Notification
            && let Some(feedback) = point.on_frame(size, became != Offer::Dropped, waiting, tag, port)
        {
            self.notify(port, frame.flow, frame.leg, feedback);
        }
        if marks {
            self.mark(port, id);
        }
        self.watch_level(port, waiting);
    }

    /// What waits at a special line is about to change: how long it was so is counted.
    pub(crate) fn settle_levels_of(&mut self, port: u32) {
        let (now, waiting) = (self.now, self.lines[port as usize].port.waiting_bytes());
        let levels = self.control.as_mut().and_then(|control| control.extras[port as usize].levels.as_mut());
        if let Some(levels) = levels {
            levels.settle(now, waiting);
        }
    }

    /// The transmitter of a special line is free.
    pub(crate) fn wake_special(&mut self, port: u32) {
        let now = self.now;
        self.look_special(port);
        let waiting = self.lines[port as usize].port.waiting_bytes();
        let Some(control) = &mut self.control else { return };
        if let Some(levels) = &mut control.extras[port as usize].levels {
            levels.settle(now, waiting);
        }
        if control.extras[port as usize].is_managed {
            self.wake_managed(port);
        } else {
            self.wake_watched(port);
        }
        let waiting = self.lines[port as usize].port.waiting_bytes();
        self.watch_level(port, waiting);
    }

    /// The transmission of a frame from the control lane begins.
    #[cold]
    pub(crate) fn launch_control(&mut self, port: u32, id: FrameId, end: Time) {
        if !self.sets_out(port, id, end) {
            return;
        }
        if self.frames[id].kind != Kind::Pause {
            return self.launch(port, id, end);
        }
        if let Body::Pause(pause) = self.frames.body(id) {
            self.pause_peer(port, pause, end);
        }
        self.end_control(id);
    }

    /// A control frame has reached its end.
    pub(crate) fn end_control(&mut self, id: FrameId) {
        self.frames.free(id);
        if let Some(control) = &mut self.control {
            control.ended += 1;
        }
    }

    /// Enters a task of the timer of `port`.
    fn plan_task(&mut self, port: u32, at: Time, task: Task) {
        let Some(control) = &mut self.control else { return };
        control.extras[port as usize].tasks.push((at, task));
        self.agenda.push(at, self.port_timer(port));
    }

    /// The timer of a port runs out: does its tasks that are due, in the order in which they were entered, until an agent is
    /// to be told of a frame, which is returned.
    #[cold]
    pub(crate) fn on_port_timer(&mut self, port: u32) -> Option<u32> {
        let now = self.now;
        loop {
            let tasks = &mut self.control.as_mut()?.extras[port as usize].tasks;
            let place = tasks.iter().position(|&(at, _)| at <= now)?;
            match tasks.remove(place).1 {
                Task::Notify { flow, leg, point, feedback } => self.send_notification(port, flow, leg, point, feedback),
                Task::Send { pause, queue_port } => self.send_pause(port, pause, queue_port),
                Task::Hold { pause, length } => self.hold(port, pause, length),
                Task::Expire => self.expire(port),
                Task::Refresh => self.refresh(port),
                Task::Obey { flow, point, feedback } => self.obey(port, flow, point, feedback),
                Task::Heed { to, point, feedback } => self.heed(port, to, point, feedback),
                Task::Limiter { id } => self.change_limiter(port, id),
                Task::Repeat => self.repeat(port),
                Task::Empty => {
                    if let Some(agent) = self.empty_buffer(port) {
                        self.agenda.push(now, self.port_timer(port));
                        return Some(agent);
                    }
                }
            }
        }
    }

    /// Counts a control frame that sets out at `port`.
    fn count_control(&mut self, port: u32, queue_port: u32, kind: ControlKind, size: Bytes) {
        if let Some(control) = &mut self.control {
            control.made += 1;
        }
        self.note_control(port, queue_port, kind, size);
    }

    /// Counts a control frame that travels beside the others.
    fn note_control(&mut self, port: u32, queue_port: u32, kind: ControlKind, size: Bytes) {
        let Some(control) = &mut self.control else { return };
        let (frames, bytes) = control.sent.entry((port, queue_port, kind)).or_default();
        *frames += 1;
        *bytes += size.count();
        control.probes.note(queue_port, kind, self.now);
    }

    /// A control frame is queued at `port`.
    fn offer_control(&mut self, port: u32, id: FrameId, size: Bytes) {
        self.look(port);
        let line = &mut self.lines[port as usize];
        line.keep(&mut self.frames, self.now);
        let became = line.port.offer(self.now, id, size, Lane::Control);
        if self.plan.is_switched() {
            return self.offer_control_stored(port, became, id);
        }
        match became {
            Offer::Sent { end } => self.launch_control(port, id, end),
            Offer::Waits | Offer::Dropped => {
                if let Some(due) = line.arm() {
                    self.agenda.push(due, port);
                }
            }
        }
    }

    /// The intervals of a special line that ended are written.
    pub(crate) fn look_special(&mut self, port: u32) {
        let now = self.now;
        let Some(control) = &mut self.control else { return };
        if control.role(port) == Role::Station {
            return self.draw_station(port, now);
        }
        let extra = &mut control.extras[port as usize];
        if extra.adapter.is_some() {
            return self.look_adapter(port);
        }
        if extra.boundary <= now {
            extra.boundary = self.port_probes.mark(port, now, &mut self.lines[port as usize].port);
        }
    }

    /// Where the route of `flow` begins, and how many ports it has up to `leg`.
    fn ports_before(&self, flow: u32, leg: u32) -> u32 {
        leg - self.plan.flows[flow as usize].first_leg
    }

    /// How many ports the route of `flow` has.
    fn route_length(&self, flow: u32) -> u32 {
        let first = self.plan.flows[flow as usize].first_leg as usize;
        (0..).find(|&n| self.plan.route[first + n as usize] == ARRIVED).unwrap_or(0)
    }
}
