//! Frames of open flows: each node that they come to chooses where they go on.

use weir_core::queue::Lane;
use weir_core::units::{Bytes, Span, Time};

use super::Fabric;
use crate::frames::{Body, Frame, FrameId, Kind, Trail};
use crate::line::Line;

impl Fabric<'_> {
    /// A frame of the open flow `flow` that carries `body` leaves its host now: an end of the connection that speaks sends it to the other.
    pub(super) fn send_open(&mut self, flow: u32, size: Bytes, lane: Lane, body: Body) {
        let planned = &self.plan.flows[flow as usize];
        let Some(open) = &mut self.open else { return };
        let end = 2 * open.speaking + u32::from(planned.returns);
        let host = open.host(end ^ 1);
        let (lines, now) = (&self.lines, self.now);
        // A host that knows no way sends by its first port, where the frame is lost.
        let port = open.choose(now, host, end, entropy_of(&body), |port| waits(&lines[port as usize], now));
        let port = port.unwrap_or_else(|| self.plan.open.outlet(host));
        let leg = planned.first_leg + self.plan.open.first(host, port);
        let frame = Frame::new(now, flow, leg, size, lane).of_kind(Kind::Loaded);
        let id = self.frames.put_open(frame, body, end);
        if let (Some(trail), Body::Rdma(packet)) = (self.trail, body) {
            self.frames.set_trail(id, if packet.kind.is_forward() { Trail::default() } else { trail });
        }
        self.offer(port, id, size, lane);
    }

    /// A frame of an open flow has come by the port `input`; returns the agent that acts on it.
    #[inline(never)]
    pub(super) fn arrive_open(&mut self, input: u32, id: FrameId, size: Bytes, lane: Lane) -> Option<u32> {
        let Some(node) = self.plan.open.behind(input) else { return self.deliver(id) };
        match self.choose_open(id, node) {
            Some(port) => {
                let first = self.plan.flows[self.frames[id].flow as usize].first_leg;
                self.frames[id].leg = first + self.plan.open.onward(input, port);
                self.offer(port, id, size, lane);
            }
            None => {
                self.frames[id].leg -= 1;
                self.lose_behind_port(id);
            }
        }
        None
    }

    #[inline]
    fn choose_open(&mut self, id: FrameId, node: u32) -> Option<u32> {
        let end = self.frames.end(id)?;
        let open = self.open.as_mut()?;
        let entropy = if open.reads_entropy { self.frames.packet(id).map_or(0, |packet| packet.entropy) } else { 0 };
        let (lines, now) = (&self.lines, self.now);
        open.choose(now, node, end, entropy, |port| waits(&lines[port as usize], now))
    }

    /// A frame of an open flow stands before `port`, whose link is down, as its node knows: where it goes instead, if anywhere.
    pub(super) fn detour_open(&mut self, port: u32, id: FrameId) -> Option<u32> {
        let node = self.plan.topology.ports[port as usize].from;
        if self.plan.topology.is_host(node) {
            return None;
        }
        let onward = self.choose_open(id, node)?;
        let input = self.forwarding.input(self.plan, self.frames[id].leg);
        let first = self.plan.flows[self.frames[id].flow as usize].first_leg;
        self.frames[id].leg = first + self.plan.open.onward(input, onward);
        Some(onward)
    }
}

/// The value by which the sender of a packet chooses its way.
fn entropy_of(body: &Body) -> u16 {
    if let Body::Rdma(packet) = body { packet.entropy } else { 0 }
}

/// For how long a frame that comes at `now` would wait at the port of `line`.
fn waits(line: &Line, now: Time) -> Span {
    line.port.start_of_next(now).saturating_since(now)
}
