//! Series of what happens seldom, for those who ask: bursts that arrive whole, and control frames. Only intervals in which
//! something happened have rows.

use std::collections::BTreeMap;

use weir_core::spec;
use weir_core::units::Time;

use crate::boundaries::Boundaries;
use crate::totals::{ControlInterval, ControlKind};

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
