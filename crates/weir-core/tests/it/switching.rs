use weir_core::spec::control::Pause;
use weir_core::spec::switching::{Adapter, AdapterKind, Egress, Memory, MemoryPause, PauseScope, Service};
use weir_core::spec::{Departures, Engine, FrameSize, LinkSpec, Network, Spec, SwitchSpec};
use weir_core::units::{Bytes, Rate, Span, Time};

use crate::specs::{LINK, incast};

const SLOT: Span = Span::from_ps(51_200);

/// Frames of 64 B in slots on the star of `incast`, whose switch has a shared memory.
fn slotted() -> Spec {
    let mut spec = incast();
    let link = LinkSpec { delay_ps: Span::ZERO, framing_bytes: Bytes::ZERO, ..LINK };
    spec.network = Network::Star { hosts: 3, link, switch: SwitchSpec { latency_ps: Span::ZERO } };
    for source in &mut spec.traffic[0].sources {
        source.frame_size = FrameSize::Fixed(Bytes::new(64));
        source.departures = Departures::Bursts { slot_ps: SLOT, load: 0.5, mean_frames: 10.0, starts_by_chance: false };
    }
    let pause = MemoryPause {
        scope: PauseScope::Switch,
        xoff_bytes: Bytes::new(640),
        xon_bytes: Bytes::new(320),
        delay_ps: Span::ZERO,
        quanta: None,
        refresh_ps: None,
    };
    spec.switching.memories = vec![Memory { nodes: vec![3], bytes: Bytes::new(1280), alpha: None, pause: Some(pause) }];
    spec.switching.adapters = vec![Adapter { hosts: vec![0, 1, 2], kind: AdapterKind::VoqRoundRobin }];
    spec.switching.services = vec![Service {
        port: 5,
        rate_bps: Rate::from_gbit_per_s(2),
        from_ps: Time::ZERO,
        to_ps: Time::ZERO + SLOT * 9,
    }];
    spec.switching.egress = vec![Egress { hosts: vec![2], xoff_bytes: Bytes::new(640), xon_bytes: Bytes::new(64) }];
    spec.run.duration_ps = SLOT * 1000;
    spec.run.engine = Engine::Slotted { flows: true };
    spec
}

fn fault(change: impl FnOnce(&mut Spec)) -> (String, String) {
    let mut spec = slotted();
    change(&mut spec);
    let error = spec.check().expect_err("an illegal spec");
    (error.pointer, error.message)
}

fn pause(spec: &mut Spec) -> &mut MemoryPause {
    spec.switching.memories[0].pause.as_mut().expect("a pause")
}

#[test]
fn a_slotted_spec_survives_a_journey_through_json() {
    let spec = slotted();
    assert_eq!(Spec::from_json(&spec.to_json()), Ok(spec.clone()));
    assert_eq!(spec.cell(), Some((Bytes::new(64), SLOT)));
}

#[test]
fn faults_of_memories_adapters_and_outputs_are_named() {
    assert_eq!(fault(|spec| spec.switching.memories[0].nodes = vec![0]).0, "/switching/memories/0/nodes/0");
    assert_eq!(fault(|spec| spec.switching.memories[0].nodes = vec![3, 3]).0, "/switching/memories/0/nodes/1");
    assert_eq!(fault(|spec| spec.switching.memories[0].bytes = Bytes::ZERO).0, "/switching/memories/0/bytes");
    assert_eq!(fault(|spec| pause(spec).xoff_bytes = Bytes::new(1280)).0, "/switching/memories/0/pause/xoff_bytes");
    assert_eq!(fault(|spec| pause(spec).xon_bytes = Bytes::new(700)).0, "/switching/memories/0/pause/xon_bytes");
    assert_eq!(fault(|spec| pause(spec).quanta = Some(9)).0, "/switching/memories/0/pause/refresh_ps");
    assert_eq!(fault(|spec| spec.switching.adapters[0].hosts[1] = 0).0, "/switching/adapters/0/hosts/1");
    assert_eq!(fault(|spec| spec.switching.services[0].port = 4).0, "/switching/services/0/port");
    assert_eq!(
        fault(|spec| spec.switching.services[0].rate_bps = Rate::from_bps(0)).0,
        "/switching/services/0/rate_bps"
    );
    assert_eq!(fault(|spec| spec.switching.services[0].to_ps = Time::ZERO).0, "/switching/services/0/to_ps");
    assert_eq!(fault(|spec| spec.switching.egress[0].xon_bytes = Bytes::new(900)).0, "/switching/egress/0/xon_bytes");
}

#[test]
fn the_slotted_engine_says_what_it_cannot_compute() {
    let source = |change: fn(&mut weir_core::spec::Source)| fault(|spec| change(&mut spec.traffic[0].sources[1]));
    assert_eq!(
        source(|source| source.frame_size = FrameSize::Fixed(Bytes::new(65))).0,
        "/traffic/0/sources/1/frame_size"
    );
    assert_eq!(source(|source| source.start_ps = Time::from_ps(1)).0, "/traffic/0/sources/1/start_ps");
    let slots = |spec: &mut weir_core::spec::Source, slot_ps| {
        spec.departures = Departures::Bernoulli { slot_ps, probability: 0.5 };
    };
    let (pointer, message) = fault(|spec| slots(&mut spec.traffic[0].sources[1], SLOT * 2));
    assert_eq!(pointer, "/traffic/0/sources/1/departures/slot_ps");
    assert!(message.contains("51200 ps") || message.contains("51.2 ns"), "{message}");
    assert_eq!(
        source(|source| source.departures = Departures::Poisson { mean_gap_ps: 1e6 }).0,
        "/traffic/0/sources/1/departures"
    );
    assert_eq!(fault(|spec| spec.run.duration_ps = Span::from_ps(1)).0, "/run/duration_ps");
    assert_eq!(fault(|spec| spec.record.delays = true).0, "/record/delays");
    let delayed = |delay_ps| LinkSpec { delay_ps, framing_bytes: Bytes::ZERO, ..LINK };
    let star =
        |delay_ps| Network::Star { hosts: 3, link: delayed(delay_ps), switch: SwitchSpec { latency_ps: Span::ZERO } };
    assert_eq!(fault(|spec| spec.network = star(Span::from_ps(1))).0, "/network/link/delay_ps");
}

#[test]
fn the_event_engine_refuses_what_does_not_stand_beside_a_shared_memory() {
    let pause = Pause {
        nodes: vec![3],
        xoff_bytes: Bytes::new(640),
        xon_bytes: Bytes::new(64),
        frame_bytes: Bytes::new(64),
        delay_ps: Span::ZERO,
        quanta: None,
        refresh_ps: None,
    };
    let change = |spec: &mut Spec| {
        spec.run.engine = Engine::Event;
        spec.control.pause = vec![pause.clone()];
    };
    assert_eq!(fault(change).0, "/control/pause");
}
