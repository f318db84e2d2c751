//! What this process occupies.

use std::ops::ControlFlow;

use weir_core::spec::Spec;
use weir_core::units::Span;
use weir_sim::{Plan, Sim};

/// The most memory that this process has occupied.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux reports on processes");
    let most =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse::<u64>().ok());
    1024 * most.unwrap_or_else(|| panic!("no VmHWM in kB: {status}"))
}

/// For runs of `spec` over these times, in us and ever longer: frames that are held at the end, and bytes for each.
pub(crate) fn costs_of_held(spec: impl Fn(Span) -> Spec, times: [u64; 5]) -> [(u64, f64); 5] {
    let start = most_resident();
    times.map(|us| {
        let plan = Plan::new(spec(Span::from_us(us))).expect("a legal spec");
        let totals = Sim::standard(&plan, 1).run(|_| ControlFlow::Continue(())).expect("it runs to its end");
        let frames: u64 = totals.flows.iter().map(|flow| flow.live_frames).sum();
        (frames, (most_resident() - start) as f64 / frames as f64)
    })
}
