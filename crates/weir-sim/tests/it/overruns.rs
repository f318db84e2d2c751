//! Inputs of switches that lose frames after a queue behind them was full.

use proptest::prelude::*;
use weir_core::spec::{Discipline, Engine, Limit, Overrun, QueueRule, Spec};
use weir_core::units::Span;
use weir_sim::{DropCause, Totals};

use crate::scenarios::{constant, run, spec};

/// From `host-0`, `host-1` and `host-2` into `switch-0`, and from there to `host-3`.
const INPUTS: [u32; 3] = [0, 2, 4];
const QUEUE: u32 = 7;

/// Three hosts send to a fourth, together 2.5 times what its link carries; the first loses frames at its input.
fn overloaded(inputs: Vec<u32>, mean_frames: f64) -> Spec {
    let sources = vec![constant(0, 3, 2400), constant(1, 3, 1200), constant(2, 3, 1200)];
    let overrun = Some(Overrun { inputs, probability: 1.0, mean_frames });
    let discipline = Discipline::DropTail { limit: Limit::Frames(20), marking: None, overrun };
    let queues = vec![QueueRule { ports: vec![QUEUE], discipline }];
    Spec { queues, ..spec(4, sources, Span::from_ms(10)) }
}

fn lost(totals: &Totals, flow: u32, cause: DropCause) -> u64 {
    let of_flow = totals.drops.iter().filter(|drop| drop.flow == flow && drop.cause == cause);
    of_flow.map(|drop| drop.frames).sum()
}

#[test]
fn an_input_loses_all_that_comes_while_a_run_lasts_and_other_inputs_nothing() {
    let with = run(&overloaded(vec![INPUTS[0]], 1e9), 1);
    // The first overflow is that of a run without losses before it; from then on nothing of the first flow arrives.
    let first = with.ports[QUEUE as usize].first_drop.expect("the queue overflows");
    let sent = with.flows[0].sent_frames;
    let before = first.ps() / 2_400_000;
    let unseen = lost(&with, 0, DropCause::InputOverrun);
    assert!((unseen + before).abs_diff(sent) <= 1, "{unseen} of {sent} after {before}");
    assert!(with.flows[0].delivered_frames <= before + 1);
    assert_eq!(lost(&with, 1, DropCause::InputOverrun) + lost(&with, 2, DropCause::InputOverrun), 0);
}

#[test]
fn what_an_input_loses_no_counter_of_the_port_sees() {
    let totals = run(&overloaded(vec![INPUTS[0]], 40.0), 3);
    let seen = (0..3).map(|flow| lost(&totals, flow, DropCause::QueueFull)).sum::<u64>();
    assert!(lost(&totals, 0, DropCause::InputOverrun) > 100);
    assert_eq!(totals.ports[QUEUE as usize].counters.drops, seen);
}

#[test]
fn a_run_of_one_frame_follows_each_overflow_that_finds_none() {
    // Of the first flow alone: in overload every overflow costs the next frame of the input, and every frame that is
    // lost at the input was announced by an overflow.
    let totals = run(&overloaded(vec![INPUTS[0]], 1.0), 1);
    let unseen = lost(&totals, 0, DropCause::InputOverrun);
    let overflows = totals.ports[QUEUE as usize].counters.drops;
    assert!(0 < unseen && unseen <= overflows, "{unseen} of {overflows}");
    // The others overflow the queue between any two frames of the first, once it is full.
    let first = totals.ports[QUEUE as usize].first_drop.expect("the queue overflows");
    let after = totals.flows[0].sent_frames - first.ps() / 2_400_000;
    assert!(unseen.abs_diff(after) <= 2, "{unseen} of {after}");
}

proptest! {
    #[test]
    fn any_run_of_losses_conserves_frames(mean in 1.0..500.0f64, inputs in 1usize..8, seed: u64) {
        let inputs = INPUTS.iter().enumerate().filter(|row| inputs >> row.0 & 1 == 1).map(|row| *row.1).collect();
        let totals = run(&overloaded(inputs, mean), seed);
        for flow in &totals.flows {
            prop_assert_eq!(flow.sent_frames, flow.delivered_frames + flow.dropped_frames + flow.live_frames);
        }
    }
}

#[test]
fn what_no_input_of_the_switch_is_is_refused() {
    let refused = |spec: Spec, pointer: &str| {
        let error = spec.check().expect_err("it is refused");
        assert_eq!(error.pointer, format!("/queues/0/discipline/overrun{pointer}"), "{}", error.message);
    };
    refused(overloaded(vec![1], 10.0), "/inputs/0");
    refused(overloaded(vec![99], 10.0), "/inputs/0");
    refused(overloaded(vec![], 10.0), "/inputs");
    refused(overloaded(vec![0], 0.5), "/mean_frames");
    refused(overloaded(vec![0], f64::NAN), "/mean_frames");
    let mut totals = overloaded(vec![0], 10.0);
    totals.run.engine = Engine::EventTotals;
    refused(totals, "");
}
