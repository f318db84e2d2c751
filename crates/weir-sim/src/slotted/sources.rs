//! The sources of all hosts. They generate the cells of many slots at once, source by source, and lay them down slot by
//! slot. They know nothing of what becomes of the cells: where a run has a thread to spare, it draws ahead.

use std::mem;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Scope, ScopedJoinHandle};

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
    /// Its destinations: so many `targets[first_target ..]`.
    first_target: u32,
    targets: u32,
    /// The flow to the first of them.
    first_flow: u32,
}

/// What is generated in the slots `from .. to`.
#[derive(Debug)]
struct Batch {
    from: u32,
    to: u32,
    /// In order of sources: a row of as many as there are sources for each slot.
    cells: Vec<Cell>,
    /// Where the cells of each row end.
    ends: [u32; MOST_SLOTS],
    /// Cells of each source, and where the last one goes, unless the batch was changed.
    made: Vec<(u32, u16)>,
    /// Whether cells were taken out or put in since they were generated.
    is_changed: bool,
}

/// Cells that are generated at once, about, and slots of them.
const CELLS: usize = 1 << 10;
const MOST_SLOTS: usize = 64;
/// Batches that threads hand to each other at once, and how many such chunks there are.
const CHUNK: usize = 16;
const CHUNKS: usize = 4;

type Chunk = Vec<Batch>;

impl Batch {
    fn new(sources: usize) -> Batch {
        let cells = vec![Cell::NONE; slots_at_once(sources) * sources];
        Batch { from: 0, to: 0, cells, ends: [0; MOST_SLOTS], made: vec![(0, 0); sources], is_changed: false }
    }
}

fn slots_at_once(sources: usize) -> usize {
    (CELLS / sources).clamp(8, MOST_SLOTS)
}

/// Generates what all sources do, batch after batch.
#[derive(Debug)]
struct Drawer {
    sources: Vec<Source>,
    targets: Vec<u16>,
    slot: Span,
    /// The slot that the next batch begins with, and that in which the run ends.
    next: u32,
    end: u32,
    /// Cells generated, by flow, and whether all that a source generates is one.
    sent: Vec<u32>,
    by_source: bool,
}

impl Drawer {
    /// Generates the cells of some slots, before the end.
    fn draw(&mut self, batch: &mut Batch) {
        let slots = slots_at_once(self.sources.len()) as u32;
        (batch.from, batch.to) = (self.next, self.next.saturating_add(slots).min(self.end));
        self.next = batch.to;
        batch.is_changed = false;
        let row = self.sources.len() as u32;
        for (end, number) in batch.ends.iter_mut().zip(0..slots) {
            *end = number * row;
        }
        if self.by_source { self.fill::<true>(batch) } else { self.fill::<false>(batch) }
    }

    fn fill<const BY_SOURCE: bool>(&mut self, batch: &mut Batch) {
        let (from, slot, until) = (u64::from(batch.from), self.slot, u64::from(batch.to));
        let (cells, ends) = (&mut batch.cells[..], &mut batch.ends);
        for ((id, source), all) in (0..).zip(&mut self.sources).zip(&mut batch.made) {
            *all = (0, 0);
            if source.due >= until {
                continue;
            }
            let targets = &self.targets[source.first_target as usize..][..source.targets as usize];
            let flows = if BY_SOURCE { 1 } else { targets.len() };
            let sent = &mut self.sent[source.first_flow as usize..][..flows];
            let stamp = Cell::of_source(id);
            let (mut made, mut last) = (0_u32, 0);
            // A source generates one cell in a slot at most.
            source.due = source.emissions.draw_slots(until, slot, |at, place, is_last| {
                let end = &mut ends[at.wrapping_sub(from) as usize % MOST_SLOTS];
                cells[*end as usize] = stamp.made(at as u32, targets[place as usize], is_last);
                *end = end.wrapping_add(1);
                if !BY_SOURCE {
                    sent[place as usize] = sent[place as usize].wrapping_add(1);
                }
                (made, last) = (made.wrapping_add(1), place);
            });
            if BY_SOURCE {
                sent[0] = sent[0].wrapping_add(made);
            }
            *all = (made, targets[last as usize]);
        }
    }

    /// Generates all that is left, in chunks that were `used`, until nobody takes them.
    fn work(mut self, used: &Receiver<Chunk>, full: &Sender<Chunk>) -> Drawer {
        while self.next < self.end
            && let Ok(mut chunk) = used.recv()
        {
            for batch in &mut chunk {
                self.draw(batch);
            }
            if full.send(chunk).is_err() {
                break;
            }
        }
        self
    }
}

/// Where batches come from.
#[derive(Debug)]
enum Feed {
    Here(Drawer),
    /// Another thread draws ahead: the chunk in use, the place of the next batch in it, and the ways between both.
    Ahead {
        chunk: Chunk,
        place: usize,
        full: Receiver<Chunk>,
        used: Sender<Chunk>,
    },
    /// The way from one to the other.
    Moving,
}

/// A thread that draws ahead.
pub(super) struct Drawing<'scope>(ScopedJoinHandle<'scope, Drawer>);

/// All sources, in order of their hosts.
#[derive(Debug)]
pub(super) struct Sources {
    feed: Feed,
    /// What is sent now.
    batch: Batch,
    /// The host of each.
    pub(super) host_of: Vec<u16>,
}

impl Sources {
    /// Sources of so many flows that generate until slot `end`; all that a source generates may be one.
    pub(super) fn new(placed: Vec<PlacedSource>, slot: Span, end: u32, flows: usize, by_source: bool) -> Sources {
        let count = placed.len();
        let mut sources = Vec::with_capacity(count);
        let (mut targets, mut host_of) = (Vec::new(), Vec::with_capacity(count));
        for placed in placed {
            let due = placed.emissions.peek().ps() / slot.ps();
            let (first_target, first_flow) = (targets.len() as u32, placed.first_flow);
            let of_it = placed.targets.len() as u32;
            sources.push(Source { emissions: placed.emissions, due, first_target, targets: of_it, first_flow });
            targets.extend(placed.targets);
            host_of.push(placed.host as u16);
        }
        let drawer = Drawer { sources, targets, slot, next: 0, end, sent: vec![0; flows], by_source };
        Sources { feed: Feed::Here(drawer), batch: Batch::new(count), host_of }
    }

    /// Lets another thread draw ahead from now on. What it draws is the same.
    pub(super) fn draw_ahead<'scope>(&mut self, scope: &'scope Scope<'scope, '_>) -> Option<Drawing<'scope>> {
        let Feed::Here(drawer) = mem::replace(&mut self.feed, Feed::Moving) else { return None };
        let ((give, full), (used, take)) = (mpsc::channel(), mpsc::channel());
        for _ in 0..CHUNKS {
            let chunk = (0..CHUNK).map(|_| Batch::new(self.host_of.len())).collect();
            let _ = used.send(chunk);
        }
        self.feed = Feed::Ahead { chunk: Chunk::new(), place: 0, full, used };
        Some(Drawing(scope.spawn(move || drawer.work(&take, &give))))
    }

    /// Ends the thread that draws ahead.
    pub(super) fn end_drawing(&mut self, drawing: Drawing<'_>) {
        // A drawer that waits for a chunk, or for someone to take one, sees that nobody does.
        self.feed = Feed::Moving;
        match drawing.0.join() {
            Ok(drawer) => self.feed = Feed::Here(drawer),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Cells generated, by flow.
    pub(super) fn sent(&self) -> &[u32] {
        match &self.feed {
            Feed::Here(drawer) => &drawer.sent,
            _ => &[],
        }
    }

    /// The slot up to which all cells are generated.
    #[inline]
    pub(super) fn generated_to(&self) -> u32 {
        self.batch.to
    }

    /// Goes on to the cells of the next slots.
    pub(super) fn generate(&mut self) {
        match &mut self.feed {
            Feed::Here(drawer) => drawer.draw(&mut self.batch),
            Feed::Ahead { chunk, place, full, used } => {
                if *place == chunk.len() {
                    let empty = mem::take(chunk);
                    if !empty.is_empty() {
                        // The drawer is gone when all is drawn.
                        let _ = used.send(empty);
                    }
                    *chunk = full.recv().expect("a drawer draws until the end of the run");
                    *place = 0;
                }
                mem::swap(&mut self.batch, &mut chunk[*place]);
                *place += 1;
            }
            Feed::Moving => unreachable!("nothing is sent while a thread begins or ends"),
        }
    }

    /// The cells at these places.
    #[inline]
    pub(super) fn cells(&self, places: Range<usize>) -> &[Cell] {
        &self.batch.cells[places]
    }

    /// The places of the cells of slot `now`.
    #[inline]
    pub(super) fn slot(&self, now: u32) -> Range<usize> {
        let number = (now - self.batch.from) as usize;
        number * self.host_of.len()..self.batch.ends[number] as usize
    }

    /// Takes the cell at `at` out of its slot: it is not sent now. Those at `from .. at` stay, from `kept` on.
    pub(super) fn take_out(&mut self, from: usize, at: usize, kept: &mut usize) -> Cell {
        let cell = self.batch.cells[at];
        self.keep(from..at, kept);
        self.batch.made[usize::from(cell.source())].0 -= 1;
        self.batch.is_changed = true;
        cell
    }

    /// Those at `rest` are the last that stay of slot `now`.
    pub(super) fn end_slot(&mut self, now: u32, rest: Range<usize>, mut kept: usize) {
        self.keep(rest, &mut kept);
        self.batch.ends[(now - self.batch.from) as usize] = kept as u32;
    }

    #[inline]
    fn keep(&mut self, places: Range<usize>, kept: &mut usize) {
        let count = places.len();
        if *kept < places.start && count > 0 {
            self.batch.cells.copy_within(places, *kept);
        }
        *kept += count;
    }

    /// Puts cells that waited among those of slot `now`; none of their sources has one there. They are in order, as the cells
    /// of a slot are and remain.
    pub(super) fn put_in(&mut self, now: u32, waited: &mut Vec<Cell>) {
        let row = self.slot(now);
        let Batch { from, cells, ends, made, is_changed, .. } = &mut self.batch;
        *is_changed = true;
        ends[(now - *from) as usize] = (row.end + waited.len()) as u32;
        let mut until = row.end;
        while let Some(cell) = waited.pop() {
            let from = row.start + cells[row.start..until].partition_point(|other| other.source() < cell.source());
            cells.copy_within(from..until, from + waited.len() + 1);
            cells[from + waited.len()] = cell;
            made[usize::from(cell.source())].0 += 1;
            until = from;
        }
    }

    /// Where the cell goes that `host` sent last in the slots `from .. to`, if it sent any: what is there is what was sent.
    pub(super) fn last_sent(&self, host: u16, from: u32, to: u32) -> Option<u16> {
        let of = |cell: &Cell| self.host_of[usize::from(cell.source())];
        (from..to).rev().find_map(|slot| {
            let cells = self.cells(self.slot(slot));
            let cell = cells.get(cells.partition_point(|cell| of(cell) < host))?;
            (of(cell) == host).then(|| cell.to())
        })
    }

    /// What hosts with one source each sent in the slots `from .. to`, once: reports the host of a cell, or of many, how many they
    /// are, and where the last one goes. Who is reported twice is reported with where the last one goes the second time.
    pub(super) fn passed(&mut self, from: u32, to: u32, mut report: impl FnMut(usize, u32, u16)) {
        let is_all = (from, to) == (self.batch.from, self.batch.to);
        let mut senders = 0;
        if is_all {
            for (&(made, last), &host) in self.batch.made.iter().zip(&self.host_of).filter(|((made, _), _)| *made > 0) {
                report(host.into(), made, last);
                senders += 1;
            }
            if self.batch.is_changed {
                self.find_last(senders, report);
            }
            return;
        }
        for slot in from..to {
            for &cell in self.cells(self.slot(slot)) {
                report(self.host_of[usize::from(cell.source())].into(), 1, cell.to());
            }
        }
    }

    /// Reports where the last cell goes of each of so many hosts. The batch is used up.
    fn find_last(&mut self, mut senders: usize, mut report: impl FnMut(usize, u32, u16)) {
        let row = self.host_of.len();
        let Batch { cells, ends, made, from, to, .. } = &mut self.batch;
        for number in (0..(*to - *from) as usize).rev() {
            for &cell in cells[number * row..ends[number] as usize].iter().rev() {
                let source = usize::from(cell.source());
                if mem::take(&mut made[source].0) > 0 {
                    report(self.host_of[source].into(), 0, cell.to());
                    senders -= 1;
                }
            }
            if senders == 0 {
                return;
            }
        }
    }

    /// Whether a host has more than one source.
    pub(super) fn has_several(&self, host: u16) -> bool {
        self.host_of.iter().filter(|&&of| of == host).count() > 1
    }
}
