//! TIMELY: the rate follows the gradient of the round-trip time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::{Allowance, Cause, CongestionControl, Metrics, Needs, Pace, SenderEvent, Settings, Setup};
use crate::error::{SpecError, above_zero_to, some_time};
use crate::units::{Bytes, Rate, Span, Time};

/// Settings of [`Timely`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimelyConfig {
    /// Rate of a connection that starts, and the greatest.
    pub line_rate_bps: Rate,
    /// The least rate.
    pub min_rate_bps: Rate,
    /// Round-trip time below which the rate grows whatever the gradient.
    pub t_low_ps: Span,
    /// Round-trip time above which it falls whatever the gradient.
    pub t_high_ps: Span,
    /// The round-trip time of an idle path, by which gradients are divided.
    pub min_rtt_ps: Span,
    /// Step of an increase.
    pub delta_bps: Rate,
    /// Weight of the newest difference in the average of differences.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
    /// How much of the gradient, or of the excess over `t_high`, a decrease takes.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub beta: f64,
    /// Number of increases in a row by the gradient after which steps become five times as long.
    pub hai_after: u32,
    /// Data between two updates of the rate: the size of a completion.
    pub completion_bytes: Bytes,
}

/// Source: HPCC simulator, `run.py` (for 10 Gbit/s)
impl Default for TimelyConfig {
    fn default() -> TimelyConfig {
        TimelyConfig {
            line_rate_bps: Rate::from_gbit_per_s(10),
            min_rate_bps: Rate::from_bps(100_000_000),
            t_low_ps: Span::from_us(50),
            t_high_ps: Span::from_us(500),
            min_rtt_ps: Span::from_us(20),
            delta_bps: Rate::from_bps(10_000_000),
            gain: 0.875,
            beta: 0.8,
            hai_after: 5,
            completion_bytes: Bytes::new(16_384),
        }
    }
}

impl Settings for TimelyConfig {
    type Control = Timely;
    const PRESET: Option<fn() -> Self> = Some(Self::default);

    fn check(&self) -> Result<(), SpecError> {
        above_zero_to(1.0, "/gain", self.gain)?;
        above_zero_to(1.0, "/beta", self.beta)?;
        if self.min_rate_bps.bps() == 0 || self.min_rate_bps > self.line_rate_bps {
            let message =
                format!("above 0 and at most the line rate, {} (got {})", self.line_rate_bps, self.min_rate_bps);
            return Err(SpecError::new("/min_rate_bps", message));
        }
        if self.t_low_ps >= self.t_high_ps {
            let message = format!("below 't_high', {} (got {})", self.t_high_ps, self.t_low_ps);
            return Err(SpecError::new("/t_low_ps", message));
        }
        some_time("/min_rtt_ps", self.min_rtt_ps)
    }

    fn make(&self, setup: Setup<'_>) -> Timely {
        Timely::new(setup.connection.segment_bytes, self)
    }
}

/// A rate, by the average of the differences of successive round-trip times d, `diff += gain (d - d_before - diff)`, as a gradient g = diff / min rtt:
///
/// ```text
/// d < t_low:    R += delta
/// d > t_high:   R *= 1 - beta (1 - t_high / d)
/// g <= 0:       R += N delta,   N = 5 after `hai_after` such updates in a row, else 1
/// g > 0:        R *= 1 - beta g
/// ```
///
/// Source: Mittal 2015, algorithm 1, section 4.3 (hyperactive increase)
/// DEVIATION: a completion is so many acknowledged bytes, and its round-trip time that of the last acknowledgement.
/// DEVIATION: what is in flight is at most what the rate sends in twice `t_high`; a loss halves the rate (there are none under PFC).
#[derive(Clone, Debug)]
pub struct Timely {
    config: TimelyConfig,
    segment: u64,
    /// bit/s.
    rate: f64,
    before: Option<f64>,
    diff: f64,
    falling: u32,
    counted: u64,
}

impl Timely {
    /// Full segments of `segment`.
    pub fn new(segment: Bytes, config: &TimelyConfig) -> Timely {
        let rate = config.line_rate_bps.bps() as f64;
        Timely { config: *config, segment: segment.count(), rate, before: None, diff: 0.0, falling: 0, counted: 0 }
    }

    fn on_completion(&mut self, rtt: Span) {
        let (config, delay) = (self.config, rtt.as_secs_f64());
        let Some(before) = self.before.replace(delay) else { return };
        self.diff += config.gain * (delay - before - self.diff);
        let gradient = self.diff / config.min_rtt_ps.as_secs_f64();
        let (low, high) = (config.t_low_ps.as_secs_f64(), config.t_high_ps.as_secs_f64());
        let delta = config.delta_bps.bps() as f64;
        let is_between = (low..=high).contains(&delay);
        self.falling = if is_between && gradient <= 0.0 { self.falling + 1 } else { 0 };
        if delay < low {
            self.rate += delta;
        } else if delay > high {
            self.rate *= 1.0 - config.beta * (1.0 - high / delay);
        } else if gradient <= 0.0 {
            self.rate += if self.falling >= config.hai_after { 5.0 * delta } else { delta };
        } else {
            self.rate *= (1.0 - config.beta * gradient).max(0.0);
        }
        self.bound();
    }

    fn bound(&mut self) {
        self.rate = self.rate.clamp(self.config.min_rate_bps.bps() as f64, self.config.line_rate_bps.bps() as f64);
    }
}

impl CongestionControl for Timely {
    fn on_event(&mut self, _now: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Ack(ack) => {
                self.counted += ack.bytes.count();
                if let Some(rtt) = ack.rtt.filter(|_| self.counted >= self.config.completion_bytes.count()) {
                    self.counted = 0;
                    self.on_completion(rtt);
                }
            }
            SenderEvent::Congestion { cause: Cause::Loss, .. } | SenderEvent::Collapse => {
                self.rate /= 2.0;
                self.bound();
            }
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        let rate = Rate::from_bps(self.rate as u64);
        let flight = self.rate / 8.0 * 2.0 * self.config.t_high_ps.as_secs_f64();
        let window = Bytes::new((flight as u64).max(2 * self.segment));
        let pace = Pace::Rate { rate, quantum: Bytes::new(self.segment) };
        Allowance { pace, ..Allowance::of_window(window, window) }
    }

    fn needs(&self) -> Needs {
        Needs::PLAIN
    }

    fn metrics(&self) -> Metrics {
        Metrics { rate: Some(Rate::from_bps(self.rate as u64)), ..Metrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timely(gbit_per_s: f64) -> Timely {
        let mut timely = Timely::new(Bytes::new(1000), &TimelyConfig::default());
        timely.rate = gbit_per_s * 1e9;
        timely
    }

    fn us(us: u64) -> Span {
        Span::from_us(us)
    }

    #[test]
    fn below_t_low_it_grows_and_above_t_high_it_falls_whatever_the_gradient() {
        let mut timely = timely(2.0);
        timely.on_completion(us(20));
        assert!((timely.rate - 2e9).abs() < 1.0, "there is no difference yet");
        timely.on_completion(us(49));
        assert!((timely.rate - 2.01e9).abs() < 1.0);
        timely.on_completion(us(1000));
        // 1 - 0.8 (1 - 500 / 1000)
        assert!((timely.rate - 2.01e9 * 0.6).abs() < 1.0);
        timely.on_completion(us(600));
        assert!((timely.rate - 2.01e9 * 0.6 * (1.0 - 0.8 / 6.0)).abs() < 1.0, "though it falls");
    }

    #[test]
    fn between_the_gradient_decides_and_falling_often_lengthens_the_steps() {
        let mut timely = timely(2.0);
        timely.on_completion(us(100));
        timely.on_completion(us(102));
        // diff = 0.875 x 2 us, g = 1.75 / 20.
        assert!((timely.rate - 2e9 * (1.0 - 0.8 * 0.0875)).abs() < 1.0);
        let before = timely.rate;
        for _ in 0..4 {
            timely.diff = -1e-9;
            timely.on_completion(us(102));
        }
        assert!((timely.rate - before - 4e7).abs() < 1.0);
        timely.on_completion(us(102));
        assert!((timely.rate - before - 9e7).abs() < 1.0, "the fifth in a row");
    }

    #[test]
    fn a_rate_stays_within_its_bounds_and_is_updated_by_completion() {
        let mut timely = timely(10.0);
        timely.on_completion(us(20));
        timely.on_completion(us(20));
        assert_eq!(timely.allowance().pace, Pace::Rate { rate: Rate::from_gbit_per_s(10), quantum: Bytes::new(1000) });
        timely.on_completion(us(300));
        timely.on_completion(us(400));
        assert!((timely.rate - 1e8).abs() < 1.0, "a steep gradient: the least rate");
        let ack = |bytes: u64| crate::cc::Acked {
            bytes: Bytes::new(bytes),
            number: 0,
            next: 0,
            prior_flight: Bytes::ZERO,
            srtt: None,
            rtt: Some(us(20)),
            may_grow: true,
        };
        timely.on_event(Time::ZERO, &SenderEvent::Ack(ack(16_000)));
        assert!((timely.rate - 1e8).abs() < 1.0);
        timely.on_event(Time::ZERO, &SenderEvent::Ack(ack(384)));
        assert!((timely.rate - 1.1e8).abs() < 1.0);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let place = |config: TimelyConfig| config.check().expect_err("it makes no sense").pointer;
        let plain = TimelyConfig::default();
        assert_eq!(place(TimelyConfig { gain: 0.0, ..plain }), "/gain");
        assert_eq!(place(TimelyConfig { min_rate_bps: Rate::from_gbit_per_s(11), ..plain }), "/min_rate_bps");
        assert_eq!(place(TimelyConfig { t_low_ps: us(500), ..plain }), "/t_low_ps");
        assert_eq!(place(TimelyConfig { min_rtt_ps: Span::ZERO, ..plain }), "/min_rtt_ps");
        assert_eq!(plain.check(), Ok(()));
    }
}
