//! Runs of cells that wait in hosts, in a pool.

use std::ops::{Index, IndexMut};

use weir_core::host::chain::Links;

use crate::slotted::cell::Cell;
use crate::slotted::lanes::NONE;

/// Cells of one burst that wait: born in successive slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: Cell,
    pub(super) len: u32,
    pub(super) next: u32,
}

/// The runs of all queues, and the places that are free.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) runs: Vec<Run>,
    pub(super) free: u32,
}

impl Runs {
    pub(super) fn put(&mut self, first: Cell) -> u32 {
        let run = Run { first, len: 1, next: NONE };
        let place = self.free;
        if place == NONE {
            self.runs.push(run);
            return (self.runs.len() - 1) as u32;
        }
        self.free = std::mem::replace(&mut self[place], run).next;
        place
    }

    pub(super) fn free(&mut self, place: u32) {
        self[place].next = std::mem::replace(&mut self.free, place);
    }
}

impl Links for Runs {
    #[inline(always)]
    fn next(&self, place: u32) -> u32 {
        self[place].next
    }

    #[inline(always)]
    fn link(&mut self, place: u32, next: u32) {
        self[place].next = next;
    }
}

impl Index<u32> for Runs {
    type Output = Run;

    #[inline(always)]
    fn index(&self, place: u32) -> &Run {
        &self.runs[place as usize]
    }
}

impl IndexMut<u32> for Runs {
    #[inline(always)]
    fn index_mut(&mut self, place: u32) -> &mut Run {
        &mut self.runs[place as usize]
    }
}
