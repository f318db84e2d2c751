//! An output port: a queue and the transmitter behind it, in numbers: it learns when frames come, and is asked which goes
//! next. The simulator calls it in virtual time with frame indices, the live tools with buffer indices and the
//! monotonic clock.
//!
//! Contract: *first wake what is due, then offer.* [`Port::offer`] either starts to transmit at once (the port was
//! idle; the frame can no longer be revoked), or lets the frame wait, or drops it. As long as [`Port::due`] is not
//! [`Time::NEVER`], the caller owes a [`Port::wake`] at that time; when the end of a transmission and an arrival
//! coincide, the wake comes first. So no time is spent on transmissions after which nothing waits.
//!
//! ```
//! use weir_core::queue::{Lane, Limit, Offer, Port};
//! use weir_core::units::{Bytes, Rate, Time};
//!
//! let mut port = Port::new(Rate::from_gbit_per_s(10), Bytes::ZERO, Limit::frames(1));
//! let frame = Bytes::new(1500);
//! assert_eq!(port.offer(Time::ZERO, 'a', frame, Lane::Data), Offer::Sent { end: Time::from_ps(1_200_000) });
//! assert_eq!(port.offer(Time::ZERO, 'b', frame, Lane::Data), Offer::Waits);
//! assert_eq!(port.offer(Time::ZERO, 'c', frame, Lane::Data), Offer::Dropped);
//! assert_eq!(port.due(), Time::from_ps(1_200_000));
//! assert_eq!(port.wake(port.due()).map(|sent| sent.handle), Some('b'));
//! assert_eq!(port.due(), Time::NEVER);
//! ```

//! A port under active queue management ([`aqm::codel`], [`aqm::pie`], [`aqm::fq_codel`], [`aqm::dual_pi2`]) drops frames that it has taken, and marks some:
//! see [`Port::managed`]. A port may have queues for up to eight traffic classes, each with a discipline, and a [`scheduler`]:
//! see [`Port::classed`].
//!
//! Reading order: this file (drop-tail), `counters` (what it counts), `ahead` (the same with fewer events), `stored` (frames of one instant
//! come before any is served), `memory` (what the ports of a switch share), `buffer` (the same, counted at inputs and outputs), `classes` and `scheduler` (traffic classes), `aqm` (what
//! managements share).

mod ahead;
pub mod aqm;
mod buffer;
mod classes;
mod counters;
mod held;
mod limit;
mod managed;
mod memory;
mod overrun;
pub mod scheduler;
mod stored;
mod views;

use std::collections::VecDeque;

pub use self::aqm::custom::{Custom, Management, Managements, Queued, Verdict, Waits};
pub use self::aqm::{Discarded, Label};
pub use self::buffer::{Buffer, Entered, InputCounters, Part, Passage};
pub use self::classes::ClassCounters;
use self::classes::Classes;
use self::counters::Packed;
pub use self::counters::{Counters, Pauses};
pub use self::limit::Limit;
pub use self::managed::Labeled;
pub use self::memory::{SharedMemory, Space};
pub use self::overrun::Overrun;
pub use self::scheduler::ClassSet;
use crate::ring::Ring;
use crate::units::{Bytes, PS_PER_S, Rate, Span, Time};

/// Which of a port's two queues a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Subject to the limit and to PAUSE.
    Data,
    /// Goes first, is never dropped and not held up by PAUSE.
    Control,
}

/// What became of an offered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Its transmission began at once.
    Sent {
        /// When the transmission ends.
        end: Time,
    },
    /// It waits.
    Waits,
    /// The queue was full.
    Dropped,
}

/// A frame whose transmission begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<H> {
    /// The frame.
    pub handle: H,
    /// When the transmission ends.
    pub end: Time,
    /// Where it waited.
    pub lane: Lane,
    /// Whether the queue management marks it.
    pub marked: bool,
}

/// A first-in-first-out drop-tail port with a control lane, which can be paused. `H` names a frame.
///
/// While nothing is paused and no control frame waits, it is known when a frame will begin as soon as it is admitted. A
/// port that was asked to [`Port::go_ahead`] says so at once: the frame is [`Offer::Sent`], though its transmission
/// may begin later, and no wake is owed. [`Port::keep`] takes back what has not begun.
///
/// Fields stand in the order in which they are needed: first, in 56 bytes, what every frame needs, be it sent at once, ahead or dropped for
/// lack of room; then the queue, the greatest backlog and the drops, in 64; then the rest. So a simulator of many ports touches few cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Port<H> {
    /// When the current transmission ends, or the last one ended.
    free_at: Time,
    /// Up to when the integrals are counted; if AHEAD, when the first frame of `queue` begins.
    settled: Time,
    /// Sum of the sizes in `queue`.
    waiting_bytes: u64,
    /// Most that may wait: bytes, or frames if IN_FRAMES.
    limit: u64,
    /// Transmission time of frames of `last_size`.
    last_tx: Span,
    /// How long frames of `last_size` waited of which that was known at once, since the last frame of another size, ps.
    alike_wait: u64,
    /// Frames of `last_size` transmitted since then.
    alike: u32,
    last_size: u16,
    state: u16,

    queue: Ring<(H, u16)>,
    /// The first and the last drop; [`Time::NEVER`] without one.
    first_drop: Time,
    last_drop: Time,
    /// The counters without what `alike`, `alike_wait`, `byte_ps`, `frame_ps` and, for the maximum, `waiting_bytes` hold.
    sums: Packed,
    cold: Option<Box<Cold<H>>>,
    /// Integrals since `sums` was added to, byte ps and frame ps. Those of frames sent ahead are counted up to their
    /// begin.
    byte_ps: u64,
    frame_ps: u64,
    rate: Rate,
    framing: Bytes,
    /// ps, if a byte takes a whole number of them; 0 if not.
    byte_time: u64,
}

/// What few ports ever need.
#[derive(Debug)]
struct Cold<H> {
    control: VecDeque<(H, u16)>,
    paused_since: Time,
    pauses: Pauses,
    managed: Option<Box<Classes<H>>>,
}

/// Bits of `state`. Without those of HELD the port serves whatever comes.
const PAUSED: u16 = 1;
/// The control lane is not empty.
const CONTROL: u16 = 2;
/// The data lane is not empty.
const WAITING: u16 = 4;
/// The limit counts frames.
const IN_FRAMES: u16 = 8;
/// Frames are put in by [`Port::store`].
const STORING: u16 = 16;
const HELD: u16 = PAUSED | CONTROL | WAITING | MANAGED;
/// Frames are not sent ahead.
const KEEPS: u16 = 32;
/// The frames in `queue` were sent ahead, and have not begun.
const AHEAD: u16 = 64;
/// The data lane is under active queue management; its frames are not in `queue`.
const MANAGED: u16 = 128;
/// The frames that were sent ahead and have not begun are all of `last_size`, and not in `queue`.
const ALIKE: u16 = 256;

impl<H: Copy> Port<H> {
    /// An idle port. `rate` is not zero; `framing` is what a frame occupies beyond its size.
    pub fn new(rate: Rate, framing: Bytes, limit: Limit) -> Port<H> {
        Port {
            free_at: Time::ZERO,
            last_tx: framing / rate,
            alike: 0,
            alike_wait: 0,
            last_size: 0,
            state: KEEPS | if limit.in_frames { IN_FRAMES } else { 0 },
            queue: Ring::new(),
            waiting_bytes: 0,
            limit: limit.most,
            settled: Time::ZERO,
            byte_ps: 0,
            frame_ps: 0,
            sums: Packed::default(),
            rate,
            framing,
            byte_time: byte_time(rate),
            first_drop: Time::NEVER,
            last_drop: Time::NEVER,
            cold: None,
        }
    }

    fn limit(&self) -> Limit {
        Limit { most: self.limit, in_frames: self.state & IN_FRAMES != 0 }
    }

    /// A frame arrives at `now`. Frames are at most 65 535 bytes long.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, handle: H, size: Bytes, lane: Lane) -> Offer {
        if self.state & (HELD | KEEPS) == 0 && lane == Lane::Data {
            return self.offer_ahead(now, handle, size);
        }
        self.offer_kept(now, handle, size, lane)
    }

    #[inline(always)]
    fn offer_kept(&mut self, now: Time, handle: H, size: Bytes, lane: Lane) -> Offer {
        debug_assert!(self.due() >= now || self.state & STORING != 0, "wake what is due before offering");
        if self.free_at <= now && (self.state & HELD == 0 || self.may_pass(lane)) {
            return Offer::Sent { end: self.transmit(now, size) };
        }
        match lane {
            Lane::Data if self.state & MANAGED != 0 => self.offer_managed(now, handle, size, Label::default()).became,
            Lane::Data if self.has_room(size) => self.admit(now, handle, size),
            Lane::Data => {
                self.count_drop(now, size);
                Offer::Dropped
            }
            Lane::Control => {
                self.control_lane().push_back((handle, narrow(size)));
                self.state |= CONTROL;
                Offer::Waits
            }
        }
    }

    /// The next frame, if one may go at `now`.
    #[inline(always)]
    pub fn wake(&mut self, now: Time) -> Option<Sent<H>> {
        if self.free_at > now {
            return None;
        }
        if self.state & HELD != WAITING {
            return self.wake_special(now);
        }
        self.settle(now);
        self.sums.0.queue_max_bytes = self.sums.0.queue_max_bytes.max(self.waiting_bytes);
        self.begin_first(now)
    }

    /// The first frame of the data lane begins.
    #[inline(always)]
    fn begin_first(&mut self, now: Time) -> Option<Sent<H>> {
        let (handle, size) = self.queue.pop()?;
        self.waiting_bytes -= u64::from(size);
        if self.queue.is_empty() {
            self.state &= !WAITING;
        }
        Some(Sent { handle, end: self.transmit(now, Bytes::new(size.into())), lane: Lane::Data, marked: false })
    }

    /// When the caller owes the next [`Port::wake`]; [`Time::NEVER`] while nothing may go.
    #[inline]
    pub fn due(&self) -> Time {
        let owed = self.state & (PAUSED | WAITING) == WAITING || self.state & CONTROL != 0;
        if owed { self.free_at } else { Time::NEVER }
    }

    /// A frame that has waited since `since` outside of this port, at the head of a queue that is not limited, not
    /// paused and not kept here, begins as soon as it can. The port itself keeps no such frame.
    #[inline(always)]
    pub fn pass(&mut self, since: Time, size: Bytes) -> Passed {
        debug_assert!(self.state & HELD == 0, "frames wait inside or outside of a port");
        let start = self.free_at.max(since);
        let wait = start - since;
        let end = self.transmit(start, size);
        self.count_wait(wait, size);
        Passed { wait, end }
    }

    /// Transmission time of a frame.
    #[inline]
    pub fn transmission(&mut self, size: Bytes) -> Span {
        if narrow(size) != self.last_size {
            if self.state & ALIKE != 0 {
                return self.reckon(size);
            }
            self.change_size(size);
        }
        self.last_tx
    }

    /// As [`Port::transmission`], of a frame that was counted before.
    #[inline(always)]
    fn time_of(&self, size: u16) -> Span {
        if size == self.last_size { self.last_tx } else { self.reckon(Bytes::new(size.into())) }
    }

    fn reckon(&self, size: Bytes) -> Span {
        let occupied = size + self.framing;
        if self.byte_time > 0 { Span::from_ps(self.byte_time) * occupied.count() } else { occupied / self.rate }
    }

    #[inline(always)]
    fn transmit(&mut self, now: Time, size: Bytes) -> Time {
        let tx = self.transmission(size);
        self.alike = match self.alike.checked_add(1) {
            Some(alike) => alike,
            None => self.start_anew(),
        };
        self.free_at = now + tx;
        self.free_at
    }

    /// Whether the data lane can take a frame.
    #[inline]
    fn has_room(&self, size: Bytes) -> bool {
        let load = if self.state & IN_FRAMES == 0 {
            self.waiting_bytes + size.count()
        } else {
            self.waiting_frames() as u64 + 1
        };
        load <= self.limit
    }

    #[inline]
    fn admit(&mut self, now: Time, handle: H, size: Bytes) -> Offer {
        self.settle(now);
        self.waiting_bytes += size.count();
        self.state |= WAITING;
        self.queue.push((handle, narrow(size)));
        Offer::Waits
    }

    /// As many frames were alike as can be counted: this one is the first again.
    #[cold]
    fn start_anew(&mut self) -> u32 {
        self.fold();
        1
    }

    fn change_size(&mut self, size: Bytes) {
        self.fold();
        self.last_size = narrow(size);
        self.last_tx = self.reckon(size);
    }

    /// Whether a frame of `lane` may go although the port is in a special state: only past a PAUSE, or past an empty
    /// data lane that is managed.
    #[cold]
    fn may_pass(&self, lane: Lane) -> bool {
        let is_open = self.state & PAUSED != 0 || self.state & (MANAGED | WAITING) == MANAGED;
        lane == Lane::Control && is_open && self.state & CONTROL == 0
    }

    /// Only a control frame may go, or one of a managed data lane.
    #[cold]
    fn wake_special(&mut self, now: Time) -> Option<Sent<H>> {
        if self.state & CONTROL == 0 {
            return if self.may_wake_managed() { self.wake_managed(now) } else { None };
        }
        let lane = self.control_lane();
        let (handle, size) = lane.pop_front()?;
        if lane.is_empty() {
            self.state &= !CONTROL;
        }
        Some(Sent { handle, end: self.transmit(now, Bytes::new(size.into())), lane: Lane::Control, marked: false })
    }

    #[cold]
    fn cold(&mut self) -> &mut Cold<H> {
        let empty = || {
            let pauses = Pauses::default();
            Box::new(Cold { control: VecDeque::new(), paused_since: Time::ZERO, pauses, managed: None })
        };
        self.cold.get_or_insert_with(empty)
    }

    #[cold]
    fn control_lane(&mut self) -> &mut VecDeque<(H, u16)> {
        &mut self.cold().control
    }
}

impl<H> Cold<H> {
    /// The pauses, if the current one ends at `now`.
    fn pauses_until(&self, now: Time) -> Pauses {
        self.pauses.with(self.paused_since, now)
    }
}

/// What [`Port::pass`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// How long the frame waited.
    pub wait: Span,
    /// When its transmission ends.
    pub end: Time,
}

/// What a byte takes at `rate`, ps, if that is a whole number; 0 if not.
fn byte_time(rate: Rate) -> u64 {
    let bits = 8 * PS_PER_S;
    if bits.is_multiple_of(rate.bps()) { bits / rate.bps() } else { 0 }
}

#[inline]
fn narrow(size: Bytes) -> u16 {
    debug_assert!(size.count() <= u16::MAX.into(), "a frame is at most 65 535 bytes long");
    size.count() as u16
}
