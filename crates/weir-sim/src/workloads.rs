//! Loads whose exact counts are known, from several simulators: for benchmarks and tests. Their chance does not
//! depend on the seed of a run: source `i` draws from SplitMix64 with state `1000 + i`.

mod calibration;

use weir_core::spec::{
    Departures, Destination, FrameSize, Limit, LinkSpec, Network, NodeKind, QueueRule, Source, Spec, Stream,
    SwitchSpec, Traffic,
};
use weir_core::units::{Bytes, Rate, Span, Time};

use weir_core::network::Topology;
use weir_core::path::LossModel;
use weir_core::spec::transport::{Connection, Connections, Hosts, Load};
use weir_core::tcp::{self, LostRetransmissions};

pub use calibration::{CORE, HOT_PORT, calibration, calibration_pause};

/// What may wait at a switch's port.
const BUFFER: Limit = Limit::Bytes(Bytes::new(150_000));
/// Every link: 10 Gbit/s, 0.5 us; a frame's size is all that it occupies.
const LINK: LinkSpec = LinkSpec {
    rate_bps: Rate::from_gbit_per_s(10),
    delay_ps: Span::from_ns(500),
    framing_bytes: Bytes::ZERO,
    loss: LossModel::None,
};
const SWITCH: SwitchSpec = SwitchSpec { latency_ps: Span::ZERO };
/// Transmission times of 1500 B and of 64 B, in ps.
const TX_1500: f64 = 1_200_000.0;
const SLOT: Span = Span::from_ps(51_200);

/// W1: four hosts send to a fifth over one switch, each at 49 % of the line rate, Poisson, 1500 B; 100 ms.
/// 162 614 frames are generated, 83 331 delivered, 79 180 dropped; 245 943 packet-hops.
pub fn incast() -> Spec {
    let source = |host| {
        let departures = Departures::Poisson { mean_gap_ps: TX_1500 / 0.49 };
        source(host, Destination::Node(4), departures, 1500)
    };
    spec(Network::Star { hosts: 5, link: LINK, switch: SWITCH }, (0..4).map(source).collect(), Span::from_ms(100))
}

/// W3: a fat tree; host `i` of `n` sends to host `i + n/2` at 80 % of the line rate, Poisson, 1500 B; 2 ms.
/// With `k` = 8: 170 766 generated, 102 064 delivered, 61 597 dropped; 712 643 packet-hops.
pub fn fat_tree(k: u32) -> Spec {
    let hosts = k * k * k / 4;
    let source = |host| {
        let departures = Departures::Poisson { mean_gap_ps: TX_1500 / 0.8 };
        source(host, Destination::Node((host + hosts / 2) % hosts), departures, 1500)
    };
    spec(Network::FatTree { k, link: LINK, switch: SWITCH }, (0..hosts).map(source).collect(), Span::from_ms(2))
}

/// W4: 32 hosts on one switch; in each slot of a 64 B frame a host sends with probability 85 %, to any host; 2 ms.
/// 1 062 448 generated; 2 123 938 packet-hops.
pub fn slotted_switch() -> Spec {
    let source = |host| {
        let departures = Departures::Bernoulli { slot_ps: SLOT, probability: 0.85 };
        source(host, Destination::Uniform((0..32).collect()), departures, 64)
    };
    spec(Network::Star { hosts: 32, link: LINK, switch: SWITCH }, (0..32).map(source).collect(), Span::from_ms(2))
}

/// W2: `flows` endless TCP connections over one bottleneck of 1 Gbit/s, and for 3 of 10 s 300 Mbit/s of UDP besides
/// them. Connection `i` starts after `i` ms; Reno with selective acknowledgements, one acknowledgement for every two
/// segments; round trips of 20 ms, and room for as much in the queue.
pub fn dumbbell(flows: u32) -> Spec {
    let link = |gbps, ms| LinkSpec {
        rate_bps: Rate::from_gbit_per_s(gbps),
        delay_ps: Span::from_ms(ms),
        framing_bytes: Bytes::ZERO,
        loss: LossModel::None,
    };
    let pairs = flows + 1;
    let (access, bottleneck) = (link(10, 1), link(1, 8));
    let network = Network::Dumbbell { pairs, access, bottleneck, switch: SWITCH };
    let topology = Topology::expand(&network).expect("a legal network");
    let host = |side: &str, pair: u32| topology.node(&format!("{side}-{pair}")).expect("a host of the dumbbell");
    let connection = |pair: u32| Connection {
        from: host("left", pair),
        to: host("right", pair),
        start_ps: Time::ZERO + Span::from_ms(pair.into()),
        stop_ps: Time::NEVER,
        load: Load::Endless {},
    };
    let config = tcp::Config {
        lost_retransmissions: LostRetransmissions::Timeout,
        receive_buffer_bytes: Bytes::new(1 << 26),
        delayed_ack_timeout_ps: Span::from_ms(200),
        ..tcp::Config::default()
    };
    let connections = Connections { config, hosts: Hosts::default(), list: (0..flows).map(connection).collect() };
    // 1470 B of payload at 300 Mbit/s.
    let departures = Departures::Constant { gap_ps: 39_200_000.0 };
    let size = FrameSize::Fixed(Bytes::new(1516));
    let cross = Source {
        start_ps: Time::ZERO + Span::from_ms(2_000),
        stop_ps: Time::ZERO + Span::from_ms(5_000),
        ..Source::between(host("left", flows), host("right", flows), departures, size)
    };
    let bottleneck = topology.port("left->right").expect("the bottleneck");
    let limit = Limit::Bytes(Bytes::new(2_500_000));
    Spec {
        queues: vec![QueueRule::drop_tail(vec![bottleneck], limit)],
        traffic: vec![
            Traffic { tcp: Some(connections), ..Traffic::of_sources("tcp", vec![]) },
            Traffic::of_sources("udp", vec![cross]),
        ],
        ..Spec::of_network(network, Span::from_ms(10_000))
    }
}

fn source(from: u32, to: Destination, departures: Departures, size: u64) -> Source {
    Source {
        from,
        to,
        start_ps: Time::ZERO,
        stop_ps: Time::NEVER,
        departures,
        frame_size: FrameSize::Fixed(Bytes::new(size)),
        stream: Stream::SplitMix64 { state: 1000 + u64::from(from) },
    }
}

/// `sources` on `network`, with drop-tail queues at all ports of switches.
fn spec(network: Network, sources: Vec<Source>, duration_ps: Span) -> Spec {
    let topology = Topology::expand(&network).expect("a legal network");
    let of_switch =
        (0..).zip(&topology.ports).filter(|(_, port)| topology.nodes[port.from as usize].kind == NodeKind::Switch);
    let ports = of_switch.map(|(id, _)| id).collect();
    Spec {
        queues: vec![QueueRule::drop_tail(ports, BUFFER)],
        traffic: vec![Traffic::of_sources("load", sources)],
        ..Spec::of_network(network, duration_ps)
    }
}
