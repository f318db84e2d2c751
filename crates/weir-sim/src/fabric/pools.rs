//! Buffers of switches that are counted at inputs and outputs: frames come and leave, and neighbours are asked to stop and to go on.

use weir_core::ethernet::pause::Pause;
use weir_core::ethernet::pfc::Says;
use weir_core::queue::{ClassSet, Entered, Passage};
use weir_core::spec::buffers::{FlowControl, Stops};
use weir_core::units::{Bytes, Span, Time};

use super::Fabric;
use crate::control::Task;
use crate::control::pools::Pooled;
use crate::frames::{Frame, FrameId};
use crate::totals::DropCause;

impl<'p> Fabric<'p> {
    /// A frame comes to `port` of a switch with such a buffer: whether there is room. Its sender may have to stop.
    pub(super) fn enter_buffer(&mut self, port: u32, id: FrameId, size: Bytes) -> bool {
        let (now, frame) = (self.now, self.frames[id]);
        let Some((input, passage)) = self.passage(port, &frame) else { return true };
        let Some(switch) = self.pooled(input) else { return true };
        match switch.enter(now, passage, size) {
            Entered::Stored => true,
            Entered::Stops => {
                self.ask_neighbour(input, passage.class, Pause::Xoff);
                true
            }
            Entered::Dropped => {
                self.lines[port as usize].port.count_drop_of(now, size, passage.class);
                self.drop_frame(id, DropCause::BufferFull);
                false
            }
        }
    }

    /// A frame that waited at `port` begins to leave, or is dropped: its bytes are free again.
    pub(super) fn leave_buffer(&mut self, port: u32, frame: &Frame) {
        let now = self.now;
        let Some((input, passage)) = self.passage(port, frame) else { return };
        let Some(switch) = self.pooled(input) else { return };
        if switch.leave(now, passage, frame.size()) {
            self.ask_neighbour(input, passage.class, Pause::Xon);
        }
    }

    /// The port that a frame came by, and how it counts at `port` of a switch with such a buffer.
    fn passage(&self, port: u32, frame: &Frame) -> Option<(u32, Passage)> {
        let pools = self.control.as_ref()?.pools.as_ref()?;
        let input = self.forwarding.input(self.plan, frame.leg);
        Some((input, pools.passage(input, port, self.plan.flows[frame.flow as usize].class)))
    }

    /// The switch that port `input` leads to, if it has such a buffer.
    fn pooled(&mut self, input: u32) -> Option<&mut Pooled> {
        let node = self.plan.topology.ports[input as usize].to;
        self.control.as_mut()?.pools.as_mut()?.at(node)
    }

    /// How the switch that port `input` leads to asks its neighbour there to stop, and the classes that it keeps stopped.
    fn flow_control(&mut self, input: u32) -> Option<(&'p FlowControl, ClassSet)> {
        let plan = self.plan;
        let node = plan.topology.ports[input as usize].to;
        let pools = self.control.as_mut()?.pools.as_mut()?;
        let number = pools.number(input);
        let switch = pools.at(node)?;
        Some((plan.spec.buffers[switch.place].flow_control.as_ref()?, switch.buffer.stopped(number)))
    }

    /// Of what came over `input`, too much of `class` waits, or little enough again: its sender is asked to stop, or to go on.
    #[cold]
    fn ask_neighbour(&mut self, input: u32, class: u8, pause: Pause) {
        let Some((how, stopped)) = self.flow_control(input) else { return };
        let classes = match how.stops {
            Stops::Classes => ClassSet::of(class),
            // Another class keeps the whole link stopped.
            Stops::Link if !stopped.without(ClassSet::of(class)).is_empty() => return,
            Stops::Link => ClassSet::ALL,
        };
        let says = match pause {
            Pause::Xoff => Says::stop(classes),
            Pause::Xon => Says::go(classes),
        };
        self.trace(input, class, pause);
        let is_due = self.repeat_of(input).is_some_and(|at| *at != Time::NEVER);
        if stopped.is_empty() {
            self.repeat_of(input).into_iter().for_each(|at| *at = Time::NEVER);
        } else if !is_due {
            self.await_repeat(input, how);
        }
        match how.delay_ps {
            Span::ZERO => self.send_pause(input ^ 1, says, input ^ 1),
            delay => self.plan_task(input ^ 1, self.now + delay, Task::Send { says, queue_port: input ^ 1 }),
        }
    }

    /// Notes why `class` of the transmitter `input` is asked to stop, or that it is not any more.
    fn trace(&mut self, input: u32, class: u8, pause: Pause) {
        let (now, node) = (self.now, self.plan.topology.ports[input as usize].to);
        let Some(control) = &mut self.control else { return };
        let Some(pools) = &mut control.pools else { return };
        let number = pools.number(input);
        let Some(switch) = pools.at(node) else { return };
        if pause == Pause::Xon {
            return control.spread.go(now, (input, class));
        }
        let most = switch.buffer.waits(number, class).max_by_key(|&(output, bytes)| (bytes, output));
        let Some((output, _)) = most else { return };
        let cause = switch.inputs[output] ^ 1;
        // What waits there takes so long to leave: if the output was held within that time, it waits because of that.
        let waiting = self.lines[cause as usize].port.waiting_bytes_of(class);
        let drains = waiting / self.plan.topology.ports[cause as usize].link.rate_bps;
        let since = Time::from_ps(now.ps().saturating_sub(drains.ps()));
        let held = control.extras[cause as usize].held.as_ref();
        let is_held = held.is_some_and(|held| held.holds.is_held_since(class, since));
        control.spread.stop(now, (input, class), cause, is_held);
    }

    /// When the transmitter `input` is asked again to stop.
    fn repeat_of(&mut self, input: u32) -> Option<&mut Time> {
        let number = self.control.as_ref()?.pools.as_ref()?.number(input);
        Some(&mut self.pooled(input)?.repeats[number])
    }

    /// Enters when the transmitter `input`, which has to stay stopped, is asked again.
    fn await_repeat(&mut self, input: u32, how: &FlowControl) {
        let rate = self.plan.topology.ports[input as usize].link.rate_bps;
        let at = how.repeats(rate).map_or(Time::NEVER, |every| self.now + every);
        self.repeat_of(input).into_iter().for_each(|due| *due = at);
        if at != Time::NEVER {
            self.plan_task(input ^ 1, at, Task::Renew);
        }
    }

    /// The neighbour at the other end of `port` is asked again to stop, if it still has to.
    pub(super) fn renew(&mut self, port: u32) {
        let (input, now) = (port ^ 1, self.now);
        if self.repeat_of(input).is_none_or(|at| *at != now) {
            return;
        }
        let Some((how, stopped)) = self.flow_control(input) else { return };
        let classes = if how.stops == Stops::Link { ClassSet::ALL } else { stopped };
        self.await_repeat(input, how);
        self.send_pause(port, Says::stop(classes), port);
    }
}
