//! The memory that the output queues of a switch share.

use weir_core::spec::switching::MemoryPause;
use weir_core::units::{Bytes, Time};

use crate::totals::MemoryTotals;

/// What waits in a switch.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// All that may wait.
    limit: u64,
    pub(super) level: u64,
    most: u64,
    settled: Time,
    byte_ps: u128,
    pub(super) pause: Option<MemoryPause>,
    /// Whether all neighbours were asked to stop.
    pub(super) is_above: bool,
    pub(super) xoffs: u64,
    /// The ports that lead to the switch.
    pub(super) inputs: Vec<u32>,
}

impl Memory {
    /// An empty memory without a limit.
    pub(super) fn new() -> Memory {
        Memory {
            limit: u64::MAX,
            level: 0,
            most: 0,
            settled: Time::ZERO,
            byte_ps: 0,
            pause: None,
            is_above: false,
            xoffs: 0,
            inputs: Vec::new(),
        }
    }

    /// Limits it.
    pub(super) fn limit(&mut self, bytes: Bytes, pause: Option<MemoryPause>) {
        (self.limit, self.pause) = (bytes.count(), pause);
    }

    /// Whether `size` more has room.
    pub(super) fn has_room(&self, size: Bytes) -> bool {
        self.level + size.count() <= self.limit
    }

    /// A frame is stored at `now`.
    pub(super) fn add(&mut self, now: Time, size: Bytes) {
        self.settle(now);
        self.level += size.count();
        self.most = self.most.max(self.level);
    }

    /// A frame begins to leave at `now`.
    pub(super) fn take(&mut self, now: Time, size: Bytes) {
        self.settle(now);
        self.level -= size.count();
    }

    fn settle(&mut self, now: Time) {
        self.byte_ps += u128::from(self.level) * u128::from(now.saturating_since(self.settled).ps());
        self.settled = now;
    }

    /// What it held up to `end`.
    pub(super) fn totals(&mut self, node: u32, end: Time) -> MemoryTotals {
        self.settle(end);
        MemoryTotals { node, max_bytes: self.most, byte_ps: self.byte_ps, xoffs: self.xoffs }
    }
}
