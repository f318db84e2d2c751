//! Messages that come and go, against what theory says of them.

use std::ops::ControlFlow;

use weir_core::path::LossModel;
use weir_core::spec::messages::{Arrivals, Balancing, Gaps, MessageSizes, MessageSource, Messages, Packets};
use weir_core::spec::{Link, LinkSpec, Network, Node, NodeKind, Spec, SwitchSpec, Traffic, events};
use weir_core::tcp::Config;
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::{MessageRow, Plan, Sim, Totals, workloads};

const FLOW: Balancing = Balancing::Flow { weighted: false };

fn node(name: &str, kind: NodeKind) -> Node {
    Node { name: name.into(), kind, latency_ps: Span::ZERO }
}

fn link(gbps: u64, ns: u64) -> LinkSpec {
    LinkSpec {
        rate_bps: Rate::from_gbit_per_s(gbps),
        delay_ps: Span::from_ns(ns),
        framing_bytes: Bytes::ZERO,
        loss: LossModel::None,
    }
}

/// A window that never limits, one acknowledgement for each segment, no time stamps.
fn config() -> Config {
    Config {
        initial_window_segments: 100_000,
        receive_buffer_bytes: Bytes::new(1 << 29),
        delayed_ack_segments: 1,
        timestamps: false,
        min_rto_ps: Span::from_ms(1),
        ..Config::default()
    }
}

fn spec(network: Network, arrivals: Arrivals, duration: Span) -> Spec {
    let mut spec = workloads::incast();
    spec.network = network;
    spec.queues.clear();
    let packets = Packets { payload_bytes: Bytes::new(1000), header_bytes: Bytes::new(48) };
    let messages = Messages {
        config: Some(config()),
        rdma: None,
        packets,
        handshake: false,
        balancing: FLOW,
        arrivals,
        rows: 1_000_000,
    };
    spec.traffic = vec![Traffic { messages: Some(messages), ..Traffic::of_sources("messages", vec![]) }];
    spec.run.duration_ps = duration;
    spec
}

fn messages(spec: &mut Spec) -> &mut Messages {
    spec.traffic[0].messages.as_mut().expect("messages")
}

fn fat_tree(k: u32) -> Network {
    let switch = SwitchSpec { latency_ps: Span::ZERO };
    Network::FatTree { k, link: link(100, 1000), switch }
}

fn listed(list: &[(u64, u32, u32, u64)]) -> Arrivals {
    let row =
        |&(us, from, to, bytes): &(u64, u32, u32, u64)| (Time::ZERO + Span::from_us(us), from, to, Bytes::new(bytes));
    Arrivals::Listed { list: list.iter().map(row).collect() }
}

/// Each of `hosts` sends to any other.
fn uniform(hosts: &[u32], gaps: Gaps, sizes: MessageSizes, stop: Span) -> Arrivals {
    let mut lists = vec![hosts.to_vec()];
    lists.extend(hosts.iter().map(|&host| vec![host]));
    let source = |place| MessageSource {
        from: place,
        senders: 1,
        to: vec![(1.0, 0)],
        receivers: 1,
        gaps,
        start_ps: Time::ZERO,
        stop_ps: Time::ZERO + stop,
    };
    Arrivals::Drawn { sources: (1..=hosts.len() as u32).map(source).collect(), hosts: lists, sizes }
}

fn run_seed(spec: &Spec, seed: u64) -> Totals {
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    Sim::standard(&plan, seed).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

fn run(spec: &Spec) -> Totals {
    run_seed(spec, 1)
}

fn hosts_of(spec: &Spec) -> Vec<u32> {
    let topology = spec.check().expect("a legal spec");
    (0..topology.nodes.len() as u32).filter(|&node| topology.is_host(node)).collect()
}

fn took(row: &MessageRow) -> Span {
    row.delivered.expect("delivered") - row.start
}

#[test]
fn a_message_alone_takes_the_time_that_an_empty_network_needs_whatever_the_rates() {
    let switch = |name: &str| Node { latency_ps: Span::from_ns(300), ..node(name, NodeKind::Switch) };
    for rates in [[100, 100, 100], [10, 25, 100], [100, 25, 10], [25, 10, 100], [100, 10, 25]] {
        let nodes = vec![node("a", NodeKind::Host), switch("s"), switch("t"), node("b", NodeKind::Host)];
        let links = (0..3).map(|i| Link { a: i, b: i + 1, link: link(rates[i as usize], 700) }).collect();
        let list: Vec<(u64, u32, u32, u64)> = [1, 1447, 1448, 1449, 2896, 100_000, 3_000_000]
            .iter()
            .zip(0..)
            .map(|(&bytes, i)| (i * 10_000, 0, 3, bytes))
            .collect();
        let spec = spec(Network::Graph { nodes, links }, listed(&list), Span::from_ms(100));
        for row in run(&spec).messages {
            assert_eq!(took(&row), row.ideal, "{} over {rates:?}", row.bytes);
        }
    }
}

#[test]
fn a_message_that_fills_the_window_is_over_with_its_last_byte_and_not_with_the_fin() {
    let with = |segments| {
        let mut spec = spec(fat_tree(4), listed(&[(0, 0, 15, 10 * 1448)]), Span::from_ms(1));
        messages(&mut spec).config = Some(Config { initial_window_segments: segments, ..config() });
        run(&spec).messages[0]
    };
    // The window has no room for the FIN of the first, which leaves by itself.
    let (full, wide) = (with(10), with(11));
    assert_eq!((took(&full), full.acknowledged), (full.ideal, wide.acknowledged));
}

#[test]
fn single_messages_take_the_time_that_uet_htsim_records() {
    // 4150 B for each packet, 64 B for each acknowledgement, six links of 100 Gbit/s and 1 us: 10, 100 and 490 packets, the last
    // of these 2010 B long. Source: uet-htsim 40ccb05, validate_outputs; the time of the last acknowledgement.
    for (bytes, us) in [(10 * 4092, 17.0107), (100 * 4092, 46.8907), (489 * 4092 + 1952, 176.1995)] {
        let mut spec = spec(fat_tree(4), listed(&[(0, 0, 15, bytes)]), Span::from_ms(1));
        messages(&mut spec).config = Some(Config { segment_bytes: Bytes::new(4092), ..config() });
        let row = run(&spec).messages[0];
        assert_eq!(
            (row.acknowledged.expect("acknowledged").ps() + 50) / 100,
            (us * 1e4_f64).round() as u64,
            "{bytes} B"
        );
    }
}

#[test]
fn short_messages_of_one_host_wait_as_in_a_queue_with_one_server() {
    // Pollaczek-Khinchine: W = lambda E[S^2] / (2 (1 - rho)). Frames of 100 to 1400 B, uniform.
    let (low, high) = (42.0, 1342.0);
    let sizes = MessageSizes::Table(vec![(low, 0.0), (high, 1.0)]);
    // Behind the slow link, a fast one, where hardly anything waits.
    let nodes = vec![node("a", NodeKind::Host), node("s", NodeKind::Switch), node("b", NodeKind::Host)];
    let links = vec![Link { a: 0, b: 1, link: link(1, 100) }, Link { a: 1, b: 2, link: link(10_000, 100) }];
    let network = Network::Graph { nodes, links };
    let mean_s = 8e3 * ((low + high) / 2.0 + 58.0 - 0.5);
    let second = {
        let (a, b) = (8e3 * (low + 58.0), 8e3 * (high + 58.0));
        (a * a + a * b + b * b) / 3.0
    };
    for rho in [0.3, 0.7] {
        let gaps = Gaps::Poisson { mean_gap_ps: mean_s / rho };
        let arrivals = uniform(&[0], gaps, sizes.clone(), Span::from_ms(400));
        let Arrivals::Drawn { mut sources, sizes, .. } = arrivals else { unreachable!() };
        let hosts = vec![vec![0], vec![2]];
        sources[0].to = vec![(1.0, 1)];
        sources[0].from = 0;
        let spec = spec(network.clone(), Arrivals::Drawn { hosts, sources, sizes }, Span::from_ms(500));
        let expected = rho / mean_s * second / (2.0 * (1.0 - rho));
        let mean = |seed| {
            let rows = run_seed(&spec, seed).messages;
            assert!(rows.len() > 10_000);
            rows.iter().map(|row| took(row).ps() as f64 - row.ideal.ps() as f64).sum::<f64>() / rows.len() as f64
        };
        let means: Vec<f64> = (0..10).map(mean).collect();
        let average = means.iter().sum::<f64>() / 10.0;
        let error = (means.iter().map(|mean| (mean - average) * (mean - average)).sum::<f64>() / 90.0).sqrt();
        assert!((average - expected).abs() < 4.0 * error + 1000.0, "rho {rho}: {average} +- {error} of {expected}");
    }
}

#[test]
fn variants_are_offered_the_same_messages() {
    let offered = |balancing| {
        let mut spec = spec(fat_tree(4), listed(&[]), Span::from_ms(1));
        let gaps = Gaps::Lognormal { mean_gap_ps: 2e7, sigma: 2.0 };
        let hosts = hosts_of(&spec);
        messages(&mut spec).arrivals =
            uniform(&hosts, gaps, MessageSizes::Table(vec![(1000.0, 0.5), (50_000.0, 1.0)]), Span::from_ms(1));
        messages(&mut spec).balancing = balancing;
        let rows = run(&spec).messages;
        rows.iter().map(|row| (row.start, row.from, row.to, row.bytes)).collect::<Vec<_>>()
    };
    let flow = offered(FLOW);
    assert!(flow.len() > 300 && flow.iter().all(|row| row.1 != row.2));
    assert_eq!(flow, offered(Balancing::RoundRobin {}));
    assert_eq!(flow, offered(Balancing::Random { weighted: true }));
}

#[test]
fn messages_come_as_often_and_are_as_long_as_their_distributions_say() {
    let sizes = MessageSizes::Table(vec![(500.0, 0.25), (1000.0, 0.75), (9000.0, 1.0)]);
    assert_eq!(sizes.mean(), 500.0 * 0.25 + 750.0 * 0.5 + 5000.0 * 0.25);
    let gaps = [
        (Gaps::Poisson { mean_gap_ps: 1e6 }, 1.0),
        (Gaps::Lognormal { mean_gap_ps: 1e6, sigma: 1.0 }, std::f64::consts::E - 1.0),
        (Gaps::Hyperexponential { mean_gap_ps: 1e6, variation: 9.0 }, 9.0),
    ];
    for (gaps, variation) in gaps {
        let star = Network::Star { hosts: 2, link: link(1000, 100), switch: SwitchSpec { latency_ps: Span::ZERO } };
        let arrivals = uniform(&[0, 1], gaps, sizes.clone(), Span::from_ms(20));
        let rows = run(&spec(star, arrivals, Span::from_ms(20))).messages;
        let (n, expected) = (rows.len() as f64, 40_000.0);
        // The number of renewals has the variance c^2 t, the mean size its own.
        assert!((n - expected).abs() < 4.0 * (expected * variation).sqrt(), "{gaps:?}: {n}");
        let mean = rows.iter().map(|row| row.bytes.count() as f64).sum::<f64>() / n;
        let spread = 2_600.0;
        assert!((mean + 0.4 - sizes.mean()).abs() < 4.0 * spread / n.sqrt(), "{gaps:?}: {mean} B");
        let atoms = rows.iter().filter(|row| row.bytes.count() == 500).count() as f64;
        assert!((atoms / n - 0.25).abs() < 4.0 * (0.25 * 0.75 / n).sqrt(), "{atoms} of {n}");
    }
}

#[test]
fn of_an_incast_each_event_has_different_senders_and_one_receiver() {
    let mut spec = spec(fat_tree(4), listed(&[]), Span::from_ms(1));
    let hosts = hosts_of(&spec);
    let source = MessageSource {
        from: 0,
        senders: 9,
        to: vec![(1.0, 0)],
        receivers: 1,
        gaps: Gaps::Constant { mean_gap_ps: 1e8 },
        start_ps: Time::ZERO,
        stop_ps: Time::ZERO + Span::from_ms(1),
    };
    let of = |source: MessageSource| Arrivals::Drawn {
        hosts: vec![hosts.clone()],
        sources: vec![source],
        sizes: MessageSizes::Fixed(Bytes::new(5000)),
    };
    messages(&mut spec).arrivals = of(source.clone());
    let rows = run(&spec).messages;
    assert_eq!(rows.len(), 90);
    for event in rows.chunks(9) {
        let mut senders: Vec<u32> = event.iter().map(|row| row.from).collect();
        senders.sort_unstable();
        senders.dedup();
        assert_eq!(senders.len(), 9);
        assert!(event.iter().all(|row| (row.start, row.to) == (event[0].start, event[0].to) && row.from != row.to));
    }
    messages(&mut spec).arrivals = of(MessageSource { senders: 15, receivers: 16, ..source.clone() });
    let rows = run(&spec).messages;
    let mut pairs: Vec<(u32, u32)> = rows[..240].iter().map(|row| (row.from, row.to)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!((rows.len(), pairs.len()), (2400, 240), "all to all");
    messages(&mut spec).arrivals = of(MessageSource { senders: 16, ..source });
    assert!(Plan::new(spec).is_err(), "a receiver does not send to itself");
}

/// Messages beyond what the network carries: windows, queues that overflow, timeouts.
fn crowded(balancing: Balancing) -> Spec {
    let mut spec = spec(fat_tree(4), listed(&[]), Span::from_ms(3));
    let (hosts, topology) = (hosts_of(&spec), spec.check().expect("a legal spec"));
    let gaps = Gaps::Poisson { mean_gap_ps: 4e6 };
    messages(&mut spec).arrivals =
        uniform(&hosts, gaps, MessageSizes::Table(vec![(1000.0, 0.5), (100_000.0, 1.0)]), Span::from_ms(2));
    messages(&mut spec).balancing = balancing;
    messages(&mut spec).config = Some(Config { initial_window_segments: 64, ..config() });
    let ports = (0..topology.ports.len() as u32).filter(|&port| !topology.is_host(topology.ports[port as usize].from));
    spec.queues = workloads::incast().queues;
    spec.queues[0].ports = ports.collect();
    spec
}

#[test]
fn every_balancing_conserves_frames_and_finishes_what_comes() {
    let gap_ps = Span::from_us(2);
    let kinds = [
        FLOW,
        Balancing::Flow { weighted: true },
        Balancing::Random { weighted: false },
        Balancing::RoundRobin {},
        Balancing::LeastQueue {},
        Balancing::Flowlets { gap_ps, weighted: false },
    ];
    for balancing in kinds {
        let totals = run(&crowded(balancing));
        let all = totals.message_totals[0];
        assert!(all.arrived > 7000 && all.delivered * 10 > all.arrived * 9, "{balancing:?}: {all:?}");
        assert!(totals.drops.iter().map(|row| row.frames).sum::<u64>() > 100, "{balancing:?}");
        assert!(all.retransmits > 0 && all.most_live > 16);
        // A short last frame may overtake the one before it on another way.
        let is_in_order = matches!(balancing, Balancing::Flow { .. } | Balancing::Flowlets { .. });
        let overtaken = if is_in_order { Span::ZERO } else { Bytes::new(1506) / Rate::from_gbit_per_s(100) };
        for row in totals.messages.iter().filter(|row| row.delivered.is_some()) {
            assert!(took(row) + overtaken >= row.ideal, "{balancing:?}: {row:?}");
        }
        assert_eq!(run(&crowded(balancing)), totals, "a run can be repeated");
    }
}

/// Frames that each port from an edge switch up has sent.
fn uplinks(spec: &Spec, totals: &Totals) -> Vec<f64> {
    let topology = spec.check().expect("a legal spec");
    let up = |name: &str| name.starts_with("edge") && name.contains("->agg");
    let ports = topology.ports.iter().zip(&totals.ports).filter(|row| up(&row.0.name));
    ports.map(|(_, port)| port.counters.frames as f64).collect()
}

#[test]
fn turns_spread_frames_evenly_over_links_and_flows_do_not() {
    let imbalance = |balancing| {
        let spec = crowded(balancing);
        let loads = uplinks(&spec, &run(&spec));
        let pairs = loads.chunks(2).map(|pair| (pair[0] - pair[1]).abs() / (pair[0] + pair[1]));
        pairs.fold(0.0, f64::max)
    };
    assert!(imbalance(Balancing::RoundRobin {}) < 0.005);
    // Of n frames by chance the difference has the standard deviation sqrt(n); of messages it is larger.
    assert!(imbalance(Balancing::Random { weighted: false }) < 0.02);
    assert!(imbalance(FLOW) > 0.02);
}

#[test]
fn only_frames_of_one_flow_by_one_way_keep_their_order() {
    let sent_again = |balancing| {
        let mut spec = crowded(balancing);
        spec.queues.clear();
        run(&spec).message_totals[0].retransmits
    };
    assert_eq!(sent_again(FLOW), 0, "without a loss nothing is sent again");
    assert!(sent_again(Balancing::Random { weighted: false }) > 0, "what overtakes is taken for a loss");
}

#[test]
fn weights_follow_the_line_rates() {
    // Two ways from s to t: one of 30 and one of 10 Gbit/s.
    let nodes = vec![
        node("a", NodeKind::Host),
        node("s", NodeKind::Switch),
        node("u", NodeKind::Switch),
        node("v", NodeKind::Switch),
        node("t", NodeKind::Switch),
        node("b", NodeKind::Host),
    ];
    let ends = [(0, 1, 40), (1, 2, 30), (2, 4, 30), (1, 3, 10), (3, 4, 10), (4, 5, 40)];
    let links: Vec<Link> = ends.iter().map(|&(a, b, gbps)| Link { a, b, link: link(gbps, 100) }).collect();
    let list: Vec<(u64, u32, u32, u64)> = (0..4000).map(|i| (i, 0, 5, 1000)).collect();
    let ways: [(Balancing, f64); 3] = [
        (Balancing::Flow { weighted: true }, 0.75),
        (Balancing::Random { weighted: true }, 0.75),
        (Balancing::Random { weighted: false }, 0.5),
    ];
    for (balancing, share) in ways {
        let mut spec =
            spec(Network::Graph { nodes: nodes.clone(), links: links.clone() }, listed(&list), Span::from_ms(10));
        messages(&mut spec).balancing = balancing;
        let totals = run(&spec);
        let sent = |link: usize| totals.ports[2 * link].counters.frames as f64;
        let got = sent(1) / (sent(1) + sent(3));
        assert!((got - share).abs() < 4.0 * (share * (1.0 - share) / 4000.0).sqrt(), "{balancing:?}: {got}");
    }
}

#[test]
fn of_many_messages_a_regular_part_has_rows_and_all_are_counted() {
    let mut spec = crowded(FLOW);
    let all = run(&spec);
    messages(&mut spec).rows = 100;
    let few = run(&spec);
    let (counted, stride) = (few.message_totals[0], few.message_totals[0].stride);
    assert_eq!(weir_sim::MessageTotals { stride: 1, ..counted }, all.message_totals[0]);
    assert!(few.messages.len() <= 100 && few.messages.len() > 40 && stride.is_power_of_two());
    let expected: Vec<&MessageRow> = all.messages.iter().filter(|row| row.message % stride == 0).collect();
    assert_eq!(few.messages.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn messages_find_their_way_around_a_link_that_fails() {
    let mut spec = spec(fat_tree(4), listed(&[]), Span::from_ms(40));
    let topology = spec.check().expect("a legal spec");
    let list: Vec<(u64, u32, u32, u64)> = (0..400).map(|i| (i * 50, 0, 15, 20_000)).collect();
    messages(&mut spec).arrivals = listed(&list);
    let port = |name: &str| topology.port(name).expect("a port");
    let ports = vec![port("edge-0->agg-0"), port("agg-0->edge-0")];
    let at = |us, change| events::Event { at_ps: Time::ZERO + Span::from_us(us), change };
    spec.events = vec![
        at(5_000, events::Change::Down { ports: ports.clone() }),
        at(6_000, events::Change::Reroute { ports: ports.clone() }),
        at(15_000, events::Change::Up { ports: ports.clone() }),
        at(16_000, events::Change::Reroute { ports: ports.clone() }),
    ];
    let totals = run(&spec);
    assert_eq!(totals.message_totals[0].delivered, 400);
    let late = |from: u64, to: u64| {
        let of = |row: &&MessageRow| (from..to).contains(&(row.start.ps() / 1_000_000));
        totals.messages.iter().filter(of).filter(|row| took(row) > row.ideal).count()
    };
    assert_eq!(late(0, 4_900), 0);
    assert!(late(5_000, 6_000) > 2, "until nodes know it, frames are lost");
    assert_eq!(late(6_000, 20_000), 0, "then nothing is");
    assert!(totals.drops.iter().any(|row| row.port == ports[0]));
}

#[test]
fn hosts_of_one_switch_are_reached_while_the_link_of_one_fails() {
    let list: Vec<(u64, u32, u32, u64)> = (0..100).map(|i| (i * 50, i as u32 % 2, 14 + i as u32 % 2, 20_000)).collect();
    let mut spec = spec(fat_tree(4), listed(&list), Span::from_ms(40));
    let topology = spec.check().expect("a legal spec");
    let ports = ["host-15->edge-7", "edge-7->host-15"].map(|name| topology.port(name).expect("a port")).to_vec();
    let at = |us, change| events::Event { at_ps: Time::ZERO + Span::from_us(us), change };
    spec.events = vec![
        at(1_000, events::Change::Down { ports: ports.clone() }),
        at(1_100, events::Change::Reroute { ports: ports.clone() }),
        at(2_000, events::Change::Up { ports: ports.clone() }),
        at(2_100, events::Change::Reroute { ports }),
    ];
    let totals = run(&spec);
    assert_eq!(totals.message_totals[0].delivered, 100);
    let late = |to: u32| {
        let is_late = |row: &&MessageRow| row.to == to && took(row) > row.ideal + Span::from_us(10);
        totals.messages.iter().filter(is_late).count()
    };
    assert_eq!((late(14), late(15)), (0, 11), "one each 100 us until nodes know it");
}

#[test]
fn frames_without_a_transport_need_somebody_who_sends_to_another() {
    let none = listed(&[]);
    let alone = vec![(3, 3, Bytes::ZERO, Span::from_us(1), vec![])];
    let computation = Arrivals::Chained { start_ps: Time::ZERO, tasks: alone, rounds: vec![] };
    for arrivals in [none, computation] {
        let mut spec = spec(fat_tree(4), arrivals, Span::from_us(10));
        assert!(run(&spec).messages.is_empty(), "with a transport there is nothing to refuse");
        messages(&mut spec).config = None;
        let error = Plan::new(spec).expect_err("it is refused");
        assert_eq!(error.pointer, "/traffic/0/messages/arrivals");
        assert!(error.message.contains("(got 0 pairs)"), "{}", error.message);
    }
}
