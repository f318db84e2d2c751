//! Laws of a path's direction.

use proptest::prelude::*;
use weir_core::marking::Ecn;
use weir_core::path::spec::{CrossSpec, DelaySteps, JitterSpec, RateSpec, ReorderSpec};
use weir_core::path::{Arrived, Departure, Line, LineSpec, LossModel, replay};
use weir_core::queue::Label;
use weir_core::rng::Seed;
use weir_core::spec::aqm::{Aqm, Codel, DualPi2, DualScheduler, FqCodel, Pie};
use weir_core::spec::{Departures, FrameSize, Limit, Marking, MarkingTime};
use weir_core::units::{Bytes, Rate, Span, Time};

const SEED: Seed = Seed::new(5);

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn flow(flow: u64) -> Label {
    Label { flow, ecn: Ecn::NotEct, class: 0, trims: false }
}

fn constant(mbps: u64) -> RateSpec {
    RateSpec::Constant { rate_bps: Rate::from_bps(mbps * 1_000_000) }
}

fn steps(list: &[(u64, u64)], period_us: Option<u64>) -> RateSpec {
    RateSpec::Steps {
        steps: list.iter().map(|&(us, mbps)| (at(us), Rate::from_bps(mbps * 1_000_000))).collect(),
        period_ps: period_us.map(Span::from_us),
    }
}

/// `count` frames of 1250 bytes (10 000 bits), `gap_us` apart, all of one flow.
fn frames(count: u64, gap_us: u64) -> Vec<Arrived> {
    (0..count).map(|i| Arrived { at: at(i * gap_us), size: Bytes::new(1250), label: Label::default() }).collect()
}

fn departures(spec: &LineSpec, arrivals: &[Arrived]) -> Vec<(u64, Time)> {
    spec.check().expect("a legal line");
    replay(spec, SEED, "test", arrivals, at(1_000_000_000)).departures
}

fn any_line() -> impl Strategy<Value = LineSpec> {
    let loss = prop_oneof![
        Just(LossModel::None),
        (0.0..0.5).prop_map(|probability| LossModel::Random { probability }),
        (0.01..0.5, 0.01..0.9).prop_map(|(to_bad, to_good)| LossModel::GilbertElliott {
            to_bad,
            to_good,
            loss_good: 0.01,
            loss_bad: 0.8
        }),
    ];
    let rate = prop_oneof![
        Just(RateSpec::Unlimited),
        (1_u64..1000).prop_map(constant),
        (0_u64..20, 1_u64..200, 1_u64..3000).prop_map(|(low, high, us)| steps(&[(0, high), (us, low)], Some(us + 700))),
    ];
    let jitter = prop_oneof![
        Just(JitterSpec::None),
        (0_u64..3000, any::<bool>())
            .prop_map(|(us, keeps_order)| JitterSpec::Uniform { most_ps: Span::from_us(us), keeps_order }),
        (0_u64..3000, any::<bool>())
            .prop_map(|(us, keeps_order)| JitterSpec::Exponential { mean_ps: Span::from_us(us), keeps_order }),
    ];
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (0_u64..30_000).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
        (0_u64..20).prop_map(Limit::Frames),
    ];
    let reorder = prop::option::of(
        (0.0..0.4, 0_u64..5000).prop_map(|(probability, us)| ReorderSpec { probability, later_ps: Span::from_us(us) }),
    );
    let delays =
        prop_oneof![Just(DelaySteps::default()), (1_u64..900, 0_u64..3000, any::<bool>()).prop_map(any_delays)];
    let more = (any::<bool>(), any_aqm(), delays);
    let parts = (loss, 0.0..0.3, rate, 1_u32..4, limit, 0_u64..3000, jitter, reorder, more);
    parts.prop_map(|(loss, duplicate, rate, lanes, limit, delay_us, jitter, reorder, (crossed, aqm, delays))| {
        let aqm = if rate == RateSpec::Unlimited { None } else { aqm };
        let cross = CrossSpec {
            departures: Departures::Poisson { mean_gap_ps: 3e8 },
            frame_size: FrameSize::Fixed(Bytes::new(700)),
            lane: 0,
        };
        let cross = if crossed && rate != RateSpec::Unlimited { vec![cross] } else { Vec::new() };
        LineSpec {
            loss,
            duplicate,
            rate,
            lanes,
            framing_bytes: Bytes::ZERO,
            limit,
            aqm,
            cross,
            delay_ps: Span::from_us(delay_us),
            delays,
            jitter,
            reorder,
        }
    })
}

/// One change, once or in each millisecond.
fn any_delays((at_us, delay_us, repeats): (u64, u64, bool)) -> DelaySteps {
    DelaySteps { steps: vec![(at(at_us), Span::from_us(delay_us))], period_ps: repeats.then_some(Span::from_us(1000)) }
}

/// Managements so impatient that a hundred frames make them act.
fn any_aqm() -> impl Strategy<Value = Option<Aqm>> {
    let (target_ps, interval_ps) = (Span::from_us(400), Span::from_us(900));
    let codel = any::<bool>().prop_map(move |ecn| Some(Aqm::Codel(Codel { target_ps, interval_ps, ecn })));
    let fq = (any::<bool>(), 1_u32..5).prop_map(move |(ecn, queues)| {
        let quantum_bytes = Bytes::new(1514);
        Some(Aqm::FqCodel(FqCodel { target_ps, interval_ps, ecn, queues, quantum_bytes }))
    });
    let pie = (any::<bool>(), 0_u64..2000).prop_map(move |(ecn, burst)| {
        let (update_ps, max_burst_ps) = (Span::from_us(200), Span::from_us(burst));
        Some(Aqm::Pie(Pie { target_ps, update_ps, max_burst_ps, alpha: 300.0, beta: 3000.0, ecn }))
    });
    let threshold = (0_u64..20_000, 0_u64..20_000, any::<bool>()).prop_map(|(k_min, range, departs)| {
        let when = if departs { MarkingTime::Departure } else { MarkingTime::Arrival };
        let (k_min_bytes, k_max_bytes) = (Bytes::new(k_min), Bytes::new(k_min + range));
        Some(Aqm::Threshold(Marking { k_min_bytes, k_max_bytes, p_max: 0.5, when }))
    });
    let dual = any::<bool>().prop_map(move |wrr| {
        Some(Aqm::DualPi2(DualPi2 {
            target_ps,
            update_ps: Span::from_us(200),
            alpha: 300.0,
            beta: 3000.0,
            coupling: 2.0,
            ramp_start_ps: Span::from_us(100),
            ramp_range_ps: Span::from_us(50),
            ramp_frames: 1,
            scheduler: if wrr {
                DualScheduler::Wrr { classic: 0.2 }
            } else {
                DualScheduler::TimeShiftedFifo { shift_ps: Span::from_us(800) }
            },
        }))
    });
    prop_oneof![Just(None), codel, fq, pie, threshold, dual]
}

fn any_arrivals() -> impl Strategy<Value = Vec<Arrived>> {
    prop::collection::vec((0_u64..400, 40_u64..1500, 0_u64..5), 1..80).prop_map(|list| {
        let mut now = 0;
        let step = |(gap, size, flow): (u64, u64, u64)| {
            now += gap;
            let label = Label { flow, ecn: Ecn::from_bits(flow as u8), class: 0, trims: false };
            Arrived { at: at(now), size: Bytes::new(size), label }
        };
        list.into_iter().map(step).collect()
    })
}

proptest! {
    #[test]
    fn every_frame_leaves_is_lost_dropped_or_still_inside(spec in any_line(), arrivals in any_arrivals(), until in 0_u64..50_000) {
        let mut line = Line::new(&spec, SEED, "test");
        let end = arrivals.last().map_or(at(until), |last| last.at.max(at(until)));
        let (mut kept, mut gone) = (0, 0);
        for arrived in &arrivals {
            let arrival = line.arrive(arrived.at, (), arrived.size, arrived.label);
            kept += u64::from(arrival.kept);
            gone += u64::from(arrival.lost + arrival.dropped);
        }
        let left = std::iter::from_fn(|| line.leave(end)).count() as u64;
        let discarded = std::iter::from_fn(|| line.take_dropped()).count() as u64;
        let counters = line.counters();
        prop_assert_eq!(counters.arrived, arrivals.len() as u64);
        prop_assert_eq!(counters.arrived + counters.duplicated, kept + gone);
        prop_assert_eq!(counters.lost + counters.dropped + counters.dropped_early, gone + discarded);
        prop_assert_eq!(counters.left, left);
        prop_assert_eq!(kept, left + discarded + line.inside());
        prop_assert!(counters.marked <= kept - discarded);
    }

    #[test]
    fn it_does_not_matter_how_late_a_line_is_asked(spec in any_line(), arrivals in any_arrivals(), lateness in prop::collection::vec(0_u64..2000, 80)) {
        let end = at(100_000_000);
        let reported = replay(&spec, SEED, "test", &arrivals, end);
        let mut line = Line::new(&spec, SEED, "test");
        let (mut departures, mut now) = (Vec::new(), Time::ZERO);
        for ((place, arrived), late) in (0..).zip(&arrivals).zip(lateness) {
            // Between two arrivals the caller wakes when it is asked to, or late, or not at all.
            while line.due() < arrived.at {
                let asked = line.due().max(now) + Span::from_us(late);
                if asked >= arrived.at {
                    break;
                }
                now = asked;
                departures.extend(std::iter::from_fn(|| line.leave(now)));
            }
            now = arrived.at;
            line.arrive(now, place, arrived.size, arrived.label);
        }
        departures.extend(std::iter::from_fn(|| line.leave(end)));
        let departures: Vec<(u64, Time)> = departures.into_iter().map(|Departure { handle, at, .. }| (handle, at)).collect();
        prop_assert_eq!(departures, reported.departures);
        if spec.aqm.is_some() {
            let dropped: Vec<u64> = std::iter::from_fn(|| line.take_dropped()).map(|dropped| dropped.handle).collect();
            prop_assert_eq!(dropped, reported.dropped);
        }
    }

    #[test]
    fn no_frame_leaves_before_a_line_says_that_one_is_due(spec in any_line(), arrivals in any_arrivals()) {
        let mut line = Line::new(&spec, SEED, "test");
        for (i, arrived) in arrivals.iter().enumerate() {
            line.arrive(arrived.at, (), arrived.size, arrived.label);
            let next = arrivals.get(i + 1).map_or(at(10_000_000), |next| next.at);
            while line.due() <= next {
                let due = line.due();
                let left = line.leave(due);
                prop_assert!(left.is_none_or(|left| left.at == due), "{left:?} at {due:?}");
            }
        }
    }

    #[test]
    fn frames_that_keep_their_order_leave_in_it(arrivals in any_arrivals(), most_us in 0_u64..5000) {
        let jitter = JitterSpec::Uniform { most_ps: Span::from_us(most_us), keeps_order: true };
        let spec = LineSpec { rate: constant(50), jitter, ..LineSpec::transparent() };
        let left = departures(&spec, &arrivals);
        prop_assert!(left.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    }

    #[test]
    fn a_full_line_transmits_the_integral_of_its_rate(low in 1_u64..50, high in 50_u64..200, cut in 100_u64..900) {
        // 400 frames of 10 000 bits at once: 4 Mbit.
        let spec = LineSpec { rate: steps(&[(0, high), (cut, low)], Some(1000)), ..LineSpec::transparent() };
        let left = departures(&spec, &frames(400, 0));
        for (count, (_, end)) in (1..).zip(left) {
            let us = end.ps() as f64 / 1e6;
            let (rounds, rest) = ((us / 1000.0).floor(), us % 1000.0);
            let (high, low, cut) = (high as f64, low as f64, cut as f64);
            let bits = rounds * (high * cut + low * (1000.0 - cut)) + high * rest.min(cut) + low * (rest - cut).max(0.0);
            prop_assert!((bits - f64::from(count) * 10_000.0).abs() < 1.0, "{bits} bits in {count} frames");
        }
    }
}

#[test]
fn a_lone_frame_takes_its_transmission_and_the_delay() {
    let spec = LineSpec { rate: constant(10), delay_ps: Span::from_ms(80), ..LineSpec::transparent() };
    assert_eq!(departures(&spec, &frames(2, 5_000)), [(0, at(81_000)), (1, at(86_000))]);
}

#[test]
fn a_line_without_rate_only_delays() {
    let spec = LineSpec { delay_ps: Span::from_ms(8), ..LineSpec::transparent() };
    assert_eq!(departures(&spec, &frames(3, 0)), [(0, at(8_000)), (1, at(8_000)), (2, at(8_000))]);
}

#[test]
fn a_frame_has_the_delay_of_the_time_at_which_it_leaves_its_transmitter() {
    let delays = DelaySteps {
        steps: vec![(at(2_500), Span::from_us(500)), (at(4_500), Span::from_us(2_000))],
        period_ps: Some(Span::from_us(6_000)),
    };
    let spec = LineSpec { rate: constant(10), delay_ps: Span::from_us(8_000), delays, ..LineSpec::transparent() };
    let ends: Vec<u64> = departures(&spec, &frames(7, 0)).iter().map(|(_, end)| end.ps() / 1_000_000).collect();
    // They leave the transmitter after 1, 2, ... 7 ms; their delays are 8, 8, 0.5, 0.5, 2, 2 (transmissions end before
    // delays change) and 8 ms; who comes later waits for those before it.
    assert_eq!(ends, [9_000, 10_000, 10_000, 10_000, 10_000, 10_000, 15_000]);
}

#[test]
fn where_jitter_keeps_no_order_a_shorter_delay_overtakes() {
    let delays = DelaySteps { steps: vec![(at(1_500), Span::from_us(500))], period_ps: None };
    let jitter = JitterSpec::Uniform { most_ps: Span::ZERO, keeps_order: false };
    let delay_ps = Span::from_us(8_000);
    let spec = LineSpec { rate: constant(10), delay_ps, delays, jitter, ..LineSpec::transparent() };
    assert_eq!(departures(&spec, &frames(2, 0)), [(1, at(2_500)), (0, at(9_000))]);
}

#[test]
fn what_waits_is_limited_and_what_is_transmitted_does_not_count() {
    let spec = LineSpec { rate: constant(10), limit: Limit::Bytes(Bytes::new(2500)), ..LineSpec::transparent() };
    let reported = replay(&spec, SEED, "test", &frames(5, 0), at(1_000_000));
    assert_eq!(reported.departures, [(0, at(1000)), (1, at(2000)), (2, at(3000))]);
    assert_eq!(reported.dropped, [3, 4]);
}

#[test]
fn an_outage_holds_frames_and_loses_none() {
    let spec = LineSpec { rate: steps(&[(0, 10), (1500, 0), (5500, 10)], None), ..LineSpec::transparent() };
    let left = departures(&spec, &frames(3, 0));
    // At 1.5 ms half of the second frame is through; the outage lasts 4 ms, in which a rate of 1 bit/s does nothing.
    let ends: Vec<u64> = left.iter().map(|(_, end)| (end.ps() + 500_000) / 1_000_000).collect();
    assert_eq!(ends, [1000, 6000, 7000]);
}

#[test]
fn a_duplicated_frame_takes_its_place_twice() {
    let spec = LineSpec { rate: constant(10), duplicate: 1.0, ..LineSpec::transparent() };
    assert_eq!(departures(&spec, &frames(2, 0)), [(0, at(1000)), (0, at(2000)), (1, at(3000)), (1, at(4000))]);
}

#[test]
fn a_late_frame_is_overtaken_and_holds_up_nobody() {
    let reorder = Some(ReorderSpec { probability: 0.3, later_ps: Span::from_us(2_500) });
    let spec = LineSpec { rate: constant(10), reorder, ..LineSpec::transparent() };
    let left = departures(&spec, &frames(1000, 0));
    let late = left.iter().filter(|(place, end)| *end > at((place + 1) * 1000)).count();
    assert!(left.iter().all(|&(place, end)| end == at((place + 1) * 1000) || end == at((place + 1) * 1000 + 2_500)));
    // Four standard deviations of a binomial count of 1000.
    assert!(late.abs_diff(300) < 58, "{late} late frames");
    assert!(left.windows(2).any(|pair| pair[0].0 > pair[1].0));
}

#[test]
fn lanes_carry_as_many_times_the_rate_and_keep_each_flow_in_order() {
    let spec = LineSpec { rate: constant(10), lanes: 2, ..LineSpec::transparent() };
    let arrivals: Vec<Arrived> =
        (0..40).map(|i| Arrived { at: Time::ZERO, size: Bytes::new(1250), label: flow(i % 2) }).collect();
    let left = departures(&spec, &arrivals);
    assert_eq!(left.last().map(|&(_, end)| end), Some(at(20_000)));
    let one: Vec<Arrived> = arrivals.iter().map(|arrived| Arrived { label: flow(7), ..*arrived }).collect();
    assert_eq!(departures(&spec, &one).last().map(|&(_, end)| end), Some(at(40_000)));
}

#[test]
fn traffic_of_others_leaves_the_rest_of_the_rate() {
    // 6 of 10 Mbit/s are taken: of a full queue, 400 frames of 10 000 bits need a second.
    let cross = CrossSpec {
        departures: Departures::Constant { gap_ps: 1e12 / 600.0 },
        frame_size: FrameSize::Fixed(Bytes::new(1250)),
        lane: 0,
    };
    let limit = Limit::Frames(1);
    let spec = LineSpec { rate: constant(10), limit, cross: vec![cross], ..LineSpec::transparent() };
    // Offered are the 4 Mbit/s that are left, evenly: with a place to wait, nearly all of them pass.
    let arrivals = frames(4000, 2_500);
    let reported = replay(&spec, SEED, "test", &arrivals, at(11_000_000));
    assert!(
        reported.departures.len() as f64 > 0.97 * arrivals.len() as f64,
        "{} of 4000 pass",
        reported.departures.len()
    );
    // Of twice as much, what passes fills the line together with the others.
    let mut line = Line::new(&spec, SEED, "test");
    for arrived in frames(8000, 1_250) {
        line.arrive(arrived.at, (), arrived.size, arrived.label);
    }
    let counters = line.counters();
    let others = 600 * 10 - counters.cross_dropped;
    assert!((counters.arrived - counters.dropped + others).abs_diff(10_000) < 10, "{counters:?}");
}

#[test]
fn loss_does_not_depend_on_what_else_a_line_does() {
    let loss = LossModel::Random { probability: 0.2 };
    let one = LineSpec { loss, ..LineSpec::transparent() };
    let jitter = JitterSpec::Exponential { mean_ps: Span::from_us(100), keeps_order: false };
    let other = LineSpec { loss, jitter, rate: constant(1), duplicate: 0.1, ..LineSpec::transparent() };
    let lost = |spec: &LineSpec| replay(spec, SEED, "test", &frames(1000, 10), at(0)).lost;
    assert_eq!(lost(&one), lost(&other));
    assert_ne!(lost(&one), replay(&one, SEED, "other", &frames(1000, 10), at(0)).lost);
}
