//! Groups of messages, and what is written down of them.

use std::collections::BTreeMap;

use crate::chain::Chain;
use crate::rdma::RdmaEnds;
use crate::tcp::{TcpReceiver, TcpSender};
use crate::totals::{MessageRow, MessageTotals};

#[derive(Debug)]
pub(super) struct Group {
    /// Place in `traffic`.
    pub(super) traffic: u32,
    /// The flow of its data; that of what comes back follows.
    pub(super) flow: u32,
    /// Without connections: the flow from each host to each other.
    pub(super) pairs: BTreeMap<(u32, u32), u32>,
    pub(super) totals: MessageTotals,
    pub(super) rows: Vec<MessageRow>,
    /// Rows that were taken, by how often their number is divisible by two.
    pub(super) taken: [usize; 65],
    pub(super) most_rows: usize,
    pub(super) live: u64,
    /// Its tasks, if its messages wait for each other.
    pub(super) chain: Option<Chain>,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) group: u32,
    pub(super) row: MessageRow,
    pub(super) ends: Option<Ends>,
    /// Whether its message is not over.
    pub(super) is_live: bool,
    /// The task that its delivery ends, or [`NO_TASK`].
    pub(super) task: u32,
}

/// The two ends of a message.
#[derive(Debug)]
pub(super) enum Ends {
    Tcp(Box<(TcpSender, TcpReceiver)>),
    Rdma(Box<RdmaEnds>),
}

impl Slot {
    /// Writes down what its ends know.
    pub(super) fn note(&mut self) {
        match &self.ends {
            Some(Ends::Tcp(ends)) => ends.0.note_in(&mut self.row),
            Some(Ends::Rdma(ends)) => ends.note_in(&mut self.row),
            None => {}
        }
    }
}

impl Group {
    pub(super) fn count(&mut self, row: &MessageRow) {
        let totals = &mut self.totals;
        if row.delivered.is_some() {
            totals.delivered += 1;
            totals.delivered_bytes += row.bytes.count();
        }
        totals.retransmits += u64::from(row.retransmits);
        totals.timeouts += u64::from(row.timeouts);
        totals.acknowledged += u64::from(row.acknowledged.is_some());
    }

    pub(super) fn keep(&mut self, row: MessageRow) {
        if !row.message.is_multiple_of(self.totals.stride) {
            return;
        }
        self.rows.push(row);
        // Of what was taken, whoever reads it leaves out what the stride does not meet.
        let taken = |stride: u64| self.taken[stride.trailing_zeros() as usize..].iter().sum::<usize>();
        while self.rows.len() + taken(self.totals.stride) > self.most_rows {
            self.totals.stride *= 2;
            let stride = self.totals.stride;
            self.rows.retain(|row| row.message.is_multiple_of(stride));
        }
    }
}
