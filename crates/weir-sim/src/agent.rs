//! What lives at the ends of a network.

use weir_core::queue::Lane;
use weir_core::traffic::Emissions;
use weir_core::units::Time;

use crate::fabric::Fabric;
use crate::frames::Received;
use crate::totals::Totals;

/// An endpoint with a timer. Transit never reaches an agent.
///
/// The engine is generic over one agent type; several kinds are an enum. Agents come last in the order of equal times,
/// among themselves in the order in which they were given.
///
/// Whenever an agent is notified, it returns when its timer runs out next, not before now: earlier or later than
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

    /// How many rows of series it keeps.
    fn rows(&mut self) -> usize {
        0
    }

    /// Moves those that do not change any more to `totals`.
    fn take_rows(&mut self, totals: &mut Totals) {
        let _ = totals;
    }

    /// The run has ended at `end`: adds what is to be known of this agent.
    fn report(&mut self, end: Time, totals: &mut Totals) {
        let _ = (end, totals);
    }
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
