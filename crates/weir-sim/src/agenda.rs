//! What happens next: at most one pending event per entity, taken in the order (time, entity id).
//!
//! Up to [`FEW`] pending events stand in one sorted array. More go into a wheel of buckets, each about one event
//! wide; what lies beyond the wheel waits in a heap. The order does not depend on the widths, so that tuning them to
//! the measured gap between events is free of risk.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_core::units::{Span, Time};

/// An entity: what can have a pending event.
pub(crate) type Entity = u32;

/// Most pending events that one sorted array holds; beyond, the wheel is faster.
const FEW: usize = 24;
/// Pops after which the wheel is fitted to the gap between events for the first time; later it is each time twice
/// as many, up to [`LAST_FIT`].
const FIRST_FIT: u32 = 1 << 10;
const LAST_FIT: u32 = 1 << 16;

#[derive(Debug)]
pub(crate) struct Agenda {
    /// Pending events while there are few, the next one last.
    few: Vec<(Time, Entity)>,
    /// Pending events while there are many.
    wheel: Wheel,
    many: bool,
    /// [`FEW`]; the order does not depend on it.
    pub(crate) few_at_most: usize,
}

impl Agenda {
    /// An empty agenda for entities below `entities`. A first guess says that most events lie less than `horizon`
    /// ahead.
    pub(crate) fn new(entities: usize, horizon: Span) -> Agenda {
        Agenda { few: Vec::with_capacity(FEW + 1), wheel: Wheel::new(entities, horizon), many: false, few_at_most: FEW }
    }

    /// Enters an event of `entity`, which has none, not before the last one taken.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, entity: Entity) {
        if self.many {
            return self.wheel.push(at, entity);
        }
        let place = self.few.iter().rposition(|&pending| pending > (at, entity)).map_or(0, |place| place + 1);
        self.few.insert(place, (at, entity));
        if self.few.len() > self.few_at_most {
            self.grow();
        }
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, Entity)> {
        if !self.many {
            let next = self.few.pop()?;
            self.wheel.now = next.0;
            return Some(next);
        }
        let next = self.wheel.pop();
        if self.wheel.pops >= self.wheel.fit_at {
            self.retune();
        }
        next
    }

    #[cold]
    fn grow(&mut self) {
        self.many = true;
        (self.wheel.tuned, self.wheel.pops) = (self.wheel.now, 0);
        for (at, entity) in self.few.drain(..) {
            self.wheel.push(at, entity);
        }
    }

    #[cold]
    fn retune(&mut self) {
        self.wheel.fit();
        if self.wheel.len() <= self.few_at_most / 2 {
            self.many = false;
            self.few.extend(std::iter::from_fn(|| self.wheel.pop()));
            self.few.reverse();
        }
    }
}

/// Buckets of equal width, a power of two of ps, over a window that moves with time. A bucket is a sorted list,
/// linked through the entities.
#[derive(Debug)]
struct Wheel {
    /// The first entity of each bucket.
    heads: Vec<Entity>,
    /// One bit for each bucket that is not empty, and one for each word of these bits that is not zero.
    filled: Vec<u64>,
    filled_words: Vec<u64>,
    slots: Vec<Slot>,
    /// Bucket of an event: `at >> shift`, modulo the number of buckets.
    shift: u32,
    /// Time of the last event taken: start of the window.
    now: Time,
    /// Events in buckets.
    held: usize,
    /// Events beyond the window when they were entered.
    far: BinaryHeap<Reverse<(Time, Entity)>>,
    pops: u32,
    /// Pops at which the width is fitted.
    fit_at: u32,
    /// When `pops` was zero.
    tuned: Time,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    at: Time,
    next: Entity,
}

const NONE: Entity = Entity::MAX;

impl Wheel {
    fn new(entities: usize, horizon: Span) -> Wheel {
        let buckets = (entities / 2).next_power_of_two().clamp(4096, 65_536);
        Wheel {
            heads: vec![NONE; buckets],
            filled: vec![0; buckets / 64],
            filled_words: vec![0; buckets / 4096],
            slots: vec![Slot { at: Time::ZERO, next: NONE }; entities],
            shift: 64 - (horizon.ps() / buckets as u64).leading_zeros(),
            now: Time::ZERO,
            held: 0,
            far: BinaryHeap::new(),
            pops: 0,
            fit_at: FIRST_FIT,
            tuned: Time::ZERO,
        }
    }

    fn len(&self) -> usize {
        self.held + self.far.len()
    }

    #[inline]
    fn push(&mut self, at: Time, entity: Entity) {
        debug_assert!(at >= self.now, "an event in the past");
        let ahead = (at.ps() >> self.shift) - (self.now.ps() >> self.shift);
        if ahead >= self.heads.len() as u64 {
            return self.far.push(Reverse((at, entity)));
        }
        self.held += 1;
        let bucket = self.bucket(at);
        let mut next = self.heads[bucket];
        let mut before = NONE;
        while next != NONE && (self.slots[next as usize].at, next) < (at, entity) {
            before = next;
            next = self.slots[next as usize].next;
        }
        self.slots[entity as usize] = Slot { at, next };
        if before != NONE {
            self.slots[before as usize].next = entity;
            return;
        }
        self.heads[bucket] = entity;
        self.filled[bucket / 64] |= 1 << (bucket % 64);
        self.filled_words[bucket / 4096] |= 1 << (bucket / 64 % 64);
    }

    #[inline]
    fn pop(&mut self) -> Option<(Time, Entity)> {
        self.pops += 1;
        if self.held == 0 {
            return self.pop_far();
        }
        let bucket = self.first_filled();
        let entity = self.heads[bucket];
        let Slot { at, next } = self.slots[entity as usize];
        if self.far.peek().is_some_and(|&Reverse(far)| far < (at, entity)) {
            return self.pop_far();
        }
        self.heads[bucket] = next;
        if next == NONE {
            self.filled[bucket / 64] &= !(1 << (bucket % 64));
            if self.filled[bucket / 64] == 0 {
                self.filled_words[bucket / 4096] &= !(1 << (bucket / 64 % 64));
            }
        }
        self.held -= 1;
        self.now = at;
        Some((at, entity))
    }

    fn pop_far(&mut self) -> Option<(Time, Entity)> {
        let Reverse((at, entity)) = self.far.pop()?;
        self.now = at;
        Some((at, entity))
    }

    #[inline]
    fn bucket(&self, at: Time) -> usize {
        (at.ps() >> self.shift) as usize & (self.heads.len() - 1)
    }

    /// The first bucket with an event, from the current one on. There is one.
    #[inline]
    fn first_filled(&self) -> usize {
        let current = self.bucket(self.now);
        let (word, bits) = (current / 64, self.filled[current / 64] >> (current % 64));
        if bits != 0 {
            return current + bits.trailing_zeros() as usize;
        }
        let word = self.next_filled_word(word);
        word * 64 + self.filled[word].trailing_zeros() as usize
    }

    /// The first word with a bucket that is not empty after `word`, round the wheel and back to it.
    fn next_filled_word(&self, word: usize) -> usize {
        let after = (word + 1) % self.filled.len();
        let (group, bits) = (after / 64, self.filled_words[after / 64] >> (after % 64));
        if bits != 0 {
            return after + bits.trailing_zeros() as usize;
        }
        let groups = self.filled_words.len();
        let turn = (1..=groups).map(|step| (group + step) % groups);
        let group = turn.into_iter().find(|&group| self.filled_words[group] != 0).expect("a bucket is filled");
        group * 64 + self.filled_words[group].trailing_zeros() as usize
    }

    /// Fits the width of the buckets to the mean gap between the events taken since the last time.
    fn fit(&mut self) {
        let gap = (self.now - self.tuned).ps() / u64::from(self.pops);
        (self.tuned, self.pops) = (self.now, 0);
        self.fit_at = (2 * self.fit_at).min(LAST_FIT);
        let shift = (64 - gap.leading_zeros()).saturating_sub(1);
        if shift == self.shift {
            return;
        }
        let mut pending: Vec<(Time, Entity)> = self.far.drain().map(|Reverse(event)| event).collect();
        for head in &mut self.heads {
            let mut entity = std::mem::replace(head, NONE);
            while entity != NONE {
                let Slot { at, next } = self.slots[entity as usize];
                pending.push((at, entity));
                entity = next;
            }
        }
        self.filled.fill(0);
        self.filled_words.fill(0);
        self.held = 0;
        self.shift = shift;
        for (at, entity) in pending {
            self.push(at, entity);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Far and near, crowded and sparse, and often at the same time.
    fn ahead() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => 0u64..3_000,
            2 => Just(1_700_000u64),
            2 => 0u64..2_000_000,
            1 => 0u64..1 << 40,
            1 => Just(0u64),
        ]
    }

    proptest! {
        /// Events leave in the order of a sorted set, whether the agenda is an array or a wheel, however often and
        /// to whatever widths the wheel is fitted.
        #[test]
        fn events_leave_in_the_order_of_time_and_entity(
            steps in prop::collection::vec((ahead(), 0u8..100), 1..3_000),
            entities in 1usize..400, horizon in 1u64..1 << 36, fit_at in 1u32..300, busy in 20u8..100,
        ) {
            let mut agenda = Agenda::new(entities, Span::from_ps(horizon));
            agenda.wheel.fit_at = fit_at;
            let mut expected = BTreeSet::new();
            let mut idle: Vec<Entity> = (0..entities as Entity).rev().collect();
            let mut now = Time::ZERO;
            for (ahead, dice) in steps {
                match idle.pop().filter(|_| dice < busy) {
                    Some(entity) => {
                        let at = now + Span::from_ps(ahead);
                        agenda.push(at, entity);
                        expected.insert((at, entity));
                    }
                    None => {
                        let next = expected.pop_first();
                        prop_assert_eq!(agenda.pop(), next);
                        if let Some((at, entity)) = next {
                            now = at;
                            idle.push(entity);
                        }
                    }
                }
            }
            for event in expected {
                prop_assert_eq!(agenda.pop(), Some(event));
            }
            prop_assert_eq!(agenda.pop(), None);
        }
    }

    #[test]
    fn an_agenda_changes_between_array_and_wheel() {
        let mut agenda = Agenda::new(100, Span::from_ps(1_000_000));
        for entity in 0..100 {
            agenda.push(Time::from_ps(u64::from(entity) * 1000), entity);
        }
        assert!(agenda.many);
        let mut last = Time::ZERO;
        for _ in 0..4 * FIRST_FIT {
            let (at, entity) = agenda.pop().expect("an event is pending");
            assert!(at >= last);
            last = at;
            if entity < 5 {
                agenda.push(at + Span::from_ps(777), entity);
            }
        }
        assert!(!agenda.many, "five events are few");
    }
}
