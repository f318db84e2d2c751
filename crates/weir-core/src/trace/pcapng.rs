//! pcapng, the format of Wireshark: blocks, several interfaces each with its own clock, several sections each with
//! its own byte order.
//!
//! Source: PCAPNG, sections 3 and 4.

use super::capture::{Interface, LARGEST_RECORD, Link, Stamp, Step};
use super::window::{Order, u16_at, u32_at, u64_at};
use crate::units::{PS_PER_S, Rate};

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
/// Type and length before, length after the body of a block.
const FRAMING: usize = 12;
/// Type, interface, stamp and lengths before the frame of a packet block.
const PACKET_HEADER: usize = 28;

/// Whether `bytes` begin as a section does.
pub(crate) fn is_pcapng(bytes: &[u8]) -> bool {
    bytes.starts_with(&SECTION.to_be_bytes()) && section_order(bytes).is_some()
}

/// The byte order that the section header at the start of `bytes` declares.
fn section_order(bytes: &[u8]) -> Option<Order> {
    match bytes.get(8..12)? {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(Order::Big),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(Order::Little),
        _ => None,
    }
}

/// The clock of an interface.
#[derive(Clone, Copy, Debug)]
struct Clock {
    ticks_per_s: u64,
    /// Of one tick, if that is a whole number.
    ps_per_tick: Option<u64>,
    offset_s: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    order: Order,
    /// Of all sections, in the order of their appearance.
    pub(crate) interfaces: Vec<Interface>,
    clocks: Vec<Clock>,
    /// The first interface of the current section.
    first: usize,
    /// Packets of blocks that have no room for a stamp.
    pub(crate) unstamped: u64,
}

impl Reader {
    #[inline]
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Step {
        if bytes.len() < FRAMING {
            return Step::Need(FRAMING);
        }
        if bytes.starts_with(&SECTION.to_be_bytes()) {
            let Some(order) = section_order(bytes) else {
                return Step::Damaged("a section header without its byte-order magic".into());
            };
            self.order = order;
            self.first = self.interfaces.len();
        }
        let kind = u32_at(bytes, 0, self.order);
        let length = u32_at(bytes, 4, self.order) as usize;
        if length < FRAMING || !length.is_multiple_of(4) || length > LARGEST_RECORD {
            return Step::Damaged(format!("a block says that it is {length} bytes long"));
        }
        if bytes.len() < length {
            return Step::Need(length);
        }
        let block = &bytes[..length];
        let after = u32_at(block, length - 4, self.order) as usize;
        if after != length {
            return Step::Damaged(format!("a block of {length} bytes ends as one of {after}"));
        }
        match kind {
            PACKET => self.packet(block),
            INTERFACE => self.interface(block),
            OLD_PACKET => self.old_packet(block),
            SIMPLE_PACKET => self.simple_packet(block),
            STATISTICS => self.statistics(block),
            _ => Step::Skip(length),
        }
    }

    #[inline]
    fn packet(&self, block: &[u8]) -> Step {
        let interface = u32_at(block, 8, self.order) as usize;
        self.frame(block, interface)
    }

    fn old_packet(&self, block: &[u8]) -> Step {
        let interface = usize::from(u16_at(block, 8, self.order));
        self.frame(block, interface)
    }

    /// A packet block of either kind, which differ in the width of the interface's number only.
    #[inline]
    fn frame(&self, block: &[u8], interface: usize) -> Step {
        if block.len() < PACKET_HEADER + 4 {
            return Step::Damaged(format!("a packet block of {} bytes", block.len()));
        }
        let place = self.first + interface;
        let (Some(found), Some(clock)) = (self.interfaces.get(place), self.clocks.get(place)) else {
            return Step::Damaged(format!("a packet of interface {interface}, which is not described"));
        };
        let field = |place| u32_at(block, place, self.order);
        let ticks = u64::from(field(12)) << 32 | u64::from(field(16));
        let kept = field(20) as usize;
        if kept > block.len() - PACKET_HEADER - 4 {
            return Step::Damaged(format!("a packet block of {} bytes says that it holds {kept}", block.len()));
        }
        Step::Frame {
            stamp: clock.stamp(ticks),
            interface: place as u32,
            link: found.link,
            frame_bytes: field(24).saturating_sub(u32::from(found.fcs_bytes)),
            skip: PACKET_HEADER,
            kept,
            rest: block.len() - PACKET_HEADER - kept,
        }
    }

    /// A packet of interface 0 without a stamp.
    fn simple_packet(&mut self, block: &[u8]) -> Step {
        let Some(found) = self.interfaces.get(self.first) else {
            return Step::Damaged("a packet before any interface is described".into());
        };
        if block.len() < FRAMING + 4 {
            return Step::Damaged(format!("a packet block of {} bytes", block.len()));
        }
        let length = u32_at(block, 8, self.order);
        let limit = if found.snap_bytes == 0 { u32::MAX } else { found.snap_bytes };
        let kept = (length.min(limit) as usize).min(block.len() - FRAMING - 4);
        self.unstamped += 1;
        Step::Frame {
            stamp: Stamp::default(),
            interface: self.first as u32,
            link: found.link,
            frame_bytes: length.saturating_sub(u32::from(found.fcs_bytes)),
            skip: FRAMING,
            kept,
            rest: block.len() - FRAMING - kept,
        }
    }

    fn interface(&mut self, block: &[u8]) -> Step {
        if block.len() < FRAMING + 8 {
            return Step::Damaged(format!("an interface description of {} bytes", block.len()));
        }
        let mut interface = Interface {
            name: String::new(),
            link: Link::from_number(u16_at(block, 8, self.order)),
            snap_bytes: u32_at(block, 12, self.order),
            fcs_bytes: 0,
            rate: None,
            ticks_per_s: 1_000_000,
            lost: 0,
        };
        let mut offset_s = 0;
        for (code, value) in options(&block[16..block.len() - 4], self.order) {
            match (code, value) {
                (2, name) => interface.name = String::from_utf8_lossy(name).trim_end_matches('\0').into(),
                (8, value) if value.len() == 8 => {
                    interface.rate = Some(Rate::from_bps(u64_at(value, 0, self.order))).filter(|rate| rate.bps() > 0);
                }
                (9, &[resolution, ..]) => match ticks_per_s(resolution) {
                    Some(ticks) => interface.ticks_per_s = ticks,
                    None => return Step::Damaged(format!("a clock of resolution {resolution:#04x}")),
                },
                (13, &[fcs, ..]) => interface.fcs_bytes = fcs,
                (14, value) if value.len() == 8 => offset_s = u64_at(value, 0, self.order) as i64,
                _ => {}
            }
        }
        self.clocks.push(Clock::new(interface.ticks_per_s, offset_s));
        self.interfaces.push(interface);
        Step::Skip(block.len())
    }

    /// What an interface lost, reported at its end.
    fn statistics(&mut self, block: &[u8]) -> Step {
        let place = self.first + u32_at(block, 8, self.order) as usize;
        if let Some(interface) = self.interfaces.get_mut(place)
            && block.len() >= FRAMING + 12
        {
            for (code, value) in options(&block[20..block.len() - 4], self.order) {
                if code == 5 && value.len() == 8 {
                    interface.lost = u64_at(value, 0, self.order);
                }
            }
        }
        Step::Skip(block.len())
    }
}

impl Clock {
    fn new(ticks_per_s: u64, offset_s: i64) -> Clock {
        let ps_per_tick = PS_PER_S.is_multiple_of(ticks_per_s).then(|| PS_PER_S / ticks_per_s);
        Clock { ticks_per_s, ps_per_tick, offset_s }
    }

    #[inline]
    fn stamp(self, ticks: u64) -> Stamp {
        let (seconds, rest) = ((ticks / self.ticks_per_s) as i64, ticks % self.ticks_per_s);
        let ps = match self.ps_per_tick {
            Some(ps) => rest * ps,
            None => (u128::from(rest) * u128::from(PS_PER_S) / u128::from(self.ticks_per_s)) as u64,
        };
        Stamp { seconds: seconds.saturating_add(self.offset_s), ps }
    }
}

/// Ticks per second of the option `if_tsresol`: a power of ten, or of two where the highest bit is set.
fn ticks_per_s(resolution: u8) -> Option<u64> {
    let power = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 { 10u64.checked_pow(power) } else { 1u64.checked_shl(power) }
}

/// Codes and values of options, up to the first that does not fit.
fn options(mut bytes: &[u8], order: Order) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = u16_at(bytes, 0, order);
        let length = usize::from(u16_at(bytes, 2, order));
        if code == 0 {
            return None;
        }
        let value = bytes.get(4..4 + length)?;
        bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((code, value))
    })
}
