//! One run: the loop over events, and the law that no frame gets lost unseen.

use std::ops::ControlFlow;

use weir_core::host::Load;
use weir_core::queue::Counters;
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Span, Time};

use crate::agent::{Agent, PushedSource};
use crate::endpoint::Endpoint;
use crate::fabric::Fabric;
use crate::frames::Kind;
use crate::line::{Line, Role};
use crate::messages::Messages;
use crate::plan::Plan;
use crate::totals::{ClassTotals, ConnectionTotals, DropCause, DropTotals, FlowTotals, PortTotals, Totals};

/// Why a run gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The caller ended it.
    #[error("interrupted")]
    Interrupted,
    /// Frames appeared or disappeared: a fault of the simulator.
    #[error(
        "seed {seed}: flow {flow} sent {sent} frames, but {delivered} were delivered, {dropped} dropped and {live} \
         are under way"
    )]
    Conservation {
        /// Seed of the run.
        seed: u64,
        /// Name of the first flow that does not add up.
        flow: String,
        /// Frames sent.
        sent: u64,
        /// Frames delivered.
        delivered: u64,
        /// Frames dropped.
        dropped: u64,
        /// Frames found in queues, on links and in sources at the end.
        live: u64,
    },
    /// Bytes of a stream appeared or disappeared: a fault of the simulator.
    #[error("seed {seed}: connection {flow} sent {sent} B, delivered {delivered} B and acknowledged {acked} B")]
    Stream {
        /// Seed of the run.
        seed: u64,
        /// Name of the flow of the connection.
        flow: String,
        /// Bytes sent, those sent again included.
        sent: u64,
        /// Bytes delivered in order.
        delivered: u64,
        /// Bytes that the sender knows to be delivered.
        acked: u64,
    },
    /// Frames are alive that stand nowhere: a fault of the simulator.
    #[error("seed {seed}: {alive} frames are alive, but {found} were found in queues and on links")]
    Leak {
        /// Seed of the run.
        seed: u64,
        /// Frames in the pool.
        alive: usize,
        /// Frames in queues and on links.
        found: usize,
    },
    /// Control frames appeared or disappeared: a fault of the simulator.
    #[error(
        "seed {seed}: {alive} control frames have not come to their end, but {dropped} were dropped and {found} found"
    )]
    ControlConservation {
        /// Seed of the run.
        seed: u64,
        /// Control frames that set out, without those that came to their end.
        alive: u64,
        /// Control frames dropped.
        dropped: u64,
        /// Control frames in queues and on links.
        found: u64,
    },
    /// Queues without a limit grew beyond all bounds.
    #[error("seed {seed}: after {now} more than {frames} frames are under way: a queue without a limit is overloaded")]
    TooManyFrames {
        /// Seed of the run.
        seed: u64,
        /// Simulated time.
        now: Time,
        /// Frames alive.
        frames: usize,
    },
}

/// A network with agents at its ends.
#[derive(Debug)]
pub struct Sim<'p, A> {
    fabric: Fabric<'p>,
    agents: Vec<A>,
    seed: u64,
    /// Patience that was granted so far.
    granted: i64,
}

/// What a run has counted so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Simulated time.
    pub now: Time,
    /// Frames generated that a port has asked for.
    pub sent: u64,
    /// Frames that arrived.
    pub delivered: u64,
    /// Their sizes.
    pub delivered_bytes: u64,
    /// Frames dropped in queues.
    pub dropped: u64,
    /// Frames in queues and on links, control frames included.
    pub alive: u64,
}

/// An engine at work, as far as it is shown.
pub(crate) trait Counting: std::fmt::Debug {
    /// What has been counted.
    fn counts(&self) -> Counts;
    /// Simulated time.
    fn now(&self) -> Time;
    /// The end of the run.
    fn end(&self) -> Time;
    /// Flows and places that are added up for the counts.
    fn added(&self) -> usize;
}

/// A run, seen while it goes on.
#[derive(Debug)]
pub struct Seen<'s>(pub(crate) &'s dyn Counting);

/// Flows and places that are added up in a run for [`Counts`], about: some milliseconds.
const ADDED: usize = 20_000_000;

impl Seen<'_> {
    /// Simulated time.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// What has been counted. Takes as long as there are flows.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// The simulated time after which it is worth counting again: a four hundredth of the run, or more where there are many
    /// flows.
    pub fn pause(&self) -> Span {
        let times = ADDED / self.0.added().max(1);
        Span::from_ps(self.0.end().ps() / times.clamp(20, 400) as u64)
    }
}

impl Counting for Fabric<'_> {
    fn counts(&self) -> Counts {
        let Fabric { now, flows, drops, frames, .. } = self;
        Counts {
            now: *now,
            sent: flows.iter().map(|flow| flow.sent_frames).sum(),
            delivered: flows.iter().map(|flow| flow.delivered_frames).sum(),
            delivered_bytes: flows.iter().map(|flow| flow.delivered_bytes).sum(),
            dropped: drops.iter().sum(),
            alive: frames.alive as u64,
        }
    }

    fn now(&self) -> Time {
        self.now
    }

    fn end(&self) -> Time {
        self.end
    }

    fn added(&self) -> usize {
        self.flows.len() + self.drops.len()
    }
}

/// Events between two questions whether to go on: about 3 ms.
pub(crate) const PATIENCE: i64 = 1 << 16;

impl<'p> Sim<'p, Endpoint> {
    /// The scenario of `plan` with `seed`, with all that it asks for.
    pub fn standard(plan: &'p Plan, seed: u64) -> Sim<'p, Endpoint> {
        let connections = plan.ends(Seed::new(seed)).into_iter();
        let connections = connections
            .flat_map(|(sender, receiver)| [Endpoint::Sender(sender.into()), Endpoint::Receiver(receiver.into())]);
        let probers = plan.probing_ends(Seed::new(seed)).into_iter();
        let probers = probers
            .flat_map(|(sender, receiver)| [Endpoint::Prober(sender.into()), Endpoint::Estimator(receiver.into())]);
        let messages = Messages::new(plan, Seed::new(seed)).map(|messages| Endpoint::Messages(messages.into()));
        let ends = connections.chain(probers).chain(messages);
        Sim::new(plan, seed, ends)
    }
}

impl<'p, A: Agent + From<PushedSource>> Sim<'p, A> {
    /// The sources of `plan` with `seed`, and further agents.
    pub fn new(plan: &'p Plan, seed: u64, others: impl IntoIterator<Item = A>) -> Sim<'p, A> {
        let pushed = plan.sources.iter().filter(|source| source.pulled_by.is_none());
        let source = |source| PushedSource::new(plan.emissions(source, Seed::new(seed)), source.first_flow);
        let mut agents: Vec<A> = pushed.map(|pushed| source(pushed).into()).collect();
        agents.extend(others);
        let mut fabric = Fabric::new(plan, Seed::new(seed), agents.len());
        for (place, agent) in (0..).zip(&mut agents) {
            for flow in agent.receives() {
                fabric.set_receiver(flow, place);
            }
            fabric.set_timer(place, agent.start());
        }
        Sim { fabric, agents, seed, granted: 0 }
    }

    /// Runs to the end. Every 65 536 events `ask` is told the time and says whether to go on.
    ///
    /// # Errors
    /// `ask` said no, a law was broken, or too many frames are under way.
    pub fn run(self, mut ask: impl FnMut(Time) -> ControlFlow<()>) -> Result<Totals, SimError> {
        self.run_seen(|seen| ask(seen.now()))
    }

    /// The same, and `ask` is shown what was counted, too.
    ///
    /// # Errors
    /// As of [`Sim::run`].
    pub fn run_seen(mut self, mut ask: impl FnMut(Seen<'_>) -> ControlFlow<()>) -> Result<Totals, SimError> {
        while let Some((at, entity)) = self.fabric.next_event() {
            if at >= self.fabric.end {
                break;
            }
            if let Some(agent) = self.fabric.on_event(at, entity) {
                let called = &mut self.agents[agent as usize];
                let next = match self.fabric.received.take() {
                    Some(frame) => called.on_frame(&mut self.fabric, frame),
                    None => called.on_timer(&mut self.fabric),
                };
                self.fabric.set_timer(agent, next);
            }
            self.fabric.patience -= 1;
            if self.fabric.patience < 0 {
                self.look_up(&mut ask)?;
            }
        }
        let events = self.granted - self.fabric.patience - self.fabric.draws;
        self.fabric.now = self.fabric.end;
        let backlog = self.draw_backlog(&mut ask)?;
        self.close(events as u64, backlog)
    }

    #[cold]
    fn look_up(&mut self, ask: &mut impl FnMut(Seen<'_>) -> ControlFlow<()>) -> Result<(), SimError> {
        self.granted += PATIENCE - self.fabric.patience;
        self.fabric.patience = PATIENCE;
        if ask(Seen(&self.fabric)).is_break() {
            return Err(SimError::Interrupted);
        }
        if self.fabric.frames.is_full() {
            let (now, frames) = (self.fabric.now, self.fabric.frames.alive);
            return Err(SimError::TooManyFrames { seed: self.seed, now, frames });
        }
        Ok(())
    }

    /// Draws what pulled sources generated before the end and their ports did not ask for: frames of each flow that
    /// stand nowhere but there.
    fn draw_backlog(&mut self, ask: &mut impl FnMut(Seen<'_>) -> ControlFlow<()>) -> Result<Vec<u64>, SimError> {
        let mut backlog = vec![0; self.fabric.flows.len()];
        for port in 0..self.fabric.lines.len() {
            while self.fabric.links[port].pulls() && self.fabric.finish(port as u32).is_break() {
                self.look_up(ask)?;
            }
            while self.fabric.links[port].role == Role::Unkept && self.draw_unkept(port, &mut backlog).is_break() {
                self.look_up(ask)?;
            }
        }
        Ok(backlog)
    }

    /// Draws the backlog of a port that keeps no queue. Breaks off when patience ends, to be called again.
    fn draw_unkept(&mut self, port: usize, backlog: &mut [u64]) -> ControlFlow<()> {
        let fabric = &mut self.fabric;
        let line = &mut fabric.lines[port];
        let feed = &mut fabric.feeds[fabric.feed_of[port] as usize];
        while feed.peek() < fabric.end {
            let generated = feed.peek();
            let (flow, size) = feed.take();
            backlog[flow as usize] += 1;
            fabric.flows[flow as usize].send(size);
            let start = line.port.free_at().max(feed.busy_until).max(generated);
            feed.busy_until = start + line.port.transmission(size);
            feed.longest_wait = feed.longest_wait.max(start - generated);
            line.port.count_wait(fabric.end - generated, size);
            if let Some(reckoning) = feed.reckoning() {
                reckoning.on_frame(generated, start, &mut fabric.port_probes.log);
            }
            fabric.patience -= 1;
            if fabric.patience < 0 {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Counts every frame where it is, and reports.
    fn close(mut self, events: u64, mut live: Vec<u64>) -> Result<Totals, SimError> {
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
        let (mut deliveries, mut flow_deliveries, mut delays) = (Vec::new(), Vec::new(), Vec::new());
        let mut burst_intervals = Vec::new();
        if let Some(watch) = &mut self.fabric.watch {
            for (id, probe) in (0..).zip(&mut watch.flows) {
                if let Some(probe) = probe {
                    burst_intervals.push((id, std::mem::take(&mut probe.bursts)));
                }
            }
            for (probes, written) in [(&mut watch.traffic, &mut deliveries), (&mut watch.flows, &mut flow_deliveries)] {
                for (id, probe) in (0..).zip(probes) {
                    if let Some(probe) = probe {
                        probe.advance(self.fabric.end);
                        written.push((id, std::mem::take(&mut probe.rows)));
                    }
                }
            }
            for (flow, histogram) in (0..).zip(&watch.delays) {
                delays.extend(histogram.bins().map(|(low, high, frames)| (flow, low, high, frames)));
            }
        }
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
            deliveries,
            flow_deliveries,
            burst_intervals,
            delays,
            control: self.fabric.control_totals(),
            bursts: self.fabric.burst_totals(),
            memories: self.fabric.memory_totals(),
            connections: Vec::new(),
            messages: Vec::new(),
            message_totals: Vec::new(),
            rounds: Vec::new(),
            tcp: Vec::new(),
            captures: self.fabric.wires.as_mut().map_or_else(Vec::new, |wires| wires.captures(self.fabric.plan)),
            probing: Vec::new(),
            estimation: Vec::new(),
        };
        self.agents.iter_mut().for_each(|agent| agent.report(self.fabric.end, &mut totals));
        self.balance_streams(&totals.connections)?;
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
            let lost = |leg: usize| self.fabric.wires.as_ref().map_or(0, |wires| wires.lost(leg));
            for pair in plan.pairs_of(id) {
                for (port, leg) in plan.legs_of(pair).chain(self.fabric.legs_of(id)) {
                    let (limited, early) = (self.fabric.limiter_drops(leg), self.fabric.early_drops(leg));
                    let (overrun, lost) = (self.fabric.overrun_drops(leg), lost(leg));
                    let (down, buffer) = (self.fabric.down_drops(leg), self.fabric.buffer_drops(leg));
                    let storm = self.fabric.storm_drops(leg);
                    let elsewhere = limited + early + overrun + down + buffer + storm;
                    let causes = [
                        (DropCause::QueueFull, self.fabric.drops[leg] - elsewhere),
                        (DropCause::LimiterFull, limited),
                        (DropCause::QueueEarly, early),
                        (DropCause::LinkLoss, lost),
                        (DropCause::InputOverrun, overrun),
                        (DropCause::LinkDown, down),
                        (DropCause::BufferFull, buffer),
                        (DropCause::Watchdog, storm),
                    ];
                    for (cause, frames) in causes.into_iter().filter(|row| row.1 > 0) {
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
                drop_times: line.port.drop_times(),
                pauses: line.port.pauses_until(end),
            }
        };
        (0..).zip(&mut fabric.lines).map(total).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::NO_FRAME;
    use crate::workloads;

    fn go_on(_: Time) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A small fat tree that has run for half of its time.
    fn halfway(plan: &Plan) -> Sim<'_, PushedSource> {
        let mut sim = Sim::new(plan, 9, []);
        while let Some((at, entity)) = sim.fabric.next_event() {
            assert_eq!(sim.fabric.on_event(at, entity), None, "a pulled source has no event");
            if at.ps() > sim.fabric.end.ps() / 2 {
                break;
            }
        }
        sim
    }

    fn plan() -> Plan {
        Plan::new(workloads::fat_tree(4)).expect("a legal spec")
    }

    #[test]
    fn a_run_that_loses_a_frame_fails() {
        let plan = plan();
        let mut sim = halfway(&plan);
        // The frame behind the first one on a link vanishes, and its place is freed.
        let link = sim
            .fabric
            .links
            .iter()
            .position(|link| link.head != NO_FRAME && sim.fabric.frames[link.head].next != NO_FRAME);
        let first = sim.fabric.links[link.expect("two frames on a link")].head;
        let lost = sim.fabric.frames[first].next;
        let flow = sim.fabric.frames[lost].flow;
        sim.fabric.frames[first].next = sim.fabric.frames[lost].next;
        sim.fabric.frames.free(lost);
        let Err(SimError::Conservation { seed: 9, flow: named, sent, delivered, dropped, live }) = sim.run(go_on)
        else {
            panic!("the loss was not seen")
        };
        assert_eq!(named, plan.flow_names()[flow as usize]);
        assert_eq!(sent, delivered + dropped + live + 1);
    }

    #[test]
    fn a_run_that_makes_up_a_delivery_fails() {
        let plan = plan();
        let mut sim = halfway(&plan);
        sim.fabric.flows[3].delivered_frames += 1;
        assert!(matches!(sim.run(go_on), Err(SimError::Conservation { .. })));
    }

    #[test]
    fn a_frame_that_is_nowhere_is_a_leak() {
        let plan = plan();
        let mut sim = halfway(&plan);
        let stray = sim.fabric.frames[sim.fabric.links[0].head];
        sim.fabric.frames.put(stray);
        assert!(matches!(sim.run(go_on), Err(SimError::Leak { alive, found, .. }) if alive == found + 1));
    }

    #[test]
    fn the_run_ends_when_more_frames_are_under_way_than_it_may_have() {
        let plan = plan();
        let mut sim = Sim::<PushedSource>::new(&plan, 9, []);
        sim.fabric.frames.limit = 10;
        let Err(SimError::TooManyFrames { seed: 9, now, frames }) = sim.run(go_on) else { panic!("no limit was seen") };
        assert!(frames > 10 && now.ps() > 0);
    }

    #[test]
    fn array_and_wheel_give_the_same_run() {
        let plan = plan();
        let run = |few| {
            let mut sim = Sim::<PushedSource>::new(&plan, 9, []);
            sim.fabric.agenda.few = few;
            sim.run(go_on).expect("a lawful run")
        };
        assert_eq!(run(0), run(usize::MAX));
    }
}
