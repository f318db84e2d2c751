//! Buffers of hosts: frames come in over the link, and are taken out no faster than the host serves them.

use weir_core::units::{Span, Time};

use super::Fabric;
use crate::control::Task;
use crate::control::switching::Buffer;
use crate::frames::FrameId;

impl Fabric<'_> {
    /// A frame has come over the link into the buffer of the host whose own port is `port`. It is looked at when all has
    /// arrived that comes at this instant.
    pub(crate) fn keep_in_buffer(&mut self, port: u32, id: FrameId) {
        let size = self.frames[id].size().count();
        if let Some(buffer) = self.buffer(port) {
            buffer.frames.push_back(id);
            buffer.bytes += size;
        }
        self.frames[id].then = self.now;
        self.plan_task(port, self.now, Task::Empty);
    }

    /// The host may take a frame out of its buffer; returns the agent that is to be notified.
    pub(crate) fn empty_buffer(&mut self, port: u32) -> Option<u32> {
        let now = self.now;
        let taken = self.first_due(port).filter(|&(at, ..)| at <= now).map(|(_, start, tx, id)| {
            let size = self.frames[id].size().count();
            if let Some(buffer) = self.buffer(port) {
                buffer.frames.pop_front();
                buffer.bytes -= size;
                buffer.valve.spend(start, tx);
            }
            id
        });
        let next = self.first_due(port).map(|(at, ..)| at.max(now));
        let buffer = self.buffer(port)?;
        let asked = buffer.marks.on_level(buffer.bytes);
        let is_new = next.is_some_and(|next| buffer.due != next || buffer.due <= now);
        if let Some(next) = next.filter(|_| is_new) {
            buffer.due = next;
            self.plan_task(port, next, Task::Empty);
        }
        if let Some(pause) = asked {
            let delay = self.hold_delay(port ^ 1);
            self.note_control(port, port, pause.into(), crate::control::switching::PAUSE_BYTES);
            self.plan_task(port ^ 1, now + delay, Task::Hold { says: pause.into(), length: None });
        }
        self.deliver(taken?)
    }

    /// When the first frame of a buffer is taken and when its service begins, what it takes on the line, and which it is.
    /// It may be taken when its service ends.
    pub(super) fn first_due(&self, port: u32) -> Option<(Time, Time, Span, FrameId)> {
        let link = self.plan.topology.ports[port as usize ^ 1].link;
        let buffer = self.control.as_ref()?.switching.as_ref()?.buffers[port as usize].as_ref()?;
        let id = *buffer.frames.front()?;
        let tx = (self.frames[id].size() + link.framing_bytes) / link.rate_bps;
        let arrived = self.frames[id].then;
        let start = buffer.valve.ready(Time::from_ps(arrived.ps().saturating_sub(tx.ps())), tx);
        Some((start + tx, start, tx, id))
    }

    pub(super) fn buffer(&mut self, port: u32) -> Option<&mut Buffer> {
        self.control.as_mut()?.switching.as_mut()?.buffers[port as usize].as_deref_mut()
    }
}
