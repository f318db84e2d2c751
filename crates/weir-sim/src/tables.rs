//! The results of a batch as named columns.

use weir_core::columns::Table;
use weir_core::table;

use crate::plan::Plan;
use crate::totals::{ControlKind, Totals};

/// All tables of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables(pub Vec<Table>);

/// Why frames are dropped; a cause's id is its place.
const CAUSES: [&str; 1] = ["queue-full"];

impl Tables {
    /// The tables of `batch`, all replicates of `plan`.
    pub fn new(plan: &Plan, batch: &[Totals]) -> Tables {
        let topology = &plan.topology;
        let node = |id: u32| topology.nodes[id as usize].name.clone();
        let unknown = |span: Option<weir_core::units::Span>| span.map_or(f64::NAN, |span| span.ps() as f64);
        let instant = |time: Option<weir_core::units::Time>| time.map_or(f64::NAN, |time| time.ps() as f64);
        Tables(vec![
            table!("runs": numbered(batch) => |(i, run)|
                replicate: U32 = i,
                seed: U64 = run.seed,
                events: U64 = run.events,
                packet_hops: U64 = run.packet_hops,
                end_ps: U64 = run.end_ps,
            ),
            table!("flows": each(batch, |run| numbered(&run.flows)) => |(i, (id, row))|
                replicate: U32 = i,
                flow: U32 = id,
                sent_frames: U64 = row.sent_frames,
                sent_bytes: U64 = row.sent_bytes,
                delivered_frames: U64 = row.delivered_frames,
                delivered_bytes: U64 = row.delivered_bytes,
                dropped_frames: U64 = row.dropped_frames,
                live_frames: U64 = row.live_frames,
                delay_sum_ps: F64 = row.delay_sum_ps as f64,
                delay_min_ps: F64 = unknown(row.delay_min),
                delay_max_ps: F64 = unknown(row.delay_max),
            ),
            table!("ports": each(batch, |run| numbered(&run.ports)) => |(i, (id, row))|
                replicate: U32 = i,
                port: U32 = id,
                frames: U64 = row.frames,
                bytes: U64 = row.bytes,
                busy_ps: U64 = row.busy_ps,
                drops: U64 = row.drops,
                dropped_bytes: U64 = row.dropped_bytes,
                first_drop_ps: F64 = instant(row.drop_times.map(|times| times.0)),
                last_drop_ps: F64 = instant(row.drop_times.map(|times| times.1)),
                queue_max_bytes: U64 = row.queue_max_bytes,
                queue_byte_ps: F64 = row.queue_byte_ps as f64,
                queue_wait_ps: F64 = row.queue_wait_ps as f64,
                paused_ps: U64 = row.pauses.total.ps(),
                paused_count: U64 = row.pauses.count,
                paused_longest_ps: U64 = row.pauses.longest.ps(),
                paused_last_ps: F64 = instant(row.pauses.last),
            ),
            table!("drops": each(batch, |run| &run.drops) => |(i, row)|
                replicate: U32 = i,
                port: U32 = row.port,
                flow: U32 = row.flow,
                cause: U32 = 0,
                frames: U64 = row.frames,
            ),
            table!("intervals":
                each(batch, |run| run.intervals.rows())
                => |(i, (id, row))|
                replicate: U32 = i,
                port: U32 = id,
                t_ps: U64 = row.t_ps,
                bytes: U64 = row.bytes,
                frames: U64 = row.frames,
                drops: U64 = row.drops,
                queue_bytes: U64 = row.queue_bytes,
                queue_max_bytes: U64 = row.queue_max_bytes,
                queue_byte_ps: F64 = row.queue_byte_ps as f64,
            ),
            table!("deliveries":
                each(batch, |run| run.deliveries.iter().flat_map(|(id, rows)| rows.iter().map(move |row| (*id, row))))
                => |(i, (id, row))|
                replicate: U32 = i,
                traffic: U32 = id,
                t_ps: U64 = row.t_ps,
                frames: U64 = row.frames,
                bytes: U64 = row.bytes,
            ),
            table!("flow_deliveries":
                each(batch, |run| {
                    run.flow_deliveries.iter().flat_map(|(id, rows)| rows.iter().map(move |row| (*id, row)))
                })
                => |(i, (id, row))|
                replicate: U32 = i,
                flow: U32 = id,
                t_ps: U64 = row.t_ps,
                frames: U64 = row.frames,
                bytes: U64 = row.bytes,
            ),
            table!("queue_levels": each(batch, |run| &run.control.queue_levels) => |(i, &(id, low, high, time))|
                replicate: U32 = i,
                port: U32 = id,
                low_bytes: U64 = low,
                high_bytes: U64 = high,
                time_ps: U64 = time,
            ),
            table!("bursts": each(batch, |run| &run.bursts) => |(i, row)|
                replicate: U32 = i,
                flow: U32 = row.flow,
                bursts: U64 = row.bursts,
                delay_sum_ps: F64 = row.delay_sum_ps as f64,
                delay_min_ps: F64 = row.delay_min.ps() as f64,
                delay_max_ps: F64 = row.delay_max.ps() as f64,
            ),
            table!("memories": each(batch, |run| &run.memories) => |(i, row)|
                replicate: U32 = i,
                switch: Text = node(row.node),
                max_bytes: U64 = row.max_bytes,
                byte_ps: F64 = row.byte_ps as f64,
                xoffs: U64 = row.xoffs,
            ),
            table!("control_frames": each(batch, |run| &run.control.frames) => |(i, row)|
                replicate: U32 = i,
                port: U32 = row.port,
                queue_port: U32 = row.queue_port,
                kind: U32 = row.kind.id(),
                frames: U64 = row.frames,
                bytes: U64 = row.bytes,
            ),
            table!("reaction_points": each(batch, |run| &run.control.reaction_points) => |(i, (id, row))|
                replicate: U32 = i,
                flow: U32 = *id,
                made: U64 = row.made,
                removed: U64 = row.removed,
                increases: U64 = row.increases,
                decreases: U64 = row.decreases,
                stops: U64 = row.stops,
                limited_ps: U64 = row.limited_ps,
                stopped_ps: U64 = row.stopped_ps,
            ),
            table!("limiters":
                each(batch, |run| {
                    run.control.limiters.iter().flat_map(|(id, rows)| rows.iter().map(move |row| (*id, row)))
                })
                => |(i, (id, row))|
                replicate: U32 = i,
                flow: U32 = id,
                t_ps: U64 = row.t_ps,
                rate_bps: F64 = row.rate_bps.map_or(f64::NAN, |rate| rate as f64),
                rate_bit: F64 = row.rate_bit,
                limited_ps: U64 = row.limited_ps,
                stopped_ps: U64 = row.stopped_ps,
                queue_bytes: U64 = row.queue_bytes,
            ),
            table!("delays": each(batch, |run| &run.delays) => |(i, &(id, low, high, count))|
                replicate: U32 = i,
                flow: U32 = id,
                low_ps: U64 = low,
                high_ps: U64 = high,
                frames: U64 = count,
            ),
            table!("flow_names": numbered(&plan.flows).zip(plan.flow_names()) => |((id, row), text)|
                flow: U32 = id,
                name: Text = text,
                traffic: U32 = row.traffic,
                from: Text = node(row.from),
                to: Text = node(row.to),
            ),
            table!("port_names": numbered(&topology.ports) => |(id, row)|
                port: U32 = id,
                name: Text = row.name.clone(),
                from: Text = node(row.from),
                to: Text = node(row.to),
                from_kind: Text = topology.nodes[row.from as usize].kind.word().to_string(),
                rate_bps: U64 = row.link.rate_bps.bps(),
                framing_bytes: U64 = row.link.framing_bytes.count(),
            ),
            table!("traffic_names": numbered(&plan.spec.traffic) => |(id, row)|
                traffic: U32 = id,
                name: Text = row.name.clone(),
            ),
            table!("cause_names": numbered(&CAUSES) => |(id, text)|
                cause: U32 = id,
                name: Text = (*text).to_string(),
            ),
            table!("kind_names": numbered(&ControlKind::NAMES) => |(id, text)|
                kind: U32 = id,
                name: Text = (*text).to_string(),
            ),
        ])
    }
}

fn numbered<T>(rows: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0..).zip(rows)
}

/// The rows of every replicate, each with the replicate's number.
fn each<'a, R: IntoIterator>(
    batch: &'a [Totals],
    rows: impl Fn(&'a Totals) -> R,
) -> impl Iterator<Item = (u32, R::Item)> {
    numbered(batch).flat_map(move |(replicate, run)| rows(run).into_iter().map(move |row| (replicate, row)))
}
