//! TCP connections in a network, against what theory says of them.

use std::ops::ControlFlow;

use weir_core::cc;
use weir_core::spec::transport::{Connection, Connections, Hosts, Load};
use weir_core::spec::{Departures, FrameSize, Spec, Stream, Traffic, TrafficProbe};
use weir_core::tcp::{Config, LossMarking, LostRetransmissions, Recovery};
use weir_core::units::{Bytes, Span, Time};
use weir_sim::{ConnectionTotals, Plan, Progress, Sim, Tables, Totals, simulate, workloads};

/// Payload of a full segment, and its frame.
const SEGMENT: u64 = 1448;
const FRAME: u64 = 1518;
/// Round trip of the dumbbell without queues, in seconds, but for transmission times.
const RTT: f64 = 0.020;

/// The first `flows` connections of the dumbbell, with nothing beside them.
fn dumbbell(flows: u32, duration: Span) -> Spec {
    let mut spec = workloads::dumbbell(flows);
    spec.traffic.truncate(1);
    spec.run.duration_ps = duration;
    spec
}

fn tcp(spec: &mut Spec) -> &mut Connections {
    spec.traffic[0].tcp.as_mut().expect("connections")
}

fn configured(flows: u32, duration: Span, change: impl Fn(&mut Config)) -> Spec {
    let mut spec = dumbbell(flows, duration);
    change(&mut tcp(&mut spec).config);
    spec
}

fn run(spec: &Spec) -> Totals {
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    Sim::standard(&plan, 1).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

fn delivered(row: &ConnectionTotals) -> f64 {
    row.receiver.delivered_bytes as f64
}

#[test]
fn a_connection_that_its_window_limits_carries_a_window_in_each_round_trip() {
    for segments in [10, 40, 160] {
        let buffer = Bytes::new(segments * SEGMENT);
        let mut spec = configured(1, Span::from_ms(4_000), |config| {
            (config.receive_buffer_bytes, config.delayed_ack_segments) = (buffer, 1);
        });
        spec.record.connections = vec![TrafficProbe { traffic: 0, every_ps: Span::from_ms(1_000) }];
        let totals = run(&spec);
        let rows = &totals.tcp[0].1;
        // A segment is acknowledged after the propagation and its transmission over three links, that of the
        // acknowledgement likewise.
        let rtt = RTT + (FRAME + 70) as f64 * 8.0 * (1e-9 + 2.0 * 1e-10);
        let expected = (buffer.count() as f64 / rtt * 3.0).min(3e9 / 8.0 * SEGMENT as f64 / FRAME as f64);
        let ratio = (rows[3].acked - rows[0].acked).count() as f64 / expected;
        // A window more or less at either end; windows are advertised in steps of the scale.
        assert!((ratio - 1.0).abs() < 0.01, "{segments} segments: {ratio}");
        assert_eq!(totals.connections[0].sender.retransmits, 0);
        assert_eq!(totals.drops, []);
    }
}

#[test]
fn a_single_connection_fills_the_bottleneck_that_has_a_queue_of_a_round_trip() {
    for control in [cc::Config::reno(), cc::Config::cubic()] {
        let spec = configured(1, Span::from_ms(20_000), |config| {
            config.congestion_control = control.clone();
            config.lost_retransmissions = LostRetransmissions::Detect;
        });
        let totals = run(&spec);
        let goodput = delivered(&totals.connections[0]) / 20.0 * 8.0;
        let most = 1e9 * SEGMENT as f64 / FRAME as f64;
        assert!(goodput < most, "{control:?}: {goodput}");
        assert!(goodput > 0.93 * most, "{control:?}: {} of what is possible", goodput / most);
        let counters = totals.connections[0].sender;
        assert!(counters.recoveries > 0 && counters.timeouts == 0, "{control:?}: {counters:?}");
    }
}

#[test]
fn reno_saws_between_half_and_all_of_pipe_and_queue() {
    let mut spec = dumbbell(1, Span::from_ms(120_000));
    spec.record.connections = vec![TrafficProbe { traffic: 0, every_ps: Span::from_ms(10) }];
    let totals = run(&spec);
    let rows: Vec<_> =
        totals.tcp[0].1.iter().filter(|row| row.at > Time::ZERO + Span::from_ms(10_000) && !row.repairs).collect();
    // Pipe and queue together hold 2.5 MB each, in frames.
    let full = (1e9 / 8.0 * RTT + 2.5e6) / FRAME as f64 * SEGMENT as f64;
    let highest = rows.iter().map(|row| row.window.count()).max().expect("rows") as f64;
    let lowest = rows.iter().map(|row| row.window.count()).min().expect("rows") as f64;
    assert!((highest / full - 1.0).abs() < 0.02, "highest {}", highest / full);
    assert!((lowest / full - 0.5).abs() < 0.02, "lowest {}", lowest / full);
    // The window grows by a segment in each round trip: full / 2 segments, of 20 to 40 ms.
    let recoveries = totals.connections[0].sender.recoveries as f64;
    let tooth = full / 2.0 / SEGMENT as f64 * 0.75 * 2.0 * RTT;
    assert!((recoveries - 110.0 / tooth).abs() <= 2.0, "{recoveries} teeth of {tooth} s");
}

#[test]
fn equal_connections_get_equal_shares_in_the_long_run() {
    let totals = run(&dumbbell(8, Span::from_ms(60_000)));
    let rates: Vec<f64> = totals.connections.iter().map(delivered).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    // Jain's index.
    let fairness = sum * sum / (8.0 * squares);
    assert!(fairness > 0.95, "{fairness}: {rates:?}");
    let most = 60.0 * 1e9 / 8.0 * SEGMENT as f64 / FRAME as f64;
    assert!(sum > 0.97 * most && sum < most, "{}", sum / most);
}

#[test]
fn every_segment_and_every_retransmission_is_accounted_for() {
    let old_linux = |config: &mut Config| {
        config.recovery = Recovery::RateHalving;
        config.loss_marking = LossMarking::Fack;
        config.lost_retransmissions = LostRetransmissions::Timeout;
    };
    let no_sack = |config: &mut Config| config.sack = false;
    let halving = |config: &mut Config| config.recovery = Recovery::Halving;
    let changes: [&dyn Fn(&mut Config); 4] = [&|_| {}, &old_linux, &no_sack, &halving];
    for (place, change) in changes.into_iter().enumerate() {
        let mut spec = workloads::dumbbell(20);
        spec.run.duration_ps = Span::from_ms(4_000);
        change(&mut tcp(&mut spec).config);
        let totals = run(&spec);
        let drops: u64 = totals.drops.iter().map(|drop| drop.frames).sum();
        assert!(drops > 0);
        for row in &totals.connections {
            let sender = row.sender;
            let parts = sender.fast_retransmits
                + sender.forward_retransmits
                + sender.slow_start_retransmits
                + sender.timeout_retransmits
                + sender.rescue_retransmits;
            assert_eq!(sender.retransmits, parts);
            let flow = totals.flows[row.flow as usize];
            assert_eq!(flow.sent_frames, sender.segments);
            assert_eq!(flow.delivered_frames, row.receiver.segments);
            assert_eq!(totals.flows[row.flow as usize + 1].delivered_frames, sender.acks);
            assert_eq!(totals.flows[row.flow as usize + 1].sent_frames, row.receiver.acks);
            // Without reordering and with few timeouts nearly all that is sent again was dropped.
            if place != 2 {
                assert!(sender.retransmits >= flow.dropped_frames.saturating_sub(600), "{sender:?}");
            }
        }
    }
}

#[test]
fn a_transfer_takes_the_round_trips_of_slow_start() {
    // 10, 20, 40 segments: the last arrives three round trips and a half after the start, as the connection takes one.
    let mut spec = dumbbell(1, Span::from_ms(1_000));
    tcp(&mut spec).list[0].load = Load::Transfer { bytes: Bytes::new(69 * SEGMENT) };
    let row = run(&spec).connections[0];
    let seconds = |time: Option<Time>| time.expect("it happened").ps() as f64 / 1e12;
    assert!((seconds(row.established) - RTT).abs() < 1e-5, "{row:?}");
    assert!((seconds(row.delivered) - 3.5 * RTT).abs() < 1e-3, "{row:?}");
    assert!((seconds(row.acknowledged) - 4.0 * RTT).abs() < 1e-3, "{row:?}");
    assert_eq!(row.receiver.delivered_bytes, 69 * SEGMENT);
}

#[test]
fn an_application_that_writes_little_gets_what_it_writes() {
    let mut spec = dumbbell(3, Span::from_ms(10_000));
    for connection in &mut tcp(&mut spec).list {
        connection.load = Load::Writes {
            departures: Departures::Constant { gap_ps: 1e9 },
            write_size: FrameSize::Fixed(Bytes::new(5_000)),
            stream: Stream::Named,
        };
        connection.stop_ps = Time::ZERO + Span::from_ms(9_000);
    }
    let totals = run(&spec);
    for (place, row) in (0..).zip(&totals.connections) {
        // A write in each millisecond from the start on.
        assert_eq!(row.receiver.delivered_bytes, (9_000 - place) * 5_000);
        assert!(row.delivered.is_some() && row.acknowledged.is_some());
        assert_eq!(row.sender.retransmits, 0);
    }
}

#[test]
fn threads_and_looking_change_nothing_and_seeds_only_what_is_drawn() {
    let mut spec = workloads::dumbbell(8);
    spec.run.duration_ps = Span::from_ms(2_500);
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    let batch = |plan: &Plan, threads| simulate(plan, &[1, 2, 1], threads, &Progress::new()).expect("lawful runs");
    let one = batch(&plan, 1);
    assert_eq!(batch(&plan, 2), one);
    assert_eq!(one[0], one[2]);
    spec.record.connections = vec![TrafficProbe { traffic: 0, every_ps: Span::from_ms(1) }];
    spec.record.traffic = vec![TrafficProbe { traffic: 0, every_ps: Span::from_ms(1) }];
    let plan = Plan::new(spec).expect("a legal spec");
    let seen = batch(&plan, 1);
    assert_eq!((&seen[0].connections, &seen[0].flows), (&one[0].connections, &one[0].flows));
    assert_eq!(seen[0].tcp.len(), 8);
    assert!(seen[0].tcp.iter().all(|(_, rows)| rows.len() == 2_500));
    // What is delivered to the group is its data, without what comes back.
    let data: u64 = one[0].connections.iter().map(|row| one[0].flows[row.flow as usize].delivered_frames).sum();
    let counted: u64 = seen[0].deliveries[0].1.iter().map(|row| row.frames).sum();
    assert_eq!(counted, data);
    let tables = Tables::new(&plan, &seen);
    let rows = |name: &str| tables.0.iter().find(|table| table.name == name).map(|table| table.columns.len());
    assert!(rows("connections").is_some() && rows("tcp").is_some() && rows("resent").is_some());
}

#[test]
fn a_fault_in_the_settings_is_reported_with_its_place() {
    let fault = |change: &dyn Fn(&mut Connections)| {
        let mut spec = dumbbell(2, Span::from_ms(10));
        change(tcp(&mut spec));
        let error = Plan::new(spec).expect_err("a fault");
        (error.pointer, error.message)
    };
    let (pointer, message) = fault(&|tcp| tcp.config.segment_bytes = Bytes::ZERO);
    assert_eq!(pointer, "/traffic/0/tcp/config/segment_bytes");
    assert!(message.contains("(got 0)"), "{message}");
    let (pointer, message) = fault(&|tcp| tcp.list[1].to = tcp.list[1].from);
    assert_eq!(pointer, "/traffic/0/tcp/list/1/to");
    assert!(message.contains("'left-1' is both"), "{message}");
    let (pointer, _) = fault(&|tcp| tcp.list[0].load = Load::Transfer { bytes: Bytes::ZERO });
    assert_eq!(pointer, "/traffic/0/tcp/list/0/load/bytes");
    let config = tcp(&mut dumbbell(1, Span::from_ms(10))).config.clone();
    let list = vec![Connection { from: 0, to: 1, start_ps: Time::ZERO, stop_ps: Time::NEVER, load: Load::Endless {} }];
    let spec = Spec {
        traffic: vec![Traffic {
            tcp: Some(Connections { config, hosts: Hosts::default(), list }),
            ..Traffic::of_sources("lost", vec![])
        }],
        network: crate::scenarios::two_islands(),
        queues: vec![],
        ..dumbbell(1, Span::from_ms(10))
    };
    let error = Plan::new(spec).expect_err("no way");
    assert_eq!(error.pointer, "/traffic/0/tcp/list/0/to");
}
