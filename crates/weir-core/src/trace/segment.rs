//! The TCP header and the options that an analysis needs. Source: RFC 9293, RFC 7323, RFC 2018, RFC 2883.

use super::window::{Order, u16_at, u32_at};
use crate::tcp::ByteCounts;

/// A TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Segment {
    /// Port of the sender.
    pub from: u16,
    /// Port of the receiver.
    pub to: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number, which counts where the flag ACK is set.
    pub ack: u32,
    /// The flags of the header.
    pub flags: u8,
    /// Window, not scaled.
    pub window: u16,
    /// Bytes of the header.
    pub header: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Shift of the windows that this side will announce.
    pub window_shift: Option<u8>,
    /// Whether selective acknowledgments may be sent.
    pub sack_permitted: bool,
    /// Value and echo of the timestamps option.
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of selective acknowledgment, the first `sacks` of them.
    pub blocks: [(u32, u32); 4],
    /// Number of blocks.
    pub sacks: u8,
    /// The flag AE, which stands apart from the others. Source: RFC 9768, 3.1.1.
    pub ae: bool,
    /// Counters of an AccECN option, where this program writes one; it does not read them.
    pub byte_counts: Option<ByteCounts>,
    /// Whether options were cut off.
    pub cut: bool,
}

/// Flags of the TCP header.
impl Segment {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 2;
    /// Reset the connection.
    pub(crate) const RST: u8 = 4;
    /// Push to the application.
    pub const PSH: u8 = 8;
    /// The acknowledgment number counts.
    pub const ACK: u8 = 16;
    /// Congestion was seen (ECN).
    pub const ECE: u8 = 64;
    /// The window was reduced (ECN).
    pub const CWR: u8 = 128;

    /// Bytes of a header without options.
    pub(crate) const LEAST_HEADER: u32 = 20;

    /// Whether one of `flags` is set.
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// The counter of marks that the flags AE, CWR and ECE are where both ends count. Source: RFC 9768, section 3.2.
    #[inline]
    pub(crate) fn mark_counter(&self) -> u8 {
        u8::from(self.ae) << 2 | u8::from(self.has(Segment::CWR)) << 1 | u8::from(self.has(Segment::ECE))
    }

    /// Numbers that the segment takes: payload, SYN and FIN.
    #[inline]
    pub fn length(&self) -> u32 {
        self.payload + u32::from(self.has(Segment::SYN)) + u32::from(self.has(Segment::FIN))
    }

    /// The blocks of selective acknowledgment.
    #[inline]
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.sacks)]
    }

    /// The segment of `length` bytes whose beginning `kept` is; `None` when the header contradicts itself. `kept`
    /// has at least the ports and the sequence number.
    #[inline]
    pub(crate) fn read(kept: &[u8], length: u32) -> Option<Segment> {
        let mut segment = Segment {
            from: u16_at(kept, 0, Order::Big),
            to: u16_at(kept, 2, Order::Big),
            seq: u32_at(kept, 4, Order::Big),
            ack: u32_at(kept, 8, Order::Big),
            window: u16_at(kept, 14, Order::Big),
            cut: true,
            ..Segment::default()
        };
        let (Some(&offset), Some(&flags)) = (kept.get(12), kept.get(13)) else {
            // The header is cut off: its options are unknown, so the payload is at most this.
            segment.header = Segment::LEAST_HEADER;
            segment.payload = length.saturating_sub(Segment::LEAST_HEADER);
            return Some(segment);
        };
        let header = u32::from(offset >> 4) * 4;
        if header < Segment::LEAST_HEADER {
            return None;
        }
        (segment.flags, segment.ae) = (flags, offset & 1 != 0);
        segment.header = header;
        segment.payload = length.checked_sub(header)?;
        let end = header as usize;
        segment.cut = kept.len() < end;
        segment.options(kept.get(20..end.min(kept.len())).unwrap_or(&[]));
        Some(segment)
    }

    fn options(&mut self, mut bytes: &[u8]) {
        while let Some((&kind, rest)) = bytes.split_first() {
            match kind {
                0 => return,
                1 => {
                    bytes = rest;
                    continue;
                }
                _ => {}
            }
            let Some(&length) = rest.first() else { return };
            let length = usize::from(length);
            let Some(body) = bytes.get(2..length) else { return };
            match (kind, body.len()) {
                (2, 2) => self.mss = Some(u16_at(body, 0, Order::Big)),
                (3, 1) => self.window_shift = Some(body[0].min(14)), // RFC 7323, section 2.3
                (4, 0) => self.sack_permitted = true,
                (5, 8..) => {
                    for (place, block) in body.chunks_exact(8).take(self.blocks.len()).enumerate() {
                        self.blocks[place] = (u32_at(block, 0, Order::Big), u32_at(block, 4, Order::Big));
                        self.sacks = place as u8 + 1;
                    }
                }
                (8, 8) => self.timestamps = Some((u32_at(body, 0, Order::Big), u32_at(body, 4, Order::Big))),
                _ => {}
            }
            bytes = &bytes[length..];
        }
    }
}
