//! The side of a port whose queue is under active management, or that has queues for traffic classes.

use super::aqm::custom::Managements;
use super::aqm::{Discarded, Label, Managed, Waiting};
use super::classes::{ClassCounters, Classes};
use super::scheduler::ClassSet;
use super::{Lane, MANAGED, Offer, PAUSED, Port, Sent, WAITING};
use crate::rng::Stream;
use crate::spec;
use crate::spec::aqm::Aqm;
use crate::spec::classes::Trim;
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
    /// The same idle port under active queue management; `stream` is its chance, `others` what the program has. Frames that it takes
    /// may be dropped later: after each offer and each wake the caller asks for them with [`Port::take_discarded`].
    ///
    /// # Panics
    /// `others` do not make the management that `aqm` names, for which [`Managements::make`] has the reason.
    #[must_use]
    pub fn managed(mut self, aqm: &Aqm, stream: Stream, others: &Managements) -> Port<H> {
        let classes = Classes::one(Managed::new(aqm, stream, others), self.limit());
        self.state |= MANAGED;
        self.cold().managed = Some(Box::new(classes));
        self
    }

    /// The same idle port with the queues of `classes`, which have passed their check; `stream` is the chance of the queue of a class.
    /// As with [`Port::managed`], the caller asks for what was dropped. The limit of the port itself does not count.
    ///
    /// # Panics
    /// As [`Port::managed`].
    #[must_use]
    pub fn classed(
        mut self,
        classes: &spec::classes::Classes,
        stream: impl Fn(u8) -> Stream,
        others: &Managements,
    ) -> Port<H> {
        self.state |= MANAGED;
        self.cold().managed = Some(Box::new(Classes::new(classes, stream, others)));
        self
    }

    /// No frame of `classes` begins from `now` on; one in transmission ends. A hold of all classes is a pause, which holds
    /// ports without queues for classes, too; others have no effect there.
    pub fn hold(&mut self, now: Time, classes: ClassSet) {
        if classes == ClassSet::ALL {
            return self.pause(now);
        }
        self.settle_managed(now);
        self.change_managed(now, |managed| managed.hold(now, classes));
    }

    /// Frames of `classes` may go again from `now` on; [`Port::due`] says when the first one does. As with [`Port::hold`], a
    /// pause and holds of single classes do not know each other.
    pub fn release(&mut self, now: Time, classes: ClassSet) {
        if classes == ClassSet::ALL {
            return self.resume(now);
        }
        self.settle_managed(now);
        if self.change_managed(now, |managed| managed.release(now, classes)).is_some() {
            self.free_at = self.free_at.max(now);
        }
    }

    /// Drops all that waits in a managed data lane.
    pub(super) fn purge_managed(&mut self, now: Time) -> Vec<H> {
        self.settle_managed(now);
        self.change_managed(now, |managed| managed.clear(now)).unwrap_or_default()
    }

    /// Drops all that waits of `class`, and gives it back, where there are queues for classes. Nothing is sent ahead.
    pub fn purge_class(&mut self, now: Time, class: u8) -> Vec<H> {
        self.settle_managed(now);
        self.change_managed(now, |managed| managed.clear_class(now, class)).unwrap_or_default()
    }

    /// As [`Port::count_drop`], of a frame of `class`.
    pub fn count_drop_of(&mut self, now: Time, size: Bytes, class: u8) {
        self.count_drop(now, size);
        if let Some(classes) = self.cold.as_mut().and_then(|cold| cold.managed.as_mut()) {
            classes.count_drop(class, size);
        }
    }

    /// What the queues of its classes counted up to `now`, if it has any, each with the number of its class.
    pub fn class_counters_at(&mut self, now: Time) -> Vec<(u8, ClassCounters)> {
        let classes = self.cold.as_mut().and_then(|cold| cold.managed.as_mut());
        classes.map_or(Vec::new(), |classes| classes.counters_at(now))
    }

    /// Sum of the sizes of the frames that wait in the queue that frames of `class` join.
    pub fn waiting_bytes_of(&self, class: u8) -> Bytes {
        let classes = self.cold.as_ref().and_then(|cold| cold.managed.as_ref());
        classes.map_or(self.waiting_bytes(), |classes| Bytes::new(classes.bytes_of(class)))
    }

    /// As [`Port::offer`], with what a management wants to know of a frame.
    pub fn offer_labeled(&mut self, now: Time, handle: H, size: Bytes, lane: Lane, label: Label) -> Labeled {
        if self.state & MANAGED == 0 || lane == Lane::Control {
            return Labeled { became: self.offer(now, handle, size, lane), marked: false };
        }
        self.offer_managed(now, handle, size, label)
    }

    /// Whether the data lane is managed, or has queues for classes: its frames are to come with labels.
    #[inline]
    pub fn is_managed(&self) -> bool {
        self.state & MANAGED != 0
    }

    /// A frame that the management has dropped, oldest first.
    pub fn take_discarded(&mut self) -> Option<Discarded<H>> {
        self.cold.as_mut()?.managed.as_mut()?.take_discarded()
    }

    /// A frame whose payload the queue of a class has cut, oldest first: it waits as what is left of it.
    pub fn take_trimmed(&mut self) -> Option<(H, Trim)> {
        self.cold.as_mut()?.managed.as_mut()?.take_trimmed()
    }

    #[cold]
    pub(super) fn offer_managed(&mut self, now: Time, handle: H, size: Bytes, label: Label) -> Labeled {
        let begins = self.is_free(now);
        self.settle_managed(now);
        let frame = Waiting { handle, size, label, since: now, marked: false };
        self.change_managed(now, |managed| managed.enqueue(frame, begins));
        let begins = begins && self.state & WAITING != 0;
        self.sums.0.queue_max_bytes = self.sums.0.queue_max_bytes.max(if begins { 0 } else { self.waiting_bytes });
        match if begins { self.wake_managed(now) } else { None } {
            Some(sent) => Labeled { became: Offer::Sent { end: sent.end }, marked: sent.marked },
            None => Labeled { became: Offer::Waits, marked: false },
        }
    }

    /// A frame comes to a managed port, and is not served before all has come.
    pub(super) fn store_managed(&mut self, now: Time, handle: H, size: Bytes, label: Label) {
        self.settle_managed(now);
        let frame = Waiting { handle, size, label, since: now, marked: false };
        self.change_managed(now, |managed| managed.enqueue(frame, false));
    }

    /// The next frame of the data lane begins.
    #[cold]
    pub(super) fn wake_managed(&mut self, now: Time) -> Option<Sent<H>> {
        self.settle_managed(now);
        let frame = self.change_managed(now, |managed| managed.dequeue(now))??;
        let end = self.transmit(now, frame.size);
        Some(Sent { handle: frame.handle, end, lane: Lane::Data, marked: frame.marked })
    }

    /// Whether a frame of a managed data lane may begin, once the transmitter is free.
    pub(super) fn may_wake_managed(&self) -> bool {
        self.state & (MANAGED | WAITING | PAUSED) == MANAGED | WAITING
    }

    /// Does something to the management, and takes over what has changed by that.
    fn change_managed<T>(&mut self, now: Time, report: impl FnOnce(&mut Classes<H>) -> T) -> Option<T> {
        let managed = self.cold.as_mut()?.managed.as_mut()?;
        let reported = report(managed);
        let dropped = managed.count_dropped();
        self.waiting_bytes = managed.bytes();
        self.state = if managed.is_ready() { self.state | WAITING } else { self.state & !WAITING };
        if dropped.frames > 0 {
            self.sums.0.drops += dropped.frames;
            self.sums.0.dropped_bytes += dropped.bytes;
            self.first_drop = self.first_drop.min(now);
            self.last_drop = now;
        }
        Some(reported)
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
