//! The ends of connections, as a plan has them.

use weir_core::cc::CongestionControl;
use weir_core::rapid::{Log, LogWriter};
use weir_core::rng::Seed;
use weir_core::spec::StreamProbe;
use weir_core::spec::transport::Load;
use weir_core::tcp::{Receiver, Sender, Timers};
use weir_core::units::Time;

use super::{Application, Gathered, Series, TcpReceiver, TcpSender, Written};
use crate::boundaries::Boundaries;
use crate::plan::{Plan, PlannedConnection};

impl Plan {
    /// The two agents of every connection, in the run with `seed`.
    pub(crate) fn ends(&self, seed: Seed) -> Vec<(TcpSender, TcpReceiver)> {
        let ends = |(place, connection): (u32, &PlannedConnection)| {
            let (config, spec) = self.connection(connection);
            let load = match (&spec.load, self.writes(connection, seed)) {
                (Load::Transfer { bytes }, _) => Application::Transfer(*bytes),
                (_, Some(writes)) => Application::Writes(Box::new(writes)),
                _ => Application::Endless,
            };
            let hosts = self.hosts(connection);
            let (writer, log) = match self.stream_probe(connection.place.0) {
                Some(probe) => {
                    let (writer, reader) = LogWriter::new(probe.packets);
                    (writer, Some(Box::new(Written { reader, log: Log::default(), connection: place })))
                }
                None => (LogWriter::none(), None),
            };
            let control = self.controller(connection, seed, writer);
            let series = self.series_of(place, connection.place.0);
            let is_timed = control.needs().departures;
            let mut machine = Sender::new(config, control);
            if let Some(timing) = &hosts.timers {
                machine.set_timers(Timers::new(timing, self.timer_chance(connection, seed)));
            }
            let sender = TcpSender {
                machine,
                is_timed,
                adapter: hosts.adapter_frames.map_or(usize::MAX, |frames| frames as usize),
                flow: connection.flow,
                start: spec.start_ps,
                stop: spec.stop_ps,
                stopped: false,
                load,
                sent: 0,
                series,
                log,
            };
            let gather = |time| Box::new(Gathered { time, segments: vec![], interrupt: Time::NEVER });
            let gathered = hosts.coalescing_ps.map(gather);
            let receiver = TcpReceiver { machine: Receiver::new(config), flow: connection.flow, sent: 0, gathered };
            (sender, receiver)
        };
        (0..).zip(&self.connections).map(ends).collect()
    }

    fn stream_probe(&self, group: usize) -> Option<&StreamProbe> {
        self.spec.record.probe_streams.iter().find(|probe| probe.traffic as usize == group)
    }

    fn series_of(&self, connection: u32, group: usize) -> Option<Box<Series>> {
        let probe = self.spec.record.connections.iter().find(|probe| probe.traffic as usize == group)?;
        let boundaries = Boundaries::new(probe.every_ps, Time::ZERO + self.spec.run.duration_ps);
        Some(Box::new(Series { boundaries, number: 1, due: boundaries.at(1), rows: Vec::new(), connection }))
    }
}
