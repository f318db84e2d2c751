//! What happens next, taken in the order (time, entity id).
//!
//! A wheel of buckets of equal width over a window that moves with time; what lies beyond waits in a heap. A bucket
//! is put in order when its time has come. Buckets are a few events wide, or, while few events are pending, so wide
//! that the current one is all there is: a sorted array. The order does not depend on the width, so that fitting it
//! is free of risk.
//!
//! Where a crowd has events at one instant no width helps. Then only the front of the current bucket is that array, and
//! the others stand behind it: in order what was there when its time came, in a heap what comes in the meantime.

mod rest;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_core::units::Time;

use self::rest::Rest;

/// An entity: what can have a pending event.
pub(crate) type Entity = u32;

#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// The first events of the current bucket, the next one last; see [`Agenda::key`].
    current: Vec<u64>,
    /// The others of the current bucket: no key is less than `behind`, none in front is greater.
    rest: Rest,
    behind: u64,
    /// Number of the current bucket since time zero, and when it starts.
    slot: u64,
    start: u64,
    /// Number of the bucket of an event: `at >> shift`.
    shift: u32,
    /// How many events each other bucket of the window holds; at most [`ROOM`] are counted.
    counts: Vec<u8>,
    buckets: Vec<Bucket>,
    /// The last event that found no room in each bucket: a place in `spare`.
    crowds: Vec<u32>,
    /// Events that found no room: the key, and the one that found none before it, or the next free place.
    spare: Vec<(u64, u32)>,
    free: u32,
    /// Events beyond the window when they were entered.
    far: BinaryHeap<Reverse<(Time, Entity)>>,
    /// Since the width was fitted last, at `since` ps: events that came to be current, events that were entered beyond
    /// the window, and empty buckets passed over.
    taken: usize,
    beyond: usize,
    passed: usize,
    since: u64,
    /// The first bucket of which events were not shown.
    shown: u64,
    /// How much work makes it time to fit it again.
    fit_at: usize,
    /// By how many powers of two the window is longer than the gap between events asks for.
    stretch: u32,
    /// [`FEW`]; the order does not depend on it.
    pub(crate) few: usize,
}

/// The events of a bucket, in any order: a cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket([u64; ROOM]);

const ROOM: usize = 8;
/// Events that are shown ahead at a time; an empty bucket counts as one.
pub(crate) const SHOWN: usize = 20;
const NONE: u32 = u32::MAX;
/// Up to so many pending events, one sorted array is faster than buckets.
const FEW: usize = 24;
/// So many events of a crowd come to the front at a time; more than [`CROWDED`] do not stand there.
const FRONT: usize = 32;
const CROWDED: usize = 128;
/// Widest buckets: times in them fit into 32 bits.
const MAX_SHIFT: u32 = 32;
/// Events per bucket that the width is fitted to, as a power of two.
const CROWD: u32 = 1;
/// How far the window is stretched at most: what lies beyond costs little, crowded buckets cost more.
const MAX_STRETCH: u32 = 6;
/// Empty buckets that are as much work as an event.
const EMPTY_PER_EVENT: usize = 16;
/// Work after which the width is fitted for the first time; later it is each time twice as much, up to [`LAST_FIT`].
const FIRST_FIT: usize = 1 << 8;
const LAST_FIT: usize = 1 << 16;

impl Agenda {
    /// An empty agenda for about so many events at a time.
    pub(crate) fn new(entities: usize) -> Agenda {
        let buckets = (entities / 8).next_power_of_two().clamp(512, 65_536);
        Agenda {
            behind: u64::MAX,
            shift: MAX_SHIFT,
            counts: vec![0; buckets],
            buckets: vec![Bucket([0; ROOM]); buckets],
            crowds: vec![NONE; buckets],
            free: NONE,
            fit_at: FIRST_FIT,
            few: FEW,
            ..Agenda::default()
        }
    }

    /// Enters an event of `entity`, not before the last one taken.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, entity: Entity) {
        let slot = self.slot_of(at);
        let ahead = slot - self.slot;
        let key = self.key(at, entity);
        if ahead == 0 {
            return self.push_current(key);
        }
        if ahead >= self.counts.len() as u64 {
            return self.push_far(at, entity);
        }
        let bucket = slot as usize & (self.counts.len() - 1);
        let count = &mut self.counts[bucket];
        if let Some(place) = self.buckets[bucket].0.get_mut(usize::from(*count)) {
            *place = key;
            *count += 1;
        } else {
            self.push_spare(bucket, key);
        }
    }

    /// Takes the next event of the front of the current bucket.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, Entity)> {
        let key = self.current.pop()?;
        Some((self.time(key), key as Entity))
    }

    /// Whether the front is empty: it is time to [`Agenda::turn`].
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_empty()
    }

    /// Whether there are events that come soon and were not shown.
    #[inline(always)]
    pub(crate) fn has_more_to_show(&self) -> bool {
        self.shown <= self.slot
    }

    /// Shows whose the next events are: of the current bucket and of those behind it, about [`SHOWN`].
    #[inline(always)]
    pub(crate) fn show(&mut self, mut see: impl FnMut(Entity)) {
        let (mut keys, mut count) = (&self.current[..], 0);
        self.shown = self.slot;
        loop {
            keys.iter().for_each(|&key| see(key as Entity));
            (count, self.shown) = (count + keys.len() + 1, self.shown + 1);
            if count > SHOWN {
                return;
            }
            let bucket = self.shown as usize & (self.counts.len() - 1);
            keys = &self.buckets[bucket].0[..usize::from(self.counts[bucket])];
        }
    }

    #[inline(never)]
    fn push_current(&mut self, key: u64) {
        self.taken += 1;
        if key >= self.behind {
            return self.rest.late.push(Reverse(key));
        }
        insert(&mut self.current, key);
        if self.current.len() / 2 > self.few {
            self.thin();
        }
    }

    /// How much work makes it time to fit the width again. One array is too much for many events.
    #[inline]
    fn enough(&self) -> usize {
        let is_crowded = self.shift == MAX_SHIFT && (self.behind != u64::MAX || self.current.len() / 2 > self.few);
        if is_crowded { FIRST_FIT } else { self.fit_at }
    }

    /// Many events are current: perhaps the buckets are too wide, or it is a crowd.
    #[cold]
    fn thin(&mut self) {
        if self.taken >= self.enough() {
            self.fit();
        } else if self.current.len() > CROWDED {
            let behind = self.current.len() - FRONT;
            self.rest.late.extend(self.current.drain(..behind).map(Reverse));
            self.behind = self.rest.least();
        }
    }

    /// The current events are a crowd in order: most of them step behind those at the front.
    #[cold]
    fn step_behind(&mut self) {
        debug_assert!(self.rest.sorted.is_empty(), "a bucket is taken when the one before is over");
        let front = self.current.split_off(self.current.len() - FRONT);
        self.rest.sorted = std::mem::replace(&mut self.current, front);
        self.behind = self.rest.least();
    }

    /// Fills the front with the next events of a crowd.
    #[cold]
    fn step_forward(&mut self) {
        self.current.extend(std::iter::from_fn(|| self.rest.pop()).take(FRONT));
        self.current.reverse();
        self.behind = self.rest.least();
    }

    #[inline]
    fn push_spare(&mut self, bucket: usize, key: u64) {
        let before = self.crowds[bucket];
        if let Some(place) = self.spare.get_mut(self.free as usize) {
            self.crowds[bucket] = std::mem::replace(&mut self.free, place.1);
            *place = (key, before);
        } else {
            self.crowds[bucket] = self.spare.len() as u32;
            self.spare.push((key, before));
        }
    }

    #[cold]
    fn push_far(&mut self, at: Time, entity: Entity) {
        self.far.push(Reverse((at, entity)));
        self.beyond += 1;
    }

    /// Brings the next events to the front, which is empty: of the current bucket, or of the next one with events.
    #[inline(never)]
    pub(crate) fn turn(&mut self) {
        if self.taken + self.passed / EMPTY_PER_EVENT >= self.enough() {
            self.fit();
            if !self.current.is_empty() {
                return;
            }
        }
        if self.behind != u64::MAX {
            return self.step_forward();
        }
        let far = self.far.peek().map_or(u64::MAX, |&Reverse((at, _))| self.slot_of(at));
        let next = self.next_filled().unwrap_or(u64::MAX);
        match next.min(far) {
            u64::MAX => return,
            slot => self.go_to(slot),
        }
        if next <= far {
            let bucket = self.slot as usize & (self.counts.len() - 1);
            let count = usize::from(std::mem::take(&mut self.counts[bucket]));
            for &key in &self.buckets[bucket].0[..count] {
                insert(&mut self.current, key);
            }
            if count == ROOM {
                self.take_crowd(bucket);
            }
        }
        if far <= next {
            self.take_far();
        }
        self.taken += self.current.len();
        if self.current.len() > CROWDED {
            self.step_behind();
        }
    }

    /// Adds the events that found no room in a bucket to the current ones.
    fn take_crowd(&mut self, bucket: usize) {
        let mut place = std::mem::replace(&mut self.crowds[bucket], NONE);
        if place == NONE {
            return;
        }
        while place != NONE {
            let (key, next) = &mut self.spare[place as usize];
            self.current.push(*key);
            let before = std::mem::replace(next, self.free);
            self.free = std::mem::replace(&mut place, before);
        }
        self.current.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Adds the events of the heap that lie in the current bucket.
    #[cold]
    fn take_far(&mut self) {
        while let Some(&Reverse((at, entity))) = self.far.peek().filter(|far| self.slot_of(far.0.0) == self.slot) {
            self.far.pop();
            self.current.push(self.key(at, entity));
        }
        self.current.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// The order within a bucket: ps since its start, then the entity.
    #[inline]
    fn key(&self, at: Time, entity: Entity) -> u64 {
        (at.ps() & !(u64::MAX << (self.shift & 63))) << 32 | u64::from(entity)
    }

    /// The number of the bucket of an event.
    #[inline]
    fn slot_of(&self, at: Time) -> u64 {
        at.ps() >> (self.shift & 63)
    }

    /// Makes the bucket with this number the current one.
    #[inline]
    fn go_to(&mut self, slot: u64) {
        (self.slot, self.start) = (slot, slot << (self.shift & 63));
    }

    /// The time of an event of the current bucket.
    #[inline]
    fn time(&self, key: u64) -> Time {
        Time::from_ps(self.start + (key >> 32))
    }

    /// The number of the next bucket of the window with events.
    #[inline(always)]
    fn next_filled(&mut self) -> Option<u64> {
        let from = (self.slot as usize + 1) & (self.counts.len() - 1);
        let (before, after) = self.counts.split_at(from);
        let filled = |counts: &[u8]| counts.iter().position(|&count| count != 0);
        let passed = filled(after).or_else(|| Some(after.len() + filled(before)?))?;
        self.passed += passed;
        Some(self.slot + 1 + passed as u64)
    }

    /// Fits the width of the buckets to the gap between the events taken since the last time, and the window to how
    /// far ahead events were entered.
    #[cold]
    fn fit(&mut self) {
        let start = self.start;
        let mut pending = self.take_all();
        if self.beyond > self.taken / 8 {
            self.stretch = (self.stretch + 1).min(MAX_STRETCH);
        } else if self.beyond < self.taken / 16 {
            self.stretch = self.stretch.saturating_sub(1);
        }
        // A wider bucket may begin before the width was fitted last.
        let gap = match start.saturating_sub(self.since) / self.taken.max(1) as u64 {
            0 if !pending.is_empty() => {
                let half = pending.len() / 2;
                let (_, median, _) = pending.select_nth_unstable(half);
                (median.0.ps() - start) / half.max(1) as u64
            }
            gap => gap,
        };
        let width = 64 - gap.leading_zeros() + CROWD + self.stretch;
        self.shift = if pending.len() > self.few { width.min(MAX_SHIFT) } else { MAX_SHIFT };
        (self.taken, self.beyond, self.passed, self.since) = (0, 0, 0, start);
        self.shown = 0;
        self.fit_at = (2 * self.fit_at).clamp(1, LAST_FIT);
        self.go_to(start >> self.shift);
        for (at, entity) in pending {
            if self.slot_of(at) == self.slot {
                self.current.push(self.key(at, entity));
            } else {
                self.push(at, entity);
            }
        }
        self.current.sort_unstable_by(|a, b| b.cmp(a));
        if self.current.len() > CROWDED {
            self.step_behind();
        }
    }

    /// Takes out all events, in any order.
    fn take_all(&mut self) -> Vec<(Time, Entity)> {
        let mut pending = Vec::new();
        loop {
            pending.extend(std::iter::from_fn(|| self.pop()));
            while self.behind != u64::MAX {
                self.step_forward();
                pending.extend(std::iter::from_fn(|| self.pop()));
            }
            match self.next_filled() {
                None => break,
                Some(slot) => self.go_to(slot),
            }
            let bucket = self.slot as usize & (self.counts.len() - 1);
            let count = usize::from(std::mem::take(&mut self.counts[bucket]));
            self.current.extend_from_slice(&self.buckets[bucket].0[..count]);
            self.take_crowd(bucket);
        }
        pending.extend(self.far.drain().map(|Reverse(event)| event));
        pending
    }
}

/// Puts `key` into its place among `keys`, the least of which is last. Without a branch that depends on the keys:
/// there is nothing to foretell about their order.
#[inline]
fn insert(keys: &mut Vec<u64>, key: u64) {
    let mut least = key;
    for other in keys.iter_mut() {
        (*other, least) = ((*other).max(least), (*other).min(least));
    }
    keys.push(least);
}

#[cfg(test)]
mod tests;
