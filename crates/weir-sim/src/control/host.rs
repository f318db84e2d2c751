//! A host with queues of its own: its sources, its queues and whose turn it is, its limiters, and what is known of the line behind them.
//!
//! The parts are those of [`weir_core::host`]; here they are put together by one of two laws. The sources are pulled: what they generated is
//! drawn when the port is looked at. The frames that wait are linked through the pool.
//!
//! Above 400 lines: one value, whose parts have their files in core; what is left is how they act on one another.

use weir_core::ethernet::reaction::{Feedback, Meter};
use weir_core::host::{Chain, Limiting, Load, Paced, Turns};
use weir_core::queue::{ClassSet, Limit};
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Rate, Span, Time};

use super::plan::Law;
use crate::feed::Feed;
use crate::frames::{FrameId, NO_FRAME, Pool};
use crate::limiting::HostSeries;
use crate::timer::Timer;

/// No congestion point.
pub(crate) const NO_POINT: u32 = u32::MAX;

/// The adapter of a host: what waits there for its port.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) law: Law,
    pub(crate) feed: Option<Feed>,
    pub(crate) outlet: Outlet,
    /// The flows or the destinations, as the law says, in order: the place of one among them names it.
    keys: Vec<u32>,
    /// One for each place and, for destinations, one for notifications; or one.
    queues: Vec<Queue>,
    turns: Turns,
    limiting: Limiting,
    pub(crate) bounds: Bounds,
    /// Frames and bytes that wait in queues without a limit of their own.
    open: (u64, u64),
    pub(crate) load: Load,
    /// When the port is to be looked at next: nothing happens here before.
    pub(crate) next: Time,
    /// When the first frame on the link arrives, if there is one.
    pub(crate) arrives: Time,
    /// The event of the link: the next frame arrives then, or not before.
    pub(crate) timer: Timer,
    /// The size of the shortest frame that may leave, and the time from the start of its transmission to its arrival.
    least: Bytes,
    pub(crate) lead: Span,
    /// Of the limiters, where they are recorded.
    pub(crate) series: Option<Box<HostSeries>>,
    seed: Seed,
    /// By place, where single classes can be held: the class.
    pub(crate) classes: Vec<u8>,
    /// The classes that are held.
    pub(crate) held: ClassSet,
}

/// The line of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlet {
    pub(crate) host: u32,
    pub(crate) rate: Rate,
    pub(crate) framing: Bytes,
    /// From the end of a transmission to the arrival.
    pub(crate) lag: Span,
}

impl Outlet {
    /// What a frame takes on the line.
    fn tx(&self, size: Bytes) -> Span {
        (size + self.framing) / self.rate
    }
}

/// What may wait, and what leaves early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// In all queues together; without those that have a limit of their own.
    pub(crate) open: Limit,
    /// In the queue of each flow with a limiter.
    pub(crate) limited: Limit,
    /// Frames that are passed on to the port before it is free.
    pub(crate) fifo: usize,
}

/// A queue of a host, linked through the pool.
#[derive(Clone, Copy, Debug)]
struct Queue {
    chain: Chain,
    frames: u64,
    bytes: u64,
    /// Whether it has a limit of its own.
    is_limited: bool,
}

const EMPTY: Queue = Queue { chain: Chain::EMPTY, frames: 0, bytes: 0, is_limited: false };

impl Queue {
    /// Takes over whether it has a limit of its own.
    #[inline(always)]
    fn sort(&mut self, is_limited: bool, open: &mut (u64, u64)) {
        if is_limited != self.is_limited {
            self.is_limited = is_limited;
            match is_limited {
                true => *open = (open.0 - self.frames, open.1 - self.bytes),
                false => *open = (open.0 + self.frames, open.1 + self.bytes),
            }
        }
    }
}

/// Does what the limiter of a flow was to do by itself up to `now`.
#[inline(always)]
fn advance(paced: &mut Paced, queues: &mut [Queue], open: &mut (u64, u64), now: Time, place: u32) {
    if paced.advance(now, place) {
        queues[place as usize].sort(paced.is_limited(place), open);
    }
}

impl Host {
    /// The host of `law` with these `keys`, in order; it has one queue, or one for each.
    pub(crate) fn new(
        law: Law,
        outlet: Outlet,
        (keys, has_one): (Vec<u32>, bool),
        feed: Option<Feed>,
        (limiting, bounds): (Limiting, Bounds),
        seed: Seed,
    ) -> Host {
        let (queues, turns, load) = match law {
            Law::Flows => (keys.len(), Turns::longest_first(), Load::default().counting_instants()),
            Law::Destinations => {
                let queues = if has_one { 1 } else { keys.len() + 1 };
                (queues, Turns::in_order(queues), Load::default())
            }
        };
        let longest = Bytes::new(u16::MAX.into());
        let mut host = Host {
            law,
            outlet,
            keys,
            queues: vec![EMPTY; queues],
            turns,
            limiting,
            bounds,
            open: (0, 0),
            load,
            next: Time::NEVER,
            arrives: Time::NEVER,
            timer: Timer::IDLE,
            least: longest,
            lead: Span::ZERO,
            series: None,
            seed,
            feed,
            classes: Vec::new(),
            held: ClassSet::NONE,
        };
        let shortest = host.feed.as_ref().map_or(longest, |feed| feed.fixed_size.unwrap_or(Bytes::new(1)));
        host.least = shortest;
        host.lead = host.lead_of(shortest);
        host
    }

    /// Frames of this size may leave, too.
    #[inline]
    pub(crate) fn know(&mut self, size: Bytes) {
        if size < self.least {
            (self.least, self.lead) = (size, self.lead_of(size));
        }
    }

    /// From the start of the transmission of a frame to its arrival.
    fn lead_of(&self, size: Bytes) -> Span {
        self.outlet.tx(size).max(Span::from_ps(1)) + self.outlet.lag
    }

    /// When the next frame is generated.
    #[inline]
    pub(crate) fn generated(&self) -> Time {
        self.feed.as_ref().map_or(Time::NEVER, Feed::peek)
    }

    /// Whether what comes at an instant comes before anything leaves then.
    #[inline]
    pub(crate) fn comes_first(&self) -> bool {
        self.law == Law::Destinations
    }

    /// The place of a flow or destination, which is one of the host's.
    #[inline]
    pub(crate) fn place(&self, key: u32) -> u32 {
        self.place_of(|| key)
    }

    /// The same, for a key that is asked for if there are several.
    #[inline]
    pub(crate) fn place_of(&self, key: impl FnOnce() -> u32) -> u32 {
        if self.keys.len() == 1 {
            return 0;
        }
        let key = key();
        self.keys.partition_point(|&other| other < key) as u32
    }

    /// The flow or destination with this place.
    pub(crate) fn key(&self, place: u32) -> u32 {
        self.keys[place as usize]
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> usize {
        self.keys.len()
    }

    /// The place of notifications of other flows, behind all others, without a limiter; none where they wait in the port, with what has been
    /// passed on to it.
    pub(crate) fn place_of_notifications(&self) -> Option<u32> {
        self.comes_first().then_some(self.keys.len() as u32)
    }

    #[inline]
    fn queue_of(&self, place: u32) -> usize {
        if self.queues.len() == 1 { 0 } else { place as usize }
    }

    /// Does what the limiter of a flow was to do by itself up to `now`.
    #[inline(always)]
    fn advance(&mut self, now: Time, place: u32) {
        if let Limiting::Paced(paced) = &mut self.limiting {
            advance(paced, &mut self.queues, &mut self.open, now, place);
        }
    }

    /// Whether a frame to `place` that comes at `now` may pass all that waits: nothing waits, and nothing limits it.
    pub(crate) fn is_open(&self, now: Time, place: u32) -> bool {
        self.load.frames() == 0 && self.limiting.is_open(now, place)
    }

    /// Whether a frame to `place` that comes at `now`, while the port is `free` or not, is taken. One that need not wait always is.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, now: Time, place: u32, size: Bytes, free: bool) -> bool {
        self.advance(now, place);
        let queue = &self.queues[self.queue_of(place)];
        let ((frames, bytes), limit) = match queue.is_limited {
            true => ((queue.frames, queue.bytes), self.bounds.limited),
            false => (self.open, self.bounds.open),
        };
        limit.admits(frames + 1, bytes + size.count()) || free && self.is_open(now, place)
    }

    /// Whether what has no room at `place` is held against its limiter.
    pub(crate) fn has_own_limit(&self, place: u32) -> bool {
        self.queues[self.queue_of(place)].is_limited
    }

    /// A frame to `place` is sent without waiting.
    pub(crate) fn pass(&mut self, place: u32) {
        self.turns.pass(self.queue_of(place) as u32);
    }

    /// A frame to `place` comes at `now`; `beyond` waits in the port.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: Time, frames: &mut Pool, place: u32, id: FrameId, beyond: Bytes) {
        let size = frames[id].size();
        frames.keep(id, place);
        self.know(size);
        self.load.add(now, size, beyond);
        let number = self.queue_of(place);
        let queue = &mut self.queues[number];
        queue.frames += 1;
        queue.bytes += size.count();
        if !queue.is_limited {
            self.open = (self.open.0 + 1, self.open.1 + size.count());
        }
        if queue.chain.push(frames, id) {
            self.admit(number, now, frames);
        }
    }

    /// A queue has a new first frame: whether it takes turns, or its limiter is gated.
    #[inline(always)]
    fn admits(&mut self, queue: usize, now: Time, frames: &Pool) -> bool {
        if let Limiting::Credit(limiters) = &mut self.limiting {
            let head = self.queues[queue].chain.first();
            let tx = self.outlet.tx(frames[head].size());
            return limiters.admit(now, frames.kept(head), tx.ps());
        }
        true
    }

    /// As [`Host::admits`], for a queue that had no turn.
    fn admit(&mut self, queue: usize, now: Time, frames: &Pool) {
        if self.admits(queue, now, frames) {
            self.turns.add(queue as u32);
        }
    }

    /// The classes that are held and wait here, and the bytes that they have waiting.
    pub(crate) fn held_back(&self) -> (ClassSet, u64) {
        let mut back = (ClassSet::NONE, 0);
        if !self.held.is_empty() {
            let waiting = self.queues.iter().zip(&self.classes).filter(|(queue, _)| queue.frames > 0);
            for (queue, &class) in waiting.filter(|&(_, &class)| self.held.contains(class)) {
                back = (back.0.with(ClassSet::of(class)), back.1 + queue.bytes);
            }
        }
        back
    }

    /// Whether a frame may be passed on to a port that is `free`, where `queued` frames wait.
    #[inline]
    pub(crate) fn may_pass(&self, free: bool, queued: usize) -> bool {
        free || queued < self.bounds.fifo
    }

    /// The queue that may send at `now`, if one may.
    #[inline(always)]
    fn next_queue(&mut self, now: Time) -> Option<usize> {
        let Host { turns, limiting, queues, open, .. } = self;
        if let Limiting::Credit(limiters) = limiting {
            let has_one = queues.len() == 1;
            limiters.open(now, |place| turns.add(if has_one { 0 } else { place }));
        }
        let first = turns.first()?;
        if !self.held.is_empty() {
            return self.next_unheld(now, first);
        }
        let Limiting::Paced(paced) = limiting else { return Some(first as usize) };
        advance(paced, queues, open, now, first);
        if paced.may_send(now, first) {
            return Some(first as usize);
        }
        let behind = turns.behind(first, |place| {
            advance(paced, queues, open, now, place);
            paced.may_send(now, place)
        });
        behind.map(|queue| queue as usize)
    }

    /// As [`Host::next_queue`], while some classes are held: from the queue `first` on, whose turn it is.
    #[cold]
    fn next_unheld(&mut self, now: Time, first: u32) -> Option<usize> {
        let Host { turns, limiting, queues, open, held, classes, .. } = self;
        let mut may = |place: u32| {
            if is_held(*held, classes, place) {
                return false;
            }
            let Limiting::Paced(paced) = &mut *limiting else { return true };
            advance(paced, queues, open, now, place);
            paced.may_send(now, place)
        };
        let queue = if may(first) { Some(first) } else { turns.behind(first, may) };
        queue.map(|queue| queue as usize)
    }

    /// The next frame that may begin at `now`, and its place.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Time, frames: &Pool) -> Option<(FrameId, Bytes, u32)> {
        let number = self.next_queue(now)?;
        let Host { limiting, queues, open, .. } = self;
        let queue = &mut queues[number];
        let id = queue.chain.first();
        let (size, place) = (frames[id].size(), frames.kept(id));
        let goes_on = queue.chain.pop(frames) != NO_FRAME;
        queue.frames -= 1;
        queue.bytes -= size.count();
        if !queue.is_limited {
            *open = (open.0 - 1, open.1 - size.count());
        }
        self.load.take(now, size);
        match limiting {
            Limiting::Off => {}
            Limiting::Paced(paced) => {
                if paced.on_sent(now, place, size) {
                    queue.sort(paced.is_limited(place), open);
                }
            }
            Limiting::Credit(limiters) => limiters.on_sent(now, place, self.outlet.tx(size).ps(), size),
        }
        let goes_on = goes_on && self.admits(number, now, frames);
        self.turns.end(number as u32, goes_on);
        Some((id, size, place))
    }

    /// When a frame may be ready to leave: nothing changes before.
    pub(crate) fn ready(&self) -> Time {
        let generated = self.generated();
        if !self.held.is_empty() {
            let ready = |place: u32| match &self.limiting {
                _ if is_held(self.held, &self.classes, place) => Time::NEVER,
                Limiting::Paced(paced) => paced.not_before(place),
                Limiting::Off | Limiting::Credit(_) => Time::ZERO,
            };
            return self.turns.least(ready).unwrap_or(Time::NEVER).min(generated);
        }
        let waiting = match &self.limiting {
            Limiting::Paced(paced) => {
                let waiting = self.turns.least(|place| paced.not_before(place));
                match waiting {
                    Some(waiting) if self.keys.len() == 1 => return waiting,
                    None if self.keys.len() == 1 => return generated.max(paced.not_before(0)),
                    _ => waiting.unwrap_or(Time::NEVER),
                }
            }
            _ if !self.turns.is_empty() => Time::ZERO,
            Limiting::Off => Time::NEVER,
            Limiting::Credit(limiters) => limiters.next_due(),
        };
        waiting.min(generated)
    }

    /// Feedback of congestion point `cause` about frames to `place` takes effect at `now`. Returns when that is to be looked at again.
    pub(crate) fn on_feedback(
        &mut self,
        now: Time,
        place: u32,
        cause: u32,
        feedback: Feedback,
        frames: &Pool,
    ) -> Option<Time> {
        let pair = (self.outlet.host, self.key(place));
        match &mut self.limiting {
            Limiting::Off => return None,
            Limiting::Paced(paced) => {
                paced.on_feedback(now, place, cause, feedback);
                self.queues[place as usize].sort(paced.is_limited(place), &mut self.open);
                return None;
            }
            Limiting::Credit(limiters) => {
                let stream = |what: &str| self.seed.stream(&format!("{what}/{}/{}", pair.0, pair.1));
                let chance = || (stream("limiter"), stream("control/pacing"));
                if !limiters.on_feedback(now, place, cause, feedback, chance) {
                    return None;
                }
            }
        }
        self.settle(now, place, frames)
    }

    /// A change of the limiter of `place` is due. Returns when the next is.
    pub(crate) fn on_timeout(&mut self, now: Time, place: u32, frames: &Pool) -> Option<Time> {
        let Limiting::Credit(limiters) = &mut self.limiting else { return None };
        limiters.on_timeout(now, place);
        self.settle(now, place, frames)
    }

    /// Takes over the rate of a limiter: a queue that took turns under the old one may have to wait now.
    fn settle(&mut self, now: Time, place: u32, frames: &Pool) -> Option<Time> {
        let Limiting::Credit(limiters) = &mut self.limiting else { return None };
        let (is_gated, timeout) = (limiters.is_gated(place), limiters.poll_timeout(place));
        let queue = self.queue_of(place);
        let head = self.queues[queue].chain.first();
        if !is_gated && head != NO_FRAME && frames.kept(head) == place {
            self.turns.remove(queue as u32);
            self.admit(queue, now, frames);
        }
        timeout
    }

    /// The tag of a frame to `place`: the congestion point that limits it.
    #[inline]
    pub(crate) fn tag(&self, place: u32) -> u32 {
        self.limiting.cause(place).unwrap_or(NO_POINT)
    }

    /// The frames that wait here.
    pub(crate) fn waiting<'a>(&'a self, frames: &'a Pool) -> impl Iterator<Item = FrameId> + 'a {
        self.queues.iter().flat_map(|queue| queue.chain.places(frames))
    }

    /// Writes down the intervals of the limiters that ended up to `now`; nothing has happened since.
    #[inline]
    pub(crate) fn write_rows(&mut self, now: Time, frames: &Pool) {
        if self.series.is_some() {
            self.write_rows_until(now, frames);
        }
    }

    fn write_rows_until(&mut self, now: Time, frames: &Pool) {
        let Some(mut series) = self.series.take() else { return };
        if series.boundary() <= now {
            let mut waiting: Vec<u64> = self.queues.iter().map(|queue| queue.bytes).collect();
            if waiting.len() < self.keys.len() {
                // One queue holds what goes to all places.
                waiting = vec![0; self.keys.len()];
                for id in self.waiting(frames) {
                    if let Some(bytes) = waiting.get_mut(frames.kept(id) as usize) {
                        *bytes += frames[id].size().count();
                    }
                }
            }
            while series.boundary() <= now {
                series.mark(|place| self.limiting.reaction(place as u32), |place| waiting[place]);
            }
        }
        self.series = Some(series);
    }

    /// What each limiter did up to `end`: its flow or destination, and its meter.
    pub(crate) fn meters(&mut self, end: Time) -> Vec<(u32, Meter)> {
        let meters = self.limiting.meters(end);
        meters.into_iter().map(|(place, meter)| (self.key(place), meter)).collect()
    }
}

/// Whether the class of a place is among those that are `held`.
#[inline]
fn is_held(held: ClassSet, classes: &[u8], place: u32) -> bool {
    !held.is_empty() && classes.get(place as usize).is_some_and(|&class| held.contains(class))
}

#[cfg(test)]
mod tests {
    use weir_core::ethernet::bcn;
    use weir_core::host::{Limiters, Manner, Picoseconds};
    use weir_core::queue::Lane;

    use super::*;
    use crate::frames::Frame;
    use crate::workloads::calibration;

    const SIZE: Bytes = Bytes::new(1500);

    fn limited_host(has_one: bool) -> Host {
        let rate = Rate::from_gbit_per_s(10);
        let how =
            Manner { jitter: 0.0, ..Manner::new(Picoseconds, &calibration().control, rate).expect("has limiters") };
        let outlet = Outlet { host: 0, rate, framing: Bytes::ZERO, lag: Span::ZERO };
        let bounds = Bounds { open: Limit::UNLIMITED, limited: Limit::UNLIMITED, fifo: 0 };
        let limiting = (Limiting::Credit(Box::new(Limiters::new(how, 2))), bounds);
        let mut host = Host::new(Law::Destinations, outlet, (vec![2, 4], has_one), None, limiting, Seed::new(1));
        for place in 0..2 {
            let less = Feedback::Bcn(bcn::Feedback::Change(-50.0));
            host.on_feedback(Time::ZERO, place, 7, less, &Pool::new());
        }
        host
    }

    #[test]
    fn a_notification_among_the_data_is_charged_to_no_limiter() {
        for has_one in [false, true] {
            let (mut host, mut frames) = (limited_host(has_one), Pool::new());
            let mut push = |host: &mut Host, place| {
                let id = frames.put(Frame::new(Time::ZERO, 0, 0, SIZE, Lane::Data));
                host.push(Time::ZERO, &mut frames, place, id, Bytes::ZERO);
            };
            let notifications = host.place_of_notifications().expect("they wait at the host");
            (0..3).for_each(|_| push(&mut host, notifications));
            let place = host.place(4);
            push(&mut host, place);
            let mut take = || host.take(Time::ZERO, &frames).map(|(_, _, place)| place);
            assert_eq!([take(), take(), take()], [Some(notifications); 3]);
            assert_eq!(take(), None, "the data waits for its limiter");
            assert_eq!(host.tag(notifications), NO_POINT);
        }
    }
}
