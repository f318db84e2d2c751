//! What waits at a host, and for how long it did.

use crate::units::{Bytes, Time};

/// Frames that wait, their integrals over time, and the most that waited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    frames: u64,
    bytes: u64,
    settled: Time,
    byte_ps: u128,
    wait_ps: u128,
    most: u64,
    peak: u64,
    counts_instants: bool,
}

impl Load {
    /// The same, for which what waits for an instant counts as the most, too, and so does what waits beyond.
    #[must_use]
    pub fn counting_instants(self) -> Load {
        Load { counts_instants: true, ..self }
    }

    /// Frames that wait.
    #[inline]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Their sizes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Integral of the waiting bytes over time as far as it was settled, byte ps.
    pub fn byte_ps(&self) -> u128 {
        self.byte_ps
    }

    /// Integral of the waiting frames over time as far as it was settled, ps.
    pub fn wait_ps(&self) -> u128 {
        self.wait_ps
    }

    /// Counts the integrals up to `now`.
    #[inline]
    pub fn settle(&mut self, now: Time) {
        let span = now.saturating_since(self.settled).ps();
        if span > 0 {
            self.settled = now;
            self.byte_ps += u128::from(span) * u128::from(self.bytes);
            self.wait_ps += u128::from(span) * u128::from(self.frames);
            if !self.counts_instants {
                self.most = self.most.max(self.bytes);
            }
        }
    }

    /// A frame begins to wait; `beyond` waits behind this host's queues.
    #[inline]
    pub fn add(&mut self, now: Time, size: Bytes, beyond: Bytes) {
        self.settle(now);
        (self.frames, self.bytes) = (self.frames + 1, self.bytes + size.count());
        if self.counts_instants {
            self.most = self.most.max(self.bytes + beyond.count());
        }
    }

    /// A frame waits no longer.
    #[inline]
    pub fn take(&mut self, now: Time, size: Bytes) {
        self.settle(now);
        (self.frames, self.bytes) = (self.frames - 1, self.bytes - size.count());
    }

    /// The most bytes that waited since this was asked last; `beyond` waits behind this host's queues.
    pub fn restart_most(&mut self, beyond: Bytes) -> u64 {
        self.peak = self.peak.max(self.most);
        let now = if self.counts_instants { self.bytes + beyond.count() } else { 0 };
        std::mem::replace(&mut self.most, now)
    }

    /// The most bytes that ever waited.
    pub fn peak(&self) -> u64 {
        self.peak.max(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_an_instant_counts_as_the_most_only_where_it_is_said_to() {
        let (now, size) = (Time::from_ps(5), Bytes::new(100));
        for (mut load, most) in [(Load::default(), 0), (Load::default().counting_instants(), 130)] {
            load.add(now, size, Bytes::new(30));
            load.take(now, size);
            assert_eq!((load.restart_most(Bytes::ZERO), load.byte_ps()), (most, 0));
            load.add(now, size, Bytes::ZERO);
            load.settle(Time::from_ps(9));
            assert_eq!((load.restart_most(Bytes::ZERO), load.byte_ps(), load.wait_ps()), (100, 400, 4));
            assert_eq!(load.peak(), 100.max(most));
        }
    }
}
