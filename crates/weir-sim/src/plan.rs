//! A spec made ready: everything that all replicates share and none changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::SpecError;
use weir_core::cc::{Controller, Controllers, Setup};
use weir_core::network::Topology;
use weir_core::queue::Limit;
use weir_core::rapid::LogWriter;
use weir_core::rng::{Seed, Stream};
use weir_core::routing::Router;
use weir_core::spec::control::NotificationLane;
use weir_core::spec::transport::Load;
use weir_core::spec::{self, Destination, Engine, Routing, Spec};
use weir_core::tcp;
use weir_core::traffic::Emissions;
use weir_core::units::Span;

use crate::control::plan::{self as control, ControlPlan, Law};
use crate::feed::{Feed, Source};
use crate::open::OpenWays;
use crate::route::{ARRIVED, Flow};

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
    pub(crate) route: Arc<Vec<u32>>,
    pub(crate) sources: Vec<PlannedSource>,
    pub(crate) connections: Vec<PlannedConnection>,
    pub(crate) probers: Vec<PlannedConnection>,
    /// The groups of traffic that have messages, with the flows of their data; that of what comes back follows.
    messages: Vec<(u32, u32)>,
    /// Where places of open flows stand.
    pub(crate) open: OpenWays,
    /// What congestion management shares, if there is any.
    pub(crate) control: Option<ControlPlan>,
    is_switched: bool,
    /// Where the frames of sources go, where flows are not counted.
    pairs: Option<Pairs>,
    /// What makes the controllers of senders.
    controllers: Controllers,
}

/// Where the frames of each source go to each of its destinations.
#[derive(Debug)]
struct Pairs {
    /// Where the way begins in [`Plan::route`].
    legs: Vec<u32>,
    /// The destination.
    to: Vec<u32>,
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

/// A connection between two agents: of TCP, or an estimator.
#[derive(Debug)]
pub(crate) struct PlannedConnection {
    /// Place in `traffic` and in the list of its connections or estimators.
    pub(crate) place: (usize, usize),
    /// The flow of its data; that of what comes back follows.
    pub(crate) flow: u32,
    /// Name of the stream of its application.
    stream: String,
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
        Plan::with_controllers(spec, Controllers::new())
    }

    /// As [`Plan::new`], with congestion controls that the program has beside those of the core.
    ///
    /// # Errors
    /// As [`Plan::new`]; a controller that the program does not have, or that refuses its settings.
    pub fn with_controllers(spec: Spec, controllers: Controllers) -> Result<Plan, SpecError> {
        Plan::lay(spec, Feeding::Pulled, controllers)
    }

    /// As [`Plan::new`], with sources fed as said.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn with_feeding(spec: Spec, feeding: Feeding) -> Result<Plan, SpecError> {
        Plan::lay(spec, feeding, Controllers::new())
    }

    fn lay(spec: Spec, feeding: Feeding, controllers: Controllers) -> Result<Plan, SpecError> {
        let topology = spec.check()?;
        for (i, group) in spec.traffic.iter().enumerate() {
            if let Some(messages) = &group.messages {
                let at = format!("/traffic/{i}/messages/config/congestion_control");
                if let Some(config) = &messages.config {
                    controllers.make(Setup::plain(config)).map_err(|error| error.under(at))?;
                }
            }
            if let Some(tcp) = &group.tcp {
                let at = format!("/traffic/{i}/tcp/config/congestion_control");
                controllers.make(Setup::plain(&tcp.config)).map_err(|error| error.under(at))?;
            }
        }
        let is_slotted = matches!(spec.run.engine, Engine::Slotted { .. });
        let mut limits = vec![Limit::UNLIMITED; topology.ports.len()];
        for rule in &spec.queues {
            for &port in &rule.ports {
                limits[port as usize] = rule.discipline.limit().into();
            }
        }
        let Listed { mut flows, mut sources, connections, probers, messages } = list_flows(&spec, &topology);
        if spec.run.engine == (Engine::Slotted { flows: false }) {
            flows = Vec::new();
        }
        let control = ControlPlan::new(&spec, &topology);
        let (route, none) = (Arc::default(), Vec::new());
        let is_switched = control::is_switched(&spec);
        let (sources_of, pairs) = (none, None);
        let mut plan = Plan {
            spec,
            topology,
            limits,
            flows,
            route,
            sources: sources_of,
            connections,
            probers,
            open: OpenWays::default(),
            messages,
            control,
            is_switched,
            pairs,
            controllers,
        };
        if is_slotted {
            plan.refuse_connections()?;
            plan.sources = sources;
            return Ok(plan);
        }
        plan.lay_paths(&sources)?;
        plan.prepare_control();
        if feeding == Feeding::Pulled {
            plan.attach(&mut sources);
        }
        plan.sources = sources;
        if plan.spec.run.engine == Engine::EventTotals {
            plan.forget_flows()?;
        }
        Ok(plan)
    }

    /// From now on the frames of a source count together; only where they go is known of each pair.
    fn forget_flows(&mut self) -> Result<(), SpecError> {
        if let Some(source) = self.sources.iter().find(|source| source.pulled_by.is_none()) {
            let (group, place) = source.place;
            let message = "without flows that are counted a host has one link";
            return Err(SpecError::new(format!("/traffic/{group}/sources/{place}/from"), message));
        }
        let flow = |source: &PlannedSource| Flow {
            to: ARRIVED,
            first_leg: 0,
            ..self.flows[source.first_flow as usize].clone()
        };
        let of_sources = self.sources.iter().map(flow).collect();
        let flows = std::mem::replace(&mut self.flows, of_sources);
        let (legs, to) = flows.iter().map(|flow| (flow.first_leg, flow.to)).unzip();
        self.pairs = Some(Pairs { legs, to });
        Ok(())
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
        // Without counted flows, one stands for all that a host sends; of messages, one for all that come.
        let node = |id: u32| self.topology.nodes.get(id as usize).map_or("*", |node| node.name.as_str());
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
        Emissions::new(spec, stream(spec.stream, &source.stream, seed))
    }

    /// What the application of `connection` writes now and then in the run with `seed`, if it does.
    pub(crate) fn writes(&self, connection: &PlannedConnection, seed: Seed) -> Option<Emissions> {
        let spec::transport::Connection { from, to, start_ps, stop_ps, ref load } = *self.connection(connection).1;
        let Load::Writes { departures, write_size, stream: chance } = load else { return None };
        let source = spec::Source {
            from,
            to: Destination::Node(to),
            start_ps,
            stop_ps,
            departures: departures.clone(),
            frame_size: write_size.clone(),
            stream: *chance,
        };
        Some(Emissions::new(&source, stream(*chance, &connection.stream, seed)))
    }

    /// What its hosts do to `connection`.
    pub(crate) fn hosts(&self, connection: &PlannedConnection) -> &spec::transport::Hosts {
        let tcp = self.spec.traffic[connection.place.0].tcp.as_ref();
        &tcp.expect("a connection stands in a list of connections").hosts
    }

    /// What the spec says of the estimator `planned`.
    pub(crate) fn prober(&self, planned: &PlannedConnection) -> (&spec::transport::Probers, &spec::transport::Prober) {
        let (group, place) = planned.place;
        let probers = self.spec.traffic[group].probers.as_ref().expect("an estimator stands in a list of them");
        (probers, &probers.list[place])
    }

    /// The chance of the timers of the sender of `connection` in the run with `seed`.
    pub(crate) fn timer_chance(&self, connection: &PlannedConnection, seed: Seed) -> Stream {
        seed.stream(&format!("timers/{}", connection.stream))
    }

    /// The congestion control of `connection` in the run with `seed`, which writes to `log`.
    pub(crate) fn controller(&self, connection: &PlannedConnection, seed: Seed, log: LogWriter) -> Controller {
        let chance = seed.stream(&format!("probes/{}", connection.stream));
        let setup = Setup { connection: self.connection(connection).0, chance, log };
        self.controllers.make(setup).expect("it was made when the plan was")
    }

    /// Groups of messages: their places in `traffic`, the flows of their data, and what the spec says.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u32, u32, &spec::messages::Messages)> {
        let of_group =
            |&(group, flow): &(u32, u32)| Some((group, flow, self.spec.traffic[group as usize].messages.as_ref()?));
        self.messages.iter().filter_map(of_group)
    }

    /// Whether there are any.
    pub(crate) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Whether some of them have connections.
    pub(crate) fn has_open_flows(&self) -> bool {
        self.messages().any(|(_, _, messages)| messages.config.is_some())
    }

    /// The ports on the way of `flow`.
    pub(crate) fn way(&self, flow: u32) -> &[u32] {
        let way = &self.route[self.first_leg(flow) as usize..];
        &way[..way.iter().position(|&port| port == ARRIVED).unwrap_or(way.len())]
    }

    /// The congestion control of a message, with chance from the stream called `name`.
    pub(crate) fn message_controller(&self, config: &tcp::Config, seed: Seed, name: impl Fn() -> String) -> Controller {
        let chance = seed.stream(&name());
        let setup = Setup { connection: config, chance, log: LogWriter::none() };
        self.controllers.make(setup).expect("it was made when the plan was")
    }

    /// Ports of hosts whose senders ask how many frames wait there.
    pub(crate) fn bounded_adapters(&self) -> impl Iterator<Item = u32> {
        let bounded = self.connections.iter().filter(|connection| self.hosts(connection).adapter_frames.is_some());
        let probers = self.probers.iter().filter(|prober| self.prober(prober).0.hosts.adapter_frames.is_some());
        bounded.chain(probers).map(|connection| self.route[self.flows[connection.flow as usize].first_leg as usize])
    }

    /// What the spec says of `connection`.
    pub(crate) fn connection(&self, connection: &PlannedConnection) -> (&tcp::Config, &spec::transport::Connection) {
        let (group, place) = connection.place;
        let tcp = self.spec.traffic[group].tcp.as_ref().expect("a connection stands in a list of connections");
        (&tcp.config, &tcp.list[place])
    }

    /// The sources that each port pulls, merged; for the ports that are `wanted`.
    pub(crate) fn feeds(&self, seed: Seed, wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = (u32, Feed)> {
        let mut of_port: BTreeMap<u32, Vec<Source>> = BTreeMap::new();
        for (place, source) in (0..).zip(&self.sources) {
            if let Some(port) = source.pulled_by.filter(|&port| wanted(port)) {
                let pulled = Source::new(self.emissions(source, seed), source.first_flow, place);
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
        self.is_switched() && !self.is_stored(port)
            || self.control.as_ref().is_some_and(|control| control.adapted[port as usize])
    }

    /// Whether the network has shared memories, adapters or slow outputs.
    #[inline]
    pub(crate) fn is_switched(&self) -> bool {
        self.is_switched
    }

    /// Whether `port` is that of a switch in such a network.
    pub(crate) fn is_stored(&self, port: u32) -> bool {
        self.is_switched && !self.topology.is_host(self.topology.ports[port as usize].from)
    }

    /// How many pairs of a source and a destination there are, and connections: flows.
    pub(crate) fn pairs(&self) -> u32 {
        self.pairs.as_ref().map_or(self.flows.len(), |pairs| pairs.legs.len()) as u32
    }

    /// The pairs that count as `flow`.
    pub(crate) fn pairs_of(&self, flow: u32) -> std::ops::Range<u32> {
        if self.pairs.is_none() {
            return flow..flow + 1;
        }
        let first = |place: usize| self.sources.get(place).map_or(self.pairs(), |source| source.first_flow);
        first(flow as usize)..first(flow as usize + 1)
    }

    /// The flow as which a frame of a pair counts that the source with this place generated.
    pub(crate) fn counted_as(&self, pair: u32, source: u32) -> u32 {
        if self.pairs.is_none() { pair } else { source }
    }

    /// Where the way of a pair begins in `route`.
    pub(crate) fn first_leg(&self, pair: u32) -> u32 {
        self.pairs.as_ref().map_or_else(|| self.flows[pair as usize].first_leg, |pairs| pairs.legs[pair as usize])
    }

    /// The first port on the way of a pair.
    pub(crate) fn first_port(&self, pair: u32) -> u32 {
        self.route[self.first_leg(pair) as usize]
    }

    /// The destination of a pair.
    pub(crate) fn target(&self, pair: u32) -> u32 {
        self.pairs.as_ref().map_or_else(|| self.flows[pair as usize].to, |pairs| pairs.to[pair as usize])
    }

    /// The law of hosts with queues of their own.
    #[inline]
    pub(crate) fn law(&self) -> Law {
        if self.is_switched { Law::Destinations } else { Law::Flows }
    }

    /// What names the queue of a pair at its host.
    #[inline]
    pub(crate) fn key(&self, pair: u32) -> u32 {
        if self.is_switched { self.target(pair) } else { pair }
    }

    /// The flows that are told of.
    pub(crate) fn counted_flows(&self) -> &[Flow] {
        if self.pairs.is_none() { &self.flows } else { &[] }
    }

    /// Whether a pair is the flow of messages, which leave any host.
    pub(crate) fn is_open(&self, pair: u32) -> bool {
        self.pairs.is_none() && self.flows.get(pair as usize).is_some_and(|flow| flow.is_open)
    }

    /// The places of the plan at which frames of a pair are counted, each with its port.
    pub(crate) fn legs_of(&self, pair: u32) -> impl Iterator<Item = (u32, usize)> + '_ {
        let first = self.first_leg(pair) as usize;
        let open = self.is_open(pair);
        let (step, from, words) = if open { (3, first + 1, self.open.words as usize) } else { (1, first, usize::MAX) };
        let legs = (from..first.saturating_add(words)).step_by(step).map(|leg| (self.route[leg], leg));
        legs.take_while(|row| row.0 != ARRIVED)
    }

    /// The first flow that is told of from each host to each other.
    pub(crate) fn first_flows(&self) -> BTreeMap<(u32, u32), u32> {
        let mut first = BTreeMap::new();
        for (id, flow) in (0..).zip(self.counted_flows()) {
            first.entry((flow.from, flow.to)).or_insert(id);
        }
        first
    }

    /// Where the way begins that `leg` is part of.
    pub(crate) fn start_of_route(&self, leg: u32) -> u32 {
        let before = &self.route[..leg as usize];
        before.iter().rposition(|&port| port == ARRIVED).map_or(0, |end| end as u32 + 1)
    }

    /// The host where the way ends that `leg` is part of.
    pub(crate) fn end_of_route(&self, leg: u32) -> u32 {
        let behind = &self.route[leg as usize..];
        let ports = behind.iter().position(|&port| port == ARRIVED).unwrap_or(behind.len());
        let last = &self.topology.ports[behind[ports - 1] as usize];
        // The buffer of a host stands at its own port.
        if ports > 1 && self.topology.is_host(last.from) { last.from } else { last.to }
    }

    /// Whether the data of `flow` is ECN-capable and answered by DCQCN.
    pub(crate) fn is_capable(&self, flow: u32) -> bool {
        self.control.as_ref().and_then(|control| control.capable.get(flow as usize)).is_some_and(|&capable| capable)
    }

    /// What the connection of `flow` announces as its largest segment, which includes time stamps.
    ///
    /// Source: RFC 9293, 3.7.1.
    pub(crate) fn largest_segment(&self, flow: u32, stamped: bool) -> Option<u16> {
        let place = self.connections.partition_point(|connection| connection.flow <= flow).checked_sub(1)?;
        let (config, _) = self.connection(&self.connections[place]);
        u16::try_from(config.segment_bytes.count() + if stamped { 12 } else { 0 }).ok()
    }

    fn prepare_control(&mut self) {
        let Some(mut control) = self.control.take() else { return };
        if self.spec.control.dcqcn.is_some() {
            control.capable = self.flows.iter().map(|flow| control.limited[flow.from as usize]).collect();
            for connection in self.connections.iter().chain(&self.probers) {
                (connection.flow..connection.flow + 2).for_each(|flow| control.capable[flow as usize] = false);
            }
            let capable = control.capable.clone();
            control.lay_ways_back(&self.flows, Arc::make_mut(&mut self.route), |flow, _| capable[flow]);
        } else if control::notification(&self.spec).is_some_and(|how| how.lane != NotificationLane::Beside) {
            let mut measured = vec![false; self.topology.ports.len()];
            control::points(&self.spec).iter().for_each(|&port| measured[port as usize] = true);
            let passes = |_: usize, route: &[u32]| route.iter().any(|&port| measured[port as usize]);
            control.lay_ways_back(&self.flows, Arc::make_mut(&mut self.route), passes);
        }
        if !self.spec.control.limited_hosts().is_empty() && !self.is_switched {
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
        let mut order: Vec<usize> = (0..self.flows.len()).filter(|&flow| !self.flows[flow].is_open).collect();
        order.sort_by_key(|&flow| self.flows[flow].to);
        // Frames to a host with a buffer end at its own port, where the buffer stands.
        let mut buffered = vec![false; self.topology.nodes.len()];
        let egress = self.spec.switching.egress.iter();
        egress.flat_map(|egress| &egress.hosts).for_each(|&host| buffered[host as usize] = true);
        let mut known = KnownWays::new(&self.topology);
        let mut route = Vec::new();
        for flow in order {
            let Flow { from, to, .. } = self.flows[flow];
            let first_leg = route.len();
            self.flows[flow].first_leg = first_leg as u32;
            if let Some((port, leg)) = known.way(from, to) {
                let way = &route[leg as usize..];
                let ports = way.iter().position(|&port| port == ARRIVED).unwrap_or(way.len());
                route.extend_from_within(leg as usize..leg as usize + ports + 1);
                route[first_leg] = port;
                continue;
            }
            let Some(path) = router.path(from, to) else {
                return Err(self.unreachable(flow, sources));
            };
            known.keep(from, to, first_leg as u32);
            route.extend(path);
            if buffered[to as usize]
                && let Some(&last) = route.last()
            {
                route.push(last ^ 1);
            }
            route.push(ARRIVED);
            if route.len() > MAX_LEGS {
                let message = format!("the paths of {} flows are too long to be kept", self.flows.len());
                return Err(SpecError::new("/traffic", message));
            }
        }
        if self.has_open_flows() {
            self.open = OpenWays::new(&self.topology);
            let words = self.open.lay(&self.topology);
            for flow in self.flows.iter_mut().filter(|flow| flow.is_open) {
                flow.first_leg = route.len() as u32;
                route.extend(&words);
            }
            if route.len() > MAX_LEGS {
                return Err(SpecError::new(
                    "/network",
                    "nodes have too many ports for the ways of messages to be kept",
                ));
            }
        }
        self.route = Arc::new(route);
        Ok(())
    }

    fn unreachable(&self, flow: usize, sources: &[PlannedSource]) -> SpecError {
        let Flow { from, to, .. } = self.flows[flow];
        let name = |node: u32| &self.topology.nodes[node as usize].name;
        let message = format!("there is no way from '{}' to '{}'", name(from), name(to));
        let is_its = |connection: &&PlannedConnection| (0..2).contains(&(flow as i64 - i64::from(connection.flow)));
        if let Some(connection) = self.connections.iter().find(is_its) {
            let (group, place) = connection.place;
            return SpecError::new(format!("/traffic/{group}/tcp/list/{place}/to"), message);
        }
        if let Some(prober) = self.probers.iter().find(is_its) {
            let (group, place) = prober.place;
            return SpecError::new(format!("/traffic/{group}/probers/list/{place}/to"), message);
        }
        let source = &sources[sources.partition_point(|source| source.first_flow as usize <= flow) - 1];
        let (group, place) = source.place;
        let list = match &self.spec.traffic[group].sources[place].to {
            Destination::Node(_) => "node".to_string(),
            Destination::Uniform(_) => format!("uniform/{}", flow - source.first_flow as usize),
        };
        SpecError::new(format!("/traffic/{group}/sources/{place}/to/{list}"), message)
    }

    /// The slotted engine has cells and no connections.
    fn refuse_connections(&self) -> Result<(), SpecError> {
        let refused = |ends: &PlannedConnection, part: &str, what: &str| {
            let message = format!("the slotted engine has no {what}");
            Err(SpecError::new(format!("/traffic/{}/{part}", ends.place.0), message))
        };
        match (self.connections.first(), self.probers.first()) {
            (Some(connection), _) => refused(connection, "tcp", "TCP"),
            (None, Some(prober)) => refused(prober, "probers", "estimators"),
            (None, None) => Ok(()),
        }
    }

    /// Gives each source whose frames all leave through the same port to that port, if all that use it can be given.
    /// A port that an agent sends through is not given any, nor is one that notifications set out from, unless it is
    /// adapted.
    fn attach(&self, sources: &mut [PlannedSource]) {
        if self.has_messages() {
            return;
        }
        let first_port = |flow: u32| self.route[self.flows[flow as usize].first_leg as usize];
        let mut shared = vec![false; self.topology.ports.len()];
        for connection in self.connections.iter().chain(&self.probers) {
            (connection.flow..connection.flow + 2).for_each(|flow| shared[first_port(flow) as usize] = true);
        }
        for port in self.control.iter().flat_map(|control| control.managed.keys()) {
            shared[*port as usize] = true;
        }
        for port in self.spec.events.iter().flat_map(|event| event.change.ports()) {
            shared[*port as usize] = true;
        }
        for port in self.control.iter().flat_map(|control| control.notifiers(&self.route)) {
            shared[port as usize] |= !self.is_adapted(port);
        }
        let mut outlets = Vec::new();
        for source in sources.iter() {
            let flows = self.spec.traffic[source.place.0].sources[source.place.1].flows() as u32;
            let flows = source.first_flow..source.first_flow + flows;
            let port = first_port(source.first_flow);
            let alone = flows.clone().all(|flow| first_port(flow) == port);
            if !alone {
                flows.for_each(|flow| shared[first_port(flow) as usize] = true);
            }
            outlets.push(alone.then_some(port));
        }
        for (source, outlet) in sources.iter_mut().zip(outlets) {
            source.pulled_by = outlet.filter(|&port| !shared[port as usize]);
        }
    }
}

/// The ways that were laid to one destination: hosts with one link to the same switch share theirs from there on, unless
/// the sender matters.
struct KnownWays {
    /// By node: its port if it is a host that has but one, and the node behind it.
    outlets: Vec<Option<(u32, u32)>>,
    /// By the first switch: the destination, and where a way to it begins in [`Plan::route`].
    ways: Vec<(u32, u32)>,
}

impl KnownWays {
    fn new(topology: &Topology) -> KnownWays {
        let nodes = topology.nodes.len();
        let (mut outlets, mut links) = (vec![None; nodes], vec![0_u32; nodes]);
        for (id, port) in (0..).zip(&topology.ports) {
            links[port.from as usize] += 1;
            let is_alone = topology.is_host(port.from) && !topology.is_host(port.to) && links[port.from as usize] == 1;
            outlets[port.from as usize] = is_alone.then_some((id, port.to));
        }
        if topology.routing == Routing::FlowHash {
            outlets.fill(None);
        }
        KnownWays { outlets, ways: vec![(ARRIVED, 0); nodes] }
    }

    /// The port of `from` and a way that is right from there on.
    fn way(&self, from: u32, to: u32) -> Option<(u32, u32)> {
        let (port, switch) = self.outlets[from as usize]?;
        let (destination, leg) = self.ways[switch as usize];
        (destination == to).then_some((port, leg))
    }

    fn keep(&mut self, from: u32, to: u32, leg: u32) {
        if let Some((_, switch)) = self.outlets[from as usize] {
            self.ways[switch as usize] = (to, leg);
        }
    }
}

/// The stream of chance that `spec` asks for; `name` is the one among those of the run.
fn stream(spec: spec::Stream, name: &str, seed: Seed) -> Stream {
    match spec {
        spec::Stream::Named => seed.stream(name),
        spec::Stream::SplitMix64 { state } => Stream::split_mix_64(state),
    }
}

/// `#2`, `#3`, ... from the second on.
fn numbered(count: u32) -> String {
    if count > 1 { format!("#{count}") } else { String::new() }
}

/// All flows, and who makes them, in the order of the spec: in each group first the sources, then the connections,
/// then the estimators.
#[derive(Default)]
struct Listed {
    flows: Vec<Flow>,
    sources: Vec<PlannedSource>,
    connections: Vec<PlannedConnection>,
    probers: Vec<PlannedConnection>,
    messages: Vec<(u32, u32)>,
}

fn list_flows(spec: &Spec, topology: &Topology) -> Listed {
    let mut listed = Listed::default();
    for (group, traffic) in spec.traffic.iter().enumerate() {
        let mut of_host: BTreeMap<u32, u32> = BTreeMap::new();
        let mut stream = |host: u32| {
            let count = of_host.entry(host).or_default();
            *count += 1;
            format!("traffic/{}/{}{}", traffic.name, topology.nodes[host as usize].name, numbered(*count))
        };
        let class = traffic.class;
        let flow =
            |from, to, returns| Flow { traffic: group as u32, from, to, class, first_leg: 0, returns, is_open: false };
        for (place, source) in traffic.sources.iter().enumerate() {
            let (first_flow, stream) = (listed.flows.len() as u32, stream(source.from));
            listed.sources.push(PlannedSource { place: (group, place), first_flow, stream, pulled_by: None });
            let to = match &source.to {
                Destination::Node(node) => std::slice::from_ref(node),
                Destination::Uniform(list) => list,
            };
            listed.flows.extend(to.iter().map(|&to| flow(source.from, to, false)));
        }
        for (place, connection) in traffic.tcp.iter().flat_map(|tcp| &tcp.list).enumerate() {
            let (first, stream) = (listed.flows.len() as u32, stream(connection.from));
            listed.connections.push(PlannedConnection { place: (group, place), flow: first, stream });
            let (from, to) = (connection.from, connection.to);
            listed.flows.extend([flow(from, to, false), flow(to, from, true)]);
        }
        for (place, prober) in traffic.probers.iter().flat_map(|probers| &probers.list).enumerate() {
            let (first, stream) = (listed.flows.len() as u32, stream(prober.from));
            listed.probers.push(PlannedConnection { place: (group, place), flow: first, stream });
            listed.flows.extend([flow(prober.from, prober.to, false), flow(prober.to, prober.from, true)]);
        }
        if let Some(messages) = &traffic.messages {
            listed.messages.push((group as u32, listed.flows.len() as u32));
            if messages.config.is_none() {
                listed.flows.extend(messages.pairs().into_iter().map(|(from, to)| flow(from, to, false)));
                continue;
            }
            let of_all = |returns| Flow { is_open: true, ..flow(ARRIVED, ARRIVED, returns) };
            listed.flows.extend([of_all(false), of_all(true)]);
        }
    }
    listed
}
