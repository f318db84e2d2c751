//! Messages in numbered packets, against what can be worked out by hand.

use std::ops::ControlFlow;

use weir_core::cc;
use weir_core::path::LossModel;
use weir_core::rdma::{Config, Credit, Detection, PathChoice, PathRule, Recovery, SleekConfig};
use weir_core::spec::classes::{Class, Classes, Order, Trim};
use weir_core::spec::messages::{Arrivals, Balancing, Messages, Packets};
use weir_core::spec::{
    Discipline, Limit, Link, LinkSpec, Marking, MarkingTime, Network, Node, NodeKind, QueueRule, Spec, Traffic,
};
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::{MessageRow, Plan, Sim, Totals, workloads};

const PACKETS: Packets = Packets { payload_bytes: Bytes::new(1000), header_bytes: Bytes::new(48) };

fn config() -> Config {
    Config { timeout_ps: Span::from_ms(1), ..Config::default() }
}

fn link(gbps: u64, ns: u64, loss: LossModel) -> LinkSpec {
    LinkSpec { rate_bps: Rate::from_gbit_per_s(gbps), delay_ps: Span::from_ns(ns), framing_bytes: Bytes::ZERO, loss }
}

/// `senders` hosts and a receiver behind them at one switch; `loss` is that of the link to the receiver.
fn star(senders: u32, gbps: u64, ns: u64, loss: LossModel) -> Network {
    let node = |name: String, kind| Node { name, kind, latency_ps: Span::ZERO };
    let mut nodes: Vec<Node> = (0..=senders).map(|id| node(format!("host-{id}"), NodeKind::Host)).collect();
    nodes.push(node("switch".into(), NodeKind::Switch));
    let links = (0..=senders).map(|id| {
        let loss = if id == senders { loss } else { LossModel::None };
        Link { a: id, b: senders + 1, link: link(gbps, ns, loss) }
    });
    Network::Graph { nodes, links: links.collect() }
}

fn spec(network: Network, config: Config, list: &[(u64, u32, u32, u64)], duration: Span) -> Spec {
    let mut spec = workloads::incast();
    spec.network = network;
    spec.queues.clear();
    let row =
        |&(us, from, to, bytes): &(u64, u32, u32, u64)| (Time::ZERO + Span::from_us(us), from, to, Bytes::new(bytes));
    let messages = Messages {
        config: None,
        rdma: Some(config),
        packets: PACKETS,
        handshake: false,
        balancing: Balancing::Flow { weighted: false },
        arrivals: Arrivals::Listed { list: list.iter().map(row).collect() },
        rows: 1_000_000,
    };
    spec.traffic = vec![Traffic { messages: Some(messages), ..Traffic::of_sources("messages", vec![]) }];
    spec.run.duration_ps = duration;
    spec
}

fn run(spec: Spec) -> Totals {
    let plan = Plan::new(spec).expect("a legal spec");
    Sim::standard(&plan, 1).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

/// The port of the switch that leads to the receiver.
fn port_to(spec: &Spec, host: u32) -> u32 {
    let topology = spec.check().expect("a legal spec");
    let is_it = |port: &weir_core::network::PortSpec| port.to == host;
    topology.ports.iter().position(is_it).expect("the host has a link") as u32
}

fn of(totals: &Totals) -> &[MessageRow] {
    &totals.messages
}

/// When a message was delivered.
fn over(row: &MessageRow) -> Time {
    row.delivered.unwrap_or(Time::NEVER)
}

#[test]
fn a_message_alone_takes_what_it_would_take_in_an_empty_network() {
    for bytes in [17, 999, 1000, 1100, 250_000] {
        let totals = run(spec(star(1, 100, 1000, LossModel::None), config(), &[(0, 0, 1, bytes)], Span::from_ms(1)));
        let row = of(&totals)[0];
        assert_eq!(over(&row).saturating_since(row.start), row.ideal, "{bytes} B");
        // The last answer: two transmissions of 64 B and two links.
        let answer = Bytes::new(64) / Rate::from_gbit_per_s(100);
        assert_eq!(
            row.acknowledged.map(|at| at.saturating_since(over(&row))),
            Some(answer * 2 + Span::from_us(2)),
            "{bytes} B"
        );
    }
}

#[test]
fn messages_of_a_host_share_its_line_packet_by_packet() {
    let list = [(0, 0, 2, 100_000), (0, 0, 2, 100_000), (0, 0, 2, 10_000)];
    let totals = run(spec(star(2, 100, 1000, LossModel::None), config(), &list, Span::from_ms(1)));
    let times: Vec<u64> = of(&totals).iter().map(|row| over(row).saturating_since(row.start).ps()).collect();
    let packet = (Bytes::new(1048) / Rate::from_gbit_per_s(100)).ps();
    // The first one starts with a packet while it is alone. 31 packets until the short one is over, 210 in all; one more transmission and two
    // links.
    assert_eq!(times[2], 32 * packet + 2_000_000);
    assert_eq!((times[0], times[1]), (209 * packet + 2_000_000, 211 * packet + 2_000_000));
}

/// Every 256th packet is lost, messages have 4 MB.
///
/// Source: Guo 2016, section 4.1 (as quoted; zero goodput with go-back-0)
#[test]
fn with_one_loss_in_256_go_back_0_never_ends_a_long_message_and_go_back_n_does() {
    let loss = LossModel::Random { probability: 1.0 / 256.0 };
    let goodput = |recovery| {
        let config = Config { recovery, timeout_ps: Span::from_us(100), ..config() };
        let totals = run(spec(star(1, 40, 500, loss), config, &[(0, 0, 1, 4_000_000)], Span::from_ms(20)));
        let sent: u64 = totals.flows[0].sent_frames;
        (over(&of(&totals)[0]), sent)
    };
    let (ends, sent) = goodput(Recovery::GoBackZero);
    assert_eq!(ends, Time::NEVER);
    // 20 ms of 209.6 ns.
    assert!(sent > 90_000, "the link is full: {sent}");
    for recovery in [Recovery::GoBackN, Recovery::Selective] {
        let (ends, sent) = goodput(recovery);
        assert!(ends < Time::ZERO + Span::from_ms(2), "{recovery:?} {ends}");
        assert!((4000..4700).contains(&sent), "{recovery:?} {sent}");
    }
}

/// The queue to the receiver: `limit` for data, which is cut or dropped, and headers before it.
fn trimming(spec: &mut Spec, host: u32, limit: u64, trims: bool, marking: Option<Marking>) {
    let class = |class, limit, trim, marking| Class {
        class,
        weight: (class == 0).then_some(1),
        discipline: Discipline::DropTail { limit, marking, overrun: None },
        trim,
    };
    let trim = trims.then_some(Trim { size_bytes: Bytes::new(64), class: 6 });
    let list = vec![
        class(0, Limit::Bytes(Bytes::new(limit)), trim, marking),
        class(6, Limit::Bytes(Bytes::new(2 * limit)), None, None),
    ];
    let ports = vec![port_to(spec, host)];
    let order = Order::Class { quantum_bytes: Bytes::new(1500) };
    spec.queues.push(QueueRule { ports, discipline: Discipline::Classes(Classes { order, list }) });
}

fn selective() -> Config {
    Config { recovery: Recovery::Selective, control_class: 6, ..config() }
}

const CREDIT: Credit =
    Credit { initial: 1.5, revokes: true, most: 1.5, packets: 4.0, share: 0.99, oversubscription: None };

#[test]
fn an_incast_whose_packets_are_cut_loses_none_and_takes_the_time_of_its_data() {
    let (senders, bytes) = (15, 300_000);
    let list: Vec<(u64, u32, u32, u64)> = (0..senders).map(|host| (0, host, senders, bytes)).collect();
    let credit = Some(CREDIT);
    let with = |config: Config, trims: bool| {
        let mut spec = spec(star(senders, 100, 1000, LossModel::None), config, &list, Span::from_ms(20));
        trimming(&mut spec, senders, 50_000, trims, None);
        let totals = run(spec);
        let last = of(&totals).iter().map(over).max().expect("messages");
        let again: u64 = of(&totals).iter().map(|row| u64::from(row.retransmits)).sum();
        let timeouts: u64 = of(&totals).iter().map(|row| u64::from(row.timeouts)).sum();
        let dropped: u64 = totals.flows.iter().map(|flow| flow.dropped_frames).sum();
        (last, again, timeouts, dropped)
    };
    let bound = Bytes::new(1048 * 15 * 300) / Rate::from_gbit_per_s(100);
    let (last, again, timeouts, dropped) = with(Config { credit, ..selective() }, true);
    assert!(last > Time::ZERO + bound && last.ps() * 10 < bound.ps() * 12, "{last} {bound}");
    assert_eq!((timeouts, dropped), (0, 0));
    assert!(again > 0);
    // Where the queue drops, timeouts find what is lost at the tail.
    let (_, _, timeouts, dropped) = with(Config { timeout_ps: Span::from_us(200), ..selective() }, false);
    assert!(dropped > 0 && timeouts > 0);
}

#[test]
fn the_senders_of_an_incast_share_by_credit() {
    let (senders, bytes) = (8, 2_000_000);
    let list: Vec<(u64, u32, u32, u64)> = (0..senders).map(|host| (0, host, senders, bytes)).collect();
    let mut spec = spec(
        star(senders, 100, 1000, LossModel::None),
        Config { credit: Some(CREDIT), ..selective() },
        &list,
        Span::from_ms(20),
    );
    trimming(&mut spec, senders, 50_000, true, None);
    let totals = run(spec);
    let ends: Vec<u64> = of(&totals).iter().map(|row| over(row).ps()).collect();
    let (first, last) = (ends.iter().min().expect("rows"), ends.iter().max().expect("rows"));
    assert!(*first as f64 > 0.97 * *last as f64, "{first} {last}");
}

#[test]
fn with_nscc_an_incast_stays_near_its_target_delay_and_all_of_it_arrives() {
    let (senders, bytes) = (8, 2_000_000);
    let list: Vec<(u64, u32, u32, u64)> = (0..senders).map(|host| (0, host, senders, bytes)).collect();
    let nscc = cc::Config::Nscc(cc::NsccConfig::default());
    let mut spec = spec(
        star(senders, 100, 1000, LossModel::None),
        Config { congestion_control: nscc, ..selective() },
        &list,
        Span::from_ms(20),
    );
    let marking = Marking {
        k_min_bytes: Bytes::new(10_000),
        k_max_bytes: Bytes::new(40_000),
        p_max: 1.0,
        when: MarkingTime::Arrival,
    };
    trimming(&mut spec, senders, 50_000, true, Some(marking));
    let totals = run(spec);
    let bound = Bytes::new(1048 * 8 * 2000) / Rate::from_gbit_per_s(100);
    let last = of(&totals).iter().map(over).max().expect("messages");
    assert!(last.ps() * 10 < bound.ps() * 11, "{last} {bound}");
    assert_eq!(totals.flows.iter().map(|flow| flow.dropped_frames).sum::<u64>(), 0);
}

/// A sender alone settles where its window is eta C T and what is added; two share.
#[test]
fn with_hpcc_the_queue_is_empty_after_a_round_trip_and_senders_share() {
    let hpcc = cc::HpccConfig { max_stage: 0, ..cc::HpccConfig::default() };
    let control = cc::Config::Hpcc(hpcc);
    let list = [(0, 0, 2, 5_000_000), (200, 1, 2, 5_000_000)];
    let spec = spec(
        star(2, 100, 1000, LossModel::None),
        Config { congestion_control: control, ..config() },
        &list,
        Span::from_ms(5),
    );
    let totals = run(spec);
    let took = |row: &MessageRow| over(row).saturating_since(row.start).as_secs_f64();
    let rows = of(&totals);
    // Alone 0.95 C for 200 us, then half of it each until the first is over.
    let rate = 100e9 * 0.95 / 8.0 * 1000.0 / 1090.0;
    let first = 200e-6 + (5e6 - 200e-6 * rate) / (rate / 2.0);
    assert!((took(&rows[0]) / first - 1.0).abs() < 0.06, "{} {first}", took(&rows[0]));
    assert_eq!(rows.iter().map(|row| row.retransmits).sum::<u32>(), 0);
}

#[test]
fn values_in_packets_spread_a_message_over_all_ways() {
    let links = |paths: Option<PathChoice>| {
        let switch = weir_core::spec::SwitchSpec { latency_ps: Span::ZERO };
        let network = Network::FatTree { k: 8, link: link(100, 500, LossModel::None), switch };
        let spec = spec(network, Config { paths, ..selective() }, &[(0, 0, 127, 2_000_000)], Span::from_ms(5));
        let totals = run(spec);
        assert!(of(&totals)[0].delivered.is_some());
        totals.ports.iter().filter(|port| port.counters.frames > 750).count()
    };
    assert_eq!(links(None), 12, "one way of six links, and one for answers");
    for rule in [PathRule::Oblivious, PathRule::Bitmap, PathRule::Mixed] {
        // The links of hosts, both ways; the others have about 500 frames each, or 125.
        assert_eq!(links(Some(PathChoice { rule, values: 64 })), 4, "{rule:?}");
    }
}

const NSCC: cc::NsccConfig =
    cc::NsccConfig { target: 1.0, most: 1.5, gamma: 0.8, gate_rounds: 3, spares_last_hop: false };

fn nscc(detection: Detection) -> Config {
    Config { congestion_control: cc::Config::Nscc(NSCC), detection, timeout_ps: Span::from_us(200), ..selective() }
}

fn sleek() -> Detection {
    Detection::Sleek(SleekConfig::default())
}

/// When the last message was delivered, packets sent again, timeouts, frames that were dropped.
fn summary(totals: &Totals) -> (Time, u64, u64, u64) {
    let rows = of(totals);
    let last = rows.iter().map(over).max().expect("messages");
    let again = rows.iter().map(|row| u64::from(row.retransmits)).sum();
    let timeouts = rows.iter().map(|row| u64::from(row.timeouts)).sum();
    (last, again, timeouts, totals.flows.iter().map(|flow| flow.dropped_frames).sum())
}

/// In order, three packets behind a gap and a window and a half tell the same; go-back-n sends a round trip of packets again for each loss, and a
/// sender that waits for timeouts stands still.
#[test]
fn on_a_path_that_loses_sleek_sends_again_what_was_lost_and_waits_for_no_timeout() {
    let loss = LossModel::Random { probability: 1.0 / 256.0 };
    let found = |config: Config| {
        let totals = run(spec(star(1, 100, 1000, loss), config, &[(0, 0, 1, 4_000_000)], Span::from_ms(40)));
        let (last, again, timeouts, _) = summary(&totals);
        (last, again, timeouts, totals.flows[0].dropped_frames)
    };
    let (last, again, timeouts, dropped) = found(nscc(sleek()));
    assert_eq!((again, timeouts), (dropped, 0));
    // 4000 packets and what was sent again, and two links.
    let bound = Bytes::new(1048 * (4000 + again)) / Rate::from_gbit_per_s(100) + Span::from_us(2);
    assert!(last >= Time::ZERO + bound && last.ps() * 100 < bound.ps() * 101, "{last} {bound}");
    assert_eq!(found(nscc(Detection::Overtaken { packets: 3 })), (last, again, 0, dropped));
    let (late, again_by_time, timeouts, _) = found(nscc(Detection::Timeout {}));
    assert!(late > last + Span::from_us(100) && timeouts > 0 && again_by_time >= dropped, "{late} {timeouts}");
    let (back, many, ..) = found(Config { recovery: Recovery::GoBackN, ..nscc(Detection::Timeout {}) });
    assert!(back > last + Span::from_us(50) && many > 10 * again, "{back} {many}");
}

/// Nothing is lost, and each packet takes another way.
#[test]
fn packets_that_take_many_ways_mislead_those_who_count_to_three_and_not_sleek() {
    let switch = weir_core::spec::SwitchSpec { latency_ps: Span::ZERO };
    let network = Network::FatTree { k: 4, link: link(100, 1000, LossModel::None), switch };
    let list: Vec<(u64, u32, u32, u64)> = (0..16).map(|host| (0, host, (host + 5) % 16, 2_000_000)).collect();
    for rule in [PathRule::Oblivious, PathRule::Reps, PathRule::Mixed] {
        let found = |detection| {
            let paths = Some(PathChoice { rule, values: 64 });
            summary(&run(spec(network.clone(), Config { paths, ..nscc(detection) }, &list, Span::from_ms(5))))
        };
        let patient = found(Detection::Timeout {});
        assert_eq!((patient.1, patient.3), (0, 0));
        assert_eq!(found(sleek()), patient, "{rule:?}");
        let misled = found(Detection::Overtaken { packets: 3 });
        assert!(misled.1 > 1000 && misled.0 > patient.0 + Span::from_us(50), "{rule:?} {misled:?}");
    }
}
