//! Priority flow control by what came over each input: timelines worked out by hand, and what it promises.

mod chains;

use std::ops::ControlFlow;

use weir_core::ethernet::headroom::Loop;
use weir_core::network::Topology;
use weir_core::rdma::{self, Credit};
use weir_core::spec::buffers::{
    Buffer, EgressPool, FlowControl, IngressPool, Lossless, Share, Stops, Watchdog, WatchdogAction,
};
use weir_core::spec::classes::{Class, Classes, Order};
use weir_core::spec::control::Response;
use weir_core::spec::events::{Change, Event};
use weir_core::spec::messages::{Arrivals, Balancing, Messages, Packets};
use weir_core::spec::{
    Departures, Discipline, Limit, Link, LinkSpec, Network, Node, NodeKind, QueueRule, Source, Spec, Traffic,
};
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_sim::{ControlKind, DropCause, Plan, Sim, Totals};

use crate::scenarios::{LINK, constant, probe, run, spec};

fn node(name: &str, kind: NodeKind) -> Node {
    Node { name: name.into(), kind, latency_ps: Span::ZERO }
}

fn us(us: u64) -> Span {
    Span::from_us(us)
}

const FLOW_CONTROL: FlowControl = FlowControl {
    stops: Stops::Classes,
    frame_bytes: Bytes::new(64),
    delay_ps: Span::ZERO,
    quanta: None,
    refresh_ps: None,
    longest_bytes: Bytes::new(1500),
};

/// Class 3 is lossless with a share of so many bytes; class 0 has what is left.
pub(crate) fn buffer(share: u64, headroom: Option<u64>) -> Buffer {
    let lossless = Lossless { headroom_bytes: headroom.map(Bytes::new), xon_offset_bytes: Bytes::new(1500) };
    let pool = |class, bytes: Option<u64>, share, lossless| IngressPool {
        classes: vec![class],
        bytes: bytes.map(Bytes::new),
        share,
        reserved_bytes: Bytes::ZERO,
        lossless,
    };
    let of_class = Share::Static { bytes: Bytes::new(share) };
    let rest = Share::Dynamic { alpha: 1.0 };
    Buffer {
        nodes: vec![1],
        bytes: Bytes::new(200_000),
        ingress: vec![pool(3, Some(50_000), of_class, Some(lossless)), pool(0, None, rest, None)],
        egress: vec![],
        flow_control: Some(FLOW_CONTROL),
        watchdog: None,
    }
}

/// Host 0 sends frames of class 3 to host 2 over switch 1, 10 Gbit/s to the switch and 1 Gbit/s from it; host 3 hangs on the switch, too. Ports:
/// 0 from host 0, 1 back to it, 2 to host 2, 4 to host 3, 5 from it. Hosts respond in 1 us.
pub(crate) fn slow_receiver(duration: Span, buffer: Buffer) -> Spec {
    let slow = LinkSpec { rate_bps: Rate::from_gbit_per_s(1), ..LINK };
    let mut spec = spec(3, vec![constant(0, 2, 1200)], duration);
    spec.traffic[0].class = 3;
    spec.network = Network::Graph {
        nodes: vec![
            node("fast", NodeKind::Host),
            node("switch", NodeKind::Switch),
            node("slow", NodeKind::Host),
            node("other", NodeKind::Host),
        ],
        links: vec![Link { a: 0, b: 1, link: LINK }, Link { a: 1, b: 2, link: slow }, Link { a: 1, b: 3, link: LINK }],
    };
    spec.control.responses = vec![Response { nodes: vec![0], pause_ps: us(1), notification_ps: Span::ZERO }];
    spec.buffers = vec![buffer];
    spec
}

fn of_kind(totals: &Totals, kind: ControlKind) -> u64 {
    totals.control.frames.iter().filter(|row| row.kind == kind).map(|row| row.frames).sum()
}

#[test]
fn a_class_that_has_used_up_its_share_is_stopped_and_goes_on_below_it() {
    let totals = run(&slow_receiver(Span::from_ns(40_900), buffer(3000, None)), 1);
    // Two frames wait at 4.1 us, the whole share. XOFF takes 51.2 ns, travels 0.5 us and is obeyed after 1 us, at 5.6512 us; the fifth frame, begun at
    // 4.8 us, ends. The fourth and the fifth come to the headroom, at 5.3 and 6.5 us. Frames leave at 13.7, 25.7 and 37.7 us: then one waits, an offset
    // below the share. XON takes effect at 39.2512 us.
    let [hold] = &totals.control.holds[..] else { panic!("one class is held: {:?}", totals.control.holds) };
    assert_eq!((hold.port, hold.class, hold.holds.count), (0, 3, 1));
    assert_eq!(hold.holds.total.ps(), 39_251_200 - 5_651_200);
    assert_eq!(totals.ports[0].counters.frames, 5 + 2, "two since it was released");
    assert_eq!(totals.ports[0].pauses.count, 0, "the link as a whole is not paused");
    let [input] = &totals.control.buffer_inputs[..] else { panic!("one input is used") };
    let counters = input.counters;
    assert_eq!((input.port, input.class, counters.max_bytes, counters.headroom_max_bytes), (0, 3, 6000, 3000));
    assert_eq!((counters.stops, counters.drops), (1, 0));
    assert_eq!((of_kind(&totals, ControlKind::Xoff), of_kind(&totals, ControlKind::Xon)), (1, 1));
    assert_eq!(totals.control.buffers[0].max_bytes, 6000);
}

#[test]
fn a_recorded_buffer_and_the_holds_of_a_recorded_port_have_intervals() {
    let mut spec = slow_receiver(Span::from_ns(40_900), buffer(3000, None));
    spec.record.ports = vec![probe(0, us(10)), probe(2, us(10))];
    let totals = run(&spec, 1);
    let held: Vec<_> =
        totals.hold_intervals.iter().flat_map(|(port, rows)| rows.iter().map(|row| (*port, *row))).collect();
    let rows: Vec<_> = held.iter().map(|(port, row)| (*port, row.class, row.t_ps / 1_000_000, row.held_ps)).collect();
    let held = [(10, 4_348_800), (20, 10_000_000), (30, 10_000_000), (40, 9_251_200)];
    assert_eq!(rows, held.map(|(end, held)| (0, 3, end, held)));
    // What waits: 1500 bytes from 2.9 us, one frame more each 1.2 us up to 6.5 us, one less from 13.7, 25.7 and 37.7 us. The last two that come are in the
    // headroom, and what leaves is of that first.
    let part = |id: u32| {
        let found = totals.pools.iter().find(|part| part.0 == id).expect("a part of the buffer");
        let row = |row: &weir_sim::PoolInterval| (row.bytes, row.max_bytes, row.byte_ps / 1_000_000);
        found.1.iter().map(row).collect::<Vec<_>>()
    };
    let whole =
        [(6000, 6000, 31_800), (4500, 6000, 50_550), (3000, 4500, 38_550), (1500, 3000, 26_550), (1500, 1500, 1350)];
    assert_eq!(part(0), whole);
    assert_eq!(
        part(1),
        [(3000, 3000, 12_300), (1500, 3000, 20_550), (0, 1500, 8550), (0, 0, 0), (0, 0, 0)],
        "headroom"
    );
    let shared = [30_000, 30_000].map(|sum| (3000, 3000, sum));
    let around = [(3000, 3000, 19_500), shared[0], shared[1], (1500, 3000, 26_550), (1500, 1500, 1350)];
    assert_eq!(part(2), around, "shared by class 3");
    assert_eq!(part(3), [(0, 0, 0); 5], "class 0");
    assert_eq!(totals.pools.len(), 4);
    assert_eq!(whole.iter().map(|row| row.2).sum::<u128>(), totals.control.buffers[0].byte_ps / 1_000_000);
    spec.record.ports = vec![probe(0, us(10))];
    assert!(run(&spec, 1).pools.is_empty(), "no port of the switch is recorded");
}

#[test]
fn other_classes_of_a_held_host_go_on() {
    let mut spec = slow_receiver(us(30), buffer(3000, None));
    let other = Source { departures: Departures::Constant { gap_ps: 12e6 }, ..constant(0, 3, 12_000) };
    spec.traffic.push(Traffic::of_sources("other", vec![other]));
    let totals = run(&spec, 1);
    assert_eq!(totals.flows[1].sent_frames, 3, "at 0, 12 and 24 us");
    assert_eq!(totals.flows[1].delivered_frames, 3);
    assert_eq!(
        totals.flows[1].delay_max.map(Span::ps),
        Some(1_200_000 * 3 + 1_000_000),
        "the first waits for one frame"
    );
    assert!(totals.control.holds.iter().all(|row| row.class == 3));
    // PAUSE holds them, too.
    if let Some(how) = &mut spec.buffers[0].flow_control {
        how.stops = Stops::Link;
    }
    let paused = run(&spec, 1);
    assert!(paused.flows[1].delivered_frames < 3);
    assert_eq!((paused.ports[0].pauses.count, paused.control.holds.len()), (1, 8));
}

#[test]
fn a_stop_runs_out_unless_it_is_repeated_and_is_repeated_at_half_its_length() {
    let mut spec = slow_receiver(us(30), buffer(3000, None));
    let how = FlowControl { quanta: Some(100), ..FLOW_CONTROL };
    // 100 quanta are 5.12 us at 10 Gbit/s.
    spec.buffers[0].flow_control = Some(how.clone());
    let totals = run(&spec, 1);
    assert_eq!(totals.control.holds[0].holds.count, 1);
    assert_eq!(totals.control.holds[0].holds.total.ps(), 30_000_000 - 5_651_200, "up to the end of the run");
    assert_eq!(of_kind(&totals, ControlKind::Xoff), 1 + 10, "at 4.1 us, and each 2.56 us after");
    spec.buffers[0].flow_control = Some(FlowControl { refresh_ps: Some(us(6)), ..how });
    let error = Plan::new(spec).expect_err("it would run out");
    assert_eq!(error.pointer, "/buffers/0/flow_control/refresh_ps");
}

/// The slow receiver with a frame for host 0 that sets out just before XOFF, and responses such that all that may come after XOFF fits exactly.
fn worst_case(headroom: u64, before: Span) -> Totals {
    let mut spec = slow_receiver(us(60), buffer(4499, Some(headroom)));
    // What comes within response and propagation, 64 B and 2 x 1500 B fill five frames.
    spec.control.responses[0].pause_ps = Span::from_ps(1_348_800) + before;
    // The fourth frame, at 5.3 us, is beyond the share.
    let start = Time::from_ps(5_300_000 - 1_700_000) - before;
    let back = Source { start_ps: start, stop_ps: start + Span::from_ps(1), ..constant(3, 0, 1200) };
    spec.traffic.push(Traffic::of_sources("back", vec![back]));
    run(&spec, 1)
}

#[test]
fn the_formula_is_met_exactly_and_less_headroom_loses_frames() {
    let before = Span::from_ps(800);
    let mut spec = slow_receiver(us(60), buffer(4499, None));
    spec.control.responses[0].pause_ps = Span::from_ps(1_348_800) + before;
    let topology = Topology::expand(&spec.network).expect("a legal network");
    let needed = Loop::of(&spec, &topology, &FLOW_CONTROL, 0).headroom();
    assert_eq!(needed, Bytes::new(7501));
    let enough = worst_case(7500, before);
    assert_eq!(enough.control.buffer_inputs[0].counters.headroom_max_bytes, 7500);
    assert!(enough.drops.is_empty());
    let less = worst_case(7499, before);
    let [lost] = &less.drops[..] else { panic!("frames are lost") };
    assert_eq!((lost.port, lost.cause, lost.frames), (2, DropCause::BufferFull, 1));
    let after = worst_case(7499, Span::ZERO);
    assert!(after.drops.is_empty(), "a frame that comes at the same instant goes after XOFF");
}

fn queues(ports: Vec<u32>, classes: &[u8]) -> QueueRule {
    let class = |&class: &u8| Class {
        class,
        weight: Some(1),
        discipline: Discipline::DropTail { limit: Limit::Unlimited, marking: None, overrun: None },
        trim: None,
    };
    let order = Order::Class { quantum_bytes: Bytes::new(1518) };
    QueueRule { ports, discipline: Discipline::Classes(Classes { order, list: classes.iter().map(class).collect() }) }
}

#[test]
fn the_queue_of_an_output_may_have_so_many_times_what_is_free() {
    // Hosts 0 and 3 overload host 2; class 0 alone, no flow control: alpha / (1 + alpha) of the buffer.
    for (alpha, bytes) in [(1.0, 100_000), (0.5, 66_666), (8.0, 177_777)] {
        let egress =
            EgressPool { classes: vec![0], bytes: None, share: Share::Dynamic { alpha }, reserved_bytes: Bytes::ZERO };
        let buffer = Buffer { ingress: vec![], egress: vec![egress], flow_control: None, ..buffer(1, None) };
        let mut spec = slow_receiver(Span::from_ms(2), buffer);
        spec.traffic[0].class = 0;
        let totals = run(&spec, 1);
        let most = totals.control.buffers[0].max_bytes;
        assert!(most.abs_diff(bytes) < 1500, "{alpha}: {most}");
        assert!(totals.drops.iter().all(|row| row.cause == DropCause::BufferFull && row.frames > 0));
    }
}

#[test]
fn what_is_reserved_is_there_when_others_hold_all_that_is_shared() {
    // Host 0 fills the shared part towards host 2; what host 3 sends to host 0 over its own reserved part is not lost.
    let ingress = IngressPool {
        classes: vec![0],
        bytes: Some(Bytes::new(30_000)),
        share: Share::Dynamic { alpha: 1000.0 },
        reserved_bytes: Bytes::new(1500),
        lossless: None,
    };
    let shared = Buffer { ingress: vec![ingress.clone()], flow_control: None, ..buffer(1, None) };
    let mut spec = slow_receiver(Span::from_ms(1), shared);
    spec.traffic[0].class = 0;
    // One frame in 12 us waits for another that goes to the same host.
    spec.traffic[0].sources.push(constant(3, 2, 24_000));
    let lost = |spec: &Spec| run(spec, 1).drops.iter().filter(|row| row.flow == 1).map(|row| row.frames).sum::<u64>();
    let with = lost(&spec);
    spec.buffers[0].ingress = vec![IngressPool { reserved_bytes: Bytes::ZERO, ..ingress }];
    assert!(with < lost(&spec), "{with} against {}", lost(&spec));
}

/// The slow receiver at full speed, which asks for class 3 to stop from 5 us to 52 us, each 2 us.
fn storm(action: WatchdogAction) -> Spec {
    let mut own = buffer(10_000, None);
    own.watchdog = Some(Watchdog { detection_ps: us(20), restoration_ps: Some(us(30)), poll_ps: us(10), action });
    let mut spec = slow_receiver(us(200), own);
    if let Network::Graph { links, .. } = &mut spec.network {
        links[1].link = LINK;
    }
    spec.traffic[0].sources = vec![constant(0, 2, 2400)];
    spec.queues = vec![queues(vec![2], &[0, 3])];
    let event = |at: u64, change| Event { at_ps: Time::ZERO + us(at), change };
    let (ports, classes) = (vec![3], vec![3]);
    spec.events = vec![
        event(5, Change::Storm { ports: ports.clone(), classes, every_ps: us(2) }),
        event(52, Change::Calm { ports }),
    ];
    spec
}

#[test]
fn a_watchdog_finds_a_storm_drops_what_is_held_and_ends_when_nobody_asks() {
    let totals = run(&storm(WatchdogAction::Drop), 1);
    let [found] = totals.control.storms[..] else { panic!("one storm: {:?}", totals.control.storms) };
    // Held from 5.5512 us on. The look at 20 us is the second that sees it; 20 us are over at that of 30 us. The last frame takes effect at 51.5512 us, so those
    // of 70, 80 and 90 us see none.
    assert_eq!((found.port, found.class, found.found), (2, 3, Time::ZERO + us(30)));
    assert_eq!(found.over, Some(Time::ZERO + us(90)));
    let dropped: u64 = totals.drops.iter().filter(|row| row.cause == DropCause::Watchdog).map(|row| row.frames).sum();
    // Frames arrive at 1.7 us and each 2.4 us after: 2 of the 38 up to 90 us are sent before the hold.
    assert_eq!((dropped, totals.drops.len()), (36 - 1, 1));
    assert!(totals.control.holds.iter().any(|row| (row.port, row.class) == (2, 3)));
}

#[test]
fn a_watchdog_that_forwards_sends_what_is_held() {
    let totals = run(&storm(WatchdogAction::Forward), 1);
    assert!(totals.drops.is_empty());
    let held = totals.control.holds.iter().find(|row| row.port == 2).map(|row| row.holds.total);
    assert_eq!(held, Some(us(30) - Span::from_ps(5_551_200)), "until the storm is found");
    assert!(totals.flows[0].live_frames < 4, "all goes on");
    let alert = run(&storm(WatchdogAction::Alert), 1);
    assert_eq!(alert.control.storms, totals.control.storms);
    assert!(alert.flows[0].live_frames > 50, "it stays held");
    // What it keeps waiting makes the switch stop the sender; the root is the port that the storm holds.
    let [why] = &alert.control.causes[..] else { panic!("one was stopped: {:?}", alert.control.causes) };
    assert_eq!((why.port, why.cause, why.root, why.depth), (0, 2, 2, 2));
}

/// Host 0 sends 10 kB to host 2 after 5 us.
fn message(class: u8, config: rdma::Config) -> Traffic {
    let messages = Messages {
        config: None,
        rdma: Some(config),
        packets: Packets { payload_bytes: Bytes::new(1000), header_bytes: Bytes::new(48) },
        handshake: false,
        balancing: Balancing::Flow { weighted: false },
        arrivals: Arrivals::Listed { list: vec![(Time::ZERO + us(5), 0, 2, Bytes::new(10_000))] },
        rows: 1,
    };
    Traffic { class, messages: Some(messages), ..Traffic::of_sources("messages", vec![]) }
}

fn run_messages(spec: Spec) -> Totals {
    let plan = Plan::new(spec).expect("a legal spec");
    Sim::standard(&plan, 1).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

#[test]
fn the_class_of_answers_has_intervals_of_holds_as_that_of_data() {
    let held = |data, control_class| {
        let mut spec = slow_receiver(us(50), buffer(3000, None));
        spec.queues = vec![queues(vec![2], &[0, 3])];
        let (ports, classes) = (vec![3], vec![3]);
        spec.events = vec![Event { at_ps: Time::ZERO, change: Change::Storm { ports, classes, every_ps: us(2) } }];
        spec.traffic = vec![message(data, rdma::Config { control_class, ..rdma::Config::default() })];
        spec.record.ports = vec![probe(2, us(10))];
        run_messages(spec).hold_intervals
    };
    assert_eq!(held(0, 3), held(3, 0));
    assert_eq!(held(0, 3)[0].1.len(), 5);
    assert!(held(0, 0).is_empty(), "no frame has the class");
}

#[test]
fn a_request_for_credit_goes_past_a_class_that_is_held() {
    // The receiver stops class 3 all the time, and then so does the switch: six packets leave host 0, and the seventh waits there. It took the last credit;
    // after 100 us they count as lost.
    let mut spec = slow_receiver(us(150), buffer(3000, None));
    spec.queues = vec![queues(vec![2], &[0, 3])];
    let (ports, classes) = (vec![3], vec![3]);
    spec.events = vec![Event { at_ps: Time::ZERO, change: Change::Storm { ports, classes, every_ps: us(2) } }];
    let initial = 6.5 * 1048.0 / 12_500.0;
    let credit = Credit { initial, revokes: true, most: 1.0, packets: 1.0, share: 1.0, oversubscription: None };
    let config = rdma::Config {
        recovery: rdma::Recovery::Selective,
        credit: Some(credit),
        timeout_ps: us(100),
        round_trip_ps: Some(us(10)),
        ..rdma::Config::default()
    };
    spec.traffic = vec![message(3, config)];
    let totals = run_messages(spec);
    let [data, answers] = &totals.flows[..] else { panic!("messages have two flows") };
    assert_eq!(data.delivered_bytes, data.delivered_frames * 64, "nothing but requests");
    assert!(data.delivered_frames > 0, "{data:?}");
    assert!(answers.delivered_frames > 0, "credit");
}

fn refused(change: impl FnOnce(&mut Spec)) -> (String, String) {
    let mut spec = slow_receiver(us(10), buffer(3000, None));
    change(&mut spec);
    let error = Plan::new(spec).expect_err("it is refused");
    (error.pointer, error.message)
}

#[test]
fn what_cannot_work_is_refused_with_the_place_and_what_helps() {
    let (at, what) = refused(|spec| spec.buffers[0].bytes = Bytes::new(60_000));
    assert_eq!(at, "/buffers/0/bytes");
    assert!(what.contains("headroom") && what.contains("lacks"), "{what}");
    let (at, what) = refused(|spec| {
        let switch = node("second", NodeKind::Switch);
        if let Network::Graph { nodes, links } = &mut spec.network {
            nodes.push(switch);
            links.push(Link { a: 1, b: 4, link: LINK });
        }
        spec.buffers[0].nodes.push(4);
    });
    assert_eq!(at, "/buffers/0/ingress/0/classes/0");
    assert!(what.contains("class 3") && what.contains("'second->switch'") && what.contains("no queue"), "{what}");
    let (at, _) = refused(|spec| spec.buffers[0].flow_control = None);
    assert_eq!(at, "/buffers/0/ingress/0/lossless");
    let (at, what) = refused(|spec| spec.traffic[0].class = 4);
    assert_eq!((at.as_str(), what.contains("class 4")), ("/buffers/0/ingress", true));
    let (at, _) = refused(|spec| spec.buffers[0].ingress[1].classes = vec![0, 3]);
    assert_eq!(at, "/buffers/0/ingress/1/classes/1");
    let (at, _) = refused(|spec| spec.buffers[0].ingress[1].share = Share::Dynamic { alpha: 0.0 });
    assert_eq!(at, "/buffers/0/ingress/1/share/alpha");
    let (at, _) = refused(|spec| spec.buffers[0].nodes = vec![0]);
    assert_eq!(at, "/buffers/0/nodes/0");
    let dog = Watchdog { detection_ps: us(1), restoration_ps: None, poll_ps: us(2), action: WatchdogAction::Alert };
    let (at, _) = refused(|spec| spec.buffers[0].watchdog = Some(dog));
    assert_eq!(at, "/buffers/0/watchdog/detection_ps");
}
