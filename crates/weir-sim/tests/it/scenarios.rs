//! Small scenarios to start from, and any that proptest can think of.

use std::ops::ControlFlow;

use proptest::prelude::*;
use weir_core::path::LossModel;
use weir_core::spec::Engine;
use weir_core::spec::control::Control;
use weir_core::spec::switching::Switching;
use weir_core::spec::{
    Departures, Destination, FrameSize, Limit, Link, LinkSpec, Network, Node, NodeKind, PortProbe, QueueRule, Record,
    Run, Source, Spec, Stream, SwitchSpec, Traffic, TrafficProbe,
};
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::{Feeding, Plan, PushedSource, Sim, Totals};

/// 10 Gbit/s, 0.5 us, no framing: 1500 B take 1.2 us.
pub(crate) const LINK: LinkSpec = LinkSpec {
    rate_bps: Rate::from_gbit_per_s(10),
    delay_ps: Span::from_ns(500),
    framing_bytes: Bytes::ZERO,
    loss: LossModel::None,
};
pub(crate) const SWITCH: SwitchSpec = SwitchSpec { latency_ps: Span::ZERO };
pub(crate) const FRAME: Bytes = Bytes::new(1500);

/// Host 0 sends to host 1 over a switch: ports 0 and 3. Frames leave at the multiples of `gap_ns`.
pub(crate) fn one_way(gap_ns: u64, duration: Span) -> Spec {
    spec(2, vec![constant(0, 1, gap_ns)], duration)
}

pub(crate) fn spec(hosts: u32, sources: Vec<Source>, duration_ps: Span) -> Spec {
    Spec {
        queues: vec![],
        traffic: vec![Traffic::of_sources("load", sources)],
        ..Spec::of_network(Network::Star { hosts, link: LINK, switch: SWITCH }, duration_ps)
    }
}

/// Frames of 1500 B every `gap_ns`, from time 0 on.
pub(crate) fn constant(from: u32, to: u32, gap_ns: u64) -> Source {
    Source::between(from, to, Departures::Constant { gap_ps: (gap_ns * 1000) as f64 }, FrameSize::Fixed(FRAME))
}

/// Two hosts, each with a switch of its own.
pub(crate) fn two_islands() -> Network {
    let node = |name: &str, kind| Node { name: name.into(), kind, latency_ps: Span::ZERO };
    let hosts = ["a", "b"].map(|name| node(name, NodeKind::Host));
    let switches = ["c", "d"].map(|name| node(name, NodeKind::Switch));
    let links = vec![Link { a: 0, b: 2, link: LINK }, Link { a: 1, b: 3, link: LINK }];
    Network::Graph { nodes: hosts.into_iter().chain(switches).collect(), links }
}

pub(crate) fn drop_tail(ports: Vec<u32>, limit: Limit) -> QueueRule {
    QueueRule::drop_tail(ports, limit)
}

pub(crate) fn probe(port: u32, every_ps: Span) -> PortProbe {
    PortProbe { port, every_ps }
}

pub(crate) fn run(spec: &Spec, seed: u64) -> Totals {
    run_fed(spec, seed, Feeding::Pulled)
}

pub(crate) fn run_fed(spec: &Spec, seed: u64, feeding: Feeding) -> Totals {
    let plan = Plan::with_feeding(spec.clone(), feeding).expect("a legal spec");
    Sim::<PushedSource>::new(&plan, seed, []).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

/// Any legal small scenario: a ring of switches with chords, hosts on them, every kind of source and queue.
pub(crate) fn any_scenario() -> impl Strategy<Value = Spec> {
    let size = (1u32..5, 2u32..7);
    size.prop_flat_map(|(switches, hosts)| {
        let network = any_network(switches, hosts);
        let ports = 2 * (hosts + switches - 1 + 2);
        (network, any_queues(ports), any_traffic(switches, hosts), any_record(ports), 1u64..200)
    })
    .prop_map(|(network, queues, traffic, mut record, duration_us)| {
        record.traffic.retain(|probe| (probe.traffic as usize) < traffic.len());
        let run = Run { duration_ps: Span::from_us(duration_us), engine: Engine::Event };
        Spec {
            network,
            queues,
            traffic,
            control: Control::default(),
            switching: Switching::default(),
            events: Vec::new(),
            buffers: Vec::new(),
            run,
            record,
        }
    })
}

fn any_link() -> impl Strategy<Value = LinkSpec> {
    let rate = prop_oneof![
        Just(10_000_000_000u64),
        Just(1_000_000_000),
        Just(400_000_000_000),
        1_000_000_000..u64::pow(10, 11)
    ];
    let delay = prop_oneof![Just(0u64), Just(500_000), 0u64..50_000_000];
    let loss = prop_oneof![
        4 => Just(LossModel::None),
        1 => (0.0..=1.0f64).prop_map(|probability| LossModel::Random { probability }),
        1 => (0.01..1.0f64, 0.01..1.0f64, 0.0..0.2f64, 0.2..=1.0f64).prop_map(|(to_bad, to_good, loss_good, loss_bad)| {
            LossModel::GilbertElliott { to_bad, to_good, loss_good, loss_bad }
        }),
    ];
    (rate, delay, prop_oneof![Just(0u64), Just(20)], loss).prop_map(|(rate, delay, framing, loss)| LinkSpec {
        rate_bps: Rate::from_bps(rate),
        delay_ps: Span::from_ps(delay),
        framing_bytes: Bytes::new(framing),
        loss,
    })
}

fn any_network(switches: u32, hosts: u32) -> impl Strategy<Value = Network> {
    let links = (hosts + switches - 1 + 2) as usize;
    let ends = prop::collection::vec((0..switches, 0..switches), hosts as usize + 2);
    (prop::collection::vec(any_link(), links), ends, 0u64..3_000_000).prop_map(move |(specs, ends, latency)| {
        let node = |name: String, kind, latency_ps| Node { name, kind, latency_ps };
        let mut nodes: Vec<Node> =
            (0..switches).map(|i| node(format!("s{i}"), NodeKind::Switch, Span::from_ps(latency))).collect();
        nodes.extend((0..hosts).map(|i| node(format!("h{i}"), NodeKind::Host, Span::ZERO)));
        let mut pairs: Vec<(u32, u32)> = (1..switches).map(|i| (i - 1, i)).collect();
        pairs.extend((0..hosts).map(|i| (switches + i, ends[i as usize].0)));
        // Two more: a second way between switches, or a second link of a host.
        for (i, &(a, b)) in (0..).zip(&ends[hosts as usize..]) {
            pairs.push(if a == b { (switches + i, a) } else { (a, b) });
        }
        let links = pairs.into_iter().zip(specs).map(|((a, b), link)| Link { a, b, link }).collect();
        Network::Graph { nodes, links }
    })
}

fn any_queues(ports: u32) -> impl Strategy<Value = Vec<QueueRule>> {
    let limit = prop_oneof![
        (0u64..30_000).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
        (0u64..20).prop_map(Limit::Frames),
        Just(Limit::Unlimited),
    ];
    let rule = (prop::collection::vec(0..ports, 0..8), limit).prop_map(|(ports, limit)| drop_tail(ports, limit));
    prop::collection::vec(rule, 0..4)
}

fn any_traffic(switches: u32, hosts: u32) -> impl Strategy<Value = Vec<Traffic>> {
    let group = prop::collection::vec(any_source(switches, hosts), 0..4);
    prop::collection::vec(group, 1..4).prop_map(|groups| {
        let named = groups.into_iter().enumerate();
        named.map(|(i, sources)| Traffic::of_sources(format!("group-{i}"), sources)).collect()
    })
}

fn any_source(switches: u32, hosts: u32) -> impl Strategy<Value = Source> {
    let gap = || prop_oneof![(100_000u64..10_000_000).prop_map(|gap| gap as f64), Just(51_200.0), Just(1_200_000.0)];
    let departures = prop_oneof![
        gap().prop_map(|mean_gap_ps| Departures::Poisson { mean_gap_ps }),
        gap().prop_map(|gap_ps| Departures::Constant { gap_ps }),
        (1u64..40, 0.01..1.0f64).prop_map(|(slots, probability)| Departures::Bernoulli {
            slot_ps: Span::from_ps(slots * 51_200),
            probability
        }),
        (gap(), 1u64..30, 0u64..30).prop_map(|(gap_ps, on, off)| Departures::OnOff {
            gap_ps,
            mean_on_ps: Span::from_us(on),
            mean_off_ps: Span::from_us(off),
            starts_by_chance: off % 2 == 1
        }),
    ];
    let size = prop_oneof![
        Just(FrameSize::Fixed(FRAME)),
        Just(FrameSize::Fixed(Bytes::new(64))),
        prop::collection::vec((1u64..9000, 1u32..5), 1..4).prop_map(|parts| FrameSize::Mix(
            parts.into_iter().map(|(size, weight)| (Bytes::new(size), weight)).collect()
        )),
    ];
    let host = || switches..switches + hosts;
    let to = prop_oneof![
        host().prop_map(Destination::Node),
        prop::sample::subsequence(host().collect::<Vec<u32>>(), 1..=hosts as usize).prop_map(Destination::Uniform),
    ];
    let stream = prop_oneof![Just(Stream::Named), any::<u64>().prop_map(|state| Stream::SplitMix64 { state })];
    let stop = prop_oneof![Just(Time::NEVER), (50u64..100).prop_map(|us| Time::ZERO + Span::from_us(us))];
    (host(), to, 0u64..50, stop, departures, size, stream).prop_map(
        |(from, to, start, stop_ps, departures, frame_size, stream)| Source {
            from,
            to,
            start_ps: Time::ZERO + Span::from_us(start),
            stop_ps,
            departures,
            frame_size,
            stream,
        },
    )
}

fn any_record(ports: u32) -> impl Strategy<Value = Record> {
    let probes = prop::sample::subsequence((0..ports).collect::<Vec<u32>>(), 0..=ports as usize);
    let every = || (1_000_000u64..40_000_000).prop_map(Span::from_ps);
    (probes, every(), prop::collection::vec(every(), 0..3), any::<bool>()).prop_map(
        |(probes, every_ps, groups, delays)| Record {
            ports: probes.into_iter().map(|port| probe(port, every_ps)).collect(),
            traffic: (0..).zip(groups).map(|(traffic, every_ps)| TrafficProbe { traffic, every_ps }).collect(),
            delays,
            ..Record::default()
        },
    )
}
