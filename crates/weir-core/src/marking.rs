//! Marks of congestion: what a queue does to ECN-capable frames instead of dropping them.
//!
//! The probability of a mark is a ramp over the bytes that wait at that moment, not over an average of them: 0 up to
//! `k_min`, `p_max` just before `k_max`, 1 above. With both thresholds alike every frame above one length is marked.
//! A frame is marked by what waits when it has joined the queue, or by what still waits when it leaves.
//!
//! Simulators of HPCC and uet-htsim mark what leaves.
//!
//! Source: Zhu 2015, section 3.1 (the ramp); RFC 3168, section 5 (what a mark is); uet-htsim, `compositequeue.cpp` (what leaves).

use crate::rng::Stream;
use crate::spec::{Marking, MarkingTime};
use crate::units::Bytes;

/// The ECN field of the IP header.
///
/// Source: RFC 3168, 5; RFC 9331, 4.1 (what ECT(1) says).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable: ECT(0).
    Ect0,
    /// ECN-capable, and marks are answered in proportion: ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Of the two bits of the field.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The two bits of the field.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }

    /// Whether a queue may mark the frame, or already has, instead of dropping it.
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }

    /// Whether the frame is one of those that wait in a queue of their own where queues are coupled.
    ///
    /// Source: RFC 9331, 5.1.
    #[inline]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Ecn::Ect1 | Ecn::Ce)
    }
}

/// A queue that marks frames.
#[derive(Clone, Debug)]
pub struct Marker {
    k_min: f64,
    k_max: f64,
    p_max: f64,
    when: MarkingTime,
    stream: Stream,
}

impl Marker {
    /// The marker of `spec`.
    pub fn new(spec: &Marking, stream: Stream) -> Marker {
        let (k_min, k_max) = (spec.k_min_bytes.count() as f64, spec.k_max_bytes.count() as f64);
        Marker { k_min, k_max, p_max: spec.p_max, when: spec.when, stream }
    }

    /// When it marks.
    pub fn when(&self) -> MarkingTime {
        self.when
    }

    /// While no more waits, nothing is marked.
    pub fn least(&self) -> Bytes {
        Bytes::new(self.k_min as u64)
    }

    /// Whether an ECN-capable frame is marked that has just been queued, or whose transmission begins `now`; so much waits.
    #[inline]
    pub fn on_frame(&mut self, now: MarkingTime, waiting: Bytes) -> bool {
        if now != self.when {
            return false;
        }
        let q = waiting.count() as f64;
        if q <= self.k_min {
            return false;
        }
        q > self.k_max || self.stream.open_unit() * (self.k_max - self.k_min) < self.p_max * (q - self.k_min)
    }
}
