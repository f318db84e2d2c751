//! A host with a queue for each destination, served in turn, or with one for all, and the limiters of its flows.
//!
//! The frames that wait are linked through the pool. A queue is *ready* when its first frame may be sent as far as its
//! limiter goes; if not, its limiter is *gated* until it has a frame's worth of credit.

use weir_core::ethernet::reaction::{Change, Feedback, Meter, Rules};
use weir_core::queue::Limit;
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Rate, Span, Time};

use super::super::adapter::NO_POINT;
use super::limiter::{Limiter, Manner};
use crate::feed::Feed;
use crate::frames::{FrameId, NO_FRAME, Pool};
use crate::limiting::HostSeries;
use crate::timer::Timer;

pub(crate) const NONE: u32 = u32::MAX;

/// A queue of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) head: FrameId,
    pub(crate) tail: FrameId,
}

pub(crate) const EMPTY: Queue = Queue { head: NO_FRAME, tail: NO_FRAME };

/// What the limiters of a host have in common.
#[derive(Debug)]
pub(crate) struct Obedience {
    pub(crate) rules: Rules,
    pub(crate) how: Manner,
    pub(crate) seed: Seed,
}

/// The line of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlet {
    pub(crate) host: u32,
    pub(crate) rate: Rate,
    pub(crate) framing: Bytes,
    /// What may wait in all queues together.
    pub(crate) limit: Limit,
}

/// What waits, and for how long it did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) settled: Time,
    pub(crate) byte_ps: u128,
    pub(crate) wait_ps: u128,
    pub(crate) most: u64,
    pub(crate) peak: u64,
}

impl Load {
    /// Counts the integrals up to `now`; what waits only for an instant does not count as the most.
    pub(crate) fn settle(&mut self, now: Time) {
        let span = now.saturating_since(self.settled).ps();
        if span > 0 {
            self.settled = now;
            self.most = self.most.max(self.bytes);
            self.byte_ps += u128::from(span) * u128::from(self.bytes);
            self.wait_ps += u128::from(span) * u128::from(self.frames);
        }
    }

    /// The most that waited since this was asked last.
    pub(crate) fn restart_most(&mut self) -> u64 {
        self.peak = self.peak.max(self.most);
        std::mem::take(&mut self.most)
    }

    /// The most that ever waited.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.max(self.most)
    }
}

/// The queues of a host, and its limiters.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) feed: Option<Feed>,
    pub(crate) outlet: Outlet,
    /// All destinations, in order of node ids.
    pub(crate) destinations: Vec<u32>,
    /// One for each destination and one for notifications, or one.
    pub(crate) queues: Vec<Queue>,
    pub(crate) ready: Vec<u64>,
    /// The queue whose turn it is, or the first after it.
    pub(crate) turn: usize,
    pub(crate) load: Load,
    pub(crate) timer: Timer,
    pub(crate) limiters: Vec<Limiter>,
    /// By destination; empty where nothing is obeyed.
    pub(crate) limiter_of: Vec<u32>,
    /// Limiters that wait for credit, and when the first of them has it, at the earliest.
    pub(crate) gated: Vec<u32>,
    pub(crate) next_due: Time,
    pub(crate) obedience: Option<Obedience>,
    /// Of the limiters, where they are recorded.
    pub(crate) series: Option<Box<HostSeries>>,
}

impl Station {
    /// `destinations` may be in any order, and named more than once.
    pub(crate) fn new(
        outlet: Outlet,
        feed: Option<Feed>,
        mut destinations: Vec<u32>,
        in_turn: bool,
        obedience: Option<Obedience>,
    ) -> Station {
        destinations.sort_unstable();
        destinations.dedup();
        destinations.shrink_to_fit();
        let queues = if in_turn { destinations.len() + 1 } else { 1 };
        let limiters = if obedience.is_some() { destinations.len() } else { 0 };
        Station {
            feed,
            outlet,
            destinations,
            queues: vec![EMPTY; queues],
            ready: vec![0; queues.div_ceil(64)],
            turn: 0,
            load: Load::default(),
            timer: Timer::IDLE,
            limiters: Vec::new(),
            limiter_of: vec![NONE; limiters],
            gated: Vec::new(),
            next_due: Time::NEVER,
            obedience,
            series: None,
        }
    }

    /// When the next frame is generated.
    pub(crate) fn generated(&self) -> Time {
        self.feed.as_ref().map_or(Time::NEVER, Feed::peek)
    }

    /// The place of a destination, which is one of the host's.
    pub(crate) fn place(&self, to: u32) -> u32 {
        self.destinations.partition_point(|&other| other < to) as u32
    }

    /// The place of notifications among the data, whoever they are for: behind those of all destinations, without a limiter.
    pub(crate) fn place_of_notifications(&self) -> u32 {
        self.destinations.len() as u32
    }

    /// How many destinations there are.
    pub(crate) fn places(&self) -> usize {
        self.destinations.len()
    }

    /// The destination with this place.
    pub(crate) fn destination(&self, place: u32) -> u32 {
        self.destinations[place as usize]
    }

    /// Whether one more frame has room; one that need not wait always has.
    pub(crate) fn has_room(&self, size: Bytes, begins: bool) -> bool {
        begins || self.outlet.limit.admits(self.load.frames + 1, self.load.bytes + size.count())
    }

    /// Whether a frame to `place` that comes now could pass all that waits: nothing waits, and nothing limits it.
    pub(crate) fn is_open(&self, place: u32) -> bool {
        self.load.frames == 0 && self.limiter(place).is_none_or(|limiter| limiter.rate.is_none())
    }

    pub(crate) fn limiter(&self, place: u32) -> Option<&Limiter> {
        self.limiters.get(*self.limiter_of.get(place as usize)? as usize)
    }

    /// The congestion point that limits the frames to `place`, if there is one.
    pub(crate) fn tag(&self, place: u32) -> u32 {
        self.limiter(place).filter(|limiter| limiter.rate.is_some()).map_or(NO_POINT, |limiter| limiter.cause)
    }

    /// A frame to `place` is sent without waiting.
    pub(crate) fn pass(&mut self, place: u32) {
        self.turn = self.queue_of(place) + 1;
    }

    pub(crate) fn queue_of(&self, place: u32) -> usize {
        if self.queues.len() == 1 { 0 } else { place as usize }
    }

    /// What a frame takes on the line.
    pub(crate) fn tx(&self, size: Bytes) -> Span {
        (size + self.outlet.framing) / self.outlet.rate
    }

    /// A frame to `place` begins to wait at `now`.
    pub(crate) fn push(&mut self, now: Time, frames: &mut Pool, id: FrameId, place: u32) {
        self.load.settle(now);
        self.load.frames += 1;
        self.load.bytes += frames[id].size().count();
        frames.keep(id, place);
        let queue = self.queue_of(place);
        let tail = std::mem::replace(&mut self.queues[queue].tail, id);
        if tail == NO_FRAME {
            self.queues[queue].head = id;
            self.admit(queue, now, frames);
        } else {
            frames[tail].next = id;
        }
    }

    /// A queue has a new first frame: it is ready, or waits for its limiter.
    pub(crate) fn admit(&mut self, queue: usize, now: Time, frames: &Pool) {
        let head = self.queues[queue].head;
        let place = frames.kept(head);
        let tx = self.tx(frames[head].size());
        if let Some(&id) = self.limiter_of.get(place as usize)
            && let Some(limiter) = self.limiters.get_mut(id as usize)
            && !limiter.may_send(now, tx)
        {
            limiter.gate(now);
            self.next_due = self.next_due.min(limiter.due);
            self.gated.push(id);
            return;
        }
        self.ready[queue / 64] |= 1 << (queue % 64);
    }

    /// Makes the queues ready whose limiters have a whole frame's worth.
    pub(crate) fn open_gates(&mut self, now: Time) {
        if self.next_due > now {
            return;
        }
        let mut next_due = Time::NEVER;
        let single = self.queues.len() == 1;
        let (limiters, ready) = (&mut self.limiters, &mut self.ready);
        self.gated.retain(|&id| {
            let limiter = &mut limiters[id as usize];
            if limiter.due > now {
                next_due = next_due.min(limiter.due);
                return true;
            }
            limiter.is_gated = false;
            limiter.accrue(now);
            let queue = if single { 0 } else { limiter.place as usize };
            ready[queue / 64] |= 1 << (queue % 64);
            false
        });
        self.next_due = next_due;
    }

    /// When a frame may be ready to be sent: nothing changes before.
    pub(crate) fn next(&self, now: Time) -> Time {
        if self.ready.iter().any(|&word| word != 0) { now } else { self.next_due.min(self.generated()) }
    }

    /// Takes the first frame of the next queue in turn that is ready, and its destination's place.
    pub(crate) fn take(&mut self, now: Time, frames: &Pool) -> Option<(FrameId, Bytes, u32)> {
        let queue = next_set(&self.ready, self.turn)?;
        let id = self.queues[queue].head;
        let (size, place, next) = (frames[id].size(), frames.kept(id), frames[id].next);
        self.load.settle(now);
        self.load.frames -= 1;
        self.load.bytes -= size.count();
        self.turn = queue + 1;
        self.queues[queue].head = next;
        if next == NO_FRAME {
            self.queues[queue] = EMPTY;
            self.ready[queue / 64] &= !(1 << (queue % 64));
        }
        if let Some(obedience) = &self.obedience {
            let tx = self.tx(size);
            let of_place = self.limiter_of.get(place as usize).copied().unwrap_or(NONE);
            let limiter = self.limiters.get_mut(of_place as usize);
            let is_limited = limiter.is_some();
            if let Some(limiter) = limiter {
                limiter.spend(now, tx);
                limiter.point.advance(now, &obedience.rules);
                limiter.point.on_sent(now, size, &obedience.rules);
                limiter.settle(now);
            }
            if next != NO_FRAME && (is_limited || self.queues.len() == 1) {
                self.ready[queue / 64] &= !(1 << (queue % 64));
                self.admit(queue, now, frames);
            }
        }
        Some((id, size, place))
    }

    /// Feedback of the congestion point `cause` about frames to `place` takes effect. Returns the limiter and when it
    /// changes by itself, if it does.
    pub(crate) fn on_feedback(
        &mut self,
        now: Time,
        place: u32,
        cause: u32,
        feedback: Feedback,
        frames: &Pool,
    ) -> Option<(u32, Time)> {
        let obedience = self.obedience.as_ref()?;
        if self.limiter_of[place as usize] == NONE {
            if !feedback.is_negative() {
                return None;
            }
            self.limiter_of[place as usize] = self.limiters.len() as u32;
            let pair = format!("{}/{}", self.outlet.host, self.destination(place));
            let stream = obedience.seed.stream(&format!("limiter/{pair}"));
            let chance = obedience.seed.stream(&format!("control/pacing/{pair}"));
            self.limiters.push(Limiter::new(place, stream, self.outlet.rate, obedience.how, chance, now));
        }
        let id = self.limiter_of[place as usize];
        let limiter = &mut self.limiters[id as usize];
        let change = limiter.point.on_feedback(now, feedback, &obedience.rules);
        if change != Change::Ignored && feedback.is_negative() {
            limiter.cause = cause;
        }
        self.settle(id, now, frames)
    }

    /// A change of limiter `id` is due.
    pub(crate) fn on_timeout(&mut self, now: Time, id: u32, frames: &Pool) -> Option<(u32, Time)> {
        let obedience = self.obedience.as_ref()?;
        self.limiters[id as usize].point.advance(now, &obedience.rules);
        self.settle(id, now, frames)
    }

    /// Takes over the rate of a limiter.
    pub(crate) fn settle(&mut self, id: u32, now: Time, frames: &Pool) -> Option<(u32, Time)> {
        let limiter = &mut self.limiters[id as usize];
        limiter.settle(now);
        let (place, timeout) = (limiter.place, limiter.plan());
        if limiter.is_gated {
            self.next_due = self.next_due.min(limiter.due);
        } else {
            // A queue that was ready under the old rate may have to wait now.
            let queue = self.queue_of(place);
            let head = self.queues[queue].head;
            if head != NO_FRAME && frames.kept(head) == place {
                self.ready[queue / 64] &= !(1 << (queue % 64));
                self.admit(queue, now, frames);
            }
        }
        timeout.map(|timeout| (id, timeout))
    }

    /// The frames that wait.
    pub(crate) fn waiting<'a>(&'a self, frames: &'a Pool) -> impl Iterator<Item = FrameId> + 'a {
        self.queues.iter().flat_map(|queue| frames.linked(queue.head))
    }

    /// Writes down the intervals of the limiters that ended up to `now`; nothing has happened since.
    pub(crate) fn write_rows(&mut self, now: Time, frames: &Pool) {
        let (Some(mut series), Some(obedience)) = (self.series.take(), &self.obedience) else { return };
        if series.boundary() <= now {
            let mut waiting = vec![0; self.destinations.len()];
            for id in self.waiting(frames) {
                if let Some(bytes) = waiting.get_mut(frames.kept(id) as usize) {
                    *bytes += frames[id].size().count();
                }
            }
            while series.boundary() <= now {
                let reaction = |place: usize| {
                    let limiter = self.limiters.get(self.limiter_of[place] as usize)?;
                    Some((&limiter.point, &obedience.rules))
                };
                series.mark(reaction, |place| waiting[place]);
            }
        }
        self.series = Some(series);
    }

    /// What each limiter did up to `end`: the place of its destination and its meter.
    pub(crate) fn meters(&mut self, end: Time) -> Vec<(u32, Meter)> {
        let Some(obedience) = &self.obedience else { return Vec::new() };
        let meter = |limiter: &mut Limiter| {
            limiter.point.advance(end, &obedience.rules);
            (limiter.place, limiter.point.meter())
        };
        self.limiters.iter_mut().map(meter).collect()
    }
}

/// The first set bit from `turn` on, round about.
pub(crate) fn next_set(words: &[u64], turn: usize) -> Option<usize> {
    let (first, bit) = (turn / 64, turn % 64);
    if let Some(&word) = words.get(first) {
        let rest = word & (u64::MAX << bit);
        if rest != 0 {
            return Some(first * 64 + rest.trailing_zeros() as usize);
        }
    }
    let after = (first + 1).min(words.len());
    let places = (after..words.len()).chain(0..after);
    places.into_iter().find(|&i| words[i] != 0).map(|i| i * 64 + words[i].trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use weir_core::ethernet::bcn;
    use weir_core::queue::Lane;

    use super::*;
    use crate::credit::Savings;
    use crate::frames::Frame;
    use crate::workloads::calibration;

    const SIZE: Bytes = Bytes::new(1500);

    fn limited_station(in_turn: bool) -> Station {
        let rate = Rate::from_gbit_per_s(10);
        let rules = Rules::new(&calibration().control, rate).expect("the calibration has limiters");
        let how = Manner { jitter: 0.0, savings: Savings::new(None, rate) };
        let obedience = Obedience { rules, how, seed: Seed::new(1) };
        let outlet = Outlet { host: 0, rate, framing: Bytes::ZERO, limit: Limit::UNLIMITED };
        let mut station = Station::new(outlet, None, vec![4, 2], in_turn, Some(obedience));
        for place in 0..2 {
            let less = Feedback::Bcn(bcn::Feedback::Change(-50.0));
            station.on_feedback(Time::ZERO, place, 7, less, &Pool::new());
        }
        station
    }

    #[test]
    fn a_notification_among_the_data_is_charged_to_no_limiter() {
        for in_turn in [false, true] {
            let (mut station, mut frames) = (limited_station(in_turn), Pool::new());
            let mut push = |station: &mut Station, place| {
                let id = frames.put(Frame::new(Time::ZERO, 0, 0, SIZE, Lane::Data));
                station.push(Time::ZERO, &mut frames, id, place);
            };
            let notifications = station.place_of_notifications();
            (0..3).for_each(|_| push(&mut station, notifications));
            let place = station.place(4);
            push(&mut station, place);
            let mut take = || station.take(Time::ZERO, &frames).map(|(_, _, place)| place);
            assert_eq!([take(), take(), take()], [Some(notifications); 3]);
            assert_eq!(take(), None, "the data waits for its limiter");
            assert_eq!(station.tag(notifications), NO_POINT);
        }
    }
}
