//! Which lane of a switch leads on.
//!
//! A switch distinguishes the hosts below it, which follow each other, from all others. Switches of one level choose alike: so they
//! have rows of choices in common, each counted from a first lane, and all rows of a large network fit into a cache.

use weir_core::network::Topology;
use weir_core::routing::Router;
use weir_core::spec::{Network, Routing};

use crate::slotted::lanes::{Lanes, NONE};

#[derive(Debug)]
pub(super) struct Routes {
    hosts: usize,
    /// By switch.
    ways: Vec<Way>,
    rows: Vec<u16>,
    /// By number of switches passed, sender and destination.
    of_flow: Vec<Vec<u32>>,
    /// Number of switches that a cell has passed when it comes to each switch on its way up.
    passed: Vec<u32>,
}

/// The lanes of a switch.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The first host below it, and how many there are.
    low: u32,
    span: u32,
    below: Row,
    /// To all others; its place is [`NONE`] where the way depends on the sender, too.
    above: Row,
}

/// Lanes of hosts that follow each other: `first` and what stands in `rows` from `place` on.
#[derive(Clone, Copy, Debug)]
struct Row {
    first: u32,
    place: u32,
}

impl Routes {
    /// The ways of a tree whose hosts are the first nodes, each with one link.
    pub(super) fn new(network: &Network, topology: &Topology, lanes: Lanes) -> Routes {
        let hosts = lanes.hosts;
        let switches = topology.nodes.len() - hosts;
        let by_flow = matches!(network, Network::Xgft { routing: Routing::FlowHash, .. });
        let mut next = vec![NONE; switches * hosts];
        // The hosts below each switch, from the first one up to the last one.
        let mut below = vec![(NONE, 0); switches];
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
                    if !is_up {
                        let (low, high) = below[switch];
                        below[switch] = (low.min(to), high.max(to));
                    }
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
        let mut shelf = Shelf { rows: Vec::new(), places: Vec::new() };
        let way = |(next, &(low, high)): (&[u32], &(u32, u32))| {
            let low = low.min(high);
            let mut others = next.to_vec();
            let below = shelf.put(others[low as usize..=high as usize].to_vec());
            others[low as usize..=high as usize].fill(NONE);
            let above = if by_flow { Row { first: 0, place: NONE } } else { shelf.put(others) };
            Way { low, span: high - low + 1, below, above }
        };
        let ways = next.chunks(hosts).zip(&below).map(way).collect();
        let rows = shelf.rows.iter().map(|&step| if step == NONE { 0 } else { step as u16 }).collect();
        Routes { hosts, ways, rows, of_flow, passed: passed_before }
    }

    /// The lane by which a cell to host `to` leaves `switch`; where it came `from` is asked if it matters.
    #[inline(always)]
    pub(super) fn lane(&self, switch: u32, to: u16, from: impl FnOnce() -> u16) -> usize {
        let way = &self.ways[switch as usize];
        let number = u32::from(to).wrapping_sub(way.low);
        let (row, number) = if number < way.span { (way.below, number) } else { (way.above, to.into()) };
        if row.place == NONE {
            return self.lane_of_flow(switch, to, from());
        }
        row.first.wrapping_add(self.rows[row.place.wrapping_add(number) as usize].into()) as usize
    }

    #[inline(never)]
    fn lane_of_flow(&self, switch: u32, to: u16, from: u16) -> usize {
        let passed = self.passed[switch as usize] as usize;
        self.of_flow[passed][usize::from(from) * self.hosts + usize::from(to)] as usize
    }
}

/// Rows that were met so far.
struct Shelf {
    rows: Vec<u32>,
    /// Where each begins, and its length.
    places: Vec<(usize, usize)>,
}

/// So many of the rows met last are looked at.
const LOOKS: usize = 16;

impl Shelf {
    /// The row of these lanes, of which those that are [`NONE`] do not matter: one met before if there is any that fits.
    fn put(&mut self, lanes: Vec<u32>) -> Row {
        let first = lanes.iter().copied().min().filter(|&lane| lane != NONE).unwrap_or(0);
        let steps: Vec<u32> = lanes.iter().map(|&lane| if lane == NONE { NONE } else { lane - first }).collect();
        for &(place, length) in self.places.iter().rev().take(LOOKS) {
            let row = &mut self.rows[place..place + length];
            if length == steps.len() && row.iter().zip(&steps).all(|(&a, &b)| a == b || a == NONE || b == NONE) {
                row.iter_mut().zip(&steps).for_each(|(a, &b)| *a = (*a).min(b));
                return Row { first, place: place as u32 };
            }
        }
        let place = self.rows.len();
        self.places.push((place, steps.len()));
        self.rows.extend(steps);
        Row { first, place: place as u32 }
    }
}
