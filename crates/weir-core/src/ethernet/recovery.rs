//! Self-increase of a rate towards a target: fast recovery halves the distance, active and hyper-active increase move
//! the target. A byte counter and a timer each count stages; every stage is an increase.
//!
//! Source: IEEE 802.1Qau, fast recovery, active increase, hyper-active increase, as in ns3-rdma.

use super::reaction::Change;
use crate::rng::Stream;
use crate::spec::control;
use crate::units::{Bytes, Rate, Span, Time};

/// The parameters, for a line rate.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    least: f64,
    line: f64,
    byte_counter: f64,
    timer_ps: f64,
    jitter: f64,
    halve_stages: bool,
    stages: u32,
    r_ai: f64,
    r_hai: f64,
    cut_above: f64,
    cut: f64,
}

impl Rules {
    /// The rules of `spec` for rates between `least` and that of the line.
    pub(super) fn new(spec: &control::Recovery, least: Rate, line: Rate) -> Rules {
        Rules {
            least: least.min(line).bps() as f64,
            line: line.bps() as f64,
            byte_counter: spec.byte_counter_bytes.count() as f64,
            timer_ps: spec.timer_ps.ps() as f64,
            jitter: spec.jitter,
            halve_stages: spec.halve_stages,
            stages: spec.fast_recovery_stages,
            r_ai: spec.r_ai_bps.bps() as f64,
            r_hai: spec.r_hai_bps.bps() as f64,
            cut_above: spec.target_cut_above.unwrap_or(f64::INFINITY),
            cut: spec.target_cut,
        }
    }

    /// The length of a stage after `stage` others.
    fn length(&self, whole: f64, stage: u32, stream: &mut Stream) -> f64 {
        let spread = if self.jitter > 0.0 { 1.0 + self.jitter * (2.0 * stream.open_unit() - 1.0) } else { 1.0 };
        let part = if self.halve_stages && stage >= self.stages { 0.5 } else { 1.0 };
        whole * part * spread
    }
}

/// A rate on its way to a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// bit/s.
    pub(super) rate: f64,
    pub(super) target: f64,
    byte_stage: u32,
    time_stage: u32,
    bytes_left: f64,
    pub(super) timer: Time,
}

impl Recovery {
    /// At the rate of the line and with it for a target.
    pub(super) fn new(now: Time, rules: &Rules, stream: &mut Stream) -> Recovery {
        let (rate, target) = (rules.line, rules.line);
        let mut recovery = Recovery { rate, target, byte_stage: 0, time_stage: 0, bytes_left: 0.0, timer: Time::NEVER };
        recovery.restart_bytes(rules, stream);
        recovery.restart_timer(now, rules, stream);
        recovery
    }

    /// Leaves `factor` of the rate, or the least rate.
    pub(super) fn decrease(&mut self, factor: f64, rules: &Rules) {
        self.rate = self.rate.min((self.rate * factor).max(rules.least));
    }

    /// The rate was decreased: fast recovery begins.
    pub(super) fn restart(&mut self, now: Time, rules: &Rules, stream: &mut Stream) {
        (self.byte_stage, self.time_stage) = (0, 0);
        self.restart_timer(now, rules, stream);
    }

    /// Whether a stage of the byte counter has ended since the last decrease.
    pub(super) fn has_counted(&self) -> bool {
        self.byte_stage != 0
    }

    /// Begins a stage of the byte counter.
    pub(super) fn restart_bytes(&mut self, rules: &Rules, stream: &mut Stream) {
        self.bytes_left = rules.length(rules.byte_counter, self.byte_stage, stream);
    }

    /// Data was sent; a rate that reaches that of the line needs no limiter.
    #[inline]
    pub(super) fn on_sent(&mut self, size: Bytes, rules: &Rules, stream: &mut Stream) -> Change {
        self.bytes_left -= size.count() as f64;
        if self.bytes_left > 0.0 {
            return Change::Ignored;
        }
        self.byte_stage += 1;
        self.restart_bytes(rules, stream);
        self.increase(rules);
        if self.is_limited(rules) { Change::Increased } else { Change::Removed }
    }

    /// The timer ran out at `now`.
    pub(super) fn on_timeout(&mut self, now: Time, rules: &Rules, stream: &mut Stream) {
        self.time_stage += 1;
        self.restart_timer(now, rules, stream);
        self.increase(rules);
    }

    /// Whether the rate is below that of the line.
    pub(super) fn is_limited(&self, rules: &Rules) -> bool {
        self.rate < rules.line
    }

    fn restart_timer(&mut self, now: Time, rules: &Rules, stream: &mut Stream) {
        let length = rules.length(rules.timer_ps, self.time_stage, stream).max(1.0);
        self.timer = now + Span::from_ps(length as u64);
    }

    fn increase(&mut self, rules: &Rules) {
        let (least, most) = (self.byte_stage.min(self.time_stage), self.byte_stage.max(self.time_stage));
        let step = if most < rules.stages {
            0.0
        } else if least < rules.stages {
            rules.r_ai
        } else {
            rules.r_hai * f64::from(least - rules.stages + 1)
        };
        let first = self.byte_stage == 1 || self.time_stage == 1;
        if first && self.target > rules.cut_above * self.rate {
            self.target /= rules.cut;
        } else {
            self.target += step;
        }
        self.rate = self.rate.max((self.rate + self.target) / 2.0);
    }
}
