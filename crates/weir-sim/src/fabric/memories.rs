//! Shared memories: when they ask neighbours to stop, and to go on.

use weir_core::ethernet::pause::{Pause, length};
use weir_core::queue::ClassSet;
use weir_core::spec::switching::{MemoryPause, PauseScope};
use weir_core::units::{Span, Time};

use super::Fabric;
use crate::control::Task;
use crate::control::switching::PAUSE_BYTES;

impl Fabric<'_> {
    /// Time until the transmitter `port` obeys PAUSE that the other end of its link sent.
    pub(super) fn hold_delay(&self, port: u32) -> Span {
        let link = &self.plan.topology.ports[port as usize];
        let response = self.plan.control.as_ref().map_or(Span::ZERO, |shared| shared.responses[link.from as usize].0);
        link.link.delay_ps + response
    }

    /// A memory asks the transmitter `port` to stop or to go on. One of a switch that goes on at once begins no frame
    /// before `after`.
    pub(super) fn ask(&mut self, port: u32, pause: Pause, marks: &MemoryPause, after: Time) {
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let repeat = match (pause, marks.refresh_ps) {
            (Pause::Xoff, Some(every)) => self.now + every,
            _ => Time::NEVER,
        };
        switching.repeats[port as usize] = repeat;
        if repeat != Time::NEVER {
            self.plan_task(port, repeat, Task::Repeat);
        }
        self.send_beside(port, pause, marks, after);
    }

    pub(super) fn send_beside(&mut self, port: u32, pause: Pause, marks: &MemoryPause, after: Time) {
        self.note_control(port ^ 1, port ^ 1, pause.into(), PAUSE_BYTES);
        let rate = self.plan.topology.ports[port as usize].link.rate_bps;
        let says = pause.into();
        let length = marks.quanta.map(|quanta| length(quanta, rate));
        let delay = marks.delay_ps + self.hold_delay(port);
        if delay > Span::ZERO {
            self.plan_task(port, self.now + delay, Task::Hold { says, length });
        } else if pause == Pause::Xon && after > self.now {
            self.release(port, ClassSet::ALL, after);
        } else {
            self.hold(port, says, length);
        }
    }

    /// XOFF is repeated, unless XON or another XOFF was sent since it was entered.
    pub(crate) fn repeat(&mut self, port: u32) {
        let node = self.plan.topology.ports[port as usize].to;
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        if switching.repeats[port as usize] != self.now {
            return;
        }
        if let Some(marks) = switching.memories[node as usize].pause {
            self.ask(port, Pause::Xoff, &marks, self.now);
        }
    }

    /// The memory at the end of `input` holds another amount of what came over it: it may be too full now, or empty enough. A frame that
    /// leaves it does so by a port, until a time.
    #[inline]
    pub(super) fn watch_memory(&mut self, input: u32, leaves: Option<(u32, Time)>) {
        let node = self.plan.topology.ports[input as usize].to;
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let memory = &mut switching.memories[node as usize];
        let crossed = match &memory.pause {
            None => None,
            Some(rule) if rule.scope == PauseScope::Switch => memory.marks.on_level(memory.shared.level().count()),
            Some(_) => switching.input_marks[input as usize].on_level(switching.of_input[input as usize]),
        };
        if let Some(pause) = crossed {
            self.ask_neighbours(input, pause, leaves);
        }
    }

    /// The memory at the end of `input` asks those that it may hold.
    #[cold]
    fn ask_neighbours(&mut self, input: u32, pause: Pause, leaves: Option<(u32, Time)>) {
        let (now, node) = (self.now, self.plan.topology.ports[input as usize].to);
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let memory = &mut switching.memories[node as usize];
        let Some(rule) = memory.pause else { return };
        memory.xoffs += u64::from(pause == Pause::Xoff);
        // Ports are served in order: a later one still is at this instant.
        let is_later = |port: u32| rule.scope == PauseScope::Input && input > port;
        let after = leaves.map_or(now, |(port, end)| if is_later(port) { now } else { end });
        let asked = match rule.scope {
            PauseScope::Switch => memory.inputs.clone(),
            PauseScope::Input => vec![input],
        };
        asked.into_iter().for_each(|input| self.ask(input, pause, &rule, after));
    }
}
