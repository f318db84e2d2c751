//! Networks that nobody would draw: memories of single frames, sources that begin and stop at any time, hosts with several of
//! them or none, slow times at the edges of a run. Both engines count the same frames there, whatever slots the slotted
//! engine takes together.

use weir_core::spec::control::{Counted, NotificationLane, Sampling, Saturation};
use weir_core::spec::switching::{Egress, Service};
use weir_core::spec::{
    Departures, Destination, Engine, FrameSize, Limit, Network, PortProbe, QueueRule, Routing, Source, Spec, Stream,
    SwitchSpec, Traffic,
};
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::hotspots::{Benchmark, Hotspot, SLOT};

use crate::switching::{CELL, agree, both, both_recorded, run};

/// Choices, one after the other.
struct Choices(u64);

impl Choices {
    /// SplitMix64, modulo `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize].clone()
    }
}

fn departures(choices: &mut Choices) -> Departures {
    match choices.below(4) {
        0 => Departures::Bernoulli { slot_ps: SLOT, probability: choices.of(&[0.05, 0.5, 0.71, 0.95, 1.0]) },
        1 => Departures::Constant { gap_ps: (SLOT * (1 + choices.below(5))).ps() as f64 },
        _ => Departures::Bursts {
            slot_ps: SLOT,
            load: choices.of(&[0.02, 0.3, 0.85, 1.0]),
            mean_frames: choices.of(&[1.0, 1.3, 10.0, 144.0]),
            starts_by_chance: choices.one_in(2),
        },
    }
}

fn source(choices: &mut Choices, hosts: u32, slots: u64) -> Source {
    let from = choices.below(hosts.into()) as u32;
    let mut targets: Vec<u32> = (0..hosts).filter(|&to| to != from && !choices.one_in(3)).collect();
    if choices.one_in(4) {
        targets.reverse();
    }
    let to = match (targets.is_empty(), choices.below(4)) {
        (true, _) | (_, 0) => Destination::Node((from + 1 + choices.below(u64::from(hosts) - 1) as u32) % hosts),
        _ => Destination::Uniform(targets),
    };
    let start_ps = Time::ZERO + SLOT * choices.of(&[0, 0, 1, 63, 64, 65, slots - 1, slots + 70]);
    let stop_ps = match choices.below(3) {
        0 => start_ps + SLOT * choices.below(slots) + Span::from_ps(1 + choices.below(SLOT.ps())),
        _ => Time::NEVER,
    };
    let stream = match choices.below(3) {
        0 => Stream::SplitMix64 { state: choices.below(1 << 40) },
        _ => Stream::Named,
    };
    Source { from, to, start_ps, stop_ps, departures: departures(choices), frame_size: FrameSize::Fixed(CELL), stream }
}

fn service(choices: &mut Choices, ports: &[u32], slots: u64) -> Service {
    let from = choices.below(slots);
    let some = 1 + choices.below(slots);
    let to = choices.of(&[from + 1, from + some, slots, slots + 100]).max(from + 1);
    Service {
        port: choices.of(ports),
        rate_bps: Rate::from_bps(1 + choices.below(10_000_000_000)),
        from_ps: Time::ZERO + SLOT * from,
        to_ps: Time::ZERO + SLOT * to,
    }
}

/// A legal spec that `seed` decides, without chance in sampling.
fn odd(seed: u64) -> Spec {
    let mut choices = Choices(seed);
    let choices = &mut choices;
    let (children, parents) = choices.of(&[
        (vec![2], vec![1]),
        (vec![5], vec![1]),
        (vec![66], vec![1]),
        (vec![4, 4], vec![1, 4]),
        (vec![2, 2, 3], vec![1, 2, 2]),
    ]);
    let is_star = children.len() == 1;
    let slots = choices.of(&[1, 2, 63, 64, 65, 128, 200, 700, 1500]);
    let warm_up = choices.below(slots);
    let benchmark = Benchmark {
        children,
        parents,
        memory: choices.of(&[3, 4, 9, 64]),
        warm_up,
        slots: slots - warm_up,
        hotspot: Hotspot::None,
        ..Benchmark::single_stage(4)
    };
    let hosts = benchmark.hosts();
    let has_bcn = choices.one_in(2);
    let (ps, gd) = (choices.of(&[0.01, 0.13, 0.5, 1.0]), choices.of(&[1e-6, 0.002, 0.05, 10.0]));
    let mut spec = if has_bcn { benchmark.with_bcn(ps, gd).spec() } else { benchmark.spec() };
    if let Network::Xgft { link, switch, routing, .. } = &mut spec.network {
        link.delay_ps = SLOT * choices.of(&[0, 0, 1, 3]);
        *switch = SwitchSpec { latency_ps: SLOT * choices.of(&[0, 0, 2]) };
        *routing = choices.of(&[Routing::DModK, Routing::FlowHash]);
    }
    for group in 0..1 + choices.below(3) {
        let sources = (0..1 + choices.below(2 * u64::from(hosts))).map(|_| source(choices, hosts, slots));
        let mut sources: Vec<Source> = sources.collect();
        sources.sort_by_key(|source| source.from);
        sources.dedup_by_key(|source| source.from);
        if group == 0 {
            spec.traffic.clear();
        }
        spec.traffic.push(Traffic::of_sources(format!("group-{group}"), sources));
    }
    spec.switching.adapters[0].hosts.retain(|_| !choices.one_in(4));
    if choices.one_in(2) {
        // Host 0 .. hosts: the port towards each has an odd number.
        let ports: Vec<u32> = (0..hosts).map(|host| 2 * host + 1).collect();
        spec.switching.services = (0..1 + choices.below(4)).map(|_| service(choices, &ports, slots)).collect();
        if choices.one_in(3) {
            let hosts = vec![0, hosts - 1];
            let xoff = choices.below(5);
            let (xoff_bytes, xon_bytes) = (CELL * xoff, CELL * choices.below(xoff + 1));
            spec.switching.egress = vec![Egress { hosts, xoff_bytes, xon_bytes }];
        }
    }
    match choices.below(4) {
        0 => spec.switching.memories.clear(),
        1 => spec.switching.memories.iter_mut().for_each(|memory| memory.pause = None),
        _ => {}
    }
    for memory in &mut spec.switching.memories {
        let cells = choices.of(&[1, 2, 5, 17, 300]);
        memory.bytes = CELL * cells + Bytes::new(choices.below(64));
        let Some(pause) = &mut memory.pause else { continue };
        let xoff = choices.below(cells);
        pause.xoff_bytes = CELL * xoff;
        pause.xon_bytes = CELL * choices.below(xoff + 1);
        if is_star && choices.one_in(2) {
            pause.delay_ps = SLOT * choices.below(4);
        }
        if choices.one_in(3) {
            (pause.quanta, pause.refresh_ps) = (Some(100), Some(SLOT * (1 + choices.below(9))));
        }
    }
    if choices.one_in(4) {
        let ports = (0..hosts).map(|host| 2 * host + 1).collect();
        let limit = Limit::Frames(choices.below(9));
        spec.queues = vec![QueueRule::drop_tail(ports, limit)];
    }
    if let Some(bcn) = &mut spec.control.bcn {
        let point = &mut bcn.congestion_point;
        point.sampling = Sampling::Uniform { jitter: 0.0 };
        point.notification.lane = NotificationLane::Beside;
        point.notification.delay_ps = SLOT * choices.of(&[0, 0, 1, 12]);
        point.w = choices.of(&[0.0, 1.0, 8.0]);
        point.q_eq_bytes = CELL * (1 + choices.below(9));
        point.counted = choices.of(&[Counted::Received, Counted::Accepted]);
        point.saturation = choices.of(&[Saturation::SetPoint, Saturation::None]);
        bcn.reaction_point.gi = choices.of(&[0.01, 1.0, 1000.0]);
        bcn.reaction_point.hosts.retain(|_| !choices.one_in(5));
    }
    spec
}

#[test]
fn odd_networks_carry_the_same_frames_in_both_engines() {
    for seed in 0..500 {
        println!("network {seed}");
        let (event, slotted) = both_recorded(odd(seed), 7, [257, 3, 1, 40][(seed / 4 % 4) as usize]);
        agree(&event, &slotted);
        assert_eq!(slotted.packet_hops, event.packet_hops);
    }
}

#[test]
fn what_is_recorded_and_counted_changes_no_frame() {
    for seed in 0..40 {
        let mut spec = odd(seed);
        let mut recorded = both(spec.clone(), 7).1;
        recorded.control.limiters.clear();
        recorded.control.intervals.clear();
        spec.run.engine = Engine::Slotted { flows: true };
        spec.record = Default::default();
        let bare = run(spec.clone(), 7);
        assert_eq!((&bare.flows, &bare.drops, &bare.memories), (&recorded.flows, &recorded.drops, &recorded.memories));
        assert_eq!((&bare.ports, &bare.control), (&recorded.ports, &recorded.control), "{seed}");
        spec.run.engine = Engine::Slotted { flows: false };
        let uncounted = run(spec, 7);
        assert_eq!((&uncounted.ports, &uncounted.control.frames), (&bare.ports, &bare.control.frames), "{seed}");
    }
}

/// Cells on links are kept slot by slot.
#[test]
fn delays_of_many_slots_are_refused() {
    use weir_sim::Plan;
    for (slots, is_legal) in [(1 << 20, true), ((1 << 20) + 1, false), (1 << 32, false)] {
        let mut spec = Benchmark { slots: 10, ..Benchmark::single_stage(4) }.spec();
        if let Network::Xgft { link, .. } = &mut spec.network {
            link.delay_ps = SLOT * slots;
        }
        let fault = Plan::new(spec).err().map(|fault| fault.pointer);
        assert_eq!(fault.as_deref(), (!is_legal).then_some("/network/link/delay_ps"), "{slots}");
    }
}

#[test]
fn an_interval_longer_than_all_slots_that_can_be_numbered_never_ends() {
    let mut spec = odd(3);
    spec.run.engine = Engine::Slotted { flows: true };
    spec.record.ports = vec![PortProbe { port: 1, every_ps: SLOT * (1 << 32) }];
    spec.record.traffic.clear();
    assert_eq!(run(spec, 1).intervals.rows().count(), 1);
}

/// A rate that is no whole number of bit/s, rounded in any way, as a file gives shares of a line; or one that has whole frames
/// after a few slots but for a few bit/s.
fn rounded_rate(choices: &mut Choices) -> Rate {
    let line = 10_000_000_000;
    let parts = 2 + choices.below(97);
    let share = line * (1 + choices.below(parts - 1)) / parts;
    Rate::from_bps((share + choices.of(&[0, 0, 0, 1, 2, 10])).min(line - 1))
}

/// A switch with an output, or a buffer behind one, that is slower, and limiters that stay at their least rate.
fn rounded(seed: u64) -> Spec {
    let mut choices = Choices(seed);
    let choices = &mut choices;
    let hosts = 2 + choices.below(7) as u32;
    let benchmark = Benchmark { warm_up: choices.below(300), slots: 4000, ..Benchmark::single_stage(hosts) };
    let mut spec = if choices.one_in(2) { benchmark.with_bcn(0.2, 10.0).spec() } else { benchmark.spec() };
    for service in &mut spec.switching.services {
        service.rate_bps = rounded_rate(choices);
    }
    if choices.one_in(4) {
        let (xoff_bytes, xon_bytes) = (CELL * 9, CELL * 4);
        spec.switching.egress = vec![Egress { hosts: vec![0], xoff_bytes, xon_bytes }];
    }
    if let Some(bcn) = &mut spec.control.bcn {
        bcn.congestion_point.sampling = Sampling::Uniform { jitter: 0.0 };
        bcn.congestion_point.notification.lane = NotificationLane::Beside;
        bcn.reaction_point.min_rate_bps = rounded_rate(choices);
        bcn.reaction_point.gi = choices.of(&[1e-6, 1.0]);
        let limiter = &mut bcn.reaction_point.limiter;
        limiter.initial_credit = choices.of(&[None, Some(0.0), Some(0.3), Some(1.0)]);
        limiter.most_credit = choices.of(&[None, Some(1.0), Some(1.7), Some(9.0)]);
    }
    spec
}

/// Rates are drawn for each seed. Those from 0 on were looked at when credit became a whole number, those from 10 000 on never.
#[test]
fn outputs_and_limiters_at_rounded_rates_carry_the_same_frames_in_both_engines() {
    for seed in (0..150).chain(10_000..10_150) {
        println!("network {seed}");
        let (event, slotted) = both(rounded(seed), seed);
        agree(&event, &slotted);
    }
}

#[test]
fn an_output_served_at_a_third_takes_every_third_slot_alike_in_both_engines() {
    for rate in [3_333_333_333, 1_894_736_842] {
        let mut spec = Benchmark { warm_up: 0, slots: 20_000, ..Benchmark::single_stage(8) }.spec();
        spec.switching.services[0].rate_bps = Rate::from_bps(rate);
        let (event, slotted) = both(spec, 1);
        agree(&event, &slotted);
        let served = slotted.ports[1].counters.frames;
        let due = 20_000 * rate / 10_000_000_000;
        assert!(served.abs_diff(due) <= 8, "{served} frames of {due}");
    }
}
