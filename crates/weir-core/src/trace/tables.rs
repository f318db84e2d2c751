//! The results of an analysis as named columns.
//!
//! A connection has two flows, one for each direction: its number times two, and one more for the way back. Times
//! are in ps since the first frame. What is unknown is null.

mod flows;

use self::flows::flows;
use super::analysis::{Analysis, Connection};
use super::capture::{Capture, Ending, Interface, Link};
use super::connection::CAUSES;
use super::layers::tunnel_name;
use super::p_streams::{self, Lateness, Shape};
use super::points::Point;
use super::side::{Kind, Side};
use crate::columns::{Named, Table};
use crate::histogram::SparseHistogram;
use crate::units::Rate;
use crate::{row, table};

/// What the shape of probe streams is judged against.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamOptions {
    /// Packets of a stream; found out where it is not given.
    pub packets: Option<u32>,
    /// Rate of the sender's link; the closest packets show it where it is not given.
    pub link_rate: Option<Rate>,
}

impl Analysis {
    #[allow(clippy::cognitive_complexity, clippy::too_many_lines)] // a list of tables and their columns
    /// All tables, of all records of `capture` that were taken.
    pub fn tables<R: std::io::Read>(mut self, capture: &Capture<R>, streams: StreamOptions) -> Vec<Table> {
        self.end();
        let origin = self.origin().unwrap_or_default();
        let totals = &self.totals;
        let ending = capture.ending().unwrap_or(&Ending::Whole);
        let place = match ending {
            Ending::Whole => None,
            Ending::Truncated { place } | Ending::Damaged { place, .. } => Some(*place),
        };
        let mut repeats = Vec::new();
        for (id, connection) in (0u32..).zip(&mut self.connections) {
            for (way, side) in (0..).zip(&mut connection.sides) {
                if let Some(sender) = &mut side.tcp {
                    repeats.extend(sender.repeats().map(|row| (id * 2 + way, row)));
                }
            }
        }
        let connections = &self.connections;
        let found: Vec<_> = (self.details.iter())
            .flat_map(|(id, sides)| (0u32..).zip(sides).map(move |(way, detail)| (id * 2 + way, detail)))
            .map(|(flow, detail)| (flow, detail, p_streams::find(&detail.data, streams)))
            .collect();
        vec![
            table!("trace", "The file as a whole; one row.": [()] => |()|
                format: Text = capture.format().to_string(),
                ending: Text = ending.to_string(),
                ending_byte: MaybeU64 = place,
                origin_s: F64 = origin.seconds as f64,
                origin_ps: U64 = origin.ps,
                end_ps: U64 = totals.end_ps,
                frames: U64 = totals.frames,
                frame_bytes: U64 = totals.frame_bytes,
                kept_bytes: U64 = totals.kept_bytes,
                snapped_frames: U64 = totals.snapped,
                ip_packets: U64 = totals.ip_packets,
                other_frames: U64 = totals.not_ip,
                unknown_link_frames: U64 = totals.unknown_link,
                unstamped_frames: U64 = capture.unstamped(),
                short_frames: U64 = totals.short,
                malformed_frames: U64 = totals.malformed,
                unknown_frames: U64 = totals.unknown.values().sum::<u64>(),
                tunnelled_frames: U64 = totals.tunnelled,
                headless_packets: U64 = totals.headless,
                fragments: U64 = totals.fragments,
                backward_stamps: U64 = totals.backward,
                backward_most_ps: U64 = totals.backward_most_ps,
                untracked_packets: U64 = totals.untracked,
                left_out_rows: U64 = self.log.series.left_out + self.log.events.left_out,
            ),
            table!("interfaces", "An interface of the file.": (0u32..).zip(capture.interfaces()) => |(id, interface)|
                interface: U32 = id,
                name: Text = interface.name.clone(),
                link: Text = interface.link.to_string(),
                snap_bytes: U32 = interface.snap_bytes,
                ticks_per_s: U64 = interface.ticks_per_s,
                frames: U64 = self.interface_frames.get(id as usize).copied().unwrap_or(0),
                lost_frames: U64 = interface.lost,
            ),
            table!("unknown", "Frames of an Ethernet type that is not looked into.": &totals.unknown => |(kind, frames)|
                ethertype: U32 = u32::from(*kind),
                frames: U64 = *frames,
            ),
            flows(connections),
            Table::new("intervals", [], self.log.series.rows.iter().map(|row| ([], row))),
            Table::new("points", [], self.points(capture.interfaces()).into_iter().map(|row| ([], row))),
            table!("gaps", "A bin of the gaps between packets with data.": each_side(connections)
                .flat_map(|(flow, _, side)| side.gaps.bins().map(move |bin| (flow, bin)))
                => |(flow, (low, high, count))|
                flow: U32 = flow,
                low_ps: U64 = low,
                high_ps: U64 = high,
                gaps: U64 = count,
            ),
            table!("rtts", "A bin of the round-trip times of a flow, by how they were found.": each_side(connections).flat_map(|(flow, _, side)| rtt_bins(flow, side))
                => |(flow, source, (low, high, count))|
                flow: U32 = flow,
                source: Text = source.to_string(),
                low_ps: U64 = low,
                high_ps: U64 = high,
                samples: U64 = count,
            ),
            table!("waits", "A bin of the times for which acknowledgements were kept back, ahead of or behind the capture.": each_side(connections).flat_map(|(flow, _, side)| wait_bins(flow, side))
                => |(flow, part, (low, high, count))|
                flow: U32 = flow,
                part: Text = part.to_string(),
                low_ps: U64 = low,
                high_ps: U64 = high,
                samples: U64 = count,
            ),
            table!("rounds", "A bin of the bytes of a round trip.": each_side(connections)
                .flat_map(|(flow, _, side)| side.tcp.iter().flat_map(move |sender| sender.rounds.bins().map(move |bin| (flow, bin))))
                => |(flow, (low, high, count))|
                flow: U32 = flow,
                low_bytes: U64 = low,
                high_bytes: U64 = high,
                rounds: U64 = count,
            ),
            table!("trains", "A bin of the rates of packets back to back.": each_side(connections)
                .flat_map(|(flow, _, side)| side.tcp.iter().flat_map(move |sender| {
                    let busy = u32::from(sender.trains.are_of_busy_times());
                    sender.trains.bins().map(move |bin| (flow, busy, bin))
                }))
                => |(flow, busy, (low, high, count))|
                flow: U32 = flow,
                low_bps: U64 = low,
                high_bps: U64 = high,
                trains: U64 = count,
                busy: U32 = busy,
            ),
            table!("repeats", "Segments of a flow that were sent again equally often.": repeats => |(flow, (times, segments, spurious))|
                flow: U32 = flow,
                times: U32 = times,
                segments: U64 = segments,
                spurious_segments: U64 = spurious,
            ),
            Table::new("recoveries", [], self.log.events.recoveries.iter().map(|row| ([], row))),
            Table::new("losses", [], self.log.events.losses.iter().map(|row| ([], row))),
            Table::new("stalls", [], self.log.events.stalls.iter().map(|row| ([], row))),
            Table::new(
                "packets",
                ["flow"],
                found.iter().flat_map(|(flow, detail, _)| detail.data.iter().map(|row| ([*flow], row))),
            ),
            Table::new(
                "acks",
                ["flow"],
                found.iter().flat_map(|(flow, detail, _)| detail.acks.iter().map(|row| ([*flow], row))),
            ),
            Table::new(
                "sacks",
                ["flow"],
                found.iter().flat_map(|(flow, detail, _)| detail.sacks.iter().map(|row| ([*flow], row))),
            ),
            table!("details", "A flow of a detailed connection.": &found => |(flow, detail, streams)|
                flow: U32 = *flow,
                packets: U64 = detail.data.len() as u64,
                left_out_packets: U64 = detail.left_out,
                stream_packets: MaybeU32 = streams.packets,
                line_gap_ps_per_byte: MaybeF64 = streams.line_ps_per_byte,
            ),
            table!("p_streams", "A probe stream found in a detailed connection.": found.iter().flat_map(|(flow, _, streams)| {
                (0u32..).zip(&streams.streams).map(move |(number, row)| (*flow, number, row))
            }) => |(flow, number, row)|
                flow: U32 = flow,
                stream: U32 = number,
                t_ps: U64 = row.t_ps,
                packets: U32 = row.packets,
                kind: U32 = row.kind as u32,
                first_gap_ps: MaybeF64 = known(row.first_gap_ps),
                last_gap_ps: MaybeF64 = known(row.last_gap_ps),
                mean_gap_ps: MaybeF64 = known(row.mean_gap_ps),
                median_gap_ps: U64 = row.median_gap_ps,
                max_gap_ps: U64 = row.max_gap_ps,
                fitting: MaybeF64 = known(row.fitting),
                head_at_line_rate: U32 = row.head_at_line_rate,
                late: MaybeU32 = match row.lateness {
                    Lateness::Unknown => None,
                    Lateness::OnTime => Some(0),
                    Lateness::Late => Some(1),
                },
            ),
            Table::of_names("kind_names", "A kind of packet.", "kind", Kind::NAMES),
            Table::of_names("cause_names", "Why a flow stalled.", "cause", &CAUSES),
            Table::of_names("stream_kind_names", "A kind of probe stream.", "kind", Shape::NAMES),
        ]
    }
}

row! {
    /// A point of the network at which a flow was captured.
    struct PointRow {
        flow: u32,
        name: String => point,
        packets: u64,
        judged: bool,
    }
}

impl Analysis {
    fn points(&self, interfaces: &[Interface]) -> Vec<PointRow> {
        let mut rows = Vec::new();
        for (connection, (points, spare)) in &self.left_out().0 {
            for (way, spare) in (0u32..).zip(spare) {
                let seen = points.seen.iter().map(|(point, seen)| (*point, seen[way as usize]));
                let seen: Vec<_> = seen.filter(|&(_, packets)| packets > 0).collect();
                rows.extend(seen.iter().map(|&(point, packets)| PointRow {
                    flow: connection * 2 + way,
                    name: point_name(
                        point,
                        interfaces,
                        seen.iter().filter(|(other, _)| other.shares_place(point)).count() > 1,
                    ),
                    packets,
                    judged: !spare.contains(&point),
                }));
            }
        }
        rows.sort_by(|one, other| (one.flow, &one.name).cmp(&(other.flow, &other.name)));
        rows
    }
}

/// Its interface; with the `hops` that are left, where that shows packets of several points.
fn point_name(point: Point, interfaces: &[Interface], hops: bool) -> String {
    let interface = interfaces.get(point.interface as usize);
    let name = match interface {
        Some(interface) if !interface.name.is_empty() => interface.name.clone(),
        _ => format!("interface {}", point.interface),
    };
    let name = match interface.map(|interface| interface.link) {
        Some(Link::Cooked2) => format!("{name}, index {}", point.inner),
        Some(Link::Cooked) if point.is_outgoing() => format!("{name}, outgoing"),
        Some(Link::Cooked) => format!("{name}, incoming"),
        _ => name,
    };
    let name = match (point.vlans >> 12, point.vlans & 0xfff) {
        (0, 0) => name,
        (0, vlan) => format!("{name}, VLAN {vlan}"),
        (outer, inner) => format!("{name}, VLAN {inner} in {}", outer & 0xfff),
    };
    let name = match tunnel_name(point.tunnel) {
        Some(tunnel) => format!("{name}, {tunnel}"),
        None => name,
    };
    if hops { format!("{name}, {} hops left", point.hops) } else { name }
}

fn each_side(connections: &[Connection]) -> impl Iterator<Item = (u32, &Connection, &Side)> {
    (0u32..).zip(connections).flat_map(|(id, connection)| {
        (0u32..).zip(&connection.sides).map(move |(way, side)| (id * 2 + way, connection, side))
    })
}

fn rtt_bins(flow: u32, side: &Side) -> Vec<(u32, &'static str, (u64, u64, u64))> {
    let Some(sender) = &side.tcp else { return Vec::new() };
    let bins =
        |source, histogram: &SparseHistogram| -> Vec<_> { histogram.bins().map(|bin| (flow, source, bin)).collect() };
    let mut rows = bins("ack", &sender.rtt.histogram);
    rows.extend(bins("timestamp", &sender.echo.histogram));
    rows
}

fn wait_bins(flow: u32, side: &Side) -> Vec<(u32, &'static str, (u64, u64, u64))> {
    let Some(sender) = &side.tcp else { return Vec::new() };
    let parts = [("ahead", &sender.ahead), ("behind", &sender.behind)];
    parts.into_iter().flat_map(|(part, waits)| waits.bins().map(move |bin| (flow, part, bin))).collect()
}

/// Nothing where there is no number, as of streams without gaps.
fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}
