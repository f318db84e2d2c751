//! Captures: every format gives the same frames, damage is reported, and no bytes make a reader panic.

mod talks;
use std::io::Cursor;

use proptest::prelude::*;
use weir_core::columns::{Table, Values};
use weir_core::trace::frames::{Carried, Sketch};
use weir_core::trace::{
    Analysis, Capture, Dissected, Ending, Link, Options, Order, Packet, Record, Segment, Selection, Stamp,
    StreamOptions, Tap, TraceError, Transport, Writer, dissect,
};
use weir_core::units::{Bytes, Rate, Time};

use self::talks::Talk;

/// Frames with their times in ns.
type Frames = Vec<(u64, Vec<u8>)>;

/// What was read of a frame: its stamp, its length, and its bytes.
type Found = (Stamp, u32, Vec<u8>);

fn drawn(sketch: Sketch<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    sketch.draw(&mut out, usize::MAX);
    out
}

fn datagram(number: u64, size: u64) -> Sketch<'static> {
    let carried = Carried::Datagram { number };
    Sketch { from: 1, to: 2, flow: 7, forward: true, size: Bytes::new(size), ecn: 0, id: number as u16, carried }
}

fn segment(forward: bool, segment: Segment) -> Vec<u8> {
    numbered(forward, 0, segment)
}

fn numbered(forward: bool, id: u16, segment: Segment) -> Vec<u8> {
    let (from, to) = if forward { (1, 2) } else { (2, 1) };
    let carried = Carried::Segment(&segment);
    drawn(Sketch { from, to, flow: 7, forward, size: Bytes::ZERO, ecn: 0, id, carried })
}

fn ten_datagrams() -> Frames {
    (0..10).map(|number| (1_000 * number, drawn(datagram(number, 1518)))).collect()
}

/// A pcap file in either byte order, with stamps in ns or us.
fn pcap(frames: &Frames, order: Order, nanoseconds: bool, snap: usize) -> Vec<u8> {
    let word = |word: u32| if order == Order::Big { word.to_be_bytes() } else { word.to_le_bytes() };
    let mut out = word(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }).to_vec();
    out.extend(if order == Order::Big { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
    out.extend([word(0), word(0), word(snap as u32), word(1)].concat());
    for (ns, frame) in frames {
        let kept = &frame[..frame.len().min(snap)];
        let ticks = if nanoseconds { *ns } else { ns / 1000 };
        out.extend([word(100), word(ticks as u32), word(kept.len() as u32), word(frame.len() as u32)].concat());
        out.extend(kept);
    }
    out
}

fn erf(frames: &Frames) -> Vec<u8> {
    let mut out = Vec::new();
    for (ns, frame) in frames {
        let length = (18 + frame.len()).next_multiple_of(8);
        out.extend(((100u64 << 32) + ns * (1 << 32) / 1_000_000_000).to_le_bytes());
        out.extend([2, 4]);
        out.extend((length as u16).to_be_bytes());
        out.extend(3u16.to_be_bytes());
        out.extend((frame.len() as u16 + 4).to_be_bytes());
        out.extend([0, 0]);
        out.extend(frame);
        out.resize(out.len() + length - 18 - frame.len(), 0);
    }
    out
}

fn pcapng(frames: &Frames) -> Vec<u8> {
    let tap = Tap { name: "a->b", rate: Rate::from_gbit_per_s(1), snap_bytes: 0 };
    let mut writer = Writer::new(Vec::new(), "test", &[tap]).expect("memory takes it");
    for (ns, frame) in frames {
        writer.frame(0, Time::from_ps(100_000_000_000_000 + ns * 1000), frame, frame.len() as u32).expect("as above");
    }
    writer.finish().expect("as above")
}

/// Stamps, lengths and bytes of all frames, and the ending.
fn read(bytes: &[u8]) -> Result<(Vec<Found>, Ending), TraceError> {
    let mut capture = Capture::new(Cursor::new(bytes))?;
    let mut found = Vec::new();
    while let Some(record) = capture.next_record()? {
        found.push((record.stamp, record.frame_bytes, record.bytes.to_vec()));
    }
    Ok((found, capture.ending().expect("it was read to its end").clone()))
}

fn analysed(bytes: &[u8], options: Options) -> Vec<Table> {
    let mut capture = Capture::new(Cursor::new(bytes)).expect("a capture");
    let mut analysis = Analysis::new(options);
    analysis.read(&mut capture, |_| true).expect("memory can be read");
    analysis.tables(&capture, StreamOptions::default())
}

/// A column of counts of the table `table`.
fn counts(tables: &[Table], table: &str, column: &str) -> Vec<u64> {
    let table = tables.iter().find(|found| found.name == table).expect("the table exists");
    match &table.columns.iter().find(|found| found.name == column).expect("the column exists").values {
        Values::U32(values) => values.iter().map(|&value| u64::from(value)).collect(),
        Values::U64(values) => values.clone(),
        Values::MaybeU64(values) => values.iter().map(|value| value.expect("it is known")).collect(),
        _ => panic!("{column} holds no counts"),
    }
}

#[test]
fn all_formats_and_byte_orders_give_the_same_frames() {
    let frames = ten_datagrams();
    let wanted: Vec<_> = frames.iter().map(|(_, frame)| (frame.len() as u32, frame.clone())).collect();
    let files = [
        pcap(&frames, Order::Little, true, 65535),
        pcap(&frames, Order::Big, true, 65535),
        pcap(&frames, Order::Little, false, 65535),
        pcap(&frames, Order::Big, false, 65535),
        pcapng(&frames),
        erf(&frames),
    ];
    for (place, file) in files.iter().enumerate() {
        let (found, ending) = read(file).expect("it is a capture");
        assert_eq!(ending, Ending::Whole);
        let frames: Vec<_> = found.iter().map(|(_, length, bytes)| (*length, bytes.clone())).collect();
        assert!(frames == wanted, "file {place} has other frames");
        for (number, (stamp, ..)) in found.iter().enumerate() {
            assert_eq!(stamp.seconds, 100);
            assert!(stamp.ps.abs_diff(number as u64 * 1_000_000) <= 233, "{stamp:?} in file {place}");
        }
    }
}

#[test]
fn a_record_that_is_cut_off_is_reported_and_the_others_are_kept() {
    let frames = ten_datagrams();
    for file in [pcap(&frames, Order::Little, true, 65535), pcapng(&frames), erf(&frames)] {
        let (found, ending) = read(&file[..file.len() - 5]).expect("it is a capture");
        assert_eq!(found.len(), 9);
        assert!(matches!(ending, Ending::Truncated { place } if place > 0 && place < file.len() as u64));
    }
}

#[test]
fn a_damaged_record_ends_the_capture_with_its_place() {
    let mut file = pcap(&ten_datagrams(), Order::Little, true, 65535);
    let place = 24 + 3 * (16 + 1514);
    file[place + 8..place + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let (found, ending) = read(&file).expect("it is a capture");
    assert_eq!(found.len(), 3);
    assert_eq!(ending.to_string(), format!("damaged at byte {place}: a record says that it holds 4294967295 bytes"));
}

#[test]
fn what_is_no_capture_is_named() {
    let message = |bytes: &[u8]| match read(bytes) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("a capture"),
    };
    assert!(message(b"").ends_with("the file is empty"));
    assert!(message(b"\x1f\x8b\x08\x00").contains("gzip"));
    assert!(message(b"network:\n  kind: graph\n").ends_with("it is text that begins with 'network:'"));
    assert!(message(&[0xff; 64]).ends_with("it begins with ff ff ff ff ff ff ff ff"));
    assert!(message(b"\xd4\xc3\xb2\xa1\x02\x00").contains("its header is cut off after 6 of 24 bytes"));
}

#[test]
fn lengths_come_from_headers_so_that_snapped_frames_count_whole() {
    let frames = ten_datagrams();
    let whole = analysed(&pcap(&frames, Order::Little, true, 65535), Options::default());
    let snapped = analysed(&pcap(&frames, Order::Little, true, 42), Options::default());
    for column in ["packets", "frame_bytes", "payload_bytes", "new_bytes"] {
        assert_eq!(counts(&whole, "flows", column), counts(&snapped, "flows", column), "{column}");
    }
    assert_eq!(counts(&snapped, "trace", "snapped_frames"), [10]);
    assert_eq!(counts(&whole, "flows", "payload_bytes"), [10 * (1518 - 18 - 28), 0]);
}

#[test]
fn a_header_whose_options_are_cut_off_still_has_its_numbers() {
    let sent = Segment { seq: 77, flags: Segment::ACK, payload: 100, timestamps: Some((1, 2)), ..Segment::default() };
    let frame = segment(true, sent);
    for kept in [14 + 20 + 8, 14 + 20 + 20, frame.len()] {
        let record = record(Link::Ethernet, &frame[..kept], frame.len());
        let Dissected::Ip(packet) = dissect(&record) else { panic!("an IP packet") };
        let Transport::Tcp(found) = packet.transport else { panic!("a TCP segment") };
        assert_eq!((found.seq, found.cut), (77, kept < frame.len()));
        assert_eq!(found.payload == 100, kept >= 14 + 20 + 14, "{kept}");
        assert_eq!(found.timestamps.is_some(), kept == frame.len());
    }
}

fn record(link: Link, bytes: &[u8], length: usize) -> Record<'_> {
    Record { stamp: Stamp::default(), interface: 0, link, frame_bytes: length as u32, bytes }
}

#[test]
fn vlan_tags_and_cooked_headers_are_looked_past() {
    let plain = drawn(datagram(1, 200));
    let Dissected::Ip(wanted) = dissect(&record(Link::Ethernet, &plain, plain.len())) else { panic!("an IP packet") };
    let tagged = [&plain[..12], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], &plain[12..]].concat();
    let cooked = [&[0; 14], &plain[12..]].concat();
    let cooked_2 = [&plain[12..14], &[0; 18], &plain[14..]].concat();
    let snap = [&plain[..12], &[0, 194, 0xaa, 0xaa, 3, 0, 0, 0], &plain[12..]].concat();
    for (link, bytes, vlans) in [
        (Link::Ethernet, &tagged, 5 << 12 | 6),
        (Link::Ethernet, &snap, 0),
        (Link::Cooked, &cooked, 0),
        (Link::Cooked2, &cooked_2, 0),
        (Link::Raw, &plain[14..].to_vec(), 0),
    ] {
        let wanted = Dissected::Ip(Packet { vlans, ..wanted });
        assert_eq!(dissect(&record(link, bytes, bytes.len())), wanted, "{link:?}");
    }
}

#[test]
fn ipv6_extension_headers_are_looked_past() {
    let mut packet = vec![0x60, 0, 0, 0, 0, 8 + 16 + 8 + 5, 0, 64];
    packet.extend([0xfd; 16]);
    packet.extend([0xfe; 16]);
    packet.extend([60, 0, 1, 4, 0, 0, 0, 0]); // hop-by-hop options, then
    packet.extend([17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // destination options, then UDP
    packet.extend([0x10, 0, 0x20, 0, 0, 13, 0, 0, 1, 2, 3, 4, 5]);
    let Dissected::Ip(found) = dissect(&record(Link::Raw, &packet, packet.len())) else { panic!("an IP packet") };
    assert!(matches!(found.transport, Transport::Udp { from: 0x1000, to: 0x2000, payload: 5, .. }), "{found:?}");
    assert_eq!(found.from.with_port(80), "[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:80");
}

#[test]
fn the_same_frames_give_the_same_bytes() {
    assert_eq!(pcapng(&ten_datagrams()), pcapng(&ten_datagrams()));
}

#[test]
fn checksums_of_drawn_frames_add_up() {
    let folded = |bytes: &[u8], more: u64| {
        let mut sum = more
            + bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum::<u64>();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    };
    let sack = Segment { seq: 5, flags: 16, payload: 77, sacks: 2, blocks: [(1, 9); 4], ..Segment::default() };
    for (frame, protocol) in [(drawn(datagram(300, 129)), 17), (segment(true, sack), 6)] {
        assert_eq!(folded(&frame[14..34], 0), 0xffff);
        let pseudo = folded(&frame[26..34], protocol + (frame.len() as u64 - 34));
        assert_eq!(folded(&frame[34..], pseudo), 0xffff, "protocol {protocol}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        drop(read(&bytes));
    }

    #[test]
    fn no_damage_makes_an_analysis_panic(
        kind in 0..4usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut talk = Talk::begun();
        for number in 0..12 {
            talk = talk.data(number).after(7_000_000).ack(number, &[(number, number + 1)]).data(number);
        }
        talk.frames.extend(ten_datagrams());
        let mut file = match kind {
            0 => pcap(&talk.frames, Order::Big, false, 96),
            1 => pcap(&talk.frames, Order::Little, true, 65535),
            2 => pcapng(&talk.frames),
            _ => erf(&talk.frames),
        };
        for (place, value) in flips {
            let place = place.index(file.len());
            file[place] = value;
        }
        file.truncate(cut.index(file.len()) + 1);
        if let Ok(mut capture) = Capture::new(Cursor::new(&file)) {
            let options = Options { detail: Selection::Only(vec![0, 1, 2]), connections: 100, ..Options::default() };
            let mut analysis = Analysis::new(options);
            prop_assert!(analysis.read(&mut capture, |_| true).is_ok());
            drop(analysis.tables(&capture, StreamOptions { packets: Some(8), link_rate: None }));
        }
    }

    #[test]
    fn no_order_of_frames_makes_an_analysis_panic(
        base in any::<u32>(),
        late in prop::collection::vec(0..200u32, 100),
        spread in prop::sample::select(vec![0, 1, 20]),
        first in 0..90usize,
        in_time in any::<bool>(),
    ) {
        let ack = Segment { flags: Segment::ACK, ack: 5000, window: 512, ..Segment::default() };
        let place = |number: u32| base.wrapping_add(number * 1000);
        let mut frames = Frames::new();
        for number in 0..50 {
            let again = if number % 7 == 6 { number - 5 } else { number };
            frames.push((0, segment(true, Segment { seq: place(again), payload: 1000, ..ack })));
            let (sacks, blocks) = (u8::from(number % 3 == 0), [(place(number), place(number + 1)); 4]);
            let taken = place(number.saturating_sub(2));
            frames.push((0, segment(false, Segment { seq: 5000, ack: taken, sacks, blocks, ..ack })));
        }
        for (place, (ns, _)) in frames.iter_mut().enumerate() {
            *ns = place as u64 * 3_000_000;
        }
        let times: Vec<u64> = frames.iter().map(|&(ns, _)| ns).collect();
        let mut moved: Vec<_> = late.iter().zip(frames).enumerate().collect();
        moved.sort_by_key(|&(place, (&late, _))| 20 * place as u32 + spread * late);
        let mut frames: Frames = moved.into_iter().map(|(_, (_, frame))| frame).collect();
        if in_time {
            frames.iter_mut().zip(times).for_each(|(frame, ns)| frame.0 = ns);
        }
        drop(analysed(&pcapng(&frames[first..].to_vec()), Options::default()));
    }

    #[test]
    fn no_packet_makes_the_dissector_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), link in 0..9usize) {
        let links = [Link::Ethernet, Link::Raw, Link::Cooked, Link::Cooked2, Link::Loopback, Link::Hdlc, Link::Erf,
            Link::Other(3), Link::Raw];
        let mut bytes = bytes;
        if let (8, Some(first)) = (link, bytes.first_mut()) {
            *first = 0x60 | *first & 15;
        }
        dissect(&record(links[link], &bytes, bytes.len()));
    }

    #[test]
    fn whatever_is_drawn_is_dissected_again(number in any::<u64>(), size in 46u64..9000, flow in any::<u32>()) {
        let sketch = Sketch { flow, ..datagram(number, size) };
        let mut out = Vec::new();
        let length = sketch.draw(&mut out, 64);
        prop_assert_eq!(u64::from(length), size - 4);
        let Dissected::Ip(packet) = dissect(&record(Link::Ethernet, &out, length as usize)) else {
            return Err(TestCaseError::fail("no IP packet"));
        };
        let Transport::Udp { payload, .. } = packet.transport else { return Err(TestCaseError::fail("no UDP")) };
        prop_assert_eq!(u64::from(payload), size - 46);
    }
}
