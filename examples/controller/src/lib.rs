//! A congestion control that Weirlab does not have: Scalable TCP, in a crate of its own.
//!
//! Two methods make a controller: [`CongestionControl::on_event`] reports to it what happens, [`CongestionControl::allowance`] asks what
//! may be in flight. [`parts`] gives it a name, under which settings of connections ask for it; everything else,
//! from the scoreboard to retransmissions, is Weirlab's.

use weir_core::SpecError;
use weir_core::cc::{Allowance, Config, CongestionControl, Controllers, Custom, SenderEvent, Setup};
use weir_core::path::LossModel;
use weir_core::spec::{Network, Spec};
use weir_core::units::{Bytes, Span, Time};
use weir_sim::{Parts, workloads};

/// The window grows by a part of a segment with each segment that is acknowledged, and loses a part of itself when one is lost: so the
/// time between two losses does not depend on the window.
///
/// Source: Kelly 2003, 2.
#[derive(Debug)]
pub struct Scalable {
    /// In bytes, as all of these.
    segment: f64,
    window: f64,
    threshold: f64,
    /// Growth for each byte that is acknowledged.
    increase: f64,
    /// Share of the window that congestion takes.
    decrease: f64,
}

/// Segments below which congestion does not bring the window.
///
/// Source: RFC 5681, equation 4.
const LEAST: f64 = 2.0;

impl Scalable {
    /// The controller of a connection, with the settings `increase` (0.01) and `decrease` (0.125).
    ///
    /// # Errors
    /// A setting that it does not know, or that is not between 0 and 1.
    pub fn new(custom: &Custom, setup: &Setup<'_>) -> Result<Scalable, SpecError> {
        let segment = setup.connection.segment_bytes.count() as f64;
        let window = setup.connection.initial_window().count() as f64;
        let mut scalable = Scalable { segment, window, threshold: f64::INFINITY, increase: 0.01, decrease: 0.125 };
        for (name, &value) in &custom.settings {
            let at = format!("/settings/{name}");
            if !(value > 0.0 && value < 1.0) {
                return Err(SpecError::new(at, format!("a number between 0 and 1 (got {value})")));
            }
            match name.as_str() {
                "increase" => scalable.increase = value,
                "decrease" => scalable.decrease = value,
                other => return Err(SpecError::new(at, format!("'increase' or 'decrease' (got '{other}')"))),
            }
        }
        Ok(scalable)
    }
}

impl CongestionControl for Scalable {
    fn on_event(&mut self, _: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Ack(ack) if ack.may_grow => {
                let grows_by = if self.window < self.threshold { 1.0 } else { self.increase };
                self.window += grows_by * ack.bytes.count() as f64;
            }
            SenderEvent::Congestion { flight, .. } => {
                self.threshold = (flight.count() as f64 * (1.0 - self.decrease)).max(LEAST * self.segment);
            }
            SenderEvent::Recovered { window } => self.window = window.count() as f64,
            SenderEvent::Collapse => self.window = self.segment,
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::of_window(Bytes::new(self.window as u64), Bytes::new(self.threshold as u64))
    }
}

/// The parts of this program.
pub fn parts() -> Parts {
    let make = |custom: &Custom, setup: Setup<'_>| Ok(Box::new(Scalable::new(custom, &setup)?) as Box<_>);
    Parts { controllers: Controllers::new().add("scalable", make), ..Parts::default() }
}

/// One connection with such a controller over 1 Gbit/s and a round trip of 20 ms, on which each frame is lost with `probability`.
pub fn lossy(control: Config, probability: f64, duration: Span) -> Spec {
    let mut spec = workloads::dumbbell(1);
    spec.traffic.truncate(1);
    if let Some(connections) = &mut spec.traffic[0].tcp {
        connections.config.congestion_control = control;
    }
    if let Network::Dumbbell { bottleneck, .. } = &mut spec.network {
        bottleneck.loss = LossModel::Random { probability };
    }
    spec.run.duration_ps = duration;
    spec
}
