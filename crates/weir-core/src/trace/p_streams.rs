//! Probe streams of a sender, found in the departures of its packets alone.
//!
//! A p-stream is a group of N packets whose gaps fall exponentially; the next one begins with a large gap again. N is
//! the most frequent distance between such returns. Streams are then cut where gaps return, or after N packets where
//! they do not, and each is named after its shape. Source: Rapid UDP, (4) I and II: gaps that fail to fall
//! exponentially, some extremely large and some extremely small.

use super::detail::DataRow;
use super::side::Kind;
use super::tables::StreamOptions;
use crate::named;
use crate::units::PS_PER_S;

/// Bytes of a frame on the wire in addition to the captured ones: preamble, check sequence, inter-packet gap.
const FRAMING: u64 = 24;
/// Gaps on each side that are compared to find a return.
const SIDE: usize = 4;
/// By how much gaps grow at a return: the ratio of the largest to the smallest gap of a stream must exceed it.
const RETURN: f64 = 1.4;
/// Returns of the most frequent distance: at least this many, and this share of all.
const LEAST_RETURNS: usize = 3;
const SHARE: f64 = 0.3;
/// Shortest stream.
const SHORTEST: usize = 8;
/// A stream is a ramp when this share of its gaps lies this close to the fitted ones, and they fall by this ratio.
const FITTING: f64 = 0.8;
const CLOSE: f64 = 0.25;
const FALL: f64 = 1.3;
/// A sender of which nothing else is known probes when so many of its streams are ramps, and this share of those that are
/// neither trains nor recoveries: lengths of bursts repeat by chance.
const LEAST_RAMPS: usize = 3;
const RAMPS: f64 = 0.2;
/// A stream is broken by a gap of this many times its median.
const BROKEN: u64 = 5;
/// Gaps up to this ratio of the shortest are those of the line.
const LINE: f64 = 1.1;
/// The share of gaps that are shorter than those of the line, by errors of stamps.
const LINE_QUANTILE: f64 = 0.05;
/// Packets at the head of a stream that are looked at.
const HEAD: usize = 8;
/// Packets of the line in a row behind which a stream may begin late, and by how much its first gap of its own is shorter
/// then than the ramp has it.
const RUN: usize = 3;
const CUT: f64 = 0.97;

named! {
    /// The shape of a stream.
    pub(crate) enum Shape {
        /// Gaps fall exponentially, as they were made, or down to those of the line.
        Ramp = "ramp",
        /// Packets leave back to back.
        Train = "train",
        /// A gap of several times the median.
        Broken = "broken",
        /// Gaps are equal, above those of the line.
        Flat = "flat",
        /// Something was sent again.
        Recovery = "recovery",
        /// None of these.
        Irregular = "irregular",
    }
}

/// One stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) t_ps: u64,
    pub(crate) packets: u32,
    pub(crate) kind: Shape,
    /// Fitted first and last gap; not a number where nothing fits.
    pub(crate) first_gap_ps: f64,
    pub(crate) last_gap_ps: f64,
    pub(crate) mean_gap_ps: f64,
    pub(crate) median_gap_ps: u64,
    pub(crate) max_gap_ps: u64,
    /// Share of gaps close to the fitted ones.
    pub(crate) fitting: f64,
    /// Of the first eight gaps, those of the line.
    pub(crate) head_at_line_rate: u32,
    /// Whether it begins late, behind packets of the line: see [`Lateness`].
    pub(crate) lateness: Lateness,
}

/// How a stream begins that follows packets at line rate. A sender that asks for more than the line carries is late at the end
/// of a stream, and catches up at line rate in the next; the gap in which it has caught up is what was left of it, so that
/// it is shorter than the ramp that follows. One that asks for no more has its first gap whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// Not behind packets of the line, or no ramp.
    Unknown,
    /// With a whole gap.
    OnTime,
    /// With what was left of a gap.
    Late,
}

/// Streams of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    pub(crate) packets: Option<u32>,
    pub(crate) line_ps_per_byte: Option<f64>,
    pub(crate) streams: Vec<Stream>,
}

/// Find the streams of a direction; none where its gaps do not return regularly, or only rarely fall exponentially.
/// Where the length is given, all of them.
pub(crate) fn find(rows: &[DataRow], options: StreamOptions) -> Streams {
    let gaps: Vec<u64> = rows.windows(2).map(|pair| pair[1].t_ps.saturating_sub(pair[0].t_ps)).collect();
    let Some(line) = options.link_rate.map(|rate| 8.0 * PS_PER_S as f64 / rate.bps().max(1) as f64).or_else(|| {
        let mut by_byte: Vec<f64> = rows
            .iter()
            .zip(&gaps)
            .map(|(row, &gap)| gap as f64 / (u64::from(row.frame_bytes) + FRAMING) as f64)
            .collect();
        quantile(&mut by_byte, LINE_QUANTILE)
    }) else {
        return Streams::default();
    };
    let returns = returns(&gaps);
    let packets = match options.packets {
        Some(packets) if packets as usize >= SHORTEST => packets as usize,
        Some(_) => return Streams::default(),
        None => match usual_distance(&returns) {
            Some(packets) => packets,
            None => return Streams { line_ps_per_byte: Some(line), ..Streams::default() },
        },
    };
    let mut streams = Vec::new();
    let mut start = returns.first().copied().unwrap_or(0);
    while start + packets / 2 < gaps.len() {
        let at_line =
            |place: usize| gaps[place] as f64 <= LINE * (u64::from(rows[place].frame_bytes) + FRAMING) as f64 * line;
        let end = next_start(&returns, start, packets, at_line).min(gaps.len());
        let mut found = stream(&rows[start..=end], &gaps[start..end], line);
        found.lateness = lateness(&gaps, start, &found, at_line);
        streams.push(found);
        start = end;
    }
    if options.packets.is_none() && !probes(&streams) {
        return Streams { line_ps_per_byte: Some(line), ..Streams::default() };
    }
    Streams { packets: u32::try_from(packets).ok(), line_ps_per_byte: Some(line), streams }
}

/// Whether enough of the streams are ramps.
fn probes(streams: &[Stream]) -> bool {
    let ramps = streams.iter().filter(|stream| stream.kind == Shape::Ramp).count();
    let judged = streams.iter().filter(|stream| !matches!(stream.kind, Shape::Train | Shape::Recovery)).count();
    ramps >= LEAST_RAMPS && ramps as f64 >= RAMPS * judged as f64
}

/// Places at which gaps grow at once: those of the local maxima of the ratio of the gaps after and before.
fn returns(gaps: &[u64]) -> Vec<usize> {
    let mut found: Vec<(usize, f64)> = Vec::new();
    for place in SIDE..gaps.len().saturating_sub(SIDE) {
        let before = median4(&gaps[place - SIDE..place]);
        let after = median4(&gaps[place..place + SIDE]);
        let ratio = after / before.max(1.0);
        // What is left of a gap may stand between.
        let least = gaps[place - 1].min(gaps[place - 2]);
        if ratio < RETURN || (gaps[place] as f64) < RETURN * least as f64 {
            continue;
        }
        match found.last_mut() {
            Some(last) if place - last.0 < SHORTEST => {
                if ratio > last.1 {
                    *last = (place, ratio);
                }
            }
            _ => found.push((place, ratio)),
        }
    }
    found.into_iter().map(|(place, _)| place).collect()
}

/// The mean of the two middle ones of four.
fn median4(gaps: &[u64]) -> f64 {
    let (mut least, mut most, mut sum) = (u64::MAX, 0, 0u128);
    for &gap in gaps {
        least = least.min(gap);
        most = most.max(gap);
        sum += u128::from(gap);
    }
    (sum - u128::from(least) - u128::from(most)) as f64 / 2.0
}

/// The most frequent distance of returns, if it is frequent enough.
fn usual_distance(returns: &[usize]) -> Option<usize> {
    let mut distances: Vec<usize> = returns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    distances.sort_unstable();
    let all = distances.len();
    let most = distances.chunk_by(|one, other| one == other).max_by_key(|same| same.len())?;
    (most.len() >= LEAST_RETURNS && most.len() as f64 >= SHARE * all as f64).then(|| most[0])
}

/// Where the stream after the one at `start` begins: at a return near its end; else, as after a stream that losses have cut
/// short, at an earlier one that another follows after `packets`; else after `packets`. A return behind nothing but packets
/// at line rate is no beginning: these are the head of the stream.
fn next_start(returns: &[usize], start: usize, packets: usize, at_line: impl Fn(usize) -> bool) -> usize {
    let wanted = start + packets;
    let near = packets / 8;
    let place = returns.partition_point(|&at| at + near < wanted);
    match returns.get(place) {
        Some(&at) if at <= wanted + near && (at <= wanted || !(wanted..at).all(at_line)) => at,
        _ => {
            let first = returns.partition_point(|&at| at < start + SHORTEST);
            let mut earlier = returns[first..].iter().take_while(|&&at| at < wanted);
            earlier.find(|&&at| returns.binary_search(&(at + packets)).is_ok()).copied().unwrap_or(wanted)
        }
    }
}

fn stream(rows: &[DataRow], gaps: &[u64], line_ps_per_byte: f64) -> Stream {
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2];
    let max = sorted[sorted.len() - 1];
    let line = |place: usize| (u64::from(rows[place].frame_bytes) + FRAMING) as f64 * line_ps_per_byte;
    let at_line = |place: usize| gaps[place] as f64 <= LINE * line(place);
    let trained = (0..gaps.len()).filter(|&place| at_line(place)).count();
    let fit = Fit::of(gaps, line);
    let close = |place: usize| {
        let wanted = fit.gap(place).max(line(place));
        (gaps[place] as f64 - wanted).abs() <= CLOSE * wanted
    };
    let fitting = (0..gaps.len()).filter(|&place| close(place)).count() as f64 / gaps.len() as f64;
    let (first, last) = (fit.gap(0), fit.gap(gaps.len() - 1));
    let kind = if rows[..gaps.len()].iter().any(|row| row.kind == Kind::Retransmitted) {
        Shape::Recovery
    } else if max > median.saturating_mul(BROKEN) {
        Shape::Broken
    } else if trained as f64 >= FITTING * gaps.len() as f64 {
        Shape::Train
    } else if fitting < FITTING || !fitting.is_finite() {
        Shape::Irregular
    } else if first >= FALL * last {
        Shape::Ramp
    } else {
        Shape::Flat
    };
    Stream {
        t_ps: rows[0].t_ps,
        packets: gaps.len() as u32,
        kind,
        first_gap_ps: first,
        last_gap_ps: last,
        mean_gap_ps: gaps.iter().map(|&gap| u128::from(gap)).sum::<u128>() as f64 / gaps.len() as f64,
        median_gap_ps: median,
        max_gap_ps: max,
        fitting,
        head_at_line_rate: (0..gaps.len().min(HEAD)).filter(|&place| at_line(place)).count() as u32,
        lateness: Lateness::Unknown,
    }
}

/// How the stream at `start` begins, whose own gaps may begin up to three before it, or within its head.
fn lateness(gaps: &[u64], start: usize, stream: &Stream, at_line: impl Fn(usize) -> bool) -> Lateness {
    let packets = f64::from(stream.packets);
    let falls = stream.first_gap_ps >= FALL * stream.last_gap_ps;
    if matches!(stream.kind, Shape::Train | Shape::Recovery) || !falls || stream.packets < SHORTEST as u32 {
        return Lateness::Unknown;
    }
    let slope = libm::log(stream.first_gap_ps / stream.last_gap_ps) / (packets - 1.0);
    let ramp = |place: usize| stream.first_gap_ps * libm::exp(-slope * (place as f64 - start as f64));
    let mut first = start;
    while first < start + HEAD && first + 1 < gaps.len() && at_line(first) {
        first += 1;
    }
    while first > 0 && first + RUN > start && !at_line(first - 1) {
        first -= 1;
    }
    let run = (0..first).rev().take_while(|&place| at_line(place)).take(RUN).count();
    // A ramp that is hardly above the line shows no difference.
    if run < RUN || first + 1 >= gaps.len() || at_line(first) || ramp(first) < FALL * gaps[first - 1] as f64 {
        return Lateness::Unknown;
    }
    let short = |place: usize| (gaps[place] as f64) < CUT * ramp(place);
    if short(first) && !short(first + 1) { Lateness::Late } else { Lateness::OnTime }
}

/// Gaps that change by the same ratio from packet to packet, fitted to those above the gaps of the line by the
/// median of slopes. Source: Theil 1950.
#[derive(Clone, Copy, Debug)]
struct Fit {
    start: f64,
    slope: f64,
}

impl Fit {
    fn of(gaps: &[u64], line: impl Fn(usize) -> f64) -> Fit {
        let points: Vec<(f64, f64)> = (gaps.iter().enumerate())
            .filter(|&(place, &gap)| gap as f64 > LINE * line(place))
            .map(|(place, &gap)| (place as f64, libm::log(gap as f64)))
            .collect();
        let half = points.len() / 2;
        let mut slopes: Vec<f64> = points
            .iter()
            .zip(&points[half..])
            .filter(|(one, other)| other.0 > one.0)
            .map(|(one, other)| (other.1 - one.1) / (other.0 - one.0))
            .collect();
        let slope = quantile(&mut slopes, 0.5).unwrap_or(f64::NAN);
        let mut starts: Vec<f64> = points.iter().map(|point| point.1 - slope * point.0).collect();
        Fit { start: quantile(&mut starts, 0.5).unwrap_or(f64::NAN), slope }
    }

    fn gap(&self, place: usize) -> f64 {
        libm::exp(self.start + self.slope * place as f64)
    }
}

fn quantile(values: &mut [f64], quantile: f64) -> Option<f64> {
    let place = ((values.len() as f64 * quantile) as usize).min(values.len().checked_sub(1)?);
    Some(*values.select_nth_unstable_by(place, f64::total_cmp).1)
}

#[cfg(test)]
mod tests;
