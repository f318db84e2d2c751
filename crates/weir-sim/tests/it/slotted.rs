//! The slotted engine: the same frames as the event engine, the laws of its switch, and the published throughputs.

use proptest::prelude::*;
use weir_core::path::LossModel;
use weir_core::spec::{
    Departures, Destination, Engine, FrameSize, LinkSpec, Network, PortProbe, Routing, Source, Spec, Stream,
    SwitchSpec, TrafficProbe,
};
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::hotspots::{Benchmark, Gains, Hotspot, SLOT};
use weir_sim::{FlowTotals, Plan, Progress, Totals, simulate, workloads};

fn run(spec: Spec, seed: u64) -> Totals {
    let plan = Plan::new(spec).expect("a legal spec");
    simulate(&plan, &[seed], 1, &Progress::new()).expect("a lawful run").remove(0)
}

/// The same spec on both engines.
fn both(mut spec: Spec, seed: u64) -> (Totals, Totals) {
    spec.run.engine = Engine::Event;
    let event = run(spec.clone(), seed);
    spec.run.engine = Engine::Slotted { flows: true };
    (event, run(spec, seed))
}

/// What both engines count, but for the number of events.
fn agree(event: &Totals, slotted: &Totals) {
    assert_eq!(slotted.flows, event.flows);
    assert_eq!(slotted.ports, event.ports);
    assert_eq!(slotted.drops, event.drops);
    assert_eq!(slotted.deliveries, event.deliveries);
    assert_eq!(slotted.packet_hops, event.packet_hops);
    let rows = |totals: &Totals| totals.intervals.rows().collect::<Vec<_>>();
    assert_eq!(rows(slotted), rows(event));
}

/// The workload W4 in whole slots: no delay of links, which is not one of them.
fn slotted_switch(slots: u64, delay: u64) -> Spec {
    let mut spec = workloads::slotted_switch();
    let link = LinkSpec {
        rate_bps: Rate::from_gbit_per_s(10),
        delay_ps: SLOT * delay,
        framing_bytes: Bytes::ZERO,
        loss: LossModel::None,
    };
    spec.network = Network::Star { hosts: 32, link, switch: SwitchSpec { latency_ps: Span::ZERO } };
    spec.run.duration_ps = SLOT * slots;
    spec.record.ports = (0..8).map(|port| PortProbe { port, every_ps: SLOT * 300 }).collect();
    spec.record.traffic = vec![TrafficProbe { traffic: 0, every_ps: SLOT * 700 }];
    spec
}

#[test]
fn both_engines_count_the_same_frames_at_the_same_times() {
    for delay in [0, 3] {
        let (event, slotted) = both(slotted_switch(5_000, delay), 0);
        agree(&event, &slotted);
        assert!(slotted.flows.iter().all(|flow| flow.delivered_frames > 0));
    }
}

#[test]
fn sums_of_flows_are_those_of_single_ones_and_nothing_else_is_different() {
    let tree = Benchmark {
        children: vec![4, 4],
        parents: vec![1, 4],
        burst: 10.0,
        slots: 4000,
        ..Benchmark::single_stage(16)
    };
    let mut recorded = tree.with_bcn(0.03, 0.005).spec();
    recorded.record.traffic = vec![TrafficProbe { traffic: 0, every_ps: SLOT * 700 }];
    for mut spec in [slotted_switch(4000, 1), recorded] {
        spec.run.engine = Engine::Slotted { flows: true };
        let whole = run(spec.clone(), 1);
        let of_each = whole.flows.len() / spec.traffic[0].sources.len();
        let plan = Plan::with_sums(spec).expect("a legal spec");
        let sums = simulate(&plan, &[1], 1, &Progress::new()).expect("a lawful run").remove(0);
        assert!(of_each > 1 && sums.flows.len() * of_each == whole.flows.len());
        for (sum, flows) in sums.flows.iter().zip(whole.flows.chunks(of_each)) {
            let total = |count: fn(&FlowTotals) -> u64| flows.iter().map(count).sum::<u64>();
            assert_eq!(sum.sent_bytes, total(|flow| flow.sent_bytes));
            assert_eq!(sum.delivered_frames, total(|flow| flow.delivered_frames));
            assert_eq!(sum.dropped_frames, total(|flow| flow.dropped_frames));
            assert_eq!(sum.live_frames, total(|flow| flow.live_frames));
            assert_eq!(sum.delay_sum_ps, flows.iter().map(|flow| flow.delay_sum_ps).sum::<u128>());
            assert_eq!(sum.delay_max, flows.iter().filter_map(|flow| flow.delay_max).max());
        }
        let drops = |totals: &Totals| totals.drops.iter().map(|row| row.frames).sum::<u64>();
        assert_eq!(drops(&sums), drops(&whole));
        assert_eq!((&sums.ports, &sums.memories, sums.packet_hops), (&whole.ports, &whole.memories, whole.packet_hops));
        assert_eq!((&sums.deliveries, &sums.control.frames), (&whole.deliveries, &whole.control.frames));
        assert!(sums.intervals.rows().eq(whole.intervals.rows()));
    }
}

#[test]
fn destinations_may_stand_in_any_order_and_hosts_be_more_than_a_word_has_bits() {
    let mut spec = slotted_switch(400, 1);
    let link = LinkSpec {
        rate_bps: Rate::from_gbit_per_s(10),
        delay_ps: SLOT,
        framing_bytes: Bytes::ZERO,
        loss: LossModel::None,
    };
    spec.network = Network::Star { hosts: 100, link, switch: SwitchSpec { latency_ps: SLOT } };
    for (place, source) in spec.traffic[0].sources.iter_mut().enumerate() {
        source.from = 3 * place as u32;
        source.to = Destination::Uniform(match place % 4 {
            0 => (0..100).rev().collect(),
            1 => (20..90).filter(|host| host % 3 != 0).collect(),
            2 => (40..100).filter(|&host| host != 70).collect(),
            _ => vec![99],
        });
    }
    let (event, slotted) = both(spec, 0);
    agree(&event, &slotted);
    assert!(slotted.flows.iter().filter(|flow| flow.delivered_frames > 0).count() > 1000);
}

#[test]
fn both_engines_drop_the_same_frames_where_queues_are_short() {
    use weir_core::spec::{Limit, QueueRule};
    let mut spec = slotted_switch(3_000, 1);
    let ports = (0..32).map(|host| 2 * host + 1).collect();
    spec.queues = vec![QueueRule::drop_tail(ports, Limit::Frames(3))];
    let (event, slotted) = both(spec, 0);
    agree(&event, &slotted);
    assert!(slotted.drops.len() > 100);
}

/// Each host of a tree to the one `shift` further, at a constant rate of one frame in `gap` slots, each a slot later than
/// the one before.
fn shift(children: Vec<u32>, parents: Vec<u32>, routing: Routing, gap: u64, shift: u32) -> Spec {
    let hosts: u32 = children.iter().product();
    let mut spec = slotted_switch(600, 2);
    let link = LinkSpec {
        rate_bps: Rate::from_gbit_per_s(10),
        delay_ps: SLOT * 2,
        framing_bytes: Bytes::ZERO,
        loss: LossModel::None,
    };
    spec.network = Network::Xgft { children, parents, routing, link, switch: SwitchSpec { latency_ps: SLOT } };
    spec.queues.clear();
    spec.record.ports.clear();
    let source = |from: u32| Source {
        from,
        to: Destination::Node((from + shift) % hosts),
        start_ps: Time::ZERO + SLOT * (u64::from(from) % gap),
        stop_ps: Time::NEVER,
        departures: Departures::Constant { gap_ps: (SLOT * gap).ps() as f64 },
        frame_size: FrameSize::Fixed(Bytes::new(64)),
        stream: Stream::Named,
    };
    spec.traffic[0].sources = (0..hosts).map(source).collect();
    spec
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn deterministic_traffic_crosses_trees_alike_in_both_engines(
        shape in prop::sample::select(vec![
            (vec![4, 4], vec![1, 4]), (vec![2, 3, 4], vec![1, 2, 2]), (vec![4, 4, 2], vec![1, 1, 2]), (vec![9], vec![1]),
        ]),
        routing in prop::sample::select(vec![Routing::DestinationHash, Routing::FlowHash, Routing::DModK]),
        gap in 1u64..4,
        by in 0u32..40,
    ) {
        let (event, slotted) = both(shift(shape.0, shape.1, routing, gap, by), 3);
        agree(&event, &slotted);
    }
}

/// Share of all slots of all outputs with a delivery, and share of the slots of output 0 with one, over the hotspot from
/// slot `from` of it on.
fn throughput(benchmark: &Benchmark, seed: u64, from: u64) -> (f64, f64, Totals) {
    let mut spec = benchmark.spec();
    let every_ps = SLOT * 1000;
    spec.record.traffic = (0..2).map(|traffic| TrafficProbe { traffic, every_ps }).collect();
    let totals = run(spec, seed);
    let first = |skip: u64| ((benchmark.warm_up + skip) / 1000) as usize;
    let all = totals.deliveries.iter().flat_map(|(_, rows)| &rows[first(from)..]).map(|row| row.frames);
    let aggregate = all.sum::<u64>() as f64 / ((benchmark.slots - from) * u64::from(benchmark.hosts())) as f64;
    let hot = totals.intervals.rows().skip(first(0)).map(|(_, row)| row.frames).sum::<u64>();
    let hot = hot as f64 / benchmark.slots as f64;
    (aggregate, hot, totals)
}

fn is_lossless(totals: &Totals) -> bool {
    totals.ports.iter().all(|port| port.counters.drops == 0)
}

/// Source: ZRL benchmark, OG hotspot: without congestion management throughput is limited to 20 %.
#[test]
fn without_control_an_output_hotspot_takes_the_whole_switch_down_to_its_share() {
    let mut benchmark = Benchmark::single_stage(32);
    // Many cycles of filling and draining the memory, which last 25 500 slots each.
    benchmark.slots = 520_000;
    let (aggregate, hot, totals) = throughput(&benchmark, 1, 10_000);
    assert!((aggregate - 0.2).abs() < 0.01, "{aggregate}");
    assert!((hot - 0.2).abs() < 0.001, "{hot}");
    assert!(is_lossless(&totals));
}

/// Source: ZRL benchmark, IG results: 1 / (HSD (N - 1) / N + 1).
#[test]
fn without_control_an_input_hotspot_takes_the_switch_down_by_the_published_formula() {
    let mut benchmark = Benchmark::single_stage(32);
    benchmark.hotspot = Hotspot::Inputs(8);
    benchmark.slots = 300_000;
    let (aggregate, hot, totals) = throughput(&benchmark, 1, 20_000);
    let formula = 1.0 / (8.0 * 31.0 / 32.0 + 1.0);
    assert!((aggregate - formula).abs() < 0.01, "{aggregate} instead of {formula}");
    assert!(hot > 0.999, "{hot}");
    assert!(is_lossless(&totals));
}

/// Source: ZRL benchmark, OG hotspot, IG results: `load (N - 1) / N + 0.2 / N`, 0.77 and 0.83; 0.65.
#[test]
fn in_the_middle_of_the_optimal_range_throughput_is_what_can_be_had() {
    let outputs = [(8, 0.85 * 7.0 / 8.0 + 0.2 / 8.0), (32, 0.85 * 31.0 / 32.0 + 0.2 / 32.0)];
    for (hosts, most) in outputs {
        let benchmark = Benchmark::single_stage(hosts).with_bcn(0.03, 0.003);
        let (aggregate, hot, totals) = throughput(&benchmark, 1, 30_000);
        assert!((aggregate - most).abs() < 0.01, "{hosts} hosts: {aggregate} instead of {most}");
        assert!((hot - 0.2).abs() < 0.01, "{hosts} hosts: {hot}");
        assert!(is_lossless(&totals));
    }
    let inputs = Benchmark { hotspot: Hotspot::Inputs(8), ..Benchmark::single_stage(32) };
    let (aggregate, hot, totals) = throughput(&inputs.with_bcn(0.03, 0.003), 1, 30_000);
    assert!((aggregate - 0.65).abs() < 0.01 && hot > 0.94, "{aggregate}, {hot}");
    assert!(is_lossless(&totals));
}

#[test]
fn too_low_a_gain_never_escapes_from_pause_and_too_high_a_gain_starves_the_hot_port() {
    let (aggregate, ..) = throughput(&Benchmark::single_stage(32).with_bcn(0.01, 0.0005), 1, 30_000);
    assert!(aggregate < 0.4, "{aggregate}");
    let (_, hot, totals) = throughput(&Benchmark::single_stage(8).with_bcn(0.01, 0.05), 1, 30_000);
    assert!(hot < 0.15, "{hot}");
    assert!(is_lossless(&totals));
}

#[test]
fn nothing_is_lost_with_round_trips_and_bursts_and_the_memory_is_never_overrun() {
    for (round_trip, burst) in [(20, 1.0), (100, 1.0), (0, 10.0), (20, 24.0)] {
        let mut benchmark = Benchmark::single_stage(16);
        (benchmark.round_trip, benchmark.burst, benchmark.slots) = (round_trip, burst, 30_000);
        let totals = run(benchmark.spec(), 2);
        assert!(is_lossless(&totals), "round trip {round_trip}, bursts of {burst}");
        assert!(totals.memories[0].max_bytes <= 64 * 256 * 16 && totals.memories[0].xoffs > 0);
    }
}

#[test]
fn a_congestion_tree_spreads_over_the_stages_of_a_fat_tree_and_control_prunes_it() {
    let mut tree = Benchmark::single_stage(32);
    (tree.children, tree.parents) = (vec![4, 8], vec![1, 4]);
    tree.slots = 30_000;
    let (aggregate, hot, totals) = throughput(&tree, 1, 15_000);
    // All other flows share queues and PAUSE with the hot ones.
    assert!(aggregate < 0.4 && (hot - 0.2).abs() < 0.01, "{aggregate}, {hot}");
    let stages =
        |totals: &Totals| totals.memories.iter().filter(|memory| memory.xoffs > 0).map(|m| m.node).collect::<Vec<_>>();
    assert!(stages(&totals).iter().any(|&node| node < 40) && stages(&totals).iter().any(|&node| node >= 40));
    assert!(is_lossless(&totals));
    let (aggregate, hot, totals) = throughput(&tree.with_bcn(0.05, 0.005), 1, 15_000);
    assert!(aggregate > 0.75 && (hot - 0.2).abs() < 0.02, "{aggregate}, {hot}");
    assert!(is_lossless(&totals));
}

#[test]
fn runs_depend_on_the_seed_alone() {
    let mut benchmark = Benchmark::single_stage(8).with_bcn(0.05, 0.005);
    benchmark.slots = 3_000;
    let plan = Plan::new(benchmark.spec()).expect("a legal spec");
    let batch = |threads| simulate(&plan, &[1, 2, 1], threads, &Progress::new()).expect("lawful runs");
    let (one, two) = (batch(1), batch(2));
    assert_eq!(one, two);
    assert_eq!(one[0], one[2]);
    assert_ne!(one[0].flows, one[1].flows);
}

#[test]
fn sources_that_draw_ahead_draw_the_same() {
    let mut benchmarks = vec![
        Benchmark { slots: 70, warm_up: 10, ..Benchmark::single_stage(4) },
        Benchmark::single_stage(8),
        Benchmark { burst: 24.0, hotspot: Hotspot::Inputs(3), ..Benchmark::single_stage(32).with_bcn(0.05, 0.005) },
        Benchmark { flows: false, ..Benchmark::single_stage(32) },
        Benchmark { children: vec![4, 8], parents: vec![1, 4], round_trip: 4, ..Benchmark::single_stage(32) },
    ];
    for benchmark in &mut benchmarks {
        // Beyond the end of the last chunk, and not at the end of a batch.
        benchmark.slots = benchmark.slots.min(9_999);
        let plan = Plan::new(benchmark.spec()).expect("a legal spec");
        let on = |threads| simulate(&plan, &[5, 6], threads, &Progress::new()).expect("lawful runs");
        assert_eq!(on(1), on(4), "{benchmark:?}");
    }
}

#[test]
fn a_run_that_draws_ahead_ends_when_it_is_reported_to() {
    let mut benchmark = Benchmark::single_stage(32);
    benchmark.slots = 50_000_000;
    let plan = Plan::new(benchmark.spec()).expect("a legal spec");
    let progress = Progress::new();
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| simulate(&plan, &[1], 2, &progress));
        while progress.done() == 0 {
            std::thread::yield_now();
        }
        progress.cancel();
        run.join().expect("no panic")
    });
    assert!(matches!(ended, Err(weir_sim::SimError::Interrupted)));
}

#[test]
fn what_a_run_counts_is_shown_while_it_goes_on() {
    let spec = |slots| {
        let mut spec = slotted_switch(slots, 3);
        spec.run.engine = Engine::Slotted { flows: true };
        spec
    };
    let plan = Plan::new(spec(40_000)).expect("a legal spec");
    let progress = Progress::with_news();
    let watched = simulate(&plan, &[3], 1, &progress).expect("a lawful run");
    assert_eq!(watched, simulate(&plan, &[3], 1, &Progress::new()).expect("a lawful run"), "a look changes nothing");
    let news = progress.news();
    assert!(news.len() >= 4, "{} looks", news.len());
    assert!(news.is_sorted_by(|one, next| one.now < next.now && one.delivered < next.delivered));
    let delivered = |slots| run(spec(slots), 3).flows.iter().map(|flow| flow.delivered_frames).sum::<u64>();
    for seen in [news[1], news[news.len() - 1]] {
        assert_eq!(seen.sent, seen.delivered + seen.dropped + seen.alive);
        let slots = seen.now.ps() / SLOT.ps();
        // A cell counts when it leaves its switch, three slots before it arrives.
        assert!((delivered(slots)..=delivered(slots + 4)).contains(&seen.delivered), "{seen:?}");
    }
}

#[test]
fn without_flows_the_ports_count_the_same() {
    let mut benchmark = Benchmark::single_stage(8);
    benchmark.slots = 3_000;
    let counted = run(benchmark.spec(), 4);
    benchmark.flows = false;
    let uncounted = run(benchmark.spec(), 4);
    assert_eq!((uncounted.flows.len(), uncounted.bursts.len()), (0, 0));
    assert_eq!((counted.ports, counted.packet_hops), (uncounted.ports, uncounted.packet_hops));
}

#[test]
fn a_buffer_behind_the_hot_output_moves_the_queue_and_holds_the_port() {
    use weir_core::spec::switching::Egress;
    let mut benchmark = Benchmark::single_stage(8);
    benchmark.slots = 20_000;
    let mut spec = benchmark.spec();
    let (xoff_bytes, xon_bytes) = (Bytes::new(64 * 64), Bytes::new(64 * 32));
    spec.switching.egress = vec![Egress { hosts: vec![0], xoff_bytes, xon_bytes }];
    let totals = run(spec, 1);
    assert!(totals.ports[1].pauses.count > 10);
    let hot = totals.intervals.rows().skip(10).map(|(_, row)| row.frames).sum::<u64>() as f64 / 14_000.0;
    assert!((hot - 0.2).abs() < 0.01, "{hot}");
    assert!(is_lossless(&totals));
}

#[test]
fn bursts_are_timed_from_their_first_frame_to_their_last() {
    let mut benchmark = Benchmark { hotspot: Hotspot::None, burst: 10.0, ..Benchmark::single_stage(8) };
    (benchmark.load, benchmark.slots) = (0.1, 20_000);
    let totals = run(benchmark.spec(), 1);
    let (count, sum) =
        totals.bursts.iter().fold((0, 0), |(count, sum), row| (count + row.bursts, sum + row.delay_sum_ps));
    let frames: u64 = totals.flows.iter().map(|flow| flow.delivered_frames).sum();
    assert!((frames as f64 / count as f64 - 10.0).abs() < 0.5, "{frames} frames in {count} bursts");
    let mean = sum as f64 / count as f64 / SLOT.ps() as f64;
    // A burst takes its own length and the two slots of the switch at least; at 10 % it waits little.
    assert!((11.0 - 0.5..15.0).contains(&mean), "{mean} slots");
}

#[test]
fn half_the_memory_is_a_slower_escape() {
    let half = |benchmark: Benchmark| {
        let control = benchmark.control.map(|gains| Gains { q_eq_divisor: 2, ..gains });
        Benchmark { control, ..benchmark }
    };
    let (whole, ..) = throughput(&Benchmark::single_stage(32).with_bcn(0.02, 0.002), 1, 30_000);
    let (halved, ..) = throughput(&half(Benchmark::single_stage(32).with_bcn(0.02, 0.002)), 1, 30_000);
    assert!(whole > 0.82 && halved < whole, "{whole}, {halved}");
}
