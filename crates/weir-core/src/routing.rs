//! Shortest paths, and which of several equal ones a flow takes.
//!
//! A switch forwards towards the destination over one of the ports that lie on a shortest path. A flow always takes
//! the same ones, so that it keeps its order. Which ones, [`Routing`] says:
//! - `DestinationHash`: at the flow's `n`-th switch (from 1), with `h` the first output of SplitMix64 from the state
//!   `destination`, candidate `(h >> 16 (n - 1)) mod candidates`, in the order of port ids. From the fifth switch on
//!   the next outputs are used alike. A host with several links chooses by SplitMix64 from the complement of
//!   `destination`.
//! - `FlowHash`: the same with the state `source << 32 | destination`.
//! - `DModK`: candidate `destination / D mod candidates`, with `D` the product of the numbers of candidates at the
//!   nodes passed before. On a fat tree that is the digit of the destination that belongs to the level. Source:
//!   Zahavi 2010, D-mod-K routing.
//!
//! Hosts do not forward.

use crate::network::Topology;
use crate::rng::Stream;
use crate::spec::Routing;

/// Finds paths. Those to hosts on the same switches are found faster when they are asked for one after the other.
#[derive(Debug)]
pub struct Router {
    /// Ports of node `n`, each with the node that it leads to: `outgoing[first[n]..first[n + 1]]`. First, in their order, those to switches, then,
    /// from `first_host[n]` on, those to hosts in the order of the hosts.
    first: Vec<u32>,
    first_host: Vec<u32>,
    outgoing: Vec<Outgoing>,
    /// The switches next to the destination last asked for: what `distance` was computed from.
    roots: Vec<u32>,
    /// Links from each switch to the destination; `FAR` when there is no way, and for hosts.
    distance: Vec<u32>,
    routing: Routing,
}

#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    port: u32,
    to: u32,
}

const FAR: u32 = u32::MAX;

impl Router {
    /// A router for `topology`.
    pub fn new(topology: &Topology) -> Router {
        Router::over(topology, |_| true)
    }

    /// A router for `topology` with those of its ports alone that are `usable`.
    pub fn over(topology: &Topology, usable: impl Fn(u32) -> bool) -> Router {
        let nodes = topology.nodes.len();
        let mut first = vec![0; nodes + 1];
        for (_, port) in (0..).zip(&topology.ports).filter(|row| usable(row.0)) {
            first[port.from as usize + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut cursor = first.clone();
        let mut outgoing = vec![Outgoing::default(); first[nodes] as usize];
        for (id, port) in (0..).zip(&topology.ports).filter(|row| usable(row.0)) {
            let place = &mut cursor[port.from as usize];
            outgoing[*place as usize] = Outgoing { port: id, to: port.to };
            *place += 1;
        }
        let mut first_host = Vec::with_capacity(nodes);
        for ends in first.windows(2) {
            let ports = &mut outgoing[ends[0] as usize..ends[1] as usize];
            ports.sort_by_key(|port| if topology.is_host(port.to) { (true, port.to) } else { (false, 0) });
            first_host.push(ends[0] + ports.partition_point(|port| !topology.is_host(port.to)) as u32);
        }
        let (roots, distance) = (Vec::new(), vec![FAR; nodes]);
        Router { first, first_host, outgoing, roots, distance, routing: topology.routing }
    }

    /// The ports that a frame from host `from` to host `to` passes, or `None` when there is no way. From a host to
    /// itself it goes to a switch and back.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Vec<u32>> {
        self.measure(to);
        let mut path = Vec::new();
        let mut choice = Choice::new(self.routing, from, to);
        let mut node = from;
        loop {
            let several = self.candidates(node, to).count();
            let place = if several > 1 { choice.at(path.len(), several) } else { 0 };
            let next = self.candidates(node, to).nth(place)?;
            path.push(next.port);
            if next.to == to {
                return Some(path);
            }
            node = next.to;
        }
    }

    /// The ports of `node`, a switch, that lie on a shortest path to host `to`, in order.
    pub fn ports_towards(&mut self, node: u32, to: u32) -> Vec<u32> {
        self.measure(to);
        self.candidates(node, to).map(|outgoing| outgoing.port).collect()
    }

    /// Ports of `node` that lie on a shortest path to `to`.
    fn candidates(&self, node: u32, to: u32) -> impl Iterator<Item = Outgoing> + '_ {
        let (from, hosts) = (self.first[node as usize] as usize, self.first_host[node as usize] as usize);
        let of_hosts = &self.outgoing[hosts..self.first[node as usize + 1] as usize];
        let of_hosts = &of_hosts[of_hosts.partition_point(|port| port.to < to)..];
        let direct = &of_hosts[..of_hosts.partition_point(|port| port.to == to)];
        let links_behind = |port: &Outgoing| self.distance[port.to as usize];
        let switches = if direct.is_empty() { &self.outgoing[from..hosts] } else { &[] };
        let best = switches.iter().map(links_behind).min().filter(|&best| best != FAR);
        let onward = switches.iter().filter(move |&port| Some(links_behind(port)) == best);
        direct.iter().chain(onward).copied()
    }

    /// The switches next to `node`, in the order of the ports to them.
    fn switches(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let ports = self.first[node as usize] as usize..self.first_host[node as usize] as usize;
        self.outgoing[ports].iter().map(|port| port.to)
    }

    /// Fills `distance` breadth first. It depends only on the switches next to `to`, so hosts of one switch share it.
    fn measure(&mut self, to: u32) {
        if self.switches(to).eq(self.roots.iter().copied()) {
            return;
        }
        self.roots = self.switches(to).collect();
        self.distance.fill(FAR);
        let mut frontier = self.roots.clone();
        for &root in &frontier {
            self.distance[root as usize] = 1;
        }
        let mut reached = 0;
        while let Some(&node) = frontier.get(reached) {
            reached += 1;
            let further = self.distance[node as usize] + 1;
            for next in self.first[node as usize]..self.first_host[node as usize] {
                let next = self.outgoing[next as usize].to;
                let distance = &mut self.distance[next as usize];
                if *distance == FAR {
                    *distance = further;
                    frontier.push(next);
                }
            }
        }
    }
}

/// What chooses among equal paths.
enum Choice {
    /// Outputs of SplitMix64 from this state.
    Hash(u64),
    /// What is left of the destination's number once the digits of the nodes passed are gone.
    Digits(u32),
}

impl Choice {
    fn new(routing: Routing, from: u32, to: u32) -> Choice {
        match routing {
            Routing::DestinationHash => Choice::Hash(to.into()),
            Routing::FlowHash => Choice::Hash(u64::from(from) << 32 | u64::from(to)),
            Routing::DModK => Choice::Digits(to),
        }
    }

    /// Which of `several` candidates to take after `hops` links.
    fn at(&mut self, hops: usize, several: usize) -> usize {
        let state = match self {
            Choice::Hash(state) => *state,
            Choice::Digits(rest) => {
                let digit = *rest as usize % several;
                *rest /= several as u32;
                return digit;
            }
        };
        let bits = match hops.checked_sub(1) {
            None => Stream::split_mix_64(!state).next_u64(),
            Some(switch) => {
                let mut stream = Stream::split_mix_64(state);
                let word = (0..=switch / 4).fold(0, |_, _| stream.next_u64());
                word >> (16 * (switch % 4))
            }
        };
        usize::try_from(bits % several as u64).expect("less than the number of candidates")
    }
}
