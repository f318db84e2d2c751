//! What all replicates share of congestion management.

use std::collections::BTreeMap;

use weir_core::network::Topology;
use weir_core::path::LossModel;
use weir_core::spec::control::{Notification, NotificationLane};
use weir_core::spec::{Discipline, Engine, Marking, Overrun, Spec};
use weir_core::units::Span;

use crate::route::{ARRIVED, Flow};

/// What becomes of the frames of a host that are to wait: which queue they join, when they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    /// A queue for each flow, each with its limiter; what leaves at an instant leaves before what comes then. For hosts with limiters, and those
    /// that PAUSE can hold.
    Flows,
    /// A queue for each destination or one for all, a limiter for each; all that comes at an instant comes before anything leaves: the order of
    /// the slots of [`crate::slotted`]. For networks with shared memories, adapters or slow outputs.
    Destinations,
}

/// No way back.
pub(crate) const NO_WAY: u32 = u32::MAX;

/// What each port and flow takes part in.
#[derive(Debug)]
pub(crate) struct ControlPlan {
    /// Which ports of hosts have adapters: those that can be paused, and those of flows with limiters.
    pub(crate) adapted: Vec<bool>,
    /// Which hosts have limiters.
    pub(crate) limited: Vec<bool>,
    /// For each node that sends PAUSE, the place of its rule.
    pub(crate) pausing: Vec<Option<u32>>,
    /// For each node that asks neighbours to stop because of its buffer, the place of that.
    pub(crate) asking: Vec<Option<u32>>,
    /// The queues that mark, by port.
    pub(crate) markings: BTreeMap<u32, Marking>,
    /// The ports whose queue is managed, or that have queues for classes.
    pub(crate) managed: BTreeMap<u32, Discipline>,
    /// The queues before which frames are lost, by port.
    pub(crate) overruns: BTreeMap<u32, Overrun>,
    /// By node: until PAUSE takes effect, until a notification does.
    pub(crate) responses: Vec<(Span, Span)>,
    /// Where the way back of each flow begins in [`crate::plan::Plan::route`]: from its last node to its first.
    pub(crate) ways_back: Vec<u32>,
    /// By flow, if there is DCQCN: whether its data is ECN-capable, and its sender is notified of marks.
    pub(crate) capable: Vec<bool>,
    /// Where the ways back begin.
    pub(crate) first_way_back: usize,
    /// The names of all flows, if any has a limiter.
    pub(crate) names: Vec<String>,
}

impl ControlPlan {
    /// What `spec` asks for; none if that is nothing. The ways back are laid behind the routes.
    pub(crate) fn new(spec: &Spec, topology: &Topology) -> Option<ControlPlan> {
        let control = &spec.control;
        let nodes = topology.nodes.len();
        let Disciplines { markings, managed, overruns } = Disciplines::of(spec);
        let watches =
            topology.ports.iter().any(|port| port.link.loss != LossModel::None) || !spec.record.captures.is_empty();
        let watches = watches || spec.has_telemetry();
        let is_switched = is_switched(spec);
        let is_plain = spec.events.is_empty() && markings.is_empty() && managed.is_empty() && overruns.is_empty();
        let records = watches || !spec.record.queue_levels.is_empty();
        if control.is_off() && is_plain && !records && !is_switched && spec.buffers.is_empty() {
            return None;
        }
        let mut limited = vec![false; nodes];
        control.limited_hosts().iter().for_each(|&host| limited[host as usize] = true);
        let mut pausing = vec![None; nodes];
        for (rule, pause) in (0..).zip(&control.pause) {
            pause.nodes.iter().for_each(|&node| pausing[node as usize] = Some(rule));
        }
        let by_buffer = super::pools::asking(spec, nodes);
        let mut responses = vec![(Span::ZERO, Span::ZERO); nodes];
        for response in &control.responses {
            let times = (response.pause_ps, response.notification_ps);
            response.nodes.iter().for_each(|&node| responses[node as usize] = times);
        }
        // Senders that ask the port of their host what waits there need it as it is.
        let mut asked = vec![false; nodes];
        let groups = spec.traffic.iter().filter_map(|group| group.tcp.as_ref()).filter(|tcp| tcp.asks_its_port());
        groups.flat_map(|tcp| &tcp.list).for_each(|connection| asked[connection.from as usize] = true);
        let adapted = topology.ports.iter().map(|port| {
            let holds = pausing[port.to as usize].is_some() || by_buffer[port.to as usize].is_some();
            let held = holds && !asked[port.from as usize];
            !is_switched && topology.is_host(port.from) && (limited[port.from as usize] || held)
        });
        Some(ControlPlan {
            adapted: adapted.collect(),
            limited,
            pausing,
            asking: by_buffer,
            markings,
            managed,
            overruns,
            responses,
            ways_back: Vec::new(),
            capable: Vec::new(),
            first_way_back: 0,
            names: Vec::new(),
        })
    }

    /// Lays the way back of every flow of which somebody may notify the sender behind the routes: `wanted` receives its
    /// place and the ports that it passes.
    pub(crate) fn lay_ways_back(
        &mut self,
        flows: &[Flow],
        route: &mut Vec<u32>,
        wanted: impl Fn(usize, &[u32]) -> bool,
    ) {
        self.first_way_back = route.len();
        for (id, flow) in flows.iter().enumerate() {
            let first = flow.first_leg as usize;
            let end = (first..).find(|&leg| route[leg] == ARRIVED).unwrap_or(first);
            if flow.is_open || !wanted(id, &route[first..end]) {
                self.ways_back.push(NO_WAY);
                continue;
            }
            self.ways_back.push(route.len() as u32);
            for leg in (first..end).rev() {
                route.push(route[leg] ^ 1);
            }
            route.push(ARRIVED);
        }
    }

    /// Whether any queue may mark.
    pub(crate) fn marks(&self) -> bool {
        !self.markings.is_empty() || self.managed.values().any(Discipline::marks)
    }

    /// The ports of hosts that notify senders of marks.
    pub(crate) fn notifiers<'a>(&'a self, route: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        let flows = self.capable.iter().zip(&self.ways_back).filter(|flow| *flow.0 && *flow.1 != NO_WAY);
        flows.map(|(_, &way)| route[way as usize])
    }
}

/// Whether hosts and switches are those of `control::switching`.
pub(crate) fn is_switched(spec: &Spec) -> bool {
    !spec.switching.is_plain() || spec.run.engine == Engine::EventTotals
}

/// What queues do beyond waiting, by port.
#[derive(Default)]
struct Disciplines {
    markings: BTreeMap<u32, Marking>,
    managed: BTreeMap<u32, Discipline>,
    overruns: BTreeMap<u32, Overrun>,
}

impl Disciplines {
    /// Of several rules for a port the last counts.
    fn of(spec: &Spec) -> Disciplines {
        let mut last: BTreeMap<u32, &Discipline> = BTreeMap::new();
        for rule in &spec.queues {
            last.extend(rule.ports.iter().map(|&port| (port, &rule.discipline)));
        }
        let mut of = Disciplines::default();
        for (port, discipline) in last {
            match discipline {
                Discipline::DropTail { marking, overrun, .. } => {
                    of.markings.extend(marking.map(|marking| (port, marking)));
                    of.overruns.extend(overrun.clone().map(|overrun| (port, overrun)));
                }
                _ => _ = of.managed.insert(port, discipline.clone()),
            }
        }
        of
    }
}

/// The ports that measure.
pub(crate) fn points(spec: &Spec) -> &[u32] {
    let control = &spec.control;
    let of_bcn = control.bcn.as_ref().map(|bcn| &bcn.congestion_point.ports[..]);
    of_bcn.or_else(|| control.qcn.as_ref().map(|qcn| &qcn.congestion_point.ports[..])).unwrap_or(&[])
}

/// The frames of the notifications.
pub(crate) fn notification(spec: &Spec) -> Option<Notification> {
    let control = &spec.control;
    let of_bcn = control.bcn.as_ref().map(|bcn| bcn.congestion_point.notification);
    let of_qcn = control.qcn.as_ref().map(|qcn| qcn.congestion_point.notification);
    of_bcn.or(of_qcn).or_else(|| control.dcqcn.as_ref().map(|dcqcn| dcqcn.notification))
}

/// The lane of a port that a notification takes.
pub(crate) fn lane(notification: Notification) -> weir_core::queue::Lane {
    match notification.lane {
        NotificationLane::Control | NotificationLane::Beside => weir_core::queue::Lane::Control,
        NotificationLane::Data => weir_core::queue::Lane::Data,
    }
}
