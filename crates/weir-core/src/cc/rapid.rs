//! Rapid over TCP: p-streams, and a window only while losses are repaired.

use crate::cc::slow_start::LIMIT_AFTER_TIMEOUT;
use crate::cc::{Acked, Allowance, Cause, CongestionControl, Metrics, Needs, Pace, SenderEvent, Settings, Setup};
use crate::columns::Named;
use crate::error::SpecError;
use crate::rapid::{self, LogWriter, Probing};
use crate::units::{Bytes, Rate, Span, Time};

impl Settings for Box<rapid::Config> {
    type Control = Rapid;

    const TIMES_SEGMENTS: bool = true;

    fn check(&self) -> Result<(), SpecError> {
        rapid::Config::check(self)
    }

    fn make(&self, setup: Setup<'_>) -> Rapid {
        Rapid::new(self, setup.connection.segment_bytes, setup.connection.full_frame(), setup.log)
    }
}

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
    /// For full segments of `segment`, whose frames are as long as `frame`; writes its streams and states to `log`.
    pub fn new(config: &rapid::Config, segment: Bytes, frame: Bytes, log: LogWriter) -> Rapid {
        Rapid {
            probing: Probing::new(config, frame + config.framing_bytes, log),
            segment: segment.count(),
            framing: config.framing_bytes,
            repair: config.repair_bps,
            srtt: None,
            window: UNLIMITED,
        }
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

    /// What the rate, reduced already, has in flight.
    #[inline]
    fn threshold(&self) -> Bytes {
        let flight = self.srtt.map_or(0, |srtt| (self.probing.rate() * srtt).count());
        Bytes::new(flight.max(LEAST * self.segment))
    }

    #[inline]
    fn pace(&self) -> Pace {
        match (self.probing.due(), self.repair) {
            (Some(due), _) => Pace::At(due),
            (None, Some(rate)) if !self.is_on() => Pace::Rate { rate, quantum: Bytes::ZERO },
            (None, _) => Pace::AtOnce,
        }
    }
}

impl CongestionControl for Rapid {
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Ack(ref ack) => self.on_ack(ack),
            SenderEvent::Sent(ref sent) => self.probing.on_sent(now, sent.number, sent.frame + self.framing),
            SenderEvent::Left { at } => self.probing.on_left(at),
            SenderEvent::Idle => self.probing.on_idle(now),
            SenderEvent::Arrived { number, received } => self.probing.on_arrival(now, number, received),
            SenderEvent::Congestion { cause: Cause::Loss | Cause::EcnEcho, .. } => {
                self.probing.on_off(now, rapid::ProbeState::OffRecovery);
            }
            SenderEvent::Collapse => {
                self.probing.on_off(now, rapid::ProbeState::OffTimeout);
                self.window = self.segment;
            }
            SenderEvent::Repaired => {
                self.window = UNLIMITED;
                self.probing.on_on(now);
            }
            _ => {}
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { pace: self.pace(), ..Allowance::of_window(Bytes::new(self.window), self.threshold()) }
    }

    fn needs(&self) -> Needs {
        Needs { departures: true, ..Needs::PLAIN }
    }

    fn metrics(&self) -> Metrics {
        let stage = Some(self.probing.state().name());
        Metrics { stage, rate: Some(self.probing.rate()), ..Metrics::default() }
    }
}
