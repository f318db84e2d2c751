//! The congestion benchmark on either engine: throughput, cells per second of CPU time, and the time that it takes.
//!
//!     cargo run --release --example hotspot -- [--children 32] [--parents 1] [--hotspot og|ig|none]
//!         [--ps 0.03 --gd 0.002 [--half]] [--burst 1] [--load 0.85] [--slots 60000] [--warm-up 4000]
//!         [--round-trip 0] [--seed 0] [--no-flows] [--event] [--frame-bytes 64] [--threads 1]
//!
//! Throughputs are counted by the thousand slots: they are null where the warm-up, or half of the slots, is no multiple.

mod process;

use std::process::ExitCode;

use weir_sim::hotspots::{Benchmark, Hotspot};
use weir_sim::{Plan, Progress, simulate};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<String, String> {
    let text = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let number = |name: &str, default: f64| match text(name) {
        None => Ok(default),
        Some(word) => word.parse().map_err(|_| format!("{name}: no number: '{word}'")),
    };
    let list = |name: &str, default: &[u32]| match text(name) {
        None => Ok(default.to_vec()),
        Some(word) => {
            word.split(',').map(|part| part.parse().map_err(|_| format!("{name}: no number: '{part}'"))).collect()
        }
    };
    let mut benchmark = Benchmark::single_stage(32);
    benchmark.children = list("--children", &[32])?;
    benchmark.parents = list("--parents", &[1])?;
    benchmark.load = number("--load", 0.85)?;
    benchmark.burst = number("--burst", 1.0)?;
    benchmark.slots = number("--slots", 60_000.0)? as u64;
    benchmark.warm_up = number("--warm-up", 4000.0)? as u64;
    benchmark.round_trip = number("--round-trip", 0.0)? as u64;
    benchmark.flows = !words.iter().any(|word| word == "--no-flows");
    benchmark.is_event = words.iter().any(|word| word == "--event");
    benchmark.frame_bytes = number("--frame-bytes", 64.0)? as u64;
    benchmark.hotspot = match text("--hotspot").map_or("og", String::as_str) {
        "og" => Hotspot::Output(0.2),
        "ig" => Hotspot::Inputs(benchmark.hosts() / 4),
        "none" => Hotspot::None,
        other => return Err(format!("--hotspot: og, ig or none (got '{other}')")),
    };
    if text("--ps").is_some() {
        benchmark = benchmark.with_bcn(number("--ps", 0.03)?, number("--gd", 0.002)?);
        if words.iter().any(|word| word == "--half") {
            benchmark.control = benchmark.control.map(|gains| weir_sim::hotspots::Gains { q_eq_divisor: 2, ..gains });
        }
    }
    let mut spec = benchmark.spec();
    let every_ps = benchmark.slot() * 1000;
    spec.record.traffic = (0..2).map(|traffic| weir_core::spec::TrafficProbe { traffic, every_ps }).collect();
    let plan = Plan::new(spec).map_err(|error| error.to_string())?;
    let threads = number("--threads", 1.0)? as usize;
    let before = process::times()?;
    let seeds = [number("--seed", 0.0)? as u64];
    let totals = simulate(&plan, &seeds, threads, &Progress::new()).map_err(|error| error.to_string())?.remove(0);
    let after = process::times()?;
    let (cpu, wall) = (after[0] - before[0], after[1] - before[1]);
    let (from, middle) = (benchmark.warm_up / 1000, benchmark.warm_up / 1000 + benchmark.slots / 2000);
    let second_half = totals.deliveries.iter().flat_map(|(_, rows)| &rows[middle as usize..]).map(|row| row.frames);
    let aggregate = second_half.sum::<u64>() as f64 / (benchmark.slots / 2) as f64 / f64::from(benchmark.hosts());
    let whole = benchmark.warm_up.is_multiple_of(1000) && benchmark.slots.is_multiple_of(2000);
    let share = |value: f64| if whole { format!("{value:.4}") } else { "null".into() };
    let rows: Vec<_> = totals.intervals.rows().map(|(_, row)| row).collect();
    let hot = rows[from as usize..].iter().map(|row| row.frames).sum::<u64>() as f64 / benchmark.slots as f64;
    let sum = |of: fn(&weir_sim::FlowTotals) -> u64| totals.flows.iter().map(of).sum::<u64>();
    let drops: u64 = totals.ports.iter().map(|port| port.counters.drops).sum();
    let peak = totals.memories.iter().map(|memory| memory.max_bytes / benchmark.frame_bytes).max().unwrap_or(0);
    let xoffs: u64 = totals.memories.iter().map(|memory| memory.xoffs).sum();
    let queue = rows.last().map_or(0, |row| row.queue_bytes / benchmark.frame_bytes);
    Ok(format!(
        "{{\"aggregate\":{},\"hot\":{},\"drops\":{drops},\"peak\":{peak},\"xoffs\":{xoffs},\
         \"queue\":{queue},\"generated\":{},\"delivered\":{},\"dropped\":{},\"packet_hops\":{},\"cpu_s\":{cpu:.3},\
         \"wall_s\":{wall:.3},\"mhops_per_s\":{:.1},\"peak_rss_bytes\":{}}}",
        share(aggregate),
        share(hot),
        sum(|flow| flow.sent_frames),
        sum(|flow| flow.delivered_frames),
        sum(|flow| flow.dropped_frames),
        totals.packet_hops,
        totals.packet_hops as f64 / cpu / 1e6,
        process::peak_rss_bytes()
    ))
}
