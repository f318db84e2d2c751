use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;

use weir_core::spec::{Departures, Source, Spec};
use weir_core::units::Span;
use weir_sim::{Plan, Progress, PushedSource, Sim, SimError, Tables, simulate};

use crate::scenarios::{constant, one_way, spec};

fn random_load(duration: Span) -> Spec {
    let departures = Departures::Poisson { mean_gap_ps: 2e6 };
    let source = |from| Source { departures: departures.clone(), ..constant(from, 2, 1) };
    spec(3, vec![source(0), source(1)], duration)
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let plan = Plan::new(random_load(Span::from_us(500))).expect("a legal spec");
    let seeds: Vec<u64> = (0..7).chain([3, u64::MAX]).collect();
    let batch = |threads| simulate(&plan, &seeds, threads, &Progress::new()).expect("lawful runs");
    let one = batch(1);
    for threads in [0, 2, 5, 100] {
        assert_eq!(batch(threads), one);
    }
    assert_eq!(one.iter().map(|totals| totals.seed).collect::<Vec<_>>(), seeds);
    assert_eq!(one[3].flows, one[7].flows, "the same seed gives the same run");
    assert_ne!(one[3].flows, one[4].flows, "another seed gives another");
    assert_ne!(one[0].flows, one[1].flows, "zero is a seed");
}

#[test]
fn a_batch_without_seeds_has_all_tables_without_rows() {
    let plan = Plan::new(one_way(2000, Span::from_us(10))).expect("a legal spec");
    let batch = simulate(&plan, &[], 2, &Progress::new()).expect("lawful runs");
    assert_eq!(batch, []);
    let Tables(tables) = Tables::new(&plan, &batch);
    let mut names: Vec<&str> = tables.iter().map(|table| table.name).collect();
    let traffic = ["runs", "flows", "ports", "port_classes", "drops", "marks"];
    let series = ["intervals", "deliveries", "flow_deliveries", "burst_intervals", "pool_intervals", "hold_intervals"];
    let facts =
        [&traffic[..], &series[..], &["holds", "buffers", "buffer_inputs", "hold_causes", "storms", "deadlocks"]]
            .concat();
    let control = [
        "queue_levels",
        "bursts",
        "memories",
        "message_totals",
        "messages",
        "rounds",
        "control_frames",
        "control_intervals",
        "reaction_points",
        "limiters",
    ];
    let tcp = ["connections", "resent", "tcp", "captures", "probe_streams", "probe_states", "probe_packets"];
    let estimates = ["bandwidth_estimates", "probe_trains", "prober_names"];
    let probing = ["quantity_names", "ending_names", "trend_names", "fleet_names", "outcome_names", "state_names"];
    let dimensions =
        ["connection_names", "flow_names", "port_names", "pool_names", "traffic_names", "cause_names", "kind_names"];
    let mut parts =
        [&facts[..], &control[..], &["delays"], &tcp[..], &estimates[..], &probing[..], &dimensions[..]].concat();
    names.sort_unstable();
    parts.sort_unstable();
    assert_eq!(names, parts);
}

#[test]
fn progress_ends_at_its_total() {
    let plan = Plan::new(random_load(Span::from_us(500))).expect("a legal spec");
    let progress = Progress::new();
    simulate(&plan, &[1, 2, 3], 2, &progress).expect("lawful runs");
    assert_eq!(progress.done(), Progress::total(3));
}

#[test]
fn what_the_first_run_counts_is_reported_while_it_goes_on_and_changes_nothing() {
    let plan = Plan::new(random_load(Span::from_ms(200))).expect("a legal spec");
    let (silent, watched) = (Progress::new(), Progress::with_news());
    let plain = simulate(&plan, &[1, 2], 2, &silent).expect("lawful runs");
    let seen = simulate(&plan, &[1, 2], 2, &watched).expect("lawful runs");
    assert_eq!(plain, seen);
    assert_eq!(silent.news(), []);
    let news = watched.news();
    assert!(news.len() >= 4, "{} notes", news.len());
    assert!(news.is_sorted_by(|one, next| one.now < next.now && one.sent <= next.sent));
    for counts in &news {
        assert_eq!(counts.sent, counts.delivered + counts.dropped + counts.alive, "{counts:?}");
    }
    let all: u64 = plain[0].flows.iter().map(|flow| flow.sent_frames).sum();
    assert!(news.last().is_some_and(|last| last.sent <= all));
    assert_eq!(watched.news(), [], "each is told once");
}

#[test]
fn a_request_to_end_is_looked_at_within_65_536_events_of_a_run() {
    let plan = Plan::new(random_load(Span::from_ms(200))).expect("a legal spec");
    let mut asked = 0;
    let whole = Sim::<PushedSource>::new(&plan, 0, [])
        .run(|_| {
            asked += 1;
            ControlFlow::Continue(())
        })
        .expect("a lawful run");
    assert!(asked >= whole.events / 65_536, "{asked} questions in {} events", whole.events);
    assert!(whole.events > 4 * 65_536, "a run long enough to tell");
    let mut answers = 0;
    let ended = Sim::<PushedSource>::new(&plan, 0, []).run(|_| {
        answers += 1;
        if answers < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!((ended, answers), (Err(SimError::Interrupted), 2), "nobody is asked again");
}

#[test]
fn one_long_run_can_be_watched_and_ended_from_another_thread() {
    let progress = Arc::new(Progress::new());
    let working = Arc::clone(&progress);
    let worker = thread::spawn(move || {
        let plan = Plan::new(random_load(Span::from_ms(3_600_000))).expect("a legal spec");
        simulate(&plan, &[1], 1, &working)
    });
    let mut seen = 0;
    while seen == 0 {
        thread::yield_now();
        seen = progress.done();
    }
    assert!(seen < Progress::total(1));
    progress.cancel();
    assert_eq!(worker.join().expect("no panic"), Err(SimError::Interrupted));
}

#[test]
fn a_backlog_that_takes_long_to_draw_can_be_interrupted() {
    // 10^12 frames are generated in a second, 833 333 can be sent.
    let mut spec = one_way(1, Span::from_ms(1_000));
    spec.traffic[0].sources[0].departures = Departures::Constant { gap_ps: 1.0 };
    let plan = Plan::new(spec).expect("a legal spec");
    let mut asked = 0;
    let answer = Sim::<PushedSource>::new(&plan, 0, []).run(|now| {
        asked += u32::from(now.ps() == Span::from_ms(1_000).ps());
        if asked < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(answer, Err(SimError::Interrupted));
}
