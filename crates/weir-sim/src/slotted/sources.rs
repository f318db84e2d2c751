//! The sources of all hosts. They generate the cells of many slots at once, source by source, and lay them down slot by
//! slot.

use std::ops::Range;

use weir_core::traffic::Emissions;
use weir_core::units::Span;

use crate::slotted::books::Flow;
use crate::slotted::cell::Cell;

/// A source: its host, what it generates, and for whom.
pub(super) struct PlacedSource {
    pub(super) host: u32,
    pub(super) emissions: Emissions,
    pub(super) targets: Vec<u16>,
    /// The flow to the first of them; those to the others follow.
    pub(super) first_flow: u32,
}

#[derive(Debug)]
struct Source {
    emissions: Emissions,
    /// The slot of its next cell.
    due: u64,
    /// Its destinations: `targets[first_target ..]`.
    first_target: u32,
    /// The flow to the first of them.
    first_flow: u32,
}

/// All sources, in order of their hosts.
#[derive(Debug)]
pub(super) struct Sources {
    sources: Vec<Source>,
    targets: Vec<u16>,
    /// The host of each.
    pub(super) host_of: Vec<u16>,
    slot: Span,
    /// Slots that are generated at once: `from .. to`.
    slots: u32,
    from: u32,
    to: u32,
    /// What each of them generates, in order of sources: a row of as many as there are sources for each slot.
    pub(super) cells: Vec<Cell>,
    /// How many cells each row holds.
    counts: Vec<u32>,
}

/// Cells that are generated at once, about.
const CELLS: usize = 1 << 10;

impl Sources {
    pub(super) fn new(placed: Vec<PlacedSource>, slot: Span) -> Sources {
        let count = placed.len();
        let slots = (CELLS / count).clamp(8, 64);
        let mut sources = Vec::with_capacity(count);
        let (mut targets, mut host_of) = (Vec::new(), Vec::with_capacity(count));
        for placed in placed {
            let due = placed.emissions.peek().ps() / slot.ps();
            let (first_target, first_flow) = (targets.len() as u32, placed.first_flow);
            sources.push(Source { emissions: placed.emissions, due, first_target, first_flow });
            targets.extend(placed.targets);
            host_of.push(placed.host as u16);
        }
        let cells = vec![Cell::NONE; slots * count];
        Sources { sources, targets, host_of, slot, slots: slots as u32, from: 0, to: 0, cells, counts: vec![0; slots] }
    }

    /// The slot up to which all cells are generated.
    #[inline]
    pub(super) fn generated_to(&self) -> u32 {
        self.to
    }

    /// Generates the cells of some slots from `now` on, before `end`. `flows` count them, if there are any.
    pub(super) fn generate(&mut self, now: u32, end: u32, flows: &mut [Flow]) {
        (self.from, self.to) = (now, now.saturating_add(self.slots).min(end));
        self.counts.fill(0);
        let (row, from, slot) = (self.sources.len(), u64::from(now), self.slot);
        let (cells, counts, until) = (&mut self.cells[..], &mut self.counts[..], u64::from(self.to));
        for (id, source) in (0..).zip(&mut self.sources) {
            if source.due >= until {
                continue;
            }
            let targets = &self.targets[source.first_target as usize..];
            let first_flow = source.first_flow as usize;
            source.due = source.emissions.draw_slots(until, slot, |at, place, is_last| {
                let number = (at - from) as usize;
                let count = &mut counts[number];
                cells[number * row + *count as usize] = Cell::new(at as u32, targets[place as usize], id, is_last);
                *count += 1;
                if let Some(flow) = flows.get_mut(first_flow + place as usize) {
                    flow.sent = flow.sent.wrapping_add(1);
                }
            });
        }
    }

    /// The places of the cells of slot `now`.
    #[inline]
    pub(super) fn slot(&self, now: u32) -> Range<usize> {
        let number = (now - self.from) as usize;
        let first = number * self.sources.len();
        first..first + self.counts[number] as usize
    }

    /// Whether the cell at `place`, if there is one before `end`, is of `host`, too.
    #[inline]
    pub(super) fn continues(&self, place: usize, end: usize, host: u16) -> bool {
        place < end && self.host_of[usize::from(self.cells[place].source())] == host
    }
}
