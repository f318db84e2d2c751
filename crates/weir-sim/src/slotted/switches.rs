//! The switches: an output queue at each port, in a memory that the ports of a switch share.

use weir_core::network::Topology;
use weir_core::routing::Router;
use weir_core::spec::{Network, Routing};

/// A frame of one slot: where it goes, where it came from, when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Slot in which it was generated.
    pub(super) born: u32,
    /// Its flow, and [`LAST`].
    flow: u32,
    /// Host.
    pub(super) to: u16,
    /// Source.
    pub(super) source: u16,
}

/// Marks the last frame of a burst.
const LAST: u32 = 1 << 31;

impl Cell {
    #[inline]
    pub(super) fn new(born: u32, flow: u32, to: u16, source: u16, is_last: bool) -> Cell {
        Cell { born, flow: flow | if is_last { LAST } else { 0 }, to, source }
    }

    #[inline]
    pub(super) fn flow(self) -> usize {
        (self.flow & !LAST) as usize
    }

    #[inline]
    pub(super) fn is_last(self) -> bool {
        self.flow & LAST != 0
    }
}

/// No place in the pool, no port.
pub(super) const NONE: u32 = u32::MAX;

/// A place of the pool.
#[derive(Clone, Copy, Debug)]
struct Place {
    cell: Cell,
    next: u32,
    /// The port that sent it here.
    input: u32,
}

/// The queue of an output port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    head: u32,
    tail: u32,
    /// What waits.
    pub(super) len: u32,
    /// Most that waits while one more is taken: the limit, and the one that this slot serves.
    pub(super) most: u32,
    /// Its switch, counted among switches.
    pub(super) switch: u32,
    /// Sum of `len` over the slots so far, after service.
    pub(super) len_slots: u64,
    /// Greatest `len` after service, since the last look.
    pub(super) peak: u32,
    /// Frames served.
    pub(super) served: u32,
}

/// What the ports of a switch share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Cells that wait.
    pub(super) level: u32,
    pub(super) most: u32,
    pub(super) peak: u32,
    pub(super) level_slots: u64,
}

/// All queues of all switches.
#[derive(Debug)]
pub(super) struct Queues {
    places: Vec<Place>,
    free: u32,
    /// By port; those of hosts stay empty.
    pub(super) outputs: Vec<Output>,
    pub(super) memories: Vec<Memory>,
    /// Cells that came from each port and wait, where inputs are told apart.
    pub(super) of_input: Vec<u32>,
}

/// What became of a cell that came to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Taken,
    Dropped,
}

impl Queues {
    pub(super) fn new(outputs: Vec<Output>, memories: Vec<Memory>, inputs: usize) -> Queues {
        Queues { places: Vec::new(), free: NONE, outputs, memories, of_input: vec![0; inputs] }
    }

    /// An empty queue at a port of `switch` that takes `most` cells.
    pub(super) fn output(switch: u32, most: u32) -> Output {
        Output { head: NONE, tail: NONE, len: 0, most, switch, len_slots: 0, peak: 0, served: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, port: u32, cell: Cell, input: u32) -> Admission {
        let output = &mut self.outputs[port as usize];
        let memory = &mut self.memories[output.switch as usize];
        if memory.level >= memory.most || output.len >= output.most {
            return Admission::Dropped;
        }
        let place = Place { cell, next: NONE, input };
        let id = if self.free == NONE {
            self.places.push(place);
            (self.places.len() - 1) as u32
        } else {
            let id = self.free;
            self.free = self.places[id as usize].next;
            self.places[id as usize] = place;
            id
        };
        if output.len == 0 {
            output.head = id;
        } else {
            self.places[output.tail as usize].next = id;
        }
        output.tail = id;
        output.len += 1;
        memory.level += 1;
        if let Some(level) = self.of_input.get_mut(input as usize) {
            *level += 1;
        }
        Admission::Taken
    }

    /// The first cell of a queue that is not empty, and the port that it came from.
    #[inline]
    pub(super) fn pop(&mut self, port: u32) -> (Cell, u32) {
        let output = &mut self.outputs[port as usize];
        let id = output.head;
        let Place { cell, next, input } = self.places[id as usize];
        output.head = next;
        output.len -= 1;
        output.served += 1;
        self.places[id as usize].next = self.free;
        self.free = id;
        self.memories[output.switch as usize].level -= 1;
        if let Some(level) = self.of_input.get_mut(input as usize) {
            *level -= 1;
        }
        (cell, input)
    }

    /// The cells that wait at `port`.
    pub(super) fn waiting(&self, port: u32) -> impl Iterator<Item = Cell> + '_ {
        let output = &self.outputs[port as usize];
        let mut next = output.head;
        (0..output.len).map(move |_| {
            let place = &self.places[next as usize];
            next = place.next;
            place.cell
        })
    }
}

/// Which port of a switch leads on.
#[derive(Debug)]
pub(super) struct Routes {
    hosts: usize,
    /// By switch and destination; [`BY_FLOW`] where the way depends on the sender, too.
    next: Vec<u32>,
    /// By number of switches passed, sender and destination.
    of_flow: Vec<Vec<u32>>,
    /// Number of switches that a cell has passed when it comes to each switch on its way up.
    passed: Vec<u32>,
}

const BY_FLOW: u32 = u32::MAX - 1;

impl Routes {
    /// The ways of a tree whose hosts are the first nodes, each with one link.
    pub(super) fn new(network: &Network, topology: &Topology, hosts: usize) -> Routes {
        let switches = topology.nodes.len() - hosts;
        let by_flow = matches!(network, Network::Xgft { routing: Routing::FlowHash, .. });
        let mut routes =
            Routes { hosts, next: vec![NONE; switches * hosts], of_flow: Vec::new(), passed: vec![0; switches] };
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
                    let entry = &mut routes.next[switch * hosts + to as usize];
                    if is_up && by_flow {
                        *entry = BY_FLOW;
                        routes.passed[switch] = passed as u32 - 1;
                        if routes.of_flow.len() < passed {
                            routes.of_flow.push(vec![NONE; hosts * hosts]);
                        }
                        routes.of_flow[passed - 1][from as usize * hosts + to as usize] = port;
                    } else {
                        *entry = port;
                    }
                }
            }
        }
        routes
    }

    /// The port by which a cell to host `to` leaves `switch`; where it came `from` is asked if it matters.
    #[inline]
    pub(super) fn port(&self, switch: u32, to: u16, from: impl FnOnce() -> u16) -> u32 {
        let port = self.next[switch as usize * self.hosts + usize::from(to)];
        if port != BY_FLOW {
            return port;
        }
        let passed = self.passed[switch as usize] as usize;
        self.of_flow[passed][usize::from(from()) * self.hosts + usize::from(to)]
    }
}
