//! Reno: slow start and congestion avoidance.

use crate::cc::{Acked, Allowance, CongestionControl, SenderEvent};
use crate::units::{Bytes, Time};

/// Slow start, then a segment more for each window of data that is acknowledged; half of the window after congestion.
///
/// Source: RFC 5681, 3.1; RFC 3465, 2. Slow start counts bytes and grows by at most two segments per
/// acknowledgement, so that a receiver that acknowledges every second segment does not slow it down.
#[derive(Clone, Debug)]
pub struct Reno {
    segment: u64,
    window: u64,
    threshold: u64,
    /// Bytes acknowledged since congestion avoidance grew the window last.
    counted: u64,
}

/// Segments by which slow start grows at most for one acknowledgement: L.
///
/// Source: RFC 3465, 2.2.
const LIMIT: u64 = 2;
/// Segments below which congestion does not bring the threshold.
///
/// Source: RFC 5681, equation 4.
const LEAST: u64 = 2;

impl Reno {
    /// Full segments of `segment`; starts with the window `initial`.
    pub fn new(segment: Bytes, initial: Bytes) -> Reno {
        Reno { segment: segment.count(), window: initial.count(), threshold: u64::MAX, counted: 0 }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Acked) {
        if !ack.may_grow || !is_limiting(self.window, self.segment, self.in_slow_start(), ack.prior_flight) {
            return;
        }
        let bytes = ack.bytes.count();
        if self.in_slow_start() {
            self.window += bytes.min(LIMIT * self.segment);
            return;
        }
        self.counted += bytes;
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.segment;
        }
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
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
            }
            SenderEvent::Recovered { window } => self.window = window.count(),
            SenderEvent::Collapse => self.window = self.segment,
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: Bytes::new(self.window), pacing: None }
    }

    #[inline]
    fn threshold(&self) -> Bytes {
        Bytes::new(self.threshold)
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
        let ack = Acked { bytes, prior_flight, srtt: None, rtt: None, may_grow: true };
        reno.on_event(Time::ZERO, &SenderEvent::Ack(ack));
        reno.window / SEGMENT
    }

    fn reno() -> Reno {
        Reno::new(Bytes::new(SEGMENT), Bytes::new(10 * SEGMENT))
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
        reno.on_event(Time::ZERO, &SenderEvent::Recovered { window: reno.threshold() });
        let windows: Vec<u64> = (0..21).map(|_| ack(&mut reno, 1)).collect();
        assert_eq!((windows[8], windows[9], windows[19], windows[20]), (10, 11, 11, 12));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut reno = reno();
        let ack = Acked {
            bytes: Bytes::new(SEGMENT),
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
