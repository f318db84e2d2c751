//! CUBIC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::reno::is_limiting;
use crate::cc::slow_start::Growth;
use crate::cc::{Acked, Allowance, CongestionControl, SenderEvent, Settings, Setup, SlowStart};
use crate::error::{SpecError, above_zero_to, refuse};
use crate::units::{Bytes, Span, Time};

/// Settings of [`Cubic`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CubicConfig {
    /// How fast the window grows [segments/s^3].
    pub c: f64,
    /// What is left of the window after a loss.
    pub beta: f64,
    /// Whether the plateau is lowered further while windows shrink.
    pub fast_convergence: bool,
    /// What ends the first slow start: a loss or a mark, or round-trip times that grow, too (`hystart++`, RFC 9406).
    pub slow_start: SlowStart,
}

/// The constants of RFC 9438, and HyStart++, which it asks for (4.10).
impl Default for CubicConfig {
    fn default() -> CubicConfig {
        CubicConfig { c: 0.4, beta: 0.7, fast_convergence: true, slow_start: SlowStart::HyStart }
    }
}

impl Settings for CubicConfig {
    type Control = Cubic;
    const PRESET: Option<fn() -> Self> = Some(Self::default);

    fn check(&self) -> Result<(), SpecError> {
        above_zero_to(1000.0, "/c", self.c)?;
        let beta = self.beta;
        refuse!(!(beta > 0.0 && beta < 1.0), "/beta", "a number between 0 and 1 (got {beta})");
        Ok(())
    }

    fn make(&self, setup: Setup<'_>) -> Cubic {
        Cubic::new(setup.connection.segment_bytes, setup.connection.initial_window(), self)
    }
}

/// The window grows as a cubic function of the time since the last congestion, flat where that happened; at least as
/// fast as Reno would.
///
/// Source: RFC 9438, 4. Windows are in segments, times in seconds, as there.
#[derive(Clone, Debug)]
pub struct Cubic {
    segment: u64,
    c: f64,
    beta: f64,
    fast_convergence: bool,
    /// The initial window, in segments as the others.
    initial: f64,
    cwnd: f64,
    /// In bytes, as the window is reported, so that a window that is set to it is not below it.
    threshold: u64,
    /// Window just before the last congestion, reduced further by fast convergence.
    w_max: f64,
    /// Window that Reno would have.
    w_est: f64,
    /// Window just before the last congestion: Reno's estimate grows faster until it is reached again.
    cwnd_prior: f64,
    /// Of the current stage of congestion avoidance.
    epoch: Option<Epoch>,
    growth: Growth,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Time in which the window bounded what was in flight, up to the last acknowledgement.
    grown_for: Span,
    last_ack: Time,
    /// Time until the window is `w_max` again.
    k: f64,
}

impl Epoch {
    /// The window was not used up: that time does not count.
    fn skip(&mut self, now: Time) {
        self.last_ack = now;
    }

    /// The window was used up. While it is, no two acknowledgements are more than `round_trip` apart: what is longer was a
    /// pause.
    ///
    /// Source: RFC 9438, 5.8.
    fn count(&mut self, now: Time, round_trip: Span) -> f64 {
        self.grown_for += now.saturating_since(self.last_ack).min(round_trip);
        self.last_ack = now;
        self.grown_for.as_secs_f64()
    }
}

/// Least threshold in segments.
///
/// Source: RFC 5681, equation 4.
const LEAST: u64 = 2;

impl Cubic {
    /// Full segments of `segment`; starts with the window `initial`.
    pub fn new(segment: Bytes, initial: Bytes, config: &CubicConfig) -> Cubic {
        let CubicConfig { c, beta, fast_convergence, slow_start } = *config;
        let cwnd = initial.count() as f64 / segment.count() as f64;
        Cubic {
            segment: segment.count(),
            c,
            beta,
            fast_convergence,
            initial: cwnd,
            cwnd,
            threshold: u64::MAX,
            w_max: 0.0,
            w_est: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            growth: Growth::new(segment, slow_start),
        }
    }

    /// To the nearest byte: whole bytes survive the way through segments.
    #[inline]
    fn window(&self) -> u64 {
        (self.cwnd * self.segment as f64 + 0.5) as u64
    }

    fn on_ack(&mut self, now: Time, ack: &Acked) {
        let window = self.window();
        let in_slow_start = window < self.threshold;
        let may_grow = ack.may_grow && is_limiting(window, self.segment, in_slow_start, ack.prior_flight);
        if in_slow_start {
            let step = self.growth.on_ack(ack);
            self.cwnd += if may_grow { step.bytes as f64 / self.segment as f64 } else { 0.0 };
            if step.ends {
                self.threshold = self.window();
            }
            return;
        }
        if !may_grow {
            self.epoch.iter_mut().for_each(|epoch| epoch.skip(now));
            return;
        }
        let acked = ack.bytes.count() as f64 / self.segment as f64;
        let epoch = self.epoch.get_or_insert_with(|| {
            self.w_max = self.w_max.max(self.cwnd);
            self.w_est = self.cwnd;
            Epoch { grown_for: Span::ZERO, last_ack: now, k: libm::cbrt((self.w_max - self.cwnd) / self.c) }
        });
        let srtt = ack.srtt.unwrap_or(Span::ZERO);
        let (t, k) = (epoch.count(now, srtt.max(ack.rtt.unwrap_or(Span::ZERO))), epoch.k);
        self.w_est += self.alpha() * acked / self.cwnd;
        let w_cubic = self.w_cubic(t, k);
        if w_cubic < self.w_est {
            self.cwnd = self.cwnd.max(self.w_est);
            return;
        }
        // 4.4 and 4.5: towards the window one round trip ahead, by half of the window at most.
        let target = self.w_cubic(t + srtt.as_secs_f64(), k).clamp(self.cwnd, 1.5 * self.cwnd);
        self.cwnd += (target - self.cwnd) / self.cwnd * acked;
    }

    /// Source: RFC 9438, equation 1.
    fn w_cubic(&self, t: f64, k: f64) -> f64 {
        self.c * (t - k) * (t - k) * (t - k) + self.w_max
    }

    /// Source: RFC 9438, 4.3.
    fn alpha(&self) -> f64 {
        if self.w_est >= self.cwnd_prior { 1.0 } else { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) }
    }

    /// Source: RFC 9438, 4.6 and 4.7.
    fn on_congestion(&mut self, flight: Bytes) {
        self.cwnd_prior = self.cwnd;
        let shrinks = self.cwnd < self.w_max;
        self.w_max = if self.fast_convergence && shrinks { self.cwnd * (1.0 + self.beta) / 2.0 } else { self.cwnd };
        self.threshold = ((flight.count() as f64 * self.beta) as u64).max(LEAST * self.segment);
        self.epoch = None;
        self.growth.on_congestion();
    }

    /// The next stage begins where congestion avoidance does.
    ///
    /// Source: RFC 5681, 4.1.
    fn on_long_idle(&mut self) {
        self.growth.on_long_idle();
        if self.cwnd > self.initial {
            (self.cwnd, self.epoch) = (self.initial, None);
        }
    }
}

impl CongestionControl for Cubic {
    #[inline]
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Ack(ref ack) => self.on_ack(now, ack),
            SenderEvent::Congestion { flight, .. } => self.on_congestion(flight),
            SenderEvent::Recovered { window } => self.cwnd = window.count() as f64 / self.segment as f64,
            SenderEvent::Collapse => {
                // 4.8: the plateau of the next stage is where it begins.
                (self.cwnd, self.w_max, self.epoch) = (1.0, 0.0, None);
                self.growth.on_collapse();
            }
            // Source: RFC 5681, 3.1; RFC 6928, 2.
            SenderEvent::LostSyn => self.cwnd = 1.0,
            SenderEvent::LongIdle => self.on_long_idle(),
            _ => {}
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance::of_window(Bytes::new(self.window()), Bytes::new(self.threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Cause;

    const SEGMENT: u64 = 1000;
    const RTT: Span = Span::from_ms(100);

    fn cubic(initial: Bytes) -> Cubic {
        let config = CubicConfig { slow_start: SlowStart::Standard, ..CubicConfig::default() };
        Cubic::new(Bytes::new(SEGMENT), initial, &config)
    }

    /// An acknowledgement of `bytes` while as much as the window is in flight, or `flight`.
    fn ack(bytes: u64, flight: u64) -> SenderEvent {
        SenderEvent::Ack(Acked {
            bytes: Bytes::new(bytes),
            number: 0,
            next: 0,
            prior_flight: Bytes::new(flight),
            srtt: Some(RTT),
            rtt: None,
            may_grow: true,
        })
    }

    /// After a reduction from `window` segments: the windows at the end of each round trip.
    fn after_a_loss_at(window: f64, rounds: u64) -> Vec<f64> {
        let initial = Bytes::new((window * SEGMENT as f64) as u64);
        let mut cubic = cubic(initial);
        cubic.on_event(Time::ZERO, &SenderEvent::Congestion { cause: Cause::Loss, flight: initial });
        cubic.on_event(Time::ZERO, &SenderEvent::Recovered { window: cubic.allowance().threshold });
        let round = |round: u64| {
            let acks = cubic.cwnd as u64;
            for place in 0..acks {
                let now = Time::ZERO + RTT * round + Span::from_ps(RTT.ps() * place / acks);
                let event = ack(cubic.window() / acks, cubic.window());
                cubic.on_event(now, &event);
            }
            cubic.cwnd
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn the_window_is_back_where_it_was_after_k_seconds() {
        // K = cbrt(1000 x 0.3 / 0.4) = 9.09 s, 91 round trips.
        let windows = after_a_loss_at(1000.0, 150);
        let back = windows.iter().position(|&window| window >= 999.0).expect("it comes back");
        assert!((75..=91).contains(&back), "after {back} round trips");
        assert!(windows.is_sorted());
        // Flat around K, and far above it later.
        assert!(windows[95] - windows[85] < 2.0, "{} {}", windows[85], windows[95]);
        assert!(windows[149] > 1050.0, "{}", windows[149]);
    }

    #[test]
    fn small_windows_grow_as_fast_as_those_of_reno_with_the_same_mean() {
        // 3 (1 - beta) / (1 + beta) = 0.53 segments per round trip.
        let windows = after_a_loss_at(10.0, 5);
        assert!((windows[4] - windows[0] - 4.0 * 0.529).abs() < 0.15, "{windows:?}");
    }

    #[test]
    fn a_window_that_shrinks_twice_gives_room_faster() {
        let mut cubic = cubic(Bytes::new(100 * SEGMENT));
        let loss = |flight: f64| SenderEvent::Congestion {
            cause: Cause::Loss,
            flight: Bytes::new((flight * SEGMENT as f64) as u64),
        };
        cubic.on_event(Time::ZERO, &loss(100.0));
        assert_eq!((cubic.w_max, cubic.allowance().threshold), (100.0, Bytes::new(70 * SEGMENT)));
        cubic.on_event(Time::ZERO, &SenderEvent::Recovered { window: Bytes::new(70 * SEGMENT) });
        cubic.on_event(Time::ZERO, &loss(70.0));
        assert!((cubic.w_max - 59.5).abs() < 1e-9, "{}", cubic.w_max);
    }

    #[test]
    fn time_in_which_the_window_was_not_used_up_does_not_count() {
        let after = |pauses: bool| {
            let mut cubic = cubic(Bytes::new(1000 * SEGMENT));
            let flight = Bytes::new(1000 * SEGMENT);
            cubic.on_event(Time::ZERO, &SenderEvent::Congestion { cause: Cause::Loss, flight });
            cubic.on_event(Time::ZERO, &SenderEvent::Recovered { window: cubic.allowance().threshold });
            let mut now = Time::ZERO;
            for round in 0..30 {
                for _ in 0..10 {
                    now += Span::from_ms(10);
                    let event = ack(cubic.window() / 10, cubic.window());
                    cubic.on_event(now, &event);
                }
                if pauses && round == 9 {
                    // Nothing is under way for a minute.
                    now += Span::from_ms(60_000);
                }
                if pauses && round == 19 {
                    // Next to nothing is, for another one.
                    for _ in 0..600 {
                        now += Span::from_ms(100);
                        cubic.on_event(now, &ack(SEGMENT, 2 * SEGMENT));
                    }
                }
            }
            cubic.cwnd
        };
        let (steady, paused) = (after(false), after(true));
        assert!(steady < 1000.0 && (paused / steady - 1.0).abs() < 0.01, "{paused} segments, not {steady}");
    }

    #[test]
    fn it_leaves_slow_start_without_a_loss_on_a_plateau_where_it_is() {
        let mut cubic = Cubic::new(Bytes::new(SEGMENT), Bytes::new(100 * SEGMENT), &CubicConfig::default());
        let (mut now, mut number, mut next) = (Time::ZERO, 1, 1 + 100 * SEGMENT);
        let mut ends = vec![];
        // Round-trip times grow to what a full queue adds.
        for rtt in (0..5_000).map(|i| Span::from_ms(if i < 250 { 100 } else { 150 })) {
            now += Span::from_ms(1);
            number += 4 * SEGMENT;
            let before = cubic.window();
            let event = Acked {
                bytes: Bytes::new(4 * SEGMENT),
                number,
                next,
                prior_flight: Bytes::new(before),
                srtt: Some(rtt),
                rtt: Some(rtt),
                may_grow: true,
            };
            cubic.on_event(now, &SenderEvent::Ack(event));
            next = number + cubic.window();
            if cubic.threshold < u64::MAX && ends.is_empty() {
                ends.push(cubic.cwnd);
            }
        }
        let plateau = *ends.first().expect("slow start ends");
        assert!((cubic.w_max - plateau).abs() < 1.0, "{} {plateau}", cubic.w_max);
        assert!(cubic.cwnd < plateau + 10.0, "{} {plateau}", cubic.cwnd);
    }
}
