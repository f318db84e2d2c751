//! The results of a batch as named columns. What a column holds is described with the rows, in `totals`.

mod names;

use std::ops::ControlFlow;
use std::slice;

use weir_core::columns::{Series, Table};
use weir_core::rapid::Log;
use weir_core::{estimation, table};

use crate::plan::Plan;
use crate::totals::{ConnectionTotals, Totals};
use crate::workloads;

/// All tables of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables(pub Vec<Table>);

impl Tables {
    /// The tables of `runs`, all replicates of `plan`; of none they have all columns and no rows.
    pub fn new(plan: &Plan, runs: &[Totals]) -> Tables {
        let batch = Batch { first: 0, runs };
        let series = batch.series().into_iter().map(|mut rows| rows.next(usize::MAX));
        Tables(batch.counted(plan).into_iter().chain(series).chain(names::tables(plan)).collect())
    }

    /// All tables with all their columns, of no run; those of names have the rows of some network.
    pub fn of_no_run() -> Tables {
        let plan = Plan::new(workloads::incast()).expect("a ready-made workload is legal");
        Tables::new(&plan, &[])
    }
}

/// Gives `take` the rows of series of one replicate, in parts of tables with `most` rows.
pub(crate) fn series(
    replicate: u32,
    part: &Totals,
    most: usize,
    take: &mut dyn FnMut(Table) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for mut rows in (Batch { first: replicate, runs: slice::from_ref(part) }).series() {
        let parts = std::iter::from_fn(|| Some(rows.next(most)).filter(|part| part.rows() > 0));
        parts.into_iter().try_for_each(&mut *take)?;
    }
    ControlFlow::Continue(())
}

/// Replicates that follow each other.
#[derive(Clone, Copy)]
struct Batch<'a> {
    /// Number of the first.
    first: u32,
    runs: &'a [Totals],
}

impl<'a> Batch<'a> {
    /// What is counted once.
    fn counted(self, plan: &Plan) -> Vec<Table> {
        let node = |id: u32| plan.topology.nodes[id as usize].name.clone();
        let resent = |row: &'a ConnectionTotals| {
            (1u32..).zip(row.sender.retransmitted_times).filter(|&(_, segments)| segments > 0)
        };
        vec![
            table!("runs", "A run.": numbered(self.runs) => |(i, run)|
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
            Table::new("flows", ["replicate", "flow"], self.of(|run| numbered(&run.flows))),
            Table::new("ports", ["replicate", "port"], self.of(|run| numbered(&run.ports))),
            Table::new("port_classes", ["replicate"], self.each(|run| &run.classes)),
            Table::new("drops", ["replicate"], self.each(|run| &run.drops)),
            Table::new("marks", ["replicate"], self.each(|run| &run.control.marks)),
            table!("queue_levels", "A range of levels of a recorded queue, and for how long it was there.":
                self.each(|run| &run.control.queue_levels) => |([i], &(id, low, high, time))|
                replicate: U32 = i,
                port: U32 = id,
                /// Least level of the range.
                low_bytes: U64 = low,
                /// First level above it.
                high_bytes: U64 = high,
                /// How long what waited lay there.
                time_ps: U64 = time,
            ),
            Table::new("bursts", ["replicate"], self.each(|run| &run.bursts)),
            table!("memories", "The shared memory of a switch.": self.each(|run| &run.memories) => |([i], row)|
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
            table!("delays", "A bin of the one-way delays of a flow, 1/32 wide.":
                self.each(|run| &run.delays) => |([i], &(id, low, high, count))|
                replicate: U32 = i,
                flow: U32 = id,
                /// Least delay of the bin.
                low_ps: U64 = low,
                /// First delay above it.
                high_ps: U64 = high,
                /// Delivered frames.
                frames: U64 = count,
            ),
            Table::new("captures", ["replicate"], self.each(|run| &run.captures)),
            Table::new("control_frames", ["replicate"], self.each(|run| &run.control.frames)),
            Table::new(
                "reaction_points",
                ["replicate", "flow"],
                self.of(|run| run.control.reaction_points.iter().map(|(flow, row)| (*flow, row))),
            ),
            Table::new("holds", ["replicate"], self.each(|run| &run.control.holds)),
            Table::new("buffers", ["replicate"], self.each(|run| &run.control.buffers)),
            Table::new("buffer_inputs", ["replicate"], self.each(|run| &run.control.buffer_inputs)),
            Table::new("hold_causes", ["replicate"], self.each(|run| &run.control.causes)),
            Table::new("storms", ["replicate"], self.each(|run| &run.control.storms)),
            Table::new("deadlocks", ["replicate"], self.each(|run| &run.control.deadlocks)),
            Table::new("connections", ["replicate", "connection"], self.of(|run| numbered(&run.connections))),
            table!("resent", "Segments of a connection that were sent again equally often.":
                self.of(|run| numbered(&run.connections).flat_map(move |(id, row)| resent(row).map(move |row| (id, row))))
                => |([i, id], (times, segments))|
                replicate: U32 = i,
                connection: U32 = id,
                /// How often; 8 stands for eight times or more.
                times: U32 = times,
                /// How many segments.
                segments: U64 = segments,
            ),
            Table::new("message_totals", ["replicate"], self.each(|run| &run.message_totals)),
            Table::new("rounds", ["replicate"], self.each(|run| &run.rounds)),
        ]
    }

    /// What may be so much that it leaves a run in parts.
    fn series(self) -> Vec<Series<'a>> {
        vec![
            Series::new("intervals", ["replicate", "port"], self.of(|run| run.intervals.rows())),
            Series::new("deliveries", ["replicate", "traffic"], self.of(|run| flat(&run.deliveries))),
            Series::new("flow_deliveries", ["replicate", "flow"], self.of(|run| flat(&run.flow_deliveries))),
            Series::new("burst_intervals", ["replicate", "flow"], self.of(|run| flat(&run.burst_intervals))),
            Series::new("pool_intervals", ["replicate", "pool"], self.of(|run| flat(&run.pools))),
            Series::new("hold_intervals", ["replicate", "port"], self.of(|run| flat(&run.hold_intervals))),
            Series::new("tcp", ["replicate", "connection"], self.of(|run| flat(&run.tcp))),
            Series::new("messages", ["replicate"], self.each(|run| &run.messages)),
            Series::new("control_intervals", ["replicate"], self.each(|run| &run.control.intervals)),
            Series::new("limiters", ["replicate", "flow"], self.of(|run| flat(&run.control.limiters))),
            Series::new("probe_streams", ["replicate", "connection"], self.logged(|log| &log.streams)),
            Series::new("probe_states", ["replicate", "connection"], self.logged(|log| &log.states)),
            Series::new("probe_packets", ["replicate", "connection"], self.logged(|log| &log.packets)),
            Series::new("bandwidth_estimates", ["replicate", "prober"], self.estimated(|log| &log.estimates)),
            Series::new("probe_trains", ["replicate", "prober"], self.estimated(|log| &log.trains)),
        ]
    }

    /// The rows of every replicate, each with the replicate's number.
    fn each<R: IntoIterator>(self, rows: impl Fn(&'a Totals) -> R) -> impl Iterator<Item = ([u32; 1], R::Item)> {
        let runs = (self.first..).zip(self.runs);
        runs.flat_map(move |(replicate, run)| rows(run).into_iter().map(move |row| ([replicate], row)))
    }

    /// The same of rows that have an id.
    fn of<T, R: IntoIterator<Item = (u32, T)>>(
        self,
        rows: impl Fn(&'a Totals) -> R,
    ) -> impl Iterator<Item = ([u32; 2], T)> {
        self.each(rows).map(|([replicate], (id, row))| ([replicate, id], row))
    }

    /// What the logs of probing connections hold.
    fn logged<T: 'a>(self, of: fn(&Log) -> &Vec<T>) -> impl Iterator<Item = ([u32; 2], &'a T)> {
        self.of(move |run| run.probing.iter().flat_map(move |(id, log)| of(log).iter().map(move |row| (*id, row))))
    }

    /// What the logs of estimators hold.
    fn estimated<T: 'a>(self, of: fn(&'a estimation::Log) -> &'a Vec<T>) -> impl Iterator<Item = ([u32; 2], &'a T)> {
        self.of(move |run| {
            numbered(&run.estimation).flat_map(move |(id, log)| of(log).iter().map(move |row| (id, row)))
        })
    }
}

/// Rows with the ids that they belong to.
fn flat<R>(rows: &[(u32, Vec<R>)]) -> impl Iterator<Item = (u32, &R)> {
    rows.iter().flat_map(|(id, rows)| rows.iter().map(move |row| (*id, row)))
}

fn numbered<T>(rows: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0..).zip(rows)
}
