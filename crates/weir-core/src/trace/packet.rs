//! What a frame is: addresses, ports, and what TCP says, as far as the frame was kept.
//!
//! Lengths come from the headers and not from what was kept, so that snapped frames count whole. Source: RFC 791,
//! RFC 8200, RFC 9293, RFC 768. What stands before the IP header is the business of `layers`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::hash::fold;
use super::layers::{Around, Rest, carried};
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
    pub(crate) fn is_v4(self) -> bool {
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
#[non_exhaustive]
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
    /// Identification, where the header has one that distinguishes packets.
    pub id: Option<u16>,
    /// Bits of explicit congestion notification: 0 none, 1 and 2 capable, 3 congestion experienced.
    pub ecn: u8,
    /// Routers that it may still pass.
    pub hops: u8,
    /// Numbers of the VLANs of its frame, 12 bits each, the innermost in the lowest; 0 is none.
    pub vlans: u32,
    /// The innermost tunnel that it came in: its kind and its number; 0 is none.
    pub tunnel: u32,
    /// Bytes of the IP packet.
    pub ip_bytes: u32,
    /// Which part of a datagram it is.
    pub part: Part,
    /// What it carries.
    pub transport: Transport,
}

impl Packet {
    /// Whether the header of its transport was cut off, before the flags of TCP, without which numbers say nothing.
    pub(crate) fn is_headless(&self) -> bool {
        match &self.transport {
            Transport::Tcp(segment) => segment.cut && segment.flags == 0,
            Transport::Udp { .. } => false,
            Transport::Other => {
                matches!(self.protocol, TCP | UDP) && !matches!(self.part, Part::Fragment { offset: 1.., .. })
            }
        }
    }
}

/// What could be made of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Dissected {
    /// An IP packet.
    Ip(Packet),
    /// Something else: ARP, spanning tree ...
    NotIp,
    /// Of this Ethernet type, which is not looked into.
    Unknown(u16),
    /// Too little was kept to find addresses.
    Short,
    /// A header contradicts itself.
    Malformed,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Extension headers that are looked past: more of them are an attack and no packet.
const MOST_EXTENSIONS: usize = 8;

/// The IP packet that begins here, or the one that it carries.
pub(crate) fn internet(rest: Rest<'_>, around: Around) -> Dissected {
    match rest.kept.first().map(|byte| byte >> 4) {
        Some(4) => version_4(rest, around),
        Some(6) => version_6(rest, around),
        Some(_) => Dissected::NotIp,
        None => Dissected::Short,
    }
}

/// What notes congestion on a packet, or on one that carries it. Source: RFC 6040, section 4.2.
fn noted(own: u8, around: Around) -> u8 {
    if around.marked && own != 0 { 3 } else { own }
}

fn version_4(rest: Rest<'_>, around: Around) -> Dissected {
    let Rest { kept: bytes, bytes: room } = rest;
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
    let ecn = bytes[1] & 3;
    if offset == 0
        && let Some(found) = carried(protocol, Rest { kept, bytes: inside as usize }, around, ecn == 3)
    {
        return found;
    }
    let transport = if offset == 0 { transport(protocol, kept, inside) } else { Some(Transport::Other) };
    let Some(transport) = transport else { return Dissected::Malformed };
    Dissected::Ip(Packet {
        from: Address::v4(&bytes[12..]),
        to: Address::v4(&bytes[16..]),
        protocol,
        id: Some(id).filter(|&id| id != 0),
        ecn: noted(ecn, around),
        hops: bytes[8],
        vlans: around.vlans,
        tunnel: around.tunnel,
        ip_bytes: total as u32,
        part,
        transport,
    })
}

fn version_6(rest: Rest<'_>, around: Around) -> Dissected {
    let Rest { kept: bytes, bytes: room } = rest;
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
    let ecn = bytes[1] >> 4 & 3;
    if first && let Some(found) = carried(next, Rest { kept, bytes: inside_of_it as usize }, around, ecn == 3) {
        return found;
    }
    let transport = if first { transport(next, kept, inside_of_it) } else { Some(Transport::Other) };
    let Some(transport) = transport else { return Dissected::Malformed };
    Dissected::Ip(Packet {
        from: Address::v6(&bytes[8..]),
        to: Address::v6(&bytes[24..]),
        protocol: next,
        id: None,
        ecn: noted(ecn, around),
        hops: bytes[7],
        vlans: around.vlans,
        tunnel: around.tunnel,
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

/// What distinguishes datagrams: their checksum, and the first bytes of their payload.
fn content(kept: &[u8]) -> u32 {
    let word =
        |place| u64::from(u32_at(kept, place, Order::Big)) << 32 | u64::from(u32_at(kept, place + 4, Order::Big));
    let checksum = u64::from(u16_at(kept, 6, Order::Big));
    (fold(fold(word(8), word(16)) ^ checksum, word(24)) >> 32) as u32
}
