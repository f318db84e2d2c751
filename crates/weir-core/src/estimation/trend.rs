//! Whether the delays of a stream grow.

use crate::named;
use crate::rapid::Sample;
use crate::units::Span;

named! {
    /// What a test, or both, say of a stream.
    pub enum Verdict {
        /// Its delays grow: it was faster than what is left.
        Increasing = "increasing",
        /// They do not.
        NoTrend = "no-trend",
        /// The tests do not show, or contradict each other.
        Unclear = "unclear",
        /// There are too few packets.
        Discarded = "discarded",
    }
}

/// The trend of the delays of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Pairwise comparison test: how many medians exceed the one before, as a share of the medians. 0 to 1.
    pub pct: f64,
    /// Pairwise difference test: the growth from the first median to the last, relative to all steps up and down. -1 to 1.
    pub pdt: f64,
    /// What both say.
    pub verdict: Verdict,
}

/// The trend of a stream that was sent at a constant rate; none if it has too few packets.
///
/// Of packets that arrive closer than `batch` only the last counts. What is left is divided into groups of as many packets
/// as there are groups, and their medians are compared: with PCT (the share that grows) and PDT (growth relative to
/// variation). Where a receiver has gathered packets, so that fewer are left than medians need, these are compared
/// themselves. Medians that differ by less than `stamps` are the same.
///
/// PCT divides by the number of medians, as the tool does, and not by that of pairs, as its paper: the thresholds belong
/// to that. With no variation at all there is no trend.
///
/// Source: Jain & Dovrolis 2003; pathload 1.3.2
pub fn trend(samples: &[Sample], batch: Span, stamps: Span) -> Option<Trend> {
    let delays = delays(samples, batch);
    let medians = if delays.len() >= LEAST_FOR_MEDIANS { medians(&delays) } else { delays };
    if medians.len() < LEAST_MEDIANS {
        return None;
    }
    let unit = stamps.as_secs_f64();
    let (mut grow, mut path) = (0, 0.0);
    // Differences below the unit of the stamps add up until they exceed it.
    let mut level = medians[0];
    for &median in &medians[1..] {
        if (median - level).abs() < unit {
            continue;
        }
        grow += usize::from(median > level);
        path += (median - level).abs();
        level = median;
    }
    let pct = grow as f64 / medians.len() as f64;
    let pdt = if path > 0.0 { (level - medians[0]) / path } else { 0.0 };
    let verdict = match (judged(pct, PCT), judged(pdt, PDT)) {
        (one, other) if one == other => one,
        (one, Verdict::Unclear) => one,
        (Verdict::Unclear, other) => other,
        _ => Verdict::Unclear,
    };
    Some(Trend { pct, pdt, verdict })
}

/// Delays up to an offset that all share, s.
fn delays(samples: &[Sample], batch: Span) -> Vec<f64> {
    let Some(first) = samples.first() else { return Vec::new() };
    let is_last = |place: usize| {
        let next = samples.get(place + 1);
        next.is_none_or(|next| next.received.saturating_since(samples[place].received) >= batch)
    };
    let delay = |sample: &Sample| {
        let since = |later: u64, earlier: u64| later as f64 - earlier as f64;
        (since(sample.received.ps(), first.received.ps()) - since(sample.sent.ps(), first.sent.ps())) * 1e-12
    };
    (0..samples.len()).filter(|&place| is_last(place)).map(|place| delay(&samples[place])).collect()
}

fn medians(delays: &[f64]) -> Vec<f64> {
    let size = (delays.len() as f64).sqrt() as usize;
    let median = |group: &[f64]| {
        let mut sorted = group.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
    };
    delays.chunks(size.max(1)).map(median).collect()
}

fn judged(value: f64, threshold: f64) -> Verdict {
    if value > (1.0 + MARGIN) * threshold {
        Verdict::Increasing
    } else if value < (1.0 - MARGIN) * threshold {
        Verdict::NoTrend
    } else {
        Verdict::Unclear
    }
}

/// Thresholds of both tests, and how far around them nothing is reported.
///
/// Source: pathload 1.3.2
const PCT: f64 = 0.55;
const PDT: f64 = 0.4;
const MARGIN: f64 = 0.1;
/// Source: pathload 1.3.2, MIN_STREAM_LEN
const LEAST_FOR_MEDIANS: usize = 36;
/// Source: pathload 1.3.2, MIN_PARTITIONED_STREAM_LEN
const LEAST_MEDIANS: usize = 5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::{Bytes, Time};

    const GAP: u64 = 20_000_000;
    const BATCH: Span = Span::from_us(7);
    const STAMPS: Span = Span::from_us(1);

    /// A packet every 20 us, each delayed by so many ps.
    fn stream(delays: &[u64]) -> Vec<Sample> {
        let sample = |(i, &delay): (usize, &u64)| {
            let sent = Time::from_ps(i as u64 * GAP);
            Sample { due: sent, sent, received: sent + Span::from_ps(5_000_000 + delay), wire: Bytes::new(1538) }
        };
        delays.iter().enumerate().map(sample).collect()
    }

    fn verdict(delays: &[u64]) -> Trend {
        trend(&stream(delays), BATCH, STAMPS).expect("enough packets")
    }

    #[test]
    fn delays_that_grow_with_each_packet_are_a_trend_in_both_tests() {
        let trend = verdict(&(0..100).map(|i| i * 1_000_000).collect::<Vec<_>>());
        // Ten medians of ten, nine of which exceed the one before.
        assert_eq!(trend, Trend { pct: 0.9, pdt: 1.0, verdict: Verdict::Increasing });
    }

    #[test]
    fn equal_and_falling_delays_are_none() {
        assert_eq!(verdict(&[7; 100]), Trend { pct: 0.0, pdt: 0.0, verdict: Verdict::NoTrend });
        let falling = verdict(&(0..100).map(|i| (100 - i) * 1_000_000).collect::<Vec<_>>());
        assert_eq!(falling, Trend { pct: 0.0, pdt: -1.0, verdict: Verdict::NoTrend });
    }

    #[test]
    fn delays_that_differ_by_less_than_the_unit_of_stamps_are_equal() {
        let jitter: Vec<u64> = (0..100).map(|i| i % 20 / 10 * 400_000).collect();
        assert_eq!(verdict(&jitter), Trend { pct: 0.0, pdt: 0.0, verdict: Verdict::NoTrend });
    }

    #[test]
    fn tests_that_contradict_each_other_say_nothing() {
        // Medians 0 1.5 3 ... 10.5 0 1.5 us: eight of ten grow, but in sum by 1.5 of 22.5 us.
        let sawtooth: Vec<u64> = (0..100_u64).map(|i| i / 10 % 8 * 1_500_000).collect();
        let trend = verdict(&sawtooth);
        assert!((trend.pct - 0.8).abs() < 1e-12 && (trend.pdt - 1.5 / 22.5).abs() < 1e-9, "{trend:?}");
        assert_eq!(trend.verdict, Verdict::Unclear);
    }

    #[test]
    fn medians_hide_single_packets_that_waited() {
        let outliers: Vec<u64> = (0..100).map(|i| if i % 7 == 0 { 90_000_000 } else { 0 }).collect();
        assert_eq!(verdict(&outliers).verdict, Verdict::NoTrend);
    }

    #[test]
    fn of_gathered_packets_the_last_ones_count() {
        // A receiver that interrupts each 100 us: packets five by five, whose first waited 80 us more than their last.
        let gathered = |grows: u64| -> Vec<Sample> {
            let sample = |sample: Sample| {
                let at = sample.received.ps().next_multiple_of(100_000_000);
                Sample { received: Time::from_ps(at), ..sample }
            };
            stream(&(0..100).map(|i| i * grows).collect::<Vec<_>>()).into_iter().map(sample).collect()
        };
        assert_eq!(trend(&gathered(0), BATCH, STAMPS).expect("20 batches").verdict, Verdict::NoTrend);
        // At twice the rate that is left, 20 us for each packet.
        assert_eq!(trend(&gathered(20_000_000), BATCH, STAMPS).expect("40 batches").verdict, Verdict::Increasing);
    }

    #[test]
    fn four_packets_have_no_trend() {
        assert_eq!(trend(&stream(&[1, 2, 3, 4]), BATCH, STAMPS), None);
    }

    proptest! {
        #[test]
        fn both_tests_stay_within_their_ranges(delays in prop::collection::vec(0u64..1_000_000_000, 5..200)) {
            if let Some(trend) = trend(&stream(&delays), Span::ZERO, STAMPS) {
                prop_assert!((0.0..1.0).contains(&trend.pct) && (-1.0..=1.0).contains(&trend.pdt), "{:?}", trend);
            }
        }

        #[test]
        fn clocks_that_differ_change_nothing(delays in prop::collection::vec(0u64..100_000_000, 36..120), offset in 0u64..1_000_000_000_000) {
            let ahead: Vec<Sample> = stream(&delays)
                .into_iter()
                .map(|sample| Sample { received: sample.received + Span::from_ps(offset), ..sample })
                .collect();
            let (one, other) = (trend(&stream(&delays), BATCH, STAMPS), trend(&ahead, BATCH, STAMPS));
            prop_assert_eq!(one.map(|trend| trend.verdict), other.map(|trend| trend.verdict));
        }
    }
}
