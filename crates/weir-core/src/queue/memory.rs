//! The memory that the ports of a switch share: what it holds, and whether a queue may have more of it.
//!
//! With a dynamic threshold a queue may grow to `alpha` times what is free. So `n` queues that all want more get
//! `alpha / (1 + n alpha)` of the memory each, and the rest stays free for those that come.
//!
//! Source: Choudhury Hahne 1998, section III, equations 1 and 2 (dynamic threshold, and where it settles)

use crate::ethernet::pause::Amount;
use crate::host::{Integral, Picoseconds};
use crate::units::{Bytes, Time};

/// A limited space, what it holds and the most that it held: in bytes, or in frames of one size.
#[derive(Clone, Copy, Debug)]
pub struct Space<A> {
    level: A,
    limit: A,
    most: A,
}

impl<A: Amount> Space<A> {
    /// An empty one.
    pub const fn new(limit: A) -> Space<A> {
        Space { level: A::LEAST, limit, most: A::LEAST }
    }

    /// What it holds.
    #[inline(always)]
    pub fn level(&self) -> A {
        self.level
    }

    /// What is free.
    #[inline(always)]
    pub fn free(&self) -> A {
        self.limit.less(self.level)
    }

    /// So much comes.
    #[inline(always)]
    pub fn add(&mut self, amount: A) {
        self.level = self.level.plus(amount);
    }

    /// So much leaves.
    #[inline(always)]
    pub fn take(&mut self, amount: A) {
        self.level = self.level.less(amount);
    }

    /// What it holds now counts for the most.
    #[inline(always)]
    pub fn note(&mut self) {
        self.most = self.most.max(self.level);
    }

    /// The most that it held.
    pub fn most(&self) -> A {
        self.most
    }
}

/// A memory and what it holds, with an integral over time.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    space: Space<u64>,
    alpha: Option<f64>,
    integral: Integral<Picoseconds>,
}

impl SharedMemory {
    /// An empty memory of `limit`, with a dynamic threshold if `alpha` is given, which is above 0.
    pub fn new(limit: Bytes, alpha: Option<f64>) -> SharedMemory {
        SharedMemory { space: Space::new(limit.count()), alpha, integral: Integral::default() }
    }

    /// Whether `size` more has room, for a queue in which `waiting` waits.
    #[inline]
    pub fn admits(&self, waiting: Bytes, size: Bytes) -> bool {
        size.count() <= self.space.free() && self.alpha.is_none_or(|alpha| self.is_below(alpha, waiting + size))
    }

    /// Whether a queue may hold so much.
    fn is_below(&self, alpha: f64, wanted: Bytes) -> bool {
        wanted.count() as f64 <= alpha * self.space.free() as f64
    }

    /// What it holds.
    pub fn level(&self) -> Bytes {
        Bytes::new(self.space.level())
    }

    /// A frame is stored at `now`.
    pub fn add(&mut self, now: Time, size: Bytes) {
        self.integral.add(now, size.count());
        self.space.add(size.count());
        self.space.note();
    }

    /// A frame begins to leave at `now`.
    pub fn take(&mut self, now: Time, size: Bytes) {
        self.integral.take(now, size.count());
        self.space.take(size.count());
    }

    /// The most that it held, and the integral of what it held up to `now`, byte ps.
    pub fn totals_at(&self, now: Time) -> (Bytes, u128) {
        (Bytes::new(self.space.most()), self.integral.up_to(now, self.space.level()))
    }
}
