//! Packets of the connections that are reported one by one.

use super::connection::Did;
use super::side::Kind;

/// One data packet of a connection that is reported in detail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataRow {
    pub(crate) t_ps: u64,
    pub(crate) seq: u64,
    pub(crate) payload_bytes: u32,
    pub(crate) frame_bytes: u32,
    pub(crate) kind: Kind,
}

/// One acknowledgment of such a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRow {
    pub(crate) t_ps: u64,
    pub(crate) ack: u64,
    pub(crate) edge: Option<u64>,
}

/// The packets of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detail {
    pub(crate) data: Vec<DataRow>,
    pub(crate) acks: Vec<AckRow>,
    pub(crate) left_out: u64,
}

impl Detail {
    /// Adds a packet with data; returns how many rows that made.
    pub(crate) fn tell_data(&mut self, now: u64, payload: u32, frame_bytes: u32, did: Did, most: usize) -> usize {
        let Some((kind, seq)) = did.data.filter(|_| payload > 0) else { return 0 };
        if self.data.len() >= most {
            self.left_out += 1;
            return 0;
        }
        self.data.push(DataRow { t_ps: now, seq, payload_bytes: payload, frame_bytes, kind });
        1
    }

    /// Adds an acknowledgment; returns how many rows that made.
    pub(crate) fn tell_ack(&mut self, now: u64, did: Did, most: usize) -> usize {
        let Some((ack, edge)) = did.ack else { return 0 };
        if self.acks.len() >= most {
            return 0;
        }
        self.acks.push(AckRow { t_ps: now, ack, edge });
        1
    }
}
