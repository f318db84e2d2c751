//! What Scalable TCP carries over a lossy link, compared with Reno and CUBIC: `cargo run --release -p weir-example-controller`.

use std::error::Error;

use weir_core::cc::Config;
use weir_core::units::Span;
use weir_example_controller::{lossy, parts};
use weir_sim::{Plan, Progress, simulate};

fn main() -> Result<(), Box<dyn Error>> {
    let duration = Span::from_ms(60_000);
    for (name, control) in
        [("reno", Config::reno()), ("cubic", Config::cubic()), ("scalable", Config::custom("scalable", &[]))]
    {
        let plan = Plan::with_parts(lossy(control, 1e-4, duration), parts())?;
        let runs = simulate(&plan, &[1, 2, 3], 1, &Progress::new())?;
        let acked: u64 = runs.iter().map(|run| run.connections[0].sender.acked_bytes).sum();
        let mbps = acked as f64 * 8.0 / runs.len() as f64 / duration.as_secs_f64() / 1e6;
        println!("{name:8} {mbps:6.1} Mbit/s");
    }
    Ok(())
}
