//! Any network under congestion management.

use std::ops::ControlFlow;

use proptest::prelude::*;
use weir_core::network::Topology;
use weir_core::spec::control::{Control, Drift, Limiter, NotificationLane, Pause, Response, SevereAction};
use weir_core::spec::{Limit, LimiterProbe, Spec};
use weir_core::units::{Bytes, Rate, Span};
use weir_sim::workloads::calibration;
use weir_sim::{Plan, PushedSource, Sim};

use super::{PAUSE, severe, us, with_qcn};
use crate::scenarios::{any_scenario, constant, drop_tail, run, spec};

/// Of limiters: some hold nothing at all, or less than a frame.
fn any_limiter_queue() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (0u64..4).prop_map(Limit::Frames),
        (0u64..5000).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
    ]
}

fn star(hosts: u32, gap: u64) -> Spec {
    let sources = (0..hosts - 1).map(|host| constant(host, hosts - 1, gap)).collect();
    spec(hosts, sources, us(400))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A queue that can hold what is on its way while PAUSE takes effect loses nothing.
    #[test]
    fn pause_with_enough_headroom_loses_nothing(
        hosts in 3u32..7, gap in 1200u64..3000, xoff in 0u64..50_000, part in 0.0..1.0f64, response in 0u64..3000,
        delay in 0u64..2000,
    ) {
        let mut spec = star(hosts, gap);
        let senders = u64::from(hosts - 1);
        // Of each sender: the frame that began just before, what its link holds, and what it sends while XOFF waits
        // for a frame on the way back, is sent, travels and is responded to; 1.25 B in a nanosecond.
        let reaction_ns = delay + 1200 + 52 + 500 + response + 500;
        let headroom = senders * (reaction_ns * 5 / 4 + 2 * 1500);
        let hot = 2 * (hosts - 1) + 1;
        spec.queues = vec![drop_tail(vec![hot], Limit::Bytes(Bytes::new(xoff + headroom)))];
        spec.control.pause = vec![Pause {
            nodes: vec![hosts],
            xoff_bytes: Bytes::new(xoff),
            xon_bytes: Bytes::new((xoff as f64 * part) as u64),
            delay_ps: Span::from_ns(delay),
            ..PAUSE
        }];
        spec.control.responses = vec![Response {
            nodes: (0..hosts).collect(), pause_ps: Span::from_ns(response), notification_ps: Span::ZERO,
        }];
        let totals = run(&spec, 0);
        prop_assert!(totals.drops.is_empty(), "{:?}", totals.drops);
        // What has come and not gone after 300 us, were nobody stopped.
        let queued = 1500.0 * (300e3 * senders as f64 / gap as f64 - 250.0);
        let paused: u64 = (0..hosts - 1).map(|host| totals.ports[2 * host as usize].pauses.count).sum();
        prop_assert!(queued < (xoff + 2 * 1500 * senders) as f64 || paused >= senders, "{queued} B, {paused} pauses");
        prop_assert!(gap < 1200 * senders || xoff < 1500 * senders || paused == 0, "nothing waits, {paused} pauses");
        prop_assert!(totals.ports[hot as usize].counters.queue_max_bytes <= xoff + headroom);
    }

    /// Any network with any congestion management at any of its queues: frames and control frames are conserved, as
    /// each run checks, and the same seed gives the same run, recorded or not.
    #[test]
    fn any_network_conserves_frames_under_congestion_management(
        scenario in any_scenario(), chosen in any::<u64>(), qcn in any::<bool>(), data in any::<bool>(),
        pausing in any::<u64>(), xoff in 0u64..20_000, quanta in prop::option::of(1u16..200),
        every in 1500u64..20_000, fifo in 0u32..4, action in 0usize..3, queue in any_limiter_queue(),
        (timer, rows) in (1u64..40, 1u64..40),
    ) {
        let mut spec = scenario;
        let topology = Topology::expand(&spec.network).expect("a legal network");
        let picked = |bits: u64, id: u32| bits >> (id % 64) & 1 == 1;
        let ports = (0..).zip(&topology.ports).filter(|(id, port)| picked(chosen, *id) && !topology.is_host(port.from));
        let ports: Vec<u32> = ports.map(|(id, _)| id).collect();
        let nodes = 0..topology.nodes.len() as u32;
        let hosts = nodes.clone().filter(|&node| topology.is_host(node) && picked(chosen.rotate_left(7), node));
        let hosts: Vec<u32> = hosts.collect();
        let probe = |&host: &u32| LimiterProbe { host, every_ps: us(rows) };
        spec.record.limiters = hosts.iter().map(probe).collect();
        let mut control = if qcn { with_qcn().control } else {
            let action = [SevereAction::None, SevereAction::Stop, SevereAction::Max][action];
            severe(calibration(), action).control
        };
        let lane = if data { NotificationLane::Data } else { NotificationLane::Control };
        if let Some(bcn) = &mut control.bcn {
            bcn.congestion_point.ports = ports.clone();
            bcn.congestion_point.notification.lane = lane;
            bcn.congestion_point.sample_every_bytes = Bytes::new(every);
            bcn.congestion_point.q_eq_bytes = Bytes::new(2 * every);
            bcn.reaction_point.hosts = hosts;
            bcn.reaction_point.limiter = Limiter { queue, fifo_frames: fifo, ..bcn.reaction_point.limiter };
            bcn.reaction_point.drift = Some(Drift { step_bps: Rate::from_bps(100_000_000), every_ps: us(timer) });
        } else if let Some(qcn) = &mut control.qcn {
            qcn.congestion_point.ports = ports;
            qcn.congestion_point.notification.lane = lane;
            qcn.congestion_point.sample_every_bytes = Bytes::new(every);
            qcn.reaction_point.hosts = hosts;
            qcn.reaction_point.limiter = Limiter { queue, fifo_frames: fifo, ..qcn.reaction_point.limiter };
            qcn.reaction_point.recovery.timer_ps = us(timer);
        }
        let nodes = nodes.filter(|&node| !topology.is_host(node) && picked(pausing, node)).collect();
        let xoff_bytes = Bytes::new(xoff);
        control.pause = vec![Pause { nodes, xoff_bytes, xon_bytes: Bytes::new(xoff / 2), quanta, ..PAUSE }];
        control.responses.clear();
        spec.control = Control { ..control };
        let run = |spec: &Spec| {
            let plan = Plan::new(spec.clone()).expect("a legal spec");
            Sim::<PushedSource>::new(&plan, 7, []).run(|_| ControlFlow::Continue(()))
        };
        let recorded = run(&spec);
        prop_assert!(recorded.is_ok(), "{:?}", recorded.err());
        spec.record = weir_core::spec::Record::default();
        if let (Ok(recorded), Ok(plain)) = (recorded, run(&spec)) {
            prop_assert_eq!(recorded.flows, plain.flows);
            prop_assert_eq!(recorded.ports, plain.ports);
            prop_assert_eq!(recorded.control.frames, plain.control.frames);
            prop_assert_eq!(recorded.control.reaction_points, plain.control.reaction_points);
        }
    }
}
