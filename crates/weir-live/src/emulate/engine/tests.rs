use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::thread;

use weir_core::path::spec::{JitterSpec, RateSpec};
use weir_core::path::{LossModel, replay};
use weir_core::rng::Seed;
use weir_core::spec::Limit;
use weir_core::units::Rate;

use super::super::Meters;
use super::super::segments::OFFLOAD_HEADER;
use super::super::segments::tests::{assert_legal, joined_tcp};
use super::*;
use crate::host::{Priority, Seat};

/// Emulates one hop between datagram sockets while `work` uses their other ends.
fn emulate(forward: LineSpec, work: impl FnOnce(&UnixDatagram, &UnixDatagram)) -> Report {
    emulate_with(false, forward, work)
}

/// Perhaps with joined packets, whose headers the sockets carry like a device.
fn emulate_with(joined: bool, forward: LineSpec, work: impl FnOnce(&UnixDatagram, &UnixDatagram)) -> Report {
    let pair = || UnixDatagram::pair().expect("a pair of sockets");
    let ((near, near_end), (far, far_end)) = (pair(), pair());
    near_end.set_nonblocking(true).expect("a socket");
    far_end.set_nonblocking(true).expect("a socket");
    let (stop, mut stopper) = std::io::pipe().expect("a pipe");
    let meters = Arc::new(Meters::of(1));
    let plan_meters = Arc::clone(&meters);
    let report = thread::scope(|scope| {
        let emulator = scope.spawn(move || {
            let hop = Hop {
                near: near_end.into(),
                far: far_end.into(),
                forward,
                backward: LineSpec::transparent(),
                strips_window_scale: false,
            };
            let plan = Plan {
                hops: vec![hop],
                seed: Seed::new(4),
                seat: Seat { namespace: None, cpu: None, priority: Priority::Normal },
                spin: Span::ZERO,
                mtu: 1500,
                joined,
                memory: 1_000_000,
                record: 10_000,
                meters: plan_meters,
            };
            run(&plan, stop.as_fd())
        });
        work(&near, &far);
        stopper.write_all(b".").expect("the emulator listens");
        emulator.join().expect("no panic").expect("a report")
    });
    for (reading, line) in meters.read().iter().zip(&report.lines) {
        let counters = &line.counters;
        assert_eq!((reading.arrived, reading.lost), (counters.arrived, counters.lost));
        assert!(reading.left <= counters.left, "what was inside at the end was not read");
    }
    report
}

fn receive(socket: &UnixDatagram) -> Vec<u8> {
    let mut buffer = [0; 2000];
    let length = socket.recv(&mut buffer).expect("a packet");
    buffer[..length].to_vec()
}

#[test]
fn packets_come_out_as_they_went_in_both_directions() {
    let report = emulate(LineSpec::transparent(), |near, far| {
        near.send(b"there").expect("room");
        assert_eq!(receive(far), b"there");
        far.send(b"back").expect("room");
        assert_eq!(receive(near), b"back");
    });
    let left: Vec<u64> = report.lines.iter().map(|line| line.counters.left).collect();
    assert_eq!(left, [1, 1]);
    assert_eq!(report.lines[1].direction, "backward");
}

#[test]
fn the_pure_model_repeats_what_happened() {
    let spec = LineSpec {
        rate: RateSpec::Constant { rate_bps: Rate::from_bps(20_000_000) },
        limit: Limit::Bytes(Bytes::new(5_000)),
        delay_ps: Span::from_ms(3),
        loss: LossModel::Random { probability: 0.1 },
        duplicate: 0.1,
        jitter: JitterSpec::Uniform { most_ps: Span::from_ms(1), keeps_order: false },
        lanes: 2,
        ..LineSpec::transparent()
    };
    let reported = spec.clone();
    let report = emulate(spec, |near, far| {
        let frame = |i: u8, size: usize| [vec![0x45; 20], vec![i; size]].concat();
        far.set_nonblocking(true).expect("a socket");
        for i in 0..100 {
            near.send(&frame(i, 80 + usize::from(i) * 10)).expect("room");
            if i % 10 == 0 {
                thread::sleep(std::time::Duration::from_millis(2));
            }
            while far.recv(&mut [0; 2000]).is_ok() {}
        }
        // Until the last is through: what is inside takes less than 10 ms.
        thread::sleep(std::time::Duration::from_millis(50));
        while far.recv(&mut [0; 2000]).is_ok() {}
    });
    let record = &report.lines[0].record;
    let again = replay(&reported, Seed::new(4), "hop-0/forward", &record.arrivals, record.until);
    assert_eq!(record.arrivals.len(), 100);
    assert_eq!(record.departures, again.departures);
    assert_eq!(record.dropped, again.dropped);
    assert_eq!(record.lost, again.lost);
    assert!(!record.dropped.is_empty() && !record.lost.is_empty(), "the test needs some of both");
}

/// What a line of this kind makes of a joined packet of five segments; the payloads of what comes out, and the
/// report.
fn joined_through(forward: LineSpec) -> (Vec<Vec<u8>>, Report) {
    let (packet, payload) = joined_tcp(4 * 1000 + 10);
    let mut out = Vec::new();
    let report = emulate_with(true, forward, |near, far| {
        near.send(&packet).expect("room");
        far.set_read_timeout(Some(std::time::Duration::from_millis(300))).expect("a socket");
        let mut buffer = vec![0; 70_000];
        while let Ok(length) = far.recv(&mut buffer) {
            assert_legal(&buffer[..length]);
            out.push(buffer[OFFLOAD_HEADER + 52..length].to_vec());
        }
    });
    assert_eq!(out.concat().len() + report.lines[0].counters.lost as usize * 1000, payload.len());
    (out, report)
}

#[test]
fn segments_that_leave_together_are_written_as_one_packet() {
    let (out, report) = joined_through(LineSpec { delay_ps: Span::from_ms(2), ..LineSpec::transparent() });
    assert_eq!(out.iter().map(Vec::len).collect::<Vec<_>>(), [4_010]);
    assert_eq!((report.lines[0].counters.arrived, report.lines[0].counters.left), (5, 5));
    assert_eq!(report.lines[0].lateness.count(), 5);
}

#[test]
fn a_line_with_a_rate_sees_each_segment_and_lets_it_go_at_its_own_time() {
    let rate = RateSpec::Constant { rate_bps: Rate::from_bps(8_000_000) };
    let (out, report) = joined_through(LineSpec { rate, ..LineSpec::transparent() });
    assert_eq!(out.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000, 1000, 1000, 10]);
    let record = &report.lines[0].record;
    let sizes: Vec<u64> = record.arrivals.iter().map(|arrived| arrived.size.count()).collect();
    assert_eq!(sizes, [1052, 1052, 1052, 1052, 62]);
    let times: Vec<Time> = record.departures.iter().map(|&(_, at)| at).collect();
    assert!(times.windows(2).take(3).all(|pair| pair[1] - pair[0] == Span::from_us(1052)));
}

#[test]
fn a_lost_segment_is_missing_and_those_around_it_come() {
    // A channel that loses every packet from its third on, after the Gilbert model with sure transitions.
    let (out, report) =
        joined_through(LineSpec { loss: LossModel::Random { probability: 0.3 }, ..LineSpec::transparent() });
    let lost = &report.lines[0].record.lost;
    assert!(!lost.is_empty() && lost.len() < 5, "the seed shall lose some, not all: {lost:?}");
    let runs = 1 + (1..4).filter(|i| lost.contains(i)).count();
    assert!(out.len() <= runs);
}
