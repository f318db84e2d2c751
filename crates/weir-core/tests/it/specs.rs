//! Small specs to start from.

use weir_core::path::LossModel;
use weir_core::spec::Engine;
use weir_core::spec::control::Control;
use weir_core::spec::switching::Switching;
use weir_core::spec::{
    Departures, Destination, Discipline, FrameSize, Limit, Link, LinkSpec, Network, Node, NodeKind, QueueRule, Record,
    Run, Source, Spec, Stream, SwitchSpec, Traffic,
};
use weir_core::units::{Bytes, Rate, Span, Time};

pub(crate) const LINK: LinkSpec = LinkSpec {
    rate_bps: Rate::from_gbit_per_s(10),
    delay_ps: Span::from_ns(500),
    framing_bytes: Bytes::new(20),
    loss: LossModel::None,
};
pub(crate) const SWITCH: SwitchSpec = SwitchSpec { latency_ps: Span::from_us(1) };

pub(crate) fn node(name: &str, kind: NodeKind) -> Node {
    Node { name: name.into(), kind, latency_ps: Span::ZERO }
}

/// A graph of hosts (`h...`) and switches (all others), with links between the places given.
pub(crate) fn graph(names: &[&str], links: &[(u32, u32)]) -> Network {
    let kind = |name: &str| if name.starts_with('h') { NodeKind::Host } else { NodeKind::Switch };
    Network::Graph {
        nodes: names.iter().map(|name| node(name, kind(name))).collect(),
        links: links.iter().map(|&(a, b)| Link { a, b, link: LINK }).collect(),
    }
}

pub(crate) fn source(from: u32, to: u32) -> Source {
    Source {
        from,
        to: Destination::Node(to),
        start_ps: Time::ZERO,
        stop_ps: Time::NEVER,
        departures: Departures::Poisson { mean_gap_ps: 2.5e6 },
        frame_size: FrameSize::Fixed(Bytes::new(1500)),
        stream: Stream::Named,
    }
}

/// Three hosts on a switch; two send to the third.
pub(crate) fn incast() -> Spec {
    Spec {
        network: Network::Star { hosts: 3, link: LINK, switch: SWITCH },
        queues: vec![QueueRule {
            ports: vec![5],
            discipline: Discipline::DropTail { limit: Limit::Frames(16), marking: None, overrun: None },
        }],
        traffic: vec![Traffic::of_sources("load", vec![source(0, 2), source(1, 2)])],
        control: Control::default(),
        switching: Switching::default(),
        events: Vec::new(),
        buffers: Vec::new(),
        run: Run { duration_ps: Span::from_ms(1), engine: Engine::Event },
        record: Record::default(),
    }
}
