//! What congestion management does to a network: timelines worked out by hand, and laws.

mod bcn;
mod properties;

use weir_core::network::Topology;
use weir_core::spec::control::{
    Bcn, BcnReactionPoint, Counted, Limiter, NewLimiter, Notification, NotificationLane, Pause, Positive, Qcn,
    QcnCongestionPoint, QcnReactionPoint, Recovery, Response, Sampling, Severe, SevereAction,
};
use weir_core::spec::{
    Departures, LevelProbe, Limit, LimiterProbe, Link, LinkSpec, Network, Node, NodeKind, Spec, TrafficProbe,
};
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::workloads::{HOT_PORT, calibration, calibration_pause};
use weir_sim::{ControlKind, Feeding, Plan, Totals};

use crate::scenarios::{FRAME, LINK, constant, drop_tail, probe, run, run_fed, spec};

const PAUSE: Pause = Pause {
    nodes: vec![],
    xoff_bytes: Bytes::new(2000),
    xon_bytes: Bytes::new(2000),
    frame_bytes: Bytes::new(64),
    delay_ps: Span::ZERO,
    quanta: None,
    refresh_ps: None,
};

/// Host 0 sends to host 2 over switch 1, 10 Gbit/s to the switch and 1 Gbit/s from it, as fast as it can. Ports: 0
/// from the host, 1 back to it, 2 to the receiver. Hosts respond in 1 us.
pub(crate) fn slow_receiver(duration: Span) -> Spec {
    let node = |name: &str, kind| Node { name: name.into(), kind, latency_ps: Span::ZERO };
    let slow = LinkSpec { rate_bps: Rate::from_gbit_per_s(1), ..LINK };
    let mut spec = spec(3, vec![constant(0, 2, 1200)], duration);
    spec.network = Network::Graph {
        nodes: vec![node("fast", NodeKind::Host), node("switch", NodeKind::Switch), node("slow", NodeKind::Host)],
        links: vec![Link { a: 0, b: 1, link: LINK }, Link { a: 1, b: 2, link: slow }],
    };
    spec.control.responses =
        vec![Response { nodes: vec![0, 2], pause_ps: Span::from_us(1), notification_ps: Span::from_us(1) }];
    spec
}

fn us(us: u64) -> Span {
    Span::from_us(us)
}

fn sent(totals: &Totals) -> Vec<(u32, u32, ControlKind, u64)> {
    totals.control.frames.iter().map(|row| (row.port, row.queue_port, row.kind, row.frames)).collect()
}

#[test]
fn a_paused_host_ends_its_frame_and_waits_until_it_is_released() {
    let mut spec = slow_receiver(us(40));
    spec.control.pause = vec![Pause { nodes: vec![1], ..PAUSE }];
    let totals = run(&spec, 1);
    // Two frames wait at 4.1 us. XOFF takes 51.2 ns on the link, travels 0.5 us and is obeyed after 1 us, at 5.6512 us:
    // the fifth frame, begun at 4.8 us, ends. Four wait then. The receiver's link sends one at 14.212 us, after the
    // XOFF to the receiver, and one each 12 us; at 38.212 us one is left, and XON takes effect at 39.7632 us.
    let pauses = totals.ports[0].pauses;
    assert_eq!((pauses.count, pauses.total.ps(), pauses.longest), (1, 34_112_000, pauses.total));
    assert_eq!(pauses.last, Some(Time::from_ps(39_763_200)));
    assert_eq!(totals.ports[0].counters.frames, 6, "one more since it was released");
    assert_eq!(
        sent(&totals),
        [
            (1, 2, ControlKind::Xoff, 1),
            (1, 2, ControlKind::Xon, 1),
            (2, 2, ControlKind::Xoff, 1),
            (2, 2, ControlKind::Xon, 1)
        ]
    );
    assert_eq!(totals.ports[1].counters.frames, 2, "PAUSE frames are frames");
    assert_eq!(totals.ports[2].counters.queue_max_bytes, 4 * 1500);
}

#[test]
fn a_pause_of_some_quanta_runs_out_unless_it_is_repeated() {
    let mut spec = slow_receiver(us(30));
    // 100 quanta are 5.12 us at 10 Gbit/s.
    let pause = Pause { nodes: vec![1], quanta: Some(100), ..PAUSE };
    spec.control.pause = vec![pause.clone()];
    let once = run(&spec, 1).ports[0].pauses;
    assert_eq!((once.count, once.total), (1, Span::from_ps(5_120_000)));
    spec.control.pause = vec![Pause { refresh_ps: Some(us(5)), ..pause }];
    let repeated = run(&spec, 1);
    assert_eq!(repeated.ports[0].pauses.count, 1);
    assert_eq!(repeated.ports[0].pauses.total.ps(), 30_000_000 - 5_651_200, "up to the end of the run");
    let xoffs = sent(&repeated).into_iter().find(|row| (row.0, row.2) == (1, ControlKind::Xoff));
    assert_eq!(xoffs.map(|row| row.3), Some(6), "at 4.1 us and each 5 us after");
}

#[test]
fn bcn_keeps_the_queue_of_the_calibration_short_and_the_link_busy() {
    let totals = run(&calibration(), 1);
    let hot = &totals.ports[HOT_PORT as usize];
    assert!(hot.counters.busy_ps as f64 > 0.999 * (80e9 - 10e6), "busy for {} ps", hot.counters.busy_ps);
    let mean = hot.counters.queue_byte_ps as f64 / 80e9;
    assert!((24_000.0..40_000.0).contains(&mean), "{mean} B wait on average around the set point of 24 kB");
    assert!(hot.counters.drops > 0 && hot.last_drop.is_some_and(|last| last < Time::ZERO + Span::from_ms(10)));
    let notified: u64 = totals.control.frames.iter().map(|row| row.frames).sum();
    let sampled = (hot.counters.frames + hot.counters.drops) / 100;
    assert!(notified <= sampled + 1, "{notified} notifications of {sampled} samples");
    assert!(totals.control.frames.iter().all(|row| row.queue_port == HOT_PORT && row.bytes == 64 * row.frames));
}

/// From the first edge switch to the core switch.
const EDGE_PORT: usize = 10;

pub(crate) fn with_pause(mut spec: Spec) -> Spec {
    spec.control.pause = vec![calibration_pause()];
    spec
}

pub(crate) fn severe(mut spec: Spec, action: SevereAction) -> Spec {
    if let Some(bcn) = &mut spec.control.bcn {
        bcn.congestion_point.severe = Some(Severe { above_bytes: Bytes::new(112_500), action });
    }
    spec
}

#[test]
fn pause_loses_nothing_in_the_calibration_whatever_the_feedback() {
    for action in [SevereAction::None, SevereAction::Stop, SevereAction::Max] {
        for seed in 0..3 {
            let totals = run(&with_pause(severe(calibration(), action)), seed);
            let of_switches = totals.ports.iter().skip(10).map(|port| port.counters.drops);
            assert_eq!(of_switches.sum::<u64>(), 0, "{action:?}, seed {seed}");
            assert!(totals.ports[EDGE_PORT].pauses.count > 0, "the core switch holds the edges");
        }
    }
}

#[test]
fn severe_feedback_ends_drops_sooner() {
    let last = |action| {
        let totals = run(&severe(calibration(), action), 1);
        totals.ports[HOT_PORT as usize].last_drop
    };
    let (basic, stop, most) = (last(SevereAction::None), last(SevereAction::Stop), last(SevereAction::Max));
    assert!(basic > most && most > stop && stop.is_some(), "{basic:?}, {most:?}, {stop:?}");
}

#[test]
fn sources_pulled_and_pushed_give_the_same_run() {
    for spec in [calibration(), with_pause(severe(calibration(), SevereAction::Stop))] {
        let spec = Spec { run: weir_core::spec::Run { duration_ps: Span::from_ms(10), ..spec.run.clone() }, ..spec };
        let (pulled, pushed) = (run_fed(&spec, 3, Feeding::Pulled), run_fed(&spec, 3, Feeding::Pushed));
        assert_eq!(pulled.flows, pushed.flows);
        assert_eq!(pulled.ports, pushed.ports);
        assert_eq!(pulled.drops, pushed.drops);
        assert_eq!(pulled.control, pushed.control);
    }
}

#[test]
fn recording_changes_nothing_and_adds_up() {
    let mut recorded = with_pause(severe(calibration(), SevereAction::Max));
    recorded.run.duration_ps = Span::from_ms(20);
    let plain = run(&recorded, 4);
    recorded.record.ports = (0..20).map(|port| probe(port, us(77))).collect();
    recorded.record.flows = vec![TrafficProbe { traffic: 0, every_ps: us(300) }];
    recorded.record.limiters = (0..4).map(|host| LimiterProbe { host, every_ps: us(130) }).collect();
    let end = Time::ZERO + recorded.run.duration_ps;
    let level = LevelProbe { port: HOT_PORT, from_ps: Time::ZERO, to_ps: end, bin_bytes: FRAME };
    recorded.record.queue_levels = vec![level];
    let totals = run(&recorded, 4);
    assert_eq!((&totals.flows, &totals.ports, &totals.drops), (&plain.flows, &plain.ports, &plain.drops));
    assert_eq!(totals.control.frames, plain.control.frames);
    for (flow, rows) in &totals.flow_deliveries {
        let delivered: u64 = rows.iter().map(|row| row.bytes).sum();
        assert_eq!(delivered, totals.flows[*flow as usize].delivered_bytes);
    }
    for ((flow, rows), (of, meter)) in totals.control.limiters.iter().zip(&totals.control.reaction_points) {
        assert_eq!((flow, rows.len()), (of, 154));
        assert_eq!(rows.iter().map(|row| row.limited_ps).sum::<u64>(), meter.limited_ps);
        assert_eq!(rows.iter().map(|row| row.stopped_ps).sum::<u64>(), meter.stopped_ps);
        let bits: f64 = rows.iter().map(|row| row.rate_bit).sum();
        assert!((bits / meter.rate_bit - 1.0).abs() < 1e-9);
    }
    let time: u64 = totals.control.queue_levels.iter().map(|level| level.3).sum();
    assert_eq!(time, 20_000_000_000);
    // All frames are as large as a bin.
    let byte_ps: u128 = totals.control.queue_levels.iter().map(|level| u128::from(level.1) * u128::from(level.3)).sum();
    assert_eq!(byte_ps, totals.ports[HOT_PORT as usize].counters.queue_byte_ps);
    for (port, totals_of_port) in (0..20).zip(&totals.ports) {
        let rows = || totals.intervals.rows().filter(move |(of, _)| *of == port).map(|(_, row)| row);
        assert_eq!(
            rows().map(|row| row.queue_byte_ps).sum::<u128>(),
            totals_of_port.counters.queue_byte_ps,
            "port {port}"
        );
        assert_eq!(rows().map(|row| row.drops).sum::<u64>(), totals_of_port.counters.drops, "port {port}");
        assert_eq!(
            rows().map(|row| row.queue_max_bytes).max(),
            Some(totals_of_port.counters.queue_max_bytes),
            "port {port}"
        );
    }
}

/// The calibration under QCN as the standard has it.
fn with_qcn() -> Spec {
    let mut spec = calibration();
    let notification = Notification { frame_bytes: Bytes::new(64), delay_ps: us(1), lane: NotificationLane::Control };
    spec.control.bcn = None;
    spec.control.qcn = Some(Qcn {
        congestion_point: QcnCongestionPoint {
            ports: vec![HOT_PORT],
            q_eq_bytes: Bytes::new(26_000),
            w: 2.0,
            sample_every_bytes: Bytes::new(150_000),
            sampling: Sampling::Uniform { jitter: 0.15 },
            counted: Counted::Received,
            notification,
        },
        reaction_point: QcnReactionPoint {
            hosts: (0..4).collect(),
            gd: 1.0 / 128.0,
            min_decrease_factor: 0.5,
            recovery: Recovery {
                byte_counter_bytes: Some(Bytes::new(150_000)),
                timer_ps: Span::from_ms(15),
                jitter: 0.15,
                halve_stages: true,
                fast_recovery_stages: 5,
                hyper_after_stages: 0,
                r_ai_bps: Rate::from_bps(5_000_000),
                r_hai_bps: Rate::from_bps(50_000_000),
                hyper_grows: true,
                target_cut_above: Some(10.0),
                target_cut: 8.0,
            },
            min_rate_bps: Rate::from_bps(10_000_000),
            new_limiter: NewLimiter::AnyFeedback,
            limiter: Limiter { queue: Limit::Frames(100), ..Limiter::default() },
        },
    });
    spec
}

#[test]
fn qcn_keeps_the_queue_short_and_the_link_busy() {
    let totals = run(&with_qcn(), 1);
    let hot = &totals.ports[HOT_PORT as usize];
    assert!(hot.counters.busy_ps as f64 > 0.95 * 80e9, "busy for {} ps", hot.counters.busy_ps);
    let mean = hot.counters.queue_byte_ps as f64 / 80e9;
    assert!(mean < 2.0 * 26_000.0, "{mean} B wait on average");
    assert!(sent(&totals).iter().all(|row| row.2 == ControlKind::Qcn && row.1 == HOT_PORT));
    assert!(totals.control.reaction_points.iter().all(|(_, meter)| meter.decreases > 0));
}

#[test]
fn a_pause_frame_that_waits_is_not_followed_by_one_that_says_the_same() {
    // Repeated each 0.6 us from 4.1 us on, while a frame to the receiver takes 12 us: one XOFF waits behind it, however
    // often it is repeated. To the sender, where it takes 51.2 ns, each of the 44 is sent.
    let mut spec = slow_receiver(us(30));
    let refresh_ps = Some(Span::from_ns(600));
    spec.control.pause = vec![Pause { nodes: vec![1], quanta: Some(100), refresh_ps, ..PAUSE }];
    let totals = run(&spec, 1);
    let xoffs =
        |port| sent(&totals).into_iter().find(|row| row.0 == port && row.2 == ControlKind::Xoff).map(|row| row.3);
    assert_eq!(xoffs(1), Some(44));
    // One leaves behind each frame to the receiver, of which two end by then, and one at once.
    assert!(xoffs(2).is_some_and(|frames| (2..=12).contains(&frames)), "{:?}", xoffs(2));
}

/// Host 0 sends through two queues in a row, that measure both: 5 Gbit/s between the switches 1 and 2, 2 Gbit/s from the
/// second to host 3.
fn two_points(positive: Positive) -> Totals {
    let node = |name: &str, kind| Node { name: name.into(), kind, latency_ps: Span::ZERO };
    let rate = |gbit| LinkSpec { rate_bps: Rate::from_gbit_per_s(gbit), ..LINK };
    let mut spec = spec(3, vec![constant(0, 3, 1200)], Span::from_ms(20));
    spec.network = Network::Graph {
        nodes: vec![
            node("sender", NodeKind::Host),
            node("first", NodeKind::Switch),
            node("second", NodeKind::Switch),
            node("receiver", NodeKind::Host),
        ],
        links: [(0, 1, 10), (1, 2, 5), (2, 3, 2)].map(|(a, b, gbit)| Link { a, b, link: rate(gbit) }).into(),
    };
    let Some(Bcn { mut congestion_point, reaction_point }) = calibration().control.bcn else { panic!("it has BCN") };
    (congestion_point.ports, congestion_point.positive) = (vec![2, 4], positive);
    let reaction_point = BcnReactionPoint { hosts: vec![0], ..reaction_point };
    spec.control.bcn = Some(Bcn { congestion_point, reaction_point });
    run(&spec, 1)
}

#[test]
fn of_two_congestion_points_on_the_way_only_the_one_that_limits_the_flow_lets_it_go_faster() {
    let count = |totals: &Totals, queue: u32, kind: ControlKind| -> u64 {
        totals
            .control
            .frames
            .iter()
            .filter(|row| row.queue_port == queue && row.kind == kind)
            .map(|row| row.frames)
            .sum()
    };
    let (tagged, any) = (two_points(Positive::Tagged), two_points(Positive::AnyTag));
    for totals in [&tagged, &any] {
        assert!(count(totals, 2, ControlKind::BcnNegative) > 0, "the first queue fills first: {:?}", sent(totals));
        assert!(count(totals, 4, ControlKind::BcnNegative) > 0, "then the second: {:?}", sent(totals));
    }
    assert!(count(&tagged, 4, ControlKind::BcnPositive) > 0, "{:?}", sent(&tagged));
    // The first queue is empty once the second limits the flow: it would ask for more and more.
    let first = [&tagged, &any].map(|totals| count(totals, 2, ControlKind::BcnPositive));
    assert!(first[1] > 10 && 10 * first[0] < first[1], "{first:?}");
    let mean = |totals: &Totals| totals.ports[4].counters.queue_byte_ps as f64 / 20e9;
    assert!((12_000.0..48_000.0).contains(&mean(&tagged)), "{} B around the set point of 24 kB", mean(&tagged));
    assert!(tagged.ports[4].counters.busy_ps as f64 > 0.95 * 20e9, "the bottleneck stays busy");
}

#[test]
fn a_fat_tree_under_pause_and_bcn_loses_nothing_and_is_the_same_on_any_number_of_threads() {
    let mut spec =
        spec(16, (1..16).map(|host| constant(host, (host % 3) * 5, 1300 + 10 * u64::from(host))).collect(), us(800));
    spec.network = Network::FatTree { k: 4, link: LINK, switch: crate::scenarios::SWITCH };
    let topology = Topology::expand(&spec.network).expect("a legal network");
    let of_switches = (0..).zip(&topology.ports).filter(|(_, port)| !topology.is_host(port.from));
    let ports: Vec<u32> = of_switches.map(|(id, _)| id).collect();
    let Some(Bcn { mut congestion_point, reaction_point }) = calibration().control.bcn else { panic!("it has BCN") };
    congestion_point.ports.clone_from(&ports);
    congestion_point.q_eq_bytes = FRAME * 8;
    let reaction_point = BcnReactionPoint { hosts: (0..16).collect(), ..reaction_point };
    spec.queues = vec![drop_tail(ports.clone(), Limit::Bytes(Bytes::new(60_000)))];
    let nodes = (0..topology.nodes.len() as u32).filter(|&node| !topology.is_host(node)).collect();
    let (xoff_bytes, xon_bytes) = (Bytes::new(30_000), Bytes::new(20_000));
    let dropped = |spec: &Spec, seed| {
        let totals = run(spec, seed);
        ports.iter().map(|&port| totals.ports[port as usize].counters.drops).sum::<u64>()
    };
    assert!(dropped(&spec, 1) > 0, "without control the same load is lost in part");
    spec.control.pause = vec![Pause { nodes, xoff_bytes, xon_bytes, ..PAUSE }];
    assert_eq!(dropped(&spec, 1), 0, "PAUSE alone");
    spec.control.bcn = Some(Bcn { congestion_point, reaction_point });
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    let batch =
        |threads| weir_sim::simulate(&plan, &[1, 2, 3], threads, &weir_sim::Progress::new()).expect("lawful runs");
    let one = batch(1);
    assert_eq!(batch(4), one);
    for totals in &one {
        assert!(ports.iter().all(|&port| totals.ports[port as usize].counters.drops == 0));
        let negative = totals.control.frames.iter().any(|row| row.kind == ControlKind::BcnNegative);
        let xoff = totals.control.frames.iter().any(|row| row.kind == ControlKind::Xoff);
        assert!(negative && xoff);
        assert!(totals.flows.iter().all(|flow| flow.delivered_frames > 0), "nobody starves");
    }
}

#[test]
fn only_flows_with_limiters_are_asked_for_more() {
    let mut spec = calibration();
    spec.run.duration_ps = us(20_000);
    let Some(bcn) = &mut spec.control.bcn else { panic!("it has BCN") };
    bcn.reaction_point.hosts.truncate(2);
    let limited = bcn.reaction_point.hosts.clone();
    // The others leave the limited ones their shares: 1 Gbit/s each of 10.
    for source in &mut spec.traffic[0].sources[2..] {
        let Departures::Bernoulli { probability, .. } = &mut source.departures else { panic!("in slots") };
        *probability = 0.1;
    }
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    let totals = run(&spec, 1);
    // A notification leaves the core switch towards the switch of the host that it is for.
    let towards: Vec<u32> = totals
        .control
        .frames
        .iter()
        .filter(|row| row.kind == ControlKind::BcnPositive)
        .map(|row| plan.topology().ports[row.port as usize].to)
        .collect();
    let edge_of = |host: u32| plan.topology().ports.iter().find(|port| port.from == host).map(|port| port.to);
    let edges: Vec<u32> = limited.iter().filter_map(|&host| edge_of(host)).collect();
    assert!(!towards.is_empty() && towards.iter().all(|edge| edges.contains(edge)), "{towards:?}, of {edges:?}");
    assert!(totals.control.frames.iter().any(|row| row.kind == ControlKind::BcnNegative));
}
