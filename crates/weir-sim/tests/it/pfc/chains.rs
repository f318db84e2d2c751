//! Chains that are overloaded at random lose nothing of lossless classes.

use proptest::prelude::*;
use weir_core::ethernet::headroom::{self, Loop};
use weir_core::network::Topology;
use weir_core::spec::buffers::{Buffer, EgressPool, FlowControl, IngressPool, Lossless, Share};
use weir_core::spec::control::Response;
use weir_core::spec::{Departures, FrameSize, Link, LinkSpec, Network, Node, NodeKind, Source, Spec, Traffic};
use weir_core::units::{Bytes, Rate, Span};

use super::{FLOW_CONTROL, node, queues};
use crate::scenarios::{LINK, constant, run, spec};

/// Hosts 0 to 2 at the first of two switches (4, 5) send more than host 3 at the second can receive, and it sends back as much as it can.
fn overloaded_chain() -> impl Strategy<Value = Spec> {
    let rate = || prop::sample::select(vec![10u64, 25, 40, 100, 400]);
    let links = prop::collection::vec((rate(), 0u64..2_000_000, prop::sample::select(vec![0u64, 20])), 5);
    let sizes = prop::sample::select(vec![64u64, 512, 1500, 4096, 9000]);
    let rest = (sizes, 0u64..1_000_000, 0u64..3_000_000, 0u64..500_000, 1e-2..8.0f64, 0u64..4000, any::<bool>());
    (links, rest).prop_map(|(links, (longest, latency, response, delay, alpha, reserved, quanta))| {
        let link = |i: usize| LinkSpec {
            rate_bps: Rate::from_gbit_per_s(links[i].0),
            delay_ps: Span::from_ps(links[i].1),
            framing_bytes: Bytes::new(links[i].2),
            ..LINK
        };
        let mut nodes: Vec<Node> = (0..4).map(|i| node(&format!("h{i}"), NodeKind::Host)).collect();
        for name in ["s0", "s1"] {
            nodes.push(Node { latency_ps: Span::from_ps(latency), ..node(name, NodeKind::Switch) });
        }
        let mut ends: Vec<Link> = (0..3).map(|i| Link { a: i, b: 4, link: link(i as usize) }).collect();
        ends.push(Link { a: 3, b: 5, link: link(3) });
        ends.push(Link { a: 4, b: 5, link: link(4) });
        let source = |from: u32, to: u32, share: f64, size: FrameSize| {
            let rate = links[from as usize].0 as f64;
            let gap_ps = longest as f64 * 8000.0 / rate / share;
            Source {
                departures: Departures::Poisson { mean_gap_ps: gap_ps },
                frame_size: size,
                ..constant(from, to, 1)
            }
        };
        let fixed = |size: u64| FrameSize::Fixed(Bytes::new(size));
        let group =
            |name: &str, class: u8, sources: Vec<Source>| Traffic { class, ..Traffic::of_sources(name, sources) };
        let mut spec = spec(4, vec![], Span::from_us(300));
        spec.traffic = vec![
            group("three", 3, (0..3).map(|host| source(host, 3, 1.3, fixed(longest))).collect()),
            group("five", 5, (0..2).map(|host| source(host, 3, 0.7, fixed(longest.min(700)))).collect()),
            group("back", 0, (0..3).map(|host| source(3, host, 0.6, fixed(longest))).collect()),
        ];
        spec.network = Network::Graph { nodes, links: ends };
        spec.queues = vec![queues(vec![8, 9], &[0, 3, 5])];
        spec.control.responses =
            vec![Response { nodes: (0..6).collect(), pause_ps: Span::from_ps(response), notification_ps: Span::ZERO }];
        let flow_control = FlowControl {
            delay_ps: Span::from_ps(delay),
            quanta: quanta.then_some(65_535),
            longest_bytes: Bytes::new(longest),
            ..FLOW_CONTROL
        };
        let share = Share::Dynamic { alpha };
        let lossless = Lossless { headroom_bytes: None, xon_offset_bytes: Bytes::new(2 * longest) };
        let reserved_bytes = Bytes::new(reserved);
        let mut buffer = Buffer {
            nodes: vec![4, 5],
            bytes: Bytes::new(u64::MAX / 4),
            ingress: vec![
                IngressPool { classes: vec![3, 5], bytes: None, share, reserved_bytes, lossless: Some(lossless) },
                IngressPool {
                    classes: vec![0],
                    bytes: Some(Bytes::new(100_000)),
                    share,
                    reserved_bytes: Bytes::ZERO,
                    lossless: None,
                },
            ],
            egress: vec![EgressPool {
                classes: vec![0],
                bytes: None,
                share: Share::Static { bytes: Bytes::new(50_000) },
                reserved_bytes: Bytes::ZERO,
            }],
            flow_control: Some(flow_control),
            watchdog: None,
        };
        spec.buffers = vec![buffer.clone()];
        let topology = Topology::expand(&spec.network).expect("a legal network");
        let committed = |node| buffer.committed(&headroom::of_inputs(&spec, &topology, &buffer, node)).count();
        // Little is left to share.
        buffer.bytes = Bytes::new(committed(4).max(committed(5)) + 60_000);
        spec.buffers = vec![buffer];
        spec
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn lossless_classes_lose_nothing_whatever_cables_rates_frames_and_delays(spec in overloaded_chain()) {
        let totals = run(&spec, 1);
        let lossless: Vec<bool> = (0..8).map(|flow| flow < 5).collect();
        prop_assert!(totals.drops.iter().all(|row| !lossless[row.flow as usize]), "{:?}", totals.drops);
        let topology = Topology::expand(&spec.network).expect("a legal network");
        let how = spec.buffers[0].flow_control.as_ref().expect("it has flow control");
        for row in totals.control.buffer_inputs.iter().filter(|row| row.class != 0) {
            let needed = Loop::of(&spec, &topology, how, row.port).headroom().count();
            prop_assert!(row.counters.headroom_max_bytes <= needed);
        }
    }
}

#[test]
fn somebody_is_stopped_in_most_of_those_networks() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut used: Vec<f64> = Vec::new();
    for _ in 0..40 {
        let spec = overloaded_chain().new_tree(&mut runner).expect("a spec").current();
        let topology = Topology::expand(&spec.network).expect("a legal network");
        let how = spec.buffers[0].flow_control.clone().expect("it has flow control");
        let share = |row: &weir_sim::InputTotals| {
            let needed = Loop::of(&spec, &topology, &how, row.port).headroom().count();
            row.counters.headroom_max_bytes as f64 / needed as f64
        };
        let rows = run(&spec, 1).control.buffer_inputs;
        used.push(rows.iter().filter(|row| row.class != 0).map(share).fold(0.0, f64::max));
    }
    used.sort_by(f64::total_cmp);
    assert!(used[20] > 0.5, "half of them use more than half of some headroom: {used:?}");
}
