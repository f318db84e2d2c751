//! CUBIC.

use crate::cc::reno::is_limiting;
use crate::cc::{Acked, Allowance, CongestionControl, SenderEvent};
use crate::units::{Bytes, Span, Time};

/// The window grows as a cubic function of the time since the last congestion, flat where that happened; at least as
/// fast as Reno would.
///
/// Source: RFC 9438, 4. Windows are in segments, times in seconds, as there. HyStart (RFC 9406) is not part of it.
#[derive(Clone, Debug)]
pub struct Cubic {
    segment: u64,
    c: f64,
    beta: f64,
    fast_convergence: bool,
    /// In segments.
    cwnd: f64,
    threshold: f64,
    /// Window just before the last congestion, reduced further by fast convergence.
    w_max: f64,
    /// Window that Reno would have.
    w_est: f64,
    /// Window just before the last congestion: Reno's estimate grows faster until it is reached again.
    cwnd_prior: f64,
    /// Of the current stage of congestion avoidance.
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Time until the window is `w_max` again.
    k: f64,
}

/// Slow start grows by at most so many segments for one acknowledgement.
///
/// Source: RFC 3465, 2.2.
const LIMIT: f64 = 2.0;
/// Least threshold in segments.
///
/// Source: RFC 5681, equation 4.
const LEAST: f64 = 2.0;

impl Cubic {
    /// Full segments of `segment`; starts with the window `initial`. `c` in segments/s^3.
    pub fn new(segment: Bytes, initial: Bytes, c: f64, beta: f64, fast_convergence: bool) -> Cubic {
        let cwnd = initial.count() as f64 / segment.count() as f64;
        Cubic {
            segment: segment.count(),
            c,
            beta,
            fast_convergence,
            cwnd,
            threshold: f64::INFINITY,
            w_max: 0.0,
            w_est: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
        }
    }

    fn window(&self) -> u64 {
        (self.cwnd * self.segment as f64) as u64
    }

    fn on_ack(&mut self, now: Time, ack: &Acked) {
        let in_slow_start = self.cwnd < self.threshold;
        if !ack.may_grow || !is_limiting(self.window(), self.segment, in_slow_start, ack.prior_flight) {
            return;
        }
        let acked = ack.bytes.count() as f64 / self.segment as f64;
        if in_slow_start {
            self.cwnd += acked.min(LIMIT);
            return;
        }
        let srtt = ack.srtt.unwrap_or(Span::ZERO).as_secs_f64();
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.w_max = self.w_max.max(self.cwnd);
            self.w_est = self.cwnd;
            Epoch { start: now, k: libm::cbrt((self.w_max - self.cwnd) / self.c) }
        });
        let t = now.saturating_since(epoch.start).as_secs_f64();
        self.w_est += self.alpha() * acked / self.cwnd;
        let w_cubic = self.w_cubic(t, epoch.k);
        if w_cubic < self.w_est {
            self.cwnd = self.cwnd.max(self.w_est);
            return;
        }
        // 4.4 and 4.5: towards the window one round trip ahead, by half of the window at most.
        let target = self.w_cubic(t + srtt, epoch.k).clamp(self.cwnd, 1.5 * self.cwnd);
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
        let flight = flight.count() as f64 / self.segment as f64;
        self.threshold = (flight * self.beta).max(LEAST);
        self.epoch = None;
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
            }
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: Bytes::new(self.window()), pacing: None }
    }

    #[inline]
    fn threshold(&self) -> Bytes {
        // An infinite threshold is the largest number.
        Bytes::new((self.threshold * self.segment as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Cause;

    const SEGMENT: u64 = 1000;
    const RTT: Span = Span::from_ms(100);

    /// After a reduction from `window` segments: the windows at the end of each round trip.
    fn after_a_loss_at(window: f64, rounds: u64) -> Vec<f64> {
        let initial = Bytes::new((window * SEGMENT as f64) as u64);
        let mut cubic = Cubic::new(Bytes::new(SEGMENT), initial, 0.4, 0.7, true);
        cubic.on_event(Time::ZERO, &SenderEvent::Congestion { cause: Cause::Loss, flight: initial });
        cubic.on_event(Time::ZERO, &SenderEvent::Recovered { window: cubic.threshold() });
        let round = |round: u64| {
            let acks = cubic.cwnd as u64;
            for ack in 0..acks {
                let now = Time::ZERO + RTT * round + Span::from_ps(RTT.ps() * ack / acks);
                let ack = Acked {
                    bytes: Bytes::new(cubic.window() / acks),
                    prior_flight: Bytes::new(cubic.window()),
                    srtt: Some(RTT),
                    rtt: None,
                    may_grow: true,
                };
                cubic.on_event(now, &SenderEvent::Ack(ack));
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
        let mut cubic = Cubic::new(Bytes::new(SEGMENT), Bytes::new(100 * SEGMENT), 0.4, 0.7, true);
        let loss = |flight: f64| SenderEvent::Congestion {
            cause: Cause::Loss,
            flight: Bytes::new((flight * SEGMENT as f64) as u64),
        };
        cubic.on_event(Time::ZERO, &loss(100.0));
        assert_eq!((cubic.w_max, cubic.threshold()), (100.0, Bytes::new(70 * SEGMENT)));
        cubic.on_event(Time::ZERO, &SenderEvent::Recovered { window: Bytes::new(70 * SEGMENT) });
        cubic.on_event(Time::ZERO, &loss(70.0));
        assert!((cubic.w_max - 59.5).abs() < 1e-9, "{}", cubic.w_max);
    }
}
