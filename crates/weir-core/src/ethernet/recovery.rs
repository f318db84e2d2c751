//! Self-increase of a rate towards a target: fast recovery halves the distance, active and hyper-active increase move
//! the target. A byte counter and a timer each count stages; every stage is an increase. Either phase begins with a stage of its own number: of the counter
//! that is ahead for active increase, of the one that is behind for hyper-active increase. Where there is no byte counter the timer is both.
//!
//! Source: IEEE 802.1Qau, fast recovery, active increase, hyper-active increase, as in ns3-rdma: both from the threshold on, the n-th hyper-active step n times as long.
//! Source: Zhu 2015, figure 7 (from memory): both beyond F. That is the same with F + 1 for the threshold.
//! Source: HPCC simulator, `rdma-hw.cc`: by the timer alone, F stages of fast recovery, one of active increase, then hyper-active steps of one length.

use super::reaction::Change;
use crate::rng::Stream;
use crate::spec::control;
use crate::units::{Bytes, Rate, Span, Time};

/// The parameters, for a line rate.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    least: f64,
    line: f64,
    byte_counter: Option<f64>,
    timer_ps: f64,
    jitter: f64,
    halve_stages: bool,
    stages: u32,
    hyper_stages: u32,
    r_ai: f64,
    r_hai: f64,
    hyper_grows: bool,
    cut_above: f64,
    cut: f64,
    /// Whether the limiter stays at the rate of the line, which the target then does not exceed.
    stays: bool,
}

impl Rules {
    /// The rules of `spec` for rates between `least` and that of the line, at which the limiter `stays` or goes.
    pub(super) fn new(spec: &control::Recovery, least: Rate, line: Rate, stays: bool) -> Rules {
        Rules {
            least: least.min(line).bps() as f64,
            line: line.bps() as f64,
            byte_counter: spec.byte_counter_bytes.map(|counter| counter.count() as f64),
            timer_ps: spec.timer_ps.ps() as f64,
            jitter: spec.jitter,
            halve_stages: spec.halve_stages,
            stages: spec.fast_recovery_stages,
            hyper_stages: spec.fast_recovery_stages.saturating_add(spec.hyper_after_stages),
            r_ai: spec.r_ai_bps.bps() as f64,
            r_hai: spec.r_hai_bps.bps() as f64,
            hyper_grows: spec.hyper_grows,
            cut_above: spec.target_cut_above.unwrap_or(f64::INFINITY),
            cut: spec.target_cut,
            stays,
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

    /// Whether a stage of the byte counter has ended since the last decrease, or of the timer where there is none.
    pub(super) fn has_counted(&self, rules: &Rules) -> bool {
        self.bytes(rules) != 0
    }

    /// Whether the rate has grown since the last decrease.
    pub(super) fn has_grown(&self) -> bool {
        self.byte_stage != 0 || self.time_stage != 0
    }

    /// Stages of the byte counter.
    fn bytes(&self, rules: &Rules) -> u32 {
        if rules.byte_counter.is_some() { self.byte_stage } else { self.time_stage }
    }

    /// Begins a stage of the byte counter.
    pub(super) fn restart_bytes(&mut self, rules: &Rules, stream: &mut Stream) {
        self.bytes_left =
            rules.byte_counter.map_or(f64::INFINITY, |counter| rules.length(counter, self.byte_stage, stream));
    }

    /// Data was sent; a rate that reaches that of the line needs no limiter, as a rule.
    #[inline]
    pub(super) fn on_sent(&mut self, size: Bytes, rules: &Rules, stream: &mut Stream) -> Change {
        self.bytes_left -= size.count() as f64;
        if self.bytes_left > 0.0 {
            return Change::Ignored;
        }
        self.byte_stage += 1;
        self.restart_bytes(rules, stream);
        self.increase(rules);
        if self.stays(rules) { Change::Increased } else { Change::Removed }
    }

    /// The timer ran out at `now`.
    pub(super) fn on_timeout(&mut self, now: Time, rules: &Rules, stream: &mut Stream) {
        self.time_stage += 1;
        self.restart_timer(now, rules, stream);
        self.increase(rules);
    }

    /// Whether the limiter goes on: it goes where the rate has reached that of the line.
    pub(super) fn stays(&self, rules: &Rules) -> bool {
        rules.stays || self.rate < rules.line
    }

    fn restart_timer(&mut self, now: Time, rules: &Rules, stream: &mut Stream) {
        let length = rules.length(rules.timer_ps, self.time_stage, stream).max(1.0);
        self.timer = now + Span::from_ps(length as u64);
    }

    fn increase(&mut self, rules: &Rules) {
        let bytes = self.bytes(rules);
        let (behind, ahead) = (bytes.min(self.time_stage), bytes.max(self.time_stage));
        let step = if ahead < rules.stages {
            0.0
        } else if behind < rules.hyper_stages {
            rules.r_ai
        } else if rules.hyper_grows {
            rules.r_hai * f64::from(behind - rules.hyper_stages + 1)
        } else {
            rules.r_hai
        };
        let first = self.byte_stage == 1 || self.time_stage == 1;
        if first && self.target > rules.cut_above * self.rate {
            self.target /= rules.cut;
        } else {
            self.target += step;
        }
        if rules.stays {
            self.target = self.target.min(rules.line);
        }
        self.rate = self.rate.max((self.rate + self.target) / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    const COUNTER: Bytes = Bytes::new(1_000_000);
    const AI: f64 = 1e6;
    const HAI: f64 = 10e6;

    fn spec() -> control::Recovery {
        control::Recovery {
            byte_counter_bytes: Some(COUNTER),
            timer_ps: Span::from_us(55),
            jitter: 0.0,
            halve_stages: false,
            fast_recovery_stages: 5,
            hyper_after_stages: 0,
            r_ai_bps: Rate::from_bps(AI as u64),
            r_hai_bps: Rate::from_bps(HAI as u64),
            hyper_grows: true,
            target_cut_above: None,
            target_cut: 1.0,
        }
    }

    /// By how much the target grows at each of these stages, of the byte counter or of the timer, after a cut to a quarter of the line rate.
    fn steps(spec: &control::Recovery, stages: &[&str]) -> Vec<f64> {
        let line = Rate::from_gbit_per_s(40);
        let rules = Rules::new(spec, Rate::from_bps(1), line, false);
        let mut stream = Seed::new(1).stream("recovery");
        let mut recovery = Recovery::new(Time::ZERO, &rules, &mut stream);
        recovery.decrease(0.25, &rules);
        recovery.target = recovery.rate;
        recovery.restart(Time::ZERO, &rules, &mut stream);
        stages
            .iter()
            .map(|stage| {
                let before = recovery.target;
                match *stage {
                    "bytes" => _ = recovery.on_sent(COUNTER, &rules, &mut stream),
                    _ => recovery.on_timeout(recovery.timer, &rules, &mut stream),
                }
                recovery.target - before
            })
            .collect()
    }

    const T: &str = "timer";
    const B: &str = "bytes";

    #[test]
    fn active_increase_starts_with_the_threshold_of_either_and_hyper_active_increase_with_that_of_both() {
        let found = steps(&spec(), &[T, T, T, T, T, T, B, B, B, B, B, B, T, B]);
        let (fast, active, both) = ([0.0; 4], [AI; 6], [HAI, 2.0 * HAI, 2.0 * HAI, 3.0 * HAI]);
        assert_eq!(found, [&fast[..], &active, &both].concat());
    }

    #[test]
    fn with_one_more_than_f_both_start_beyond_f_as_in_the_paper_of_dcqcn() {
        // F = 5: fast recovery while max(T, BC) is not above 5, hyper increase where min(T, BC) is.
        let spec = control::Recovery { fast_recovery_stages: 6, ..spec() };
        let found = steps(&spec, &[T, T, T, T, T, T, B, B, B, B, B, B]);
        assert_eq!(found, [&[0.0; 5][..], &[AI; 6], &[HAI]].concat());
    }

    #[test]
    fn without_a_byte_counter_the_timer_leads_through_all_phases() {
        // Adapters of the HPCC simulator, F = 1: the stages that ended before are 0 (fast recovery), 1 (active) and more (hyper-active).
        let alone = control::Recovery { byte_counter_bytes: None, ..spec() };
        let adapter = control::Recovery { fast_recovery_stages: 2, hyper_after_stages: 1, hyper_grows: false, ..alone };
        assert_eq!(steps(&adapter, &[T, T, T, T, T]), [0.0, AI, HAI, HAI, HAI]);
        assert_eq!(steps(&alone, &[T, T, T, T, T, T]), [0.0, 0.0, 0.0, 0.0, HAI, 2.0 * HAI]);
        assert_eq!(steps(&adapter, &[B, B, B]), [0.0; 3], "what is sent ends no stage");
    }
}
