//! The switches: an output queue at each port, in a memory that the ports of a switch share.
//!
//! A *lane* is the output of a switch: lane `h` leads to host `h`, the others follow from a whole word of 64 on, in the
//! order of their ports. A *link* is a lane or, behind all lanes, the port of a host.

use std::collections::VecDeque;

use crate::slotted::bits;
use crate::slotted::cell::{Cell, Flight};
use crate::slotted::routes::Routes;

/// No port, no switch, never.
pub(super) const NONE: u32 = u32::MAX;

/// Which lanes and links there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    pub(super) hosts: usize,
    /// The first lane between switches.
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Lanes {
    /// Those of a network whose hosts are the first nodes, each with one link, the first ones.
    pub(super) fn new(hosts: usize, ports: usize) -> Lanes {
        let first = hosts.next_multiple_of(64);
        Lanes { hosts, first, count: first + ports - 2 * hosts }
    }

    pub(super) fn links(self) -> usize {
        self.count + self.hosts
    }

    /// Whether `link` is more than what fills a word.
    pub(super) fn has(self, link: usize) -> bool {
        link < self.hosts || link >= self.first
    }

    /// The link from a host.
    #[inline]
    pub(super) fn uplink(self, host: u32) -> u32 {
        self.count as u32 + host
    }

    /// The link whose transmitter is `port`.
    pub(super) fn link(self, port: u32) -> u32 {
        match (port as usize).checked_sub(2 * self.hosts) {
            Some(place) => (self.first + place) as u32,
            None if port.is_multiple_of(2) => self.uplink(port / 2),
            None => port / 2,
        }
    }

    /// The transmitter of a link.
    pub(super) fn port(self, link: u32) -> u32 {
        let place = link as usize;
        if place >= self.count {
            2 * (link - self.count as u32)
        } else if place >= self.first {
            (place - self.first + 2 * self.hosts) as u32
        } else {
            2 * link + 1
        }
    }
}

/// The queue of a lane: its first cells, in a ring, and what is counted of it.
///
/// Two cache lines, side by side: what a large network does in a slot goes through all of them.
#[derive(Clone, Debug)]
#[repr(C, align(128))]
pub(super) struct Output {
    /// Cells served, and cells taken.
    head: u32,
    tail: u32,
    /// Most that waits while one more is taken: the limit, and the one that this slot serves.
    most: u32,
    /// How many cells will have been taken when the next is sampled; less by those dropped that count.
    pub(super) next_sample: u32,
    /// Its switch, counted among switches.
    pub(super) switch: u32,
    /// Greatest number of cells after service, since the last look.
    pub(super) peak: u32,
    /// Sum of the cells over the slots so far, after service.
    pub(super) len_slots: u64,
    /// The link by which each cell of the ring came, where inputs are told apart.
    inputs: [u32; RING],
    cells: [Cell; RING],
}

/// Cells in the ring of an output; those behind them wait elsewhere.
const RING: usize = 8;

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

    /// A slot's service is over.
    #[inline]
    fn account(&mut self) {
        let len = self.len();
        self.len_slots = self.len_slots.wrapping_add(len.into());
        self.peak = self.peak.max(len);
    }
}

/// What the ports of a switch share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Cells that wait.
    pub(super) level: u32,
    pub(super) most: u32,
    pub(super) peak: u32,
    /// A level above it is news; [`NONE`] where it is not, or no longer.
    pub(super) alarm: u32,
    pub(super) level_slots: u64,
}

/// Where a link leads to, and the cells that came by it and wait, where inputs are told apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// The switch, counted among switches; [`NONE`] for a host.
    pub(super) switch: u32,
    pub(super) waiting: u32,
    /// More of them than this are news; [`NONE`] where they are not, or no longer.
    pub(super) alarm: u32,
    /// Fewer than this are news, once its transmitter was asked to stop; 0 else.
    pub(super) relief: u32,
}

/// All queues of all switches.
#[derive(Debug)]
pub(super) struct Queues {
    /// By lane, up to a whole word of them.
    pub(super) outputs: Vec<Output>,
    /// The cells behind the ring of each lane, and the links by which they came.
    behind: Vec<VecDeque<(Cell, u32)>>,
    /// Lanes that are not empty.
    pub(super) busy: Vec<u64>,
    pub(super) memories: Vec<Memory>,
    /// By link.
    pub(super) inputs: Vec<Input>,
    /// Whether inputs are told apart.
    pub(super) by_input: bool,
}

/// The lanes of a word in a slot.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Those that are still to serve a cell, those that did, and those that it emptied.
    pub(super) todo: u64,
    pub(super) served: u64,
    emptied: u64,
    /// The cells that were served, so many.
    sent: [Flight; 64],
    count: usize,
}

impl Turn {
    /// Before the first slot.
    pub(super) fn new() -> Turn {
        Turn { todo: 0, served: 0, emptied: 0, sent: [Flight { cell: Cell::NONE, link: 0 }; 64], count: 0 }
    }

    /// A word begins to serve, with these lanes.
    #[inline]
    pub(super) fn begin(&mut self, todo: u64) {
        (self.todo, self.served, self.emptied, self.count) = (todo, 0, 0, 0);
    }

    /// The cells that were served, and their lanes.
    #[inline]
    pub(super) fn sent(&self) -> &[Flight] {
        &self.sent[..self.count.min(64)]
    }
}

/// Something is to be done about a cell that came to `lane`.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) flight: Flight,
    pub(super) lane: usize,
    pub(super) is_dropped: bool,
    /// Too many cells wait that came by its link.
    pub(super) is_alarm: bool,
    /// The congestion point looks at it.
    pub(super) is_sampled: bool,
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
            most,
            next_sample: NONE,
            switch,
            peak: 0,
            len_slots: 0,
            inputs: [0; RING],
            cells: [Cell::NONE; RING],
        };
        let mut outputs: Vec<Output> = lanes.map(output).collect();
        outputs.resize(outputs.len().next_multiple_of(64), output((0, 0)));
        Queues {
            behind: vec![VecDeque::new(); outputs.len()],
            busy: vec![0; outputs.len() / 64],
            outputs,
            memories,
            inputs,
            by_input,
        }
    }

    /// Cells come over their links, from the one at `next` on, up to one about which something is to be done.
    pub(super) fn admit<const BY_INPUT: bool>(
        &mut self,
        routes: &Routes,
        host_of: &[u16],
        flights: &[Flight],
        next: &mut usize,
    ) -> Option<News> {
        let (outputs, inputs) = (&mut self.outputs[..], &mut self.inputs[..]);
        let (memories, busy) = (&mut self.memories[..], &mut self.busy[..]);
        let first = *next;
        for (number, &flight) in flights[first..].iter().enumerate() {
            let Flight { cell, link } = flight;
            let input = &mut inputs[link as usize];
            let lane = routes.lane(input.switch, cell.to(), || host_of[usize::from(cell.source())]);
            let output = &mut outputs[lane];
            let memory = &mut memories[output.switch as usize];
            let len = output.len();
            if memory.level >= memory.most || len >= output.most {
                *next = first + number + 1;
                return Some(News { flight, lane, is_dropped: true, is_alarm: false, is_sampled: false });
            }
            if len < RING as u32 {
                let at = output.tail as usize % RING;
                output.cells[at] = cell;
                if BY_INPUT {
                    output.inputs[at] = link;
                }
            } else {
                self.behind[lane].push_back((cell, link));
            }
            output.tail = output.tail.wrapping_add(1);
            memory.level = memory.level.wrapping_add(1);
            busy[lane / 64] |= 1 << (lane % 64);
            let is_sampled = output.tail == output.next_sample;
            let mut is_alarm = false;
            if BY_INPUT {
                input.waiting = input.waiting.wrapping_add(1);
                is_alarm = input.waiting > input.alarm;
            }
            if is_sampled | is_alarm {
                *next = first + number + 1;
                return Some(News { flight, lane, is_dropped: false, is_alarm, is_sampled });
            }
        }
        None
    }

    /// Lanes of a word serve a cell each, up to one that came by an input of which so few wait then that it is news: that
    /// input is returned.
    #[inline(always)]
    pub(super) fn serve<const BY_INPUT: bool>(&mut self, word: usize, turn: &mut Turn) -> Option<u32> {
        let first = 64 * word;
        let outputs = self.outputs[first..].first_chunk_mut::<64>()?;
        let (memories, inputs) = (&mut self.memories[..], &mut self.inputs[..]);
        let (mut todo, mut served, mut emptied, mut count) = (turn.todo, turn.served, turn.emptied, turn.count);
        let mut relieved = None;
        while todo != 0 {
            let place = todo.trailing_zeros();
            todo &= todo - 1;
            let output = &mut outputs[place as usize % 64];
            let at = output.head as usize % RING;
            let (cell, link) = (output.cells[at], output.inputs[at]);
            if output.len() > RING as u32 {
                let (cell, link) = self.behind[first + place as usize].pop_front().unwrap_or((Cell::NONE, 0));
                (output.cells[at], output.inputs[at]) = (cell, link);
            }
            output.head = output.head.wrapping_add(1);
            output.account();
            let memory = &mut memories[output.switch as usize];
            memory.level = memory.level.wrapping_sub(1);
            served |= 1 << place;
            emptied |= u64::from(output.head == output.tail) << place;
            turn.sent[count % 64] = Flight { cell, link: (first as u32).wrapping_add(place) };
            count = count.wrapping_add(1);
            if BY_INPUT {
                let input = &mut inputs[link as usize];
                input.waiting = input.waiting.wrapping_sub(1);
                if input.waiting < input.relief {
                    relieved = Some(link);
                    break;
                }
            }
        }
        (turn.todo, turn.served, turn.emptied, turn.count) = (todo, served, emptied, count);
        relieved
    }

    /// The service of a word is over.
    #[inline(always)]
    pub(super) fn end_turn(&mut self, word: usize, turn: &Turn) {
        let outputs = &mut self.outputs[64 * word..][..64];
        let busy = &mut self.busy[word];
        for place in bits::of(*busy & !turn.served) {
            outputs[place].account();
        }
        *busy &= !turn.emptied;
    }

    /// All cells that wait.
    pub(super) fn all_waiting(&self) -> impl Iterator<Item = Cell> + '_ {
        let rings = self.outputs.iter().flat_map(|output| {
            let first = output.len().min(RING as u32);
            (0..first).map(|i| output.cells[output.head.wrapping_add(i) as usize % RING])
        });
        rings.chain(self.behind.iter().flatten().map(|&(cell, _)| cell))
    }
}
