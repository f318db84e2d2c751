//! Backward congestion notification: a queue reports to the senders of sampled frames how far it is from its set point.
//!
//! Source: BCN Calibration 2006, parameters, BCN(0,0), BCN(MAX), drift. The rules that the slides leave open are
//! parameters, see [`crate::spec::control`].

use super::reaction::Change;
use super::sampler::Sampler;
use crate::rng::Stream;
use crate::spec::control::{
    BackOff, BcnCongestionPoint, BcnReactionPoint, Counted, Counting, Meanwhile, Negative, Positive, Restart,
    Saturation, SevereAction, Stop, StopReset,
};
use crate::units::{Bytes, Rate, Span, Time};

/// What a notification says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feedback {
    /// `Fb`, in units of the congestion point: positive for more, negative for less.
    Change(f64),
    /// BCN(MAX): the most negative `Fb` there is.
    Max(f64),
    /// BCN(0,0).
    Stop,
}

/// What the tag of a frame says about its sender's limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// There is none.
    None,
    /// It belongs to this congestion point.
    Here,
    /// It belongs to another one.
    Elsewhere,
}

/// What became of a frame that arrived for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was queued, or sent at once.
    Accepted,
    /// It was dropped.
    Dropped,
}

/// A queue that measures.
#[derive(Clone, Debug)]
pub struct CongestionPoint {
    sampler: Sampler,
    counts_drops: bool,
    /// Set point, units.
    q_eq: f64,
    per_unit: f64,
    counting: Counting,
    saturation: Saturation,
    w: f64,
    /// The queue at the sample before, units.
    last: f64,
    positive: Positive,
    negative: Negative,
    severe: SevereAction,
    severe_above: Bytes,
}

impl CongestionPoint {
    /// A congestion point with an empty queue.
    pub fn new(spec: &BcnCongestionPoint, stream: Stream) -> CongestionPoint {
        let (severe, severe_above) =
            spec.severe.map_or((SevereAction::None, Bytes::ZERO), |severe| (severe.action, severe.above_bytes));
        let mut point = CongestionPoint {
            sampler: Sampler::new(spec.sample_every_bytes, spec.sampling, stream),
            counts_drops: spec.counted == Counted::Received,
            q_eq: 0.0,
            per_unit: 1.0 / spec.unit_bytes.count() as f64,
            counting: spec.counting,
            saturation: spec.saturation,
            w: spec.w,
            last: 0.0,
            positive: spec.positive,
            negative: spec.negative,
            severe,
            severe_above,
        };
        point.q_eq = point.units(spec.q_eq_bytes);
        point
    }

    /// Counts a frame that arrived; whether it is to be sampled.
    #[inline]
    pub fn on_frame(&mut self, size: Bytes, fate: Fate) -> bool {
        (fate == Fate::Accepted || self.counts_drops) && self.sampler.count(size)
    }

    /// Samples a frame with `tag` after it was queued, `queue` waiting.
    pub fn sample(&mut self, queue: Bytes, tag: Tag) -> Option<Feedback> {
        self.sampler.restart(1.0);
        let q = self.units(queue);
        let (mut offset, mut delta) = (self.q_eq - q, q - self.last);
        self.last = q;
        if self.saturation == Saturation::SetPoint {
            offset = offset.clamp(-self.q_eq, self.q_eq);
            delta = delta.clamp(-2.0 * self.q_eq, 2.0 * self.q_eq);
        }
        if queue > self.severe_above {
            match self.severe {
                SevereAction::None => {}
                SevereAction::Stop => return Some(Feedback::Stop),
                SevereAction::Max => return Some(Feedback::Max(-(1.0 + 2.0 * self.w) * self.q_eq)),
            }
        }
        let fb = offset - self.w * delta;
        let sent = if fb < 0.0 {
            match self.negative {
                Negative::Always => true,
                Negative::UntaggedAboveSetPoint => tag == Tag::Here || q > self.q_eq,
            }
        } else {
            fb > 0.0
                && match self.positive {
                    Positive::Tagged => tag == Tag::Here,
                    Positive::TaggedBelowSetPoint => tag == Tag::Here && q <= self.q_eq,
                    Positive::AnyTag => tag != Tag::None,
                }
        };
        sent.then_some(Feedback::Change(fb))
    }

    /// The most that `|Fb|` can be where it is saturated: `(1 + 2 w) q_eq`, in units.
    pub fn most(&self) -> f64 {
        (1.0 + 2.0 * self.w) * self.q_eq
    }

    fn units(&self, queue: Bytes) -> f64 {
        let units = queue.count() as f64 * self.per_unit;
        match self.counting {
            Counting::Exact => units,
            Counting::Whole => (units + WHOLE).floor(),
        }
    }
}

/// What keeps a whole number of units whole after a product with a rounded reciprocal.
const WHOLE: f64 = 1e-9;

/// The parameters of a limiter, for a line rate.
#[derive(Clone, Debug)]
pub struct Rules {
    gain_up: f64,
    gain_down: f64,
    least: f64,
    initial: f64,
    removal: f64,
    drift: f64,
    drift_every: Option<Span>,
    stop: Stop,
}

impl Rules {
    /// The rules of `spec` at a port with this line rate.
    pub fn new(spec: &BcnReactionPoint, line_rate: Rate) -> Rules {
        let or_line = |rate: Option<Rate>| rate.unwrap_or(line_rate).min(line_rate).bps() as f64;
        Rules {
            gain_up: spec.gi * spec.ru_bps.bps() as f64,
            gain_down: spec.gd,
            least: spec.min_rate_bps.min(line_rate).bps() as f64,
            initial: or_line(spec.initial_rate_bps),
            removal: or_line(spec.removal_rate_bps),
            drift: spec.drift.map_or(0.0, |drift| drift.step_bps.bps() as f64),
            drift_every: spec.drift.map(|drift| drift.every_ps),
            stop: spec.stop,
        }
    }
}

/// The limiter of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    /// bit/s; 0 while stopped.
    rate: f64,
    /// The rate before the stop.
    before: f64,
    t_max_ps: f64,
    r_min: f64,
    /// The end of a stop.
    restart: Time,
    /// The next drift.
    drift: Time,
}

impl Limiter {
    /// A limiter at its initial rate.
    pub(super) fn new(now: Time, rules: &Rules) -> Limiter {
        let drift = rules
            .drift_every
            .map_or(Time::NEVER, |every| Time::from_ps((now.ps() / every.ps() + 1).saturating_mul(every.ps())));
        Limiter {
            rate: rules.initial,
            before: rules.initial,
            t_max_ps: rules.stop.t_max_ps.ps() as f64,
            r_min: rules.stop.r_min_bps.bps() as f64,
            restart: Time::NEVER,
            drift,
        }
    }

    #[inline]
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.restart != Time::NEVER
    }

    /// The end of the stop.
    #[inline]
    pub(super) fn poll_restart(&self) -> Time {
        self.restart
    }

    /// When the rate changes without feedback.
    #[inline]
    pub(super) fn poll_timeout(&self) -> Time {
        self.restart.min(self.drift)
    }

    /// The change that is due at `now`, which [`Limiter::poll_timeout`] reported; whether the limiter goes on.
    pub(super) fn on_timeout(&mut self, now: Time, rules: &Rules) -> bool {
        if self.restart <= now {
            self.restart = Time::NEVER;
            self.rate = self.before;
        }
        if self.drift <= now {
            self.drift += rules.drift_every.unwrap_or(Span::ZERO);
            if !self.is_stopped() {
                self.rate += rules.drift;
            }
        }
        self.rate < rules.removal || self.is_stopped()
    }

    /// Obeys; all timeouts up to `now` were reported.
    pub(super) fn on_feedback(&mut self, now: Time, feedback: Feedback, rules: &Rules, stream: &mut Stream) -> Change {
        let stopped = self.is_stopped();
        match feedback {
            Feedback::Stop if stopped && rules.stop.meanwhile != Meanwhile::StopAgain => Change::Ignored,
            Feedback::Stop => {
                self.stop(now, rules, stream);
                Change::Stopped
            }
            Feedback::Change(fb) | Feedback::Max(fb) => {
                if stopped && rules.stop.meanwhile != Meanwhile::Remember {
                    return Change::Ignored;
                }
                let reset = match rules.stop.reset {
                    StopReset::Never => false,
                    StopReset::Positive => fb > 0.0,
                    StopReset::Any => true,
                };
                if reset {
                    self.t_max_ps = rules.stop.t_max_ps.ps() as f64;
                    self.r_min = rules.stop.r_min_bps.bps() as f64;
                }
                let rate = if stopped { &mut self.before } else { &mut self.rate };
                if fb < 0.0 {
                    *rate = rate.min((*rate * (1.0 + rules.gain_down * fb)).max(rules.least));
                    return Change::Decreased;
                }
                *rate += rules.gain_up * fb;
                if !stopped && self.rate >= rules.removal { Change::Removed } else { Change::Increased }
            }
        }
    }

    fn stop(&mut self, now: Time, rules: &Rules, stream: &mut Stream) {
        let before = if self.is_stopped() { self.before } else { self.rate };
        if rules.stop.back_off == BackOff::Before {
            self.back_off(rules);
        }
        self.before = match rules.stop.restart {
            Restart::RMin => self.r_min,
            Restart::LesserOfRMinAndBefore => self.r_min.min(before),
            Restart::Before => before,
        };
        self.before = self.before.clamp(rules.least, rules.removal);
        self.rate = 0.0;
        self.restart = now + Span::from_ps((stream.open_unit() * self.t_max_ps) as u64);
        if rules.stop.back_off == BackOff::After {
            self.back_off(rules);
        }
    }

    fn back_off(&mut self, rules: &Rules) {
        self.t_max_ps = (self.t_max_ps * rules.stop.t_max_factor).min(MAX_STOP.ps() as f64);
        self.r_min *= rules.stop.r_min_factor;
    }
}

/// No stop is longer than this, however often Tmax was doubled: an hour.
const MAX_STOP: Span = Span::from_ms(3_600_000);
