//! An output port: a queue and the transmitter behind it, told in numbers when frames come and asked which goes
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

use std::collections::VecDeque;

use crate::spec;
use crate::units::{Bytes, Rate, Span, Time};

/// How much may wait; the frame in transmission and the control lane are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    bytes: u64,
    frames: u64,
}

impl Limit {
    /// Any amount.
    pub const UNLIMITED: Limit = Limit { bytes: u64::MAX, frames: u64::MAX };

    /// Frames of `limit` bytes together.
    pub const fn bytes(limit: Bytes) -> Limit {
        Limit { bytes: limit.count(), frames: u64::MAX }
    }

    /// `limit` frames, whatever their size.
    pub const fn frames(limit: u64) -> Limit {
        Limit { bytes: u64::MAX, frames: limit }
    }
}

impl From<spec::Limit> for Limit {
    fn from(limit: spec::Limit) -> Limit {
        match limit {
            spec::Limit::Bytes(bytes) => Limit::bytes(bytes),
            spec::Limit::Frames(frames) => Limit::frames(frames),
            spec::Limit::Unlimited => Limit::UNLIMITED,
        }
    }
}

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
}

/// What a port counted. A transmission counts when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames transmitted.
    pub frames: u64,
    /// Their sizes.
    pub bytes: u64,
    /// Their transmission times, ps.
    pub busy_ps: u64,
    /// Frames dropped.
    pub drops: u64,
    /// Their sizes.
    pub dropped_bytes: u64,
    /// Integral of the waiting bytes over time, byte ps.
    pub queue_byte_ps: u128,
    /// Integral of the waiting frames over time, ps: the sum of their waiting times.
    pub queue_wait_ps: u128,
}

/// A first-in-first-out drop-tail port with a control lane, which can be paused. `H` names a frame.
#[derive(Clone, Debug)]
pub struct Port<H> {
    /// When the current transmission ends, or the last one ended.
    free_at: Time,
    /// Sum of the sizes in `queue`.
    waiting_bytes: u64,
    queue: VecDeque<(H, u32)>,
    limit: Limit,
    state: u8,
    /// Size and transmission time of the frame transmitted last: most are alike.
    last_size: u32,
    last_tx: Span,
    /// Up to when the integrals are counted.
    settled: Time,
    counters: Counters,
    peak_bytes: u64,
    rate: Rate,
    framing: Bytes,
    cold: Option<Box<Cold<H>>>,
}

/// What few ports ever need.
#[derive(Clone, Debug)]
struct Cold<H> {
    control: VecDeque<(H, u32)>,
    paused_since: Time,
    paused: Span,
}

const PAUSED: u8 = 1;
/// The control lane is not empty.
const CONTROL: u8 = 2;

impl<H: Copy> Port<H> {
    /// An idle port. `rate` is not zero; `framing` is what a frame occupies beyond its size.
    pub fn new(rate: Rate, framing: Bytes, limit: Limit) -> Port<H> {
        Port {
            free_at: Time::ZERO,
            waiting_bytes: 0,
            queue: VecDeque::new(),
            limit,
            state: 0,
            last_size: 0,
            last_tx: framing / rate,
            settled: Time::ZERO,
            counters: Counters::default(),
            peak_bytes: 0,
            rate,
            framing,
            cold: None,
        }
    }

    /// A frame arrives at `now`. Frames are at most 65 535 bytes long.
    #[inline]
    pub fn offer(&mut self, now: Time, handle: H, size: Bytes, lane: Lane) -> Offer {
        debug_assert!(self.due() >= now, "wake what is due before offering");
        let clear = if self.state == 0 { self.queue.is_empty() } else { self.may_pass(lane) };
        if clear && self.free_at <= now {
            return Offer::Sent { end: self.transmit(now, size) };
        }
        match lane {
            Lane::Data => self.admit(now, handle, size),
            Lane::Control => {
                self.control_lane().push_back((handle, narrow(size)));
                self.state |= CONTROL;
                Offer::Waits
            }
        }
    }

    /// The next frame, if one may go at `now`.
    #[inline]
    pub fn wake(&mut self, now: Time) -> Option<Sent<H>> {
        if self.free_at > now {
            return None;
        }
        if self.state != 0 {
            if self.state & CONTROL != 0 {
                return Some(self.wake_control(now));
            }
            return None;
        }
        self.settle(now);
        let (handle, size) = self.queue.pop_front()?;
        self.waiting_bytes -= u64::from(size);
        Some(Sent { handle, end: self.transmit(now, Bytes::new(size.into())) })
    }

    /// When the caller owes the next [`Port::wake`]; [`Time::NEVER`] while nothing may go.
    #[inline]
    pub fn due(&self) -> Time {
        let owed = if self.state == 0 { !self.queue.is_empty() } else { self.state & CONTROL != 0 };
        if owed { self.free_at } else { Time::NEVER }
    }

    /// No frame of the data lane begins from `now` on; one in transmission ends.
    pub fn pause(&mut self, now: Time) {
        if self.state & PAUSED == 0 {
            self.state |= PAUSED;
            self.cold().paused_since = now;
        }
    }

    /// Frames may go again from `now` on; [`Port::due`] tells when the first one does.
    pub fn resume(&mut self, now: Time) {
        if self.state & PAUSED != 0 {
            self.state &= !PAUSED;
            self.free_at = self.free_at.max(now);
            let cold = self.cold();
            cold.paused += now.saturating_since(cold.paused_since);
        }
    }

    /// A frame that has waited since `since` outside of this port, at the head of a queue that is not limited, not
    /// paused and not kept here, begins as soon as it can. Returns when. The port itself keeps no such frame.
    #[inline]
    pub fn pass(&mut self, since: Time, size: Bytes) -> Passed {
        debug_assert!(self.queue.is_empty() && self.state == 0, "frames wait inside or outside of a port");
        let start = self.free_at.max(since);
        let wait = start - since;
        if wait > Span::ZERO {
            self.count_wait(wait, size);
        }
        Passed { wait, end: self.transmit(start, size) }
    }

    /// When the port may begin the next transmission, were it not paused.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Sum of the sizes of the frames that wait in the data lane.
    pub fn waiting_bytes(&self) -> Bytes {
        Bytes::new(self.waiting_bytes)
    }

    /// The frames that wait, control lane first.
    pub fn waiting(&self) -> impl Iterator<Item = H> + '_ {
        let control = self.cold.iter().flat_map(|cold| cold.control.iter());
        control.chain(&self.queue).map(|&(handle, _)| handle)
    }

    /// Largest amount that waited in the data lane since the start or the last [`Port::take_peak`].
    pub fn peak(&self) -> Bytes {
        Bytes::new(self.peak_bytes)
    }

    /// [`Port::peak`]; what waits now becomes the next peak's start.
    pub fn take_peak(&mut self) -> Bytes {
        Bytes::new(std::mem::replace(&mut self.peak_bytes, self.waiting_bytes))
    }

    /// The counters, with the integrals up to `now`.
    pub fn counters_at(&mut self, now: Time) -> Counters {
        self.settle(now);
        self.counters
    }

    /// How long the port was paused up to `now`.
    pub fn paused_until(&self, now: Time) -> Span {
        match &self.cold {
            Some(cold) if self.state & PAUSED != 0 => cold.paused + now.saturating_since(cold.paused_since),
            Some(cold) => cold.paused,
            None => Span::ZERO,
        }
    }

    /// Adds the waiting time of a frame that waits outside of this port, as in [`Port::pass`].
    #[inline]
    pub fn count_wait(&mut self, wait: Span, size: Bytes) {
        self.counters.queue_byte_ps += u128::from(wait.ps()) * u128::from(size.count());
        self.counters.queue_wait_ps += u128::from(wait.ps());
    }

    /// Transmission time of a frame.
    #[inline]
    pub fn transmission(&mut self, size: Bytes) -> Span {
        if narrow(size) != self.last_size {
            self.last_size = narrow(size);
            self.last_tx = (size + self.framing) / self.rate;
        }
        self.last_tx
    }

    #[inline]
    fn transmit(&mut self, now: Time, size: Bytes) -> Time {
        let tx = self.transmission(size);
        self.counters.frames += 1;
        self.counters.bytes += size.count();
        self.counters.busy_ps += tx.ps();
        self.free_at = now + tx;
        self.free_at
    }

    #[inline]
    fn admit(&mut self, now: Time, handle: H, size: Bytes) -> Offer {
        let bytes = self.waiting_bytes + size.count();
        if bytes > self.limit.bytes || self.queue.len() as u64 >= self.limit.frames {
            self.counters.drops += 1;
            self.counters.dropped_bytes += size.count();
            return Offer::Dropped;
        }
        self.settle(now);
        self.waiting_bytes = bytes;
        self.peak_bytes = self.peak_bytes.max(bytes);
        self.queue.push_back((handle, narrow(size)));
        Offer::Waits
    }

    /// Counts the integrals up to `now`.
    #[inline]
    fn settle(&mut self, now: Time) {
        let span = u128::from(now.saturating_since(self.settled).ps());
        self.counters.queue_byte_ps += span * u128::from(self.waiting_bytes);
        self.counters.queue_wait_ps += span * self.queue.len() as u128;
        self.settled = now;
    }

    /// Whether a frame of `lane` may go although the port is in a special state: only past a PAUSE.
    #[cold]
    fn may_pass(&self, lane: Lane) -> bool {
        lane == Lane::Control && self.state == PAUSED
    }

    #[cold]
    fn wake_control(&mut self, now: Time) -> Sent<H> {
        let lane = self.control_lane();
        let (handle, size) = lane.pop_front().expect("CONTROL is set while the lane holds a frame");
        if lane.is_empty() {
            self.state &= !CONTROL;
        }
        Sent { handle, end: self.transmit(now, Bytes::new(size.into())) }
    }

    #[cold]
    fn cold(&mut self) -> &mut Cold<H> {
        let empty = || Box::new(Cold { control: VecDeque::new(), paused_since: Time::ZERO, paused: Span::ZERO });
        self.cold.get_or_insert_with(empty)
    }

    #[cold]
    fn control_lane(&mut self) -> &mut VecDeque<(H, u32)> {
        &mut self.cold().control
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

#[inline]
fn narrow(size: Bytes) -> u32 {
    size.count() as u32
}
