//! Timers that are coarse or late, as those of an operating system.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{SpecError, refuse};
use crate::rng::Stream;
use crate::units::{Span, Time};

/// How a sender's timers fail.
///
/// Source: Rapid UDP, (4) II: send gaps that are extremely large and extremely small. How often timers are late and by
/// how much is an assumption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// They run out at multiples of this; 0: at any time.
    pub tick_ps: Span,
    /// Share of the timers that run out late.
    pub late: f64,
    /// Mean lateness of these, which is exponential.
    pub by_ps: Span,
}

impl Timing {
    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        refuse!(!(0.0..=1.0).contains(&self.late), "/late", "a share from 0 to 1 (got {})", self.late);
        Ok(())
    }
}

/// Timers of one sender.
#[derive(Clone, Debug)]
pub struct Timers {
    timing: Timing,
    chance: Stream,
}

impl Timers {
    /// Timers that fail as `timing` says, by `chance`.
    pub fn new(timing: &Timing, chance: Stream) -> Timers {
        Timers { timing: timing.clone(), chance }
    }

    /// When a timer that is set for `due` runs out.
    pub fn runs_out(&mut self, due: Time) -> Time {
        let mut at = due;
        if self.timing.tick_ps > Span::ZERO {
            at = Time::from_ps(at.ps().next_multiple_of(self.timing.tick_ps.ps()));
        }
        if self.timing.late > 0.0 && self.chance.open_unit() < self.timing.late {
            at += Span::from_ps((self.timing.by_ps.ps() as f64 * self.chance.exponential()) as u64);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn a_coarse_timer_runs_out_at_the_next_tick() {
        let timing = Timing { tick_ps: Span::from_us(50), late: 0.0, by_ps: Span::ZERO };
        let mut timers = Timers::new(&timing, Seed::new(1).stream("timers"));
        let at = |us| Time::ZERO + Span::from_us(us);
        assert_eq!(timers.runs_out(at(101)), at(150));
        assert_eq!(timers.runs_out(at(150)), at(150));
    }

    #[test]
    fn as_many_are_late_as_was_said_and_by_as_much() {
        let timing = Timing { tick_ps: Span::ZERO, late: 0.02, by_ps: Span::from_ms(4) };
        let mut timers = Timers::new(&timing, Seed::new(1).stream("timers"));
        let due = Time::ZERO + Span::from_ms(1);
        let late: Vec<f64> =
            (0..100_000).map(|_| (timers.runs_out(due) - due).as_secs_f64()).filter(|&late| late > 0.0).collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        // Five standard errors of both.
        assert!((late.len() as f64 - 2000.0).abs() < 5.0 * 44.3, "{}", late.len());
        assert!((mean - 4e-3).abs() < 5.0 * 4e-3 / 2000_f64.sqrt(), "{mean}");
    }
}
