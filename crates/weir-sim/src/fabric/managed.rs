//! Ports whose queue is managed, or that have queues for traffic classes: they drop frames that they have taken, and mark some.

use weir_core::marking::Ecn;
use weir_core::queue::{Label, Labeled, Lane, Offer};
use weir_core::units::Bytes;

use super::Fabric;
use crate::frames::{Body, FrameId, Kind, NO_FRAME};
use crate::line::ARMED;

impl Fabric<'_> {
    /// A frame arrives at a queue that is managed.
    pub(crate) fn offer_managed(&mut self, port: u32, id: FrameId, size: Bytes) -> Offer {
        let label = self.label(id);
        let line = &mut self.lines[port as usize];
        let Labeled { became, marked } = line.port.offer_labeled(self.now, id, size, Lane::Data, label);
        self.settle_discarded(port, id);
        if marked {
            self.mark(port, id);
        }
        match became {
            Offer::Sent { end } => self.launch_watched(port, id, end),
            Offer::Waits => {
                if let Some(due) = self.lines[port as usize].arm() {
                    self.agenda.push(due, port);
                }
            }
            Offer::Dropped => self.drop_frame(id),
        }
        became
    }

    /// The transmitter of a port is free whose queue is managed.
    pub(crate) fn wake_managed(&mut self, port: u32) {
        let line = &mut self.lines[port as usize];
        line.flags &= !ARMED;
        let sent = line.port.wake(self.now);
        self.settle_discarded(port, NO_FRAME);
        if let Some(sent) = sent {
            if sent.marked {
                self.mark(port, sent.handle);
            }
            match sent.lane {
                Lane::Data => self.launch_watched(port, sent.handle, sent.end),
                Lane::Control => self.launch_control(port, sent.handle, sent.end),
            }
        }
        if let Some(due) = self.lines[port as usize].arm() {
            self.agenda.push(due, port);
        }
    }

    /// What the queues of a port want to know of a frame.
    pub(crate) fn label(&self, id: FrameId) -> Label {
        let flow = self.frames[id].flow;
        Label { flow: flow.into(), ecn: self.ecn_of(id), class: self.plan.flows[flow as usize].class }
    }

    /// What the header of a frame says about marks.
    pub(super) fn ecn_of(&self, id: FrameId) -> Ecn {
        let frame = &self.frames[id];
        match frame.kind {
            Kind::Data | Kind::InBurst if self.plan.is_capable(frame.flow) => Ecn::Ect0,
            Kind::Marked => Ecn::Ce,
            Kind::Loaded => match self.frames.body(id) {
                Body::Tcp(segment) => segment.ecn,
                _ => Ecn::NotEct,
            },
            Kind::Data | Kind::InBurst | Kind::Notification | Kind::Pause => Ecn::NotEct,
        }
    }

    /// The frames that the queues of a port have dropped are gone; whether `came`, which was not stored yet, is among them.
    pub(crate) fn settle_discarded(&mut self, port: u32, came: FrameId) -> bool {
        let mut is_gone = false;
        while let Some(discarded) = self.lines[port as usize].port.take_discarded() {
            let leg = self.frames[discarded.handle].leg as usize;
            if let Some(control) = self.control.as_mut().filter(|_| discarded.early) {
                control.early_drops[leg] += 1;
            }
            if discarded.handle == came {
                is_gone = true;
            } else if self.plan.is_stored(port) {
                self.free_memory(port, discarded.handle, self.now);
            }
            self.drop_frame(discarded.handle);
        }
        is_gone
    }
}
