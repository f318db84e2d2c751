//! A port that is paused, changed or emptied.

use super::limit::Limit;
use super::{AHEAD, IN_FRAMES, MANAGED, PAUSED, Port, WAITING, byte_time};
use crate::units::{Bytes, Rate, Span, Time};

impl<H: Copy> Port<H> {
    /// No frame of the data lane begins from `now` on; one in transmission ends.
    pub fn pause(&mut self, now: Time) {
        if self.state & PAUSED == 0 {
            self.state |= PAUSED;
            let cold = self.cold();
            cold.paused_since = now;
            cold.pauses.count += 1;
        }
    }

    /// Frames may go again from `now` on; [`Port::due`] says when the first one does.
    pub fn resume(&mut self, now: Time) {
        if self.state & PAUSED != 0 {
            self.state &= !PAUSED;
            self.free_at = self.free_at.max(now);
            let cold = self.cold();
            cold.pauses = cold.pauses_until(now);
        }
    }

    /// The rate from `now` on; not zero. A transmission under way goes on at the new rate, so that what is left of it
    /// takes another time: [`Port::free_at`] says when it ends now.
    pub fn change_rate(&mut self, now: Time, rate: Rate) {
        debug_assert!(self.state & AHEAD == 0, "keep what was sent ahead before changing the rate");
        self.fold();
        let left = self.free_at.saturating_since(now);
        if left > Span::ZERO {
            let bits = u128::from(left.ps()) * u128::from(self.rate.bps());
            let ps = bits.div_ceil(u128::from(rate.bps()));
            let stretched = Span::from_ps(u64::try_from(ps).expect("a transmission ends within 213 days"));
            self.free_at = now + stretched;
            self.sums.0.busy_ps = self.sums.0.busy_ps + stretched.ps() - left.ps();
        }
        (self.rate, self.byte_time) = (rate, byte_time(rate));
        self.last_tx = self.reckon(Bytes::new(self.last_size.into()));
    }

    /// The rate of frames that begin from now on; not zero. As with [`Port::change_rate`], nothing is sent ahead.
    pub fn set_rate(&mut self, rate: Rate) {
        debug_assert!(self.state & AHEAD == 0, "keep what was sent ahead before changing the rate");
        self.fold();
        (self.rate, self.byte_time) = (rate, byte_time(rate));
        self.last_tx = self.reckon(Bytes::new(self.last_size.into()));
    }

    /// What may wait from now on, of `class` where there are queues for classes. Frames that wait already stay.
    pub fn set_limit(&mut self, limit: Limit, class: Option<u8>) {
        if let Some(classes) = self.cold.as_mut().and_then(|cold| cold.managed.as_mut()) {
            return classes.set_limit(class.unwrap_or(0), limit);
        }
        self.limit = limit.most;
        self.state = self.state & !IN_FRAMES | if limit.in_frames { IN_FRAMES } else { 0 };
    }

    /// Drops all that waits in the data lane, and gives it back. Nothing is sent ahead.
    pub fn purge(&mut self, now: Time) -> Vec<H> {
        debug_assert!(self.state & AHEAD == 0, "keep what was sent ahead before dropping it");
        if self.state & MANAGED != 0 {
            return self.purge_managed(now);
        }
        self.settle(now);
        self.sums.0.queue_max_bytes = self.sums.0.queue_max_bytes.max(self.waiting_bytes);
        let frames: Vec<(H, u16)> = std::iter::from_fn(|| self.queue.pop()).collect();
        self.waiting_bytes = 0;
        self.state &= !WAITING;
        frames.iter().for_each(|&(_, size)| self.count_drop(now, Bytes::new(size.into())));
        frames.into_iter().map(|(handle, _)| handle).collect()
    }
}
