//! What is known of a p-stream when its packets are acknowledged.

use crate::units::{Bytes, Time};

/// A packet that left and of which the receiver reported when it arrived. The clocks of both ends may differ by any amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was to leave.
    pub due: Time,
    /// When it left the sender.
    pub sent: Time,
    /// When it arrived, by the clock of the receiver.
    pub received: Time,
    /// Length on the wire of the packets since the previous sample, this one included.
    pub wire: Bytes,
}

/// The step from one sample to the next, s and bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// The send gap that was asked for.
    pub(super) asked_gap: f64,
    pub(super) send_gap: f64,
    pub(super) recv_gap: f64,
    pub(super) bits: f64,
}

impl Step {
    /// The rate at which the packets of the step were sent, bit/s.
    pub(super) fn rate(&self) -> f64 {
        self.bits / self.send_gap.max(1e-12)
    }

    /// The rate at which they were to be sent, bit/s.
    pub(super) fn asked_rate(&self) -> f64 {
        self.bits / self.asked_gap.max(1e-12)
    }

    /// The steps of a stream. What arrives twice at one time or leaves before its predecessor has gaps of 0.
    pub(super) fn all(samples: &[Sample]) -> Vec<Step> {
        let step = |pair: &[Sample]| Step {
            asked_gap: difference(pair[1].due, pair[0].due),
            send_gap: difference(pair[1].sent, pair[0].sent),
            recv_gap: difference(pair[1].received, pair[0].received),
            bits: pair[1].wire.count() as f64 * 8.0,
        };
        samples.windows(2).map(step).collect()
    }
}

fn difference(later: Time, earlier: Time) -> f64 {
    later.saturating_since(earlier).as_secs_f64()
}

/// Growth of the queueing delay since the first sample, s: 0 for that one, then one value for each step.
pub(super) fn delays(steps: &[Step]) -> Vec<f64> {
    let mut delay = 0.0;
    let mut delays = vec![0.0];
    for step in steps {
        delay += step.recv_gap - step.send_gap;
        delays.push(delay);
    }
    delays
}
