//! What is recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Span, Time};

/// What a run writes down besides the totals of flows and ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortProbe {
    /// Port id; at most one probe per port.
    pub port: u32,
    /// Length of an interval.
    pub every_ps: Span,
}

/// Rows of the table `deliveries` (what arrived of a traffic group) or `flow_deliveries` (of each of its flows).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficProbe {
    /// Place in `traffic`; at most one probe per group and table.
    pub traffic: u32,
    /// Length of an interval.
    pub every_ps: Span,
}

/// Rows of the tables `probe_streams`, `probe_states` and `probe_packets`: what probing senders write down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamProbe {
    /// Place in `traffic`; at most one probe per group.
    pub traffic: u32,
    /// Whether each packet is written down.
    pub packets: bool,
}

/// Rows of the table `limiters`: the rate limiter of each flow of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimiterProbe {
    /// A host that is a reaction point; at most one probe per host.
    pub host: u32,
    /// Length of an interval.
    pub every_ps: Span,
}

/// Rows of the table `queue_levels`: how long how much waited at a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
