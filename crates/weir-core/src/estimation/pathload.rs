//! What pathload asks for, and what it makes of it.

use super::fleet::{Aggregate, Fleet};
use super::log::Ending;
use super::search::{Next, RateSearch};
use super::trend::{Trend, trend};
use super::{Config, Method};
use crate::rapid::Sample;
use crate::units::{Bytes, PS_PER_S, Rate, Span};

/// The steps of a measurement: a train back to back, then fleets.
#[derive(Clone, Debug, Default)]
pub(super) struct Pathload {
    search: Option<RateSearch>,
    fleet: Fleet,
}

/// A stream as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) packets: u32,
    pub(super) frame: Bytes,
    pub(super) gap: Span,
}

/// What follows from a stream.
pub(super) struct Verdict {
    pub(super) trend: Option<Trend>,
    pub(super) fleet: Option<Aggregate>,
    /// The range, and why it is the range.
    pub(super) found: Option<(f64, f64, Ending)>,
}

impl Pathload {
    /// What is to be sent next: a train, then streams with gaps of T whose packets are as long as the rate asks for; when
    /// these are as long as they may be, the gaps get shorter.
    ///
    /// Source: pathload 1.3.2
    pub(super) fn shape(&self, config: &Config) -> Shape {
        let Method::Pathload { packets, gap_ps, .. } = config.method else { unreachable!("pathload's method") };
        let Some(search) = &self.search else {
            return Shape { packets: TRAIN, frame: config.frame_bytes, gap: Span::ZERO };
        };
        let rate = search.rate();
        let fitting = (rate * gap_ps.as_secs_f64() / 8.0) as u64;
        let frame = fitting.saturating_sub(config.framing_bytes.count());
        let frame = Bytes::new(frame.clamp(SHORTEST.min(config.frame_bytes.count()), config.frame_bytes.count()));
        let bits = (frame + config.framing_bytes).count() as f64 * 8.0;
        Shape { packets, frame, gap: Span::from_ps((bits / rate * PS_PER_S as f64) as u64) }
    }

    /// The rate of the stream that is asked for, if it is not that of the first train.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.search.as_ref().map(|search| Rate::from_bps(search.rate() as u64))
    }

    /// What was asked for has arrived, as far as it did; `received` is the rate at which it did.
    pub(super) fn on_train(
        &mut self,
        config: &Config,
        shape: Shape,
        samples: &[Sample],
        received: Option<f64>,
    ) -> Verdict {
        let Method::Pathload { streams, resolution_bps, most_bps, batch_ps, stamps_ps, .. } = config.method else {
            unreachable!("pathload's method")
        };
        let Some(search) = &mut self.search else {
            let most = (most_bps.bps() as f64).min(config.link_bps.bps() as f64);
            let first = received.unwrap_or(most / 2.0).min(most);
            let resolution = resolution_bps.map(|rate| rate.bps() as f64);
            self.search = Some(RateSearch::new(first, LEAST_RATE.min(most), most, resolution));
            return Verdict { trend: None, fleet: None, found: None };
        };
        let limit = (shape.gap * 2).max(shape.gap + SWITCH);
        let trends: Vec<Option<Trend>> = parts(samples, limit).map(|part| trend(part, batch_ps, stamps_ps)).collect();
        let lost = shape.packets - samples.len() as u32;
        self.fleet.add(&trends, shape.packets, lost);
        let reported = trends.into_iter().flatten().next();
        if self.fleet.streams() < streams as usize && !self.fleet.is_aborted() {
            return Verdict { trend: reported, fleet: None, found: None };
        }
        let aggregate = std::mem::take(&mut self.fleet).aggregate();
        let found = match search.on_fleet(aggregate) {
            Next::Fleet(_) => None,
            Next::Found { low, high, ending } => Some((low, high, ending)),
        };
        Verdict { trend: reported, fleet: Some(aggregate), found }
    }
}

/// The parts of a stream between which its sender did not run: parts of fewer packets than a trend needs are discarded.
///
/// Source: pathload 1.3.2
fn parts(samples: &[Sample], limit: Span) -> impl Iterator<Item = &[Sample]> {
    samples.chunk_by(move |one, other| other.sent.saturating_since(one.sent) <= limit)
}

/// Packets of the first train.
///
/// Source: pathload 1.3.2
const TRAIN: u32 = 50;
/// Payload of 200 B.
const SHORTEST: u64 = 246;
/// 228 B in 200 ms.
const LEAST_RATE: f64 = 9_120.0;
/// A gap that is so much longer was not meant.
const SWITCH: Span = Span::from_us(1000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn config() -> Config {
        let method = Method::Pathload {
            packets: 100,
            streams: 12,
            gap_ps: Span::from_us(80),
            share: 0.1,
            resolution_bps: None,
            most_bps: Rate::from_gbit_per_s(1),
            batch_ps: Span::from_us(7),
            stamps_ps: Span::from_us(1),
        };
        Config {
            method,
            frame_bytes: Bytes::new(1518),
            framing_bytes: Bytes::new(20),
            link_bps: Rate::from_gbit_per_s(1),
            measurements: None,
        }
    }

    #[test]
    fn slow_streams_have_short_packets_and_fast_ones_short_gaps() {
        let shape = |rate: f64| {
            let search = Some(RateSearch::new(rate, 1e4, 1e9, None));
            Pathload { search, fleet: Fleet::default() }.shape(&config())
        };
        let rate = |shape: Shape| (shape.frame.count() + 20) as f64 * 8.0 / shape.gap.as_secs_f64();
        for asked in [1e6, 20e6, 100e6, 153e6, 154e6, 700e6] {
            let shape = shape(asked);
            assert!((rate(shape) / asked - 1.0).abs() < 1e-6, "{asked} {shape:?}");
        }
        assert_eq!(shape(1e6).frame, Bytes::new(246), "not shorter");
        assert!((shape(100e6).gap.as_secs_f64() - 80e-6).abs() < 1e-6 && shape(100e6).frame < Bytes::new(1000));
        assert!(shape(700e6).gap < Span::from_us(18) && shape(700e6).frame == Bytes::new(1518));
    }

    #[test]
    fn a_stream_is_split_where_its_sender_stood_still() {
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let sample = |us| Sample { due: at(us), sent: at(us), received: at(us + 500), wire: Bytes::new(1538) };
        let stalled: Vec<Sample> = (0..100).map(|i| sample(i * 20 + if i >= 40 { 3_000 } else { 0 })).collect();
        let lengths: Vec<usize> = parts(&stalled, Span::from_us(1020)).map(<[Sample]>::len).collect();
        assert_eq!(lengths, [40, 60]);
    }
}
