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
        assert_eq!((offload.kind, offload.payload, offload.headers, offload.needs_checksum()), (SINGLE, 0, 0, true));
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
