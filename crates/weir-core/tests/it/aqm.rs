//! Queues that drop before they are full, against what the RFCs promise.

use proptest::prelude::*;
use weir_core::marking::Ecn;
use weir_core::queue::{Discarded, Label, Labeled, Lane, Limit, Managements, Offer, Port};
use weir_core::rng::Seed;
use weir_core::spec::aqm::{Aqm, Codel, FqCodel, Pie};
use weir_core::units::{Bytes, Rate, Span, Time};

/// 1250 B at 10 Mbit/s.
pub(crate) const TX: Span = Span::from_ms(1);
pub(crate) const SIZE: Bytes = Bytes::new(1250);
const CODEL: Codel = Codel::RFC_8289;
const PIE: Pie = Pie::RFC_8033;
const FQ: FqCodel = FqCodel::RFC_8290;

/// A frame that comes: when, whose, and whether it may be marked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub(crate) at: Time,
    pub(crate) size: Bytes,
    pub(crate) label: Label,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    Sent { begin: Time, marked: bool },
    Dropped { at: Time, early: bool },
}

/// What becomes of all frames at a port of 10 Mbit/s.
pub(crate) fn fates(aqm: Aqm, limit: Limit, coming: &[Coming]) -> Vec<Fate> {
    let mut port: Port<usize> = Port::new(Rate::from_bps(10_000_000), Bytes::ZERO, limit).managed(
        &aqm,
        Seed::new(3).stream("queue"),
        &Managements::new(),
    );
    let mut fates = vec![None; coming.len()];
    let mut note = |place: usize, fate: Fate| assert!(fates[place].replace(fate).is_none(), "{place} twice");
    let (mut next, mut queued_bytes, mut settled) = (0, 0_u128, Time::ZERO);
    let mut inside: i64 = 0;
    let mut level = 0_u128;
    while next < coming.len() || port.due() != Time::NEVER {
        let arrives = coming.get(next).map_or(Time::NEVER, |coming| coming.at);
        let now = port.due().min(arrives);
        queued_bytes += level * u128::from((now - settled).ps());
        settled = now;
        if port.due() <= arrives {
            if let Some(sent) = port.wake(now) {
                inside -= 1;
                note(sent.handle, Fate::Sent { begin: now, marked: sent.marked });
            }
        } else {
            let Coming { size, label, .. } = coming[next];
            inside += 1;
            let Labeled { became, marked } = port.offer_labeled(now, next, size, Lane::Data, label);
            if let Offer::Sent { .. } = became {
                inside -= 1;
                note(next, Fate::Sent { begin: now, marked });
            }
            next += 1;
        }
        while let Some(Discarded { handle, early }) = port.take_discarded() {
            inside -= 1;
            note(handle, Fate::Dropped { at: now, early });
        }
        assert_eq!(port.waiting_frames() as i64, inside);
        assert_eq!(port.waiting().count() as i64, inside);
        level = u128::from(port.waiting_bytes().count());
    }
    let drops = fates.iter().filter(|fate| matches!(fate, Some(Fate::Dropped { .. }))).count() as u64;
    let counters = port.counters_at(settled);
    assert_eq!((counters.drops, counters.frames), (drops, coming.len() as u64 - drops));
    assert_eq!(counters.queue_byte_ps, queued_bytes);
    fates.into_iter().map(|fate| fate.expect("all have left")).collect()
}

/// `count` frames of one flow, one each `gap`.
pub(crate) fn stream(count: u64, gap: Span, label: Label) -> Vec<Coming> {
    (0..count).map(|i| Coming { at: Time::ZERO + gap * i, size: SIZE, label }).collect()
}

pub(crate) fn drop_times(fates: &[Fate]) -> Vec<Time> {
    fates.iter().filter_map(|fate| if let Fate::Dropped { at, .. } = fate { Some(*at) } else { None }).collect()
}

#[test]
fn codel_drops_in_steps_that_shrink_with_the_square_root_of_their_number() {
    // A frame each 0.8 ms, of which one leaves each ms: the wait of the n-th frame to leave is 0.2 n ms.
    let fates = fates(Aqm::Codel(CODEL), Limit::UNLIMITED, &stream(2000, Span::from_us(800), Label::default()));
    let drops = drop_times(&fates);
    // Frame 25 has waited 5 ms when it leaves at 25 ms: the first drop comes at the first departure from 125 ms on.
    assert_eq!(drops[0], Time::ZERO + Span::from_ms(125));
    let mut due = drops[0];
    for (n, &at) in (1_u32..).zip(&drops[1..20]) {
        due += Span::from_ps((1e11 / f64::from(n).sqrt()) as u64);
        assert!(at >= due && at < due + TX, "drop {n} at {at}, due {due}");
    }
}

#[test]
fn codel_never_drops_what_leaves_one_frame_behind() {
    // Frames of 12 500 B take 10 ms, twice the target, and one more always waits.
    let large = Bytes::new(12_500);
    let frame = |at: u64| Coming { at: Time::ZERO + Span::from_ms(at), size: large, label: Label::default() };
    let mut coming: Vec<Coming> = (0..500).map(|i| frame(10 * i)).collect();
    coming.splice(0..0, [frame(0), frame(0)]);
    assert_eq!(drop_times(&fates(Aqm::Codel(CODEL), Limit::UNLIMITED, &coming)).len(), 0);
    // With a target that one frame more exceeds, the same arrivals lose some.
    coming.insert(0, frame(0));
    assert_ne!(drop_times(&fates(Aqm::Codel(CODEL), Limit::UNLIMITED, &coming)).len(), 0);
}

#[test]
fn ecn_capable_frames_are_marked_where_others_are_dropped() {
    let capable = Label { flow: 0, ecn: Ecn::Ect0, class: 0, trims: false };
    for aqm in [Aqm::Codel(Codel { ecn: true, ..CODEL }), Aqm::FqCodel(FqCodel { ecn: true, ..FQ })] {
        let marked = fates(aqm.clone(), Limit::UNLIMITED, &stream(2000, Span::from_us(800), capable));
        let marks: Vec<Time> = marked
            .iter()
            .filter_map(|fate| if let Fate::Sent { begin, marked: true } = fate { Some(*begin) } else { None })
            .collect();
        assert_eq!(drop_times(&marked), []);
        assert_eq!(marks[0], Time::ZERO + Span::from_ms(125));
        assert!(marks.len() > 100, "{} marks", marks.len());
        let dropped = fates(aqm, Limit::UNLIMITED, &stream(2000, Span::from_us(800), Label::default()));
        assert_eq!(drop_times(&dropped)[0], marks[0]);
        assert!(!dropped.iter().any(|fate| matches!(fate, Fate::Sent { marked: true, .. })));
    }
}

#[test]
fn pie_settles_at_the_probability_that_an_overload_needs_and_at_its_target() {
    // Of 12.5 Mbit/s a fifth is too much.
    let fates = fates(Aqm::Pie(PIE), Limit::UNLIMITED, &stream(100_000, Span::from_us(800), Label::default()));
    let first = drop_times(&fates)[0];
    assert!(first - Time::ZERO > PIE.max_burst_ps, "a burst is forgiven: first drop at {first}");
    let late = &fates[50_000..];
    let share = drop_times(late).len() as f64 / late.len() as f64;
    assert!((share - 0.2).abs() < 0.002, "{share} of the frames dropped");
    let waits: Vec<f64> = (50_000_u64..)
        .zip(late)
        .filter_map(|(i, fate)| match fate {
            Fate::Sent { begin, .. } => Some((*begin - (Time::ZERO + Span::from_us(800) * i)).as_secs_f64() * 1e3),
            Fate::Dropped { .. } => None,
        })
        .collect();
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!((mean - 15.0).abs() < 1.5, "a mean wait of {mean} ms");
}

#[test]
fn pie_marks_only_while_it_drops_few() {
    let capable = Label { flow: 0, ecn: Ecn::Ect0, class: 0, trims: false };
    let aqm = Aqm::Pie(Pie { ecn: true, ..PIE });
    // Five per cent too much: marks would be enough for a sender that heeds them; this one does not.
    let all = fates(aqm, Limit::UNLIMITED, &stream(60_000, Span::from_us(950), capable));
    let marks = all.iter().filter(|fate| matches!(fate, Fate::Sent { marked: true, .. })).count();
    assert!(marks > 100);
    assert!(!drop_times(&all).is_empty(), "whoever ignores marks is dropped in the end");
    let first_drop = all.iter().position(|fate| matches!(fate, Fate::Dropped { .. }));
    let first_mark = all.iter().position(|fate| matches!(fate, Fate::Sent { marked: true, .. }));
    assert!(first_mark < first_drop);
}

#[test]
fn fq_codel_shares_alike_and_lets_a_sparse_flow_pass() {
    // Flow 1 sends twice the rate, flow 2 half of it, flow 3 a small frame each 100 ms.
    let mut coming = stream(8000, Span::from_us(500), Label { flow: 1, ecn: Ecn::NotEct, class: 0, trims: false });
    coming.extend(stream(2500, Span::from_us(1600), Label { flow: 2, ecn: Ecn::NotEct, class: 0, trims: false }));
    let sparse = stream(40, Span::from_ms(100), Label { flow: 3, ecn: Ecn::NotEct, class: 0, trims: false });
    let later = Span::from_ms(50);
    coming.extend(sparse.iter().map(|frame| Coming { at: frame.at + later, size: Bytes::new(100), ..*frame }));
    coming.sort_by_key(|frame| frame.at);
    let fates = fates(Aqm::FqCodel(FQ), Limit::frames(1000), &coming);
    let of_flow = |flow: u64| coming.iter().zip(&fates).filter(move |(coming, _)| coming.label.flow == flow);
    let until = Time::ZERO + Span::from_ms(4000);
    let sent = |flow: u64| {
        of_flow(flow).filter(|(_, fate)| matches!(fate, Fate::Sent { begin, .. } if *begin < until)).count() as f64
    };
    assert!((sent(1) / sent(2) - 1.0).abs() < 0.02, "{} and {} frames", sent(1), sent(2));
    for (coming, fate) in of_flow(3) {
        let Fate::Sent { begin, .. } = fate else { panic!("a sparse flow loses nothing") };
        // It is new whenever it comes: it waits for the frame in transmission alone.
        assert!(*begin - coming.at <= TX, "waited {}", *begin - coming.at);
    }
}

#[test]
fn fq_codel_takes_room_from_the_longest_queue() {
    let mut coming = stream(60, Span::from_us(10), Label { flow: 1, ecn: Ecn::NotEct, class: 0, trims: false });
    coming.extend(stream(5, Span::from_us(100), Label { flow: 2, ecn: Ecn::NotEct, class: 0, trims: false }));
    coming.sort_by_key(|frame| frame.at);
    let fates = fates(Aqm::FqCodel(FQ), Limit::frames(20), &coming);
    for (coming, fate) in coming.iter().zip(&fates) {
        match fate {
            Fate::Dropped { early, .. } => assert!(!early && coming.label.flow == 1, "{coming:?} {fate:?}"),
            Fate::Sent { .. } => {}
        }
    }
    assert!(drop_times(&fates).len() >= 39);
}

fn any_aqm() -> impl Strategy<Value = Aqm> {
    any::<bool>().prop_flat_map(|ecn| {
        prop_oneof![
            Just(Aqm::Codel(Codel { ecn, ..CODEL })),
            Just(Aqm::FqCodel(FqCodel { ecn, ..FQ })),
            Just(Aqm::FqCodel(FqCodel { ecn, queues: 1, ..FQ })),
            Just(Aqm::Pie(Pie { ecn, ..PIE })),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_happens_to_frames_while_all_wait_less_than_half_of_the_target(aqm in any_aqm(), gaps in prop::collection::vec(0_u64..2400, 1..400)) {
        // Whoever would find more than two frames waiting comes later, so that the wait stays below 2.5 ms.
        let (mut now, mut free) = (Time::ZERO, Time::ZERO);
        let mut coming = Vec::new();
        for gap in gaps {
            now += Span::from_us(gap);
            let latest = Time::from_ps(free.ps().saturating_sub(1_400_000_000));
            now = now.max(latest);
            free = free.max(now) + TX;
            coming.push(Coming { at: now, size: SIZE, label: Label { flow: gap % 3, ecn: Ecn::from_bits(gap as u8), class: 0, trims: false } });
        }
        for (fate, frame) in fates(aqm, Limit::UNLIMITED, &coming).iter().zip(&coming) {
            let Fate::Sent { begin, marked: false } = fate else { panic!("{fate:?} of {frame:?}") };
            prop_assert!(*begin >= frame.at);
        }
    }

    #[test]
    fn each_frame_has_one_fate_and_none_is_dropped_early_before_an_interval_has_passed(
        aqm in any_aqm(),
        frames in prop::collection::vec((0_u64..1200, 60_u64..1500, 0_u64..6), 1..600),
        limit in prop_oneof![Just(Limit::UNLIMITED), (0_u64..60).prop_map(Limit::frames), (0_u64..60_000).prop_map(|most| Limit::bytes(Bytes::new(most)))],
    ) {
        let mut now = Time::ZERO;
        let coming: Vec<Coming> = frames.into_iter().map(|(gap, size, flow)| {
            now += Span::from_us(gap);
            Coming { at: now, size: Bytes::new(size), label: Label { flow, ecn: Ecn::from_bits(flow as u8), class: 0, trims: false } }
        }).collect();
        // `fates` asserts that each frame has one fate, and what the port counts.
        let fates = fates(aqm.clone(), limit, &coming);
        let patience = if matches!(aqm, Aqm::Pie(_)) { PIE.max_burst_ps } else { CODEL.interval_ps };
        for (fate, coming) in fates.iter().zip(&coming) {
            match fate {
                Fate::Dropped { at, early } => {
                    prop_assert!(limit != Limit::UNLIMITED || *early);
                    prop_assert!(!early || *at > Time::ZERO + patience);
                }
                Fate::Sent { marked, begin } => {
                    prop_assert!(!marked || coming.label.ecn.is_capable() && *begin > Time::ZERO + patience);
                }
            }
        }
    }
}
