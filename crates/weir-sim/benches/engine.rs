//! Packet-hops per second of the workloads with published exact counts, conservation checks included:
//!
//!     cargo bench -p weir-sim

use std::ops::ControlFlow;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use weir_core::spec::Spec;
use weir_core::spec::control::Control;
use weir_sim::hotspots::{Benchmark, Hotspot};
use weir_sim::{Plan, Progress, PushedSource, Sim, Totals, simulate, workloads};

fn run(plan: &Plan) -> Totals {
    Sim::<PushedSource>::new(plan, 0, []).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

fn packet_hops(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet-hops");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let specs = [
        ("w1 incast", workloads::incast()),
        ("w3 fat tree, k = 8", workloads::fat_tree(8)),
        ("w3 fat tree, k = 16", workloads::fat_tree(16)),
        ("w4 slotted switch", workloads::slotted_switch()),
    ];
    for (name, spec) in specs {
        let plan = Plan::new(spec).expect("a legal spec");
        group.throughput(Throughput::Elements(run(&plan).packet_hops));
        group.bench_function(name, |bencher| bencher.iter(|| run(&plan)));
    }
    group.finish();
}

/// Runs per second of the BCN calibration: 80 ms of four flows under BCN, without and with PAUSE.
fn calibration(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("calibration");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let paused = Spec {
        control: Control { pause: vec![workloads::calibration_pause()], ..workloads::calibration().control },
        ..workloads::calibration()
    };
    for (name, spec) in [("bcn", workloads::calibration()), ("pause + bcn", paused)] {
        let plan = Plan::new(spec).expect("a legal spec");
        group.bench_function(name, |bencher| bencher.iter(|| run(&plan)));
    }
    group.finish();
}

/// Frames per link and second of the slotted engine: one switch at 85 % without and with congestion management.
fn cell_hops(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cell-hops");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let switch = Benchmark { slots: 60_000, hotspot: Hotspot::None, ..Benchmark::single_stage(32) };
    let controlled = Benchmark::single_stage(32).with_bcn(0.03, 0.002);
    for (name, benchmark) in [("32 ports", switch), ("32 ports, hotspot, BCN", controlled)] {
        let plan = Plan::new(benchmark.spec()).expect("a legal spec");
        let run = || simulate(&plan, &[0], 1, &Progress::new()).expect("a lawful run").remove(0);
        group.throughput(Throughput::Elements(run().packet_hops));
        group.bench_function(name, |bencher| bencher.iter(run));
    }
    group.finish();
}

criterion_group!(benches, packet_hops, calibration, cell_hops);
criterion_main!(benches);
