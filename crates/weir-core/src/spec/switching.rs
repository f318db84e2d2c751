//! How switches and the adapters of hosts buffer, and outputs that are slower for a while.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Rate, Span, Time};

/// What is not said of a port alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switching {
    /// Switches whose ports share one memory; a switch is named at most once.
    pub memories: Vec<Memory>,
    /// Hosts that keep more than one queue; a host is named at most once. The others send in order.
    pub adapters: Vec<Adapter>,
    /// Ports that are slower for a while: output-generated hotspots.
    pub services: Vec<Service>,
    /// Hosts that take frames out of a buffer; a host is named at most once. The others take them as they come.
    pub egress: Vec<Egress>,
}

impl Switching {
    /// Whether nothing of it is used.
    pub fn is_plain(&self) -> bool {
        *self == Switching::default()
    }
}

/// One memory for all queues of a switch. A frame that finds no room is dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Switch ids.
    pub nodes: Vec<u32>,
    /// All that may wait in one switch.
    pub bytes: Bytes,
    /// A queue may grow to so many times what is free (see [`crate::queue::SharedMemory`]); absent: as far as there is room.
    pub alpha: Option<f64>,
    /// PAUSE by what waits in the memory; absent: none.
    pub pause: Option<MemoryPause>,
}

/// PAUSE by what waits in a shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryPause {
    /// What is compared with the watermarks, and who is paused.
    pub scope: PauseScope,
    /// XOFF when it grows above.
    pub xoff_bytes: Bytes,
    /// XON when it has fallen to this or less.
    pub xon_bytes: Bytes,
    /// Time from the change until the PAUSE frame leaves.
    pub delay_ps: Span,
    /// How long an XOFF holds, in units of 512 bit times of the link; absent: until XON.
    pub quanta: Option<u16>,
    /// XOFF is repeated after this time while the memory stays above; absent: never.
    pub refresh_ps: Option<Span>,
}

/// What is compared with the watermarks, and who is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PauseScope {
    /// All that waits in the switch; all neighbours. Between switches it can lock up: two that are full wait for
    /// each other.
    Switch,
    /// What waits of the frames that came from one neighbour; that neighbour.
    Input,
}

/// How hosts queue what they send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// Host ids.
    pub hosts: Vec<u32>,
    /// The queues.
    pub kind: AdapterKind,
}

/// How a host queues what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdapterKind {
    /// A queue for each destination, served in turn.
    VoqRoundRobin,
}

/// A port that is served at a lower rate for a while, by credit: each slot adds the rate's share of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Port id: of a switch, towards a host.
    pub port: u32,
    /// The rate; less than the line's.
    pub rate_bps: Rate,
    /// From then on.
    pub from_ps: Time,
    /// Until then.
    pub to_ps: Time,
}

/// A buffer in a host, behind the port that leads to it. What slows that port by a [`Service`] then slows the
/// emptying of the buffer, and PAUSE holds the port while the buffer is too full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Egress {
    /// Host ids.
    pub hosts: Vec<u32>,
    /// XOFF when more waits.
    pub xoff_bytes: Bytes,
    /// XON when it has fallen to this or less.
    pub xon_bytes: Bytes,
}
