//! The exact counts of the published workloads.

use std::ops::ControlFlow;

use weir_core::spec::Spec;
use weir_sim::{Feeding, Plan, PushedSource, Sim, Totals, workloads};

use crate::scenarios::run_fed;

/// Packet-hops, and frames generated, delivered and dropped.
fn counts(totals: &Totals) -> [u64; 4] {
    let sum = |of: fn(&weir_sim::FlowTotals) -> u64| totals.flows.iter().map(of).sum();
    [totals.packet_hops, sum(|f| f.sent_frames), sum(|f| f.delivered_frames), sum(|f| f.dropped_frames)]
}

fn both_ways(spec: &Spec) -> [[u64; 4]; 2] {
    [Feeding::Pulled, Feeding::Pushed].map(|feeding| counts(&run_fed(spec, 0, feeding)))
}

#[test]
fn incast_gives_the_exact_counts() {
    assert_eq!(both_ways(&workloads::incast()), [[245_943, 162_614, 83_331, 79_180]; 2]);
}

#[test]
fn a_fat_tree_gives_the_exact_counts() {
    assert_eq!(both_ways(&workloads::fat_tree(8)), [[712_643, 170_766, 102_064, 61_597]; 2]);
}

#[test]
fn a_slotted_switch_gives_the_exact_counts_and_loses_nothing() {
    let totals = both_ways(&workloads::slotted_switch());
    assert_eq!(totals, [[2_123_938, 1_062_448, 1_061_790, 0]; 2]);
}

#[test]
fn a_workload_does_not_depend_on_the_seed() {
    let plan = Plan::new(workloads::incast()).expect("a legal spec");
    let run =
        |seed| Sim::<PushedSource>::new(&plan, seed, []).run(|_| ControlFlow::Continue(())).expect("a lawful run");
    assert_eq!(run(1).flows, run(2).flows);
}
