//! The ways of flows: laid once, shared where they meet.

use std::sync::Arc;

use weir_core::SpecError;
use weir_core::network::Topology;
use weir_core::routing::Router;
use weir_core::spec::{Destination, Routing};

use super::{Plan, PlannedConnection, PlannedSource};
use crate::open::OpenWays;
use crate::route::{ARRIVED, Flow};

/// Most ports of all routes together.
const MAX_LEGS: usize = 1 << 25;

impl Plan {
    pub(super) fn lay_paths(&mut self, sources: &[PlannedSource]) -> Result<(), SpecError> {
        let mut router = Router::new(&self.topology);
        let mut order: Vec<usize> = (0..self.flows.len()).filter(|&flow| !self.flows[flow].is_open).collect();
        order.sort_by_key(|&flow| self.flows[flow].to);
        // Frames to a host with a buffer end at its own port, where the buffer stands.
        let mut buffered = vec![false; self.topology.nodes.len()];
        let egress = self.spec.switching.egress.iter();
        egress.flat_map(|egress| &egress.hosts).for_each(|&host| buffered[host as usize] = true);
        let mut known = KnownWays::new(&self.topology);
        let mut route = Vec::new();
        for flow in order {
            let Flow { from, to, .. } = self.flows[flow];
            let first_leg = route.len();
            self.flows[flow].first_leg = first_leg as u32;
            if let Some((port, leg)) = known.way(from, to) {
                let way = &route[leg as usize..];
                let ports = way.iter().position(|&port| port == ARRIVED).unwrap_or(way.len());
                route.extend_from_within(leg as usize..leg as usize + ports + 1);
                route[first_leg] = port;
                continue;
            }
            let Some(path) = router.path(from, to) else {
                return Err(self.unreachable(flow, sources));
            };
            known.keep(from, to, first_leg as u32);
            route.extend(path);
            if buffered[to as usize]
                && let Some(&last) = route.last()
            {
                route.push(last ^ 1);
            }
            route.push(ARRIVED);
            if route.len() > MAX_LEGS {
                let message = format!("the paths of {} flows are too long to be kept", self.flows.len());
                return Err(SpecError::new("/traffic", message));
            }
        }
        if self.has_open_flows() {
            self.open = OpenWays::new(&self.topology);
            let words = self.open.lay(&self.topology);
            for flow in self.flows.iter_mut().filter(|flow| flow.is_open) {
                flow.first_leg = route.len() as u32;
                route.extend(&words);
            }
            if route.len() > MAX_LEGS {
                return Err(SpecError::new(
                    "/network",
                    "nodes have too many ports for the ways of messages to be kept",
                ));
            }
        }
        self.route = Arc::new(route);
        Ok(())
    }

    fn unreachable(&self, flow: usize, sources: &[PlannedSource]) -> SpecError {
        let Flow { from, to, .. } = self.flows[flow];
        let name = |node: u32| &self.topology.nodes[node as usize].name;
        let message = format!("there is no way from '{}' to '{}'", name(from), name(to));
        let is_its = |connection: &&PlannedConnection| (0..2).contains(&(flow as i64 - i64::from(connection.flow)));
        if let Some(connection) = self.connections.iter().find(is_its) {
            let (group, place) = connection.place;
            return SpecError::new(format!("/traffic/{group}/tcp/list/{place}/to"), message);
        }
        if let Some(prober) = self.probers.iter().find(is_its) {
            let (group, place) = prober.place;
            return SpecError::new(format!("/traffic/{group}/probers/list/{place}/to"), message);
        }
        let source = &sources[sources.partition_point(|source| source.first_flow as usize <= flow) - 1];
        let (group, place) = source.place;
        let list = match &self.spec.traffic[group].sources[place].to {
            Destination::Node(_) => "node".to_string(),
            Destination::Uniform(_) => format!("uniform/{}", flow - source.first_flow as usize),
        };
        SpecError::new(format!("/traffic/{group}/sources/{place}/to/{list}"), message)
    }
}

/// The ways that were laid to one destination: hosts with one link to the same switch share theirs from there on, unless
/// the sender matters.
struct KnownWays {
    /// By node: its port if it is a host that has but one, and the node behind it.
    outlets: Vec<Option<(u32, u32)>>,
    /// By the first switch: the destination, and where a way to it begins in [`Plan::route`].
    ways: Vec<(u32, u32)>,
}

impl KnownWays {
    pub(super) fn new(topology: &Topology) -> KnownWays {
        let nodes = topology.nodes.len();
        let (mut outlets, mut links) = (vec![None; nodes], vec![0_u32; nodes]);
        for (id, port) in (0..).zip(&topology.ports) {
            links[port.from as usize] += 1;
            let is_alone = topology.is_host(port.from) && !topology.is_host(port.to) && links[port.from as usize] == 1;
            outlets[port.from as usize] = is_alone.then_some((id, port.to));
        }
        if topology.routing == Routing::FlowHash {
            outlets.fill(None);
        }
        KnownWays { outlets, ways: vec![(ARRIVED, 0); nodes] }
    }

    /// The port of `from` and a way that is right from there on.
    fn way(&self, from: u32, to: u32) -> Option<(u32, u32)> {
        let (port, switch) = self.outlets[from as usize]?;
        let (destination, leg) = self.ways[switch as usize];
        (destination == to).then_some((port, leg))
    }

    fn keep(&mut self, from: u32, to: u32, leg: u32) {
        if let Some((_, switch)) = self.outlets[from as usize] {
            self.ways[switch as usize] = (to, leg);
        }
    }
}
