//! What is told of memories and hosts at the end of a run.

use weir_core::ethernet::reaction::Meter;

use super::super::report::Waited;
use crate::fabric::Fabric;
use crate::frames::FrameId;
use crate::totals::{LimiterInterval, MemoryTotals};

impl Fabric<'_> {
    /// After the last event: draws what stations generated before the end.
    pub(in super::super) fn finish_stations(&mut self) {
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
    pub(in super::super) fn waiting_at_host(&self, port: usize) -> impl Iterator<Item = FrameId> + '_ {
        let switching = self.control.as_ref().and_then(|control| control.switching.as_deref());
        let station = switching.and_then(|switching| switching.stations[port].as_deref());
        let buffer = switching.and_then(|switching| switching.buffers[port].as_deref());
        let outgoing = station.into_iter().flat_map(|station| station.waiting(&self.frames));
        outgoing.chain(buffer.into_iter().flat_map(|buffer| buffer.frames.iter().copied()))
    }

    /// What waited at a station.
    pub(in super::super) fn waited_at_host(&self, port: usize) -> Option<Waited> {
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
    pub(in super::super) fn limiter_totals(&mut self) -> Vec<(u32, Meter)> {
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
    pub(in super::super) fn limiter_rows(&mut self) -> Vec<(u32, Vec<LimiterInterval>)> {
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
}
