//! Tables of what measures a path by itself: senders by Rapid, and estimators of bandwidth.

use weir_core::columns::Table;
use weir_core::estimation::{Aggregate, Verdict};
use weir_core::rapid::{Log, tables as rapid};
use weir_core::table;
use weir_core::units::Rate;

use super::{each, numbered};
use crate::totals::Totals;

pub(super) fn tables(batch: &[Totals]) -> Vec<Table> {
    vec![
        table!("probe_streams", "A probe stream of Rapid.": logged(batch, |log| &log.streams) => |(i, id, _)|
            replicate: U32 = i,
            connection: U32 = id,
        )
        .with(rapid::streams(logged(batch, |log| &log.streams).map(|row| row.2))),
        table!("probe_states", "A change of the state of a sender by Rapid.": logged(batch, |log| &log.states) => |(i, id, _)|
            replicate: U32 = i,
            connection: U32 = id,
        )
        .with(rapid::states(logged(batch, |log| &log.states).map(|row| row.2))),
        table!("probe_packets", "A packet of a recorded probe stream.": logged(batch, |log| &log.packets) => |(i, id, _)|
            replicate: U32 = i,
            connection: U32 = id,
        )
        .with(rapid::packets(logged(batch, |log| &log.packets).map(|row| row.2))),
        table!("bandwidth_estimates", "A measurement of an estimator of bandwidth.":
            each(batch, |run| numbered(&run.estimation).flat_map(|(id, log)| log.estimates.iter().map(move |row| (id, row))))
            => |(i, (id, row))|
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
        ),
        table!("probe_trains", "A train of packets that an estimator asked for.":
            each(batch, |run| numbered(&run.estimation).flat_map(|(id, log)| log.trains.iter().map(move |row| (id, row))))
            => |(i, (id, row))|
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
        ),
    ]
}

/// What the logs of probing connections hold, each row with the numbers of the replicate and of the connection.
fn logged<'a, T: 'a>(batch: &'a [Totals], of: fn(&Log) -> &[T]) -> impl Iterator<Item = (u32, u32, &'a T)> {
    let rows =
        move |run: &'a Totals| run.probing.iter().flat_map(move |(id, log)| of(log).iter().map(move |row| (*id, row)));
    each(batch, rows).map(|(replicate, (connection, row))| (replicate, connection, row))
}
