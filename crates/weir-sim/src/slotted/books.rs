//! What is counted.

use crate::deliveries::Delivery;
use crate::probes::Boundaries;
use crate::slotted::switches::Cell;

/// What became of the cells of a flow; times in slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) sent: u32,
    pub(super) dropped: u32,
    pub(super) delivered: u32,
    pub(super) least: u32,
    pub(super) most: u32,
    /// Birth of the first cell of the burst that arrives.
    burst_born: u32,
    pub(super) sum: u64,
}

/// Bursts of a flow that arrived; times in slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bursts {
    pub(super) count: u32,
    pub(super) least: u32,
    pub(super) most: u32,
    pub(super) sum: u64,
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
    pub(super) bursts: Vec<Bursts>,
    /// The flow of a source's first destination.
    first_flow: Vec<u32>,
    /// Place of each host among the destinations of a source, where there are several; `hosts` entries for each.
    places: Vec<u16>,
    /// Where the entries of a source begin; [`SINGLE`] for a single destination.
    first_place: Vec<u32>,
    /// The group of a source.
    group_of: Vec<u32>,
    /// Cells delivered, by group.
    pub(super) of_group: Vec<u64>,
    pub(super) hops: u64,
}

const SINGLE: u32 = u32::MAX;

/// A source as the books know it.
pub(super) struct Account<'a> {
    pub(super) group: u32,
    pub(super) first_flow: u32,
    pub(super) to: &'a [u32],
}

impl Books {
    pub(super) fn new(accounts: &[Account<'_>], hosts: usize, groups: usize, flows: usize) -> Books {
        let mut places = Vec::new();
        let first_place = |account: &Account<'_>| {
            if account.to.len() == 1 || flows == 0 {
                return SINGLE;
            }
            let first = places.len();
            places.resize(first + hosts, 0);
            for (place, &host) in account.to.iter().enumerate() {
                places[first + host as usize] = place as u16;
            }
            (first / hosts) as u32
        };
        let first_place = accounts.iter().map(first_place).collect();
        let new = Flow { sent: 0, dropped: 0, delivered: 0, least: u32::MAX, most: 0, burst_born: CLOSED, sum: 0 };
        Books {
            flows: vec![new; flows],
            bursts: vec![Bursts { count: 0, least: u32::MAX, most: 0, sum: 0 }; flows],
            first_flow: accounts.iter().map(|account| account.first_flow).collect(),
            places,
            first_place,
            group_of: accounts.iter().map(|account| account.group).collect(),
            of_group: vec![0; groups],
            hops: 0,
        }
    }

    /// The flow of the cells of `source` to `to`.
    #[inline]
    pub(super) fn flow(&self, source: usize, to: u16, hosts: usize) -> usize {
        let first = self.first_place[source];
        let place = if first == SINGLE { 0 } else { self.places[first as usize * hosts + usize::from(to)] };
        self.first_flow[source] as usize + usize::from(place)
    }

    /// A cell arrives at its host at the beginning of slot `at`.
    #[inline]
    pub(super) fn deliver(&mut self, cell: Cell, at: u32, hosts: usize) {
        self.hops += 1;
        self.of_group[self.group_of[cell.source()] as usize] += 1;
        if self.flows.is_empty() {
            return;
        }
        let id = self.flow(cell.source(), cell.to, hosts);
        let flow = &mut self.flows[id];
        let delay = at - cell.born;
        flow.delivered += 1;
        flow.sum += u64::from(delay);
        flow.least = flow.least.min(delay);
        flow.most = flow.most.max(delay);
        if flow.burst_born == CLOSED {
            flow.burst_born = cell.born;
        }
        if cell.is_last() {
            let (bursts, delay) = (&mut self.bursts[id], at - flow.burst_born);
            flow.burst_born = CLOSED;
            bursts.count += 1;
            bursts.sum += u64::from(delay);
            bursts.least = bursts.least.min(delay);
            bursts.most = bursts.most.max(delay);
        }
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
