//! Transmissions over lines that lose frames or are captured.

use weir_core::cc::Hop;
use weir_core::path::Loss;
use weir_core::units::Time;

use super::Fabric;
use crate::frames::{FrameId, Kind};

impl Fabric<'_> {
    /// The transmission of a frame begins, and ends at `end`. Whether the frame will arrive; a lost one is gone.
    #[inline(always)]
    pub(crate) fn sets_out(&mut self, port: u32, id: FrameId, end: Time) -> bool {
        !self.links[port as usize].watched || self.watch_transmission(port, id, end)
    }

    #[cold]
    pub(super) fn watch_transmission(&mut self, port: u32, id: FrameId, end: Time) -> bool {
        let Some(wires) = &mut self.wires else { return true };
        let wire = &mut wires.wires[wires.of_port[port as usize] as usize];
        let frame = &self.frames[id];
        if let Some((capture, interface)) = wire.tap {
            let begin = end - self.lines[port as usize].port.transmission(frame.size());
            let body = (!matches!(frame.kind, Kind::Data | Kind::InBurst | Kind::Marked)).then(|| self.frames.body(id));
            wires.taps[capture].note(begin, interface, frame, body, port, self.plan);
        }
        if let Some(sent) = &mut wire.told {
            let (line, link) = (&mut self.lines[port as usize].port, self.plan.topology.ports[port as usize].link);
            *sent += (frame.size() + link.framing_bytes).count();
            let hop = Hop {
                port,
                queue_bytes: u32::try_from(line.waiting_bytes().count()).unwrap_or(u32::MAX),
                at: end - line.transmission(frame.size()),
                sent_bytes: *sent,
                rate_bps: link.rate_bps.bps(),
            };
            let is_data = frame.kind == Kind::Loaded && self.frames.packet(id).is_some_and(|packet| packet.is_capable);
            if let Some(trail) = self.frames.trail(id).filter(|_| is_data) {
                trail.add(hop);
            }
        }
        if !wire.loss.as_mut().is_some_and(Loss::lose) {
            return true;
        }
        let frame = &self.frames[id];
        match frame.kind {
            Kind::Data | Kind::InBurst | Kind::Marked | Kind::Loaded => {
                self.drops.count_on_link(frame.leg);
                self.lost[port as usize] += 1;
            }
            Kind::Notification | Kind::Pause => wires.lost_control += 1,
        }
        self.frames.free(id);
        false
    }
}
