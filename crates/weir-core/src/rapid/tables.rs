//! What a probing sender writes down, as tables: the same columns wherever it runs.

use super::log::{PacketRow, ProbeState, StreamRow};
use crate::columns::Table;
use crate::table;
use crate::units::Time;

/// The columns of streams.
pub fn streams<'a>(rows: impl IntoIterator<Item = &'a StreamRow>) -> Table {
    table!("probe_streams": rows => |row|
        stream: U64 = row.stream,
        t_ps: U64 = row.started.ps(),
        end_ps: U64 = row.ended.ps(),
        closed_ps: U64 = row.closed.ps(),
        packets: U32 = row.packets,
        samples: U32 = row.samples,
        rate_bps: U64 = row.rate.bps(),
        low_rate_bps: U64 = row.low.bps(),
        high_rate_bps: U64 = row.high.bps(),
        outcome: U32 = row.outcome as u32,
        available_bps: F64 = row.available_bps.unwrap_or(f64::NAN),
        excursion_start: F64 = row.excursion.map_or(f64::NAN, |excursion| f64::from(excursion.0)),
        excursion_gaps: F64 = row.excursion.map_or(f64::NAN, |excursion| f64::from(excursion.1)),
        next_rate_bps: U64 = row.next_rate.bps(),
        backlog_ps: F64 = row.backlog.map_or(f64::NAN, |backlog| backlog.ps() as f64),
        fitting_gaps: U32 = row.fitting,
        spilt_gaps: U32 = row.spilt,
    )
}

/// The columns of changes of the state.
pub fn states<'a>(rows: impl IntoIterator<Item = &'a (Time, ProbeState)>) -> Table {
    table!("probe_states": rows => |row|
        t_ps: U64 = row.0.ps(),
        state: U32 = row.1 as u32,
    )
}

/// The columns of packets.
pub fn packets<'a>(rows: impl IntoIterator<Item = &'a PacketRow>) -> Table {
    table!("probe_packets": rows => |row|
        stream: U64 = row.stream,
        packet: U32 = row.place,
        due_ps: U64 = row.due.ps(),
        sent_ps: U64 = row.left.ps(),
        received_ps: F64 = row.received.map_or(f64::NAN, |received| received.ps() as f64),
    )
}
