//! Frames sent ahead: where nothing is paused and no control frame waits, it is known when a frame will begin as soon as
//! it is admitted.

use super::{AHEAD, Counters, KEEPS, MANAGED, Offer, Port, WAITING, narrow};
use crate::units::{Bytes, Time};

impl<H: Copy> Port<H> {
    /// From now on frames are sent ahead, as long as nothing is paused and no control frame waits.
    /// Not where the queue is managed.
    pub fn go_ahead(&mut self) {
        if self.state & MANAGED == 0 {
            self.state &= !KEEPS;
        }
    }

    /// What was sent ahead and has not begun by `now` waits again, for a wake; returns the first such frame.
    #[cold]
    pub fn keep(&mut self, now: Time) -> Option<H> {
        self.begin_until(now);
        if self.state & AHEAD == 0 {
            return None;
        }
        self.fold();
        self.sums = self.begun_by(now);
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
        if self.state & AHEAD == 0 {
            self.state |= AHEAD;
            self.settled = self.free_at;
        }
        self.waiting_bytes += size.count();
        self.queue.push((handle, narrow(size)));
        self.count_wait(self.free_at - now, size);
        Offer::Sent { end: self.transmit(self.free_at, size) }
    }

    /// Counts what has begun of the frames sent ahead, `now` included.
    #[inline(always)]
    pub(super) fn begin_until(&mut self, now: Time) {
        if self.state & AHEAD == 0 || self.settled > now {
            return;
        }
        self.sums.queue_max_bytes = self.sums.queue_max_bytes.max(self.waiting_bytes);
        while self.settled <= now
            && let Some((_, size)) = self.queue.pop()
        {
            self.waiting_bytes -= u64::from(size);
            self.settled += self.time_of(size);
        }
        if self.queue.is_empty() {
            self.state &= !AHEAD;
        }
    }

    /// All frames sent ahead have begun.
    pub(super) fn begin_all(&mut self) {
        self.sums.queue_max_bytes = self.sums.queue_max_bytes.max(self.waiting_bytes);
        self.queue.clear();
        self.waiting_bytes = 0;
        self.state &= !AHEAD;
    }

    /// Whether frames sent ahead have not begun, as far as it was told.
    pub fn is_ahead(&self) -> bool {
        self.state & AHEAD != 0
    }

    /// What was counted, without that of frames sent ahead which is to happen after `now`.
    pub(super) fn begun_by(&self, now: Time) -> Counters {
        let counted = self.counted();
        if self.state & AHEAD == 0 {
            return counted;
        }
        let frames = self.queue.len() as u64;
        let (mut byte_ps, mut wait_ps) = (0, 0);
        let mut wait = u128::from((self.settled - now).ps());
        if frames <= self.alike {
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
