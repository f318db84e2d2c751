//! What comes to a switch, and what is news of it.

use crate::slotted::cell::{Cell, Flight};

/// What comes to a switch: a cell with the link that it came by, or one that its host sent just now.
pub(in crate::slotted) trait Arrival: Copy {
    fn cell(self) -> Cell;
    fn link(self, uplinks: Uplinks) -> u32;
}

/// The links from the hosts, the first one, and the host of each source.
#[derive(Clone, Copy, Debug)]
pub(in crate::slotted) struct Uplinks<'a> {
    pub(in crate::slotted) first: u32,
    pub(in crate::slotted) host_of: &'a [u16],
}

impl Uplinks<'_> {
    #[inline(always)]
    pub(in crate::slotted) fn host(self, cell: Cell) -> u16 {
        self.host_of[usize::from(cell.source())]
    }
}

impl Arrival for Flight {
    #[inline(always)]
    fn cell(self) -> Cell {
        self.cell
    }

    #[inline(always)]
    fn link(self, _uplinks: Uplinks) -> u32 {
        self.link
    }
}

impl Arrival for Cell {
    #[inline(always)]
    fn cell(self) -> Cell {
        self
    }

    #[inline(always)]
    fn link(self, uplinks: Uplinks) -> u32 {
        uplinks.first.wrapping_add(uplinks.host(self).into())
    }
}

/// Something is to be done about a cell that came to `lane`.
#[derive(Clone, Copy, Debug)]
pub(in crate::slotted) struct News {
    pub(in crate::slotted) cell: Cell,
    pub(in crate::slotted) link: u32,
    pub(in crate::slotted) lane: usize,
    pub(in crate::slotted) is_dropped: bool,
    /// Too many cells wait that came by its link.
    pub(in crate::slotted) is_alarm: bool,
    /// The congestion point looks at it.
    pub(in crate::slotted) is_sampled: bool,
}
