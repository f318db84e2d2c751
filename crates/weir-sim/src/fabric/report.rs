//! What is reported of congestion management at the end of a run.

use weir_core::host::Load;
use weir_core::units::Time;

use super::Fabric;
use crate::control::Beyond;
use crate::deliveries::{Bursts, FlowCounters, reports_bursts};
use crate::frames::FrameId;
use crate::line::Role;
use crate::plan::Plan;
use crate::totals::{BurstTotals, MemoryTotals};
use crate::totals::{ControlFrames, ControlTotals, HoldTotals, MarkTotals};

impl Fabric<'_> {
    /// After the last event: draws what was generated before the end, and writes the rows that are left.
    pub(crate) fn finish_control(&mut self) {
        let end = self.end;
        for port in 0..self.ports {
            if self.links[port as usize].role == Role::Host {
                self.catch_up(port, end);
                self.draw_host(port, end, end);
                if let Some(host) = self.control.as_mut().and_then(|control| control.host(port)) {
                    host.load.settle(end);
                    host.write_rows(end, &self.frames);
                }
            }
        }
    }

    /// The frames that wait at the host of a port: to be sent, and in its buffer.
    pub(crate) fn waiting_at_host(&self, port: usize) -> impl Iterator<Item = FrameId> + '_ {
        let control = self.control.as_deref();
        let host = control.and_then(|control| control.extras[port].beyond.host());
        let switching = control.and_then(|control| control.switching.as_deref());
        let buffer = switching.and_then(|switching| switching.buffers[port].as_deref());
        let outgoing = host.into_iter().flat_map(|host| host.waiting(&self.frames));
        outgoing.chain(buffer.into_iter().flat_map(|buffer| buffer.frames.iter().copied()))
    }

    /// What waited at the host of a port, if it has queues of its own.
    pub(crate) fn waited(&self, port: usize) -> Load {
        let host = self.control.as_ref().and_then(|control| control.extras[port].beyond.host());
        host.map_or(Load::default(), |host| host.load)
    }

    /// Control frames that were made and have not reached their end, and how many of them were dropped.
    pub(crate) fn control_frames(&self) -> (u64, u64) {
        let (Some(control), Some(shared)) = (&self.control, &self.plan.control) else { return (0, 0) };
        let dropped = self.drops.behind(shared.first_way_back);
        let dropped = if shared.ways_back.is_empty() { 0 } else { dropped };
        (control.made - control.ended, dropped + self.wires.as_ref().map_or(0, |wires| wires.lost_control))
    }

    /// Where frames of which flow were marked.
    pub(super) fn marks(&self) -> Vec<MarkTotals> {
        let Some(marks) = self.control.as_ref().map(|control| &control.marks).filter(|marks| !marks.is_empty()) else {
            return Vec::new();
        };
        let of_flow = |flow: u32| {
            let legs = self.plan.legs_of(flow).map(|(port, leg)| (port, marks[leg]));
            let added = self.legs_of(flow).map(|(port, leg)| (port, marks[leg]));
            let of_ports = legs.chain(added).filter(|row| row.1 > 0);
            of_ports.map(move |(port, frames)| MarkTotals { port, flow, frames })
        };
        let mut totals: Vec<MarkTotals> = (0..self.plan.flows.len() as u32).flat_map(of_flow).collect();
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
        self.find_deadlocks();
        let deadlocks = self.control.as_mut().map(|control| std::mem::take(&mut control.deadlocks)).unwrap_or_default();
        let mut totals = ControlTotals { marks: self.marks(), deadlocks, ..ControlTotals::default() };
        let (end, plan) = (self.end, self.plan);
        let Some(control) = &mut self.control else { return totals };
        for (&(port, queue_port, kind), &(frames, bytes)) in &control.sent {
            totals.frames.push(ControlFrames { port, queue_port, kind, frames, bytes });
        }
        for (port, extra) in (0..).zip(&control.extras) {
            if let Beyond::Switch(switch) = &extra.beyond
                && let Some(levels) = &switch.levels
            {
                totals.queue_levels.extend(levels.bins().map(|(low, high, time)| (port, low, high, time)));
            }
        }
        let flow_of = flows_of_limiters(plan);
        for host in control.hosts() {
            let name = host.outlet.host;
            let meters = host.meters(end).into_iter();
            totals.reaction_points.extend(meters.filter_map(|(key, meter)| Some((flow_of(name, key)?, meter))));
        }
        if let Some(pools) = &mut control.pools {
            (totals.buffers, totals.buffer_inputs) = pools.totals(end);
        }
        totals.causes = control.spread.totals(end);
        totals.storms = std::mem::take(&mut control.storms);
        for (port, extra) in (0..).zip(&control.extras) {
            let holds = extra.held.iter().flat_map(|held| held.holds.counted(end));
            totals.holds.extend(holds.map(|(class, holds)| HoldTotals { port, class, holds }));
        }
        totals.reaction_points.sort_by_key(|row| row.0);
        self.take_control_rows(Time::NEVER, &mut totals);
        totals
    }

    /// How many rows of limiters and control frames there are.
    pub(crate) fn control_rows(&mut self) -> usize {
        self.control.as_mut().map_or(0, |control| {
            let limiters = control.hosts().filter_map(|host| host.series.as_ref().map(|series| series.rows()));
            limiters.sum::<usize>() + control.probes.rows()
        })
    }

    /// Moves those that do not change any more after `now` to `totals`.
    pub(crate) fn take_control_rows(&mut self, now: Time, totals: &mut ControlTotals) {
        let Some(control) = &mut self.control else { return };
        totals.intervals = control.probes.take_rows(now);
        let flow_of = flows_of_limiters(self.plan);
        for host in control.hosts() {
            let Some(mut series) = host.series.take() else { continue };
            let flow_of_place = |place| flow_of(host.outlet.host, host.key(place));
            let rows = (0..).zip(series.take_rows()).filter_map(|(place, rows)| Some((flow_of_place(place)?, rows)));
            totals.limiters.extend(rows);
            host.series = Some(series);
        }
        totals.limiters.sort_by_key(|row| row.0);
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

    /// The bursts that arrived whole, by flow: a frame is a burst where no source sends longer ones.
    pub(crate) fn burst_totals(&self) -> Vec<BurstTotals> {
        if !reports_bursts(self.plan) {
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

/// The flow with which the limiter of a host and a key is reported: that of a pair of hosts with the first between them.
fn flows_of_limiters(plan: &Plan) -> impl Fn(u32, u32) -> Option<u32> {
    let first = plan.is_switched().then(|| plan.first_flows());
    move |host, key| first.as_ref().map_or(Some(key), |first| first.get(&(host, key)).copied())
}
