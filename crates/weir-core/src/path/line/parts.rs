//! The parts of a line: chance, jitter, schedules, cross traffic, and what leaves when.

use std::cmp::Ordering;

use super::super::spec::{CrossSpec, DelaySteps, JitterSpec, LineSpec, RateSpec};
use crate::rng::Stream;
use crate::spec::Source;
use crate::traffic::Emissions;
use crate::units::{Rate, Span, Time};

/// A frame in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<H> {
    /// The caller's.
    Own(H),
    /// Cross traffic.
    Others,
}

/// A frame under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving<H> {
    pub(super) at: Time,
    pub(super) sequence: u64,
    pub(super) handle: H,
    pub(super) marked: bool,
}

impl<H> Leaving<H> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }
}

impl<H> PartialEq for Leaving<H> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<H> Eq for Leaving<H> {}

impl<H> PartialOrd for Leaving<H> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<H> Ord for Leaving<H> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Something that strikes a frame with a probability; draws nothing at 0.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    pub(super) probability: f64,
    pub(super) stream: Stream,
}

impl Chance {
    pub(super) fn strikes(&mut self) -> bool {
        self.probability > 0.0 && self.stream.open_unit() < self.probability
    }
}

#[derive(Clone, Debug)]
pub(super) struct Jitter {
    pub(super) spec: JitterSpec,
    pub(super) stream: Stream,
}

impl Jitter {
    /// The extra delay of the next frame, and whether it waits for those before it.
    pub(super) fn draw(&mut self) -> (Span, bool) {
        match self.spec {
            JitterSpec::None => (Span::ZERO, true),
            JitterSpec::Uniform { most_ps, keeps_order } => (part(most_ps, self.stream.open_unit()), keeps_order),
            JitterSpec::Exponential { mean_ps, keeps_order } => (part(mean_ps, self.stream.exponential()), keeps_order),
        }
    }
}

fn part(span: Span, share: f64) -> Span {
    Span::from_ps((span.ps() as f64 * share) as u64)
}

/// When something of a line changes, and to what.
#[derive(Clone, Debug)]
pub(super) struct Schedule<T> {
    steps: Vec<(Time, T)>,
    period: Option<Span>,
    /// The step that comes next, and when.
    place: usize,
    round: Span,
    pub(super) next: Time,
}

impl<T: Copy> Schedule<T> {
    /// The first step holds from the start.
    pub(super) fn new(steps: Vec<(Time, T)>, period: Option<Span>) -> Schedule<T> {
        let mut schedule = Schedule { steps, period, place: 0, round: Span::ZERO, next: Time::NEVER };
        schedule.proceed();
        schedule
    }

    pub(super) fn first(&self) -> Option<T> {
        self.steps.first().map(|&(_, value)| value)
    }

    /// Takes the change that is next, and gives the value from then on.
    pub(super) fn advance(&mut self) -> T {
        let (_, value) = self.steps[self.place];
        self.proceed();
        value
    }

    fn proceed(&mut self) {
        self.place += 1;
        if self.place >= self.steps.len() {
            let Some(period) = self.period.filter(|_| !self.steps.is_empty()) else {
                self.next = Time::NEVER;
                return;
            };
            self.place = 0;
            self.round += period;
        }
        self.next = self.steps[self.place].0 + self.round;
    }
}

pub(super) fn rates(spec: &RateSpec) -> Schedule<Rate> {
    match spec {
        RateSpec::Unlimited => Schedule::new(Vec::new(), None),
        RateSpec::Constant { rate_bps } => Schedule::new(vec![(Time::ZERO, *rate_bps)], None),
        RateSpec::Steps { steps, period_ps } => Schedule::new(steps.clone(), *period_ps),
    }
}

/// None where the delay stays.
pub(super) fn delays(spec: &LineSpec) -> Schedule<Span> {
    let DelaySteps { steps, period_ps } = &spec.delays;
    if steps.is_empty() {
        return Schedule::new(Vec::new(), None);
    }
    let start = (Time::ZERO, spec.delay_ps);
    Schedule::new(std::iter::once(start).chain(steps.iter().copied()).collect(), *period_ps)
}

/// A transmission never stands still for good, so that what is left of it has a length.
pub(super) fn positive(rate: Rate) -> Rate {
    rate.max(Rate::from_bps(1))
}

#[derive(Clone, Debug)]
pub(super) struct Cross {
    pub(super) emissions: Emissions,
    pub(super) lane: u64,
}

impl Cross {
    pub(super) fn new(spec: &CrossSpec, stream: Stream) -> Cross {
        let source = Source::between(0, 1, spec.departures.clone(), spec.frame_size.clone());
        Cross { emissions: Emissions::new(&source, stream), lane: u64::from(spec.lane) }
    }
}
