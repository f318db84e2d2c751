//! Priority flow control: what its frames say, and how long each class of a transmitter is held. PAUSE is the case of all classes.
//!
//! There is a timer for each class. A class that is named with a time above 0 is held, and its timer is set again, not added to. One that is named with 0
//! may go on. Others stay as they are.
//!
//! Source: IEEE 802.1Qbb, clause 36

use super::pause::Pause;
use crate::queue::{ClassSet, Pauses};
use crate::units::{Span, Time};

/// What a frame says. No class is in both sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Says {
    /// These classes stop.
    pub stop: ClassSet,
    /// These go on.
    pub go: ClassSet,
}

impl Says {
    /// `classes` stop.
    pub fn stop(classes: ClassSet) -> Says {
        Says { stop: classes, go: ClassSet::NONE }
    }

    /// `classes` go on.
    pub fn go(classes: ClassSet) -> Says {
        Says { stop: ClassSet::NONE, go: classes }
    }

    /// What one frame says in place of this one and a later one.
    #[must_use]
    pub fn then(self, later: Says) -> Says {
        let named = later.stop.with(later.go);
        Says { stop: self.stop.without(named).with(later.stop), go: self.go.without(named).with(later.go) }
    }
}

impl From<Pause> for Says {
    /// What a PAUSE frame says, of all classes.
    fn from(pause: Pause) -> Says {
        match pause {
            Pause::Xoff => Says::stop(ClassSet::ALL),
            Pause::Xon => Says::go(ClassSet::ALL),
        }
    }
}

/// How long the classes of a transmitter are held, and were.
#[derive(Clone, Debug)]
pub struct Holds {
    held: ClassSet,
    until: [Time; 8],
    since: [Time; 8],
    counted: [Pauses; 8],
}

impl Default for Holds {
    fn default() -> Holds {
        Holds { held: ClassSet::NONE, until: [Time::ZERO; 8], since: [Time::ZERO; 8], counted: [Pauses::default(); 8] }
    }
}

impl Holds {
    /// The classes that are held.
    pub fn held(&self) -> ClassSet {
        self.held
    }

    /// Since when a class is held, if it is.
    pub fn since(&self, class: u8) -> Option<Time> {
        self.held.contains(class).then(|| self.since[usize::from(class)])
    }

    /// Whether a class is held, or was until `since` or later.
    pub fn is_held_since(&self, class: u8, since: Time) -> bool {
        let last = self.counted[usize::from(class)].last;
        self.held.contains(class) || last.is_some_and(|last| last >= since)
    }

    /// `classes` stop at `now`, for `length` or until they may go on. Returns those that were not held, and when the holds run out.
    pub fn stop(&mut self, now: Time, classes: ClassSet, length: Option<Span>) -> (ClassSet, Time) {
        let until = length.map_or(Time::NEVER, |length| now + length);
        let new = classes.without(self.held);
        for class in classes.list() {
            self.until[usize::from(class)] = until;
        }
        for class in new.list() {
            self.since[usize::from(class)] = now;
            self.counted[usize::from(class)].count += 1;
        }
        self.held = self.held.with(classes);
        (new, until)
    }

    /// `classes` go on at `now`. Returns those that were held.
    pub fn go(&mut self, now: Time, classes: ClassSet) -> ClassSet {
        let released = classes.without(classes.without(self.held));
        for class in released.list() {
            let class = usize::from(class);
            self.counted[class] = self.counted[class].with(self.since[class], now);
        }
        self.held = self.held.without(released);
        released
    }

    /// The classes whose holds run out up to `now`.
    pub fn run_out(&self, now: Time) -> ClassSet {
        self.held.list().filter(|&class| self.until[usize::from(class)] <= now).collect()
    }

    /// How often and how long each class was held up to `now`, of those that were.
    pub fn counted(&self, now: Time) -> impl Iterator<Item = (u8, Pauses)> + '_ {
        let up_to_now = move |class: u8| {
            let counted = self.counted[usize::from(class)];
            if self.held.contains(class) { counted.with(self.since[usize::from(class)], now) } else { counted }
        };
        (0..8).map(move |class| (class, up_to_now(class))).filter(|row| row.1.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: ClassSet = ClassSet::of(3);
    const FOUR: ClassSet = ClassSet::of(4);

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_hold_is_set_anew_by_the_next_frame_and_runs_out_by_class() {
        let (mut holds, both) = (Holds::default(), THREE.with(FOUR));
        assert_eq!(holds.stop(us(0), both, Some(Span::from_us(5))), (both, us(5)));
        assert_eq!(holds.stop(us(3), THREE, Some(Span::from_us(5))), (ClassSet::NONE, us(8)), "not 10 us");
        assert_eq!(holds.run_out(us(5)), FOUR);
        assert!(holds.is_held_since(4, us(5)) && !holds.is_held_since(2, us(0)));
        assert_eq!(holds.go(us(5), FOUR), FOUR);
        assert_eq!(holds.go(us(6), both), THREE, "class 4 is not held");
        assert_eq!([us(5), us(6)].map(|since| holds.is_held_since(4, since)), [true, false]);
        let counted: Vec<_> = holds.counted(us(9)).map(|(class, held)| (class, held.count, held.total)).collect();
        assert_eq!(counted, [(3, 1, Span::from_us(6)), (4, 1, Span::from_us(5))]);
    }

    #[test]
    fn a_hold_without_a_length_lasts_and_counts_up_to_now() {
        let mut holds = Holds::default();
        holds.stop(us(2), FOUR, None);
        assert_eq!((holds.run_out(us(1_000_000)), holds.since(4), holds.since(3)), (ClassSet::NONE, Some(us(2)), None));
        let counted: Vec<_> = holds.counted(us(9)).map(|(class, held)| (class, held.total, held.longest)).collect();
        assert_eq!(counted, [(4, Span::from_us(7), Span::from_us(7))]);
    }

    #[test]
    fn one_frame_says_what_two_said() {
        let both = Says::stop(THREE).then(Says::stop(FOUR));
        assert_eq!(both, Says::stop(THREE.with(FOUR)));
        assert_eq!(both.then(Says::go(THREE)), Says { stop: FOUR, go: THREE });
        assert_eq!(Says::go(THREE).then(Says::stop(THREE)), Says::stop(THREE));
    }
}
