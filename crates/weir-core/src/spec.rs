//! One resolved experiment as it crosses the boundary: integers in ps, bytes and bit/s, ids instead of
//! selectors, no defaults. The scenario files that people write, their units and defaults belong to Python;
//! whatever arrives here is complete.
//!
//! The legality that no type can express is checked once, in [`Spec::check`]; an error names the place as a
//! JSON pointer, which Python maps back to file, line and column.

pub mod aqm;
pub mod buffers;
pub mod classes;
pub mod control;
pub mod events;
pub mod messages;
mod runs;
pub mod switching;
pub mod transport;

use serde::{Deserialize, Serialize};

use crate::error::SpecError;
use crate::path::LossModel;
use crate::units::{Bytes, Rate, Span, Time};

/// A complete experiment, but for the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Nodes and links, or a generator of them.
    pub network: Network,
    /// What waits where; later rules override earlier ones. A port without a rule never drops.
    pub queues: Vec<QueueRule>,
    /// Who sends what to whom.
    pub traffic: Vec<Traffic>,
    /// What the network does against congestion.
    pub control: control::Control,
    /// Shared memories, adapters, slow outputs.
    pub switching: switching::Switching,
    /// Buffers of switches, and priority flow control.
    #[serde(default)]
    pub buffers: Vec<buffers::Buffer>,
    /// What happens in the course of the run; of several at one time the first comes first.
    #[serde(default)]
    pub events: Vec<events::Event>,
    /// How long.
    pub run: Run,
    /// What to write down besides the totals.
    pub record: Record,
}

/// A network, given in full or by a generator. Generated names: `host-3`, `switch-0`, `edge-2`, `agg-1`,
/// `core-0`; dumbbell: `left-0`, `right-0`, routers `left` and `right`; extended generalised fat tree: `level1-0`,
/// `level2-3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// See [`Node::latency_ps`].
    pub latency_ps: Span,
}

/// A discipline for some ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct QueueRule {
    /// Port ids.
    pub ports: Vec<u32>,
    /// What waits there, and how.
    pub discipline: Discipline,
}

impl QueueRule {
    /// Whether its queues mark frames.
    pub fn marks(&self) -> bool {
        self.discipline.marks()
    }
}

/// A queue discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        aqm: aqm::Aqm,
    },
    /// A queue for each traffic class, and a scheduler.
    Classes(classes::Classes),
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

/// Marks on ECN-capable frames that come to a queue and wait: never up to `k_min`, always above `k_max`, and with a
/// probability that grows from 0 to `p_max` between. See [`crate::marking`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Marking {
    /// Lower threshold.
    pub k_min_bytes: Bytes,
    /// Upper threshold; that of a queue that marks all frames above one length is the lower one, too.
    pub k_max_bytes: Bytes,
    /// Probability just below the upper threshold.
    pub p_max: f64,
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
        if !(0.0..=1.0).contains(&self.p_max) {
            return Err(SpecError::new("/p_max", format!("a number from 0 to 1 (got {})", self.p_max)));
        }
        Ok(())
    }
}

/// Frames that do not reach a queue after it was full: a ring at an input of the switch overruns. See
/// [`crate::queue::Overrun`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Sum of the frame sizes.
    Bytes(Bytes),
    /// Number of frames, whatever their size.
    Frames(u64),
    /// Any amount.
    Unlimited,
}

/// A named group of sources: one entry of `traffic` in a scenario file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Unique name.
    pub name: String,
    /// The traffic class of its frames, 0 to 7: which queue they join where ports have several.
    pub class: u8,
    /// Its sources.
    pub sources: Vec<Source>,
    /// Its TCP connections.
    pub tcp: Option<transport::Connections>,
    /// Its estimators of bandwidth.
    pub probers: Option<transport::Probers>,
    /// Finite flows that come and go.
    pub messages: Option<messages::Messages>,
    /// The hotspot that it makes; absent: traffic of its own.
    pub hotspot: Option<String>,
    /// The group of which it is the rest after an interruption: a place in `traffic`, before its own. Absent: none.
    pub continues: Option<u32>,
}

impl Traffic {
    /// Traffic of sources alone.
    pub fn of_sources(name: impl Into<String>, sources: Vec<Source>) -> Traffic {
        Traffic {
            name: name.into(),
            class: 0,
            sources,
            tcp: None,
            probers: None,
            messages: None,
            hotspot: None,
            continues: None,
        }
    }

    /// How many flows it has.
    pub fn flows(&self) -> u64 {
        let connections = self.tcp.as_ref().map_or(0, |tcp| tcp.list.len() as u64);
        let probers = self.probers.as_ref().map_or(0, |probers| probers.list.len() as u64);
        let messages = self.messages.as_ref().map_or(0, messages::Messages::flows);
        self.sources.iter().map(Source::flows).sum::<u64>() + 2 * (connections + probers) + messages
    }
}

/// Frames that one host sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The sending host.
    pub from: u32,
    /// Where its frames go.
    pub to: Destination,
    /// No frame leaves before.
    pub start_ps: Time,
    /// No frame leaves at this time or later.
    pub stop_ps: Time,
    /// When frames are generated.
    pub departures: Departures,
    /// How long they are.
    pub frame_size: FrameSize,
    /// Where chance comes from.
    pub stream: Stream,
}

impl Source {
    /// How many flows it has: one for each destination.
    pub fn flows(&self) -> u64 {
        match &self.to {
            Destination::Node(_) => 1,
            Destination::Uniform(list) => list.len() as u64,
        }
    }
}

/// Where the frames of a source go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Destination {
    /// Always the same host.
    Node(u32),
    /// A host drawn anew for each frame, all alike. The sender itself may be among them: its frames then go
    /// to its first switch and back. Hosts that follow one another may stand as a pair, the first and the last.
    Uniform(
        #[serde(with = "runs")]
        #[cfg_attr(feature = "schema", schemars(with = "Vec<u32>"))]
        Vec<u32>,
    ),
}

/// A departure process. The first frame leaves one gap after the start, but for `Constant`, whose frame `n`
/// (from 0) leaves at `start + n x gap`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Departures {
    /// Independent exponential gaps.
    Poisson {
        /// Mean gap in ps.
        mean_gap_ps: f64,
    },
    /// In each slot a frame with this probability.
    Bernoulli {
        /// Length of a slot.
        slot_ps: Span,
        /// In (0, 1].
        probability: f64,
    },
    /// Equal gaps.
    Constant {
        /// Gap in ps; a fraction is carried, not lost.
        gap_ps: f64,
    },
    /// Bursts of frames back to back, one in each slot, all of a burst to one destination; between two bursts any
    /// number of idle slots, or none. Both lengths are geometric, so that the process is a Markov chain of two states.
    Bursts {
        /// Length of a slot.
        slot_ps: Span,
        /// Mean share of the slots with a frame, in (0, 1].
        load: f64,
        /// Mean length of a burst, at least 1.
        mean_frames: f64,
        /// Whether it starts within a burst or between two, with the probability that it is there at any time; otherwise
        /// between two, at the end of one.
        #[serde(default)]
        starts_by_chance: bool,
    },
    /// Constant gaps while on, silence while off; both last exponential times. What is left of a gap when an on period
    /// ends is carried to the next, so that the mean rate is exact.
    OnOff {
        /// Gap in ps while on.
        gap_ps: f64,
        /// Mean length of an on period.
        mean_on_ps: Span,
        /// Mean length of an off period.
        mean_off_ps: Span,
        /// Whether it starts in either period, with the probability that it is in it at any time; otherwise on.
        #[serde(default)]
        starts_by_chance: bool,
    },
}

/// Frame sizes, without preamble and gap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FrameSize {
    /// All alike.
    Fixed(Bytes),
    /// Drawn for each frame: sizes with their weights.
    Mix(Vec<(Bytes, u32)>),
}

/// Where a source's chance comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Stream {
    /// The run's seed and the name `traffic/NAME/HOST`.
    Named,
    /// SplitMix64 from this state, whatever the run's seed: for workloads with published exact counts.
    SplitMix64 {
        /// Initial state.
        state: u64,
    },
}

/// How long a run lasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Events at this time or later do not count.
    pub duration_ps: Span,
    /// What computes it.
    pub engine: Engine,
}

/// What computes a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Engine {
    /// The general engine: any network, any frame sizes, event by event.
    #[default]
    Event,
    /// The same without counting each flow: thousands of hosts have too many. Every host then has a port of its own with
    /// all its queues, as with a shared memory.
    EventTotals,
    /// The synchronous engine for frames of one size on stars and trees whose links are all alike: slot by slot.
    Slotted {
        /// Whether each flow is counted; thousands of hosts have too many.
        flows: bool,
    },
}

/// What a run writes down besides the totals of flows and ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Series of ports.
    pub ports: Vec<PortProbe>,
    /// Series of deliveries of traffic groups.
    pub traffic: Vec<TrafficProbe>,
    /// Series of deliveries of every flow of some traffic groups.
    pub flows: Vec<TrafficProbe>,
    /// Series of the senders of all TCP connections of some traffic groups.
    pub connections: Vec<TrafficProbe>,
    /// Probe streams of all senders of some traffic groups that have them.
    pub probe_streams: Vec<StreamProbe>,
    /// Distribution of the one-way delay of every flow.
    pub delays: bool,
    /// Series of the rate limiters of hosts.
    pub limiters: Vec<LimiterProbe>,
    /// Distributions of queues over time.
    pub queue_levels: Vec<LevelProbe>,
    /// Frames themselves, as capture files.
    pub captures: Vec<Capture>,
}

/// A capture file: the frames whose transmission begins at some ports, in order of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Unique name.
    pub name: String,
    /// Port ids; each is an interface of the file. At most one capture per port.
    pub ports: Vec<u32>,
    /// Start of the time that counts.
    pub from_ps: Time,
    /// Its end.
    pub to_ps: Time,
    /// Most frames that are kept; the rest is counted.
    pub frames: u64,
}

/// Rows of the table `intervals`: queue, throughput and drops of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PortProbe {
    /// Port id; at most one probe per port.
    pub port: u32,
    /// Length of an interval.
    pub every_ps: Span,
}

/// Rows of the table `deliveries` (what arrived of a traffic group) or `flow_deliveries` (of each of its flows).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrafficProbe {
    /// Place in `traffic`; at most one probe per group and table.
    pub traffic: u32,
    /// Length of an interval.
    pub every_ps: Span,
}

/// Rows of the tables `probe_streams`, `probe_states` and `probe_packets`: what probing senders write down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StreamProbe {
    /// Place in `traffic`; at most one probe per group.
    pub traffic: u32,
    /// Whether each packet is written down.
    pub packets: bool,
}

/// Rows of the table `limiters`: the rate limiter of each flow of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LimiterProbe {
    /// A host that is a reaction point; at most one probe per host.
    pub host: u32,
    /// Length of an interval.
    pub every_ps: Span,
}

/// Rows of the table `queue_levels`: how long how much waited at a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LevelProbe {
    /// Port id; at most one probe per port.
    pub port: u32,
    /// Start of the time that counts.
    pub from_ps: Time,
    /// Its end.
    pub to_ps: Time,
    /// Width of a bin.
    pub bin_bytes: Bytes,
}
