//! A port and its link, in one place of memory.

use weir_core::queue::Port;
use weir_core::units::{Span, Time};

use crate::frames::{FrameId, NO_FRAME, Pool};

/// A transmitter, the queue before it and the link behind it. The first cache line holds all that a frame needs that
/// does not wait.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Line {
    /// First and last frame in flight.
    pub(crate) head: FrameId,
    tail: FrameId,
    /// Time from the end of a transmission until the frame may leave the next node.
    lag: Span,
    pub(crate) role: Role,
    /// Whether the wake of the port is in the agenda; always, where it has none.
    pub(crate) armed: bool,
    /// Whether each transmission is looked at: frames are lost on the link, or captured.
    pub(crate) watched: bool,
    /// Place in `feeds`, if sources are pulled.
    pub(crate) feed: u32,
    /// When the current interval ends, if intervals are written down; 0 where the port is looked at whenever it is touched.
    pub(crate) boundary: Time,
    pub(crate) port: Port<FrameId>,
}

/// What a port is: all that follows from it is asked of this one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Role {
    /// First in, first out; drops what has no room.
    Plain,
    /// Put together of parts ([`crate::control::SwitchPort`]), which are looked at whenever it is touched.
    Switch,
    /// Of a host with queues of its own ([`crate::control::host::Host`]): what it sends is worked out when it arrives.
    Host,
    /// A plain one that pulls its sources.
    Fed,
    /// The same, and its queue is not kept: it is unlimited, and frames are of one size.
    Unkept,
}

impl Line {
    /// An idle port and an empty link.
    pub(crate) fn new(port: Port<FrameId>, lag: Span) -> Line {
        Line {
            head: NO_FRAME,
            tail: NO_FRAME,
            lag,
            role: Role::Plain,
            armed: false,
            watched: false,
            feed: 0,
            boundary: Time::NEVER,
            port,
        }
    }

    /// Puts a frame on the link, at the end of whose transmission; returns when it arrives if it is the only one.
    #[inline(always)]
    pub(crate) fn append(&mut self, frames: &mut Pool, id: FrameId, end: Time) -> Option<Time> {
        let arrives = end + self.lag;
        let frame = &mut frames[id];
        frame.arrives = arrives;
        frame.next = NO_FRAME;
        let behind = std::mem::replace(&mut self.tail, id);
        if self.head == NO_FRAME {
            self.head = id;
            return Some(arrives);
        }
        frames[behind].next = id;
        None
    }

    /// Frames that were sent ahead and have not begun by `now` leave the link, and wait again.
    #[cold]
    pub(crate) fn keep(&mut self, frames: &mut Pool, now: Time) {
        let head = self.head;
        let last = |count: usize| {
            let flying: Vec<FrameId> = frames.linked(head).collect();
            flying[flying.len() - count..].to_vec()
        };
        let Some(first) = self.port.keep(now, last) else { return };
        let last = self.in_flight(frames).find(|&id| frames[id].next == first);
        let last = last.expect("a frame waits behind one that has not left the link");
        frames[last].next = NO_FRAME;
        self.tail = last;
    }

    /// When the port is to be woken, if that is owed and not entered; it counts as entered then.
    #[inline(always)]
    pub(crate) fn arm(&mut self) -> Option<Time> {
        let due = self.port.due();
        if due == Time::NEVER || self.armed {
            return None;
        }
        self.armed = true;
        Some(due)
    }

    /// Whether sources are pulled.
    #[inline]
    pub(crate) fn pulls(&self) -> bool {
        self.role >= Role::Fed
    }

    /// The frames in flight.
    pub(crate) fn in_flight<'a>(&self, frames: &'a Pool) -> impl Iterator<Item = FrameId> + 'a {
        frames.linked(self.head)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn a_line_takes_four_cache_lines_and_what_every_frame_needs_the_first() {
        assert_eq!(size_of::<Line>(), 256);
        // Half of the first is the link's; the other half is the transmitter's, which the port begins with.
        assert_eq!(offset_of!(Line, port), 32);
    }
}
