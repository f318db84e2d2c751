//! The switches: an output queue at each port, in a memory that the ports of a switch share.
//!
//! A *lane* is the output of a switch: lane `h` leads to host `h`, the others follow from a whole word of 64 on, in the
//! order of their ports. A *link* is a lane or, behind all lanes, the port of a host.

mod arrivals;
mod turn;

pub(super) use self::arrivals::{Arrival, News, Uplinks};
pub(super) use self::turn::Turn;

use std::collections::VecDeque;

use weir_core::ethernet::pause::Watermarks;
use weir_core::host::{Integral, Slots};
use weir_core::queue::Space;

use crate::slotted::bits;
use crate::slotted::cell::Cell;
use crate::slotted::lanes::NONE;
use crate::slotted::routes::Routes;

/// The queue of a lane: its first cells, in a ring, and what is counted of it.
///
/// Two cache lines, side by side: what a large network does in a slot goes through all of them.
#[derive(Clone, Debug)]
#[repr(C, align(128))]
pub(super) struct Output {
    /// Cells served, and cells taken.
    head: u32,
    tail: u32,
    /// One more cell needs no closer look while fewer than this wait: there is room, in the ring too, and no new peak.
    calm: u32,
    /// How many cells will have been taken when the next is sampled; less by those dropped that count.
    pub(super) next_sample: u32,
    /// Its switch, counted among switches.
    pub(super) switch: u32,
    /// Most that waits while one more is taken: the limit, and the one that this slot serves.
    most: u32,
    waits: Integral<Slots>,
    /// The link by which each cell of the ring came, where inputs are distinguished.
    inputs: [u32; RING],
    cells: [Cell; RING],
}

/// Cells in the ring of an output; those behind them wait elsewhere.
const RING: usize = 8;
/// The same on a star whose inputs are not distinguished, where the rings of all outputs stay in the first cache.
const WIDE_RING: usize = 16;

/// Whether the rings are wide ones.
const fn has_wide<const BY_INPUT: bool, const STAR: bool>() -> bool {
    STAR && !BY_INPUT
}

/// Cells in each ring.
const fn ring<const BY_INPUT: bool, const STAR: bool>() -> usize {
    if has_wide::<BY_INPUT, STAR>() { WIDE_RING } else { RING }
}

impl Output {
    /// What waits.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Cells served.
    pub(super) fn served(&self) -> u32 {
        self.head
    }

    /// Cells taken.
    #[inline]
    pub(super) fn taken(&self) -> u32 {
        self.tail
    }

    /// Sum of the cells that waited after the service of each slot before `until`.
    pub(super) fn len_slots(&self, until: u32) -> u64 {
        self.waits.up_to(until, self.len().into())
    }

    /// A peak of the queue is known, and how long its ring is.
    fn expect(&mut self, peak: u32, ring: usize) {
        self.calm = peak.min(self.most).min(ring as u32);
    }
}

/// A cell behind a ring, and the link by which it came; long queues fill the second cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Behind {
    cell: Cell,
    link: u32,
}

/// What the ports of a switch share.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Memory {
    /// Cells that wait; the most that did after a slot.
    pub(super) space: Space<u32>,
    pub(super) marks: Watermarks<u32>,
}

/// Where a link leads to, and the cells that came by it and wait, where inputs are distinguished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// The switch, counted among switches; [`NONE`] for a host.
    pub(super) switch: u32,
    pub(super) waiting: u32,
    pub(super) marks: Watermarks<u32>,
}

/// All queues of all switches.
#[derive(Debug)]
pub(super) struct Queues {
    /// By lane, up to a whole word of them.
    pub(super) outputs: Vec<Output>,
    /// The rings of the lanes of a star, instead of those in `outputs`; else empty.
    wide: Vec<[Cell; WIDE_RING]>,
    /// The cells behind the ring of each lane.
    behind: Vec<VecDeque<Behind>>,
    /// Greatest number of cells of each lane after service, since the last look.
    peaks: Vec<u32>,
    /// Lanes that may have a new peak when this slot's service is over.
    grown: Vec<u64>,
    /// Lanes that are not empty.
    pub(super) busy: Vec<u64>,
    pub(super) memories: Vec<Memory>,
    /// By link.
    pub(super) inputs: Vec<Input>,
    /// Whether inputs are distinguished.
    pub(super) by_input: bool,
}

impl Queues {
    /// Empty queues at the outputs of `switch_of` lane, which take `most` cells.
    pub(super) fn new(
        lanes: impl Iterator<Item = (u32, u32)>,
        memories: Vec<Memory>,
        inputs: Vec<Input>,
        by_input: bool,
    ) -> Queues {
        let output = |(switch, most): (u32, u32)| Output {
            head: 0,
            tail: 0,
            calm: 0,
            next_sample: NONE,
            switch,
            most,
            waits: Integral::default(),
            inputs: [0; RING],
            cells: [Cell::NONE; RING],
        };
        let mut outputs: Vec<Output> = lanes.map(output).collect();
        outputs.resize(outputs.len().next_multiple_of(64), output((0, 0)));
        let is_wide = memories.len() == 1 && !by_input;
        Queues {
            wide: vec![[Cell::NONE; WIDE_RING]; if is_wide { outputs.len() } else { 0 }],
            behind: vec![VecDeque::new(); outputs.len()],
            peaks: vec![0; outputs.len()],
            grown: vec![0; outputs.len() / 64],
            busy: vec![0; outputs.len() / 64],
            outputs,
            memories,
            inputs,
            by_input,
        }
    }

    /// Cells come over their links at the beginning of slot `now`, from the one at `next` on, up to one about which
    /// something is to be done. On a `STAR` there is one switch, and each lane leads to the host of its number.
    #[inline(always)]
    pub(super) fn admit<const BY_INPUT: bool, const STAR: bool>(
        &mut self,
        routes: &Routes,
        uplinks: Uplinks,
        arrivals: &[impl Arrival],
        next: &mut usize,
        now: u32,
    ) -> Option<News> {
        if STAR && self.outputs.len() == 64 {
            self.admit_to::<BY_INPUT, STAR, true>(routes, uplinks, arrivals, next, now)
        } else {
            self.admit_to::<BY_INPUT, STAR, false>(routes, uplinks, arrivals, next, now)
        }
    }

    /// The same, to the lanes of one word where they are `FEW`.
    #[inline(always)]
    fn admit_to<const BY_INPUT: bool, const STAR: bool, const FEW: bool>(
        &mut self,
        routes: &Routes,
        uplinks: Uplinks,
        arrivals: &[impl Arrival],
        next: &mut usize,
        now: u32,
    ) -> Option<News> {
        let (outputs, inputs) = (&mut self.outputs[..], &mut self.inputs[..]);
        let outputs = if FEW { &mut outputs[..64] } else { outputs };
        let ring = ring::<BY_INPUT, STAR>();
        let wide = if FEW && has_wide::<BY_INPUT, STAR>() { &mut self.wide[..64] } else { &mut self.wide[..] };
        let (memories, busy) = (&mut self.memories[..], &mut self.busy[..]);
        let arrivals = &arrivals[*next..];
        // On a star, all find room in the memory as long as so many do.
        let room = memories[0].space.free() as usize;
        let is_tight = STAR && room < arrivals.len();
        let (mut taken, mut news) = (arrivals.len(), None);
        // The lanes that took a cell, where a word holds them all.
        let mut takers = 0_u64;
        for (number, &arrival) in arrivals.iter().enumerate() {
            let cell = arrival.cell();
            let link = if BY_INPUT || !STAR { arrival.link(uplinks) } else { 0 };
            let switch = if STAR { 0 } else { inputs[link as usize].switch };
            let lane = match STAR {
                true if FEW => usize::from(cell.to()) % 64,
                true => cell.to().into(),
                false => routes.lane(switch, cell.to(), || uplinks.host(cell)),
            };
            let output = &mut outputs[lane];
            let len = output.len();
            let is_full = match STAR {
                true => is_tight && number >= room,
                false => memories[switch as usize].space.free() == 0,
            };
            let is_crowded = len >= output.calm;
            if is_full || is_crowded && len >= output.most {
                news = Some(News { cell, link, lane, is_dropped: true, is_alarm: false, is_sampled: false });
                (taken, *next) = (number, *next + number + 1);
                break;
            }
            if is_crowded {
                if len >= self.peaks[lane] {
                    self.grown[lane / 64] |= 1 << (lane % 64);
                }
                if len >= ring as u32 {
                    self.behind[lane].push_back(Behind { cell, link });
                }
            }
            if !is_crowded || len < ring as u32 {
                let at = output.tail as usize % ring;
                match has_wide::<BY_INPUT, STAR>() {
                    true => wide[lane][at] = cell,
                    false => output.cells[at] = cell,
                }
                if BY_INPUT {
                    output.inputs[at] = link;
                }
            }
            output.tail = output.tail.wrapping_add(1);
            output.waits.add(now, 1);
            if !STAR {
                memories[switch as usize].space.add(1);
            }
            if FEW {
                takers |= 1 << lane;
            } else {
                busy[lane / 64] |= 1 << (lane % 64);
            }
            let mut is_alarm = false;
            if BY_INPUT {
                let input = &mut inputs[link as usize];
                input.waiting = input.waiting.wrapping_add(1);
                is_alarm = input.marks.is_high(input.waiting);
            }
            let is_sampled = output.tail == output.next_sample;
            if is_sampled || is_alarm {
                news = Some(News { cell, link, lane, is_dropped: false, is_alarm, is_sampled });
                (taken, *next) = (number + 1, *next + number + 1);
                break;
            }
        }
        if STAR {
            memories[0].space.add(taken as u32);
        }
        if FEW {
            busy[0] |= takers;
        }
        news
    }

    /// Lanes of a word serve a cell each in slot `now`, up to one that came by an input of which so few wait then that it
    /// is news: that input is returned.
    #[inline(always)]
    pub(super) fn serve<const BY_INPUT: bool, const STAR: bool>(
        &mut self,
        word: usize,
        turn: &mut Turn,
        now: u32,
    ) -> Option<u32> {
        let first = 64 * word;
        let outputs = self.outputs[first..].first_chunk_mut::<64>()?;
        let (memories, inputs) = (&mut self.memories[..], &mut self.inputs[..]);
        let ring = ring::<BY_INPUT, STAR>();
        let wide = if has_wide::<BY_INPUT, STAR>() { &mut self.wide[first..][..64] } else { &mut [] };
        let (mut todo, mut emptied, mut count) = (turn.todo, turn.emptied, turn.count);
        let mut relieved = None;
        while todo != 0 {
            let place = todo.trailing_zeros();
            todo &= todo - 1;
            let output = &mut outputs[place as usize % 64];
            let at = output.head as usize % ring;
            let (len, link) = (output.len(), if BY_INPUT { output.inputs[at] } else { 0 });
            let held = match has_wide::<BY_INPUT, STAR>() {
                true => &mut wide[place as usize % 64][at],
                false => &mut output.cells[at],
            };
            let cell = *held;
            if len > ring as u32 {
                let next = self.behind[first + place as usize].pop_front();
                let Behind { cell, link } = next.unwrap_or(Behind { cell: Cell::NONE, link: 0 });
                *held = cell;
                if BY_INPUT {
                    output.inputs[at] = link;
                }
            }
            output.head = output.head.wrapping_add(1);
            output.waits.take(now, 1);
            if !STAR {
                memories[output.switch as usize].space.take(1);
            }
            emptied |= u64::from(output.head == output.tail) << place;
            turn.cells[count % 64] = cell;
            count = count.wrapping_add(1);
            if BY_INPUT {
                let input = &mut inputs[link as usize];
                input.waiting = input.waiting.wrapping_sub(1);
                if input.marks.is_low(input.waiting) {
                    relieved = Some(link);
                    break;
                }
            }
        }
        if STAR {
            memories[0].space.take(count.wrapping_sub(turn.count) as u32);
        }
        turn.served |= turn.todo ^ todo;
        (turn.todo, turn.emptied, turn.count) = (todo, emptied, count);
        relieved
    }

    /// The service of a word is over.
    #[inline(always)]
    pub(super) fn end_turn(&mut self, word: usize, turn: &Turn) {
        self.busy[word] &= !turn.emptied;
        if self.grown[word] != 0 {
            self.note_peaks(word);
        }
    }

    #[inline(never)]
    fn note_peaks(&mut self, word: usize) {
        for place in bits::of(std::mem::take(&mut self.grown[word])) {
            let ring = self.ring();
            let (output, peak) = (&mut self.outputs[64 * word + place], &mut self.peaks[64 * word + place]);
            *peak = output.len().max(*peak);
            output.expect(*peak, ring);
        }
    }

    /// Cells in each ring.
    fn ring(&self) -> usize {
        if self.wide.is_empty() { RING } else { WIDE_RING }
    }

    /// The greatest queue of a lane since the last look.
    pub(super) fn peak(&self, lane: usize) -> u32 {
        self.peaks[lane]
    }

    /// Begins to look for the greatest queue of a lane again.
    pub(super) fn restart_peak(&mut self, lane: usize) {
        self.peaks[lane] = 0;
        let ring = self.ring();
        self.outputs[lane].expect(0, ring);
        self.grown[lane / 64] |= 1 << (lane % 64);
    }

    /// Sum of the levels of each memory after the service of each slot before `until`.
    pub(super) fn level_slots(&self, until: u32) -> Vec<u64> {
        let mut sums = vec![0_u64; self.memories.len()];
        for output in &self.outputs {
            let sum = &mut sums[output.switch as usize];
            *sum = sum.wrapping_add(output.len_slots(until));
        }
        sums
    }

    /// All cells that wait.
    pub(super) fn all_waiting(&self) -> impl Iterator<Item = Cell> + '_ {
        let rings = self.outputs.iter().enumerate().flat_map(|(lane, output)| {
            let ring = self.wide.get(lane).map_or(&output.cells[..], |wide| &wide[..]);
            let first = output.len().min(ring.len() as u32);
            (0..first).map(move |i| ring[output.head.wrapping_add(i) as usize % ring.len()])
        });
        rings.chain(self.behind.iter().flatten().map(|behind| behind.cell))
    }
}
