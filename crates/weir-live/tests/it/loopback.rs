use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir_core::units::{Bytes, Span, Time};
use weir_live::LiveError;
use weir_live::datagram::Header;
use weir_live::host::{Priority, Seat};
use weir_live::payloads::Payloads;
use weir_live::trial::{Direction, DirectionReport, Look, Plan, Report, StopRule, run};

const RUN: u32 = 0x5eed;

/// An address of the loopback network that nobody else uses during this test run.
fn address(host: u8) -> SocketAddrV4 {
    let free = UdpSocket::bind((Ipv4Addr::new(127, 0, 77, host), 0)).expect("the loopback network");
    match free.local_addr().expect("a bound socket") {
        SocketAddr::V4(address) => address,
        other => panic!("{other} is not IPv4"),
    }
}

/// Ten times as long as most schedules below: a sender without real-time priority may be late on a busy machine.
const AMPLE: Span = Span::from_ms(2_000);

/// What is asked to end earlier; a test that waited for its end would be killed as hung.
const A_LONG_TRIAL: Span = Span::from_ms(600_000);

fn plan(host: u8, duration: Span) -> Plan {
    Plan {
        directions: vec![direction(host)],
        payloads: Payloads::fixed(Bytes::new(18)),
        duration,
        settle: Span::from_ms(100),
        patience: Span::from_ms(5_000),
        send_buffer: Bytes::new(1 << 20),
        receive_buffer: Bytes::new(4 << 20),
        spin: Span::ZERO,
        stop: None,
        accounts: Vec::new(),
    }
}

fn direction(host: u8) -> Direction {
    let seat = Seat { namespace: None, cpu: None, priority: Priority::Normal };
    let destination = address(host);
    Direction {
        sender: seat.clone(),
        receiver: seat,
        source: SocketAddrV4::new(Ipv4Addr::new(127, 0, 77, host), 0),
        destination,
        listen: destination,
        run: RUN,
    }
}

fn every(gap: Span, count: u64) -> impl Iterator<Item = Time> + Clone + Send + Sync {
    (0..count).map(move |n| Time::ZERO + gap * n)
}

fn measure_all(plan: &Plan, gap: Span, count: u64) -> Result<Report, LiveError> {
    let departures: Vec<_> = plan.directions.iter().map(|_| every(gap, count)).collect();
    run(plan, &departures, &AtomicBool::new(false))
}

/// The only direction of a plan.
fn measure(plan: &Plan, gap: Span, count: u64) -> Result<DirectionReport, LiveError> {
    measure_all(plan, gap, count).map(|report| report.directions[0].clone())
}

#[test]
fn every_probe_over_the_loopback_is_accounted_for() {
    let plan = plan(1, AMPLE);
    let report = measure(&plan, Span::from_us(100), 2_000).expect("a trial");
    assert_eq!(report.intended, 2_000);
    assert_eq!(report.sent, 2_000, "there was time enough");
    assert_eq!(report.received + report.receiver_drops, report.sent);
    assert_eq!((report.duplicated, report.strangers), (0, 0));
    let delay = report.delay.expect("delays of what arrived");
    assert!(delay.min < Span::from_ms(1), "a loopback of {} is no loopback", delay.min);
    assert!(report.lateness.is_some());
}

#[test]
fn a_load_beyond_the_sender_ends_and_says_how_much_was_unsent() {
    let plan = plan(2, Span::from_ms(100));
    let report = measure(&plan, Span::from_ns(10), 10_000_000).expect("a trial");
    assert!(report.sent < report.intended);
    assert!(report.received + report.receiver_drops <= report.sent);
}

#[test]
fn drops_of_the_receivers_own_socket_are_distinguished() {
    let mut plan = plan(3, Span::from_ms(50));
    plan.receive_buffer = Bytes::new(4_096);
    let report = measure(&plan, Span::from_us(2), 25_000).expect("a trial");
    assert!(report.receiver_drops > 0, "a buffer of a few frames overflows");
    assert_eq!(report.received + report.receiver_drops, report.sent);
}

#[test]
fn strangers_are_counted_apart() {
    let plan = plan(4, AMPLE);
    let done = AtomicBool::new(false);
    let (report, intruded) = thread::scope(|scope| {
        let intruder = scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.77.4:0").expect("a socket");
            let mut payload = [0; 18];
            Header { run: RUN + 1, sequence: 3, departure: Time::ZERO }.encode(&mut payload);
            let mut sent = 0;
            while !done.load(Ordering::Relaxed) {
                sent += u64::from(socket.send_to(&payload, plan.directions[0].destination).is_ok());
                sent += u64::from(socket.send_to(b"short", plan.directions[0].destination).is_ok());
                thread::sleep(Duration::from_millis(5));
            }
            sent
        });
        let report = measure(&plan, Span::from_us(200), 1_000);
        done.store(true, Ordering::Relaxed);
        (report.expect("a trial"), intruder.join().expect("the intruder ends"))
    });
    assert_eq!((report.sent, report.received), (1_000, 1_000));
    assert!(report.strangers > 0 && report.strangers <= intruded);
}

/// Forwards what arrives at `from` to `to` in blocks of `window`, each of them reversed, and the first of each twice.
fn misbehave(from: &UdpSocket, to: SocketAddrV4, window: usize, done: &AtomicBool) {
    let mut held: Vec<Vec<u8>> = Vec::new();
    let mut buffer = [0; 64];
    while !done.load(Ordering::Relaxed) {
        let Ok(length) = from.recv(&mut buffer) else { continue };
        held.push(buffer[..length].to_vec());
        if held.len() == window {
            from.send_to(&held[0], to).expect("the receiver listens");
            for payload in held.drain(..).rev() {
                from.send_to(&payload, to).expect("the receiver listens");
            }
        }
    }
}

#[test]
fn a_device_that_duplicates_and_reorders_is_caught() {
    let mut plan = plan(5, AMPLE);
    let device = UdpSocket::bind("127.0.77.5:0").expect("a socket");
    device.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let SocketAddr::V4(entrance) = device.local_addr().expect("bound") else { panic!("not IPv4") };
    plan.directions[0].destination = entrance;
    let done = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        scope.spawn(|| misbehave(&device, plan.directions[0].listen, 10, &done));
        let report = measure(&plan, Span::from_us(200), 1_000);
        done.store(true, Ordering::Relaxed);
        report.expect("a trial")
    });
    assert_eq!((report.sent, report.received), (1_000, 1_000));
    assert_eq!(report.duplicated, 100, "the first of each ten, twice");
    assert_eq!(report.reordered, 800, "all of each ten but its first and its last");
}

/// Forwards what arrives at `from` to `to`, and says how long each piece was.
fn weigh(from: &UdpSocket, to: SocketAddrV4, done: &AtomicBool) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut buffer = [0; 2_000];
    while !done.load(Ordering::Relaxed) {
        let Ok(length) = from.recv(&mut buffer) else { continue };
        lengths.push(length);
        from.send_to(&buffer[..length], to).expect("the receiver listens");
    }
    lengths
}

#[test]
fn probes_of_several_sizes_leave_in_their_order_and_are_all_counted() {
    const PROBES: u64 = 120;
    let mut plan = plan(12, AMPLE);
    let sizes = [(Bytes::new(18), 7), (Bytes::new(524), 4), (Bytes::new(1_472), 1)];
    plan.payloads = Payloads::cycle(&sizes).expect("sizes");
    let device = UdpSocket::bind("127.0.77.12:0").expect("a socket");
    device.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let SocketAddr::V4(entrance) = device.local_addr().expect("bound") else { panic!("not IPv4") };
    plan.directions[0].destination = entrance;
    let done = AtomicBool::new(false);
    let (report, lengths) = thread::scope(|scope| {
        let scale = scope.spawn(|| weigh(&device, plan.directions[0].listen, &done));
        // Ten are due at once, so that a call has probes of several sizes to choose from; all of them fit into the
        // buffer of the device's socket, however late it runs.
        let due = (0..PROBES).map(|n| Time::ZERO + Span::from_ms(2) * (n / 10));
        let report = run(&plan, &[due], &AtomicBool::new(false)).map(|report| report.directions[0].clone());
        done.store(true, Ordering::Relaxed);
        (report.expect("a trial"), scale.join().expect("the device ends"))
    });
    assert_eq!((report.sent, report.received, report.duplicated, report.reordered), (PROBES, PROBES, 0, 0));
    let expected: Vec<usize> = (0..PROBES).map(|n| plan.payloads.at(n).0.count() as usize).collect();
    assert_eq!(lengths, expected);
    assert!(report.batches < PROBES * 3 / 4, "{} calls", report.batches);
}

#[test]
fn a_device_that_never_stops_delivering_is_given_up() {
    let mut plan = plan(11, Span::from_ms(50));
    plan.patience = Span::from_ms(100);
    let done = AtomicBool::new(false);
    let device = UdpSocket::bind("127.0.77.11:0").expect("a socket");
    device.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let SocketAddr::V4(entrance) = device.local_addr().expect("bound") else { panic!("not IPv4") };
    plan.directions[0].destination = entrance;
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 64];
            while !done.load(Ordering::Relaxed) {
                let Ok(length) = device.recv(&mut buffer) else { continue };
                while !done.load(Ordering::Relaxed) {
                    let _ = device.send_to(&buffer[..length], plan.directions[0].listen);
                    thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let report = measure(&plan, Span::from_ms(10), 5);
        done.store(true, Ordering::Relaxed);
        report.expect_err("copies without end")
    });
    assert!(matches!(error, LiveError::Deadline { .. }), "{error}");
}

#[test]
fn a_hopeless_trial_is_stopped_before_its_end() {
    let mut plan = plan(6, Span::from_ms(2_000));
    let abyss = UdpSocket::bind("127.0.77.6:0").expect("a socket that nobody reads");
    let SocketAddr::V4(entrance) = abyss.local_addr().expect("bound") else { panic!("not IPv4") };
    plan.directions[0].destination = entrance;
    plan.stop = Some(StopRule { budget: 100, flight: Span::from_ms(50), look: None });
    let trial = measure_all(&plan, Span::from_us(5), 400_000).expect("a trial");
    assert!(trial.stopped);
    let report = &trial.directions[0];
    assert!(report.sending < plan.duration, "stopped after {}", report.sending);
    assert!(report.sent - report.received > 100, "what was decided is true in the end");
}

#[test]
fn two_directions_at_once_have_counts_of_their_own() {
    let mut plan = plan(12, AMPLE);
    plan.directions.push(Direction { run: RUN + 1, ..direction(13) });
    let departures = [every(Span::from_us(100), 2_000), every(Span::from_us(200), 1_000)];
    let report = run(&plan, &departures, &AtomicBool::new(false)).expect("a trial");
    let counts: Vec<_> =
        report.directions.iter().map(|direction| (direction.intended, direction.sent, direction.received)).collect();
    assert_eq!(counts, [(2_000, 2_000, 2_000), (1_000, 1_000, 1_000)]);
    let slowest = report.directions.iter().filter_map(|direction| direction.delay).map(|delay| delay.max).max();
    assert_eq!(report.delay.map(|delay| delay.max), slowest, "the delays of both are one distribution");
    assert!(!report.stopped);
}

#[test]
fn a_loss_in_one_direction_stops_both() {
    let mut plan = plan(14, Span::from_ms(2_000));
    plan.directions.push(Direction { run: RUN + 1, ..direction(15) });
    let abyss = UdpSocket::bind("127.0.77.16:0").expect("a socket that nobody reads");
    let SocketAddr::V4(entrance) = abyss.local_addr().expect("bound") else { panic!("not IPv4") };
    plan.directions[1].destination = entrance;
    let look = Some(Look { until: Span::from_ms(200), budget: 10 });
    plan.stop = Some(StopRule { budget: 10_000, flight: Span::from_ms(50), look });
    let report = measure_all(&plan, Span::from_us(500), 4_000).expect("a trial");
    assert!(report.stopped, "more of the beginning is lost than may be");
    assert!(report.directions.iter().all(|direction| direction.sent < 4_000), "{:?}", report.directions);
    assert_eq!((report.directions[0].lost_early, report.directions[1].received), (0, 0));
    assert!(report.directions[1].lost_early > 10, "what was decided is true in the end");
}

#[test]
fn a_direction_that_fails_ends_the_other() {
    let mut plan = plan(17, A_LONG_TRIAL);
    plan.directions.push(Direction { run: RUN + 1, ..direction(18) });
    plan.directions[1].sender.namespace = Some("/run/netns/no-such-place".into());
    let began = Instant::now();
    let error = measure_all(&plan, Span::from_ms(10), 60_000).expect_err("no such place");
    assert!(error.to_string().contains("/run/netns/no-such-place"), "{error}");
    assert!(began.elapsed().as_nanos() < u128::from(A_LONG_TRIAL.ps() / 1000), "before the other was due to end");
}

#[test]
fn a_cancelled_trial_ends_before_its_last_frame_is_due() {
    for (port, gap, frames) in [(7, Span::from_ms(1), 600_000), (8, Span::from_ms(10_000), 60)] {
        let plan = plan(port, A_LONG_TRIAL);
        let cancel = AtomicBool::new(false);
        let began = Instant::now();
        thread::scope(|scope| {
            let trial = scope.spawn(|| run(&plan, &[every(gap, frames)], &cancel));
            thread::sleep(Duration::from_millis(100));
            cancel.store(true, Ordering::Relaxed);
            assert!(matches!(trial.join().expect("no panic"), Err(LiveError::Cancelled)));
        });
        assert!(began.elapsed().as_nanos() < u128::from(A_LONG_TRIAL.ps() / 1000), "gaps of {gap}");
    }
}

#[test]
fn a_namespace_that_does_not_exist_is_named() {
    let mut plan = plan(9, Span::from_ms(10));
    plan.directions[0].receiver.namespace = Some("/run/netns/no-such-place".into());
    let error = measure(&plan, Span::from_ms(1), 5).expect_err("no such place");
    assert!(error.to_string().contains("/run/netns/no-such-place"), "{error}");
}

#[test]
fn a_payload_too_small_for_the_header_is_refused() {
    let mut plan = plan(10, Span::from_ms(10));
    plan.payloads = Payloads::cycle(&[(Bytes::new(100), 3), (Bytes::new(15), 1)]).expect("sizes");
    let error = measure(&plan, Span::from_ms(1), 5).expect_err("too small");
    assert!(error.to_string().contains("holds no header of 16 B"), "{error}");
}
