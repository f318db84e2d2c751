//! Laws of runs in the course of which links go down and up, and rates, buffers and holds change.

use std::ops::ControlFlow;

use proptest::prelude::*;
use weir_core::spec::Limit;
use weir_core::spec::events::{Change, Event};
use weir_core::units::{Bytes, Rate, Time};
use weir_sim::{DropCause, Plan, Sim, Totals, workloads};

/// Of a fat tree with 16 hosts.
const PORTS: u32 = 96;
const END_NS: u64 = 2_000_000;

fn any_change() -> impl Strategy<Value = Change> {
    let links = prop::collection::vec(0..PORTS / 2, 1..6);
    let ports = links.prop_map(|links| links.iter().flat_map(|link| [2 * link, 2 * link + 1]).collect::<Vec<u32>>());
    let all = || (0..8).collect::<Vec<u8>>();
    (ports, 0..8, 1..20_000_u64).prop_map(move |(ports, kind, amount)| match kind {
        0 => Change::Down { ports },
        1 => Change::Up { ports },
        2 | 3 => Change::Reroute { ports },
        4 => Change::Rate { ports, rate_bps: Rate::from_bps(amount * 1_000_000) },
        5 => Change::Limit { ports, limit: Limit::Bytes(Bytes::new(amount)), class: None },
        6 => Change::Hold { ports, classes: all() },
        _ => Change::Release { ports, classes: all() },
    })
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0..END_NS, any_change());
    let event = event.prop_map(|(at, change)| Event { at_ps: Time::from_ps(at * 1000), change });
    prop::collection::vec(event, 0..40)
}

fn run(events: Vec<Event>, seed: u64) -> Totals {
    let mut spec = workloads::fat_tree(4);
    spec.events = events;
    let plan = Plan::new(spec).expect("a legal spec");
    Sim::standard(&plan, seed).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The run itself checks that each flow adds up, and that no frame stands nowhere.
    #[test]
    fn no_frame_gets_lost_unseen_whatever_happens(events in any_events()) {
        let has_down = events.iter().any(|event| matches!(event.change, Change::Down { .. }));
        let totals = run(events, 1);
        prop_assert!(totals.drops.windows(2).all(|rows| rows[0] < rows[1]));
        let lost = totals.drops.iter().any(|drop| drop.cause == DropCause::LinkDown);
        prop_assert!(has_down || !lost);
    }

    /// What happened once is over: an event that changes nothing moves no count.
    #[test]
    fn an_event_that_changes_nothing_moves_nothing(at in 0..END_NS) {
        let change = Change::Rate { ports: (0..PORTS).collect(), rate_bps: Rate::from_gbit_per_s(10) };
        let (mut plain, mut told) = (run(Vec::new(), 1), run(vec![Event { at_ps: Time::from_ps(at * 1000), change }], 1));
        (plain.events, told.events) = (0, 0);
        prop_assert_eq!(plain, told);
    }
}
