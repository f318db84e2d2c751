//! What stands behind the front of a crowded bucket.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The events of a crowd that stand behind the front.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// The next one last.
    pub(super) sorted: Vec<u64>,
    pub(super) late: BinaryHeap<Reverse<u64>>,
}

impl Rest {
    /// The key of the next event; the greatest number without one.
    #[inline]
    pub(super) fn least(&self) -> u64 {
        let sorted = self.sorted.last().copied().unwrap_or(u64::MAX);
        sorted.min(self.late.peek().map_or(u64::MAX, |late| late.0))
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<u64> {
        let late = self.late.peek().map_or(u64::MAX, |late| late.0);
        match self.sorted.last() {
            Some(&key) if key <= late => self.sorted.pop(),
            _ => self.late.pop().map(|late| late.0),
        }
    }
}
