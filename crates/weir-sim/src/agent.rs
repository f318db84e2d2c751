//! What lives at the ends of a network.

use weir_core::queue::Lane;
use weir_core::traffic::Emissions;
use weir_core::units::Time;

use crate::fabric::Fabric;

/// An endpoint with a timer. Transit never reaches an agent.
///
/// The engine is generic over one agent type; several kinds are an enum. Agents come last in the order of equal times,
/// among themselves in the order in which they were given.
pub trait Agent {
    /// When the timer is to run out first; [`Time::NEVER`] if not at all.
    fn start(&mut self) -> Time;

    /// The timer ran out. Returns when it runs out next, not before now; [`Time::NEVER`] if not at all.
    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time;
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
}
