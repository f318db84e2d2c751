//! Ports that wait for each other and will never go on.
//!
//! A class of a transmitter is held by the switch behind it as long as too much waits there of what it sent. If all outputs that this waits for are
//! held themselves, by the same, nothing of it ever leaves. The largest set of holds of which each waits for others of the set alone is the deadlock.

use weir_core::units::{Span, Time};

use super::Fabric;
use crate::totals::DeadlockTotals;

/// Time between two looks.
const EVERY: Span = Span::from_us(100);

/// A class of a port that is held, and the outputs that it waits for.
struct Waits {
    held: (u32, u8),
    since: Time,
    outputs: Vec<(u32, u8)>,
}

impl Fabric<'_> {
    /// A stop has taken effect: looks for a deadlock, if that was not done lately. A stop that is repeated finds one, too.
    pub(super) fn watch_for_deadlock(&mut self) {
        let now = self.now;
        let Some(control) = self.control.as_mut().filter(|control| control.pools.is_some()) else { return };
        if now >= control.looks {
            control.looks = now + EVERY;
            self.find_deadlocks();
        }
    }

    /// Notes what deadlocks there are now that were not known, and which are over.
    pub(super) fn find_deadlocks(&mut self) {
        let (now, found) = (self.now, self.deadlocks());
        let Some(control) = &mut self.control else { return };
        let is_same = |one: &DeadlockTotals, other: &DeadlockTotals| {
            (one.port, one.class, one.since) == (other.port, other.class, other.since)
        };
        for known in control.deadlocks.iter_mut().filter(|known| known.over.is_none()) {
            known.over = (!found.iter().any(|row| is_same(row, known))).then_some(now);
        }
        for row in found {
            if !control.deadlocks.iter().any(|known| known.over.is_none() && is_same(known, &row)) {
                control.deadlocks.push(row);
            }
        }
    }

    /// The holds that never end, as it is now.
    fn deadlocks(&self) -> Vec<DeadlockTotals> {
        let Some(control) = &self.control else { return Vec::new() };
        let Some(pools) = &control.pools else { return Vec::new() };
        let topology = &self.plan.topology;
        let mut waits: Vec<Waits> = Vec::new();
        for (port, extra) in (0..).zip(&control.extras) {
            let Some(held) = &extra.held else { continue };
            let number = pools.number(port);
            let Some(switch) = pools.seen(topology.ports[port as usize].to) else { continue };
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
        let found = self.now;
        let row = |Waits { held: (port, class), since, .. }| DeadlockTotals { port, class, since, found, over: None };
        waits.into_iter().map(row).collect()
    }
}
