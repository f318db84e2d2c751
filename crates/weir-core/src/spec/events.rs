//! What happens to a network in the course of a run: links go down and up, rates and buffers change, classes are held.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Limit;
use crate::units::{Rate, Span, Time};

/// A change at a time. It takes effect after all else that happens then but for the timers of agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When.
    pub at_ps: Time,
    /// What.
    pub change: Change,
}

/// What changes, at some ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// The links behind the ports carry nothing: what is on them and what waits before them is lost, and what comes.
    Down {
        /// Port ids.
        ports: Vec<u32>,
    },
    /// The links carry frames again.
    Up {
        /// Port ids.
        ports: Vec<u32>,
    },
    /// From now on switches know whether the links behind the ports are down, and forward over the shortest ways that are left.
    Reroute {
        /// Port ids.
        ports: Vec<u32>,
    },
    /// Frames that begin later take another rate.
    Rate {
        /// Port ids.
        ports: Vec<u32>,
        /// The rate.
        rate_bps: Rate,
    },
    /// What may wait. Frames that wait already stay.
    Limit {
        /// Port ids.
        ports: Vec<u32>,
        /// What may wait.
        limit: Limit,
        /// The traffic class, where ports have queues for classes.
        class: Option<u8>,
    },
    /// No frame of some classes begins.
    Hold {
        /// Port ids.
        ports: Vec<u32>,
        /// The traffic classes; all eight hold ports with one queue, too.
        classes: Vec<u8>,
    },
    /// The node of a port asks the other end of its link to stop some classes, again and again.
    Storm {
        /// Port ids, of hosts.
        ports: Vec<u32>,
        /// The traffic classes; all eight are PAUSE.
        classes: Vec<u8>,
        /// Time between two frames.
        every_ps: Span,
    },
    /// It asks no more. What it has asked for runs out.
    Calm {
        /// Port ids.
        ports: Vec<u32>,
    },
    /// They may go again.
    Release {
        /// Port ids.
        ports: Vec<u32>,
        /// The traffic classes.
        classes: Vec<u8>,
    },
}

impl Change {
    /// Where.
    pub fn ports(&self) -> &[u32] {
        match self {
            Change::Down { ports }
            | Change::Up { ports }
            | Change::Reroute { ports }
            | Change::Rate { ports, .. }
            | Change::Limit { ports, .. }
            | Change::Hold { ports, .. }
            | Change::Storm { ports, .. }
            | Change::Calm { ports }
            | Change::Release { ports, .. } => ports,
        }
    }

    /// Whether it is about links that go down.
    pub fn is_of_links(&self) -> bool {
        matches!(self, Change::Down { .. } | Change::Up { .. } | Change::Reroute { .. })
    }
}
