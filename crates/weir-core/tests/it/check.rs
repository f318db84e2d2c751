use weir_core::spec::events::{Change, Event};
use weir_core::spec::{
    Departures, Destination, FrameSize, Network, PortProbe, QueueRule, Record, Source, Spec, TrafficProbe,
};
use weir_core::units::{Bytes, Rate, Span, Time};

use crate::specs::{LINK, SWITCH, incast, source};

/// Where and what is wrong with `incast` after `change`.
fn fault(change: impl FnOnce(&mut Spec)) -> (String, String) {
    let mut spec = incast();
    change(&mut spec);
    let error = spec.check().expect_err("an illegal spec");
    (error.pointer, error.message)
}

fn source_fault(change: impl FnOnce(&mut Source)) -> (String, String) {
    let (pointer, message) = fault(|spec| change(&mut spec.traffic[0].sources[1]));
    let inner = pointer.strip_prefix("/traffic/0/sources/1").expect("the source is named");
    (inner.to_string(), message)
}

#[test]
fn a_legal_spec_survives_a_journey_through_json() {
    let spec = incast();
    let json = spec.to_json();
    assert_eq!(Spec::from_json(&json), Ok(spec));
    assert_eq!(Spec::from_json(&json).expect("a legal spec").to_json(), json);
}

#[test]
fn receivers_that_follow_one_another_stand_in_json_as_their_first_and_last() {
    for (hosts, json) in [
        (vec![0, 1, 2, 4], "[[0,2],4]"),
        (vec![0, 1, 3, 4], "[0,1,3,4]"),
        (vec![4, 3, 2], "[4,3,2]"),
        (vec![3, 4, 5, 0, 1], "[[3,5],0,1]"),
        (vec![u32::MAX - 2, u32::MAX - 1, u32::MAX, 0], "[[4294967293,4294967295],0]"),
    ] {
        let to = Destination::Uniform(hosts);
        let text = serde_json::to_string(&to).expect("JSON");
        assert_eq!(text, format!("{{\"uniform\":{json}}}"));
        assert_eq!(serde_json::from_str::<Destination>(&text).expect("destinations"), to);
    }
    let plain: Destination = serde_json::from_str("{\"uniform\":[0,[1,2],3]}").expect("destinations");
    assert_eq!(plain, Destination::Uniform(vec![0, 1, 2, 3]));
}

#[test]
fn runs_of_receivers_that_are_none_are_refused() {
    for (json, message) in [
        ("[[3,1]]", "cannot go from 3 to 1"),
        ("[[0,4294967295]]", "more than 4194304 ids"),
        ("[[0,3000000],[0,3000000]]", "more than 4194304 ids"),
        ("[[1,2,3]]", "did not match"),
        ("7", "a list of ids"),
    ] {
        let found = serde_json::from_str::<Destination>(&format!("{{\"uniform\":{json}}}"));
        let error = found.expect_err(json).to_string();
        assert!(error.contains(message), "{json}: {error}");
    }
}

#[test]
fn faults_of_the_network_are_placed_in_the_spec() {
    let (pointer, _) = fault(|spec| spec.network = Network::FatTree { k: 3, link: LINK, switch: SWITCH });
    assert_eq!(pointer, "/network/k");
}

#[test]
fn ports_that_do_not_exist_are_refused() {
    let (pointer, message) = fault(|spec| spec.queues[0].ports.push(6));
    assert_eq!((pointer.as_str(), message.as_str()), ("/queues/0/ports/1", "there is no port 6: the network has 6"));
    let rule = |spec: &Spec| QueueRule { ports: vec![99], ..spec.queues[0].clone() };
    assert_eq!(fault(|spec| spec.queues.push(rule(spec))).0, "/queues/1/ports/0");
}

#[test]
fn groups_of_traffic_need_names_of_their_own() {
    let (pointer, message) = fault(|spec| spec.traffic.push(spec.traffic[0].clone()));
    assert_eq!((pointer.as_str(), message.as_str()), ("/traffic/1/name", "two groups of traffic are called 'load'"));
    assert_eq!(fault(|spec| spec.traffic[0].name.clear()).0, "/traffic/0/name");
}

#[test]
fn only_hosts_send_and_receive() {
    let (pointer, message) = source_fault(|source| source.from = 3);
    assert_eq!((pointer.as_str(), message.as_str()), ("/from", "only hosts send and receive: 'switch-0' is a switch"));
    assert_eq!(source_fault(|source| source.to = Destination::Node(4)).0, "/to/node");
    assert_eq!(source_fault(|source| source.to = Destination::Uniform(vec![0, 3])).0, "/to/uniform/1");
    assert_eq!(source_fault(|source| source.to = Destination::Uniform(vec![0, 0])).0, "/to/uniform/1");
    assert_eq!(source_fault(|source| source.to = Destination::Uniform(vec![])).0, "/to/uniform");
}

#[test]
fn sources_start_before_they_stop() {
    let (pointer, message) = source_fault(|source| {
        source.start_ps = Time::from_ps(2_000_000);
        source.stop_ps = Time::from_ps(1_000_000);
    });
    assert_eq!(pointer, "/stop_ps");
    assert!(message.contains("start 2 us, stop 1 us"), "{message}");
    assert_eq!(source_fault(|source| source.start_ps = Time::NEVER).0, "/start_ps");
}

#[test]
fn departures_that_cannot_be_are_refused() {
    let departures = |departures| source_fault(|source| source.departures = departures);
    for gap in [0.0, -1.0, 0.5, f64::NAN, f64::INFINITY] {
        assert_eq!(departures(Departures::Poisson { mean_gap_ps: gap }).0, "/departures/mean_gap_ps");
        assert_eq!(departures(Departures::Constant { gap_ps: gap }).0, "/departures/gap_ps");
    }
    for probability in [0.0, -0.1, 1.1, f64::NAN] {
        let (pointer, _) = departures(Departures::Bernoulli { slot_ps: Span::from_ps(1), probability });
        assert_eq!(pointer, "/departures/probability");
    }
    let (pointer, _) = departures(Departures::Bernoulli { slot_ps: Span::ZERO, probability: 0.5 });
    assert_eq!(pointer, "/departures/slot_ps");
    let never_on = Departures::OnOff {
        gap_ps: 1e12,
        mean_on_ps: Span::from_ps(1),
        mean_off_ps: Span::from_ps(1_000_000),
        starts_by_chance: false,
    };
    assert_eq!(departures(never_on).0, "/departures/mean_on_ps");
}

#[test]
fn frames_have_a_size() {
    let sizes = |frame_size| source_fault(|source| source.frame_size = frame_size);
    assert_eq!(sizes(FrameSize::Fixed(Bytes::ZERO)).0, "/frame_size/fixed");
    let (pointer, message) = sizes(FrameSize::Fixed(Bytes::new(65_536)));
    assert_eq!(pointer, "/frame_size/fixed");
    assert!(message.contains("got 65.536 kB"), "{message}");
    assert_eq!(sizes(FrameSize::Mix(vec![])).0, "/frame_size/mix");
    assert_eq!(sizes(FrameSize::Mix(vec![(Bytes::new(64), 1), (Bytes::ZERO, 1)])).0, "/frame_size/mix/1/0");
    assert_eq!(sizes(FrameSize::Mix(vec![(Bytes::new(64), 0)])).0, "/frame_size/mix/0/1");
}

#[test]
fn a_run_lasts() {
    assert_eq!(fault(|spec| spec.run.duration_ps = Span::ZERO).0, "/run/duration_ps");
    assert_eq!(fault(|spec| spec.run.duration_ps = Span::from_ps(u64::MAX)).0, "/run/duration_ps");
}

#[test]
fn probes_look_at_what_exists_once_and_not_too_often() {
    let every_ps = Span::from_us(10);
    let ports = |ports: &[u32]| ports.iter().map(|&port| PortProbe { port, every_ps }).collect();
    assert_eq!(fault(|spec| spec.record.ports = ports(&[0, 6])).0, "/record/ports/1/port");
    assert_eq!(fault(|spec| spec.record.ports = ports(&[2, 2])).0, "/record/ports/1/port");
    let often = [0, 1].map(|port| PortProbe { port, every_ps: Span::from_ps(1) }).to_vec();
    let (pointer, message) = fault(|spec| spec.record = Record { ports: often, ..Record::default() });
    assert_eq!(pointer, "/record/ports/1/every_ps");
    assert!(message.starts_with("2000000000 or more rows"), "{message}");
    let never = vec![PortProbe { port: 0, every_ps: Span::ZERO }];
    assert_eq!(fault(|spec| spec.record.ports = never).0, "/record/ports/0/every_ps");
    let traffic = |traffic| TrafficProbe { traffic, every_ps };
    assert_eq!(fault(|spec| spec.record.traffic = vec![traffic(1)]).0, "/record/traffic/0/traffic");
    assert_eq!(fault(|spec| spec.record.traffic = vec![traffic(0), traffic(0)]).0, "/record/traffic/1/traffic");
}

#[test]
fn too_many_flows_are_refused() {
    let hosts: Vec<u32> = (0..4097).collect();
    let (pointer, message) = fault(|spec| {
        spec.network = Network::Star { hosts: 4097, link: LINK, switch: SWITCH };
        let to = Destination::Uniform(hosts.clone());
        spec.traffic[0].sources = hosts.iter().map(|&from| Source { to: to.clone(), ..source(from, 0) }).collect();
    });
    assert_eq!(pointer, "/traffic/0/sources");
    assert!(message.contains("at most 4194304"), "{message}");
}

#[test]
fn json_that_is_no_spec_is_refused_where_it_goes_wrong() {
    let fault = |from: &str, to: &str| {
        let json = incast().to_json().replacen(from, to, 1);
        let error = Spec::from_json(&json).expect_err("no spec");
        (error.pointer, error.message)
    };
    let (pointer, message) = fault("\"from\":0", "\"from\":\"host-0\"");
    assert_eq!(pointer, "/traffic/0/sources/0/from");
    assert!(message.contains("invalid type: string \"host-0\", expected u32"), "{message}");
    let (pointer, message) = fault("\"duration_ps\"", "\"duration\"");
    assert_eq!(pointer, "/run/duration");
    assert!(message.contains("unknown field `duration`"), "{message}");
    assert_eq!(fault("\"run\"", "\"walk\"").0, "/walk");
    assert_eq!(fault("{", "").0, "");
    assert!(Spec::from_json(&(incast().to_json() + "}")).is_err());
    assert_eq!(fault("\"kind\":\"star\"", "\"kind\":\"ring\"").0, "/network/kind");
}

#[test]
fn the_fastest_and_the_slowest_link_may_carry_a_frame() {
    for bps in [1, 400_000_000_000] {
        let link = weir_core::spec::LinkSpec { rate_bps: Rate::from_bps(bps), ..LINK };
        let mut spec = incast();
        spec.network = Network::Star { hosts: 3, link, switch: SWITCH };
        assert!(spec.check().is_ok());
        let tx = (Bytes::new(65_535) + link.framing_bytes) / link.rate_bps;
        assert!(tx < Span::from_ps(1 << 62));
    }
}

#[test]
fn a_link_that_is_down_goes_down_no_more_and_a_class_that_is_held_is_held_no_more() {
    let at = |us: u64, change: Change| Event { at_ps: Time::ZERO + Span::from_us(us), change };
    let down = |us| at(us, Change::Down { ports: vec![4, 5] });
    let up = |us| at(us, Change::Up { ports: vec![4, 5] });
    let hold = |us| at(us, Change::Hold { ports: vec![1], classes: (0..8).collect() });
    let release = |us| at(us, Change::Release { ports: vec![1], classes: (0..8).collect() });
    let faults = [
        (vec![down(1), down(2)], "/events/1/change/ports/0", "the link is down already ('"),
        // In order of time, whatever their order in the spec.
        (vec![down(3), up(4), down(1)], "/events/0/change/ports/0", "the link is down already ('"),
        (vec![up(1)], "/events/0/change/ports/0", "the link is up already ('"),
        (vec![hold(1), hold(2), release(3)], "/events/1/change/ports/0", "class 0 is held already ('"),
        (vec![release(1)], "/events/0/change/ports/0", "class 0 is not held ('"),
    ];
    for (events, at, reported) in faults {
        let (pointer, message) = fault(|spec| spec.events = events);
        assert_eq!(pointer, at);
        assert!(message.contains(reported), "{message}");
    }
    let mut spec = incast();
    spec.events = vec![down(1), up(2), down(2), up(9), hold(1), release(2), hold(2)];
    assert!(spec.check().is_ok());
}
