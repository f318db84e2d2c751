//! Messages: finite flows that come whether the network keeps up or not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Span, Time};
use crate::{rdma, tcp};

/// Messages of one kind, each carried by a connection of its own, or by frames alone.
///
/// A group whose messages have connections has two flows: the data of all of them, and what comes back. Otherwise each pair of a sender
/// and a receiver is a flow. They follow those of its sources, connections and estimators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// Settings of both ends of the connection of each; null: their frames go without, as `packets` says.
    pub config: Option<tcp::Config>,
    /// Settings of both ends of each, where it goes in numbered packets; not with `config`.
    #[serde(default)]
    pub rdma: Option<rdma::Config>,
    /// How messages without TCP are cut.
    pub packets: Packets,
    /// Whether each connection is opened first. Otherwise it is there already, idle for so long that it has the window of a new one,
    /// and knows the round-trip time of an empty network.
    pub handshake: bool,
    /// How nodes choose among the ports on shortest ways.
    pub balancing: Balancing,
    /// When which messages come.
    pub arrivals: Arrivals,
    /// Most rows that are kept of them; of more, every second, every fourth, and so on.
    pub rows: u64,
}

/// Frames of a message without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// Data of a full frame.
    pub payload_bytes: Bytes,
    /// What each frame has beyond its data.
    pub header_bytes: Bytes,
}

impl Messages {
    /// Who may send to whom, each pair once, in order.
    pub fn pairs(&self) -> Vec<(u32, u32)> {
        let mut pairs: Vec<(u32, u32)> = match &self.arrivals {
            Arrivals::Listed { list } => list.iter().map(|row| (row.1, row.2)).collect(),
            Arrivals::Chained { tasks, .. } => tasks.iter().map(|task| (task.0, task.1)).collect(),
            Arrivals::Drawn { hosts, sources, .. } => {
                let list = |place: u32| hosts.get(place as usize).map_or(&[][..], Vec::as_slice);
                let of = |source: &MessageSource| {
                    let (from, to) = (list(source.from), source.to.clone());
                    let to: Vec<u32> = to.iter().flat_map(|&(_, place)| list(place)).copied().collect();
                    from.iter().flat_map(|&from| to.iter().map(move |&to| (from, to))).collect::<Vec<_>>()
                };
                sources.iter().flat_map(of).collect()
            }
        };
        pairs.retain(|ends| ends.0 != ends.1);
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Whether each has two ends that speak to each other.
    pub fn has_ends(&self) -> bool {
        self.config.is_some() || self.rdma.is_some()
    }

    /// How many flows they have.
    pub fn flows(&self) -> u64 {
        if self.has_ends() { 2 } else { self.pairs().len() as u64 }
    }
}

/// How nodes choose among the ports on shortest ways to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Balancing {
    /// A hash of the connection chooses: all its frames in one direction take the same way.
    Flow {
        /// Whether ports are chosen in proportion to their line rates; otherwise all alike.
        weighted: bool,
    },
    /// Each frame by chance.
    Random {
        /// As in `Flow`.
        weighted: bool,
    },
    /// Each frame by the next port.
    RoundRobin {},
    /// Each frame by the port where it would begin to leave first; of several one by chance.
    LeastQueue {},
    /// By chance after each gap, until the next.
    ///
    /// Source: LetFlow, 3.
    Flowlets {
        /// Time without a frame after which the next may take another port.
        gap_ps: Span,
        /// As in `Flow`.
        weighted: bool,
    },
}

/// When which messages come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// By chance.
    Drawn {
        /// Lists of hosts that sources name by their place here.
        hosts: Vec<Vec<u32>>,
        /// Each draws from the stream `messages/NAME/PLACE`.
        sources: Vec<MessageSource>,
        /// How long messages are.
        sizes: MessageSizes,
    },
    /// One by one, in the order of time: start in ps, sender, receiver, bytes.
    Listed {
        /// All of them.
        list: Vec<(Time, u32, u32, Bytes)>,
    },
    /// Each after others, as in collective operations and traces of programs.
    Chained {
        /// When tasks may begin.
        start_ps: Time,
        /// Each task: sender, receiver, bytes, a delay in ps, and the tasks before this one that it waits for. It begins its delay after
        /// the last of these is over, and is over when its message is delivered; a task of a host for itself has no bytes, and is over
        /// when it begins: a computation.
        tasks: Vec<(u32, u32, Bytes, Span, Vec<u32>)>,
        /// Parts of the tasks, in order and without gaps: how many tasks there are up to the end of each, and the data that each
        /// host has to send in it at best.
        rounds: Vec<(u32, Bytes)>,
    },
}

/// Events at each of which some hosts send a message to some others. A host by itself that sends one message at a time is the plain
/// case; an incast of degree N has N senders and one receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageSource {
    /// List of those who may send.
    pub from: u32,
    /// How many of them send to each receiver at an event: different ones, none to itself.
    pub senders: u32,
    /// Lists of those who may receive, with their weights. If one host alone may send, it is left out.
    pub to: Vec<(f64, u32)>,
    /// How many different ones of the lists receive at an event.
    pub receivers: u32,
    /// Time between events, and before the first.
    pub gaps: Gaps,
    /// No event comes before.
    pub start_ps: Time,
    /// No event comes at this time or later.
    pub stop_ps: Time,
}

/// Independent gaps between events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Gaps {
    /// Equal, and none before the first event.
    Constant {
        /// In ps.
        mean_gap_ps: f64,
    },
    /// Exponential.
    Poisson {
        /// In ps.
        mean_gap_ps: f64,
    },
    /// Lognormal.
    Lognormal {
        /// In ps.
        mean_gap_ps: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Exponential with one of two means, drawn for each gap, whose shares of the time are alike.
    ///
    /// Source: Whitt 1982, 3.1, "balanced means".
    Hyperexponential {
        /// In ps.
        mean_gap_ps: f64,
        /// Squared coefficient of variation, at least 1.
        variation: f64,
    },
}

/// How long messages are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageSizes {
    /// All alike.
    Fixed(Bytes),
    /// A cumulative distribution: sizes in bytes and the share of messages that are no longer; linear between, whole bytes, at
    /// least 1. The first point is an atom if its share is above 0, the last share is 1.
    Table(Vec<(f64, f64)>),
}
