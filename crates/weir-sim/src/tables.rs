//! The results of a batch as named columns.

mod control;
mod frames;
mod messages;
mod names;
mod probing;
mod transport;

use std::ops::ControlFlow;

use weir_core::columns::Table;

use crate::plan::Plan;
use crate::totals::Totals;
use crate::workloads;

/// All tables of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables(pub Vec<Table>);

impl Tables {
    /// The tables of `batch`, all replicates of `plan`; of a batch of none they have all columns and no rows.
    pub fn new(plan: &Plan, batch: &[Totals]) -> Tables {
        let groups = [
            frames::tables(plan, batch),
            control::tables(batch),
            transport::tables(batch),
            messages::tables(batch),
            probing::tables(batch),
            names::tables(plan),
        ];
        Tables(groups.into_iter().flatten().collect())
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
    parts((replicate, most), part.intervals.rows(), frames::intervals, take)?;
    parts((replicate, most), flat(&part.deliveries), frames::deliveries, take)?;
    parts((replicate, most), flat(&part.flow_deliveries), frames::flow_deliveries, take)?;
    parts((replicate, most), flat(&part.burst_intervals), frames::burst_intervals, take)?;
    parts((replicate, most), flat(&part.pools), control::pool_intervals, take)?;
    parts((replicate, most), flat(&part.hold_intervals), control::hold_intervals, take)?;
    parts((replicate, most), flat(&part.tcp), transport::intervals, take)?;
    parts((replicate, most), &part.messages, messages::rows, take)?;
    parts((replicate, most), &part.control.intervals, control::intervals, take)?;
    parts((replicate, most), flat(&part.control.limiters), control::limiters, take)?;
    parts((replicate, most), probing::logged(part, |log| &log.streams), probing::streams, take)?;
    parts((replicate, most), probing::logged(part, |log| &log.states), probing::states, take)?;
    parts((replicate, most), probing::logged(part, |log| &log.packets), probing::packets, take)?;
    parts((replicate, most), probing::estimated(part, |log| &log.estimates), probing::estimates, take)?;
    parts((replicate, most), probing::estimated(part, |log| &log.trains), probing::trains, take)
}

/// Rows, each with its replicate.
type Rows<'r, R> = &'r mut dyn Iterator<Item = (u32, R)>;

fn parts<R>(
    (replicate, most): (u32, usize),
    rows: impl IntoIterator<Item = R>,
    table: impl Fn(Rows<'_, R>) -> Table,
    take: &mut dyn FnMut(Table) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut rows = rows.into_iter().map(|row| (replicate, row)).peekable();
    while rows.peek().is_some() {
        take(table(&mut rows.by_ref().take(most)))?;
    }
    ControlFlow::Continue(())
}

/// Rows with the ids that they belong to.
fn flat<R>(rows: &[(u32, Vec<R>)]) -> impl Iterator<Item = (u32, &R)> {
    rows.iter().flat_map(|(id, rows)| rows.iter().map(move |row| (*id, row)))
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
