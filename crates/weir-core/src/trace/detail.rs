//! Packets of the connections that are reported one by one.

use super::connection::{Did, Reported};
use super::side::Kind;
use crate::row;

row! {
    /// A packet with data of a detailed connection.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct DataRow {
        pub(crate) t_ps: u64,
        pub(crate) seq: u64,
        pub(crate) payload_bytes: u32,
        pub(crate) frame_bytes: u32,
        pub(crate) kind: Kind,
    }
}

row! {
    /// An acknowledgement of a detailed connection.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct AckRow {
        pub(crate) t_ps: u64,
        pub(crate) ack: u64,
        pub(crate) edge: Option<u64>,
        /// Whether it is a duplicate.
        pub(crate) duplicate: bool,
    }
}

row! {
    /// A block of data that an acknowledgement of a detailed connection says has arrived.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct SackRow {
        pub(crate) t_ps: u64,
        pub(crate) left: u64,
        pub(crate) right: u64,
    }
}

/// The packets of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detail {
    pub(crate) data: Vec<DataRow>,
    pub(crate) acks: Vec<AckRow>,
    pub(crate) sacks: Vec<SackRow>,
    pub(crate) left_out: u64,
}

impl Detail {
    /// Adds a packet with data; returns how many rows that made.
    pub(crate) fn report_data(&mut self, now: u64, payload: u32, frame_bytes: u32, did: Did, most: usize) -> usize {
        let Some((kind, seq)) = did.data.filter(|_| payload > 0) else { return 0 };
        if self.data.len() >= most {
            self.left_out += 1;
            return 0;
        }
        self.data.push(DataRow { t_ps: now, seq, payload_bytes: payload, frame_bytes, kind });
        1
    }

    /// Adds an acknowledgment; returns how many rows that made.
    pub(crate) fn report_ack(&mut self, now: u64, did: Did, most: usize) -> usize {
        let Some(Reported { place: ack, edge, duplicate, blocks, sacks }) = did.ack else { return 0 };
        if self.acks.len() >= most {
            return 0;
        }
        self.acks.push(AckRow { t_ps: now, ack, edge, duplicate });
        let room = most.saturating_sub(self.sacks.len()).min(usize::from(sacks));
        let blocks = &blocks[..room];
        self.sacks.extend(blocks.iter().map(|&(left, right)| SackRow { t_ps: now, left, right }));
        1 + blocks.len()
    }
}
