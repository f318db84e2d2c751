//! The rate limiter of a pair of hosts, by credit. It outlives its removal: what it did is told at the end.

use weir_core::ethernet::reaction::{Allowance, ReactionPoint};
use weir_core::rng::Stream;
use weir_core::units::{Rate, Span, Time};

use super::super::adapter::NO_POINT;

/// A limiter that has so much of a frame's worth may send it: what sums of rounded shares miss does not count. The same as in the
/// slotted engine, and no multiple of what a bit/s is of a line rate: see there.
const WHOLE: f64 = 1.0 - 1.0 / (1_u64 << 29) as f64;

#[derive(Debug)]
pub(super) struct Limiter {
    /// Place of the destination.
    pub(super) place: u32,
    pub(super) point: ReactionPoint,
    /// The congestion point that last asked for less.
    pub(super) cause: u32,
    /// Share of the line rate; none while nothing is limited.
    pub(super) share: Option<f64>,
    /// What it may send, in ps of the line, at `at`.
    credit: f64,
    at: Time,
    /// What the frame that waits first takes on the line, or the last one took, and the most that any took; 0 before any.
    tx: Span,
    longest: Span,
    /// When the credit will be whole; only while gated.
    pub(super) due: Time,
    pub(super) is_gated: bool,
    /// When the change that is entered next happens by itself.
    planned: Time,
    /// Random share of what a frame costs.
    jitter: f64,
    chance: Stream,
}

impl Limiter {
    pub(super) fn new(place: u32, stream: Stream, jitter: f64, chance: Stream, now: Time) -> Limiter {
        Limiter {
            place,
            point: ReactionPoint::new(stream),
            cause: NO_POINT,
            share: None,
            credit: 0.0,
            at: now,
            tx: Span::ZERO,
            longest: Span::ZERO,
            due: Time::NEVER,
            is_gated: false,
            planned: Time::NEVER,
            jitter,
            chance,
        }
    }

    /// Takes over what the reaction point allows from `now` on.
    pub(super) fn settle(&mut self, now: Time, line: Rate) {
        self.accrue(now);
        self.share = match self.point.allowance() {
            Allowance::Unlimited => None,
            Allowance::Limited(rate) => Some(rate.bps() as f64 / line.bps() as f64),
            Allowance::Stopped(_) => Some(0.0),
        };
        if self.is_gated {
            self.due = self.when_whole(now);
        }
    }

    /// When the rate changes by itself, if that is not entered yet.
    pub(super) fn plan(&mut self) -> Option<Time> {
        let timeout = self.point.poll_timeout();
        let before = std::mem::replace(&mut self.planned, timeout);
        (timeout != Time::NEVER && timeout != before).then_some(timeout)
    }

    /// Adds what the rate gave since the last look. A flow that sends nothing saves the worth of its largest frame at most.
    pub(super) fn accrue(&mut self, now: Time) {
        if let Some(share) = self.share {
            self.credit += share * (now - self.at).ps() as f64;
            if self.longest > Span::ZERO {
                self.credit = self.credit.min(self.longest.ps() as f64 * (1.0 + share));
            }
        }
        self.at = now;
    }

    /// Whether a frame that takes `tx` may be sent.
    pub(super) fn may_send(&mut self, now: Time, tx: Span) -> bool {
        (self.tx, self.longest) = (tx, self.longest.max(tx));
        self.accrue(now);
        self.share.is_none() || self.credit >= tx.ps() as f64 * WHOLE
    }

    /// A frame that takes `tx` is sent.
    pub(super) fn spend(&mut self, now: Time, tx: Span) {
        (self.tx, self.longest) = (tx, self.longest.max(tx));
        self.accrue(now);
        if self.share.is_some() {
            let spread = if self.jitter > 0.0 { 1.0 + self.jitter * (self.chance.exponential() - 1.0) } else { 1.0 };
            self.credit -= tx.ps() as f64 * spread;
        }
    }

    /// The next frame waits for its credit.
    pub(super) fn gate(&mut self, now: Time) {
        self.is_gated = true;
        self.due = self.when_whole(now);
    }

    /// When there will be a whole frame's worth: after a number of times that the frame takes on the line.
    fn when_whole(&self, now: Time) -> Time {
        let whole = self.tx.ps() as f64 * WHOLE;
        match self.share {
            None => now,
            Some(share) if share <= 0.0 => Time::NEVER,
            Some(_) if self.credit >= whole => now,
            Some(share) => {
                let times = ((whole - self.credit) / (share * self.tx.ps() as f64)).ceil().max(1.0);
                if times < MOST_TIMES { now + self.tx * (times as u64) } else { Time::NEVER }
            }
        }
    }
}

/// Nobody waits for longer.
const MOST_TIMES: f64 = (1_u64 << 31) as f64;
