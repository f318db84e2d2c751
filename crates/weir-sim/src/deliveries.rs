//! What is known of frames that arrive: totals of each flow, and for those who ask series and distributions.

use weir_core::units::{Bytes, Span, Time};

use crate::plan::Plan;
use crate::probes::Boundaries;

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

/// What became of the frames of one flow.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct FlowCounters {
    pub(crate) sent_frames: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) delivered_frames: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) delay_sum_ps: u128,
    pub(crate) delay_min: Span,
    pub(crate) delay_max: Span,
}

impl FlowCounters {
    /// Nothing happened yet.
    pub(crate) const NEW: FlowCounters = FlowCounters {
        sent_frames: 0,
        sent_bytes: 0,
        delivered_frames: 0,
        delivered_bytes: 0,
        delay_sum_ps: 0,
        delay_min: Span::from_ps(u64::MAX),
        delay_max: Span::ZERO,
    };

    /// A frame was generated.
    #[inline]
    pub(crate) fn send(&mut self, size: Bytes) {
        self.sent_frames += 1;
        self.sent_bytes += size.count();
    }

    /// A frame arrived.
    #[inline]
    pub(crate) fn deliver(&mut self, size: Bytes, delay: Span) {
        self.delivered_frames += 1;
        self.delivered_bytes += size.count();
        self.delay_sum_ps += u128::from(delay.ps());
        self.delay_min = self.delay_min.min(delay);
        self.delay_max = self.delay_max.max(delay);
    }
}

/// What is written down of deliveries besides the totals.
#[derive(Debug)]
pub(crate) struct Watch {
    /// One for each flow, or none.
    pub(crate) delays: Vec<Histogram>,
    /// One for each group of traffic.
    pub(crate) traffic: Vec<Option<TrafficProbe>>,
}

impl Watch {
    /// What the spec of `plan` asks for, if anything.
    pub(crate) fn new(plan: &Plan, end: Time) -> Option<Watch> {
        let record = &plan.spec.record;
        if !record.delays && record.traffic.is_empty() {
            return None;
        }
        let mut traffic: Vec<Option<TrafficProbe>> = plan.spec.traffic.iter().map(|_| None).collect();
        for probe in &record.traffic {
            traffic[probe.traffic as usize] = Some(TrafficProbe::new(probe.every_ps, end));
        }
        let histograms = if record.delays { plan.flows.len() } else { 0 };
        Some(Watch { delays: vec![Histogram::default(); histograms], traffic })
    }

    /// A frame of `flow`, of the group `traffic`, arrived at `now`.
    #[cold]
    pub(crate) fn on_delivery(&mut self, now: Time, flow: u32, traffic: u32, size: Bytes, delay: Span) {
        if let Some(histogram) = self.delays.get_mut(flow as usize) {
            histogram.count(delay);
        }
        if let Some(probe) = &mut self.traffic[traffic as usize] {
            probe.on_delivery(now, size.count());
        }
    }
}

/// Writes down the intervals of one group of traffic.
#[derive(Debug)]
pub(crate) struct TrafficProbe {
    boundaries: Boundaries,
    /// The interval under way.
    current: Delivery,
    pub(crate) rows: Vec<Delivery>,
}

impl TrafficProbe {
    pub(crate) fn new(every: Span, end: Time) -> TrafficProbe {
        let boundaries = Boundaries::new(every, end);
        let current = Delivery { t_ps: boundaries.at(1).ps(), frames: 0, bytes: 0 };
        TrafficProbe { boundaries, current, rows: Vec::new() }
    }

    /// Writes the intervals that ended up to `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        while self.current.t_ps <= now.ps() {
            let t_ps = self.boundaries.at(self.rows.len() as u32 + 2).ps();
            self.rows.push(std::mem::replace(&mut self.current, Delivery { t_ps, frames: 0, bytes: 0 }));
        }
    }

    /// A frame was delivered at `now`.
    pub(crate) fn on_delivery(&mut self, now: Time, bytes: u64) {
        self.advance(now);
        self.current.frames += 1;
        self.current.bytes += bytes;
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
