//! The totals of a run, its intervals, and the law of conservation.

use weir_core::ethernet::reaction::Meter;
use weir_core::queue::Counters;
use weir_core::units::Time;

use super::books::{Of, Series};
use super::cell::Cell;
use super::lanes::NONE;
use super::{Kernel, Recorded};
use crate::boundaries::{Held, Mark};
use crate::plan::Plan;
use crate::sim::{Counting, Counts, SimError};
use crate::totals::ControlInterval;
use crate::totals::{
    BurstTotals, ControlFrames, ControlKind, ControlTotals, DropCause, DropTotals, FlowTotals, LimiterInterval,
    MemoryTotals, PortTotals, Totals,
};

impl Kernel {
    /// Ends the intervals of recorded ports that end with slot `now`: of hosts when they have sent, of switches when they
    /// have served.
    #[inline]
    pub(super) fn record(&mut self, now: u32, of_hosts: bool) {
        if now + 1 == self.next_mark {
            self.mark_all(of_hosts);
        }
    }

    #[cold]
    fn mark_all(&mut self, of_hosts: bool) {
        let at = self.next_mark;
        for place in 0..self.recorded.len() {
            let Recorded { link, every, .. } = self.recorded[place];
            let is_host = link as usize >= self.lanes.count;
            if is_host == of_hosts && (at == self.end || at.is_multiple_of(every)) {
                self.mark(place);
            }
        }
        if of_hosts {
            self.next_mark = self.mark_after(at);
        }
    }

    /// The slot whose beginning ends the first interval of a recorded port after the beginning of slot `at`.
    pub(super) fn mark_after(&self, at: u32) -> u32 {
        let ends = self.recorded.iter().map(|recorded| (at / recorded.every + 1).saturating_mul(recorded.every));
        ends.min().map_or(NONE, |end| end.min(self.end))
    }

    #[cold]
    fn mark(&mut self, place: usize) {
        let (size, slot, at) = (self.size.count(), self.slot.ps(), self.next_mark);
        let recorded = &mut self.recorded[place];
        let link = recorded.link as usize;
        let (served, level, peak, level_slots, drops) = if let Some(host) = link.checked_sub(self.lanes.count) {
            let host = host as u32;
            self.adapters.catch_up(at);
            let (sent, backlog) = self.adapters.totals(host, at);
            self.adapters.restart_peak(host, at);
            (sent, backlog.amount() as u32, backlog.most() as u32, backlog.integral(), 0)
        } else {
            let (output, peak) = (&self.queues.outputs[link], self.queues.peak(link));
            let (served, level, level_slots) = (output.served(), output.len(), output.len_slots(at));
            self.queues.restart_peak(link);
            (served, level, peak, level_slots, self.lane_drops[link].0)
        };
        recorded.peak = recorded.peak.max(peak);
        self.probes.log.push(Mark {
            probe: place as u32,
            number: recorded.number,
            bytes: u64::from(served) * size,
            frames: u64::from(served),
            drops: drops.into(),
            queue_bytes: u64::from(level) * size,
            queue_max_bytes: u64::from(peak.max(level)) * size,
            queue_byte_ps: u128::from(level_slots) * u128::from(size) * u128::from(slot),
        });
        let (pauses, is_paused) = self.holds.pauses_until(recorded.link, at);
        if pauses.count > 0 {
            let paused_ps = pauses.total.ps();
            self.probes.held.push(Held { probe: place as u32, number: recorded.number, paused_ps, is_paused });
        }
        recorded.number += 1;
    }

    /// Ends the intervals of deliveries that hold nothing that arrives later than slot `now` lets leave.
    #[inline]
    pub(super) fn end_intervals_of_deliveries(&mut self, now: u32) {
        // Where any host has a buffer all deliveries count when they happen, otherwise when the cell leaves for its host.
        let next = now + 1 + if self.outlets.has_buffers() { 0 } else { self.lags.to_host };
        if u64::from(next) >= self.next_series {
            self.end_series(next);
        }
    }

    #[cold]
    fn end_series(&mut self, next: u32) {
        let at = self.time(next);
        for series in &mut self.series {
            while series.boundaries.at(series.number) <= at && !series.is_over() {
                series.end_interval(&self.books, self.size.count(), self.slot);
            }
        }
        self.next_series = self.first_series();
    }

    /// Ends the intervals of limiters that end with the beginning of slot `at` or before.
    #[cold]
    pub(super) fn mark_limiters(&mut self, at: u32) {
        let (now, size) = (self.time(at), self.size.count());
        self.adapters.catch_up(at);
        for (host, series) in &mut self.limiting {
            self.adapters.mark_limiters(*host, now, size, series);
        }
        self.next_limiting = self.first_limiting();
    }

    /// The first slot at whose beginning an interval of limiters has ended.
    pub(super) fn first_limiting(&self) -> u64 {
        let end = self.limiting.iter().map(|(_, series)| series.boundary()).min().unwrap_or(Time::NEVER);
        if end == Time::NEVER { u64::MAX } else { end.ps().div_ceil(self.slot.ps()) }
    }

    /// The first slot at whose beginning an interval of deliveries has ended.
    pub(super) fn first_series(&self) -> u64 {
        let ends = self.series.iter().filter(|series| !series.is_over());
        let end = ends.map(|series| series.boundaries.at(series.number)).min().unwrap_or(Time::NEVER);
        end.ps().div_ceil(self.slot.ps())
    }
}

impl Counting for Kernel {
    /// What waits in hosts is not counted as sent: as in the other engine, no port has asked for it.
    fn counts(&self) -> Counts {
        let delivered = self.books.all_delivered();
        let dropped = self.drops.values().sum();
        let queues: u64 = self.queues.outputs.iter().map(|output| u64::from(output.len())).sum();
        let flying: usize = self.flights.iter().map(Vec::len).sum();
        let alive = queues + (flying + self.outlets.waiting().count()) as u64;
        Counts {
            now: self.now(),
            sent: delivered + dropped + alive,
            delivered,
            delivered_bytes: delivered * self.size.count(),
            dropped,
            alive,
            deadlocked: 0,
        }
    }

    fn now(&self) -> Time {
        self.time(self.now)
    }

    fn end(&self) -> Time {
        self.time(self.end)
    }

    fn added(&self) -> usize {
        self.books.flows.len() + self.lanes.count + self.flights.len()
    }
}

/// Counts every cell where it is, and reports.
pub(super) fn close(mut kernel: Kernel, plan: &Plan, seed: u64) -> Result<Totals, SimError> {
    kernel.holds.finish(kernel.end);
    kernel.adapters.catch_up(kernel.end);
    let size = kernel.size.count();
    for series in &mut kernel.series {
        while !series.is_over() {
            series.end_interval(&kernel.books, size, kernel.slot);
        }
    }
    let mut flows = balance(&kernel, plan, seed)?;
    if plan.counted_flows().is_empty() {
        (flows, kernel.drops) = Default::default();
    }
    let slot = kernel.slot;
    let ports = (0..plan.topology.ports.len()).map(|port| port_totals(&kernel, port)).collect();
    let drops = kernel
        .drops
        .iter()
        .map(|(&(port, flow), &frames)| DropTotals { port, flow, cause: DropCause::QueueFull, frames })
        .collect();
    let control = ControlTotals {
        frames: control_frames(&kernel, plan),
        reaction_points: reaction_points(&mut kernel, plan),
        ..ControlTotals::default()
    };
    let bursts = (0..)
        .take(if plan.counts_pairs() { flows.len() } else { 0 })
        .map(|flow| (flow, kernel.books.bursts(flow as usize)))
        .filter(|(_, bursts)| bursts.count > 0)
        .map(|(flow, bursts)| BurstTotals {
            flow,
            bursts: bursts.count.into(),
            delay_sum_ps: u128::from(bursts.sum) * u128::from(slot.ps()),
            delay_min: slot * u64::from(bursts.least),
            delay_max: slot * u64::from(bursts.most),
        })
        .collect();
    let memories = (0..)
        .zip(kernel.queues.memories.iter().zip(kernel.queues.level_slots(kernel.end)).zip(&kernel.xoffs))
        .map(|(switch, ((memory, level_slots), &xoffs))| MemoryTotals {
            node: kernel.lanes.hosts as u32 + switch,
            max_bytes: u64::from(memory.space.most()) * size,
            byte_ps: u128::from(level_slots) * u128::from(size) * u128::from(slot.ps()),
            xoffs,
        })
        .collect();
    let mut totals = Totals {
        seed,
        events: kernel.end.into(),
        packet_hops: kernel.books.hops,
        end_ps: plan.spec.run.duration_ps.ps(),
        flows,
        ports,
        drops,
        control,
        bursts,
        memories,
        intervals: std::mem::take(&mut kernel.probes).finish(),
        ..Totals::default()
    };
    kernel.take_rows(Time::NEVER, plan, &mut totals);
    Ok(totals)
}

impl Kernel {
    /// How many rows of series there are.
    pub(super) fn rows(&self) -> usize {
        let series = self.series.iter().map(|series| series.rows.len() + series.bursts.len());
        let feedback = self.points.iter().map(|points| points.probes.rows());
        let limiters = self.limiting.iter().map(|(_, series)| series.rows());
        self.probes.log.len() + self.holds.probes.rows() + series.chain(feedback).chain(limiters).sum::<usize>()
    }

    /// Moves those of other things than ports that do not change any more after `now` to `totals`.
    pub(super) fn take_rows(&mut self, now: Time, plan: &Plan, totals: &mut Totals) {
        totals.control.intervals = control_intervals(self, now);
        totals.control.limiters = limiter_rows(self, plan);
        take_series(&mut self.series, totals);
    }
}

/// Moves the rows of deliveries to `totals`.
fn take_series(all: &mut [Series], totals: &mut Totals) {
    for series in all {
        let rows = std::mem::take(&mut series.rows);
        match series.of {
            Of::Group(group) => totals.deliveries.push((group, rows)),
            Of::Flow(flow) => {
                totals.flow_deliveries.push((flow, rows));
                totals.burst_intervals.push((flow, std::mem::take(&mut series.bursts)));
            }
        }
    }
}

/// Reports every cell that is somewhere, and how many of its kind follow it there.
fn everywhere(kernel: &Kernel, mut report: impl FnMut(Cell, u32)) {
    kernel.adapters.waiting(&mut report);
    let flying = kernel.flights.iter().flatten().map(|flight| flight.cell);
    let stranded = kernel.stranded.iter().copied();
    let others = kernel.queues.all_waiting().chain(flying).chain(stranded).chain(kernel.outlets.waiting());
    others.for_each(|cell| report(cell, 1));
}

/// Checks that each flow adds up.
fn balance(kernel: &Kernel, plan: &Plan, seed: u64) -> Result<Vec<FlowTotals>, SimError> {
    let mut live = vec![0_u64; kernel.books.flows.len()];
    everywhere(kernel, |cell, count| live[kernel.books.flow(cell)] += u64::from(count));
    let mut dropped = vec![0; live.len()];
    for (&(_, flow), frames) in &kernel.drops {
        dropped[flow as usize] += frames;
    }
    let (size, slot) = (kernel.size.count(), kernel.slot);
    let mut flows = Vec::with_capacity(live.len());
    let counts = kernel.adapters.sources.sent().iter().zip(&kernel.books.flows);
    for (id, (((&sent, flow), live), dropped)) in counts.zip(live).zip(dropped).enumerate() {
        let (sent, delivered) = (sent.into(), flow.count.into());
        if sent != delivered + dropped + live {
            let flow = plan.flow_names().swap_remove(id);
            return Err(SimError::Conservation { seed, flow, sent, delivered, dropped, live });
        }
        let span = |slots: u32| (delivered > 0).then(|| slot * u64::from(slots));
        flows.push(FlowTotals {
            sent_frames: sent,
            sent_bytes: sent * size,
            delivered_frames: delivered,
            delivered_bytes: delivered * size,
            dropped_frames: dropped,
            live_frames: live,
            delay_sum_ps: u128::from(flow.sum) * u128::from(slot.ps()),
            delay_min: span(flow.least),
            delay_max: span(flow.most),
        });
    }
    Ok(flows)
}

fn port_totals(kernel: &Kernel, port: usize) -> PortTotals {
    let (size, slot) = (kernel.size.count(), kernel.slot);
    let link = kernel.lanes.link(port as u32);
    let mut lost = (0, 0, 0);
    let (served, peak, level_slots) = if let Some(host) = link.checked_sub(kernel.lanes.count as u32) {
        let (sent, backlog) = kernel.adapters.totals(host, kernel.end);
        (sent, backlog.most() as u32, backlog.integral())
    } else {
        let output = &kernel.queues.outputs[link as usize];
        lost = kernel.lane_drops[link as usize];
        (output.served(), kernel.queues.peak(link as usize), output.len_slots(kernel.end))
    };
    let earlier = kernel.recorded.iter().filter(|recorded| recorded.link == link).map(|recorded| recorded.peak);
    let peak = earlier.fold(peak, u32::max);
    let frames = u64::from(served);
    let (drops, first, last) = lost;
    let at = |number: u32| Time::ZERO + slot * u64::from(number);
    PortTotals {
        counters: Counters {
            frames,
            bytes: frames * size,
            busy_ps: (slot * frames).ps(),
            drops: drops.into(),
            dropped_bytes: u64::from(drops) * size,
            queue_max_bytes: u64::from(peak) * size,
            queue_byte_ps: u128::from(level_slots) * u128::from(size) * u128::from(slot.ps()),
            queue_wait_ps: u128::from(level_slots) * u128::from(slot.ps()),
        },
        lost: 0,
        first_drop: (drops > 0).then(|| at(first)),
        last_drop: (drops > 0).then(|| at(last)),
        pauses: kernel.holds.pauses(link),
    }
}

/// A control frame of the slotted engine: the least there is.
const CONTROL_BYTES: u64 = 64;

/// Feedback of each queue, and PAUSE of each switch to its neighbours.
fn control_frames(kernel: &Kernel, plan: &Plan) -> Vec<ControlFrames> {
    let row = |port, queue_port, kind, frames: u64, size| ControlFrames {
        port,
        queue_port,
        kind,
        frames,
        bytes: frames * size,
    };
    let notification =
        plan.spec.control.bcn.as_ref().map_or(0, |bcn| bcn.congestion_point.notification.frame_bytes.count());
    let feedback = kernel.points.iter().flat_map(|points| points.sent());
    let mut rows: Vec<ControlFrames> =
        feedback.map(|(port, kind, frames)| row(port, port, kind, frames, notification)).collect();
    for port in 0..plan.topology.ports.len() as u32 {
        // The PAUSE to a transmitter is sent by the other end of its link.
        let (xoff, xon) = kernel.holds.frames(kernel.lanes.link(port));
        rows.push(row(port ^ 1, port ^ 1, ControlKind::Xoff, xoff.into(), CONTROL_BYTES));
        rows.push(row(port ^ 1, port ^ 1, ControlKind::Xon, xon.into(), CONTROL_BYTES));
    }
    rows.retain(|row| row.frames > 0);
    rows.sort_unstable();
    rows
}

/// The control frames of recorded ports by interval, of those that ended before `now`.
fn control_intervals(kernel: &mut Kernel, now: Time) -> Vec<ControlInterval> {
    let mut rows = kernel.holds.probes.take_rows(now);
    rows.extend(kernel.points.iter_mut().flat_map(|points| points.probes.take_rows(now)));
    rows.sort_unstable();
    rows
}

/// The series of the limiters of a pair of hosts are reported with the first flow between them.
fn limiter_rows(kernel: &mut Kernel, plan: &Plan) -> Vec<(u32, Vec<LimiterInterval>)> {
    if kernel.limiting.is_empty() {
        return Vec::new();
    }
    let first = plan.first_flows();
    let mut rows = Vec::new();
    for (host, series) in &mut kernel.limiting {
        for (to, intervals) in (0..).zip(series.take_rows()) {
            if let Some(&flow) = first.get(&(*host, to)) {
                rows.push((flow, intervals));
            }
        }
    }
    rows.sort_by_key(|row| row.0);
    rows
}

/// The limiter of a pair of hosts is reported with the first flow between them.
fn reaction_points(kernel: &mut Kernel, plan: &Plan) -> Vec<(u32, Meter)> {
    let end = kernel.end;
    if !plan.counts_pairs() {
        return Vec::new();
    }
    let first = plan.first_flows();
    let mut rows: Vec<(u32, Meter)> =
        kernel.adapters.meters(end).map(|(host, to, meter)| (first[&(host, to)], meter)).collect();
    rows.sort_by_key(|row| row.0);
    rows
}
