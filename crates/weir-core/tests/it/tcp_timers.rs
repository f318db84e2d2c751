//! Timeouts, lost SYNs and pauses of a connection.

use std::cell::Cell;

use weir_core::cc;
use weir_core::tcp::{Config, EcnConfig, EcnSupport, Flags, Phase, Segment};
use weir_core::units::{Bytes, Span, Time};

use crate::tcp::{Fate, LONG, Pair, SEGMENT, TEN_MS, config, loses_once};

#[test]
fn the_timeout_doubles_until_something_arrives() {
    let cut = Cell::new(false);
    let fate = |_: u64, _: &Segment| if cut.get() { Fate::IsLost } else { Fate::Passes };
    let mut pair = Pair::transfer(&config(), 5 * SEGMENT, TEN_MS, fate);
    pair.run(Time::ZERO + Span::from_ms(15));
    cut.set(true);
    pair.run(Time::ZERO + Span::from_ms(10_000));
    let first = |sent: &[(u64, u64)]| sent.iter().filter(|sent| sent.1 == 0).map(|sent| sent.0).collect::<Vec<_>>();
    // The first sample is 20 ms, so the timeout is the least one, 200 ms.
    assert_eq!(first(&pair.data_sent()), [20, 220, 620, 1420, 3020, 6220]);
    assert_eq!(pair.sender.counters().timeouts, 5);
    assert_eq!((pair.sender.window(), pair.sender.phase()), (Bytes::new(SEGMENT), Phase::Loss));
    cut.set(false);
    pair.run(LONG);
    assert_eq!(pair.receiver.delivered(), Bytes::new(5 * SEGMENT));
    let counters = pair.sender.counters();
    assert_eq!((counters.timeout_retransmits, counters.slow_start_retransmits), (6, 4));
    assert_eq!(pair.sender.phase(), Phase::Open);
    pair.check_books();
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    let mut pair =
        Pair::transfer(&config(), SEGMENT - 1, TEN_MS, |count, _| if count == 0 { Fate::IsLost } else { Fate::Passes });
    pair.run(LONG);
    assert_eq!(pair.sender.established(), Some(Time::ZERO + Span::from_ms(1020)));
    assert_eq!(pair.receiver.delivered(), Bytes::new(SEGMENT - 1));
    assert_eq!(pair.sender.rtt().srtt(), Some(Span::from_ms(20)), "the SYN that was sent twice gives no sample");
    pair.check_books();
}

#[test]
fn after_a_lost_syn_data_begins_with_a_timeout_of_three_seconds_and_after_two_with_one_segment() {
    for control in [cc::Config::reno(), cc::Config::cubic()] {
        let config = Config { congestion_control: control, delayed_ack_segments: 1, ..config() };
        let data_sent =
            |syns: u64| {
                // The first SYNs are lost, and after the one that passes, its answer and the acknowledgement of that, the first
                // segment of data.
                let mut lost = loses_once(&[0]);
                let fate =
                    move |count: u64, segment: &Segment| if count < syns { Fate::IsLost } else { lost(count, segment) };
                let mut pair = Pair::transfer(&config, SEGMENT - 1, TEN_MS, fate);
                pair.run(LONG);
                pair.check_books();
                let alone = pair.data_sent();
                let mut pair = Pair::transfer(&config, 9 * SEGMENT, TEN_MS, move |count, _| {
                    if count < syns { Fate::IsLost } else { Fate::Passes }
                });
                pair.run(LONG);
                let first = pair.data_sent();
                (alone, first.iter().take_while(|sent| sent.0 == first[0].0).count())
            };
        assert_eq!(data_sent(1), (vec![(1020, 0), (4020, 0)], 9), "{config:?}");
        // RFC 6928, 2: now there is little doubt that the network is congested.
        assert_eq!(data_sent(2), (vec![(3020, 0), (6020, 0)], 1), "{config:?}");
    }
}

#[test]
fn a_fin_for_which_the_window_has_no_room_leaves_by_itself() {
    let config = Config { initial_window_segments: 1, delayed_ack_segments: 1, ..config() };
    let mut pair = Pair::transfer(&config, SEGMENT, TEN_MS, |_, _| Fate::Passes);
    pair.run(LONG);
    let sent: Vec<(u32, bool)> =
        pair.sent[1..].iter().map(|(_, segment)| (segment.len, segment.flags.has(Flags::FIN))).collect();
    assert_eq!(sent, [(SEGMENT as u32, false), (0, true)]);
    assert_eq!(pair.receiver.finished(), Some(Time::ZERO + Span::from_ms(50)));
    pair.check_books();
}

#[test]
fn the_timeout_stays_doubled_until_something_is_measured() {
    for (timestamps, expected) in [(true, 840), (false, 1440)] {
        let config = Config { timestamps, delayed_ack_segments: 1, ..config() };
        // All three are lost twice. What is sent again is ambiguous without time stamps (Karn's algorithm).
        let mut pair = Pair::transfer(&config, 3 * SEGMENT, TEN_MS, loses_once(&[0, 0, 1, 1, 2, 2]));
        pair.run(LONG);
        assert_eq!(pair.data_sent()[..6], [(20, 0), (20, 1), (20, 2), (220, 0), (620, 0), (640, 1)]);
        assert_eq!(pair.data_sent()[6], (expected, 1), "time stamps {timestamps}");
        pair.check_books();
    }
}

#[test]
fn a_window_that_was_idle_for_longer_than_the_timeout_begins_anew() {
    for (control, idle_ms, slow_start_after_idle, expected) in [
        (cc::Config::reno(), 500, true, 10),
        (cc::Config::reno(), 500, false, 28),
        (cc::Config::reno(), 150, true, 28),
        (cc::Config::cubic(), 500, true, 10),
        (cc::Config::cubic(), 500, false, 28),
    ] {
        let config = Config { congestion_control: control, slow_start_after_idle, ..config() };
        let mut pair = Pair::new(&config, TEN_MS, |_, _| Fate::Passes);
        pair.sender.open(Time::ZERO);
        // 10 and 20 segments; the window stops to grow when less than half of it is in flight.
        pair.sender.write(Bytes::new(30 * SEGMENT));
        let now = Time::ZERO + Span::from_ms(40 + idle_ms);
        pair.run(now);
        let before = pair.sent.len();
        pair.now = now;
        pair.sender.write(Bytes::new(100 * SEGMENT));
        pair.run(now);
        assert_eq!(pair.sent.len() - before, expected, "{config:?}");
        pair.run(LONG);
        assert_eq!(pair.receiver.delivered(), Bytes::new(130 * SEGMENT));
        pair.check_books();
    }
}

#[test]
fn a_window_that_marks_reduced_begins_anew_after_a_pause_as_any_other() {
    for control in [cc::Config::reno(), cc::Config::cubic()] {
        let config = Config {
            congestion_control: control,
            ecn: EcnConfig::both(EcnSupport::Classic),
            delayed_ack_segments: 1,
            ..config()
        };
        // 10, 20 and 40 segments, one of the last of which is marked: nothing more reports that the reduction is over.
        let marked = |_: u64, segment: &Segment| {
            if segment.len > 0 && (segment.seq - 1) / SEGMENT == 40 { Fate::IsMarked } else { Fate::Passes }
        };
        let mut pair = Pair::new(&config, TEN_MS, marked);
        pair.sender.open(Time::ZERO);
        pair.sender.write(Bytes::new(70 * SEGMENT));
        let now = Time::ZERO + Span::from_ms(600);
        pair.run(now);
        assert_eq!((pair.sender.counters().ecn_reductions, pair.sender.bytes_in_flight()), (1, Bytes::ZERO));
        let before = pair.sent.len();
        pair.now = now;
        pair.sender.write(Bytes::new(100 * SEGMENT));
        pair.run(now);
        assert_eq!(pair.sent.len() - before, 10, "{config:?}");
        pair.run(LONG);
        assert_eq!(pair.receiver.delivered(), Bytes::new(170 * SEGMENT));
        pair.check_books();
    }
}
