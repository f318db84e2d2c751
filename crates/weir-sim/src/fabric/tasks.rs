//! What is to happen at a port later: tasks of its timer, and the control frames that come of them.

use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::control::Task;
use crate::frames::FrameId;
use crate::totals::ControlKind;

impl Fabric<'_> {
    /// A control frame has reached its end.
    pub(crate) fn end_control(&mut self, id: FrameId) {
        self.frames.forget_control(id);
        self.frames.free(id);
        if let Some(control) = &mut self.control {
            control.ended += 1;
        }
    }

    /// Enters a task of the timer of `port`.
    pub(super) fn plan_task(&mut self, port: u32, at: Time, task: Task) {
        let Some(control) = &mut self.control else { return };
        control.extras[port as usize].tasks.push((at, task));
        self.agenda.push(at, self.port_timer(port));
    }

    /// The timer of a port runs out: does its tasks that are due, in the order in which they were entered, until an agent is
    /// to be notified of a frame, which is returned.
    #[cold]
    pub(crate) fn on_port_timer(&mut self, port: u32) -> Option<u32> {
        let now = self.now;
        loop {
            let tasks = &mut self.control.as_mut()?.extras[port as usize].tasks;
            let place = tasks.iter().position(|&(at, _)| at <= now)?;
            match tasks.remove(place).1 {
                Task::Notify { flow, leg, point, feedback } => self.send_notification(port, flow, leg, point, feedback),
                Task::Send { says, queue_port } => self.send_pause(port, says, queue_port),
                Task::Hold { says, length } => self.hold(port, says, length),
                Task::Expire => self.expire(port),
                Task::Refresh => self.refresh(port),
                Task::Obey { key, point, feedback } => self.obey(port, key, point, feedback),
                Task::Limiter { place } => self.change_limiter(port, place),
                Task::Repeat => self.repeat(port),
                Task::Renew => self.renew(port),
                Task::Storm => self.go_on_with_storm(port),
                Task::Look => self.look_for_storms(port),
                Task::Empty => {
                    if let Some(agent) = self.empty_buffer(port) {
                        self.agenda.push(now, self.port_timer(port));
                        return Some(agent);
                    }
                }
            }
        }
    }

    /// Counts a control frame that sets out at `port`.
    pub(super) fn count_control(&mut self, port: u32, queue_port: u32, kind: ControlKind, size: Bytes) {
        if let Some(control) = &mut self.control {
            control.made += 1;
        }
        self.note_control(port, queue_port, kind, size);
    }

    /// Counts a control frame.
    pub(super) fn note_control(&mut self, port: u32, queue_port: u32, kind: ControlKind, size: Bytes) {
        let Some(control) = &mut self.control else { return };
        let (frames, bytes) = control.sent.entry((port, queue_port, kind)).or_default();
        *frames += 1;
        *bytes += size.count();
        control.probes.note(queue_port, kind, self.now);
    }
}
