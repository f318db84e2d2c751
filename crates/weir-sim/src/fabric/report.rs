//! What is told of congestion management at the end of a run.

use weir_core::units::Time;

use super::Fabric;
use crate::control::adapter::Adapter;
use crate::control::report::Waited;
use crate::deliveries::{Bursts, FlowCounters, tells_bursts};
use crate::frames::FrameId;
use crate::route::{ARRIVED, Flow};
use crate::totals::{BurstTotals, LimiterInterval, MemoryTotals};
use crate::totals::{ControlFrames, ControlTotals, MarkTotals};
use weir_core::ethernet::reaction::Meter;

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
        adapter.into_iter().flat_map(|adapter| adapter.waiting(&self.frames)).chain(self.waiting_at_host(port))
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
    pub(super) fn marks(&self) -> Vec<MarkTotals> {
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

    /// After the last event: draws what stations generated before the end.
    pub(crate) fn finish_stations(&mut self) {
        let end = self.end;
        for port in 0..self.lines.len() as u32 {
            if self.is_station(port) {
                self.draw_station(port, end);
                if let Some(station) = self.control.as_mut().and_then(|control| control.station(port)) {
                    station.load.settle(end);
                }
            }
        }
    }

    /// The frames that wait at a host: to be sent, and in its buffer.
    pub(crate) fn waiting_at_host(&self, port: usize) -> impl Iterator<Item = FrameId> + '_ {
        let switching = self.control.as_ref().and_then(|control| control.switching.as_deref());
        let station = switching.and_then(|switching| switching.stations[port].as_deref());
        let buffer = switching.and_then(|switching| switching.buffers[port].as_deref());
        let outgoing = station.into_iter().flat_map(|station| station.waiting(&self.frames));
        outgoing.chain(buffer.into_iter().flat_map(|buffer| buffer.frames.iter().copied()))
    }

    /// What waited at a station.
    pub(crate) fn waited_at_host(&self, port: usize) -> Option<Waited> {
        let station = self.control.as_ref()?.switching.as_ref()?.stations[port].as_ref()?;
        let load = &station.load;
        Some(Waited { byte_ps: load.byte_ps, wait_ps: load.wait_ps, most: load.peak() })
    }

    /// The memory of each switch.
    pub(crate) fn memory_totals(&mut self) -> Vec<MemoryTotals> {
        let (end, topology) = (self.end, &self.plan.topology);
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else {
            return Vec::new();
        };
        let memories = (0..).zip(&mut switching.memories).filter(|(node, _)| !topology.is_host(*node));
        memories.map(|(node, memory)| memory.totals(node, end)).collect()
    }

    /// What the limiters of stations did; each is told with the first flow between its hosts.
    pub(crate) fn limiter_totals(&mut self) -> Vec<(u32, Meter)> {
        let (end, plan) = (self.end, self.plan);
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        let first = plan.first_flows();
        for station in switching.stations.iter_mut().flatten() {
            let host = station.outlet.host;
            for (place, meter) in station.meters(end) {
                if let Some(&flow) = first.get(&(host, station.destination(place))) {
                    rows.push((flow, meter));
                }
            }
        }
        rows
    }

    /// The intervals of the recorded limiters of stations.
    pub(crate) fn limiter_rows(&mut self) -> Vec<(u32, Vec<LimiterInterval>)> {
        let (end, plan, frames) = (self.end, self.plan, &self.frames);
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        let first = plan.first_flows();
        for station in switching.stations.iter_mut().flatten() {
            station.write_rows(end, frames);
            let Some(series) = station.series.take() else { continue };
            for (place, intervals) in (0..).zip(series.into_rows()) {
                if let Some(&flow) = first.get(&(station.outlet.host, station.destination(place))) {
                    rows.push((flow, intervals));
                }
            }
        }
        rows
    }

    /// The bursts that arrived whole, by flow: a frame is a burst where no source sends longer ones.
    pub(crate) fn burst_totals(&self) -> Vec<BurstTotals> {
        if !tells_bursts(self.plan) {
            return Vec::new();
        }
        let single = |flow: &FlowCounters| Bursts {
            born: Time::NEVER,
            count: flow.delivered_frames,
            delay_sum_ps: flow.delay_sum_ps,
            delay_min: flow.delay_min,
            delay_max: flow.delay_max,
        };
        let of_flow = |flow: usize| match self.watch.as_ref().map(|watch| &watch.bursts) {
            Some(bursts) if !bursts.is_empty() => bursts[flow],
            _ => single(&self.flows[flow]),
        };
        let rows = (0..self.plan.counted_flows().len()).map(|flow| (flow as u32, of_flow(flow)));
        let total = |(flow, bursts): (u32, Bursts)| BurstTotals {
            flow,
            bursts: bursts.count,
            delay_sum_ps: bursts.delay_sum_ps,
            delay_min: bursts.delay_min,
            delay_max: bursts.delay_max,
        };
        rows.filter(|(_, bursts)| bursts.count > 0).map(total).collect()
    }
}
