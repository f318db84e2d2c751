//! What holds for any rules.

use proptest::prelude::*;
use weir_core::ethernet::bcn::{self, Tag};
use weir_core::ethernet::pause::{Pause, Watermarks};
use weir_core::ethernet::reaction::{Allowance, Feedback, ReactionPoint, Rules};
use weir_core::ethernet::{dcqcn, qcn};
use weir_core::spec::control::{
    BackOff, BcnCongestionPoint, BcnReactionPoint, Counting, DcqcnReactionPoint, Drift, Meanwhile, QcnReactionPoint,
    Restart, Stop, StopReset,
};
use weir_core::units::{Bytes, Rate, Span};

use super::{FRAME, LINE, at, bcn_point, bcn_reaction, change, dcqcn_reaction, mbit, qcn_reaction, rate, stream};

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

    /// A limiter that is looked at often is where one that is looked at seldom is: when nobody looks makes no difference.
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
