//! The receiving end of an estimator: asks for trains, notes when their packets arrive, and draws the conclusions.

use super::bulk::{MinimumDelaySum, bulk};
use super::log::{Ending, EstimateRow, Log, TrainRow};
use super::pathload::{Pathload, Shape, Verdict};
use super::{Ask, Config, Method, Packet};
use crate::rapid::Sample;
use crate::units::{PS_PER_S, Span, Time};

/// The machine of a receiver. Report packets and the time to it; it says what to ask the sender for.
#[derive(Clone, Debug)]
pub struct Estimation {
    config: Config,
    method: Machine,
    /// The train that is under way.
    open: Option<Train>,
    /// No train is asked for before.
    ready: Time,
    next_train: u32,
    /// Number of the present measurement, when it began, and the trains that it has taken.
    measurement: u32,
    started: Option<Time>,
    trains: u32,
    log: Log,
}

#[derive(Clone, Debug)]
enum Machine {
    Pathload(Pathload),
    PbProbe(PbProbe),
}

/// The steps of PBProbe: a bulk grows until it lasts long enough, then many of them are sent.
#[derive(Clone, Debug)]
struct PbProbe {
    /// Packets of a bulk beyond the first: k.
    length: u32,
    is_measuring: bool,
    bulks: MinimumDelaySum,
    /// Bulks that were sent in this step.
    sent: u32,
}

/// A train that is under way.
#[derive(Clone, Debug)]
struct Train {
    ask: Ask,
    asked: Time,
    samples: Vec<Sample>,
    /// Behind the place of the last packet that arrived.
    next_place: u32,
    /// When it is given up.
    deadline: Time,
}

impl Estimation {
    /// A receiver that begins when it is first asked what to do.
    pub fn new(config: &Config) -> Estimation {
        Estimation {
            config: config.clone(),
            method: Machine::new(config),
            open: None,
            ready: Time::ZERO,
            next_train: 0,
            measurement: 0,
            started: None,
            trains: 0,
            log: Log::default(),
        }
    }

    /// What the sender is to be asked for now.
    pub fn poll(&mut self, now: Time) -> Option<Ask> {
        if self.open.is_some() || now < self.ready || self.is_done() {
            return None;
        }
        self.started.get_or_insert(now);
        let Shape { packets, frame, gap } = self.method.shape(&self.config);
        let ask = Ask { train: self.next_train, packets, frame, gap };
        self.next_train += 1;
        self.open = Some(Train { ask, asked: now, samples: Vec::new(), next_place: 0, deadline: now + FIRST });
        Some(ask)
    }

    /// When something is to be done next.
    pub fn next_timeout(&self) -> Time {
        match &self.open {
            Some(train) => train.deadline,
            None if self.is_done() => Time::NEVER,
            None => self.ready,
        }
    }

    /// The time is `now`: a train that is overdue ends.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.open.as_ref().is_some_and(|train| train.deadline <= now) {
            self.close(now);
        }
    }

    /// A packet arrived at `received`. One that comes behind its successors counts as lost.
    pub fn on_packet(&mut self, received: Time, packet: Packet) {
        let framing = self.config.framing_bytes;
        let Some(train) = &mut self.open else { return };
        if packet.train != train.ask.train || !(train.next_place..train.ask.packets).contains(&packet.place) {
            return;
        }
        let wire = (train.ask.frame + framing) * u64::from(packet.place + 1 - train.next_place);
        train.samples.push(Sample { due: packet.due, sent: packet.sent, received, wire });
        train.next_place = packet.place + 1;
        let left = u64::from(train.ask.packets - train.next_place);
        let gap = train.ask.gap.max((train.ask.frame + framing) / self.config.link_bps);
        train.deadline = received + gap * left + NEXT;
        if left == 0 {
            self.close(received);
        }
    }

    /// What was written down since it was taken last.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Takes that.
    pub fn take_log(&mut self) -> Log {
        std::mem::take(&mut self.log)
    }

    fn is_done(&self) -> bool {
        self.config.measurements.is_some_and(|most| self.measurement >= most)
    }

    /// The train has ended, whether its packets have come or not.
    fn close(&mut self, now: Time) {
        let Some(Train { ask, asked, samples, .. }) = self.open.take() else { return };
        self.trains += 1;
        let received_bps = bulk(&samples).map(|bulk| bulk.rate());
        let rate = self.method.rate();
        let shape = Shape { packets: ask.packets, frame: ask.frame, gap: ask.gap };
        let reported = self.method.on_train(&self.config, shape, &samples, received_bps);
        self.log.trains.push(TrainRow {
            train: ask.train,
            measurement: self.measurement,
            asked,
            closed: now,
            rate,
            packets: ask.packets,
            received: samples.len() as u32,
            received_bps,
            pct: reported.trend.map(|trend| trend.pct),
            pdt: reported.trend.map(|trend| trend.pdt),
            trend: reported.trend.map(|trend| trend.verdict),
            fleet: reported.fleet,
        });
        self.ready = now.max(self.method.next(&self.config, asked, now, shape, &samples));
        if let Some((low_bps, high_bps, ending)) = reported.found {
            self.log.estimates.push(EstimateRow {
                started: self.started.unwrap_or(asked),
                ended: now,
                quantity: self.config.method.quantity(),
                low_bps,
                high_bps,
                ending,
                trains: self.trains,
            });
            self.measurement += 1;
            (self.started, self.trains) = (None, 0);
            self.method = Machine::new(&self.config);
        }
    }
}

impl Machine {
    fn new(config: &Config) -> Machine {
        match config.method {
            Method::Pathload { .. } => Machine::Pathload(Pathload::default()),
            Method::PbProbe { .. } => {
                Machine::PbProbe(PbProbe { length: 1, is_measuring: false, bulks: MinimumDelaySum::default(), sent: 0 })
            }
        }
    }

    fn shape(&self, config: &Config) -> Shape {
        match self {
            Machine::Pathload(pathload) => pathload.shape(config),
            Machine::PbProbe(probe) => Shape { packets: probe.length + 1, frame: config.frame_bytes, gap: Span::ZERO },
        }
    }

    fn rate(&self) -> Option<crate::units::Rate> {
        match self {
            Machine::Pathload(pathload) => pathload.rate(),
            Machine::PbProbe(_) => None,
        }
    }

    fn on_train(&mut self, config: &Config, shape: Shape, samples: &[Sample], received: Option<f64>) -> Verdict {
        match self {
            Machine::Pathload(pathload) => pathload.on_train(config, shape, samples, received),
            Machine::PbProbe(probe) => {
                Verdict { trend: None, fleet: None, found: probe.on_bulk(config, shape, samples) }
            }
        }
    }

    /// When the next train may be asked for, one of this shape having ended now.
    fn next(&self, config: &Config, asked: Time, now: Time, shape: Shape, samples: &[Sample]) -> Time {
        match (self, &config.method) {
            // Streams fill a share of the time.
            (Machine::Pathload(_), Method::Pathload { share, .. }) => {
                let span = samples.first().zip(samples.last()).map(|(first, last)| last.received - first.received);
                let length = (shape.gap * u64::from(shape.packets)).max(span.unwrap_or(Span::ZERO));
                now + times(length, 1.0 / share - 1.0)
            }
            // The time of a bulk is that of its packets on their way to the narrow link and behind it.
            //
            // Source: PBProbe 3.0, G = 2 D / U
            (Machine::PbProbe(probe), Method::PbProbe { share, .. }) => match probe.bulks.best() {
                Some(best) => asked + Span::from_ps((2.0 * best.dispersion / share * PS_PER_S as f64) as u64),
                None => asked + IDLE,
            },
            _ => unreachable!("a machine is made from its method"),
        }
    }
}

impl PbProbe {
    /// The capacity, if this bulk was the last one that it takes.
    fn on_bulk(&mut self, config: &Config, shape: Shape, samples: &[Sample]) -> Option<(f64, f64, Ending)> {
        let Method::PbProbe { bulks: most, stable, dispersion_ps, .. } = config.method else {
            unreachable!("PBProbe's method")
        };
        self.sent += 1;
        // A bulk that has lost a packet does not count.
        if samples.len() == shape.packets as usize
            && let Some(bulk) = bulk(samples)
        {
            self.bulks.add(bulk);
        }
        if !self.is_measuring {
            if self.bulks.bulks() >= TUNING || self.sent >= TUNING * PATIENCE {
                let is_long = self.bulks.mean_dispersion() >= dispersion_ps.as_secs_f64();
                if is_long || self.length * LONGER > LONGEST || self.bulks.bulks() == 0 {
                    self.is_measuring = true;
                } else {
                    self.length *= LONGER;
                }
                (self.bulks, self.sent) = (MinimumDelaySum::default(), 0);
            }
            return None;
        }
        let ending = if self.bulks.is_stable(stable) {
            Ending::Stable
        } else if self.bulks.bulks() >= most {
            Ending::AllBulks
        } else if self.sent >= most * PATIENCE {
            Ending::Unusable
        } else {
            return None;
        };
        let rate = self.bulks.best().map_or(0.0, super::bulk::Bulk::rate);
        Some((rate, rate, ending))
    }
}

fn times(span: Span, factor: f64) -> Span {
    Span::from_ps((span.ps() as f64 * factor) as u64)
}

/// How long the first packet of a train is waited for, and each later one beyond its time.
const FIRST: Span = Span::from_ms(1000);
const NEXT: Span = Span::from_ms(100);
/// Between bulks of which none has arrived.
///
/// Source: PBProbe 3.0
const IDLE: Span = Span::from_ms(500);
/// Bulks of each length that is tried, and by how much the next is longer.
///
/// Source: PBProbe 3.0
const TUNING: u32 = 5;
const LONGER: u32 = 10;
const LONGEST: u32 = 9_999;
/// So many bulks are sent for one that has to arrive whole.
const PATIENCE: u32 = 4;
