//! What is told of congestion management at the end of a run.

use weir_core::spec::LevelProbe;
use weir_core::units::{Bytes, Time};

use super::adapter::Adapter;
use crate::fabric::Fabric;
use crate::plan::{ARRIVED, Flow};
use crate::totals::{ControlFrames, ControlTotals, MarkTotals};

/// How long how much waited at a port.
#[derive(Debug)]
pub(super) struct Levels {
    /// Up to when it is counted; before its start nothing counts.
    settled: Time,
    end: Time,
    bin: u64,
    /// By bin, ps.
    times: Vec<u64>,
}

impl Levels {
    pub(super) fn new(probe: &LevelProbe) -> Levels {
        Levels { settled: probe.from_ps, end: probe.to_ps, bin: probe.bin_bytes.count(), times: Vec::new() }
    }

    /// So much has waited up to `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: Time, waiting: Bytes) {
        let now = now.min(self.end);
        if now <= self.settled {
            return;
        }
        let bin = (waiting.count() / self.bin) as usize;
        if bin >= self.times.len() {
            self.times.resize(bin + 1, 0);
        }
        self.times[bin] += (now - self.settled).ps();
        self.settled = now;
    }

    /// Every bin in which there was anything: its bounds in bytes, the lower one included, and the time in ps.
    fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = (0..).zip(&self.times).filter(|&(_, &time)| time > 0);
        filled.map(|(bin, &time)| (bin * self.bin, (bin + 1) * self.bin, time))
    }
}

/// What waited in the adapter of a port, to be added to what the port counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waited {
    pub(crate) byte_ps: u128,
    pub(crate) wait_ps: u128,
    pub(crate) most: u64,
}

impl Fabric<'_> {
    /// After the last event: draws what was generated before the end, and writes the rows that are left.
    pub(crate) fn finish_control(&mut self) {
        let Some(control) = &self.control else { return };
        let adapted: Vec<u32> = control.adapted().collect();
        let end = self.end;
        for port in adapted {
            self.catch_up(port, end);
            self.draw_adapter(port, end, end);
            let Some(control) = &mut self.control else { return };
            if let Some(adapter) = &mut control.extras[port as usize].adapter {
                adapter.settle(end);
            }
        }
        self.finish_stations();
        let Some(control) = &mut self.control else { return };
        for (extra, line) in control.extras.iter_mut().zip(&self.lines) {
            if let Some(levels) = &mut extra.levels {
                levels.settle(end, line.port.waiting_bytes());
            }
        }
    }

    /// The frames that wait in the adapter of a port.
    pub(crate) fn waiting_in_adapter(&self, port: usize) -> impl Iterator<Item = u32> + '_ {
        let adapter = self.control.as_ref().and_then(|control| control.extras[port].adapter.as_deref());
        adapter.into_iter().flat_map(|adapter| adapter.waiting()).chain(self.waiting_at_host(port))
    }

    /// What waited in the adapter of a port, if it has one.
    pub(crate) fn waited(&self, port: usize) -> Waited {
        let adapter = self.control.as_ref().and_then(|control| control.extras[port].adapter.as_deref());
        let waited =
            |adapter: &Adapter| Waited { byte_ps: adapter.byte_ps, wait_ps: adapter.wait_ps, most: adapter.peak() };
        adapter.map(waited).or_else(|| self.waited_at_host(port)).unwrap_or_default()
    }

    /// Frames dropped at a place of [`crate::plan::Plan::route`] that a limiter had no room for.
    pub(crate) fn limiter_drops(&self, leg: usize) -> u64 {
        self.control.as_ref().and_then(|control| control.limiter_drops.get(leg)).copied().unwrap_or(0)
    }

    /// Frames dropped at a place of [`crate::plan::Plan::route`] by the management of a queue, before it was full.
    pub(crate) fn early_drops(&self, leg: usize) -> u64 {
        self.control.as_ref().and_then(|control| control.early_drops.get(leg)).copied().unwrap_or(0)
    }

    /// Frames dropped at a place of [`crate::plan::Plan::route`] that were lost before they reached the queue.
    pub(crate) fn overrun_drops(&self, leg: usize) -> u64 {
        self.control.as_ref().and_then(|control| control.overrun_drops.get(leg)).copied().unwrap_or(0)
    }

    /// Frames that a link lost at a place of the ways when it went down.
    pub(crate) fn down_drops(&self, leg: usize) -> u64 {
        self.control.as_ref().and_then(|control| control.down_drops.get(leg)).copied().unwrap_or(0)
    }

    /// Control frames that were made and have not reached their end, and how many of them were dropped.
    pub(crate) fn control_frames(&self) -> (u64, u64) {
        let (Some(control), Some(shared)) = (&self.control, &self.plan.control) else { return (0, 0) };
        let dropped = self.drops.get(shared.first_way_back..).map_or(0, |drops| drops.iter().sum());
        let dropped = if shared.ways_back.is_empty() { 0 } else { dropped };
        (control.made - control.ended, dropped + self.wires.as_ref().map_or(0, |wires| wires.lost_control))
    }

    /// Where frames of which flow were marked.
    fn marks(&self) -> Vec<MarkTotals> {
        let Some(marks) = self.control.as_ref().map(|control| &control.marks).filter(|marks| !marks.is_empty()) else {
            return Vec::new();
        };
        let of_flow = |(flow, planned): (u32, &Flow)| {
            let legs = (planned.first_leg as usize..).map(|leg| (self.plan.route[leg], marks[leg]));
            let added = self.legs_of(flow).map(|(port, leg)| (port, marks[leg]));
            let of_ports = legs.take_while(|&(port, _)| port != ARRIVED).chain(added).filter(|row| row.1 > 0);
            of_ports.map(move |(port, frames)| MarkTotals { port, flow, frames })
        };
        let mut totals: Vec<MarkTotals> = (0..).zip(&self.plan.flows).flat_map(of_flow).collect();
        totals.sort_unstable();
        totals.dedup_by(|row, kept| {
            let is_same = (row.port, row.flow) == (kept.port, kept.flow);
            kept.frames += if is_same { row.frames } else { 0 };
            is_same
        });
        totals
    }

    /// What congestion management did, up to the end.
    pub(crate) fn control_totals(&mut self) -> ControlTotals {
        let end = self.end;
        let mut totals =
            ControlTotals { marks: self.marks(), reaction_points: self.limiter_totals(), ..ControlTotals::default() };
        totals.limiters = self.limiter_rows();
        let Some(control) = &mut self.control else { return totals };
        for (&(port, queue_port, kind), &(frames, bytes)) in &control.sent {
            totals.frames.push(ControlFrames { port, queue_port, kind, frames, bytes });
        }
        totals.intervals.extend(control.probes.rows());
        for (port, extra) in (0..).zip(&mut control.extras) {
            if let Some(levels) = &extra.levels {
                totals.queue_levels.extend(levels.bins().map(|(low, high, time)| (port, low, high, time)));
            }
            let Some(adapter) = &mut extra.adapter else { continue };
            adapter.write_rows(end);
            let Some(rules) = &adapter.rules else { continue };
            for outlet in &mut adapter.outlets {
                outlet.reaction.advance(end, rules);
                totals.reaction_points.push((outlet.flow, outlet.reaction.meter()));
                if adapter.boundaries.is_some() {
                    totals.limiters.push((outlet.flow, std::mem::take(&mut outlet.series).into_rows()));
                }
            }
        }
        totals.reaction_points.sort_by_key(|row| row.0);
        totals.limiters.sort_by_key(|row| row.0);
        totals
    }
}
