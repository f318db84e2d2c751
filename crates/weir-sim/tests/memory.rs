//! The memory of runs: in a process of its own, since what other tests occupy would count as well.
#![cfg(target_os = "linux")]

mod resident;

use weir_core::spec::{Departures, Spec};
use weir_core::units::{Bytes, Span};
use weir_sim::workloads::{calibration_pause, incast};

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

#[test]
fn a_frame_that_is_held_by_pause_costs_at_most_47_bytes_however_many_are_held() {
    // Just after powers of two, where what doubles costs most, and between them.
    let costs = resident::costs_of_held(held, [10_300, 15_000, 20_600, 30_000, 41_000]);
    assert!(costs.iter().all(|&(_, bytes)| bytes <= 47.0), "frames held, and bytes for each: {costs:?}");
}
