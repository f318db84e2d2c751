//! Where frames go next.
//!
//! A frame of a flow with a fixed way knows it: its `leg` is a place in [`Forwarding::route`], where the ports of all flows stand one
//! after the other, and what stands behind is its next port. Where [`ASK`] stands instead, the node is asked for each
//! frame ([`Forwarding::next`]); the leg that the frame gets then is one of a port that it came by, the port that it
//! takes, and [`ASK`] again.
//!
//! Ports that frames take in the same way share a leg, so that what happens to frames is counted by flow, port and the port before.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::network::Topology;
use weir_core::rng::mix;
use weir_core::routing::Router;
use weir_core::spec::Routing;

use crate::plan::Plan;
use crate::route::{ARRIVED, ASK, LOST, OPEN};

/// The ways of all flows.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {
    /// The ports of all flows, [`ARRIVED`] behind each; shared with other replicates until something changes. Without those of open flows where
    /// they stand last and nothing changes: they are many, and each says the same.
    pub(crate) route: Arc<Vec<u32>>,
    /// Where frames are put whose link went down.
    pub(crate) lost: u32,
    /// By flow: its legs behind those of the plan, with their ports.
    added: BTreeMap<u32, Vec<(u32, u32)>>,
    /// The leg of a flow that came by a port and takes another.
    known: BTreeMap<(u32, u32, u32), u32>,
    /// Paths over the links of which nodes know that they are up.
    router: Option<Router>,
    /// By port: whether nodes know that its link is down.
    down: Vec<bool>,
    /// By node and destination: the ports that lie on a shortest way.
    candidates: BTreeMap<(u32, u32), Vec<u32>>,
}

impl Forwarding {
    /// The fixed ways of `plan`.
    pub(crate) fn new(plan: &Plan) -> Forwarding {
        let changes = plan.spec.events.iter().any(|event| event.change.is_of_links());
        let of_open = plan.flows.iter().filter(|flow| flow.is_open).map(|flow| flow.first_leg);
        let fixed = of_open.clone().min().filter(|first| {
            !changes && first + of_open.clone().count() as u32 * plan.open.words == plan.route.len() as u32
        });
        let mut forwarding = Forwarding {
            route: fixed
                .map_or_else(|| Arc::clone(&plan.route), |first| Arc::new(plan.route[..first as usize].to_vec())),
            ..Forwarding::default()
        };
        if changes {
            let route = Arc::make_mut(&mut forwarding.route);
            forwarding.lost = route.len() as u32;
            route.extend([LOST, LOST]);
            forwarding.down = vec![false; plan.topology.ports.len()];
        }
        forwarding
    }

    /// What stands at this place of the ways.
    #[inline(always)]
    pub(crate) fn at(&self, leg: u32) -> u32 {
        self.route.get(leg as usize).copied().unwrap_or(OPEN)
    }

    /// Whether nodes know that the link behind `port` is down.
    pub(crate) fn is_down(&self, port: u32) -> bool {
        self.down.get(port as usize).is_some_and(|&down| down)
    }

    /// By port: whether nodes know that its link is down.
    pub(crate) fn known_down(&self) -> &[bool] {
        &self.down
    }

    /// The port by which a frame came whose place in the ways is `leg`: on a fixed way that of the plan, whatever became of the way
    /// since.
    pub(crate) fn input(&self, plan: &Plan, leg: u32) -> u32 {
        let before = leg as usize - 1;
        plan.route.get(before).copied().unwrap_or_else(|| self.route[before])
    }

    /// The port by which `node` sends a frame of `flow` on; none if it knows no way.
    pub(crate) fn next(&mut self, plan: &Plan, node: u32, flow: u32) -> Option<u32> {
        let (from, to) = (plan.flows[flow as usize].from, plan.flows[flow as usize].to);
        let router = self.router.as_mut()?;
        let candidates = self.candidates.entry((node, to)).or_insert_with(|| router.ports_towards(node, to));
        let place = choice(&plan.topology, from, to, node).checked_rem(candidates.len() as u64)?;
        Some(candidates[place as usize])
    }

    /// The leg of a frame of `flow` that came by `input` and goes on by `output`.
    pub(crate) fn leg(&mut self, topology: &Topology, flow: u32, input: u32, output: u32, to: u32) -> u32 {
        *self.known.entry((flow, input, output)).or_insert_with(|| {
            let route = Arc::make_mut(&mut self.route);
            let leg = route.len() as u32 + 1;
            let ends = topology.ports[output as usize].to == to;
            route.extend([input, output, if ends { ARRIVED } else { ASK }]);
            self.added.entry(flow).or_default().push((leg, output));
            leg
        })
    }

    /// The legs of `flow` behind those of the plan: their places and ports.
    pub(crate) fn added(&self, flow: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.added.get(&flow).into_iter().flatten().copied()
    }

    /// Nodes know from now on which of the links behind `ports` carry nothing: those that are `down`. Flows whose way leads over a
    /// link that they know to be down are forwarded again from their first switch on; all others keep or get back the way of the plan.
    pub(crate) fn learn(&mut self, plan: &Plan, ports: &[u32], down: &[bool]) {
        for &port in ports {
            self.down[port as usize] = down[port as usize];
        }
        let down = &self.down;
        self.router = Some(Router::over(&plan.topology, |port| !down[port as usize]));
        self.candidates.clear();
        let route = Arc::make_mut(&mut self.route);
        for flow in plan.flows.iter().filter(|flow| !flow.is_open) {
            let second = flow.first_leg as usize + 1;
            let behind = plan.route[second..].iter().take_while(|&&port| port != ARRIVED);
            let is_cut = behind.clone().any(|&port| down[port as usize]);
            route[second] = if is_cut { ASK } else { plan.route[second] };
        }
    }
}

/// A number that chooses among equal ways at a node.
///
/// DEVIATION: rerouted flows choose by a hash at each node, whatever the rule of the fixed ways is; with `FlowHash` the sender counts, too.
fn choice(topology: &Topology, from: u32, to: u32, node: u32) -> u64 {
    let state = match topology.routing {
        Routing::FlowHash => u64::from(from) << 32 | u64::from(to),
        Routing::DestinationHash | Routing::DModK => u64::from(to),
    };
    mix(mix(state) ^ u64::from(node))
}
