//! Tables of frames: what became of them, by flow, port and time.

use weir_core::columns::Table;
use weir_core::table;
use weir_core::units::{Span, Time};

use super::{Rows, each, flat, numbered};
use crate::plan::Plan;
use crate::probes::PortInterval;
use crate::totals::{BurstInterval, Delivery, Totals};

#[allow(clippy::too_many_lines)] // a list of tables and their columns
pub(super) fn tables(plan: &Plan, batch: &[Totals]) -> Vec<Table> {
    let node = |id: u32| plan.topology.nodes[id as usize].name.clone();
    vec![
        table!("runs", "A run.": numbered(batch) => |(i, run)|
            replicate: U32 = i,
            /// Its seed.
            seed: U64 = run.seed,
            /// Events handled.
            events: U64 = run.events,
            /// Frames fully received over a link, each link counted.
            packet_hops: U64 = run.packet_hops,
            /// End of the run.
            end_ps: U64 = run.end_ps,
        ),
        table!("flows", "A flow: what one host sends another.": each(batch, |run| numbered(&run.flows)) => |(i, (id, row))|
            replicate: U32 = i,
            flow: U32 = id,
            /// Frames that the source handed to its host.
            sent_frames: U64 = row.sent_frames,
            /// Bytes of these.
            sent_bytes: U64 = row.sent_bytes,
            /// Frames that arrived at their host.
            delivered_frames: U64 = row.delivered_frames,
            /// Bytes of these.
            delivered_bytes: U64 = row.delivered_bytes,
            /// Frames dropped on the way, losses on links included.
            dropped_frames: U64 = row.dropped_frames,
            /// Frames that were under way, or waited, at the end of the run.
            live_frames: U64 = row.live_frames,
            /// Sum of the one-way delays of delivered frames.
            delay_sum_ps: F64 = row.delay_sum_ps as f64,
            /// Least one-way delay; unknown without a delivered frame.
            delay_min_ps: MaybeU64 = row.delay_min.map(Span::ps),
            /// Greatest one-way delay; unknown without a delivered frame.
            delay_max_ps: MaybeU64 = row.delay_max.map(Span::ps),
        ),
        table!("ports", "A port: the transmitter of one end of a link, with its queue.": each(batch, |run| numbered(&run.ports)) => |(i, (id, row))|
            replicate: U32 = i,
            port: U32 = id,
            /// Frames whose transmission began.
            frames: U64 = row.counters.frames,
            /// Their bytes.
            bytes: U64 = row.counters.bytes,
            /// Time in transmission, framing included.
            busy_ps: U64 = row.counters.busy_ps,
            /// Frames that its queue dropped.
            drops: U64 = row.counters.drops,
            /// Their bytes.
            dropped_bytes: U64 = row.counters.dropped_bytes,
            /// Frames of flows lost after their transmission had begun: on the link, or at its other end if that knew no way on.
            lost: U64 = row.lost,
            /// When the first one was dropped; unknown without drops.
            first_drop_ps: MaybeU64 = row.drop_times.map(|times| times.0).map(Time::ps),
            /// When the last one was dropped; unknown without drops.
            last_drop_ps: MaybeU64 = row.drop_times.map(|times| times.1).map(Time::ps),
            /// Most bytes that waited, the frame in transmission excluded.
            queue_max_bytes: U64 = row.counters.queue_max_bytes,
            /// Integral over time of the bytes that waited.
            queue_byte_ps: F64 = row.counters.queue_byte_ps as f64,
            /// Sum of the times that frames waited.
            queue_wait_ps: F64 = row.counters.queue_wait_ps as f64,
            /// Time held by PAUSE.
            paused_ps: U64 = row.pauses.total.ps(),
            /// How often PAUSE held it.
            paused_count: U64 = row.pauses.count,
            /// The longest time without interruption that it was held.
            paused_longest_ps: U64 = row.pauses.longest.ps(),
            /// When it was last released; unknown where it never was.
            paused_last_ps: MaybeU64 = row.pauses.last.map(Time::ps),
        ),
        table!("port_classes", "The queue of a traffic class at a port that has several.": each(batch, |run| &run.classes) => |(i, row)|
            replicate: U32 = i,
            port: U32 = row.port,
            /// The traffic class.
            class: U32 = row.class.into(),
            /// Frames of the class whose transmission began.
            frames: U64 = row.counters.frames,
            /// Their bytes.
            bytes: U64 = row.counters.bytes,
            /// Frames that the queue of the class dropped.
            drops: U64 = row.counters.drops,
            /// Their bytes.
            dropped_bytes: U64 = row.counters.dropped_bytes,
            /// Most bytes of the class that waited.
            queue_max_bytes: U64 = row.counters.queue_max_bytes,
            /// Integral over time of the bytes that waited.
            queue_byte_ps: F64 = row.counters.queue_byte_ps as f64,
            /// Sum of the times that frames waited.
            queue_wait_ps: F64 = row.counters.queue_wait_ps as f64,
            /// Time for which the class was held.
            held_ps: U64 = row.counters.holds.total.ps(),
            /// How often it was held.
            held_count: U64 = row.counters.holds.count,
            /// The longest time without interruption that it was held.
            held_longest_ps: U64 = row.counters.holds.longest.ps(),
        ),
        table!("drops", "Frames of a flow that were dropped at a port for one cause.": each(batch, |run| &run.drops) => |(i, row)|
            replicate: U32 = i,
            port: U32 = row.port,
            flow: U32 = row.flow,
            /// Id of the cause.
            cause: U32 = row.cause.id(),
            /// How many.
            frames: U64 = row.frames,
        ),
        table!("marks", "ECN-capable frames of a flow that the queue of a port marked.": each(batch, |run| &run.control.marks) => |(i, row)|
            replicate: U32 = i,
            port: U32 = row.port,
            flow: U32 = row.flow,
            /// How many.
            frames: U64 = row.frames,
        ),
        intervals(&mut each(batch, |run| run.intervals.rows())),
        deliveries(&mut each(batch, |run| flat(&run.deliveries))),
        flow_deliveries(&mut each(batch, |run| flat(&run.flow_deliveries))),
        burst_intervals(&mut each(batch, |run| flat(&run.burst_intervals))),
        table!("queue_levels", "A range of levels of a recorded queue, and for how long it was there.": each(batch, |run| &run.control.queue_levels) => |(i, &(id, low, high, time))|
            replicate: U32 = i,
            port: U32 = id,
            /// Least level of the range.
            low_bytes: U64 = low,
            /// First level above it.
            high_bytes: U64 = high,
            /// How long what waited lay there.
            time_ps: U64 = time,
        ),
        table!("bursts", "Bursts of a flow that arrived whole; in networks with shared memories, adapters or slow outputs.": each(batch, |run| &run.bursts) => |(i, row)|
            replicate: U32 = i,
            flow: U32 = row.flow,
            /// How many.
            bursts: U64 = row.bursts,
            /// Sum of their delays: from the generation of the first frame to the arrival of the last.
            delay_sum_ps: F64 = row.delay_sum_ps as f64,
            /// The least.
            delay_min_ps: U64 = row.delay_min.ps(),
            /// The greatest.
            delay_max_ps: U64 = row.delay_max.ps(),
        ),
        table!("memories", "The shared memory of a switch.": each(batch, |run| &run.memories) => |(i, row)|
            replicate: U32 = i,
            /// Name of the switch.
            switch: Text = node(row.node),
            /// Most bytes that it held.
            max_bytes: U64 = row.max_bytes,
            /// Integral over time of the bytes that it held.
            byte_ps: F64 = row.byte_ps as f64,
            /// How often it made neighbours stop.
            xoffs: U64 = row.xoffs,
        ),
        table!("delays", "A bin of the one-way delays of a flow, 1/32 wide.": each(batch, |run| &run.delays) => |(i, &(id, low, high, count))|
            replicate: U32 = i,
            flow: U32 = id,
            /// Least delay of the bin.
            low_ps: U64 = low,
            /// First delay above it.
            high_ps: U64 = high,
            /// Delivered frames.
            frames: U64 = count,
        ),
        table!("captures", "A capture file, which is in the same directory as the tables.": each(batch, |run| &run.captures) => |(i, row)|
            replicate: U32 = i,
            /// Name of the record that asks for it.
            name: Text = row.name.clone(),
            /// Frames in it.
            frames: U64 = row.frames,
            /// Frames that it had no room for.
            left_out_frames: U64 = row.left_out,
            /// The file itself; not part of saved tables.
            content: Blob = row.content.clone(),
        ),
    ]
}

pub(super) fn intervals(rows: Rows<'_, (u32, PortInterval)>) -> Table {
    table!("intervals", "An interval of a recorded port.": rows => |(i, (id, row))|
        replicate: U32 = i,
        port: U32 = id,
        t_ps: U64 = row.t_ps,
        /// Bytes of the frames whose transmission began.
        bytes: U64 = row.bytes,
        /// Frames whose transmission began.
        frames: U64 = row.frames,
        /// Frames that the queue dropped.
        drops: U64 = row.drops,
        /// Bytes that waited at the end of the interval.
        queue_bytes: U64 = row.queue_bytes,
        /// Most bytes that waited.
        queue_max_bytes: U64 = row.queue_max_bytes,
        /// Integral over the interval of the bytes that waited.
        queue_byte_ps: F64 = row.queue_byte_ps as f64,
        /// Time held by PAUSE.
        paused_ps: U64 = row.paused_ps,
    )
}

pub(super) fn deliveries(rows: Rows<'_, (u32, &Delivery)>) -> Table {
    table!("deliveries", "An interval of a recorded entry of traffic: what arrived.": rows => |(i, (id, row))|
        replicate: U32 = i,
        traffic: U32 = id,
        t_ps: U64 = row.t_ps,
        /// Frames that arrived.
        frames: U64 = row.frames,
        /// Their bytes.
        bytes: U64 = row.bytes,
    )
}

pub(super) fn flow_deliveries(rows: Rows<'_, (u32, &Delivery)>) -> Table {
    table!("flow_deliveries", "An interval of a flow of a recorded entry of traffic: what arrived.": rows => |(i, (id, row))|
        replicate: U32 = i,
        flow: U32 = id,
        t_ps: U64 = row.t_ps,
        /// Frames that arrived.
        frames: U64 = row.frames,
        /// Their bytes.
        bytes: U64 = row.bytes,
    )
}

pub(super) fn burst_intervals(rows: Rows<'_, (u32, &BurstInterval)>) -> Table {
    table!("burst_intervals", "Bursts of a recorded flow that arrived whole in an interval; intervals without one have no row.": rows => |(i, (id, row))|
        replicate: U32 = i,
        flow: U32 = id,
        t_ps: U64 = row.t_ps,
        /// How many.
        bursts: U64 = row.bursts,
        /// Sum of their delays: from the generation of the first frame to the arrival of the last.
        delay_sum_ps: F64 = row.delay_sum_ps as f64,
    )
}
