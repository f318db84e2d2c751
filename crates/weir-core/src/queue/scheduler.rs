//! Which traffic class of a port sends next: in order of arrival, by strict priority, by deficit weighted round-robin, or by both
//! as in the enhanced transmission selection of IEEE 802.1Q.
//!
//! Classes without a weight are strict: the highest number goes first. The others take turns. A class in its turn gets a
//! credit of its weight times the quantum and sends until it is used up; what it sent beyond it counts in its next turn. A class whose queue becomes
//! empty loses what is left.
//!
//! Source: IEEE 802.1Q-2018, 8.6.8.1 (strict priority), 8.6.8.3 (enhanced transmission selection)
//! Source: Shreedhar Varghese 1996, section 3 (deficit round-robin)
//! DEVIATION: a class may send while it has any credit and then owes the rest, as in RFC 8290, 4.1.2: which frame a discipline
//! will send, and how long it is, is not known before it is asked.

use crate::spec::classes::{CLASSES, Classes, Order};
use crate::units::Bytes;

/// Some of the eight traffic classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSet(u8);

impl ClassSet {
    /// None of them.
    pub const NONE: ClassSet = ClassSet(0);
    /// All.
    pub const ALL: ClassSet = ClassSet(u8::MAX);

    /// Class `class` alone.
    pub const fn of(class: u8) -> ClassSet {
        ClassSet(1 << class)
    }

    /// Those of either.
    #[must_use]
    pub const fn with(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 | other.0)
    }

    /// Those that are not of `other`.
    #[must_use]
    pub const fn without(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 & !other.0)
    }

    /// Whether `class` is among them.
    pub const fn contains(self, class: u8) -> bool {
        self.0 >> class & 1 != 0
    }

    /// One after the other, the lowest first.
    pub fn list(self) -> impl Iterator<Item = u8> {
        (0..CLASSES).filter(move |&class| self.contains(class))
    }

    /// Whether none is.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The highest.
    fn highest(self) -> Option<u8> {
        self.0.checked_ilog2().map(|class| class as u8)
    }

    /// The next one after `class`, round about; `class` itself comes last.
    fn after(self, class: u8) -> Option<u8> {
        let turned = self.0.rotate_right(u32::from(class) + 1);
        (turned != 0).then(|| (class + 1 + turned.trailing_zeros() as u8) % CLASSES)
    }
}

impl FromIterator<u8> for ClassSet {
    fn from_iter<T: IntoIterator<Item = u8>>(classes: T) -> ClassSet {
        classes.into_iter().fold(ClassSet::NONE, |set, class| set.with(ClassSet::of(class)))
    }
}

/// The state of the choice.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler {
    in_order: bool,
    /// The classes without a weight.
    strict: ClassSet,
    /// What each class may send in its turn.
    quanta: [i64; CLASSES as usize],
    credit: [i64; CLASSES as usize],
    /// Whose turn it is.
    turn: u8,
}

impl Scheduler {
    /// That of `spec`, which has passed its check.
    pub(crate) fn new(spec: &Classes) -> Scheduler {
        let quantum = match spec.order {
            Order::Arrival => 0,
            Order::Class { quantum_bytes } => quantum_bytes.count(),
        };
        let mut quanta = [0; CLASSES as usize];
        for class in &spec.list {
            quanta[usize::from(class.class)] = (quantum * u64::from(class.weight.unwrap_or(0))) as i64;
        }
        Scheduler {
            in_order: spec.order == Order::Arrival,
            strict: spec.list.iter().filter(|class| class.weight.is_none()).map(|class| class.class).collect(),
            quanta,
            credit: [0; CLASSES as usize],
            turn: 0,
        }
    }

    /// The class that sends next of those that are `ready`; `first` is the place in the order of arrival of the first frame of a class.
    pub(crate) fn next(&mut self, ready: ClassSet, first: impl Fn(u8) -> u64) -> Option<u8> {
        if self.in_order {
            return (0..CLASSES).filter(|&class| ready.contains(class)).min_by_key(|&class| first(class));
        }
        let sharing = ready.without(self.strict);
        if let Some(class) = ready.without(sharing).highest() {
            return Some(class);
        }
        while !(sharing.contains(self.turn) && self.credit[usize::from(self.turn)] > 0) {
            self.turn = sharing.after(self.turn)?;
            self.credit[usize::from(self.turn)] += self.quanta[usize::from(self.turn)];
        }
        Some(self.turn)
    }

    /// A frame of `class` was sent.
    pub(crate) fn on_sent(&mut self, class: u8, size: Bytes) {
        self.credit[usize::from(class)] -= if self.strict.contains(class) { 0 } else { size.count() as i64 };
    }

    /// The queue of `class` has become empty, whatever became of its last frame. What it owes it still owes.
    pub(crate) fn on_empty(&mut self, class: u8) {
        let credit = &mut self.credit[usize::from(class)];
        *credit = (*credit).min(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_after_another_goes_round_about() {
        let set: ClassSet = [1, 4, 7].into_iter().collect();
        assert_eq!((0..CLASSES).map(|class| set.after(class)).collect::<Vec<_>>(), [1, 4, 4, 4, 7, 7, 7, 1].map(Some));
        assert_eq!(ClassSet::of(3).after(3), Some(3));
        assert_eq!(ClassSet::NONE.after(3), None);
        assert_eq!((set.highest(), ClassSet::NONE.highest()), (Some(7), None));
    }
}
