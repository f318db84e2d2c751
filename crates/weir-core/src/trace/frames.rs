//! Headers for simulated frames, so that other programs can look into them.
//!
//! A simulated frame has a size and a flow and no bytes. Here it gets an Ethernet, IPv4 and UDP or TCP header with
//! correct checksums. Node `n` is `10.x.y.z` with `n` in the lower three bytes, and the locally administered address
//! `02:00:` with `n` in the other four. The payload of a datagram is its number in eight bytes, then zeros. Source:
//! RFC 791, RFC 768, RFC 9293, RFC 1071, IEEE 802.3.

use super::segment::Segment;
use crate::tcp::ByteCounts;
use crate::units::Bytes;

/// The frame check sequence, which a size counts and captures leave out.
const FCS: u64 = 4;
const ETHERNET: usize = 14;
const IP: usize = 20;
const UDP: usize = 8;
/// Ethertype for local experiments (IEEE 802a), of frames that are too short for IP.
const EXPERIMENTAL: u16 = 0x88b5;
const MAC_CONTROL: u16 = 0x8808;
/// Where frames of MAC control go. Source: IEEE 802.3, Annex 31B.
const PAUSE_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
/// Sources of traffic count from here.
const FIRST_PORT: u32 = 1024;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Carried<'a> {
    /// Traffic without a transport: UDP with a number.
    Datagram {
        /// Of the frames of its flow.
        number: u64,
    },
    /// A TCP segment; its ports are those of the flow.
    Segment(&'a Segment),
    /// A PAUSE frame for so many quanta.
    Pause {
        /// Units of 512 bit times; 0 is "go on".
        quanta: u16,
    },
    /// A frame of priority flow control.
    ClassPause {
        /// For each class that it names, units of 512 bit times; 0 is "go on".
        timers: [Option<u16>; 8],
    },
    /// Another control frame, which only this program understands: its words.
    Control {
        /// What the frame says.
        words: [u32; 4],
    },
}

/// A simulated frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sketch<'a> {
    /// The node that sent it.
    pub from: u32,
    /// The node that it is for.
    pub to: u32,
    /// Its flow, which becomes the port of the sender of the flow.
    pub flow: u32,
    /// Whether it goes from the sender of the flow to its receiver, or back.
    pub forward: bool,
    /// Its size with the frame check sequence.
    pub size: Bytes,
    /// Bits of explicit congestion notification.
    pub ecn: u8,
    /// Identification of its IP header: packets of a sender count on, also those that carry data again.
    pub id: u16,
    /// What it carries.
    pub carried: Carried<'a>,
}

impl Sketch<'_> {
    /// Put the first bytes of the frame, at most `most`, into `out`, and return its length without the check
    /// sequence. Frames that are smaller than their headers are written as long as these.
    pub fn draw(&self, out: &mut Vec<u8>, most: usize) -> u32 {
        out.clear();
        let wanted = usize::try_from(self.size.count().saturating_sub(FCS)).unwrap_or(usize::MAX).min(1 << 16);
        match self.carried {
            Carried::Datagram { number } if wanted >= ETHERNET + IP + UDP => self.datagram(out, wanted, number),
            Carried::Datagram { number } => {
                self.ethernet(out, mac(self.to), EXPERIMENTAL);
                out.extend(number.to_be_bytes());
            }
            Carried::Segment(segment) => self.segment(out, wanted, segment),
            Carried::Pause { quanta } => {
                self.ethernet(out, PAUSE_ADDRESS, MAC_CONTROL);
                out.extend(1u16.to_be_bytes());
                out.extend(quanta.to_be_bytes());
            }
            Carried::ClassPause { timers } => {
                self.ethernet(out, PAUSE_ADDRESS, MAC_CONTROL);
                let named = |(class, timer): (usize, &Option<u16>)| u16::from(timer.is_some()) << class;
                let enabled = timers.iter().enumerate().map(named).fold(0, |all, bit| all | bit);
                out.extend(0x0101_u16.to_be_bytes());
                out.extend(enabled.to_be_bytes());
                out.extend(timers.iter().flat_map(|timer| timer.unwrap_or(0).to_be_bytes()));
            }
            Carried::Control { words } => {
                self.ethernet(out, mac(self.to), EXPERIMENTAL);
                out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
            }
        }
        let length = wanted.max(out.len());
        out.resize(length.min(most), 0);
        length as u32
    }

    fn ethernet(&self, out: &mut Vec<u8>, to: [u8; 6], kind: u16) {
        out.extend(to);
        out.extend(mac(self.from));
        out.extend(kind.to_be_bytes());
    }

    fn ports(&self) -> (u16, u16) {
        let flow = (FIRST_PORT + self.flow % (u32::from(u16::MAX) - FIRST_PORT)) as u16;
        if self.forward { (flow, 5001) } else { (5001, flow) }
    }

    /// The IPv4 header of a packet of `length` bytes.
    fn internet(&self, out: &mut Vec<u8>, length: usize, protocol: u8) {
        let start = out.len();
        out.extend([0x45, self.ecn & 3]);
        out.extend((length.min(usize::from(u16::MAX)) as u16).to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend([0x40, 0, 64, protocol, 0, 0]);
        out.extend(address(self.from));
        out.extend(address(self.to));
        let sum = folded(sum(&out[start..]));
        out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
    }

    /// The sum of the addresses, the protocol and the length, which the checksum above IP covers too.
    fn pseudo(&self, protocol: u8, length: usize) -> u64 {
        sum(&address(self.from)) + sum(&address(self.to)) + u64::from(protocol) + length as u64
    }

    fn datagram(&self, out: &mut Vec<u8>, wanted: usize, number: u64) {
        let length = wanted - ETHERNET;
        self.ethernet(out, mac(self.to), 0x0800);
        self.internet(out, length, 17);
        let start = out.len();
        let (from, to) = self.ports();
        out.extend(from.to_be_bytes());
        out.extend(to.to_be_bytes());
        out.extend(((length - IP) as u16).to_be_bytes());
        out.extend([0, 0]);
        let payload = number.to_be_bytes();
        out.extend(&payload[..payload.len().min(length - IP - UDP)]);
        // Zeros behind it add nothing.
        let sum = match folded(self.pseudo(17, length - IP) + sum(&out[start..])) {
            0 => 0xffff,
            sum => sum,
        };
        out[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    }

    fn segment(&self, out: &mut Vec<u8>, wanted: usize, segment: &Segment) {
        let options = options(segment);
        let header = 20 + options.len();
        let payload = segment.payload as usize;
        let length = IP + header + payload;
        self.ethernet(out, mac(self.to), 0x0800);
        self.internet(out, length, 6);
        let start = out.len();
        let (from, to) = self.ports();
        out.extend(from.to_be_bytes());
        out.extend(to.to_be_bytes());
        out.extend(segment.seq.to_be_bytes());
        out.extend(segment.ack.to_be_bytes());
        out.extend([(header as u8 / 4) << 4 | u8::from(segment.ae), segment.flags]);
        out.extend(segment.window.to_be_bytes());
        out.extend([0; 4]);
        out.extend(&options);
        let sum = folded(self.pseudo(6, header + payload) + sum(&out[start..]));
        out[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
        out.resize((ETHERNET + length).max(wanted), 0);
    }
}

/// The options of `segment`, padded to words.
fn options(segment: &Segment) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(mss) = segment.mss {
        out.extend([2, 4]);
        out.extend(mss.to_be_bytes());
    }
    match (segment.sack_permitted, segment.timestamps) {
        (true, None) => out.extend([1, 1, 4, 2]),
        (true, Some(_)) => out.extend([4, 2, 8, 10]),
        (false, Some(_)) => out.extend([1, 1, 8, 10]),
        (false, None) => {}
    }
    if let Some((value, echo)) = segment.timestamps {
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    if let Some(shift) = segment.window_shift {
        out.extend([1, 3, 3, shift]);
    }
    if let Some(counts) = segment.byte_counts {
        accurate_ecn(&counts, &mut out);
    }
    let room = (40 - out.len()).saturating_sub(4) / 8;
    let blocks = &segment.blocks()[..segment.blocks().len().min(room)];
    if !blocks.is_empty() {
        out.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        out.extend(blocks.iter().flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()].concat()));
    }
    out
}

/// The AccECN option: the counter of the codepoint in use, and that of marks. Source: RFC 9768, 3.2.3.
fn accurate_ecn(counts: &ByteCounts, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([if counts.is_l4s() { 174 } else { 172 }, if counts.ce().is_some() { 8 } else { 5 }]);
    for count in [Some(counts.ect()), counts.ce()].into_iter().flatten() {
        out.extend(&(count as u32).to_be_bytes()[1..]);
    }
    out.resize(start + (out.len() - start).next_multiple_of(4), 1);
}

fn mac(node: u32) -> [u8; 6] {
    let [a, b, c, d] = node.to_be_bytes();
    [2, 0, a, b, c, d]
}

fn address(node: u32) -> [u8; 4] {
    let [_, b, c, d] = node.to_be_bytes();
    [10, b, c, d]
}

/// The sum of words of 16 bits, the last padded with zero. Source: RFC 1071.
fn sum(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
    bytes.chunks(2).map(word).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
