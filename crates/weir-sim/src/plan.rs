//! A spec made ready: everything that all replicates share and none changes.

use std::collections::BTreeMap;

use weir_core::SpecError;
use weir_core::network::Topology;
use weir_core::queue::Limit;
use weir_core::rng::{Seed, Stream};
use weir_core::routing::Router;
use weir_core::spec::{self, Destination, Discipline, Engine, Spec};
use weir_core::traffic::Emissions;
use weir_core::units::Span;

use crate::control::{self, plan::ControlPlan};
use crate::feed::{Feed, Source};

/// Behind the last port of a route.
pub(crate) const ARRIVED: u32 = u32::MAX;

/// Most ports of all routes together.
const MAX_LEGS: usize = 1 << 25;

/// A scenario, checked and with all its paths laid.
#[derive(Debug)]
pub struct Plan {
    pub(crate) spec: Spec,
    pub(crate) topology: Topology,
    /// What may wait at each port.
    pub(crate) limits: Vec<Limit>,
    pub(crate) flows: Vec<Flow>,
    /// The ports of all flows, one after the other, [`ARRIVED`] behind each.
    pub(crate) route: Vec<u32>,
    pub(crate) sources: Vec<PlannedSource>,
    /// What congestion management shares, if there is any.
    pub(crate) control: Option<ControlPlan>,
}

/// Frames of one source to one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) traffic: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Where its ports begin in [`Plan::route`].
    pub(crate) first_leg: u32,
}

#[derive(Debug)]
pub(crate) struct PlannedSource {
    /// Place in `traffic` and in its `sources`.
    place: (usize, usize),
    /// The flow to its first destination; those to the others follow.
    pub(crate) first_flow: u32,
    /// Name of its stream, if it is the run's.
    stream: String,
    /// The port that pulls its frames.
    pub(crate) pulled_by: Option<u32>,
}

impl PlannedSource {
    /// Its group of traffic.
    pub(crate) fn group(&self) -> u32 {
        self.place.0 as u32
    }
}

/// How frames come from a source to the port of its host. The counts do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feeding {
    /// The port pulls them where nothing else can touch it: no event, and no memory for what waits unlimited.
    Pulled,
    /// Each is an event of its source: for ports that agents send through or pause.
    Pushed,
}

impl Plan {
    /// Checks `spec` and lays all paths.
    ///
    /// # Errors
    /// The first fault of the spec, such as a destination that cannot be reached.
    pub fn new(spec: Spec) -> Result<Plan, SpecError> {
        Plan::with_feeding(spec, Feeding::Pulled)
    }

    /// As [`Plan::new`], with sources fed as said.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn with_feeding(spec: Spec, feeding: Feeding) -> Result<Plan, SpecError> {
        let topology = spec.check()?;
        let is_slotted = spec.run.engine != Engine::Event;
        if !is_slotted {
            refuse_unknown(&spec)?;
        }
        let mut limits = vec![Limit::UNLIMITED; topology.ports.len()];
        for rule in &spec.queues {
            let Discipline::DropTail { limit } = rule.discipline;
            for &port in &rule.ports {
                limits[port as usize] = limit.into();
            }
        }
        let (mut flows, mut sources) = list_flows(&spec, &topology);
        if spec.run.engine == (Engine::Slotted { flows: false }) {
            flows = Vec::new();
        }
        let control = ControlPlan::new(&spec, &topology);
        let mut plan = Plan { spec, topology, limits, flows, route: Vec::new(), sources: Vec::new(), control };
        if is_slotted {
            plan.sources = sources;
            return Ok(plan);
        }
        plan.lay_paths(&sources)?;
        plan.prepare_control();
        if feeding == Feeding::Pulled {
            plan.attach(&mut sources);
        }
        plan.sources = sources;
        Ok(plan)
    }

    /// The network in full.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The spec.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The group of traffic (its place) that each flow belongs to.
    pub fn flow_groups(&self) -> impl Iterator<Item = u32> + '_ {
        self.flows.iter().map(|flow| flow.traffic)
    }

    /// `TRAFFIC/FROM->TO`, with `#2` and so on where a group has several such flows.
    pub(crate) fn flow_names(&self) -> Vec<String> {
        let mut seen: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
        let name = |flow: &Flow| {
            let count = seen.entry((flow.traffic, flow.from, flow.to)).or_default();
            *count += 1;
            self.flow_name(flow) + &numbered(*count)
        };
        self.flows.iter().map(name).collect()
    }

    fn flow_name(&self, flow: &Flow) -> String {
        let node = |id: u32| &self.topology.nodes[id as usize].name;
        format!("{}/{}->{}", self.spec.traffic[flow.traffic as usize].name, node(flow.from), node(flow.to))
    }

    /// What the spec says of source `place`.
    pub(crate) fn source(&self, place: usize) -> &spec::Source {
        let (group, place) = self.sources[place].place;
        &self.spec.traffic[group].sources[place]
    }

    /// The frames that `source` generates in the run with `seed`.
    pub(crate) fn emissions(&self, source: &PlannedSource, seed: Seed) -> Emissions {
        let spec = &self.spec.traffic[source.place.0].sources[source.place.1];
        let stream = match spec.stream {
            spec::Stream::Named => seed.stream(&source.stream),
            spec::Stream::SplitMix64 { state } => Stream::split_mix_64(state),
        };
        Emissions::new(spec, stream)
    }

    /// The sources that each port pulls, merged; for the ports that are `wanted`.
    pub(crate) fn feeds(&self, seed: Seed, wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = (u32, Feed)> {
        let mut of_port: BTreeMap<u32, Vec<Source>> = BTreeMap::new();
        for source in &self.sources {
            if let Some(port) = source.pulled_by.filter(|&port| wanted(port)) {
                let pulled = Source::new(self.emissions(source, seed), source.first_flow);
                of_port.entry(port).or_default().push(pulled);
            }
        }
        of_port.into_iter().map(|(port, mut sources)| {
            let first = sources.remove(0);
            (port, Feed::new(first, sources))
        })
    }

    /// Whether `port` is a host's port with queues of its own for each flow.
    pub(crate) fn is_adapted(&self, port: u32) -> bool {
        self.control.as_ref().is_some_and(|control| control.adapted[port as usize])
    }

    fn prepare_control(&mut self) {
        let Some(mut control) = self.control.take() else { return };
        if let Some((ports, _)) = control::plan::points(&self.spec) {
            control.lay_ways_back(ports, &self.flows, &mut self.route);
        }
        if !self.spec.control.limited_hosts().is_empty() {
            control.names = self.flow_names();
        }
        self.control = Some(control);
    }

    /// Time from the end of a transmission of `port` until the frame may leave the next node.
    pub(crate) fn lag(&self, port: usize) -> Span {
        let port = &self.topology.ports[port];
        port.link.delay_ps + self.topology.nodes[port.to as usize].latency_ps
    }

    fn lay_paths(&mut self, sources: &[PlannedSource]) -> Result<(), SpecError> {
        let mut router = Router::new(&self.topology);
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        order.sort_by_key(|&flow| self.flows[flow].to);
        for flow in order {
            let Flow { from, to, .. } = self.flows[flow];
            let Some(path) = router.path(from, to) else {
                return Err(self.unreachable(flow, sources));
            };
            self.flows[flow].first_leg = self.route.len() as u32;
            self.route.extend(path);
            self.route.push(ARRIVED);
            if self.route.len() > MAX_LEGS {
                let message = format!("the paths of {} flows are too long to be kept", self.flows.len());
                return Err(SpecError::new("/traffic", message));
            }
        }
        Ok(())
    }

    fn unreachable(&self, flow: usize, sources: &[PlannedSource]) -> SpecError {
        let Flow { from, to, .. } = self.flows[flow];
        let source = &sources[sources.partition_point(|source| source.first_flow as usize <= flow) - 1];
        let (group, place) = source.place;
        let list = match &self.spec.traffic[group].sources[place].to {
            Destination::Node(_) => "node".to_string(),
            Destination::Uniform(_) => format!("uniform/{}", flow - source.first_flow as usize),
        };
        let name = |node: u32| &self.topology.nodes[node as usize].name;
        let message = format!("there is no way from '{}' to '{}'", name(from), name(to));
        SpecError::new(format!("/traffic/{group}/sources/{place}/to/{list}"), message)
    }

    /// Gives each source whose frames all leave through the same port to that port, if all that use it can be given.
    fn attach(&self, sources: &mut [PlannedSource]) {
        let ends = sources.iter().skip(1).map(|source| source.first_flow).chain([self.flows.len() as u32]);
        let first_port = |flow: u32| self.route[self.flows[flow as usize].first_leg as usize];
        let mut shared = vec![false; self.topology.ports.len()];
        let mut outlets = Vec::new();
        for (source, end) in sources.iter().zip(ends) {
            let port = first_port(source.first_flow);
            let alone = (source.first_flow..end).all(|flow| first_port(flow) == port);
            if !alone {
                (source.first_flow..end).for_each(|flow| shared[first_port(flow) as usize] = true);
            }
            outlets.push(alone.then_some(port));
        }
        for (source, outlet) in sources.iter_mut().zip(outlets) {
            source.pulled_by = outlet.filter(|&port| !shared[port as usize]);
        }
    }
}

/// Refuses what a spec can say and this simulator does not know.
fn refuse_unknown(spec: &Spec) -> Result<(), SpecError> {
    let control = &spec.control;
    let asked = [("/control/dcqcn", control.dcqcn.is_some(), "DCQCN")];
    match asked.into_iter().find(|asked| asked.1) {
        Some((pointer, _, what)) => Err(SpecError::new(pointer, format!("this simulator has no {what}"))),
        None => Ok(()),
    }
}

/// `#2`, `#3`, ... from the second on.
fn numbered(count: u32) -> String {
    if count > 1 { format!("#{count}") } else { String::new() }
}

fn list_flows(spec: &Spec, topology: &Topology) -> (Vec<Flow>, Vec<PlannedSource>) {
    let (mut flows, mut sources) = (Vec::new(), Vec::new());
    for (group, traffic) in spec.traffic.iter().enumerate() {
        let mut of_host: BTreeMap<u32, u32> = BTreeMap::new();
        for (place, source) in traffic.sources.iter().enumerate() {
            let count = of_host.entry(source.from).or_default();
            *count += 1;
            let host = &topology.nodes[source.from as usize].name;
            let stream = format!("traffic/{}/{host}{}", traffic.name, numbered(*count));
            let first_flow = flows.len() as u32;
            sources.push(PlannedSource { place: (group, place), first_flow, stream, pulled_by: None });
            let to = match &source.to {
                Destination::Node(node) => std::slice::from_ref(node),
                Destination::Uniform(list) => list,
            };
            flows.extend(to.iter().map(|&to| Flow { traffic: group as u32, from: source.from, to, first_leg: 0 }));
        }
    }
    (flows, sources)
}
