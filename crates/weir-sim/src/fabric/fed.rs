//! Ports that pull their sources: they go on by themselves from one transmission to the next, without an event for a frame that
//! is generated.

use std::ops::ControlFlow;

use weir_core::queue::{Lane, Limit, Offer};
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::frames::{Frame, FrameId};
use crate::line::Role;
use crate::totals::DropCause;

/// What became of a fed port that was let go on by itself.
enum Step {
    /// A transmission began.
    Sent { id: FrameId, end: Time },
    /// In a storm of frames none began for long; the port goes on at `next`.
    Tired { next: Time },
    /// Nothing more happens before the end of the run.
    Done,
}

/// Frames that a fed port may drop or let wait until other entities have their turn.
const DRAWS_PER_STEP: u32 = 1 << 16;

/// Transmissions of a port without a kept queue that are worked out at once: its sources are far away in memory.
const AT_ONCE: usize = 4;

impl Fabric<'_> {
    pub(super) fn add_feeds(&mut self, seed: Seed) {
        let plan = self.plan;
        for (port, mut feed) in plan.feeds(seed, |port| !plan.is_adapted(port)) {
            let link = &mut self.links[port as usize];
            // It goes on by itself: no wake of it is ever entered.
            (link.role, link.armed) = (Role::Fed, true);
            self.feed_of[port as usize] = self.feeds.len() as u32;
            if plan.limits[port as usize] == Limit::UNLIMITED
                && !link.watched
                && let Some(size) = feed.fixed_size
            {
                link.role = Role::Unkept;
                if std::mem::take(&mut link.noted) {
                    let line = &mut self.lines[port as usize];
                    line.boundary = Time::NEVER;
                    let reckoning = self.port_probes.reckon(port, size, line.port.transmission(size));
                    feed.reckon(reckoning);
                }
            }
            self.feeds.push(feed);
            self.pull(port);
        }
    }

    /// Works out the next transmission of a fed port whose last frame has arrived; where nobody looks at its queue, some more.
    pub(super) fn pull(&mut self, port: u32) {
        if self.links[port as usize].role == Role::Unkept {
            for _ in 0..AT_ONCE {
                let Step::Sent { id, end } = self.step_unkept(port) else { return };
                self.launch(port, id, end);
            }
            return;
        }
        match self.step_kept(port) {
            Step::Sent { id, end } => self.launch(port, id, end),
            Step::Tired { next } => self.agenda.push(next, self.ports + port),
            Step::Done => {}
        }
    }

    /// After the last event: lets a fed port go on to the end. Breaks off when patience ends, to be called again.
    pub(crate) fn finish(&mut self, port: u32) -> ControlFlow<()> {
        loop {
            match self.step(port) {
                Step::Sent { id, end } => {
                    let arrives = end + self.lines[port as usize].lag;
                    self.links[port as usize].append(&mut self.frames, id, arrives);
                }
                Step::Tired { .. } => {}
                Step::Done => return ControlFlow::Continue(()),
            }
            self.draw();
            if self.patience < 0 {
                return ControlFlow::Break(());
            }
        }
    }

    /// Counts a draw that is no event.
    #[inline]
    pub(crate) fn draw(&mut self) {
        self.patience -= 1;
        self.draws += 1;
    }

    #[inline(always)]
    fn step(&mut self, port: u32) -> Step {
        if self.links[port as usize].role == Role::Unkept { self.step_unkept(port) } else { self.step_kept(port) }
    }

    /// The frame that is generated next goes as soon as it can; what waits is not drawn yet.
    #[inline(always)]
    fn step_unkept(&mut self, port: u32) -> Step {
        let line = &mut self.lines[port as usize];
        let feed = &mut self.feeds[self.feed_of[port as usize] as usize];
        let generated = feed.peek();
        if generated.max(line.port.free_at()) >= self.end {
            return Step::Done;
        }
        let (flow, size) = feed.take();
        let passed = line.port.pass(generated, size);
        feed.longest_wait = feed.longest_wait.max(passed.wait);
        if let Some(reckoning) = feed.reckoning() {
            reckoning.on_frame(generated, generated + passed.wait, &mut self.port_probes.log);
        }
        Step::Sent { id: self.generate(generated, flow, size), end: passed.end }
    }

    /// Lets a fed port and its sources go on by themselves until a transmission begins.
    fn step_kept(&mut self, port: u32) -> Step {
        for _ in 0..DRAWS_PER_STEP {
            let line = &mut self.lines[port as usize];
            let feed = &mut self.feeds[self.feed_of[port as usize] as usize];
            let (generated, due) = (feed.peek(), line.port.due());
            let now = due.min(generated);
            if now >= self.end {
                return Step::Done;
            }
            if self.links[port as usize].noted && line.boundary <= now {
                line.boundary = self.port_probes.mark(port, now, &mut line.port);
            }
            if due <= generated {
                match line.port.wake(due) {
                    Some(sent) if self.sets_out(port, sent.handle, sent.end) => {
                        return Step::Sent { id: sent.handle, end: sent.end };
                    }
                    _ => continue,
                }
            }
            let (flow, size) = feed.take();
            let id = self.generate(now, flow, size);
            match self.lines[port as usize].port.offer(now, id, size, Lane::Data) {
                Offer::Sent { end } if self.sets_out(port, id, end) => return Step::Sent { id, end },
                Offer::Sent { .. } | Offer::Waits => {}
                Offer::Dropped => self.drop_frame(id, DropCause::QueueFull),
            }
            self.draw();
        }
        let due = self.lines[port as usize].port.due();
        Step::Tired { next: due.min(self.feeds[self.feed_of[port as usize] as usize].peek()) }
    }

    #[inline(always)]
    fn generate(&mut self, at: Time, flow: u32, size: Bytes) -> FrameId {
        self.flows[flow as usize].send(size);
        let leg = self.plan.flows[flow as usize].first_leg;
        self.frames.put(Frame::new(at, flow, leg, size, Lane::Data))
    }
}
