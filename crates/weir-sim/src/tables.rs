//! The results of a batch as named columns.

mod control;
mod frames;
mod messages;
mod names;
mod probing;
mod transport;

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
