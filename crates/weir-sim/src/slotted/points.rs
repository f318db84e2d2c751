//! Congestion points, and the feedback that is on its way.

use weir_core::ethernet::bcn::{self, CongestionPoint, Fate, Tag};
use weir_core::ethernet::reaction::Feedback;
use weir_core::rng::{Seed, Stream};
use weir_core::spec::control::{BcnCongestionPoint, Counted, Sampling};
use weir_core::traffic::Geometric;
use weir_core::units::{Bytes, Span, Time};

use crate::noticed::ControlProbes;
use crate::slotted::lanes::{Lanes, NONE};
use crate::totals::ControlKind;

/// Feedback on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    pub(super) host: u32,
    pub(super) to: u16,
    /// The lane whose queue was sampled.
    pub(super) lane: u32,
    pub(super) feedback: Feedback,
}

/// When a congestion point looks at a cell.
#[derive(Debug)]
enum Pace {
    /// Each cell by itself with one probability: the number of those passed over is drawn.
    Skip { geometric: Geometric, stream: Stream },
    /// As the congestion point says.
    Asked,
}

/// What feedback says, in the order of [`Point::sent`].
const KINDS: [ControlKind; 4] =
    [ControlKind::BcnPositive, ControlKind::BcnNegative, ControlKind::BcnStop, ControlKind::BcnMax];

#[derive(Debug)]
struct Point {
    core: CongestionPoint,
    pace: Pace,
    /// Feedback sent: positive, negative, stop, greatest.
    sent: [u64; 4],
}

/// The congestion points of all queues.
#[derive(Debug)]
pub(super) struct Points {
    /// By lane; [`NONE`] without one.
    of_lane: Vec<u32>,
    ports: Vec<u32>,
    points: Vec<Point>,
    size: Bytes,
    pub(super) counts_drops: bool,
    notices: Vec<Notice>,
    free: Vec<u32>,
    delays: Delays,
    pub(super) probes: ControlProbes,
}

/// Time from a sample until its feedback takes effect.
#[derive(Debug)]
pub(super) struct Delays {
    /// Until the notification leaves.
    pub(super) first: Span,
    /// On each link, and in each switch between two.
    pub(super) link: Span,
    pub(super) switch: Span,
    /// Links between each switch and each host; empty where links and switches take no time.
    pub(super) links: Vec<u8>,
    pub(super) hosts: usize,
    /// Until a host obeys.
    pub(super) response: Vec<Span>,
}

impl Delays {
    /// Between a switch, counted among switches, and a host.
    fn between(&self, switch: u32, host: u32) -> Span {
        let links = self.links.get(switch as usize * self.hosts + host as usize).copied().map_or(0, u64::from);
        let between = self.link * links + self.switch * links.saturating_sub(1);
        self.first + between + self.response[host as usize]
    }
}

impl Points {
    pub(super) fn new(
        spec: &BcnCongestionPoint,
        lanes: Lanes,
        size: Bytes,
        seed: Seed,
        name: impl Fn(u32) -> String,
        delays: Delays,
        probes: ControlProbes,
    ) -> Points {
        let mut of_lane = vec![NONE; lanes.count];
        let point = |(place, &port): (u32, &u32)| {
            if let Some(of_lane) = of_lane.get_mut(lanes.link(port) as usize) {
                *of_lane = place;
            }
            let stream = seed.stream(&format!("congestion-point/{}", name(port)));
            let pace = match spec.sampling {
                Sampling::PerFrame => {
                    let probability = (size.count() as f64 / spec.sample_every_bytes.count() as f64).min(1.0);
                    Pace::Skip { geometric: Geometric::new(probability), stream: stream.clone() }
                }
                Sampling::Uniform { .. } | Sampling::Exponential => Pace::Asked,
            };
            Point { core: CongestionPoint::new(spec, stream), pace, sent: [0; 4] }
        };
        let points = (0..).zip(&spec.ports).map(point).collect();
        let counts_drops = spec.counted == Counted::Received;
        let (notices, free) = (Vec::new(), Vec::new());
        Points { of_lane, ports: spec.ports.clone(), points, size, counts_drops, notices, free, delays, probes }
    }

    /// How many cells that come to `lane` the congestion point passes over until it is asked again, if there is one.
    pub(super) fn skip(&mut self, lane: usize) -> Option<u64> {
        let point = self.points.get_mut(self.of_lane[lane] as usize)?;
        Some(match &mut point.pace {
            Pace::Skip { geometric, stream } => geometric.draw(stream),
            Pace::Asked => 0,
        })
    }

    /// Whether the cell that came to `lane`, behind those passed over, is sampled.
    pub(super) fn is_sampled(&mut self, lane: usize) -> bool {
        let point = &mut self.points[self.of_lane[lane] as usize];
        match point.pace {
            Pace::Skip { .. } => true,
            Pace::Asked => point.core.on_frame(self.size, Fate::Accepted),
        }
    }

    /// Samples a cell that came to `lane` of `switch`, from `host` to `to`, whose tag names a congestion point, or none.
    /// Returns after which time the feedback takes effect, and its place.
    pub(super) fn sample(
        &mut self,
        (lane, switch): (u32, u32),
        queue: Bytes,
        tag: Option<u32>,
        (host, to): (u32, u16),
        now: Time,
    ) -> Option<(Span, u32)> {
        let place = self.of_lane[lane as usize];
        let point = &mut self.points[place as usize];
        let tag = match tag {
            None => Tag::None,
            Some(cause) if cause == lane => Tag::Here,
            Some(_) => Tag::Elsewhere,
        };
        let feedback = point.core.sample(queue, tag)?;
        let kind = match feedback {
            bcn::Feedback::Change(fb) if fb > 0.0 => 0,
            bcn::Feedback::Change(_) => 1,
            bcn::Feedback::Stop => 2,
            bcn::Feedback::Max(_) => 3,
        };
        point.sent[kind] += 1;
        self.probes.note(self.ports[place as usize], KINDS[kind], now);
        let delay = self.delays.between(switch, host);
        let notice = Notice { host, to, lane, feedback: Feedback::Bcn(feedback) };
        let id = match self.free.pop() {
            Some(id) => {
                self.notices[id as usize] = notice;
                id
            }
            None => {
                self.notices.push(notice);
                (self.notices.len() - 1) as u32
            }
        };
        Some((delay, id))
    }

    /// Feedback takes effect.
    pub(super) fn take(&mut self, place: u32) -> Notice {
        self.free.push(place);
        self.notices[place as usize]
    }

    /// Feedback that was sent: port, kind, frames.
    pub(super) fn sent(&self) -> impl Iterator<Item = (u32, ControlKind, u64)> + '_ {
        self.ports.iter().zip(&self.points).flat_map(move |(&port, point)| {
            KINDS.into_iter().zip(point.sent).map(move |(kind, frames)| (port, kind, frames))
        })
    }
}
