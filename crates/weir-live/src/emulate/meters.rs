//! What others may see of an emulator at work, without holding it up.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_core::path::LineCounters;
use weir_core::units::Bytes;

/// What each direction of each hop has counted, in the order of [`super::Report::lines`]. The emulator writes after each
/// of its turns, anybody reads at any time; figures of one reading may be of two turns in a row.
#[derive(Debug, Default)]
pub struct Meters {
    lines: Vec<Dials>,
}

/// One direction as it was when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Packets that came.
    pub arrived: u64,
    /// Packets that left.
    pub left: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Lost at random.
    pub lost: u64,
    /// Dropped by a queue, full or managed.
    pub dropped: u64,
    /// Marked by it.
    pub marked: u64,
    /// What waits before the transmitters.
    pub waiting_bytes: u64,
}

#[derive(Debug, Default)]
struct Dials([AtomicU64; 7]);

impl Meters {
    /// For so many hops, which have two directions each; all figures 0.
    pub fn of(hops: usize) -> Meters {
        Meters { lines: (0..2 * hops).map(|_| Dials::default()).collect() }
    }

    /// All directions.
    pub fn read(&self) -> Vec<Reading> {
        let reading = |dials: &Dials| {
            let [arrived, left, left_bytes, lost, dropped, marked, waiting_bytes] =
                std::array::from_fn(|i| dials.0[i].load(Ordering::Relaxed));
            Reading { arrived, left, left_bytes, lost, dropped, marked, waiting_bytes }
        };
        self.lines.iter().map(reading).collect()
    }

    /// Sets one direction; does nothing where there is none of this number.
    pub(super) fn set(&self, line: usize, counters: &LineCounters, left_bytes: u64, waiting: Bytes) {
        let Some(dials) = self.lines.get(line) else { return };
        let dropped = counters.dropped + counters.dropped_early;
        let figures =
            [counters.arrived, counters.left, left_bytes, counters.lost, dropped, counters.marked, waiting.count()];
        for (dial, figure) in dials.0.iter().zip(figures) {
            dial.store(figure, Ordering::Relaxed);
        }
    }
}
