//! A kernel at the beginning of a run.

use weir_core::ethernet::reaction::Rules;
use weir_core::network::Topology;
use weir_core::rng::Seed;
use weir_core::spec::control::Bcn;
use weir_core::spec::switching::PauseScope;
use weir_core::spec::{Departures, Destination, Spec};
use weir_core::units::{Bytes, Rate, Span, Time};

use super::adapters::{Adapters, Kind, Obedience, PlacedSource};
use super::books::{Books, Series};
use super::holds::{Holds, Watermarks};
use super::outlets::Outlets;
use super::points::{Delays, Points};
use super::switches::{Memory, NONE, Queues, Routes};
use super::{Kernel, Recorded, Wire};
use crate::plan::Plan;
use crate::probes::{Boundaries, PortProbes};

/// A checked spec for the slotted engine has traffic, and frames of one size.
const CHECKED: &str = "the spec is checked";

/// A kernel for `plan`.
pub(super) fn kernel(plan: &Plan, seed: u64) -> Kernel {
    let (spec, topology) = (plan.spec(), plan.topology());
    let (size, slot) = spec.cell().expect(CHECKED);
    let hosts = (0..topology.nodes.len() as u32).filter(|&node| topology.is_host(node)).count();
    let switches = topology.nodes.len() - hosts;
    let ports = topology.ports.len();
    let end = (spec.run.duration_ps.ps() / slot.ps()) as u32;
    let line_rate = topology.ports[0].link.rate_bps;
    let in_cells = |bytes: Bytes| u32::try_from(bytes.count() / size.count()).unwrap_or(NONE);

    let mut watermarks = vec![None; switches];
    let mut most = vec![NONE; switches];
    for memory in &spec.switching.memories {
        for &node in &memory.nodes {
            let switch = node as usize - hosts;
            most[switch] = in_cells(memory.bytes);
            watermarks[switch] = memory.pause.map(|pause| Watermarks::new(&pause, size, slot));
        }
    }
    let by_input = watermarks.iter().flatten().any(|marks| marks.scope == PauseScope::Input);
    let mut inputs = vec![Vec::new(); switches];
    for (id, port) in (0..).zip(&topology.ports) {
        if let Some(switch) = (port.to as usize).checked_sub(hosts) {
            inputs[switch].push(id);
        }
    }
    let is_output = |port: &u32| !topology.is_host(topology.ports[*port as usize].from);
    let outputs: Vec<u32> = (0..ports as u32).filter(is_output).collect();
    let queue = |port: usize| {
        let most = u32::try_from(plan.limits[port].frames_of(size)).unwrap_or(NONE).saturating_add(1);
        Queues::output((topology.ports[port].from as usize).saturating_sub(hosts) as u32, most)
    };
    let memories = most.into_iter().map(|most| Memory { level: 0, most, peak: 0, level_slots: 0 }).collect();
    let queues = Queues::new((0..ports).map(queue).collect(), memories, if by_input { ports } else { 0 });

    let lag = |port: usize| (plan.lag(port).ps() / slot.ps()) as u32;
    let pause_response = responses(spec, topology, |response| response.pause_ps);
    let wire = |port: usize| {
        let spec = &topology.ports[port];
        let switch = (spec.to as usize).checked_sub(hosts).map_or(NONE, |switch| switch as u32);
        Wire { switch, lag: lag(port), hold: spec.link.delay_ps + pause_response[spec.from as usize] }
    };
    let wires: Vec<Wire> = (0..ports).map(wire).collect();
    let round = wires.iter().map(|wire| wire.lag).max().unwrap_or(0) as usize + 2;

    let mut outlets = Outlets::new(&spec.switching.services, ports, slot, line_rate.bps());
    for egress in &spec.switching.egress {
        for &host in &egress.hosts {
            outlets.buffer(2 * host + 1, in_cells(egress.xoff_bytes), in_cells(egress.xon_bytes));
        }
    }
    let run_seed = Seed::new(seed);
    let (sources, books, host_of) = sources(plan, run_seed);
    let probe = |probe: &weir_core::spec::PortProbe| Recorded {
        port: probe.port,
        every: (probe.every_ps.ps() / slot.ps()) as u32,
        number: 1,
        peak: 0,
    };
    let series = |probe: &weir_core::spec::TrafficProbe| Series {
        group: probe.traffic,
        boundaries: Boundaries::new(probe.every_ps, Time::ZERO + spec.run.duration_ps),
        number: 1,
        before: 0,
        rows: Vec::new(),
    };
    let mut series: Vec<Series> = spec.record.traffic.iter().map(series).collect();
    series.sort_by_key(|series| series.group);
    Kernel {
        now: 0,
        end,
        slot,
        size,
        hosts,
        adapters: Adapters::new(&kinds(spec, hosts), sources, obedience(spec, line_rate, run_seed), slot),
        queues,
        routes: Routes::new(&spec.network, topology, hosts),
        outlets,
        holds: Holds::new(ports, slot),
        books,
        points: spec.control.bcn.as_ref().map(|bcn| points(bcn, plan, size, run_seed, hosts)),
        wires,
        outputs,
        host_of,
        above: vec![false; switches],
        input_above: vec![false; ports],
        inputs,
        xoffs: vec![0; switches],
        by_input,
        watermarks,
        split: vec![0; round],
        flights: vec![Vec::new(); round],
        stranded: Vec::new(),
        agenda: std::collections::BinaryHeap::new(),
        messages: Vec::new(),
        free_messages: Vec::new(),
        counter: 0,
        drops: std::collections::BTreeMap::new(),
        port_drops: vec![(0, 0, 0); ports],
        probes: PortProbes::new(&spec.record.ports, ports, Time::ZERO + spec.run.duration_ps),
        recorded: spec.record.ports.iter().map(probe).collect(),
        series,
    }
}

fn kinds(spec: &Spec, hosts: usize) -> Vec<Kind> {
    let mut kinds = vec![Kind { has_voqs: false, obeys: false }; hosts];
    for &host in spec.switching.adapters.iter().flat_map(|adapter| &adapter.hosts) {
        kinds[host as usize].has_voqs = true;
    }
    for &host in spec.control.limited_hosts() {
        kinds[host as usize].obeys = true;
    }
    kinds
}

fn obedience(spec: &Spec, line_rate: Rate, seed: Seed) -> Option<Obedience> {
    let rules = Rules::new(&spec.control, line_rate)?;
    Some(Obedience { rules, line_rate, seed })
}

/// Sources in order of their hosts, the books of their flows, and the host of each.
fn sources(plan: &Plan, seed: Seed) -> (Vec<PlacedSource>, Books, Vec<u16>) {
    let spec = plan.spec();
    let mut order: Vec<usize> = (0..plan.sources.len()).collect();
    order.sort_by_key(|&place| plan.source(place).from);
    let targets = |place: usize| match &plan.source(place).to {
        Destination::Node(node) => std::slice::from_ref(node),
        Destination::Uniform(list) => list.as_slice(),
    };
    let group_of = order.iter().map(|&place| plan.sources[place].group()).collect();
    let is_long = |&place: &usize| match plan.source(place).departures {
        Departures::Bursts { mean_frames, .. } => mean_frames > 1.0,
        _ => false,
    };
    let books = Books::new(group_of, spec.traffic.len(), plan.flows.len(), order.iter().any(is_long));
    let placed = |&place: &usize| PlacedSource {
        host: plan.source(place).from,
        emissions: plan.emissions(&plan.sources[place], seed),
        targets: targets(place).iter().map(|&to| to as u16).collect(),
        first_flow: plan.sources[place].first_flow,
    };
    let host_of = order.iter().map(|&place| plan.source(place).from as u16).collect();
    (order.iter().map(placed).collect(), books, host_of)
}

/// Time that each node takes to obey.
fn responses(
    spec: &Spec,
    topology: &Topology,
    which: impl Fn(&weir_core::spec::control::Response) -> Span,
) -> Vec<Span> {
    let mut of_node = vec![Span::ZERO; topology.nodes.len()];
    for response in &spec.control.responses {
        response.nodes.iter().for_each(|&node| of_node[node as usize] = which(response));
    }
    of_node
}

fn points(bcn: &Bcn, plan: &Plan, size: Bytes, seed: Seed, hosts: usize) -> Points {
    let (spec, topology) = (plan.spec(), plan.topology());
    let link = topology.ports[0].link.delay_ps;
    let switch = topology.nodes.iter().map(|node| node.latency_ps).max().unwrap_or(Span::ZERO);
    let links = if link + switch == Span::ZERO { Vec::new() } else { distances(topology, hosts) };
    let mut response = responses(spec, topology, |response| response.notification_ps);
    response.truncate(hosts);
    let delays = Delays { first: bcn.congestion_point.notification.delay_ps, link, switch, links, hosts, response };
    let name = |port: u32| topology.ports[port as usize].name.clone();
    Points::new(&bcn.congestion_point, topology.ports.len(), size, seed, name, delays)
}

/// Links between each switch and each host, on a shortest way.
fn distances(topology: &Topology, hosts: usize) -> Vec<u8> {
    let mut neighbours = vec![Vec::new(); topology.nodes.len()];
    for port in &topology.ports {
        neighbours[port.from as usize].push(port.to);
    }
    let mut all = Vec::with_capacity((topology.nodes.len() - hosts) * hosts);
    for switch in hosts..topology.nodes.len() {
        let mut distance = vec![u8::MAX; topology.nodes.len()];
        distance[switch] = 0;
        let mut frontier = vec![switch as u32];
        let mut reached = 0;
        while let Some(&node) = frontier.get(reached) {
            reached += 1;
            for &next in &neighbours[node as usize] {
                if distance[next as usize] == u8::MAX {
                    distance[next as usize] = distance[node as usize] + 1;
                    frontier.push(next);
                }
            }
        }
        all.extend(&distance[..hosts]);
    }
    all
}
