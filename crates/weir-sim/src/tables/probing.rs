//! Tables of what measures a path by itself: senders by Rapid, and estimators of bandwidth.

use weir_core::columns::Table;
use weir_core::estimation::{self, Aggregate, EstimateRow, TrainRow, Verdict};
use weir_core::rapid::{Log, PacketRow, ProbeState, StreamRow, tables as rapid};
use weir_core::table;
use weir_core::units::{Rate, Time};

use super::{Rows, each, numbered};
use crate::totals::Totals;

pub(super) fn tables(batch: &[Totals]) -> Vec<Table> {
    vec![
        streams(&mut each(batch, |run| logged(run, |log| &log.streams))),
        states(&mut each(batch, |run| logged(run, |log| &log.states))),
        packets(&mut each(batch, |run| logged(run, |log| &log.packets))),
        estimates(&mut each(batch, |run| estimated(run, |log| &log.estimates))),
        trains(&mut each(batch, |run| estimated(run, |log| &log.trains))),
    ]
}

/// Rows of probe streams.
pub(super) fn streams(rows: Rows<'_, (u32, &StreamRow)>) -> Table {
    of_connections(
        rows,
        |ids| {
            table!("probe_streams", "A probe stream of Rapid.": ids => |(i, id)|
                replicate: U32 = i,
                connection: U32 = id,
            )
        },
        rapid::streams,
    )
}

/// Rows of changes of the state.
pub(super) fn states(rows: Rows<'_, (u32, &(Time, ProbeState))>) -> Table {
    of_connections(
        rows,
        |ids| {
            table!("probe_states", "A change of the state of a sender by Rapid.": ids => |(i, id)|
                replicate: U32 = i,
                connection: U32 = id,
            )
        },
        rapid::states,
    )
}

/// Rows of packets.
pub(super) fn packets(rows: Rows<'_, (u32, &PacketRow)>) -> Table {
    of_connections(
        rows,
        |ids| {
            table!("probe_packets", "A packet of a recorded probe stream.": ids => |(i, id)|
                replicate: U32 = i,
                connection: U32 = id,
            )
        },
        rapid::packets,
    )
}

/// Rows of measurements.
pub(super) fn estimates(rows: Rows<'_, (u32, &EstimateRow)>) -> Table {
    table!("bandwidth_estimates", "A measurement of an estimator of bandwidth.": rows => |(i, (id, row))|
        replicate: U32 = i,
        prober: U32 = id,
        /// Start of the measurement.
        start_ps: U64 = row.started.ps(),
        /// Its end.
        t_ps: U64 = row.ended.ps(),
        /// Id of the quantity.
        quantity: U32 = row.quantity as u32,
        /// Lower end of the range found, on the wire.
        low_bps: F64 = row.low_bps,
        /// Its upper end; the same where a single value was found.
        high_bps: F64 = row.high_bps,
        /// Id of why it ended.
        ending: U32 = row.ending as u32,
        /// Trains that it took.
        trains: U32 = row.trains,
    )
}

/// Rows of trains.
pub(super) fn trains(rows: Rows<'_, (u32, &TrainRow)>) -> Table {
    table!("probe_trains", "A train of packets that an estimator asked for.": rows => |(i, (id, row))|
        replicate: U32 = i,
        prober: U32 = id,
        /// Its number, from 0.
        train: U32 = row.train,
        /// Number of the measurement, from 0.
        measurement: U32 = row.measurement,
        /// When the receiver asked for it.
        asked_ps: U64 = row.asked.ps(),
        /// When its end was known.
        closed_ps: U64 = row.closed.ps(),
        /// Rate asked for; unknown for trains back to back.
        rate_bps: MaybeU64 = row.rate.map(Rate::bps),
        /// Packets asked for.
        packets: U32 = row.packets,
        /// Packets that arrived.
        received: U32 = row.received,
        /// Rate at which they arrived; unknown where that cannot be said.
        received_bps: MaybeF64 = row.received_bps,
        /// Share of the medians of the delays that exceed the one before, 0 to 1; unknown where no trend is looked for.
        pct: MaybeF64 = row.trend.map(|trend| trend.pct),
        /// Growth from the first median to the last over all steps up and down, -1 to 1; unknown where no trend is looked for.
        pdt: MaybeF64 = row.trend.map(|trend| trend.pdt),
        /// Id of what the delays do.
        trend: U32 = row.trend.map_or(Verdict::NAMES.len() as u32, |trend| trend.verdict as u32),
        /// Id of what the fleet says; none but for its last train.
        fleet: U32 = row.fleet.map_or(Aggregate::NAMES.len() as u32, |fleet| fleet as u32),
    )
}

/// A table of the numbers of replicates and connections, and of what the rows are.
fn of_connections<'r, T>(
    rows: Rows<'_, (u32, &'r T)>,
    ids: impl Fn(Vec<(u32, u32)>) -> Table,
    table: impl Fn(Vec<&'r T>) -> Table,
) -> Table {
    let (places, rows) = rows.map(|(replicate, (connection, row))| ((replicate, connection), row)).unzip();
    ids(places).with(table(rows))
}

/// What the logs of probing connections hold, each row with the number of the connection.
pub(super) fn logged<'a, T: 'a>(run: &'a Totals, of: fn(&Log) -> &Vec<T>) -> impl Iterator<Item = (u32, &'a T)> {
    run.probing.iter().flat_map(move |(id, log)| of(log).iter().map(move |row| (*id, row)))
}

/// What the logs of estimators hold, each row with the number of the estimator.
pub(super) fn estimated<'a, T: 'a>(
    run: &'a Totals,
    of: fn(&estimation::Log) -> &Vec<T>,
) -> impl Iterator<Item = (u32, &'a T)> {
    numbered(&run.estimation).flat_map(move |(id, log)| of(log).iter().map(move |row| (id, row)))
}
