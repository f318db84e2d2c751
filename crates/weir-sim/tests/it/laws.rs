//! What holds in any scenario. That frames are conserved is checked in every run, by walking queues and links.

use proptest::prelude::*;
use weir_core::path::LossModel;
use weir_core::spec::{Link, Network, Node, NodeKind, Record, Spec, Stream};
use weir_core::units::Span;
use weir_sim::{DropCause, Feeding, Intervals, Plan, Progress, Totals, simulate};

use crate::scenarios::{LINK, any_scenario, run, run_fed};

/// All that was counted, but for how much work it was.
fn facts(mut totals: Totals) -> Totals {
    totals.events = 0;
    totals
}

/// All that was counted besides series and distributions.
fn counts(totals: Totals) -> Totals {
    Totals { intervals: Intervals::default(), deliveries: vec![], delays: vec![], ..facts(totals) }
}

fn renamed(mut spec: Spec) -> Spec {
    let Network::Graph { nodes, .. } = &mut spec.network else { unreachable!("any scenario is a graph") };
    nodes.iter_mut().for_each(|node| node.name.insert(0, 'x'));
    spec.traffic.iter_mut().for_each(|group| group.name.push('x'));
    spec
}

fn extended(mut spec: Spec) -> Spec {
    let Network::Graph { nodes, links } = &mut spec.network else { unreachable!("any scenario is a graph") };
    nodes.push(Node { name: "later".into(), kind: NodeKind::Host, latency_ps: Span::ZERO });
    links.push(Link { a: nodes.len() as u32 - 1, b: 0, link: LINK });
    spec
}

fn with_exact_streams(mut spec: Spec) -> Spec {
    let sources = spec.traffic.iter_mut().flat_map(|group| &mut group.sources);
    (0..).zip(sources).for_each(|(state, source)| source.stream = Stream::SplitMix64 { state });
    let Network::Graph { links, .. } = &mut spec.network else { unreachable!("any scenario is a graph") };
    links.iter_mut().for_each(|link| link.link.loss = LossModel::None);
    spec
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sources_that_own_no_event_give_the_same_as_sources_that_do(spec in any_scenario(), seed: u64) {
        let (pulled, pushed) = (run_fed(&spec, seed, Feeding::Pulled), run_fed(&spec, seed, Feeding::Pushed));
        prop_assert!(pulled.events <= pushed.events);
        prop_assert_eq!(facts(pulled), facts(pushed));
    }

    #[test]
    fn looking_does_not_change_what_is_seen(spec in any_scenario(), seed: u64) {
        let unseen = Spec { record: Record::default(), ..spec.clone() };
        prop_assert_eq!(counts(run(&spec, seed)), counts(run(&unseen, seed)));
    }

    #[test]
    fn one_and_two_threads_agree(spec in any_scenario(), seed: u64) {
        let plan = Plan::new(spec.clone()).expect("a legal spec");
        let seeds = [seed, seed ^ 1, seed];
        let batch = |threads| simulate(&plan, &seeds, threads, &Progress::new()).expect("lawful runs");
        let one = batch(1);
        prop_assert_eq!(&batch(2), &one);
        prop_assert_eq!(&one[0], &one[2]);
        prop_assert_eq!(&one[0], &run(&spec, seed));
    }

    #[test]
    fn names_do_not_matter_where_chance_does_not_come_from_them(spec in any_scenario(), seed: u64) {
        let spec = with_exact_streams(spec);
        prop_assert_eq!(run(&renamed(spec.clone()), seed), run(&spec, seed));
    }

    #[test]
    fn what_is_added_behind_all_else_and_not_used_changes_nothing(spec in any_scenario(), seed: u64) {
        let (small, large) = (run(&spec, seed), run(&extended(spec), seed));
        prop_assert_eq!(&small.flows, &large.flows);
        prop_assert_eq!(&small.ports[..], &large.ports[..small.ports.len()]);
        prop_assert_eq!(small.drops, large.drops);
    }

    #[test]
    fn intervals_and_bins_add_up_to_the_totals(spec in any_scenario(), seed: u64) {
        let totals = run(&spec, seed);
        let duration = spec.run.duration_ps;
        let mut intervals = totals.intervals.rows().peekable();
        for probe in &spec.record.ports {
            let rows: Vec<_> =
                std::iter::from_fn(|| intervals.next_if(|row| row.0 == probe.port)).map(|(_, row)| row).collect();
            prop_assert_eq!(rows.len() as u64, duration.ps().div_ceil(probe.every_ps.ps()));
            for (i, row) in (1..).zip(&rows) {
                prop_assert_eq!(row.t_ps, (i * probe.every_ps.ps()).min(duration.ps()));
                prop_assert!(row.queue_bytes <= row.queue_max_bytes);
                prop_assert!(row.queue_byte_ps <= u128::from(row.queue_max_bytes) * u128::from(probe.every_ps.ps()));
            }
            let total = &totals.ports[probe.port as usize];
            prop_assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), total.counters.bytes);
            prop_assert_eq!(rows.iter().map(|row| row.frames).sum::<u64>(), total.counters.frames);
            prop_assert_eq!(rows.iter().map(|row| row.drops).sum::<u64>(), total.counters.drops);
            prop_assert_eq!(rows.iter().map(|row| row.queue_byte_ps).sum::<u128>(), total.counters.queue_byte_ps);
            prop_assert_eq!(rows.iter().map(|row| row.queue_max_bytes).max(), Some(total.counters.queue_max_bytes));
        }
        prop_assert_eq!(intervals.next(), None);
        let plan = Plan::new(spec.clone()).expect("a legal spec");
        for (group, rows) in &totals.deliveries {
            let delivered = totals.flows.iter().zip(plan.flow_groups()).filter(|(_, of)| of == group);
            let delivered: Vec<_> = delivered.map(|(flow, _)| (flow.delivered_frames, flow.delivered_bytes)).collect();
            prop_assert_eq!(rows.iter().map(|row| row.frames).sum::<u64>(), delivered.iter().map(|d| d.0).sum::<u64>());
            prop_assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), delivered.iter().map(|d| d.1).sum::<u64>());
        }
        for (id, flow) in (0..).zip(&totals.flows).filter(|_| spec.record.delays) {
            let bins: Vec<_> = totals.delays.iter().filter(|bin| bin.0 == id).collect();
            prop_assert_eq!(bins.iter().map(|bin| bin.3).sum::<u64>(), flow.delivered_frames);
            let bound = |bound: fn(&(u32, u64, u64, u64)) -> u64| {
                bins.iter().map(|bin| u128::from(bound(bin)) * u128::from(bin.3)).sum::<u128>()
            };
            prop_assert!(bound(|bin| bin.1) <= flow.delay_sum_ps && flow.delay_sum_ps <= bound(|bin| bin.2));
        }
    }

    #[test]
    fn ports_and_flows_report_the_same_frames(spec in any_scenario(), seed: u64) {
        let totals = run(&spec, seed);
        let duration = spec.run.duration_ps.ps();
        let mut dropped = vec![0; totals.ports.len()];
        let mut of_flow = vec![0; totals.flows.len()];
        let mut lost = 0;
        for drop in &totals.drops {
            match drop.cause {
                DropCause::QueueFull | DropCause::LimiterFull | DropCause::QueueEarly | DropCause::BufferFull
                | DropCause::Watchdog => {
                    dropped[drop.port as usize] += drop.frames;
                }
                DropCause::LinkLoss => lost += drop.frames,
                // Seen by no counter of a port.
                DropCause::InputOverrun | DropCause::LinkDown => {}
            }
            of_flow[drop.flow as usize] += drop.frames;
        }
        prop_assert_eq!(dropped, totals.ports.iter().map(|port| port.counters.drops).collect::<Vec<_>>());
        prop_assert_eq!(of_flow, totals.flows.iter().map(|flow| flow.dropped_frames).collect::<Vec<_>>());
        prop_assert!(totals.drops.is_sorted());
        prop_assert!(totals.ports.iter().all(|port| port.counters.busy_ps <= duration && port.pauses.count == 0));
        let begun = totals.ports.iter().map(|port| port.counters.frames).sum::<u64>();
        prop_assert!(totals.packet_hops <= begun);
        let on_links = begun - totals.packet_hops - lost;
        prop_assert!(on_links <= totals.flows.iter().map(|flow| flow.live_frames).sum::<u64>());
        for flow in &totals.flows {
            prop_assert_eq!(flow.delay_min.is_some(), flow.delivered_frames > 0);
            if let (Some(min), Some(max)) = (flow.delay_min, flow.delay_max) {
                let frames = u128::from(flow.delivered_frames);
                prop_assert!(u128::from(min.ps()) * frames <= flow.delay_sum_ps);
                prop_assert!(flow.delay_sum_ps <= u128::from(max.ps()) * frames);
            }
        }
    }
}
