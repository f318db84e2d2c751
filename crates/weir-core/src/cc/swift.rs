//! Swift: the window follows the round-trip time towards a target that grows with the hops and shrinks with the window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::{Allowance, Cause, CongestionControl, Metrics, Needs, Pace, SenderEvent, Settings, Setup};
use crate::error::{SpecError, refuse, some_time};
use crate::units::{Bytes, Rate, Span, Time};

/// Settings of [`Swift`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwiftConfig {
    /// Target of the round-trip time of a connection without hops and with a large window.
    pub base_target_ps: Span,
    /// What each hop adds to it.
    pub per_hop_ps: Span,
    /// Hops of the path, one way.
    pub hops: u32,
    /// Segments that the window grows by in a round-trip time.
    #[schemars(range(min = 0.0))]
    pub additive: f64,
    /// How much of the excess of the round-trip time over the target a decrease takes.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub beta: f64,
    /// The most that a decrease takes.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_decrease: f64,
    /// What the target grows by for the smallest windows.
    pub scaling_range_ps: Span,
    /// Window in segments below which the target grows by all of `scaling_range`.
    #[schemars(range(min = 0.0))]
    pub scaling_least: f64,
    /// Window in segments above which the target does not grow.
    #[schemars(range(min = 0.0))]
    pub scaling_most: f64,
    /// Number of timeouts in a row after which the window falls to its minimum.
    pub reset_after: u32,
}

/// Source: uet-htsim, `swift.cpp` (whose authors call most of its constants guesses)
impl Default for SwiftConfig {
    fn default() -> SwiftConfig {
        SwiftConfig {
            base_target_ps: Span::from_us(20),
            per_hop_ps: Span::from_ns(3053),
            hops: 0,
            additive: 1.0,
            beta: 0.8,
            max_decrease: 0.5,
            scaling_range_ps: Span::from_us(100),
            scaling_least: 0.1,
            scaling_most: 100.0,
            reset_after: 5,
        }
    }
}

impl Settings for SwiftConfig {
    type Control = Swift;
    const PRESET: Option<fn() -> Self> = Some(Self::default);

    fn check(&self) -> Result<(), SpecError> {
        for (name, value) in [("beta", self.beta), ("max_decrease", self.max_decrease)] {
            refuse!(!(value > 0.0 && value < 1.0), format!("/{name}"), "a number above 0 and below 1 (got {value})");
        }
        let additive = self.additive;
        refuse!(!(additive > 0.0 && additive.is_finite()), "/additive", "a number above 0 (got {additive})");
        if !(self.scaling_least > 0.0 && self.scaling_least < self.scaling_most && self.scaling_most.is_finite()) {
            let message =
                format!("above 0 and below 'scaling_most', {} (got {})", self.scaling_most, self.scaling_least);
            return Err(SpecError::new("/scaling_least", message));
        }
        some_time("/base_target_ps", self.base_target_ps)
    }

    fn make(&self, setup: Setup<'_>) -> Swift {
        Swift::new(setup.connection.segment_bytes, setup.connection.initial_window(), self)
    }
}

/// Least and greatest window, in segments.
///
/// Source: Kumar 2020, section 3.5 (windows below one segment, which are paced)
const WINDOWS: (f64, f64) = (0.001, 1e6);

/// One window, by the round-trip time. With a target t and a round-trip time d, in segments and for n acknowledged ones:
///
/// ```text
/// d < t:   w += additive n / w   (w >= 1),   w += additive n   (w < 1)
/// else:    w *= max(1 - beta (d - t) / d, 1 - max_decrease),   once in a round-trip time
/// t = base + hops x per hop + clamp(a / sqrt(w) + b, 0, range)
/// ```
///
/// A window below one segment is one segment in flight, paced at `w / d`.
///
/// Source: Kumar 2020, algorithm 1, equation 1 (target)
/// DEVIATION: one window for the delay of the network and of the hosts together: receivers here answer at once. There is no second one.
/// DEVIATION: hops are a setting.
#[derive(Clone, Debug)]
pub struct Swift {
    config: SwiftConfig,
    segment: u64,
    /// In segments.
    window: f64,
    decreased: Option<Time>,
    rtt: Span,
    timeouts: u32,
}

impl Swift {
    /// Full segments of `segment`; starts with the window `initial`.
    pub fn new(segment: Bytes, initial: Bytes, config: &SwiftConfig) -> Swift {
        let window = initial.count() as f64 / segment.count() as f64;
        Swift { config: *config, segment: segment.count(), window, decreased: None, rtt: Span::ZERO, timeouts: 0 }
    }

    /// The target of the round-trip time.
    fn target(&self) -> f64 {
        let config = &self.config;
        let root = |window: f64| 1.0 / window.sqrt();
        let range = config.scaling_range_ps.as_secs_f64();
        let slope = range / (root(config.scaling_least) - root(config.scaling_most));
        let scaling = (slope * (root(self.window) - root(config.scaling_most))).clamp(0.0, range);
        config.base_target_ps.as_secs_f64() + f64::from(config.hops) * config.per_hop_ps.as_secs_f64() + scaling
    }

    /// Whether a round-trip time has passed since the last decrease.
    fn may_decrease(&self, now: Time) -> bool {
        self.decreased.is_none_or(|at| now.saturating_since(at) >= self.rtt)
    }

    fn decrease(&mut self, now: Time, factor: f64) {
        if self.may_decrease(now) {
            (self.window, self.decreased) = ((self.window * factor).max(WINDOWS.0), Some(now));
        }
    }

    fn on_delay(&mut self, now: Time, bytes: Bytes, rtt: Span) {
        self.timeouts = 0;
        let (delay, target) = (rtt.as_secs_f64(), self.target());
        if delay < target {
            let segments = bytes.count() as f64 / self.segment as f64;
            self.window += self.config.additive * segments / self.window.max(1.0);
            self.window = self.window.min(WINDOWS.1);
        } else {
            let factor = 1.0 - self.config.beta * (delay - target) / delay;
            self.decrease(now, factor.max(1.0 - self.config.max_decrease));
        }
        self.rtt = rtt;
    }
}

impl CongestionControl for Swift {
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Established { rtt: Some(rtt) } => self.rtt = rtt,
            SenderEvent::Ack(ack) => {
                if let Some(rtt) = ack.rtt {
                    self.on_delay(now, ack.bytes, rtt);
                }
            }
            SenderEvent::Congestion { cause: Cause::Loss, .. } => self.decrease(now, 1.0 - self.config.max_decrease),
            SenderEvent::Collapse => {
                self.timeouts += 1;
                if self.timeouts >= self.config.reset_after {
                    self.window = WINDOWS.0;
                } else {
                    self.decrease(now, 1.0 - self.config.max_decrease);
                }
            }
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        let window = Bytes::new((self.window.max(1.0) * self.segment as f64) as u64);
        let plain = Allowance::of_window(window, window);
        if self.window >= 1.0 || self.rtt == Span::ZERO {
            return plain;
        }
        let bps = self.window * (8 * self.segment) as f64 / self.rtt.as_secs_f64();
        let rate = Rate::from_bps((bps as u64).max(1));
        Allowance { pace: Pace::Rate { rate, quantum: Bytes::new(self.segment) }, ..plain }
    }

    fn needs(&self) -> Needs {
        Needs::PLAIN
    }

    fn metrics(&self) -> Metrics {
        Metrics { min_rtt: Some(self.rtt).filter(|rtt| *rtt > Span::ZERO), ..Metrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Acked;

    const SEGMENT: u64 = 1000;

    fn swift(window: u64, config: SwiftConfig) -> Swift {
        Swift::new(Bytes::new(SEGMENT), Bytes::new(window * SEGMENT), &config)
    }

    fn ack(swift: &mut Swift, at_us: u64, segments: u64, rtt: Span) {
        let acked = Acked {
            bytes: Bytes::new(segments * SEGMENT),
            number: 0,
            next: 0,
            prior_flight: Bytes::ZERO,
            srtt: Some(rtt),
            rtt: Some(rtt),
            may_grow: true,
        };
        swift.on_event(Time::ZERO + Span::from_us(at_us), &SenderEvent::Ack(acked));
    }

    fn us(us: u64) -> Span {
        Span::from_us(us)
    }

    #[test]
    fn the_target_is_the_base_the_hops_and_what_small_windows_add() {
        let target =
            |window: f64| Swift { window, ..swift(1, SwiftConfig { hops: 5, ..SwiftConfig::default() }) }.target();
        let base = 20e-6 + 5.0 * 3.053e-6;
        // a / sqrt(w) + b with a = 100 us / (1 / sqrt(0.1) - 1 / sqrt(100)).
        let slope = 100e-6 / (1.0 / 0.1_f64.sqrt() - 0.1);
        for (window, adds) in [(100.0, 0.0), (1000.0, 0.0), (0.1, 100e-6), (0.01, 100e-6), (4.0, slope * (0.5 - 0.1))] {
            assert!((target(window) - base - adds).abs() < 1e-12, "{window}");
        }
    }

    #[test]
    fn a_window_grows_by_one_segment_in_a_round_trip_below_the_target() {
        let mut swift = swift(100, SwiftConfig::default());
        for place in 0..100 {
            ack(&mut swift, place, 1, us(10));
        }
        // 100 acknowledgements of one segment each: the sum of 1 / w is a little less than 1.
        assert!((swift.window - 101.0).abs() < 0.01, "{}", swift.window);
        let mut small = Swift { window: 0.25, ..swift };
        ack(&mut small, 0, 1, us(10));
        assert!((small.window - 1.25).abs() < 1e-12);
    }

    #[test]
    fn a_delay_above_the_target_takes_its_share_once_in_a_round_trip() {
        let mut swift = swift(200, SwiftConfig::default());
        ack(&mut swift, 0, 1, us(25));
        // 1 - 0.8 x 5 / 25
        assert!((swift.window - 200.0 * 0.84).abs() < 1e-9);
        ack(&mut swift, 24, 1, us(25));
        assert!((swift.window - 168.0).abs() < 1e-9, "not within 25 us");
        ack(&mut swift, 25, 1, us(400));
        assert!((swift.window - 84.0).abs() < 1e-9, "and by half at most");
    }

    #[test]
    fn timeouts_in_a_row_bring_the_least_window_which_is_paced() {
        let mut swift = swift(64, SwiftConfig::default());
        ack(&mut swift, 0, 1, us(10));
        for place in 0..5 {
            swift.on_event(Time::ZERO + Span::from_ms(1 + place), &SenderEvent::Collapse);
        }
        assert_eq!(swift.window, WINDOWS.0);
        let allowance = swift.allowance();
        assert_eq!(allowance.window, Bytes::new(SEGMENT));
        // 0.001 segments of 8000 bit in 10 us.
        let Pace::Rate { rate, .. } = allowance.pace else { panic!("it is paced") };
        assert!(rate.bps().abs_diff(800_000) <= 1, "{rate}");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let place = |config: SwiftConfig| config.check().expect_err("it makes no sense").pointer;
        let plain = SwiftConfig::default();
        assert_eq!(place(SwiftConfig { beta: 1.0, ..plain }), "/beta");
        assert_eq!(place(SwiftConfig { additive: 0.0, ..plain }), "/additive");
        assert_eq!(place(SwiftConfig { scaling_least: 100.0, ..plain }), "/scaling_least");
        assert_eq!(place(SwiftConfig { base_target_ps: Span::ZERO, ..plain }), "/base_target_ps");
        assert_eq!(plain.check(), Ok(()));
    }
}
