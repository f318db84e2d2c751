//! Connections of a transport protocol, and what their applications send.

use serde::{Deserialize, Serialize};

use super::{Departures, FrameSize, Stream};
use crate::tcp;
use crate::units::{Bytes, Time};

/// TCP connections with the same settings.
///
/// Each has two flows: its data, and what comes back. The first follows those of the sources of its group and of the
/// connections before it; the second comes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Settings of both ends.
    pub config: tcp::Config,
    /// One by one.
    pub list: Vec<Connection>,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
