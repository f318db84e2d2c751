//! Timelines out: tracks with slices, counters and arrows, in the format of Perfetto.
//!
//! A file is a sequence of packets of protobuf, all of one writer. Names are written once and then numbered. Times are
//! whole nanoseconds, as the format has them. Source: PERFETTO, trace_packet.proto, track_event.proto,
//! track_descriptor.proto, counter_descriptor.proto, debug_annotation.proto, interned_data.proto.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// A track of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track(u64);

/// Something at a moment, or for a time.
#[derive(Clone, Copy, Debug)]
pub struct Happening<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Happenings with the same number are joined by arrows, in order of time.
    pub arrow: Option<u64>,
    /// Numbers about it, with their names.
    pub notes: &'a [(&'static str, u64)],
}

/// Writes a timeline.
#[derive(Debug)]
pub struct Timeline<W> {
    out: W,
    tracks: BTreeMap<(u64, String), Track>,
    names: BTreeMap<String, u64>,
    notes: BTreeMap<&'static str, u64>,
    /// Names that the packet under way is the first to need.
    fresh: Vec<u8>,
    event: Vec<u8>,
    packet: Vec<u8>,
    begun: bool,
}

/// Fields of messages, by message.
mod field {
    pub(super) const TRACE_PACKET: u32 = 1;

    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;

    pub(super) const EVENT_NAMES: u32 = 2;
    pub(super) const ANNOTATION_NAMES: u32 = 3;
    pub(super) const IID: u32 = 1;
    pub(super) const TEXT: u32 = 2;

    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const CHILD_ORDERING: u32 = 11;
    pub(super) const RANK: u32 = 12;
    pub(super) const UNIT_NAME: u32 = 6;

    pub(super) const ANNOTATIONS: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME_IID: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(super) const FLOW_IDS: u32 = 47;

    pub(super) const ANNOTATION_NAME: u32 = 1;
    pub(super) const UINT_VALUE: u32 = 3;
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// Children stand in the order of their ranks.
const EXPLICIT: u64 = 3;
/// The one sequence of packets.
const SEQUENCE: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

impl<W: Write> Timeline<W> {
    /// Begin a timeline.
    pub fn new(out: W) -> Timeline<W> {
        Timeline {
            out,
            tracks: BTreeMap::new(),
            names: BTreeMap::new(),
            notes: BTreeMap::new(),
            fresh: Vec::new(),
            event: Vec::new(),
            packet: Vec::new(),
            begun: false,
        }
    }

    /// The track `name` below `parent`, which is made where there is none yet.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn track(&mut self, parent: Option<Track>, name: &str) -> io::Result<Track> {
        self.described(parent, name, None)
    }

    /// The same for values in `unit`.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn counter(&mut self, parent: Option<Track>, name: &str, unit: &str) -> io::Result<Track> {
        self.described(parent, name, Some(unit))
    }

    /// How many tracks there are.
    pub fn tracks(&self) -> usize {
        self.tracks.len()
    }

    fn described(&mut self, parent: Option<Track>, name: &str, unit: Option<&str>) -> io::Result<Track> {
        let above = parent.map_or(0, |track| track.0);
        if let Some(track) = self.tracks.get(&(above, name.to_string())) {
            return Ok(*track);
        }
        let number = self.tracks.len() as u64 + 1;
        self.tracks.insert((above, name.to_string()), Track(number));
        self.event.clear();
        let out = &mut self.event;
        number_field(out, field::UUID, number);
        bytes_field(out, field::NAME, name.as_bytes());
        if above != 0 {
            number_field(out, field::PARENT, above);
        }
        match unit {
            Some(unit) => {
                let mut counter = Vec::new();
                bytes_field(&mut counter, field::UNIT_NAME, unit.as_bytes());
                bytes_field(out, field::COUNTER, &counter);
            }
            None => number_field(out, field::CHILD_ORDERING, EXPLICIT),
        }
        number_field(out, field::RANK, number);
        self.write(None, field::TRACK_DESCRIPTOR)?;
        Ok(Track(number))
    }

    /// What happened on a track from `from_ns` to `to_ns`. Slices of a track must not overlap, but for one within another.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn slice(&mut self, track: Track, from_ns: u64, to_ns: u64, what: Happening<'_>) -> io::Result<()> {
        self.happening(track, BEGIN, from_ns, what)?;
        self.event.clear();
        number_field(&mut self.event, field::TYPE, END);
        number_field(&mut self.event, field::TRACK, track.0);
        self.write(Some(to_ns.max(from_ns)), field::TRACK_EVENT)
    }

    /// What happened on a track at `at_ns`.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn instant(&mut self, track: Track, at_ns: u64, what: Happening<'_>) -> io::Result<()> {
        self.happening(track, INSTANT, at_ns, what)
    }

    /// The value of a counter from `at_ns` on.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn value(&mut self, track: Track, at_ns: u64, value: f64) -> io::Result<()> {
        self.event.clear();
        number_field(&mut self.event, field::TYPE, COUNTER);
        number_field(&mut self.event, field::TRACK, track.0);
        fixed_field(&mut self.event, field::DOUBLE_COUNTER_VALUE, value.to_bits());
        self.write(Some(at_ns), field::TRACK_EVENT)
    }

    /// What was written to, after all of it was handed over.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn happening(&mut self, track: Track, kind: u64, at_ns: u64, what: Happening<'_>) -> io::Result<()> {
        self.event.clear();
        for &(name, value) in what.notes {
            let known = self.notes.len() as u64 + 1;
            let fresh = &mut self.fresh;
            let id = *self.notes.entry(name).or_insert_with(|| {
                interned(fresh, field::ANNOTATION_NAMES, known, name);
                known
            });
            let mut note = Vec::with_capacity(16);
            number_field(&mut note, field::ANNOTATION_NAME, id);
            number_field(&mut note, field::UINT_VALUE, value);
            bytes_field(&mut self.event, field::ANNOTATIONS, &note);
        }
        number_field(&mut self.event, field::TYPE, kind);
        let id = if let Some(id) = self.names.get(what.name) {
            *id
        } else {
            let id = self.names.len() as u64 + 1;
            self.names.insert(what.name.to_string(), id);
            interned(&mut self.fresh, field::EVENT_NAMES, id, what.name);
            id
        };
        number_field(&mut self.event, field::NAME_IID, id);
        number_field(&mut self.event, field::TRACK, track.0);
        if let Some(arrow) = what.arrow {
            fixed_field(&mut self.event, field::FLOW_IDS, arrow);
        }
        self.write(Some(at_ns), field::TRACK_EVENT)
    }

    /// A packet around `event`, with the names that it is the first to need.
    fn write(&mut self, at_ns: Option<u64>, kind: u32) -> io::Result<()> {
        self.packet.clear();
        if let Some(at_ns) = at_ns {
            number_field(&mut self.packet, field::TIMESTAMP, at_ns);
        }
        number_field(&mut self.packet, field::SEQUENCE, SEQUENCE);
        let flags = if self.begun { NEEDS_STATE } else { STATE_CLEARED };
        self.begun = true;
        number_field(&mut self.packet, field::SEQUENCE_FLAGS, flags);
        if !self.fresh.is_empty() {
            bytes_field(&mut self.packet, field::INTERNED_DATA, &self.fresh);
            self.fresh.clear();
        }
        bytes_field(&mut self.packet, kind, &self.event);
        let mut head = Vec::with_capacity(8);
        key(&mut head, field::TRACE_PACKET, LENGTH);
        varint(&mut head, self.packet.len() as u64);
        self.out.write_all(&head)?;
        self.out.write_all(&self.packet)
    }
}

/// Wire types of protobuf. Source: PROTOBUF, Encoding.
const VARINT: u32 = 0;
const FIXED: u32 = 1;
const LENGTH: u32 = 2;

fn interned(out: &mut Vec<u8>, kind: u32, id: u64, text: &str) {
    let mut entry = Vec::with_capacity(text.len() + 8);
    number_field(&mut entry, field::IID, id);
    bytes_field(&mut entry, field::TEXT, text.as_bytes());
    bytes_field(out, kind, &entry);
}

fn key(out: &mut Vec<u8>, field: u32, wire: u32) {
    varint(out, u64::from(field << 3 | wire));
}

fn number_field(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, VARINT);
    varint(out, value);
}

fn fixed_field(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, FIXED);
    out.extend(value.to_le_bytes());
}

fn bytes_field(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    key(out, field, LENGTH);
    varint(out, value.len() as u64);
    out.extend(value);
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
