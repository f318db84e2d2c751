//! Whatever others send.

use proptest::prelude::*;
use weir_core::tcp::{Segment, Sender};

use super::super::*;
use super::{BOUNDS, address, at_ms, opened, opening, probing, replies_to, secret, service};
use crate::rapid::wire::{decode_acks, encode_acks};

proptest! {
    #[test]
    fn no_bytes_make_it_panic_answer_or_keep_anything(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0u8..12, whole in 0usize..70_000,
    ) {
        if let [mark, place, ..] = &mut bytes[..] {
            (*mark, *place) = (0xb1, kind);
        }
        let mut service = service();
        service.handle(at_ms(5), at_ms(5), address(1), &bytes, whole).expect("random numbers");
        service.advance(at_ms(5));
        prop_assert_eq!(service.take_replies(), []);
        prop_assert!(service.is_empty());
    }

    #[test]
    fn no_segments_of_a_sender_that_lies_make_it_panic(
        segments in prop::collection::vec((0u64..1 << 62, 0u32..1500, 0u8..128, any::<u32>()), 1..60), close: bool,
    ) {
        let mut service = service();
        let (session, up, _) = opened(&mut service, 0, address(9), [1; 16]);
        for (i, &(seq, len, flags, ts_val)) in segments.iter().enumerate() {
            // Near and far numbers, with any flags.
            let seq = if i % 2 == 0 { seq % 100_000 } else { seq };
            let mut datagram = vec![0; 2000];
            let segment = Segment { seq, len, ts_val, ..Segment::default() };
            Data { session, segment }.write(&up, &mut datagram);
            datagram[2] = flags;
            let sealed = up.seal(datagram[..DATA_HEADER - TAG].to_vec());
            service.handle(at_ms(1), at_ms(1), address(9), &sealed, DATA_HEADER + len as usize).expect("random numbers");
            service.advance(at_ms(2));
        }
        if close {
            replies_to(&mut service, 3, address(9), &Close { session }.sealed(&up));
        }
        service.end(at_ms(4));
        prop_assert!(service.is_empty());
    }

    #[test]
    fn no_acknowledgements_of_a_receiver_that_lies_make_the_sender_panic(
        steps in prop::collection::vec((0u64..1 << 20, any::<u32>(), any::<u16>(), 0u8..128, any::<[u32; 4]>()), 1..80),
    ) {
        let key = secret();
        let challenge = Challenge { nonce: [1; 16], made_ms: 0, cookie: [0; TAG] };
        let mut config = receiver_config(&opening(challenge), BOUNDS.buffer).expect("legal");
        config.congestion_control = weir_core::cc::Config::Rapid(Box::new(probing()));
        let mut sender = Sender::plain(&config);
        sender.open(Time::ZERO);
        sender.write_endlessly();
        let mut sent = 0;
        for (i, &(ack, ts_val, window, flags, distances)) in steps.iter().enumerate() {
            let now = at_ms(i as u64);
            sender.handle_timeout(now);
            for _ in 0..40 {
                let Some(segment) = sender.poll_transmit(now) else { break };
                sent = sent.max(segment.end());
            }
            let mut segment = Segment { ack: if i == 0 { 1 } else { somewhere(ack, sent) }, ts_val, window, ..Segment::default() };
            let reach = sent.saturating_sub(segment.ack) as u32 + 2;
            for pair in distances.chunks(2).filter(|_| i > 0) {
                let [a, b] = [pair[0], pair[1]].map(|distance| u64::from(distance % reach));
                let (start, end) = (a.min(b) + 1, a.max(b) + 1);
                segment.sacks.push(segment.ack, segment.ack + start, segment.ack + end);
            }
            let mut body = encode_acks(&key, 1, i as u32, &[segment]);
            body.truncate(body.len() - TAG);
            // The first is an answer to the SYN; the others have any flags.
            body[16 + 18] = if i == 0 { 0b100_0101 } else { flags };
            for ack in decode_acks(&body, sent, config.segment_bytes).map(|(_, acks)| acks).unwrap_or_default() {
                sender.handle_segment(now, &ack);
            }
            prop_assert!(sender.established().is_some());
        }
    }
}

/// Ends of segments, for the most part, and other numbers, of which some were never sent.
fn somewhere(number: u64, sent: u64) -> u64 {
    if number.is_multiple_of(8) { number % (sent + 2) } else { 1 + number % (sent / 1430 + 1) * 1430 }
}
