//! Timers whose time moves.

use weir_core::units::Time;

/// The timer of an agent. Only the earliest event entered for it counts; one that comes too early is entered again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    /// When it runs out.
    wanted: Time,
    /// The event that counts.
    entered: Time,
}

impl Timer {
    pub(crate) const IDLE: Timer = Timer { wanted: Time::NEVER, entered: Time::NEVER };

    /// The timer runs out at `at`; when an event is to be entered for it, if at all.
    pub(crate) fn set(&mut self, at: Time) -> Option<Time> {
        self.wanted = at;
        if at >= self.entered {
            return None;
        }
        self.entered = at;
        Some(at)
    }

    /// An event of the timer comes up at `now`.
    pub(crate) fn on_event(&mut self, now: Time) -> Alarm {
        if self.entered != now {
            return Alarm::Void;
        }
        self.entered = Time::NEVER;
        if self.wanted > now {
            return self.set(self.wanted).map_or(Alarm::Void, Alarm::Later);
        }
        self.wanted = Time::NEVER;
        Alarm::RunOut
    }
}

/// What an event of a timer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// It runs out.
    RunOut,
    /// It runs out later: an event is to be entered then.
    Later(Time),
    /// Nothing.
    Void,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_moves_both_ways_and_only_its_last_time_counts() {
        let at = Time::from_ps;
        let mut timer = Timer::IDLE;
        assert_eq!(timer.set(at(50)), Some(at(50)));
        assert_eq!(timer.set(at(80)), None, "the event at 50 will do");
        assert_eq!(timer.set(at(30)), Some(at(30)));
        assert_eq!(timer.on_event(at(30)), Alarm::RunOut);
        assert_eq!(timer.set(at(90)), Some(at(90)));
        assert_eq!(timer.on_event(at(50)), Alarm::Void, "that one was given up");
        assert_eq!(timer.set(at(120)), None);
        assert_eq!(timer.on_event(at(90)), Alarm::Later(at(120)));
        assert_eq!(timer.set(Time::NEVER), None);
        assert_eq!(timer.on_event(at(120)), Alarm::Void);
        assert_eq!(timer.set(at(130)), Some(at(130)));
    }
}
