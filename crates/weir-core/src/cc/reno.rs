//! Reno: slow start and congestion avoidance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::slow_start::Growth;
use crate::cc::{Acked, Allowance, CongestionControl, SenderEvent, Settings, Setup, SlowStart};
use crate::units::{Bytes, Time};

/// Settings of [`Reno`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenoConfig {
    /// What ends the first slow start: a loss or a mark, or round-trip times that grow, too (`hystart++`, RFC 9406).
    pub slow_start: SlowStart,
}

impl Default for RenoConfig {
    fn default() -> RenoConfig {
        RenoConfig { slow_start: SlowStart::Standard }
    }
}

impl Settings for RenoConfig {
    type Control = Reno;
    const PRESET: Option<fn() -> Self> = Some(Self::default);

    fn make(&self, setup: Setup<'_>) -> Reno {
        Reno::new(setup.connection.segment_bytes, setup.connection.initial_window(), self.slow_start)
    }
}

/// Slow start, then a segment more for each window of data that is acknowledged; half of the window after congestion.
///
/// Source: RFC 5681, 3.1; RFC 3465, 2. Slow start counts bytes and grows by at most two segments per
/// acknowledgement, so that a receiver that acknowledges every second segment does not slow it down; by one after a timeout.
#[derive(Clone, Debug)]
pub struct Reno {
    segment: u64,
    initial: u64,
    window: u64,
    threshold: u64,
    /// Bytes acknowledged since congestion avoidance grew the window last.
    counted: u64,
    growth: Growth,
}

/// Segments below which congestion does not bring the threshold.
///
/// Source: RFC 5681, equation 4.
const LEAST: u64 = 2;

impl Reno {
    /// Full segments of `segment`; starts with the window `initial`.
    pub fn new(segment: Bytes, initial: Bytes, slow_start: SlowStart) -> Reno {
        let growth = Growth::new(segment, slow_start);
        let (segment, initial) = (segment.count(), initial.count());
        Reno { segment, initial, window: initial, threshold: u64::MAX, counted: 0, growth }
    }

    /// Congestion that takes another part of the window than losses do. What has been counted towards the next segment stays the same
    /// part of one: where marks come once per window, it would never be complete.
    pub(super) fn reduce_to(&mut self, window: u64) {
        self.counted = (u128::from(self.counted) * u128::from(window) / u128::from(self.window.max(1))) as u64;
        (self.window, self.threshold) = (window, window);
        self.growth.on_congestion();
    }

    #[inline]
    fn on_ack(&mut self, ack: &Acked) {
        let in_slow_start = self.window < self.threshold;
        let may_grow = ack.may_grow && is_limiting(self.window, self.segment, in_slow_start, ack.prior_flight);
        if in_slow_start {
            let step = self.growth.on_ack(ack);
            self.window += if may_grow { step.bytes } else { 0 };
            if step.ends {
                self.threshold = self.window;
            }
            return;
        }
        if !may_grow {
            return;
        }
        self.counted += ack.bytes.count();
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.segment;
        }
    }
}

/// Whether the window, and not the application or the receiver, bounds what is in flight. In slow start a window of
/// which half is used may grow.
///
/// Source: RFC 7661, 4.1; Linux, net/ipv4/tcp.h, `tcp_is_cwnd_limited`.
#[inline]
pub(super) fn is_limiting(window: u64, segment: u64, in_slow_start: bool, prior_flight: Bytes) -> bool {
    let flight = prior_flight.count();
    if in_slow_start { 2 * flight > window } else { flight + segment > window }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_event(&mut self, _: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Ack(ref ack) => self.on_ack(ack),
            SenderEvent::Congestion { flight, .. } => {
                self.threshold = (flight.count() / 2).max(LEAST * self.segment);
                self.counted = 0;
                self.growth.on_congestion();
            }
            SenderEvent::Recovered { window } => self.window = window.count(),
            SenderEvent::Collapse => {
                self.window = self.segment;
                self.growth.on_collapse();
            }
            // Source: RFC 5681, 3.1; RFC 6928, 2.
            SenderEvent::LostSyn => self.window = self.segment,
            // Source: RFC 5681, 4.1.
            SenderEvent::LongIdle => {
                self.window = self.window.min(self.initial);
                self.counted = 0;
                self.growth.on_long_idle();
            }
            _ => {}
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance::of_window(Bytes::new(self.window), Bytes::new(self.threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Cause;

    const SEGMENT: u64 = 1000;

    fn ack(reno: &mut Reno, segments: u64) -> u64 {
        let prior_flight = Bytes::new(reno.window);
        let bytes = Bytes::new(segments * SEGMENT);
        let ack = Acked { bytes, number: 0, next: 0, prior_flight, srtt: None, rtt: None, may_grow: true };
        reno.on_event(Time::ZERO, &SenderEvent::Ack(ack));
        reno.window / SEGMENT
    }

    fn reno() -> Reno {
        Reno::new(Bytes::new(SEGMENT), Bytes::new(10 * SEGMENT), SlowStart::Standard)
    }

    #[test]
    fn slow_start_doubles_the_window_in_a_round_trip_and_takes_two_segments_at_a_time() {
        let mut reno = reno();
        (0..5).for_each(|_| _ = ack(&mut reno, 2));
        assert_eq!(reno.window, 20 * SEGMENT);
        assert_eq!(ack(&mut reno, 10), 22);
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_per_window() {
        let mut reno = reno();
        let congestion = SenderEvent::Congestion { cause: Cause::Loss, flight: Bytes::new(20 * SEGMENT) };
        reno.on_event(Time::ZERO, &congestion);
        reno.on_event(Time::ZERO, &SenderEvent::Recovered { window: reno.allowance().threshold });
        let windows: Vec<u64> = (0..21).map(|_| ack(&mut reno, 1)).collect();
        assert_eq!((windows[8], windows[9], windows[19], windows[20]), (10, 11, 11, 12));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut reno = reno();
        let ack = Acked {
            bytes: Bytes::new(SEGMENT),
            number: 0,
            next: 0,
            prior_flight: Bytes::new(5 * SEGMENT),
            srtt: None,
            rtt: None,
            may_grow: true,
        };
        reno.on_event(Time::ZERO, &SenderEvent::Ack(ack));
        assert_eq!(reno.window, 10 * SEGMENT);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_two_as_threshold() {
        let mut reno = reno();
        reno.on_event(Time::ZERO, &SenderEvent::Congestion { cause: Cause::Timeout, flight: Bytes::new(SEGMENT) });
        reno.on_event(Time::ZERO, &SenderEvent::Collapse);
        assert_eq!((reno.window, reno.threshold), (SEGMENT, 2 * SEGMENT));
    }
}
