//! Shared memories: when they ask neighbours to stop, and to go on.

use weir_core::ethernet::pause::{Pause, length};
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
        let length = marks.quanta.map(|quanta| length(quanta, rate));
        let delay = marks.delay_ps + self.hold_delay(port);
        if delay > Span::ZERO {
            self.plan_task(port, self.now + delay, Task::Hold { pause, length });
        } else if pause == Pause::Xon && after > self.now {
            self.release(port, after);
        } else {
            self.hold(port, pause, length);
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

    /// A frame was stored that came over `input`: the memory at its end may be too full now.
    pub(super) fn watch_growth(&mut self, input: u32) {
        let node = self.plan.topology.ports[input as usize].to;
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let memory = &mut switching.memories[node as usize];
        let Some(marks) = memory.pause else { return };
        let (is_above, level) = match marks.scope {
            PauseScope::Switch => (&mut memory.is_above, memory.shared.level().count()),
            PauseScope::Input => (&mut switching.input_above[input as usize], switching.of_input[input as usize]),
        };
        if *is_above || level <= marks.xoff_bytes.count() {
            return;
        }
        *is_above = true;
        memory.xoffs += 1;
        match marks.scope {
            PauseScope::Input => self.ask(input, Pause::Xoff, &marks, self.now),
            PauseScope::Switch => self.ask_all(node, Pause::Xoff, &marks, self.now),
        }
    }

    /// A frame that came over `input` began to leave by `port`, until `end`: the memory may be empty enough now.
    pub(super) fn watch_fall(&mut self, port: u32, input: u32, end: Time) {
        let node = self.plan.topology.ports[port as usize].from;
        let Some(switching) = self.control.as_mut().and_then(|control| control.switching.as_mut()) else { return };
        let memory = &mut switching.memories[node as usize];
        let Some(marks) = memory.pause else { return };
        let (is_above, level) = match marks.scope {
            PauseScope::Switch => (&mut memory.is_above, memory.shared.level().count()),
            PauseScope::Input => (&mut switching.input_above[input as usize], switching.of_input[input as usize]),
        };
        if !*is_above || level > marks.xon_bytes.count() {
            return;
        }
        *is_above = false;
        match marks.scope {
            // Ports are served in order: a later one still is at this instant.
            PauseScope::Input => self.ask(input, Pause::Xon, &marks, if input > port { self.now } else { end }),
            PauseScope::Switch => self.ask_all(node, Pause::Xon, &marks, end),
        }
    }

    pub(super) fn ask_all(&mut self, node: u32, pause: Pause, marks: &MemoryPause, after: Time) {
        let inputs = |fabric: &Fabric<'_>| {
            let switching = fabric.control.as_ref()?.switching.as_ref()?;
            Some(switching.memories[node as usize].inputs.clone())
        };
        for input in inputs(self).unwrap_or_default() {
            self.ask(input, pause, marks, after);
        }
    }
}
