//! ERF, the format of Endace DAG cards: records without a file header, stamps in units of 2^-32 s.
//!
//! Source: ERF, record header, extension headers and types.

use super::capture::{Interface, Link, Stamp, Step};
use super::window::{Order, u16_at, u64_at};

/// Length of the header of a record.
pub(crate) const HEADER: usize = 16;
/// Length of an extension header.
const EXTENSION: usize = 8;
/// An Ethernet record has two bytes (offset and pad) before the frame.
const ETHERNET_PAD: usize = 2;
const ETHERNET_FCS: u32 = 4;
const META: u8 = 27;
const PAD: u8 = 48;

/// Records that must follow each other for an ERF file to be recognised, unless it ends before.
const LOOK_RECORDS: usize = 4;
/// Longest time between the stamps of neighbouring records that is believed when a file is recognised, in seconds.
const LOOK_SECONDS: i64 = 30 * 86_400;

/// What the header of a record says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) stamp: Stamp,
    kind: u8,
    interface: u8,
    /// Of the whole record.
    length: usize,
    /// Frames lost before this one, in records that count them.
    lost: u16,
    /// Length on the wire.
    wire: u16,
    /// Bytes before the frame.
    pub(crate) skip: usize,
}

impl Head {
    /// The header at the start of `bytes`; the number of bytes needed when they are too few.
    fn read(bytes: &[u8]) -> Result<Head, usize> {
        if bytes.len() < HEADER {
            return Err(HEADER);
        }
        let ticks = u64_at(bytes, 0, Order::Little);
        let kind = bytes[8] & 0x7f;
        let mut skip = HEADER;
        let mut more = bytes[8] & 0x80 != 0;
        while more {
            let Some(first) = bytes.get(skip) else { return Err(skip + EXTENSION) };
            more = first & 0x80 != 0;
            skip += EXTENSION;
        }
        if is_ethernet(kind) {
            skip += ETHERNET_PAD;
        }
        Ok(Head {
            stamp: Stamp {
                seconds: (ticks >> 32) as i64,
                ps: ((u128::from(ticks as u32) * 1_000_000_000_000) >> 32) as u64,
            },
            kind,
            interface: bytes[9] & 3,
            length: usize::from(u16_at(bytes, 10, Order::Big)),
            lost: if counts_losses(kind) { u16_at(bytes, 12, Order::Big) } else { 0 },
            wire: u16_at(bytes, 14, Order::Big),
            skip,
        })
    }

    /// What the frame begins with.
    pub(crate) fn link(&self) -> Link {
        match self.kind {
            kind if is_ethernet(kind) => Link::Ethernet,
            1 | 10 | 15 | 19 => Link::Hdlc,
            22 | 23 => Link::Raw,
            kind => Link::Other(u16::from(kind)),
        }
    }

    /// Length on the wire without the frame check sequence, which DAG cards count.
    pub(crate) fn frame_bytes(&self) -> u32 {
        let fcs = if is_ethernet(self.kind) { ETHERNET_FCS } else { 0 };
        u32::from(self.wire).saturating_sub(fcs)
    }

    /// Bytes of the frame that were kept, without its check sequence: a record is padded to a multiple of eight.
    fn kept(&self) -> usize {
        (self.length - self.skip).min(self.frame_bytes() as usize)
    }

    fn plausible(&self) -> bool {
        let known = matches!(self.kind, 1..=29 | PAD);
        known && self.length >= self.skip && (self.kind == META || self.kind == PAD || self.wire > 0)
    }
}

/// The header of a record that another format carries.
pub(crate) fn inner(bytes: &[u8]) -> Option<Head> {
    Head::read(bytes).ok().filter(Head::plausible)
}

fn is_ethernet(kind: u8) -> bool {
    matches!(kind, 2 | 11 | 16 | 20)
}

/// Records with a colour or a hash carry it in the place of the loss counter.
fn counts_losses(kind: u8) -> bool {
    matches!(kind, 1..=9 | 12 | 17 | 18 | 21..=25)
}

/// Whether `bytes` look like ERF records, which have no magic number.
pub(crate) fn is_erf(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut before: Option<Stamp> = None;
    for _ in 0..LOOK_RECORDS {
        let Ok(head) = Head::read(rest) else { break };
        let far = before.is_some_and(|before| (head.stamp.seconds - before.seconds).abs() > LOOK_SECONDS);
        if !head.plausible() || far || head.stamp.seconds == 0 {
            return false;
        }
        before = Some(head.stamp);
        rest = rest.get(head.length..).unwrap_or(&[]);
    }
    before.is_some()
}

/// Reads records; interfaces are those of the flags, zero to three.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) interfaces: Vec<Interface>,
    /// Place in `interfaces` of each number.
    places: [Option<u32>; 4],
}

impl Reader {
    #[inline]
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Step {
        let head = match Head::read(bytes) {
            Ok(head) => head,
            Err(needed) if needed <= usize::from(u16::MAX) => return Step::Need(needed),
            Err(needed) => return Step::Damaged(format!("extension headers of more than {needed} bytes")),
        };
        if !head.plausible() {
            return Step::Damaged(format!("a record of type {} and {} bytes", head.kind, head.length));
        }
        if bytes.len() < head.length {
            return Step::Need(head.length);
        }
        if head.kind == META || head.kind == PAD {
            return Step::Skip(head.length);
        }
        let interface = self.place(&head);
        self.interfaces[interface as usize].lost += u64::from(head.lost);
        let kept = head.kept();
        Step::Frame {
            stamp: head.stamp,
            interface,
            link: head.link(),
            frame_bytes: head.frame_bytes(),
            skip: head.skip,
            kept,
            rest: head.length - head.skip - kept,
        }
    }

    fn place(&mut self, head: &Head) -> u32 {
        let number = usize::from(head.interface);
        if let Some(place) = self.places[number] {
            return place;
        }
        let place = self.interfaces.len() as u32;
        self.interfaces.push(Interface {
            name: format!("port {number}"),
            link: head.link(),
            snap_bytes: 0,
            fcs_bytes: 0,
            rate: None,
            ticks_per_s: 1 << 32,
            lost: 0,
        });
        self.places[number] = Some(place);
        place
    }
}
