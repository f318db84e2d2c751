//! Coupled queues, against what RFC 9332 promises.

use proptest::prelude::*;
use weir_core::marking::Ecn;
use weir_core::queue::{Label, Limit};
use weir_core::spec::aqm::{Aqm, DualPi2, DualScheduler};
use weir_core::spec::{Marking, MarkingTime};
use weir_core::units::{Bytes, Span, Time};

use crate::aqm::{Coming, Fate, SIZE, TX, drop_times, fates, stream};

const DUAL: DualPi2 = DualPi2::RFC_9332;
const CLASSIC: Label = Label { flow: 1, ecn: Ecn::NotEct, class: 0, trims: false };
const MARKED: Label = Label { flow: 2, ecn: Ecn::Ect0, class: 0, trims: false };
const LOW: Label = Label { flow: 3, ecn: Ecn::Ect1, class: 0, trims: false };

/// Streams together, in order of arrival.
fn merged(streams: Vec<Vec<Coming>>) -> Vec<Coming> {
    let mut all: Vec<Coming> = streams.into_iter().flatten().collect();
    all.sort_by_key(|frame| frame.at);
    all
}

/// Of the frames with `label`, from the place `from` on: how many there are, and the shares that are marked and dropped.
fn shares(coming: &[Coming], fates: &[Fate], label: Label, from: usize) -> (f64, f64, f64) {
    let own: Vec<&Fate> =
        coming.iter().zip(fates).skip(from).filter(|(frame, _)| frame.label == label).map(|pair| pair.1).collect();
    let count = own.len() as f64;
    let marked = own.iter().filter(|fate| matches!(fate, Fate::Sent { marked: true, .. })).count() as f64;
    let dropped = own.iter().filter(|fate| matches!(fate, Fate::Dropped { .. })).count() as f64;
    (count, marked / count, dropped / count)
}

/// The mean wait of what was sent of the frames with `label`, from the place `from` on, in ms.
fn mean_wait_ms(coming: &[Coming], fates: &[Fate], label: Label, from: usize) -> f64 {
    let waits: Vec<f64> = coming
        .iter()
        .zip(fates)
        .skip(from)
        .filter(|(frame, _)| frame.label == label)
        .filter_map(|(frame, fate)| match fate {
            Fate::Sent { begin, .. } => Some((*begin - frame.at).as_secs_f64() * 1e3),
            Fate::Dropped { .. } => None,
        })
        .collect();
    waits.iter().sum::<f64>() / waits.len() as f64
}

#[test]
fn an_overload_of_the_classic_queue_settles_at_its_target_and_marks_the_other_with_twice_the_root_of_its_drops() {
    // 12 Mbit/s that do not listen, and a frame of L each 20 ms, 0.5 Mbit/s: a fifth of the first has no room.
    let classic = stream(150_000, Span::from_ps(833_333_333), CLASSIC);
    let coming = merged(vec![classic, stream(6_250, Span::from_ms(20), LOW)]);
    let fates = fates(Aqm::DualPi2(DUAL), Limit::UNLIMITED, &coming);
    let late = coming.len() / 2;
    let (_, _, dropped) = shares(&coming, &fates, CLASSIC, late);
    let (count, marked, lost) = shares(&coming, &fates, LOW, late);
    let needed = 1.0 - (10.0 - 0.5) / 12.0;
    // The sums of probabilities are exact to one frame; what is left is that the queue is as long at the end as before.
    assert!((dropped - needed).abs() < 0.002, "{dropped} dropped of {needed}");
    // The squares have the mean `dropped`: the mean of the roots is below its root by the variance of p', of a few per cent.
    let coupled = 2.0 * dropped.sqrt();
    assert!((marked / coupled - 1.0).abs() < 0.03, "{marked} of {count} marked, not {coupled}");
    assert!(lost == 0.0);
    let wait = mean_wait_ms(&coming, &fates, CLASSIC, late);
    assert!((wait - 15.0).abs() < 1.5, "{wait} ms");
    // A frame of L waits for the one in transmission, and each tenth for one more, which is the share of C.
    assert!(mean_wait_ms(&coming, &fates, LOW, late) <= 1.0 + 1.0 / 9.0 + 1e-9);
}

#[test]
fn capable_frames_of_the_classic_queue_are_marked_up_to_a_quarter_and_dropped_above() {
    // 1/9 of 11.25 Mbit/s is too much, and marks take nothing away: the probability grows until it drops.
    let coming = stream(60_000, Span::from_ps(888_888_888), MARKED);
    let fates = fates(Aqm::DualPi2(DUAL), Limit::UNLIMITED, &coming);
    let first = fates.iter().position(|fate| matches!(fate, Fate::Dropped { .. })).expect("it grows");
    let (_, marked, dropped) = shares(&coming[..first], &fates[..first], MARKED, 0);
    assert!(marked > 0.02 && dropped == 0.0);
    let (_, _, late) = shares(&coming, &fates, MARKED, 30_000);
    assert!((late - 1.0 / 9.0).abs() < 0.005, "{late}");
}

#[test]
fn a_flow_of_the_low_queue_that_does_not_listen_is_dropped_as_those_of_the_classic_are() {
    // Half as much again as there is room for: p_C = 1/3, k p' = 1.15.
    let coming = stream(90_000, Span::from_ps(666_666_666), LOW);
    let fates = fates(Aqm::DualPi2(DUAL), Limit::UNLIMITED, &coming);
    let (_, marked, dropped) = shares(&coming, &fates, LOW, 45_000);
    assert!((dropped - 1.0 / 3.0).abs() < 0.005, "{dropped}");
    assert!((marked + dropped - 1.0).abs() < 1e-3, "what is not dropped is marked: {marked}");
    assert!((mean_wait_ms(&coming, &fates, LOW, 45_000) - 15.0).abs() < 1.5);
}

#[test]
fn the_low_queue_marks_by_a_ramp_over_the_wait_of_each_frame() {
    // Three frames at once, each 10 ms: they wait for 0, 1 and 2 ms. Behind the second one stays, the last is alone.
    let burst = |i: u64| Coming { at: Time::ZERO + Span::from_ms(10) * (i / 3), size: SIZE, label: LOW };
    let coming: Vec<Coming> = (0..3_000).map(burst).collect();
    let marks = |ramp_frames: u64| {
        let fates = fates(Aqm::DualPi2(DualPi2 { ramp_frames, ..DUAL }), Limit::UNLIMITED, &coming);
        let share = |place: usize| {
            let marked = |fate: &&Fate| matches!(fate, Fate::Sent { marked: true, .. });
            fates.iter().skip(place).step_by(3).filter(marked).count()
        };
        [share(0), share(1), share(2)]
    };
    // With one frame that may be left: after the second is taken, one is left. Without: 1 ms is in the middle of the ramp.
    assert_eq!(marks(1), [0, 0, 0]);
    let [first, second, third] = marks(0);
    assert!(first == 0 && third == 0 && second.abs_diff(500) <= 1, "{second} of 1000");
}

#[test]
fn the_classic_queue_has_its_share_of_a_link_that_the_low_one_would_fill() {
    for classic in [0.1, 0.25] {
        let aqm = DualPi2 { scheduler: DualScheduler::Wrr { classic }, alpha: 0.0, beta: 0.0, ..DUAL };
        let coming = merged(vec![stream(4_000, TX, LOW), stream(4_000, TX, CLASSIC)]);
        let fates = fates(Aqm::DualPi2(aqm), Limit::UNLIMITED, &coming);
        let until = Time::ZERO + Span::from_ms(4_000);
        let sent = coming
            .iter()
            .zip(&fates)
            .filter(|(frame, fate)| {
                frame.label == CLASSIC && matches!(fate, Fate::Sent { begin, .. } if *begin < until)
            })
            .count() as f64;
        assert!((sent - classic * 4_000.0).abs() <= 1.0, "{sent} of 4000 with a share of {classic}");
    }
}

#[test]
fn a_time_shifted_fifo_serves_in_the_order_of_arrival_with_one_queue_later_by_the_shift() {
    let shift_ps = Span::from_ps(20_500_000_000);
    let aqm = DualPi2 { scheduler: DualScheduler::TimeShiftedFifo { shift_ps }, alpha: 0.0, beta: 0.0, ..DUAL };
    let low = stream(200, Span::from_us(1_500), LOW);
    let coming = merged(vec![low, stream(200, Span::from_us(1_700), CLASSIC)]);
    let fates = fates(Aqm::DualPi2(aqm), Limit::UNLIMITED, &coming);
    let mut order: Vec<(Time, Time, Label)> = coming
        .iter()
        .zip(&fates)
        .map(|(frame, fate)| match fate {
            Fate::Sent { begin, .. } => (*begin, frame.at, frame.label),
            Fate::Dropped { .. } => panic!("nothing is dropped"),
        })
        .collect();
    order.sort_by_key(|row| row.0);
    let due = |(_, at, label): &(Time, Time, Label)| if *label == LOW { *at } else { *at + shift_ps };
    for (place, served) in order.iter().enumerate() {
        // Whoever was served later, though it was due before, had not come yet.
        let earlier = order[place + 1..].iter().filter(|other| due(other) < due(served) && other.1 < served.0);
        assert_eq!(earlier.count(), 0, "{served:?}");
    }
}

#[test]
fn a_threshold_marks_what_finds_more_waiting_than_it_says() {
    // 50 frames at once: the first begins, the n-th finds n - 1 that wait, itself among them. When the n-th of 40 leaves, 40 - n still wait.
    let coming: Vec<Coming> = (0..50).map(|_| Coming { at: Time::ZERO, size: SIZE, label: LOW }).collect();
    let (k_min_bytes, k_max_bytes) = (SIZE * 20, SIZE * 20);
    for (when, expected) in [(MarkingTime::Arrival, 21..=40), (MarkingTime::Departure, 1..=19)] {
        let aqm = Aqm::Threshold(Marking { k_min_bytes, k_max_bytes, p_max: 1.0, when });
        for (place, fate) in fates(aqm, Limit::frames(40), &coming).iter().enumerate() {
            match fate {
                Fate::Sent { marked, .. } => assert_eq!(*marked, expected.contains(&place), "{place}"),
                Fate::Dropped { early, .. } => assert!(!early && place > 40, "{place}"),
            }
        }
    }
}

proptest! {
    #[test]
    fn each_frame_of_two_queues_has_one_fate_and_only_capable_ones_are_marked(
        frames in prop::collection::vec((0_u64..1200, 60_u64..1500, 0_u8..4), 1..600),
        limit in prop_oneof![Just(Limit::UNLIMITED), (0_u64..60).prop_map(Limit::frames)],
        classic in 0.01_f64..0.99,
        shift in prop::option::of(0_u64..100_000),
        impatience in 1.0_f64..500.0,
    ) {
        let scheduler = match shift {
            Some(us) => DualScheduler::TimeShiftedFifo { shift_ps: Span::from_us(us) },
            None => DualScheduler::Wrr { classic },
        };
        let aqm = DualPi2 { scheduler, alpha: 0.15 * impatience, beta: 3.0 * impatience, ..DUAL };
        let mut now = Time::ZERO;
        let coming: Vec<Coming> = frames.into_iter().map(|(gap, size, bits)| {
            now += Span::from_us(gap);
            let label = Label { flow: bits.into(), ecn: Ecn::from_bits(bits), class: 0, trims: false };
            Coming { at: now, size: Bytes::new(size), label }
        }).collect();
        // `fates` asserts that each frame has one fate, and what the port counts.
        let fates = fates(Aqm::DualPi2(aqm), limit, &coming);
        let first_drop = drop_times(&fates).first().copied();
        for (fate, coming) in fates.iter().zip(&coming) {
            match fate {
                Fate::Sent { marked, .. } => prop_assert!(!marked || coming.label.ecn.is_capable()),
                Fate::Dropped { early, .. } => prop_assert!(*early || limit != Limit::UNLIMITED),
            }
        }
        // Nothing is dropped before the controller has looked once.
        let too_soon = |at: Time| limit == Limit::UNLIMITED && at < Time::ZERO + DUAL.update_ps;
        prop_assert!(first_drop.is_none_or(|at| !too_soon(at)));
        // Each queue is first in, first out.
        for is_low in [false, true] {
            let begins: Vec<Time> = fates.iter().zip(&coming).filter(|(_, coming)| coming.label.ecn.is_l4s() == is_low).filter_map(|(fate, _)| match fate {
                Fate::Sent { begin, .. } => Some(*begin),
                Fate::Dropped { .. } => None,
            }).collect();
            prop_assert!(begins.is_sorted());
        }
    }
}
