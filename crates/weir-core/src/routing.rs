//! Shortest paths, and which of several equal ones a flow takes.
//!
//! A switch forwards towards the destination over one of the ports that lie on a shortest path (ECMP). Which one
//! depends on the destination alone, so that a flow keeps its order: at the flow's `n`-th switch (from 1), with
//! `h` the first output of SplitMix64 from the state `destination`, it is candidate
//! `(h >> 16 (n - 1)) mod candidates`, in the order of port ids. From the fifth switch on the next outputs are used
//! alike. A host with several links chooses by SplitMix64 from the complement of `destination`. Hosts do not
//! forward.

use crate::network::Topology;
use crate::rng::Stream;

/// Finds paths; asks for the same destination are cheap when they come one after the other.
#[derive(Debug)]
pub struct Router<'a> {
    topology: &'a Topology,
    /// Ports of node `n`, in order: `outgoing[first[n]..first[n + 1]]`.
    first: Vec<u32>,
    outgoing: Vec<u32>,
    /// The switches that hang on the destination last asked for: what `distance` was computed from.
    roots: Vec<u32>,
    /// Links from each switch to the destination; `FAR` when there is no way, and for hosts.
    distance: Vec<u32>,
}

const FAR: u32 = u32::MAX;

impl<'a> Router<'a> {
    /// A router for `topology`.
    pub fn new(topology: &'a Topology) -> Router<'a> {
        let mut first = vec![0; topology.nodes.len() + 1];
        for port in &topology.ports {
            first[port.from as usize + 1] += 1;
        }
        for node in 0..topology.nodes.len() {
            first[node + 1] += first[node];
        }
        let mut cursor = first.clone();
        let mut outgoing = vec![0; topology.ports.len()];
        for (id, port) in (0..).zip(&topology.ports) {
            let place = &mut cursor[port.from as usize];
            outgoing[*place as usize] = id;
            *place += 1;
        }
        Router { topology, first, outgoing, roots: Vec::new(), distance: vec![FAR; topology.nodes.len()] }
    }

    /// The ports that a frame from host `from` to host `to` passes, or `None` when there is no way. From a host to
    /// itself it goes to a switch and back.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Vec<u32>> {
        self.measure(to);
        let mut path = Vec::new();
        let choice = Choice::new(to);
        let mut node = from;
        loop {
            let candidates = self.candidates(node, to);
            let port = *match candidates.len() {
                0 => return None,
                1 => &candidates[0],
                several => &candidates[choice.at(path.len(), several)],
            };
            path.push(port);
            node = self.topology.ports[port as usize].to;
            if node == to {
                return Some(path);
            }
        }
    }

    fn ports(&self, node: u32) -> &[u32] {
        &self.outgoing[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// Ports of `node` that lie on a shortest path to `to`.
    fn candidates(&self, node: u32, to: u32) -> Vec<u32> {
        let links_over = |port: u32| {
            let next = self.topology.ports[port as usize].to;
            if next == to { 0 } else { self.distance[next as usize] }
        };
        let best = self.ports(node).iter().map(|&port| links_over(port)).min().unwrap_or(FAR);
        if best == FAR {
            return Vec::new();
        }
        self.ports(node).iter().copied().filter(|&port| links_over(port) == best).collect()
    }

    /// Fills `distance` breadth first. It depends only on the switches next to `to`, so hosts of one switch share it.
    fn measure(&mut self, to: u32) {
        let neighbours = self.ports(to).iter().map(|&port| self.topology.ports[port as usize].to);
        let roots: Vec<u32> = neighbours.filter(|&node| !self.topology.is_host(node)).collect();
        if roots == self.roots {
            return;
        }
        self.distance.fill(FAR);
        let mut frontier = roots.clone();
        for &root in &roots {
            self.distance[root as usize] = 1;
        }
        let mut reached = 0;
        while let Some(&node) = frontier.get(reached) {
            reached += 1;
            for index in self.first[node as usize]..self.first[node as usize + 1] {
                let next = self.topology.ports[self.outgoing[index as usize] as usize].to;
                if !self.topology.is_host(next) && self.distance[next as usize] == FAR {
                    self.distance[next as usize] = self.distance[node as usize] + 1;
                    frontier.push(next);
                }
            }
        }
        self.roots = roots;
    }
}

/// The bits that choose among equal paths.
struct Choice {
    destination: u64,
}

impl Choice {
    fn new(destination: u32) -> Choice {
        Choice { destination: destination.into() }
    }

    /// Which of `several` candidates to take after `hops` links.
    fn at(&self, hops: usize, several: usize) -> usize {
        let bits = match hops.checked_sub(1) {
            None => Stream::split_mix_64(!self.destination).next_u64(),
            Some(switch) => {
                let mut stream = Stream::split_mix_64(self.destination);
                let word = (0..=switch / 4).fold(0, |_, _| stream.next_u64());
                word >> (16 * (switch % 4))
            }
        };
        usize::try_from(bits % several as u64).expect("less than the number of candidates")
    }
}
