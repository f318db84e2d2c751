//! Rate limiters that space the frames of a flow: the next may begin when the last one has taken its time at the rate of the limiter.

use crate::ethernet::reaction::{Allowance, Feedback, Meter, Pacer, ReactionPoint, Rules};
use crate::rng::Stream;
use crate::units::{Bytes, Time};

/// The limiters of a host, by the place of the flow among its own.
#[derive(Debug)]
pub struct Paced {
    rules: Rules,
    list: Vec<Limiter>,
}

#[derive(Debug)]
struct Limiter {
    point: ReactionPoint,
    pacer: Pacer,
    /// The congestion point that last asked for less.
    cause: u32,
    allowance: Allowance,
    /// When the next frame may begin, as things are, and when that may change.
    begin: Time,
    change: Time,
}

impl Limiter {
    /// Asks again what may be sent.
    #[inline]
    fn ask(&mut self) {
        self.allowance = self.point.allowance();
        self.begin = self.pacer.not_before(self.allowance);
        self.change = self.point.poll_timeout();
    }
}

impl Limiter {
    #[inline]
    fn is_limited(&self) -> bool {
        self.allowance != Allowance::Unlimited
    }
}

impl Paced {
    /// A limiter for each of `flows`: the chance of its rate, and of the gaps between frames, of which `jitter` is a random share.
    pub fn new(rules: Rules, jitter: f64, flows: impl Iterator<Item = (Stream, Stream)>) -> Paced {
        let limiter = |(rate, gaps)| Limiter {
            point: ReactionPoint::new(rate),
            pacer: Pacer::new(jitter, gaps),
            cause: u32::MAX,
            allowance: Allowance::Unlimited,
            begin: Time::ZERO,
            change: Time::NEVER,
        };
        Paced { rules, list: flows.map(limiter).collect() }
    }

    /// Does what the limiter of `place` was to do by itself up to `now`; whether there was anything.
    #[inline]
    pub fn advance(&mut self, now: Time, place: u32) -> bool {
        let is_due = self.list[place as usize].change <= now;
        if is_due {
            self.change(now, place);
        }
        is_due
    }

    #[cold]
    fn change(&mut self, now: Time, place: u32) {
        let limiter = &mut self.list[place as usize];
        limiter.point.advance(now, &self.rules);
        limiter.ask();
    }

    /// Whether the next frame of `place` may begin at `now`, up to which all was done.
    #[inline]
    pub fn may_send(&self, now: Time, place: u32) -> bool {
        self.list[place as usize].begin <= now
    }

    /// When the next frame of `place` may begin, as things are, or that may change.
    #[inline]
    pub fn not_before(&self, place: u32) -> Time {
        let limiter = &self.list[place as usize];
        limiter.begin.min(limiter.change)
    }

    /// Whether `place` has a limiter.
    #[inline]
    pub fn is_limited(&self, place: u32) -> bool {
        self.list[place as usize].is_limited()
    }

    /// The congestion point that limits `place`, if there is one.
    #[inline]
    pub fn cause(&self, place: u32) -> Option<u32> {
        let limiter = &self.list[place as usize];
        limiter.is_limited().then_some(limiter.cause)
    }

    /// A frame of `place` began at `now`, up to which all was done. Whether it may be limited otherwise from now on.
    #[inline]
    pub fn on_sent(&mut self, now: Time, place: u32, size: Bytes) -> bool {
        let limiter = &mut self.list[place as usize];
        limiter.pacer.on_sent(now, size);
        let is_changed = limiter.point.on_sent(now, size, &self.rules);
        if is_changed {
            limiter.ask();
        } else {
            limiter.begin = limiter.pacer.not_before(limiter.allowance);
        }
        is_changed
    }

    /// Feedback of the congestion point `cause` about frames of `place` takes effect at `now`.
    pub fn on_feedback(&mut self, now: Time, place: u32, cause: u32, feedback: Feedback) {
        let limiter = &mut self.list[place as usize];
        limiter.point.on_feedback(now, feedback, &self.rules);
        if feedback.is_negative() {
            limiter.cause = cause;
        }
        limiter.ask();
    }

    /// What limits frames of `place`, and by which rules.
    pub fn reaction(&self, place: u32) -> (&ReactionPoint, &Rules) {
        (&self.list[place as usize].point, &self.rules)
    }

    /// What each limiter did up to `end`: its place and its meter.
    pub fn meters(&mut self, end: Time) -> impl Iterator<Item = (u32, Meter)> + '_ {
        let rules = &self.rules;
        (0..).zip(&mut self.list).map(move |(place, limiter)| {
            limiter.point.advance(end, rules);
            (place, limiter.point.meter())
        })
    }
}
