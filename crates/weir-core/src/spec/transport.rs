//! Connections of a transport protocol, and what their applications send; estimators that probe a path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Departures, FrameSize, Stream};
use crate::estimation;
use crate::tcp;
use crate::units::{Bytes, Span, Time};

/// TCP connections with the same settings.
///
/// Each has two flows: its data, and what comes back. The first follows those of the sources of its group and of the
/// connections before it; the second comes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Settings of both ends.
    pub config: tcp::Config,
    /// What their hosts do to them.
    pub hosts: Hosts,
    /// One by one.
    pub list: Vec<Connection>,
}

impl Connections {
    /// Whether the senders ask the port of their host what waits there: they send no more than their adapter holds, or stamp
    /// what they send with the time at which it leaves.
    pub fn asks_its_port(&self) -> bool {
        self.hosts.adapter_frames.is_some() || self.config.congestion_control.times_segments()
    }
}

/// How hosts are imperfect; everything null: not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// How the timers fail that hold the segments of a paced sender back.
    pub timers: Option<tcp::Timing>,
    /// Frames that may wait in the adapter of a sender; while there are as many, it is given no more.
    pub adapter_frames: Option<u32>,
    /// For how long the adapter of a receiver gathers frames, from the first of them on, before it interrupts.
    pub coalescing_ps: Option<Span>,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// The host that opens it and sends data.
    pub from: u32,
    /// The host that receives.
    pub to: u32,
    /// When it is opened.
    pub start_ps: Time,
    /// When the application ends it, if it has not done so before; what it has written is still sent.
    pub stop_ps: Time,
    /// What the application writes.
    pub load: Load,
}

/// What an application writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// As much as it can, until it stops.
    Endless {},
    /// So much, at the start.
    Transfer {
        /// At least 1.
        bytes: Bytes,
    },
    /// Something now and then.
    Writes {
        /// When.
        departures: Departures,
        /// How much.
        write_size: FrameSize,
        /// Where chance comes from; named as that of a source.
        stream: Stream,
    },
}

/// Estimators that send trains of packets, with the same settings.
///
/// Each has two flows, as a connection: its trains, and what the receiver asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probers {
    /// Settings of both ends.
    pub config: estimation::Config,
    /// What their hosts do to them.
    pub hosts: Hosts,
    /// One by one.
    pub list: Vec<Prober>,
}

/// An estimator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prober {
    /// The host that sends trains.
    pub from: u32,
    /// The host that asks for them.
    pub to: u32,
    /// When it begins.
    pub start_ps: Time,
    /// No train is asked for at this time or later.
    pub stop_ps: Time,
}
