//! The switches: an output queue at each port, in a memory that the ports of a switch share.
//!
//! A *lane* is the output of a switch: lane `h` leads to host `h`, the others follow from a whole word of 64 on, in the
//! order of their ports. A *link* is a lane or, behind all lanes, the port of a host.

use weir_core::network::Topology;
use weir_core::routing::Router;
use weir_core::spec::{Network, Routing};

use crate::slotted::cell::Cell;

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

/// The queue of a lane: a ring of a power of two of cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    /// Cells served, and cells taken.
    head: u32,
    tail: u32,
    /// Where its ring begins, and its length less one.
    start: u32,
    mask: u32,
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

    /// A slot's service is over.
    #[inline]
    pub(super) fn account(&mut self) {
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

/// All queues of all switches.
#[derive(Debug)]
pub(super) struct Queues {
    /// All rings.
    cells: Vec<Cell>,
    /// The link by which each came, where inputs are told apart.
    inputs: Vec<u32>,
    /// By lane.
    pub(super) outputs: Vec<Output>,
    /// Lanes that are not empty.
    pub(super) busy: Vec<u64>,
    pub(super) memories: Vec<Memory>,
    /// Cells that came by each link and wait, where inputs are told apart.
    pub(super) of_input: Vec<u32>,
}

/// What became of a cell that came to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Taken,
    /// Taken, and the congestion point looks at it.
    Sampled,
    Dropped,
}

/// Cells in the ring of an output at first.
const RING: u32 = 8;

impl Queues {
    /// Empty queues at the outputs of `switch_of` lane, which take `most` cells. `links` is 0 where inputs are not told
    /// apart.
    pub(super) fn new(lanes: impl Iterator<Item = (u32, u32)>, memories: Vec<Memory>, links: usize) -> Queues {
        let output = |(place, (switch, most)): (u32, (u32, u32))| Output {
            head: 0,
            tail: 0,
            start: place * RING,
            mask: RING - 1,
            most,
            next_sample: NONE,
            switch,
            peak: 0,
            len_slots: 0,
        };
        let outputs: Vec<Output> = (0..).zip(lanes).map(output).collect();
        let places = outputs.len() * RING as usize;
        Queues {
            cells: vec![Cell::NONE; places],
            inputs: vec![0; if links > 0 { places } else { 0 }],
            busy: vec![0; outputs.len().div_ceil(64)],
            outputs,
            memories,
            of_input: vec![0; links],
        }
    }

    /// A cell comes over `input` to the queue of `lane`.
    #[inline(always)]
    pub(super) fn push<const BY_INPUT: bool>(&mut self, lane: usize, cell: Cell, input: u32) -> Admission {
        let output = &mut self.outputs[lane];
        let memory = &mut self.memories[output.switch as usize];
        let len = output.len();
        if memory.level >= memory.most || len >= output.most {
            return Admission::Dropped;
        }
        if len > output.mask {
            grow::<BY_INPUT>(&mut self.cells, &mut self.inputs, output);
        }
        let place = output.start.wrapping_add(output.tail & output.mask) as usize;
        self.cells[place] = cell;
        output.tail = output.tail.wrapping_add(1);
        let is_sampled = output.tail == output.next_sample;
        memory.level = memory.level.wrapping_add(1);
        self.busy[lane / 64] |= 1 << (lane % 64);
        if BY_INPUT {
            self.inputs[place] = input;
            let of_input = &mut self.of_input[input as usize];
            *of_input = of_input.wrapping_add(1);
        }
        if is_sampled { Admission::Sampled } else { Admission::Taken }
    }

    /// The first cell of a queue that is not empty, the link that it came by, and whether others wait. It leaves
    /// [`Queues::busy`] to the caller.
    #[inline(always)]
    pub(super) fn pop<const BY_INPUT: bool>(&mut self, lane: usize) -> (Cell, u32, bool) {
        let output = &mut self.outputs[lane];
        let place = output.start.wrapping_add(output.head & output.mask) as usize;
        output.head = output.head.wrapping_add(1);
        output.account();
        let memory = &mut self.memories[output.switch as usize];
        memory.level = memory.level.wrapping_sub(1);
        let mut input = 0;
        if BY_INPUT {
            input = self.inputs[place];
            let of_input = &mut self.of_input[input as usize];
            *of_input = of_input.wrapping_sub(1);
        }
        (self.cells[place], input, output.head != output.tail)
    }

    /// The cells that wait at `lane`.
    fn waiting(&self, lane: usize) -> impl Iterator<Item = Cell> + '_ {
        let output = &self.outputs[lane];
        (0..output.len()).map(move |i| {
            let place = output.start + (output.head.wrapping_add(i) & output.mask);
            self.cells[place as usize]
        })
    }

    /// All cells that wait.
    pub(super) fn all_waiting(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..self.outputs.len()).flat_map(|lane| self.waiting(lane))
    }
}

/// Moves a full ring to one of twice its length.
#[cold]
#[inline(never)]
fn grow<const BY_INPUT: bool>(cells: &mut Vec<Cell>, inputs: &mut Vec<u32>, output: &mut Output) {
    let (length, start) = (output.mask + 1, cells.len());
    let mask = 2 * output.mask + 1;
    cells.resize(start + 2 * length as usize, Cell::NONE);
    if BY_INPUT {
        inputs.resize(cells.len(), 0);
    }
    for i in 0..length {
        let number = output.head.wrapping_add(i);
        let (from, to) = ((output.start + (number & output.mask)) as usize, start + (number & mask) as usize);
        cells[to] = cells[from];
        if BY_INPUT {
            inputs[to] = inputs[from];
        }
    }
    (output.start, output.mask) = (u32::try_from(start).expect("fewer than 2^32 cells in all switches"), mask);
}

/// Which lane of a switch leads on.
#[derive(Debug)]
pub(super) struct Routes {
    hosts: usize,
    next: Table,
    /// By number of switches passed, sender and destination.
    of_flow: Vec<Vec<u32>>,
    /// Number of switches that a cell has passed when it comes to each switch on its way up.
    passed: Vec<u32>,
}

/// The lane by switch and destination; the greatest number where the way depends on the sender, too.
#[derive(Debug)]
enum Table {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Routes {
    /// The ways of a tree whose hosts are the first nodes, each with one link.
    pub(super) fn new(network: &Network, topology: &Topology, lanes: Lanes) -> Routes {
        let hosts = lanes.hosts;
        let switches = topology.nodes.len() - hosts;
        let by_flow = matches!(network, Network::Xgft { routing: Routing::FlowHash, .. });
        let mut next = vec![NONE; switches * hosts];
        let (mut of_flow, mut passed_before) = (Vec::new(), vec![0; switches]);
        let mut router = Router::new(topology);
        // Hosts of one switch go the same ways, unless the sender matters.
        let mut senders: Vec<u32> = (0..hosts as u32).collect();
        if !by_flow {
            senders.dedup_by_key(|host| topology.ports[2 * *host as usize].to);
        }
        for to in 0..hosts as u32 {
            for &from in &senders {
                let path = router.path(from, to).unwrap_or_default();
                let top = path.len() / 2;
                for (passed, &port) in path.iter().enumerate().skip(1) {
                    let switch = topology.ports[port as usize].from as usize - hosts;
                    let is_up = passed < top;
                    if is_up && by_flow {
                        passed_before[switch] = passed as u32 - 1;
                        if of_flow.len() < passed {
                            of_flow.push(vec![NONE; hosts * hosts]);
                        }
                        of_flow[passed - 1][from as usize * hosts + to as usize] = lanes.link(port);
                    } else {
                        next[switch * hosts + to as usize] = lanes.link(port);
                    }
                }
            }
        }
        let next = if lanes.count < usize::from(u16::MAX) {
            Table::Narrow(next.into_iter().map(|lane| lane as u16).collect())
        } else {
            Table::Wide(next)
        };
        Routes { hosts, next, of_flow, passed: passed_before }
    }

    /// The lane by which a cell to host `to` leaves `switch`; where it came `from` is asked if it matters.
    #[inline(always)]
    pub(super) fn lane(&self, switch: u32, to: u16, from: impl FnOnce() -> u16) -> usize {
        let place = (switch as usize).wrapping_mul(self.hosts).wrapping_add(to.into());
        let (lane, by_flow) = match &self.next {
            Table::Narrow(next) => (u32::from(next[place]), u16::MAX.into()),
            Table::Wide(next) => (next[place], NONE),
        };
        if lane != by_flow { lane as usize } else { self.lane_of_flow(switch, to, from()) }
    }

    #[inline(never)]
    fn lane_of_flow(&self, switch: u32, to: u16, from: u16) -> usize {
        let passed = self.passed[switch as usize] as usize;
        self.of_flow[passed][usize::from(from) * self.hosts + usize::from(to)] as usize
    }
}
