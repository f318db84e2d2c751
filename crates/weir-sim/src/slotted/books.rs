//! What is counted.

use crate::deliveries::Delivery;
use crate::probes::Boundaries;
use crate::slotted::switches::Cell;

/// What became of the cells of a flow; times in slots. A line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Flow {
    pub(super) sent: u32,
    pub(super) dropped: u32,
    pub(super) delivered: Delays,
    /// Birth of the first cell of the burst that arrives.
    burst_born: u32,
    /// Bursts that arrived whole; nothing where every cell is a burst.
    pub(super) bursts: Delays,
}

/// Delays in slots: their number, sum and extremes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    pub(super) sum: u64,
    pub(super) count: u32,
    pub(super) least: u32,
    pub(super) most: u32,
}

impl Delays {
    const NONE: Delays = Delays { sum: 0, count: 0, least: u32::MAX, most: 0 };

    #[inline]
    fn add(&mut self, delay: u32) {
        self.sum += u64::from(delay);
        self.count += 1;
        self.least = self.least.min(delay);
        self.most = self.most.max(delay);
    }
}

/// No burst is arriving.
const CLOSED: u32 = u32::MAX;

/// A series of deliveries of a group of traffic.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) group: u32,
    pub(super) boundaries: Boundaries,
    pub(super) number: u32,
    pub(super) before: u64,
    pub(super) rows: Vec<Delivery>,
}

/// Everything that is counted of deliveries.
#[derive(Debug)]
pub(super) struct Books {
    /// By flow; empty where flows are not counted.
    pub(super) flows: Vec<Flow>,
    /// Whether bursts have more than one cell.
    has_bursts: bool,
    /// The group of a source.
    group_of: Vec<u32>,
    /// Cells delivered, by group.
    pub(super) of_group: Vec<u64>,
    pub(super) hops: u64,
}

impl Books {
    pub(super) fn new(group_of: Vec<u32>, groups: usize, flows: usize, has_bursts: bool) -> Books {
        let new = Flow { sent: 0, dropped: 0, delivered: Delays::NONE, burst_born: CLOSED, bursts: Delays::NONE };
        Books { flows: vec![new; flows], has_bursts, group_of, of_group: vec![0; groups], hops: 0 }
    }

    /// A cell is generated.
    #[inline]
    pub(super) fn generate(&mut self, cell: Cell) {
        if let Some(flow) = self.flows.get_mut(cell.flow()) {
            flow.sent += 1;
        }
    }

    /// A cell arrives at its host at the beginning of slot `at`.
    #[inline]
    pub(super) fn deliver(&mut self, cell: Cell, at: u32) {
        self.hops += 1;
        self.of_group[self.group_of[usize::from(cell.source)] as usize] += 1;
        let Some(flow) = self.flows.get_mut(cell.flow()) else { return };
        flow.delivered.add(at - cell.born);
        if self.has_bursts {
            if flow.burst_born == CLOSED {
                flow.burst_born = cell.born;
            }
            if cell.is_last() {
                flow.bursts.add(at - flow.burst_born);
                flow.burst_born = CLOSED;
            }
        }
    }

    /// The bursts of a flow.
    pub(super) fn bursts(&self, flow: &Flow) -> Delays {
        if self.has_bursts { flow.bursts } else { flow.delivered }
    }
}

impl Series {
    /// Whether the last interval has ended.
    pub(super) fn is_over(&self) -> bool {
        self.number > self.boundaries.count()
    }

    /// Ends the interval whose turn it is, with `delivered` cells of `size` bytes in all so far.
    pub(super) fn end_interval(&mut self, delivered: u64, size: u64) {
        let frames = delivered - self.before;
        let t_ps = self.boundaries.at(self.number).ps();
        self.rows.push(Delivery { t_ps, frames, bytes: frames * size });
        self.before = delivered;
        self.number += 1;
    }
}
