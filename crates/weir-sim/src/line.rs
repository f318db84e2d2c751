//! A port, and the link behind it.
//!
//! They are apart in memory. A frame that arrives needs the link that it was on, and then the next port with its link. Links are small, so that
//! those of a large network stay in a near cache; and the first cache line of a port is all of it that most frames need.

use weir_core::host::chain::places_from;
use weir_core::queue::Port;
use weir_core::units::{Bytes, Span, Time};

use crate::frames::{FrameId, NO_FRAME, Pool};

/// A transmitter and the queue before it.
///
/// Five cache lines, an odd number: so the first ones of all ports, which are needed most, do not share a few sets of a cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Line {
    /// Time from the end of a transmission until the frame may leave the next node.
    pub(crate) lag: Span,
    pub(crate) port: Port<FrameId>,
    odd: [u64; 7],
    /// When the current interval ends, if intervals are written down.
    pub(crate) boundary: Time,
    /// Where the role is [`Role::Marking`]: while no more waits, nothing is marked.
    pub(crate) unmarked: Bytes,
}

/// The link behind a transmitter, and what the port is.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// First and last frame in flight.
    pub(crate) head: FrameId,
    tail: FrameId,
    pub(crate) role: Role,
    /// Whether the wake of the port is in the agenda; always, where it has none.
    pub(crate) armed: bool,
    /// Whether each transmission is looked at: frames are lost on the link, or captured.
    pub(crate) watched: bool,
    /// Whether the port is looked at whenever it is touched: it has parts, or intervals are written down.
    pub(crate) noted: bool,
}

/// What a port is: all that follows from it is asked of this one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Role {
    /// First in, first out; drops what has no room.
    Plain,
    /// The same, and its queue marks frames that join it.
    Marking,
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
    /// With an idle port.
    pub(crate) fn new(port: Port<FrameId>, lag: Span) -> Line {
        Line { lag, port, odd: [0; 7], boundary: Time::NEVER, unmarked: Bytes::ZERO }
    }
}

impl Link {
    /// An empty link behind a plain port.
    pub(crate) const NEW: Link =
        Link { head: NO_FRAME, tail: NO_FRAME, role: Role::Plain, armed: false, watched: false, noted: false };

    /// Puts a frame on the link that arrives at `arrives`; whether it is the only one.
    #[inline(always)]
    pub(crate) fn append(&mut self, frames: &mut Pool, id: FrameId, arrives: Time) -> bool {
        frames[id].next = NO_FRAME;
        let before = std::mem::replace(&mut self.tail, id);
        if self.head == NO_FRAME {
            self.head = id;
            return true;
        }
        let before = &mut frames[before];
        (before.next, before.then) = (id, arrives);
        false
    }

    /// Takes the first frame off the link. Returns when the next one arrives; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub(crate) fn take(&mut self, frames: &Pool) -> Time {
        let first = &frames[self.head];
        self.head = first.next;
        if self.head == NO_FRAME { Time::NEVER } else { first.then }
    }

    /// Frames that `port` sent ahead and that have not begun by `now` leave the link, and wait again.
    #[cold]
    pub(crate) fn keep(&mut self, port: &mut Port<FrameId>, frames: &mut Pool, now: Time) {
        let head = self.head;
        let last = |count: usize| {
            let flying: Vec<FrameId> = places_from(head, &*frames).collect();
            flying[flying.len() - count..].to_vec()
        };
        let Some(first) = port.keep(now, last) else { return };
        let last = self.in_flight(frames).find(|&id| frames[id].next == first);
        let last = last.expect("a frame waits behind one that has not left the link");
        frames[last].next = NO_FRAME;
        self.tail = last;
    }

    /// When the port is to be woken that owes a wake at `due`, if that is not entered; it counts as entered then.
    #[inline(always)]
    pub(crate) fn arm(&mut self, due: Time) -> Option<Time> {
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
        places_from(self.head, frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_links_fit_into_a_cache_line_and_a_port_takes_an_odd_number_of_them() {
        assert_eq!(size_of::<Link>(), 12);
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (5 * 64, 64));
    }
}
