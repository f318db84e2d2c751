//! Receivers that read slowly, closed windows, and paced senders.

use std::cell::Cell;

use weir_core::cc;
use weir_core::tcp::{Config, Reading, Segment};
use weir_core::units::{Bytes, Rate, Time};

use crate::tcp::{Fate, LONG, Pair, SEGMENT, TEN_MS, config};
use crate::tcp_late::by_time;
use crate::tcp_line::at;

const MBPS: u64 = 1_000_000;

fn reads(config: Config, mbps: u64, pauses_ms: &[(u64, u64)]) -> Config {
    let pauses_ps = pauses_ms.iter().map(|&(from, until)| (at(from), at(until))).collect();
    Config { reading: Some(Reading { rate_bps: Rate::from_bps(mbps * MBPS), pauses_ps }), ..config }
}

/// Sequence, time in ms and length of what was sent beyond the window that the receiver had advertised.
fn probes<F: FnMut(u64, &Segment) -> Fate>(pair: &Pair<F>) -> Vec<u64> {
    pair.sent.iter().filter(|(_, segment)| segment.len == 1).map(|(at, _)| at.ps() / 1_000_000_000).collect()
}

#[test]
fn data_moves_as_fast_as_it_is_read() {
    // 200 kB hold five round trips of what is read.
    for control in [cc::Config::reno(), cc::Config::cubic(), cc::Config::dctcp()] {
        for mbps in [2, 8, 16] {
            let config = Config {
                congestion_control: control.clone(),
                receive_buffer_bytes: Bytes::new(200 * SEGMENT),
                ..config()
            };
            let mut pair = Pair::new(&reads(config, mbps, &[]), TEN_MS, |_, _| Fate::Passes);
            pair.sender.open(Time::ZERO);
            pair.sender.write_endlessly();
            pair.run(at(2_000));
            let before = pair.receiver.delivered().count();
            pair.run(at(6_000));
            let bps = (pair.receiver.delivered().count() - before) * 8 / 4;
            // A segment more or less at either end of four seconds.
            let error = bps.abs_diff(mbps * MBPS);
            assert!(error <= 2 * SEGMENT * 8 / 4 + mbps * MBPS / 200, "{bps} b/s of {mbps} Mbit/s, {control:?}");
            assert_eq!(pair.sender.counters().retransmits, 0);
            pair.check_books();
        }
    }
}

#[test]
fn a_closed_window_is_probed_with_a_byte_at_intervals_that_double() {
    // A buffer of 20 segments is full after 60 ms, and is not read for 20 s.
    let config = Config { receive_buffer_bytes: Bytes::new(20 * SEGMENT), ..config() };
    let mut pair = Pair::transfer(&reads(config, 100, &[(0, 20_000)]), 100 * SEGMENT, TEN_MS, |_, _| Fate::Passes);
    pair.run(at(19_000));
    assert_eq!(pair.receiver.delivered(), Bytes::new(20 * SEGMENT));
    let times = probes(&pair);
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [400, 800, 1600, 3200, 6400]);
    // A timeout after the window closed: the last segments arrive at 50 ms.
    assert!((240..=320).contains(&times[0]), "{times:?}");
    assert_eq!(pair.sender.counters().window_probes, 6);
    assert_eq!(pair.sender.counters().timeouts, 0);
    // The receiver says when there is room again: no probe is waited for.
    pair.run(at(20_100));
    assert!(pair.receiver.delivered().count() > 30 * SEGMENT);
    pair.run(LONG);
    assert_eq!(pair.receiver.delivered(), Bytes::new(100 * SEGMENT));
    assert_eq!(pair.sender.counters().retransmits, 0);
    pair.check_books();
}

#[test]
fn where_the_word_of_an_open_window_is_lost_a_probe_finds_it() {
    let config = Config { receive_buffer_bytes: Bytes::new(20 * SEGMENT), ..config() };
    let lost = Cell::new(false);
    let fate = |_: u64, segment: &Segment| {
        if lost.get() && segment.len == 0 { Fate::IsLost } else { Fate::Passes }
    };
    let mut pair = Pair::transfer(&reads(config, 100, &[(0, 1_000)]), 40 * SEGMENT, TEN_MS, fate);
    pair.run(at(999));
    lost.set(true);
    pair.run(at(1_100));
    lost.set(false);
    assert_eq!(pair.receiver.counters().window_updates, 1);
    assert_eq!(pair.receiver.delivered(), Bytes::new(20 * SEGMENT), "nobody knows of the room");
    pair.run(LONG);
    assert_eq!(pair.receiver.delivered(), Bytes::new(40 * SEGMENT));
    // At 640 ms and 1440 ms or so: the byte of the last is delivered.
    assert!(pair.sender.finished().is_some_and(|end| end < at(1_700)), "{:?}", pair.sender.finished());
    pair.check_books();
}

#[test]
fn no_small_segments_leave_however_slowly_is_read() {
    // Silly windows: 10 kB/s, buffers of one to eight segments.
    for buffer in [1000, 1500, 2000, 8000] {
        let config = Config { receive_buffer_bytes: Bytes::new(buffer), ..config() };
        let mut pair = Pair::transfer(&reads(config, 1, &[]), 60 * SEGMENT, TEN_MS, |_, _| Fate::Passes);
        pair.run(LONG);
        assert_eq!(pair.receiver.delivered(), Bytes::new(60 * SEGMENT));
        let least = (buffer / 2).min(SEGMENT);
        let small = pair.sent.iter().filter(|(_, segment)| (1..least).contains(&u64::from(segment.len))).count();
        assert!(small <= 1, "{small} segments below {least} B with a buffer of {buffer} B");
    }
}

#[test]
fn paced_segments_of_a_window_leave_over_a_part_of_a_round_trip() {
    for control in [cc::Config::reno(), cc::Config::cubic()] {
        let config = Config { congestion_control: control, pacing: true, delayed_ack_segments: 1, ..config() };
        let mut pair = Pair::transfer(&config, 2000 * SEGMENT, TEN_MS, |_, _| Fate::Passes);
        // 10 segments at 20 ms at once, as Linux does; 20 at 40 ms, at twice the window in a round trip of 20 ms.
        pair.run(at(59));
        let sent: Vec<u64> =
            pair.sent[11..].iter().filter(|(_, segment)| segment.len > 0).map(|(at, _)| at.ps() / 1_000_000).collect();
        let together = sent.chunk_by(|a, b| a == b).map(<[u64]>::len).max().expect("segments");
        assert!(together <= 2, "{sent:?} us");
        let (first, last) = (sent[0], sent[sent.len() - 1]);
        assert!(first >= 40_000 && (48_000..=51_000).contains(&last), "{first} to {last} us");
        pair.run(LONG);
        assert_eq!(pair.receiver.delivered(), Bytes::new(2000 * SEGMENT));
        pair.check_books();
    }
}

#[test]
fn a_paced_window_in_congestion_avoidance_leaves_at_twelve_tenths_of_its_rate() {
    let config = Config { pacing: true, delayed_ack_segments: 1, ..by_time() };
    let mut lost = crate::tcp::loses_once(&[100]);
    let mut pair = Pair::transfer(&config, 3000 * SEGMENT, TEN_MS, move |count, segment| lost(count, segment));
    pair.run(at(400));
    let window = pair.sender.window().count();
    assert!(window > pair.sender.threshold().count() / 2);
    let before = pair.sent.len();
    let gap = 20_000.0 / 1.2 / window as f64 * SEGMENT as f64;
    pair.run(at(460));
    let times: Vec<f64> = pair.sent[before..].iter().map(|(at, _)| at.ps() as f64 / 1e6).collect();
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|&gap| gap > 1.0).collect();
    gaps.sort_by(f64::total_cmp);
    let least = gaps[gaps.len() / 10];
    // The window grows by three segments meanwhile.
    assert!((least / gap - 1.0).abs() < 0.1, "{least} us, not {gap}, {gaps:?}");
}

#[test]
fn a_pause_of_the_reader_does_not_look_like_a_loss() {
    for config in [config(), by_time()] {
        let config = Config { receive_buffer_bytes: Bytes::new(50 * SEGMENT), ..config };
        let mut pair =
            Pair::transfer(&reads(config, 40, &[(100, 900), (1_000, 1_500)]), 5_000 * SEGMENT, TEN_MS, |_, _| {
                Fate::Passes
            });
        pair.run(LONG);
        let counters = pair.sender.counters();
        assert_eq!(pair.receiver.delivered(), Bytes::new(5_000 * SEGMENT));
        assert_eq!((counters.timeouts, counters.recoveries, counters.retransmits), (0, 0, 0), "{counters:?}");
        assert!(pair.receiver.counters().window_closures >= 2);
        pair.check_books();
    }
}
