//! The sources of all hosts. They generate the cells of many slots at once, source by source, and lay them down slot by
//! slot.

use std::ops::Range;

use weir_core::traffic::Emissions;
use weir_core::units::Span;

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
    /// Cells that it has among those generated at once, and the place of the destination of the last one.
    made: u32,
    last: u32,
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
    /// Where the cells of each row end.
    ends: [u32; MOST_SLOTS],
}

/// Cells that are generated at once, about, and slots of them.
const CELLS: usize = 1 << 10;
const MOST_SLOTS: usize = 64;

impl Sources {
    pub(super) fn new(placed: Vec<PlacedSource>, slot: Span) -> Sources {
        let count = placed.len();
        let slots = (CELLS / count).clamp(8, MOST_SLOTS);
        let mut sources = Vec::with_capacity(count);
        let (mut targets, mut host_of) = (Vec::new(), Vec::with_capacity(count));
        for placed in placed {
            let due = placed.emissions.peek().ps() / slot.ps();
            let (first_target, first_flow) = (targets.len() as u32, placed.first_flow);
            sources.push(Source { emissions: placed.emissions, due, first_target, first_flow, made: 0, last: 0 });
            targets.extend(placed.targets);
            host_of.push(placed.host as u16);
        }
        let cells = vec![Cell::NONE; slots * count];
        Sources { sources, targets, host_of, slot, slots: slots as u32, from: 0, to: 0, cells, ends: [0; MOST_SLOTS] }
    }

    /// The slot up to which all cells are generated.
    #[inline]
    pub(super) fn generated_to(&self) -> u32 {
        self.to
    }

    /// Generates the cells of some slots from `now` on, before `end`. `sent` counts those of each flow, if there are any.
    pub(super) fn generate(&mut self, now: u32, end: u32, sent: &mut [u32]) {
        (self.from, self.to) = (now, now.saturating_add(self.slots).min(end));
        let row = self.sources.len() as u32;
        for (end, number) in self.ends.iter_mut().zip(0..self.slots) {
            *end = number * row;
        }
        if sent.is_empty() { self.draw::<false>(sent) } else { self.draw::<true>(sent) }
    }

    fn draw<const COUNTED: bool>(&mut self, sent: &mut [u32]) {
        let (from, slot, until) = (u64::from(self.from), self.slot, u64::from(self.to));
        let (cells, ends) = (&mut self.cells[..], &mut self.ends);
        for (id, source) in (0..).zip(&mut self.sources) {
            source.made = 0;
            if source.due >= until {
                continue;
            }
            let targets = &self.targets[source.first_target as usize..];
            let sent = if COUNTED { &mut sent[source.first_flow as usize..] } else { &mut [] };
            let (mut made, mut last) = (0_u32, 0);
            // A source generates one cell in a slot at most.
            source.due = source.emissions.draw_slots(until, slot, |at, place, is_last| {
                let end = &mut ends[at.wrapping_sub(from) as usize % MOST_SLOTS];
                cells[*end as usize] = Cell::new(at as u32, targets[place as usize], id, is_last);
                *end = end.wrapping_add(1);
                if COUNTED {
                    sent[place as usize] = sent[place as usize].wrapping_add(1);
                }
                (made, last) = (made.wrapping_add(1), place);
            });
            (source.made, source.last) = (made, last);
        }
    }

    /// The places of the cells of slot `now`.
    #[inline]
    pub(super) fn slot(&self, now: u32) -> Range<usize> {
        let number = (now - self.from) as usize;
        number * self.sources.len()..self.ends[number] as usize
    }

    /// What hosts that send all that is generated at once send in the slots `from .. to`: tells the host of each cell, or of
    /// many, how many they are, and where the last one goes.
    pub(super) fn passed(&self, from: u32, to: u32, mut tell: impl FnMut(usize, u32, u16)) {
        if (from, to) == (self.from, self.to) {
            for (source, &host) in self.sources.iter().zip(&self.host_of).filter(|(source, _)| source.made > 0) {
                tell(host.into(), source.made, self.targets[(source.first_target + source.last) as usize]);
            }
            return;
        }
        for slot in from..to {
            for cell in &self.cells[self.slot(slot)] {
                tell(self.host_of[usize::from(cell.source())].into(), 1, cell.to());
            }
        }
    }

    /// Whether a host has more than one source.
    pub(super) fn has_several(&self, host: u16) -> bool {
        self.host_of.iter().filter(|&&of| of == host).count() > 1
    }
}
