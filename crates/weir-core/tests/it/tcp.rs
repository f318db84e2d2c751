//! The two ends of a connection over a path that loses, duplicates and reorders as it is asked to.

mod pair;
mod properties;

pub(crate) use self::pair::{Fate, Pair};
pub(crate) use self::properties::any_ecn;

use std::collections::BTreeMap;

use weir_core::cc::{self};
use weir_core::tcp::{Config, EcnConfig, EcnSupport, Flags, LossMarking, LostRetransmissions, Recovery, Segment};
use weir_core::units::{Bytes, Span, Time};

use crate::tcp_line::connection;

pub(crate) const SEGMENT: u64 = 1000;

pub(crate) fn config() -> Config {
    connection(cc::Config::reno(), SEGMENT)
}

fn old_linux() -> Config {
    Config {
        recovery: Recovery::RateHalving,
        loss_marking: LossMarking::Fack,
        lost_retransmissions: LostRetransmissions::Timeout,
        ..config()
    }
}

pub(crate) const TEN_MS: Span = Span::from_ms(10);
pub(crate) const LONG: Time = Time::from_ps(1 << 61);

/// Data segments whose places in the order of first transmission are listed are lost the first time.
pub(crate) fn loses_once(list: &[u64]) -> impl FnMut(u64, &Segment) -> Fate {
    let mut left = list.to_vec();
    move |_, segment| {
        let place = segment.seq.saturating_sub(1) / SEGMENT;
        match left.iter().position(|&lost| segment.len > 0 && lost == place) {
            Some(index) => {
                left.remove(index);
                Fate::IsLost
            }
            None => Fate::Passes,
        }
    }
}

#[test]
fn a_transfer_without_loss_doubles_its_window_each_round_trip() {
    let mut pair = Pair::transfer(&config(), 69 * SEGMENT, TEN_MS, |_, _| Fate::Passes);
    pair.run(LONG);
    let mut by_time: BTreeMap<u64, usize> = BTreeMap::new();
    pair.data_sent().iter().for_each(|&(ms, _)| *by_time.entry(ms).or_default() += 1);
    // The answer to the SYN comes after 20 ms; 10 segments, then 20, then the remaining 39.
    assert_eq!(by_time.into_iter().collect::<Vec<_>>(), [(20, 10), (40, 20), (60, 39)]);
    assert_eq!(pair.sender.finished(), Some(Time::ZERO + Span::from_ms(80)));
    assert_eq!(pair.receiver.finished(), Some(Time::ZERO + Span::from_ms(70)));
    assert_eq!(pair.receiver.delivered(), Bytes::new(69 * SEGMENT));
    assert_eq!(pair.sender.counters().retransmits, 0);
    // One acknowledgement for every two segments, and the answer to the SYN.
    assert_eq!(pair.receiver.counters().acks, 36);
    assert_eq!(pair.sender.rtt().srtt(), Some(Span::from_ms(20)));
}

#[test]
fn the_initial_window_is_what_it_is_set_to() {
    for initial_window_segments in [1, 2, 4, 10] {
        let config = Config { initial_window_segments, ..config() };
        let mut pair = Pair::transfer(&config, 30 * SEGMENT, TEN_MS, |_, _| Fate::Passes);
        pair.run(Time::ZERO + Span::from_ms(21));
        assert_eq!(pair.data_sent().len(), initial_window_segments as usize);
    }
}

#[test]
fn a_lost_segment_is_sent_again_when_three_behind_it_have_arrived() {
    for config in [config(), Config { sack: false, ..config() }, old_linux()] {
        let mut pair = Pair::transfer(&config, 60 * SEGMENT, TEN_MS, loses_once(&[12]));
        pair.run(LONG);
        let sent = pair.data_sent();
        let times: Vec<u64> = sent.iter().filter(|&&(_, place)| place == 12).map(|&(ms, _)| ms).collect();
        assert_eq!(times, [40, 60], "{config:?}");
        let counters = pair.sender.counters();
        assert_eq!((counters.retransmits, counters.fast_retransmits), (1, 1), "{config:?}");
        assert_eq!((counters.timeouts, counters.recoveries), (0, 1), "{config:?}");
        assert_eq!(counters.retransmitted_times, [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(pair.receiver.delivered(), Bytes::new(60 * SEGMENT));
        pair.check_books();
    }
}

#[test]
fn many_losses_of_a_window_are_repaired_within_a_round_trip_with_selective_acknowledgements() {
    let lost = [30, 32, 34, 36, 38];
    let mut pair = Pair::transfer(&config(), 150 * SEGMENT, TEN_MS, loses_once(&lost));
    pair.run(LONG);
    let again: Vec<u64> =
        pair.data_sent().iter().filter(|&&(ms, place)| ms > 60 && lost.contains(&place)).map(|s| s.0).collect();
    assert_eq!(again, [80; 5]);
    // Without them, one in each round trip.
    let mut pair = Pair::transfer(&Config { sack: false, ..config() }, 150 * SEGMENT, TEN_MS, loses_once(&lost));
    pair.run(LONG);
    let again: Vec<u64> =
        pair.data_sent().iter().filter(|&&(ms, place)| ms > 60 && lost.contains(&place)).map(|s| s.0).collect();
    assert_eq!(again, [80, 100, 120, 140, 160]);
    assert_eq!(pair.sender.counters().timeouts, 0);
}

#[test]
fn limited_transmit_brings_a_third_acknowledgement_where_the_window_is_small() {
    // Of a window of four, the first is lost: the other three bring fewer than three duplicates with two more.
    let config = Config { initial_window_segments: 3, delayed_ack_segments: 1, ..config() };
    let mut pair = Pair::transfer(&config, 20 * SEGMENT, TEN_MS, loses_once(&[0]));
    pair.run(LONG);
    assert_eq!(pair.sender.counters().timeouts, 0);
    assert_eq!(pair.data_sent()[..5], [(20, 0), (20, 1), (20, 2), (40, 3), (40, 4)]);
}

#[test]
fn the_receivers_window_bounds_what_is_in_flight() {
    let config = Config { receive_buffer_bytes: Bytes::new(20 * SEGMENT), ..config() };
    let mut pair = Pair::transfer(&config, 400 * SEGMENT, TEN_MS, |_, _| Fate::Passes);
    pair.run(Time::ZERO + Span::from_ms(210));
    // From 60 ms on, 20 segments in each 20 ms.
    let in_window = pair.data_sent().iter().filter(|&&(ms, _)| (100..200).contains(&ms)).count();
    assert_eq!(in_window, 100);
    pair.run(LONG);
    assert_eq!(pair.receiver.delivered(), Bytes::new(400 * SEGMENT));
    // Without scaling no more than 65 535 B can be advertised.
    let config = Config { window_scaling: false, receive_buffer_bytes: Bytes::new(1 << 20), ..config };
    let mut pair = Pair::transfer(&config, 400 * SEGMENT, TEN_MS, |_, _| Fate::Passes);
    pair.run(Time::ZERO + Span::from_ms(90));
    assert_eq!(pair.sender.receive_window(), Bytes::new(65_535));
}

#[test]
fn a_mark_is_echoed_until_the_sender_says_that_it_has_slowed_down() {
    let config = Config { ecn: EcnConfig::both(EcnSupport::Classic), delayed_ack_segments: 1, ..config() };
    let marked = |_: u64, segment: &Segment| {
        if segment.len > 0 && (segment.seq - 1) / SEGMENT == 15 { Fate::IsMarked } else { Fate::Passes }
    };
    let mut pair = Pair::transfer(&config, 100 * SEGMENT, TEN_MS, marked);
    pair.run(LONG);
    let counters = pair.sender.counters();
    assert_eq!((counters.ecn_reductions, counters.retransmits), (1, 0));
    assert_eq!(pair.receiver.counters().ecn_marks, 1);
    let echoes = pair.acks.iter().filter(|(_, ack)| ack.flags.has(Flags::ECE)).count();
    let reduced = pair.sent.iter().filter(|(_, segment)| segment.flags.has(Flags::CWR) && segment.len > 0).count();
    assert!(echoes >= 10, "{echoes} echoes");
    assert_eq!(reduced, 1);
    // Without ECN nothing is marked as capable, so that nothing can be marked.
    let mut pair = Pair::transfer(&Config { ecn: EcnConfig::NONE, ..config }, 100 * SEGMENT, TEN_MS, marked);
    pair.run(LONG);
    assert_eq!((pair.sender.counters().ecn_reductions, pair.receiver.counters().ecn_marks), (0, 0));
}

#[test]
fn an_old_duplicate_is_refused_because_of_its_time_stamp() {
    let late = |_: u64, segment: &Segment| {
        let is_first = segment.len > 0 && segment.seq == 1;
        if is_first { Fate::ComesTwice(Span::from_ms(300)) } else { Fate::Passes }
    };
    let mut pair = Pair::transfer(&config(), 900 * SEGMENT, TEN_MS, late);
    pair.run(LONG);
    // At 330 ms the transfer is over, and the last segment bears a later stamp.
    assert_eq!(pair.receiver.counters().paws_rejects, 1);
    assert_eq!(pair.sender.counters().retransmits, 0);
    let mut pair = Pair::transfer(&Config { timestamps: false, ..config() }, 900 * SEGMENT, TEN_MS, late);
    pair.run(LONG);
    assert_eq!((pair.receiver.counters().paws_rejects, pair.receiver.counters().duplicates), (0, 1));
}

#[test]
fn a_retransmission_that_is_lost_waits_for_the_timeout_unless_it_is_looked_for() {
    let mut losses = 2;
    let lose_twice = move |_: u64, segment: &Segment| {
        if segment.len > 0 && (segment.seq - 1) / SEGMENT == 12 && losses > 0 {
            losses -= 1;
            return Fate::IsLost;
        }
        Fate::Passes
    };
    let timeouts = |config: &Config| {
        let mut pair = Pair::transfer(config, 200 * SEGMENT, TEN_MS, lose_twice);
        pair.run(LONG);
        pair.check_books();
        assert_eq!(pair.receiver.delivered(), Bytes::new(200 * SEGMENT));
        let counters = pair.sender.counters();
        (counters.timeouts, counters.recovery_failures, counters.lost_retransmits)
    };
    assert_eq!(timeouts(&config()), (0, 0, 1));
    assert_eq!(timeouts(&old_linux()), (1, 1, 0));
}

/// Segments 20 and 21 are late by `late`; those listed are lost the first time.
fn late_and_lost(late: Span, lost: &[u64]) -> impl FnMut(u64, &Segment) -> Fate {
    let mut loses = loses_once(lost);
    let mut seen = Vec::new();
    move |count, segment| {
        let place = segment.seq.saturating_sub(1) / SEGMENT;
        let is_first = segment.len > 0 && !seen.contains(&place);
        seen.push(place);
        match loses(count, segment) {
            Fate::Passes if is_first && (20..22).contains(&place) => Fate::IsLate(late),
            fate => fate,
        }
    }
}

#[test]
fn repairs_of_what_is_only_late_are_distinguished_from_those_of_what_is_lost() {
    for timestamps in [true, false] {
        let config = Config { timestamps, ..config() };
        for (late, lost, expected) in [
            // Overtaken by more than three: sent again before it arrives.
            (Span::from_ms(8), &[][..], (1, 1)),
            // In time.
            (Span::ZERO, &[], (0, 0)),
            (Span::ZERO, &[20], (1, 0)),
            // One of the two was lost: something was to be repaired.
            (Span::from_ms(8), &[21], (1, 0)),
        ] {
            let mut pair = Pair::transfer(&config, 100 * SEGMENT, TEN_MS, late_and_lost(late, lost));
            pair.run(LONG);
            let counters = pair.sender.counters();
            let got = (counters.recoveries, counters.spurious_recoveries);
            assert_eq!(got, expected, "late by {late}, lost {lost:?}, time stamps {timestamps}");
            assert_eq!(counters.timeouts, 0);
        }
    }
}

#[test]
fn a_timeout_because_of_a_delay_is_distinguished_from_one_because_of_losses() {
    // All that is sent from 45 ms to 400 ms, what is sent again included, arrives at 510 ms, or not at all.
    for (is_late, expected) in [(true, 1), (false, 0)] {
        let mut pair = Pair::transfer(&config(), 400 * SEGMENT, TEN_MS, |_: u64, _: &Segment| Fate::Passes);
        pair.run(Time::ZERO + Span::from_ms(45));
        let fate = move |_: u64, segment: &Segment| match (segment.len > 0, is_late) {
            (false, _) => Fate::Passes,
            (true, true) => Fate::IsLate(Span::from_ms(500 - u64::from(segment.ts_val))),
            (true, false) => Fate::IsLost,
        };
        let mut stalled = pair.with_fate(fate);
        stalled.run(Time::ZERO + Span::from_ms(400));
        let mut after = stalled.with_fate(|_: u64, _: &Segment| Fate::Passes);
        after.run(LONG);
        let counters = after.sender.counters();
        assert!(counters.timeouts > 0, "{counters:?}");
        assert_eq!(counters.spurious_recoveries, expected, "late: {is_late}");
        assert_eq!(after.receiver.delivered(), Bytes::new(400 * SEGMENT));
    }
}

#[test]
fn where_time_stamps_report_a_loss_a_shorter_queue_than_ever_does_not_hide_it() {
    // All waits in a queue of 30 ms but what is sent again: that meets an empty one.
    for (timestamps, expected) in [(true, 0), (false, 1)] {
        let config = Config { timestamps, ..config() };
        let (mut loses, mut is_again) = (loses_once(&[60]), false);
        let fate = move |count: u64, segment: &Segment| match loses(count, segment) {
            Fate::IsLost => {
                is_again = true;
                Fate::IsLost
            }
            _ if segment.len > 0 && segment.seq == 1 + 60 * SEGMENT && is_again => Fate::Passes,
            _ => Fate::IsLate(Span::from_ms(30)),
        };
        let mut pair = Pair::transfer(&config, 400 * SEGMENT, TEN_MS, fate);
        pair.run(LONG);
        let counters = pair.sender.counters();
        let got = (counters.recoveries, counters.retransmits, counters.spurious_recoveries);
        assert_eq!(got, (1, 1, expected), "time stamps {timestamps}");
        assert_eq!(counters.timeouts, 0);
    }
}

#[test]
fn a_stream_of_writes_goes_as_it_is_written() {
    let mut pair = Pair::new(&config(), TEN_MS, |_: u64, _: &Segment| Fate::Passes);
    pair.sender.open(Time::ZERO);
    for write in 1..=10 {
        pair.sender.write(Bytes::new(300));
        pair.run(Time::ZERO + Span::from_ms(write * 100));
        assert_eq!(pair.receiver.delivered(), Bytes::new(write * 300));
    }
    assert_eq!(pair.sender.finished(), None);
    pair.sender.close();
    pair.run(LONG);
    assert!(pair.sender.finished().is_some() && pair.receiver.finished().is_some());
    assert_eq!(pair.sent.iter().filter(|(_, segment)| segment.flags.has(Flags::FIN)).count(), 1);
}

#[test]
fn an_endless_stream_ends_with_what_the_send_buffer_holds() {
    let config = Config { send_buffer_bytes: Some(Bytes::new(500 * SEGMENT)), ..config() };
    let mut pair = Pair::new(&config, TEN_MS, |_: u64, _: &Segment| Fate::Passes);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endlessly();
    pair.run(Time::ZERO + Span::from_ms(45));
    // Acknowledged by then are 10 segments.
    pair.sender.close();
    pair.run(LONG);
    assert_eq!(pair.receiver.delivered(), Bytes::new(510 * SEGMENT));
}
