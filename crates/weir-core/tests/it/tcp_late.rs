//! Losses found by time, and probes of the tail: RFC 8985.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use weir_core::cc::{self, Allowance, Cause, CongestionControl, Controllers, SenderEvent, Setup};
use weir_core::tcp::{Config, EcnConfig, EcnSupport, LossMarking, Phase, Recovery, Segment, Sender, SenderCounters};
use weir_core::units::{Bytes, Span, Time};

use crate::tcp::{Fate, LONG, Pair, SEGMENT, TEN_MS, config, loses_once};

pub(crate) fn by_time() -> Config {
    Config { loss_marking: LossMarking::RackTlp, recovery: Recovery::SafePrr, ..config() }
}

/// Ten segments and the FIN with the last of them leave together.
fn of_eleven(config: Config) -> Config {
    Config { initial_window_segments: 11, delayed_ack_segments: 1, ..config }
}

/// What a transfer of `segments` over 20 ms counts, and when the sender knew that it had arrived, in ms.
fn transfer(config: &Config, segments: u64, fate: impl FnMut(u64, &Segment) -> Fate) -> (SenderCounters, u64) {
    let mut pair = Pair::transfer(config, segments * SEGMENT, TEN_MS, fate);
    pair.run(LONG);
    pair.check_books();
    assert_eq!(pair.receiver.delivered(), Bytes::new(segments * SEGMENT));
    let finished = pair.sender.finished().expect("all is acknowledged");
    (pair.sender.counters(), finished.ps() / 1_000_000_000)
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips_and_not_left_to_the_timeout() {
    // Ten segments leave at 20 ms; the last ones are lost. The acknowledgement of the others comes at 40 ms.
    for lost in [&[9][..], &[8, 9], &[5, 6, 7, 8, 9]] {
        let (counters, finished) = transfer(&of_eleven(by_time()), 10, loses_once(lost));
        assert_eq!((counters.timeouts, counters.loss_probes, counters.probe_retransmits), (0, 1, 1), "{lost:?}");
        // 40 ms after it, 40 ms more where one segment may wait for its acknowledgement, or is in flight alone.
        let probed = if lost.len() == 1 { 40 + 40 + 40 } else { 40 + 40 };
        assert!((probed + 20..=probed + 80).contains(&finished), "{lost:?}: {finished} ms");
        assert_eq!(counters.retransmits, lost.len() as u64, "{lost:?}: nothing needless");
    }
    let (counters, finished) = transfer(&of_eleven(config()), 10, loses_once(&[8, 9]));
    assert_eq!((counters.timeouts, counters.loss_probes), (1, 0));
    assert!(finished >= 240, "{finished} ms");
}

#[test]
fn all_of_a_window_that_is_lost_is_found_by_a_probe() {
    let lost: Vec<u64> = (0..10).collect();
    let (counters, finished) = transfer(&of_eleven(by_time()), 10, loses_once(&lost));
    assert_eq!((counters.timeouts, counters.loss_probes), (0, 1));
    // Sent at 20 ms, probed at 60 ms, reported at 80 ms; then the rest.
    assert!((100..=180).contains(&finished), "{finished} ms");
}

#[test]
fn a_probe_sends_something_new_if_there_is_any() {
    // A window of two is lost as a whole, with much more to send.
    let config = Config { initial_window_segments: 2, ..by_time() };
    let (counters, _) = transfer(&config, 40, loses_once(&[0, 1]));
    assert_eq!((counters.loss_probes, counters.probe_retransmits, counters.timeouts), (1, 0, 0));
}

#[test]
fn a_probe_in_vain_is_reported_as_a_duplicate_and_leaves_the_window() {
    // The acknowledgement of the last segments is late by 60 ms, so that the probe comes first.
    let held = |_: u64, segment: &Segment| {
        let is_last = segment.len == 0 && segment.ack > 9 * SEGMENT;
        if is_last { Fate::IsLate(Span::from_ms(60)) } else { Fate::Passes }
    };
    let mut pair = Pair::transfer(&by_time(), 10 * SEGMENT, TEN_MS, held);
    pair.run(LONG);
    let counters = pair.sender.counters();
    assert_eq!((counters.loss_probes, counters.loss_probe_recoveries, counters.recoveries), (1, 0, 0));
    assert_eq!(counters.duplicates_told, 1);
    assert_eq!(pair.sender.threshold(), Bytes::new(u64::MAX), "nothing was reduced");
}

#[test]
fn a_probe_that_repaired_the_only_loss_halves_the_window() {
    for control in [cc::Config::reno(), cc::Config::cubic(), cc::Config::dctcp()] {
        let config = Config { congestion_control: control, ..by_time() };
        let mut pair = Pair::new(&config, TEN_MS, loses_once(&[9]));
        pair.sender.open(Time::ZERO);
        pair.sender.write(Bytes::new(10 * SEGMENT));
        pair.run(Time::ZERO + Span::from_ms(190));
        pair.now = Time::ZERO + Span::from_ms(190);
        pair.sender.write(Bytes::new(2 * SEGMENT));
        pair.run(Time::ZERO + Span::from_ms(215));
        let counters = pair.sender.counters();
        assert_eq!((counters.loss_probe_recoveries, counters.recoveries, counters.timeouts), (1, 0, 0));
        // Of the one segment that was in flight: two is the least.
        assert_eq!(pair.sender.threshold(), Bytes::new(2 * SEGMENT), "{config:?}");
        assert_eq!(pair.sender.window(), pair.sender.threshold());
    }
}

#[test]
fn a_retransmission_that_is_lost_twice_is_found_twice_without_a_timeout() {
    let (counters, _) = transfer(&by_time(), 400, loses_once(&[12, 12, 12]));
    assert_eq!((counters.timeouts, counters.lost_retransmits, counters.recoveries), (0, 2, 1));
    assert_eq!(counters.retransmits, 3);
}

/// Each segment leaves by itself, a tenth of a ms after the one before; every tenth is late by `late`.
fn reorders(late: Span) -> impl FnMut(u64, &Segment) -> Fate {
    move |_, segment| {
        let place = segment.seq / SEGMENT;
        let behind = if place.is_multiple_of(10) { late } else { Span::ZERO };
        if segment.len == 0 { Fate::Passes } else { Fate::IsLate(Span::from_us(place % 100 * 10) + behind) }
    }
}

#[test]
fn once_reordering_was_seen_what_is_late_by_less_than_a_quarter_of_a_round_trip_is_not_sent_again() {
    let (counters, _) = transfer(&by_time(), 2000, reorders(Span::from_ms(4)));
    // RFC 8985, 6.2: until something was seen to be overtaken, three segments behind mean a loss.
    assert!(counters.recoveries <= 1 && counters.retransmits <= 2, "{counters:?}");
    let (by_count, _) = transfer(&config(), 2000, reorders(Span::from_ms(4)));
    assert!(by_count.retransmits > 20, "{by_count:?}");
}

#[test]
fn duplicates_that_are_reported_widen_the_window_to_what_is_late() {
    // Half of a round trip: more than a quarter, less than three.
    let (counters, _) = transfer(&by_time(), 4000, reorders(Span::from_ms(10)));
    let (by_count, _) = transfer(&config(), 4000, reorders(Span::from_ms(10)));
    assert!(counters.duplicates_told > 0 && counters.duplicates_told <= counters.retransmits, "{counters:?}");
    assert!(counters.retransmits < by_count.retransmits / 4, "{} {}", counters.retransmits, by_count.retransmits);
}

/// Where each acknowledgement reports one segment: in a recovery no more is sent than the first repair, two segments for each that
/// has arrived since, and one for each repair that was lost (RFC 6937, 3; RFC 9937, 6).
fn check_bound<F: FnMut(u64, &Segment) -> Fate>(pair: &Pair<F>) {
    let in_recovery: Vec<_> =
        pair.when_sent.iter().filter(|sent| sent.0 == Phase::Recovery).map(|sent| sent.1).collect();
    for recovery in in_recovery.chunk_by(|a, b| a.recoveries == b.recoveries) {
        let first = recovery[0];
        for (sent, now) in (1..).zip(recovery) {
            // The first acknowledgement may be the one that begins the recovery.
            let arrived = 1 + now.acks - first.acks;
            let bound = 1 + 2 * arrived + now.lost_retransmits - first.lost_retransmits;
            assert!(sent <= bound, "{sent} sent of {bound} in recovery {}", now.recoveries);
        }
    }
}

#[test]
fn a_recovery_sends_no_more_when_the_timer_begins_it_than_when_an_acknowledgement_does() {
    for recovery in [Recovery::Prr, Recovery::SafePrr, Recovery::RateHalving] {
        for arrived in 1..5 {
            let lost: Vec<u64> = (0..40 - arrived).collect();
            let config = Config { initial_window_segments: 40, delayed_ack_segments: 1, recovery, ..by_time() };
            let mut pair = Pair::transfer(&config, 400 * SEGMENT, TEN_MS, loses_once(&lost));
            pair.run(LONG);
            let begins = pair.when_sent.iter().position(|sent| sent.0 == Phase::Recovery).expect("much is lost");
            let together = pair.sent[begins..].iter().filter(|sent| sent.0 == pair.sent[begins].0).count();
            // One or two are overtaken by too little: the timer begins.
            assert_eq!(pair.sent[begins].0 > Time::ZERO + Span::from_ms(40), arrived < 3, "{recovery:?}, {arrived}");
            assert!(together <= if arrived < 3 { 1 } else { 4 }, "{recovery:?}, {arrived}: {together} at once");
            if recovery != Recovery::RateHalving {
                check_bound(&pair);
            }
            assert_eq!(pair.receiver.delivered(), Bytes::new(400 * SEGMENT));
        }
    }
}

proptest! {
    #[test]
    fn no_recovery_sends_more_than_what_arrives_allows(
        lost in prop::collection::vec(prop::bool::weighted(0.4), 0..60), behind in 0usize..60, is_safe in any::<bool>(),
        by_count in any::<bool>(), initial_window_segments in 1u32..60,
    ) {
        let recovery = if is_safe { Recovery::SafePrr } else { Recovery::Prr };
        let base = if by_count { config() } else { by_time() };
        let config = Config { recovery, initial_window_segments, delayed_ack_segments: 1, ..base };
        // A row of losses, and some behind it.
        let fate = |count: u64, segment: &Segment| {
            let place = count as usize;
            let is_lost = place < behind || lost.get(place - behind).copied().unwrap_or(false);
            if segment.len > 0 && is_lost { Fate::IsLost } else { Fate::Passes }
        };
        let mut pair = Pair::transfer(&config, 200 * SEGMENT, TEN_MS, fate);
        pair.run(LONG);
        check_bound(&pair);
    }
}

#[test]
fn where_the_probe_is_lost_the_timeout_is_left() {
    // All data is lost until 250 ms: ten segments at 20 ms, the probe at 60 ms, from which the timeout counts.
    let fate = |_: u64, segment: &Segment| {
        let lost = segment.len > 0 && segment.ts_val < 250;
        if lost { Fate::IsLost } else { Fate::Passes }
    };
    let mut pair = Pair::transfer(&by_time(), 30 * SEGMENT, TEN_MS, fate);
    pair.run(Time::ZERO + Span::from_ms(265));
    assert_eq!((pair.sender.phase(), pair.sender.counters().timeouts), (Phase::Loss, 1));
    pair.run(LONG);
    assert_eq!(pair.receiver.delivered(), Bytes::new(30 * SEGMENT));
    pair.check_books();
}

#[test]
fn the_receiver_reports_what_arrived_twice_before_anything_else_and_only_where_losses_are_found_by_time() {
    let twice = |count: u64, segment: &Segment| {
        let is_it = segment.len > 0 && segment.seq == 1 + 3 * SEGMENT;
        match (is_it, loses_once(&[6])(count, segment)) {
            (true, _) => Fate::ComesTwice(Span::from_us(1)),
            _ => Fate::Passes,
        }
    };
    for (config, expected) in [(by_time(), 1), (config(), 0)] {
        let mut pair = Pair::transfer(&config, 30 * SEGMENT, TEN_MS, twice);
        pair.run(LONG);
        let reported: Vec<&Segment> =
            pair.acks.iter().map(|(_, ack)| ack).filter(|ack| !ack.sacks.is_empty()).collect();
        assert_eq!(reported.len(), expected);
        for ack in reported {
            assert_eq!(ack.sacks.blocks(ack.ack).next(), Some((1 + 3 * SEGMENT, 1 + 4 * SEGMENT)));
            assert_eq!(ack.sacks.len(), 1);
        }
    }
}

/// A window of ten, and what its controller learned of congestion.
#[derive(Debug)]
struct Reported(Arc<Mutex<Vec<Cause>>>);

impl CongestionControl for Reported {
    fn on_event(&mut self, _: Time, event: &SenderEvent) {
        if let SenderEvent::Congestion { cause, .. } = event {
            self.0.lock().expect("one thread").push(*cause);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::of_window(Bytes::new(10 * SEGMENT), Bytes::new(10 * SEGMENT))
    }
}

/// The tail is lost, and probed at 170 ms. The acknowledgement of the probe is lost, and the next one is of three more segments, which
/// were sent at 190 and 200 ms.
fn reported_congestion(lost: &[u64], is_marked: bool) -> Vec<Cause> {
    let reported = Arc::new(Mutex::new(vec![]));
    let heard = Arc::clone(&reported);
    let known = Controllers::new().add("told", move |_, _| Ok(Box::new(Reported(Arc::clone(&heard)))));
    let congestion_control = cc::Config::custom("told", &[]);
    let ecn = if is_marked { EcnConfig::both(EcnSupport::Classic) } else { by_time().ecn };
    let config = Config { congestion_control, ecn, ..by_time() };
    let mut loses = loses_once(lost);
    let fate = move |count: u64, segment: &Segment| match loses(count, segment) {
        Fate::Passes if segment.len == 0 && segment.ack == 1 + 11 * SEGMENT && segment.sacks.is_empty() => Fate::IsLost,
        Fate::Passes if is_marked && segment.len > 0 && segment.seq > 10 * SEGMENT => Fate::IsMarked,
        fate => fate,
    };
    let mut pair = Pair::new(&Config { ecn, ..by_time() }, TEN_MS, fate);
    pair.sender = Sender::new(&config, known.make(Setup::plain(&config)).expect("it is known"));
    pair.sender.open(Time::ZERO);
    for (at_ms, segments) in [(0, 10), (190, 2), (200, 1)] {
        pair.now = Time::ZERO + Span::from_ms(at_ms);
        pair.sender.write(Bytes::new(segments * SEGMENT));
        pair.run(pair.now + Span::from_ms(if at_ms == 0 { 190 } else { 10 }));
    }
    pair.run(LONG);
    let counters = pair.sender.counters();
    assert_eq!((counters.loss_probe_recoveries, counters.timeouts), (1, 0), "{counters:?}");
    let reported = reported.lock().expect("one thread");
    reported.clone()
}

#[test]
fn a_probe_that_repaired_a_loss_and_what_the_same_acknowledgement_shows_are_one_congestion() {
    assert_eq!(reported_congestion(&[9], false), [Cause::Loss]);
    // The second of the new segments is late by more than a quarter of a round trip when the third is reported.
    assert_eq!(reported_congestion(&[9, 11], false), [Cause::Loss]);
    assert_eq!(reported_congestion(&[9], true), [Cause::EcnEcho]);
}
