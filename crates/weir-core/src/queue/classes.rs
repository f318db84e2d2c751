//! The data lane of a port whose frames do not wait in plain order: up to eight traffic classes, each with a queue and a discipline
//! of its own, and a scheduler that says which sends next. A queue under active management is the case of one class.

use std::collections::VecDeque;

use super::aqm::custom::Managements;
use super::aqm::{Discarded, Dropped, Label, Managed, Waiting};
use super::counters::Pauses;
use super::limit::Limit;
use super::scheduler::{ClassSet, Scheduler};
use crate::marking::Ecn;
use crate::rng::Stream;
use crate::row;
use crate::spec;
use crate::spec::classes::{CLASSES, Order, Trim};
use crate::units::{Bytes, Time};

row! {
    /// What a queue of a class counted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ClassCounters {
        /// Frames of the class whose transmission began.
        pub frames: u64,
        /// Their bytes.
        pub bytes: u64,
        /// Frames that the queue of the class dropped.
        pub drops: u64,
        /// Their bytes.
        pub dropped_bytes: u64,
        /// Most bytes of the class that waited.
        pub queue_max_bytes: u64,
        /// Integral over time of the bytes that waited.
        pub queue_byte_ps: u128,
        /// Sum of the times that frames waited.
        pub queue_wait_ps: u128,
        pub holds: Pauses => held,
    }
}

/// The queues of a port.
#[derive(Debug)]
pub(super) struct Classes<H> {
    list: Vec<Class<H>>,
    /// Place in `list` of each class; those of a port with one queue have it in common.
    places: [u8; CLASSES as usize],
    /// None if there is one queue.
    scheduler: Option<Scheduler>,
    held: ClassSet,
    /// Up to when the integrals of the classes are counted.
    settled: Time,
    /// How many frames came, if frames leave in order of arrival.
    came: Option<u64>,
    /// Frames whose payload was cut, that the caller has not taken yet.
    trimmed: VecDeque<(H, Trim)>,
}

#[derive(Debug)]
struct Class<H> {
    number: u8,
    limit: Limit,
    queue: Managed<H>,
    /// The places of its frames in the order of arrival, if frames leave in that order.
    arrivals: VecDeque<u64>,
    counters: ClassCounters,
    held_since: Time,
    /// What becomes of packets without room, and the chance of that.
    trim: Option<(Trim, Stream)>,
}

impl<H: Copy> Class<H> {
    fn new(number: u8, limit: Limit, queue: Managed<H>) -> Class<H> {
        let counters = ClassCounters::default();
        Class { number, limit, queue, arrivals: VecDeque::new(), counters, held_since: Time::ZERO, trim: None }
    }
}

impl<H: Copy> Classes<H> {
    /// One queue for all classes.
    pub(super) fn one(queue: Managed<H>, limit: Limit) -> Classes<H> {
        Classes {
            list: vec![Class::new(0, limit, queue)],
            places: [0; CLASSES as usize],
            scheduler: None,
            held: ClassSet::NONE,
            settled: Time::ZERO,
            came: None,
            trimmed: VecDeque::new(),
        }
    }

    /// The queues of `spec`; `stream` is the chance of the queue of a class.
    pub(super) fn new(
        spec: &spec::classes::Classes,
        stream: impl Fn(u8) -> Stream,
        others: &Managements,
    ) -> Classes<H> {
        let mut places = [0; CLASSES as usize];
        for (place, class) in (0..).zip(&spec.list) {
            places[usize::from(class.class)] = place;
        }
        let class = |class: &spec::classes::Class| {
            let queue = Managed::of(&class.discipline, stream(class.class), others);
            let trim = class.trim.map(|trim| (trim, stream(CLASSES + class.class)));
            Class { trim, ..Class::new(class.class, class.discipline.limit().into(), queue) }
        };
        Classes {
            list: spec.list.iter().map(class).collect(),
            places,
            scheduler: Some(Scheduler::new(spec)),
            held: ClassSet::NONE,
            settled: Time::ZERO,
            came: (spec.order == Order::Arrival).then_some(0),
            trimmed: VecDeque::new(),
        }
    }

    fn of(&self, class: u8) -> &Class<H> {
        &self.list[usize::from(self.places[usize::from(class)])]
    }

    /// A frame comes. With `serves` it will be asked for at once if nothing holds it, so that it needs no room.
    pub(super) fn enqueue(&mut self, frame: Waiting<H>, serves: bool) {
        self.settle(frame.since);
        let frame = if frame.label.trims && !serves { self.trim(frame) } else { frame };
        let number = frame.label.class;
        let is_held = self.held.contains(number);
        let class = &mut self.list[usize::from(self.places[usize::from(number)])];
        let before = class.queue.frames();
        class.queue.enqueue(frame, class.limit, serves && !is_held);
        if let Some(came) = &mut self.came
            && class.queue.frames() > before
        {
            class.arrivals.push_back(*came);
            *came += 1;
        }
        if !serves || is_held {
            class.counters.queue_max_bytes = class.counters.queue_max_bytes.max(class.queue.bytes());
        }
    }

    /// A packet comes whose payload may be cut: what joins a queue now, itself or the header of another in the place of which it waits.
    fn trim(&mut self, frame: Waiting<H>) -> Waiting<H> {
        let class = &mut self.list[usize::from(self.places[usize::from(frame.label.class)])];
        let Some((trim, chance)) = &mut class.trim else { return frame };
        if class.queue.has_room(frame.size, class.limit) {
            return frame;
        }
        let swaps = chance.next_u64() % 2 == 0;
        let fits = |last: &Waiting<H>| swaps && last.label.trims && last.size == frame.size;
        let cut = match class.queue.take_last(fits) {
            Some(last) => {
                class.queue.enqueue(frame, class.limit, false);
                last
            }
            None => frame,
        };
        self.trimmed.push_back((cut.handle, *trim));
        let label = Label { class: trim.class, trims: false, ecn: Ecn::NotEct, ..cut.label };
        Waiting { size: trim.size_bytes, label, since: frame.since, marked: false, ..cut }
    }

    /// A frame whose payload was cut, and how.
    pub(super) fn take_trimmed(&mut self) -> Option<(H, Trim)> {
        self.trimmed.pop_front()
    }

    /// The next frame, if one may go.
    pub(super) fn dequeue(&mut self, now: Time) -> Option<Waiting<H>> {
        self.settle(now);
        let Some(scheduler) = &mut self.scheduler else {
            let class = &mut self.list[0];
            let frame = class.queue.dequeue(now)?;
            class.counters.frames += 1;
            class.counters.bytes += frame.size.count();
            return Some(frame);
        };
        loop {
            let waiting = self.list.iter().filter(|class| class.queue.frames() > 0).map(|class| class.number);
            let ready = waiting.collect::<ClassSet>().without(self.held);
            let (list, places) = (&mut self.list, &self.places);
            let place = |class: u8| usize::from(places[usize::from(class)]);
            let first = |class: u8| list[place(class)].arrivals.front().copied().unwrap_or(0);
            let number = scheduler.next(ready, first)?;
            let class = &mut list[place(number)];
            let frame = class.queue.dequeue(now);
            // Its discipline may have dropped some.
            while class.arrivals.len() as u64 > class.queue.frames() {
                class.arrivals.pop_front();
            }
            if class.queue.frames() == 0 {
                scheduler.on_empty(number);
            }
            if let Some(frame) = frame {
                scheduler.on_sent(number, frame.size);
                class.counters.frames += 1;
                class.counters.bytes += frame.size.count();
                return Some(frame);
            }
        }
    }

    /// No frame of `classes` begins from `now` on.
    pub(super) fn hold(&mut self, now: Time, classes: ClassSet) {
        for class in self.list.iter_mut().filter(|class| classes.without(self.held).contains(class.number)) {
            class.held_since = now;
            class.counters.holds.count += 1;
        }
        self.held = self.held.with(classes);
    }

    /// Frames of `classes` may go again from `now` on.
    pub(super) fn release(&mut self, now: Time, classes: ClassSet) {
        for class in self.list.iter_mut().filter(|class| self.held.contains(class.number)) {
            if classes.contains(class.number) {
                class.counters.holds = class.counters.holds.with(class.held_since, now);
            }
        }
        self.held = self.held.without(classes);
    }

    /// What may wait of `class` from now on.
    pub(super) fn set_limit(&mut self, class: u8, limit: Limit) {
        self.list[usize::from(self.places[usize::from(class)])].limit = limit;
    }

    /// Drops all that waits; the caller has it.
    pub(super) fn clear(&mut self, now: Time) -> Vec<H> {
        self.settle(now);
        for class in &mut self.list {
            class.arrivals.clear();
            if let Some(scheduler) = &mut self.scheduler {
                scheduler.on_empty(class.number);
            }
        }
        self.list.iter_mut().flat_map(|class| class.queue.clear()).collect()
    }

    /// Drops all that waits of `class`; the caller has it.
    pub(super) fn clear_class(&mut self, now: Time, class: u8) -> Vec<H> {
        self.settle(now);
        let queue = &mut self.list[usize::from(self.places[usize::from(class)])];
        queue.arrivals.clear();
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.on_empty(class);
        }
        queue.queue.clear()
    }

    /// Whether a frame waits that is not held.
    pub(super) fn is_ready(&self) -> bool {
        let may_go = |class: &Class<H>| self.scheduler.is_none() || !self.held.contains(class.number);
        self.list.iter().any(|class| class.queue.frames() > 0 && may_go(class))
    }

    pub(super) fn frames(&self) -> u64 {
        self.list.iter().map(|class| class.queue.frames()).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.list.iter().map(|class| class.queue.bytes()).sum()
    }

    /// Bytes that wait with the frames of `class`.
    pub(super) fn bytes_of(&self, class: u8) -> u64 {
        self.of(class).queue.bytes()
    }

    /// What was dropped since it was asked last.
    pub(super) fn count_dropped(&mut self) -> Dropped {
        let mut all = Dropped::default();
        for class in &mut self.list {
            let dropped = class.queue.count_dropped();
            class.counters.drops += dropped.frames;
            class.counters.dropped_bytes += dropped.bytes;
            all = Dropped { frames: all.frames + dropped.frames, bytes: all.bytes + dropped.bytes };
        }
        all
    }

    /// Counts a frame of `class` that was dropped on behalf of the port.
    pub(super) fn count_drop(&mut self, class: u8, size: Bytes) {
        let counters = &mut self.list[usize::from(self.places[usize::from(class)])].counters;
        counters.drops += 1;
        counters.dropped_bytes += size.count();
    }

    pub(super) fn take_discarded(&mut self) -> Option<Discarded<H>> {
        self.list.iter_mut().find_map(|class| class.queue.take_discarded())
    }

    /// All that waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = H> + '_ {
        self.list.iter().flat_map(|class| class.queue.waiting())
    }

    /// What each class counted up to `now`.
    pub(super) fn counters_at(&mut self, now: Time) -> Vec<(u8, ClassCounters)> {
        self.settle(now);
        let counters = |class: &Class<H>| {
            let held = self.held.contains(class.number);
            let holds = class.counters.holds;
            let holds = if held { holds.with(class.held_since, now) } else { holds };
            (class.number, ClassCounters { holds, ..class.counters })
        };
        if self.scheduler.is_none() { Vec::new() } else { self.list.iter().map(counters).collect() }
    }

    fn settle(&mut self, now: Time) {
        let span = u128::from(now.saturating_since(self.settled).ps());
        self.settled = now;
        for class in &mut self.list {
            class.counters.queue_byte_ps += span * u128::from(class.queue.bytes());
            class.counters.queue_wait_ps += span * u128::from(class.queue.frames());
        }
    }
}
