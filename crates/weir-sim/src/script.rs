//! What happens in the course of a run, as the scenario says: an entity with one pending event, behind the timers of ports.

use std::sync::Arc;

use weir_core::spec::events::Event;
use weir_core::units::Time;

use crate::plan::Plan;

/// The events of a scenario.
#[derive(Debug)]
pub(crate) struct Script {
    /// In order of time; of those at an instant, in the order of the spec.
    pub(crate) events: Arc<[Event]>,
    /// The next one.
    pub(crate) next: usize,
    /// By port: whether its link is down.
    pub(crate) down: Vec<bool>,
}

impl Script {
    /// The events of `plan`, if it has any.
    pub(crate) fn new(plan: &Plan) -> Option<Script> {
        let mut events = plan.spec.events.clone();
        events.sort_by_key(|event| event.at_ps);
        let down = vec![false; plan.topology.ports.len()];
        (!events.is_empty()).then(|| Script { events: events.into(), next: 0, down })
    }

    /// When the next event happens.
    pub(crate) fn due(&self) -> Option<Time> {
        self.events.get(self.next).map(|event| event.at_ps)
    }
}
