//! Series of what happens seldom, for those who ask: bursts that arrive whole, and control frames. Only intervals in which
//! something happened have rows.

use std::collections::BTreeMap;

use weir_core::spec;
use weir_core::units::{Span, Time};

use crate::probes::Boundaries;
use crate::totals::ControlKind;

/// The bursts of a flow that arrived whole in an interval: a row of the table `burst_intervals`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstInterval {
    /// End of the interval, ps.
    pub t_ps: u64,
    /// How many.
    pub bursts: u64,
    /// Sum of their delays, ps.
    pub delay_sum_ps: u128,
}

impl BurstInterval {
    /// Counts a burst in the last of `rows`, if that is of the interval that ends at `t_ps`, or in a new one.
    pub(crate) fn count(rows: &mut Vec<BurstInterval>, t_ps: u64, delay: Span) {
        if rows.last().is_none_or(|row| row.t_ps != t_ps) {
            rows.push(BurstInterval { t_ps, ..BurstInterval::default() });
        }
        if let Some(row) = rows.last_mut() {
            row.bursts += 1;
            row.delay_sum_ps += u128::from(delay.ps());
        }
    }
}

/// Control frames that a queue caused in an interval: a row of the table `control_intervals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControlInterval {
    /// The port whose queue is the cause.
    pub queue_port: u32,
    /// What they say.
    pub kind: ControlKind,
    /// End of the interval, ps.
    pub t_ps: u64,
    /// How many.
    pub frames: u64,
}

/// Counts the control frames of recorded ports by interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlProbes {
    /// By port.
    boundaries: BTreeMap<u32, Boundaries>,
    /// By port, kind and end of the interval.
    frames: BTreeMap<(u32, ControlKind, u64), u64>,
}

impl ControlProbes {
    pub(crate) fn new(probes: &[spec::PortProbe], end: Time) -> ControlProbes {
        let boundaries = probes.iter().map(|probe| (probe.port, Boundaries::new(probe.every_ps, end)));
        ControlProbes { boundaries: boundaries.collect(), frames: BTreeMap::new() }
    }

    /// The queue of a port caused a control frame.
    pub(crate) fn note(&mut self, queue_port: u32, kind: ControlKind, now: Time) {
        let Some(boundaries) = self.boundaries.get(&queue_port) else { return };
        let t_ps = boundaries.at(boundaries.number(now)).ps();
        *self.frames.entry((queue_port, kind, t_ps)).or_default() += 1;
    }

    /// In order of port, kind and time.
    pub(crate) fn rows(&self) -> impl Iterator<Item = ControlInterval> + '_ {
        let row = |(&(queue_port, kind, t_ps), &frames)| ControlInterval { queue_port, kind, t_ps, frames };
        self.frames.iter().map(row)
    }
}
