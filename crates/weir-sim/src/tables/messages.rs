//! Tables of messages.

use weir_core::columns::Table;
use weir_core::table;
use weir_core::units::{Span, Time};

use super::{Rows, each};
use crate::totals::{MessageRow, Totals};

pub(super) fn tables(batch: &[Totals]) -> Vec<Table> {
    vec![
        rows(&mut each(batch, |run| &run.messages)),
        table!("message_totals", "The messages of an entry of traffic, all of them.":
            each(batch, |run| &run.message_totals) => |(i, row)|
            replicate: U32 = i,
            /// Id of the entry of traffic.
            traffic: U32 = row.traffic,
            /// Messages that came.
            arrived: U64 = row.arrived,
            /// Their lengths.
            arrived_bytes: U64 = row.arrived_bytes,
            /// Messages delivered whole.
            delivered: U64 = row.delivered,
            /// Their lengths.
            delivered_bytes: U64 = row.delivered_bytes,
            /// Messages whose senders know that.
            acknowledged: U64 = row.acknowledged,
            /// Most messages under way at a time.
            most_live: U64 = row.most_live,
            /// Segments sent again.
            retransmits: U64 = row.retransmits,
            /// Retransmission timeouts.
            timeouts: U64 = row.timeouts,
            /// Rows of `messages` are kept of those whose number is a multiple of this.
            stride: U64 = row.stride,
            /// Time until the last message or computation of a job was over; unknown where one is not, and without jobs.
            job_ps: MaybeU64 = row.job.map(Span::ps),
        ),
        table!("rounds", "A round of messages that wait for each other: a repetition of a collective operation.":
            each(batch, |run| &run.rounds) => |(i, row)|
            replicate: U32 = i,
            /// Id of the entry of traffic.
            traffic: U32 = row.traffic,
            /// Its place among the rounds of the entry.
            round: U32 = row.round,
            /// When the first of its messages came; unknown where none did.
            start_ps: MaybeU64 = known(row.start),
            /// When the last of its messages was delivered; unknown where one was not.
            over_ps: MaybeU64 = known(row.over),
            /// Data that each host has to send in it at best.
            carried_bytes: U64 = row.carried.count(),
        ),
    ]
}

/// Rows of messages.
pub(super) fn rows(rows: Rows<'_, &MessageRow>) -> Table {
    table!("messages", "A message. Of many, every second, every fourth, ... has a row: see `stride` of `message_totals`.": rows => |(i, row)|
        replicate: U32 = i,
        /// Number among the messages of its entry of traffic, in the order in which they came.
        message: U64 = row.message,
        /// Id of its entry of traffic.
        traffic: U32 = row.traffic,
        /// Id of the host that sent it.
        from_node: U32 = row.from,
        /// Id of the host that received it.
        to_node: U32 = row.to,
        /// Its length.
        size_bytes: U64 = row.bytes.count(),
        /// When it came.
        start_ps: U64 = row.start.ps(),
        /// When its last byte was delivered; unknown where it was not.
        delivered_ps: MaybeU64 = known(row.delivered),
        /// When its sender knew that; unknown where it does not.
        acknowledged_ps: MaybeU64 = known(row.acknowledged),
        /// Time from its start until its last byte would be delivered in an empty network, at best.
        ideal_ps: U64 = row.ideal.ps(),
        /// Segments sent again.
        retransmits: U32 = row.retransmits,
        /// Retransmission timeouts.
        timeouts: U32 = row.timeouts,
    )
}

fn known(time: Time) -> Option<u64> {
    (time < Time::NEVER).then_some(time.ps())
}
