//! Traffic classes: queues of their own at a port, and which of them sends next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Discipline;
use crate::units::Bytes;

/// How many traffic classes there are: 0 to 7. Source: IEEE 802.1Q-2018, 8.6.6
pub(crate) const CLASSES: u8 = 8;

/// Least [`Order::Class`] quantum: that of the shortest frame of Ethernet.
pub(crate) const LEAST_QUANTUM: Bytes = Bytes::new(64);

/// The queues of a port for frames of different classes. See [`crate::queue::scheduler`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// Which class sends next.
    pub order: Order,
    /// The queues; one for each class whose frames come here.
    pub list: Vec<Class>,
}

/// Which class sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// That whose first frame came first.
    Arrival,
    /// Classes without a weight go first, the highest number before the others. Those with a weight share what these
    /// leave by deficit weighted round-robin.
    Class {
        /// What a class of weight 1 may send in its turn.
        quantum_bytes: Bytes,
    },
}

/// The queue of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its number, 0 to 7.
    pub class: u8,
    /// Its share; absent: strict priority.
    pub weight: Option<u32>,
    /// What waits there, and how.
    pub discipline: Discipline,
    /// What becomes of packets of messages that find no room; absent: they are dropped.
    #[serde(default)]
    pub trim: Option<Trim>,
}

/// The payload of a packet without room is cut. Its header joins the queue of another class.
///
/// By chance, one half each, it is the packet that comes or the last that waits whose payload is cut.
///
/// Source: uet-htsim, `compositequeue.cpp` (the chance, which breaks phase effects)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trim {
    /// The frame that is left.
    pub size_bytes: Bytes,
    /// Its class.
    pub class: u8,
}
