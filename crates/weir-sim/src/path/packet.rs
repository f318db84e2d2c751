//! What is on a path.

use weir_core::tcp::{Ecn, Segment};

/// What travels.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packet {
    Data { stream: u32, segment: Segment },
    Ack { stream: u32, segment: Segment },
    Request(u32),
    Reply(u32),
}

impl Packet {
    /// The same packet after it has met congestion.
    pub(super) fn marked(self) -> Packet {
        match self {
            Packet::Data { stream, segment } => Packet::Data { stream, segment: Segment { ecn: Ecn::Ce, ..segment } },
            other => other,
        }
    }
}
