//! What a probing sender writes down, as tables: the same columns wherever it runs.

use super::log::{PacketRow, ProbeState, StreamRow};
use crate::columns::Table;
use crate::table;
use crate::units::{Span, Time};

/// The columns of streams.
pub fn streams<'a>(rows: impl IntoIterator<Item = &'a StreamRow>) -> Table {
    table!("probe_streams", "A probe stream of Rapid.": rows => |row|
        /// Its number, from 0.
        stream: U64 = row.stream,
        /// When its first packet left.
        t_ps: U64 = row.started.ps(),
        /// When its last packet left.
        end_ps: U64 = row.ended.ps(),
        /// When its end was known.
        closed_ps: U64 = row.closed.ps(),
        /// Packets sent.
        packets: U32 = row.packets,
        /// Of these, those whose time of arrival the receiver reported.
        samples: U32 = row.samples,
        /// Mean rate asked for.
        rate_bps: U64 = row.rate.bps(),
        /// Rate of its first gap.
        low_rate_bps: U64 = row.low.bps(),
        /// Rate of its last gap.
        high_rate_bps: U64 = row.high.bps(),
        /// Id of why it ended.
        outcome: U32 = row.outcome as u32,
        /// Estimate of the available bandwidth; unknown where there is none.
        available_bps: MaybeF64 = row.available_bps,
        /// First gap of the excursion; unknown without one.
        excursion_start: MaybeU32 = row.excursion.map(|excursion| excursion.0),
        /// Gaps of the excursion; unknown without one.
        excursion_gaps: MaybeU32 = row.excursion.map(|excursion| excursion.1),
        /// Mean rate after it.
        next_rate_bps: U64 = row.next_rate.bps(),
        /// Queueing delay of its last sample, above the least ever seen; unknown without a sample.
        backlog_ps: MaybeU64 = row.backlog.map(Span::ps),
        /// Gaps that left within a quarter of what was asked for, or of what the link can.
        fitting_gaps: U32 = row.fitting,
        /// Of its first eight gaps, those of packets back to back though a larger gap was asked for.
        spilt_gaps: U32 = row.spilt,
    )
}

/// The columns of changes of the state.
pub fn states<'a>(rows: impl IntoIterator<Item = &'a (Time, ProbeState)>) -> Table {
    table!("probe_states", "A change of the state of a sender by Rapid.": rows => |row|
        /// When.
        t_ps: U64 = row.0.ps(),
        /// Id of the state from then on.
        state: U32 = row.1 as u32,
    )
}

/// The columns of packets.
pub fn packets<'a>(rows: impl IntoIterator<Item = &'a PacketRow>) -> Table {
    table!("probe_packets", "A packet of a recorded probe stream.": rows => |row|
        /// Number of the stream.
        stream: U64 = row.stream,
        /// Place in the stream, from 0.
        packet: U32 = row.place,
        /// When it was to leave.
        due_ps: U64 = row.due.ps(),
        /// When it left.
        sent_ps: U64 = row.left.ps(),
        /// When it arrived, by the stamp of the receiver; unknown where that is not reported.
        received_ps: MaybeU64 = row.received.map(Time::ps),
    )
}
