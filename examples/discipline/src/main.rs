//! What a deadline does to an incast: `cargo run --release -p weir-example-discipline`.

use std::error::Error;

use weir_core::queue::Custom;
use weir_core::spec::aqm::Aqm;
use weir_example_discipline::{incast, parts};
use weir_sim::{Plan, Progress, simulate};

fn main() -> Result<(), Box<dyn Error>> {
    for most_us in [1e6, 100.0, 20.0] {
        let aqm = Aqm::Custom(Custom::new("deadline", &[("most_us", most_us)]));
        let plan = Plan::with_parts(incast(aqm), parts())?;
        let run = &simulate(&plan, &[1], 1, &Progress::new())?[0];
        let (delivered, delay) = run
            .flows
            .iter()
            .fold((0, 0), |(frames, delay), flow| (frames + flow.delivered_frames, delay + flow.delay_sum_ps));
        println!("at most {most_us:7} us: {delivered} frames, {:.1} us each", delay as f64 / delivered as f64 / 1e6);
    }
    Ok(())
}
