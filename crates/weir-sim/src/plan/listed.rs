//! The flows of a spec, and who makes them.

use std::collections::BTreeMap;

use weir_core::network::Topology;
use weir_core::spec::{Destination, Spec};

use super::{PlannedConnection, PlannedSource};
use crate::route::{ARRIVED, Flow};

/// `#2`, `#3`, ... from the second on.
pub(super) fn numbered(count: u32) -> String {
    if count > 1 { format!("#{count}") } else { String::new() }
}

/// All flows, and who makes them, in the order of the spec: in each group first the sources, then the connections,
/// then the estimators.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) flows: Vec<Flow>,
    pub(super) sources: Vec<PlannedSource>,
    pub(super) connections: Vec<PlannedConnection>,
    pub(super) probers: Vec<PlannedConnection>,
    pub(super) messages: Vec<(u32, u32)>,
}

pub(super) fn list_flows(spec: &Spec, topology: &Topology) -> Listed {
    let mut listed = Listed::default();
    for (group, traffic) in spec.traffic.iter().enumerate() {
        let mut of_host: BTreeMap<u32, u32> = BTreeMap::new();
        let mut stream = |host: u32| {
            let count = of_host.entry(host).or_default();
            *count += 1;
            format!("traffic/{}/{}{}", traffic.name, topology.nodes[host as usize].name, numbered(*count))
        };
        let class = traffic.class;
        let flow =
            |from, to, returns| Flow { traffic: group as u32, from, to, class, first_leg: 0, returns, is_open: false };
        for (place, source) in traffic.sources.iter().enumerate() {
            let (first_flow, stream) = (listed.flows.len() as u32, stream(source.from));
            listed.sources.push(PlannedSource { place: (group, place), first_flow, stream, pulled_by: None });
            let to = match &source.to {
                Destination::Node(node) => std::slice::from_ref(node),
                Destination::Uniform(list) => list,
            };
            listed.flows.extend(to.iter().map(|&to| flow(source.from, to, false)));
        }
        for (place, connection) in traffic.tcp.iter().flat_map(|tcp| &tcp.list).enumerate() {
            let (first, stream) = (listed.flows.len() as u32, stream(connection.from));
            listed.connections.push(PlannedConnection { place: (group, place), flow: first, stream });
            let (from, to) = (connection.from, connection.to);
            listed.flows.extend([flow(from, to, false), flow(to, from, true)]);
        }
        for (place, prober) in traffic.probers.iter().flat_map(|probers| &probers.list).enumerate() {
            let (first, stream) = (listed.flows.len() as u32, stream(prober.from));
            listed.probers.push(PlannedConnection { place: (group, place), flow: first, stream });
            listed.flows.extend([flow(prober.from, prober.to, false), flow(prober.to, prober.from, true)]);
        }
        if let Some(messages) = &traffic.messages {
            listed.messages.push((group as u32, listed.flows.len() as u32));
            if !messages.has_ends() {
                listed.flows.extend(messages.pairs().into_iter().map(|(from, to)| flow(from, to, false)));
                continue;
            }
            let of_all = |returns| Flow { is_open: true, ..flow(ARRIVED, ARRIVED, returns) };
            let answers = messages.rdma.as_ref().map_or(class, |rdma| rdma.control_class);
            listed.flows.extend([of_all(false), Flow { class: answers, ..of_all(true) }]);
        }
    }
    listed
}
