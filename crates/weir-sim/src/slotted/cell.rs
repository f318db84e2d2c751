//! A frame of one slot, in one word.

/// Where a frame goes, which source it came from, when it was made, and whether it ends a burst.
///
/// From the lowest bit on: 32 bits for the slot in which it was generated, 16 for the host
/// that it goes to, one for the last frame of a burst, 15 for its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell(u64);

const TO: u32 = 32;
const LAST: u64 = 1 << 48;
const SOURCE: u32 = 49;

impl Cell {
    /// In no queue.
    pub(super) const NONE: Cell = Cell(0);

    /// What all cells of a source have in common; made in slot 0 for host 0, within a burst.
    #[inline]
    pub(super) fn of_source(source: u16) -> Cell {
        Cell(u64::from(source) << SOURCE)
    }

    /// A cell of the same source. This one reports no more than the source.
    #[inline]
    pub(super) fn made(self, born: u32, to: u16, is_last: bool) -> Cell {
        let last = if is_last { LAST } else { 0 };
        Cell(self.0 | u64::from(born) | u64::from(to) << TO | last)
    }

    #[inline]
    pub(super) fn born(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(super) fn to(self) -> u16 {
        (self.0 >> TO) as u16
    }

    #[inline]
    pub(super) fn source(self) -> u16 {
        (self.0 >> SOURCE) as u16
    }

    #[inline]
    pub(super) fn is_last(self) -> bool {
        self.0 & LAST != 0
    }

    /// Whether this cell is the `n`-th after `first`, of one burst that goes on.
    #[inline]
    pub(super) fn follows(self, first: Cell, n: u32) -> bool {
        self.0 == first.0.wrapping_add(n.into()) && !self.is_last()
    }

    /// The next of a burst.
    #[inline]
    pub(super) fn next(self) -> Cell {
        Cell(self.0.wrapping_add(1))
    }
}

/// A cell on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) cell: Cell,
    pub(super) link: u32,
}
