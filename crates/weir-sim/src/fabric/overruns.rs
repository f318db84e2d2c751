//! Frames that inputs of switches lose after a queue behind them was full.

use super::Fabric;
use crate::frames::{FrameId, Kind};
use crate::totals::DropCause;

impl Fabric<'_> {
    /// Whether a frame that arrives at the queue of `port` was lost before it; such a one is gone.
    pub(super) fn is_overrun(&mut self, port: u32, id: FrameId) -> bool {
        let leg = self.frames[id].leg;
        let Some(control) = &mut self.control else { return false };
        let Some(inputs) = control.switch(port).and_then(|switch| switch.inputs.as_mut()) else { return false };
        if self.frames[id].kind == Kind::Notification {
            return false;
        }
        // A queue of a switch is never where a frame of a flow sets out.
        let came_by = self.forwarding.input(self.plan, leg);
        if !inputs.ports.contains(&came_by) || !inputs.overrun.loses() {
            return false;
        }
        self.drop_frame(id, DropCause::InputOverrun);
        true
    }
}
