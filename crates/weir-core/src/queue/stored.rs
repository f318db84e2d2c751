//! A port whose frames are stored first and served when all has arrived that comes at an instant: those of switches with a
//! shared memory.

use super::aqm::Label;
use super::{HELD, MANAGED, Port, STORING, Sent, WAITING};
use crate::units::{Bytes, Time};

impl<H: Copy> Port<H> {
    /// The same port, for frames that are put in by [`Port::store`] and taken out by [`Port::serve`].
    #[must_use]
    pub fn storing(mut self) -> Port<H> {
        self.state |= STORING;
        self
    }

    /// A frame arrives at `now` and is put into the data lane although the transmitter may be free: the caller owes a
    /// [`Port::serve`] when all has arrived that comes at this instant. A frame at the head that may begin now is not
    /// held against the limit, unless the queue is managed or one of several. Whether there was room; a managed port says
    /// what it drops by [`Port::take_discarded`], be it this frame.
    pub fn store(&mut self, now: Time, handle: H, size: Bytes, label: Label) -> bool {
        self.free_at = self.free_at.max(now);
        if self.state & MANAGED != 0 {
            self.keep_maximum(now);
            self.store_managed(now, handle, size, label);
            return true;
        }
        let begins = if self.free_at == now { self.queue.first().map(|(_, size)| u64::from(size)) } else { Some(0) };
        let has_room = begins.is_none_or(|bytes| {
            let frames = self.queue.len() as u64 + u64::from(bytes == 0);
            self.limit().admits(frames, self.waiting_bytes - bytes + size.count())
        });
        if has_room {
            self.keep_maximum(now);
            self.admit(now, handle, size);
        }
        has_room
    }

    /// As [`Port::wake`], after [`Port::store`].
    pub fn serve(&mut self, now: Time) -> Option<Sent<H>> {
        self.keep_maximum(now);
        if self.free_at > now {
            return None;
        }
        if self.state & HELD != WAITING {
            return self.wake_special(now);
        }
        self.settle(now);
        self.begin_first(now)
    }

    /// Whether a frame of the data lane waits that may begin at `now`.
    pub fn begins_data(&self, now: Time) -> bool {
        self.free_at <= now && self.state & HELD == WAITING
    }

    /// What waits counts for the maximum if it has waited for longer than an instant.
    fn keep_maximum(&mut self, now: Time) {
        if now > self.settled {
            self.sums.0.queue_max_bytes = self.sums.0.queue_max_bytes.max(self.waiting_bytes);
        }
    }
}
