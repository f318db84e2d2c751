//! One direction of a flow: what was sent that way, and for TCP what became of it.
//!
//! This file: what is sent, for the first time or again. [`acks`]: what acknowledgments show of it.
//!
//! Above 400 lines: the state of a sender is one value, whose fields are described here.

mod acks;

use std::collections::{BTreeMap, VecDeque};

use super::compression::Compression;
use super::counts::Counts;
use super::edges::{Edges, Room};
use super::holes::{Hole, Holes};
use super::ids::Ids;
use super::joined::Joined;
use super::losses::Missed;
use super::pace::{Rounds, Trains};
use super::rtt::{Echo, Echoes, Samples, Smoothed, Stamped};
use super::segment::Segment;
use super::series::Open;
use super::waits::Waits;
use crate::histogram::SparseHistogram;
use crate::named;
use crate::units::Span;

/// Most segments that are remembered until their acknowledgment.
const MOST_IN_FLIGHT: usize = 1 << 16;
/// Most segments sent again within a round trip of which it is asked whether their first copies arrived.
const MOST_FRESH: usize = 256;
/// Most retransmitted segments whose count may still grow.
const MOST_REPEATS: usize = 1 << 16;
/// Segments that come this much later than the jump over them were sent again, where nothing else shows it.
/// Reordering in networks is a matter of a few milliseconds. Source: Wireshark TCP, out-of-order segments.
const REORDERING_PS: u64 = 3_000_000_000;
/// Segments next to a lost one that may show how long round trips took.
const BESIDE: usize = 16;
/// The newest acknowledgments that report one place in a packet that a host joined.
const PLACES: usize = 32;
/// How long a sender must have been seen before its clock is believed, ps.
const CLOCK_PS: u64 = 200_000_000_000;
/// Sequence spaces begin here, so that numbers before the first one seen exist.
const ORIGIN: u64 = 1 << 33;

named! {
    /// Why a data packet was sent, as far as the trace shows.
    pub(crate) enum Kind {
        New = "new",
        Retransmitted = "retransmitted",
        Reordered = "reordered",
        Duplicate = "duplicate",
        Probe = "probe",
    }
}

/// A segment that was sent for the first time.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    at: u64,
    id: Option<u16>,
    again: bool,
    /// From then to its selective acknowledgment, ps; 0 before that.
    took_ps: u64,
    /// Up to where what waited is known of it: a host joins packets of the wire, which are acknowledged one by one.
    known: u64,
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    end: u64,
    times: u32,
    spurious: bool,
    /// Identification of the last one.
    id: Option<u16>,
    /// When it was sent last, and with which value of the timestamps option.
    at: u64,
    value: Option<u32>,
    /// Its row of the table of losses.
    row: Option<u32>,
}

/// What a data packet turned out to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) kind: Kind,
    /// Place of its first byte in the sequence space.
    pub(crate) start: u64,
    /// Bytes that were not seen before.
    pub(crate) new_bytes: u64,
    /// How long it had waited, if it is the first byte that is not acknowledged, sent again.
    pub(crate) waited: Option<Waited>,
    /// How it was lost, if it was sent again for the first time.
    pub(crate) missed: Option<Missed>,
    /// Whether it lies beyond what was never seen.
    pub(crate) jumped: bool,
}

/// How long the first byte that is not acknowledged had waited when it was sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    /// Since it became the first, or was sent for the first time: ps.
    pub(crate) first_ps: u64,
    /// Since it was sent last, too: ps.
    pub(crate) again_ps: u64,
}

impl Data {
    fn of(kind: Kind, start: u64, new_bytes: u64) -> Data {
        Data { kind, start, new_bytes, waited: None, missed: None, jumped: false }
    }
}

/// What an acknowledgment did to the data of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    pub(crate) bytes: u64,
    pub(crate) rtt_ps: Option<u64>,
    pub(crate) echo: Option<Echo>,
    pub(crate) duplicate: bool,
    pub(crate) place: u64,
}

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) counts: Counts,
    /// Packets larger than a full one, by where their size is reported: see [`super::joined`].
    pub(crate) joined: Joined,
    pub(crate) open: Open,
    pub(crate) first_ps: Option<u64>,
    pub(crate) last_ps: u64,
    pub(crate) first_data_ps: Option<u64>,
    pub(crate) last_data_ps: Option<u64>,
    pub(crate) gaps: SparseHistogram,
    /// The least and the largest gap.
    pub(crate) gap_range_ps: Option<(u64, u64)>,
    pub(crate) ids: Ids,
    pub(crate) tcp: Option<Box<Sender>>,
}

impl Side {
    /// A packet with data left at `now`: count the gap since the one before.
    #[inline]
    pub(crate) fn departed(&mut self, now: u64) {
        if let Some(last) = self.last_data_ps {
            let gap = now.saturating_sub(last);
            self.gaps.count(Span::from_ps(gap.min(u64::MAX - 1)));
            let (least, most) = self.gap_range_ps.unwrap_or((gap, gap));
            self.gap_range_ps = Some((least.min(gap), most.max(gap)));
        }
        self.first_data_ps.get_or_insert(now);
        self.last_data_ps = Some(now);
    }
}

/// The data of a TCP sender, as seen at the place of the capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sender {
    /// End of the highest data seen.
    pub(crate) highest: u64,
    /// First byte not acknowledged.
    pub(crate) una: u64,
    /// When something was acknowledged last.
    advanced: u64,
    /// The first number seen, to which the places of packets are relative.
    pub(crate) base: u64,
    holes: Holes,
    in_flight: VecDeque<Sent>,
    repeats: BTreeMap<u64, Repeat>,
    /// Segments that were sent again once, twice, ... and whose count no longer grows.
    folded: BTreeMap<u32, (u64, u64)>,
    /// Timestamp value of the highest data.
    highest_value: Option<u32>,
    /// End of the highest data that was sent again or came late: acknowledgments up to it may have waited.
    disturbed: u64,
    echoes: Echoes,
    pub(crate) rtt: Samples,
    pub(crate) echo: Samples,
    pub(crate) smoothed: Smoothed,
    /// From its data to their acknowledgments: the part of the round trip ahead of the point, and what waits there.
    pub(crate) ahead: Waits,
    /// From acknowledgments to the data that they let go: the part behind the point.
    pub(crate) behind: Waits,
    /// When the segment was sent whose acknowledgment reported a round trip last, and that round trip.
    edge: Option<(u64, u64)>,
    /// Where the newest parts of packets end whose acknowledgments reported how long they took, when these left, and how long.
    places: VecDeque<(u64, u64, u64)>,
    /// When the newest data left that is acknowledged.
    acked_sent: u64,
    /// The value of the timestamps option of the data that reported the part behind last, and when it came.
    tick: Option<(u32, u64)>,
    /// Values of the timestamps option of the first data and of the last, and when they came.
    first_tick: Option<(u32, u64)>,
    last_tick: Option<(u32, u64)>,
    /// What the newest data waited behind the point, as far as that is known.
    newest_behind: Option<u64>,
    pub(crate) trains: Trains,
    pub(crate) rounds: Rounds,
    pub(crate) compression: Compression,
    /// Window that the other side announced last, bytes, and whether its scale is known.
    pub(crate) window: Option<u64>,
    pub(crate) room: Room,
    pub(crate) edges: Edges,
    pub(crate) mss: u32,
    /// Since when nothing is outstanding.
    pub(crate) empty_since: Option<u64>,
    /// When the newest data was sent, if less than a full segment: nothing more was there to send.
    pub(crate) drained_since: Option<u64>,
    /// The byte that was sent alone last, if nothing was sent since: it may have probed a window.
    probed: Option<u64>,
    /// Rows of the table of losses that report what was sent again for nothing.
    pub(crate) spurious_rows: Vec<u32>,
    /// What was sent again less than a round trip ago, oldest first.
    fresh: VecDeque<Fresh>,
    /// Whether what was outstanding when the capture began is unknown, as its SYN was not seen.
    headless: bool,
    /// When the first data was seen.
    began: Option<u64>,
}

/// A segment that was sent again for the first time a short time ago.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    at: u64,
    start: u64,
    end: u64,
    /// Its row of the table of losses.
    row: u32,
}

impl Sender {
    /// The sequence space begins at `seq`.
    pub(crate) fn new(seq: u32) -> Sender {
        let base = ORIGIN + u64::from(seq);
        Sender {
            highest: base,
            una: base,
            base,
            mss: 536, // RFC 9293, section 3.7.1
            headless: true,
            ..Sender::default()
        }
    }

    /// The place of a sequence number: that of its 2^32 meanings which is nearest to the highest data.
    #[inline]
    pub(crate) fn place(&self, seq: u32) -> u64 {
        let distance = seq.wrapping_sub(self.highest as u32) as i32;
        self.highest.saturating_add_signed(i64::from(distance))
    }

    /// Bytes sent and not acknowledged.
    #[inline]
    pub(crate) fn outstanding(&self) -> u64 {
        self.highest.saturating_sub(self.una)
    }

    /// An acknowledgment alone was sent with the value `value` of the timestamps option.
    pub(crate) fn stamp(&mut self, value: u32, now: u64) {
        self.echoes.sent(value, Stamped::Acknowledgment, now);
    }

    /// A segment that takes numbers was sent at `now`. `round_trip_ps` is the least time in which the network can
    /// have asked for it again.
    pub(crate) fn on_data(
        &mut self,
        now: u64,
        segment: &Segment,
        id: Option<u16>,
        step: Option<i16>,
        round_trip_ps: Option<u64>,
    ) -> Data {
        let start = self.place(segment.seq);
        let end = start + u64::from(segment.length());
        let plain = !segment.has(Segment::SYN | Segment::FIN | Segment::RST);
        // What follows a probed byte that was taken, and left before that was known, repeats it.
        let probed = self.probed == Some(start) && self.una == start + 1 && self.highest == start + 1;
        self.probed = (plain && segment.payload == 1).then_some(start);
        let start = if probed && end > start + 1 { start + 1 } else { start };
        if plain && segment.payload == 1 && (start + 1 == self.highest || self.window == Some(0)) {
            // A keep-alive, or a probe of a closed window; the byte comes again as data.
            return Data::of(Kind::Probe, start, 0);
        }
        let value = segment.timestamps.map(|(value, _)| value);
        if let Some(value) = value {
            self.echoes.sent(value, Stamped::Data, now);
            self.first_tick.get_or_insert((value, now));
            self.last_tick = Some((value, now));
        }
        if !plain && segment.has(Segment::SYN) {
            self.headless = false;
        }
        if self.began.is_none() && self.headless && start > self.highest {
            // Only acknowledgments were seen: what lies between had left before the capture began.
            (self.una, self.highest) = (start, start);
        }
        let began = *self.began.get_or_insert(now);
        if start >= self.highest {
            let before = self.newest_behind;
            self.waited_behind(now, value);
            let jumped = start > self.highest;
            if jumped {
                let behind_ps = before.or(self.newest_behind);
                let cut = self.may_precede(now, began, round_trip_ps);
                self.holes.jump(Hole { start: self.highest, end: start, since: now, behind_ps, cut });
            }
            self.extend(Sent { start, end, at: now, id, again: false, took_ps: 0, known: start }, value);
            return Data { jumped, ..Data::of(Kind::New, start, end - start) };
        }
        let below = end.min(self.highest);
        let (filled, hole) = self.holes.fill(start, below);
        let beyond = end.saturating_sub(self.highest);
        let kind = match hole {
            None => self.seen_before(start, end, id),
            Some(Hole { since, .. }) => {
                let value_ahead = value.zip(self.highest_value).map(|(value, highest)| value.wrapping_sub(highest));
                let limit = round_trip_ps.unwrap_or(REORDERING_PS);
                if sent_earlier(value_ahead, step, now.saturating_sub(since) < limit) {
                    Kind::Reordered
                } else {
                    Kind::Retransmitted
                }
            }
        };
        self.disturbed = self.disturbed.max(below);
        let (mut waited, mut missed) = (None, None);
        match kind {
            Kind::Retransmitted => {
                waited = (start <= self.una).then(|| self.waited(now, start));
                missed = (!self.repeats.contains_key(&start)).then(|| self.missed(start, below, hole));
                self.again(now, start, below, id, value);
            }
            Kind::Reordered => {
                self.remember(Sent { start, end: below, at: now, id, again: true, took_ps: 0, known: start })
            }
            _ => {}
        }
        if beyond > 0 {
            self.extend(Sent { start, end, at: now, id, again: true, took_ps: 0, known: start }, value);
        }
        Data { kind, start, new_bytes: filled + beyond, waited, missed, jumped: false }
    }

    /// For how much of the last `length_ps` data with the value `value`, which comes `now`, was under way: by how much the
    /// clock of its sender went on less since the data before. Ticks are as long as they were until then.
    pub(crate) fn stood_ps(&self, value: u32, now: u64, length_ps: u64) -> Option<u64> {
        let ((first, since), (last, until)) = (self.first_tick?, self.last_tick?);
        let ticks = last.wrapping_sub(first);
        let seen_ps = until.saturating_sub(since);
        if seen_ps < CLOCK_PS || ticks == 0 || ticks > u32::MAX / 2 {
            return None;
        }
        let passed = f64::from(value.wrapping_sub(last) as i32) * seen_ps as f64 / f64::from(ticks);
        let gap = now.saturating_sub(until).max(length_ps);
        Some((gap as f64 - passed.max(0.0)).max(0.0) as u64)
    }

    /// How long the segment that begins at `start`, the first that is not acknowledged, waits.
    fn waited(&self, now: u64, start: u64) -> Waited {
        let place = self.in_flight.partition_point(|sent| sent.end <= start);
        let first = self.in_flight.get(place).filter(|sent| sent.start <= start).map_or(0, |sent| sent.at);
        let first = first.max(self.advanced);
        let again = self.repeats.get(&start).map_or(first, |repeat| repeat.at.max(first));
        Waited { first_ps: now.saturating_sub(first), again_ps: now.saturating_sub(again) }
    }

    /// How the segment from `start` to `end` was lost: missed where there is a `hole`, else beyond this point. What is
    /// acknowledged was not lost: its acknowledgment was, or came late.
    fn missed(&self, start: u64, end: u64, hole: Option<Hole>) -> Missed {
        // Not from the first number seen: a retransmission may lie below it.
        let places = (start, end);
        if let Some(hole) = hole {
            return Missed { places, sent_ps: hole.since, before: true, beside_ps: hole.behind_ps, arrived: false };
        }
        let arrived = end <= self.una;
        let place = self.in_flight.partition_point(|sent| sent.end <= start);
        let sent_ps = self.in_flight.get(place).map_or(self.advanced, |sent| sent.at);
        let took = |sent: &Sent| (sent.took_ps > 0).then_some((sent.at, sent.took_ps));
        let after = self.in_flight.range(place..).take(BESIDE).find_map(took);
        let before = self.in_flight.range(..place).rev().take(BESIDE).find_map(took);
        // Of those on both sides, the one that was sent nearest in time saw the same queue.
        let whole = [after, before, self.edge].into_iter().flatten().map(|(at, took_ps)| (at, took_ps, u64::MAX));
        // Of parts of a packet that the host joined, the nearest did.
        let parts = self.places.iter().map(|&(end, at, took_ps)| (at, took_ps, end.abs_diff(start)));
        let nearest = parts.chain(whole).min_by_key(|&(at, _, apart)| (at.abs_diff(sent_ps), apart));
        let beside = nearest.map(|(at, took_ps, _)| (at, took_ps));
        // One that was sent a round trip before or after it saw another.
        let near = beside.filter(|(at, took_ps)| at.abs_diff(sent_ps) <= *took_ps);
        Missed { places, sent_ps, before: false, beside_ps: near.map(|(_, took_ps)| took_ps), arrived }
    }

    /// What data with `value` that came `now` waited behind the point: what was reported last, and the time since then for what
    /// left its sender at the same tick of its clock.
    fn waited_behind(&mut self, now: u64, value: Option<u32>) {
        if let (Some((tick, at)), Some(value), Some(last)) = (self.tick, value, self.behind.last_ps)
            && tick == value
        {
            let ps = last + now.saturating_sub(at);
            self.behind.take_reported(ps);
            self.newest_behind = Some(ps);
        }
    }

    /// Data with the value `value` reported at `now` that it came `ps` after the acknowledgment that let it go. If it `jumped`, it
    /// reports what waited where it jumped.
    pub(crate) fn let_go(&mut self, now: u64, value: Option<u32>, ps: u64, jumped: bool) {
        self.behind.take(ps, 1);
        // What is sent again during a recovery is no neighbour of what was lost behind the newest data.
        if value.is_none() || value == self.highest_value {
            self.newest_behind = Some(ps);
        }
        self.tick = value.map(|value| (value, now));
        if jumped {
            self.holes.reported_last(ps);
        }
    }

    /// Its loss is reported in `row` of the table of losses.
    pub(crate) fn reported_in(&mut self, start: u64, row: u32) {
        let Some(repeat) = self.repeats.get_mut(&start) else { return };
        repeat.row = Some(row);
        if self.fresh.len() == MOST_FRESH {
            self.fresh.pop_front();
        }
        self.fresh.push_back(Fresh { at: repeat.at, start, end: repeat.end, row });
    }

    /// Whether bytes that were all seen are the same packet once more, or were sent again.
    fn seen_before(&self, start: u64, end: u64, id: Option<u16>) -> Kind {
        let place = self.in_flight.partition_point(|sent| sent.start < start);
        let same = self
            .in_flight
            .get(place)
            .is_some_and(|sent| sent.start == start && sent.end == end && id.is_some() && sent.id == id && !sent.again);
        let same_again = id.is_some() && self.repeats.get(&start).is_some_and(|repeat| repeat.id == id);
        if same || same_again { Kind::Duplicate } else { Kind::Retransmitted }
    }

    /// What ends at `end` and left at `at` took `took_ps`.
    fn arrived_at(&mut self, end: u64, at: u64, took_ps: u64) {
        if self.places.len() == PLACES {
            self.places.pop_front();
        }
        self.places.push_back((end, at, took_ps));
    }

    fn extend(&mut self, sent: Sent, value: Option<u32>) {
        self.highest = sent.end;
        self.highest_value = value.or(self.highest_value);
        self.remember(sent);
    }

    fn remember(&mut self, sent: Sent) {
        if self.in_flight.back().is_some_and(|last| last.end > sent.start) {
            return; // filled a hole: no sample is taken of it
        }
        if self.in_flight.len() == MOST_IN_FLIGHT {
            self.in_flight.pop_front();
        }
        self.in_flight.push_back(sent);
    }

    /// The bytes from `start` to `end` were sent again.
    fn again(&mut self, now: u64, start: u64, end: u64, id: Option<u16>, value: Option<u32>) {
        let first = self.in_flight.partition_point(|sent| sent.end <= start);
        for sent in self.in_flight.range_mut(first..).take_while(|sent| sent.start < end) {
            sent.again = true;
        }
        let repeat = self.repeats.entry(start).or_insert(Repeat {
            end,
            times: 0,
            spurious: false,
            id,
            at: now,
            value,
            row: None,
        });
        repeat.times += 1;
        repeat.id = id;
        repeat.at = now;
        repeat.value = value;
        repeat.end = repeat.end.max(end);
        if self.repeats.len() > MOST_REPEATS
            && let Some((_, repeat)) = self.repeats.pop_first()
        {
            self.fold(repeat);
        }
    }

    fn fold(&mut self, repeat: Repeat) {
        let (segments, spurious) = self.folded.entry(repeat.times).or_default();
        *segments += 1;
        *spurious += u64::from(repeat.spurious);
    }

    /// How many segments were sent again once, twice, ..., and of how many of them the receiver said that it had
    /// them already.
    pub(crate) fn repeats(&mut self) -> impl Iterator<Item = (u32, u64, u64)> + '_ {
        for (_, repeat) in std::mem::take(&mut self.repeats) {
            self.fold(repeat);
        }
        self.folded.iter().map(|(&times, &(segments, spurious))| (times, segments, spurious))
    }
}

/// Whether a segment that filled a hole left its sender before the data beyond the hole: after its timestamp where
/// that differs, after its identification where those count, else by time.
fn sent_earlier(value_ahead: Option<u32>, step: Option<i16>, soon: bool) -> bool {
    match (value_ahead, step) {
        (Some(ahead @ 1..), _) => (ahead as i32) < 0,
        (_, Some(step)) => step < 0,
        _ => soon,
    }
}
