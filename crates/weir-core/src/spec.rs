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
mod network;
mod record;
mod runs;
pub mod switching;
pub mod transport;

pub use self::network::{
    Discipline, Limit, Link, LinkSpec, Marking, MarkingTime, Network, Node, NodeKind, Overrun, QueueRule, Routing,
    SwitchSpec,
};
pub use self::record::{Capture, LevelProbe, LimiterProbe, PortProbe, Record, StreamProbe, TrafficProbe};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Span, Time};

/// A complete experiment, but for the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// A named group of sources: one entry of `traffic` in a scenario file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl Spec {
    /// A network alone, in the event engine.
    pub fn of_network(network: Network, duration_ps: Span) -> Spec {
        Spec {
            network,
            queues: Vec::new(),
            traffic: Vec::new(),
            control: control::Control::default(),
            switching: switching::Switching::default(),
            buffers: Vec::new(),
            events: Vec::new(),
            run: Run { duration_ps, engine: Engine::Event },
            record: Record::default(),
        }
    }

    /// Whether ports of switches write into packets of messages what waits there.
    pub fn has_telemetry(&self) -> bool {
        let reads = |config: &crate::rdma::Config| config.congestion_control.reads_telemetry();
        self.traffic
            .iter()
            .any(|group| group.messages.as_ref().is_some_and(|messages| messages.rdma.as_ref().is_some_and(reads)))
    }
}

impl Traffic {
    /// Traffic of sources alone.
    pub fn of_sources(name: impl Into<String>, sources: Vec<Source>) -> Traffic {
        Traffic { name: name.into(), sources, ..Traffic::default() }
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// From one host to another, through the whole run.
    pub fn between(from: u32, to: u32, departures: Departures, frame_size: FrameSize) -> Source {
        let to = Destination::Node(to);
        Source { from, to, start_ps: Time::ZERO, stop_ps: Time::NEVER, departures, frame_size, stream: Stream::Named }
    }

    /// How many flows it has: one for each destination.
    pub fn flows(&self) -> u64 {
        match &self.to {
            Destination::Node(_) => 1,
            Destination::Uniform(list) => list.len() as u64,
        }
    }
}

/// Where the frames of a source go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Destination {
    /// Always the same host.
    Node(u32),
    /// A host drawn for each frame, all alike. The sender itself may be among them: its frames then go
    /// to its first switch and back. Hosts that follow one another may stand as a pair, the first and the last.
    Uniform(
        #[serde(with = "runs")]
        #[schemars(with = "Vec<u32>")]
        Vec<u32>,
    ),
}

/// A departure process. The first frame leaves one gap after the start, but for `Constant`, whose frame `n`
/// (from 0) leaves at `start + n x gap`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrameSize {
    /// All alike.
    Fixed(Bytes),
    /// Drawn for each frame: sizes with their weights.
    Mix(Vec<(Bytes, u32)>),
}

/// Where a source's chance comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Events at this time or later do not count.
    pub duration_ps: Span,
    /// What computes it.
    pub engine: Engine,
}

/// What computes a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
