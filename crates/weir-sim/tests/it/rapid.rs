//! Probing senders in a network: what leaves when, what imperfect hosts do, and what the path has room for.

use std::ops::ControlFlow;

use weir_core::cc;
use weir_core::path::LossModel;
use weir_core::rapid::{self, Adaptation, Estimator, Log, Outcome, ProbeState, Ramp, Schedule};
use weir_core::spec::transport::Hosts;
use weir_core::spec::{LinkSpec, Network, Spec, StreamProbe, SwitchSpec};
use weir_core::tcp::Timing;
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::{Plan, Sim, Totals, workloads};

const GIGABIT: Rate = Rate::from_gbit_per_s(1);
const SEGMENT: f64 = 1448.0;
/// Length of a full frame on the wire.
const WIRE: f64 = 1538.0;

pub(crate) fn rapid() -> rapid::Config {
    let plain = rapid::Config::over(GIGABIT);
    rapid::Config { rate: Adaptation { initial_bps: Rate::from_bps(200_000_000), ..plain.rate }, ..plain }
}

/// One probing connection, and from `cross_ms` on 300 Mbit/s of UDP beside it, over a link of 1 Gbit/s with a round trip
/// of 1.5 ms.
pub(crate) fn spec(rapid: rapid::Config, hosts: Hosts, duration_ms: u64, cross_ms: u64) -> Spec {
    let mut spec = workloads::dumbbell(1);
    let link = LinkSpec {
        rate_bps: GIGABIT,
        delay_ps: Span::from_us(250),
        framing_bytes: Bytes::new(20),
        loss: LossModel::None {},
    };
    let switch = SwitchSpec { latency_ps: Span::ZERO };
    spec.network = Network::Dumbbell { pairs: 2, access: link, bottleneck: link, switch };
    let tcp = spec.traffic[0].tcp.as_mut().expect("connections");
    tcp.config.congestion_control = cc::Config::Rapid(Box::new(rapid));
    tcp.config.arrival_stamps_ps = Some(Span::from_ns(1));
    tcp.config.delayed_ack_segments = 1;
    tcp.hosts = hosts;
    let cross = &mut spec.traffic[1].sources[0];
    (cross.start_ps, cross.stop_ps) = (Time::ZERO + Span::from_ms(cross_ms), Time::NEVER);
    spec.run.duration_ps = Span::from_ms(duration_ms);
    spec.record.probe_streams = vec![StreamProbe { traffic: 0, packets: true }];
    spec
}

fn run(spec: Spec) -> Totals {
    let plan = Plan::new(spec).expect("a legal spec");
    Sim::standard(&plan, 1).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

fn log(totals: &Totals) -> &Log {
    &totals.probing[0].1
}

#[test]
fn alone_it_fills_the_link_without_a_loss_and_all_streams_are_ramps() {
    let totals = run(spec(rapid(), Hosts::default(), 1_500, 10_000));
    assert_eq!((totals.connections[0].sender.retransmits, totals.drops.len()), (0, 0));
    let log = log(&totals);
    assert_eq!(log.states, []);
    let last = log.streams.last().expect("streams");
    assert!(last.rate.bps() as f64 > 0.97e9, "{}", last.rate);
    assert!(log.streams.iter().all(|row| row.fitting + 1 == row.packets && row.outcome == Outcome::Estimated));
    let delivered = totals.connections[0].receiver.delivered_bytes as f64;
    let most = 1e9 / 8.0 * SEGMENT / WIRE * 1.5;
    assert!(delivered < most && delivered > 0.7 * most, "{}", delivered / most);
}

#[test]
fn beside_other_traffic_it_takes_what_is_left_and_does_not_lose() {
    let mut totals = run(spec(rapid(), Hosts::default(), 2_500, 1_000));
    assert_eq!(totals.connections[0].sender.timeouts, 0);
    let log = std::mem::take(&mut totals.probing[0].1);
    // 1516 B and 20 B of framing for 1470 B of payload.
    let available = 1e9 - 300e6 * 1536.0 / 1470.0;
    let settled = log.streams.iter().filter(|row| row.started.ps() > 1_500_000_000_000);
    let mut seen: Vec<f64> = settled.filter_map(|row| row.available_bps).collect();
    seen.sort_by(f64::total_cmp);
    let median = seen[seen.len() / 2];
    assert!((median / available - 1.0).abs() < 0.1, "{median}, not {available}");
    assert!(totals.connections[0].sender.recoveries <= 1);
}

#[test]
fn packets_leave_when_they_were_due_and_arrive_a_fixed_time_later_on_an_empty_path() {
    let totals = run(spec(rapid(), Hosts::default(), 300, 10_000));
    let packets = &log(&totals).packets;
    for packet in packets {
        assert!(packet.left >= packet.due && packet.left - packet.due < Span::from_ns(20), "{packet:?}");
    }
    // Clocks differ by any amount, and stamps are in ns: the way takes as long for every packet.
    let ways: Vec<u64> =
        packets.iter().filter_map(|packet| packet.received.map(|received| (received - packet.left).ps())).collect();
    assert!(ways.len() > 3_000, "{}", ways.len());
    assert!(ways.iter().all(|way| way.abs_diff(ways[0]) <= 20_000), "{:?}", &ways[..20]);
}

#[test]
fn coarse_timers_destroy_the_ramps() {
    let timers = Some(Timing { tick_ps: Span::from_us(50), late: 0.0, by_ps: Span::ZERO });
    let totals = run(spec(rapid(), Hosts { timers, ..Hosts::default() }, 600, 10_000));
    let fast = log(&totals).streams.iter().filter(|row| (300_000_000..450_000_000).contains(&row.rate.bps()));
    let shares: Vec<f64> = fast.map(|row| f64::from(row.fitting) / f64::from(row.packets - 1)).collect();
    assert!(shares.len() > 20 && shares.iter().all(|&share| share < 0.8), "{shares:?}");
    assert!(log(&totals).packets.iter().all(|packet| packet.left.ps() >= packet.due.ps()));
}

#[test]
fn late_timers_leave_stalls_that_the_absolute_schedule_makes_up_for() {
    let stalls = |schedule| {
        let timers = Some(Timing { tick_ps: Span::ZERO, late: 0.005, by_ps: Span::from_ms(4) });
        let config = rapid::Config { schedule, ..rapid() };
        let totals = run(spec(config, Hosts { timers, ..Hosts::default() }, 1_000, 10_000));
        let packets = &log(&totals).packets;
        let late = packets.windows(2).filter(|pair| pair[1].left.saturating_since(pair[0].left) > Span::from_ms(2));
        (late.count(), totals.connections[0].receiver.delivered_bytes)
    };
    let (absolute, resync) = (stalls(Schedule::Absolute), stalls(Schedule::Resync));
    assert!(absolute.0 > 20 && resync.0 > 20, "{absolute:?} {resync:?}");
    assert!(absolute.1 as f64 > 1.3 * resync.1 as f64, "{absolute:?} {resync:?}");
}

#[test]
fn a_full_adapter_is_given_no_more() {
    let config = rapid::Config {
        rate: Adaptation { initial_bps: GIGABIT, ..rapid().rate },
        ramp: Ramp { clip: false, ..rapid().ramp },
        ..rapid()
    };
    let most = |adapter_frames| {
        let totals = run(spec(config.clone(), Hosts { adapter_frames, ..Hosts::default() }, 200, 10_000));
        totals.ports[0].counters.queue_max_bytes / 1518
    };
    assert!(most(None) > 10, "{}", most(None));
    assert_eq!(most(Some(5)), 5);
}

#[test]
fn an_adapter_that_gathers_frames_gives_them_the_same_time_of_arrival() {
    let hosts = Hosts { coalescing_ps: Some(Span::from_us(100)), ..Hosts::default() };
    let totals = run(spec(rapid(), hosts, 300, 10_000));
    let packets = &log(&totals).packets;
    let pairs = packets.windows(2).filter_map(|pair| Some((pair[0].received?, pair[1].received?)));
    let (mut same, mut apart) = (0, 0);
    for (one, other) in pairs {
        match other - one {
            Span::ZERO => same += 1,
            gap => {
                apart += 1;
                assert!(gap >= Span::from_us(99), "{gap}");
            }
        }
    }
    assert!(same > apart, "{same} {apart}");
}

#[test]
fn losses_turn_probing_off_and_their_repair_turns_it_on() {
    let mut blind = spec(
        rapid::Config {
            estimator: Estimator::Gap { epsilon_ps: Span::from_us(10), excursion: 4, sum: 1, scheduled: false },
            ramp: Ramp { clip: false, ..rapid().ramp },
            rate: Adaptation { initial_bps: Rate::from_bps(900_000_000), ..rapid().rate },
            ..rapid()
        },
        Hosts::default(),
        1_500,
        300,
    );
    blind.queues[0].discipline = weir_core::spec::Discipline::DropTail {
        limit: weir_core::spec::Limit::Frames(300),
        marking: None,
        overrun: None,
    };
    let totals = run(blind);
    let counters = totals.connections[0].sender;
    let parts = counters.fast_retransmits
        + counters.forward_retransmits
        + counters.slow_start_retransmits
        + counters.timeout_retransmits
        + counters.rescue_retransmits;
    assert_eq!(counters.retransmits, parts);
    assert!(counters.recoveries > 2, "{counters:?}");
    let states = &log(&totals).states;
    let offs = states.iter().filter(|row| row.state != ProbeState::On).count() as u64;
    assert_eq!(offs, counters.recoveries + counters.timeouts);
    assert!(states.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].state != pair[1].state), "{states:?}");
    let in_off = log(&totals).streams.iter().filter(|row| row.available_bps.is_some() && row.excursion_start.is_some());
    let streams = log(&totals).streams.len();
    assert!(in_off.count() * 10 < streams, "the estimator is blind");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let timers = Some(Timing { tick_ps: Span::ZERO, late: 0.01, by_ps: Span::from_ms(1) });
    let spec = spec(rapid(), Hosts { timers, ..Hosts::default() }, 200, 100);
    assert_eq!(run(spec.clone()), run(spec));
}
