//! One direction of a flow: what was sent that way, and for TCP what became of it.

use std::collections::{BTreeMap, VecDeque};

use super::compression::Compression;
use super::holes::{Hole, Holes};
use super::joined::Joined;
use super::rtt::{Echoes, Samples, Smoothed};
use super::segment::Segment;
use super::series::Open;
use crate::histogram::SparseHistogram;
use crate::units::Span;

/// Most segments that are remembered until their acknowledgment.
const MOST_IN_FLIGHT: usize = 1 << 16;
/// Most retransmitted segments whose count may still grow.
const MOST_REPEATS: usize = 1 << 16;
/// Segments that come this much later than the jump over them were sent again, where nothing else tells.
/// Reordering in networks is a matter of a few milliseconds. Source: Wireshark TCP, out-of-order segments.
const REORDERING_PS: u64 = 3_000_000_000;
/// Sequence spaces begin here, so that numbers before the first one seen exist.
const ORIGIN: u64 = 1 << 33;

/// Why a data packet was sent, as far as the trace tells: the words of the table `kinds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    New,
    Retransmitted,
    Reordered,
    Duplicate,
    Probe,
}

/// The names of kinds, by number.
pub(crate) const KINDS: [&str; 5] = ["new", "retransmitted", "reordered", "duplicate", "probe"];

/// A segment that was sent for the first time.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    at: u64,
    id: Option<u16>,
    again: bool,
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    end: u64,
    times: u32,
    spurious: bool,
    /// Identification of the last one.
    id: Option<u16>,
    /// When it was sent last.
    at: u64,
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
        Data { kind, start, new_bytes, waited: None }
    }
}

/// What an acknowledgment did to the data of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    pub(crate) bytes: u64,
    pub(crate) rtt_ps: Option<u64>,
    pub(crate) echo_ps: Option<u64>,
    pub(crate) duplicate: bool,
    pub(crate) place: u64,
}

/// Counts of a direction; the columns of the table `flows`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) ip_bytes: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) new_bytes: u64,
    pub(crate) data_packets: u64,
    pub(crate) retransmitted: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) after_ack: u64,
    pub(crate) timeouts: u64,
    pub(crate) spurious: u64,
    pub(crate) reordered: u64,
    pub(crate) duplicates: u64,
    /// Packets that came again as they were.
    pub(crate) copies: u64,
    /// Time from packets to their copies, all together.
    pub(crate) copies_ps: u64,
    /// Packets that were captured at another point than the one that is judged.
    pub(crate) elsewhere: u64,
    /// Packets with data as the wire has them, where a host joins segments, as far as their size is known.
    pub(crate) segments: u64,
    pub(crate) retransmitted_segments: u64,
    /// Packets larger than a full one, by where their size is told: see [`super::joined`].
    pub(crate) joined: Joined,
    /// Time in which the sender had nothing more to send.
    pub(crate) application_ps: u64,
    pub(crate) probes: u64,
    pub(crate) acks: u64,
    pub(crate) dup_acks: u64,
    pub(crate) dsacks: u64,
    pub(crate) zero_windows: u64,
    pub(crate) unseen_bytes: u64,
    pub(crate) acked_bytes: u64,
    pub(crate) flight_max: u64,
    pub(crate) idle_ps: u64,
    pub(crate) window_limited_ps: u64,
    pub(crate) zero_window_ps: u64,
    pub(crate) recoveries: u64,
    pub(crate) compressions: u64,
    pub(crate) compressed_ps: u64,
    pub(crate) congestion_marks: u64,
    pub(crate) syn: u64,
    pub(crate) fin: u64,
    pub(crate) rst: u64,
}

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) counts: Counts,
    pub(crate) open: Open,
    pub(crate) first_ps: Option<u64>,
    pub(crate) last_ps: u64,
    pub(crate) first_data_ps: Option<u64>,
    pub(crate) last_data_ps: Option<u64>,
    pub(crate) gaps: SparseHistogram,
    pub(crate) ids: Ids,
    pub(crate) tcp: Option<Box<Sender>>,
}

impl Side {
    /// A packet with data left at `now`: count the gap since the one before.
    #[inline]
    pub(crate) fn departed(&mut self, now: u64) {
        if let Some(last) = self.last_data_ps {
            self.gaps.count(Span::from_ps(now.saturating_sub(last).min(u64::MAX - 1)));
        }
        self.first_data_ps.get_or_insert(now);
        self.last_data_ps = Some(now);
    }
}

/// Whether the identifications of a sender count its packets, so that they tell their order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ids {
    highest: Option<u16>,
    steps: u32,
    jumps: u32,
    /// Packets with the identification of the one before.
    same: u32,
}

impl Ids {
    /// Steps that must have been seen before identifications tell anything, and how many of 16 must be small.
    const STEPS: u32 = 16;
    /// A counter shared by several flows moves on in steps of this size.
    const SMALL: i16 = 64;

    /// The step from the highest identification seen to `id`: negative when it was sent earlier.
    pub(crate) fn step(&mut self, id: Option<u16>) -> Option<i16> {
        let id = id?;
        let Some(highest) = self.highest else {
            self.highest = Some(id);
            return None;
        };
        let step = id.wrapping_sub(highest) as i16;
        let told = self.tell();
        self.steps = self.steps.saturating_add(1);
        self.same = self.same.saturating_add(u32::from(step == 0));
        if !(-Ids::SMALL..=Ids::SMALL).contains(&step) {
            self.jumps = self.jumps.saturating_add(1);
        }
        if step > 0 || !told {
            self.highest = Some(id);
        }
        told.then_some(step)
    }

    /// Whether `id` is none of the last ones that were sent, where they are counted; after 65 536 packets they come again.
    pub(crate) fn is_new(self, id: u16) -> Option<bool> {
        let step = id.wrapping_sub(self.highest?) as i16;
        self.tell().then_some(step > 0)
    }

    /// Whether packets have identifications of their own, and not one for all.
    pub(crate) fn are_apart(self) -> bool {
        self.steps < Ids::STEPS || self.same <= self.steps / 16
    }

    fn tell(self) -> bool {
        self.steps >= Ids::STEPS && self.jumps <= self.steps / 16
    }
}

/// The data of a TCP sender, as seen at the place of the capture.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// End of the highest data seen.
    pub(crate) highest: u64,
    /// First byte not acknowledged.
    pub(crate) una: u64,
    /// When something was acknowledged last.
    advanced: u64,
    /// The first number seen, to which the places in tables are relative.
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
    pub(crate) compression: Compression,
    /// Window that the other side announced last, bytes, and whether its scale is known.
    pub(crate) window: Option<u64>,
    pub(crate) mss: u32,
    /// Since when nothing is outstanding.
    pub(crate) empty_since: Option<u64>,
    /// When the newest data was sent, if less than a full segment: nothing more was there to send.
    pub(crate) drained_since: Option<u64>,
}

impl Sender {
    /// The sequence space begins at `seq`.
    pub(crate) fn new(seq: u32) -> Sender {
        let base = ORIGIN + u64::from(seq);
        Sender {
            highest: base,
            una: base,
            advanced: 0,
            base,
            holes: Holes::default(),
            in_flight: VecDeque::new(),
            repeats: BTreeMap::new(),
            folded: BTreeMap::new(),
            highest_value: None,
            disturbed: 0,
            echoes: Echoes::default(),
            rtt: Samples::default(),
            echo: Samples::default(),
            smoothed: Smoothed::default(),
            compression: Compression::default(),
            window: None,
            mss: 536, // RFC 9293, section 3.7.1
            empty_since: None,
            drained_since: None,
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
        if plain && segment.payload == 1 && (start + 1 == self.highest || self.window == Some(0)) {
            // A keep-alive, or a probe of a closed window; the byte comes again as data.
            return Data::of(Kind::Probe, start, 0);
        }
        let value = segment.timestamps.map(|(value, _)| value);
        if let Some(value) = value {
            self.echoes.sent(value, now);
        }
        if start >= self.highest {
            if start > self.highest {
                self.holes.jump(Hole { start: self.highest, end: start, since: now });
            }
            self.extend(Sent { start, end, at: now, id, again: false }, value);
            return Data::of(Kind::New, start, end - start);
        }
        let below = end.min(self.highest);
        let (filled, since) = self.holes.fill(start, below);
        let beyond = end.saturating_sub(self.highest);
        let kind = match since {
            None => self.seen_before(start, end, id),
            Some(since) => {
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
        let mut waited = None;
        match kind {
            Kind::Retransmitted => {
                waited = (start <= self.una).then(|| self.waited(now, start));
                self.again(now, start, below, id);
            }
            Kind::Reordered => self.remember(Sent { start, end: below, at: now, id, again: true }),
            _ => {}
        }
        if beyond > 0 {
            self.extend(Sent { start, end, at: now, id, again: true }, value);
        }
        Data { kind, start, new_bytes: filled + beyond, waited }
    }

    /// How long the segment that begins at `start`, the first that is not acknowledged, waits.
    fn waited(&self, now: u64, start: u64) -> Waited {
        let place = self.in_flight.partition_point(|sent| sent.end <= start);
        let first = self.in_flight.get(place).filter(|sent| sent.start <= start).map_or(0, |sent| sent.at);
        let first = first.max(self.advanced);
        let again = self.repeats.get(&start).map_or(first, |repeat| repeat.at.max(first));
        Waited { first_ps: now.saturating_sub(first), again_ps: now.saturating_sub(again) }
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
    fn again(&mut self, now: u64, start: u64, end: u64, id: Option<u16>) {
        let first = self.in_flight.partition_point(|sent| sent.end <= start);
        for sent in self.in_flight.range_mut(first..).take_while(|sent| sent.start < end) {
            sent.again = true;
        }
        let repeat = self.repeats.entry(start).or_insert(Repeat { end, times: 0, spurious: false, id, at: now });
        repeat.times += 1;
        repeat.id = id;
        repeat.at = now;
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

    /// An acknowledgment of this data was seen at `now`. `window_changed` tells whether the window did.
    pub(crate) fn on_ack(&mut self, now: u64, segment: &Segment, window_changed: bool, counts: &mut Counts) -> Acked {
        let place = self.place(segment.ack);
        let mut acked = Acked { place, ..Acked::default() };
        if let Some((_, echo)) = segment.timestamps {
            acked.echo_ps = self.echoes.came(echo, now);
        }
        if place > self.una {
            acked.bytes = place - self.una;
            counts.acked_bytes += acked.bytes;
            counts.unseen_bytes += self.holes.close_below(place) + place.saturating_sub(self.highest);
            self.highest = self.highest.max(place);
            let waited = self.una < self.disturbed;
            self.una = place;
            self.advanced = now;
            acked.rtt_ps = self.pop_acked(now, waited, counts);
            if self.outstanding() == 0 {
                self.empty_since = Some(now);
            }
        } else if place == self.una
            && segment.length() == 0
            && !segment.has(Segment::RST)
            && self.outstanding() > 0
            && (segment.sacks > 0 || !window_changed)
        {
            acked.duplicate = true;
        }
        if let Some(&block) = segment.blocks().first() {
            self.duplicate_sack(block, segment, place, counts);
        }
        acked
    }

    /// Forget what is acknowledged; a round-trip time if the end of a segment was acknowledged that was sent once, by
    /// an acknowledgment that cannot have `waited` for others. Source: RFC 6298, section 3 (Karn's algorithm).
    fn pop_acked(&mut self, now: u64, waited: bool, counts: &mut Counts) -> Option<u64> {
        let mut last = None;
        while let Some(sent) = self.in_flight.front().copied().filter(|sent| sent.end <= self.una) {
            self.in_flight.pop_front();
            last = Some(sent);
        }
        let sent = last.filter(|sent| sent.end == self.una && !sent.again && !waited)?;
        let rtt = now.saturating_sub(sent.at);
        self.rtt.take(rtt);
        self.smoothed.take(rtt);
        if let Some(saved_ps) = self.compression.take(now, sent.at, self.rtt.min_ps.unwrap_or(0)) {
            counts.compressions += 1;
            counts.compressed_ps = counts.compressed_ps.saturating_add(saved_ps);
        }
        Some(rtt)
    }

    /// The first block tells of data that came twice when it lies below the acknowledgment or within the second.
    /// Source: RFC 2883, section 4.
    fn duplicate_sack(&mut self, (left, right): (u32, u32), segment: &Segment, ack: u64, counts: &mut Counts) {
        let (left, right) = (self.place(left), self.place(right));
        let within = segment.blocks().get(1).is_some_and(|&(second_left, second_right)| {
            self.place(second_left) <= left && right <= self.place(second_right)
        });
        if left >= right || !(right <= ack || within) {
            return;
        }
        counts.dsacks += 1;
        for (&start, repeat) in self.repeats.range_mut(..right).rev() {
            if repeat.end <= left {
                break;
            }
            if start < right && !repeat.spurious {
                repeat.spurious = true;
                counts.spurious += 1;
            }
        }
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
