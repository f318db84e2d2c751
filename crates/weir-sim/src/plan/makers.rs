//! What a run makes of the parts of a spec: frames of sources, controllers of senders, and their chance.

use std::collections::BTreeMap;

use weir_core::cc::{Controller, Path, Setup};
use weir_core::rapid::LogWriter;
use weir_core::rng::{Seed, Stream};
use weir_core::spec::transport::Load;
use weir_core::spec::{self, Destination};
use weir_core::tcp;
use weir_core::traffic::Emissions;

use super::{Plan, PlannedConnection, PlannedSource};
use crate::feed::{Feed, Source};
use crate::route::ARRIVED;

impl Plan {
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
        let setup = Setup { connection: self.connection(connection).0, path: Path::PLAIN, chance, log };
        self.parts.controllers.make(setup).expect("it was made when the plan was")
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
        self.messages().any(|(_, _, messages)| messages.has_ends())
    }

    /// Whether senders choose ways by a value that nodes hash.
    pub(crate) fn has_entropy(&self) -> bool {
        self.messages().any(|(_, _, messages)| messages.rdma.as_ref().is_some_and(|config| config.paths.is_some()))
    }

    /// The ports on the way of `flow`.
    pub(crate) fn way(&self, flow: u32) -> &[u32] {
        let way = &self.route[self.first_leg(flow) as usize..];
        &way[..way.iter().position(|&port| port == ARRIVED).unwrap_or(way.len())]
    }

    /// The congestion control of a message on `path`.
    pub(crate) fn message_controller(&self, config: &tcp::Config, path: Path, chance: Stream) -> Controller {
        let setup = Setup { connection: config, path, chance, log: LogWriter::none() };
        self.parts.controllers.make(setup).expect("it was made when the plan was")
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
}

/// The stream of chance that `spec` asks for; `name` is the one among those of the run.
pub(super) fn stream(spec: spec::Stream, name: &str, seed: Seed) -> Stream {
    match spec {
        spec::Stream::Named => seed.stream(name),
        spec::Stream::SplitMix64 { state } => Stream::split_mix_64(state),
    }
}
