//! The side of a port that is under active queue management.

use super::aqm::{Discarded, Label, Managed, Waiting};
use super::{Lane, MANAGED, Offer, PAUSED, Port, Sent, WAITING};
use crate::rng::Stream;
use crate::spec::aqm::Aqm;
use crate::units::{Bytes, Time};

/// What became of a frame that was offered with a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labeled {
    /// As without one.
    pub became: Offer,
    /// Whether it was marked, of a frame whose transmission began at once.
    pub marked: bool,
}

impl<H: Copy> Port<H> {
    /// The same idle port under active queue management; `stream` is its chance. Frames that it takes may be dropped later:
    /// after each offer and each wake the caller asks for them with [`Port::take_discarded`].
    #[must_use]
    pub fn managed(mut self, aqm: &Aqm, stream: Stream) -> Port<H> {
        self.state |= MANAGED;
        self.cold().managed = Some(Box::new(Managed::new(aqm, stream)));
        self
    }

    /// As [`Port::offer`], with what a management wants to know of a frame.
    pub fn offer_labeled(&mut self, now: Time, handle: H, size: Bytes, lane: Lane, label: Label) -> Labeled {
        if self.state & MANAGED == 0 || lane == Lane::Control {
            return Labeled { became: self.offer(now, handle, size, lane), marked: false };
        }
        self.offer_managed(now, handle, size, label)
    }

    /// A frame that the management has dropped, oldest first.
    pub fn take_discarded(&mut self) -> Option<Discarded<H>> {
        self.cold.as_mut()?.managed.as_mut()?.take_discarded()
    }

    #[cold]
    pub(super) fn offer_managed(&mut self, now: Time, handle: H, size: Bytes, label: Label) -> Labeled {
        let begins = self.is_free(now);
        self.settle_managed(now);
        let limit = self.limit();
        let frame = Waiting { handle, size, label, since: now, marked: false };
        self.tell_managed(now, |managed| managed.enqueue(frame, limit, begins));
        self.sums.queue_max_bytes = self.sums.queue_max_bytes.max(if begins { 0 } else { self.waiting_bytes });
        match if begins { self.wake_managed(now) } else { None } {
            Some(sent) => Labeled { became: Offer::Sent { end: sent.end }, marked: sent.marked },
            None => Labeled { became: Offer::Waits, marked: false },
        }
    }

    /// The next frame of the data lane begins.
    #[cold]
    pub(super) fn wake_managed(&mut self, now: Time) -> Option<Sent<H>> {
        self.settle_managed(now);
        let frame = self.tell_managed(now, |managed| managed.dequeue(now))??;
        let end = self.transmit(now, frame.size);
        Some(Sent { handle: frame.handle, end, lane: Lane::Data, marked: frame.marked })
    }

    /// Whether a frame of a managed data lane may begin, once the transmitter is free.
    pub(super) fn may_wake_managed(&self) -> bool {
        self.state & (MANAGED | WAITING | PAUSED) == MANAGED | WAITING
    }

    /// Tells the management something, and takes over what has changed by that.
    fn tell_managed<T>(&mut self, now: Time, tell: impl FnOnce(&mut Managed<H>) -> T) -> Option<T> {
        let managed = self.cold.as_mut()?.managed.as_mut()?;
        let told = tell(managed);
        let dropped = managed.count_dropped();
        self.waiting_bytes = managed.bytes();
        self.state = if managed.frames() == 0 { self.state & !WAITING } else { self.state | WAITING };
        if dropped.frames > 0 {
            self.sums.drops += dropped.frames;
            self.sums.dropped_bytes += dropped.bytes;
            self.first_drop = self.first_drop.min(now);
            self.last_drop = now;
        }
        Some(told)
    }

    /// Counts the integrals up to `now`.
    pub(super) fn settle_managed(&mut self, now: Time) {
        let span = now.saturating_since(self.settled);
        self.settled = now;
        self.integrate(span, self.waiting_bytes, self.managed_frames());
    }

    /// How many frames wait in a managed data lane.
    pub(super) fn managed_frames(&self) -> u64 {
        self.cold.as_ref().and_then(|cold| cold.managed.as_ref()).map_or(0, |managed| managed.frames())
    }
}
