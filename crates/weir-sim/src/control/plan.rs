//! What all replicates share of congestion management.

use weir_core::network::Topology;
use weir_core::spec::Spec;
use weir_core::spec::control::{Notification, NotificationLane};
use weir_core::units::Span;

use crate::plan::{ARRIVED, Flow};

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
    /// By node: until PAUSE takes effect, until a notification does.
    pub(crate) responses: Vec<(Span, Span)>,
    /// Where the way back of each flow begins in [`crate::plan::Plan::route`]: from its last node to its first.
    pub(crate) ways_back: Vec<u32>,
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
        if control.is_off() && spec.record.queue_levels.is_empty() {
            return None;
        }
        let mut limited = vec![false; nodes];
        control.limited_hosts().iter().for_each(|&host| limited[host as usize] = true);
        let mut pausing = vec![None; nodes];
        for (rule, pause) in (0..).zip(&control.pause) {
            pause.nodes.iter().for_each(|&node| pausing[node as usize] = Some(rule));
        }
        let mut responses = vec![(Span::ZERO, Span::ZERO); nodes];
        for response in &control.responses {
            let times = (response.pause_ps, response.notification_ps);
            response.nodes.iter().for_each(|&node| responses[node as usize] = times);
        }
        let adapted = topology.ports.iter().map(|port| {
            topology.is_host(port.from) && (limited[port.from as usize] || pausing[port.to as usize].is_some())
        });
        Some(ControlPlan {
            adapted: adapted.collect(),
            limited,
            pausing,
            responses,
            ways_back: Vec::new(),
            first_way_back: 0,
            names: Vec::new(),
        })
    }

    /// Lays the way back of every flow that passes a port of `points` behind the routes.
    pub(crate) fn lay_ways_back(&mut self, points: &[u32], flows: &[Flow], route: &mut Vec<u32>) {
        self.first_way_back = route.len();
        let mut measured = vec![false; self.adapted.len()];
        points.iter().for_each(|&port| measured[port as usize] = true);
        for flow in flows {
            let first = flow.first_leg as usize;
            let end = (first..).find(|&leg| route[leg] == ARRIVED).unwrap_or(first);
            if !route[first..end].iter().any(|&port| measured[port as usize]) {
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
}

/// The ports that measure, and the frames of their notifications.
pub(crate) fn points(spec: &Spec) -> Option<(&[u32], Notification)> {
    let control = &spec.control;
    if let Some(bcn) = &control.bcn {
        return Some((&bcn.congestion_point.ports, bcn.congestion_point.notification));
    }
    let qcn = control.qcn.as_ref()?;
    Some((&qcn.congestion_point.ports, qcn.congestion_point.notification))
}

/// The lane of a port that a notification takes.
pub(crate) fn lane(notification: Notification) -> weir_core::queue::Lane {
    match notification.lane {
        NotificationLane::Control => weir_core::queue::Lane::Control,
        NotificationLane::Data => weir_core::queue::Lane::Data,
    }
}
