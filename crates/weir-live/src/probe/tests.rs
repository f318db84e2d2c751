use super::*;
use crate::host::{Priority, Seat};

fn plan(destination: IpAddr, count: u64, ports: Ports) -> Plan {
    let probe = |i| Probe { at: Time::from_ps(Span::from_ms(i).ps()), hops: 3, size: Bytes::new(100 + 10 * i) };
    // A port that was free a moment ago.
    let free = UdpSocket::bind((destination, 0)).and_then(|socket| socket.local_addr()).expect("a port");
    Plan {
        destination,
        port: free.port().min(u16::MAX - ROTATION),
        ports,
        source_port: 0,
        token: 7,
        probes: (0..count).map(probe).collect(),
        timeout: Span::from_ms(500),
        seat: Seat { namespace: None, cpu: None, priority: Priority::Normal },
    }
}

fn probed(plan: Plan) -> Report {
    std::thread::spawn(move || run(&plan, &AtomicBool::new(false)))
        .join()
        .expect("no panic")
        .expect("the loopback takes probes")
}

#[test]
fn a_closed_port_of_this_host_answers_each_probe_in_order() {
    for ports in [Ports::Constant, Ports::Rotating] {
        let report = probed(plan(Ipv4Addr::LOCALHOST.into(), 10, ports));
        for answer in &report.answers {
            let answer = answer.expect("an answer");
            assert_eq!(answer.word, Word::PortUnreachable);
            assert_eq!(answer.from, Some(Ipv4Addr::LOCALHOST.into()));
            assert!(answer.rtt > Span::ZERO && answer.rtt < Span::from_ms(400));
        }
        assert_eq!((report.duplicates, report.strangers, report.replies), (0, 0, 0));
        assert_eq!(report.stamped, 10, "departures that the kernel stamped");
    }
}

#[test]
fn ipv6_answers_too_and_quotes_all_of_a_short_probe() {
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return; // a host without IPv6
    }
    let report = probed(plan(Ipv6Addr::LOCALHOST.into(), 3, Ports::Constant));
    let quoted: Vec<_> = report.answers.iter().flatten().map(|answer| answer.quoted.count()).collect();
    assert_eq!(quoted, [52, 62, 72]);
}

#[test]
fn a_port_where_somebody_listens_gives_no_answer_within_the_timeout() {
    let listener = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let mut plan = plan(Ipv4Addr::LOCALHOST.into(), 2, Ports::Constant);
    plan.port = listener.local_addr().expect("a bound socket").port().min(u16::MAX - ROTATION);
    if plan.port != listener.local_addr().expect("a bound socket").port() {
        return;
    }
    plan.timeout = Span::from_ms(30);
    let report = probed(plan);
    assert_eq!(report.answers, [None, None]);
    assert!(report.sent.iter().all(Option::is_some));
}

#[test]
fn a_probe_without_room_for_its_tag_is_refused() {
    let mut plan = plan(Ipv4Addr::LOCALHOST.into(), 1, Ports::Constant);
    plan.probes[0].size = Bytes::new(35);
    let error = run(&plan, &AtomicBool::new(false)).expect_err("too short");
    assert_eq!(error.to_string(), "a probe has from 36 B to 65535 B (got 35 B)");
}

#[test]
fn a_short_quotation_names_no_probe() {
    assert_eq!(tag(&[0, 0, 0, 7, 0, 0, 0]), None);
    assert_eq!(tag(&[0, 0, 0, 7, 0, 0, 1, 2, 9]), Some((7, 258)));
}
