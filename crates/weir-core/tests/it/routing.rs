use proptest::prelude::*;
use weir_core::network::Topology;
use weir_core::rng::Stream;
use weir_core::routing::Router;
use weir_core::spec::{Network, Routing};

use crate::specs::{LINK, SWITCH, graph};

fn names(topology: &Topology, path: &[u32]) -> Vec<String> {
    path.iter().map(|&port| topology.ports[port as usize].name.clone()).collect()
}

fn path(network: &Network, from: u32, to: u32) -> Option<Vec<String>> {
    let topology = Topology::expand(network).expect("a legal network");
    Router::new(&topology).path(from, to).map(|path| names(&topology, &path))
}

#[test]
fn a_star_is_crossed_in_two_links_also_back_to_the_sender() {
    let star = Network::Star { hosts: 3, link: LINK, switch: SWITCH };
    assert_eq!(path(&star, 0, 2).expect("a path"), ["host-0->switch-0", "switch-0->host-2"]);
    assert_eq!(path(&star, 1, 1).expect("a path"), ["host-1->switch-0", "switch-0->host-1"]);
}

#[test]
fn hosts_do_not_forward() {
    let chain = graph(&["ha", "s1", "hb", "s2", "hc"], &[(0, 1), (1, 2), (2, 3), (3, 4)]);
    assert_eq!(path(&chain, 0, 4), None);
    assert_eq!(path(&chain, 0, 2).expect("a path"), ["ha->s1", "s1->hb"]);
    assert_eq!(path(&graph(&["ha", "hb", "hc"], &[(0, 1)]), 0, 2), None);
    assert_eq!(path(&graph(&["ha", "hb"], &[(0, 1)]), 0, 0), None);
}

#[test]
fn a_direct_link_between_hosts_is_taken() {
    let both = graph(&["ha", "hb", "s"], &[(0, 2), (2, 1), (0, 1)]);
    assert_eq!(path(&both, 0, 1).expect("a path"), ["ha->hb"]);
}

#[test]
fn the_way_up_a_fat_tree_follows_the_hash_of_the_destination() {
    let (k, half) = (8, 4);
    let topology = Topology::expand(&Network::FatTree { k, link: LINK, switch: SWITCH }).expect("a legal network");
    let mut router = Router::new(&topology);
    for (from, to) in [(0, 64), (1, 65), (70, 6), (127, 63)] {
        let hash = Stream::split_mix_64(u64::from(to)).next_u64();
        let (agg, core) = ((hash % half) as u32, (hash >> 16) % half);
        let (up, down) = (from / 4, to / 4);
        let expected = [
            format!("host-{from}->edge-{up}"),
            format!("edge-{up}->agg-{}", up / 4 * 4 + agg),
            format!("agg-{}->core-{}", up / 4 * 4 + agg, u64::from(agg) * half + core),
            format!("core-{}->agg-{}", u64::from(agg) * half + core, down / 4 * 4 + agg),
            format!("agg-{}->edge-{down}", down / 4 * 4 + agg),
            format!("edge-{down}->host-{to}"),
        ];
        let path = router.path(from, to).expect("a path");
        assert_eq!(names(&topology, &path), expected);
    }
    let same_edge = router.path(0, 3).expect("a path");
    let same_pod = router.path(0, 5).expect("a path");
    assert_eq!((same_edge.len(), same_pod.len()), (2, 4));
}

#[test]
fn parallel_links_share_destinations() {
    let names: Vec<String> = (0..42).map(|i| if i < 40 { format!("h{i}") } else { format!("s{i}") }).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut links: Vec<(u32, u32)> = (0..40).map(|i| (i, 40 + i % 2)).collect();
    links.extend([(40, 41), (40, 41)]);
    let topology = Topology::expand(&graph(&names, &links)).expect("a legal network");
    let mut router = Router::new(&topology);
    let over_second = (1..40).step_by(2).filter(|&to| router.path(0, to).expect("a path").contains(&82)).count();
    // 20 fair choices: fewer than 3 or more than 17 of one kind have probability 4e-4.
    assert!((3..=17).contains(&over_second), "{over_second} of 20");
}

/// Distance in links between hosts, counted step by step without a frontier.
fn distance(topology: &Topology, from: u32, to: u32) -> Option<usize> {
    let mut reached = vec![false; topology.nodes.len()];
    reached[from as usize] = true;
    for links in 1..=topology.nodes.len() {
        let forwards = |node: u32| reached[node as usize] && ((links == 1 && node == from) || !topology.is_host(node));
        let next: Vec<u32> = topology.ports.iter().filter(|port| forwards(port.from)).map(|port| port.to).collect();
        if next.contains(&to) {
            return Some(links);
        }
        next.into_iter().for_each(|node| reached[node as usize] = true);
    }
    None
}

proptest! {
    #[test]
    fn paths_of_any_graph_are_connected_and_shortest(
        links in prop::collection::vec((0u32..9, 0u32..9), 0..20), from in 0u32..4, to in 0u32..4,
    ) {
        let links: Vec<_> = links.into_iter().filter(|(a, b)| a != b).collect();
        let network = graph(&["h0", "h1", "h2", "h3", "s4", "s5", "s6", "s7", "s8"], &links);
        let topology = Topology::expand(&network).expect("a legal network");
        let mut router = Router::new(&topology);
        // Another destination first: what the router remembers must not matter.
        let _ = router.path(0, 3);
        let path = router.path(from, to);
        // From a host to itself the way leads over a switch.
        let expected = if from == to { distance_back(&topology, from) } else { distance(&topology, from, to) };
        prop_assert_eq!(path.as_ref().map(Vec::len), expected);
        if let Some(path) = path {
            let port = |id: u32| &topology.ports[id as usize];
            prop_assert_eq!((port(path[0]).from, port(*path.last().expect("a port")).to), (from, to));
            prop_assert!(path.windows(2).all(|pair| port(pair[0]).to == port(pair[1]).from));
        }
    }
}

fn distance_back(topology: &Topology, host: u32) -> Option<usize> {
    topology.ports.iter().any(|port| port.from == host && !topology.is_host(port.to)).then_some(2)
}

fn xgft(children: &[u32], parents: &[u32], routing: Routing) -> Topology {
    let (children, parents) = (children.to_vec(), parents.to_vec());
    let network = Network::Xgft { children, parents, routing, link: LINK, switch: SWITCH };
    Topology::expand(&network).expect("a legal network")
}

fn hosts(topology: &Topology) -> u32 {
    (0..topology.nodes.len() as u32).filter(|&node| topology.is_host(node)).count() as u32
}

proptest! {
    #[test]
    fn every_pair_of_an_extended_generalised_fat_tree_is_joined_by_a_shortest_path(
        levels in prop::collection::vec((1u32..4, 1u32..4), 1..4),
        routing in prop::sample::select(vec![Routing::DestinationHash, Routing::FlowHash, Routing::DModK]),
    ) {
        let (children, parents): (Vec<u32>, Vec<u32>) = levels.into_iter().unzip();
        let topology = xgft(&children, &parents, routing);
        let mut router = Router::new(&topology);
        let mut common = 1;
        // The lowest level at which the hosts of a pair have an ancestor in common; a host meets itself at level 1.
        let block: Vec<u32> = children.iter().map(|&m| { common *= m; common }).collect();
        for to in 0..hosts(&topology) {
            for from in 0..hosts(&topology) {
                let path = router.path(from, to).expect("a path");
                let level = 1 + block.iter().take_while(|&&size| from / size != to / size).count();
                prop_assert_eq!(path.len(), 2 * level);
                let port = |id: u32| &topology.ports[id as usize];
                prop_assert_eq!((port(path[0]).from, port(path[path.len() - 1]).to), (from, to));
                prop_assert!(path.windows(2).all(|pair| port(pair[0]).to == port(pair[1]).from));
            }
        }
    }

    /// Source: Zahavi 2010, contention-free shifts: the shift permutations of a tree of full bisection meet on no link.
    #[test]
    fn d_mod_k_carries_every_shift_without_two_flows_on_a_link(
        shape in prop::sample::select(vec![vec![4, 8], vec![4, 4, 8], vec![2, 3, 5], vec![8, 16]]), shift in 0u32..128,
    ) {
        let mut parents = vec![1];
        parents.extend(&shape[..shape.len() - 1]);
        let topology = xgft(&shape, &parents, Routing::DModK);
        let mut router = Router::new(&topology);
        let mut used = vec![0; topology.ports.len()];
        let n = hosts(&topology);
        for to in 0..n {
            let path = router.path((to + n - shift % n) % n, to).expect("a path");
            path.iter().for_each(|&port| used[port as usize] += 1);
        }
        prop_assert!(used.iter().all(|&flows| flows <= 1));
    }
}

#[test]
fn hashes_spread_destinations_and_flows_over_the_top_of_a_tree() {
    let spread = |routing, pairs: &[(u32, u32)]| {
        let topology = xgft(&[8, 16], &[1, 8], routing);
        let mut router = Router::new(&topology);
        let mut tops = vec![0u32; topology.nodes.len()];
        for &(from, to) in pairs {
            let path = router.path(from, to).expect("a path");
            tops[topology.ports[path[1] as usize].to as usize] += 1;
        }
        tops.split_off(128 + 16)
    };
    // One sender to all others: 120 choices among 8. The chance that one of 8 gets fewer than 2 or more than 35 is 1e-5.
    let far: Vec<(u32, u32)> = (8..128).map(|to| (0, to)).collect();
    for routing in [Routing::DestinationHash, Routing::FlowHash] {
        assert!(spread(routing, &far).iter().all(|count| (2..=35).contains(count)), "{routing:?}");
    }
    assert_eq!(spread(Routing::DModK, &far), [15; 8]);
    // All to one: only the hash of the flow takes different ways.
    let incast: Vec<(u32, u32)> = (8..128).map(|from| (from, 0)).collect();
    assert!(spread(Routing::FlowHash, &incast).iter().all(|count| (2..=35).contains(count)));
    assert_eq!(spread(Routing::DestinationHash, &incast).iter().max(), Some(&120));
}
