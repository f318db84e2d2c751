//! The rate limiter of a pair of hosts, by credit. It outlives its removal: what it did is told at the end.

use weir_core::ethernet::reaction::{Allowance, ReactionPoint};
use weir_core::rng::Stream;
use weir_core::units::{Rate, Span, Time};

use super::super::adapter::NO_POINT;
use crate::credit::{Savings, needed};

/// What the limiters of a host have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Random share of what a frame costs.
    pub(crate) jitter: f64,
    pub(crate) savings: Savings,
}

#[derive(Debug)]
pub(crate) struct Limiter {
    /// Place of the destination.
    pub(crate) place: u32,
    pub(crate) point: ReactionPoint,
    /// The congestion point that last asked for less.
    pub(crate) cause: u32,
    /// None while nothing is limited.
    pub(crate) rate: Option<Rate>,
    /// What it may send, in bit/s times ps, at `at`.
    pub(crate) credit: i128,
    pub(crate) line: Rate,
    pub(crate) savings: Savings,
    /// Credit that a new limiter has, as soon as the size of a frame is known; a frame's worth is the line rate.
    pub(crate) owed: i128,
    pub(crate) at: Time,
    /// What the frame that waits first takes on the line, or the last one took, and the most that any took; 0 before any.
    pub(crate) tx: Span,
    pub(crate) longest: Span,
    /// When the credit will be whole; only while gated.
    pub(crate) due: Time,
    pub(crate) is_gated: bool,
    /// When the change that is entered next happens by itself.
    pub(crate) planned: Time,
    /// Random share of what a frame costs.
    pub(crate) jitter: f64,
    pub(crate) chance: Stream,
}

impl Limiter {
    pub(crate) fn new(place: u32, stream: Stream, outlet: Rate, how: Manner, chance: Stream, now: Time) -> Limiter {
        Limiter {
            place,
            point: ReactionPoint::new(stream),
            cause: NO_POINT,
            rate: None,
            credit: 0,
            line: outlet,
            savings: how.savings,
            owed: 0,
            at: now,
            tx: Span::ZERO,
            longest: Span::ZERO,
            due: Time::NEVER,
            is_gated: false,
            planned: Time::NEVER,
            jitter: how.jitter,
            chance,
        }
    }

    /// Takes over what the reaction point allows from `now` on.
    pub(crate) fn settle(&mut self, now: Time) {
        self.accrue(now);
        let before = self.rate;
        self.rate = match self.point.allowance() {
            Allowance::Unlimited => None,
            Allowance::Limited(rate) => Some(rate),
            Allowance::Stopped(_) => Some(Rate::from_bps(0)),
        };
        if let (None, Some(_), Some(initial)) = (before, self.rate, self.savings.initial) {
            (self.credit, self.owed) = (0, initial);
            self.pay();
        }
        if self.is_gated {
            self.due = self.when_whole(now);
        }
    }

    /// When the rate changes by itself, if that is not entered yet.
    pub(crate) fn plan(&mut self) -> Option<Time> {
        let timeout = self.point.poll_timeout();
        let before = std::mem::replace(&mut self.planned, timeout);
        (timeout != Time::NEVER && timeout != before).then_some(timeout)
    }

    /// Adds what the rate gave since the last look, up to the most that is saved of the largest frame.
    pub(crate) fn accrue(&mut self, now: Time) {
        if let Some(rate) = self.rate {
            self.credit += i128::from(rate.bps()) * i128::from((now - self.at).ps());
            if self.longest > Span::ZERO {
                self.credit = self.credit.min(self.savings.most(rate) * i128::from(self.longest.ps()));
            }
        }
        self.at = now;
    }

    /// A frame that takes `tx` waits first, or is sent.
    pub(crate) fn know(&mut self, tx: Span) {
        (self.tx, self.longest) = (tx, self.longest.max(tx));
        self.pay();
    }

    /// Credits what a new limiter has, of the largest frame so far.
    pub(crate) fn pay(&mut self) {
        if self.longest > Span::ZERO {
            self.credit += std::mem::take(&mut self.owed) * i128::from(self.longest.ps());
        }
    }

    /// What the frame that waits first is worth.
    pub(crate) fn whole(&self) -> i128 {
        i128::from(self.line.bps()) * i128::from(self.tx.ps())
    }

    /// Whether a frame that takes `tx` may be sent.
    pub(crate) fn may_send(&mut self, now: Time, tx: Span) -> bool {
        self.know(tx);
        self.accrue(now);
        self.rate.is_none() || self.credit >= needed(self.whole())
    }

    /// A frame that takes `tx` is sent.
    pub(crate) fn spend(&mut self, now: Time, tx: Span) {
        self.know(tx);
        self.accrue(now);
        if self.rate.is_some() {
            let whole = self.whole();
            let spread = if self.jitter > 0.0 { self.jitter * (self.chance.exponential() - 1.0) } else { 0.0 };
            self.credit -= whole + (whole as f64 * spread) as i128;
        }
    }

    /// The next frame waits for its credit.
    pub(crate) fn gate(&mut self, now: Time) {
        self.is_gated = true;
        self.due = self.when_whole(now);
    }

    /// When there will be a whole frame's worth: after a number of times that the frame takes on the line.
    pub(crate) fn when_whole(&self, now: Time) -> Time {
        let missing = needed(self.whole()) - self.credit;
        match self.rate {
            None => now,
            Some(rate) if rate.bps() == 0 => Time::NEVER,
            Some(_) if missing <= 0 => now,
            Some(rate) => {
                let each = i128::from(rate.bps()) * i128::from(self.tx.ps());
                let times = (missing + each - 1) / each;
                if times < MOST_TIMES { now + self.tx * times as u64 } else { Time::NEVER }
            }
        }
    }
}

/// Nobody waits for longer.
pub(crate) const MOST_TIMES: i128 = 1 << 31;
