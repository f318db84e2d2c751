//! The port of a host whose flows have queues of their own: rate-limited ones, and all that PAUSE can hold.
//!
//! The sources of the host are pulled: what they generated is drawn when the port is looked at. A port that is free
//! takes the frame of the flow that has waited longest for its turn among those that may send.

use std::collections::VecDeque;

use weir_core::ethernet::reaction::{Allowance, Feedback, Pacer, ReactionPoint, Rules};
use weir_core::queue::Limit;
use weir_core::units::{Bytes, Rate, Span, Time};

use crate::boundaries::Boundaries;
use crate::feed::Feed;
use crate::frames::{FrameId, NO_FRAME, Pool};
use crate::limiting::LimiterSeries;
use crate::timer::Timer;

/// No frame is longer.
pub(crate) const LONGEST: Bytes = Bytes::new(u16::MAX as u64);

/// No congestion point.
pub(crate) const NO_POINT: u32 = u32::MAX;

/// The queues of a host's port.
#[derive(Debug)]
pub(crate) struct Adapter {
    pub(crate) feed: Option<Feed>,
    /// The one flow of the feed, if it has but one: its place in `outlets`.
    pub(crate) sole: Option<u32>,
    pub(crate) outlets: Vec<Outlet>,
    /// Outlets where frames wait, the one that was served last at the end.
    pub(crate) turns: VecDeque<u32>,
    pub(crate) rules: Option<Rules>,
    /// What may wait of flows without a limiter, all together, and of each with one.
    pub(crate) open_limit: Limit,
    pub(crate) limited_limit: Limit,
    /// Frames that limiters pass on to the port before it is free.
    pub(crate) fifo: usize,
    pub(crate) open: Load,
    pub(crate) all: Load,
    /// When the port is to be looked at next: nothing happens here before.
    pub(crate) next: Time,
    /// The event of the link: the next frame arrives then, or not before.
    pub(crate) timer: Timer,
    pub(crate) link: Link,
    /// The size of the shortest frame that may leave, and the time from the begin of its transmission to its arrival.
    pub(crate) least: u64,
    pub(crate) lead: Span,
    /// Integrals of what waits here, up to `settled`, and the most that waited since it was asked for.
    pub(crate) settled: Time,
    pub(crate) byte_ps: u128,
    pub(crate) wait_ps: u128,
    pub(crate) most: u64,
    pub(crate) peak: u64,
    /// When the current interval of the limiters ends.
    pub(crate) boundary: Time,
    pub(crate) boundaries: Option<Boundaries>,
    pub(crate) number: u32,
}

/// Frames that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

impl Load {
    pub(crate) fn add(&mut self, frames: u64, bytes: u64) {
        (self.frames, self.bytes) = (self.frames + frames, self.bytes + bytes);
    }

    pub(crate) fn take(&mut self, frames: u64, bytes: u64) {
        (self.frames, self.bytes) = (self.frames - frames, self.bytes - bytes);
    }
}

/// The queue of a flow at its host.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) flow: u32,
    /// The frames that wait, linked through the pool.
    pub(crate) head: FrameId,
    pub(crate) tail: FrameId,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) reaction: ReactionPoint,
    pub(crate) pacer: Pacer,
    /// When the next frame may begin, as things are, and when that may change.
    pub(crate) begin: Time,
    pub(crate) change: Time,
    /// Whether the flow has a limiter.
    pub(crate) limited: bool,
    /// The congestion point that limits the flow.
    pub(crate) point: u32,
    pub(crate) series: LimiterSeries,
}

impl Outlet {
    pub(crate) fn new(flow: u32, reaction: ReactionPoint, pacer: Pacer) -> Outlet {
        Outlet {
            flow,
            head: NO_FRAME,
            tail: NO_FRAME,
            frames: 0,
            bytes: 0,
            reaction,
            pacer,
            begin: Time::ZERO,
            change: Time::NEVER,
            limited: false,
            point: NO_POINT,
            series: LimiterSeries::default(),
        }
    }

    /// When the next frame may begin, as things are, and when that may change.
    #[inline]
    pub(crate) fn not_before(&self) -> Time {
        self.begin.min(self.change)
    }

    /// Asks anew what may be sent; whether the flow has a limiter.
    #[inline]
    pub(crate) fn ask(&mut self) -> bool {
        let allowance = self.reaction.allowance();
        self.begin = self.pacer.not_before(allowance);
        self.change = self.reaction.poll_timeout();
        allowance != Allowance::Unlimited
    }
}

/// How the frames of an adapter wait and leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// What may wait of flows without a limiter, all together.
    pub(crate) open: Limit,
    /// What may wait of each flow with one.
    pub(crate) limited: Limit,
    /// Frames that are passed on to the port before it is free.
    pub(crate) fifo: usize,
}

/// The link behind an adapter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) rate: Rate,
    pub(crate) framing: Bytes,
    /// From the end of a transmission to the arrival.
    pub(crate) lag: Span,
}

impl Link {
    pub(crate) fn lead(&self, size: Bytes) -> Span {
        (size + self.framing) / self.rate + self.lag
    }
}

impl Adapter {
    pub(crate) fn new(
        feed: Option<Feed>,
        outlets: Vec<Outlet>,
        rules: Option<Rules>,
        bounds: Bounds,
        link: Link,
    ) -> Adapter {
        let sole = (outlets.len() == 1).then_some(0);
        let shortest = feed.as_ref().map_or(LONGEST, |feed| feed.fixed_size.unwrap_or(Bytes::ZERO));
        Adapter {
            feed,
            sole,
            outlets,
            turns: VecDeque::new(),
            rules,
            open_limit: bounds.open,
            limited_limit: bounds.limited,
            fifo: bounds.fifo,
            open: Load::default(),
            all: Load::default(),
            next: Time::NEVER,
            timer: Timer::IDLE,
            link,
            least: shortest.count(),
            lead: link.lead(shortest),
            settled: Time::ZERO,
            byte_ps: 0,
            wait_ps: 0,
            most: 0,
            peak: 0,
            boundary: Time::NEVER,
            boundaries: None,
            number: 1,
        }
    }

    /// Writes down intervals of the limiters.
    pub(crate) fn record(&mut self, boundaries: Boundaries) {
        self.boundary = boundaries.at(1);
        self.boundaries = Some(boundaries);
    }

    /// When the next frame is generated.
    #[inline]
    pub(crate) fn generated(&self) -> Time {
        self.feed.as_ref().map_or(Time::NEVER, Feed::peek)
    }

    /// Bytes that wait here.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.all.bytes
    }

    /// The frames that wait here.
    pub(crate) fn waiting<'a>(&'a self, frames: &'a Pool) -> impl Iterator<Item = FrameId> + 'a {
        self.outlets.iter().flat_map(|outlet| frames.linked(outlet.head))
    }

    /// Whether a frame of the flow of outlet `place` that comes at `now`, while the port is `free` or not, is taken.
    #[inline]
    pub(crate) fn has_room(&mut self, now: Time, place: u32, size: Bytes, free: bool) -> bool {
        self.advance(now, place);
        let outlet = &self.outlets[place as usize];
        let (waits, limit) = match outlet.limited {
            true => (Load { frames: outlet.frames, bytes: outlet.bytes }, self.limited_limit),
            false => (self.open, self.open_limit),
        };
        // As at a port, a frame that need not wait is not held against the limit.
        limit.admits(waits.frames + 1, waits.bytes + size.count())
            || free && self.all.frames == 0 && outlet.begin <= now
    }

    /// Whether the flow of outlet `place` has a limiter.
    pub(crate) fn is_limited(&self, place: u32) -> bool {
        self.outlets[place as usize].limited
    }

    /// A frame of the flow of outlet `place` comes at `now`; `beyond` waits in the port.
    #[inline]
    pub(crate) fn push(&mut self, now: Time, frames: &mut Pool, place: u32, id: FrameId, beyond: Bytes) {
        let outlet = &mut self.outlets[place as usize];
        let size = frames[id].size().count();
        frames.keep(id, place);
        let before = std::mem::replace(&mut outlet.tail, id);
        if before == NO_FRAME {
            outlet.head = id;
            self.turns.push_back(place);
        } else {
            frames[before].next = id;
        }
        outlet.frames += 1;
        outlet.bytes += size;
        if !outlet.limited {
            self.open.add(1, size);
        }
        if size < self.least {
            (self.least, self.lead) = (size, self.link.lead(Bytes::new(size)));
        }
        self.settle(now);
        self.all.add(1, size);
        self.most = self.most.max(self.all.bytes + beyond.count());
    }

    /// The most that waited since the last time that this was asked for; `beyond` bytes wait in the port.
    pub(crate) fn restart_most(&mut self, beyond: u64) -> u64 {
        self.peak = self.peak.max(self.most);
        std::mem::replace(&mut self.most, self.all.bytes + beyond)
    }

    /// The most that ever waited.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.max(self.most)
    }

    /// Whether a frame may be passed on to a port that is `free`, where `queued` frames wait.
    #[inline]
    pub(crate) fn may_pass(&self, free: bool, queued: usize) -> bool {
        free || queued < self.fifo
    }

    /// The next frame that may begin at `now`, and the outlet that it comes from.
    pub(crate) fn take(&mut self, now: Time, frames: &Pool) -> Option<(FrameId, Bytes, u32)> {
        for turn in 0..self.turns.len() {
            let place = self.turns[turn];
            self.advance(now, place);
            let outlet = &mut self.outlets[place as usize];
            if outlet.begin > now {
                continue;
            }
            let (id, bytes) = (outlet.head, frames[outlet.head].size());
            let size = bytes.count();
            outlet.head = frames[id].next;
            outlet.frames -= 1;
            outlet.bytes -= size;
            if outlet.head == NO_FRAME {
                outlet.tail = NO_FRAME;
                self.turns.remove(turn);
            } else if self.turns.len() > 1 {
                self.turns.remove(turn);
                self.turns.push_back(place);
            }
            if let Some(rules) = &self.rules {
                outlet.pacer.on_sent(now, bytes);
                outlet.reaction.on_sent(now, bytes, rules);
            }
            if !outlet.limited {
                self.open.take(1, size);
            }
            self.know(place);
            self.settle(now);
            self.all.take(1, size);
            return Some((id, bytes, place));
        }
        None
    }

    /// When a frame may be ready to leave: nothing changes before.
    pub(crate) fn ready(&self) -> Time {
        let waiting = self.turns.iter().map(|&place| self.outlets[place as usize].not_before()).min();
        match (waiting, self.sole) {
            (Some(waiting), Some(_)) => waiting,
            (Some(waiting), None) => waiting.min(self.generated()),
            (None, Some(place)) => self.generated().max(self.outlets[place as usize].not_before()),
            (None, None) => self.generated(),
        }
    }

    /// Feedback of congestion point `point` takes effect at `now`.
    pub(crate) fn on_feedback(&mut self, now: Time, place: u32, point: u32, feedback: Feedback) {
        let Some(rules) = &self.rules else { return };
        let outlet = &mut self.outlets[place as usize];
        outlet.reaction.on_feedback(now, feedback, rules);
        if feedback.is_negative() {
            outlet.point = point;
        }
        self.know(place);
    }

    /// The tag of a frame of outlet `place`: the congestion point that limits it.
    pub(crate) fn tag(&self, place: u32) -> u32 {
        let outlet = &self.outlets[place as usize];
        if outlet.limited { outlet.point } else { NO_POINT }
    }

    /// Does what the limiter of an outlet was to do by itself up to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time, place: u32) {
        let outlet = &mut self.outlets[place as usize];
        if let Some(rules) = &self.rules
            && outlet.reaction.advance(now, rules)
        {
            self.know(place);
        }
    }

    /// Takes over what the limiter and the pacer of an outlet allow now.
    #[inline]
    pub(crate) fn know(&mut self, place: u32) {
        let outlet = &mut self.outlets[place as usize];
        let limited = outlet.ask();
        if limited != outlet.limited {
            outlet.limited = limited;
            let (frames, bytes) = (outlet.frames, outlet.bytes);
            if limited { self.open.take(frames, bytes) } else { self.open.add(frames, bytes) }
        }
    }

    /// Counts the integrals up to `now`.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time) {
        let span = u128::from(now.saturating_since(self.settled).ps());
        self.settled = now;
        self.byte_ps += span * u128::from(self.all.bytes);
        self.wait_ps += span * u128::from(self.all.frames);
    }

    /// Writes down the intervals of the limiters that ended up to `now`; nothing has happened since.
    pub(crate) fn write_rows(&mut self, now: Time) {
        let (Some(boundaries), Some(rules)) = (self.boundaries, &self.rules) else { return };
        while self.boundary <= now {
            let at = self.boundary;
            for outlet in &mut self.outlets {
                outlet.series.mark(at, Some((&outlet.reaction, rules)), outlet.bytes);
            }
            self.number += 1;
            self.boundary = boundaries.at(self.number);
        }
    }
}
