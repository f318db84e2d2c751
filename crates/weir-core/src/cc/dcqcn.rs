//! DCQCN in a sender of numbered packets: the limiter of [`crate::ethernet::dcqcn`], which learns of marks by the answers of the receiver.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::{Allowance, Answer, CongestionControl, Metrics, Needs, Pace, SenderEvent, Settings, Setup};
use crate::error::{SpecError, above_zero_to};
use crate::ethernet::dcqcn::{Limiter, NotificationPoint, Rules};
use crate::rng::Stream;
use crate::spec::control::Recovery;
use crate::units::{Bytes, Rate, Span, Time};

/// Settings of [`Dcqcn`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DcqcnConfig {
    /// g: weight of the newest notification in alpha.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
    /// Time without a notification after which alpha decays; with `cut_timer`, time between two updates of alpha.
    pub alpha_timer_ps: Span,
    /// As in network adapters, the rate is cut by a timer of this length if a mark came since, alpha changes by `alpha_timer` alone, and a series of
    /// cuts keeps the target from before it. Without, each notification cuts.
    pub cut_timer_ps: Option<Span>,
    /// Marks within this time after one that counted do not count. 1 ps: all do.
    pub notify_every_ps: Span,
    /// Time of a stage of the increase.
    pub increase_timer_ps: Span,
    /// Data of a stage of the increase. `none`: the timer counts alone.
    pub byte_counter_bytes: Option<Bytes>,
    /// Stage from which the target grows, too; in the stages before it, the rate only goes half of the way to its target.
    pub fast_recovery: u32,
    /// Number of stages by which both timer and byte counter must be beyond that one for the target to grow by `r_hai`.
    pub hyper_after: u32,
    /// Step of the additive increase.
    pub r_ai_bps: Rate,
    /// Step of the hyper-active increase.
    pub r_hai_bps: Rate,
    /// Whether the n-th of these steps in a row is n times as long.
    pub hyper_grows: bool,
    /// The least rate.
    pub min_rate_bps: Rate,
}

/// Source: Zhu 2015, section 5 (timers 55 us and 50 us, 10 MB, 5 stages, g = 1/256)
/// Source: HPCC simulator, `run.py` (least rate)
impl Default for DcqcnConfig {
    fn default() -> DcqcnConfig {
        DcqcnConfig {
            gain: 1.0 / 256.0,
            alpha_timer_ps: Span::from_us(55),
            cut_timer_ps: None,
            notify_every_ps: Span::from_us(50),
            increase_timer_ps: Span::from_us(55),
            byte_counter_bytes: Some(Bytes::new(10_000_000)),
            fast_recovery: 5,
            hyper_after: 0,
            r_ai_bps: Rate::from_bps(40_000_000),
            r_hai_bps: Rate::from_bps(400_000_000),
            hyper_grows: true,
            min_rate_bps: Rate::from_bps(100_000_000),
        }
    }
}

impl Settings for DcqcnConfig {
    type Control = Dcqcn;
    const PRESET: Option<fn() -> Self> = Some(Self::default);
    const PACKETS: bool = true;
    const WINDOW: bool = false;

    fn check(&self) -> Result<(), SpecError> {
        above_zero_to(1.0, "/gain", self.gain)
    }

    fn make(&self, setup: Setup<'_>) -> Dcqcn {
        Dcqcn::new(self, setup.path.line_rate, setup.chance)
    }
}

impl DcqcnConfig {
    fn rules(&self, line_rate: Rate) -> Rules {
        let recovery = Recovery {
            byte_counter_bytes: self.byte_counter_bytes,
            timer_ps: self.increase_timer_ps,
            jitter: 0.0,
            halve_stages: false,
            fast_recovery_stages: self.fast_recovery,
            hyper_after_stages: self.hyper_after,
            r_ai_bps: self.r_ai_bps,
            r_hai_bps: self.r_hai_bps,
            hyper_grows: self.hyper_grows,
            target_cut_above: None,
            target_cut: 1.0,
        };
        Rules::of(self.gain, (self.alpha_timer_ps, self.cut_timer_ps), &recovery, self.min_rate_bps, line_rate)
    }
}

/// A rate: the line's until the receiver reports a mark, then that of a limiter, which is removed when it has reached the line's again.
///
/// Source: Zhu 2015, sections 3 and 4
/// DEVIATION: marks travel in answers, not in notifications of their own; the sender leaves out those that the receiver would not have sent.
#[derive(Debug)]
pub struct Dcqcn {
    rules: Rules,
    line_rate: Rate,
    every: Span,
    limiter: Option<Limiter>,
    receiver: NotificationPoint,
    chance: Stream,
}

impl Dcqcn {
    /// A sender at this line rate.
    pub fn new(config: &DcqcnConfig, line_rate: Rate, chance: Stream) -> Dcqcn {
        let every = config.notify_every_ps;
        Dcqcn {
            rules: config.rules(line_rate),
            line_rate,
            every,
            limiter: None,
            receiver: NotificationPoint::NEW,
            chance,
        }
    }

    fn rate(&self) -> Rate {
        self.limiter.as_ref().map_or(self.line_rate, |limiter| Rate::from_bps((limiter.rate() as u64).max(1)))
    }
}

impl CongestionControl for Dcqcn {
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        let (rules, chance) = (&self.rules, &mut self.chance);
        let stays = match (event, &mut self.limiter) {
            (SenderEvent::Timer, Some(limiter)) => limiter.on_timeout(now, rules, chance),
            (SenderEvent::Sent(sent), Some(limiter)) => {
                limiter.on_sent(sent.frame, rules, chance) != crate::ethernet::reaction::Change::Removed
            }
            _ => return,
        };
        if !stays {
            self.limiter = None;
        }
    }

    fn on_answer(&mut self, now: Time, answer: &Answer<'_>) {
        if answer.marked && self.receiver.on_mark(now, self.every) {
            let (rules, chance) = (&self.rules, &mut self.chance);
            let limiter = self.limiter.get_or_insert_with(|| Limiter::new(now, rules, chance));
            let _ = limiter.on_feedback(now, rules, chance);
        }
    }

    fn allowance(&self) -> Allowance {
        let pace = Pace::Rate { rate: self.rate(), quantum: Bytes::new(1) };
        Allowance { pace, ..Allowance::of_window(Bytes::new(u64::MAX), Bytes::new(u64::MAX)) }
    }

    fn poll_timeout(&self) -> Time {
        self.limiter.as_ref().map_or(Time::NEVER, Limiter::poll_timeout)
    }

    fn needs(&self) -> Needs {
        Needs { packets: true, timer: true, ..Needs::PLAIN }
    }

    fn metrics(&self) -> Metrics {
        Metrics { rate: Some(self.rate()), ..Metrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Outcome;
    use crate::rng::Seed;

    const LINE: Rate = Rate::from_gbit_per_s(40);

    fn dcqcn(config: DcqcnConfig) -> Dcqcn {
        Dcqcn::new(&config, LINE, Seed::new(1).stream("dcqcn"))
    }

    fn mark(dcqcn: &mut Dcqcn, at: Time) {
        let answer = Answer {
            number: 0,
            next: 0,
            bytes: Bytes::new(1000),
            outcome: Outcome::Arrived,
            marked: true,
            rtt: Span::from_us(10),
            flight: Bytes::ZERO,
            hops: &[],
        };
        dcqcn.on_answer(at, &answer);
    }

    #[test]
    fn the_first_notification_halves_the_rate_and_marks_right_behind_it_do_not_count() {
        let mut dcqcn = dcqcn(DcqcnConfig::default());
        assert_eq!(dcqcn.rate(), LINE);
        let at = Time::ZERO + Span::from_us(100);
        mark(&mut dcqcn, at);
        assert_eq!(dcqcn.rate(), Rate::from_gbit_per_s(20), "alpha is 1 at first");
        mark(&mut dcqcn, at + Span::from_us(49));
        assert_eq!(dcqcn.rate(), Rate::from_gbit_per_s(20));
        mark(&mut dcqcn, at + Span::from_us(50));
        assert_eq!(dcqcn.rate(), Rate::from_gbit_per_s(10), "alpha stays 1 while all is marked");
    }

    #[test]
    fn without_marks_fast_recovery_halves_the_distance_to_the_target_and_the_limiter_goes() {
        let mut dcqcn = dcqcn(DcqcnConfig::default());
        mark(&mut dcqcn, Time::ZERO);
        let mut rates = vec![];
        while dcqcn.poll_timeout() < Time::NEVER && rates.len() < 100 {
            let before = dcqcn.rate();
            let at = dcqcn.poll_timeout();
            dcqcn.on_event(at, &SenderEvent::Timer);
            if dcqcn.rate() != before {
                rates.push(dcqcn.rate().bps() / 1_000_000);
            }
        }
        assert_eq!(rates[..4], [30_000, 35_000, 37_500, 38_750]);
        assert_eq!(dcqcn.rate(), LINE, "additive increase brings it back, and the limiter is removed");
        assert!(dcqcn.limiter.is_none());
    }
}
