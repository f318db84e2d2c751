//! Small specs to start from.

use weir_core::path::LossModel;
use weir_core::spec::{
    Departures, FrameSize, Limit, Link, LinkSpec, Network, Node, NodeKind, QueueRule, Source, Spec, SwitchSpec, Traffic,
};
use weir_core::units::{Bytes, Rate, Span};

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
    Source::between(from, to, Departures::Poisson { mean_gap_ps: 2.5e6 }, FrameSize::Fixed(Bytes::new(1500)))
}

/// Three hosts on a switch; two send to the third.
pub(crate) fn incast() -> Spec {
    Spec {
        queues: vec![QueueRule::drop_tail(vec![5], Limit::Frames(16))],
        traffic: vec![Traffic::of_sources("load", vec![source(0, 2), source(1, 2)])],
        ..Spec::of_network(Network::Star { hosts: 3, link: LINK, switch: SWITCH }, Span::from_ms(1))
    }
}
