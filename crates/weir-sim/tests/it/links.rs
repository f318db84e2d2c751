//! Links that lose frames, and ports whose frames are captured.

use std::ops::ControlFlow;

use proptest::prelude::*;
use weir_core::path::LossModel;
use weir_core::spec::{Capture, LinkSpec, Network, Spec, Traffic};
use weir_core::units::{Span, Time};
use weir_sim::workloads::{calibration, calibration_pause, dumbbell};
use weir_sim::{DropCause, Feeding, Plan, Progress, Sim, Totals, simulate};

use crate::scenarios::{LINK, SWITCH, any_scenario, constant, run, run_fed, spec};

const HALF: LossModel = LossModel::Random { probability: 0.5 };

/// A star of three hosts whose links lose frames as said.
fn star(loss: LossModel, sources: usize) -> Spec {
    let sources = (0..sources as u32).map(|host| constant(host, 2, 2_500)).collect();
    let link = LinkSpec { loss, ..LINK };
    Spec { network: Network::Star { hosts: 3, link, switch: SWITCH }, ..spec(3, sources, Span::from_ms(20)) }
}

fn lost(totals: &Totals, flow: u32) -> Vec<u64> {
    let of_flow = totals.drops.iter().filter(|drop| drop.flow == flow && drop.cause == DropCause::LinkLoss);
    of_flow.map(|drop| drop.frames).collect()
}

fn capture(ports: Vec<u32>, frames: u64) -> Capture {
    Capture { name: "wire".into(), ports, from_ps: Time::ZERO, to_ps: Time::NEVER, frames }
}

fn standard(spec: &Spec) -> Totals {
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    Sim::standard(&plan, 1).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

/// Interface and stamp in ns of each frame of a pcapng file.
fn frames(content: &[u8]) -> Vec<(u32, u64)> {
    let word = |at: usize| u32::from_le_bytes(content[at..at + 4].try_into().expect("four bytes"));
    let mut found = Vec::new();
    let mut at = 0;
    while at < content.len() {
        if word(at) == 6 {
            found.push((word(at + 8), u64::from(word(at + 12)) << 32 | u64::from(word(at + 16))));
        }
        at += word(at + 4) as usize;
    }
    found
}

#[test]
fn each_link_loses_its_share_of_what_comes_to_it() {
    let bursts = LossModel::GilbertElliott { to_bad: 0.02, to_good: 0.1, loss_good: 0.01, loss_bad: 0.5 };
    for (loss, spread) in [(LossModel::Random { probability: 0.1 }, 1.0), (bursts, 4.0)] {
        let totals = run(&star(loss, 1), 3);
        let sent = totals.flows[0].sent_frames as f64;
        let [first, second] = lost(&totals, 0)[..] else { panic!("two links lose frames: {:?}", totals.drops) };
        let share = loss.mean();
        // Four standard deviations of a binomial share, and more where losses come together.
        let bound = |frames: f64| 4.0 * spread * (share * (1.0 - share) / frames).sqrt();
        assert!((first as f64 / sent - share).abs() < bound(sent), "{loss:?}: {first} of {sent}");
        let left = sent - first as f64;
        assert!((second as f64 / left - share).abs() < bound(left), "{loss:?}: {second} of {left}");
        assert_eq!(totals.flows[0].dropped_frames, first + second);
    }
}

#[test]
fn what_a_link_loses_has_used_it() {
    let totals = run(&star(HALF, 1), 1);
    let [first, _] = lost(&totals, 0)[..] else { panic!("two links lose frames") };
    assert_eq!(totals.ports[0].counters.frames, totals.flows[0].sent_frames);
    assert_eq!(totals.ports[0].counters.drops, 0, "the queue dropped nothing");
    assert_eq!(totals.packet_hops, totals.ports[0].counters.frames - first + totals.flows[0].delivered_frames);
}

#[test]
fn another_link_that_loses_frames_does_not_change_what_this_one_loses() {
    // The second source comes over a link of its own; the flow of the first loses the same frames on its first link.
    let (alone, both) = (run(&star(HALF, 1), 5), run(&star(HALF, 2), 5));
    assert_eq!(lost(&alone, 0)[0], lost(&both, 0)[0]);
    assert_ne!(lost(&both, 0)[0], lost(&both, 1)[0], "each has its own stream of chance");
}

#[test]
fn a_link_that_loses_all_delivers_nothing_and_the_run_ends() {
    let totals = run(&star(LossModel::Random { probability: 1.0 }, 2), 1);
    assert_eq!(totals.packet_hops, 0);
    assert!(totals.flows.iter().all(|flow| flow.delivered_frames == 0 && flow.dropped_frames == flow.sent_frames));
}

#[test]
fn notifications_and_pause_are_lost_like_data() {
    let lossy = |mut spec: Spec, probability: f64| {
        let Network::Graph { links, .. } = &mut spec.network else { panic!("the calibration is a graph") };
        links.iter_mut().for_each(|link| link.link.loss = LossModel::Random { probability });
        spec.run.duration_ps = Span::from_ms(10);
        spec
    };
    let mut paused = calibration();
    paused.control.pause = vec![calibration_pause()];
    for spec in [calibration(), paused] {
        let totals = standard(&lossy(spec.clone(), 0.2));
        assert!(totals.drops.iter().any(|drop| drop.cause == DropCause::LinkLoss));
        assert!(totals.control.frames.iter().map(|row| row.frames).sum::<u64>() > 10);
        // At 60 % so little gets through that the hot port is never overloaded.
        let quiet = standard(&lossy(spec, 0.6));
        assert!(quiet.ports.iter().all(|port| port.pauses.count == 0));
    }
}

#[test]
fn connections_recover_what_links_lose() {
    let mut spec = dumbbell(2);
    spec.traffic.truncate(1);
    spec.run.duration_ps = Span::from_ms(3_000);
    let Network::Dumbbell { bottleneck, .. } = &mut spec.network else { panic!("a dumbbell") };
    bottleneck.loss = LossModel::Random { probability: 0.01 };
    let totals = standard(&spec);
    for row in &totals.connections {
        assert!(row.sender.recoveries > 10 && row.receiver.delivered_bytes > 1_000_000, "{row:?}");
    }
}

#[test]
fn a_capture_holds_headers_in_order_of_time_and_says_what_it_left_out() {
    let mut spec = dumbbell(2);
    spec.run.duration_ps = Span::from_ms(500);
    let ports = vec![0, 1, 2];
    spec.record.captures = vec![capture(ports.clone(), 1 << 20)];
    let whole = standard(&spec);
    spec.record.captures[0].frames = 100;
    let short = standard(&spec);
    let (all, first) = (frames(&whole.captures[0].content), frames(&short.captures[0].content));
    assert_eq!((first.len(), short.captures[0].frames), (100, 100));
    assert_eq!(short.captures[0].left_out, all.len() as u64 - 100);
    assert_eq!(first, all[..100]);
    assert!(all.is_sorted_by_key(|&(_, ns)| ns));
    spec.record.captures = vec![Capture {
        from_ps: Time::ZERO + Span::from_ms(100),
        to_ps: Time::ZERO + Span::from_ms(200),
        ..capture(ports, 1 << 20)
    }];
    let part: Vec<_> = all.into_iter().filter(|&(_, ns)| (100_000_000..200_000_000).contains(&ns)).collect();
    assert_eq!(frames(&standard(&spec).captures[0].content), part);
}

#[test]
fn the_same_seed_gives_the_same_capture_on_any_number_of_threads() {
    let mut spec = dumbbell(2);
    spec.run.duration_ps = Span::from_ms(200);
    spec.record.captures = vec![capture(vec![8, 9], 1 << 20)];
    let plan = Plan::new(spec).expect("a legal spec");
    let batch = |threads| simulate(&plan, &[1, 2, 1], threads, &Progress::new()).expect("lawful runs");
    let (one, two) = (batch(1), batch(2));
    assert_eq!(one, two);
    assert_eq!(one[0].captures, one[2].captures);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_capture_holds_each_transmission_once_and_changes_nothing(spec in any_scenario(), seed: u64) {
        let ports = Plan::new(spec.clone()).expect("a legal spec").topology().ports.len() as u32;
        let mut watched = spec.clone();
        watched.record.captures = vec![capture((0..ports).collect(), 1 << 20)];
        let facts = |totals: &Totals| Totals { events: 0, captures: vec![], ..totals.clone() };
        let (with, without) = (run(&watched, seed), run(&spec, seed));
        prop_assert_eq!(facts(&with), facts(&without));
        prop_assert_eq!(&with.captures, &run_fed(&watched, seed, Feeding::Pushed).captures);
        let mut seen = vec![0; ports as usize];
        let written = frames(&with.captures[0].content);
        written.iter().for_each(|&(interface, _)| seen[interface as usize] += 1);
        prop_assert_eq!(seen, with.ports.iter().map(|port| port.counters.frames).collect::<Vec<_>>());
        prop_assert!(written.is_sorted_by_key(|&(_, ns)| ns));
    }
}

#[test]
fn what_cannot_be_captured_is_refused_with_its_place() {
    let mut spec = star(LossModel::None, 1);
    let fault = |spec: &Spec| Plan::new(spec.clone()).expect_err("it is refused").pointer;
    spec.record.captures = vec![capture(vec![0, 0], 10)];
    assert_eq!(fault(&spec), "/record/captures/0/ports/1");
    spec.record.captures = vec![capture(vec![99], 10)];
    assert_eq!(fault(&spec), "/record/captures/0/ports/0");
    spec.record.captures = vec![capture(vec![0], 0)];
    assert_eq!(fault(&spec), "/record/captures/0/frames");
    spec.record.captures = vec![capture(vec![0], 10), capture(vec![1], 10)];
    assert_eq!(fault(&spec), "/record/captures/1/name");
    let wrong = star(LossModel::Random { probability: 1.5 }, 1);
    assert_eq!(fault(&wrong), "/network/link/loss/probability");
    let none = Spec { traffic: Vec::<Traffic>::new(), ..star(HALF, 1) };
    assert!(Plan::new(none).is_ok());
}
