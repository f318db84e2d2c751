//! The memory that the output queues of a switch share.

use weir_core::ethernet::pause::Watermarks;
use weir_core::queue::SharedMemory;
use weir_core::spec::switching::MemoryPause;
use weir_core::units::{Bytes, Time};

use crate::totals::MemoryTotals;

/// What waits in a switch.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) shared: SharedMemory,
    pub(crate) pause: Option<MemoryPause>,
    /// Of all that it holds, if that is what PAUSE goes by.
    pub(crate) marks: Watermarks<u64>,
    pub(crate) xoffs: u64,
    /// The ports that lead to the switch.
    pub(crate) inputs: Vec<u32>,
}

impl Memory {
    /// An empty memory without a limit.
    pub(crate) fn new() -> Memory {
        let shared = SharedMemory::new(Bytes::new(u64::MAX), None);
        Memory { shared, pause: None, marks: Watermarks::NONE, xoffs: 0, inputs: Vec::new() }
    }

    /// What it held up to `end`.
    pub(crate) fn totals(&self, node: u32, end: Time) -> MemoryTotals {
        let (most, byte_ps) = self.shared.totals_at(end);
        MemoryTotals { node, max_bytes: most.count(), byte_ps, xoffs: self.xoffs }
    }
}
