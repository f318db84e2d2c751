//! Laws of runs in the course of which links go down and up, and rates, buffers and holds change.

use std::ops::ControlFlow;

use proptest::prelude::*;
use weir_core::path::LossModel;
use weir_core::spec::aqm::{Aqm, Codel};
use weir_core::spec::events::{Change, Event};
use weir_core::spec::{Discipline, Limit, Network, QueueRule, Spec};
use weir_core::units::{Bytes, Rate, Span, Time};
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

/// Those of `events`, in order of time, that may happen after those before them: no link goes down twice.
fn in_turn(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by_key(|event| event.at_ps);
    let mut spec = workloads::fat_tree(4);
    for event in events {
        spec.events.push(event);
        if spec.check().is_err() {
            spec.events.pop();
        }
    }
    spec.events
}

fn run(events: Vec<Event>, seed: u64) -> Totals {
    let mut spec = workloads::fat_tree(4);
    spec.events = events;
    run_spec(spec, seed)
}

fn run_spec(spec: Spec, seed: u64) -> Totals {
    let plan = Plan::new(spec).expect("a legal spec");
    Sim::standard(&plan, seed).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The run itself checks that each flow adds up, and that no frame stands nowhere.
    #[test]
    fn no_frame_gets_lost_unseen_whatever_happens(events in any_events()) {
        let events = in_turn(events);
        let has_down = events.iter().any(|event| matches!(event.change, Change::Down { .. }));
        let totals = run(events, 1);
        prop_assert!(totals.drops.windows(2).all(|rows| rows[0] < rows[1]));
        let lost = totals.drops.iter().any(|drop| drop.cause == DropCause::LinkDown);
        prop_assert!(has_down || !lost);
    }

    /// The rows of tables alone account for every frame: by flow, by port, and over all links.
    #[test]
    fn tables_account_for_every_frame(events in any_events(), loses in any::<bool>(), is_managed in any::<bool>()) {
        let mut spec = workloads::fat_tree(4);
        if let (true, Network::FatTree { link, .. }) = (loses, &mut spec.network) {
            link.loss = LossModel::Random { probability: 0.02 };
        }
        if is_managed {
            let aqm = Aqm::Codel(Codel { target_ps: Span::from_us(5), interval_ps: Span::from_us(20), ecn: false });
            let discipline = Discipline::Managed { limit: Limit::Frames(20), aqm };
            spec.queues.push(QueueRule { ports: (0..PORTS).collect(), discipline });
        }
        spec.events = in_turn(events);
        let totals = run_spec(spec, 1);
        for flow in &totals.flows {
            prop_assert_eq!(flow.sent_frames, flow.delivered_frames + flow.dropped_frames + flow.live_frames);
        }
        for (port, row) in (0..).zip(&totals.ports) {
            let of_port = totals.drops.iter().filter(|drop| drop.port == port);
            prop_assert_eq!(row.counters.drops + row.lost, of_port.map(|drop| drop.frames).sum::<u64>(), "port {}", port);
        }
        let dropped: u64 = totals.flows.iter().map(|flow| flow.dropped_frames).sum();
        let live: u64 = totals.flows.iter().map(|flow| flow.live_frames).sum();
        prop_assert_eq!(totals.drops.iter().map(|drop| drop.frames).sum::<u64>(), dropped);
        // What began and is not on its link any more was received or lost on it; a node that knew no way received it first.
        let began: u64 = totals.ports.iter().map(|row| row.counters.frames).sum();
        let lost: u64 = totals.ports.iter().map(|row| row.lost).sum();
        prop_assert!(totals.packet_hops <= began && began <= totals.packet_hops + lost + live);
    }

    /// What happened once is over: an event that changes nothing moves no count.
    #[test]
    fn an_event_that_changes_nothing_moves_nothing(at in 0..END_NS) {
        let change = Change::Rate { ports: (0..PORTS).collect(), rate_bps: Rate::from_gbit_per_s(10) };
        let (mut plain, mut reported) = (run(Vec::new(), 1), run(vec![Event { at_ps: Time::from_ps(at * 1000), change }], 1));
        (plain.events, reported.events) = (0, 0);
        prop_assert_eq!(plain, reported);
    }
}
