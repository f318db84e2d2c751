//! Tables of congestion management.

use weir_core::columns::Table;
use weir_core::table;
use weir_core::units::Time;

use super::{Rows, each, flat};
use crate::totals::{ControlInterval, HoldInterval, LimiterInterval, PoolInterval, Totals};

pub(super) fn tables(batch: &[Totals]) -> Vec<Table> {
    vec![
        table!("control_frames", "Control frames of one kind that a port was the first to send because of a queue.": each(batch, |run| &run.control.frames) => |(i, row)|
            replicate: U32 = i,
            /// Id of the port that sent them first.
            port: U32 = row.port,
            /// Id of the port whose queue is the cause.
            queue_port: U32 = row.queue_port,
            /// Id of the kind.
            kind: U32 = row.kind.id(),
            /// How many.
            frames: U64 = row.frames,
            /// Their bytes.
            bytes: U64 = row.bytes,
        ),
        intervals(&mut each(batch, |run| &run.control.intervals)),
        table!("reaction_points", "The rate limiters of a flow of a host that obeys congestion management.": each(batch, |run| &run.control.reaction_points) => |(i, (id, row))|
            replicate: U32 = i,
            flow: U32 = *id,
            /// Limiters that notifications made.
            made: U64 = row.made,
            /// Limiters that were removed.
            removed: U64 = row.removed,
            /// Increases of a rate.
            increases: U64 = row.increases,
            /// Decreases of a rate.
            decreases: U64 = row.decreases,
            /// Stops, by BCN(0,0).
            stops: U64 = row.stops,
            /// Time with a limiter.
            limited_ps: U64 = row.limited_ps,
            /// Time in which it was stopped.
            stopped_ps: U64 = row.stopped_ps,
        ),
        limiters(&mut each(batch, |run| flat(&run.control.limiters))),
        table!("holds", "A traffic class that frames of flow control (PAUSE, or PFC) held at a port.": each(batch, |run| &run.control.holds) => |(i, row)|
            replicate: U32 = i,
            /// Id of the port that was held.
            port: U32 = row.port,
            /// The traffic class; PAUSE holds all.
            class: U32 = row.class.into(),
            /// Time for which it was held.
            held_ps: U64 = row.holds.total.ps(),
            /// How often it was held.
            held_count: U64 = row.holds.count,
            /// The longest time without interruption that it was held.
            held_longest_ps: U64 = row.holds.longest.ps(),
            /// When it was last released, or the end of the run.
            held_last_ps: MaybeU64 = row.holds.last.map(Time::ps),
        ),
        table!("buffers", "The buffer of a switch that is counted at inputs and outputs.": each(batch, |run| &run.control.buffers) => |(i, row)|
            replicate: U32 = i,
            /// Id of the switch.
            node: U32 = row.node,
            /// Most bytes that waited.
            max_bytes: U64 = row.max_bytes,
            /// Integral over time of the bytes that waited.
            byte_ps: F64 = row.byte_ps as f64,
        ),
        table!("buffer_inputs", "What came over an input of such a switch, of one traffic class.": each(batch, |run| &run.control.buffer_inputs) => |(i, row)|
            replicate: U32 = i,
            /// Id of the port that leads to the switch.
            port: U32 = row.port,
            /// The traffic class.
            class: U32 = row.class.into(),
            /// Most bytes that waited, headroom included.
            max_bytes: U64 = row.counters.max_bytes,
            /// Most bytes of headroom that were used.
            headroom_max_bytes: U64 = row.counters.headroom_max_bytes,
            /// Frames for which the buffer had no room.
            drops: U64 = row.counters.drops,
            /// How often the sender was asked to stop, without repetitions.
            stops: U64 = row.counters.stops,
        ),
        pool_intervals(&mut each(batch, |run| flat(&run.pools))),
        hold_intervals(&mut each(batch, |run| flat(&run.hold_intervals))),
        table!("hold_causes", "Why buffers asked a class of a port to stop: the output that most of what came from there waited for, and where it began.":
            each(batch, |run| &run.control.causes) => |(i, row)|
            replicate: U32 = i,
            /// Id of the port that was asked to stop.
            port: U32 = row.port,
            /// The traffic class.
            class: U32 = row.class.into(),
            /// Id of the output that most of what came from there waited for.
            cause_port: U32 = row.cause,
            /// Id of the output where nothing else held what waited.
            root_port: U32 = row.root,
            /// How often.
            stops: U64 = row.stops,
            /// How long all together, up to the release or the end of the run.
            stopped_ps: U64 = row.time.ps(),
            /// Stops from the root to here at most: 1 next to it.
            depth: U32 = row.depth,
        ),
        table!("storms", "A storm of flow control that the watchdog of a port found.": each(batch, |run| &run.control.storms) => |(i, row)|
            replicate: U32 = i,
            /// Id of the port that was held.
            port: U32 = row.port,
            /// The traffic class.
            class: U32 = row.class.into(),
            /// When it was found.
            found_ps: U64 = row.found.ps(),
            /// When it was over; unknown if it was not.
            over_ps: MaybeU64 = row.over.map(Time::ps),
        ),
        table!("deadlocks", "A traffic class of a port that is held and waits for others that are: none of them releases another.":
            each(batch, |run| &run.control.deadlocks) => |(i, row)|
            replicate: U32 = i,
            /// Id of the port.
            port: U32 = row.port,
            /// The traffic class.
            class: U32 = row.class.into(),
            /// Since when it is held.
            since_ps: U64 = row.since.ps(),
            /// When that was found: at a stop that takes effect, at most 100 us after another look.
            found_ps: U64 = row.found.ps(),
            /// When it was found to be over, because of a watchdog or an event; unknown if it was not.
            over_ps: MaybeU64 = row.over.map(Time::ps),
        ),
    ]
}

pub(super) fn pool_intervals(rows: Rows<'_, (u32, &PoolInterval)>) -> Table {
    table!("pool_intervals", "An interval of a part of the buffer of a switch of which a port is recorded: the shortest that one of them has.": rows => |(i, (id, row))|
        replicate: U32 = i,
        /// The part, by its number in `pool_names`.
        pool: U32 = id,
        t_ps: U64 = row.t_ps,
        /// Bytes at the end of the interval.
        bytes: U64 = row.bytes,
        /// Most bytes.
        max_bytes: U64 = row.max_bytes,
        /// Integral over the interval of the bytes.
        byte_ps: F64 = row.byte_ps as f64,
    )
}

pub(super) fn hold_intervals(rows: Rows<'_, (u32, &HoldInterval)>) -> Table {
    table!("hold_intervals", "For how long frames of flow control (PAUSE, or PFC) held a class of the traffic at a recorded port in an interval; intervals in which they did not have no row.":
        rows => |(i, (id, row))|
        replicate: U32 = i,
        port: U32 = id,
        t_ps: U64 = row.t_ps,
        /// The traffic class.
        class: U32 = row.class.into(),
        /// Time for which it was held.
        held_ps: U64 = row.held_ps,
    )
}

/// Rows of control frames by interval.
pub(super) fn intervals(rows: Rows<'_, &ControlInterval>) -> Table {
    table!("control_intervals", "Control frames of one kind because of a recorded queue, in an interval; intervals without one have no row.": rows => |(i, row)|
        replicate: U32 = i,
        /// Id of the port whose queue is the cause.
        queue_port: U32 = row.queue_port,
        /// Id of the kind.
        kind: U32 = row.kind.id(),
        t_ps: U64 = row.t_ps,
        /// How many.
        frames: U64 = row.frames,
    )
}

/// Rows of limiters.
pub(super) fn limiters(rows: Rows<'_, (u32, &LimiterInterval)>) -> Table {
    table!("limiters", "An interval of the rate limiter of a flow; with shared memories, adapters and slow outputs, of a pair of hosts, with its first flow.": rows => |(i, (id, row))|
        replicate: U32 = i,
        flow: U32 = id,
        t_ps: U64 = row.t_ps,
        /// Rate at the end of the interval; unknown without a limiter.
        rate_bps: MaybeU64 = row.rate_bps,
        /// Integral of the rate over the limited time.
        rate_bit: F64 = row.rate_bit,
        /// Time of the interval with a limiter.
        limited_ps: U64 = row.limited_ps,
        /// Time of the interval in which it was stopped.
        stopped_ps: U64 = row.stopped_ps,
        /// Bytes that waited in it at the end of the interval.
        queue_bytes: U64 = row.queue_bytes,
    )
}
