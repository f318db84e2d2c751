//! Series and distributions, for those who ask. No probe has an event: when a port or a group of traffic is touched
//! after the end of an interval, the rows of the intervals that ended are written first.
//!
//! An interval holds what happens from its start up to, but not at, its end.

use weir_core::queue::{Counters, Port};
use weir_core::units::{Span, Time};

use crate::frames::FrameId;

/// One interval of a port: a row of the table `intervals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInterval {
    /// End of the interval, ps.
    pub t_ps: u64,
    /// Bytes whose transmission began.
    pub bytes: u64,
    /// Frames whose transmission began.
    pub frames: u64,
    /// Frames dropped.
    pub drops: u64,
    /// Bytes waiting at the end.
    pub queue_bytes: u64,
    /// Most bytes waiting.
    pub queue_max_bytes: u64,
    /// Integral of the waiting bytes over the interval, byte ps.
    pub queue_byte_ps: u128,
}

/// One interval of a group of traffic: a row of the table `deliveries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// End of the interval, ps.
    pub t_ps: u64,
    /// Frames delivered.
    pub frames: u64,
    /// Bytes delivered.
    pub bytes: u64,
}

/// The ends of equal intervals; the last one ends with the run.
#[derive(Debug)]
struct Boundaries {
    every: Span,
    /// End of the current interval.
    next: Time,
    end: Time,
}

impl Boundaries {
    fn new(every: Span, end: Time) -> Boundaries {
        Boundaries { every, next: end.min(Time::ZERO + every), end }
    }

    /// The end of the current interval if it is not after `now`; then the next one begins.
    fn pass(&mut self, now: Time) -> Option<Time> {
        let passed = self.next;
        if passed > now {
            return None;
        }
        self.next = if passed == self.end { Time::NEVER } else { self.end.min(later(passed, self.every)) };
        Some(passed)
    }
}

fn later(time: Time, span: Span) -> Time {
    Time::from_ps(time.ps().saturating_add(span.ps()))
}

/// Writes down the intervals of one port.
#[derive(Debug)]
pub(crate) struct PortProbe {
    boundaries: Boundaries,
    /// Counters at the start of the interval.
    before: Counters,
    /// Most bytes waiting in the intervals written.
    pub(crate) peak: u64,
    pub(crate) rows: Vec<PortInterval>,
}

impl PortProbe {
    pub(crate) fn new(every: Span, end: Time) -> PortProbe {
        PortProbe { boundaries: Boundaries::new(every, end), before: Counters::default(), peak: 0, rows: Vec::new() }
    }

    /// Writes the intervals that ended up to `now`, where `port` has not been touched since.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time, port: &mut Port<FrameId>) {
        if self.boundaries.next <= now {
            self.write(now, port);
        }
    }

    #[cold]
    fn write(&mut self, now: Time, port: &mut Port<FrameId>) {
        while let Some(at) = self.boundaries.pass(now) {
            let (counters, peak) = (port.counters_at(at), port.take_peak().count());
            self.rows.push(PortInterval {
                t_ps: at.ps(),
                bytes: counters.bytes - self.before.bytes,
                frames: counters.frames - self.before.frames,
                drops: counters.drops - self.before.drops,
                queue_bytes: port.waiting_bytes().count(),
                queue_max_bytes: peak,
                queue_byte_ps: counters.queue_byte_ps - self.before.queue_byte_ps,
            });
            self.peak = self.peak.max(peak);
            self.before = counters;
        }
    }
}

/// Writes down the intervals of one group of traffic.
#[derive(Debug)]
pub(crate) struct TrafficProbe {
    boundaries: Boundaries,
    frames: u64,
    bytes: u64,
    pub(crate) rows: Vec<Delivery>,
}

impl TrafficProbe {
    pub(crate) fn new(every: Span, end: Time) -> TrafficProbe {
        TrafficProbe { boundaries: Boundaries::new(every, end), frames: 0, bytes: 0, rows: Vec::new() }
    }

    /// Writes the intervals that ended up to `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(at) = self.boundaries.pass(now) {
            let (frames, bytes) = (std::mem::take(&mut self.frames), std::mem::take(&mut self.bytes));
            self.rows.push(Delivery { t_ps: at.ps(), frames, bytes });
        }
    }

    /// A frame was delivered at `now`.
    pub(crate) fn on_delivery(&mut self, now: Time, bytes: u64) {
        self.advance(now);
        self.frames += 1;
        self.bytes += bytes;
    }
}

/// Counts of delays in bins of which 32 fill each octave: a bin is at most 1/32 of its value wide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// The bin that `counts` begins with.
    first: usize,
    counts: Vec<u64>,
}

const BINS_PER_OCTAVE: u64 = 32;

impl Histogram {
    pub(crate) fn count(&mut self, delay: Span) {
        let bin = bin(delay.ps());
        if self.counts.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - bin));
            self.first = bin;
        }
        let place = bin - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// Every bin with a count: its bounds in ps, the lower one included, and the count.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = (self.first..).zip(&self.counts).filter(|&(_, &count)| count > 0);
        filled.map(|(bin, &count)| (lower_bound(bin), lower_bound(bin + 1), count))
    }
}

/// Values below 64 have bins of their own; from there on each octave is cut into 32.
fn bin(value: u64) -> usize {
    let octave = u64::from((value | BINS_PER_OCTAVE).ilog2()) - 5;
    (octave * BINS_PER_OCTAVE + (value >> octave)) as usize
}

fn lower_bound(bin: usize) -> u64 {
    let bin = bin as u64;
    let octave = (bin / BINS_PER_OCTAVE).saturating_sub(1);
    let mantissa = bin - octave * BINS_PER_OCTAVE;
    mantissa.checked_shl(octave as u32).filter(|value| value >> octave == mantissa).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bin_and_no_bin_is_wider_than_a_32nd() {
        let values = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, (1 << bit) + (1 << bit) / 3]);
        for value in values.chain([0, u64::MAX - 1]) {
            let (low, high) = (lower_bound(bin(value)), lower_bound(bin(value) + 1));
            assert!(low <= value && value < high, "{value} in {low}..{high}");
            assert!(high - low <= 1.max(low / 32), "{low}..{high}");
        }
    }

    #[test]
    fn a_histogram_grows_to_both_sides() {
        let mut histogram = Histogram::default();
        for ps in [1000, 10, 1_000_000, 10] {
            histogram.count(Span::from_ps(ps));
        }
        let bins: Vec<_> = histogram.bins().collect();
        assert_eq!(bins[0], (10, 11, 2));
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<u64>(), 4);
        assert!(bins.iter().zip([10, 1000, 1_000_000]).all(|(&(low, high, _), ps)| low <= ps && ps < high));
    }
}
