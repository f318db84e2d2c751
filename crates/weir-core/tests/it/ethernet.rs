//! Laws of congestion management, and the numbers that its sources print.

mod backward;
mod properties;

use weir_core::ethernet::bcn::Fate;
use weir_core::ethernet::pause::length;
use weir_core::ethernet::reaction::{Allowance, Change, Feedback, Pacer, ReactionPoint, Rules};
use weir_core::ethernet::sampler::Sampler;
use weir_core::ethernet::{bcn, dcqcn, qcn};
use weir_core::marking::Marker;
use weir_core::rng::Seed;
use weir_core::spec::control::{
    BackOff, BcnCongestionPoint, BcnReactionPoint, Counted, Counting, DcqcnReactionPoint, Limiter, Meanwhile, Negative,
    NewLimiter, Notification, NotificationLane, Positive, QcnCongestionPoint, QcnReactionPoint, Recovery, Restart,
    Sampling, Saturation, Stop, StopReset,
};
use weir_core::spec::{Limit, Marking, MarkingTime};
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
        byte_counter_bytes: Some(Bytes::new(150_000)),
        timer_ps: Span::from_ms(15),
        jitter: 0.0,
        halve_stages: true,
        fast_recovery_stages: 5,
        hyper_after_stages: 0,
        r_ai_bps: mbit(5),
        r_hai_bps: mbit(50),
        hyper_grows: true,
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

/// A congestion point of QCN that samples every 150 kB.
fn qcn_point() -> QcnCongestionPoint {
    QcnCongestionPoint {
        ports: vec![],
        q_eq_bytes: Bytes::new(26_000),
        w: 2.0,
        sample_every_bytes: Bytes::new(150_000),
        sampling: Sampling::Uniform { jitter: 0.0 },
        counted: Counted::Received,
        notification: bcn_point().notification,
    }
}

#[test]
fn quantized_feedback_has_six_bits_and_shortens_the_way_to_the_next_sample() {
    let spec = qcn_point();
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
    let spec = qcn_point();
    let reported =
        |queue: u64| qcn::CongestionPoint::new(&spec, stream("cp")).sample(Bytes::new(queue)).map(Feedback::Qcn);
    let (short, long) = (reported(20_000).expect("it grew"), reported(26_001).expect("it is above"));
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
    let spec = Marking { k_min_bytes: FRAME * 4, k_max_bytes: FRAME * 24, p_max: 0.2, when: MarkingTime::Arrival };
    let mut marker = Marker::new(&spec, stream("marks"));
    let mut share = |frames: u64| {
        (0..20_000).filter(|_| marker.on_frame(MarkingTime::Arrival, FRAME * frames)).count() as f64 / 20_000.0
    };
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

/// By the timers of the HPCC simulator, with another gain.
fn adapter() -> Rules {
    adapter_with(Span::from_us(1))
}

fn adapter_with(alpha_timer: Span) -> Rules {
    let recovery = Recovery {
        timer_ps: Span::from_us(300),
        byte_counter_bytes: None,
        fast_recovery_stages: 2,
        hyper_after_stages: 1,
        hyper_grows: false,
        ..dcqcn_reaction().recovery
    };
    let spec = DcqcnReactionPoint {
        g: 0.25,
        alpha_timer_ps: alpha_timer,
        cut_timer_ps: Some(Span::from_us(4)),
        recovery,
        ..dcqcn_reaction()
    };
    Rules::Dcqcn(dcqcn::Rules::new(&spec, LINE))
}

#[test]
fn an_adapter_grows_by_its_timer_alone_up_to_the_line_rate_and_does_not_forget_alpha() {
    let rules = adapter();
    let mut point = ReactionPoint::new(Seed::new(1).stream("adapter"));
    let near = |point: &ReactionPoint, expected: f64| {
        assert!((rate(point).bps() as f64 - expected).abs() < 2.0, "{} {expected}", rate(point));
    };
    point.on_feedback(at(0), Feedback::Cnp, &rules);
    point.advance(at(304), &rules);
    let grown = LINE.bps() as f64 * (2.0 - 0.316_406_25 / 2.0) / 2.0;
    near(&point, grown);
    // The cut at 308 us, alpha of 0.25 three updates after next to none.
    point.on_feedback(at(305), Feedback::Cnp, &rules);
    point.advance(at(308), &rules);
    let mut now = grown * (1.0 - 0.25 * 0.75 * 0.75 / 2.0);
    near(&point, now);
    // Fast recovery, an active step, hyper-active ones of one length; the target is what the rate was at the cut.
    let mut target = grown;
    for (stage, step) in [0.0, 5e6, 50e6, 50e6].into_iter().enumerate() {
        point.advance(at(308 + 300 * (stage as u64 + 1)), &rules);
        target += step;
        now = f64::midpoint(now, target);
        near(&point, now);
    }
    // After half a second it is at the line rate, and a notification hardly counts.
    point.advance(at(500_000), &rules);
    near(&point, LINE.bps() as f64);
    point.on_feedback(at(500_000), Feedback::Cnp, &rules);
    point.advance(at(500_004), &rules);
    near(&point, LINE.bps() as f64 * (1.0 - 0.25 * 0.75 * 0.75 * 0.75 / 2.0));
}

#[test]
fn an_adapter_cuts_by_a_timer_and_keeps_the_target_of_a_series_of_cuts() {
    let rules = adapter();
    let mut point = ReactionPoint::new(Seed::new(1).stream("adapter"));
    // Notifications at 0 and 5 us: alpha is 1 at first, and 0.75 ^ 4 at the cut at 4 us, after four updates.
    point.on_feedback(at(0), Feedback::Cnp, &rules);
    point.advance(at(3), &rules);
    assert_eq!(rate(&point), LINE, "it is noted only");
    point.advance(at(4), &rules);
    let line = LINE.bps() as f64;
    let first = line * (1.0 - 0.316_406_25 / 2.0);
    assert!((rate(&point).bps() as f64 - first).abs() < 2.0);
    point.on_feedback(at(5), Feedback::Cnp, &rules);
    point.advance(at(8), &rules);
    // Alpha: 5 us 0.2373046875, 6 us with the notification 0.427978515625, 7 and 8 us without.
    let alpha = 0.427_978_515_625 * 0.75 * 0.75;
    let second = first * (1.0 - alpha / 2.0);
    assert!((rate(&point).bps() as f64 - second).abs() < 2.0, "{} {second}", rate(&point));
    // The first increase, 300 us after the last cut, goes half of the way to the line rate, not to the rate of the second cut.
    point.advance(at(308), &rules);
    assert!((rate(&point).bps() as f64 - (second + line) / 2.0).abs() < 2.0);
}

#[test]
fn an_alpha_that_no_timer_changes_any_more_costs_no_time() {
    // 10^13 updates, of which 2600 change it; then one more notification, and 4 * 10^6 updates before the cut.
    let rules = adapter_with(Span::from_ps(1));
    let mut point = ReactionPoint::new(Seed::new(1).stream("adapter"));
    point.on_feedback(at(0), Feedback::Cnp, &rules);
    point.on_feedback(at(10_000_000), Feedback::Cnp, &rules);
    point.advance(at(10_000_004), &rules);
    assert_eq!(rate(&point), LINE, "alpha is next to nothing at the cut");
}
