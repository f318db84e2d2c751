//! The results of a batch as named columns.

use weir_core::columns::Table;
use weir_core::estimation::{Aggregate, Ending, Quantity, Verdict};
use weir_core::rapid::{Log, Outcome, ProbeState, tables};
use weir_core::table;
use weir_core::units::{Span, Time};

use crate::plan::Plan;
use crate::totals::{ConnectionTotals, ControlKind, DropCause, Totals};

/// Where nothing was told.
const NONE: [&str; 1] = ["none"];

/// All tables of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables(pub Vec<Table>);

impl Tables {
    /// The tables of `batch`, all replicates of `plan`.
    pub fn new(plan: &Plan, batch: &[Totals]) -> Tables {
        let topology = &plan.topology;
        let node = |id: u32| topology.nodes[id as usize].name.clone();
        let names = plan.flow_names();
        let instant = |time: Option<Time>| time.map_or(f64::NAN, |time| time.ps() as f64);
        let unknown = |span: Option<Span>| span.map_or(f64::NAN, |span| span.ps() as f64);
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
                frames: U64 = row.counters.frames,
                bytes: U64 = row.counters.bytes,
                busy_ps: U64 = row.counters.busy_ps,
                drops: U64 = row.counters.drops,
                dropped_bytes: U64 = row.counters.dropped_bytes,
                first_drop_ps: F64 = instant(row.drop_times.map(|times| times.0)),
                last_drop_ps: F64 = instant(row.drop_times.map(|times| times.1)),
                queue_max_bytes: U64 = row.counters.queue_max_bytes,
                queue_byte_ps: F64 = row.counters.queue_byte_ps as f64,
                queue_wait_ps: F64 = row.counters.queue_wait_ps as f64,
                paused_ps: U64 = row.pauses.total.ps(),
                paused_count: U64 = row.pauses.count,
                paused_longest_ps: U64 = row.pauses.longest.ps(),
                paused_last_ps: F64 = instant(row.pauses.last),
            ),
            table!("port_classes": each(batch, |run| &run.classes) => |(i, row)|
                replicate: U32 = i,
                port: U32 = row.port,
                class: U32 = row.class.into(),
                frames: U64 = row.counters.frames,
                bytes: U64 = row.counters.bytes,
                drops: U64 = row.counters.drops,
                dropped_bytes: U64 = row.counters.dropped_bytes,
                queue_max_bytes: U64 = row.counters.queue_max_bytes,
                queue_byte_ps: F64 = row.counters.queue_byte_ps as f64,
                queue_wait_ps: F64 = row.counters.queue_wait_ps as f64,
                held_ps: U64 = row.counters.holds.total.ps(),
                held_count: U64 = row.counters.holds.count,
                held_longest_ps: U64 = row.counters.holds.longest.ps(),
            ),
            table!("drops": each(batch, |run| &run.drops) => |(i, row)|
                replicate: U32 = i,
                port: U32 = row.port,
                flow: U32 = row.flow,
                cause: U32 = row.cause.id(),
                frames: U64 = row.frames,
            ),
            table!("marks": each(batch, |run| &run.control.marks) => |(i, row)|
                replicate: U32 = i,
                port: U32 = row.port,
                flow: U32 = row.flow,
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
            table!("burst_intervals":
                each(batch, |run| {
                    run.burst_intervals.iter().flat_map(|(id, rows)| rows.iter().map(move |row| (*id, row)))
                })
                => |(i, (id, row))|
                replicate: U32 = i,
                flow: U32 = id,
                t_ps: U64 = row.t_ps,
                bursts: U64 = row.bursts,
                delay_sum_ps: F64 = row.delay_sum_ps as f64,
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
            table!("control_intervals": each(batch, |run| &run.control.intervals) => |(i, row)|
                replicate: U32 = i,
                queue_port: U32 = row.queue_port,
                kind: U32 = row.kind.id(),
                t_ps: U64 = row.t_ps,
                frames: U64 = row.frames,
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
            table!("connections": each(batch, |run| numbered(&run.connections)) => |(i, (id, row))|
                replicate: U32 = i,
                connection: U32 = id,
                flow: U32 = row.flow,
                opened_ps: F64 = instant(row.opened),
                established_ps: F64 = instant(row.established),
                delivered_ps: F64 = instant(row.delivered),
                acknowledged_ps: F64 = instant(row.acknowledged),
                srtt_ps: F64 = unknown(row.srtt),
                min_rtt_ps: F64 = unknown(row.min_rtt),
                delivered_bytes: U64 = row.receiver.delivered_bytes,
                acked_bytes: U64 = row.sender.acked_bytes,
                sent_bytes: U64 = row.sender.bytes,
                sent_segments: U64 = row.sender.segments,
                retransmits: U64 = row.sender.retransmits,
                fast_retransmits: U64 = row.sender.fast_retransmits,
                forward_retransmits: U64 = row.sender.forward_retransmits,
                slow_start_retransmits: U64 = row.sender.slow_start_retransmits,
                timeout_retransmits: U64 = row.sender.timeout_retransmits,
                rescue_retransmits: U64 = row.sender.rescue_retransmits,
                probe_retransmits: U64 = row.sender.probe_retransmits,
                lost_retransmits: U64 = row.sender.lost_retransmits,
                loss_probes: U64 = row.sender.loss_probes,
                loss_probe_recoveries: U64 = row.sender.loss_probe_recoveries,
                duplicates_told: U64 = row.sender.duplicates_told,
                window_probes: U64 = row.sender.window_probes,
                timeouts: U64 = row.sender.timeouts,
                recoveries: U64 = row.sender.recoveries,
                recovery_failures: U64 = row.sender.recovery_failures,
                spurious_recoveries: U64 = row.sender.spurious_recoveries,
                ecn_reductions: U64 = row.sender.ecn_reductions,
                marked_bytes: U64 = row.sender.marked_bytes,
                duplicate_acks: U64 = row.sender.duplicate_acks,
                rtt_samples: U64 = row.sender.rtt_samples,
                paws_rejects: U64 = row.sender.paws_rejects + row.receiver.paws_rejects,
                received_segments: U64 = row.receiver.segments,
                out_of_order_segments: U64 = row.receiver.out_of_order,
                duplicate_segments: U64 = row.receiver.duplicates,
                ecn_marks: U64 = row.receiver.ecn_marks,
                acks: U64 = row.receiver.acks,
                delayed_acks: U64 = row.receiver.delayed_acks,
                window_updates: U64 = row.receiver.window_updates,
                window_closures: U64 = row.receiver.window_closures,
            ),
            table!("resent":
                each(batch, |run| numbered(&run.connections).flat_map(|(id, row)| resent(id, row)))
                => |(i, (id, row))|
                replicate: U32 = i,
                connection: U32 = id,
                times: U32 = row.0,
                segments: U64 = row.1,
            ),
            table!("tcp":
                each(batch, |run| run.tcp.iter().flat_map(|(id, rows)| rows.iter().map(move |row| (*id, row))))
                => |(i, (id, row))|
                replicate: U32 = i,
                connection: U32 = id,
                t_ps: U64 = row.at.ps(),
                window_bytes: U64 = row.window.count(),
                threshold_bytes: F64 = row.threshold.map_or(f64::NAN, |bytes| bytes.count() as f64),
                srtt_ps: F64 = unknown(row.srtt),
                flight_bytes: U64 = row.flight.count(),
                acked_bytes: U64 = row.acked.count(),
                retransmits: U64 = row.retransmits,
                repairs: U32 = row.repairs.into(),
                marked_bytes: U64 = row.marked.count(),
                alpha: F64 = row.alpha.unwrap_or(f64::NAN),
            ),
            table!("captures": each(batch, |run| &run.captures) => |(i, row)|
                replicate: U32 = i,
                name: Text = row.name.clone(),
                frames: U64 = row.frames,
                left_out_frames: U64 = row.left_out,
                content: Blob = row.content.clone(),
            ),
            table!("probe_streams": logged(batch, |log| &log.streams) => |(i, id, _)|
                replicate: U32 = i,
                connection: U32 = id,
            )
            .with(tables::streams(logged(batch, |log| &log.streams).map(|row| row.2))),
            table!("probe_states": logged(batch, |log| &log.states) => |(i, id, _)|
                replicate: U32 = i,
                connection: U32 = id,
            )
            .with(tables::states(logged(batch, |log| &log.states).map(|row| row.2))),
            table!("probe_packets": logged(batch, |log| &log.packets) => |(i, id, _)|
                replicate: U32 = i,
                connection: U32 = id,
            )
            .with(tables::packets(logged(batch, |log| &log.packets).map(|row| row.2))),
            table!("bandwidth_estimates":
                each(batch, |run| numbered(&run.estimation).flat_map(|(id, log)| log.estimates.iter().map(move |row| (id, row))))
                => |(i, (id, row))|
                replicate: U32 = i,
                prober: U32 = id,
                start_ps: U64 = row.started.ps(),
                t_ps: U64 = row.ended.ps(),
                quantity: U32 = row.quantity as u32,
                low_bps: F64 = row.low_bps,
                high_bps: F64 = row.high_bps,
                ending: U32 = row.ending as u32,
                trains: U32 = row.trains,
            ),
            table!("probe_trains":
                each(batch, |run| numbered(&run.estimation).flat_map(|(id, log)| log.trains.iter().map(move |row| (id, row))))
                => |(i, (id, row))|
                replicate: U32 = i,
                prober: U32 = id,
                train: U32 = row.train,
                measurement: U32 = row.measurement,
                asked_ps: U64 = row.asked.ps(),
                closed_ps: U64 = row.closed.ps(),
                rate_bps: F64 = row.rate.map_or(f64::NAN, |rate| rate.bps() as f64),
                packets: U32 = row.packets,
                received: U32 = row.received,
                received_bps: F64 = row.received_bps.unwrap_or(f64::NAN),
                pct: F64 = row.trend.map_or(f64::NAN, |trend| trend.pct),
                pdt: F64 = row.trend.map_or(f64::NAN, |trend| trend.pdt),
                trend: U32 = row.trend.map_or(Verdict::NAMES.len() as u32, |trend| trend.verdict as u32),
                fleet: U32 = row.fleet.map_or(Aggregate::NAMES.len() as u32, |fleet| fleet as u32),
            ),
            table!("prober_names": numbered(&plan.probers) => |(id, row)|
                prober: U32 = id,
                name: Text = names[row.flow as usize].clone(),
                flow: U32 = row.flow,
                traffic: U32 = plan.flows[row.flow as usize].traffic,
            ),
            table!("quantity_names": numbered(&Quantity::NAMES) => |(id, text)|
                quantity: U32 = id,
                name: Text = (*text).to_string(),
            ),
            table!("ending_names": numbered(&Ending::NAMES) => |(id, text)|
                ending: U32 = id,
                name: Text = (*text).to_string(),
            ),
            table!("trend_names": (0..).zip(Verdict::NAMES.iter().chain(&NONE)) => |(id, text)|
                trend: U32 = id,
                name: Text = (*text).to_string(),
            ),
            table!("fleet_names": (0..).zip(Aggregate::NAMES.iter().chain(&NONE)) => |(id, text)|
                fleet: U32 = id,
                name: Text = (*text).to_string(),
            ),
            table!("outcome_names": numbered(&Outcome::NAMES) => |(id, text)|
                outcome: U32 = id,
                name: Text = (*text).to_string(),
            ),
            table!("state_names": numbered(&ProbeState::NAMES) => |(id, text)|
                state: U32 = id,
                name: Text = (*text).to_string(),
            ),
            table!("connection_names": numbered(&plan.connections) => |(id, row)|
                connection: U32 = id,
                name: Text = names[row.flow as usize].clone(),
                flow: U32 = row.flow,
                traffic: U32 = plan.flows[row.flow as usize].traffic,
            ),
            table!("flow_names": numbered(plan.counted_flows()).zip(names.clone()) => |((id, row), text)|
                flow: U32 = id,
                name: Text = text,
                traffic: U32 = row.traffic,
                from: Text = node(row.from),
                to: Text = node(row.to),
                carries: Text = if row.returns { "acknowledgements" } else { "data" }.to_string(),
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
            table!("cause_names": numbered(&DropCause::NAMES) => |(id, text)|
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

/// How many segments of a connection were sent again once, twice, ...; the last row: eight times or more often.
fn resent(id: u32, row: &ConnectionTotals) -> impl Iterator<Item = (u32, (u32, u64))> {
    let times = row.sender.retransmitted_times;
    (1..).zip(times).filter(|row| row.1 > 0).map(move |row| (id, row))
}

fn numbered<T>(rows: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0..).zip(rows)
}

/// What the logs of probing connections hold, each row with the numbers of the replicate and of the connection.
fn logged<'a, T: 'a>(batch: &'a [Totals], of: fn(&Log) -> &[T]) -> impl Iterator<Item = (u32, u32, &'a T)> {
    let rows =
        move |run: &'a Totals| run.probing.iter().flat_map(move |(id, log)| of(log).iter().map(move |row| (*id, row)));
    each(batch, rows).map(|(replicate, (connection, row))| (replicate, connection, row))
}

/// The rows of every replicate, each with the replicate's number.
fn each<'a, R: IntoIterator>(
    batch: &'a [Totals],
    rows: impl Fn(&'a Totals) -> R,
) -> impl Iterator<Item = (u32, R::Item)> {
    numbered(batch).flat_map(move |(replicate, run)| rows(run).into_iter().map(move |row| (replicate, row)))
}
