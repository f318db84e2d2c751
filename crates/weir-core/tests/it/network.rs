use weir_core::network::{MAX_PORTS, Topology};
use weir_core::spec::{LinkSpec, Network, NodeKind, Routing};
use weir_core::units::{Bytes, Rate, Span};

use crate::specs::{LINK, SWITCH, graph};

fn expand(network: &Network) -> Topology {
    Topology::expand(network).expect("a legal network")
}

fn fault(network: &Network) -> (String, String) {
    let error = Topology::expand(network).expect_err("an illegal network");
    (error.pointer, error.message)
}

#[test]
fn each_link_makes_two_ports_named_after_their_ends() {
    let star = expand(&Network::Star { hosts: 2, link: LINK, switch: SWITCH });
    let names: Vec<&str> = star.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["host-0->switch-0", "switch-0->host-0", "host-1->switch-0", "switch-0->host-1"]);
    assert_eq!((star.ports[1].from, star.ports[1].to), (2, 0));
    assert_eq!(star.port("host-1->switch-0"), Some(2));
    assert_eq!(star.node("switch-0"), Some(2));
    assert_eq!(star.nodes[2].latency_ps, SWITCH.latency_ps);
    assert_eq!(star.nodes[0].latency_ps, Span::ZERO);
}

#[test]
fn parallel_links_are_distinguished_whichever_end_comes_first() {
    let network = expand(&graph(&["ha", "s", "hb"], &[(0, 1), (1, 0), (1, 2), (0, 1)]));
    let names: Vec<&str> = network.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["ha->s", "s->ha", "s->ha#2", "ha->s#2", "s->hb", "hb->s", "ha->s#3", "s->ha#3"]);
}

#[test]
fn a_dumbbell_has_one_link_between_its_switches() {
    let bottleneck = LinkSpec { rate_bps: Rate::from_gbit_per_s(1), ..LINK };
    let network = expand(&Network::Dumbbell { pairs: 2, access: LINK, bottleneck, switch: SWITCH });
    let names: Vec<&str> = network.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["left-0", "left-1", "right-0", "right-1", "left", "right"]);
    let port = network.port("left->right").expect("the bottleneck") as usize;
    assert_eq!(network.ports[port].link, bottleneck);
    assert_eq!(network.ports.iter().filter(|port| port.link == bottleneck).count(), 2);
}

#[test]
fn a_fat_tree_has_the_published_size_and_every_switch_has_k_ports() {
    for k in [2, 4, 8] {
        let network = expand(&Network::FatTree { k, link: LINK, switch: SWITCH });
        let hosts = network.nodes.iter().filter(|node| node.kind == NodeKind::Host).count() as u32;
        assert_eq!(hosts, k * k * k / 4);
        assert_eq!(network.nodes.len() as u32 - hosts, 5 * k * k / 4);
        for (id, node) in (0..).zip(&network.nodes) {
            let degree = network.ports.iter().filter(|port| port.from == id).count() as u32;
            assert_eq!(degree, if node.kind == NodeKind::Host { 1 } else { k }, "{}", node.name);
        }
    }
}

#[test]
fn a_mistyped_generator_is_refused_before_it_fills_the_memory() {
    let tree = |k| Network::FatTree { k, link: LINK, switch: SWITCH };
    assert_eq!(fault(&tree(7)), ("/k".into(), "k of a fat tree is even and at least 2 (got 7)".into()));
    assert_eq!(fault(&tree(0)).0, "/k");
    for k in [128, 800_000, u32::MAX - 1] {
        let (pointer, message) = fault(&tree(k));
        assert_eq!(pointer, "/k");
        assert!(message.contains(&format!("a fat tree with k = {k} has")), "{message}");
    }
    let (pointer, message) = fault(&Network::Star { hosts: u32::MAX, link: LINK, switch: SWITCH });
    assert_eq!(pointer, "/hosts");
    assert!(message.contains("4294967296 nodes; at most 1048576"), "{message}");
    let many = u32::try_from(MAX_PORTS / 2).expect("a small number") + 1;
    assert_eq!(fault(&Network::Star { hosts: many, link: LINK, switch: SWITCH }).0, "/hosts");
    let dumbbell = |pairs| Network::Dumbbell { pairs, access: LINK, bottleneck: LINK, switch: SWITCH };
    assert_eq!(fault(&dumbbell(0)).0, "/pairs");
    assert_eq!(fault(&dumbbell(u32::MAX)).0, "/pairs");
}

#[test]
fn an_unusable_link_or_latency_is_refused_where_it_stands() {
    let star = |link, switch| Network::Star { hosts: 2, link, switch };
    let still = LinkSpec { rate_bps: Rate::from_bps(0), ..LINK };
    assert_eq!(fault(&star(still, SWITCH)).0, "/link/rate_bps");
    let far = LinkSpec { delay_ps: Span::from_ps(u64::MAX), ..LINK };
    assert_eq!(fault(&star(far, SWITCH)).0, "/link/delay_ps");
    let wide = LinkSpec { framing_bytes: Bytes::new(70_000), ..LINK };
    assert_eq!(fault(&star(wide, SWITCH)).0, "/link/framing_bytes");
    let slow = weir_core::spec::SwitchSpec { latency_ps: Span::from_ps(u64::MAX) };
    assert_eq!(fault(&star(LINK, slow)).0, "/switch/latency_ps");
    let dumbbell = Network::Dumbbell { pairs: 1, access: LINK, bottleneck: still, switch: SWITCH };
    assert_eq!(fault(&dumbbell).0, "/bottleneck/rate_bps");
}

#[test]
fn faults_of_a_graph_name_the_node_or_link() {
    assert_eq!(fault(&graph(&["ha", "ha"], &[])), ("/nodes/1/name".into(), "two nodes are called 'ha'".into()));
    assert_eq!(fault(&graph(&["ha", ""], &[])).0, "/nodes/1/name");
    assert_eq!(fault(&graph(&["ha", "a->b"], &[])).0, "/nodes/1/name");
    assert_eq!(fault(&graph(&["ha#2"], &[])).0, "/nodes/0/name");
    assert_eq!(fault(&graph(&["ha", "s"], &[(0, 1), (1, 1)])).1, "a link joins two nodes (got 's' twice)");
    assert_eq!(fault(&graph(&["ha", "s"], &[(0, 2)])).0, "/links/0/b");
    let Network::Graph { mut nodes, links } = graph(&["ha", "s"], &[(0, 1)]) else { unreachable!() };
    nodes[0].latency_ps = Span::from_ns(1);
    assert_eq!(fault(&Network::Graph { nodes, links }).0, "/nodes/0/latency_ps");
}

fn xgft(children: &[u32], parents: &[u32]) -> Network {
    let (children, parents) = (children.to_vec(), parents.to_vec());
    Network::Xgft { children, parents, routing: Routing::DModK, link: LINK, switch: SWITCH }
}

#[test]
fn an_extended_generalised_fat_tree_has_the_nodes_and_links_of_the_formula() {
    let shapes: [(&[u32], &[u32], u32); 7] = [
        (&[2, 4], &[1, 2], 8),
        (&[4, 4], &[1, 4], 16),
        (&[4, 8], &[1, 4], 32),
        (&[8, 16], &[1, 8], 128),
        (&[4, 4, 8], &[1, 4, 4], 128),
        (&[8, 8, 16], &[1, 8, 8], 1024),
        (&[16, 16, 8], &[1, 16, 16], 2048),
    ];
    for (m, w, hosts) in shapes {
        let network = expand(&xgft(m, w));
        let product = |counts: &[u32]| counts.iter().product::<u32>();
        let level = |i: usize| product(&w[..i]) * product(&m[i..]);
        assert_eq!(level(0), hosts);
        assert_eq!(network.nodes.len() as u32, (0..=m.len()).map(level).sum::<u32>());
        assert_eq!(network.ports.len() as u32, 2 * (0..m.len()).map(|i| level(i) * w[i]).sum::<u32>());
        let mut degree = vec![0; network.nodes.len()];
        network.ports.iter().for_each(|port| degree[port.from as usize] += 1);
        let mut next = 0;
        for i in 0..=m.len() {
            let (down, up) = (if i == 0 { 0 } else { m[i - 1] }, w.get(i).copied().unwrap_or(0));
            let last = next + level(i) as usize;
            assert!(degree[next..last].iter().all(|&ports| ports == down + up), "level {i} of {m:?} {w:?}");
            next = last;
        }
    }
}

#[test]
fn the_k_ary_fat_tree_is_an_extended_generalised_one() {
    let names = |network: &Topology, swap: &[(&str, &str)]| {
        let rename = |name: &str| swap.iter().fold(name.to_string(), |name, (from, to)| name.replace(from, to));
        network.ports.iter().map(|port| rename(&port.name)).collect::<Vec<_>>()
    };
    let tree = expand(&Network::FatTree { k: 4, link: LINK, switch: SWITCH });
    let same = expand(&xgft(&[2, 2, 4], &[1, 2, 2]));
    let levels = [("level1", "edge"), ("level2", "agg"), ("level3", "core")];
    assert_eq!(names(&tree, &[]), names(&same, &levels));
}

#[test]
fn one_level_with_one_parent_is_a_star() {
    let (star, tree) = (expand(&Network::Star { hosts: 5, link: LINK, switch: SWITCH }), expand(&xgft(&[5], &[1])));
    let ends = |network: &Topology| network.ports.iter().map(|port| (port.from, port.to)).collect::<Vec<_>>();
    assert_eq!(ends(&star), ends(&tree));
    assert_eq!(tree.nodes[5].name, "level1-0");
}

#[test]
fn faults_of_an_extended_generalised_fat_tree_name_the_level() {
    assert_eq!(fault(&xgft(&[], &[])).0, "/children");
    assert_eq!(fault(&xgft(&[4, 8], &[1])).0, "/parents");
    assert_eq!(fault(&xgft(&[4, 0], &[1, 2])).0, "/children/1");
    assert_eq!(fault(&xgft(&[4, 8], &[0, 2])).0, "/parents/0");
    assert_eq!(fault(&xgft(&[u32::MAX; 4], &[u32::MAX; 4])).0, "/children");
    assert_eq!(fault(&xgft(&[1 << 15, 1 << 5], &[1, 1 << 10])).0, "/children");
}
