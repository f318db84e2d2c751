//! PIE: what arrives is dropped with a probability that a proportional integral controller sets at equal times, by how
//! far the wait is from a target, and by how much it has changed.
//!
//! The wait is that of the frame that left last, 0 when nothing waits then: the variant with time stamps. Drops are
//! spread: none until the probabilities since the last one add up to 0.85, and one for certain at 8.5.
//!
//! Source: RFC 8033, sections 4.1 (drops), 4.2 (the controller), 4.3 (bursts), 5.1 (ECN), 5.4 (spreading), 5.5 (the cap).
//! DEVIATION: frames count as small in twice the size of the largest one that came, not of a mean one.

use super::{Backlog, Waiting};
use crate::rng::Stream;
use crate::spec::aqm as spec;
use crate::units::{Span, Time};

/// The controller of a queue.
#[derive(Clone, Debug)]
pub(super) struct Pie {
    spec: spec::Pie,
    stream: Stream,
    probability: f64,
    /// The sum of the probabilities since the last drop.
    spread: f64,
    /// How long the frame waited that left last.
    wait: Span,
    /// The same at the last update.
    wait_before: Span,
    burst_left: Span,
    next_update: Time,
}

/// While the probability is below it and the wait below half of the target, nothing is dropped.
/// Source: RFC 8033, section 4.1.
const QUIET_PROBABILITY: f64 = 0.2;
/// Above it frames are dropped, though they might be marked. Source: RFC 8033, section 5.1.
const MOST_MARKED: f64 = 0.1;
/// Between them a drop is a matter of chance. Source: RFC 8033, section 5.4.
const SPREAD: (f64, f64) = (0.85, 8.5);
/// From this probability on it grows in no greater steps than the second. Source: RFC 8033, section 5.5.
const CAP: (f64, f64) = (0.1, 0.02);
/// What is left of the probability after an update without any wait. Source: RFC 8033, section 4.2.
const DECAY: f64 = 0.98;
/// Below each probability steps are so many times smaller. Source: RFC 8033, section 4.2.
const SCALES: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];

impl Pie {
    pub(super) fn new(spec: spec::Pie, stream: Stream) -> Pie {
        Pie {
            spec,
            stream,
            probability: 0.0,
            spread: 0.0,
            wait: Span::ZERO,
            wait_before: Span::ZERO,
            burst_left: spec.max_burst_ps,
            next_update: Time::ZERO + spec.update_ps,
        }
    }

    /// The frame that comes, perhaps marked, if it is not dropped.
    pub(super) fn admit<H: Copy>(&mut self, mut frame: Waiting<H>, backlog: &mut Backlog<H>) -> Option<Waiting<H>> {
        self.update_until(frame.since, backlog);
        if !self.strikes(backlog) {
            return Some(frame);
        }
        if self.spec.ecn && frame.label.ecn.is_capable() && self.probability <= MOST_MARKED {
            frame.marked = true;
            return Some(frame);
        }
        backlog.drop_early(&frame);
        None
    }

    fn strikes<H>(&mut self, backlog: &Backlog<H>) -> bool {
        let is_quiet = self.wait_before.ps() < self.spec.target_ps.ps() / 2 && self.probability < QUIET_PROBABILITY;
        if self.burst_left > Span::ZERO || is_quiet || backlog.bytes <= 2 * backlog.largest {
            return false;
        }
        self.spread = if self.probability == 0.0 { 0.0 } else { self.spread + self.probability };
        let strikes = self.spread >= SPREAD.1 || self.spread >= SPREAD.0 && self.stream.open_unit() < self.probability;
        if strikes {
            self.spread = 0.0;
        }
        strikes
    }

    /// A frame leaves the queue at `now`; `backlog` is what still waits.
    pub(super) fn on_departure<H>(&mut self, now: Time, frame: &Waiting<H>, backlog: &Backlog<H>) {
        self.wait = if backlog.frames == 0 { Span::ZERO } else { now - frame.since };
    }

    /// All updates up to `now`, between which nothing has happened.
    pub(super) fn update_until<H>(&mut self, now: Time, backlog: &Backlog<H>) {
        while self.next_update <= now {
            if self.is_at_rest(backlog) {
                let updates = now.saturating_since(self.next_update).ps() / self.spec.update_ps.ps();
                self.next_update += self.spec.update_ps * (updates + 1);
                return;
            }
            self.update();
            self.next_update += self.spec.update_ps;
        }
    }

    /// Whether an update changes nothing.
    fn is_at_rest<H>(&self, backlog: &Backlog<H>) -> bool {
        let is_idle = backlog.frames == 0 && self.wait == Span::ZERO && self.wait_before == Span::ZERO;
        is_idle && self.probability == 0.0 && self.burst_left == self.spec.max_burst_ps
    }

    fn update(&mut self) {
        let (wait, before, target) =
            (self.wait.as_secs_f64(), self.wait_before.as_secs_f64(), self.spec.target_ps.as_secs_f64());
        let step = self.spec.alpha * (wait - target) + self.spec.beta * (wait - before);
        let scale = SCALES.iter().find(|&&(below, _)| self.probability < below).map_or(1.0, |&(_, scale)| scale);
        let step = step / scale;
        let step = if self.probability >= CAP.0 { step.min(CAP.1) } else { step };
        self.probability += step;
        if self.wait == Span::ZERO && self.wait_before == Span::ZERO {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_left = self.burst_left - self.burst_left.min(self.spec.update_ps);
        let half = self.spec.target_ps.ps() / 2;
        if self.probability == 0.0 && self.wait.ps() < half && self.wait_before.ps() < half {
            self.burst_left = self.spec.max_burst_ps;
        }
        self.wait_before = self.wait;
    }
}
