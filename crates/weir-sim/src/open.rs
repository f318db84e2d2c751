//! Frames whose ways are not fixed: nodes choose among the ports on shortest ways, frame by frame.
//!
//! An *open* flow has no ends of its own: its frames belong to connections that come and go, and each knows the *end* that it is meant
//! for, a number. Places of the ways ([`crate::plan::Plan::route`]) stand for a port by which a frame came and the one that it takes, as
//! three words: the first port, the second, and [`OPEN`] or [`ARRIVED`] behind it. Where a frame begins, the first
//! is the host's own input.

use std::collections::BTreeMap;

use weir_core::network::Topology;
use weir_core::rng::{Stream, mix};
use weir_core::routing::Router;
use weir_core::spec::messages::Balancing;
use weir_core::units::{Bytes, Span, Time};

use crate::route::{ARRIVED, OPEN};

/// Where the places of open flows stand, from the first of a flow on.
#[derive(Debug, Default)]
pub(crate) struct OpenWays {
    /// By port: the places of frames that came by it.
    came: Vec<u32>,
    /// By node: those of frames that begin there.
    begun: Vec<u32>,
    /// By port: how far behind these.
    takes: Vec<u32>,
    /// By node: its first port.
    outlets: Vec<u32>,
    /// By port: the switch that it leads to, or [`NONE`].
    behind: Vec<u32>,
    /// How many words there are.
    pub(crate) words: u32,
}

impl OpenWays {
    pub(crate) fn new(topology: &Topology) -> OpenWays {
        let nodes = topology.nodes.len();
        let (mut takes, mut ports) = (Vec::with_capacity(topology.ports.len()), vec![0; nodes]);
        let mut outlets = vec![0; nodes];
        let switch = |node: u32| if topology.is_host(node) { NONE } else { node };
        let behind = topology.ports.iter().map(|port| switch(port.to)).collect();
        for (id, port) in (0..).zip(&topology.ports) {
            let place = &mut ports[port.from as usize];
            if *place == 0 {
                outlets[port.from as usize] = id;
            }
            takes.push(3 * *place);
            *place += 1;
        }
        let mut ways = OpenWays { begun: vec![0; nodes], takes, outlets, behind, ..OpenWays::default() };
        for (id, begun) in (0..).zip(&mut ways.begun) {
            if topology.is_host(id) {
                *begun = ways.words + 1;
                ways.words += 3 * ports[id as usize];
            }
        }
        for port in &topology.ports {
            ways.came.push(ways.words + 1);
            if !topology.is_host(port.to) {
                ways.words += 3 * ports[port.to as usize];
            }
        }
        ways
    }

    /// The words of a flow.
    pub(crate) fn lay(&self, topology: &Topology) -> Vec<u32> {
        let mut words = vec![ARRIVED; self.words as usize];
        let mut of_node: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (id, port) in (0..).zip(&topology.ports) {
            of_node.entry(port.from).or_default().push(id);
        }
        for (&node, ports) in &of_node {
            let inputs: Vec<(u32, u32)> = if topology.is_host(node) {
                ports.first().map(|_| (self.begun[node as usize], u32::MAX)).into_iter().collect()
            } else {
                ports.iter().map(|&port| (self.came[(port ^ 1) as usize], port ^ 1)).collect()
            };
            for (base, input) in inputs {
                for &port in ports {
                    let place = (base + self.takes[port as usize]) as usize;
                    words[place - 1] = if input == u32::MAX { port ^ 1 } else { input };
                    words[place] = port;
                    let is_last = topology.is_host(topology.ports[port as usize].to);
                    words[place + 1] = if is_last { ARRIVED } else { OPEN };
                }
            }
        }
        words
    }

    /// The switch that `port` leads to; none if it leads to a host.
    #[inline]
    pub(crate) fn behind(&self, port: u32) -> Option<u32> {
        Some(self.behind[port as usize]).filter(|&node| node != NONE)
    }

    /// The first port of `host`.
    pub(crate) fn outlet(&self, host: u32) -> u32 {
        self.outlets[host as usize]
    }

    /// The place of a frame that came by `input` and takes `output`.
    #[inline]
    pub(crate) fn onward(&self, input: u32, output: u32) -> u32 {
        self.came[input as usize] + self.takes[output as usize]
    }

    /// The place of a frame that begins at `node` and takes `output`.
    #[inline]
    pub(crate) fn first(&self, node: u32, output: u32) -> u32 {
        self.begun[node as usize] + self.takes[output as usize]
    }
}

/// An end of a connection that came: what is sent to it finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// The host where it is.
    host: u32,
    /// Of its frames.
    hash: u32,
    /// How nodes choose: a place in `rules`.
    rule: u32,
}

/// Where nodes look a host up.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The only switch next to it, or [`NONE`]; what that one knows stands at `own`.
    near: u32,
    own: u32,
    /// The column of all other nodes: hosts at one switch share it.
    column: u32,
}

/// Ports among which a node chooses.
#[derive(Clone, Copy, Debug)]
struct Set {
    first: u32,
    count: u32,
    /// Whether their rates differ.
    is_uneven: bool,
    /// The one that is next in turn.
    turn: u32,
}

/// What nodes know.
#[derive(Debug)]
pub(crate) struct Open {
    /// By number.
    ends: Vec<End>,
    rules: Vec<Balancing>,
    /// The connection whose ends send now.
    pub(crate) speaking: u32,
    /// Whether senders choose ways by a value that nodes hash.
    pub(crate) reads_entropy: bool,
    /// By node: its row of `table`, if it forwards or has several ports.
    rows: Vec<u32>,
    /// By node: the only port of a host.
    outlets: Vec<u32>,
    /// By node, if it is a host.
    places: Vec<Place>,
    height: usize,
    width: usize,
    /// By row and column, then by host: a place in `sets` or the only port, with [`ALONE`]; [`UNKNOWN`] before it was asked for.
    table: Vec<u32>,
    sets: Vec<Set>,
    members: Vec<u32>,
    sets_of: BTreeMap<(u32, Vec<u32>), u32>,
    router: Router,
    /// Line rates in bit/s, by port.
    rates: Vec<u64>,
    chance: Stream,
    /// By row and a part of the hash: when a frame passed last, and by which port.
    flowlets: Vec<(Time, u32)>,
    /// Most connections at once.
    pub(crate) limit: usize,
}

const UNKNOWN: u32 = u32::MAX;
const ALONE: u32 = 1 << 31;
const NONE: u32 = u32::MAX;
/// Flowlets that a node distinguishes.
const FLOWLETS: usize = 1024;
/// Most connections at once: their ends take some GB.
const MAX_CONNECTIONS: usize = 1 << 20;

impl Open {
    pub(crate) fn new(topology: &Topology, chance: Stream) -> Open {
        let nodes = topology.nodes.len();
        let mut ports: Vec<Vec<u32>> = vec![Vec::new(); nodes];
        for (id, port) in (0..).zip(&topology.ports) {
            ports[port.from as usize].push(id);
        }
        let (mut rows, mut outlets) = (vec![NONE; nodes], vec![NONE; nodes]);
        let mut row = 0;
        for (id, ports) in (0..).zip(&ports) {
            if let ([port], true) = (&ports[..], topology.is_host(id)) {
                outlets[id as usize] = *port;
                continue;
            }
            rows[id as usize] = row;
            row += 1;
        }
        let mut open = Open {
            ends: Vec::new(),
            rules: Vec::new(),
            speaking: 0,
            reads_entropy: false,
            rows,
            outlets,
            places: vec![Place::default(); nodes],
            height: row as usize,
            width: 0,
            table: Vec::new(),
            sets: Vec::new(),
            members: Vec::new(),
            sets_of: BTreeMap::new(),
            router: Router::new(topology),
            rates: topology.ports.iter().map(|port| port.link.rate_bps.bps()).collect(),
            chance,
            flowlets: Vec::new(),
            limit: MAX_CONNECTIONS,
        };
        open.arrange(topology, |_| false);
        open
    }

    /// Hosts share a column if one switch leads to them all, by links of which all or none are down. Nothing is known yet.
    fn arrange(&mut self, topology: &Topology, is_down: impl Fn(u32) -> bool) {
        let mut columns: BTreeMap<(u32, bool), u32> = BTreeMap::new();
        for host in (0..topology.nodes.len() as u32).filter(|&node| topology.is_host(node)) {
            let outlet = self.outlets[host as usize];
            let key =
                if outlet == NONE { (host, false) } else { (topology.ports[outlet as usize].to, is_down(outlet)) };
            let next = columns.len() as u32;
            let column = *columns.entry(key).or_insert(next);
            let near = if outlet == NONE { NONE } else { key.0 };
            self.places[host as usize] = Place { near, own: host, column };
        }
        self.width = columns.len();
        let behind = (self.height * self.width) as u32;
        self.places.iter_mut().for_each(|place| place.own += behind);
        self.table = vec![UNKNOWN; behind as usize + topology.nodes.len()];
    }

    /// The two ends of connection `number`: each at a host, with the hash of its frames.
    pub(crate) fn place(&mut self, number: u32, ends: [(u32, u32); 2], balancing: Balancing) {
        let rule = self.rules.iter().position(|&known| known == balancing).unwrap_or_else(|| {
            self.rules.push(balancing);
            self.rules.len() - 1
        });
        let ends = ends.map(|(host, hash)| End { host, hash, rule: rule as u32 });
        let place = 2 * number as usize;
        self.ends.resize(self.ends.len().max(place + 2), ends[0]);
        self.ends[place..place + 2].copy_from_slice(&ends);
    }

    /// Whether there have been more connections at once than there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.ends.len() / 2 > self.limit
    }

    /// From now on nodes know which links carry nothing.
    pub(crate) fn learn(&mut self, topology: &Topology, down: &[bool]) {
        self.router = Router::over(topology, |port| !down[port as usize]);
        self.arrange(topology, |port| down[port as usize]);
    }

    /// Where `node`, which has this row, looks a host up.
    #[inline]
    fn entry(&self, node: u32, row: u32, place: Place) -> usize {
        if node == place.near { place.own as usize } else { row as usize * self.width + place.column as usize }
    }

    /// The host of `end`.
    pub(crate) fn host(&self, end: u32) -> u32 {
        self.ends[end as usize].host
    }

    /// The port by which `node` sends a frame on that is meant for `end`; none if it knows no way. `waits` says for how long a frame
    /// would wait at a port.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        now: Time,
        node: u32,
        end: u32,
        entropy: u16,
        waits: impl Fn(u32) -> Span,
    ) -> Option<u32> {
        let End { host, hash, rule } = self.ends[end as usize];
        let hash = if entropy == 0 { hash } else { mix(u64::from(hash) << 16 | u64::from(entropy)) as u32 };
        let row = self.rows[node as usize];
        if row == NONE {
            return Some(self.outlets[node as usize]);
        }
        let set = self.known(node, row, host);
        if set & ALONE != 0 {
            return Some(set & !ALONE);
        }
        let Set { first, count, is_uneven, turn } = self.sets[set as usize];
        if count == 0 {
            return None;
        }
        let members = &self.members[first as usize..(first + count) as usize];
        let drawn = match self.rules[rule as usize] {
            Balancing::Flow { weighted } => pick(of_node(hash, node), members, weighted && is_uneven, &self.rates),
            Balancing::Random { weighted } => pick(self.chance.next_u64(), members, weighted && is_uneven, &self.rates),
            Balancing::RoundRobin {} => {
                self.sets[set as usize].turn = if turn + 1 == count { 0 } else { turn + 1 };
                members[turn as usize]
            }
            Balancing::LeastQueue {} => {
                let shift = (self.chance.next_u64() % u64::from(count)) as usize;
                let turned = members[shift..].iter().chain(&members[..shift]);
                turned.copied().min_by_key(|&port| waits(port)).unwrap_or(members[0])
            }
            Balancing::Flowlets { gap_ps, weighted } => {
                if self.flowlets.is_empty() {
                    self.flowlets = vec![(Time::ZERO, NONE); self.height * FLOWLETS];
                }
                let known = &mut self.flowlets[row as usize * FLOWLETS + hash as usize % FLOWLETS];
                if now.saturating_since(known.0) > gap_ps || !members.contains(&known.1) {
                    known.1 = pick(self.chance.next_u64(), members, weighted && is_uneven, &self.rates);
                }
                known.0 = now;
                known.1
            }
        };
        Some(drawn)
    }

    /// What `node` knows of the way to `end`, and the hash by which it chooses: for [`Open::foresee`].
    #[inline]
    pub(crate) fn entry_of(&self, node: u32, end: u32) -> (u32, u32) {
        let End { host, hash, rule } = self.ends[end as usize];
        let row = self.rows[node as usize];
        let chooses = row == NONE || !matches!(self.rules[rule as usize], Balancing::Flow { weighted: false });
        if chooses { (UNKNOWN, 0) } else { (self.table[self.entry(node, row, self.places[host as usize])], hash) }
    }

    /// The port by which `node` will send a frame on of whose way it knows this.
    #[inline]
    pub(crate) fn foresee(&self, node: u32, (known, hash): (u32, u32)) -> u32 {
        if known & ALONE != 0 {
            return if known == UNKNOWN { ARRIVED } else { known & !ALONE };
        }
        let Set { first, count, .. } = self.sets[known as usize];
        let members = &self.members[first as usize..(first + count) as usize];
        if members.is_empty() { ARRIVED } else { pick(of_node(hash, node), members, false, &self.rates) }
    }

    /// What `node`, which has this row, knows of the way to `host`: a set, or the only port.
    #[inline]
    fn known(&mut self, node: u32, row: u32, host: u32) -> u32 {
        let place = self.entry(node, row, self.places[host as usize]);
        let known = self.table[place];
        if known == UNKNOWN { self.find(node, row, host, place) } else { known }
    }

    #[cold]
    fn find(&mut self, node: u32, row: u32, host: u32, place: usize) -> u32 {
        let ports = self.router.ports_towards(node, host);
        if let [port] = ports[..] {
            self.table[place] = ALONE | port;
            return ALONE | port;
        }
        let next = self.sets.len() as u32;
        let set = *self.sets_of.entry((row, ports)).or_insert_with_key(|(_, ports)| {
            let rate = |port: &u32| self.rates[*port as usize];
            let is_uneven = ports.iter().any(|port| rate(port) != rate(&ports[0]));
            let (first, count) = (self.members.len() as u32, ports.len() as u32);
            self.sets.push(Set { first, count, is_uneven, turn: row % count.max(1) });
            self.members.extend(ports);
            next
        });
        self.table[place] = set;
        set
    }

    /// A shortest way from host `from` to host `to`, whatever is up.
    pub(crate) fn way(&mut self, topology: &Topology, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut way = Vec::new();
        let mut node = from;
        while node != to {
            let row = self.rows[node as usize];
            let port = if row == NONE {
                self.outlets[node as usize]
            } else {
                let set = self.known(node, row, to);
                if set & ALONE != 0 {
                    set & !ALONE
                } else {
                    let Set { first, count, .. } = self.sets[set as usize];
                    *self.members.get(first as usize).filter(|_| count > 0)?
                }
            };
            way.push(port);
            node = topology.ports[port as usize].to;
            if way.len() > 64 || way.len() > 1 && topology.is_host(node) && node != to {
                return None;
            }
        }
        Some(way)
    }
}

/// The word by which `node` chooses for frames with this hash.
#[inline]
fn of_node(hash: u32, node: u32) -> u64 {
    mix(u64::from(hash) << 32 | u64::from(node))
}

/// The port that `word`, 64 random bits, chooses.
#[inline]
fn pick(word: u64, members: &[u32], is_weighted: bool, rates: &[u64]) -> u32 {
    let part = |of: u64| ((u128::from(word) * u128::from(of)) >> 64) as u64;
    if !is_weighted {
        return members[part(members.len() as u64) as usize];
    }
    let mut rest = part(members.iter().map(|&port| rates[port as usize]).sum());
    for &port in members {
        let rate = rates[port as usize];
        if rest < rate {
            return port;
        }
        rest -= rate;
    }
    members[0]
}

/// Time from the start of a message until its last byte has arrived over `way` through an empty network, at best.
///
/// Frames of one size and a shorter one behind them, stored and forwarded: the longest chain of transmissions of which each waits for the one
/// before it. Until link `turn` it is one of full frames, with all of them at the slowest link, and then of the last frame.
///
/// Source: Glynn & Whitt 1991, departures from queues in series, (1).
pub(crate) fn empty_time(topology: &Topology, way: &[u32], full: Bytes, fulls: u64, last: Bytes) -> Span {
    let time = |port: u32, size: Bytes| {
        let link = &topology.ports[port as usize].link;
        (size + link.framing_bytes) / link.rate_bps
    };
    let lag = |port: u32| {
        let port = &topology.ports[port as usize];
        port.link.delay_ps + topology.nodes[port.to as usize].latency_ps
    };
    let delays = way.iter().fold(0, |sum, &port| sum + lag(port).ps());
    let behind = |from: usize, size: Bytes| way[from..].iter().fold(0, |sum, &port| sum + time(port, size).ps());
    if fulls == 0 {
        return Span::from_ps(delays + behind(0, last));
    }
    let (mut before, mut slowest, mut longest) = (0, 0, 0);
    for (turn, &port) in way.iter().enumerate() {
        let here = time(port, full).ps();
        (before, slowest) = (before + here, slowest.max(here));
        let tail = if last == Bytes::ZERO { behind(turn + 1, full) } else { behind(turn, last) };
        longest = longest.max(before + (fulls - 1) * slowest + tail);
    }
    Span::from_ps(delays + longest)
}
