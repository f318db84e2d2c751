//! Frames that are lost, by cause, at each place of the ways.

use weir_core::columns::Named;

use crate::totals::DropCause;

#[derive(Debug)]
pub(crate) struct Drops {
    all: Vec<u64>,
    /// Of these, those with other causes than a full queue, and what links lost; up to the last place that has any.
    others: Vec<[u64; DropCause::ALL.len()]>,
}

impl Drops {
    pub(crate) fn new(legs: usize) -> Drops {
        Drops { all: vec![0; legs], others: Vec::new() }
    }

    /// There are so many places now.
    pub(crate) fn make_room(&mut self, legs: usize) {
        self.all.resize(legs.max(self.all.len()), 0);
    }

    pub(crate) fn legs(&self) -> usize {
        self.all.len()
    }

    /// A frame is dropped at the place `leg`.
    #[inline]
    pub(crate) fn count(&mut self, leg: u32, cause: DropCause) {
        self.all[leg as usize] += 1;
        if cause != DropCause::QueueFull {
            self.count_other(leg as usize, cause);
        }
    }

    /// A frame is lost on the link behind the place `leg`.
    pub(crate) fn count_on_link(&mut self, leg: u32) {
        self.count_other(leg as usize, DropCause::LinkLoss);
    }

    fn count_other(&mut self, leg: usize, cause: DropCause) {
        if self.others.len() <= leg {
            self.others.resize(leg + 1, Default::default());
        }
        self.others[leg][cause.id() as usize] += 1;
    }

    /// Those at the place `leg`, by cause.
    pub(crate) fn at(&self, leg: usize) -> impl Iterator<Item = (DropCause, u64)> {
        let mut frames = self.others.get(leg).copied().unwrap_or_default();
        let others = frames.iter().sum::<u64>() - frames[DropCause::LinkLoss.id() as usize];
        frames[DropCause::QueueFull.id() as usize] = self.all[leg] - others;
        DropCause::ALL.iter().copied().zip(frames).filter(|row| row.1 > 0)
    }

    /// All that were dropped from the place `leg` on.
    pub(crate) fn behind(&self, leg: usize) -> u64 {
        self.all.get(leg..).map_or(0, |drops| drops.iter().sum())
    }
}
