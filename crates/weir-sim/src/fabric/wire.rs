//! Transmissions over lines that lose frames or are captured.

use weir_core::path::Loss;
use weir_core::queue::{Lane, Offer};
use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::frames::{FrameId, Kind};
use crate::line::{ARMED, WATCHED};

impl Fabric<'_> {
    /// The transmission of a frame begins, and ends at `end`. Whether the frame will arrive; a lost one is gone.
    #[inline]
    pub(crate) fn sets_out(&mut self, port: u32, id: FrameId, end: Time) -> bool {
        !self.lines[port as usize].has(WATCHED) || self.watch_transmission(port, id, end)
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
        if !wire.loss.as_mut().is_some_and(Loss::lose) {
            return true;
        }
        match frame.kind {
            Kind::Data | Kind::InBurst | Kind::Marked | Kind::Loaded => wires.lost[frame.leg as usize] += 1,
            Kind::Notification | Kind::Pause => wires.lost_control += 1,
        }
        self.frames.free(id);
        false
    }

    /// As [`Fabric::launch`], where the line may be watched.
    pub(crate) fn launch_watched(&mut self, port: u32, id: FrameId, end: Time) {
        if self.sets_out(port, id, end) {
            self.launch(port, id, end);
        }
    }

    /// As [`Fabric::launch_watched`], but the event of the link is left to the caller.
    #[inline]
    pub(crate) fn append_watched(&mut self, port: u32, id: FrameId, end: Time) {
        if self.sets_out(port, id, end) {
            self.lines[port as usize].append(&mut self.frames, id, end);
        }
    }

    /// As [`Fabric::offer_plain`], where the line may be watched.
    pub(crate) fn offer_watched(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) -> Offer {
        if !self.lines[port as usize].has(WATCHED) {
            return self.offer_plain(port, id, size, lane);
        }
        let line = &mut self.lines[port as usize];
        let became = line.port.offer(self.now, id, size, lane);
        match became {
            Offer::Sent { end } => self.launch_watched(port, id, end),
            Offer::Waits => {
                if let Some(due) = line.arm() {
                    self.agenda.push(due, port);
                }
            }
            Offer::Dropped => self.drop_frame(id),
        }
        became
    }

    /// As [`Fabric::wake_plain`], where the line may be watched.
    pub(crate) fn wake_watched(&mut self, port: u32) {
        if !self.lines[port as usize].has(WATCHED) {
            return self.wake_plain(port);
        }
        let line = &mut self.lines[port as usize];
        line.flags &= !ARMED;
        if let Some(sent) = line.port.wake(self.now) {
            match sent.lane {
                Lane::Data => self.launch_watched(port, sent.handle, sent.end),
                Lane::Control => self.launch_control(port, sent.handle, sent.end),
            }
        }
        if let Some(due) = self.lines[port as usize].arm() {
            self.agenda.push(due, port);
        }
    }
}
