//! Buffers of switches that are counted where frames come in and where they leave, and priority flow control by what came in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ethernet::pause;
use crate::units::{Bytes, Rate, Span};

/// The buffer of a switch, which all its ports share. See [`crate::queue::Buffer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SwitchBuffer")]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Switch ids; a switch has one buffer at most.
    pub nodes: Vec<u32>,
    /// All that may wait in one switch.
    pub bytes: Bytes,
    /// How it is shared by input and class; a class is in one pool at most, and if there is any pool each class of the traffic is in one.
    pub ingress: Vec<IngressPool>,
    /// How it is shared by output and class. What is in no pool has no limit here.
    pub egress: Vec<EgressPool>,
    /// How neighbours are asked to stop; needed where a pool is lossless.
    pub flow_control: Option<FlowControl>,
    /// What the switches do about classes that neighbours hold for too long at their ports; absent: nothing.
    pub watchdog: Option<Watchdog>,
}

/// A watchdog of flow control. See [`crate::ethernet::watchdog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watchdog {
    /// For how long a class is held until that is a storm.
    pub detection_ps: Span,
    /// For how long nobody has asked for it until the storm is over; absent: it never is.
    pub restoration_ps: Option<Span>,
    /// Time between two looks.
    pub poll_ps: Span,
    /// What is done in a storm.
    pub action: WatchdogAction,
}

/// What a watchdog does in a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WatchdogAction {
    /// What waits of the class, and what comes, is dropped.
    Drop,
    /// The class is sent, whatever the neighbour asks.
    Forward,
    /// Nothing: it is reported.
    Alert,
}

/// What a queue may have of the part that it shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BufferShare")]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Share {
    /// So many times what is free.
    Dynamic {
        /// Above 0.
        alpha: f64,
    },
    /// The same, however much is free.
    Static {
        /// The most.
        bytes: Bytes,
    },
}

/// A part of the buffer for frames of some classes, by the input that they came over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IngressPool {
    /// The traffic classes.
    pub classes: Vec<u8>,
    /// What its queues share; absent, in one pool at most: what is left of the buffer.
    pub bytes: Option<Bytes>,
    /// What one of them may have of it.
    pub share: Share,
    /// What each of them has to itself, before it takes of what is shared.
    pub reserved_bytes: Bytes,
    /// Present: what came over an input beyond its share still finds room, and the neighbour there is asked to stop.
    pub lossless: Option<Lossless>,
}

/// How frames of some classes are kept from being lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lossless {
    /// Room for what still comes over an input after its neighbour was asked to stop, for each class; absent: what
    /// [`crate::ethernet::headroom`] says of its link.
    pub headroom_bytes: Option<Bytes>,
    /// The neighbour may go on when what is shared is so much below its share, and no headroom is used.
    pub xon_offset_bytes: Bytes,
}

/// A part of the buffer for frames of some classes, by the output that they wait for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EgressPool {
    /// The traffic classes.
    pub classes: Vec<u8>,
    /// What its queues share; absent: the whole buffer.
    pub bytes: Option<Bytes>,
    /// What one of them may have of it.
    pub share: Share,
    /// What each of them has to itself, before it takes of what is shared.
    pub reserved_bytes: Bytes,
}

/// Frames that ask neighbours to stop, and to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowControl {
    /// What one of them stops.
    pub stops: Stops,
    /// Their size, framing excluded.
    pub frame_bytes: Bytes,
    /// Time from the change of the buffer until one is queued.
    pub delay_ps: Span,
    /// How long one stops its receiver, in units of 512 bit times of the link; absent: until it may go on.
    pub quanta: Option<u16>,
    /// Who has to stay stopped is asked again after this time; absent: half of what one lasts.
    pub refresh_ps: Option<Span>,
    /// The longest frame that headroom is for.
    pub longest_bytes: Bytes,
}

impl FlowControl {
    /// After which time who has to stay stopped is asked again on a link of this rate; none: a stop does not run out.
    pub fn repeats(&self, rate: Rate) -> Option<Span> {
        let half = |quanta: u16| Span::from_ps(pause::length(quanta, rate).ps() / 2);
        self.refresh_ps.or_else(|| self.quanta.map(half))
    }
}

/// What a frame of flow control stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stops {
    /// The classes that it names: priority flow control (IEEE 802.1Qbb).
    Classes,
    /// All data: PAUSE (IEEE 802.3, annex 31B).
    Link,
}
