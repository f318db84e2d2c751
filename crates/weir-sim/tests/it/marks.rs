//! Marks of queues, and what TCP and DCQCN make of them: a timeline worked out by hand, and laws.

use std::ops::ControlFlow;

use proptest::prelude::*;
use weir_core::network::Topology;
use weir_core::rng::Seed;
use weir_core::spec::aqm::Aqm;
use weir_core::spec::control::{
    Control, Dcqcn, DcqcnReactionPoint, Limiter, Notification, NotificationLane, Pause, Recovery,
};
use weir_core::spec::{Discipline, LevelProbe, Limit, LimiterProbe, Marking, MarkingTime, Network, QueueRule, Spec};
use weir_core::tcp::{EcnConfig, EcnSupport};
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::{ControlKind, Feeding, Plan, Progress, PushedSource, Sim, Tables, Totals, simulate, workloads};

use crate::scenarios::{FRAME, LINK, any_scenario, constant, run, run_fed, spec};

fn us(us: u64) -> Span {
    Span::from_us(us)
}

/// All frames above `above` bytes.
fn above(above: u64) -> Marking {
    Marking { k_min_bytes: Bytes::new(above), k_max_bytes: Bytes::new(above), p_max: 1.0, when: MarkingTime::Arrival }
}

fn marking(ports: Vec<u32>, limit: Limit, marking: Marking) -> QueueRule {
    QueueRule { ports, discipline: Discipline::DropTail { limit, marking: Some(marking), overrun: None } }
}

/// DCQCN with the parameters of the paper, for these hosts.
fn dcqcn(hosts: Vec<u32>) -> Control {
    let recovery = Recovery {
        byte_counter_bytes: Some(Bytes::new(10_000_000)),
        timer_ps: us(55),
        jitter: 0.0,
        halve_stages: false,
        fast_recovery_stages: 5,
        hyper_after_stages: 0,
        r_ai_bps: Rate::from_bps(40_000_000),
        r_hai_bps: Rate::from_bps(400_000_000),
        hyper_grows: true,
        target_cut_above: None,
        target_cut: 8.0,
    };
    Control {
        dcqcn: Some(Dcqcn {
            notify_every_ps: us(50),
            notification: Notification {
                frame_bytes: Bytes::new(64),
                delay_ps: Span::ZERO,
                lane: NotificationLane::Control,
            },
            reaction_point: DcqcnReactionPoint {
                hosts,
                g: 1.0 / 256.0,
                alpha_timer_ps: us(55),
                cut_timer_ps: None,
                recovery,
                min_rate_bps: Rate::from_bps(100_000_000),
                limiter: Limiter::default(),
            },
        }),
        ..Control::default()
    }
}

/// Queues that mark above one frame, and DCQCN, before a slow receiver.
fn slow_receiver(duration: Span) -> Spec {
    let mut spec = crate::control::slow_receiver(duration);
    spec.control.dcqcn = dcqcn(vec![0]).dcqcn;
    spec.queues = vec![marking(vec![2], Limit::Unlimited, above(1500))];
    spec
}

#[test]
fn a_mark_on_departure_comes_back_without_the_wait() {
    // The second frame leaves at 13.7 us, with nine behind it: its mark arrives when its 12 us of transmission are over, 12 us
    // before that of the third, which was marked on arrival. A queue that marks by a discipline of its own does the same.
    for managed in [false, true] {
        let mut spec = slow_receiver(us(45));
        let (limit, marks) = (Limit::Unlimited, Marking { when: MarkingTime::Departure, ..above(1500) });
        spec.queues = vec![marking(vec![2], limit, marks)];
        if managed {
            spec.queues[0].discipline = Discipline::Managed { limit, aqm: Aqm::Threshold(marks) };
        }
        let [(0, meter)] = run(&spec, 1).control.reaction_points[..] else { panic!("one flow") };
        assert_eq!((meter.decreases, meter.limited_ps), (1, 45_000_000 - 28_763_200), "{managed}");
    }
}

#[test]
fn a_mark_comes_back_from_the_receiver_and_halves_the_rate() {
    // The first frame comes at 1.7 us and is sent at once, the second waits alone, the third finds it waiting and is
    // marked. It arrives after three transmissions of 12 us at 38.2 us. The notification takes 512 ns and 0.5 us to the
    // switch, 51.2 ns and 0.5 us to the sender, which responds after 1 us, at 40.7632 us.
    let mut spec = slow_receiver(us(40));
    spec.record.limiters = vec![LimiterProbe { host: 0, every_ps: us(10) }];
    let before = run(&spec, 1);
    let [(0, meter)] = before.control.reaction_points[..] else { panic!("one flow") };
    assert_eq!((meter.made, meter.decreases), (0, 0));
    spec.run.duration_ps = us(45);
    let after = run(&spec, 1);
    let [(0, meter)] = after.control.reaction_points[..] else { panic!("one flow") };
    assert_eq!((meter.made, meter.decreases, meter.limited_ps), (1, 1, 45_000_000 - 40_763_200));
    let [(0, rows)] = &after.control.limiters[..] else { panic!("one flow") };
    assert_eq!(rows.last().and_then(|row| row.rate_bps), Some(5_000_000_000), "alpha is 1 at first");
    // Frames began each 1.2 us up to 39.6 us, then at 42 us: 35 have come to the switch.
    let [marks] = &after.control.marks[..] else { panic!("one flow, one port") };
    assert_eq!((marks.port, marks.flow, marks.frames), (2, 0, 33));
    let [cnp] = &after.control.frames[..] else { panic!("one kind of control frame from one port") };
    assert_eq!((cnp.port, cnp.queue_port, cnp.kind, cnp.frames), (3, 2, ControlKind::Cnp, 1));
    assert_eq!(after.ports[3].counters.frames, 1, "a notification is a frame");
}

#[test]
fn without_a_notification_the_rate_comes_back_to_that_of_the_line() {
    // The source falls silent at 60 us; what waits at the switch then has left at 600 us at the latest.
    let mut spec = slow_receiver(Span::from_ms(60));
    spec.traffic[0].sources[0].stop_ps = weir_core::units::Time::ZERO + us(60);
    let totals = run(&spec, 1);
    let [(0, meter)] = totals.control.reaction_points[..] else { panic!("one flow") };
    assert!(meter.decreases > 1);
    assert_eq!((meter.made, meter.removed), (1, 1), "by the timer alone");
}

#[test]
fn the_lane_of_a_notification_is_that_of_its_host_too() {
    // The first marked frame arrives at 38.2 us. Frames of the receiver, one each 6 us, take 12 us: one ends at 48 us and
    // three wait. In the lane of the control frames the notification is next; with the data it leaves at 84 us. After
    // 512 ns and 0.5 us it finds a frame of the receiver at the switch, that came 0.512 us before it and takes 1.2 us.
    // Then it takes 51.2 ns and 0.5 us, and the sender responds after 1 us.
    let limited_from = |lane, hosts: &[u32], fifo_frames, feeding| {
        let mut spec = slow_receiver(us(200));
        spec.traffic[0].sources.push(constant(2, 0, 6000));
        let dcqcn = spec.control.dcqcn.as_mut().expect("it has DCQCN");
        dcqcn.notification.lane = lane;
        dcqcn.reaction_point.hosts = hosts.into();
        dcqcn.reaction_point.limiter.fifo_frames = fifo_frames;
        let totals = run_fed(&spec, 1, feeding);
        let meter = totals.control.reaction_points[0].1;
        assert_eq!((meter.made, meter.removed), (1, 0));
        assert!(totals.flows[1].delivered_frames > 10, "what the receiver sends is not lost");
        200_000_000 - meter.limited_ps
    };
    let on_time = |leaves_ns: u64| (leaves_ns + 500 + 1200 + 500 + 1000) * 1000 + 51_200;
    for feeding in [Feeding::Pulled, Feeding::Pushed] {
        for (hosts, fifo) in [(&[0][..], 0), (&[0, 2], 10), (&[0, 2], 0)] {
            let at = |lane| limited_from(lane, hosts, fifo, feeding);
            assert_eq!(at(NotificationLane::Control), on_time(48_000), "{hosts:?} {feeding:?}");
            // What the limiters of its host hold back does not wait in the port, as nobody limits the receiver's flow
            // and its port is busy.
            let leaves = if hosts.len() == 2 && fifo == 0 { 48_000 } else { 84_000 };
            assert_eq!(at(NotificationLane::Data), on_time(leaves), "{hosts:?} {feeding:?}");
        }
    }
}

#[test]
fn queues_mark_only_what_can_bear_it() {
    let mut spec = slow_receiver(us(200));
    spec.control = Control::default();
    let totals = run(&spec, 1);
    assert!(totals.control.marks.is_empty(), "nobody would answer");
    let bare = Spec { queues: vec![], ..spec };
    let plain = run(&bare, 1);
    assert_eq!((totals.flows, totals.ports), (plain.flows, plain.ports), "marks that are not made change nothing");
}

fn standard(spec: &Spec) -> Totals {
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    Sim::standard(&plan, 1).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

/// The dumbbell of the tests of TCP: four connections through 1 Gbit/s, 20 ms there and back, which is 2.5 MB.
fn tcp(ecn: bool, rule: Option<Marking>) -> Totals {
    let mut spec = workloads::dumbbell(4);
    spec.traffic.truncate(1);
    spec.run.duration_ps = Span::from_ms(3_000);
    let config = &mut spec.traffic[0].tcp.as_mut().expect("connections").config;
    let support = if ecn { EcnSupport::Classic } else { EcnSupport::None };
    (config.ecn, config.congestion_control) = (EcnConfig::both(support), weir_core::cc::Config::reno());
    for queue in &mut spec.queues {
        let Discipline::DropTail { limit, marking, .. } = &mut queue.discipline else { continue };
        (*limit, *marking) = (Limit::Unlimited, rule);
    }
    standard(&spec)
}

#[test]
fn tcp_obeys_marks_and_fills_a_link_without_loss() {
    // Marks at a round trip's worth of queue: half of two round trips' worth still fills the link.
    let totals = tcp(true, Some(above(2_500_000)));
    let marked: u64 = totals.control.marks.iter().map(|row| row.frames).sum();
    let seen: u64 = totals.connections.iter().map(|row| row.receiver.ecn_marks).sum();
    let live: u64 = totals.flows.iter().map(|flow| flow.live_frames).sum();
    assert!(seen > 0 && seen <= marked && marked - seen <= live, "{marked} made, {seen} seen, {live} under way");
    for row in &totals.connections {
        assert!(row.sender.ecn_reductions > 0 && row.sender.retransmits == 0, "{:?}", row.sender);
    }
    assert!(totals.drops.is_empty());
    let port = totals.control.marks[0].port as usize;
    assert!(totals.control.marks.iter().all(|row| row.port as usize == port), "of the bottleneck only");
    let busy = totals.ports[port].counters.busy_ps as f64 / 3e12;
    assert!(busy > 0.9, "the bottleneck is busy for {busy} of the time, slow start included");
    // Connections that do not know of marks fill the queue with all that their receivers take.
    let deaf = tcp(false, Some(above(2_500_000)));
    assert!(deaf.control.marks.is_empty());
    let waiting = [&deaf, &totals].map(|totals| totals.ports[port].counters.queue_byte_ps);
    assert!(waiting[0] > 2 * waiting[1], "{waiting:?}");
}

#[test]
fn a_ramp_marks_the_share_of_the_frames_that_the_queue_asks_for() {
    // Two senders at the line rate fill a queue that holds 40 frames: it is full but for the one that leaves, so 39 or
    // 40 frames wait when one has come; between 20 and 60 frames the ramp is 0.2 (q - 20) / 40 there.
    let mut spec = spec(3, vec![constant(0, 2, 1200), constant(1, 2, 1200)], Span::from_ms(40));
    spec.control = dcqcn(vec![0, 1]);
    if let Some(dcqcn) = &mut spec.control.dcqcn {
        dcqcn.notify_every_ps = Span::from_ms(1_000_000); // deaf after the first
        dcqcn.reaction_point.min_rate_bps = LINK.rate_bps;
    }
    let ramp = Marking { k_min_bytes: FRAME * 20, k_max_bytes: FRAME * 60, p_max: 0.2, when: MarkingTime::Arrival };
    spec.queues = vec![marking(vec![5], Limit::Frames(40), ramp)];
    let totals = run(&spec, 3);
    let marks: u64 = totals.control.marks.iter().map(|row| row.frames).sum();
    let waited = totals.ports[5].counters.frames as f64;
    let (low, high) = (0.2 * 19.0 / 40.0, 0.2 * 20.0 / 40.0);
    let deviation = 4.0 * (0.09f64 / waited).sqrt();
    let share = marks as f64 / waited;
    assert!((low - deviation..high + deviation).contains(&share), "{share} of {waited}");
    // A port that only marks is short of what others look at: it marks and drops the same frames.
    let level = LevelProbe { port: 5, from_ps: Time::ZERO, to_ps: Time::ZERO + us(1), bin_bytes: FRAME };
    spec.record.queue_levels = vec![level];
    let looked = run(&spec, 3);
    assert_eq!((looked.flows, looked.ports, looked.drops), (totals.flows, totals.ports, totals.drops));
    assert_eq!(looked.control.marks, totals.control.marks);
}

#[test]
fn batches_of_dcqcn_do_not_depend_on_threads_and_tables_hold_the_marks() {
    let hosts = 0..16;
    let mut spec = spec(16, hosts.clone().map(|host| constant(host, (host + 5) % 4, 1500)).collect(), us(600));
    let switch = weir_core::spec::SwitchSpec { latency_ps: Span::from_ns(500) };
    spec.network = Network::FatTree { k: 4, link: LINK, switch };
    spec.control = dcqcn(hosts.collect());
    let topology = Topology::expand(&spec.network).expect("a legal network");
    let switches = (0..).zip(&topology.ports).filter(|(_, port)| !topology.is_host(port.from));
    let ramp = Marking { k_min_bytes: FRAME * 4, k_max_bytes: FRAME * 40, p_max: 0.1, when: MarkingTime::Arrival };
    spec.queues = vec![marking(switches.map(|(id, _)| id).collect(), Limit::Bytes(Bytes::new(200_000)), ramp)];
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    let batch = |threads| simulate(&plan, &[1, 2, 3], threads, &Progress::new()).expect("lawful runs");
    let one = batch(1);
    assert_eq!(batch(3), one);
    assert_ne!(one[0].control.marks, one[1].control.marks, "each seed has its own marks");
    assert!(one.iter().all(|totals| totals.control.reaction_points.iter().any(|(_, meter)| meter.decreases > 0)));
    let Tables(tables) = Tables::new(&plan, &one);
    let marks = tables.iter().find(|table| table.name == "marks").expect("a table of marks");
    assert_eq!(marks.columns.len(), 4);
    let (pulled, pushed) = (run_fed(&spec, 1, Feeding::Pulled), run_fed(&spec, 1, Feeding::Pushed));
    assert_eq!((pulled.flows, pulled.ports, pulled.control), (pushed.flows, pushed.ports, pushed.control));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Any network with DCQCN at any hosts and marks at any queues: frames and notifications are conserved, as each run
    /// checks; a receiver notifies at most once in its time for each flow and never without a mark; and recording
    /// changes nothing.
    #[test]
    fn any_network_conserves_frames_under_dcqcn(
        scenario in any_scenario(), chosen in any::<u64>(), who in any::<u64>(), data in any::<bool>(),
        pausing in any::<u64>(), k_min in 0u64..20_000, wide in 0u64..20_000, p_max in 0.0..1.0f64, every in 1u64..40,
    ) {
        let mut spec = scenario;
        let topology = Topology::expand(&spec.network).expect("a legal network");
        let picked = |bits: u64, id: u32| bits >> (id % 64) & 1 == 1;
        let nodes = 0..topology.nodes.len() as u32;
        let hosts = nodes.clone().filter(|&node| topology.is_host(node) && picked(who, node)).collect();
        spec.control = dcqcn(hosts);
        if let Some(dcqcn) = &mut spec.control.dcqcn {
            dcqcn.notify_every_ps = us(every);
            dcqcn.notification.lane = if data { NotificationLane::Data } else { NotificationLane::Control };
        }
        let when = if data { MarkingTime::Departure } else { MarkingTime::Arrival };
        let ramp =
            Marking { k_min_bytes: Bytes::new(k_min), k_max_bytes: Bytes::new(k_min + wide), p_max, when };
        let ports = (0..).zip(&topology.ports).filter(|(id, port)| picked(chosen, *id) && !topology.is_host(port.from));
        spec.queues.push(marking(ports.map(|(id, _)| id).collect(), Limit::Bytes(Bytes::new(k_min + 9000)), ramp));
        let nodes = nodes.filter(|&node| !topology.is_host(node) && picked(pausing, node)).collect();
        spec.control.pause = vec![Pause {
            nodes,
            xoff_bytes: Bytes::new(20_000),
            xon_bytes: Bytes::new(9_000),
            frame_bytes: Bytes::new(64),
            delay_ps: Span::ZERO,
            quanta: None,
            refresh_ps: None,
        }];
        let run = |spec: &Spec| {
            let plan = Plan::new(spec.clone()).expect("a legal spec");
            Sim::<PushedSource>::new(&plan, 7, []).run(|_| ControlFlow::Continue(()))
        };
        let recorded = run(&spec);
        prop_assert!(recorded.is_ok(), "{:?}", recorded.err());
        spec.record = weir_core::spec::Record::default();
        if let (Ok(recorded), Ok(plain)) = (recorded, run(&spec)) {
            let marks: u64 = plain.control.marks.iter().map(|row| row.frames).sum();
            let cnps = plain.control.frames.iter().filter(|row| row.kind == ControlKind::Cnp);
            let cnps: u64 = cnps.map(|row| row.frames).sum();
            let flows = plain.control.marks.iter().map(|row| row.flow).collect::<std::collections::BTreeSet<_>>().len();
            let most = spec.run.duration_ps.ps() / us(every).ps() + 1;
            prop_assert!(cnps <= marks && cnps <= most * flows as u64, "{cnps} for {marks} marks of {flows} flows");
            prop_assert_eq!(recorded.flows, plain.flows);
            prop_assert_eq!(recorded.ports, plain.ports);
            prop_assert_eq!(recorded.control.marks, plain.control.marks);
            prop_assert_eq!(recorded.control.frames, plain.control.frames);
            prop_assert_eq!(recorded.control.reaction_points, plain.control.reaction_points);
        }
    }

    /// The more waits, the more is marked, and never more than the ramp allows at its end.
    #[test]
    fn marks_grow_with_the_queue(
        k_min in 0u64..50_000, wide in 1u64..100_000, p_max in 0.05..1.0f64, seed in any::<u64>(), part in 0.0..0.5f64,
    ) {
        let ramp = Marking { k_min_bytes: Bytes::new(k_min), k_max_bytes: Bytes::new(k_min + wide), p_max, when: MarkingTime::Arrival };
        let share = |part: f64| {
            let mut marker = weir_core::marking::Marker::new(&ramp, Seed::new(seed).stream("any"));
            let waiting = Bytes::new(k_min + (part * wide as f64) as u64);
            (0..2000).filter(|_| marker.on_frame(MarkingTime::Arrival, waiting)).count()
        };
        // The same chance decides both times.
        prop_assert!(share(part) <= share(2.0 * part));
        prop_assert_eq!(share(0.0), 0);
        let expected = 2000.0 * 0.5 * p_max;
        prop_assert!((share(0.5) as f64 - expected).abs() < 6.0 * expected.sqrt() + 2.0, "half way up the ramp");
    }
}
