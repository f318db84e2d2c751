//! What stands before the IP header of a frame: links, tags, labels, sessions and tunnels, in any stack.
//!
//! Source: RFC 3032; RFC 4385; RFC 2516; RFC 1661; RFC 2784; RFC 2890; RFC 2637; RFC 7348; RFC 8926; RFC 7637; RFC 2003

use super::capture::{Link, Record};
use super::erf;
use super::packet::{Dissected, internet};
use super::window::{Order, u16_at, u32_at};

const ETHERNET: usize = 14;
/// Tunnels within each other that are looked into: more of them are an attack and no packet.
const MOST_TUNNELS: u8 = 8;
/// Labels of one stack.
const MOST_LABELS: usize = 16;
/// IANA: 4789. Linux took 8472 before there was a number, and still does unless configured otherwise.
const VXLAN: [u16; 2] = [4789, 8472];
const GENEVE: u16 = 6081;

/// The rest of a frame: what was kept of it, and how long it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    pub(crate) kept: &'a [u8],
    pub(crate) bytes: usize,
}

impl<'a> Rest<'a> {
    #[inline]
    pub(crate) fn after(self, count: usize) -> Rest<'a> {
        Rest { kept: self.kept.get(count..).unwrap_or(&[]), bytes: self.bytes.saturating_sub(count) }
    }

    fn number(self, place: usize) -> u16 {
        u16_at(self.kept, place, Order::Big)
    }
}

/// What surrounds an IP packet within its frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    /// Numbers of the VLANs, 12 bits each, the innermost in the lowest.
    pub(crate) vlans: u32,
    /// The innermost tunnel: see [`tunnel_name`].
    pub(crate) tunnel: u32,
    /// Whether congestion was noted on the packet that carries it.
    pub(crate) marked: bool,
    depth: u8,
}

/// Kinds of tunnels.
#[derive(Clone, Copy, Debug)]
enum Tunnel {
    Vxlan = 1,
    Geneve,
    Gre,
    Mpls,
    Pppoe,
    Ip,
    Backbone,
}

/// What a tunnel is called, with 24 bits of its number; `None` where there is none.
pub(crate) fn tunnel_name(tunnel: u32) -> Option<String> {
    let kind = match tunnel >> 28 {
        1 => "VXLAN",
        2 => "Geneve",
        3 => "GRE",
        4 => "MPLS",
        5 => "PPPoE",
        6 => "IP in IP",
        7 => "802.1ah",
        _ => return None,
    };
    match tunnel & 0xff_ffff {
        0 => Some(kind.to_string()),
        number => Some(format!("{kind} {number}")),
    }
}

impl Around {
    /// Within a tunnel with this number; `None` when there are too many.
    fn within(self, kind: Tunnel, number: u32) -> Option<Around> {
        // Four bits distinguish stacks that end alike.
        let outer = (self.tunnel ^ self.tunnel >> 13 ^ self.tunnel >> 24) & 15;
        let tunnel = (kind as u32) << 28 | outer << 24 | number & 0xff_ffff;
        (self.depth < MOST_TUNNELS).then_some(Around { tunnel, depth: self.depth + 1, ..self })
    }
}

/// Find out what `record` is.
#[inline]
pub fn dissect(record: &Record<'_>) -> Dissected {
    by_link(record.link, Rest { kept: record.bytes, bytes: record.frame_bytes as usize }, 0)
}

fn by_link(link: Link, rest: Rest<'_>, depth: u8) -> Dissected {
    let kept = rest.kept.len();
    let (kind, place) = match link {
        Link::Ethernet => return ethernet(rest, Around::default()),
        Link::Cooked if kept < 16 => return Dissected::Short,
        Link::Cooked => (rest.number(14), 16),
        Link::Cooked2 if kept < 20 => return Dissected::Short,
        Link::Cooked2 => (rest.number(0), 20),
        Link::Hdlc if kept < 4 => return Dissected::Short,
        Link::Hdlc => match rest.number(2) {
            0x0021 => (0x0800, 4),
            0x0057 => (0x86dd, 4),
            kind => (kind, 4),
        },
        Link::Loopback => return internet(rest.after(4), Around::default()),
        Link::Raw => return internet(rest, Around::default()),
        Link::Erf if depth == 0 => {
            let Some(head) = erf::inner(rest.kept) else { return Dissected::Malformed };
            return match rest.kept.get(head.skip..) {
                Some(kept) => by_link(head.link(), Rest { kept, bytes: head.frame_bytes() as usize }, 1),
                None => Dissected::Short,
            };
        }
        Link::Erf | Link::Other(_) => return Dissected::NotIp,
    };
    by_ethertype(rest.after(place), kind, Around::default())
}

fn ethernet(rest: Rest<'_>, around: Around) -> Dissected {
    if rest.kept.len() < ETHERNET {
        return Dissected::Short;
    }
    by_ethertype(rest.after(ETHERNET), rest.number(12), around)
}

/// Look past VLAN tags, and past LLC with SNAP.
fn by_ethertype(mut rest: Rest<'_>, mut kind: u16, mut around: Around) -> Dissected {
    loop {
        match kind {
            0x0800 | 0x86dd => return internet(rest, around),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                if rest.kept.len() < 4 {
                    return Dissected::Short;
                }
                around.vlans = around.vlans << 12 | u32::from(rest.number(0) & 0xfff);
                kind = rest.number(2);
                rest = rest.after(4);
            }
            ..0x0600 if rest.kept.starts_with(&[0xaa, 0xaa, 3, 0, 0, 0]) => {
                kind = rest.number(6).max(0x0600);
                rest = rest.after(8);
            }
            _ => return labelled(rest, kind, around),
        }
    }
}

/// What is neither IP nor a tag.
#[cold]
fn labelled(rest: Rest<'_>, kind: u16, around: Around) -> Dissected {
    match kind {
        0x8847 | 0x8848 => mpls(rest, around),
        0x8864 => pppoe(rest, around),
        0x88e7 => match around.within(Tunnel::Backbone, u32_at(rest.kept, 0, Order::Big) & 0xff_ffff) {
            Some(around) => ethernet(rest.after(4), around),
            None => Dissected::Malformed,
        },
        // Address resolution, control of links and bridges, clocks: there is no packet of a host in it.
        ..0x0600
        | 0x0806
        | 0x0842
        | 0x8035
        | 0x8808
        | 0x8809
        | 0x8863
        | 0x888e
        | 0x88b5
        | 0x88cc
        | 0x88f7
        | 0x8902
        | 0x9000 => Dissected::NotIp,
        kind => Dissected::Unknown(kind),
    }
}

/// Labels, and what is behind the last: nothing says it, so that it must look like what it is taken for.
fn mpls(rest: Rest<'_>, around: Around) -> Dissected {
    let mut place = 0;
    let label = loop {
        if rest.kept.len() < place + 4 || place >= 4 * MOST_LABELS {
            return Dissected::Short;
        }
        let entry = u32_at(rest.kept, place, Order::Big);
        place += 4;
        if entry & 0x100 != 0 {
            break entry >> 12;
        }
    };
    let Some(around) = around.within(Tunnel::Mpls, label) else { return Dissected::Malformed };
    let inside = rest.after(place);
    let packet = || internet(inside, around);
    let frame = || Some(ethernet(inside, around)).filter(|_| is_frame(inside));
    let behind_word = || Some(ethernet(inside.after(4), around)).filter(|_| is_frame(inside.after(4)));
    let found = match inside.kept.first().map(|byte| byte >> 4) {
        None => return Dissected::Short,
        Some(4 | 6) if is_packet(inside) => Some(packet()),
        // A control word, unless a frame begins so.
        Some(0) => behind_word().or_else(frame),
        Some(1) if !is_frame(inside) => return Dissected::NotIp, // of the associated channel
        _ => frame(),
    };
    found.unwrap_or(Dissected::Unknown(0x8847))
}

/// Whether an IP header begins here that agrees with the length of the frame.
fn is_packet(rest: Rest<'_>) -> bool {
    match rest.kept.first() {
        Some(first) if first >> 4 == 4 => {
            let (header, total) = (usize::from(first & 15) * 4, usize::from(rest.number(2)));
            header >= 20 && (total == 0 || header <= total && total <= rest.bytes)
        }
        Some(first) if first >> 4 == 6 => rest.bytes >= 40 && usize::from(rest.number(4)) + 40 <= rest.bytes,
        _ => false,
    }
}

/// Whether an Ethernet frame begins here: with a type that is looked past, and what this type says.
fn is_frame(rest: Rest<'_>) -> bool {
    if rest.kept.len() < ETHERNET {
        return false;
    }
    match rest.number(12) {
        0x0800 | 0x86dd => is_packet(rest.after(ETHERNET)),
        0x8100 | 0x88a8 | 0x8847 | 0x8848 | 0x8864 | 0x0806 | 0x8863 | 0x88cc | 0x8809 | 0x8902 => true,
        length @ ..0x0600 => usize::from(length) + ETHERNET <= rest.bytes && rest.kept[0] & 1 == 1,
        _ => false,
    }
}

fn pppoe(rest: Rest<'_>, around: Around) -> Dissected {
    if rest.kept.len() < 8 {
        return Dissected::Short;
    }
    if rest.kept[..2] != [0x11, 0] {
        return Dissected::NotIp;
    }
    match around.within(Tunnel::Pppoe, u32::from(rest.number(2))) {
        Some(around) => ppp(rest.after(6), around),
        None => Dissected::Malformed,
    }
}

/// A PPP frame, whose first two bytes may be left out, as may the first byte of its protocol.
fn ppp(rest: Rest<'_>, around: Around) -> Dissected {
    let rest = if rest.kept.starts_with(&[0xff, 3]) { rest.after(2) } else { rest };
    let (protocol, place) = match rest.kept {
        [first, ..] if first & 1 == 1 => (u16::from(*first), 1),
        [_, _, ..] => (rest.number(0), 2),
        _ => return Dissected::Short,
    };
    match protocol {
        0x0021 | 0x0057 => internet(rest.after(place), around),
        0x8000.. => Dissected::NotIp, // control of the link and of protocols
        _ => Dissected::Unknown(0x8864),
    }
}

/// What an IP packet of this protocol carries if that is a packet again; `None` where it is none, or one that is not looked
/// into: then the packet around it counts. `marked` says whether it noted congestion.
#[inline]
pub(crate) fn carried(protocol: u8, inside: Rest<'_>, around: Around, marked: bool) -> Option<Dissected> {
    match protocol {
        6 => None,
        17 => {
            let ports = [inside.number(0), inside.number(2)];
            ports
                .iter()
                .any(|port| VXLAN.contains(port) || *port == GENEVE)
                .then(|| datagram(inside, ports, around, marked))?
        }
        4 | 41 | 47 => packed(protocol, inside, Around { marked: around.marked || marked, ..around }),
        _ => None,
    }
    .filter(|found| matches!(found, Dissected::Ip(_) | Dissected::Short))
}

#[cold]
fn packed(protocol: u8, inside: Rest<'_>, around: Around) -> Option<Dissected> {
    if protocol == 47 {
        return gre(inside, around);
    }
    if !is_packet(inside) {
        return None;
    }
    Some(internet(inside, around.within(Tunnel::Ip, 0)?))
}

/// VXLAN or Geneve, behind a UDP header.
#[cold]
fn datagram(inside: Rest<'_>, ports: [u16; 2], around: Around, marked: bool) -> Option<Dissected> {
    let around = Around { marked: around.marked || marked, ..around };
    let rest = inside.after(8);
    if rest.kept.len() < 8 {
        return Some(Dissected::Short);
    }
    let number = u32_at(rest.kept, 4, Order::Big) >> 8;
    if ports.contains(&GENEVE) {
        let options = usize::from(rest.kept[0] & 0x3f) * 4;
        let around = around.within(Tunnel::Geneve, number).filter(|_| rest.kept[0] >> 6 == 0)?;
        return Some(by_protocol_type(rest.number(2), rest.after(8 + options), around));
    }
    // The network has a number, and what is reserved is zero. Bits of groups, of Cisco, stand next to it.
    let is_vxlan = rest.kept[0] & 0x08 != 0 && rest.kept[0] & 0x77 == 0 && rest.kept[7] == 0;
    let around = around.within(Tunnel::Vxlan, number).filter(|_| is_vxlan)?;
    Some(ethernet(rest.after(8), around))
}

/// Generic routing encapsulation: of version 0, and of version 1 as PPTP has it.
fn gre(rest: Rest<'_>, around: Around) -> Option<Dissected> {
    if rest.kept.len() < 4 {
        return Some(Dissected::Short);
    }
    let (flags, kind) = (rest.number(0), rest.number(2));
    let has = |flag: u16| flags & flag != 0;
    // Routes of the source were never used.
    if flags & 7 > 1 || has(0x4000) {
        return None;
    }
    let field = |flag: u16| if has(flag) { 4 } else { 0 };
    let key_place = 4 + field(0x8000);
    let mut place = key_place + field(0x2000) + field(0x1000);
    if flags & 7 == 1 {
        place += field(0x0080); // an acknowledgment
    }
    // The lowest byte of the key is a hash of the flow in NVGRE, and the number of the call is the lower half in PPTP.
    let number = match (has(0x2000), kind) {
        (true, 0x6558) => u32_at(rest.kept, key_place, Order::Big) >> 8,
        (true, 0x880b) => u32_at(rest.kept, key_place, Order::Big) & 0xffff,
        (true, _) => u32_at(rest.kept, key_place, Order::Big),
        (false, _) => 0,
    };
    Some(by_protocol_type(kind, rest.after(place), around.within(Tunnel::Gre, number)?))
}

/// What a tunnel that reports its kind carries.
fn by_protocol_type(kind: u16, rest: Rest<'_>, around: Around) -> Dissected {
    if rest.kept.is_empty() && rest.bytes > 0 {
        return Dissected::Short;
    }
    match kind {
        0x6558 => ethernet(rest, around),
        0x880b => ppp(rest, around),
        // Mirrored frames: a header of eight bytes. Source: ERSPAN, section 4.2
        0x88be => ethernet(rest.after(8), around),
        kind => by_ethertype(rest, kind, around),
    }
}
