use proptest::prelude::*;

use super::*;

fn key() -> Key {
    Key::of_secret(&[3; 32]).expect("long enough")
}

#[test]
fn nothing_that_answers_a_greeting_or_a_farewell_is_longer() {
    let challenge = Challenge { nonce: [1; 16], made_ms: 5, cookie: [2; TAG] };
    let answers = [
        challenge.sealed(&key()),
        Accept { nonce: [1; 16], session: 1, other: [4; 16] }.sealed(&key()),
        Refuse { nonce: [1; 16], reason: Reason::Busy }.sealed(&key()),
    ];
    assert_eq!(Hello { nonce: [1; 16] }.sealed(&key()).len(), GREETING);
    assert!(answers.iter().all(|answer| answer.len() < GREETING));
    assert_eq!(Close { session: 1 }.sealed(&key()).len(), FAREWELL);
    assert!(Closed::default().sealed(&key()).len() < FAREWELL);
}

#[test]
fn every_message_is_read_back() {
    let key = key();
    let challenge = Challenge { nonce: [1; 16], made_ms: 5, cookie: [2; TAG] };
    let open = Open {
        challenge,
        lasts: Span::from_ms(9),
        payload: Bytes::new(1430),
        every: 2,
        patience: Span::from_ms(40),
        unit: Span::from_ns(1),
    };
    let accept = Accept { nonce: [1; 16], session: 3, other: [4; 16] };
    let closed = Closed { session: 3, segments: 4, lasted_ns: 10, ..Closed::default() };
    let refuse = Refuse { nonce: [1; 16], reason: Reason::TooLong };
    fn body<'a>(key: &Key, datagram: &'a [u8]) -> &'a [u8] {
        key.open(datagram).expect("made with this key")
    }
    assert_eq!(Challenge::decode(body(&key, &challenge.sealed(&key))), Some(challenge));
    assert_eq!(Open::decode(body(&key, &open.sealed(&key))), Some(open));
    assert_eq!(Accept::decode(body(&key, &accept.sealed(&key))), Some(accept));
    assert_eq!(Refuse::decode(body(&key, &refuse.sealed(&key))), Some(refuse));
    assert_eq!(Closed::decode(body(&key, &closed.sealed(&key))), Some(closed));
    assert_eq!(Bye::decode(body(&key, &Bye { session: 8 }.sealed(&key))), Some(Bye { session: 8 }));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0u8..12, whole in 0usize..70_000,
    ) {
        if let [mark, place, ..] = &mut bytes[..] {
            (*mark, *place) = (MARK, kind);
        }
        let _ = (Kind::of(&bytes), session_of(&bytes), decode_acks(&bytes, u64::MAX >> 1, Bytes::new(1430)));
        let _ = (Hello::decode(&bytes), Challenge::decode(&bytes), Open::decode(&bytes), Accept::decode(&bytes));
        let _ = (Refuse::decode(&bytes), Close::decode(&bytes), Closed::decode(&bytes), Bye::decode(&bytes));
        prop_assert_eq!(Data::open(&key(), &bytes, whole), None);
    }

}
