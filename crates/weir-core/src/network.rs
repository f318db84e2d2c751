//! A network in full: nodes, and the transmitters (ports) of its links, out of a graph or a generator.
//!
//! Link `i` joins `a` and `b` and makes port `2 i`, the transmitter of `a` towards `b`, called `a->b`, and port
//! `2 i + 1`, called `b->a`. Ports of a second link between the same nodes are called `a->b#2` and `b->a#2`.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Part, SpecError, refuse};
use crate::spec::{Link, LinkSpec, Network, Node, NodeKind, Routing, SwitchSpec};
use crate::units::{Bytes, Span};

/// Nodes and ports; ids are places.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Every host and switch.
    pub nodes: Vec<Node>,
    /// Every direction of every link.
    pub ports: Vec<PortSpec>,
    /// Which of several shortest paths is taken.
    pub routing: Routing,
}

/// One direction of a link: the transmitter and the wire behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct PortSpec {
    /// Unique name, such as `host-0->switch-0`.
    pub name: String,
    /// The node that transmits.
    pub from: u32,
    /// The node that receives.
    pub to: u32,
    /// Rate, delay and framing.
    pub link: LinkSpec,
}

/// Most nodes of a network. It keeps a mistyped parameter of a generator from filling the memory.
pub(crate) const MAX_NODES: u64 = 1 << 20;
/// Most ports of a network, two for each link.
pub const MAX_PORTS: u64 = 1 << 20;
/// Longest delay of a link and longest latency of a switch: one hour.
pub(crate) const MAX_DELAY: Span = Span::from_ms(3_600_000);
/// Most bytes that framing may add to a frame.
pub(crate) const MAX_FRAMING: Bytes = Bytes::new(65_535);

impl Topology {
    /// Writes `network` out in full.
    ///
    /// # Errors
    /// A generator's parameter that makes no network or too large a one, an unusable link, a name that is empty,
    /// taken or holds `->` or `#`. Pointers are relative to the network.
    pub fn expand(network: &Network) -> Result<Topology, SpecError> {
        let mut plan = Builder::default();
        let mut chosen = Routing::default();
        match network {
            Network::Graph { nodes, links } => {
                check_size(nodes.len() as u64, links.len() as u64, "", "this graph")?;
                check_graph(nodes, links)?;
                return Ok(Topology {
                    nodes: nodes.clone(),
                    ports: name_ports(nodes, links),
                    routing: Routing::default(),
                });
            }
            Network::Star { hosts, link, switch } => {
                check_generator(link, &[("switch", switch)])?;
                at_least_one(*hosts, "/hosts", "a star", "hosts")?;
                check_size(u64::from(*hosts) + 1, (*hosts).into(), "/hosts", &format!("a star of {hosts} hosts"))?;
                let ends = plan.nodes("host", *hosts, NodeKind::Host, Span::ZERO);
                let center = plan.nodes("switch", 1, NodeKind::Switch, switch.latency_ps);
                for host in 0..*hosts {
                    plan.join(ends + host, center, link);
                }
            }
            Network::Dumbbell { pairs, access, bottleneck, switch } => {
                check_link(access, "/access")?;
                check_link(bottleneck, "/bottleneck")?;
                check_delay(switch.latency_ps, "/switch/latency_ps", "the latency of a switch")?;
                at_least_one(*pairs, "/pairs", "a dumbbell", "pairs")?;
                let count = u64::from(*pairs) * 2;
                check_size(count + 2, count + 1, "/pairs", &format!("a dumbbell of {pairs} pairs"))?;
                let left_hosts = plan.nodes("left", *pairs, NodeKind::Host, Span::ZERO);
                let right_hosts = plan.nodes("right", *pairs, NodeKind::Host, Span::ZERO);
                let left = plan.node("left".into(), NodeKind::Switch, switch.latency_ps);
                let right = plan.node("right".into(), NodeKind::Switch, switch.latency_ps);
                for host in 0..*pairs {
                    plan.join(left_hosts + host, left, access);
                }
                for host in 0..*pairs {
                    plan.join(right_hosts + host, right, access);
                }
                plan.join(left, right, bottleneck);
            }
            Network::FatTree { k, link, switch } => {
                check_generator(link, &[("switch", switch)])?;
                plan.fat_tree(*k, link, switch)?;
            }
            Network::Xgft { children, parents, routing, link, switch } => {
                check_generator(link, &[("switch", switch)])?;
                plan.xgft(children, parents, link, switch)?;
                chosen = *routing;
            }
        }
        let ports = name_ports(&plan.nodes, &plan.links);
        Ok(Topology { nodes: plan.nodes, ports, routing: chosen })
    }

    /// The id of the node called `name`.
    pub fn node(&self, name: &str) -> Option<u32> {
        self.nodes.iter().position(|node| node.name == name).map(id)
    }

    /// The id of the port called `name`.
    pub fn port(&self, name: &str) -> Option<u32> {
        self.ports.iter().position(|port| port.name == name).map(id)
    }

    /// Whether `node` is a host.
    pub fn is_host(&self, node: u32) -> bool {
        self.nodes[node as usize].kind == NodeKind::Host
    }
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    links: Vec<Link>,
}

impl Builder {
    fn node(&mut self, name: String, kind: NodeKind, latency_ps: Span) -> u32 {
        self.nodes.push(Node { name, kind, latency_ps });
        id(self.nodes.len() - 1)
    }

    /// Adds `count` nodes `PREFIX-0`, `PREFIX-1`, ... and returns the id of the first.
    fn nodes(&mut self, prefix: &str, count: u32, kind: NodeKind, latency: Span) -> u32 {
        let first = id(self.nodes.len());
        self.nodes.extend((0..count).map(|i| Node { name: format!("{prefix}-{i}"), kind, latency_ps: latency }));
        first
    }

    fn join(&mut self, a: u32, b: u32, link: &LinkSpec) {
        self.links.push(Link { a, b, link: *link });
    }

    /// Three levels of switches with `k` ports: pods of `k/2` edge and `k/2` aggregation switches, `(k/2)^2` core
    /// switches. Aggregation switch `a` of each pod reaches the core switches `a k/2 ... (a + 1) k/2 - 1`.
    ///
    /// Source: Al-Fares 2008, section 3.
    fn fat_tree(&mut self, k: u32, link: &LinkSpec, switch: &SwitchSpec) -> Result<(), SpecError> {
        refuse!(k == 0 || !k.is_multiple_of(2), "/k", "k of a fat tree is even and at least 2 (got {k})");
        let half = u64::from(k / 2);
        let hosts = half.saturating_pow(2).saturating_mul(k.into());
        let switches = half.saturating_pow(2).saturating_mul(5);
        check_size(hosts.saturating_add(switches), hosts.saturating_mul(3), "/k", &format!("a fat tree with k = {k}"))?;
        let (half, latency) = (k / 2, switch.latency_ps);
        let host = self.nodes("host", half * half * k, NodeKind::Host, Span::ZERO);
        let edge = self.nodes("edge", half * k, NodeKind::Switch, latency);
        let agg = self.nodes("agg", half * k, NodeKind::Switch, latency);
        let core = self.nodes("core", half * half, NodeKind::Switch, latency);
        for h in 0..half * half * k {
            self.join(host + h, edge + h / half, link);
        }
        for e in 0..half * k {
            for a in 0..half {
                self.join(edge + e, agg + e / half * half + a, link);
            }
        }
        for a in 0..half * k {
            for c in 0..half {
                self.join(agg + a, core + a % half * half + c, link);
            }
        }
        Ok(())
    }

    /// Level by level from the hosts up. Node `a W + b` of a level with `W` = product of `parents` so far stands above
    /// the hosts `a M ... (a + 1) M - 1`, with `M` = product of `children` so far; its parents are the nodes
    /// `a / m W w + b w ... + w - 1` of the next level.
    ///
    /// Source: Öhring 1995, definition of XGFT.
    fn xgft(
        &mut self,
        children: &[u32],
        parents: &[u32],
        link: &LinkSpec,
        switch: &SwitchSpec,
    ) -> Result<(), SpecError> {
        let levels = check_xgft(children, parents)?;
        let mut below = self.nodes("host", levels[0], NodeKind::Host, Span::ZERO);
        let mut wide = 1;
        for (level, (&m, &w)) in (1..).zip(children.iter().zip(parents)) {
            let above = self.nodes(&format!("level{level}"), levels[level], NodeKind::Switch, switch.latency_ps);
            for node in 0..levels[level - 1] {
                let first = node / wide / m * wide * w + node % wide * w;
                (0..w).for_each(|parent| self.join(below + node, above + first + parent, link));
            }
            (below, wide) = (above, wide * w);
        }
        Ok(())
    }
}

/// Nodes of each level of an extended generalised fat tree, hosts first: level `i` has
/// `w_1 ... w_i m_{i + 1} ... m_h`.
fn check_xgft(children: &[u32], parents: &[u32]) -> Result<Vec<u32>, SpecError> {
    at_least_one(u32::from(!children.is_empty()), "/children", "an extended generalised fat tree", "a level")?;
    if children.len() != parents.len() {
        let message =
            format!("as many levels of parents as of children (got {} and {})", parents.len(), children.len());
        return Err(SpecError::new("/parents", message));
    }
    for (name, counts) in [("children", children), ("parents", parents)] {
        for (i, &count) in counts.iter().enumerate() {
            at_least_one(count, &format!("/{name}/{i}"), "a level of the tree", name)?;
        }
    }
    let product = |counts: &[u32]| counts.iter().fold(1, |all: u64, &count| all.saturating_mul(count.into()));
    let nodes = |level: usize| product(&parents[..level]).saturating_mul(product(&children[level..]));
    let links = (0..children.len()).map(|level| nodes(level).saturating_mul(parents[level].into()));
    let all = (0..=children.len()).map(nodes).fold(0, u64::saturating_add);
    check_size(all, links.fold(0, u64::saturating_add), "/children", "this extended generalised fat tree")?;
    Ok((0..=children.len()).map(|level| nodes(level) as u32).collect())
}

fn id(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 nodes and ports, as checked")
}

fn name_ports(nodes: &[Node], links: &[Link]) -> Vec<PortSpec> {
    let mut parallel: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut ports = Vec::with_capacity(2 * links.len());
    for Link { a, b, link } in links {
        let count = parallel.entry((*a.min(b), *a.max(b))).or_default();
        *count += 1;
        let suffix = if *count > 1 { format!("#{count}") } else { String::new() };
        for (from, to) in [(*a, *b), (*b, *a)] {
            let name = format!("{}->{}{suffix}", nodes[from as usize].name, nodes[to as usize].name);
            ports.push(PortSpec { name, from, to, link: *link });
        }
    }
    ports
}

fn check_size(nodes: u64, links: u64, pointer: &str, what: &str) -> Result<(), SpecError> {
    let ports = links.saturating_mul(2);
    if nodes > MAX_NODES {
        return Err(SpecError::new(pointer, format!("{what} has {nodes} nodes; at most {MAX_NODES} can be simulated")));
    }
    if ports > MAX_PORTS {
        return Err(SpecError::new(pointer, format!("{what} has {ports} ports; at most {MAX_PORTS} can be simulated")));
    }
    Ok(())
}

fn at_least_one(count: u32, pointer: &str, network: &str, what: &str) -> Result<(), SpecError> {
    if count == 0 { Err(SpecError::new(pointer, format!("{network} needs {what} (got 0)"))) } else { Ok(()) }
}

fn check_generator(link: &LinkSpec, switches: &[(&str, &SwitchSpec)]) -> Result<(), SpecError> {
    check_link(link, "/link")?;
    for (name, switch) in switches {
        check_delay(switch.latency_ps, &format!("/{name}/latency_ps"), "the latency of a switch")?;
    }
    Ok(())
}

fn check_link(link: &LinkSpec, pointer: &str) -> Result<(), SpecError> {
    refuse!(link.rate_bps.bps() == 0, format!("{pointer}/rate_bps"), "a link needs a rate above zero (got 0 bit/s)");
    if link.framing_bytes > MAX_FRAMING {
        let message = format!("framing adds at most {MAX_FRAMING} to a frame (got {})", link.framing_bytes);
        return Err(SpecError::new(format!("{pointer}/framing_bytes"), message));
    }
    link.loss.check().under(format_args!("{pointer}/loss"))?;
    check_delay(link.delay_ps, &format!("{pointer}/delay_ps"), "the delay of a link")
}

fn check_delay(delay: Span, pointer: &str, what: &str) -> Result<(), SpecError> {
    refuse!(delay > MAX_DELAY, pointer, "{what} is at most {MAX_DELAY} (got {delay})");
    Ok(())
}

fn check_graph(nodes: &[Node], links: &[Link]) -> Result<(), SpecError> {
    let mut taken = BTreeSet::new();
    for (i, Node { name, kind, latency_ps }) in nodes.iter().enumerate() {
        let at = format!("/nodes/{i}/name");
        refuse!(name.is_empty(), at, "a node needs a name");
        if name.contains("->") || name.contains('#') {
            return Err(SpecError::new(at, format!("the name of a node cannot hold '->' or '#' (got '{name}')")));
        }
        refuse!(!taken.insert(name), at, "two nodes are called '{name}'");
        let at = format!("/nodes/{i}/latency_ps");
        if *kind == NodeKind::Host && *latency_ps > Span::ZERO {
            return Err(SpecError::new(
                at,
                format!("only switches have a latency (got {latency_ps} for host '{name}')"),
            ));
        }
        check_delay(*latency_ps, &at, "the latency of a switch")?;
    }
    for (i, Link { a, b, link }) in links.iter().enumerate() {
        for (end, node) in [("a", a), ("b", b)] {
            if *node as usize >= nodes.len() {
                let message = format!("there is no node {node}: the network has {}", nodes.len());
                return Err(SpecError::new(format!("/links/{i}/{end}"), message));
            }
        }
        if a == b {
            let name = &nodes[*a as usize].name;
            return Err(SpecError::new(format!("/links/{i}"), format!("a link joins two nodes (got '{name}' twice)")));
        }
        check_link(link, &format!("/links/{i}/link"))?;
    }
    Ok(())
}
