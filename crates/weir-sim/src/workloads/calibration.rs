//! The network of the BCN calibration study: four hosts, each behind an edge switch of its own, send to a fifth over
//! a core switch, at 49 % of 10 Gbit/s each; what waits for the fifth at the core switch is measured.

use weir_core::path::LossModel;
use weir_core::spec::control::{
    BackOff, Bcn, BcnCongestionPoint, BcnReactionPoint, Control, Counted, Counting, Drift, Limiter, Meanwhile,
    Negative, Notification, NotificationLane, Pause, Positive, Response, Restart, Sampling, Saturation, Stop,
    StopReset,
};
use weir_core::spec::{
    Departures, FrameSize, Limit, Link, LinkSpec, Network, Node, NodeKind, QueueRule, Source, Spec, Traffic,
};
use weir_core::units::{Bytes, Rate, Span};

const FRAME: Bytes = Bytes::new(1500);
const LINK: LinkSpec = LinkSpec {
    rate_bps: Rate::from_gbit_per_s(10),
    delay_ps: Span::from_ns(500),
    framing_bytes: Bytes::ZERO,
    loss: LossModel::None,
};
/// Latency of switches, and response time of hosts.
const LATENCY: Span = Span::from_us(1);

/// Hosts are nodes 0 to 4, their edge switches 5 to 9, the core switch is node 10.
pub const CORE: u32 = 10;
/// The port of the core switch towards the receiver.
pub const HOT_PORT: u32 = 19;

/// Basic BCN with drift for 80 ms, without PAUSE.
///
/// Source: BCN Calibration 2006, topology, workload, BCN parameters. The jitters are not in it.
pub fn calibration() -> Spec {
    let node = |name: String, kind, latency_ps| Node { name, kind, latency_ps };
    let hosts = (0..5).map(|i| node(format!("ep-{i}"), NodeKind::Host, Span::ZERO));
    let edges = (0..5).map(|i| node(format!("es-{i}"), NodeKind::Switch, LATENCY));
    let nodes = hosts.chain(edges).chain([node("cs".into(), NodeKind::Switch, LATENCY)]).collect();
    let access = (0..5).map(|i| Link { a: i, b: 5 + i, link: LINK });
    let trunks = (0..5).map(|i| Link { a: 5 + i, b: CORE, link: LINK });
    let links = access.chain(trunks).collect();
    let of_switches = (0..20).filter(|port| port % 2 == 1 || *port >= 10).collect();
    let limit = Limit::Bytes(Bytes::new(150_000));
    Spec {
        queues: vec![QueueRule::drop_tail(of_switches, limit)],
        traffic: vec![Traffic::of_sources("load", (0..4).map(source).collect())],
        control: Control {
            bcn: Some(bcn()),
            responses: vec![Response { nodes: (0..5).collect(), pause_ps: LATENCY, notification_ps: LATENCY }],
            ..Control::default()
        },
        ..Spec::of_network(Network::Graph { nodes, links }, Span::from_ms(80))
    }
}

/// PAUSE at all switches of [`calibration`].
///
/// Source: BCN Calibration 2006, BCN detection & global pause.
pub fn calibration_pause() -> Pause {
    Pause {
        nodes: (5..=CORE).collect(),
        xoff_bytes: Bytes::new(140_000),
        xon_bytes: Bytes::new(130_000),
        frame_bytes: Bytes::new(64),
        delay_ps: Span::ZERO,
        quanta: None,
        refresh_ps: None,
    }
}

fn source(from: u32) -> Source {
    let departures = Departures::Bernoulli { slot_ps: Span::from_ns(1200), probability: 0.49 };
    Source::between(from, 4, departures, FrameSize::Fixed(FRAME))
}

fn bcn() -> Bcn {
    Bcn {
        congestion_point: BcnCongestionPoint {
            ports: vec![HOT_PORT],
            q_eq_bytes: FRAME * 16,
            unit_bytes: FRAME,
            counting: Counting::Exact,
            saturation: Saturation::SetPoint,
            w: 2.0,
            sample_every_bytes: Bytes::new(150_000),
            sampling: Sampling::Uniform { jitter: 1.0 },
            counted: Counted::Received,
            positive: Positive::Tagged,
            negative: Negative::Always,
            severe: None,
            notification: Notification {
                frame_bytes: Bytes::new(64),
                delay_ps: LATENCY,
                lane: NotificationLane::Control,
            },
        },
        reaction_point: BcnReactionPoint {
            hosts: (0..4).collect(),
            gi: 12.42,
            gd: 6.09e-3,
            ru_bps: Rate::from_bps(1_000_000),
            min_rate_bps: Rate::from_bps(1_000_000),
            initial_rate_bps: None,
            removal_rate_bps: None,
            drift: Some(Drift { step_bps: Rate::from_bps(1_000_000), every_ps: Span::from_us(100) }),
            stop: Stop {
                t_max_ps: Span::from_us(100),
                r_min_bps: Rate::from_gbit_per_s(1),
                t_max_factor: 2.0,
                r_min_factor: 0.5,
                back_off: BackOff::After,
                restart: Restart::RMin,
                reset: StopReset::Never,
                meanwhile: Meanwhile::Ignore,
            },
            limiter: Limiter { queue: Limit::Frames(100), pacing_jitter: 0.15, ..Limiter::default() },
        },
    }
}
