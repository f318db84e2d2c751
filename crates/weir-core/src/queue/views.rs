//! What is to be seen of a port.

use super::{AHEAD, ALIKE, HELD, MANAGED, PAUSED, Port};
use crate::units::{Bytes, Time};

impl<H: Copy> Port<H> {
    /// When the port may begin a frame that is offered now, were it not paused.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// When the current transmission ends, or the last one ended, as far as it was reported.
    pub fn ends_at(&self) -> Time {
        if self.state & AHEAD == 0 { self.free_at } else { self.settled }
    }

    /// When a frame of the data lane that is offered at `now` begins, if the port is not paused and no control frame comes.
    pub fn start_of_next(&self, now: Time) -> Time {
        if self.state & AHEAD != 0 {
            return self.free_at.max(now);
        }
        let waiting = Bytes::new(self.waiting_bytes) + self.framing * self.waiting_frames() as u64;
        if waiting == Bytes::ZERO { self.free_at.max(now) } else { self.free_at.max(now) + waiting / self.rate }
    }

    /// Sum of the sizes of the frames that wait in the data lane.
    pub fn waiting_bytes(&self) -> Bytes {
        Bytes::new(self.waiting_bytes)
    }

    /// The frame of the data lane that waits at its head.
    #[inline]
    pub fn next_waiting(&self) -> Option<H> {
        self.queue.first().map(|(handle, _)| handle)
    }

    /// The frames that wait, control lane first; without those sent ahead.
    pub fn waiting(&self) -> impl Iterator<Item = H> + '_ {
        let control = self.cold.iter().flat_map(|cold| cold.control.iter());
        let kept = self.queue.iter().filter(|_| self.state & AHEAD == 0);
        let managed = self.cold.iter().filter_map(|cold| cold.managed.as_ref()).flat_map(|managed| managed.waiting());
        control.copied().chain(kept).map(|(handle, _)| handle).chain(managed)
    }

    /// Whether the port is paused.
    pub fn is_paused(&self) -> bool {
        self.state & PAUSED != 0
    }

    /// Whether a frame of the data lane that is offered at `now` begins at once.
    #[inline]
    pub fn is_free(&self, now: Time) -> bool {
        self.free_at <= now && self.state & (HELD & !MANAGED) == 0
    }

    /// How many frames wait in the data lane.
    #[inline]
    pub fn waiting_frames(&self) -> usize {
        match self.state & (MANAGED | ALIKE) {
            0 => self.queue.len(),
            ALIKE => self.frames_ahead() as usize,
            _ => self.managed_frames() as usize,
        }
    }
}
