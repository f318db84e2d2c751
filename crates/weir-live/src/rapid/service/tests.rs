mod lies;
use weir_core::tcp::{Flags, Segment, Sender};

use super::*;
use crate::rapid::wire::decode_acks;

const BOUNDS: Bounds =
    Bounds { sessions: 2, longest: Span::from_ms(60_000), most: Bytes::new(1 << 30), buffer: Bytes::new(1 << 20) };

fn secret() -> Key {
    Key::of_secret(&[5; 32]).expect("long enough")
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn service() -> Service {
    Service::new(&secret(), BOUNDS).expect("random numbers")
}

/// What the service answers to a datagram.
fn replies_to(service: &mut Service, ms: u64, from: SocketAddr, datagram: &[u8]) -> Vec<Reply> {
    service.handle(at_ms(ms), at_ms(ms), from, datagram, datagram.len()).expect("random numbers");
    service.take_replies()
}

fn challenged(service: &mut Service, ms: u64, from: SocketAddr, nonce: Nonce) -> Challenge {
    let key = secret().derive("greeting", &[]);
    let replies = replies_to(service, ms, from, &Hello { nonce }.sealed(&key));
    let body = key.open(&replies[0].datagram).expect("a tag of the secret");
    Challenge::decode(body).expect("a challenge")
}

fn opening(challenge: Challenge) -> Open {
    let (payload, patience) = (Bytes::new(1430), Span::from_ms(40));
    Open { challenge, lasts: Span::from_ms(10_000), payload, every: 1, patience, unit: Span::from_ns(1) }
}

fn sealed(open: &Open) -> Vec<u8> {
    open.sealed(&secret().derive("greeting", &[]))
}

/// A session of `from`: its number and keys.
fn opened(service: &mut Service, ms: u64, from: SocketAddr, nonce: Nonce) -> (u64, Key, Key) {
    let challenge = challenged(service, ms, from, nonce);
    let replies = replies_to(service, ms, from, &sealed(&opening(challenge)));
    let accept = accepted(&replies);
    let (up, down) = session_keys(&secret(), &nonce, &accept.other);
    (accept.session, up, down)
}

fn accepted(replies: &[Reply]) -> Accept {
    let key = secret().derive("greeting", &[]);
    key.open(&replies[0].datagram).and_then(Accept::decode).expect("an acceptance")
}

#[test]
fn strangers_are_not_answered_and_nothing_is_kept_of_them() {
    let mut service = service();
    let other = Key::of_secret(&[6; 32]).expect("long enough").derive("greeting", &[]);
    let challenge = Challenge { nonce: [1; 16], made_ms: 0, cookie: [0; TAG] };
    let wrong_key = [Hello { nonce: [1; 16] }.sealed(&other), opening(challenge).sealed(&other)];
    let bare = [vec![], vec![0xb1], vec![0; 2000], b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0xff; GREETING]];
    for (count, datagram) in wrong_key.iter().chain(&bare).enumerate() {
        assert_eq!(replies_to(&mut service, 1, address(9), datagram), []);
        assert_eq!(service.counts().strangers, count as u64 + 1);
    }
    assert!(service.is_empty() && service.take_events().is_empty());
}

#[test]
fn a_greeting_that_is_cut_or_longer_than_it_may_be_is_not_answered() {
    let mut service = service();
    let hello = Hello { nonce: [1; 16] }.sealed(&secret().derive("greeting", &[]));
    let longer = [&hello[..], &[0]].concat();
    for datagram in [&hello[..GREETING - 1], &longer, &hello[..4]] {
        assert_eq!(replies_to(&mut service, 1, address(9), datagram), []);
    }
    // The same bytes, of a datagram that was longer than what was read of it.
    service.handle(at_ms(1), at_ms(1), address(9), &hello, 60_000).expect("random numbers");
    assert_eq!(service.take_replies(), []);
}

#[test]
fn until_a_session_is_open_every_answer_is_shorter_than_what_it_answers() {
    let mut service = service();
    let key = secret().derive("greeting", &[]);
    let hello = Hello { nonce: [1; 16] }.sealed(&key);
    let answer = replies_to(&mut service, 1, address(9), &hello);
    assert!(answer.len() == 1 && answer[0].datagram.len() < hello.len());
    let challenge = key.open(&answer[0].datagram).and_then(Challenge::decode).expect("a challenge");
    let open = sealed(&opening(challenge));
    let answer = replies_to(&mut service, 1, address(9), &open);
    assert!(answer.len() == 1 && answer[0].datagram.len() < open.len());
}

#[test]
fn a_cookie_is_good_for_one_address_one_nonce_and_five_seconds() {
    let mut service = service();
    let challenge = challenged(&mut service, 100, address(9), [1; 16]);
    let open = sealed(&opening(challenge));
    let swapped = sealed(&opening(Challenge { nonce: [2; 16], ..challenge }));
    let newer = sealed(&opening(Challenge { made_ms: 4_000, ..challenge }));
    assert_eq!(replies_to(&mut service, 200, address(10), &open), [], "another port");
    assert_eq!(replies_to(&mut service, 200, SocketAddr::from(([192, 0, 2, 2], 9)), &open), [], "another address");
    assert_eq!(replies_to(&mut service, 200, address(9), &swapped), [], "another nonce");
    assert_eq!(replies_to(&mut service, 4_100, address(9), &newer), [], "another time");
    assert_eq!(replies_to(&mut service, 5_100, address(9), &open), [], "too late");
    assert_eq!(replies_to(&mut service, 50, address(9), &open), [], "made in the future");
    assert!(service.is_empty());
    accepted(&replies_to(&mut service, 5_099, address(9), &open));
}

#[test]
fn a_replayed_handshake_opens_no_second_session() {
    let mut service = service();
    let challenge = challenged(&mut service, 0, address(9), [1; 16]);
    let open = sealed(&opening(challenge));
    let first = replies_to(&mut service, 1, address(9), &open);
    assert_eq!(replies_to(&mut service, 100, address(9), &open), [], "not at any rate");
    assert_eq!(replies_to(&mut service, 101, address(9), &open), first, "the answer may have been lost");
    assert_eq!(service.counts().sessions, 1);
    let (session, other) = (accepted(&first).session, accepted(&first).other);
    let (up, _) = session_keys(&secret(), &[1; 16], &other);
    assert_eq!(replies_to(&mut service, 102, address(9), &Close { session }.sealed(&up)).len(), 1);
    assert_eq!(replies_to(&mut service, 103, address(9), &Close { session }.sealed(&up)), [], "not at any rate");
    service.advance(at_ms(3_110));
    assert!(service.is_empty());
    assert_eq!(replies_to(&mut service, 3_200, address(9), &open), [], "the session has ended");
    service.advance(at_ms(20_000));
    assert_eq!(replies_to(&mut service, 20_000, address(9), &open), [], "and the challenge is too old");
    // Recorded at another receiver with the same secret, or before this one was started again.
    assert_eq!(replies_to(&mut self::service(), 3, address(9), &open), []);
}

#[test]
fn no_more_sessions_are_open_than_may_be() {
    let mut service = service();
    opened(&mut service, 0, address(1), [1; 16]);
    let (session, up, _) = opened(&mut service, 0, address(2), [2; 16]);
    let challenge = challenged(&mut service, 0, address(3), [3; 16]);
    let replies = replies_to(&mut service, 0, address(3), &sealed(&opening(challenge)));
    let key = secret().derive("greeting", &[]);
    let refusal = key.open(&replies[0].datagram).and_then(Refuse::decode).expect("a refusal");
    assert_eq!(refusal.reason, Reason::Busy);
    replies_to(&mut service, 1, address(2), &Close { session }.sealed(&up));
    accepted(&replies_to(&mut service, 2, address(3), &sealed(&opening(challenge))));
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    let mut service = service();
    let challenge = challenged(&mut service, 0, address(1), [1; 16]);
    let good = opening(challenge);
    for (open, reason) in [
        (Open { lasts: Span::from_ms(60_001), ..good }, Reason::TooLong),
        (Open { lasts: Span::ZERO, ..good }, Reason::Unsuitable),
        (Open { payload: Bytes::new(0), ..good }, Reason::Unsuitable),
        (Open { payload: Bytes::new(MOST_PAYLOAD + 1), ..good }, Reason::Unsuitable),
        (Open { every: 0, ..good }, Reason::Unsuitable),
        (Open { every: MOST_EVERY + 1, ..good }, Reason::Unsuitable),
        (Open { unit: Span::ZERO, ..good }, Reason::Unsuitable),
        (Open { patience: Span::from_ms(100_000), ..good }, Reason::Unsuitable),
    ] {
        let replies = replies_to(&mut service, 1, address(1), &sealed(&open));
        let key = secret().derive("greeting", &[]);
        let refusal = key.open(&replies[0].datagram).and_then(Refuse::decode).expect("a refusal");
        assert_eq!(refusal.reason, reason, "{open:?}");
    }
    assert!(service.is_empty());
}

#[test]
fn a_flood_of_greetings_is_answered_at_a_bounded_rate_and_kept_nowhere() {
    let mut service = service();
    let key = secret().derive("greeting", &[]);
    let mut answered = 0;
    for i in 0..20_000_u64 {
        let hello = Hello { nonce: u128::from(i).to_be_bytes() }.sealed(&key);
        answered += replies_to(&mut service, 1_000 + i / 10, address(i as u16), &hello).len() as u64;
    }
    assert!((2 * GREETINGS_PER_S..=3 * GREETINGS_PER_S + 1).contains(&answered), "{answered} in two seconds");
    assert_eq!(service.counts().unanswered, 20_000 - answered);
    assert!(service.is_empty() && service.spent.is_empty());
    opened(&mut service, 4_000, address(1), [9; 16]);
}

/// The greeting of a session, recorded on its way, comes again and again, from anywhere.
#[test]
fn recorded_greetings_are_not_answered_and_keep_nobody_out_at_any_rate() {
    let mut service = service();
    let key = secret().derive("greeting", &[]);
    let recorded: Vec<Vec<u8>> = (1..=3_u8).map(|i| Hello { nonce: [i; 16] }.sealed(&key)).collect();
    for hello in &recorded {
        assert_eq!(replies_to(&mut service, 0, address(9), hello).len(), 1, "the first time");
    }
    let per_ms = 60;
    for ms in 1..=3_000 {
        for i in 0..per_ms {
            assert_eq!(replies_to(&mut service, ms, address(i), &recorded[usize::from(i) % 3]), []);
        }
        if ms % 1_000 == 0 {
            let (session, up, _) = opened(&mut service, ms, address(80), u128::from(ms).to_be_bytes());
            assert_eq!(replies_to(&mut service, ms, address(80), &Close { session }.sealed(&up)).len(), 1);
            service.advance(at_ms(ms));
        }
    }
    let counts = service.counts();
    assert_eq!((counts.replayed, counts.unanswered, counts.sessions), (3_000 * u64::from(per_ms), 0, 3));
}

#[test]
fn only_so_many_greetings_are_remembered_the_last_ones() {
    let mut remembered = Remembered::default();
    let nonce = |i: usize| (i as u128).to_be_bytes();
    for i in 0..2 * REMEMBERED {
        remembered.add(nonce(i));
        remembered.add(nonce(i));
    }
    assert_eq!((remembered.held.len(), remembered.order.len()), (REMEMBERED, REMEMBERED));
    assert!(!remembered.holds(&nonce(REMEMBERED - 1)) && remembered.holds(&nonce(REMEMBERED)));
}

#[test]
fn data_counts_only_from_the_address_and_with_the_key_of_its_session() {
    let mut service = service();
    let (session, up, down) = opened(&mut service, 0, address(9), [1; 16]);
    let flags = Flags::SYN.with(Flags::TIMESTAMPS);
    let mut syn = vec![0; DATA_HEADER];
    Data { session, segment: Segment { flags, ..Segment::default() } }.write(&up, &mut syn);
    let mut forged = syn.clone();
    Data { session, segment: Segment { flags, ..Segment::default() } }.write(&down, &mut forged);
    assert_eq!(replies_to(&mut service, 1, address(8), &syn), []);
    assert_eq!(replies_to(&mut service, 1, address(9), &forged), [], "the key of the other direction");
    assert_eq!(replies_to(&mut service, 1, address(9), &syn[..DATA_HEADER - 1]), []);
    assert_eq!(service.counts().strangers, 3);
    service.advance(at_ms(1));
    assert_eq!(service.take_replies(), []);
    replies_to(&mut service, 1, address(9), &syn);
    service.advance(at_ms(1));
    assert_eq!(service.take_replies().len(), 1);
    assert_eq!(service.counts().strangers, 3);
}

#[test]
fn silent_long_and_large_sessions_end_and_their_senders_are_reported() {
    for (most, payload, ms, end) in
        [(1 << 30, 0, 10_000, End::Silent), (1 << 30, 100, 25_000, End::TooLong), (999, 1000, 100, End::TooMuch)]
    {
        let bounds = Bounds { most: Bytes::new(most), ..BOUNDS };
        let mut service = Service::new(&secret(), bounds).expect("random numbers");
        let (session, up, down) = opened(&mut service, 0, address(9), [1; 16]);
        let send = |service: &mut Service, ms, segment| {
            let mut datagram = vec![0; 2000];
            let length = Data { session, segment }.write(&up, &mut datagram);
            replies_to(service, ms, address(9), &datagram[..length]);
        };
        send(&mut service, 0, Segment { flags: Flags::SYN, ..Segment::default() });
        if payload > 0 {
            for at in (0..ms).step_by(100) {
                let segment = Segment { seq: 1, ack: 1, len: payload, flags: Flags::ACK, ..Segment::default() };
                send(&mut service, at, segment);
            }
        }
        service.take_events();
        service.take_replies();
        service.advance(at_ms(ms));
        let replies = service.take_replies();
        let bye = replies.iter().filter_map(|reply| down.open(&reply.datagram)).find_map(Bye::decode);
        assert_eq!(bye, Some(Bye { session }));
        let events = service.take_events();
        assert!(matches!(events[..], [Event::Ended { end: found, .. }] if found == end), "{end:?}: {events:?}");
        assert!(service.is_empty());
    }
}

#[test]
fn the_machines_of_the_core_carry_a_stream_over_it_through_losses() {
    let mut service = service();
    let (session, up, down) = opened(&mut service, 0, address(9), [1; 16]);
    let challenge = Challenge { nonce: [1; 16], made_ms: 0, cookie: [0; TAG] };
    let config = receiver_config(&opening(challenge), BOUNDS.buffer).expect("legal");
    let mut sender = Sender::plain(&config);
    sender.open(Time::ZERO);
    sender.write(Bytes::new(500_000));
    sender.close();
    let (mut sent, mut datagrams) = (0, 0);
    for ms in 0..60_000 {
        let now = at_ms(ms);
        sender.handle_timeout(now);
        while let Some(segment) = sender.poll_transmit(now) {
            sent = sent.max(segment.end());
            datagrams += 1;
            let mut datagram = vec![0; 2000];
            let length = Data { session, segment }.write(&up, &mut datagram);
            if datagrams % 17 != 0 {
                service.handle(now, now, address(9), &datagram[..DATA_HEADER], length).expect("random numbers");
            }
        }
        service.advance(now);
        for reply in service.take_replies() {
            let body = down.open(&reply.datagram).expect("its key");
            let (_, acks) = decode_acks(body, sent, config.segment_bytes).expect("acknowledgements");
            acks.iter().for_each(|ack| sender.handle_segment(now, ack));
        }
        if sender.finished().is_some() {
            break;
        }
    }
    assert!(sender.finished().is_some());
    let word = replies_to(&mut service, 60_000, address(9), &Close { session }.sealed(&up));
    let closed = down.open(&word[0].datagram).and_then(Closed::decode).expect("the last word");
    assert_eq!((closed.session, closed.delivered_bytes), (session, 500_000));
    assert_eq!(
        replies_to(&mut service, 60_100, address(9), &Close { session }.sealed(&up)),
        word,
        "it may have been lost"
    );
}

fn probing() -> weir_core::rapid::Config {
    use weir_core::rapid::{Adaptation, Config, Denoising, Estimator, Ramp};
    let plain = Config::over(weir_core::units::Rate::from_bps(200_000_000));
    let rate = Adaptation { tau_ps: Span::from_ms(40), eta: 8.0, initial_bps: plain.link_bps, ..plain.rate };
    Config {
        ramp: Ramp { packets: 8, ..plain.ramp },
        denoising: Denoising::Batches { within_ps: Span::from_us(30) },
        estimator: Estimator::Fluid { bottleneck_bps: None },
        rate,
        framing_bytes: Bytes::ZERO,
        ..plain
    }
}
