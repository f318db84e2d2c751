//! The frames of a capture on a timeline: a track for each interface and each flow.
//!
//! A frame is a slice as long as its transmission takes where the rate of the link is known, and else a mark. Where there are
//! several interfaces, arrows lead a frame from one to the next. A flow is drawn at the interface that saw it first, with
//! the bytes of TCP that were sent and not acknowledged. Below an interface that sends PAUSE there is a track for each class
//! that it asks the other end to hold.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use super::capture::{Capture, Interface, Record, Stamp, TraceError};
use super::hash::fold;
use super::layers::dissect;
use super::packet::{Dissected, Packet, Part, Transport};
use super::segment::Segment;
use super::timeline::{Happening, Timeline, Track};
use super::window::{Order, u16_at};
use crate::units::Rate;

/// How frames are drawn.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// What flows are called, by `FROM → TO` with addresses and ports; others are called that.
    pub flows: BTreeMap<String, String>,
    /// Bytes that a frame takes on the link beyond its size with check sequence, by interface; of others preamble and gap, 20 bytes.
    pub framing: BTreeMap<String, u64>,
    /// Rate of links whose rate the capture does not say.
    pub rate: Option<Rate>,
}

/// Preamble, start of frame and gap between frames. Source: IEEE 802.3, 4.2.3.2.
const FRAMING: u64 = 20;
const FCS: u64 = 4;
/// Flows with a track of their own. Those that come later share one.
const MOST_FLOWS: usize = 4096;
const MAC_CONTROL: u16 = 0x8808;
const PAUSE: u16 = 0x0001;
const PRIORITY_PAUSE: u16 = 0x0101;
/// What notifications of simulated runs are sent as (IEEE 802a).
const EXPERIMENTAL: u16 = 0x88b5;

/// A frame that has not been drawn: it ends no later than the next one begins.
#[derive(Debug)]
struct Waiting {
    from_ns: u64,
    to_ns: u64,
    arrow: Option<u64>,
    name: String,
    bytes: u64,
    /// The flow, if it is drawn here, and what the frame is to it.
    flow: Option<(Track, &'static str, Notes)>,
}

/// Numbers about a frame, with their names.
type Notes = Vec<(&'static str, u64)>;

#[derive(Debug)]
struct Place {
    track: Track,
    rate: Option<Rate>,
    framing: u64,
    waiting: Option<Waiting>,
    /// What it asked the other end to hold: classes, and all of them ([`ALL`]).
    holds: [Option<Hold>; ALL + 1],
}

/// The other end was asked to stop, and until when.
#[derive(Clone, Copy, Debug)]
struct Hold {
    from_ns: u64,
    until_ns: u64,
    stops: u64,
}

/// Behind the traffic classes: what PAUSE holds.
const ALL: usize = 8;
/// Bits that a quantum of PAUSE takes. Source: IEEE 802.3, 31B.2.
const QUANTUM_BITS: u128 = 512;

#[derive(Debug)]
struct Flow {
    name: String,
    track: Track,
    /// The interface that saw it first.
    home: u32,
    /// First byte that was not sent, and first that was not acknowledged.
    sent: Option<u32>,
    acked: Option<u32>,
    flying: Option<Track>,
}

/// Draws captures.
#[derive(Debug)]
pub struct Drawing<'a> {
    style: &'a Style,
    ports: Option<Track>,
    flows_above: Option<Track>,
    places: Vec<Place>,
    flows: BTreeMap<Key, Flow>,
    /// Frames drawn.
    pub frames: u64,
}

/// Addresses and ports of a flow, and its protocol.
type Key = (u128, u16, u128, u16, u8);

/// Why a capture could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] TraceError),
    /// The timeline could not be written.
    #[error("{0}")]
    Write(#[from] io::Error),
}

impl<'a> Drawing<'a> {
    /// Nothing drawn yet.
    pub fn new(style: &'a Style) -> Drawing<'a> {
        Drawing { style, ports: None, flows_above: None, places: Vec::new(), flows: BTreeMap::new(), frames: 0 }
    }

    /// Draws all frames of `capture` below the track `above`. `go_on(place)` is asked now and then, with the bytes read.
    ///
    /// # Errors
    /// The capture cannot be read, or the timeline not be written.
    pub fn draw<R: Read, W: Write>(
        mut self,
        capture: &mut Capture<R>,
        out: &mut Timeline<W>,
        above: Option<Track>,
        mut go_on: impl FnMut(u64) -> bool,
    ) -> Result<u64, DrawError> {
        self.ports = Some(out.track(above, "ports")?);
        self.flows_above = Some(out.track(above, "flows")?);
        let mut kept = Vec::new();
        let mut last_ns = 0;
        loop {
            if self.frames.is_multiple_of(1 << 12) && !go_on(capture.place()) {
                return Err(TraceError::Cancelled.into());
            }
            let Some(Record { stamp, interface, link, frame_bytes, bytes }) = capture.next_record()? else { break };
            kept.clear();
            kept.extend_from_slice(bytes);
            // Interfaces are described where they are first needed.
            while self.places.len() < capture.interfaces().len() {
                let place = self.place(&capture.interfaces()[self.places.len()], out)?;
                self.places.push(place);
            }
            self.frames += 1;
            last_ns = last_ns.max(ns(stamp));
            self.on_record(&Record { stamp, interface, link, frame_bytes, bytes: &kept }, out)?;
        }
        for place in 0..self.places.len() {
            self.settle(place, u64::MAX, out)?;
            for class in 0..=ALL {
                self.release(place, class, last_ns, out)?;
            }
        }
        Ok(self.frames)
    }

    fn place<W: Write>(&self, interface: &Interface, out: &mut Timeline<W>) -> io::Result<Place> {
        let rate = interface.rate.or(self.style.rate).filter(|rate| rate.bps() > 0);
        let unnamed = format!("interface {}", self.places.len());
        let name = if interface.name.is_empty() { &unnamed } else { &interface.name };
        Ok(Place {
            track: out.track(self.ports, name)?,
            rate,
            framing: self.style.framing.get(&interface.name).copied().unwrap_or(FRAMING),
            waiting: None,
            holds: [None; ALL + 1],
        })
    }

    /// Takes up what a frame of flow control that was sent by `now_ns` asks of the other end.
    fn on_pause<W: Write>(
        &mut self,
        place: usize,
        record: &Record<'_>,
        now_ns: u64,
        out: &mut Timeline<W>,
    ) -> io::Result<()> {
        for (class, quanta) in asked(record.bytes) {
            let Place { rate, holds, .. } = &mut self.places[place];
            let time_ns = |rate: Rate| QUANTUM_BITS * u128::from(quanta) * 1_000_000_000 / u128::from(rate.bps());
            let until_ns = rate.map_or(u64::MAX, |rate| now_ns.saturating_add(time_ns(rate) as u64));
            match &mut holds[class] {
                Some(hold) if quanta > 0 && hold.until_ns >= now_ns => {
                    hold.until_ns = until_ns;
                    hold.stops += 1;
                }
                _ => {
                    self.release(place, class, now_ns, out)?;
                    if quanta > 0 {
                        self.places[place].holds[class] = Some(Hold { from_ns: now_ns, until_ns, stops: 1 });
                    }
                }
            }
        }
        Ok(())
    }

    /// Draws for how long the other end of an interface was asked to hold a class, up to `now_ns`.
    fn release<W: Write>(&mut self, place: usize, class: usize, now_ns: u64, out: &mut Timeline<W>) -> io::Result<()> {
        let Place { track, holds, .. } = &mut self.places[place];
        let Some(hold) = holds[class].take() else { return Ok(()) };
        let name = if class == ALL { "holds all".to_owned() } else { format!("holds class {class}") };
        let track = out.track(Some(*track), &name)?;
        let notes = [("frames that ask for it", hold.stops)];
        out.slice(track, hold.from_ns, hold.until_ns.min(now_ns), Happening { name: &name, arrow: None, notes: &notes })
    }

    fn on_record<W: Write>(&mut self, record: &Record<'_>, out: &mut Timeline<W>) -> io::Result<()> {
        let from_ns = ns(record.stamp);
        let number = record.interface as usize;
        self.settle(number, from_ns, out)?;
        let place = &self.places[number];
        let taken = u64::from(record.frame_bytes) + FCS + place.framing;
        let to_ns = place.rate.map_or(from_ns, |rate| {
            let whole = u128::from(taken) * 8 * 1_000_000_000 / u128::from(rate.bps());
            from_ns.saturating_add(whole as u64)
        });
        let bytes = u64::from(record.frame_bytes) + FCS;
        let mut waiting = Waiting { from_ns, to_ns, arrow: None, name: String::new(), bytes, flow: None };
        if let Dissected::Ip(packet) = dissect(record) {
            self.on_packet(record.interface, from_ns, &packet, &mut waiting, out)?;
        } else {
            waiting.name = named(record);
            self.on_pause(number, record, to_ns, out)?;
        }
        self.places[number].waiting = Some(waiting);
        Ok(())
    }

    fn on_packet<W: Write>(
        &mut self,
        interface: u32,
        now_ns: u64,
        packet: &Packet,
        waiting: &mut Waiting,
        out: &mut Timeline<W>,
    ) -> io::Result<()> {
        let (from, to) = match packet.transport {
            Transport::Tcp(ref segment) => (segment.from, segment.to),
            Transport::Udp { from, to, .. } => (from, to),
            Transport::Other => (0, 0),
        };
        let key = (packet.from.0, from, packet.to.0, to, packet.protocol);
        if !self.flows.contains_key(&key) {
            let flow = self.flow(interface, packet, (from, to), out)?;
            self.flows.insert(key, flow);
        }
        let several = self.places.len() > 1;
        let back = (packet.to.0, to, packet.from.0, from, packet.protocol);
        let flow = self.flows.get_mut(&key).expect("it was put there");
        waiting.name.clone_from(&flow.name);
        waiting.arrow = several.then(|| identity(packet));
        let is_home = flow.home == interface;
        if !is_home {
            return Ok(());
        }
        let (what, notes) = described(packet, flow.sent);
        waiting.flow = Some((flow.track, what, notes));
        let Transport::Tcp(segment) = &packet.transport else { return Ok(()) };
        let end = segment.seq.wrapping_add(segment.length());
        flow.sent = Some(flow.sent.map_or(end, |sent| later(sent, end)));
        let mut flying = Vec::new();
        flying.extend(flow.step());
        if segment.has(Segment::ACK)
            && let Some(other) = self.flows.get_mut(&back)
        {
            other.acked = Some(other.acked.map_or(segment.ack, |acked| later(acked, segment.ack)));
            flying.extend(other.step());
        }
        for (track, bytes) in flying {
            out.value(track, now_ns, f64::from(bytes))?;
        }
        Ok(())
    }

    fn flow<W: Write>(
        &self,
        home: u32,
        packet: &Packet,
        (from, to): (u16, u16),
        out: &mut Timeline<W>,
    ) -> io::Result<Flow> {
        let written = match packet.transport {
            Transport::Other => format!("{} → {}", packet.from, packet.to),
            _ => format!("{} → {}", packet.from.with_port(from), packet.to.with_port(to)),
        };
        let name = self.style.flows.get(&written).cloned().unwrap_or(written);
        let is_tcp = matches!(packet.transport, Transport::Tcp(_));
        let (track, flying) = if self.flows.len() < MOST_FLOWS {
            let track = out.track(self.flows_above, &name)?;
            let flying = if is_tcp { Some(out.counter(Some(track), "sent and not acknowledged", "B")?) } else { None };
            (track, flying)
        } else {
            (out.track(self.flows_above, "other flows")?, None)
        };
        Ok(Flow { name, track, home, sent: None, acked: None, flying })
    }

    /// Draws the frame that waits at an interface, which ends by `by_ns`.
    fn settle<W: Write>(&mut self, place: usize, by_ns: u64, out: &mut Timeline<W>) -> io::Result<()> {
        let Place { track, rate, waiting, .. } = &mut self.places[place];
        let Some(frame) = waiting.take() else { return Ok(()) };
        let to_ns = frame.to_ns.min(by_ns.max(frame.from_ns));
        let notes = [("bytes", frame.bytes)];
        let what = Happening { name: &frame.name, arrow: frame.arrow, notes: &notes };
        match rate {
            Some(_) => out.slice(*track, frame.from_ns, to_ns, what)?,
            None => out.instant(*track, frame.from_ns, what)?,
        }
        if let Some((track, name, notes)) = &frame.flow {
            out.instant(*track, frame.from_ns, Happening { name, arrow: None, notes })?;
        }
        Ok(())
    }
}

impl Flow {
    /// Bytes sent and not acknowledged, where both are known.
    fn step(&self) -> Option<(Track, u32)> {
        let flying = self.sent?.wrapping_sub(self.acked?);
        // What is acknowledged and was not seen is not in flight.
        self.flying.map(|track| (track, if flying > u32::MAX / 2 { 0 } else { flying }))
    }
}

/// The later of two numbers of TCP.
fn later(one: u32, other: u32) -> u32 {
    if other.wrapping_sub(one) as i32 > 0 { other } else { one }
}

/// Nanoseconds since 1970, or since the run began; 0 for what was before.
fn ns(stamp: Stamp) -> u64 {
    u64::try_from(i128::from(stamp.seconds) * 1_000_000_000 + i128::from(stamp.ps / 1_000)).unwrap_or(0)
}

/// What distinguishes a packet from others, wherever it is seen.
fn identity(packet: &Packet) -> u64 {
    let (one, other) = match packet.transport {
        Transport::Tcp(ref segment) => {
            let stamp = segment.timestamps.map_or(0, |(value, _)| value);
            let ports = u64::from(segment.from) << 16 | u64::from(segment.to);
            (u64::from(segment.seq) << 32 | u64::from(segment.ack), ports << 32 | u64::from(stamp ^ segment.payload))
        }
        Transport::Udp { from, to, payload, content } => {
            (u64::from(from) << 16 | u64::from(to), u64::from(payload) << 32 | u64::from(content))
        }
        Transport::Other => (0, 0),
    };
    let part = match packet.part {
        Part::Whole => 0,
        Part::Fragment { id, offset, .. } => u64::from(id) << 32 | u64::from(offset),
    };
    let id = u64::from(packet.id.unwrap_or(0)) << 8 | u64::from(packet.protocol);
    let ends = fold(packet.from.0 as u64 ^ packet.to.0.rotate_left(64) as u64, packet.to.0 as u64);
    fold(fold(fold(ends, id), fold(one, other)), part).max(1)
}

/// What a packet is to its flow, with what its header says; `sent`: the first byte that was not sent before it.
fn described(packet: &Packet, sent: Option<u32>) -> (&'static str, Notes) {
    let Transport::Tcp(segment) = &packet.transport else {
        return ("datagram", vec![("IP bytes", u64::from(packet.ip_bytes))]);
    };
    let name = if segment.has(Segment::SYN) {
        "SYN"
    } else if segment.has(Segment::RST) {
        "RST"
    } else if segment.payload > 0 {
        let is_again = sent.is_some_and(|sent| (sent.wrapping_sub(segment.seq) as i32) > 0);
        if is_again { "data again or late" } else { "data" }
    } else if segment.has(Segment::FIN) {
        "FIN"
    } else if segment.sacks > 0 {
        "SACK"
    } else {
        "ACK"
    };
    let mut notes = vec![("seq", u64::from(segment.seq)), ("payload bytes", u64::from(segment.payload))];
    if segment.has(Segment::ACK) {
        notes.extend([("ack", u64::from(segment.ack)), ("window, not scaled", u64::from(segment.window))]);
    }
    (name, notes)
}

/// The classes that a frame of flow control names, or all, and for how many quanta each is to stop: 0 to go on.
fn asked(bytes: &[u8]) -> Vec<(usize, u16)> {
    let field = |place: usize| (bytes.len() >= place + 2).then(|| u16_at(bytes, place, Order::Big));
    match (field(12), field(14), field(16)) {
        (Some(MAC_CONTROL), Some(PAUSE), Some(quanta)) => vec![(ALL, quanta)],
        (Some(MAC_CONTROL), Some(PRIORITY_PAUSE), Some(named)) => {
            let classes = (0..ALL).filter(|class| named >> class & 1 == 1);
            classes.filter_map(|class| Some((class, field(18 + 2 * class)?))).collect()
        }
        _ => Vec::new(),
    }
}

/// What a frame without IP is.
fn named(record: &Record<'_>) -> String {
    let field = |place: usize| (record.bytes.len() >= place + 2).then(|| u16_at(record.bytes, place, Order::Big));
    let Some(kind) = field(12) else { return "frame cut short".into() };
    match (kind, field(14)) {
        (MAC_CONTROL, Some(PAUSE)) => match field(16) {
            Some(0) => "PAUSE: go on".into(),
            Some(quanta) => format!("PAUSE: stop for {quanta} quanta"),
            None => "PAUSE".into(),
        },
        (MAC_CONTROL, Some(PRIORITY_PAUSE)) => "PAUSE of classes".into(),
        (EXPERIMENTAL, _) => "local experiment (0x88b5)".into(),
        _ => format!("frame of type {kind:#06x}"),
    }
}
