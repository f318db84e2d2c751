//! The datagrams that carry segments: data and acknowledgements.

use weir_core::tcp::{Ecn, Flags, Segment};
use weir_core::units::Bytes;

use super::{DATA_HEADER, Kind, MARK, MOST_ACKS, Reader};
use crate::rapid::keys::{Key, TAG};

/// Largest number of a byte that is taken: far below where additions overflow.
const MOST_NUMBER: u64 = 1 << 62;
/// No window scale.
const NO_SCALE: u8 = 0xff;
/// Source: RFC 7323, 2.3.
const MOST_SCALE: u8 = 14;

/// A segment with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Number of its session.
    pub session: u64,
    /// What the core sends.
    pub segment: Segment,
}

const FLAGS: [Flags; 7] =
    [Flags::SYN, Flags::FIN, Flags::ACK, Flags::ECE, Flags::CWR, Flags::TIMESTAMPS, Flags::SACK_PERMITTED];

fn flags_byte(flags: Flags) -> u8 {
    FLAGS.iter().enumerate().fold(0, |byte, (bit, &flag)| byte | (u8::from(flags.has(flag)) << bit))
}

fn flags_of(byte: u8) -> Option<Flags> {
    (byte >> FLAGS.len() == 0).then(|| {
        let set = FLAGS.iter().enumerate().filter(|(bit, _)| byte >> bit & 1 == 1);
        set.fold(Flags::NONE, |flags, (_, &flag)| flags.with(flag))
    })
}

/// A scale, if it is one.
fn scale_of(byte: u8) -> Option<Option<u8>> {
    match byte {
        NO_SCALE => Some(None),
        0..=MOST_SCALE => Some(Some(byte)),
        _ => None,
    }
}

impl Data {
    /// Writes header, tag and the length of the payload, which is left as it is, to the front of `datagram`; how long
    /// that is.
    pub fn write(&self, key: &Key, datagram: &mut [u8]) -> usize {
        let Segment { seq, ts_val, len, flags, window_scale, .. } = self.segment;
        let (header, rest) = datagram.split_at_mut(DATA_HEADER - TAG);
        header[..4].copy_from_slice(&[MARK, Kind::Data as u8, flags_byte(flags), window_scale.unwrap_or(NO_SCALE)]);
        header[4..12].copy_from_slice(&self.session.to_be_bytes());
        header[12..20].copy_from_slice(&seq.to_be_bytes());
        header[20..24].copy_from_slice(&ts_val.to_be_bytes());
        let payload = u16::try_from(len).expect("a payload of at most 8900 bytes");
        header[24..26].copy_from_slice(&payload.to_be_bytes());
        rest[..TAG].copy_from_slice(&key.tag(header));
        DATA_HEADER + usize::from(payload)
    }

    /// The segment of a datagram that is `whole` bytes long and begins with `front`, if `key` made it.
    pub fn open(key: &Key, front: &[u8], whole: usize) -> Option<Data> {
        let (header, tag) = front.get(..DATA_HEADER)?.split_last_chunk::<TAG>()?;
        if Kind::of(header) != Some(Kind::Data) || !key.made(header, tag) {
            return None;
        }
        let (flags, window_scale) = (flags_of(header[2])?, scale_of(header[3])?);
        let mut rest = Reader(&header[4..]);
        let (session, seq, ts_val) = (rest.u64()?, rest.u64()?, rest.u32()?);
        let len = u32::from(u16::from_be_bytes(rest.array()?));
        if whole != DATA_HEADER + len as usize || seq > MOST_NUMBER {
            return None;
        }
        let segment = Segment {
            seq,
            ack: u64::from(!flags.has(Flags::SYN)),
            len,
            ts_val,
            window: u16::MAX,
            window_scale,
            flags,
            ecn: Ecn::NotEct,
            ..Segment::default()
        };
        Some(Data { session, segment })
    }
}

/// Length of an acknowledgement without blocks.
const ACK: usize = 8 + 4 + 4 + 2 + 1 + 1 + 1;

/// Length of `segment` among acknowledgements.
pub fn ack_bytes(segment: &Segment) -> usize {
    ACK + 8 * segment.sacks.len()
}

/// A datagram of acknowledgements: the `number`-th of its session.
pub fn encode_acks(key: &Key, session: u64, number: u32, acks: &[Segment]) -> Vec<u8> {
    let mut body = Kind::Acks.head(0, u8::try_from(acks.len()).expect("at most 56 fit into a datagram"));
    body.extend(session.to_be_bytes());
    body.extend(number.to_be_bytes());
    for segment in acks {
        body.extend(segment.ack.to_be_bytes());
        body.extend(segment.ts_val.to_be_bytes());
        body.extend(segment.ts_ecr.to_be_bytes());
        body.extend(segment.window.to_be_bytes());
        body.extend([flags_byte(segment.flags), segment.window_scale.unwrap_or(NO_SCALE), segment.sacks.len() as u8]);
        for (start, end) in segment.sacks.blocks(segment.ack) {
            body.extend(((start - segment.ack) as u32).to_be_bytes());
            body.extend(((end - segment.ack) as u32).to_be_bytes());
        }
    }
    key.seal(body)
}

/// The number and the acknowledgements of a datagram, its tag taken away, of a session in which `sent` is the number
/// behind the last byte that was sent, in segments of `payload` from number 1 on. What was never sent, or ends within a
/// segment, makes it void.
pub fn decode_acks(body: &[u8], sent: u64, payload: Bytes) -> Option<(u32, Vec<Segment>)> {
    if Kind::of(body) != Some(Kind::Acks) || body.len() + TAG > MOST_ACKS {
        return None;
    }
    let mut rest = Reader(body.get(12..)?);
    let number = rest.u32()?;
    let mut acks = Vec::with_capacity(usize::from(body[3]));
    for _ in 0..body[3] {
        let mut segment =
            Segment { seq: 1, ack: rest.u64()?, ts_val: rest.u32()?, ts_ecr: rest.u32()?, ..Segment::default() };
        let [high, low, flags, scale, blocks] = rest.array()?;
        (segment.window, segment.flags) = (u16::from_be_bytes([high, low]), flags_of(flags)?);
        segment.window_scale = scale_of(scale)?;
        let is_between = segment.ack.checked_sub(1).is_some_and(|bytes| bytes.is_multiple_of(payload.count()));
        if segment.ack > sent || !(is_between || segment.ack == sent) {
            return None;
        }
        for _ in 0..blocks {
            let [start, end] = [rest.u32()?, rest.u32()?].map(|distance| segment.ack + u64::from(distance));
            if !(segment.ack < start && start < end && end <= sent) {
                return None;
            }
            segment.sacks.push(segment.ack, start, end);
        }
        if segment.flags.has(Flags::SYN) {
            segment.seq = 0;
        }
        acks.push(segment);
    }
    rest.0.is_empty().then_some((number, acks))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_core::tcp::Sacks;

    use super::*;
    use crate::rapid::wire::session_of;

    fn sacks(ack: u64, blocks: &[(u64, u64)]) -> Sacks {
        let mut made = Sacks::default();
        blocks.iter().for_each(|&(start, end)| made.push(ack, start, end));
        made
    }

    fn key() -> Key {
        Key::of_secret(&[3; 32]).expect("long enough")
    }

    fn data(segment: Segment) -> Vec<u8> {
        let mut datagram = vec![0; DATA_HEADER + 1430];
        let length = Data { session: 9, segment }.write(&key(), &mut datagram);
        datagram.truncate(length);
        datagram
    }

    #[test]
    fn an_ipv4_packet_is_as_long_as_the_core_takes_its_frame_for() {
        let flags = Flags::ACK.with(Flags::TIMESTAMPS);
        let segment = Segment { len: 1430, flags, ..Segment::default() };
        let headers_of_ipv4_and_udp = 28;
        let packet = Bytes::new(data(segment).len() as u64 + headers_of_ipv4_and_udp);
        assert_eq!((packet, segment.frame_size()), (Bytes::new(1500), Bytes::new(1500)));
    }

    #[test]
    fn a_segment_is_read_back_and_its_length_must_be_the_datagrams() {
        let flags = Flags::ACK.with(Flags::TIMESTAMPS);
        let segment = Segment { seq: 77, ack: 1, len: 1430, ts_val: 5, window: u16::MAX, flags, ..Segment::default() };
        let datagram = data(segment);
        let read = |whole| Data::open(&key(), &datagram[..DATA_HEADER], whole);
        assert_eq!(read(datagram.len()), Some(Data { session: 9, segment }));
        assert_eq!((read(datagram.len() - 1), read(datagram.len() + 1)), (None, None));
        assert_eq!(session_of(&datagram), Some(9));
    }

    #[test]
    fn what_was_never_sent_or_is_no_end_of_a_segment_makes_acknowledgements_void() {
        let made = |blocks: &[(u64, u64)], window_scale| {
            let sacks = sacks(100, blocks);
            let acks = [Segment { ack: 100, sacks, window_scale, flags: Flags::ACK, ..Segment::default() }];
            let datagram = encode_acks(&key(), 1, 0, &acks);
            decode_acks(&datagram[..datagram.len() - TAG], 1000, Bytes::new(9))
        };
        assert!(made(&[(200, 300), (900, 1000)], Some(14)).is_some());
        assert!(made(&[(200, 1001)], None).is_none());
        assert!(made(&[(200, 300)], Some(15)).is_none());
        let within = encode_acks(&key(), 1, 0, &[Segment { ack: 101, flags: Flags::ACK, ..Segment::default() }]);
        assert!(decode_acks(&within[..within.len() - TAG], 1000, Bytes::new(9)).is_none(), "within a segment");
        let beyond = encode_acks(&key(), 1, 0, &[Segment { ack: 1001, ..Segment::default() }]);
        assert!(decode_acks(&beyond[..beyond.len() - TAG], 1000, Bytes::new(1)).is_none());
    }

    proptest! {
        #[test]
        fn acknowledgements_are_read_back(
            number: u32, values in prop::collection::vec((101u64..500, any::<u32>(), any::<u16>(), 0usize..4), 0..20),
        ) {
            let acks: Vec<Segment> = values.iter().map(|&(ack, ts_val, window, blocks)| {
                let blocks: Vec<(u64, u64)> = (0..blocks as u64).map(|i| (ack + 10 + 20 * i, ack + 20 + 20 * i)).collect();
                let sacks = sacks(ack, &blocks);
                Segment { seq: 1, ack, ts_val, window, sacks, flags: Flags::ACK, ..Segment::default() }
            }).collect();
            let datagram = encode_acks(&key(), 1, number, &acks);
            let body = key().open(&datagram).map(<[u8]>::to_vec).expect("made with this key");
            prop_assert_eq!(decode_acks(&body, 1000, Bytes::new(1)), Some((number, acks)));
        }

        #[test]
        fn headers_of_data_that_the_key_made_are_read_without_a_panic(header: [u8; DATA_HEADER - TAG], whole in 0usize..70_000) {
            let mut front = header.to_vec();
            (front[0], front[1]) = (MARK, Kind::Data as u8);
            let front = key().seal(front);
            if let Some(read) = Data::open(&key(), &front, whole) {
                prop_assert!(read.segment.seq <= MOST_NUMBER);
                prop_assert_eq!(whole, DATA_HEADER + read.segment.len as usize);
                let _ = read.segment.end();
            }
        }
    }
}
