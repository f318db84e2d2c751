//! Rows of series that leave a run while it goes on, so that its memory does not grow with its length.
//!
//! They leave in parts. Within a part rows are ordered by what they are of (ports in the order of the spec, and so on) and then
//! by time; the parts of one table follow each other in time. So a stable sort of all parts by what rows are of gives the table of a run that
//! keeps its rows. Of messages a part has those that are over.

use std::fmt;
use std::ops::ControlFlow;

use weir_core::columns::Table;
use weir_core::estimation;

use crate::tables;
use crate::totals::{ControlTotals, Totals};

/// Where rows go.
#[derive(Clone, Copy)]
pub struct Sink<'s> {
    /// Rows of a part, and those that a run keeps before it gives them away.
    pub rows: usize,
    /// Takes a part of a table of a replicate, and says whether to go on. Threads call it at the same time, for one replicate
    /// one after the other.
    pub take: &'s (dyn Fn(u32, Table) -> ControlFlow<()> + Sync),
}

/// The sink takes no more.
#[derive(Debug)]
pub(crate) struct Closed;

/// The way out for the rows of one run; by default there is none.
#[derive(Default)]
pub(crate) struct Spill<'s> {
    sink: Option<Sink<'s>>,
    replicate: u32,
    /// Whether rows have left; then all do.
    has_spilled: bool,
}

impl fmt::Debug for Spill<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spill").field("replicate", &self.replicate).finish_non_exhaustive()
    }
}

impl<'s> Spill<'s> {
    pub(crate) fn new(sink: Option<Sink<'s>>, replicate: u32) -> Spill<'s> {
        Spill { sink, replicate, has_spilled: false }
    }

    /// How many rows are too many; none if they have nowhere to go.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.sink.map(|sink| sink.rows)
    }

    /// After the run: gives away the series of `totals`, if others have left before or they are many.
    ///
    /// # Errors
    /// As of [`Spill::give`].
    pub(crate) fn finish(&mut self, totals: &mut Totals) -> Result<(), Closed> {
        if !self.has_spilled && self.limit().is_none_or(|limit| totals.rows_of_series() < limit) {
            return Ok(());
        }
        self.give(&totals.take_series())
    }

    /// Gives a part away.
    ///
    /// # Errors
    /// The sink said no.
    pub(crate) fn give(&mut self, part: &Totals) -> Result<(), Closed> {
        let Some(sink) = self.sink else { return Ok(()) };
        self.has_spilled = true;
        let replicate = self.replicate;
        match tables::series(replicate, part, sink.rows, &mut |table| (sink.take)(replicate, table)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Closed),
        }
    }
}

impl Totals {
    /// Rows of series, of which there may be many.
    fn rows_of_series(&self) -> usize {
        let deliveries = self.deliveries.iter().chain(&self.flow_deliveries).map(|row| row.1.len());
        let bursts = self.burst_intervals.iter().map(|row| row.1.len());
        let control = self.pools.iter().map(|row| row.1.len());
        let control = control.chain(self.hold_intervals.iter().map(|row| row.1.len()));
        let limiters = self.control.limiters.iter().map(|row| row.1.len());
        let logs = self.probing.iter().map(|row| row.1.rows()).chain(self.estimation.iter().map(estimation::Log::rows));
        let tcp = self.tcp.iter().map(|row| row.1.len());
        let others = [self.messages.len(), self.intervals.len(), self.control.intervals.len()];
        deliveries.chain(bursts).chain(control).chain(limiters).chain(logs).chain(tcp).chain(others).sum()
    }

    /// Moves the series to totals of nothing else.
    fn take_series(&mut self) -> Totals {
        Totals {
            intervals: std::mem::take(&mut self.intervals),
            deliveries: std::mem::take(&mut self.deliveries),
            flow_deliveries: std::mem::take(&mut self.flow_deliveries),
            burst_intervals: std::mem::take(&mut self.burst_intervals),
            pools: std::mem::take(&mut self.pools),
            hold_intervals: std::mem::take(&mut self.hold_intervals),
            tcp: std::mem::take(&mut self.tcp),
            messages: std::mem::take(&mut self.messages),
            probing: std::mem::take(&mut self.probing),
            estimation: std::mem::take(&mut self.estimation),
            control: ControlTotals {
                intervals: std::mem::take(&mut self.control.intervals),
                limiters: std::mem::take(&mut self.control.limiters),
                ..ControlTotals::default()
            },
            ..Totals::default()
        }
    }
}
