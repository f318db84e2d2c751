//! What the parts of a buffer hold, interval by interval.

use weir_core::units::Time;

use crate::boundaries::Boundaries;
use crate::totals::PoolInterval;

/// The intervals of the parts of one buffer.
#[derive(Debug)]
pub(crate) struct Occupancy {
    /// The id of the first part.
    first: u32,
    boundaries: Boundaries,
    /// The interval under way.
    number: u32,
    /// Up to when all counts.
    at: Time,
    parts: Vec<PoolInterval>,
    rows: Vec<Vec<PoolInterval>>,
}

impl Occupancy {
    /// Of so many empty parts, from time zero.
    pub(crate) fn new(first: u32, parts: usize, boundaries: Boundaries) -> Occupancy {
        let empty = PoolInterval { t_ps: 0, bytes: 0, max_bytes: 0, byte_ps: 0 };
        let (parts, rows) = (vec![empty; parts], vec![Vec::new(); parts]);
        Occupancy { first, boundaries, number: 1, at: Time::ZERO, parts, rows }
    }

    /// From `now` on the parts hold `levels`.
    pub(crate) fn note(&mut self, now: Time, levels: impl Iterator<Item = u64>) {
        self.end(now);
        self.count(now);
        for (part, bytes) in self.parts.iter_mut().zip(levels) {
            part.bytes = bytes;
            part.max_bytes = part.max_bytes.max(bytes);
        }
    }

    /// Writes down the intervals that ended up to `now`; nothing has changed since.
    pub(crate) fn end(&mut self, now: Time) {
        while self.boundaries.at(self.number) <= now {
            let end = self.boundaries.at(self.number);
            self.count(end);
            for (part, rows) in self.parts.iter_mut().zip(&mut self.rows) {
                rows.push(PoolInterval { t_ps: end.ps(), ..*part });
                (part.max_bytes, part.byte_ps) = (part.bytes, 0);
            }
            self.number += 1;
        }
    }

    fn count(&mut self, now: Time) {
        let passed = u128::from((now - self.at).ps());
        self.parts.iter_mut().for_each(|part| part.byte_ps += u128::from(part.bytes) * passed);
        self.at = now;
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// The rows of each part, which leave.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (u32, Vec<PoolInterval>)> + '_ {
        (self.first..).zip(self.rows.iter_mut().map(std::mem::take))
    }
}
