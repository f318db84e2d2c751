//! The service of 64 lanes in a slot.

use crate::slotted::bits;
use crate::slotted::cell::{Cell, Flight};

/// The lanes of a word in a slot.
#[derive(Clone, Debug)]
pub(in crate::slotted) struct Turn {
    /// Those that are still to serve a cell, those that did, and those that it emptied.
    pub(in crate::slotted) todo: u64,
    pub(in crate::slotted) served: u64,
    pub(super) emptied: u64,
    /// The cells that were served, so many, in the order of their lanes.
    pub(super) cells: [Cell; 64],
    pub(super) count: usize,
}

impl Turn {
    /// Before the first slot.
    pub(in crate::slotted) fn new() -> Turn {
        Turn { todo: 0, served: 0, emptied: 0, cells: [Cell::NONE; 64], count: 0 }
    }

    /// A word begins to serve, with these lanes.
    #[inline]
    pub(in crate::slotted) fn begin(&mut self, todo: u64) {
        (self.todo, self.served, self.emptied, self.count) = (todo, 0, 0, 0);
    }

    /// The cells that were served.
    #[inline]
    pub(in crate::slotted) fn cells(&self) -> &[Cell] {
        &self.cells[..self.count.min(64)]
    }

    /// The same, with the lanes of `word`.
    #[inline]
    pub(in crate::slotted) fn flights(&self, word: usize) -> impl Iterator<Item = Flight> + '_ {
        let lanes = bits::of(self.served).map(move |place| (64 * word + place) as u32);
        self.cells().iter().zip(lanes).map(|(&cell, link)| Flight { cell, link })
    }
}
