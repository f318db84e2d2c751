//! Estimators of bandwidth as agents: the receiver of [`weir_core::estimation`] asks, the sender does what it is asked for.

use std::collections::VecDeque;

use weir_core::estimation::{Ask, Estimation, Packet};
use weir_core::queue::Lane;
use weir_core::rng::Seed;
use weir_core::tcp::{LEAST_FRAME, Timers};
use weir_core::units::{Bytes, Span, Time};

use crate::agent::Agent;
use crate::fabric::Fabric;
use crate::frames::{Body, Received};
use crate::plan::{Plan, PlannedConnection};
use crate::totals::Totals;

/// The sending end.
#[derive(Debug)]
pub struct ProbeSender {
    /// The flow of its trains; what it is asked for comes in the next.
    flow: u32,
    train: Option<Train>,
    timers: Option<Timers>,
    /// Frames that may wait in its adapter.
    adapter: usize,
}

/// A train that is being sent.
#[derive(Clone, Copy, Debug)]
struct Train {
    ask: Ask,
    place: u32,
    /// When the next packet is due, and when the timer for it runs out.
    due: Time,
    leaves: Time,
}

/// The receiving end.
#[derive(Debug)]
pub struct ProbeReceiver {
    machine: Estimation,
    flow: u32,
    start: Time,
    stop: Time,
    /// For how long its adapter gathers frames, if it does.
    coalescing: Option<Span>,
    gathered: VecDeque<Packet>,
    /// When the interrupt comes; [`Time::NEVER`] if nothing waits.
    interrupt: Time,
}

impl Plan {
    /// The two agents of every estimator, in the run with `seed`.
    pub(crate) fn probing_ends(&self, seed: Seed) -> Vec<(ProbeSender, ProbeReceiver)> {
        let ends = |planned: &PlannedConnection| {
            let (probers, spec) = self.prober(planned);
            let hosts = &probers.hosts;
            let sender = ProbeSender {
                flow: planned.flow,
                train: None,
                timers: hosts.timers.as_ref().map(|timing| Timers::new(timing, self.timer_chance(planned, seed))),
                adapter: hosts.adapter_frames.map_or(usize::MAX, |frames| frames as usize),
            };
            let receiver = ProbeReceiver {
                machine: Estimation::new(&probers.config),
                flow: planned.flow,
                start: spec.start_ps,
                stop: spec.stop_ps,
                coalescing: hosts.coalescing_ps,
                gathered: VecDeque::new(),
                interrupt: Time::NEVER,
            };
            (sender, receiver)
        };
        self.probers.iter().map(ends).collect()
    }
}

impl ProbeSender {
    /// Sends what is due; when the next packet is.
    fn send(&mut self, fabric: &mut Fabric<'_>) -> Time {
        let now = fabric.now();
        while let Some(train) = &mut self.train {
            if train.leaves > now {
                return train.leaves;
            }
            let outlet = fabric.outlet(self.flow);
            if outlet.waiting_frames() >= self.adapter {
                return outlet.free_at();
            }
            let sent = outlet.start_of_next(now);
            let packet = Packet { train: train.ask.train, place: train.place, due: train.due, sent };
            fabric.send_loaded(self.flow, train.ask.frame, Lane::Data, Body::Probe(packet));
            train.place += 1;
            train.due += train.ask.gap;
            train.leaves = runs_out(&mut self.timers, train.due, train.ask.gap);
            if train.place == train.ask.packets {
                self.train = None;
            }
        }
        Time::NEVER
    }
}

/// When the timer for a packet runs out; packets back to back need none.
fn runs_out(timers: &mut Option<Timers>, due: Time, gap: Span) -> Time {
    match timers {
        Some(timers) if gap > Span::ZERO => timers.runs_out(due),
        _ => due,
    }
}

impl Agent for ProbeSender {
    fn receives(&self) -> Vec<u32> {
        vec![self.flow + 1]
    }

    fn start(&mut self) -> Time {
        Time::NEVER
    }

    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        self.send(fabric)
    }

    fn on_frame(&mut self, fabric: &mut Fabric<'_>, frame: Received) -> Time {
        if let Body::Ask(ask) = frame.body {
            let now = fabric.now();
            let leaves = runs_out(&mut self.timers, now, ask.gap);
            self.train = Some(Train { ask, place: 0, due: now, leaves });
        }
        self.send(fabric)
    }
}

impl ProbeReceiver {
    /// Asks for a train, if it is time for one; when the timer is to run out next.
    fn ask(&mut self, fabric: &mut Fabric<'_>) -> Time {
        let now = fabric.now();
        if (self.start..self.stop).contains(&now)
            && let Some(ask) = self.machine.poll(now)
        {
            fabric.send_loaded(self.flow + 1, ASK, Lane::Data, Body::Ask(ask));
        }
        let next = self.machine.next_timeout();
        // What is under way at the end is still heard.
        let next = if now >= self.stop && next <= now { Time::NEVER } else { next };
        next.max(self.start).min(self.interrupt)
    }
}

impl Agent for ProbeReceiver {
    fn receives(&self) -> Vec<u32> {
        vec![self.flow]
    }

    fn start(&mut self) -> Time {
        self.start
    }

    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        let now = fabric.now();
        if self.interrupt <= now {
            self.interrupt = Time::NEVER;
            while let Some(packet) = self.gathered.pop_front() {
                self.machine.on_packet(now, packet);
            }
        }
        self.machine.handle_timeout(now);
        self.ask(fabric)
    }

    fn on_frame(&mut self, fabric: &mut Fabric<'_>, frame: Received) -> Time {
        if let Body::Probe(packet) = frame.body {
            match self.coalescing {
                Some(time) => {
                    if self.gathered.is_empty() {
                        self.interrupt = fabric.now() + time;
                    }
                    self.gathered.push_back(packet);
                }
                None => self.machine.on_packet(fabric.now(), packet),
            }
        }
        self.ask(fabric)
    }

    fn rows(&mut self) -> usize {
        self.machine.log().rows()
    }

    fn take_rows(&mut self, totals: &mut Totals) {
        totals.estimation.push(self.machine.take_log());
    }

    fn report(&mut self, _: Time, totals: &mut Totals) {
        self.take_rows(totals);
    }
}

/// What an ask takes: a datagram of few bytes.
const ASK: Bytes = LEAST_FRAME;
