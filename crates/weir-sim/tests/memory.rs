//! The memory of runs: in a process of its own, since what other tests occupy would count as well.
#![cfg(target_os = "linux")]

use std::ops::ControlFlow;

use weir_core::spec::{Departures, Spec};
use weir_core::units::{Bytes, Span};
use weir_sim::workloads::{calibration_pause, incast};
use weir_sim::{Plan, Sim};

/// Four hosts with eight times as much to send as their links carry, which a switch holds most of the time.
fn held(duration_ps: Span) -> Spec {
    let mut spec = incast();
    for source in &mut spec.traffic[0].sources {
        source.departures = Departures::Poisson { mean_gap_ps: 1_200_000.0 / 8.0 };
    }
    let mut pause = calibration_pause();
    (pause.nodes, pause.xoff_bytes, pause.xon_bytes) = (vec![5], Bytes::new(50_000), Bytes::new(40_000));
    spec.control.pause = vec![pause];
    spec.run.duration_ps = duration_ps;
    spec
}

/// The most memory that this process has occupied.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux reports on processes");
    let most =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse::<u64>().ok());
    1024 * most.unwrap_or_else(|| panic!("no VmHWM in kB: {status}"))
}

#[test]
fn a_frame_that_is_held_by_pause_costs_at_most_47_bytes_however_many_are_held() {
    let start = most_resident();
    // Just after powers of two, where what doubles costs most, and between them.
    let costs = [10_300, 15_000, 20_600, 30_000, 41_000].map(|us| {
        let plan = Plan::new(held(Span::from_us(us))).expect("a legal spec");
        let totals = Sim::standard(&plan, 1).run(|_| ControlFlow::Continue(())).expect("it runs to its end");
        let frames: u64 = totals.flows.iter().map(|flow| flow.live_frames).sum();
        (frames, (most_resident() - start) as f64 / frames as f64)
    });
    assert!(costs.iter().all(|&(_, bytes)| bytes <= 47.0), "frames held, and bytes for each: {costs:?}");
}
