//! Ports whose queues are managed: they drop frames that they have taken, and mark some.

use weir_core::queue::{Label, Lane, Offer};
use weir_core::tcp::Ecn;
use weir_core::units::Bytes;

use crate::fabric::Fabric;
use crate::frames::{Body, FrameId, Kind};
use crate::line::ARMED;

impl Fabric<'_> {
    /// A frame arrives at a queue that is managed.
    pub(super) fn offer_managed(&mut self, port: u32, id: FrameId, size: Bytes) -> Offer {
        let label = Label { flow: self.frames[id].flow.into(), ecn_capable: self.is_ecn_capable(id) };
        let line = &mut self.lines[port as usize];
        let became = line.port.offer_labeled(self.now, id, size, Lane::Data, label);
        self.settle_discarded(port);
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
    pub(super) fn wake_managed(&mut self, port: u32) {
        let line = &mut self.lines[port as usize];
        line.flags &= !ARMED;
        let sent = line.port.wake(self.now);
        self.settle_discarded(port);
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

    /// Whether a frame may be marked instead of dropped.
    fn is_ecn_capable(&self, id: FrameId) -> bool {
        let frame = &self.frames[id];
        match frame.kind {
            Kind::Data | Kind::InBurst => self.plan.is_capable(frame.flow),
            Kind::Marked => true,
            Kind::Loaded => matches!(self.frames.body(id), Body::Tcp(segment) if segment.ecn != Ecn::NotEct),
            Kind::Notification | Kind::Pause => false,
        }
    }

    /// The frames that the queue of a port has dropped are gone.
    fn settle_discarded(&mut self, port: u32) {
        while let Some(discarded) = self.lines[port as usize].port.take_discarded() {
            let leg = self.frames[discarded.handle].leg as usize;
            if let Some(control) = self.control.as_mut().filter(|_| discarded.early) {
                control.early_drops[leg] += 1;
            }
            self.drop_frame(discarded.handle);
        }
    }
}
