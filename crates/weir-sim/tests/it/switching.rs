//! Shared memories, hosts with a queue for each destination, slow outputs and buffers behind them in the event engine: the same
//! frames as in the slotted engine, and what only the event engine can do.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_core::spec::control::{Limiter, NotificationLane, Sampling};
use weir_core::spec::switching::{Egress, PauseScope, Service};
use weir_core::spec::{
    Departures, Engine, FrameSize, Limit, LimiterProbe, LinkSpec, Network, PortProbe, Spec, TrafficProbe,
};
use weir_core::units::{Bytes, Rate, Time};
use weir_sim::hotspots::{Benchmark, Hotspot, SLOT};
use weir_sim::{ControlKind, Plan, Progress, Totals, simulate};

pub(crate) const CELL: Bytes = Bytes::new(64);

pub(crate) fn run(spec: Spec, seed: u64) -> Totals {
    let plan = Plan::new(spec).expect("a legal spec");
    simulate(&plan, &[seed], 1, &Progress::new()).expect("a lawful run").remove(0)
}

/// The same spec on both engines, with every port and group of traffic recorded.
pub(crate) fn both(spec: Spec, seed: u64) -> (Totals, Totals) {
    both_recorded(spec, seed, 257)
}

/// The same, with ports recorded every so many slots.
pub(crate) fn both_recorded(mut spec: Spec, seed: u64, every: u64) -> (Totals, Totals) {
    let ports = spec.check().expect("a legal spec").ports.len() as u32;
    spec.record.ports = (0..ports).map(|port| PortProbe { port, every_ps: SLOT * every }).collect();
    let groups = 0..spec.traffic.len() as u32;
    spec.record.traffic = groups.map(|traffic| TrafficProbe { traffic, every_ps: SLOT * 100 }).collect();
    let groups = 0..spec.traffic.len() as u32;
    spec.record.flows = groups.map(|traffic| TrafficProbe { traffic, every_ps: SLOT * 90 }).collect();
    let hosts = spec.control.limited_hosts().iter();
    spec.record.limiters = hosts.map(|&host| LimiterProbe { host, every_ps: SLOT * every }).collect();
    spec.run.engine = Engine::Event;
    let event = run(spec.clone(), seed);
    spec.run.engine = Engine::Slotted { flows: true };
    (event, run(spec, seed))
}

/// All that both engines count, but for the number of events.
pub(crate) fn agree(event: &Totals, slotted: &Totals) {
    assert_eq!(slotted.flows, event.flows);
    assert_eq!(slotted.drops, event.drops);
    assert_eq!(slotted.bursts, event.bursts);
    assert_eq!(slotted.memories, event.memories);
    assert_eq!(slotted.control.frames, event.control.frames);
    assert_eq!(slotted.control.intervals, event.control.intervals);
    assert_eq!(slotted.burst_intervals, event.burst_intervals);
    intervals_add_up(event);
    assert_eq!(slotted.flow_deliveries.len(), event.flow_deliveries.len());
    for (slotted, event) in slotted.flow_deliveries.iter().zip(&event.flow_deliveries) {
        assert_eq!(slotted, event);
    }
    for ((flow, slotted), (other, event)) in slotted.control.limiters.iter().zip(&event.control.limiters) {
        assert_eq!((flow, slotted.len()), (other, event.len()));
        let differs = slotted.iter().zip(event).find(|(slotted, event)| slotted != event);
        assert_eq!(differs, None, "flow {flow}");
    }
    assert_eq!(slotted.control.limiters.len(), event.control.limiters.len());
    assert_eq!(slotted.ports, event.ports);
    for ((group, slotted), (_, event)) in slotted.deliveries.iter().zip(&event.deliveries) {
        let differs = slotted.iter().zip(event).find(|(slotted, event)| slotted != event);
        assert_eq!(differs, None, "group {group}");
    }
    let differs = slotted.intervals.rows().zip(event.intervals.rows()).find(|(slotted, event)| slotted != event);
    assert_eq!(differs, None);
    assert_eq!(slotted.intervals.rows().count(), event.intervals.rows().count());
}

/// Every port and flow is recorded: the intervals of bursts and of control frames hold all of them.
fn intervals_add_up(totals: &Totals) {
    let mut frames = BTreeMap::<(u32, ControlKind), (u64, u64)>::new();
    for row in &totals.control.frames {
        frames.entry((row.queue_port, row.kind)).or_default().0 += row.frames;
    }
    for row in &totals.control.intervals {
        assert!(0 < row.t_ps && row.t_ps <= totals.end_ps && row.frames > 0, "{row:?}");
        frames.entry((row.queue_port, row.kind)).or_default().1 += row.frames;
    }
    assert!(frames.values().all(|(in_all, by_interval)| in_all == by_interval), "{frames:?}");
    let mut bursts = BTreeMap::<u32, (u64, u128)>::new();
    for (flow, rows) in &totals.burst_intervals {
        assert!(rows.is_sorted_by_key(|row| row.t_ps) && rows.iter().all(|row| row.bursts > 0), "flow {flow}");
        let sums = rows.iter().fold((0, 0), |sum, row| (sum.0 + row.bursts, sum.1 + row.delay_sum_ps));
        if !rows.is_empty() {
            bursts.insert(*flow, sums);
        }
    }
    let in_all = totals.bursts.iter().map(|row| (row.flow, (row.bursts, row.delay_sum_ps)));
    assert_eq!(bursts, in_all.collect());
}

/// A small benchmark, so short that queues fill, empty and fill again.
fn small(hosts: u32, hotspot: Hotspot) -> Benchmark {
    Benchmark { memory: 24, warm_up: 300, slots: 4000, hotspot, ..Benchmark::single_stage(hosts) }
}

fn delayed(mut spec: Spec, slots: u64) -> Spec {
    if let Network::Xgft { link, .. } = &mut spec.network {
        *link = LinkSpec { delay_ps: SLOT * slots, ..*link };
    }
    spec
}

#[test]
fn hotspots_pass_a_shared_memory_alike_in_both_engines() {
    for hotspot in [Hotspot::None, Hotspot::Output(0.2), Hotspot::Output(0.3), Hotspot::Inputs(3)] {
        for (burst, round_trip) in [(1.0, 0), (10.0, 0), (1.0, 7), (5.0, 12)] {
            let benchmark = Benchmark { burst, round_trip, ..small(9, hotspot) };
            let (event, slotted) = both(benchmark.spec(), 3);
            agree(&event, &slotted);
            assert_eq!(slotted.packet_hops, event.packet_hops);
            let xoffs = event.memories[0].xoffs;
            assert!(xoffs > 3 || matches!(hotspot, Hotspot::None), "{hotspot:?}: {xoffs} times full");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn congestion_trees_grow_alike_in_both_engines(
        shape in prop::sample::select(vec![
            (vec![4, 4], vec![1, 4]), (vec![2, 3, 4], vec![1, 2, 2]), (vec![4, 4, 2], vec![1, 1, 2]), (vec![9], vec![1]),
        ]),
        is_output in any::<bool>(),
        delay in 0u64..3,
        round_trip in 0u64..4,
        burst in prop::sample::select(vec![1.0, 4.0]),
        by_switch in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let hotspot = if is_output { Hotspot::Output(0.25) } else { Hotspot::Inputs(4) };
        let benchmark = Benchmark {
            children: shape.0, parents: shape.1, round_trip, burst, slots: 1500, ..small(16, hotspot)
        };
        let mut spec = delayed(benchmark.spec(), delay);
        if by_switch {
            for pause in spec.switching.memories.iter_mut().filter_map(|memory| memory.pause.as_mut()) {
                pause.scope = PauseScope::Switch;
            }
        }
        let (event, slotted) = both(spec, seed);
        agree(&event, &slotted);
        prop_assert_eq!(slotted.packet_hops, event.packet_hops);
    }
}

#[test]
fn outputs_that_are_slow_twice_and_at_odd_rates_serve_alike_in_both_engines() {
    let mut spec = small(8, Hotspot::None).spec();
    let service = |port, bps, from: u64, to: u64| Service {
        port,
        rate_bps: Rate::from_bps(bps),
        from_ps: Time::ZERO + SLOT * from,
        to_ps: Time::ZERO + SLOT * to,
    };
    spec.switching.services = vec![
        service(1, 3_100_000_000, 300, 1100),
        service(1, 700_000_000, 1300, 2000),
        service(1, 9_000_000_000, 1500, 1700),
        service(7, 1_234_567_890, 500, 4000),
    ];
    let (event, slotted) = both(spec, 5);
    agree(&event, &slotted);
    assert!(event.memories[0].xoffs > 3);
}

#[test]
fn buffers_behind_slow_outputs_hold_them_alike_in_both_engines() {
    for delay in [0, 2] {
        let mut spec = delayed(small(8, Hotspot::Output(0.3)).spec(), delay);
        spec.switching.egress = vec![Egress { hosts: vec![0, 3], xoff_bytes: CELL * 9, xon_bytes: CELL * 4 }];
        let (event, slotted) = both(spec, 5);
        agree(&event, &slotted);
        assert!(event.ports[1].pauses.count > 10, "{:?}", event.ports[1].pauses);
    }
}

#[test]
fn pause_is_repeated_alike_in_both_engines() {
    let mut spec = small(8, Hotspot::Output(0.2)).spec();
    if let Some(pause) = spec.switching.memories[0].pause.as_mut() {
        (pause.quanta, pause.refresh_ps) = (Some(100), Some(SLOT * 11));
    }
    let (event, slotted) = both(spec, 5);
    agree(&event, &slotted);
    let frames: u64 = event.control.frames.iter().map(|row| row.frames).sum();
    assert!(frames > 2 * 8 * event.memories[0].xoffs, "{frames}");
}

#[test]
fn a_memory_without_pause_drops_alike_in_both_engines() {
    let mut spec = small(8, Hotspot::Output(0.2)).spec();
    spec.switching.memories[0].pause = None;
    let (event, slotted) = both(spec, 5);
    agree(&event, &slotted);
    assert!(event.drops.len() > 20);
}

/// Without chance in sampling all of BCN is the same, frame by frame.
#[test]
fn limiters_pace_alike_in_both_engines_where_samples_are_not_left_to_chance() {
    // With 0.1, feedback of 9 leaves a tenth of a rate: a limiter has a whole frame's worth after ten slots, but for roundings.
    let rounded = (0..12).map(|seed| (0.1, 0.1, seed));
    for (ps, gd, seed) in [(0.1, 0.01, 5), (0.3, 0.05, 5)].into_iter().chain(rounded) {
        let benchmark = small(8, Hotspot::Output(0.2)).with_bcn(ps, gd);
        let mut spec = benchmark.spec();
        if let Some(bcn) = &mut spec.control.bcn {
            bcn.congestion_point.sampling = Sampling::Uniform { jitter: 0.0 };
            bcn.congestion_point.notification.lane = NotificationLane::Beside;
        }
        let (event, slotted) = both(spec, seed);
        agree(&event, &slotted);
        assert_eq!(slotted.control.reaction_points.len(), event.control.reaction_points.len());
        let made: u64 = event.control.reaction_points.iter().map(|(_, meter)| meter.made).sum();
        assert!(made >= 7, "{made} limiters");
    }
}

/// Share of the slots of all outputs, and of those of output 0, in which a frame left, over the second half of the run.
fn throughput(totals: &Totals, hosts: u32) -> [f64; 2] {
    let ports = 2 * hosts;
    let (mut all, mut hot, mut slots) = (0, 0, 0);
    for (port, row) in totals.intervals.rows().filter(|(port, row)| port % 2 == 1 && row.t_ps > totals.end_ps / 2) {
        all += row.frames;
        if port == 1 {
            hot += row.frames;
            slots += 257;
        }
    }
    [all as f64 / f64::from(slots * ports / 2), hot as f64 / f64::from(slots)]
}

/// Mean and squared standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n * (n - 1.0)))
}

/// Samples are left to chance, and each engine draws its own: the means over 24 seeds differ by less than 3.6 standard
/// errors, which by chance alone they do in 99.9 % of all cases (t with 46 degrees of freedom).
#[test]
fn under_random_sampling_both_engines_give_the_same_throughput() {
    let benchmark = Benchmark { warm_up: 1000, slots: 40_000, ..Benchmark::single_stage(8) }.with_bcn(0.03, 0.005);
    for lane in [NotificationLane::Beside, NotificationLane::Control] {
        let mut spec = benchmark.spec();
        if let Some(bcn) = &mut spec.control.bcn {
            bcn.congestion_point.notification.lane = lane;
        }
        let runs: Vec<_> = (0..24).map(|seed| both(spec.clone(), seed)).collect();
        for which in 0..2 {
            let of = |totals: &Totals| throughput(totals, 8)[which];
            let (event, error) = mean(&runs.iter().map(|(event, _)| of(event)).collect::<Vec<_>>());
            let (slotted, other) = mean(&runs.iter().map(|(_, slotted)| of(slotted)).collect::<Vec<_>>());
            let bound = 3.6 * (error + other).sqrt();
            assert!((event - slotted).abs() < bound, "{lane:?}: {event} and {slotted} differ by more than {bound}");
            assert!(bound < 0.025, "{bound}");
        }
    }
}

/// The benchmark with frames of several sizes, Poisson: memories of 256 frames of 1500 B for each port.
fn of_any_size(benchmark: &Benchmark) -> Spec {
    let mut spec = benchmark.spec();
    let sizes = vec![(Bytes::new(64), 7), (Bytes::new(577), 2), (Bytes::new(1500), 3)];
    let mean_bytes = (64 * 7 + 577 * 2 + 1500 * 3) as f64 / 12.0;
    for source in spec.traffic.iter_mut().flat_map(|group| &mut group.sources) {
        let Departures::Bursts { load, .. } = source.departures else { panic!("bursts, as the benchmark says") };
        source.departures = Departures::Poisson { mean_gap_ps: mean_bytes * 800.0 / load };
        source.frame_size = FrameSize::Mix(sizes.clone());
    }
    let largest = Bytes::new(1500);
    for memory in &mut spec.switching.memories {
        let ports = memory.bytes.count() / (CELL.count() * benchmark.memory);
        memory.bytes = largest * (benchmark.memory * ports);
        if let Some(pause) = &mut memory.pause {
            let share = if pause.scope == PauseScope::Switch { ports } else { 1 };
            pause.xoff_bytes = largest * ((benchmark.memory - 2) * share);
            pause.xon_bytes = Bytes::new(pause.xoff_bytes.count() / 2);
        }
    }
    spec.run.engine = Engine::Event;
    spec
}

/// Source: ZRL benchmark, OG hotspot: without congestion management throughput is limited to 20 %. That does not depend on the
/// sizes of frames.
#[test]
fn frames_of_any_size_are_taken_down_to_the_share_of_the_hotspot_and_none_is_lost() {
    for (children, parents) in [(vec![8], vec![1]), (vec![4, 4], vec![1, 4])] {
        let hosts = children.iter().product::<u32>();
        let benchmark = Benchmark {
            children,
            parents,
            memory: 32,
            warm_up: 1000,
            slots: 400_000,
            ..Benchmark::single_stage(hosts)
        };
        let mut spec = of_any_size(&benchmark);
        spec.record.traffic = vec![TrafficProbe { traffic: 0, every_ps: SLOT * 1000 }];
        let totals = run(spec, 1);
        assert!(totals.ports.iter().all(|port| port.counters.drops == 0));
        let bytes: u64 = totals.deliveries[0].1.iter().skip(201).map(|row| row.bytes).sum();
        let aggregate = bytes as f64 / (64.0 * 200_000.0 * f64::from(hosts));
        let last: u64 = totals.intervals.rows().skip(201).map(|(_, row)| row.bytes).sum();
        let hot = last as f64 / (64.0 * 200_000.0);
        assert!((hot - 0.2).abs() < 0.002, "{hosts} hosts: {hot}");
        // In a tree, traffic within a switch of the lowest level does not share its inputs with what comes from above.
        let bounds = if hosts == 8 { 0.18..0.22 } else { 0.18..0.3 };
        assert!(bounds.contains(&aggregate), "{hosts} hosts: {aggregate}");
        assert!(totals.memories.iter().all(|memory| memory.max_bytes <= 1500 * 32 * 8));
        // A frame is a burst of its own: it takes as long as the frame does.
        assert_eq!(
            totals.bursts.iter().map(|row| row.bursts).sum::<u64>(),
            totals.flows.iter().map(|flow| flow.delivered_frames).sum::<u64>()
        );
    }
}

#[test]
fn what_does_not_stand_beside_a_shared_memory_is_refused_at_its_place() {
    let mut spec = Benchmark::single_stage(8).with_bcn(0.03, 0.005).spec();
    spec.record.limiters = vec![LimiterProbe { host: 0, every_ps: SLOT }];
    for engine in [Engine::Slotted { flows: false }, Engine::EventTotals] {
        spec.run.engine = engine;
        if let Some(bcn) = &mut spec.control.bcn {
            bcn.congestion_point.notification.lane = NotificationLane::Beside;
        }
        let fault = Plan::new(spec.clone()).expect_err("no flows, no series of limiters");
        assert_eq!(fault.pointer, "/record/limiters");
    }
}

#[test]
fn queues_of_limiters_are_refused_beside_a_shared_memory_in_both_engines() {
    for engine in [Engine::Event, Engine::Slotted { flows: true }] {
        for (queue, fifo_frames, field) in [(Limit::Frames(0), 0, "queue"), (Limit::Unlimited, 1, "fifo_frames")] {
            let mut spec = Benchmark::single_stage(8).with_bcn(0.03, 0.005).spec();
            spec.run.engine = engine;
            if let Some(bcn) = &mut spec.control.bcn {
                bcn.reaction_point.limiter = Limiter { queue, fifo_frames, ..bcn.reaction_point.limiter };
            }
            let fault = Plan::new(spec).expect_err("no queues of limiters");
            assert_eq!(fault.pointer, format!("/control/bcn/reaction_point/limiter/{field}"));
        }
    }
}

#[test]
fn credit_of_limiters_is_refused_where_they_have_none_and_where_it_cannot_be_saved() {
    let fault = |initial_credit, most_credit, is_plain: bool| {
        let mut spec = Benchmark { is_event: true, ..Benchmark::single_stage(8).with_bcn(0.03, 0.005) }.spec();
        if is_plain {
            spec.switching = Default::default();
        }
        if let Some(bcn) = &mut spec.control.bcn {
            bcn.reaction_point.limiter = Limiter { initial_credit, most_credit, ..bcn.reaction_point.limiter };
        }
        Plan::new(spec).err().map(|fault| fault.pointer)
    };
    let at = |field: &str| Some(format!("/control/bcn/reaction_point/limiter/{field}"));
    assert_eq!(fault(Some(1.0), None, false), None);
    assert_eq!(fault(Some(3.0), Some(3.0), false), None);
    assert_eq!(fault(Some(1.5), None, false), at("initial_credit"));
    assert_eq!(fault(None, Some(0.5), false), at("most_credit"));
    assert_eq!(fault(None, Some(1.0), true), at("most_credit"));
    assert_eq!(fault(Some(0.0), None, true), at("initial_credit"));
}

#[test]
fn without_flows_the_event_engine_counts_the_same_ports_and_memories() {
    for (children, parents) in [(vec![9], vec![1]), (vec![4, 4], vec![1, 4])] {
        let hotspot = Hotspot::Output(0.25);
        let counted =
            Benchmark { children, parents, burst: 4.0, is_event: true, ..small(16, hotspot) }.with_bcn(0.1, 0.01);
        let uncounted = Benchmark { flows: false, ..counted.clone() };
        let (counted, uncounted) = (run(counted.spec(), 3), run(uncounted.spec(), 3));
        assert_eq!((uncounted.flows.len(), uncounted.drops.len(), uncounted.bursts.len()), (0, 0, 0));
        assert_eq!(uncounted.ports, counted.ports);
        assert_eq!(uncounted.memories, counted.memories);
        assert_eq!(uncounted.control.frames, counted.control.frames);
        assert_eq!(uncounted.packet_hops, counted.packet_hops);
        assert!(counted.control.frames.len() > 10);
    }
}
