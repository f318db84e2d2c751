//! Frames, in a pool: named by index, 32 bytes each, the one freed last is used next. What a frame carries beyond its
//! size lies in other pools, which frames without a body never touch.

mod packets;

use std::collections::BTreeMap;

use weir_core::cc::Hop;
use weir_core::estimation::{Ask, Packet};
use weir_core::ethernet::pfc::Says;
use weir_core::ethernet::reaction::Feedback;
use weir_core::host::chain::{Links, NOWHERE};
use weir_core::queue::Lane;
use weir_core::rdma::Packet as Numbered;
use weir_core::tcp::Segment;
use weir_core::units::{Bytes, Time};

use self::packets::Packets;

/// Place of a frame in the pool.
pub(crate) type FrameId = u32;
/// No frame.
pub(crate) const NO_FRAME: FrameId = NOWHERE;
/// No end.
pub(crate) const NO_END: u32 = u32::MAX;

/// Most frames alive at once: 2 GiB.
const MAX_FRAMES: usize = 1 << 26;

/// Once so many have been alive at once, the pool takes a place that it need not leave again.
const MANY_FRAMES: usize = 1 << 12;

/// A frame under way.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Frame {
    /// When it was generated.
    pub(crate) born: Time,
    /// When the frame behind it arrives at the far end of the link, if there is one; see [`Pool::keep`].
    pub(crate) then: Time,
    /// Whose it is.
    pub(crate) flow: u32,
    /// Where it is on its way: a place in [`crate::plan::Plan::route`].
    pub(crate) leg: u32,
    /// The frame behind it on the same link, or the next free place of the pool.
    pub(crate) next: FrameId,
    size: u16,
    pub(crate) lane: Lane,
    pub(crate) kind: Kind,
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Data, without a body.
    Data,
    /// Data without a body that a queue marked.
    Marked,
    /// The same, with more of its burst to come.
    InBurst,
    /// Data with a body, for the agent that receives the flow.
    Loaded,
    /// A notification on its way back to the reaction point of a flow.
    Notification,
    /// PAUSE, on the way to the other end of a link.
    Pause,
}

/// What a frame carries beyond its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// Feedback of a congestion point: its number, and what it says.
    Notification {
        /// Number of the congestion point.
        point: u32,
        /// What it says.
        feedback: Feedback,
    },
    /// PAUSE of all classes, or of some.
    Pause(Says),
    /// Any number that agents agree on.
    Token(u64),
    /// A segment of a connection.
    Tcp(Segment),
    /// A packet of a message, or an answer to one.
    Rdma(Numbered),
    /// A packet of an estimator's train.
    Probe(Packet),
    /// What an estimator asks for.
    Ask(Ask),
}

/// A frame with a body that arrived at the end of its flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    /// The flow.
    pub flow: u32,
    /// Its size.
    pub size: Bytes,
    /// The end that it is meant for, if its flow is one of messages.
    pub end: u32,
    /// What it carries.
    pub body: Body,
}

impl Frame {
    #[inline]
    pub(crate) fn new(born: Time, flow: u32, leg: u32, size: Bytes, lane: Lane) -> Frame {
        let size = u16::try_from(size.count()).expect("frames are at most 65 535 bytes long, as checked");
        Frame { born, then: Time::NEVER, flow, leg, next: NO_FRAME, size, lane, kind: Kind::Data }
    }

    /// The same frame, for another purpose.
    pub(crate) fn of_kind(self, kind: Kind) -> Frame {
        Frame { kind, ..self }
    }

    #[inline]
    pub(crate) fn size(&self) -> Bytes {
        Bytes::new(self.size.into())
    }

    /// Its payload was cut: so much is left.
    pub(crate) fn cut(&mut self, size: Bytes) {
        self.size = self.size.min(u16::try_from(size.count()).unwrap_or(u16::MAX));
    }
}

/// What ports have written into a frame on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trail {
    hops: [Hop; HOPS],
    count: usize,
}

/// Most ports that write into a frame; those behind them find no room.
const HOPS: usize = 8;

impl Trail {
    pub(crate) fn add(&mut self, hop: Hop) {
        if let Some(place) = self.hops.get_mut(self.count) {
            *place = hop;
            self.count += 1;
        }
    }

    pub(crate) fn hops(&self) -> &[Hop] {
        &self.hops[..self.count]
    }
}

/// A body in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Place(Body);

#[derive(Debug, Default)]
pub(crate) struct Pool {
    frames: Vec<Frame>,
    /// The bodies of the frames that agents send, at the places of their frames; not numbered packets.
    bodies: Vec<Place>,
    packets: Packets,
    /// Those of control frames, which are few: what waits without a body pays for none. A place may hold what an earlier frame left
    /// there.
    control: BTreeMap<FrameId, Body>,
    /// The ends that frames of open flows are meant for, at their places; [`NO_END`] of others.
    ends: Vec<u32>,
    /// What ports have written into frames, at their places, where any do.
    trails: Vec<Trail>,
    /// Frames under way, by connection: two ends.
    under_way: Vec<u32>,
    free: FrameId,
    /// Frames in use.
    pub(crate) alive: usize,
    /// Most frames that may be in use.
    pub(crate) limit: usize,
}

impl Pool {
    pub(crate) fn new() -> Pool {
        Pool { free: NO_FRAME, limit: MAX_FRAMES, ..Pool::default() }
    }

    #[inline]
    pub(crate) fn put(&mut self, frame: Frame) -> FrameId {
        self.alive += 1;
        if self.free == NO_FRAME {
            let place = self.frames.len();
            reserve_once(&mut self.frames, place);
            self.frames.push(frame);
            return place as FrameId;
        }
        let id = self.free;
        self.free = std::mem::replace(&mut self[id], frame).next;
        id
    }

    /// Puts a frame of an open flow, which carries `body` and is meant for `end`.
    pub(crate) fn put_open(&mut self, frame: Frame, body: Body, end: u32) -> FrameId {
        let id = self.put_loaded(frame, body);
        if self.ends.len() <= id as usize {
            reserve_once(&mut self.ends, id as usize);
            self.ends.resize(id as usize + 1, NO_END);
        }
        self.ends[id as usize] = end;
        self.under_way[end as usize / 2] += 1;
        id
    }

    /// Puts a frame that carries `body`.
    pub(crate) fn put_loaded(&mut self, frame: Frame, body: Body) -> FrameId {
        debug_assert!(!matches!(frame.kind, Kind::Data | Kind::InBurst), "data without a body");
        let id = self.put(frame);
        if frame.kind != Kind::Loaded {
            self.control.insert(id, body);
            return id;
        }
        self.set_body(id, body);
        id
    }

    #[inline(always)]
    fn set_body(&mut self, id: FrameId, body: Body) {
        if let Body::Rdma(packet) = body {
            return self.packets.put(id, &packet, self[id].born);
        }
        self.packets.forget(id);
        if self.bodies.len() <= id as usize {
            self.bodies.resize(self.frames.len(), Place(body));
        }
        self.bodies[id as usize] = Place(body);
    }

    /// Changes the body of a frame that an agent sent.
    pub(crate) fn change_body<T>(&mut self, id: FrameId, change: impl FnOnce(&mut Body) -> T) -> T {
        let mut body = self.body(id);
        let result = change(&mut body);
        self.set_body(id, body);
        result
    }

    /// A control frame that waits carries something else.
    pub(crate) fn change_control(&mut self, id: FrameId, body: Body) {
        self.control.insert(id, body);
    }

    /// A control frame has come to its end.
    pub(crate) fn forget_control(&mut self, id: FrameId) {
        self.control.remove(&id);
    }

    /// A frame begins to wait at its host, behind all that go to the same `place`: until it is on a link, `next` names the one
    /// behind it and `then` holds the place.
    pub(crate) fn keep(&mut self, id: FrameId, place: u32) {
        let frame = &mut self[id];
        (frame.next, frame.then) = (NO_FRAME, Time::from_ps(place.into()));
    }

    /// The place of a frame that waits at its host.
    pub(crate) fn kept(&self, id: FrameId) -> u32 {
        self[id].then.ps() as u32
    }

    /// The body of a frame that has one.
    pub(crate) fn body(&self, id: FrameId) -> Body {
        if self[id].kind != Kind::Loaded {
            return self.control[&id];
        }
        match self.packet(id) {
            Some(packet) => Body::Rdma(packet),
            None => self.bodies[id as usize].0,
        }
    }

    /// The numbered packet in a frame that an agent sent, if it is one.
    #[inline]
    pub(crate) fn packet(&self, id: FrameId) -> Option<Numbered> {
        self.packets.get(id, self[id].born)
    }

    /// Looks at the body of frame `id`, which will be needed.
    #[inline]
    pub(crate) fn glance(&self, id: FrameId) -> u32 {
        self.bodies.get(id as usize).map_or(0, |place| u32::from(matches!(place.0, Body::Tcp(_))))
    }

    /// The end that frame `id` is meant for, if its flow is open.
    #[inline]
    pub(crate) fn end(&self, id: FrameId) -> Option<u32> {
        if self[id].kind != Kind::Loaded {
            return None;
        }
        self.ends.get(id as usize).copied().filter(|&end| end != NO_END)
    }

    /// Frame `id` has this trail from now on.
    pub(crate) fn set_trail(&mut self, id: FrameId, trail: Trail) {
        if self.trails.len() <= id as usize {
            self.trails.resize(self.frames.len(), Trail::default());
        }
        self.trails[id as usize] = trail;
    }

    /// The trail of frame `id`, if frames have any.
    pub(crate) fn trail(&mut self, id: FrameId) -> Option<&mut Trail> {
        self.trails.get_mut(id as usize)
    }

    /// There are connections up to `number`.
    pub(crate) fn make_room(&mut self, number: u32) {
        self.under_way.resize(self.under_way.len().max(number as usize + 1), 0);
    }

    /// Frames of connection `number` under way.
    pub(crate) fn under_way(&self, number: u32) -> u32 {
        self.under_way.get(number as usize).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn free(&mut self, id: FrameId) {
        if let Some(end) = self.end(id) {
            self.under_way[end as usize / 2] -= 1;
            self.ends[id as usize] = NO_END;
        }
        self.free_data(id);
    }

    /// The same, of a frame without a body.
    #[inline]
    pub(crate) fn free_data(&mut self, id: FrameId) {
        self.alive -= 1;
        self[id].next = self.free;
        self.free = id;
    }

    /// Whether more frames are alive than a run may have.
    pub(crate) fn is_full(&self) -> bool {
        self.alive > self.limit
    }
}

/// Reserves room for all frames that may be alive, or for as many as the system grants, once `pool` is to take one of many. What is not
/// written to takes addresses but no memory; a pool that grew would occupy its old place and the new one while it moves.
#[inline]
fn reserve_once<T>(pool: &mut Vec<T>, place: usize) {
    if place >= MANY_FRAMES && place >= pool.capacity() {
        reserve_all(pool);
    }
}

#[cold]
fn reserve_all<T>(pool: &mut Vec<T>) {
    let mut room = MAX_FRAMES;
    while pool.try_reserve_exact(room).is_err() {
        room /= 2;
    }
}

impl Links for Pool {
    #[inline(always)]
    fn next(&self, id: FrameId) -> FrameId {
        self[id].next
    }

    #[inline(always)]
    fn link(&mut self, id: FrameId, next: FrameId) {
        self[id].next = next;
    }
}

impl std::ops::Index<FrameId> for Pool {
    type Output = Frame;
    #[inline]
    fn index(&self, id: FrameId) -> &Frame {
        &self.frames[id as usize]
    }
}

impl std::ops::IndexMut<FrameId> for Pool {
    #[inline]
    fn index_mut(&mut self, id: FrameId) -> &mut Frame {
        &mut self.frames[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_half_a_cache_line_and_its_body_one() {
        assert_eq!((size_of::<Frame>(), align_of::<Frame>()), (32, 32));
        assert_eq!((size_of::<Place>(), align_of::<Place>()), (64, 64));
    }
}
