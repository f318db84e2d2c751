//! Data center QCN: switches mark, receivers notify, senders estimate how often and recover by themselves.
//!
//! Network adapters have timers of their own: a notification is noted; one timer brings alpha up to date, `alpha = (1 - g) alpha + g` if one came since and
//! `(1 - g) alpha` if not, another cuts the rate if one came since. The target becomes the rate at a cut only if the rate has grown since the cut before: a series of
//! cuts keeps the target from before it. Their limiter stays, with its alpha, when the rate is back at the line's, which the target does not exceed.
//!
//! Source: Zhu 2015, sections 3 and 4.
//! Source: HPCC simulator, `rdma-hw.cc` (the timers of adapters)
//! DEVIATION: with such timers a notification counts as a decrease, be there a cut of its own or not.

use super::reaction::Change;
use super::recovery::{self, Recovery};
use crate::rng::Stream;
use crate::spec::control::{DcqcnReactionPoint, Recovery as Recover};
use crate::units::{Bytes, Rate, Span, Time};

/// A receiver that notifies the sender of a flow of marks, once in a while.
#[derive(Clone, Copy, Debug)]
pub struct NotificationPoint {
    /// No notification before.
    not_before: Time,
}

impl NotificationPoint {
    /// Nothing was marked yet.
    pub const NEW: NotificationPoint = NotificationPoint { not_before: Time::ZERO };

    /// A marked frame arrived; whether a notification is sent.
    pub fn on_mark(&mut self, now: Time, every: Span) -> bool {
        if now < self.not_before {
            return false;
        }
        self.not_before = now + every;
        true
    }
}

/// The parameters of a limiter, for a line rate.
#[derive(Clone, Debug)]
pub struct Rules {
    g: f64,
    alpha_timer: Span,
    /// Time between two cuts; none: each notification cuts.
    cut_timer: Option<Span>,
    recovery: recovery::Rules,
}

impl Rules {
    /// The rules of `spec` at a port with this line rate.
    pub fn new(spec: &DcqcnReactionPoint, line_rate: Rate) -> Rules {
        let timers = (spec.alpha_timer_ps, spec.cut_timer_ps);
        Rules::of(spec.g, timers, &spec.recovery, spec.min_rate_bps, line_rate)
    }

    /// The rules with the gain `g`, the timers of alpha and of cuts, and this recovery between two rates.
    pub(crate) fn of(g: f64, timers: (Span, Option<Span>), recovery: &Recover, least: Rate, line_rate: Rate) -> Rules {
        let recovery = recovery::Rules::new(recovery, least, line_rate, timers.1.is_some());
        Rules { g, alpha_timer: timers.0, cut_timer: timers.1, recovery }
    }
}

/// The limiter of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    recovery: Recovery,
    /// Average of notifications, in [0, 1].
    alpha: f64,
    /// When alpha was brought up to date, on the grid of its timer.
    updated: Time,
    /// The grid of cuts, with a timer.
    start: Time,
    /// The next of them; never without a notification since the last.
    cut: Time,
    /// Whether a notification came since alpha was brought up to date.
    to_count: bool,
}

impl Limiter {
    /// A limiter at the line rate.
    pub(crate) fn new(now: Time, rules: &Rules, stream: &mut Stream) -> Limiter {
        Limiter {
            recovery: Recovery::new(now, &rules.recovery, stream),
            alpha: 1.0,
            updated: now,
            start: now,
            cut: Time::NEVER,
            to_count: false,
        }
    }

    #[inline]
    pub(crate) fn rate(&self) -> f64 {
        self.recovery.rate
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Time {
        self.recovery.timer.min(self.cut)
    }

    /// A timer ran out at `now`; whether the limiter goes on.
    pub(crate) fn on_timeout(&mut self, now: Time, rules: &Rules, stream: &mut Stream) -> bool {
        if self.cut <= now {
            self.cut = Time::NEVER;
            self.update_alpha(now, rules);
            if self.recovery.has_grown() {
                self.recovery.target = self.recovery.rate;
            }
            self.decrease(now, rules, stream);
        }
        if self.recovery.timer <= now {
            self.recovery.on_timeout(now, &rules.recovery, stream);
        }
        self.recovery.stays(&rules.recovery)
    }

    /// Lets alpha fall, or rise, at each of its timers up to `now`.
    fn update_alpha(&mut self, now: Time, rules: &Rules) {
        while now.saturating_since(self.updated) >= rules.alpha_timer {
            let before = self.alpha;
            self.updated += rules.alpha_timer;
            self.alpha *= 1.0 - rules.g;
            if std::mem::take(&mut self.to_count) {
                self.alpha += rules.g;
            } else if self.alpha.to_bits() == before.to_bits() {
                // As small as it gets: no further timer changes it.
                let rest = now.saturating_since(self.updated).ps() % rules.alpha_timer.ps();
                self.updated = Time::from_ps(now.ps() - rest);
            }
        }
    }

    fn decrease(&mut self, now: Time, rules: &Rules, stream: &mut Stream) {
        let recovery = &mut self.recovery;
        recovery.decrease(1.0 - self.alpha / 2.0, &rules.recovery);
        recovery.restart(now, &rules.recovery, stream);
        recovery.restart_bytes(&rules.recovery, stream);
    }

    /// Data was sent; whether the limiter goes on.
    #[inline]
    pub(crate) fn on_sent(&mut self, size: Bytes, rules: &Rules, stream: &mut Stream) -> Change {
        self.recovery.on_sent(size, &rules.recovery, stream)
    }

    /// A notification: `TR = CR`, `CR = CR (1 - alpha / 2)`, `alpha = (1 - g) alpha + g`.
    ///
    /// Source: Zhu 2015, equation 1.
    pub(crate) fn on_feedback(&mut self, now: Time, rules: &Rules, stream: &mut Stream) -> Change {
        self.update_alpha(now, rules);
        if let Some(timer) = rules.cut_timer {
            // The first only starts the timers.
            self.to_count = now > self.start;
            if self.cut == Time::NEVER {
                let passed = (now - self.start).ps() / timer.ps();
                self.cut = self.start + timer * (passed + 1);
            }
            return Change::Decreased;
        }
        self.recovery.target = self.recovery.rate;
        self.decrease(now, rules, stream);
        self.alpha = (1.0 - rules.g) * self.alpha + rules.g;
        self.updated = now;
        Change::Decreased
    }
}
