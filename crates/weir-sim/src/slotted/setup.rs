//! A kernel at the beginning of a run.

use weir_core::host::{Manner, Slots};
use weir_core::network::Topology;
use weir_core::queue::Space;
use weir_core::rng::Seed;
use weir_core::spec::control::Bcn;
use weir_core::spec::switching::PauseScope;
use weir_core::spec::{Departures, Destination, Spec};
use weir_core::units::{Bytes, Rate, Span, Time};

use super::adapters::{Adapters, Kind, Obedience};
use super::books::{Books, Listed, Of, Series};
use super::holds::{Asking, Holds};
use super::outlets::Outlets;
use super::points::{Delays, Points};
use super::routes::Routes;
use super::sources::{PlacedSource, Sources};
use super::{Kernel, Lags, Recorded};
use crate::boundaries::Boundaries;
use crate::limiting::HostSeries;
use crate::noticed::ControlProbes;
use crate::plan::Plan;
use crate::probes::PortProbes;
use crate::slotted::lanes::{Lanes, NONE};
use crate::slotted::switches::{Input, Memory, Queues, Turn};

/// A checked spec for the slotted engine has traffic, and frames of one size.
const CHECKED: &str = "the spec is checked";

#[allow(clippy::too_many_lines)] // one constructor of many fields, each made in its place
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

    let mut asking = vec![None; switches];
    let mut most = vec![NONE; switches];
    for memory in &spec.switching.memories {
        for &node in &memory.nodes {
            let switch = node as usize - hosts;
            most[switch] = in_cells(memory.bytes);
            asking[switch] = memory.pause.map(|pause| Asking::new(&pause, size, slot));
        }
    }
    let lanes = Lanes::new(hosts, ports);
    let by_input = asking.iter().flatten().any(|asking| asking.scope == PauseScope::Input);
    let mut neighbours = vec![Vec::new(); switches];
    for (id, port) in (0..).zip(&topology.ports) {
        if let Some(switch) = (port.to as usize).checked_sub(hosts) {
            neighbours[switch].push(lanes.link(id));
        }
    }
    let queue = |lane: usize| {
        // Lanes that only fill a word take nothing, and nothing comes.
        let Some(port) = topology.ports.get(lanes.port(lane as u32) as usize).filter(|_| lanes.has(lane)) else {
            return (0, 0);
        };
        let most = plan.limits[lanes.port(lane as u32) as usize].frames_of(size);
        (port.from - hosts as u32, u32::try_from(most).unwrap_or(NONE).saturating_add(1))
    };
    let memory = |(most, asking): (u32, &Option<Asking>)| {
        let marks = Asking::marks_of(asking.as_ref(), PauseScope::Switch);
        Memory { space: Space::new(most), marks }
    };
    let memories = most.into_iter().zip(&asking).map(memory).collect();
    let lag = |port: usize| (plan.lag(port).ps() / slot.ps()) as u32;
    let lags = Lags { to_host: lag(1), to_switch: lag(0) };
    let pause_response = responses(spec, topology, |response| response.pause_ps);
    let port_of = |link: usize| topology.ports.get(lanes.port(link as u32) as usize).filter(|_| lanes.has(link));
    let input = |link: usize| {
        let switch = port_of(link).and_then(|port| (port.to as usize).checked_sub(hosts));
        let marks = Asking::marks_of(switch.and_then(|switch| asking[switch].as_ref()), PauseScope::Input);
        Input { switch: switch.map_or(NONE, |switch| switch as u32), waiting: 0, marks }
    };
    let inputs = (0..lanes.links()).map(input).collect();
    let mut queues = Queues::new((0..lanes.count).map(queue), memories, inputs, by_input);
    let hold_delay =
        |link: usize| port_of(link).map_or(Span::ZERO, |port| port.link.delay_ps + pause_response[port.from as usize]);
    let hold_delays = (0..lanes.links()).map(hold_delay).collect();
    let round = (lags.to_host.max(lags.to_switch) as usize + 2).next_power_of_two();

    let mut outlets = Outlets::new(&spec.switching.services, hosts, slot, line_rate);
    for egress in &spec.switching.egress {
        for &host in &egress.hosts {
            outlets.buffer(host, in_cells(egress.xoff_bytes), in_cells(egress.xon_bytes));
        }
    }
    let run_seed = Seed::new(seed);
    let (placed, books) = sources(plan, run_seed);
    let sources = Sources::new(placed, slot, end, plan.flows.len(), !plan.counts_pairs());
    let probe = |probe: &weir_core::spec::PortProbe| Recorded {
        link: lanes.link(probe.port),
        every: u32::try_from(probe.every_ps.ps() / slot.ps()).unwrap_or(u32::MAX),
        number: 1,
        peak: 0,
    };
    let series = |probe: &weir_core::spec::TrafficProbe, of: Of| Series {
        of,
        boundaries: Boundaries::new(probe.every_ps, Time::ZERO + spec.run.duration_ps),
        number: 1,
        before: 0,
        rows: Vec::new(),
        whole: (0, 0),
        bursts: Vec::new(),
    };
    let of_group = |probe| series(probe, Of::Group(probe.traffic));
    let mut all: Vec<Series> = spec.record.traffic.iter().map(of_group).collect();
    for (flow, planned) in (0..).zip(plan.counted_flows()) {
        let probe = spec.record.flows.iter().find(|probe| probe.traffic == planned.traffic);
        all.extend(probe.map(|probe| series(probe, Of::Flow(flow))));
    }
    all.sort_by_key(|series| series.of);
    let duration = Time::ZERO + spec.run.duration_ps;
    let limiting = spec
        .record
        .limiters
        .iter()
        .map(|probe| (probe.host, HostSeries::new(Boundaries::new(probe.every_ps, duration), hosts)));
    let limiting = limiting.collect();
    let mut points = spec.control.bcn.as_ref().map(|bcn| points(bcn, plan, size, run_seed, lanes));
    for (lane, output) in queues.outputs.iter_mut().take(lanes.count).enumerate() {
        if let Some(skip) = points.as_mut().and_then(|points| points.skip(lane)) {
            output.next_sample = u32::try_from(skip).unwrap_or(NONE).saturating_add(1);
        }
    }
    let mut kernel = Kernel {
        now: 0,
        end,
        slot,
        size,
        lanes,
        adapters: Adapters::new(&kinds(spec, hosts), sources, obedience(spec, line_rate, slot, run_seed)),
        queues,
        routes: Routes::new(&spec.network, topology, lanes),
        outlets,
        holds: Holds::new(lanes, slot, ControlProbes::new(&spec.record.ports, duration)),
        books,
        points,
        lags,
        hold_delays,
        inputs: neighbours,
        xoffs: vec![0; switches],
        asking,
        split: vec![0; round],
        flights: vec![Vec::new(); round],
        turn: Turn::new(),
        stranded: Vec::new(),
        agenda: std::collections::BinaryHeap::new(),
        messages: Vec::new(),
        free_messages: Vec::new(),
        counter: 0,
        drops: std::collections::BTreeMap::new(),
        lane_drops: vec![(0, 0, 0); lanes.count],
        probes: PortProbes::new(&spec.record.ports, ports, Time::ZERO + spec.run.duration_ps),
        recorded: spec.record.ports.iter().map(probe).collect(),
        next_mark: NONE,
        series: all,
        next_series: 0,
        limiting,
        next_limiting: 0,
    };
    (kernel.next_mark, kernel.next_series) = (kernel.mark_after(0), kernel.first_series());
    kernel.next_limiting = kernel.first_limiting();
    kernel
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

fn obedience(spec: &Spec, line_rate: Rate, slot: Span, seed: Seed) -> Option<Obedience> {
    Some(Obedience { how: Manner::new(Slots(slot), &spec.control, line_rate)?, seed })
}

/// Sources in order of their hosts, and the books of their flows.
fn sources(plan: &Plan, seed: Seed) -> (Vec<PlacedSource>, Books) {
    let mut order: Vec<usize> = (0..plan.sources.len()).collect();
    order.sort_by_key(|&place| plan.source(place).from);
    let targets = |place: usize| match &plan.source(place).to {
        Destination::Node(node) => std::slice::from_ref(node),
        Destination::Uniform(list) => list.as_slice(),
    };
    let is_long = |&place: &usize| match plan.source(place).departures {
        Departures::Bursts { mean_frames, .. } => mean_frames > 1.0,
        _ => false,
    };
    let placed = |&place: &usize| PlacedSource {
        host: plan.source(place).from,
        emissions: plan.emissions(&plan.sources[place], seed),
        targets: targets(place).iter().map(|&to| to as u16).collect(),
        first_flow: plan.sources[place].first_flow,
    };
    let has_bursts = order.iter().any(is_long);
    let sources: Vec<PlacedSource> = order.iter().map(placed).collect();
    let listed = order.iter().zip(&sources).map(|(&place, source)| Listed {
        targets: &source.targets,
        first_flow: source.first_flow,
        group: plan.sources[place].group(),
    });
    let books = Books::new(listed, plan.flows.len(), !plan.counts_pairs(), has_bursts);
    (sources, books)
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

fn points(bcn: &Bcn, plan: &Plan, size: Bytes, seed: Seed, lanes: Lanes) -> Points {
    let hosts = lanes.hosts;
    let (spec, topology) = (plan.spec(), plan.topology());
    let link = topology.ports[0].link.delay_ps;
    let switch = topology.nodes.iter().map(|node| node.latency_ps).max().unwrap_or(Span::ZERO);
    let links = if link + switch == Span::ZERO { Vec::new() } else { distances(topology, hosts) };
    let mut response = responses(spec, topology, |response| response.notification_ps);
    response.truncate(hosts);
    let delays = Delays { first: bcn.congestion_point.notification.delay_ps, link, switch, links, hosts, response };
    let name = |port: u32| topology.ports[port as usize].name.clone();
    let probes = ControlProbes::new(&plan.spec.record.ports, Time::ZERO + plan.spec.run.duration_ps);
    Points::new(&bcn.congestion_point, lanes, size, seed, name, delays, probes)
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
