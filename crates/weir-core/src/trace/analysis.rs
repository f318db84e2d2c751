//! Flows of a trace: who spoke with whom, how fast, and what TCP had to do for it. One pass, memory by flow.

mod copies;
mod key;
mod options;

use self::copies::takes_numbers;
pub(crate) use self::key::Key;
pub use self::options::{Options, Selection};

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Read;

use hashbrown::HashTable;

use super::capture::{Capture, Link, Record, Stamp, TraceError};
use super::connection::{At, Did, Events, Log, Tcp};
use super::detail::Detail;
use super::fragments::Fragments;
use super::layers::dissect;
use super::life::Life;
use super::packet::{Dissected, Packet, Part, Transport};
use super::points::{Choices, Copies, Point, Points};
use super::series::Series;
use super::side::{Kind, Side};
use crate::units::PS_PER_S;

/// Time in which no sender uses an identification for another datagram that looks the same.
const SHORT_PS: u64 = PS_PER_S;

/// A connection, or packets of another protocol between the same ends.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// From the sender of the first packet seen.
    pub(crate) key: Key,
    pub(crate) sides: [Side; 2],
    pub(crate) tcp: Option<Tcp>,
    pub(crate) life: Life,
    /// Where its packets were captured.
    pub(crate) points: Points,
    /// Where packets of each direction are left out.
    spare: Option<Box<[Vec<Point>; 2]>>,
    /// Place in `details`, if its packets are reported one by one.
    detail: Option<usize>,
}

/// Counts of the whole trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) frames: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) kept_bytes: u64,
    pub(crate) snapped: u64,
    pub(crate) ip_packets: u64,
    pub(crate) not_ip: u64,
    pub(crate) unknown_link: u64,
    /// Frames by their Ethernet type, where that is not looked into.
    pub(crate) unknown: BTreeMap<u16, u64>,
    /// Packets that came in tunnels.
    pub(crate) tunnelled: u64,
    /// Packets whose TCP or UDP header was cut off.
    pub(crate) headless: u64,
    pub(crate) short: u64,
    pub(crate) malformed: u64,
    pub(crate) fragments: u64,
    pub(crate) backward: u64,
    pub(crate) backward_most_ps: u64,
    pub(crate) untracked: u64,
    pub(crate) end_ps: u64,
}

/// The analysis of a trace, fed with its records.
#[derive(Debug)]
pub struct Analysis {
    options: Options,
    origin: Option<Stamp>,
    now: u64,
    pub(crate) totals: Totals,
    pub(crate) connections: Vec<Connection>,
    table: HashTable<u32>,
    fragments: Fragments,
    copies: Copies,
    pub(crate) log: Log,
    /// By direction: connection times two, plus one for the way back.
    pub(crate) details: Vec<(u32, [Detail; 2])>,
    /// Rows of `details`.
    rows: usize,
    pub(crate) interface_frames: Vec<u64>,
}

impl Analysis {
    /// Nothing was seen yet.
    pub fn new(options: Options) -> Analysis {
        Analysis {
            origin: None,
            now: 0,
            totals: Totals::default(),
            connections: Vec::new(),
            table: HashTable::new(),
            fragments: Fragments::default(),
            copies: Copies::default(),
            log: Log { series: Series::new(options.every.ps(), options.series_rows), events: Events::default() },
            details: Vec::new(),
            rows: 0,
            interface_frames: Vec::new(),
            options,
        }
    }

    /// Feed it with all records of `capture`. `look` receives the bytes read every few thousand records, and says
    /// whether to go on. Returns the capture, whose ending is known then.
    ///
    /// # Errors
    /// As of [`Capture::next_record`].
    pub fn read<R: Read>(
        &mut self,
        capture: &mut Capture<R>,
        mut look: impl FnMut(u64) -> bool,
    ) -> Result<(), TraceError> {
        const EVERY: u32 = 4096;
        let mut left = EVERY;
        while let Some(record) = capture.next_record()? {
            self.on_record(&record);
            left -= 1;
            if left == 0 {
                left = EVERY;
                if !look(capture.place()) {
                    return Err(TraceError::Cancelled);
                }
            }
        }
        look(capture.place());
        Ok(())
    }

    /// The numbers of the connections of TCP and UDP that carried most payload, the largest first, at most `most`.
    pub fn heaviest(&self, most: usize) -> Vec<u32> {
        let payload =
            |connection: &Connection| connection.sides.iter().map(|side| side.counts.payload_bytes).sum::<u64>();
        let mut found: Vec<(Reverse<u64>, u32)> = (0..)
            .zip(&self.connections)
            .filter(|(_, connection)| matches!(connection.key.protocol, 6 | 17))
            .map(|(place, connection)| (Reverse(payload(connection)), place))
            .collect();
        found.sort_unstable();
        found.truncate(most);
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// After the last record: of the connections that were reported packet by packet, only `chosen` matter. Whether all of
    /// these were reported: if not, the records have to be read once more.
    pub fn report_only(&mut self, chosen: &[u32]) -> bool {
        self.details.retain(|(place, _)| chosen.contains(place));
        self.details.len() == chosen.len()
    }

    /// After the last record: what has to be left out, because it was captured at several points, when the records are read
    /// once more; empty when there is no such thing, or when it was left out.
    pub fn choices(&self) -> Choices {
        if !self.options.choices.is_empty() {
            return Choices::default();
        }
        let spare = |connection: &Connection| {
            let heavy = |side: &Side| side.counts.payload_bytes;
            connection.points.spare(usize::from(heavy(&connection.sides[1]) > heavy(&connection.sides[0])))
        };
        let found = (0u32..).zip(&self.connections).filter(|(_, connection)| connection.points.seen.len() > 1);
        let chosen = found.filter_map(|(place, connection)| {
            spare(connection).map(|spare| (place, (connection.points.clone(), spare)))
        });
        Choices(chosen.collect())
    }

    /// What was left out in this reading.
    pub(crate) fn left_out(&self) -> &Choices {
        &self.options.choices
    }

    /// The stamp from which times are counted: that of the first record.
    pub(crate) fn origin(&self) -> Option<Stamp> {
        self.origin
    }

    /// Take a record.
    pub(crate) fn on_record(&mut self, record: &Record<'_>) {
        let origin = *self.origin.get_or_insert(record.stamp);
        let now = record.stamp.since(origin).min(u64::MAX / 4);
        let totals = &mut self.totals;
        if now < self.now || record.stamp < origin {
            totals.backward += 1;
            let back_ps = (self.now - now).saturating_add(origin.since(record.stamp));
            totals.backward_most_ps = totals.backward_most_ps.max(back_ps);
        }
        self.now = now;
        totals.end_ps = totals.end_ps.max(now);
        totals.frames += 1;
        totals.frame_bytes += u64::from(record.frame_bytes);
        totals.kept_bytes += record.bytes.len() as u64;
        totals.snapped += u64::from((record.bytes.len() as u64) < u64::from(record.frame_bytes));
        let interface = record.interface as usize;
        if interface >= self.interface_frames.len() {
            self.interface_frames.resize(interface + 1, 0);
        }
        self.interface_frames[interface] += 1;
        match dissect(record) {
            Dissected::Ip(packet) => {
                totals.ip_packets += 1;
                totals.tunnelled += u64::from(packet.tunnel != 0);
                totals.headless += u64::from(packet.is_headless());
                self.on_packet(now, record.frame_bytes, &packet, Point::of(record, &packet));
            }
            Dissected::NotIp => {
                totals.not_ip += 1;
                totals.unknown_link += u64::from(matches!(record.link, Link::Other(_)));
            }
            Dissected::Unknown(kind) => {
                totals.not_ip += 1;
                *totals.unknown.entry(kind).or_default() += 1;
            }
            Dissected::Short => totals.short += 1,
            Dissected::Malformed => totals.malformed += 1,
        }
    }

    fn on_packet(&mut self, now: u64, frame_bytes: u32, packet: &Packet, point: Point) {
        let put_together;
        let (whole, ports) = match packet.part {
            Part::Whole => (Some(&packet.transport), &packet.transport),
            Part::Fragment { .. } => {
                self.totals.fragments += 1;
                put_together = self.fragments.take(packet);
                (put_together.0.as_ref(), &put_together.1)
            }
        };
        let (from, to) = match *ports {
            Transport::Tcp(ref segment) => (segment.from, segment.to),
            Transport::Udp { from, to, .. } => (from, to),
            Transport::Other => (0, 0),
        };
        let key = Key { from: (packet.from, from), to: (packet.to, to), protocol: packet.protocol };
        let Some(place) = self.find(key, whole) else {
            self.totals.untracked += 1;
            return;
        };
        let connection = &mut self.connections[place as usize];
        // Between equal ends there is no way to distinguish directions.
        let from = usize::from(key.from != connection.key.from);
        let flows = [place * 2, place * 2 + 1];
        if let Some(Transport::Tcp(segment)) = whole {
            connection.life.note(from, segment);
        }
        if connection.spare.as_ref().is_some_and(|spare| spare[from].contains(&point)) {
            connection.sides[from].counts.elsewhere += 1;
            return;
        }
        let passed_ps = self.copies.again(now, (place, from), packet, point, &mut connection.points);
        if let Some(passed_ps) = passed_ps.filter(|&passed_ps| connection.is_copy(from, packet, passed_ps)) {
            let counts = &mut connection.sides[from].counts;
            counts.copies += 1;
            counts.copies_ps = counts.copies_ps.saturating_add(passed_ps);
            counts.duplicates += u64::from(takes_numbers(packet));
            return;
        }
        let side = &mut connection.sides[from];
        side.counts.packets += 1;
        side.counts.frame_bytes += u64::from(frame_bytes);
        side.counts.ip_bytes += u64::from(packet.ip_bytes);
        side.counts.congestion_marks += u64::from(packet.ecn == 3);
        side.first_ps.get_or_insert(now);
        side.last_ps = side.last_ps.max(now);
        let row = side.open.at(flows[from], now, &mut self.log.series);
        row.packets += 1;
        row.frame_bytes += u64::from(frame_bytes);
        let Some(transport) = whole else { return };
        let mut did = Did::default();
        let payload = match *transport {
            Transport::Tcp(ref segment) => {
                let tcp = connection.tcp.get_or_insert_default();
                let counts = &mut connection.sides[from].counts;
                counts.cut += u64::from(segment.cut);
                counts.headless += u64::from(packet.is_headless());
                counts.syn += u64::from(segment.has(super::Segment::SYN));
                counts.fin += u64::from(segment.has(super::Segment::FIN));
                counts.rst += u64::from(segment.has(super::Segment::RST));
                let at = At { now, from, flows };
                did = tcp.on_segment(at, segment, packet.id, &mut connection.sides, &mut self.log);
                segment.payload
            }
            Transport::Udp { payload, .. } => {
                let side = &mut connection.sides[from];
                let reordered = side.ids.step(packet.id).is_some_and(|step| step < 0);
                side.counts.reordered += u64::from(reordered);
                side.counts.new_bytes += u64::from(payload);
                let row = side.open.at(flows[from], now, &mut self.log.series);
                row.new_bytes += u64::from(payload);
                row.reordered += u64::from(reordered);
                let kind = if reordered { Kind::Reordered } else { Kind::New };
                did.data = Some((kind, side.counts.payload_bytes));
                payload
            }
            Transport::Other => packet.ip_bytes,
        };
        let side = &mut connection.sides[from];
        if payload > 0 {
            side.counts.data_packets += 1;
            side.counts.payload_bytes += u64::from(payload);
            side.departed(now);
            side.open.at(flows[from], now, &mut self.log.series).payload_bytes += u64::from(payload);
        }
        if let Some(detail) = connection.detail {
            let most = self.options.detail_rows;
            let sides = &mut self.details[detail].1;
            let rows = sides[from].report_data(now, payload, frame_bytes, did, most);
            self.rows += rows + sides[1 - from].report_ack(now, did, most);
            if matches!(self.options.detail, Selection::UpTo(rows) if self.rows > rows) {
                self.report_nothing();
            }
        }
    }

    /// There are too many packets to report all connections.
    #[cold]
    fn report_nothing(&mut self) {
        self.options.detail = Selection::Only(Vec::new());
        self.details = Vec::new();
        self.connections.iter_mut().for_each(|connection| connection.detail = None);
    }

    /// The number of the connection, which is made when it is new; `None` when there are too many.
    fn find(&mut self, key: Key, transport: Option<&Transport>) -> Option<u32> {
        let hash = key.hash();
        let connections = &self.connections;
        let found = self.table.find(hash, |&place| connections[place as usize].key.is_of(&key)).copied();
        if let Some(place) = found {
            let connection = &connections[place as usize];
            let from = usize::from(key.from != connection.key.from);
            let anew = match transport {
                Some(Transport::Tcp(segment)) => connection.life.begins_anew(from, segment),
                _ => false,
            };
            if !anew {
                return Some(place);
            }
        }
        if self.connections.len() >= self.options.connections {
            return found;
        }
        let place = self.connections.len() as u32;
        let is_reported = match &self.options.detail {
            Selection::Only(places) => places.contains(&place),
            Selection::UpTo(_) => true,
        };
        let detail = is_reported.then_some(self.details.len());
        if detail.is_some() {
            self.details.push((place, Default::default()));
        }
        self.connections.push(Connection {
            key,
            sides: Default::default(),
            tcp: None,
            life: Life::default(),
            points: Points::default(),
            spare: self.options.choices.of(place),
            detail,
        });
        match found {
            // Ports that are used again belong to the new connection from here on.
            Some(old) => {
                let slot = self.table.find_mut(hash, |&place| place == old).expect("it was found before");
                *slot = place;
            }
            None => {
                let connections = &self.connections;
                self.table.insert_unique(hash, place, |&place| connections[place as usize].key.hash());
            }
        }
        Some(place)
    }

    /// No more records come: close what is open.
    pub(crate) fn end(&mut self) {
        for connection in &mut self.connections {
            for side in &mut connection.sides {
                side.open.end(&mut self.log.series);
            }
            if let Some(tcp) = &mut connection.tcp {
                tcp.end(&mut self.log.events);
            }
        }
        self.log.series.rows.sort_by_key(|row| (row.flow, row.end_ps));
        self.log.events.recoveries.sort_by_key(|event| (event.flow, event.start_ps));
        self.log.events.losses.sort_by_key(|loss| (loss.flow, loss.again_ps));
        self.log.events.stalls.sort_by_key(|event| (event.flow, event.start_ps));
    }
}
