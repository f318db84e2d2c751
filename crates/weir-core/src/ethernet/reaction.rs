//! The reaction point of a flow, whatever its scheme: a rate limiter that feedback makes and that recovery removes.

use super::{bcn, dcqcn, qcn};
use crate::rng::Stream;
use crate::row;
use crate::spec::control::Control;
use crate::units::{Bytes, PS_PER_S, Rate, Span, Time};

/// What a notification reports to a reaction point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feedback {
    /// Of BCN.
    Bcn(bcn::Feedback),
    /// Of QCN.
    Qcn(qcn::Feedback),
    /// Of DCQCN.
    Cnp,
}

impl Feedback {
    /// Whether it asks for less.
    pub fn is_negative(self) -> bool {
        match self {
            Feedback::Bcn(bcn::Feedback::Change(fb)) => fb < 0.0,
            _ => true,
        }
    }
}

/// What became of feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Ignored,
    /// The rate is not lower.
    Increased,
    /// The rate is not higher.
    Decreased,
    /// The rate is 0 for a while.
    Stopped,
    /// The rate grew so much that the limiter is gone.
    Removed,
}

/// The rules of the limiters of a host.
#[derive(Clone, Debug)]
pub enum Rules {
    /// Of BCN.
    Bcn(bcn::Rules),
    /// Of QCN.
    Qcn(qcn::Rules),
    /// Of DCQCN.
    Dcqcn(dcqcn::Rules),
}

impl Rules {
    /// The rules of the scheme of `control`, if it has one, at a port with this line rate.
    pub fn new(control: &Control, line_rate: Rate) -> Option<Rules> {
        if let Some(bcn) = &control.bcn {
            return Some(Rules::Bcn(bcn::Rules::new(&bcn.reaction_point, line_rate)));
        }
        if let Some(qcn) = &control.qcn {
            return Some(Rules::Qcn(qcn::Rules::new(&qcn.reaction_point, line_rate)));
        }
        let dcqcn = control.dcqcn.as_ref()?;
        Some(Rules::Dcqcn(dcqcn::Rules::new(&dcqcn.reaction_point, line_rate)))
    }

    /// Whether `feedback` makes the limiter of a flow that has none.
    fn makes_limiter(&self, feedback: Feedback) -> bool {
        match (self, feedback) {
            (Rules::Qcn(rules), Feedback::Qcn(feedback)) => rules.makes(feedback),
            _ => feedback.is_negative(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Limiter {
    Bcn(bcn::Limiter),
    Qcn(qcn::Limiter),
    Dcqcn(dcqcn::Limiter),
}

/// What may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowance {
    /// As much as the line takes.
    Unlimited,
    /// At this rate.
    Limited(Rate),
    /// Nothing until this time.
    Stopped(Time),
}

row! {
    /// The rate limiters of a flow of a host that obeys congestion management.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Meter {
        /// Limiters that notifications made.
        pub made: u64,
        /// Limiters that were removed.
        pub removed: u64,
        /// Increases of a rate.
        pub increases: u64,
        /// Decreases of a rate.
        pub decreases: u64,
        /// Stops, by BCN(0,0).
        pub stops: u64,
        /// Time with a limiter.
        pub limited_ps: u64,
        /// Time in which it was stopped.
        pub stopped_ps: u64,
        /// Integral of the rate over the limited time.
        pub rate_bit: f64,
    }
}

/// The reaction point of a flow.
#[derive(Clone, Debug)]
pub struct ReactionPoint {
    limiter: Option<Limiter>,
    /// Up to when all is done that was due.
    now: Time,
    /// Up to when the meter is read: the last change of the rate.
    settled: Time,
    meter: Meter,
    stream: Stream,
}

impl ReactionPoint {
    /// Without a limiter.
    pub fn new(stream: Stream) -> ReactionPoint {
        ReactionPoint { limiter: None, now: Time::ZERO, settled: Time::ZERO, meter: Meter::default(), stream }
    }

    /// Does all that is due up to `now`; whether anything was.
    #[inline]
    pub fn advance(&mut self, now: Time, rules: &Rules) -> bool {
        let is_due = self.poll_timeout() <= now;
        if is_due {
            self.advance_limiter(now, rules);
        }
        self.now = now;
        is_due
    }

    fn advance_limiter(&mut self, now: Time, rules: &Rules) {
        while self.poll_timeout() <= now {
            let at = self.poll_timeout();
            self.settle(at);
            let stays = match (&mut self.limiter, rules) {
                (Some(Limiter::Bcn(limiter)), Rules::Bcn(rules)) => limiter.on_timeout(at, rules),
                (Some(Limiter::Qcn(limiter)), Rules::Qcn(rules)) => limiter.on_timeout(at, rules, &mut self.stream),
                (Some(Limiter::Dcqcn(limiter)), Rules::Dcqcn(rules)) => limiter.on_timeout(at, rules, &mut self.stream),
                _ => false,
            };
            if !stays {
                self.remove();
            }
        }
    }

    /// A notification arrives at `now`. The first that asks for less makes a limiter, if its rules let it; without one, feedback
    /// for more is void.
    pub fn on_feedback(&mut self, now: Time, feedback: Feedback, rules: &Rules) -> Change {
        self.advance(now, rules);
        self.settle(now);
        if self.limiter.is_none() {
            if !rules.makes_limiter(feedback) {
                return Change::Ignored;
            }
            self.limiter = Some(match rules {
                Rules::Bcn(rules) => Limiter::Bcn(bcn::Limiter::new(now, rules)),
                Rules::Qcn(rules) => Limiter::Qcn(qcn::Limiter::new(now, rules, &mut self.stream)),
                Rules::Dcqcn(rules) => Limiter::Dcqcn(dcqcn::Limiter::new(now, rules, &mut self.stream)),
            });
            self.meter.made += 1;
        }
        let change = match (&mut self.limiter, rules, feedback) {
            (Some(Limiter::Bcn(limiter)), Rules::Bcn(rules), Feedback::Bcn(feedback)) => {
                limiter.on_feedback(now, feedback, rules, &mut self.stream)
            }
            (Some(Limiter::Qcn(limiter)), Rules::Qcn(rules), Feedback::Qcn(feedback)) => {
                limiter.on_feedback(now, feedback, rules, &mut self.stream)
            }
            (Some(Limiter::Dcqcn(limiter)), Rules::Dcqcn(rules), Feedback::Cnp) => {
                limiter.on_feedback(now, rules, &mut self.stream)
            }
            _ => Change::Ignored,
        };
        self.count(change);
        change
    }

    /// A frame of the flow began at `now`, up to which all was done. Whether another amount may be sent from now on.
    #[inline]
    pub fn on_sent(&mut self, now: Time, size: Bytes, rules: &Rules) -> bool {
        debug_assert!(now < self.poll_timeout(), "advance before sending");
        let change = match (&mut self.limiter, rules) {
            (Some(Limiter::Qcn(limiter)), Rules::Qcn(rules)) => {
                let before = limiter.rate();
                let change = limiter.on_sent(size, rules, &mut self.stream);
                self.settle_at(now, before);
                change
            }
            (Some(Limiter::Dcqcn(limiter)), Rules::Dcqcn(rules)) => {
                let before = limiter.rate();
                let change = limiter.on_sent(size, rules, &mut self.stream);
                self.settle_at(now, before);
                change
            }
            _ => return false,
        };
        if change == Change::Removed {
            self.remove();
        }
        true
    }

    /// When something is due without feedback; [`Time::NEVER`] if never.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        match &self.limiter {
            None => Time::NEVER,
            Some(Limiter::Bcn(limiter)) => limiter.poll_timeout(),
            Some(Limiter::Qcn(limiter)) => limiter.poll_timeout(),
            Some(Limiter::Dcqcn(limiter)) => limiter.poll_timeout(),
        }
    }

    /// What may be sent.
    #[inline]
    pub fn allowance(&self) -> Allowance {
        match &self.limiter {
            None => Allowance::Unlimited,
            Some(Limiter::Bcn(limiter)) if limiter.is_stopped() => Allowance::Stopped(limiter.poll_restart()),
            Some(_) => Allowance::Limited(Rate::from_bps(self.rate() as u64)),
        }
    }

    /// What it did up to the last time that it was asked.
    pub fn meter(&self) -> Meter {
        let mut read = self.meter;
        self.read(&mut read, self.now, self.rate());
        read
    }

    /// bit/s; 0 while stopped and without a limiter.
    #[inline]
    fn rate(&self) -> f64 {
        match &self.limiter {
            None => 0.0,
            Some(Limiter::Bcn(limiter)) => limiter.rate(),
            Some(Limiter::Qcn(limiter)) => limiter.rate(),
            Some(Limiter::Dcqcn(limiter)) => limiter.rate(),
        }
    }

    /// Reads the meter up to `now`, before the rate changes.
    fn settle(&mut self, now: Time) {
        self.settle_at(now, self.rate());
    }

    /// Reads the meter up to `now`: the rate was `rate`.
    fn settle_at(&mut self, now: Time, rate: f64) {
        let mut meter = self.meter;
        self.read(&mut meter, now, rate);
        (self.meter, self.settled) = (meter, now);
    }

    fn read(&self, meter: &mut Meter, now: Time, rate: f64) {
        let span = now.saturating_since(self.settled);
        if self.limiter.is_some() {
            meter.limited_ps += span.ps();
            meter.rate_bit += rate * (span.ps() as f64 / PS_PER_S as f64);
            if let Allowance::Stopped(_) = self.allowance() {
                meter.stopped_ps += span.ps();
            }
        }
    }

    fn count(&mut self, change: Change) {
        match change {
            Change::Ignored => {}
            Change::Increased => self.meter.increases += 1,
            Change::Decreased => self.meter.decreases += 1,
            Change::Stopped => self.meter.stops += 1,
            Change::Removed => {
                self.meter.increases += 1;
                self.remove();
            }
        }
    }

    fn remove(&mut self) {
        self.limiter = None;
        self.meter.removed += 1;
    }
}

/// Spaces the frames of a flow at a rate, with a random share in each gap.
#[derive(Clone, Debug)]
pub struct Pacer {
    last: Time,
    /// Bits of the last frame, spread.
    bits: f64,
    jitter: f64,
    /// The rate that frames were spaced at last, and what a bit takes at it, ps.
    rate: Rate,
    ps_per_bit: f64,
    stream: Stream,
}

impl Pacer {
    /// A pacer whose first frame may go at once.
    pub fn new(jitter: f64, stream: Stream) -> Pacer {
        Pacer { last: Time::ZERO, bits: 0.0, jitter, rate: Rate::from_bps(0), ps_per_bit: f64::INFINITY, stream }
    }

    /// A frame began.
    #[inline]
    pub fn on_sent(&mut self, now: Time, size: Bytes) {
        let spread = if self.jitter > 0.0 { 1.0 + self.jitter * (self.stream.exponential() - 1.0) } else { 1.0 };
        (self.last, self.bits) = (now, (8 * size.count()) as f64 * spread);
    }

    /// When the next frame may begin, at what is allowed now.
    #[inline]
    pub fn not_before(&mut self, allowance: Allowance) -> Time {
        match allowance {
            Allowance::Unlimited => self.last,
            Allowance::Stopped(until) => until,
            Allowance::Limited(rate) => {
                if rate != self.rate {
                    (self.rate, self.ps_per_bit) = (rate, PS_PER_S as f64 / rate.bps() as f64);
                }
                let gap = self.bits * self.ps_per_bit;
                self.last + Span::from_ps((gap as u64).min(LONGEST_GAP.ps()))
            }
        }
    }
}

/// No gap is longer, however low the rate: a day.
const LONGEST_GAP: Span = Span::from_ms(86_400_000);
