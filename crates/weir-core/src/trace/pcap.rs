//! pcap, the format of tcpdump: a header of 24 bytes, then records of one kind.
//!
//! Source: PCAP, sections 4 and 5.

use super::capture::{Format, Interface, LARGEST_RECORD, Link, Stamp, Step, TraceError};
use super::window::{Order, u16_at, u32_at};

/// Length of the header of a file.
pub(crate) const HEADER: usize = 24;
const RECORD: usize = 16;
/// Records of the format with the magic number a1b2cd34 carry eight bytes more.
const MODIFIED_RECORD: usize = 24;

#[derive(Debug)]
pub(crate) struct Reader {
    order: Order,
    ps_per_tick: u64,
    header: usize,
    pub(crate) interface: Interface,
}

impl Reader {
    /// The reader and the exact format, if `bytes` begin as pcap does.
    pub(crate) fn recognise(bytes: &[u8]) -> Result<Option<(Reader, Format)>, TraceError> {
        let Some(magic) = bytes.first_chunk::<4>() else { return Ok(None) };
        let (order, nanoseconds, header) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, false, RECORD),
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, false, RECORD),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, true, RECORD),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, true, RECORD),
            [0x34, 0xcd, 0xb2, 0xa1] => (Order::Little, false, MODIFIED_RECORD),
            [0xa1, 0xb2, 0xcd, 0x34] => (Order::Big, false, MODIFIED_RECORD),
            _ => return Ok(None),
        };
        if bytes.len() < HEADER {
            let text = format!("pcap, but its header is cut off after {} of {HEADER} bytes", bytes.len());
            return Err(TraceError::Unsupported(text));
        }
        let version = u16_at(bytes, 4, order);
        if version != 2 {
            return Err(TraceError::Unsupported(format!("pcap of version {version}: only version 2 is read")));
        }
        let link = u32_at(bytes, 20, order);
        // Bits 28 to 31 count the frame check sequence in words of 16 bits where bit 26 says so.
        let fcs_bytes = if link & 1 << 26 == 0 { 0 } else { (link >> 28) as u8 * 2 };
        let interface = Interface {
            name: String::new(),
            link: Link::from_number(link as u16),
            snap_bytes: u32_at(bytes, 16, order),
            fcs_bytes,
            rate: None,
            ticks_per_s: if nanoseconds { 1_000_000_000 } else { 1_000_000 },
            lost: 0,
        };
        let ps_per_tick = if nanoseconds { 1_000 } else { 1_000_000 };
        Ok(Some((Reader { order, ps_per_tick, header, interface }, Format::Pcap { order, nanoseconds })))
    }

    #[inline]
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Step {
        if bytes.len() < self.header {
            return Step::Need(self.header);
        }
        let field = |place| u32_at(bytes, place, self.order);
        let (seconds, ticks, kept, length) = (field(0), field(4), field(8) as usize, field(12));
        if bytes[..self.header].iter().all(|&byte| byte == 0) {
            return Step::Damaged("a record of zeros only: the file was not written to its end".into());
        }
        if kept > LARGEST_RECORD {
            return Step::Damaged(format!("a record says that it holds {kept} bytes"));
        }
        let ps = u64::from(ticks) * self.ps_per_tick;
        if ps >= 1_000_000_000_000 {
            return Step::Damaged(format!("a stamp has {ticks} parts of a second, more than there are"));
        }
        let whole = self.header + kept;
        if bytes.len() < whole {
            return Step::Need(whole);
        }
        Step::Frame {
            stamp: Stamp { seconds: i64::from(seconds), ps },
            interface: 0,
            link: self.interface.link,
            frame_bytes: length.saturating_sub(u32::from(self.interface.fcs_bytes)),
            skip: self.header,
            kept,
            rest: 0,
        }
    }
}
