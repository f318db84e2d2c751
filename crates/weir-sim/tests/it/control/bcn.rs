//! Notifications, and limiters at hosts.

use weir_core::spec::control::{Bcn, BcnReactionPoint, Limiter, NotificationLane, Pause, Sampling};
use weir_core::spec::{Limit, LimiterProbe, Spec};
use weir_core::units::{Rate, Span};
use weir_sim::workloads::calibration;
use weir_sim::{ControlKind, DropCause};

use super::{PAUSE, sent, slow_receiver, us};
use crate::scenarios::{FRAME, constant, drop_tail, run};

/// BCN at port 2, each frame sampled, a set point of one frame.
fn slow_receiver_with_bcn(duration: Span) -> Spec {
    let mut spec = slow_receiver(duration);
    let Some(Bcn { congestion_point, reaction_point }) = calibration().control.bcn else { panic!("it has BCN") };
    let mut point = congestion_point;
    point.ports = vec![2];
    (point.q_eq_bytes, point.sample_every_bytes) = (FRAME, FRAME);
    (point.sampling, point.notification.delay_ps) = (Sampling::Uniform { jitter: 0.0 }, Span::ZERO);
    let reaction_point = BcnReactionPoint {
        hosts: vec![0],
        gd: 0.25,
        min_rate_bps: Rate::from_bps(1_250_000_000),
        drift: None,
        limiter: Limiter::default(),
        ..reaction_point
    };
    spec.control.bcn = Some(Bcn { congestion_point: point, reaction_point });
    spec
}

#[test]
fn a_notification_goes_back_and_slows_the_sender_down() {
    let mut spec = slow_receiver_with_bcn(Span::from_ns(13_100));
    spec.record.limiters = vec![LimiterProbe { host: 0, every_ps: us(5) }];
    // A frame waits at 2.9 us: Fb = -2; two at 4.1 us: Fb = -3; three at 5.3 us: Fb = -4, as changes count up to 2.
    // Each takes effect after 51.2 ns on the link, 0.5 us on its way and 1 us at the host, at 4.4512 us, and so on.
    // Frames began at 0, 1.2, 2.4 and 3.6 us; the next at 3.6 us + 12 kbit / 1.25 Gbit/s = 13.2 us.
    let before = run(&spec, 1);
    assert_eq!(before.ports[0].counters.frames, 4);
    assert_eq!(sent(&before), [(1, 2, ControlKind::BcnNegative, 3)]);
    let [(0, rows)] = &before.control.limiters[..] else { panic!("one flow") };
    let rates: Vec<Option<u64>> = rows.iter().map(|row| row.rate_bps).collect();
    assert_eq!(rates, [Some(5_000_000_000), Some(1_250_000_000), Some(1_250_000_000)]);
    assert_eq!(rows[0].limited_ps, 5_000_000 - 4_451_200);
    assert!((rows[0].rate_bit - 0.5488 * 5000.0).abs() < 1e-6);
    spec.run.duration_ps = Span::from_ns(13_300);
    let after = run(&spec, 1);
    assert_eq!(after.ports[0].counters.frames, 5);
    let [(0, meter)] = after.control.reaction_points[..] else { panic!("one flow") };
    assert_eq!((meter.made, meter.decreases, meter.increases, meter.removed), (1, 3, 0, 0));
}

#[test]
fn a_notification_takes_the_lane_that_it_is_given() {
    // On the way back to host 0 lie 8 frames from host 2, sent there by the same switch.
    let mut spec = slow_receiver_with_bcn(us(30));
    let control = run(&spec, 1).control.reaction_points;
    let data = |spec: &mut Spec| {
        if let Some(bcn) = &mut spec.control.bcn {
            bcn.congestion_point.notification.lane = NotificationLane::Data;
        }
    };
    data(&mut spec);
    assert_eq!(run(&spec, 1).control.reaction_points, control, "where nothing waits the lanes are the same");
    // A queue that takes nothing drops what has to wait; back to host 0 goes what host 2 sends, too.
    spec.traffic[0].sources.push(constant(2, 0, 12_000));
    spec.queues = vec![drop_tail(vec![1], Limit::Frames(0))];
    let crowded = run(&spec, 1);
    let [(0, meter), ..] = crowded.control.reaction_points[..] else { panic!("the flow of host 0") };
    assert!(meter.decreases < control[0].1.decreases, "notifications can be dropped");
}

#[test]
fn a_limiter_passes_frames_on_while_its_port_is_paused_if_it_has_room_behind() {
    let mut spec = slow_receiver_with_bcn(us(30));
    spec.control.pause = vec![Pause { nodes: vec![1], ..PAUSE }];
    let released = |fifo_frames: u32| {
        let mut spec = spec.clone();
        spec.run.duration_ps = us(60);
        if let Some(bcn) = &mut spec.control.bcn {
            bcn.reaction_point.limiter.fifo_frames = fifo_frames;
        }
        let totals = run(&spec, 1);
        assert!(totals.drops.is_empty());
        (totals.ports[0].counters.frames, totals.flows[0].live_frames)
    };
    // What was passed on goes at the line rate when the port is released.
    assert!(released(10).0 > released(0).0);
}

#[test]
fn what_a_limiter_has_no_room_for_is_distinguished_from_other_drops() {
    let of_cause = |spec: &Spec, cause: DropCause| -> Vec<(u32, u64)> {
        let totals = run(spec, 1);
        let rows = totals.drops.iter().filter(|row| row.cause == cause);
        rows.map(|row| (row.port, row.frames)).collect()
    };
    let mut spec = slow_receiver_with_bcn(us(100));
    let Some(bcn) = &mut spec.control.bcn else { panic!("it has BCN") };
    (bcn.reaction_point.limiter.queue, bcn.reaction_point.gi) = (Limit::Frames(2), 0.001);
    // One frame leaves each 9.6 us from 3.6 us on, and one comes each 1.2 us from 0 on: up to 100 us 84 have come, and
    // 14 have left (at 0, 1.2, 2.4, 3.6, 13.2 ... 99.6 us); the others wait or are lost.
    assert_eq!(of_cause(&spec, DropCause::LimiterFull), [(0, 84 - 14 - 2)]);
    assert_eq!(of_cause(&spec, DropCause::QueueFull), []);
    spec.queues = vec![drop_tail(vec![2], Limit::Frames(0))];
    let Some(bcn) = &mut spec.control.bcn else { panic!("it has BCN") };
    bcn.reaction_point.hosts.clear();
    assert_eq!(of_cause(&spec, DropCause::LimiterFull), [], "without limiters");
    assert!(matches!(of_cause(&spec, DropCause::QueueFull)[..], [(2, 1..)]), "the switch drops");
}
