//! What strangers can make a receiving end remember, and how much they may ask.

use std::collections::{HashSet, VecDeque};

use weir_core::units::{Span, Time};

use super::super::keys::Nonce;
use super::REMEMBERED;

/// The last [`REMEMBERED`] nonces.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    pub(super) held: HashSet<Nonce>,
    /// The oldest first.
    pub(super) order: VecDeque<Nonce>,
}

impl Remembered {
    pub(super) fn holds(&self, nonce: &Nonce) -> bool {
        self.held.contains(nonce)
    }

    pub(super) fn add(&mut self, nonce: Nonce) {
        if !self.held.insert(nonce) {
            return;
        }
        self.order.push_back(nonce);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.held.remove(&oldest);
        }
    }
}

/// So many each second, and so many at once.
#[derive(Debug)]
pub(super) struct Bucket {
    most: u64,
    left: u64,
    filled: Time,
}

impl Bucket {
    pub(super) fn new(most: u64) -> Bucket {
        Bucket { most, left: most, filled: Time::ZERO }
    }

    pub(super) fn take(&mut self, now: Time) -> bool {
        let gap = Span::from_ps(Span::from_ms(1_000).ps() / self.most);
        let more = now.saturating_since(self.filled).ps() / gap.ps();
        self.left = (self.left + more).min(self.most);
        self.filled += gap * more;
        let is_there = self.left > 0;
        self.left -= u64::from(is_there);
        is_there
    }
}
