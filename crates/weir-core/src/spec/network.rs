//! Networks: nodes, links, and their queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{SpecError, refuse};
use crate::path::LossModel;
use crate::units::{Bytes, Rate, Span};

/// A network, given in full or by a generator. Generated names: `host-3`, `switch-0`, `edge-2`, `agg-1`,
/// `core-0`; dumbbell: `left-0`, `right-0`, routers `left` and `right`; extended generalised fat tree: `level1-0`,
/// `level2-3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Network {
    /// Nodes and links, one by one.
    Graph {
        /// All nodes; a node's id is its place here.
        nodes: Vec<Node>,
        /// All links; link `i` makes port `2 i` (a to b) and port `2 i + 1` (b to a).
        links: Vec<Link>,
    },
    /// `hosts` hosts around `switch-0`.
    Star {
        /// Number of hosts.
        hosts: u32,
        /// Every link.
        link: LinkSpec,
        /// The switch.
        switch: SwitchSpec,
    },
    /// `pairs` hosts on each side of a bottleneck between the switches `left` and `right`.
    Dumbbell {
        /// Hosts on each side.
        pairs: u32,
        /// Links between hosts and switches.
        access: LinkSpec,
        /// The link between the two switches.
        bottleneck: LinkSpec,
        /// Both switches.
        switch: SwitchSpec,
    },
    /// The k-ary fat tree of three levels with k^3/4 hosts.
    FatTree {
        /// Ports of each switch; even.
        k: u32,
        /// Every link.
        link: LinkSpec,
        /// Every switch.
        switch: SwitchSpec,
    },
    /// The extended generalised fat tree: hosts on level 0, switches on the levels above. A node of level `i` has
    /// `parents[i]` nodes above it, a switch of level `i` has `children[i - 1]` below it. With one level and one
    /// parent it is a star.
    ///
    /// `XGFT(h; m_1 ... m_h; w_1 ... w_h)`, with `m` the children and `w` the parents. Source: Öhring 1995, definition
    Xgft {
        /// Nodes below each switch, from the lowest level of switches up.
        children: Vec<u32>,
        /// Nodes above each node, from the hosts up; as many as `children`.
        parents: Vec<u32>,
        /// Which of several shortest paths is taken.
        routing: Routing,
        /// Every link.
        link: LinkSpec,
        /// Every switch.
        switch: SwitchSpec,
    },
}

/// Which of several shortest paths is taken. See [`crate::routing`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// A hash of the destination spreads destinations over the paths.
    #[default]
    DestinationHash,
    /// A hash of sender and destination spreads flows over the paths (per-flow ECMP).
    FlowHash,
    /// The digits of the destination's number choose the way up: neighbouring destinations take different paths.
    DModK,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// What the node does.
    pub kind: NodeKind,
    /// Time between the end of reception and the earliest start of transmission; zero for a host.
    pub latency_ps: Span,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// Sends and receives.
    Host,
    /// Forwards.
    Switch,
}

impl NodeKind {
    /// The word for it, as in a spec.
    pub fn word(self) -> &'static str {
        match self {
            NodeKind::Host => "host",
            NodeKind::Switch => "switch",
        }
    }
}

/// A full-duplex link of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// One end: a place in `nodes`.
    pub a: u32,
    /// The other end.
    pub b: u32,
    /// Its properties, in both directions.
    pub link: LinkSpec,
}

/// Properties of a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Line rate.
    pub rate_bps: Rate,
    /// Propagation delay.
    pub delay_ps: Span,
    /// What a frame occupies beyond its size: 20 B for Ethernet's preamble and gap, 0 where the size is all.
    pub framing_bytes: Bytes,
    /// What is lost on the way, in each direction by chance of its own.
    pub loss: LossModel,
}

/// Properties of a generated switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// See [`Node::latency_ps`].
    pub latency_ps: Span,
}

/// A discipline for some ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueRule {
    /// Port ids.
    pub ports: Vec<u32>,
    /// What waits there, and how.
    pub discipline: Discipline,
}

impl QueueRule {
    /// First in, first out at these ports, up to a limit.
    pub fn drop_tail(ports: Vec<u32>, limit: Limit) -> QueueRule {
        QueueRule { ports, discipline: Discipline::DropTail { limit, marking: None, overrun: None } }
    }

    /// Whether its queues mark frames.
    pub fn marks(&self) -> bool {
        self.discipline.marks()
    }
}

/// A queue discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Discipline {
    /// First in, first out; a frame that would exceed the limit is dropped on arrival.
    DropTail {
        /// What may wait, the frame in transmission excluded.
        limit: Limit,
        /// Marks on frames that it lets wait; absent: none.
        marking: Option<Marking>,
        /// Frames lost before it after it was full; absent: none.
        overrun: Option<Overrun>,
    },
    /// Drops or marks before the queue is full.
    Managed {
        /// What may wait, the frame in transmission excluded.
        limit: Limit,
        /// What drops or marks.
        aqm: super::aqm::Aqm,
    },
    /// A queue for each traffic class, and a scheduler.
    Classes(super::classes::Classes),
}

impl Discipline {
    /// What may wait in one queue; queues of classes have limits of their own.
    pub fn limit(&self) -> Limit {
        match self {
            Discipline::DropTail { limit, .. } | Discipline::Managed { limit, .. } => *limit,
            Discipline::Classes(_) => Limit::Unlimited,
        }
    }

    /// Whether it marks frames.
    pub fn marks(&self) -> bool {
        match self {
            Discipline::DropTail { marking, .. } => marking.is_some(),
            Discipline::Managed { aqm, .. } => aqm.marks(),
            Discipline::Classes(classes) => classes.list.iter().any(|class| class.discipline.marks()),
        }
    }
}

/// Marks on ECN-capable frames that wait in a queue: never up to `k_min`, always above `k_max`, and with a probability that grows from 0
/// to `p_max` between. See [`crate::marking`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Marking {
    /// Lower threshold.
    pub k_min_bytes: Bytes,
    /// Upper threshold; that of a queue that marks all frames above one length is the lower one, too.
    pub k_max_bytes: Bytes,
    /// Probability just below the upper threshold.
    pub p_max: f64,
    /// When it is decided, and by what waits then.
    #[serde(default)]
    pub when: MarkingTime,
}

/// When a queue marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkingTime {
    /// A frame joins the queue: what waits, the frame included.
    #[default]
    Arrival,
    /// Its transmission begins: what still waits.
    Departure,
}

impl Marking {
    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.k_min_bytes > self.k_max_bytes {
            let lower = self.k_min_bytes;
            let message = format!("the upper threshold is at least the lower, {lower} (got {})", self.k_max_bytes);
            return Err(SpecError::new("/k_max_bytes", message));
        }
        refuse!(!(0.0..=1.0).contains(&self.p_max), "/p_max", "a number from 0 to 1 (got {})", self.p_max);
        Ok(())
    }
}

/// Frames that do not reach a queue after it was full: a ring at an input of the switch overruns. See
/// [`crate::queue::Overrun`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Overrun {
    /// The ports that lead to the inputs that lose frames.
    pub inputs: Vec<u32>,
    /// Probability that a frame that the queue has no room for starts a run, above 0.
    pub probability: f64,
    /// Mean length of a run of lost frames, at least 1.
    pub mean_frames: f64,
}

/// How much may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Sum of the frame sizes.
    Bytes(Bytes),
    /// Number of frames, whatever their size.
    Frames(u64),
    /// Any amount.
    #[default]
    Unlimited,
}
