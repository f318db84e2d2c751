//! Rows that leave a run while it goes on: sorted by what they are of, they are those of a run that keeps them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

use weir_core::estimation::{self, Method};
use weir_core::spec::control::SevereAction;
use weir_core::spec::transport::{Hosts, Prober, Probers};
use weir_core::spec::{LimiterProbe, Spec, TrafficProbe};
use weir_core::units::{Span, Time};
use weir_sim::hotspots::Benchmark;
use weir_sim::{Plan, Progress, SimError, Sink, Table, Tables, Values, simulate, simulate_to, workloads};

use crate::control::{severe, with_pause};
use crate::pfc::{buffer, slow_receiver};
use crate::rapid;
use crate::scenarios::{FRAME, LINK, constant, probe, spec};

/// A row as text: replicate, what it is of (a port or a flow; of control frames their kind, too), and all values.
type Row = (u32, u32, u32, String);

fn rows(table: &Table) -> Vec<Row> {
    let ids = |place: usize| match &table.columns[place].values {
        Values::U32(ids) => ids.clone(),
        other => panic!("{}: {other:?} holds no ids", table.name),
    };
    let texts: Vec<Vec<String>> = table.columns.iter().map(|column| texts(&column.values)).collect();
    let text = |place: usize| texts.iter().map(|column| column[place].clone()).collect::<Vec<_>>().join(" ");
    let kinds = if table.name == "control_intervals" { ids(2) } else { vec![0; ids(0).len()] };
    let row = |(place, ((replicate, id), kind))| (replicate, id, kind, text(place));
    ids(0).into_iter().zip(ids(1)).zip(kinds).enumerate().map(row).collect()
}

fn texts(values: &Values) -> Vec<String> {
    match values {
        Values::U32(values) => values.iter().map(ToString::to_string).collect(),
        Values::U64(values) => values.iter().map(ToString::to_string).collect(),
        Values::F64(values) => values.iter().map(ToString::to_string).collect(),
        Values::MaybeU64(values) => values.iter().map(|value| format!("{value:?}")).collect(),
        Values::MaybeU32(values) => values.iter().map(|value| format!("{value:?}")).collect(),
        Values::MaybeF64(values) => values.iter().map(|value| format!("{value:?}")).collect(),
        other => panic!("{other:?} is in no series"),
    }
}

const SERIES: [&str; 14] = [
    "intervals",
    "deliveries",
    "flow_deliveries",
    "burst_intervals",
    "pool_intervals",
    "hold_intervals",
    "tcp",
    "control_intervals",
    "limiters",
    "probe_streams",
    "probe_states",
    "probe_packets",
    "bandwidth_estimates",
    "probe_trains",
];

/// Runs `spec` with parts of a few rows and without; the tables of series are the same, and so is everything else. Rows of each of
/// `some` left before the end.
fn check(spec: &Spec, some: &[&str]) {
    let plan = Plan::new(spec.clone()).expect("a legal spec");
    let seeds = [3, 4, 5];
    let kept = simulate(&plan, &seeds, 2, &Progress::new()).expect("lawful runs");
    let parts: Mutex<BTreeMap<&str, Vec<Row>>> = Mutex::default();
    let order: Mutex<Vec<(u32, &str)>> = Mutex::default();
    let take = |replicate, part: Table| {
        let mine = rows(&part);
        assert!(mine.len() <= 64 && mine.iter().all(|row| row.0 == replicate), "{}", part.name);
        order.lock().expect("no panic").push((replicate, part.name));
        parts.lock().expect("no panic").entry(part.name).or_default().extend(mine);
        ControlFlow::Continue(())
    };
    let sink = Sink { rows: 64, take: &take };
    let spilled = simulate_to(Some(sink), &plan, &seeds, 2, &Progress::new()).expect("lawful runs");
    let (Tables(kept), Tables(spilled)) = (Tables::new(&plan, &kept), Tables::new(&plan, &spilled));
    let (mut parts, order) = (parts.into_inner().expect("no panic"), order.into_inner().expect("no panic"));
    // What leaves at the end leaves table by table.
    let left_early = |name: &str| {
        let of_first: Vec<bool> = order.iter().filter(|part| part.0 == 0).map(|part| part.1 == name).collect();
        of_first.chunk_by(|one, next| one == next).filter(|run| run[0]).count() > 1
    };
    for (kept, spilled) in kept.iter().zip(&spilled) {
        if SERIES.contains(&kept.name) {
            assert_eq!(rows(spilled), [], "{}", kept.name);
            let mut found = parts.remove(kept.name).unwrap_or_default();
            found.sort_by_key(|row| (row.0, row.1, row.2));
            assert!(!some.contains(&kept.name) || left_early(kept.name), "{}: all of it left at the end", kept.name);
            assert_eq!(found, rows(kept), "{}", kept.name);
        } else {
            assert_eq!(kept, spilled);
        }
    }
    assert!(parts.is_empty());
}

fn recorded(mut spec: Spec, every: Span, ports: u32) -> Spec {
    spec.record.ports = (0..ports).map(|port| probe(port, every)).collect();
    let groups = 0..spec.traffic.len() as u32;
    spec.record.traffic = groups.clone().map(|traffic| TrafficProbe { traffic, every_ps: every }).collect();
    spec.record.flows = groups.map(|traffic| TrafficProbe { traffic, every_ps: every }).collect();
    let hosts = spec.control.limited_hosts().iter();
    spec.record.limiters = hosts.map(|&host| LimiterProbe { host, every_ps: every }).collect();
    spec
}

#[test]
fn rows_of_the_event_engine_that_leave_are_those_that_stay() {
    check(&recorded(workloads::fat_tree(4), Span::from_us(10), 12), &["intervals"]);
    check(&recorded(workloads::incast(), Span::from_us(20), 6), &["intervals"]);
    let mut managed = with_pause(severe(workloads::calibration(), SevereAction::Max));
    managed.run.duration_ps = Span::from_ms(20);
    check(&recorded(managed, Span::from_us(60), 20), &["intervals", "control_intervals", "limiters"]);
    let probing = rapid::spec(rapid::rapid(), Hosts::default(), 800, 50);
    check(&recorded(probing, Span::from_ms(1), 2), &["probe_packets"]);
}

#[test]
fn rows_of_estimators_that_leave_are_those_that_stay() {
    let method = Method::Pathload {
        packets: 36,
        streams: 4,
        gap_ps: Span::from_us(100),
        share: 0.5,
        resolution_bps: None,
        most_bps: LINK.rate_bps,
        batch_ps: Span::ZERO,
        stamps_ps: Span::from_ns(1),
    };
    let config = estimation::Config {
        method,
        frame_bytes: FRAME,
        framing_bytes: LINK.framing_bytes,
        link_bps: LINK.rate_bps,
        measurements: None,
    };
    let prober = |from| Prober { from, to: 3, start_ps: Time::ZERO, stop_ps: Time::NEVER };
    let list = (0..2).map(prober).collect();
    let mut estimating = spec(4, vec![constant(2, 3, 2000)], Span::from_ms(1000));
    estimating.traffic[0].probers = Some(Probers { config, hosts: Hosts::default(), list });
    check(&recorded(estimating, Span::from_ms(10), 2), &["probe_trains", "bandwidth_estimates"]);
}

#[test]
fn rows_of_buffers_and_holds_that_leave_are_those_that_stay() {
    check(
        &recorded(slow_receiver(Span::from_us(500_000), buffer(3000, None)), Span::from_us(100), 6),
        &["pool_intervals", "hold_intervals"],
    );
}

#[test]
fn rows_of_the_slotted_engine_that_leave_are_those_that_stay() {
    let spec = Benchmark { slots: 1 << 14, ..Benchmark::single_stage(8) }.with_bcn(0.03, 0.005).spec();
    check(&recorded(spec, Span::from_ps(64 * 51_200), 9), &["intervals", "control_intervals", "limiters"]);
}

#[test]
fn a_run_whose_rows_nobody_takes_ends() {
    let plan = Plan::new(recorded(workloads::fat_tree(4), Span::from_us(10), 12)).expect("a legal spec");
    let sink = Sink { rows: 64, take: &|_, _| ControlFlow::Break(()) };
    assert_eq!(simulate_to(Some(sink), &plan, &[1], 1, &Progress::new()), Err(SimError::Interrupted));
}
