//! Rapid over TCP: p-streams, and a window only while losses are repaired.

use crate::cc::slow_start::LIMIT_AFTER_TIMEOUT;
use crate::cc::{Acked, Allowance, Cause, CongestionControl, Departed, Pacing, SenderEvent};
use crate::rapid::{self, Probing};
use crate::units::{Bytes, Rate, Span, Time};

/// Segments leave in p-streams at the times that [`Probing`] sets, whatever is in flight. Losses end that until they are
/// repaired, with the window that the sender's recovery gives; after a timeout it starts with one segment and doubles.
///
/// Source: Rapid UDP, (4): PROBE_STREAM goes off when losses begin to be repaired and at a timeout, and on when all is
/// repaired.
#[derive(Debug)]
pub struct Rapid {
    probing: Probing,
    segment: u64,
    framing: Bytes,
    repair: Option<Rate>,
    srtt: Option<Span>,
    /// While losses are repaired after a timeout.
    window: u64,
}

/// More than any receiver lets a sender have in flight.
const UNLIMITED: u64 = 1 << 40;
/// Segments below which no reduction brings the window.
///
/// Source: RFC 5681, equation 4.
const LEAST: u64 = 2;

impl Rapid {
    /// For full segments of `segment`, whose frames are as long as `frame`.
    pub fn new(config: &rapid::Config, segment: Bytes, frame: Bytes) -> Rapid {
        Rapid {
            probing: Probing::new(config, frame + config.framing_bytes),
            segment: segment.count(),
            framing: config.framing_bytes,
            repair: config.repair_bps,
            srtt: None,
            window: UNLIMITED,
        }
    }

    /// Its p-streams.
    pub fn probing(&mut self) -> &mut Probing {
        &mut self.probing
    }

    fn is_on(&self) -> bool {
        self.probing.state() == rapid::ProbeState::On
    }

    fn on_ack(&mut self, ack: &Acked) {
        self.srtt = ack.srtt.or(self.srtt);
        if !self.is_on() && self.window < UNLIMITED {
            // Slow start: RFC 5681, 3.1, with the bytes that RFC 3465 counts after a timeout.
            let grown = self.window + ack.bytes.count().min(LIMIT_AFTER_TIMEOUT * self.segment);
            self.window = grown.min(self.threshold().count().max(self.window));
        }
    }
}

impl CongestionControl for Rapid {
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Ack(ref ack) => self.on_ack(ack),
            SenderEvent::Congestion { cause: Cause::Timeout, .. } | SenderEvent::Recovered { .. } => {}
            SenderEvent::Congestion { .. } => self.probing.on_off(now, rapid::ProbeState::OffRecovery),
            SenderEvent::Collapse => {
                self.probing.on_off(now, rapid::ProbeState::OffTimeout);
                self.window = self.segment;
            }
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let repair = self.repair.filter(|_| !self.is_on());
        let pacing = repair.map(|rate| Pacing { rate, quantum: Bytes::ZERO });
        Allowance { window: Bytes::new(self.window), pacing }
    }

    /// What the rate, reduced already, has in flight.
    fn threshold(&self) -> Bytes {
        let flight = self.srtt.map_or(0, |srtt| (self.probing.rate() * srtt).count());
        Bytes::new(flight.max(LEAST * self.segment))
    }

    #[inline]
    fn departure(&self) -> Option<Time> {
        self.probing.due()
    }

    fn on_sent(&mut self, now: Time, sent: &Departed) {
        self.probing.on_sent(now, sent.number, sent.frame + self.framing);
    }

    fn on_left(&mut self, at: Time) {
        self.probing.on_left(at);
    }

    fn on_idle(&mut self, now: Time) {
        self.probing.on_idle(now);
    }

    fn on_arrival(&mut self, now: Time, number: u64, received: Time) {
        self.probing.on_arrival(now, number, received);
    }

    fn on_repaired(&mut self, now: Time) {
        self.window = UNLIMITED;
        self.probing.on_on(now);
    }
}
