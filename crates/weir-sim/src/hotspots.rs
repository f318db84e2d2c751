//! Specs of the congestion benchmark of ZRL: one switch or a fat tree of them, uniform background, one hotspot.
//!
//! Source: ZRL benchmark, traffic scenarios, switch, adapter, initial parameter settings.

use weir_core::network::Topology;
use weir_core::path::LossModel;
use weir_core::spec::control::{
    BackOff, Bcn, BcnCongestionPoint, BcnReactionPoint, Control, Counted, Counting, Limiter, Meanwhile, Negative,
    Notification, NotificationLane, Positive, Restart, Sampling, Saturation, Stop, StopReset,
};
use weir_core::spec::switching::{Adapter, AdapterKind, Memory, MemoryPause, PauseScope, Service, Switching};
use weir_core::spec::{
    Departures, Destination, Engine, FrameSize, LinkSpec, Network, PortProbe, Record, Routing, Run, Source, Spec,
    Stream, SwitchSpec, Traffic,
};
use weir_core::units::{Bytes, Rate, Span, Time};

/// Frames of 64 B at 10 Gbit/s take 51.2 ns.
pub const SLOT: Span = Span::from_ps(51_200);
const LINE: Rate = Rate::from_gbit_per_s(10);

/// A run of the benchmark.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// The network: see [`Network::Xgft`].
    pub children: Vec<u32>,
    /// See `children`.
    pub parents: Vec<u32>,
    /// Background load of each host, to the others.
    pub load: f64,
    /// Mean length of a burst, frames.
    pub burst: f64,
    /// Memory of a switch for each of its ports, frames.
    pub memory: u64,
    /// Who makes the hotspot at host 0.
    pub hotspot: Hotspot,
    /// Slots before the hotspot.
    pub warm_up: u64,
    /// Slots of the hotspot, up to the end.
    pub slots: u64,
    /// Delay of PAUSE and of notifications, slots.
    pub round_trip: u64,
    /// Congestion management.
    pub control: Option<Gains>,
    /// Whether flows are counted.
    pub flows: bool,
    /// Size of a frame; slots are as long as it takes.
    pub frame_bytes: u64,
    /// Whether the event engine computes it.
    pub is_event: bool,
}

/// Who makes a hotspot.
#[derive(Clone, Copy, Debug)]
pub enum Hotspot {
    /// None.
    None,
    /// The output, served at this share of the line rate.
    Output(f64),
    /// The first hosts, so many, which send nothing but hot frames at the line rate.
    Inputs(u32),
}

/// Parameters of BCN, in frames.
#[derive(Clone, Copy, Debug)]
pub struct Gains {
    /// Set point as a divisor of the memory: `M / (divisor N)`, 1 or 2.
    pub q_eq_divisor: u64,
    /// Sampling probability.
    pub ps: f64,
    /// Weight.
    pub w: f64,
    /// Gain of an increase.
    pub gi: f64,
    /// Gain of a decrease.
    pub gd: f64,
}

impl Benchmark {
    /// One switch with `hosts` hosts as in the text: load 85 %, no bursts, 256 frames of memory for each port, output 0 at
    /// 20 %, 4000 slots of warm-up and 60 000 of hotspot, no congestion management.
    pub fn single_stage(hosts: u32) -> Benchmark {
        Benchmark {
            children: vec![hosts],
            parents: vec![1],
            load: 0.85,
            burst: 1.0,
            memory: 256,
            hotspot: Hotspot::Output(0.2),
            warm_up: 4000,
            slots: 60_000,
            round_trip: 0,
            control: None,
            flows: true,
            frame_bytes: 64,
            is_event: false,
        }
    }

    /// With BCN of this sampling probability and decrease gain, and the set point `M / N`.
    #[must_use]
    pub fn with_bcn(self, ps: f64, gd: f64) -> Benchmark {
        Benchmark { control: Some(Gains { q_eq_divisor: 1, ps, w: 1.0, gi: 1.0, gd }), ..self }
    }

    /// The time that a frame takes.
    pub fn slot(&self) -> Span {
        self.frame() / LINE
    }

    fn frame(&self) -> Bytes {
        Bytes::new(self.frame_bytes)
    }

    fn engine(&self) -> Engine {
        match (self.is_event, self.flows) {
            (false, flows) => Engine::Slotted { flows },
            (true, true) => Engine::Event,
            (true, false) => Engine::EventTotals,
        }
    }

    /// Hosts.
    pub fn hosts(&self) -> u32 {
        self.children.iter().product()
    }

    /// The spec. Ports of hosts and of the switches towards them are recorded nowhere but at host 0, every 1000 slots.
    pub fn spec(&self) -> Spec {
        let hosts = self.hosts();
        let link = LinkSpec { rate_bps: LINE, delay_ps: Span::ZERO, framing_bytes: Bytes::ZERO, loss: LossModel::None };
        let network = Network::Xgft {
            children: self.children.clone(),
            parents: self.parents.clone(),
            routing: Routing::DModK,
            link,
            switch: SwitchSpec { latency_ps: Span::ZERO },
        };
        let topology = Topology::expand(&network).expect("a legal tree");
        let start = Time::ZERO + self.slot() * self.warm_up;
        let duration_ps = self.slot() * (self.warm_up + self.slots);
        let services = match self.hotspot {
            Hotspot::Output(share) => {
                let rate_bps = Rate::from_bps((LINE.bps() as f64 * share) as u64);
                vec![Service { port: 1, rate_bps, from_ps: start, to_ps: Time::ZERO + duration_ps }]
            }
            Hotspot::Inputs(_) | Hotspot::None => Vec::new(),
        };
        Spec {
            traffic: self.traffic(start),
            control: self.control(&topology),
            switching: Switching {
                memories: self.memories(&topology),
                adapters: vec![Adapter { hosts: (0..hosts).collect(), kind: AdapterKind::VoqRoundRobin }],
                services,
                egress: Vec::new(),
            },
            run: Run { duration_ps, engine: self.engine() },
            record: Record { ports: vec![PortProbe { port: 1, every_ps: self.slot() * 1000 }], ..Record::default() },
            ..Spec::of_network(network, duration_ps)
        }
    }

    /// Background, and hot frames from `start` on.
    fn traffic(&self, start: Time) -> Vec<Traffic> {
        let hosts = self.hosts();
        let hot = match self.hotspot {
            Hotspot::Inputs(count) => count,
            Hotspot::Output(_) | Hotspot::None => 0,
        };
        let source = |from, to, load, start_ps, stop_ps| Source {
            from,
            to,
            start_ps,
            stop_ps,
            departures: Departures::Bursts {
                slot_ps: self.slot(),
                load,
                mean_frames: self.burst,
                starts_by_chance: false,
            },
            frame_size: FrameSize::Fixed(self.frame()),
            stream: Stream::Named,
        };
        let background = |from| {
            let others = (0..hosts).filter(|&to| to != from).collect();
            let stop = if from < hot { start } else { Time::NEVER };
            source(from, Destination::Uniform(others), self.load, Time::ZERO, stop)
        };
        let hotspot = |from| source(from, Destination::Node(0), 1.0, start, Time::NEVER);
        vec![
            Traffic::of_sources("background", (0..hosts).map(background).collect()),
            Traffic::of_sources("hot", (0..hot).map(hotspot).collect()),
        ]
    }

    /// Watermarks of each switch: of the whole memory where there is one switch, of each input's share between stages.
    ///
    /// Source: ZRL benchmark, switch: `Th = M - N (RTT B + Lmax)`, `Tl = Th / 2`, with the line rate `B` of one
    /// frame per slot and `Lmax` one frame.
    fn memories(&self, topology: &Topology) -> Vec<Memory> {
        let hosts = self.hosts() as usize;
        let mut ports = vec![0_u64; topology.nodes.len()];
        topology.ports.iter().for_each(|port| ports[port.from as usize] += 1);
        let memory = |node: usize| {
            let cells = self.memory * ports[node];
            let (scope, share) = match self.children.len() {
                1 => (PauseScope::Switch, cells - ports[node] * (self.round_trip + 1)),
                _ => (PauseScope::Input, self.memory - self.round_trip - 2),
            };
            let pause = MemoryPause {
                scope,
                xoff_bytes: self.frame() * share,
                xon_bytes: self.frame() * (share / 2),
                delay_ps: self.slot() * self.round_trip,
                quanta: None,
                refresh_ps: None,
            };
            Memory { nodes: vec![node as u32], bytes: self.frame() * cells, alpha: None, pause: Some(pause) }
        };
        (hosts..topology.nodes.len()).map(memory).collect()
    }

    fn control(&self, topology: &Topology) -> Control {
        let Some(gains) = self.control else { return Control::default() };
        let of_switch = |port: &u32| !topology.is_host(topology.ports[*port as usize].from);
        let ru_bps = Rate::from_bps(LINE.bps() / 1000);
        let congestion_point = BcnCongestionPoint {
            ports: (0..topology.ports.len() as u32).filter(of_switch).collect(),
            q_eq_bytes: self.frame() * (self.memory / gains.q_eq_divisor),
            unit_bytes: self.frame(),
            counting: Counting::Exact,
            saturation: Saturation::SetPoint,
            w: gains.w,
            sample_every_bytes: Bytes::new((self.frame().count() as f64 / gains.ps) as u64),
            sampling: Sampling::PerFrame,
            counted: Counted::Received,
            positive: Positive::Tagged,
            negative: Negative::Always,
            severe: None,
            notification: Notification {
                frame_bytes: self.frame(),
                delay_ps: self.slot() * self.round_trip,
                lane: if self.is_event { NotificationLane::Beside } else { NotificationLane::Control },
            },
        };
        let stop = Stop {
            t_max_ps: Span::ZERO,
            r_min_bps: ru_bps,
            t_max_factor: 1.0,
            r_min_factor: 1.0,
            back_off: BackOff::After,
            restart: Restart::RMin,
            reset: StopReset::Never,
            meanwhile: Meanwhile::Ignore,
        };
        let reaction_point = BcnReactionPoint {
            hosts: (0..self.hosts()).collect(),
            gi: gains.gi,
            gd: gains.gd,
            ru_bps,
            min_rate_bps: ru_bps,
            initial_rate_bps: None,
            removal_rate_bps: None,
            drift: None,
            stop,
            limiter: Limiter::default(),
        };
        Control { bcn: Some(Bcn { congestion_point, reaction_point }), ..Control::default() }
    }
}
