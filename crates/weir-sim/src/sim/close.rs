//! The end of a run: every frame is counted where it is, and all that was counted is reported.

use weir_core::host::Load;
use weir_core::queue::Counters;
use weir_core::units::Bytes;

use super::{Sim, SimError};
use crate::agent::{Agent, PushedSource};
use crate::frames::Kind;
use crate::line::{Line, Role};
use crate::totals::{ClassTotals, ConnectionTotals, DropTotals, FlowTotals, PortTotals, Totals};

impl<A: Agent + From<PushedSource>> Sim<'_, A> {
    /// Counts every frame where it is, and reports.
    pub(super) fn close(mut self, events: u64, mut live: Vec<u64>) -> Result<Totals, SimError> {
        self.fabric.finish_control();
        let found = self.walk(&mut live)?;
        let alive = self.fabric.frames.alive;
        if found != alive {
            return Err(SimError::Leak { seed: self.seed, alive, found });
        }
        let (drops, flows) = self.balance(&live)?;
        self.fabric.finish_intervals();
        let ports = self.port_totals();
        let classes = self.class_totals();
        let intervals = std::mem::take(&mut self.fabric.port_probes).finish();
        let mut totals = Totals {
            seed: self.seed,
            events,
            packet_hops: self.fabric.hops,
            end_ps: self.fabric.end.ps(),
            flows,
            ports,
            classes,
            drops,
            intervals,
            control: self.fabric.control_totals(),
            bursts: self.fabric.burst_totals(),
            memories: self.fabric.memory_totals(),
            captures: self.fabric.wires.as_mut().map_or_else(Vec::new, |wires| wires.captures(self.fabric.plan)),
            ..Totals::default()
        };
        if let Some(watch) = &mut self.fabric.watch {
            watch.advance(self.fabric.end);
            watch.take(&mut totals);
            for (flow, histogram) in (0..).zip(&watch.delays) {
                totals.delays.extend(histogram.bins().map(|(low, high, frames)| (flow, low, high, frames)));
            }
        }
        if let Some(control) = &mut self.fabric.control {
            control.take_rows(self.fabric.end, &mut totals);
        }
        self.agents.iter_mut().for_each(|agent| agent.report(self.fabric.end, &mut totals));
        self.balance_streams(&totals.connections)?;
        self.spill.finish(&mut totals)?;
        Ok(totals)
    }

    /// Adds the frames in queues and on links to `live`, by flow; returns how many they are, control frames included.
    fn walk(&self, live: &mut [u64]) -> Result<usize, SimError> {
        let frames = &self.fabric.frames;
        let (mut found, mut control) = (0, 0);
        for (port, (line, link)) in self.fabric.lines.iter().zip(&self.fabric.links).enumerate() {
            for id in link.in_flight(frames).chain(line.port.waiting()).chain(self.fabric.waiting_at_host(port)) {
                found += 1;
                match frames[id].kind {
                    Kind::Data | Kind::InBurst | Kind::Marked | Kind::Loaded => live[frames[id].flow as usize] += 1,
                    Kind::Notification | Kind::Pause => control += 1,
                }
            }
        }
        let (alive, dropped) = self.fabric.control_frames();
        if alive != dropped + control {
            return Err(SimError::ControlConservation { seed: self.seed, alive, dropped, found: control });
        }
        Ok(found)
    }

    /// Checks that each flow adds up.
    fn balance(&self, live: &[u64]) -> Result<(Vec<DropTotals>, Vec<FlowTotals>), SimError> {
        let plan = self.fabric.plan;
        let (mut drops, mut flows) = (Vec::new(), Vec::with_capacity(plan.flows.len()));
        for (id, (counters, &live)) in (0..).zip(self.fabric.flows.iter().zip(live)) {
            let mut dropped = 0;
            for pair in plan.pairs_of(id) {
                for (port, leg) in plan.legs_of(pair).chain(self.fabric.legs_of(id)) {
                    for (cause, frames) in self.fabric.drops.at(leg) {
                        dropped += frames;
                        drops.push(DropTotals { port, flow: id, cause, frames });
                    }
                }
            }
            let (sent, delivered) = (counters.sent_frames, counters.delivered_frames);
            if sent != delivered + dropped + live {
                let flow = plan.flow_names().swap_remove(id as usize);
                return Err(SimError::Conservation { seed: self.seed, flow, sent, delivered, dropped, live });
            }
            flows.push(FlowTotals {
                sent_frames: sent,
                sent_bytes: counters.sent_bytes,
                delivered_frames: delivered,
                delivered_bytes: counters.delivered_bytes,
                dropped_frames: dropped,
                live_frames: live,
                delay_sum_ps: counters.delay_sum_ps,
                delay_min: (delivered > 0).then_some(counters.delay_min),
                delay_max: (delivered > 0).then_some(counters.delay_max),
            });
        }
        if plan.counted_flows().is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        drops.sort_unstable();
        drops.dedup_by(|row, kept| {
            let is_same = (row.port, row.flow, row.cause) == (kept.port, kept.flow, kept.cause);
            kept.frames += if is_same { row.frames } else { 0 };
            is_same
        });
        Ok((drops, flows))
    }

    /// Checks that no connection has delivered what was not sent, or has acknowledged what was not delivered.
    fn balance_streams(&self, connections: &[ConnectionTotals]) -> Result<(), SimError> {
        for row in connections {
            let (sent, acked) = (row.sender.bytes, row.sender.acked_bytes);
            let delivered = row.receiver.delivered_bytes;
            if acked > delivered || delivered > sent {
                let flow = self.fabric.plan.flow_names().swap_remove(row.flow as usize);
                return Err(SimError::Stream { seed: self.seed, flow, sent, delivered, acked });
            }
        }
        Ok(())
    }

    fn class_totals(&mut self) -> Vec<ClassTotals> {
        let end = self.fabric.end;
        let of_port = |(port, line): (u32, &mut Line)| {
            let classes = line.port.class_counters_at(end).into_iter();
            classes.map(move |(class, counters)| ClassTotals { port, class, counters })
        };
        (0..).zip(&mut self.fabric.lines).flat_map(of_port).collect()
    }

    fn port_totals(&mut self) -> Vec<PortTotals> {
        let fabric = &mut self.fabric;
        let end = fabric.end;
        let waited: Vec<Load> = (0..fabric.lines.len()).map(|port| fabric.waited(port)).collect();
        let total = |(id, line): (u32, &mut Line)| {
            let counters = line.port.counters_at(end);
            let mut peak = counters.queue_max_bytes.max(fabric.port_probes.peak(id));
            if fabric.links[id as usize].role == Role::Unkept {
                let feed = &fabric.feeds[fabric.feed_of[id as usize] as usize];
                let size = feed.fixed_size.unwrap_or(Bytes::ZERO);
                peak = feed.longest_wait.ps().div_ceil(line.port.transmission(size).ps().max(1)) * size.count();
            }
            let waited = waited[id as usize];
            peak = peak.max(waited.peak());
            PortTotals {
                counters: Counters {
                    busy_ps: counters.busy_ps - line.port.ends_at().saturating_since(end).ps(),
                    queue_max_bytes: peak,
                    queue_byte_ps: counters.queue_byte_ps + waited.byte_ps(),
                    queue_wait_ps: counters.queue_wait_ps + waited.wait_ps(),
                    ..counters
                },
                lost: fabric.lost[id as usize],
                first_drop: line.port.drop_times().map(|(first, _)| first),
                last_drop: line.port.drop_times().map(|(_, last)| last),
                pauses: line.port.pauses_until(end),
            }
        };
        (0..).zip(&mut fabric.lines).map(total).collect()
    }
}
