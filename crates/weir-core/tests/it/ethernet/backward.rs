//! Backward congestion notification.

use weir_core::ethernet::bcn::Tag;
use weir_core::ethernet::reaction::{Allowance, Change, Feedback, ReactionPoint};
use weir_core::spec::control::{
    BackOff, BcnCongestionPoint, BcnReactionPoint, Drift, Restart, Severe, SevereAction, Stop,
};
use weir_core::units::{Bytes, Rate, Span};

use super::{FRAME, at, bcn, bcn_point, bcn_reaction, change, mbit, rate, stream};

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
