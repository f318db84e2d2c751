//! Laws of congestion management, and the numbers that its sources print.

use proptest::prelude::*;
use weir_core::ethernet::bcn::{self, Fate, Tag};
use weir_core::ethernet::pause::{Pause, Watermarks, length};
use weir_core::ethernet::reaction::{Allowance, Change, Feedback, Pacer, ReactionPoint, Rules};
use weir_core::ethernet::sampler::Sampler;
use weir_core::ethernet::{dcqcn, qcn};
use weir_core::marking::Marker;
use weir_core::rng::Seed;
use weir_core::spec::control::{
    BackOff, BcnCongestionPoint, BcnReactionPoint, Counted, Counting, DcqcnReactionPoint, Drift, Limiter, Meanwhile,
    Negative, NewLimiter, Notification, NotificationLane, Positive, QcnCongestionPoint, QcnReactionPoint, Recovery,
    Restart, Sampling, Saturation, Severe, SevereAction, Stop, StopReset,
};
use weir_core::spec::{Limit, Marking};
use weir_core::units::{Bytes, Rate, Span, Time};

const LINE: Rate = Rate::from_gbit_per_s(10);
const FRAME: Bytes = Bytes::new(1500);

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

fn stream(name: &str) -> weir_core::rng::Stream {
    Seed::new(5).stream(name)
}

/// The congestion point of the study of 2006: 16 frames of 1500 B, W = 2, a sample every 150 kB.
fn bcn_point() -> BcnCongestionPoint {
    BcnCongestionPoint {
        ports: vec![],
        q_eq_bytes: FRAME * 16,
        unit_bytes: FRAME,
        counting: Counting::Exact,
        saturation: Saturation::SetPoint,
        w: 2.0,
        sample_every_bytes: FRAME * 100,
        sampling: Sampling::Uniform { jitter: 0.0 },
        counted: Counted::Received,
        positive: Positive::Tagged,
        negative: Negative::Always,
        severe: None,
        notification: Notification {
            frame_bytes: Bytes::new(64),
            delay_ps: Span::ZERO,
            lane: NotificationLane::Control,
        },
    }
}

const LIMITER: Limiter =
    Limiter { queue: Limit::Unlimited, pacing_jitter: 0.15, fifo_frames: 0, initial_credit: None, most_credit: None };

/// The reaction point of the same study.
fn bcn_reaction() -> BcnReactionPoint {
    BcnReactionPoint {
        hosts: vec![],
        gi: 12.42,
        gd: 6.09e-3,
        ru_bps: mbit(1),
        min_rate_bps: mbit(1),
        initial_rate_bps: None,
        removal_rate_bps: None,
        drift: None,
        stop: Stop {
            t_max_ps: Span::from_us(100),
            r_min_bps: mbit(1000),
            t_max_factor: 2.0,
            r_min_factor: 0.5,
            back_off: BackOff::After,
            restart: Restart::RMin,
            reset: StopReset::Never,
            meanwhile: Meanwhile::Ignore,
        },
        limiter: LIMITER,
    }
}

fn recovery() -> Recovery {
    Recovery {
        byte_counter_bytes: Bytes::new(150_000),
        timer_ps: Span::from_ms(15),
        jitter: 0.0,
        halve_stages: true,
        fast_recovery_stages: 5,
        r_ai_bps: mbit(5),
        r_hai_bps: mbit(50),
        target_cut_above: Some(10.0),
        target_cut: 8.0,
    }
}

fn qcn_reaction() -> QcnReactionPoint {
    QcnReactionPoint {
        hosts: vec![],
        gd: 1.0 / 128.0,
        min_decrease_factor: 0.5,
        recovery: recovery(),
        min_rate_bps: mbit(10),
        new_limiter: NewLimiter::AnyFeedback,
        limiter: LIMITER,
    }
}

fn dcqcn_reaction() -> DcqcnReactionPoint {
    DcqcnReactionPoint {
        hosts: vec![],
        g: 1.0 / 16.0,
        alpha_timer_ps: Span::from_us(55),
        cut_timer_ps: None,
        recovery: Recovery { halve_stages: false, target_cut_above: None, ..recovery() },
        min_rate_bps: mbit(100),
        limiter: LIMITER,
    }
}

fn bcn(spec: &BcnReactionPoint) -> Rules {
    Rules::Bcn(bcn::Rules::new(spec, LINE))
}

fn change(fb: f64) -> Feedback {
    Feedback::Bcn(bcn::Feedback::Change(fb))
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn rate(point: &ReactionPoint) -> Rate {
    match point.allowance() {
        Allowance::Unlimited => LINE,
        Allowance::Limited(rate) => rate,
        Allowance::Stopped(_) => Rate::from_bps(0),
    }
}

/// Frames until the next sample, for a sample per 100 frames.
fn distances(sampling: Sampling, samples: usize) -> Vec<f64> {
    let mut sampler = Sampler::new(FRAME * 100, sampling, stream("sampling"));
    let distance = |_| {
        let mut frames = 1.0;
        while !sampler.count(FRAME) {
            frames += 1.0;
        }
        sampler.restart(1.0);
        frames
    };
    (0..samples).map(distance).collect()
}

#[test]
fn samples_are_100_frames_apart_on_average_and_spread_as_asked() {
    assert!(distances(Sampling::Uniform { jitter: 0.0 }, 50).iter().all(|&frames| frames == 100.0));
    let samples = 20_000;
    for (sampling, deviation) in [
        (Sampling::Uniform { jitter: 0.5 }, 50.0 / 3.0f64.sqrt()),
        (Sampling::Exponential, 100.0),
        (Sampling::PerFrame, 100.0),
    ] {
        let distances = distances(sampling, samples);
        let mean = distances.iter().sum::<f64>() / samples as f64;
        let variance = distances.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / samples as f64;
        let error = deviation / (samples as f64).sqrt();
        assert!((mean - 100.0).abs() < 4.0 * error, "{sampling:?}: mean {mean}");
        assert!((variance.sqrt() / deviation - 1.0).abs() < 0.05, "{sampling:?}: deviation {}", variance.sqrt());
    }
}

#[test]
fn a_queue_at_its_set_point_says_nothing_and_others_say_how_far_they_are() {
    let mut point = bcn::CongestionPoint::new(&bcn_point(), stream("cp"));
    assert_eq!(point.sample(FRAME * 16, Tag::Here), Some(bcn::Feedback::Change(-32.0)), "it grew by 16");
    assert_eq!(point.sample(FRAME * 16, Tag::Here), None);
    assert_eq!(point.sample(FRAME * 20, Tag::None), Some(bcn::Feedback::Change(-4.0 - 8.0)));
    assert_eq!(point.sample(FRAME * 12, Tag::Here), Some(bcn::Feedback::Change(4.0 + 16.0)));
    for tag in [Tag::None, Tag::Elsewhere] {
        assert_eq!(point.sample(FRAME * 12, tag), None, "more is offered only to a flow that this point limited");
    }
}

#[test]
fn severe_congestion_stops_or_asks_for_the_least() {
    let severe = |action| {
        let spec =
            BcnCongestionPoint { severe: Some(Severe { above_bytes: Bytes::new(112_500), action }), ..bcn_point() };
        bcn::CongestionPoint::new(&spec, stream("cp"))
    };
    assert_eq!(severe(SevereAction::Stop).sample(FRAME * 76, Tag::None), Some(bcn::Feedback::Stop));
    assert_eq!(severe(SevereAction::Max).sample(FRAME * 76, Tag::None), Some(bcn::Feedback::Max(-80.0)));
    assert_eq!(severe(SevereAction::None).sample(FRAME * 76, Tag::None), Some(bcn::Feedback::Change(-80.0)));
    let at_the_threshold = severe(SevereAction::Stop).sample(FRAME * 75, Tag::None);
    assert_eq!(at_the_threshold, Some(bcn::Feedback::Change(-80.0)), "it is not above");
}

#[test]
fn pages_and_frames_are_the_same_but_for_their_size() {
    let pages = BcnCongestionPoint { unit_bytes: Bytes::new(64), ..bcn_point() };
    let (mut frames, mut pages) =
        (bcn::CongestionPoint::new(&bcn_point(), stream("cp")), bcn::CongestionPoint::new(&pages, stream("cp")));
    assert_eq!((frames.most(), pages.most()), (80.0, 80.0 * 1500.0 / 64.0));
    for queue in [3, 40, 17, 16, 90, 0] {
        let fb = |point: &mut bcn::CongestionPoint| match point.sample(FRAME * queue, Tag::Here) {
            Some(bcn::Feedback::Change(fb)) => fb,
            _ => 0.0,
        };
        let (in_frames, in_pages) = (fb(&mut frames), fb(&mut pages));
        assert!((in_frames - in_pages * 64.0 / 1500.0).abs() < 1e-9, "{queue} frames: {in_frames}, {in_pages}");
    }
}

#[test]
fn gains_of_the_study_cut_by_half_and_raise_by_a_tenth_of_the_line_at_most() {
    let rules = bcn(&bcn_reaction());
    let mut point = ReactionPoint::new(stream("rp"));
    assert_eq!(point.on_feedback(at(0), change(80.0), &rules), Change::Ignored, "nothing is limited");
    assert_eq!(point.on_feedback(at(0), change(-80.0), &rules), Change::Decreased);
    assert_eq!(rate(&point), Rate::from_bps(5_128_000_000));
    assert_eq!(point.on_feedback(at(1), change(80.0), &rules), Change::Increased);
    assert_eq!(rate(&point), Rate::from_bps(5_128_000_000 + 993_600_000));
    point.on_feedback(at(1), change(16.0), &rules);
    assert_eq!(rate(&point), Rate::from_bps(5_128_000_000 + 993_600_000 + 198_720_000), "from an empty queue");
    let removed = (0..9).map(|_| point.on_feedback(at(2), change(80.0), &rules)).find(|&c| c == Change::Removed);
    assert!(removed.is_some() && point.allowance() == Allowance::Unlimited);
}

#[test]
fn a_stop_ends_within_t_max_and_the_next_may_last_twice_as_long() {
    let rules = bcn(&bcn_reaction());
    let mut point = ReactionPoint::new(stream("rp"));
    let mut now = at(0);
    for (most_us, restart) in [(100, mbit(1000)), (200, mbit(500)), (400, mbit(250))] {
        assert_eq!(point.on_feedback(now, Feedback::Bcn(bcn::Feedback::Stop), &rules), Change::Stopped);
        let Allowance::Stopped(until) = point.allowance() else { panic!("a stop") };
        assert!(until <= now + Span::from_us(most_us));
        assert_eq!(point.on_feedback(now, Feedback::Bcn(bcn::Feedback::Stop), &rules), Change::Ignored);
        assert_eq!(point.on_feedback(now, change(50.0), &rules), Change::Ignored);
        now = until;
        point.advance(now, &rules);
        assert_eq!(rate(&point), restart);
    }
    let meter = point.meter();
    assert_eq!((meter.stops, meter.stopped_ps), (3, now.ps()));
}

#[test]
fn restart_rules_differ_as_they_say() {
    let after = |restart, back_off, before: u64| {
        let stop = Stop { restart, back_off, ..bcn_reaction().stop };
        let rules = bcn(&BcnReactionPoint { stop, initial_rate_bps: Some(mbit(before)), ..bcn_reaction() });
        let mut point = ReactionPoint::new(stream("rp"));
        point.on_feedback(at(0), Feedback::Bcn(bcn::Feedback::Stop), &rules);
        point.advance(at(200), &rules);
        rate(&point)
    };
    assert_eq!(after(Restart::RMin, BackOff::After, 300), mbit(1000));
    assert_eq!(after(Restart::RMin, BackOff::Before, 300), mbit(500));
    assert_eq!(after(Restart::LesserOfRMinAndBefore, BackOff::After, 300), mbit(300));
    assert_eq!(after(Restart::LesserOfRMinAndBefore, BackOff::After, 3000), mbit(1000));
    assert_eq!(after(Restart::Before, BackOff::After, 3000), mbit(3000));
}

#[test]
fn drift_adds_a_step_at_every_tick_but_not_while_stopped() {
    let drift = Some(Drift { step_bps: mbit(1), every_ps: Span::from_us(100) });
    let rules = bcn(&BcnReactionPoint { drift, initial_rate_bps: Some(mbit(2000)), gd: 0.0, ..bcn_reaction() });
    let mut point = ReactionPoint::new(stream("rp"));
    point.on_feedback(at(50), change(-1.0), &rules);
    assert_eq!(point.poll_timeout(), at(100));
    point.advance(at(99), &rules);
    assert_eq!(rate(&point), mbit(2000));
    point.advance(at(1000), &rules);
    assert_eq!(rate(&point), mbit(2010));
    point.on_feedback(at(1000), Feedback::Bcn(bcn::Feedback::Stop), &rules);
    let Allowance::Stopped(until) = point.allowance() else { panic!("a stop") };
    point.advance(until, &rules);
    assert_eq!(rate(&point), mbit(1000));
    point.advance(at(1000) + Span::from_us(150), &rules);
    assert_eq!(rate(&point), mbit(1001));
    let meter = point.meter();
    assert_eq!(meter.limited_ps, Span::from_us(1100).ps());
}

#[test]
fn quantized_feedback_has_six_bits_and_shortens_the_way_to_the_next_sample() {
    let spec = QcnCongestionPoint {
        ports: vec![],
        q_eq_bytes: Bytes::new(26_000),
        w: 2.0,
        sample_every_bytes: Bytes::new(150_000),
        sampling: Sampling::Uniform { jitter: 0.0 },
        counted: Counted::Received,
        notification: bcn_point().notification,
    };
    let after = |queue: u64| {
        let mut point = qcn::CongestionPoint::new(&spec, stream("cp"));
        let mut frames = 0;
        while !point.on_frame(FRAME, Fate::Accepted) {}
        let level = point.sample(Bytes::new(queue)).map_or(0, qcn::Feedback::level);
        while !point.on_frame(FRAME, Fate::Accepted) {
            frames += 1;
        }
        (level, frames + 1)
    };
    assert_eq!(after(0), (0, 100));
    // Fb = q - 26 kB + 2 q, of 5 x 26 kB: 63 for 130 kB and more.
    assert_eq!(after(52_000), (63, 13));
    assert_eq!(after(26_000), (25, 25), "upper bits 3: 37.5 kB");
    let standard = [100, 50, 34, 25, 20, 17, 15, 13];
    let found: Vec<u32> =
        (0..8u64).map(|upper| after((26_000 * (63 + 5 * (8 * upper + 1)) / 63).div_ceil(3)).1).collect();
    assert_eq!(found, standard);
}

#[test]
fn above_the_set_point_alone_limiters_are_made_where_it_is_asked_for_and_all_obey_the_rest() {
    let spec = QcnCongestionPoint {
        ports: vec![],
        q_eq_bytes: Bytes::new(26_000),
        w: 2.0,
        sample_every_bytes: Bytes::new(150_000),
        sampling: Sampling::Uniform { jitter: 0.0 },
        counted: Counted::Received,
        notification: bcn_point().notification,
    };
    let told = |queue: u64| qcn::CongestionPoint::new(&spec, stream("cp")).sample(Bytes::new(queue)).map(Feedback::Qcn);
    let (short, long) = (told(20_000).expect("it grew"), told(26_001).expect("it is above"));
    let spec = QcnReactionPoint { new_limiter: NewLimiter::AboveSetPoint, ..qcn_reaction() };
    let rules = Rules::Qcn(qcn::Rules::new(&spec, LINE));
    let mut point = ReactionPoint::new(stream("rp"));
    assert_eq!(point.on_feedback(at(0), short, &rules), Change::Ignored);
    assert_eq!(point.allowance(), Allowance::Unlimited);
    assert_eq!(point.on_feedback(at(0), long, &rules), Change::Decreased);
    assert_eq!(point.on_feedback(at(0), short, &rules), Change::Decreased);
    let rules = Rules::Qcn(qcn::Rules::new(&qcn_reaction(), LINE));
    assert_eq!(ReactionPoint::new(stream("rp")).on_feedback(at(0), short, &rules), Change::Decreased);
}

#[test]
fn recovery_halves_the_distance_five_times_and_then_moves_the_target() {
    let rules = Rules::Qcn(qcn::Rules::new(&qcn_reaction(), LINE));
    let mut point = ReactionPoint::new(stream("rp"));
    assert_eq!(point.on_feedback(at(0), Feedback::Qcn(qcn::Feedback::MAX), &rules), Change::Decreased);
    let cut = 10e9 * (1.0 - 63.0 / 128.0);
    assert_eq!(rate(&point), Rate::from_bps(cut as u64));
    let mut expected = cut;
    for stage in 1..=5 {
        for _ in 0..100 {
            point.on_sent(at(0), FRAME, &rules);
        }
        // The fifth stage is the first of active increase.
        let target = if stage < 5 { 10e9 } else { 10e9 + 5e6 };
        expected = (expected + target) / 2.0;
        assert!((rate(&point).bps() as f64 - expected).abs() <= 1.0, "stage {stage}");
    }
    for _ in 0..50 {
        point.on_sent(at(0), FRAME, &rules);
    }
    expected = (expected + 10.01e9) / 2.0;
    assert!((rate(&point).bps() as f64 - expected).abs() <= 1.0, "stages are half as long then");
    point.advance(at(15_000), &rules);
    assert_eq!(point.poll_timeout(), at(30_000));
}

#[test]
fn each_level_of_quantized_feedback_takes_its_share_of_the_rate_and_none_more_than_half() {
    let spec = QcnCongestionPoint {
        ports: vec![],
        q_eq_bytes: Bytes::new(26_000),
        w: 0.0,
        sample_every_bytes: Bytes::new(150_000),
        sampling: Sampling::Uniform { jitter: 0.0 },
        counted: Counted::Received,
        notification: bcn_point().notification,
    };
    let mut levels = Vec::new();
    for queue in (26_000..52_100).step_by(50) {
        let mut point = qcn::CongestionPoint::new(&spec, stream("cp"));
        let Some(feedback) = point.sample(Bytes::new(queue)) else { continue };
        if levels.last().is_none_or(|&(level, _)| level != feedback.level()) {
            levels.push((feedback.level(), feedback));
        }
    }
    assert_eq!(levels.iter().map(|level| level.0).collect::<Vec<u8>>(), (1..=63).collect::<Vec<u8>>());
    for (gd, most) in [(1.0 / 128.0, 0.5), (1.0 / 64.0, 0.5), (1.0 / 128.0, 0.8)] {
        let rules = QcnReactionPoint { gd, min_decrease_factor: most, ..qcn_reaction() };
        let rules = Rules::Qcn(qcn::Rules::new(&rules, LINE));
        for &(level, feedback) in &levels {
            let mut point = ReactionPoint::new(stream("rp"));
            assert_eq!(point.on_feedback(at(0), Feedback::Qcn(feedback), &rules), Change::Decreased);
            let left = (1.0 - gd * f64::from(level)).max(most);
            assert_eq!(rate(&point), Rate::from_bps((10e9 * left) as u64), "level {level}, gd {gd}");
        }
    }
}

#[test]
fn a_notification_point_speaks_once_in_a_while() {
    let mut point = dcqcn::NotificationPoint::NEW;
    let every = Span::from_us(50);
    let sent: Vec<u64> = (0..200).filter(|&us| point.on_mark(at(us), every)).collect();
    assert_eq!(sent, [0, 50, 100, 150]);
}

#[test]
fn marks_grow_from_never_to_always() {
    let spec = Marking { k_min_bytes: FRAME * 4, k_max_bytes: FRAME * 24, p_max: 0.2 };
    let mut marker = Marker::new(&spec, stream("marks"));
    let mut share = |frames: u64| (0..20_000).filter(|_| marker.on_frame(FRAME * frames)).count() as f64 / 20_000.0;
    assert_eq!((share(0), share(4), share(25)), (0.0, 0.0, 1.0));
    assert!((share(14) - 0.1).abs() < 4.0 * (0.09f64 / 20_000.0).sqrt());
    assert!((share(24) - 0.2).abs() < 4.0 * (0.16f64 / 20_000.0).sqrt());
}

#[test]
fn without_jitter_frames_leave_at_the_rate_and_with_it_on_average() {
    let allowance = Allowance::Limited(mbit(2500));
    let mut exact = Pacer::new(0.0, stream("pace"));
    exact.on_sent(at(7), FRAME);
    assert_eq!(exact.not_before(allowance), at(7) + Span::from_ns(4800));
    assert_eq!(exact.not_before(Allowance::Stopped(at(90))), at(90));
    let (mut pacer, mut now) = (Pacer::new(0.15, stream("pace")), at(0));
    for _ in 0..10_000 {
        pacer.on_sent(now, FRAME);
        let next = pacer.not_before(allowance);
        assert!(next.ps() - now.ps() >= 4_080_000, "0.85 of the gap are certain");
        now = next;
    }
    // The deviation of a gap is 0.15 of it.
    assert!((now.ps() as f64 / 4.8e10 - 1.0).abs() < 4.0 * 0.15 / 100.0);
}

#[test]
fn a_pause_quantum_lasts_as_long_as_64_bytes() {
    assert_eq!(length(1, LINE), Span::from_ps(51_200));
    assert_eq!(length(65_535, Rate::from_gbit_per_s(1)), Span::from_ps(65_535 * 512_000));
}

#[test]
fn an_adapter_cuts_by_a_timer_and_keeps_the_target_of_a_series_of_cuts() {
    let recovery =
        Recovery { timer_ps: Span::from_us(300), byte_counter_bytes: Bytes::new(1 << 40), ..dcqcn_reaction().recovery };
    let spec = DcqcnReactionPoint {
        g: 0.25,
        alpha_timer_ps: Span::from_us(1),
        cut_timer_ps: Some(Span::from_us(4)),
        recovery: Recovery { jitter: 0.0, ..recovery },
        ..dcqcn_reaction()
    };
    let rules = Rules::Dcqcn(dcqcn::Rules::new(&spec, LINE));
    let mut point = ReactionPoint::new(Seed::new(1).stream("adapter"));
    // Notifications at 0 and 5 us: alpha is 1 up to the cut at 4 us, after updates at 1 us (one came: 1) and at 2, 3 and 4 us (0.75, 0.5625, 0.421875).
    point.on_feedback(at(0), Feedback::Cnp, &rules);
    point.advance(at(3), &rules);
    assert_eq!(rate(&point), LINE, "it is noted only");
    point.advance(at(4), &rules);
    let line = LINE.bps() as f64;
    let first = line * (1.0 - 0.421_875 / 2.0);
    assert!((rate(&point).bps() as f64 - first).abs() < 2.0);
    point.on_feedback(at(5), Feedback::Cnp, &rules);
    point.advance(at(8), &rules);
    // Alpha: 5 us 0.31640625, 6 us with the notification 0.4873046875, 7 and 8 us without.
    let alpha = 0.487_304_687_5 * 0.75 * 0.75;
    let second = first * (1.0 - alpha / 2.0);
    assert!((rate(&point).bps() as f64 - second).abs() < 2.0, "{} {second}", rate(&point));
    // The first increase, 300 us after the last cut, goes half of the way to the line rate, not to the rate of the second cut.
    point.advance(at(308), &rules);
    assert!((rate(&point).bps() as f64 - (second + line) / 2.0).abs() < 2.0);
}

fn any_rules() -> impl Strategy<Value = (Rules, Rate)> {
    let rates = (1u64..2000, 0u64..9000, prop::option::of(0u64..9000));
    let stop = (
        0u64..400,
        1u64..10_000,
        1.0..3.0f64,
        prop_oneof![Just(BackOff::After), Just(BackOff::Before)],
        prop_oneof![Just(Restart::RMin), Just(Restart::LesserOfRMinAndBefore), Just(Restart::Before)],
        prop_oneof![Just(StopReset::Never), Just(StopReset::Positive), Just(StopReset::Any)],
        prop_oneof![Just(Meanwhile::Ignore), Just(Meanwhile::StopAgain), Just(Meanwhile::Remember)],
    );
    let drift = prop::option::of((0u64..100, 1u64..300));
    let bcn = (rates, stop, drift, 0.0..200.0f64, 0.0..0.05f64).prop_map(|(rates, stop, drift, gi, gd)| {
        let (least, above, removal) = rates;
        let spec = BcnReactionPoint {
            gi,
            gd,
            min_rate_bps: mbit(least),
            initial_rate_bps: Some(mbit(least + above)),
            removal_rate_bps: removal.map(|above| mbit(least + above)),
            drift: drift.map(|(step, every)| Drift { step_bps: mbit(step), every_ps: Span::from_us(every) }),
            stop: Stop {
                t_max_ps: Span::from_us(stop.0),
                r_min_bps: mbit(stop.1),
                t_max_factor: stop.2,
                r_min_factor: 1.0 / stop.2,
                back_off: stop.3,
                restart: stop.4,
                reset: stop.5,
                meanwhile: stop.6,
            },
            ..bcn_reaction()
        };
        (Rules::Bcn(bcn::Rules::new(&spec, LINE)), mbit(least))
    });
    let qcn = (0.0..0.02f64, 0.1..1.0f64, 1u64..500).prop_map(|(gd, factor, least)| {
        let spec = QcnReactionPoint { gd, min_decrease_factor: factor, min_rate_bps: mbit(least), ..qcn_reaction() };
        (Rules::Qcn(qcn::Rules::new(&spec, LINE)), mbit(least))
    });
    let dcqcn = (0.0..1.0f64, 1u64..500).prop_map(|(g, least)| {
        let spec = DcqcnReactionPoint { g, min_rate_bps: mbit(least), ..dcqcn_reaction() };
        (Rules::Dcqcn(dcqcn::Rules::new(&spec, LINE)), mbit(least))
    });
    prop_oneof![3 => bcn, 1 => qcn, 1 => dcqcn]
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Fb(f64),
    Stop,
    Sent(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![4 => (-80.0..80.0f64).prop_map(Step::Fb), 1 => Just(Step::Stop), 2 => (1u64..200_000).prop_map(Step::Sent)]
}

proptest! {
    /// Whatever the scheme and its parameters: feedback for less never raises a rate, feedback for more never lowers
    /// one, and every limited rate that is not stopped lies between the floor and the line rate.
    #[test]
    fn rates_obey_feedback_and_keep_within_bounds(
        (rules, least) in any_rules(), steps in prop::collection::vec((0u64..300, any_step()), 1..200),
    ) {
        let mut point = ReactionPoint::new(stream("any"));
        let mut now = at(0);
        for (after, step) in steps {
            now += Span::from_us(after);
            point.advance(now, &rules);
            let before = rate(&point);
            let stopped = matches!(point.allowance(), Allowance::Stopped(_));
            match step {
                Step::Sent(bytes) => _ = point.on_sent(now, Bytes::new(bytes), &rules),
                Step::Fb(fb) => {
                    let feedback = match &rules {
                        Rules::Bcn(_) => change(fb),
                        Rules::Qcn(_) => Feedback::Qcn(qcn::Feedback::MAX),
                        Rules::Dcqcn(_) => Feedback::Cnp,
                    };
                    point.on_feedback(now, feedback, &rules);
                    if feedback.is_negative() {
                        prop_assert!(rate(&point) <= before, "{fb} raised {before} to {}", rate(&point));
                    } else if !stopped {
                        prop_assert!(rate(&point) >= before, "{fb} lowered {before} to {}", rate(&point));
                    }
                }
                Step::Stop if matches!(rules, Rules::Bcn(_)) => {
                    point.on_feedback(now, Feedback::Bcn(bcn::Feedback::Stop), &rules);
                    prop_assert!(matches!(point.allowance(), Allowance::Stopped(_)));
                }
                Step::Stop => {}
            }
            if let Allowance::Limited(rate) = point.allowance() {
                prop_assert!(least <= rate && rate <= LINE, "{rate} is not within {least} .. {LINE}");
            }
            if let Allowance::Stopped(until) = point.allowance() {
                prop_assert!(until > now || until == now && point.poll_timeout() <= now);
            }
            let meter = point.meter();
            prop_assert!(meter.stopped_ps <= meter.limited_ps && meter.limited_ps <= now.ps());
            let most = LINE.bps() as f64 * (meter.limited_ps - meter.stopped_ps) as f64 * 1e-12;
            prop_assert!(meter.rate_bit <= most * (1.0 + 1e-9));
            prop_assert!(meter.made - meter.removed <= 1);
        }
    }

    /// A limiter told often is where one told seldom is: when nobody looks makes no difference.
    #[test]
    fn looking_changes_nothing((rules, _) in any_rules(), looks in prop::collection::vec(1u64..500, 1..50)) {
        let (mut often, mut seldom) = (ReactionPoint::new(stream("look")), ReactionPoint::new(stream("look")));
        for point in [&mut often, &mut seldom] {
            let feedback = match &rules {
                Rules::Bcn(_) => change(-40.0),
                Rules::Qcn(_) => Feedback::Qcn(qcn::Feedback::MAX),
                Rules::Dcqcn(_) => Feedback::Cnp,
            };
            point.on_feedback(at(10), feedback, &rules);
        }
        let mut now = at(10);
        for after in looks {
            now += Span::from_us(after);
            often.advance(now, &rules);
        }
        seldom.advance(now, &rules);
        prop_assert_eq!(often.allowance(), seldom.allowance());
        prop_assert_eq!(often.poll_timeout(), seldom.poll_timeout());
        prop_assert_eq!(often.meter(), seldom.meter());
    }

    /// Saturated feedback is at most `(1 + 2 w) q_eq`, never zero, and never positive without a tag.
    #[test]
    fn feedback_is_bounded(
        queues in prop::collection::vec((0u64..200_000, 0u8..3), 1..100), w in 0.0..5.0f64, q_eq in 1u64..100_000,
        counting in prop_oneof![Just(Counting::Exact), Just(Counting::Whole)],
    ) {
        let q_eq_bytes = Bytes::new(q_eq).max(FRAME);
        let mut point =
            bcn::CongestionPoint::new(&BcnCongestionPoint { w, q_eq_bytes, counting, ..bcn_point() }, stream("cp"));
        for (queue, tag) in queues {
            let tag = [Tag::None, Tag::Here, Tag::Elsewhere][usize::from(tag)];
            match point.sample(Bytes::new(queue), tag) {
                Some(bcn::Feedback::Change(fb)) => {
                    prop_assert!(fb != 0.0 && fb.abs() <= point.most() * (1.0 + 1e-12));
                    prop_assert!(fb < 0.0 || tag == Tag::Here);
                }
                Some(_) => prop_assert!(false, "no severe congestion is configured"),
                None => {}
            }
        }
    }

    /// XOFF and XON take turns, XOFF above its threshold and XON below its own.
    #[test]
    fn watermarks_take_turns(levels in prop::collection::vec(0u64..200, 0..300), xon in 0u64..100, above in 0u64..80) {
        let xoff = xon + above;
        let mut marks = Watermarks::below(xoff, xon);
        let mut held = false;
        for level in levels {
            match marks.on_level(level) {
                Some(Pause::Xoff) => {
                    prop_assert!(!held && level > xoff);
                    held = true;
                }
                Some(Pause::Xon) => {
                    prop_assert!(held && level < xon);
                    held = false;
                }
                None => prop_assert!((held && level >= xon) || (!held && level <= xoff)),
            }
        }
    }
}
