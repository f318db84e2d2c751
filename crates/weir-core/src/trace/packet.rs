//! What a frame is: addresses, ports, and what TCP says, as far as the frame was kept.
//!
//! Lengths come from the headers and not from what was kept, so that snapped frames count whole. Source: RFC 791,
//! RFC 8200, RFC 9293, RFC 768, IEEE 802.1Q, IEEE 802.3.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::capture::{Link, Record};
use super::erf;
use super::hash::fold;
use super::segment::Segment;
use super::window::{Order, u16_at, u32_at};

/// An address: IPv4 addresses as IPv6 has them, `::ffff:a.b.c.d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u128);

impl Address {
    fn v4(bytes: &[u8]) -> Address {
        Address(0xffff_0000_0000 | u128::from(u32_at(bytes, 0, Order::Big)))
    }

    fn v6(bytes: &[u8]) -> Address {
        Address(bytes.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes)))
    }

    /// Whether it is an IPv4 address.
    pub fn is_v4(self) -> bool {
        self.0 >> 32 == 0xffff
    }

    /// The address with a port, as it is written: `10.0.0.1:80`, `[fe80::1]:80`.
    pub fn with_port(self, port: u16) -> String {
        if self.is_v4() { format!("{self}:{port}") } else { format!("[{self}]:{port}") }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_v4() { Ipv4Addr::from_bits(self.0 as u32).fmt(f) } else { Ipv6Addr::from_bits(self.0).fmt(f) }
    }
}

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp {
        /// Port of the sender.
        from: u16,
        /// Port of the receiver.
        to: u16,
        /// Bytes of payload.
        payload: u32,
        /// Hash of its checksum and of the beginning of its payload.
        content: u32,
    },
    /// Another protocol, or one whose header was not kept.
    Other,
}

/// Which part of a datagram a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A fragment.
    Fragment {
        /// Identification of the datagram.
        id: u32,
        /// Place of the fragment in the datagram, in bytes.
        offset: u32,
        /// Bytes of the datagram in this fragment.
        bytes: u32,
        /// Whether it is the last one.
        last: bool,
    },
}

/// An IP packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Address of the sender.
    pub from: Address,
    /// Address of the receiver.
    pub to: Address,
    /// Number of the protocol above IP.
    pub protocol: u8,
    /// Identification, where the header has one that tells packets apart.
    pub id: Option<u16>,
    /// Bits of explicit congestion notification: 0 none, 1 and 2 capable, 3 congestion experienced.
    pub ecn: u8,
    /// Routers that it may still pass.
    pub hops: u8,
    /// Numbers of the VLANs of its frame, 12 bits each, the innermost in the lowest; 0 is none.
    pub vlans: u32,
    /// Bytes of the IP packet.
    pub ip_bytes: u32,
    /// Which part of a datagram it is.
    pub part: Part,
    /// What it carries.
    pub transport: Transport,
}

/// What could be made of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dissected {
    /// An IP packet.
    Ip(Packet),
    /// Something else: ARP, spanning tree ...
    NotIp,
    /// Too little was kept to find addresses.
    Short,
    /// A header contradicts itself.
    Malformed,
}

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Extension headers that are looked past: more of them are an attack and no packet.
const MOST_EXTENSIONS: usize = 8;

/// Find out what `record` is.
pub fn dissect(record: &Record<'_>) -> Dissected {
    by_link(record.link, record.bytes, record.frame_bytes, 0)
}

fn by_link(link: Link, bytes: &[u8], frame_bytes: u32, depth: u8) -> Dissected {
    let ethertype = |place: usize| u16_at(bytes, place, Order::Big);
    let (kind, place) = match link {
        Link::Ethernet if bytes.len() < ETHERNET => return Dissected::Short,
        Link::Ethernet => (ethertype(12), ETHERNET),
        Link::Cooked if bytes.len() < 16 => return Dissected::Short,
        Link::Cooked => (ethertype(14), 16),
        Link::Cooked2 if bytes.len() < 20 => return Dissected::Short,
        Link::Cooked2 => (ethertype(0), 20),
        Link::Hdlc if bytes.len() < 4 => return Dissected::Short,
        Link::Hdlc => match ethertype(2) {
            0x0021 => (0x0800, 4),
            0x0057 => (0x86dd, 4),
            kind => (kind, 4),
        },
        Link::Loopback => return internet(bytes, 4, frame_bytes, 0),
        Link::Raw => return internet(bytes, 0, frame_bytes, 0),
        Link::Erf if depth == 0 => {
            let Some(head) = erf::inner(bytes) else { return Dissected::Malformed };
            return match bytes.get(head.skip..) {
                Some(frame) => by_link(head.link(), frame, head.frame_bytes(), 1),
                None => Dissected::Short,
            };
        }
        Link::Erf | Link::Other(_) => return Dissected::NotIp,
    };
    by_ethertype(bytes, kind, place, frame_bytes)
}

/// Look past VLAN tags, and past LLC with SNAP.
fn by_ethertype(bytes: &[u8], mut kind: u16, mut place: usize, frame_bytes: u32) -> Dissected {
    let mut vlans = 0;
    loop {
        match kind {
            0x0800 | 0x86dd => return internet(bytes, place, frame_bytes, vlans),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                if bytes.len() < place + 4 {
                    return Dissected::Short;
                }
                vlans = vlans << 12 | u32::from(u16_at(bytes, place, Order::Big) & 0xfff);
                kind = u16_at(bytes, place + 2, Order::Big);
                place += 4;
            }
            ..0x0600 if bytes.get(place..).is_some_and(|rest| rest.starts_with(&[0xaa, 0xaa, 3, 0, 0, 0])) => {
                kind = u16_at(bytes, place + 6, Order::Big).max(0x0600);
                place += 8;
            }
            _ => return Dissected::NotIp,
        }
    }
}

fn internet(bytes: &[u8], place: usize, frame_bytes: u32, vlans: u32) -> Dissected {
    let room = (frame_bytes as usize).saturating_sub(place);
    let Some(bytes) = bytes.get(place..) else { return Dissected::Short };
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) => version_4(bytes, room, vlans),
        Some(6) => version_6(bytes, room, vlans),
        Some(_) => Dissected::NotIp,
        None => Dissected::Short,
    }
}

fn version_4(bytes: &[u8], room: usize, vlans: u32) -> Dissected {
    if bytes.len() < 20 {
        return Dissected::Short;
    }
    let header = usize::from(bytes[0] & 15) * 4;
    // Segments that the host leaves to its card to cut may have a length of 0: then it is that of the frame.
    let total = match usize::from(u16_at(bytes, 2, Order::Big)) {
        0 => room,
        total => total,
    };
    if header < 20 || total < header {
        return Dissected::Malformed;
    }
    let id = u16_at(bytes, 4, Order::Big);
    let fragment = u16_at(bytes, 6, Order::Big);
    let (more, offset) = (fragment & 0x2000 != 0, u32::from(fragment & 0x1fff) * 8);
    let inside = (total - header) as u32;
    let part = if more || offset > 0 {
        Part::Fragment { id: u32::from(id), offset, bytes: inside, last: !more }
    } else {
        Part::Whole
    };
    let protocol = bytes[9];
    let kept = bytes.get(header..).unwrap_or(&[]);
    let transport = if offset == 0 { transport(protocol, kept, inside) } else { Some(Transport::Other) };
    let Some(transport) = transport else { return Dissected::Malformed };
    Dissected::Ip(Packet {
        from: Address::v4(&bytes[12..]),
        to: Address::v4(&bytes[16..]),
        protocol,
        id: Some(id).filter(|&id| id != 0),
        ecn: bytes[1] & 3,
        hops: bytes[8],
        vlans,
        ip_bytes: total as u32,
        part,
        transport,
    })
}

fn version_6(bytes: &[u8], room: usize, vlans: u32) -> Dissected {
    if bytes.len() < 40 {
        return Dissected::Short;
    }
    let inside = match usize::from(u16_at(bytes, 4, Order::Big)) {
        0 => room.saturating_sub(40), // a jumbogram, or a segment that the card cuts
        inside => inside,
    };
    let (mut next, mut place, mut part) = (bytes[6], 40, Part::Whole);
    for _ in 0..MOST_EXTENSIONS {
        let length = match next {
            0 | 43 | 60 | 135 | 139 | 140 => 8 + 8 * usize::from(bytes.get(place + 1).copied().unwrap_or(0)),
            51 => 8 + 4 * usize::from(bytes.get(place + 1).copied().unwrap_or(0)),
            44 => 8,
            _ => break,
        };
        if bytes.len() < place + 8 {
            break;
        }
        if next == 44 {
            let field = u16_at(bytes, place + 2, Order::Big);
            let bytes_here = (inside + 40).saturating_sub(place + 8) as u32;
            part = Part::Fragment {
                id: u32_at(bytes, place + 4, Order::Big),
                offset: u32::from(field & 0xfff8),
                bytes: bytes_here,
                last: field & 1 == 0,
            };
        }
        next = bytes[place];
        place += length;
    }
    if place > inside + 40 {
        return Dissected::Malformed;
    }
    let first = !matches!(part, Part::Fragment { offset: 1.., .. });
    let kept = bytes.get(place..).unwrap_or(&[]);
    let inside_of_it = (inside + 40 - place) as u32;
    let transport = if first { transport(next, kept, inside_of_it) } else { Some(Transport::Other) };
    let Some(transport) = transport else { return Dissected::Malformed };
    Dissected::Ip(Packet {
        from: Address::v6(&bytes[8..]),
        to: Address::v6(&bytes[24..]),
        protocol: next,
        id: None,
        ecn: bytes[1] >> 4 & 3,
        hops: bytes[7],
        vlans,
        ip_bytes: (inside + 40) as u32,
        part,
        transport,
    })
}

/// What `kept`, the beginning of `length` bytes, carries; `None` when it contradicts itself.
fn transport(protocol: u8, kept: &[u8], length: u32) -> Option<Transport> {
    match protocol {
        TCP if kept.len() >= 8 => Segment::read(kept, length).map(Transport::Tcp),
        UDP if kept.len() >= 4 => {
            let payload = length.checked_sub(8)?;
            Some(Transport::Udp {
                from: u16_at(kept, 0, Order::Big),
                to: u16_at(kept, 2, Order::Big),
                payload,
                content: content(&kept[..kept.len().min(length as usize)]),
            })
        }
        _ => Some(Transport::Other),
    }
}

/// What tells datagrams apart: their checksum, and the first bytes of their payload.
fn content(kept: &[u8]) -> u32 {
    let word =
        |place| u64::from(u32_at(kept, place, Order::Big)) << 32 | u64::from(u32_at(kept, place + 4, Order::Big));
    let checksum = u64::from(u16_at(kept, 6, Order::Big));
    (fold(fold(word(8), word(16)) ^ checksum, word(24)) >> 32) as u32
}
