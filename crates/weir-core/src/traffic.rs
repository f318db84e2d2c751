//! Departure schedules: when a source generates frames, for whom and how long, pulled one by one.
//!
//! Draws of a source come from one stream in this order: the gap before the first frame; then, for each frame, its
//! destination (where there is a choice), its size (where there is a choice) and the gap after it. Of bursts only the
//! first frame has a destination to draw, and the gap after the last is followed by the length of the next burst.

mod geometric;
mod stretch;

pub use self::geometric::Geometric;
use self::stretch::{Below, Stretch};
use crate::rng::Stream;
use crate::spec::{Departures, Destination, FrameSize, Source};
use crate::units::{Bytes, Span, Time};

/// One frame that a source generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// When.
    pub at: Time,
    /// For whom: a place in the source's list of destinations; 0 for a single destination.
    pub destination: u32,
    /// Frame size.
    pub size: Bytes,
}

/// The frames of one source, in order. An iterator that can be looked into with [`Emissions::peek`].
#[derive(Clone, Debug)]
pub struct Emissions {
    /// When the next frame is generated; [`Time::NEVER`] at the end.
    next: Time,
    stop: Time,
    clock: Clock,
    destinations: u32,
    /// The size of all frames, up to 65 535; 0 if they differ.
    size: u32,
    mix: Option<Box<Mix>>,
    stream: Stream,
}

impl Emissions {
    /// The frames of `source`, with chance from `stream`.
    pub fn new(source: &Source, stream: Stream) -> Emissions {
        let destinations = match &source.to {
            Destination::Node(_) => 1,
            Destination::Uniform(list) => u32::try_from(list.len()).expect("a list of nodes"),
        };
        let clock = Clock::new(&source.departures, source.start_ps);
        let (size, mix) = match &source.frame_size {
            FrameSize::Fixed(size) => (size.count() as u32, None),
            FrameSize::Mix(parts) => (0, Some(Box::new(Mix::new(parts)))),
        };
        let mut emissions =
            Emissions { next: source.start_ps, stop: source.stop_ps, clock, destinations, size, mix, stream };
        emissions.next = emissions.clock.first(source.start_ps, &mut emissions.stream);
        emissions.clip();
        emissions
    }

    /// When the next frame is generated; [`Time::NEVER`] when there is none.
    #[inline]
    pub fn peek(&self) -> Time {
        self.next
    }

    /// Generates the frame of the time that [`Emissions::peek`] gives: its destination and size. There must be one.
    #[inline]
    pub fn draw(&mut self) -> (u32, Bytes) {
        debug_assert!(self.next < Time::NEVER, "there is no frame");
        let destination = match (&self.clock, self.destinations) {
            (_, 1) => 0,
            (Clock::Bursts(burst), _) if !burst.is_fresh => burst.destination,
            (_, several) => self.stream.below(several.into()) as u32,
        };
        if let Clock::Bursts(burst) = &mut self.clock {
            (burst.destination, burst.is_fresh) = (destination, false);
        }
        let size = match &self.mix {
            None => Bytes::new(self.size.into()),
            Some(mix) => mix.draw(&mut self.stream),
        };
        self.next = self.clock.after(self.next, &mut self.stream);
        self.clip();
        (destination, size)
    }

    /// Generates all frames before slot `end` of slots of this length; every one of them begins with a slot. `frame` is
    /// reported the slot of each, its destination, and whether it is the last of a burst. The same draws as [`Emissions::draw`]
    /// makes frame by frame, but many times as fast. Returns the slot of the next frame; `u64::MAX` when there is none.
    pub fn draw_slots(&mut self, end: u64, slot: Span, frame: impl FnMut(u64, u32, bool)) -> u64 {
        if self.fixed_size().is_none() {
            self.draw_one_by_one(end, slot, frame);
        } else if let Some(failures) = self.clock.failures(slot) {
            // One call for each generator: a loop that is called from two places is not inlined.
            let (next, stop, destinations) = (&mut self.next, self.stop, Below::new(self.destinations));
            match &mut self.stream {
                Stream::Named(chance) => {
                    Stretch { next, stop, end, slot, chance }.single(failures, destinations, frame)
                }
                Stream::SplitMix64(chance) => {
                    Stretch { next, stop, end, slot, chance }.single(failures, destinations, frame);
                }
            }
        } else {
            match (&mut self.clock, &mut self.stream) {
                (Clock::Bursts(bursts), Stream::Named(chance)) if bursts.slot == slot => {
                    let mut stretch = Stretch { next: &mut self.next, stop: self.stop, end, slot, chance };
                    stretch.bursts(bursts, Below::new(self.destinations), frame);
                }
                _ => self.draw_one_by_one(end, slot, frame),
            }
        }
        if self.next == Time::NEVER { u64::MAX } else { self.next.ps() / slot.ps() }
    }

    fn draw_one_by_one(&mut self, end: u64, slot: Span, mut frame: impl FnMut(u64, u32, bool)) {
        let end_ps = end.saturating_mul(slot.ps());
        while self.next.ps() < end_ps {
            let at = self.next.ps() / slot.ps();
            let (destination, _) = self.draw();
            frame(at, destination, self.burst_ended());
        }
    }

    /// Whether the frame generated last was the last of a burst; a frame of any process but [`Departures::Bursts`] is
    /// a burst of its own.
    #[inline]
    pub fn burst_ended(&self) -> bool {
        match &self.clock {
            Clock::Bursts(burst) => burst.is_fresh,
            _ => true,
        }
    }

    /// The size that all frames have, if they have one.
    pub fn fixed_size(&self) -> Option<Bytes> {
        self.mix.is_none().then(|| Bytes::new(self.size.into()))
    }

    #[inline]
    fn clip(&mut self) {
        if self.next >= self.stop {
            self.next = Time::NEVER;
        }
    }
}

impl Iterator for Emissions {
    type Item = Emission;

    #[inline]
    fn next(&mut self) -> Option<Emission> {
        let at = self.peek();
        if at == Time::NEVER {
            return None;
        }
        let (destination, size) = self.draw();
        Some(Emission { at, destination, size })
    }
}

/// A departure process in motion. What few sources need is kept apart, so that a million sources stay small.
#[derive(Clone, Debug)]
enum Clock {
    Poisson {
        mean_gap: f64,
    },
    Bernoulli(Box<Slots>),
    /// Frame `count` leaves at `start + count x gap`.
    Constant {
        start: Time,
        gap: f64,
        count: u64,
    },
    OnOff(Box<Periods>),
    Bursts(Box<Bursts>),
}

#[derive(Clone, Debug)]
struct Bursts {
    slot: Span,
    /// Idle slots between two bursts.
    idle: Geometric,
    /// Frames of a burst beyond the first; absent where there are none.
    more: Option<Geometric>,
    /// Frames of this burst that are still to come.
    left: u64,
    /// Whether none of this burst was generated yet.
    is_fresh: bool,
    destination: u32,
    /// The load, where it starts by chance.
    starts: Option<f64>,
}

impl Bursts {
    /// A Markov chain with `mean` frames in a burst and `mean (1 - load) / load` idle slots between two.
    fn new(slot: Span, load: f64, mean: f64) -> Bursts {
        let idle = Geometric::new(load / (load + mean * (1.0 - load)));
        let more = (mean > 1.0).then(|| Geometric::new(1.0 / mean));
        Bursts { slot, idle, more, left: 0, is_fresh: true, destination: 0, starts: None }
    }

    /// The gap before the first frame. Geometric lengths have no memory: what is left of the burst, or of the gap, in which the first
    /// slot lies is as long as a whole one.
    fn start(&mut self, stream: &mut Stream) -> u64 {
        let is_between = self.starts.is_some_and(|load| stream.open_unit() > load);
        let is_within = self.starts.is_some() && !is_between;
        let idle = if is_within { 0 } else { self.idle.draw(stream).saturating_add(is_between.into()) };
        self.begin(stream);
        self.slot.ps().saturating_mul(idle.saturating_add(1))
    }

    /// A burst begins.
    #[inline]
    fn begin(&mut self, stream: &mut Stream) {
        self.left = 1 + self.more.as_ref().map_or(0, |more| more.draw(stream));
        self.is_fresh = true;
    }

    #[inline]
    fn next(&mut self, stream: &mut Stream) -> u64 {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return self.slot.ps();
        }
        let idle = self.idle.draw(stream);
        self.begin(stream);
        self.slot.ps().saturating_mul(idle.saturating_add(1))
    }
}

#[derive(Clone, Debug)]
struct Slots {
    length: Span,
    failures: Geometric,
}

/// Frame `count` (from 1) leaves after `count x gap` of on time. All times in ps.
#[derive(Clone, Debug)]
struct Periods {
    gap: f64,
    starts_by_chance: bool,
    mean_on: f64,
    mean_off: f64,
    count: u64,
    /// When the current on period began, the on time before it, and the on time at its end.
    on_from: f64,
    on_before: f64,
    on_until: f64,
}

impl Clock {
    fn new(departures: &Departures, start: Time) -> Clock {
        match *departures {
            Departures::Poisson { mean_gap_ps } => Clock::Poisson { mean_gap: mean_gap_ps },
            Departures::Bernoulli { slot_ps, probability } => {
                Clock::Bernoulli(Box::new(Slots { length: slot_ps, failures: Geometric::new(probability) }))
            }
            Departures::Constant { gap_ps } => Clock::Constant { start, gap: gap_ps, count: 0 },
            Departures::Bursts { slot_ps, load, mean_frames, starts_by_chance } => {
                let starts = starts_by_chance.then_some(load);
                Clock::Bursts(Box::new(Bursts { starts, ..Bursts::new(slot_ps, load, mean_frames) }))
            }
            Departures::OnOff { gap_ps, mean_on_ps, mean_off_ps, starts_by_chance } => {
                Clock::OnOff(Box::new(Periods {
                    gap: gap_ps,
                    starts_by_chance,
                    mean_on: mean_on_ps.ps() as f64,
                    mean_off: mean_off_ps.ps() as f64,
                    count: 0,
                    on_from: start.ps() as f64,
                    on_before: 0.0,
                    on_until: 0.0,
                }))
            }
        }
    }

    /// How many slots of this length there are between two frames, where each is a burst of its own.
    fn failures(&self, slot: Span) -> Option<&Geometric> {
        match self {
            Clock::Bernoulli(slots) if slots.length == slot => Some(&slots.failures),
            Clock::Bursts(bursts) if bursts.slot == slot && bursts.more.is_none() => Some(&bursts.idle),
            _ => None,
        }
    }

    fn first(&mut self, start: Time, stream: &mut Stream) -> Time {
        match self {
            Clock::Constant { .. } => return start,
            Clock::OnOff(periods) => periods.start(stream),
            Clock::Bursts(bursts) => return later(start, bursts.start(stream)),
            Clock::Poisson { .. } | Clock::Bernoulli(_) => {}
        }
        self.after(start, stream)
    }

    #[inline]
    fn after(&mut self, now: Time, stream: &mut Stream) -> Time {
        match self {
            Clock::Poisson { mean_gap } => later(now, (stream.exponential() * *mean_gap) as u64),
            Clock::Bernoulli(slots) => {
                let tries = slots.failures.draw(stream).saturating_add(1);
                later(now, slots.length.ps().saturating_mul(tries))
            }
            Clock::Constant { start, gap, count } => {
                *count += 1;
                later(*start, (*count as f64 * *gap) as u64)
            }
            Clock::OnOff(periods) => periods.next(stream),
            Clock::Bursts(bursts) => later(now, bursts.next(stream)),
        }
    }
}

impl Periods {
    /// An exponential time has no memory: what is left of the period in which a source starts is as long as a whole one.
    fn start(&mut self, stream: &mut Stream) {
        if self.starts_by_chance && stream.open_unit() * (self.mean_on + self.mean_off) >= self.mean_on {
            self.on_from += stream.exponential() * self.mean_off;
        }
        self.on_until = stream.exponential() * self.mean_on;
    }

    fn next(&mut self, stream: &mut Stream) -> Time {
        self.count += 1;
        let due = self.count as f64 * self.gap;
        while due >= self.on_until {
            self.on_from += (self.on_until - self.on_before) + stream.exponential() * self.mean_off;
            self.on_before = self.on_until;
            self.on_until += stream.exponential() * self.mean_on;
            if self.on_from >= u64::MAX as f64 {
                return Time::NEVER;
            }
        }
        Time::from_ps((self.on_from + (due - self.on_before)) as u64)
    }
}

/// `now` plus `ps`; beyond the end of time there is nothing.
#[inline]
fn later(now: Time, ps: u64) -> Time {
    Time::from_ps(now.ps().saturating_add(ps))
}

/// Frame sizes that differ.
#[derive(Clone, Debug)]
struct Mix {
    /// Each size with the sum of the weights up to and with its own.
    upto: Vec<(u64, Bytes)>,
    total: u64,
}

impl Mix {
    fn new(parts: &[(Bytes, u32)]) -> Mix {
        let mut total = 0;
        let running = parts.iter().map(|&(size, weight)| {
            total += u64::from(weight);
            (total, size)
        });
        let upto = running.collect();
        Mix { upto, total }
    }

    fn draw(&self, stream: &mut Stream) -> Bytes {
        let ticket = stream.below(self.total);
        self.upto[self.upto.partition_point(|&(bound, _)| bound <= ticket)].1
    }
}
