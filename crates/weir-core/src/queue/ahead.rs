//! Frames sent ahead: where nothing is paused and no control frame waits, it is known when a frame will begin as soon as
//! it is admitted.

use super::counters::Packed;
use super::{AHEAD, ALIKE, Counters, KEEPS, MANAGED, Offer, Port, WAITING, narrow};
use crate::units::{Bytes, Time};

impl<H: Copy> Port<H> {
    /// From now on frames are sent ahead, as long as nothing is paused and no control frame waits.
    /// Not where the queue is managed.
    pub fn go_ahead(&mut self) {
        if self.state & MANAGED == 0 {
            self.state &= !KEEPS;
        }
    }

    /// What was sent ahead and has not begun by `now` waits again, for a wake; returns the first such frame. `last` says which frames
    /// were the last so many that were sent, in order.
    #[cold]
    pub fn keep(&mut self, now: Time, last: impl FnOnce(usize) -> Vec<H>) -> Option<H> {
        self.begin_until(now);
        if self.state & AHEAD == 0 {
            return None;
        }
        let frames = self.frames_ahead() as usize;
        let sizes: Vec<u16> = match self.state & ALIKE {
            0 => self.queue.iter().map(|(_, size)| size).collect(),
            _ => vec![self.last_size; frames],
        };
        self.queue.clear();
        last(frames).into_iter().zip(sizes).for_each(|frame| self.queue.push(frame));
        self.state &= !ALIKE;
        self.fold();
        self.sums = Packed(self.begun_by(now));
        (self.free_at, self.settled) = (self.settled, now);
        self.state ^= AHEAD | WAITING;
        self.next_waiting()
    }

    #[inline(always)]
    pub(super) fn offer_ahead(&mut self, now: Time, handle: H, size: Bytes) -> Offer {
        if self.free_at <= now {
            if self.state & AHEAD != 0 {
                self.begin_all();
            }
            return Offer::Sent { end: self.transmit(now, size) };
        }
        self.begin_until(now);
        if !self.has_room(size) {
            self.count_drop(now, size);
            return Offer::Dropped;
        }
        let begins = self.free_at;
        if self.state & ALIKE != 0 && narrow(size) != self.last_size {
            self.list_alike(handle);
        }
        let end = self.transmit(begins, size);
        self.count_wait(begins - now, size);
        if self.state & AHEAD == 0 {
            self.state |= AHEAD | ALIKE;
            self.settled = begins;
        } else if self.state & ALIKE == 0 {
            self.queue.push((handle, narrow(size)));
        }
        self.waiting_bytes += size.count();
        Offer::Sent { end }
    }

    /// Frames sent ahead stand in `queue` from now on, as they will differ in size; under any handle, as [`Port::keep`] asks for
    /// theirs.
    #[cold]
    fn list_alike(&mut self, handle: H) {
        self.queue.clear();
        (0..self.frames_ahead()).for_each(|_| self.queue.push((handle, self.last_size)));
        self.state &= !ALIKE;
    }

    /// How many of the frames sent ahead have not begun, as far as it was reported.
    pub(super) fn frames_ahead(&self) -> u64 {
        if self.state & ALIKE == 0 { self.queue.len() as u64 } else { self.waiting_bytes / u64::from(self.last_size) }
    }

    /// Counts what has begun of the frames sent ahead, `now` included.
    #[inline(always)]
    pub(super) fn begin_until(&mut self, now: Time) {
        if self.state & AHEAD == 0 || self.settled > now {
            return;
        }
        self.sums.0.queue_max_bytes = self.sums.0.queue_max_bytes.max(self.waiting_bytes);
        if self.state & ALIKE != 0 {
            let size = u64::from(self.last_size);
            while self.settled <= now && self.waiting_bytes > 0 {
                self.waiting_bytes -= size;
                self.settled += self.last_tx;
            }
        } else {
            while self.settled <= now
                && let Some((_, size)) = self.queue.pop()
            {
                self.waiting_bytes -= u64::from(size);
                self.settled += self.time_of(size);
            }
        }
        if self.waiting_bytes == 0 {
            self.state &= !(AHEAD | ALIKE);
        }
    }

    /// All frames sent ahead have begun.
    pub(super) fn begin_all(&mut self) {
        self.sums.0.queue_max_bytes = self.sums.0.queue_max_bytes.max(self.waiting_bytes);
        if self.state & ALIKE == 0 {
            self.queue.clear();
        }
        self.waiting_bytes = 0;
        self.state &= !(AHEAD | ALIKE);
    }

    /// Whether frames sent ahead have not begun, as far as it was reported.
    pub fn is_ahead(&self) -> bool {
        self.state & AHEAD != 0
    }

    /// What was counted, without that of frames sent ahead which is to happen after `now`.
    pub(super) fn begun_by(&self, now: Time) -> Counters {
        let counted = self.counted();
        if self.state & AHEAD == 0 {
            return counted;
        }
        let frames = self.frames_ahead();
        let (mut byte_ps, mut wait_ps) = (0, 0);
        let mut wait = u128::from((self.settled - now).ps());
        if frames <= self.alike.into() || self.state & ALIKE != 0 {
            // All of one size: their waits are a series.
            let (n, tx) = (u128::from(frames), u128::from(self.last_tx.ps()));
            wait_ps = n * wait + n * (n - 1) / 2 * tx;
            byte_ps = wait_ps * u128::from(self.last_size);
        } else {
            for (_, size) in self.queue.iter() {
                byte_ps += wait * u128::from(size);
                wait_ps += wait;
                wait += u128::from(self.time_of(size).ps());
            }
        }
        Counters {
            frames: counted.frames - frames,
            bytes: counted.bytes - self.waiting_bytes,
            busy_ps: counted.busy_ps - (self.free_at - self.settled).ps(),
            queue_byte_ps: counted.queue_byte_ps - byte_ps,
            queue_wait_ps: counted.queue_wait_ps - wait_ps,
            ..counted
        }
    }
}
