//! What the emulator looks at in an IP packet: to which flow it belongs, what it says about marks, and a TCP option that
//! middleboxes take away.

use weir_core::marking::Ecn;

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_HEADER: usize = 20;
const SYN: u8 = 2;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const WINDOW_SCALE: u8 = 3;
/// The bits of ECN; all of them set: congestion.
const ECN: u8 = 3;

/// A number that all packets of a flow share: of addresses, protocol and, for TCP and UDP, ports. 0 for what is no IP
/// packet. FNV-1a over these bytes, as RFC 6437 wishes of what distinguishes flows: the same in every run.
pub fn flow(packet: &[u8]) -> u64 {
    let Some(Parts { protocol, addresses, payload }) = parts(packet) else { return 0 };
    let ports = match protocol {
        TCP | UDP => packet.get(payload..payload + 4).unwrap_or_default(),
        _ => &[],
    };
    let bytes = packet[addresses].iter().chain(ports).chain([&protocol]);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What a packet says about marks of congestion.
///
/// Source: RFC 3168, section 5 (the field), section 5.3 (the header of IPv4).
/// Source: RFC 8200, section 3 (that of IPv6).
pub fn ecn(packet: &[u8]) -> Ecn {
    let byte = packet.get(1).copied().unwrap_or(0);
    match packet.first().map(|first| first >> 4) {
        Some(4) => Ecn::from_bits(byte),
        Some(6) => Ecn::from_bits(byte >> 4),
        _ => Ecn::NotEct,
    }
}

/// Marks a packet that is ECN-capable: it has met congestion. The checksum of IPv4 is adapted.
///
/// Source: RFC 3168, section 5; RFC 1624, equation 3.
pub fn mark_congestion(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let before = word_sum(&packet[..2]);
            packet[1] |= ECN;
            let after = word_sum(&packet[..2]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
            packet[10..12].copy_from_slice(&(!folded(sum)).to_be_bytes());
        }
        Some(6) if packet.len() >= 40 => packet[1] |= ECN << 4,
        _ => {}
    }
}

/// Takes the window scale option out of a TCP connection's first packets, as some firewalls do: without it no window
/// exceeds 64 KiB. The option is overwritten with no-operations, and the checksum adapted where it `covers_options`: not
/// where the kernel left it to be completed. True if there was one.
///
/// Source: RFC 7323, section 2.2; RFC 1624, equation 3.
pub fn strip_window_scale(packet: &mut [u8], covers_options: bool) -> bool {
    let Some(Parts { protocol: TCP, payload, .. }) = parts(packet) else { return false };
    let Some(segment) = packet.get_mut(payload..) else { return false };
    if segment.len() < TCP_HEADER || segment[13] & SYN == 0 {
        return false;
    }
    let header = usize::from(segment[12] >> 4) * 4;
    if header > segment.len() {
        return false;
    }
    let Some(option) = window_scale(&segment[..header]) else { return false };
    let before = word_sum(&segment[TCP_HEADER..header]);
    segment[option].fill(NO_OPERATION);
    if !covers_options {
        return true;
    }
    let after = word_sum(&segment[TCP_HEADER..header]);
    let checksum = u16::from_be_bytes([segment[16], segment[17]]);
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    segment[16..18].copy_from_slice(&(!folded(sum)).to_be_bytes());
    true
}

/// Where the option is in a TCP header.
fn window_scale(header: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut at = TCP_HEADER;
    loop {
        match *header.get(at)? {
            END_OF_OPTIONS => return None,
            NO_OPERATION => at += 1,
            kind => {
                let length = usize::from(*header.get(at + 1)?);
                let end = at + length;
                if length < 2 || end > header.len() {
                    return None;
                }
                if kind == WINDOW_SCALE {
                    return Some(at..end);
                }
                at = end;
            }
        }
    }
}

/// Sum of 16-bit words in one's complement; of a slice of even length.
pub(super) fn word_sum(bytes: &[u8]) -> u16 {
    folded(bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum())
}

pub(super) fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

struct Parts {
    protocol: u8,
    addresses: std::ops::Range<usize>,
    /// Where the header ends.
    payload: usize,
}

/// The parts of an IP packet whose fixed header is whole. Of fragments but the first, and behind extension headers,
/// there are no ports: the protocol is then none that has any.
fn parts(packet: &[u8]) -> Option<Parts> {
    const FRAGMENT: u8 = 44;
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => {
            let first = packet[6] & 0x1f == 0 && packet[7] == 0;
            let protocol = if first { packet[9] } else { FRAGMENT };
            Some(Parts { protocol, addresses: 12..20, payload: usize::from(packet[0] & 0xf) * 4 })
        }
        6 if packet.len() >= 40 => Some(Parts { protocol: packet[6], addresses: 8..40, payload: 40 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN with the options of Linux: MSS, SACK permitted, timestamps, no-operation, window scale 7.
    fn syn() -> Vec<u8> {
        let options = [2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
        let mut packet = vec![0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0x9c, 0x40, 0x14, 0x51, 1, 2, 3, 4, 0, 0, 0, 0, 10 << 4, SYN, 0xfa, 0xf0, 0, 0, 0, 0]);
        packet.extend(options);
        let checksum = !tcp_sum(&packet);
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// Sum over pseudo header and segment of an IPv4 packet; 0xffff when the checksum is right.
    fn tcp_sum(packet: &[u8]) -> u16 {
        let pseudo = [0, TCP, 0, (packet.len() - 20) as u8];
        folded(u32::from(word_sum(&packet[12..])) + u32::from(word_sum(&pseudo)))
    }

    #[test]
    fn the_window_scale_goes_and_the_checksum_stays_right() {
        let mut packet = syn();
        assert_eq!(tcp_sum(&packet), 0xffff);
        assert!(strip_window_scale(&mut packet, true));
        assert_eq!(tcp_sum(&packet), 0xffff);
        assert_eq!(packet[56..], [1, 1, 1, 1]);
        assert_eq!(packet[40..56], syn()[40..56]);
        assert!(!strip_window_scale(&mut packet, true), "it is gone");
    }

    #[test]
    fn an_option_at_an_odd_place_goes_as_well() {
        let mut packet = syn();
        packet[56..].copy_from_slice(&[3, 3, 7, 1]);
        packet.copy_within(40..59, 41);
        packet[40] = 1;
        packet[36..38].fill(0);
        let checksum = !tcp_sum(&packet);
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
        assert!(strip_window_scale(&mut packet, true));
        assert_eq!(tcp_sum(&packet), 0xffff);
    }

    #[test]
    fn packets_without_the_option_are_left_alone() {
        let mut data = syn();
        data[33] = 0x10;
        let as_it_was = data.clone();
        assert!(!strip_window_scale(&mut data, true), "no SYN");
        assert_eq!(data, as_it_was);
        let whole = syn();
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            assert!(!strip_window_scale(&mut cut, true) || length > 56, "cut at {length}");
        }
        for length in [0, 1, 200] {
            let mut malformed = syn();
            malformed[57] = length;
            assert!(!strip_window_scale(&mut malformed, true), "an option of {length} bytes");
        }
    }

    #[test]
    fn a_mark_of_congestion_leaves_the_checksum_right() {
        let header_sum = |packet: &[u8]| word_sum(&packet[..20]);
        for bits in 0..4 {
            let mut packet = syn();
            packet[1] = 0xb8 | bits;
            let checksum = !word_sum(&packet[..20]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            assert_eq!(ecn(&packet).bits(), bits);
            mark_congestion(&mut packet);
            assert_eq!((packet[1], header_sum(&packet)), (0xbb, 0xffff));
        }
        let mut six = vec![0; 40];
        (six[0], six[1]) = (0x6f, 0x2f);
        assert_eq!(ecn(&six), Ecn::Ect0);
        mark_congestion(&mut six);
        assert_eq!(six[..2], [0x6f, 0x3f]);
        assert_eq!([&[0x60, 0x0f][..], &[], &[0x45]].map(ecn), [Ecn::NotEct; 3]);
        mark_congestion(&mut [0x45, 2]);
    }

    #[test]
    fn a_flow_is_reported_by_addresses_protocol_and_ports() {
        let packet = syn();
        let mut other_port = packet.clone();
        other_port[21] ^= 1;
        let mut other_sequence = packet.clone();
        other_sequence[27] ^= 1;
        assert_eq!(flow(&packet), flow(&other_sequence));
        assert_ne!(flow(&packet), flow(&other_port));
        assert_eq!(flow(&[]), 0);
        assert_eq!(flow(&[0xff; 60]), 0);
    }
}
