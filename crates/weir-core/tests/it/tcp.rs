//! The two ends of a connection over a path that loses, duplicates and reorders as it is told to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use proptest::prelude::*;
use weir_core::cc::{self, CongestionControl};
use weir_core::tcp::{
    Config, Ecn, EcnConfig, EcnSupport, Flags, LossMarking, LostRetransmissions, Phase, Reading, Receiver, Recovery,
    Segment, Sender, SenderCounters,
};
use weir_core::units::{Bytes, Rate, Span, Time};

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

/// What the path does to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Passes,
    IsLost,
    IsMarked,
    ComesTwice(Span),
    IsLate(Span),
}

/// Two ends, half a round trip apart each way.
pub(crate) struct Pair<F> {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    delay: Span,
    pub(crate) now: Time,
    /// Segments under way by time of arrival and number: to the receiver, or to the sender.
    under_way: BinaryHeap<Reverse<(Time, u64)>>,
    segments: BTreeMap<u64, (bool, Segment)>,
    count: u64,
    /// The fate of each segment, in the order of sending in both directions.
    fate: F,
    /// What the sender sent with data, and when.
    pub(crate) sent: Vec<(Time, Segment)>,
    pub(crate) acks: Vec<(Time, Segment)>,
    /// What the sender was about when it sent each of them.
    pub(crate) when_sent: Vec<(Phase, SenderCounters)>,
    /// When reductions of the window were over, and the window then.
    pub(crate) recovered: Vec<(Time, Bytes)>,
    rate_halving: bool,
}

impl<F: FnMut(u64, &Segment) -> Fate> Pair<F> {
    pub(crate) fn new(config: &Config, delay: Span, fate: F) -> Pair<F> {
        Pair {
            sender: Sender::plain(config),
            receiver: Receiver::new(config),
            delay,
            now: Time::ZERO,
            under_way: BinaryHeap::new(),
            segments: BTreeMap::new(),
            count: 0,
            fate,
            sent: vec![],
            acks: vec![],
            when_sent: vec![],
            recovered: vec![],
            rate_halving: config.recovery == Recovery::RateHalving,
        }
    }

    pub(crate) fn transfer(config: &Config, bytes: u64, delay: Span, fate: F) -> Pair<F> {
        let mut pair = Pair::new(config, delay, fate);
        pair.sender.open(Time::ZERO);
        pair.sender.write(Bytes::new(bytes));
        pair.sender.close();
        pair
    }

    /// The same, on a path that does something else from now on.
    fn with_fate<G>(self, fate: G) -> Pair<G> {
        let Pair {
            sender,
            receiver,
            delay,
            now,
            under_way,
            segments,
            count,
            sent,
            acks,
            when_sent,
            recovered,
            rate_halving,
            ..
        } = self;
        Pair {
            sender,
            receiver,
            delay,
            now,
            under_way,
            segments,
            count,
            fate,
            sent,
            acks,
            when_sent,
            recovered,
            rate_halving,
        }
    }

    /// Runs until nothing is left to do, or `until`.
    pub(crate) fn run(&mut self, until: Time) -> &mut Self {
        self.drain();
        while let Some(next) = self.next_time().filter(|&next| next <= until) {
            self.now = next;
            while let Some(&Reverse((_, number))) = self.under_way.peek().filter(|first| first.0.0 <= next) {
                self.under_way.pop();
                let (forward, segment) = self.segments.remove(&number).expect("it is under way");
                if forward {
                    self.receiver.handle_segment(next, &segment);
                } else {
                    self.hand_to_sender(&segment);
                }
                self.drain();
            }
            self.sender.handle_timeout(next);
            self.receiver.handle_timeout(next);
            self.drain();
        }
        self
    }

    /// After a reduction, the window is the threshold; less, if that of marks was overtaken by a pause.
    fn hand_to_sender(&mut self, segment: &Segment) {
        let before = self.sender.phase();
        self.sender.handle_segment(self.now, segment);
        let reduced = matches!(before, Phase::Recovery | Phase::Reduced) && !self.sender.control().needs().model;
        if reduced && self.sender.phase() == Phase::Open {
            let (window, threshold) = (self.sender.window(), self.sender.threshold());
            let may_be_less = self.rate_halving || before == Phase::Reduced;
            assert!(window == threshold || (may_be_less && window < threshold), "{window}, not {threshold}");
            self.recovered.push((self.now, window));
        }
    }

    fn next_time(&self) -> Option<Time> {
        let arrival = self.under_way.peek().map_or(Time::NEVER, |first| first.0.0);
        let timers = self.sender.poll_timeout().min(self.sender.poll_release()).min(self.receiver.poll_timeout());
        Some(arrival.min(timers)).filter(|&next| next != Time::NEVER)
    }

    fn drain(&mut self) {
        loop {
            let probes = |sender: &Sender| (sender.counters().loss_probes, sender.counters().window_probes);
            let before = probes(&self.sender);
            let Some(segment) = self.sender.poll_transmit(self.now) else { break };
            let is_probe = probes(&self.sender) != before;
            let is_of_window = probes(&self.sender).1 > before.1;
            let fresh = self.sent.iter().all(|(_, sent)| sent.seq < segment.seq) && segment.len > 0;
            if fresh {
                assert!(
                    is_probe || self.sender.bytes_in_flight() <= self.sender.window(),
                    "no new data beyond the window"
                );
                let right = self.sender.receive_window();
                assert!(
                    is_of_window || right.count() > 0 || !segment.flags.has(Flags::ACK),
                    "no data beyond the receiver's window"
                );
            }
            self.sent.push((self.now, segment));
            self.when_sent.push((self.sender.phase(), self.sender.counters()));
            self.post(true, segment);
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.acks.push((self.now, segment));
            self.post(false, segment);
        }
    }

    fn post(&mut self, forward: bool, segment: Segment) {
        let fate = (self.fate)(self.count, &segment);
        let mut add = |at: Time, segment: Segment| {
            self.under_way.push(Reverse((at, self.count)));
            self.segments.insert(self.count, (forward, segment));
            self.count += 1;
        };
        let at = self.now + self.delay;
        match fate {
            Fate::Passes => add(at, segment),
            Fate::IsLost => self.count += 1,
            Fate::IsMarked => {
                let ecn = if segment.ecn.is_capable() { Ecn::Ce } else { segment.ecn };
                add(at, Segment { ecn, ..segment });
            }
            Fate::ComesTwice(later) => {
                add(at, segment);
                add(at + later, segment);
            }
            Fate::IsLate(later) => add(at + later, segment),
        }
    }

    /// Times at which data was sent, in ms, and the number of each segment, counted in segments from 0.
    pub(crate) fn data_sent(&self) -> Vec<(u64, u64)> {
        let data = self.sent.iter().filter(|(_, segment)| segment.len > 0);
        data.map(|(at, segment)| (at.ps() / 1_000_000_000, (segment.seq - 1) / SEGMENT)).collect()
    }

    pub(crate) fn check_books(&self) {
        let counters = self.sender.counters();
        let parts = counters.fast_retransmits
            + counters.forward_retransmits
            + counters.slow_start_retransmits
            + counters.timeout_retransmits
            + counters.rescue_retransmits
            + counters.probe_retransmits;
        assert_eq!(counters.retransmits, parts);
        assert_eq!(counters.segments, self.sent.len() as u64);
        let again: u64 = (1..).zip(&counters.retransmitted_times[..7]).map(|(times, &segments)| times * segments).sum();
        assert!(again <= counters.retransmits);
        if counters.retransmitted_times[7] == 0 {
            assert_eq!(again, counters.retransmits);
        }
        assert_eq!(counters.bytes, self.sent.iter().map(|(_, segment)| u64::from(segment.len)).sum::<u64>());
        assert!(self.sender.counters().acked_bytes <= self.receiver.counters().delivered_bytes);
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
    // Without scaling no more than 65 535 B can be told.
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
fn repairs_of_what_is_only_late_are_told_from_those_of_what_is_lost() {
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
fn a_timeout_because_of_a_delay_is_told_from_one_because_of_losses() {
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
fn where_time_stamps_tell_of_a_loss_a_shorter_queue_than_ever_does_not_hide_it() {
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

fn any_config() -> impl Strategy<Value = Config> {
    let recovery =
        prop::sample::select(vec![Recovery::Halving, Recovery::Prr, Recovery::SafePrr, Recovery::RateHalving]);
    let (detect, timeout) = (LostRetransmissions::Detect, LostRetransmissions::Timeout);
    let marking = prop::sample::select(vec![
        (LossMarking::Count, detect),
        (LossMarking::Count, timeout),
        (LossMarking::Fack, detect),
        (LossMarking::Fack, timeout),
        (LossMarking::RackTlp, detect),
        (LossMarking::RackTlp, detect),
    ]);
    let presets: Vec<cc::Config> = cc::Config::kinds().into_iter().filter_map(|kind| kind.preset).collect();
    let control = prop::sample::select(presets);
    let options = (any::<bool>(), any::<bool>(), any_ecn(), any::<bool>(), any::<bool>(), any_reading());
    (recovery, marking, control, options, (1u32..12, 4u64..60, 1u32..5)).prop_map(
        |(recovery, (loss_marking, lost_retransmissions), congestion_control, options, sizes)| Config {
            recovery,
            loss_marking,
            lost_retransmissions,
            congestion_control,
            sack: options.0,
            timestamps: options.1,
            ecn: options.2,
            window_scaling: options.3,
            pacing: options.4,
            reading: options.5,
            initial_window_segments: sizes.0,
            receive_buffer_bytes: Bytes::new(sizes.1 * SEGMENT),
            delayed_ack_segments: sizes.2,
            ..config()
        },
    )
}

fn any_reading() -> impl Strategy<Value = Option<Reading>> {
    let at = |ms| Time::ZERO + Span::from_ms(ms);
    let pauses = prop_oneof![
        Just(vec![]),
        (0u64..300, 1u64..900).prop_map(move |(from, long)| vec![(at(from), at(from + long))])
    ];
    let reading = (1u64..200, pauses)
        .prop_map(|(mbps, pauses_ps)| Reading { rate_bps: Rate::from_bps(mbps * 1_000_000), pauses_ps });
    prop_oneof![2 => Just(None), 1 => reading.prop_map(Some)]
}

pub(crate) fn any_ecn() -> impl Strategy<Value = EcnConfig> {
    let support =
        || prop::sample::select(vec![EcnSupport::None, EcnSupport::Classic, EcnSupport::Dctcp, EcnSupport::Accurate]);
    (support(), support(), any::<bool>()).prop_map(|(sender, receiver, options)| EcnConfig {
        sender,
        receiver,
        options,
    })
}

fn any_fate() -> impl Strategy<Value = Fate> {
    let late = || (0u64..60).prop_map(Span::from_ms);
    prop_oneof![
        6 => Just(Fate::Passes),
        2 => Just(Fate::IsLost),
        1 => Just(Fate::IsMarked),
        1 => late().prop_map(Fate::ComesTwice),
        1 => late().prop_map(Fate::IsLate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever the path does, the stream arrives in order and completely, once each byte, and never more is in flight
    /// than the window allows (checked at every new segment).
    #[test]
    fn any_stream_arrives_whole(
        config in any_config(), fates in prop::collection::vec(any_fate(), 1..400), bytes in 0u64..150_000,
    ) {
        // The pattern is not repeated for ever: a path that always loses delivers nothing.
        let fate = |count: u64, _: &Segment| fates.get(count as usize).copied().unwrap_or(Fate::Passes);
        let mut pair = Pair::transfer(&config, bytes, TEN_MS, fate);
        pair.run(LONG);
        prop_assert_eq!(pair.receiver.delivered(), Bytes::new(bytes));
        prop_assert_eq!(pair.sender.counters().acked_bytes, bytes);
        prop_assert!(pair.sender.finished() >= pair.receiver.finished() && pair.receiver.finished().is_some());
        prop_assert!(pair.sender.poll_timeout() == Time::NEVER, "nothing is left to wait for");
        pair.check_books();
        for pairs in pair.acks.windows(2) {
            prop_assert!(pairs[0].1.ack <= pairs[1].1.ack, "acknowledgements never go back");
        }
        let limit = config.receive_buffer_bytes.count().min(if config.window_scaling { u64::MAX } else { 65_535 });
        let mut acked = 1;
        let mut events: Vec<(Time, bool, Segment)> = pair.acks.iter().map(|&(at, ack)| (at, false, ack)).collect();
        events.extend(pair.sent.iter().map(|&(at, segment)| (at, true, segment)));
        events.sort_by_key(|event| (event.0, event.1));
        for (_, is_data, segment) in events {
            if is_data {
                // A probe of a closed window has one byte.
                prop_assert!(segment.len == 1 || segment.end() <= acked + limit + 1, "beyond the window of the receiver");
            } else {
                acked = segment.ack.max(acked);
            }
        }
    }

    /// Without a queue no measured round trip is longer than that of the path and the receiver's delay, whatever is lost.
    #[test]
    fn no_repair_is_measured_as_a_round_trip(
        config in any_config(), lost in prop::collection::vec(prop::bool::weighted(0.2), 1..300), bytes in 0u64..150_000,
    ) {
        let config = Config { reading: None, ..config };
        let fate = |count: u64, segment: &Segment| {
            let is_lost = segment.len > 0 && lost.get(count as usize).copied().unwrap_or(false);
            if is_lost { Fate::IsLost } else { Fate::Passes }
        };
        let mut pair = Pair::transfer(&config, bytes, TEN_MS, fate);
        let longest = TEN_MS * 2 + config.delayed_ack_timeout_ps;
        for ms in 0..4_000 {
            pair.run(Time::ZERO + Span::from_ms(ms));
            prop_assert!(pair.sender.rtt().srtt().is_none_or(|srtt| srtt <= longest), "{:?}", pair.sender.rtt());
        }
    }

    /// Where data is lost and nothing is ever late or twice, every repair was needed.
    #[test]
    fn no_repair_of_a_loss_is_taken_for_needless(
        config in any_config(), lost in prop::collection::vec(prop::bool::weighted(0.2), 1..300), bytes in 0u64..150_000,
    ) {
        let fate = |count: u64, segment: &Segment| {
            let is_lost = segment.len > 0 && lost.get(count as usize).copied().unwrap_or(false);
            if is_lost { Fate::IsLost } else { Fate::Passes }
        };
        let mut pair = Pair::transfer(&config, bytes, TEN_MS, fate);
        pair.run(LONG);
        prop_assert_eq!(pair.sender.counters().spurious_recoveries, 0);
    }

    #[test]
    fn the_same_fates_give_the_same_segments(fates in prop::collection::vec(any_fate(), 1..200), config in any_config()) {
        let run = || {
            let fate = |count: u64, _: &Segment| fates.get(count as usize).copied().unwrap_or(Fate::Passes);
            let mut pair = Pair::transfer(&config, 100_000, TEN_MS, fate);
            pair.run(LONG);
            (pair.sent, pair.acks)
        };
        prop_assert_eq!(run(), run());
    }
}
