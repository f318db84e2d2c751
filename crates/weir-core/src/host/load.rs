//! What waits at a host, and for how long it did.

use super::{Integral, Occupancy, Picoseconds};
use crate::units::{Bytes, Time};

/// Frames that wait, their integrals over time, and the most that waited.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    frames: u64,
    waits: Integral<Picoseconds>,
    bytes: Occupancy<Picoseconds>,
    peak: u64,
    counts_instants: bool,
}

impl Default for Load {
    fn default() -> Load {
        let (waits, bytes) = (Integral::default(), Occupancy::new(Time::ZERO));
        Load { frames: 0, waits, bytes, peak: 0, counts_instants: false }
    }
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
        self.bytes.amount()
    }

    /// Integral of the waiting bytes over time as far as it was settled, byte ps.
    pub fn byte_ps(&self) -> u128 {
        self.bytes.integral()
    }

    /// Integral of the waiting frames over time as far as it was settled, ps.
    pub fn wait_ps(&self) -> u128 {
        self.waits.up_to(self.bytes.settled(), self.frames)
    }

    /// Counts the integrals up to `now`.
    #[inline]
    pub fn settle(&mut self, now: Time) {
        self.bytes.settle(now);
    }

    /// A frame begins to wait; `beyond` waits behind this host's queues.
    #[inline]
    pub fn add(&mut self, now: Time, size: Bytes, beyond: Bytes) {
        self.bytes.add(now, size.count());
        self.waits.add(self.bytes.settled(), 1);
        self.frames += 1;
        if self.counts_instants {
            self.bytes.reach(self.bytes() + beyond.count());
        }
    }

    /// A frame waits no longer.
    #[inline]
    pub fn take(&mut self, now: Time, size: Bytes) {
        self.bytes.take(now, size.count());
        self.waits.take(self.bytes.settled(), 1);
        self.frames -= 1;
    }

    /// The most bytes that waited since this was asked last; `beyond` waits behind this host's queues.
    pub fn restart_most(&mut self, beyond: Bytes) -> u64 {
        self.peak = self.peak();
        let most = self.bytes.restart_most();
        if self.counts_instants {
            self.bytes.reach(self.bytes() + beyond.count());
        }
        most
    }

    /// The most bytes that ever waited.
    pub fn peak(&self) -> u64 {
        self.peak.max(self.bytes.most())
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
