//! Storms of flow control: ports that ask others to stop without end, and the watchdogs of those.

use weir_core::ethernet::pfc::Says;
use weir_core::ethernet::watchdog::Found;
use weir_core::queue::{ClassSet, Lane};
use weir_core::spec::buffers::{Watchdog, WatchdogAction};
use weir_core::units::{Bytes, Time};

use super::Fabric;
use crate::control::Task;
use crate::control::held::{Held, Storm};
use crate::frames::{Body, Frame, FrameId, Kind};
use crate::totals::{ControlKind, DropCause, StormTotals};

/// A frame of flow control of a host: the least there is, with the longest time.
pub(super) const STORM_FRAME: (Bytes, Option<u16>) = (Bytes::new(64), Some(u16::MAX));

impl Fabric<'_> {
    /// What is known of a port that flow control holds.
    pub(super) fn held(&mut self, port: u32) -> Option<&mut Held> {
        let control = self.control.as_mut()?;
        Some(control.extras[port as usize].held.get_or_insert_default())
    }

    /// The node of `port` begins to ask the other end of its link to stop, or ends.
    pub(super) fn set_storm(&mut self, port: u32, storm: Option<Storm>) {
        if let Some(held) = self.held(port) {
            held.storm = storm;
        }
        if storm.is_some() {
            self.go_on_with_storm(port);
        }
    }

    /// The node of `port` asks again.
    pub(super) fn go_on_with_storm(&mut self, port: u32) {
        let now = self.now;
        let Some(storm) = self.held(port).and_then(|held| held.storm.as_mut()) else { return };
        if storm.next != now {
            return;
        }
        let (says, every) = (storm.says, storm.every);
        storm.next = now + every;
        self.plan_task(port, now + every, Task::Storm);
        self.count_control(port, port, ControlKind::Xoff, STORM_FRAME.0);
        let frame = Frame::new(now, 0, 0, STORM_FRAME.0, Lane::Control).of_kind(Kind::Pause);
        let id = self.frames.put_loaded(frame, Body::Pause(says));
        self.offer(port, id, STORM_FRAME.0, Lane::Control);
    }

    /// The watchdog of the ports of the node of `port`, if it has one.
    fn watchdog(&mut self, port: u32) -> Option<Watchdog> {
        let plan = self.plan;
        let node = plan.topology.ports[port as usize].from;
        let place = self.control.as_mut()?.pools.as_mut()?.at(node)?.place;
        plan.spec.buffers[place].watchdog
    }

    /// A frame asks for something at `port`: what of it counts, as far as the watchdog is concerned.
    pub(super) fn watch_request(&mut self, port: u32, says: Says) -> Says {
        let Some(watchdog) = self.watchdog(port) else { return says };
        let Some((says, begins)) = self.held(port).map(|held| held.note(watchdog, says)) else { return says };
        if begins {
            let looks = self.now.ps() / watchdog.poll_ps.ps() + 1;
            self.plan_task(port, Time::ZERO + watchdog.poll_ps * looks, Task::Look);
        }
        says
    }

    /// The watchdogs of `port` look.
    pub(super) fn look_for_storms(&mut self, port: u32) {
        let now = self.now;
        let Some(watchdog) = self.watchdog(port) else { return };
        let Some((found, goes_on)) = self.held(port).map(Held::look) else { return };
        if goes_on {
            self.plan_task(port, now + watchdog.poll_ps, Task::Look);
        }
        for (class, found) in found {
            match found {
                Found::Storm => self.begin_storm(port, class, watchdog.action),
                Found::Over => self.end_storm(port, class),
            }
        }
    }

    fn begin_storm(&mut self, port: u32, class: u8, action: WatchdogAction) {
        let now = self.now;
        if let Some(control) = &mut self.control {
            control.storms.push(StormTotals { port, class, found: now, over: None });
        }
        match action {
            WatchdogAction::Alert => {}
            WatchdogAction::Forward => {
                self.held(port).into_iter().for_each(|held| held.set_ignored(class, true));
                self.release(port, ClassSet::of(class), now);
            }
            WatchdogAction::Drop => {
                self.look(port);
                self.keep(port);
                for id in self.lines[port as usize].port.purge_class(now, class) {
                    self.drop_in_storm(port, id);
                }
                self.set_dropping(port, class, true);
            }
        }
    }

    fn end_storm(&mut self, port: u32, class: u8) {
        let now = self.now;
        let storms = self.control.iter_mut().flat_map(|control| &mut control.storms).rev();
        if let Some(storm) = storms.into_iter().find(|storm| (storm.port, storm.class) == (port, class)) {
            storm.over = Some(now);
        }
        self.held(port).into_iter().for_each(|held| held.set_ignored(class, false));
        self.set_dropping(port, class, false);
    }

    fn set_dropping(&mut self, port: u32, class: u8, drops: bool) {
        let Some(switch) = self.control.as_mut().and_then(|control| control.switch(port)) else { return };
        let class = ClassSet::of(class);
        switch.dropping = if drops { switch.dropping.with(class) } else { switch.dropping.without(class) };
    }

    /// A frame that waited at `port`, and that the port has counted, is dropped by the watchdog.
    fn drop_in_storm(&mut self, port: u32, id: FrameId) {
        let frame = self.frames[id];
        if self.is_pooled(port) {
            self.leave_buffer(port, &frame);
        }
        self.drop_frame(id, DropCause::Watchdog);
    }

    /// A frame comes to `port` in a storm: whether the watchdog drops it.
    pub(super) fn is_dropped_in_storm(&mut self, port: u32, id: FrameId, size: Bytes) -> bool {
        let class = self.plan.flows[self.frames[id].flow as usize].class;
        let switch = self.control.as_mut().and_then(|control| control.switch(port));
        if !switch.is_some_and(|switch| switch.dropping.contains(class)) {
            return false;
        }
        self.lines[port as usize].port.count_drop_of(self.now, size, class);
        self.drop_frame(id, DropCause::Watchdog);
        true
    }
}
