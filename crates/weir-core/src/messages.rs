//! When which messages come: events of a source, drawn one by one.
//!
//! Draws of a source come from one stream in this order: the gap before the first event; then for each event its receivers, for each
//! of them its senders, for each of these the size; then the next gap. None of them depends on what the network does, so that variants of a
//! scenario with the same seed are offered the same messages.

use crate::rng::Stream;
use crate::spec::messages::{Gaps, MessageSizes, MessageSource};
use crate::units::{Bytes, Time};

/// A message that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The host that sends it.
    pub from: u32,
    /// The host that receives it.
    pub to: u32,
    /// Its length.
    pub bytes: Bytes,
}

/// The events of one source, in order.
#[derive(Clone, Debug)]
pub struct Events {
    next: Time,
    stop: Time,
    chance: Stream,
    /// Between the two normal numbers of a pair: the second.
    spare: Option<f64>,
    count: u64,
}

impl Events {
    /// The events of `source`, with chance from `chance`.
    pub fn new(source: &MessageSource, chance: Stream) -> Events {
        let mut events = Events { next: source.start_ps, stop: source.stop_ps, chance, spare: None, count: 0 };
        if !matches!(source.gaps, Gaps::Constant { .. }) {
            events.advance(source);
        }
        events.clip();
        events
    }

    /// When the next event comes; [`Time::NEVER`] if none does.
    pub fn peek(&self) -> Time {
        self.next
    }

    /// The messages of the next event are reported to `report`; `hosts` are the lists that `source` names.
    pub fn draw(
        &mut self,
        source: &MessageSource,
        hosts: &[Vec<u32>],
        sizes: &MessageSizes,
        mut report: impl FnMut(Message),
    ) {
        let from = &hosts[source.from as usize];
        let alone = (from.len() == 1).then(|| from[0]);
        let total: f64 = source.to.iter().map(|list| list.0).sum();
        let (mut receivers, mut senders) = (Vec::new(), Vec::new());
        let only = (source.to.len() == 1).then(|| &hosts[source.to[0].1 as usize]);
        if let Some(all) = only.filter(|all| source.receivers as usize + 1 >= all.len() && source.receivers > 1) {
            receivers.extend(all.iter().copied().filter(|&host| Some(host) != alone));
        }
        while receivers.len() < source.receivers as usize {
            let to = self.receiver(source, hosts, total);
            if Some(to) != alone && !receivers.contains(&to) {
                receivers.push(to);
            }
        }
        for &to in receivers.iter().take(source.receivers as usize) {
            senders.clear();
            if source.senders as usize + 1 >= from.len() {
                senders.extend(from.iter().copied().filter(|&host| host != to));
            }
            while senders.len() < source.senders as usize {
                let host = from[self.chance.below(from.len() as u64) as usize];
                if host != to && !senders.contains(&host) {
                    senders.push(host);
                }
            }
            for &from in senders.iter().take(source.senders as usize) {
                let bytes = draw_size(sizes, &mut self.chance);
                report(Message { from, to, bytes });
            }
        }
        self.advance(source);
        self.clip();
    }

    fn receiver(&mut self, source: &MessageSource, hosts: &[Vec<u32>], total: f64) -> u32 {
        let mut list = source.to[0].1;
        if source.to.len() > 1 {
            let mut rest = self.chance.open_unit() * total;
            for &(weight, place) in &source.to {
                list = place;
                rest -= weight;
                if rest < 0.0 {
                    break;
                }
            }
        }
        let list = &hosts[list as usize];
        if list.len() == 1 { list[0] } else { list[self.chance.below(list.len() as u64) as usize] }
    }

    fn advance(&mut self, source: &MessageSource) {
        let chance = &mut self.chance;
        self.count += 1;
        let gap = match source.gaps {
            Gaps::Constant { mean_gap_ps } => {
                let since = self.count as f64 * mean_gap_ps;
                self.next = later(source.start_ps, since);
                return;
            }
            Gaps::Poisson { mean_gap_ps } => mean_gap_ps * chance.exponential(),
            Gaps::Lognormal { mean_gap_ps, sigma } => {
                let normal = self.spare.take().unwrap_or_else(|| {
                    let (one, other) = normals(chance);
                    self.spare = Some(other);
                    one
                });
                mean_gap_ps * libm::exp(sigma * normal - sigma * sigma / 2.0)
            }
            Gaps::Hyperexponential { mean_gap_ps, variation } => {
                let share = 0.5 * (1.0 + ((variation - 1.0) / (variation + 1.0)).sqrt());
                let share = if chance.open_unit() < share { share } else { 1.0 - share };
                mean_gap_ps / (2.0 * share) * chance.exponential()
            }
        };
        self.next = later(self.next, gap);
    }

    fn clip(&mut self) {
        if self.next >= self.stop {
            self.next = Time::NEVER;
        }
    }
}

fn later(time: Time, by_ps: f64) -> Time {
    Time::from_ps(time.ps().saturating_add(by_ps as u64))
}

/// Two independent normal numbers with mean 0 and variance 1.
///
/// Source: Marsaglia & Bray 1964, the polar method.
fn normals(chance: &mut Stream) -> (f64, f64) {
    loop {
        let (x, y) = (2.0 * chance.open_unit() - 1.0, 2.0 * chance.open_unit() - 1.0);
        let square = x * x + y * y;
        if square < 1.0 {
            let factor = (-2.0 * libm::log(square) / square).sqrt();
            return (x * factor, y * factor);
        }
    }
}

fn draw_size(sizes: &MessageSizes, chance: &mut Stream) -> Bytes {
    let points = match sizes {
        MessageSizes::Fixed(bytes) => return *bytes,
        MessageSizes::Table(points) => points,
    };
    let share = chance.open_unit();
    let behind = points.partition_point(|point| point.1 < share).min(points.len() - 1);
    let (bytes, upper) = points[behind];
    let drawn = match behind.checked_sub(1).map(|before| points[before]) {
        Some((least, lower)) if upper > lower => least + (bytes - least) * (share - lower) / (upper - lower),
        _ => bytes,
    };
    Bytes::new((drawn as u64).max(1))
}

impl MessageSizes {
    /// The mean size in bytes, of sizes that are not rounded down to whole bytes.
    pub fn mean(&self) -> f64 {
        match self {
            MessageSizes::Fixed(bytes) => bytes.count() as f64,
            MessageSizes::Table(points) => {
                let atom = points.first().map_or(0.0, |point| point.0 * point.1);
                let between = points.windows(2).map(|ends| (ends[0].0 + ends[1].0) / 2.0 * (ends[1].1 - ends[0].1));
                atom + between.sum::<f64>()
            }
        }
    }
}
