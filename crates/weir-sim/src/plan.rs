//! A spec made ready: everything that all replicates share and none changes.

mod listed;
mod makers;
mod pairs;
mod paths;

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::SpecError;
use weir_core::cc::{Controllers, Setup};
use weir_core::network::Topology;
use weir_core::queue::{Limit, Managements};
use weir_core::rng::Seed;
use weir_core::spec::aqm::Aqm;
use weir_core::spec::control::NotificationLane;
use weir_core::spec::{Discipline, Engine, Spec};
use weir_core::units::Span;

use self::listed::{Listed, list_flows, numbered};
use self::pairs::Pairs;
use crate::control::plan::{self as control, ControlPlan};
use crate::open::OpenWays;
use crate::route::{ARRIVED, Flow};

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
    /// Where the frames of sources go, where flows are not counted; the slotted engine does not ask.
    pairs: Option<Pairs>,
    /// Whether what each source sends is reported as one flow, where flows are not counted.
    reports_sums: bool,
    /// What the program has besides the parts of the core.
    pub(crate) parts: Parts,
}

/// Parts that a program has besides those of the core: a spec asks for them by `kind: custom` and their name.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Congestion controls of senders.
    pub controllers: Controllers,
    /// Managements of queues.
    pub managements: Managements,
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

impl Parts {
    /// Makes each part of `spec` once.
    fn check(&self, spec: &Spec) -> Result<(), SpecError> {
        for (i, group) in spec.traffic.iter().enumerate() {
            if let Some(messages) = &group.messages {
                let at = format!("/traffic/{i}/messages/config/congestion_control");
                if let Some(config) = &messages.config {
                    self.controllers.make(Setup::plain(config)).map_err(|error| error.under(at))?;
                }
            }
            if let Some(tcp) = &group.tcp {
                let at = format!("/traffic/{i}/tcp/config/congestion_control");
                self.controllers.make(Setup::plain(&tcp.config)).map_err(|error| error.under(at))?;
            }
        }
        for (i, rule) in spec.queues.iter().enumerate() {
            let at = format!("/queues/{i}/discipline");
            self.check_discipline(&rule.discipline).map_err(|error| error.under(at))?;
        }
        Ok(())
    }

    fn check_discipline(&self, discipline: &Discipline) -> Result<(), SpecError> {
        match discipline {
            Discipline::Managed { aqm: Aqm::Custom(custom), .. } => {
                let made = self.managements.make(custom, Seed::new(0).stream("check"));
                made.map(drop).map_err(|error| error.under("/aqm"))
            }
            Discipline::Classes(classes) => classes.list.iter().enumerate().try_for_each(|(i, class)| {
                let at = format!("/list/{i}/discipline");
                self.check_discipline(&class.discipline).map_err(|error| error.under(at))
            }),
            _ => Ok(()),
        }
    }
}

impl Plan {
    /// Checks `spec` and lays all paths.
    ///
    /// # Errors
    /// The first fault of the spec, such as a destination that cannot be reached.
    pub fn new(spec: Spec) -> Result<Plan, SpecError> {
        Plan::with_parts(spec, Parts::default())
    }

    /// As [`Plan::new`], with parts that the program has besides those of the core.
    ///
    /// # Errors
    /// As [`Plan::new`]; a part that the program does not have, or that refuses its settings.
    pub fn with_parts(spec: Spec, parts: Parts) -> Result<Plan, SpecError> {
        Plan::lay(spec, Feeding::Pulled, parts, false)
    }

    /// As [`Plan::new`], for those who ask for no single flow: where the slotted engine runs a spec that records none, what a source
    /// sends is one flow, which goes to `*`. Nothing else is different.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn with_sums(spec: Spec) -> Result<Plan, SpecError> {
        Plan::lay(spec, Feeding::Pulled, Parts::default(), true)
    }

    /// As [`Plan::new`], with sources fed as said.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn with_feeding(spec: Spec, feeding: Feeding) -> Result<Plan, SpecError> {
        Plan::lay(spec, feeding, Parts::default(), false)
    }

    fn lay(spec: Spec, feeding: Feeding, parts: Parts, sums: bool) -> Result<Plan, SpecError> {
        let topology = spec.check()?;
        parts.check(&spec)?;
        let is_slotted = matches!(spec.run.engine, Engine::Slotted { .. });
        let mut limits = vec![Limit::UNLIMITED; topology.ports.len()];
        for rule in &spec.queues {
            for &port in &rule.ports {
                limits[port as usize] = rule.discipline.limit().into();
            }
        }
        let Listed { flows, mut sources, connections, probers, messages } = list_flows(&spec, &topology);
        let control = ControlPlan::new(&spec, &topology);
        let (route, none) = (Arc::default(), Vec::new());
        let is_switched = control::is_switched(&spec);
        let (sources_of, pairs, reports_sums) = (none, None, false);
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
            reports_sums,
            parts,
        };
        if is_slotted {
            plan.refuse_connections()?;
            plan.sources = sources;
            let records_flows = !plan.spec.record.flows.is_empty() || !plan.spec.record.limiters.is_empty();
            plan.reports_sums = sums && !records_flows && plan.spec.run.engine == (Engine::Slotted { flows: true });
            if plan.reports_sums || plan.spec.run.engine == (Engine::Slotted { flows: false }) {
                plan.sum_flows();
                plan.pairs = Some(Pairs { legs: Vec::new(), to: Vec::new() });
                (0..).zip(&mut plan.sources).for_each(|(place, source)| source.first_flow = place);
            }
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
        let (legs, to) = self.sum_flows().iter().map(|flow| (flow.first_leg, flow.to)).unzip();
        self.pairs = Some(Pairs { legs, to });
        Ok(())
    }

    /// Makes one flow of those of each source; returns what there was.
    fn sum_flows(&mut self) -> Vec<Flow> {
        let flow = |source: &PlannedSource| Flow {
            to: ARRIVED,
            first_leg: 0,
            ..self.flows[source.first_flow as usize].clone()
        };
        let of_sources = self.sources.iter().map(flow).collect();
        std::mem::replace(&mut self.flows, of_sources)
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

    /// The first flow that is reported from each host to each other.
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
