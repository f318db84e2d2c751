//! Capture files of any known format, read as a stream of records.

use std::fmt;
use std::io::{self, Read};

use super::window::{Order, Window};
use super::{erf, pcap, pcapng, recognise};
use crate::units::Rate;

/// Bytes of the largest record that is believed; tcpdump writes at most 262144, Wireshark reads more only for buses.
pub(crate) const LARGEST_RECORD: usize = 1 << 24;

/// A moment, since 1970 in most captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Whole seconds.
    pub seconds: i64,
    /// Picoseconds beyond them, below 10^12.
    pub ps: u64,
}

impl Stamp {
    /// Picoseconds from `earlier` to this one; 0 when it is later, all that fits when it is more than 213 days away.
    #[inline]
    pub fn since(self, earlier: Stamp) -> u64 {
        let ps = (i128::from(self.seconds) - i128::from(earlier.seconds)) * 1_000_000_000_000 + i128::from(self.ps)
            - i128::from(earlier.ps);
        u64::try_from(ps.max(0)).unwrap_or(u64::MAX)
    }
}

/// What a frame begins with. Source: tcpdump LINKTYPE, the registry of link-layer header types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Link {
    /// Ethernet (1).
    Ethernet,
    /// IPv4 or IPv6 without anything before it (12, 14, 101, 228, 229).
    Raw,
    /// Linux "cooked" capture of the device `any` (113).
    Cooked,
    /// Its second version (276).
    Cooked2,
    /// BSD loopback: an address family in the order of the host (0), or in network order (108).
    Loopback,
    /// PPP or Cisco HDLC with its first two bytes (9, 50, 104, ERF HDLC).
    Hdlc,
    /// An ERF record inside of another format (197).
    Erf,
    /// Something that is counted and not looked into.
    Other(u16),
}

impl Link {
    /// The link type of pcap and pcapng.
    pub(crate) fn from_number(number: u16) -> Link {
        match number {
            0 | 108 => Link::Loopback,
            1 => Link::Ethernet,
            9 | 50 | 104 => Link::Hdlc,
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            113 => Link::Cooked,
            197 => Link::Erf,
            276 => Link::Cooked2,
            other => Link::Other(other),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Link::Other(number) => match named(*number) {
                Some(name) => write!(f, "{name} ({number})"),
                None => write!(f, "link type {number}"),
            },
            known => write!(f, "{known:?}"),
        }
    }
}

/// What link types are that people capture and that are not looked into. Source: tcpdump LINKTYPE.
fn named(number: u16) -> Option<&'static str> {
    Some(match number {
        6 => "Token Ring",
        10 => "FDDI",
        105 => "IEEE 802.11",
        107 => "Frame Relay",
        119 => "IEEE 802.11 with a Prism header",
        127 => "IEEE 802.11 with radiotap",
        147..=162 => "private use",
        187 | 201 => "Bluetooth HCI",
        189 | 220 => "USB of Linux",
        195 | 215 | 230 => "IEEE 802.15.4",
        227 => "CAN",
        239 => "netfilter log",
        247 => "InfiniBand",
        249 => "USB of Windows",
        253 => "Netlink",
        _ => return None,
    })
}

/// Where frames were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Its name, if the file has it.
    pub name: String,
    /// What its frames begin with.
    pub link: Link,
    /// Most bytes of a frame that were kept; 0 is no limit.
    pub snap_bytes: u32,
    /// Bytes of the frame check sequence at the end of each frame, as far as the file shows.
    pub fcs_bytes: u8,
    /// Rate of the link, if the file has it.
    pub rate: Option<Rate>,
    /// Ticks of the clock in a second.
    pub ticks_per_s: u64,
    /// Frames that the capture lost, as far as the file shows.
    pub lost: u64,
}

/// One captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When it was seen.
    pub stamp: Stamp,
    /// Place in [`Capture::interfaces`].
    pub interface: u32,
    /// What it begins with.
    pub link: Link,
    /// Its length on the wire, without a frame check sequence.
    pub frame_bytes: u32,
    /// What was kept of it.
    pub bytes: &'a [u8],
}

/// How a capture ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// With the end of a record.
    Whole,
    /// Within a record, as when the capturing program was killed or the disk was full.
    Truncated {
        /// Place of the record that is not whole, in bytes from the beginning.
        place: u64,
    },
    /// With something that is no record; what comes after it was not read.
    Damaged {
        /// Its place, in bytes from the beginning.
        place: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Whole => write!(f, "whole"),
            Ending::Truncated { place } => write!(f, "the record at byte {place} is cut off"),
            Ending::Damaged { place, what } => write!(f, "damaged at byte {place}: {what}"),
        }
    }
}

/// Why a file cannot be read as a capture.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It is something else.
    #[error("not a capture (pcap, pcapng or ERF): {0}")]
    NotACapture(String),
    /// It is a capture, of a kind that is not read.
    #[error("{0}")]
    Unsupported(String),
    /// The system refused to read on.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// Somebody asked to stop.
    #[error("stopped")]
    Cancelled,
}

/// The format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// pcap, the format of tcpdump.
    Pcap {
        /// The byte order of its numbers.
        order: Order,
        /// Whether stamps are in ns instead of us.
        nanoseconds: bool,
    },
    /// pcapng, the format of Wireshark.
    Pcapng,
    /// ERF, the format of DAG cards.
    Erf,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |order| if order == Order::Big { "big-endian" } else { "little-endian" };
        match *self {
            Format::Pcap { order, nanoseconds: true } => write!(f, "pcap, ns, {}", word(order)),
            Format::Pcap { order, nanoseconds: false } => write!(f, "pcap, us, {}", word(order)),
            Format::Pcapng => write!(f, "pcapng"),
            Format::Erf => write!(f, "ERF"),
        }
    }
}

#[derive(Debug)]
enum Reader {
    Pcap(pcap::Reader),
    Pcapng(pcapng::Reader),
    Erf(erf::Reader),
}

/// What a reader makes of the bytes at its place.
pub(crate) enum Step {
    /// A frame: `skip` bytes of headers, `kept` bytes of it, then `rest` bytes up to the next record.
    Frame { stamp: Stamp, interface: u32, link: Link, frame_bytes: u32, skip: usize, kept: usize, rest: usize },
    /// Nothing of interest, of this length.
    Skip(usize),
    /// This many bytes are needed.
    Need(usize),
    /// No record.
    Damaged(String),
}

/// A capture, read as a stream: memory for one record.
#[derive(Debug)]
pub struct Capture<R> {
    window: Window<R>,
    reader: Reader,
    format: Format,
    ending: Option<Ending>,
}

impl<R: Read> Capture<R> {
    /// Find out what `reader` holds, and read as far as the first record.
    ///
    /// # Errors
    /// `reader` fails, or holds no capture of a known format; the message says what it holds instead.
    pub fn new(reader: R) -> Result<Capture<R>, TraceError> {
        let mut window = Window::new(reader);
        window.ask(recognise::LOOK)?;
        let bytes = window.bytes();
        let (reader, format, header) = if let Some(found) = pcap::Reader::recognise(bytes)? {
            (Reader::Pcap(found.0), found.1, pcap::HEADER)
        } else if pcapng::is_pcapng(bytes) {
            (Reader::Pcapng(pcapng::Reader::default()), Format::Pcapng, 0)
        } else if let Some(other) = recognise::other(bytes) {
            return Err(TraceError::NotACapture(other));
        } else if erf::is_erf(bytes) {
            (Reader::Erf(erf::Reader::default()), Format::Erf, 0)
        } else {
            return Err(TraceError::NotACapture(recognise::unknown(bytes)));
        };
        window.take(header);
        Ok(Capture { window, reader, format, ending: None })
    }

    /// What the file is.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Where frames were captured, as far as was read.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.reader {
            Reader::Pcap(reader) => std::slice::from_ref(&reader.interface),
            Reader::Pcapng(reader) => &reader.interfaces,
            Reader::Erf(reader) => &reader.interfaces,
        }
    }

    /// How the capture ended; `None` before its end.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Frames so far whose stamps the file does not say.
    pub(crate) fn unstamped(&self) -> u64 {
        match &self.reader {
            Reader::Pcapng(reader) => reader.unstamped,
            Reader::Pcap(_) | Reader::Erf(_) => 0,
        }
    }

    /// Bytes read.
    pub fn place(&self) -> u64 {
        self.window.place()
    }

    /// The next frame; `None` at the end, which [`Capture::ending`] describes.
    ///
    /// # Errors
    /// `reader` fails. Damage is none: it ends the capture.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        if self.ending.is_some() {
            return Ok(None);
        }
        loop {
            let step = match &mut self.reader {
                Reader::Pcap(reader) => reader.step(self.window.bytes()),
                Reader::Pcapng(reader) => reader.step(self.window.bytes()),
                Reader::Erf(reader) => reader.step(self.window.bytes()),
            };
            match step {
                Step::Frame { stamp, interface, link, frame_bytes, skip, kept, rest } => {
                    let all = self.window.take(skip + kept + rest);
                    let bytes = &all[skip..skip + kept];
                    return Ok(Some(Record { stamp, interface, link, frame_bytes, bytes }));
                }
                Step::Skip(count) => {
                    self.window.take(count);
                }
                Step::Need(count) => {
                    if !self.window.ask(count)? {
                        let place = self.window.place();
                        let whole = self.window.bytes().is_empty();
                        self.ending = Some(if whole { Ending::Whole } else { Ending::Truncated { place } });
                        return Ok(None);
                    }
                }
                Step::Damaged(what) => {
                    self.ending = Some(Ending::Damaged { place: self.window.place(), what });
                    return Ok(None);
                }
            }
        }
    }
}
