//! The memory that the ports of a switch share: what it holds, and whether a queue may have more of it.
//!
//! With a dynamic threshold a queue may grow to `alpha` times what is free. So `n` queues that all want more get
//! `alpha / (1 + n alpha)` of the memory each, and the rest stays free for those that come.
//!
//! Source: Choudhury Hahne 1998, section III, equations 1 and 2 (dynamic threshold, and where it settles)

use crate::units::{Bytes, Time};

/// A memory and what it holds.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    limit: u64,
    alpha: Option<f64>,
    level: u64,
    most: u64,
    settled: Time,
    byte_ps: u128,
}

impl SharedMemory {
    /// An empty memory without a limit.
    pub const UNLIMITED: SharedMemory =
        SharedMemory { limit: u64::MAX, alpha: None, level: 0, most: 0, settled: Time::ZERO, byte_ps: 0 };

    /// An empty memory of `limit`, with a dynamic threshold if `alpha` is given, which is above 0.
    pub const fn new(limit: Bytes, alpha: Option<f64>) -> SharedMemory {
        SharedMemory { limit: limit.count(), alpha, ..SharedMemory::UNLIMITED }
    }

    /// Whether `size` more has room, for a queue in which `waiting` waits.
    #[inline]
    pub fn admits(&self, waiting: Bytes, size: Bytes) -> bool {
        self.level + size.count() <= self.limit && self.alpha.is_none_or(|alpha| self.is_below(alpha, waiting + size))
    }

    /// Whether a queue may hold so much.
    fn is_below(&self, alpha: f64, wanted: Bytes) -> bool {
        wanted.count() as f64 <= alpha * (self.limit - self.level) as f64
    }

    /// What it holds.
    pub fn level(&self) -> Bytes {
        Bytes::new(self.level)
    }

    /// A frame is stored at `now`.
    pub fn add(&mut self, now: Time, size: Bytes) {
        self.settle(now);
        self.level += size.count();
        self.most = self.most.max(self.level);
    }

    /// A frame begins to leave at `now`.
    pub fn take(&mut self, now: Time, size: Bytes) {
        self.settle(now);
        self.level -= size.count();
    }

    /// The most that it held, and the integral of what it held up to `now`, byte ps.
    pub fn totals_at(&mut self, now: Time) -> (Bytes, u128) {
        self.settle(now);
        (Bytes::new(self.most), self.byte_ps)
    }

    fn settle(&mut self, now: Time) {
        self.byte_ps += u128::from(self.level) * u128::from(now.saturating_since(self.settled).ps());
        self.settled = now;
    }
}
