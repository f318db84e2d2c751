//! Ports whose queue is managed, or that have queues for traffic classes: they drop frames that they have taken, and mark some.

use weir_core::marking::Ecn;
use weir_core::queue::Label;
use weir_core::rdma::{Packet, PacketKind};

use super::Fabric;
use crate::frames::{Body, FrameId, Kind};
use crate::totals::DropCause;

impl Fabric<'_> {
    /// What the queues of a port want to know of a frame.
    pub(crate) fn label(&self, id: FrameId) -> Label {
        let flow = self.frames[id].flow;
        // Messages are distinguished by their connections.
        let end = self.frames.end(id).map_or(0, |end| u64::from(end) + 1);
        let packet = self.packet(id);
        let class = packet.map_or_else(|| self.plan.flows[flow as usize].class, |packet| packet.class);
        let trims = packet.is_some_and(|packet| packet.kind == PacketKind::Data);
        Label { flow: end << 32 | u64::from(flow), ecn: self.ecn_of(id), class, trims }
    }

    /// The numbered packet in a frame.
    pub(super) fn packet(&self, id: FrameId) -> Option<Packet> {
        if self.frames[id].kind == Kind::Loaded { self.frames.packet(id) } else { None }
    }

    /// The queues of a port have cut the payload of frames.
    pub(crate) fn settle_trimmed(&mut self, port: u32) {
        while let Some((id, trim)) = self.lines[port as usize].port.take_trimmed() {
            let to = self.plan.topology.ports[port as usize].to;
            let at_last_hop = self.plan.topology.is_host(to);
            self.frames[id].cut(trim.size_bytes);
            self.frames.change_body(id, |body| {
                if let Body::Rdma(packet) = body {
                    packet.cut(trim.class, at_last_hop);
                }
            });
        }
    }

    /// What the header of a frame says about marks.
    pub(super) fn ecn_of(&self, id: FrameId) -> Ecn {
        let frame = &self.frames[id];
        match frame.kind {
            Kind::Data | Kind::InBurst if self.plan.is_capable(frame.flow) => Ecn::Ect0,
            Kind::Marked => Ecn::Ce,
            Kind::Loaded => match self.frames.body(id) {
                Body::Tcp(segment) => segment.ecn,
                Body::Rdma(packet) if packet.marked => Ecn::Ce,
                Body::Rdma(packet) if packet.is_capable => Ecn::Ect0,
                _ => Ecn::NotEct,
            },
            Kind::Data | Kind::InBurst | Kind::Notification | Kind::Pause => Ecn::NotEct,
        }
    }

    /// The frames that the queues of a port have dropped are gone; whether `came`, which was not stored yet, is among them.
    pub(crate) fn settle_discarded(&mut self, port: u32, came: FrameId) -> bool {
        let mut is_gone = false;
        while let Some(discarded) = self.lines[port as usize].port.take_discarded() {
            if discarded.handle == came {
                is_gone = true;
            } else if self.plan.is_stored(port) {
                self.free_memory(port, discarded.handle, self.now);
            }
            if self.is_pooled(port) {
                let frame = self.frames[discarded.handle];
                self.leave_buffer(port, &frame);
            }
            let cause = if discarded.early { DropCause::QueueEarly } else { DropCause::QueueFull };
            self.drop_frame(discarded.handle, cause);
        }
        is_gone
    }
}
