//! One direction of a path, fed with arrivals in virtual or real time and asked what leaves when.
//!
//! Contract: times given to [`Line::arrive`] never go back, and neither do those of [`Line::leave`]; the caller owes a
//! [`Line::leave`] at [`Line::due`], and gets one frame after the other until none is due. What happens depends on the
//! arrivals alone, not on how late it is asked for: two callers that report the same arrivals get the same
//! departures.
//!
//! Where a queue is managed, frames that were kept may be dropped later: the caller asks for them with
//! [`Line::take_dropped`] after each call.
//!
//! When things coincide, transmissions end first, then rates and delays change, then frames of others arrive, then one's own.

mod parts;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use self::parts::{Chance, Cross, Item, Jitter, Leaving, Schedule, delays, positive, rates};
use super::loss::Loss;
use super::spec::LineSpec;
use crate::queue::{Counters, Label, Labeled, Lane as PortLane, Limit, Managements, Offer, Port};
use crate::rng::Seed;
use crate::units::{Bytes, Rate, Span, Time};

/// What became of an arriving frame, in numbers of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Copies on their way: [`Line::leave`] or [`Line::take_dropped`] will give each of them.
    pub kept: u32,
    /// Lost at random.
    pub lost: u32,
    /// Found the queue full.
    pub dropped: u32,
}

/// A frame that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<H> {
    /// The frame.
    pub handle: H,
    /// When it leaves.
    pub at: Time,
    /// Whether a queue marked it.
    pub marked: bool,
}

/// A frame that was kept when it came, and that a queue has dropped since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<H> {
    /// The frame.
    pub handle: H,
    /// When it was dropped.
    pub at: Time,
}

/// What a line counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineCounters {
    /// Frames that arrived.
    pub arrived: u64,
    /// Their sizes.
    pub arrived_bytes: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames, copies included, that found a queue full.
    pub dropped: u64,
    /// Frames that the management of a queue dropped before it was full.
    pub dropped_early: u64,
    /// Frames that it marked.
    pub marked: u64,
    /// Frames that came later than their turn.
    pub reordered: u64,
    /// Frames that left.
    pub left: u64,
    /// Frames of others that a queue dropped.
    pub cross_dropped: u64,
}

/// One direction of a path. `H` names a frame of the caller's.
#[derive(Debug)]
pub struct Line<H> {
    loss: Loss,
    duplicate: Chance,
    lanes: Vec<Lane<H>>,
    rates: Schedule<Rate>,
    cross: Vec<Cross>,
    /// Of what leaves a transmitter now.
    delay: Span,
    delays: Schedule<Span>,
    jitter: Jitter,
    reorder: Chance,
    /// By how much a reordered frame is late.
    late: Span,
    leaving: BinaryHeap<Reverse<Leaving<H>>>,
    /// When the last frame leaves that keeps its order.
    latest: Time,
    /// Own frames that wait or are in transmission.
    inside: u64,
    offered: u64,
    /// Kept, and dropped since.
    dropped: VecDeque<Dropped<H>>,
    counters: LineCounters,
    now: Time,
}

impl<H: Copy> Line<H> {
    /// An idle line, with chance from the streams `path/NAME/...` of `seed`. The spec has passed its check.
    pub fn new(spec: &LineSpec, seed: Seed, name: &str) -> Line<H> {
        let stream = |what: &str| seed.stream(&format!("path/{name}/{what}"));
        let (rates, delays) = (rates(&spec.rate), delays(spec));
        let lane = |(rate, number)| {
            let port = Port::new(rate, spec.framing_bytes, Limit::from(spec.limit));
            let port = match &spec.aqm {
                Some(aqm) => port.managed(aqm, stream(&format!("queue-{number}")), &Managements::new()),
                None => port,
            };
            Lane { port, in_service: None }
        };
        Line {
            loss: Loss::new(spec.loss, stream("loss")),
            duplicate: Chance { probability: spec.duplicate, stream: stream("duplicate") },
            lanes: rates
                .first()
                .into_iter()
                .flat_map(|rate| (0..spec.lanes).map(move |number| (positive(rate), number)))
                .map(lane)
                .collect(),
            rates,
            cross: (0..).zip(&spec.cross).map(|(i, cross)| Cross::new(cross, stream(&format!("cross-{i}")))).collect(),
            delay: spec.delay_ps,
            delays,
            jitter: Jitter { spec: spec.jitter, stream: stream("jitter") },
            reorder: Chance {
                probability: spec.reorder.map_or(0.0, |reorder| reorder.probability),
                stream: stream("reorder"),
            },
            late: spec.reorder.map_or(Span::ZERO, |reorder| reorder.later_ps),
            leaving: BinaryHeap::new(),
            latest: Time::ZERO,
            inside: 0,
            offered: 0,
            dropped: VecDeque::new(),
            counters: LineCounters::default(),
            now: Time::ZERO,
        }
    }

    /// A frame arrives at `now`; its flow chooses among several transmitters. Frames are at most 65 535 bytes long.
    pub fn arrive(&mut self, now: Time, handle: H, size: Bytes, label: Label) -> Arrival {
        self.advance(now);
        self.counters.arrived += 1;
        self.counters.arrived_bytes += size.count();
        let mut arrival = Arrival::default();
        if self.loss.lose() {
            self.counters.lost += 1;
            arrival.lost = 1;
            return arrival;
        }
        let copies: u64 = if self.duplicate.strikes() { 2 } else { 1 };
        self.counters.duplicated += copies - 1;
        for _ in 0..copies {
            if self.offer(now, Item::Own(handle), size, label) {
                arrival.kept += 1;
            } else {
                arrival.dropped += 1;
            }
        }
        self.counters.dropped += u64::from(arrival.dropped);
        arrival
    }

    /// When the caller owes the next [`Line::leave`]: not later than a frame leaves; [`Time::NEVER`] while none is
    /// inside.
    pub fn due(&self) -> Time {
        let leaving = self.leaving.peek().map_or(Time::NEVER, |Reverse(leaving)| leaving.at);
        if self.inside == 0 {
            return leaving;
        }
        let served = self.lanes.iter().map(Lane::due).min().unwrap_or(Time::NEVER).min(self.rates.next);
        leaving.min(if served == Time::NEVER { served } else { served + self.delay }).min(self.delays.next)
    }

    /// The next frame that leaves up to `now`.
    pub fn leave(&mut self, now: Time) -> Option<Departure<H>> {
        self.advance(now);
        if self.leaving.peek()?.0.at > now {
            return None;
        }
        let Reverse(Leaving { handle, at, marked, .. }) = self.leaving.pop()?;
        self.counters.left += 1;
        Some(Departure { handle, at, marked })
    }

    /// A frame that was kept when it came, and that a queue has dropped since; oldest first.
    pub fn take_dropped(&mut self) -> Option<Dropped<H>> {
        self.dropped.pop_front()
    }

    /// What was counted so far.
    pub fn counters(&self) -> LineCounters {
        self.counters
    }

    /// What the transmitters counted, one by one, frames of others included; none where there is no rate.
    pub fn transmitters(&mut self) -> Vec<Counters> {
        let now = self.now;
        self.lanes.iter_mut().map(|lane| lane.port.counters_at(now)).collect()
    }

    /// Frames inside: waiting, in transmission or under way.
    pub fn inside(&self) -> u64 {
        self.inside + self.leaving.len() as u64
    }

    /// Bytes that wait before the transmitters, frames of others included.
    pub fn waiting_bytes(&self) -> Bytes {
        self.lanes.iter().fold(Bytes::ZERO, |sum, lane| sum + lane.port.waiting_bytes())
    }

    /// Everything that happens up to `now` without a frame of one's own.
    fn advance(&mut self, now: Time) {
        debug_assert!(now >= self.now, "time goes on");
        loop {
            let lanes = self.lanes.iter().map(Lane::due);
            let (served, lane) = lanes.zip(0..).min().unwrap_or((Time::NEVER, 0));
            let (generated, cross) =
                self.cross.iter().map(|cross| cross.emissions.peek()).zip(0..).min().unwrap_or((Time::NEVER, 0));
            let (changed, delayed) = (self.rates.next, self.delays.next);
            let next = served.min(changed).min(delayed).min(generated);
            if next > now || next == Time::NEVER {
                break;
            }
            if served == next {
                self.complete(next, lane);
            } else if changed == next {
                let rate = positive(self.rates.advance());
                self.lanes.iter_mut().for_each(|lane| lane.port.change_rate(next, rate));
            } else if delayed == next {
                self.delay = self.delays.advance();
            } else {
                let label = Label { flow: self.cross[cross].lane, ..Label::default() };
                let (_, size) = self.cross[cross].emissions.draw();
                if !self.offer(next, Item::Others, size, label) {
                    self.counters.cross_dropped += 1;
                }
            }
        }
        self.now = now;
    }

    /// Whether a frame found a place.
    fn offer(&mut self, now: Time, item: Item<H>, size: Bytes, label: Label) -> bool {
        let count = self.lanes.len() as u64;
        if count == 0 {
            if let Item::Own(handle) = item {
                self.send_off(now, handle, false);
            }
            return true;
        }
        let place = (label.flow % count) as usize;
        let lane = &mut self.lanes[place];
        let Labeled { became, marked } = lane.port.offer_labeled(now, item, size, PortLane::Data, label);
        match became {
            Offer::Sent { .. } => lane.in_service = Some((item, marked)),
            Offer::Waits => {}
            Offer::Dropped => return false,
        }
        self.inside += u64::from(matches!(item, Item::Own(_)));
        self.settle_dropped(now, place);
        true
    }

    /// Takes over what the management of a queue has dropped.
    fn settle_dropped(&mut self, now: Time, lane: usize) {
        while let Some(discarded) = self.lanes[lane].port.take_discarded() {
            match discarded.handle {
                Item::Own(handle) => {
                    self.inside -= 1;
                    let count =
                        if discarded.early { &mut self.counters.dropped_early } else { &mut self.counters.dropped };
                    *count += 1;
                    self.dropped.push_back(Dropped { handle, at: now });
                }
                Item::Others => self.counters.cross_dropped += 1,
            }
        }
    }

    /// A transmission ends, and perhaps another begins.
    fn complete(&mut self, now: Time, place: usize) {
        let lane = &mut self.lanes[place];
        let done = lane.in_service.take();
        lane.in_service = lane.port.wake(now).map(|sent| (sent.handle, sent.marked));
        self.settle_dropped(now, place);
        if let Some((Item::Own(handle), marked)) = done {
            self.inside -= 1;
            self.send_off(now, handle, marked);
        }
    }

    /// A frame has been transmitted and is under way.
    fn send_off(&mut self, now: Time, handle: H, marked: bool) {
        self.counters.marked += u64::from(marked);
        let (jitter, keeps_order) = self.jitter.draw();
        let mut at = now + self.delay + jitter;
        if self.reorder.strikes() {
            self.counters.reordered += 1;
            at += self.late;
        } else if keeps_order {
            at = at.max(self.latest);
            self.latest = at;
        }
        self.offered += 1;
        self.leaving.push(Reverse(Leaving { at, sequence: self.offered, handle, marked }));
    }
}

/// A transmitter with its queue.
#[derive(Debug)]
struct Lane<H> {
    port: Port<Item<H>>,
    /// What is in transmission, and whether it was marked.
    in_service: Option<(Item<H>, bool)>,
}

impl<H: Copy> Lane<H> {
    /// When the transmission under way ends.
    fn due(&self) -> Time {
        if self.in_service.is_some() { self.port.free_at() } else { Time::NEVER }
    }
}
