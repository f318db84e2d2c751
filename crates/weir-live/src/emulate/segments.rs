//! Packets that a network device gives and takes joined: up to 64 KiB of one TCP connection, or datagrams of one size, as
//! one packet with a header of its own before it. A path sees their segments: what the kernel or a network card would
//! have made of them.
//!
//! Source: Linux uapi, linux/virtio_net.h (the header of ten bytes, in the byte order of the machine)

use std::ops::Range;

use super::packet::{folded, mark_congestion, word_sum};

/// Length of what a device puts before each packet.
pub(super) const OFFLOAD_HEADER: usize = 10;
/// Longest headers of IP and transport together that are cut; what has longer ones stays whole.
const HEADERS_MAX: usize = 256;

const NEEDS_CHECKSUM: u8 = 1;
const SINGLE: u8 = 0;
const TCP_IPV4: u8 = 1;
const TCP_IPV6: u8 = 4;
const UDP: u8 = 5;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// What a device says of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OffloadHeader {
    flags: u8,
    kind: u8,
    headers: u16,
    /// Payload of each segment but the last, in bytes.
    payload: u16,
    checksum_from: u16,
    checksum_at: u16,
}

impl OffloadHeader {
    pub(super) fn from_bytes(bytes: [u8; OFFLOAD_HEADER]) -> OffloadHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        OffloadHeader {
            flags: bytes[0],
            kind: bytes[1],
            headers: word(2),
            payload: word(4),
            checksum_from: word(6),
            checksum_at: word(8),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; OFFLOAD_HEADER] {
        let mut bytes = [0; OFFLOAD_HEADER];
        (bytes[0], bytes[1]) = (self.flags, self.kind);
        let words = [self.headers, self.payload, self.checksum_from, self.checksum_at];
        for (to, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Whether it is joined.
    pub(super) fn is_joined(self) -> bool {
        self.kind != SINGLE
    }

    /// Whether the checksum of the transport holds the sum over the pseudo header only, and the receiver is not to
    /// look at it.
    pub(super) fn needs_checksum(self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }
}

/// How a joined packet falls into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    offload: OffloadHeader,
    /// Where the header of the transport begins.
    transport: usize,
    /// Where the payload begins.
    headers: usize,
    /// Of each segment but the last, in bytes.
    payload: usize,
    /// Length of the packet.
    length: usize,
}

impl Segments {
    /// Those of a packet of `length` bytes that begins with `front`; none where it is a single one, or nothing that a
    /// device joins.
    pub(super) fn of(offload: OffloadHeader, front: &[u8], length: usize) -> Option<Segments> {
        let transport = usize::from(offload.checksum_from);
        let own = match (offload.kind, front.first()? >> 4) {
            (TCP_IPV4, 4) | (TCP_IPV6, 6) => usize::from(*front.get(transport + 12)? >> 4) * 4,
            (UDP, 4 | 6) => UDP_HEADER,
            _ => return None,
        };
        let least = if offload.kind == UDP { UDP_HEADER } else { TCP_HEADER };
        let headers = transport + own;
        let fixed = if front[0] >> 4 == 4 { 20 } else { 40 };
        let payload = usize::from(offload.payload);
        let legal = offload.needs_checksum()
            && transport >= fixed
            && own >= least
            && usize::from(offload.checksum_at) + 2 <= own
            && headers <= front.len().min(HEADERS_MAX)
            && payload > 0
            && length > headers + payload
            && (length - headers).div_ceil(payload) <= usize::from(u16::MAX);
        legal.then_some(Segments { offload, transport, headers, payload, length })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u16 {
        (self.length - self.headers).div_ceil(self.payload) as u16
    }

    /// Length of a segment with its headers.
    pub(super) fn size(&self, index: u16) -> usize {
        let payload = self.payload_of(&(index..index + 1));
        self.headers + payload.len()
    }

    /// Which bytes of the packet are the payload of some segments in a row.
    pub(super) fn payload_of(&self, run: &Range<u16>) -> Range<usize> {
        let at = |index: u16| (self.headers + usize::from(index) * self.payload).min(self.length);
        at(run.start)..at(run.end)
    }

    /// What comes before that payload: what the device is told, and the headers, made from those of the packet.
    /// Sequence numbers and identifications go on from segment to segment, FIN and PSH belong to the last and CWR to
    /// the first.
    ///
    /// Source: RFC 9293, section 3.1 (TCP); RFC 791, section 3.1 (IPv4, and with it UDP and IPv6)
    pub(super) fn head(&self, front: &[u8], run: &Range<u16>, marked: bool) -> Head {
        let payload = self.payload_of(run).len();
        let single = run.len() == 1;
        let offload = OffloadHeader {
            kind: if single { SINGLE } else { self.offload.kind },
            headers: if single { 0 } else { self.headers as u16 },
            payload: if single { 0 } else { self.offload.payload },
            ..self.offload
        };
        let mut head = Head { bytes: [0; OFFLOAD_HEADER + HEADERS_MAX], length: OFFLOAD_HEADER + self.headers };
        head.bytes[..OFFLOAD_HEADER].copy_from_slice(&offload.to_bytes());
        let packet = &mut head.bytes[OFFLOAD_HEADER..OFFLOAD_HEADER + self.headers];
        packet.copy_from_slice(&front[..self.headers]);
        let (ip, transport) = packet.split_at_mut(self.transport);
        if self.offload.kind == UDP {
            put(transport, 4, UDP_HEADER + payload);
        } else {
            let sequence = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            let sequence = sequence.wrapping_add(u32::from(run.start) * self.payload as u32);
            transport[4..8].copy_from_slice(&sequence.to_be_bytes());
            if run.end < self.count() {
                transport[13] &= !(FIN | PSH);
            }
            if run.start > 0 {
                transport[13] &= !CWR;
            }
        }
        let at = usize::from(self.offload.checksum_at);
        let given = u16::from_be_bytes([transport[at], transport[at + 1]]);
        let (before, now) = (self.length - self.transport, transport.len() + payload);
        put(transport, at, usize::from(with_length(given, before as u16, now as u16)));
        if ip[0] >> 4 == 4 {
            let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(run.start);
            put(ip, 2, self.headers + payload);
            put(ip, 4, usize::from(identification));
            put(ip, 10, 0);
            let header = usize::from(ip[0] & 0xf) * 4;
            put(ip, 10, usize::from(!word_sum(&ip[..header.min(self.transport)])));
        } else {
            put(ip, 4, self.headers + payload - 40);
        }
        if marked {
            mark_congestion(packet);
        }
        head
    }
}

/// A sum over a pseudo header with another length. All else of it stays as it was given: behind a routing header, the
/// address that it is made of is not the one in the header of IP.
///
/// Source: RFC 1624, section 2, eqn. 1
fn with_length(sum: u16, before: u16, now: u16) -> u16 {
    folded(u32::from(sum) + u32::from(!before) + u32::from(now))
}

/// Puts a word into a header; out of its bounds nothing happens.
fn put(header: &mut [u8], at: usize, word: usize) {
    if let Some(to) = header.get_mut(at..at + 2) {
        to.copy_from_slice(&(word as u16).to_be_bytes());
    }
}

/// What comes before the payload of some segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    bytes: [u8; OFFLOAD_HEADER + HEADERS_MAX],
    length: usize,
}

impl Head {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const NO_CONGESTION: u8 = 0x02;

    /// A joined packet of TCP over IPv4 as a device gives it, with this much payload in segments of 1000 bytes, and
    /// the payload.
    pub(crate) fn joined_tcp(payload: usize) -> (Vec<u8>, Vec<u8>) {
        let mut ip = vec![0x45, NO_CONGESTION, 0, 0, 0xff, 0xff, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        put(&mut ip, 2, 52 + payload);
        let sum = !word_sum(&ip);
        put(&mut ip, 10, usize::from(sum));
        let mut tcp =
            vec![0x9c, 0x40, 0x14, 0x51, 0xff, 0xff, 0xff, 0, 0, 0, 0, 9, 8 << 4, 0x10 | PSH | FIN, 1, 0, 0, 0, 0, 0];
        tcp.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        joined(TCP_IPV4, ip, tcp, 16, payload)
    }

    fn joined_udp_over_ipv6(payload: usize) -> (Vec<u8>, Vec<u8>) {
        let mut ip = vec![0x60, 0x20, 0, 0, 0, 0, 17, 64];
        put(&mut ip, 4, 8 + payload);
        ip.extend((0..32).map(|i| i * 7));
        let mut udp = vec![1, 2, 3, 4, 0, 0, 0, 0];
        put(&mut udp, 4, 8 + payload);
        joined(UDP, ip, udp, 6, payload)
    }

    fn joined(kind: u8, ip: Vec<u8>, transport: Vec<u8>, checksum_at: u16, payload: usize) -> (Vec<u8>, Vec<u8>) {
        let offload = OffloadHeader {
            flags: NEEDS_CHECKSUM,
            kind,
            headers: (ip.len() + transport.len()) as u16,
            payload: 1000,
            checksum_from: ip.len() as u16,
            checksum_at,
        };
        let (protocol, addresses) = if ip[0] >> 4 == 4 { (ip[9], 12..20) } else { (ip[6], 8..40) };
        let pseudo = u32::from(word_sum(&ip[addresses])) + u32::from(protocol) + (transport.len() + payload) as u32;
        let mut transport = transport;
        put(&mut transport, usize::from(checksum_at), usize::from(folded(pseudo)));
        let payload: Vec<u8> = (0..payload).map(|i| (i * 31 % 251) as u8).collect();
        ([offload.to_bytes().to_vec(), ip, transport, payload.clone()].concat(), payload)
    }

    fn split(packet: &[u8]) -> (OffloadHeader, &[u8]) {
        (OffloadHeader::from_bytes(packet[..OFFLOAD_HEADER].try_into().expect("ten bytes")), &packet[OFFLOAD_HEADER..])
    }

    /// What a receiver looks at: lengths, the checksum of IPv4, and that of the transport once it is completed as the
    /// header says.
    pub(crate) fn assert_legal(packet: &[u8]) {
        let (offload, packet) = split(packet);
        let word = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
        let transport = usize::from(offload.checksum_from);
        let (protocol, addresses) = if packet[0] >> 4 == 4 {
            assert_eq!(word(2), packet.len());
            assert_eq!(word_sum(&packet[..20]), 0xffff);
            (packet[9], 12..20)
        } else {
            assert_eq!(word(4), packet.len() - 40);
            (packet[6], 8..40)
        };
        let mut segment = packet[transport..].to_vec();
        let length = segment.len();
        if protocol == 17 {
            assert_eq!(word(transport + 4), length);
        }
        segment.resize(length.next_multiple_of(2), 0);
        let checksum = !word_sum(&segment);
        put(&mut segment, usize::from(offload.checksum_at), usize::from(checksum));
        let pseudo = u32::from(word_sum(&packet[addresses])) + u32::from(protocol) + length as u32;
        assert_eq!(folded(u32::from(word_sum(&segment)) + pseudo), 0xffff);
    }

    /// Each segment, as it is written alone.
    fn cut(packet: &[u8]) -> Vec<Vec<u8>> {
        let (offload, body) = split(packet);
        let segments = Segments::of(offload, body, body.len()).expect("a joined packet");
        let piece = |i: u16| {
            let run = i..i + 1;
            let whole = [segments.head(body, &run, false).bytes(), &body[segments.payload_of(&run)]].concat();
            assert_eq!(whole.len(), OFFLOAD_HEADER + segments.size(i));
            whole
        };
        (0..segments.count()).map(piece).collect()
    }

    #[test]
    fn segments_of_tcp_follow_each_other_and_only_the_last_ends() {
        let (packet, payload) = joined_tcp(2500);
        let pieces = cut(&packet);
        assert_eq!(pieces.len(), 3);
        let mut received = Vec::new();
        for (i, piece) in (0..).zip(&pieces) {
            assert_legal(piece);
            let (offload, body) = split(piece);
            assert_eq!(
                (offload.kind, offload.payload, offload.headers, offload.needs_checksum()),
                (SINGLE, 0, 0, true)
            );
            let sequence = u32::from_be_bytes(body[24..28].try_into().expect("four bytes"));
            assert_eq!(sequence, 0xffff_ff00_u32.wrapping_add(i * 1000));
            assert_eq!(u16::from_be_bytes([body[4], body[5]]), 0xffff_u16.wrapping_add(i as u16));
            assert_eq!(body[33] & (FIN | PSH) != 0, i == 2);
            received.extend_from_slice(&body[52..]);
        }
        assert_eq!(received, payload);
    }

    #[test]
    fn a_run_of_segments_is_a_joined_packet_again() {
        let (packet, payload) = joined_tcp(4010);
        let (offload, body) = split(&packet);
        let segments = Segments::of(offload, body, body.len()).expect("a joined packet");
        for (first, end) in [(0, 5), (1, 4), (3, 5), (0, 2)] {
            let run = first..end;
            let again = [segments.head(body, &run, false).bytes(), &body[segments.payload_of(&run)]].concat();
            assert_legal(&again);
            let (offload, body) = split(&again);
            let inner = Segments::of(offload, body, body.len()).expect("a joined packet");
            assert_eq!(inner.count(), end - first);
            assert_eq!(body[52..], payload[usize::from(first) * 1000..(usize::from(end) * 1000).min(4010)]);
            // Cut now or cut before: the same packets.
            assert_eq!(cut(&again), cut(&packet)[usize::from(first)..usize::from(end)]);
        }
    }

    #[test]
    fn datagrams_over_ipv6_have_lengths_of_their_own() {
        let (packet, payload) = joined_udp_over_ipv6(2001);
        let pieces = cut(&packet);
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [1058, 1058, 59]);
        pieces.iter().for_each(|piece| assert_legal(piece));
        let received: Vec<u8> = pieces.iter().flat_map(|piece| piece[OFFLOAD_HEADER + 48..].to_vec()).collect();
        assert_eq!(received, payload);
    }

    /// As behind a routing header: the last address is not in the header of IP.
    #[test]
    fn the_sum_that_was_given_keeps_its_addresses_and_gets_the_length_of_each_segment() {
        let (packet, _) = joined_udp_over_ipv6(2001);
        let (offload, body) = split(&packet);
        let mut body = body.to_vec();
        let elsewhere = 0x1234;
        put(&mut body, 46, elsewhere + 8 + 2001);
        let segments = Segments::of(offload, &body, body.len()).expect("a joined packet");
        for (run, length) in [(0..1, 1008), (1..2, 1008), (2..3, 9), (0..2, 2008), (0..3, 2009)] {
            let head = segments.head(&body, &run, false);
            let sum = u16::from_be_bytes([head.bytes()[OFFLOAD_HEADER + 46], head.bytes()[OFFLOAD_HEADER + 47]]);
            assert_eq!(usize::from(sum), elsewhere + length, "{run:?}");
        }
    }

    #[test]
    fn a_mark_is_set_on_the_segments_that_were_marked() {
        let (packet, _) = joined_tcp(2500);
        let (offload, body) = split(&packet);
        let segments = Segments::of(offload, body, body.len()).expect("a joined packet");
        for (marked, ecn) in [(false, NO_CONGESTION), (true, 3)] {
            let whole = [segments.head(body, &(1..2), marked).bytes(), &body[segments.payload_of(&(1..2))]].concat();
            assert_legal(&whole);
            assert_eq!(whole[OFFLOAD_HEADER + 1], ecn);
        }
    }

    #[test]
    fn what_is_not_joined_or_makes_no_sense_stays_whole() {
        let (packet, _) = joined_tcp(2500);
        let (offload, body) = split(&packet);
        let whole = |offload: OffloadHeader, body: &[u8]| Segments::of(offload, body, body.len()).is_none();
        assert!(!whole(offload, body));
        assert!(whole(OffloadHeader { kind: SINGLE, ..offload }, body));
        assert!(whole(OffloadHeader { kind: 3, ..offload }, body), "fragments of UDP");
        assert!(whole(OffloadHeader { kind: TCP_IPV6, ..offload }, body), "another version");
        assert!(whole(OffloadHeader { payload: 0, ..offload }, body));
        assert!(whole(OffloadHeader { payload: 2500, ..offload }, body), "one segment only");
        assert!(whole(OffloadHeader { flags: 0, ..offload }, body));
        assert!(whole(OffloadHeader { checksum_at: 31, ..offload }, body), "a checksum behind the header");
        let most = 52 + usize::from(u16::MAX);
        let tiny = OffloadHeader { payload: 1, ..offload };
        assert_eq!(Segments::of(tiny, body, most).map(|segments| segments.count()), Some(u16::MAX));
        assert!(Segments::of(tiny, body, most + 1).is_none(), "more segments than are counted");
        assert!(whole(OffloadHeader { checksum_from: 4, ..offload }, body));
        assert!(whole(OffloadHeader { checksum_from: 60_000, ..offload }, body));
        for length in 0..body.len().min(60) {
            assert!(whole(offload, &body[..length]), "cut at {length}");
        }
        let mut long = body.to_vec();
        long[32] = 0xf0;
        assert!(!whole(offload, &long));
        long[32] = 0x10;
        assert!(whole(offload, &long), "a TCP header shorter than itself");
    }
}
