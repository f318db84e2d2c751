//! Laws of loaded paths.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use weir_core::path::spec::RateSpec;
use weir_core::path::{HopSpec, LineSpec, LoadedPath, LossModel, ProbeSpec, TransferSpec};
use weir_core::rng::Seed;
use weir_core::spec::Limit;
use weir_core::tcp::Config;
use weir_core::units::{Bytes, Rate, Span};
use weir_sim::path::{PathTotals, simulate_path};

fn config(window: u64) -> Config {
    Config { receive_buffer_bytes: Bytes::new(window), ..Config::default() }
}

fn line(mbps: u64, delay_ms: u64, limit: Limit) -> LineSpec {
    LineSpec {
        rate: RateSpec::Constant { rate_bps: Rate::from_bps(mbps * 1_000_000) },
        delay_ps: Span::from_ms(delay_ms),
        limit,
        ..LineSpec::transparent()
    }
}

fn hop(forward: LineSpec) -> HopSpec {
    let backward = LineSpec { loss: LossModel::None, ..forward.clone() };
    HopSpec { forward, backward, strips_window_scale: false }
}

fn transfer(streams: u32, window: u64) -> Option<TransferSpec> {
    Some(TransferSpec { forward: true, streams, config: config(window), every_ps: Span::from_ms(500) })
}

fn probe(count: u32) -> Option<ProbeSpec> {
    Some(ProbeSpec {
        forward: true,
        count,
        every_ps: Span::from_ms(100),
        payload_bytes: Bytes::new(56),
        timeout_ps: Span::from_ms(2_000),
    })
}

fn run(spec: &LoadedPath, seed: u64) -> PathTotals {
    spec.check().expect("a legal path");
    simulate_path(spec, Seed::new(seed), &AtomicBool::new(false)).expect("nobody cancels it")
}

fn loaded(hops: Vec<HopSpec>, transfer: Option<TransferSpec>, probe: Option<ProbeSpec>) -> LoadedPath {
    LoadedPath { hops, transfer, probe, duration_ps: Span::from_ms(4_000) }
}

fn delivered(totals: &PathTotals) -> u64 {
    totals.streams.iter().map(|stream| stream.delivered.count()).sum()
}

#[test]
fn an_idle_path_answers_after_its_propagation_and_its_transmissions() {
    let hops = vec![hop(line(10, 20, Limit::Unlimited)), hop(line(20, 5, Limit::Unlimited))];
    let totals = run(&loaded(hops, None, probe(3)), 1);
    // 84 B take 67.2 us at 10 Mbit/s and 33.6 us at 20 Mbit/s, each there and back.
    let each = Span::from_ms(50) + Span::from_ns(201_600);
    assert_eq!(totals.answers, [(0, each), (1, each), (2, each)]);
}

#[test]
fn streams_that_their_windows_bind_carry_a_window_per_round_trip() {
    let window = 20 * 1448;
    let totals = run(&loaded(vec![hop(line(100, 50, Limit::Unlimited))], transfer(3, window), None), 1);
    // The last two seconds: the windows are open.
    for stream in &totals.streams {
        let (from, to) = (stream.intervals[3].delivered, stream.intervals[7].delivered);
        let rate = 8.0 * (to.count() - from.count()) as f64 / 2.0;
        let bound = 8.0 * window as f64 / 0.100;
        assert!((rate / bound - 1.0).abs() < 0.03, "{rate} of {bound}");
    }
}

#[test]
fn a_path_that_strips_the_window_scale_bounds_every_window() {
    let mut narrow = hop(line(100, 50, Limit::Unlimited));
    let wide = run(&loaded(vec![narrow.clone()], transfer(1, 1 << 20), None), 1);
    narrow.strips_window_scale = true;
    let narrow = run(&loaded(vec![narrow], transfer(1, 1 << 20), None), 1);
    let most = |totals: &PathTotals| totals.streams[0].intervals.iter().map(|at| at.flight.count()).max();
    assert!(most(&narrow) <= Some(65_535));
    assert!(most(&wide) > Some(200_000));
    assert!(delivered(&narrow) < delivered(&wide) / 2);
}

#[test]
fn data_of_the_way_back_meets_the_lines_of_the_way_back() {
    let mut one_way = hop(line(50, 10, Limit::Unlimited));
    one_way.backward = line(5, 10, Limit::Bytes(Bytes::new(30_000)));
    let mut spec = loaded(vec![one_way], transfer(1, 1 << 20), None);
    spec.transfer.as_mut().expect("there is one").forward = false;
    let rate = 8 * delivered(&run(&spec, 1)) / 4;
    assert!((4_000_000..=5_000_000).contains(&rate), "{rate} bit/s");
}

#[test]
fn answers_that_come_after_the_transfer_are_waited_for_until_they_are_late() {
    // 64 segments of each stream stand before 1 Mbit/s: more than a second.
    let slow = |timeout| {
        let mut spec = loaded(vec![hop(line(1, 1, Limit::Unlimited))], transfer(2, 64 * 1448), probe(40));
        spec.probe.as_mut().expect("there is one").timeout_ps = Span::from_ms(timeout);
        run(&spec, 1).answers
    };
    let patient = slow(5_000);
    assert_eq!(patient.len(), 40);
    assert!(patient.iter().any(|&(_, rtt)| rtt > Span::from_ms(1_000)));
    let strict = slow(800);
    assert!(strict.len() < 40 && strict.iter().all(|&(_, rtt)| rtt <= Span::from_ms(800)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_the_path_frames_are_conserved_and_no_answer_beats_light(
        mbps in 1_u64..40, delay_ms in 0_u64..60, kib in 8_u64..200, loss in 0.0..0.05, streams in 1_u32..6, seed: u64
    ) {
        let mut forward = line(mbps, delay_ms, Limit::Bytes(Bytes::new(kib << 10)));
        forward.loss = LossModel::Random { probability: loss };
        forward.duplicate = 0.01;
        let spec = loaded(vec![hop(forward), hop(line(50, 3, Limit::Unlimited))], transfer(streams, kib << 10), probe(20));
        let totals = run(&spec, seed);
        for counters in &totals.lines {
            prop_assert!(counters.left + counters.lost + counters.dropped <= counters.arrived + counters.duplicated);
        }
        let [there, on, back, last] = [0, 2, 1, 3].map(|i| totals.lines[i]);
        prop_assert!(on.arrived == there.left && back.arrived == last.left, "what leaves a hop enters the next");
        prop_assert!(totals.answers.iter().all(|&(_, rtt)| rtt > Span::from_ms(2 * delay_ms + 6)));
        prop_assert!(totals.answers.len() <= 20);
        let time = totals.counted.as_secs_f64();
        prop_assert!(8.0 * delivered(&totals) as f64 / time <= mbps as f64 * 1e6);
        for stream in &totals.streams {
            prop_assert!(stream.delivered.count() <= stream.sender.bytes);
            prop_assert!(stream.intervals.windows(2).all(|two| two[0].delivered <= two[1].delivered));
        }
        let again = run(&spec, seed);
        prop_assert_eq!(&again.answers, &totals.answers);
        prop_assert_eq!(delivered(&again), delivered(&totals));
    }
}
