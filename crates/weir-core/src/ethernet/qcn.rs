//! Quantized congestion notification: only less is ever asked for; rates recover by themselves.
//!
//! Source: IEEE 802.1Qau
//!
//! We had no copy of the standard. What its management objects and public implementations confirm is reported in `docs/qcn.md`.

use super::bcn::Fate;
use super::reaction::Change;
use super::recovery::{self, Recovery};
use super::sampler::Sampler;
use crate::rng::Stream;
use crate::spec::control::{Counted, NewLimiter, QcnCongestionPoint, QcnReactionPoint};
use crate::units::{Bytes, Rate, Time};

/// Quantized feedback, and whether the queue was above its set point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    level: u8,
    is_above: bool,
}

impl Feedback {
    /// The most severe.
    pub const MAX: Feedback = Feedback { level: 63, is_above: true };

    /// The number, 1 to 63.
    pub fn level(self) -> u8 {
        self.level
    }
}

/// Mean distance between samples, as a share of the distance without congestion, by the upper 3 bits of the feedback:
/// 150, 75, 50, 37.5, 30, 25, 21.5 and 18.5 KB.
///
/// Source: IEEE 802.1Qau, the table of sampling, as in a QCN patch of Linux.
const SAMPLE_EVERY: [f64; 8] = [1.0, 0.5, 1.0 / 3.0, 0.25, 0.2, 1.0 / 6.0, 21.5 / 150.0, 18.5 / 150.0];

/// A queue that measures.
#[derive(Clone, Debug)]
pub struct CongestionPoint {
    sampler: Sampler,
    counts_drops: bool,
    /// Bytes.
    q_eq: f64,
    w: f64,
    /// The queue at the sample before.
    last: f64,
}

impl CongestionPoint {
    /// A congestion point with an empty queue.
    pub fn new(spec: &QcnCongestionPoint, stream: Stream) -> CongestionPoint {
        CongestionPoint {
            sampler: Sampler::new(spec.sample_every_bytes, spec.sampling, stream),
            counts_drops: spec.counted == Counted::Received,
            q_eq: spec.q_eq_bytes.count() as f64,
            w: spec.w,
            last: 0.0,
        }
    }

    /// Counts a frame that arrived; whether it is to be sampled.
    #[inline]
    pub fn on_frame(&mut self, size: Bytes, fate: Fate) -> bool {
        (fate == Fate::Accepted || self.counts_drops) && self.sampler.count(size)
    }

    /// Samples a frame after it was queued, `queue` waiting: `Fb = (q_eq - q) - w (q - q of the last sample)`, limited
    /// to `-(1 + 2 w) q_eq .. 0` and quantized to 6 bits; nothing is sent for 0.
    pub fn sample(&mut self, queue: Bytes) -> Option<Feedback> {
        let q = queue.count() as f64;
        let fb = (self.q_eq - q) - self.w * (q - self.last);
        self.last = q;
        let level = (-fb * 63.0 / ((1.0 + 2.0 * self.w) * self.q_eq)).clamp(0.0, 63.0) as u8;
        self.sampler.restart(SAMPLE_EVERY[usize::from(level >> 3)]);
        (level > 0).then_some(Feedback { level, is_above: q > self.q_eq })
    }
}

/// The parameters of a limiter, for a line rate.
#[derive(Clone, Debug)]
pub struct Rules {
    gain_down: f64,
    least_factor: f64,
    new_limiter: NewLimiter,
    recovery: recovery::Rules,
}

impl Rules {
    /// The rules of `spec` at a port with this line rate.
    pub fn new(spec: &QcnReactionPoint, line_rate: Rate) -> Rules {
        Rules {
            gain_down: spec.gd,
            least_factor: spec.min_decrease_factor,
            new_limiter: spec.new_limiter,
            recovery: recovery::Rules::new(&spec.recovery, spec.min_rate_bps, line_rate, false),
        }
    }

    /// Whether `feedback` makes a limiter.
    pub(super) fn makes(&self, feedback: Feedback) -> bool {
        self.new_limiter == NewLimiter::AnyFeedback || feedback.is_above
    }
}

/// The limiter of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    recovery: Recovery,
}

impl Limiter {
    /// A limiter at the line rate.
    pub(super) fn new(now: Time, rules: &Rules, stream: &mut Stream) -> Limiter {
        Limiter { recovery: Recovery::new(now, &rules.recovery, stream) }
    }

    #[inline]
    pub(super) fn rate(&self) -> f64 {
        self.recovery.rate
    }

    #[inline]
    pub(super) fn poll_timeout(&self) -> Time {
        self.recovery.timer
    }

    /// The timer ran out at `now`; whether the limiter goes on.
    pub(super) fn on_timeout(&mut self, now: Time, rules: &Rules, stream: &mut Stream) -> bool {
        self.recovery.on_timeout(now, &rules.recovery, stream);
        self.recovery.stays(&rules.recovery)
    }

    /// Data was sent; whether the limiter goes on.
    #[inline]
    pub(super) fn on_sent(&mut self, size: Bytes, rules: &Rules, stream: &mut Stream) -> Change {
        self.recovery.on_sent(size, &rules.recovery, stream)
    }

    /// The target moves to the rate unless no stage of the byte counter has ended since the last decrease, so that a
    /// burst of notifications counts as one congestion; then the rate is decreased by at most one half.
    pub(super) fn on_feedback(&mut self, now: Time, feedback: Feedback, rules: &Rules, stream: &mut Stream) -> Change {
        let recovery = &mut self.recovery;
        let counted = recovery.has_counted(&rules.recovery);
        if counted {
            recovery.target = recovery.rate;
        }
        recovery.restart(now, &rules.recovery, stream);
        if counted {
            recovery.restart_bytes(&rules.recovery, stream);
        }
        let factor = (1.0 - rules.gain_down * f64::from(feedback.level)).max(rules.least_factor);
        recovery.decrease(factor, &rules.recovery);
        Change::Decreased
    }
}
