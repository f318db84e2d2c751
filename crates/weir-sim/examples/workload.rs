//! Runs one of the workloads with published exact counts, the BCN calibration, or a spec (JSON) from standard input, and prints one line of JSON:
//!
//!     cargo run --release -p weir-sim --example workload -- w3 --k 8 --repeat 5 --probe-us 10
//!
//! `cpu_s` holds the CPU seconds of the process for each repetition, conservation checks included, building the
//! network excluded.

mod process;

use std::ops::ControlFlow;
use std::process::ExitCode;

use weir_core::spec::{PortProbe, Spec};
use weir_core::units::{Span, Time};
use weir_sim::{Plan, Sim, Totals, workloads};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

const USAGE: &str = "usage: workload w1|w2|w3|w4|bcn|pause-bcn|spec [--k EVEN] [--flows N] [--seed N] [--repeat TIMES] [--probe-us INTERVAL]";

fn run(arguments: &[String]) -> Result<String, String> {
    let (name, options) = arguments.split_first().ok_or(USAGE)?;
    let (mut k, mut flows, mut seed, mut repeat, mut probe_us) = (8, 8, 0, 1, None);
    for option in options.chunks(2) {
        let [option, value] = option else { return Err(USAGE.into()) };
        let value: u32 = value.parse().map_err(|_| format!("{option} takes a number (got '{value}')\n{USAGE}"))?;
        match option.as_str() {
            "--k" => k = value,
            "--flows" => flows = value,
            "--seed" => seed = value.into(),
            "--repeat" => repeat = value.max(1),
            "--probe-us" => probe_us = Some(value),
            _ => return Err(USAGE.into()),
        }
    }
    let mut spec = match name.as_str() {
        "w1" => workloads::incast(),
        "w2" => workloads::dumbbell(flows),
        "w3" => workloads::fat_tree(k),
        "w4" => workloads::slotted_switch(),
        "bcn" => workloads::calibration(),
        "pause-bcn" => {
            let mut spec = workloads::calibration();
            spec.control.pause = vec![workloads::calibration_pause()];
            spec
        }
        "spec" => serde_json::from_reader(std::io::stdin().lock()).map_err(|error| error.to_string())?,
        _ => return Err(USAGE.into()),
    };
    if let Some(us) = probe_us {
        probe_all(&mut spec, Span::from_us(us.into()))?;
    }
    let plan = Plan::new(spec).map_err(|error| error.to_string())?;
    let mut cpu = Vec::new();
    let mut last = None;
    for _ in 0..repeat {
        let [before, _] = process::times()?;
        let totals = Sim::standard(&plan, seed).run(|_| ControlFlow::Continue(()));
        cpu.push(process::times()?[0] - before);
        last = Some(totals.map_err(|error| error.to_string())?);
    }
    let totals = last.ok_or("nothing was run")?;
    Ok(json(name, k, &totals, &cpu))
}

fn probe_all(spec: &mut Spec, every_ps: Span) -> Result<(), String> {
    let ports = spec.check().map_err(|error| error.to_string())?.ports.len() as u32;
    spec.record.ports = (0..ports).map(|port| PortProbe { port, every_ps }).collect();
    Ok(())
}

fn json(name: &str, k: u32, totals: &Totals, cpu: &[f64]) -> String {
    let sum = |of: fn(&weir_sim::FlowTotals) -> u64| totals.flows.iter().map(of).sum::<u64>();
    let bytes: Vec<u64> = totals.connections.iter().map(|row| row.receiver.delivered_bytes).collect();
    let mut messages: Vec<_> = totals.messages.iter().map(|row| (row.message, row.delivered)).collect();
    messages.sort_unstable();
    let delivered: Vec<u64> = messages.into_iter().map(|(_, delivered)| delivered.map_or(u64::MAX, Time::ps)).collect();
    let workload = if name == "w3" { format!("w3-k{k}") } else { name.to_string() };
    format!(
        "{{\"workload\": \"{workload}\", \"packet_hops\": {}, \"events\": {}, \"generated\": {}, \"delivered\": {}, \
         \"dropped\": {}, \"live\": {}, \"delivered_bytes\": {bytes:?}, \"delivered_ps\": {delivered:?}, \"cpu_s\": {cpu:?}, \
         \"peak_rss_bytes\": {}}}",
        totals.packet_hops,
        totals.events,
        sum(|flow| flow.sent_frames),
        sum(|flow| flow.delivered_frames),
        sum(|flow| flow.dropped_frames),
        sum(|flow| flow.live_frames),
        process::peak_rss_bytes(),
    )
}
