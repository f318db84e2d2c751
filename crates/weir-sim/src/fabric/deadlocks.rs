//! Ports that wait for each other and will never go on.
//!
//! A class of a transmitter is held by the switch behind it as long as too much waits there of what it sent. If all outputs that this waits for are
//! held themselves, by the same, nothing of it ever leaves. The largest set of holds of which each waits for others of the set alone is the deadlock.

use weir_core::units::Time;

use super::Fabric;
use crate::totals::DeadlockTotals;

/// A class of a port that is held, and the outputs that it waits for.
struct Waits {
    held: (u32, u8),
    since: Time,
    outputs: Vec<(u32, u8)>,
}

impl Fabric<'_> {
    /// The holds that never end, as it is now.
    pub(super) fn deadlocks(&mut self) -> Vec<DeadlockTotals> {
        let Some(control) = &mut self.control else { return Vec::new() };
        let Some(pools) = &mut control.pools else { return Vec::new() };
        let topology = &self.plan.topology;
        let mut waits: Vec<Waits> = Vec::new();
        for (port, extra) in (0..).zip(&control.extras) {
            let Some(held) = &extra.held else { continue };
            let number = pools.number(port);
            let Some(switch) = pools.at(topology.ports[port as usize].to) else { continue };
            for class in switch.buffer.stopped(number).list() {
                let Some(since) = held.holds.since(class) else { continue };
                let outputs = switch.buffer.waits(number, class).map(|(output, _)| (switch.inputs[output] ^ 1, class));
                waits.push(Waits { held: (port, class), since, outputs: outputs.collect() });
            }
        }
        loop {
            let known: Vec<(u32, u8)> = waits.iter().map(|waits| waits.held).collect();
            let before = waits.len();
            waits.retain(|Waits { outputs, .. }| {
                !outputs.is_empty() && outputs.iter().all(|output| known.binary_search(output).is_ok())
            });
            if waits.len() == before {
                break;
            }
        }
        let row = |Waits { held: (port, class), since, .. }| DeadlockTotals { port, class, since };
        waits.into_iter().map(row).collect()
    }
}
