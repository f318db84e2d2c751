//! What is counted.

use weir_core::units::Span;

use crate::boundaries::Boundaries;
use crate::slotted::cell::Cell;
use crate::totals::{BurstInterval, Delivery};

/// Delays in slots: their sum, number and extremes.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
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
        self.sum = self.sum.wrapping_add(delay.into());
        self.count = self.count.wrapping_add(1);
        // Extremes are seldom new.
        if delay < self.least {
            self.least = delay;
        }
        if delay > self.most {
            self.most = delay;
        }
    }
}

/// The bursts of a flow.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    /// Those that arrived whole.
    whole: Delays,
    /// Birth of the first cell of the one that arrives.
    born: u32,
}

/// No burst is arriving.
const CLOSED: u32 = u32::MAX;

/// Whose deliveries a series reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    Group(u32),
    Flow(u32),
}

/// A series of deliveries.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) of: Of,
    pub(super) boundaries: Boundaries,
    pub(super) number: u32,
    pub(super) before: u64,
    pub(super) rows: Vec<Delivery>,
    /// Of one flow: how many bursts had arrived whole, and the slots that they took.
    pub(super) whole: (u32, u64),
    pub(super) bursts: Vec<BurstInterval>,
}

/// The flows of a source: to host `to` it is `first + to`, and one less behind the `gap`.
#[derive(Clone, Copy, Debug)]
struct Flows {
    first: u32,
    /// A host that the source does not send to; [`NO_GAP`] without one.
    gap: u32,
}

const NO_GAP: u32 = u32::MAX;
/// The first flow of a source where this rule does not hold: more than there are.
const IRREGULAR: u32 = 1 << 31;

/// Everything that is counted of deliveries.
#[derive(Debug)]
pub(super) struct Books {
    /// Cells delivered, by flow.
    pub(super) flows: Vec<Delays>,
    /// Whether what a source sends is one flow.
    by_source: bool,
    /// By flow; empty where every cell is a burst of its own, or flows are sums.
    bursts: Vec<Bursts>,
    /// By source.
    of_source: Vec<Flows>,
    /// The flow to each host, in the order of hosts, of the sources without a rule.
    irregular: Vec<Vec<(u16, u32)>>,
    /// The group of a flow.
    group_of: Vec<u32>,
    pub(super) hops: u64,
}

/// A source: the hosts that it sends to, and the flow to the first of them.
pub(super) struct Listed<'a> {
    pub(super) targets: &'a [u16],
    pub(super) first_flow: u32,
    pub(super) group: u32,
}

impl Books {
    pub(super) fn new<'a>(
        sources: impl Iterator<Item = Listed<'a>>,
        flows: usize,
        by_source: bool,
        has_bursts: bool,
    ) -> Books {
        let none = Bursts { whole: Delays::NONE, born: CLOSED };
        let mut books = Books {
            flows: vec![Delays::NONE; flows],
            by_source,
            bursts: vec![none; if has_bursts && !by_source { flows } else { 0 }],
            of_source: Vec::new(),
            irregular: Vec::new(),
            group_of: vec![0; flows],
            hops: 0,
        };
        for source in sources {
            let rule = if by_source { Flows { first: source.first_flow, gap: NO_GAP } } else { rule(&source) };
            let mut ways = Vec::new();
            if rule.first == IRREGULAR {
                ways = source.targets.iter().copied().zip(source.first_flow..).collect();
                ways.sort_unstable();
            }
            let (first, count) = (source.first_flow as usize, if by_source { 1 } else { source.targets.len() });
            books.group_of[first..first + count].fill(source.group);
            books.of_source.push(rule);
            books.irregular.push(ways);
        }
        books
    }

    /// The flow of a cell.
    #[inline(always)]
    pub(super) fn flow(&self, cell: Cell) -> usize {
        match self.by_source {
            true => self.of_source[usize::from(cell.source())].first as usize,
            false => flow(&self.of_source, &self.irregular, cell),
        }
    }

    /// Cells arrive at their hosts at the beginning of slot `at`.
    #[inline]
    pub(super) fn deliver(&mut self, cells: &[Cell], at: u32) {
        let (of_source, irregular) = (&self.of_source[..], &self.irregular[..]);
        let flows = &mut self.flows[..];
        if self.by_source {
            for &cell in cells {
                let flow = of_source[usize::from(cell.source())].first as usize;
                flows[flow].add(at.wrapping_sub(cell.born()));
            }
            return;
        }
        for &cell in cells {
            let delay = at.wrapping_sub(cell.born());
            match flows.get_mut(of_source[usize::from(cell.source())].flow(cell.to())) {
                Some(flow) => flow.add(delay),
                None => flows[search(irregular, cell)].add(delay),
            }
        }
        if !self.bursts.is_empty() {
            self.deliver_bursts(cells, at);
        }
    }

    fn deliver_bursts(&mut self, cells: &[Cell], at: u32) {
        for &cell in cells {
            let flow = flow(&self.of_source, &self.irregular, cell);
            let bursts = &mut self.bursts[flow];
            if bursts.born == CLOSED {
                bursts.born = cell.born();
            }
            if cell.is_last() {
                bursts.whole.add(at - bursts.born);
                bursts.born = CLOSED;
            }
        }
    }

    /// Cells that were delivered.
    pub(super) fn delivered(&self, of: Of) -> u64 {
        match of {
            Of::Group(group) => self.of_group(group),
            Of::Flow(flow) => self.flows[flow as usize].count.into(),
        }
    }

    /// All of them.
    pub(super) fn all_delivered(&self) -> u64 {
        self.flows.iter().map(|flow| u64::from(flow.count)).sum()
    }

    fn of_group(&self, group: u32) -> u64 {
        let flows = self.flows.iter().zip(&self.group_of).filter(|&(_, &of)| of == group);
        flows.map(|(flow, _)| u64::from(flow.count)).sum()
    }

    /// The bursts of a flow.
    pub(super) fn bursts(&self, flow: usize) -> Delays {
        self.bursts.get(flow).map_or(self.flows[flow], |bursts| bursts.whole)
    }
}

impl Flows {
    /// The flow to a host, if there is a rule.
    #[inline(always)]
    fn flow(self, to: u16) -> usize {
        let to = u32::from(to);
        self.first.wrapping_add(to).wrapping_sub(u32::from(to > self.gap)) as usize
    }
}

#[inline(always)]
fn flow(of_source: &[Flows], irregular: &[Vec<(u16, u32)>], cell: Cell) -> usize {
    let flows = of_source[usize::from(cell.source())];
    if flows.first == IRREGULAR { search(irregular, cell) } else { flows.flow(cell.to()) }
}

#[cold]
fn search(irregular: &[Vec<(u16, u32)>], cell: Cell) -> usize {
    let ways = &irregular[usize::from(cell.source())];
    let place = ways.binary_search_by_key(&cell.to(), |way| way.0).expect("a source sends to its targets");
    ways[place].1 as usize
}

/// The rule of a source whose targets follow each other, but for a gap of one host.
fn rule(source: &Listed) -> Flows {
    let lowest = u32::from(source.targets[0]);
    let first = source.first_flow.wrapping_sub(lowest);
    let gap = (lowest..).zip(source.targets).find(|&(host, &to)| host != u32::from(to));
    let gap = gap.map_or(NO_GAP, |(host, _)| host);
    let place = |to: u32| to.wrapping_sub(lowest).wrapping_sub(u32::from(to > gap));
    let is_regular = (0..).zip(source.targets).all(|(number, &to)| place(to.into()) == number);
    if is_regular { Flows { first, gap } } else { Flows { first: IRREGULAR, gap: NO_GAP } }
}

impl Series {
    /// Whether the last interval has ended.
    pub(super) fn is_over(&self) -> bool {
        self.number > self.boundaries.count()
    }

    /// Ends the interval whose turn it is, with cells of `size` bytes and slots of `slot`.
    pub(super) fn end_interval(&mut self, books: &Books, size: u64, slot: Span) {
        let delivered = books.delivered(self.of);
        let frames = delivered - self.before;
        let t_ps = self.boundaries.at(self.number).ps();
        if let Of::Flow(flow) = self.of {
            let (whole, before) = (books.bursts(flow as usize), self.whole);
            let (count, sum) = (whole.count, whole.sum);
            if count != before.0 {
                let slots = u128::from(sum.wrapping_sub(before.1));
                let bursts = count.wrapping_sub(before.0).into();
                self.bursts.push(BurstInterval { t_ps, bursts, delay_sum_ps: slots * u128::from(slot.ps()) });
                self.whole = (count, sum);
            }
        }
        self.rows.push(Delivery { t_ps, frames, bytes: frames * size });
        self.before = delivered;
        self.number += 1;
    }
}
