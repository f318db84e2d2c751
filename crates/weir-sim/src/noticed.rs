//! Series of what happens seldom, for those who ask: bursts that arrive whole, control frames, and holds of classes. Only intervals in which
//! something happened have rows.

use std::collections::BTreeMap;

use weir_core::queue::ClassSet;
use weir_core::spec;
use weir_core::units::Time;

use crate::boundaries::Boundaries;
use crate::totals::{ControlInterval, ControlKind, HoldInterval};

/// Counts the control frames of recorded ports by interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlProbes {
    /// By port.
    boundaries: BTreeMap<u32, Boundaries>,
    /// By port, kind and end of the interval.
    frames: BTreeMap<(u32, ControlKind, u64), u64>,
    /// Rows of intervals that were under way when others left.
    stayed: usize,
}

impl ControlProbes {
    pub(crate) fn new(probes: &[spec::PortProbe], end: Time) -> ControlProbes {
        let boundaries = probes.iter().map(|probe| (probe.port, Boundaries::new(probe.every_ps, end)));
        ControlProbes { boundaries: boundaries.collect(), ..ControlProbes::default() }
    }

    /// The queue of a port caused a control frame.
    pub(crate) fn note(&mut self, queue_port: u32, kind: ControlKind, now: Time) {
        let Some(boundaries) = self.boundaries.get(&queue_port) else { return };
        let t_ps = boundaries.at(boundaries.number(now)).ps();
        *self.frames.entry((queue_port, kind, t_ps)).or_default() += 1;
    }

    /// How many rows came since some left: the rows of intervals under way are no reason for a part without them.
    pub(crate) fn rows(&self) -> usize {
        self.frames.len() - self.stayed
    }

    /// Takes the rows of intervals that ended before `now`, in order of port, kind and time.
    pub(crate) fn take_rows(&mut self, now: Time) -> Vec<ControlInterval> {
        let mut rows = Vec::new();
        self.frames.retain(|&(queue_port, kind, t_ps), &mut frames| {
            let is_over = t_ps < now.ps();
            if is_over {
                rows.push(ControlInterval { queue_port, kind, t_ps, frames });
            }
            !is_over
        });
        self.stayed = self.frames.len();
        rows
    }
}

/// For how long classes of the traffic were held at recorded ports, by interval.
#[derive(Clone, Debug)]
pub(crate) struct HoldProbes {
    classes: ClassSet,
    of_port: BTreeMap<u32, HeldPort>,
}

#[derive(Clone, Debug)]
struct HeldPort {
    boundaries: Boundaries,
    /// The rows up to here have left.
    settled: Time,
    /// For how long, by the number of the interval and class.
    held: BTreeMap<(u32, u8), u64>,
    /// Rows of the interval that was under way when others left.
    stayed: usize,
}

impl HoldProbes {
    /// Of ports that carry these `classes`.
    pub(crate) fn new(probes: &[spec::PortProbe], classes: ClassSet, end: Time) -> HoldProbes {
        let of_port = |probe: &spec::PortProbe| {
            let boundaries = Boundaries::new(probe.every_ps, end);
            (probe.port, HeldPort { boundaries, settled: Time::ZERO, held: BTreeMap::new(), stayed: 0 })
        };
        HoldProbes { classes, of_port: probes.iter().map(of_port).collect() }
    }

    /// The recorded ports.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u32> + '_ {
        self.of_port.keys().copied()
    }

    /// `class` of `port` was held from `since` to `until`; what of that is in rows that left counts there.
    pub(crate) fn note(&mut self, port: u32, class: u8, since: Time, until: Time) {
        let Some(HeldPort { boundaries, settled, held, .. }) = self.of_port.get_mut(&port) else { return };
        let mut from = since.max(*settled);
        if !self.classes.contains(class) {
            return;
        }
        while from < until {
            let number = boundaries.number(from);
            let to = boundaries.at(number).min(until);
            *held.entry((number, class)).or_default() += (to - from).ps();
            from = to;
        }
    }

    /// How many rows came since some left.
    pub(crate) fn rows(&self) -> usize {
        self.of_port.values().map(|port| port.held.len() - port.stayed).sum()
    }

    /// The rows of the intervals of `port` that ended up to `now`, which leave, if `holds` are those under way: classes, and since when.
    pub(crate) fn take(
        &mut self,
        port: u32,
        now: Time,
        holds: impl Iterator<Item = (u8, Time)>,
    ) -> Option<(u32, Vec<HoldInterval>)> {
        let boundaries = self.of_port.get(&port)?.boundaries;
        let number = boundaries.number(now);
        let until = if number == 1 { Time::ZERO } else { boundaries.at(number - 1) };
        holds.for_each(|(class, since)| self.note(port, class, since, until));
        let probe = self.of_port.get_mut(&port)?;
        probe.settled = until;
        let left = probe.held.split_off(&(number, 0));
        probe.stayed = left.len();
        let ended = std::mem::replace(&mut probe.held, left);
        let row = |((number, class), held_ps)| HoldInterval { t_ps: boundaries.at(number).ps(), class, held_ps };
        (!ended.is_empty()).then(|| (port, ended.into_iter().map(row).collect()))
    }
}

#[cfg(test)]
mod tests {
    use weir_core::units::Span;

    use super::*;

    #[test]
    fn intervals_under_way_do_not_count_as_rows_that_can_leave() {
        let probe = spec::PortProbe { port: 3, every_ps: Span::from_ps(100) };
        let mut probes = ControlProbes::new(&[probe], Time::from_ps(1000));
        for (at, rows) in [(20, 1), (90, 1), (150, 2)] {
            probes.note(3, ControlKind::BcnNegative, Time::from_ps(at));
            assert_eq!(probes.rows(), rows);
        }
        let left = probes.take_rows(Time::from_ps(160));
        assert_eq!(left.iter().map(|row| (row.t_ps, row.frames)).collect::<Vec<_>>(), [(100, 2)]);
        assert_eq!(probes.rows(), 0);
        probes.note(3, ControlKind::BcnNegative, Time::from_ps(170));
        assert_eq!(probes.take_rows(Time::from_ps(200)), [], "its last instant belongs to an interval");
        assert_eq!(probes.take_rows(Time::from_ps(201)).len(), 1);
        assert_eq!(probes.rows(), 0);
    }
}
