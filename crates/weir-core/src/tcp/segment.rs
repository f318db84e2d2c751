//! Segments as both ends see them, and what they occupy in a frame.
//!
//! Sequence numbers count bytes from the start of a connection in 64 bits: the SYN is number 0, the first byte of data
//! number 1, the FIN follows the last byte. On the wire they are 32 bits of it.

pub use crate::marking::Ecn;
use crate::units::Bytes;

/// A segment of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Number of its first byte, or of its SYN or FIN.
    pub seq: u64,
    /// Next number that its sender expects, if it acknowledges.
    pub ack: u64,
    /// Payload.
    pub len: u32,
    /// Time stamp and the one it echoes, in ticks; 0 and 0 without the option.
    pub ts_val: u32,
    /// See `ts_val`.
    pub ts_ecr: u32,
    /// The field of the header: what the sender may still accept, shifted by its scale but in a SYN.
    pub window: u16,
    /// Shift that a SYN offers, if it does.
    pub window_scale: Option<u8>,
    /// Control bits.
    pub flags: Flags,
    /// The two bits of the IP header.
    pub ecn: Ecn,
    /// Identification of the IP header: counts the segments of a sender, those sent again too.
    pub id: u16,
    /// What arrived out of order.
    pub sacks: Sacks,
}

/// Control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// First segment of a direction.
    pub const SYN: Flags = Flags(1);
    /// Last segment of a direction.
    pub const FIN: Flags = Flags(2);
    /// The acknowledgement is valid.
    pub const ACK: Flags = Flags(4);
    /// ECN-Echo.
    pub const ECE: Flags = Flags(8);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(16);
    /// The options hold time stamps.
    pub const TIMESTAMPS: Flags = Flags(32);
    /// A SYN's sender takes selective acknowledgements.
    pub const SACK_PERMITTED: Flags = Flags(64);
    /// Accurate ECN.
    ///
    /// Source: RFC 9768, 3.1.1.
    pub const AE: Flags = Flags(128);

    /// Whether all of `others` are set.
    #[inline]
    pub const fn has(self, others: Flags) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether any of `others` is set.
    #[inline]
    pub(crate) const fn has_any(self, others: Flags) -> bool {
        self.0 & others.0 != 0
    }

    /// AE, CWR and ECE as the lower three bits of a number.
    ///
    /// Source: RFC 9768, 3.2.2.
    pub(crate) const fn of_ace(number: u8) -> Flags {
        Flags::NONE
            .with_if(number & 4 != 0, Flags::AE)
            .with_if(number & 2 != 0, Flags::CWR)
            .with_if(number & 1 != 0, Flags::ECE)
    }

    /// AE, CWR and ECE as a number of three bits.
    pub const fn ace(self) -> u8 {
        (self.has(Flags::AE) as u8) << 2 | (self.has(Flags::CWR) as u8) << 1 | self.has(Flags::ECE) as u8
    }

    /// These and `others`.
    #[inline]
    #[must_use]
    pub const fn with(self, others: Flags) -> Flags {
        Flags(self.0 | others.0)
    }

    /// These and `others`, if `condition` holds.
    #[inline]
    #[must_use]
    pub(crate) const fn with_if(self, condition: bool, others: Flags) -> Flags {
        if condition { self.with(others) } else { self }
    }
}

/// Most blocks of one segment, besides time stamps.
///
/// Source: RFC 2018, 3.
pub const MAX_SACKS: usize = 3;
/// Most blocks besides counters, too.
///
/// Source: RFC 9768, 3.2.3.3 (two blocks come before counters, these before more blocks).
const MAX_BESIDE_COUNTS: u8 = 2;

/// Blocks of a selective acknowledgement, the latest first. Each is kept as the distance from the segment's `ack`, below
/// which a block of what arrived twice may lie. The place of the last one is that of counters, as in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sacks {
    blocks: [(u32, u32); MAX_SACKS],
    count: u8,
    counts: Kept,
}

/// Which counters stand in the place of the last block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kept {
    #[default]
    None,
    Ect {
        is_l4s: bool,
    },
    EctAndCe {
        is_l4s: bool,
    },
}

/// Counters of the AccECN option, of 24 bits.
///
/// Source: RFC 9768, 3.2.3. Limits: a sender uses one codepoint, so that there are two of the three fields at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCounts {
    is_l4s: bool,
    ect: u32,
    ce: Option<u32>,
}

impl ByteCounts {
    /// So many bytes with ECT(1), if `is_l4s`, or else ECT(0), and with CE.
    pub fn new(is_l4s: bool, ect: u64, ce: Option<u64>) -> ByteCounts {
        let field = |count: u64| (count & 0xff_ffff) as u32;
        ByteCounts { is_l4s, ect: field(ect), ce: ce.map(field) }
    }

    /// Whether the first of them counts ECT(1): order 1 of the option.
    pub fn is_l4s(&self) -> bool {
        self.is_l4s
    }

    /// With ECT(0) or ECT(1).
    pub fn ect(&self) -> u64 {
        self.ect.into()
    }

    /// With CE; none: none yet.
    pub fn ce(&self) -> Option<u64> {
        self.ce.map(u64::from)
    }
}

impl Sacks {
    /// Adds the block from `start` to `end`. One too many is left out.
    #[inline]
    pub fn push(&mut self, ack: u64, start: u64, end: u64) {
        if self.counts != Kept::None && self.count >= MAX_BESIDE_COUNTS {
            return;
        }
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            let from_ack =
                |number: u64| i32::try_from(number.wrapping_sub(ack) as i64).expect("a window is below 2 GiB");
            *block = (from_ack(start) as u32, from_ack(end) as u32);
            self.count += 1;
        }
    }

    /// Number of blocks.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there is no block.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// First number of each block and the one behind its last.
    pub fn blocks(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let number = move |distance: u32| ack.wrapping_add_signed(i64::from(distance as i32));
        self.blocks[..self.len()].iter().map(move |&(start, end)| (number(start), number(end)))
    }

    /// Adds counters, which a third block makes room for.
    pub(crate) fn set_counts(&mut self, counts: &ByteCounts) {
        self.count = self.count.min(MAX_BESIDE_COUNTS);
        let is_l4s = counts.is_l4s;
        self.counts = if counts.ce.is_some() { Kept::EctAndCe { is_l4s } } else { Kept::Ect { is_l4s } };
        self.blocks[MAX_SACKS - 1] = (counts.ect, counts.ce.unwrap_or(0));
    }

    fn counts(&self) -> Option<ByteCounts> {
        let (ect, ce) = self.blocks[MAX_SACKS - 1];
        match self.counts {
            Kept::None => None,
            Kept::Ect { is_l4s } => Some(ByteCounts { is_l4s, ect, ce: None }),
            Kept::EctAndCe { is_l4s } => Some(ByteCounts { is_l4s, ect, ce: Some(ce) }),
        }
    }

    /// Length of the option that reports counters.
    ///
    /// Source: RFC 9768, table 5.
    #[inline]
    fn counts_bytes(&self) -> u64 {
        match self.counts {
            Kept::None => 0,
            Kept::Ect { .. } => 5,
            Kept::EctAndCe { .. } => 8,
        }
    }
}

/// Headers of Ethernet (14 B, and 4 B FCS), IPv4 (20 B) and TCP without options (20 B).
pub const HEADERS: Bytes = Bytes::new(58);
/// Shortest Ethernet frame, with FCS.
///
/// Source: IEEE 802.3, clause 3.2.8.
pub const LEAST_FRAME: Bytes = Bytes::new(64);

impl Segment {
    /// The number behind its last.
    #[inline]
    pub fn end(&self) -> u64 {
        let control = self.flags.has(Flags::SYN) || self.flags.has(Flags::FIN);
        self.seq + u64::from(self.len) + u64::from(control)
    }

    /// The counters of its AccECN option, if it has one.
    pub fn byte_counts(&self) -> Option<ByteCounts> {
        self.sacks.counts()
    }

    /// Length of the options: in a SYN MSS (4), SACK permitted (2), window scale (3), time stamps (10), counters (5 or 8); later time
    /// stamps (10), counters and blocks (2 + 8 each); filled up to multiples of 4.
    #[inline]
    pub fn options_bytes(&self) -> u64 {
        let stamps = if self.flags.has(Flags::TIMESTAMPS) { 10 } else { 0 };
        let counts = self.sacks.counts_bytes();
        let rest = if self.flags.has(Flags::SYN) {
            let sack = if self.flags.has(Flags::SACK_PERMITTED) { 2 } else { 0 };
            4 + sack + if self.window_scale.is_some() { 3 } else { 0 }
        } else if self.sacks.is_empty() {
            0
        } else {
            2 + 8 * self.sacks.len() as u64
        };
        // Each option but those of a SYN stands by itself on a multiple of 4.
        if self.flags.has(Flags::SYN) {
            (stamps + rest).next_multiple_of(4) + pad(counts)
        } else {
            pad(stamps) + pad(counts) + pad(rest)
        }
    }

    /// Size of the Ethernet frame that carries it, with FCS, without preamble and gap.
    #[inline]
    pub fn frame_size(&self) -> Bytes {
        (HEADERS + Bytes::new(self.options_bytes() + u64::from(self.len))).max(LEAST_FRAME)
    }
}

#[inline]
const fn pad(bytes: u64) -> u64 {
    bytes.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_segment_with_time_stamps_fills_an_ethernet_frame() {
        let flags = Flags::ACK.with(Flags::TIMESTAMPS);
        let data = Segment { len: 1448, flags, ..Segment::default() };
        assert_eq!(data.frame_size(), Bytes::new(1518));
        let mut ack = Segment { flags, ack: 100, ..Segment::default() };
        assert_eq!(ack.frame_size(), Bytes::new(70));
        for block in 1..=4 {
            ack.sacks.push(100, 100 + block * 10, 105 + block * 10);
        }
        assert_eq!((ack.options_bytes(), ack.sacks.len()), (40, 3), "40 B is the most that a header can hold");
        assert_eq!(ack.sacks.blocks(100).next(), Some((110, 115)));
        assert_eq!(Segment { flags: Flags::ACK, ..Segment::default() }.frame_size(), LEAST_FRAME);
    }

    #[test]
    fn counters_take_the_place_of_a_third_block_and_fill_the_header() {
        let flags = Flags::ACK.with(Flags::TIMESTAMPS);
        let mut ack = Segment { flags, ack: 100, ..Segment::default() };
        let counts = ByteCounts::new(true, 0x1_ffff_ffff, Some(7));
        ack.sacks.set_counts(&counts);
        assert_eq!((ack.options_bytes(), ack.byte_counts()), (20, Some(counts)));
        assert_eq!((counts.ect(), counts.ce(), counts.is_l4s()), (0xff_ffff, Some(7), true));
        (1..=3).for_each(|block| ack.sacks.push(100, 100 + block * 10, 105 + block * 10));
        assert_eq!((ack.options_bytes(), ack.sacks.len(), ack.byte_counts()), (40, 2, Some(counts)));
        let mut full = Segment { flags, ack: 100, ..Segment::default() };
        (1..=3).for_each(|block| full.sacks.push(100, 100 + block * 10, 105 + block * 10));
        full.sacks.set_counts(&ByteCounts::new(false, 1, None));
        assert_eq!((full.options_bytes(), full.sacks.len()), (40, 2));
        assert_eq!(size_of::<Segment>(), 64, "a cache line");
    }

    #[test]
    fn three_bits_of_the_header_are_a_number() {
        for number in 0..16 {
            assert_eq!(Flags::of_ace(number).ace(), number % 8);
        }
        assert_eq!(Flags::of_ace(0b011), Flags::CWR.with(Flags::ECE));
    }

    #[test]
    fn a_syn_carries_all_options_in_twenty_bytes() {
        let flags = Flags::SYN.with(Flags::TIMESTAMPS).with(Flags::SACK_PERMITTED);
        let syn = Segment { flags, window_scale: Some(7), ..Segment::default() };
        assert_eq!((syn.options_bytes(), syn.end()), (20, 1));
        assert!(!flags.has(Flags::ACK) && flags.has(Flags::SYN.with(Flags::TIMESTAMPS)));
    }
}
