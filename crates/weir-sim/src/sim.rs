//! One run: the loop over events, and the law that no frame gets lost unseen.

mod close;
mod seen;

pub(crate) use self::seen::Counting;
pub use self::seen::{Counts, Seen};

use std::ops::ControlFlow;

use weir_core::rng::Seed;
use weir_core::units::Time;

use crate::agent::{Agent, PushedSource};
use crate::endpoint::Endpoint;
use crate::fabric::Fabric;
use crate::line::Role;
use crate::messages::Messages;
use crate::plan::Plan;
use crate::spill::{Closed, Spill};
use crate::totals::Totals;

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
    /// Messages start faster than they end, or too many together.
    #[error(
        "seed {seed}: after {now} more than {messages} messages are under way at once: more start than the network \
         carries, or a job starts too many together; lower the load, or let fewer hosts send to each other"
    )]
    TooManyMessages {
        /// Seed of the run.
        seed: u64,
        /// Simulated time.
        now: Time,
        /// Most messages that may be under way.
        messages: usize,
    },
}

impl From<Closed> for SimError {
    fn from(_: Closed) -> SimError {
        SimError::Interrupted
    }
}

/// A network with agents at its ends.
#[derive(Debug)]
pub struct Sim<'p, A> {
    fabric: Fabric<'p>,
    agents: Vec<A>,
    seed: u64,
    /// Patience that was granted so far.
    granted: i64,
    spill: Spill<'p>,
}

impl Counting for Fabric<'_> {
    fn counts(&self) -> Counts {
        let Fabric { now, flows, drops, frames, control, .. } = self;
        let deadlocks = control.iter().flat_map(|control| &control.deadlocks);
        Counts {
            now: *now,
            sent: flows.iter().map(|flow| flow.sent_frames).sum(),
            delivered: flows.iter().map(|flow| flow.delivered_frames).sum(),
            delivered_bytes: flows.iter().map(|flow| flow.delivered_bytes).sum(),
            dropped: drops.behind(0),
            alive: frames.alive as u64,
            deadlocked: deadlocks.filter(|known| known.over.is_none()).count() as u64,
        }
    }

    fn now(&self) -> Time {
        self.now
    }

    fn end(&self) -> Time {
        self.end
    }

    fn added(&self) -> usize {
        self.flows.len() + self.drops.legs()
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
        Sim { fabric, agents, seed, granted: 0, spill: Spill::default() }
    }

    /// The same, whose rows of series leave by `spill` when there are many.
    pub(crate) fn spilling(self, spill: Spill<'p>) -> Self {
        Sim { spill, ..self }
    }

    /// Runs to the end. Every 65 536 events `ask` receives the time and says whether to go on.
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
        if let Some(open) = self.fabric.open.as_ref().filter(|open| open.is_full()) {
            return Err(SimError::TooManyMessages { seed: self.seed, now: self.fabric.now, messages: open.limit });
        }
        self.spill.limit().map_or(Ok(()), |limit| self.give_rows(limit))
    }

    /// Lets the rows of series leave, if they are `limit` or more.
    fn give_rows(&mut self, limit: usize) -> Result<(), SimError> {
        let Sim { fabric, agents, .. } = self;
        let watched = fabric.watch.as_mut().map_or(0, |watch| watch.advance(fabric.now));
        let of_agents: usize = agents.iter_mut().map(Agent::rows).sum();
        let of_control = fabric.control.as_ref().map_or(0, |control| control.rows()) + fabric.control_rows();
        if fabric.port_probes.log.len() + watched + of_agents + of_control < limit {
            return Ok(());
        }
        let mut part = Totals { intervals: fabric.port_probes.take(), ..Totals::default() };
        fabric.take_control_rows(fabric.now, &mut part.control);
        if let Some(watch) = &mut fabric.watch {
            watch.take(&mut part);
        }
        if let Some(control) = &mut fabric.control {
            control.take_rows(fabric.now, &mut part);
        }
        agents.iter_mut().for_each(|agent| agent.take_rows(&mut part));
        Ok(self.spill.give(&part)?)
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
}

#[cfg(test)]
mod tests {
    use weir_core::spec::messages::{Arrivals, Balancing, Messages, Packets};
    use weir_core::spec::{Spec, Traffic};
    use weir_core::tcp::Config;
    use weir_core::units::Bytes;

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
    fn the_run_ends_when_more_messages_are_under_way_than_it_may_have() {
        let hosts: Vec<u32> = (0..20).filter(|&node| plan().topology.is_host(node)).take(2).collect();
        let list = (0..30).map(|at| (Time::from_ps(at), hosts[0], hosts[1], Bytes::new(1000))).collect();
        let messages = Messages {
            config: Some(Config::default()),
            rdma: None,
            packets: Packets { payload_bytes: Bytes::new(1000), header_bytes: Bytes::new(48) },
            handshake: false,
            balancing: Balancing::Flow { weighted: false },
            arrivals: Arrivals::Listed { list },
            rows: 1000,
        };
        let traffic = Traffic { messages: Some(messages), ..Traffic::of_sources("messages", vec![]) };
        let plan = Plan::new(Spec { traffic: vec![traffic], ..workloads::fat_tree(4) }).expect("a legal spec");
        let run = |limit| {
            let mut sim = Sim::standard(&plan, 9);
            sim.fabric.open.as_mut().expect("there are messages").limit = limit;
            sim.run(go_on)
        };
        let Err(SimError::TooManyMessages { seed: 9, now, messages: 29 }) = run(29) else {
            panic!("no limit was seen")
        };
        assert!(now < Time::from_ps(1000), "at once: {now}");
        assert!(run(30).is_ok());
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
