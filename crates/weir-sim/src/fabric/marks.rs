//! Queues that mark frames, and receivers that report marked ones to the senders.
//!
//! A segment of TCP carries its mark in its body, and TCP answers it. Data without a body is ECN-capable where the
//! host that sends it has limiters of DCQCN; the receiver of its marks then notifies that host.

use weir_core::ethernet::reaction::Feedback;
use weir_core::marking::Ecn;
use weir_core::spec::MarkingTime;
use weir_core::units::Bytes;

use super::Fabric;
use crate::control::Task;
use crate::control::plan::NO_WAY;
use crate::frames::{Body, FrameId, Kind};

impl Fabric<'_> {
    /// A frame has just been queued at `port`, whose queue marks it: so it does, if the frame is ECN-capable and bears
    /// no mark yet.
    pub(crate) fn mark(&mut self, port: u32, id: FrameId) {
        let frame = self.frames[id];
        let is_data = frame.kind == Kind::Data;
        match frame.kind {
            Kind::Data if self.plan.is_capable(frame.flow) => self.frames[id].kind = Kind::Marked,
            Kind::Loaded if self.frames.change_body(id, set_mark) => {}
            _ => return,
        }
        let Some(control) = &mut self.control else { return };
        control.marks[frame.leg as usize] += 1;
        if is_data {
            crate::control::keep(&mut control.marked_at, id, port);
        }
    }

    /// A frame has joined the queue of `port`, where so much waits: it may be marked.
    #[inline(never)]
    pub(super) fn mark_by_chance(&mut self, port: u32, id: FrameId, waiting: Bytes) {
        let marker = self.control.as_mut().and_then(|control| control.switch(port)?.marker.as_mut());
        if marker.is_some_and(|marker| marker.on_frame(MarkingTime::Arrival, waiting)) {
            self.mark(port, id);
        }
    }

    /// A marked frame of `flow` has come to its end, where it was freed: the receiver notifies the sender, if it has
    /// not done so lately.
    #[cold]
    pub(crate) fn receive_mark(&mut self, flow: u32, id: FrameId) {
        let (Some(shared), Some(dcqcn)) = (&self.plan.control, &self.plan.spec.control.dcqcn) else { return };
        let Some(control) = &mut self.control else { return };
        let Some(receiver) = control.receivers.get_mut(flow as usize) else { return };
        let leg = shared.ways_back[flow as usize];
        if leg == NO_WAY || !receiver.on_mark(self.now, dcqcn.notify_every_ps) {
            return;
        }
        let point = control.marked_at[id as usize];
        let task = Task::Notify { flow, leg, point, feedback: Feedback::Cnp };
        self.plan_task(self.plan.route[leg as usize], self.now + dcqcn.notification.delay_ps, task);
    }
}

/// Marks what may be marked and bears no mark yet; whether it was.
fn set_mark(body: &mut Body) -> bool {
    match body {
        Body::Tcp(segment) if matches!(segment.ecn, Ecn::Ect0 | Ecn::Ect1) => segment.ecn = Ecn::Ce,
        Body::Rdma(packet) if packet.is_capable && !packet.marked => packet.marked = true,
        _ => return false,
    }
    true
}
