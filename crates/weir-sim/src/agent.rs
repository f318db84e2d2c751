//! What lives at the ends of a network.

use weir_core::queue::Lane;
use weir_core::traffic::Emissions;
use weir_core::units::{Bytes, Time};

use crate::fabric::Fabric;
use crate::frames::Body;
use crate::totals::Totals;

/// An endpoint with a timer. Transit never reaches an agent.
///
/// The engine is generic over one agent type; several kinds are an enum. Agents come last in the order of equal times,
/// among themselves in the order in which they were given.
///
/// Whenever an agent is told something, it returns when its timer runs out next, not before now: earlier or later than
/// it said before, or [`Time::NEVER`] if not at all.
pub trait Agent {
    /// The flows whose frames with a body it receives. A flow has at most one receiver.
    fn receives(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The run begins.
    fn start(&mut self) -> Time;

    /// The timer ran out.
    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time;

    /// A frame arrived.
    fn on_frame(&mut self, fabric: &mut Fabric<'_>, frame: Received) -> Time;

    /// The run has ended at `end`: adds what is to be known of this agent.
    fn report(&mut self, end: Time, totals: &mut Totals) {
        let _ = (end, totals);
    }
}

/// A frame with a body that arrived at the end of its flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    /// The flow.
    pub flow: u32,
    /// Its size.
    pub size: Bytes,
    /// What it carries.
    pub body: Body,
}

/// The timer of an agent. Only the earliest event entered for it counts; one that comes too early is entered anew.
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

/// A source whose frames are events of its own.
#[derive(Debug)]
pub struct PushedSource {
    emissions: Emissions,
    first_flow: u32,
}

impl PushedSource {
    pub(crate) fn new(emissions: Emissions, first_flow: u32) -> PushedSource {
        PushedSource { emissions, first_flow }
    }
}

impl Agent for PushedSource {
    fn start(&mut self) -> Time {
        self.emissions.peek()
    }

    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        let (destination, size) = self.emissions.draw();
        fabric.send(self.first_flow + destination, size, Lane::Data);
        self.emissions.peek()
    }

    fn on_frame(&mut self, _: &mut Fabric<'_>, _: Received) -> Time {
        self.emissions.peek()
    }
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
