//! What is written down of a connection as it happens.

use super::super::losses::Loss;
use super::super::series::Series;
use super::MOST_EVENTS;
use crate::row;

row! {
    /// A recovery of a flow: from the first segment sent again until all is acknowledged.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Recovery {
        pub(crate) flow: u32,
        pub(crate) start_ps: u64 => t_ps,
        pub(crate) end_ps: u64,
        /// Whether everything outstanding at its start was acknowledged at its end.
        pub(crate) ended: bool,
        pub(crate) retransmitted: u64,
        pub(crate) timeouts: u64,
        /// Bytes outstanding at its start.
        pub(crate) flight_bytes: u64,
        pub(crate) acked_bytes: u64,
        /// The last round-trip time before it.
        pub(crate) rtt_ps: Option<u64>,
    }
}

row! {
    /// A time in which a flow with data to send sent nothing.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Stall {
        /// The direction whose data was outstanding.
        pub(crate) flow: u32,
        pub(crate) start_ps: u64 => t_ps,
        pub(crate) length_ps: u64,
        /// Place in [`CAUSES`].
        pub(crate) cause: u32,
    }
}

/// What ended a stall, or was the state in it; `held-up`: data that had been sent before came after it.
pub(crate) const CAUSES: [&str; 5] = ["timeout", "zero-window", "late-ack", "late-data", "held-up"];

/// A moment of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// ps.
    pub(crate) now: u64,
    /// The side that sent the packet.
    pub(crate) from: usize,
    /// The flows of both directions.
    pub(crate) flows: [u32; 2],
}

/// Where rows of all connections go.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) series: Series,
    pub(crate) events: Events,
}

/// Events of all connections.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) recoveries: Vec<Recovery>,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) losses: Vec<Loss>,
    /// Events that did not fit.
    pub(crate) left_out: u64,
}

impl Events {
    pub(super) fn recovery(&mut self, recovery: Recovery) {
        if self.recoveries.len() < MOST_EVENTS { self.recoveries.push(recovery) } else { self.left_out += 1 }
    }

    /// Its row; `None` where there is no room.
    pub(super) fn loss(&mut self, loss: Loss) -> Option<u32> {
        if self.losses.len() >= MOST_EVENTS {
            self.left_out += 1;
            return None;
        }
        self.losses.push(loss);
        Some(self.losses.len() as u32 - 1)
    }

    pub(super) fn stall(&mut self, stall: Stall) {
        if self.stalls.len() < MOST_EVENTS { self.stalls.push(stall) } else { self.left_out += 1 }
    }
}
