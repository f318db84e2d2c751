//! What a port counts, and how.

use std::slice::IterMut;

use super::{AHEAD, MANAGED, Port, STORING, narrow};
use crate::columns::{Cells, Column, Maybe, Values};
use crate::row;
use crate::units::{Bytes, Span, Time};

row! {
    /// What a port counted, first what changes while many frames wait. A transmission counts when it begins.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct Counters {
        /// Frames that its queue dropped.
        pub drops: u64,
        /// Their bytes.
        pub dropped_bytes: u64,
        /// Most bytes that waited, the frame in transmission excluded.
        pub queue_max_bytes: u64,
        /// Frames whose transmission began.
        pub frames: u64,
        /// Their bytes.
        pub bytes: u64,
        /// Time in transmission, framing included.
        pub busy_ps: u64,
        /// Integral over time of the bytes that waited.
        pub queue_byte_ps: u128,
        /// Sum of the times that frames waited.
        pub queue_wait_ps: u128,
    }
}

/// The same without the alignment of its widest fields, which a port need not have.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(8))]
pub(super) struct Packed(pub(super) Counters);

/// How often and how long a port was paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pauses {
    /// Pauses, the current one included.
    pub count: u64,
    /// All together.
    pub total: Span,
    /// The longest.
    pub longest: Span,
    /// When the last one ended, or up to when it was reported; none without a pause.
    pub last: Option<Time>,
}

impl Cells for Pauses {
    fn columns(name: &'static str, _: &'static str, to: &mut Vec<Column>) {
        let mut column =
            |end: &str, about, values| to.push(Column { name: [name, end].concat().into(), about, values });
        column("_count", "How often flow control held it.", Values::U64(Vec::new()));
        column("_ps", "Time for which it was held.", Values::U64(Vec::new()));
        column("_longest_ps", "The longest time without interruption that it was held.", Values::U64(Vec::new()));
        let last = "When it was last released, or the end of the run; unknown where it never was held.";
        column("_last_ps", last, Values::MaybeU64(Maybe::default()));
    }

    fn push(&self, to: &mut IterMut<'_, Column>) {
        self.count.push(to);
        self.total.push(to);
        self.longest.push(to);
        self.last.push(to);
    }
}

impl Pauses {
    /// With the current one, which began at `since` and was counted then, up to `now`.
    pub(crate) fn with(self, since: Time, now: Time) -> Pauses {
        let span = now.saturating_since(since);
        let (total, longest) = (self.total + span, self.longest.max(span));
        Pauses { count: self.count, total, longest, last: Some(now) }
    }
}

impl<H: Copy> Port<H> {
    /// When frames were dropped first and last.
    pub fn drop_times(&self) -> Option<(Time, Time)> {
        (self.first_drop != Time::NEVER).then_some((self.first_drop, self.last_drop))
    }

    /// The pauses of the port up to `now`.
    pub fn pauses_until(&self, now: Time) -> Pauses {
        match &self.cold {
            Some(cold) if self.is_paused() => cold.pauses_until(now),
            Some(cold) => cold.pauses,
            None => Pauses::default(),
        }
    }

    /// The counters, with the integrals up to `now`.
    #[inline(always)]
    pub fn counters_at(&mut self, now: Time) -> Counters {
        if self.state & (AHEAD | MANAGED) == 0 {
            self.settle(now);
            return self.counted();
        }
        if self.state & MANAGED != 0 {
            self.settle_managed(now);
            return self.counted();
        }
        // What begins at `now` has not begun before.
        self.begin_until(Time::from_ps(now.ps().saturating_sub(1)));
        self.begun_by(now)
    }

    /// What was counted.
    #[inline]
    pub(super) fn counted(&self) -> Counters {
        let (frames, wait) = (u64::from(self.alike), u128::from(self.alike_wait));
        Counters {
            frames: self.sums.0.frames + frames,
            bytes: self.sums.0.bytes + frames * u64::from(self.last_size),
            busy_ps: self.sums.0.busy_ps + frames * self.last_tx.ps(),
            // The queue only grows from one wake to the next.
            queue_max_bytes: self.sums.0.queue_max_bytes.max(self.waiting_bytes),
            queue_byte_ps: self.sums.0.queue_byte_ps + u128::from(self.byte_ps) + wait * u128::from(self.last_size),
            queue_wait_ps: self.sums.0.queue_wait_ps + u128::from(self.frame_ps) + wait,
            ..self.sums.0
        }
    }

    /// Lets the maximum of the queue start again with what waits now; where frames are stored, with what waits from now on.
    #[inline]
    pub fn restart_maximum(&mut self) {
        self.sums.0.queue_max_bytes = if self.state & STORING == 0 { self.waiting_bytes } else { 0 };
    }

    /// The same, where frames are stored: what waited up to `now`, since when nothing has happened, does not count.
    pub fn restart_maximum_at(&mut self, now: Time) {
        if self.state & STORING != 0 {
            self.settle(now);
        }
    }

    /// Counts a frame that was dropped at `now`: by the port itself, or on its behalf where frames wait outside of it.
    #[inline]
    pub fn count_drop(&mut self, now: Time, size: Bytes) {
        self.sums.0.drops += 1;
        self.sums.0.dropped_bytes += size.count();
        self.first_drop = self.first_drop.min(now);
        self.last_drop = now;
    }

    /// Adds the waiting time of a frame that waits outside of this port, as in [`Port::pass`].
    #[inline]
    pub fn count_wait(&mut self, wait: Span, size: Bytes) {
        match self.alike_wait.checked_add(wait.ps()) {
            Some(sum) if narrow(size) == self.last_size => self.alike_wait = sum,
            _ => self.integrate(wait, size.count(), 1),
        }
    }

    /// Counts the integrals up to `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: Time) {
        let span = now.saturating_since(self.settled);
        self.settled = now;
        self.integrate(span, self.waiting_bytes, self.queue.len() as u64);
    }

    #[inline]
    pub(super) fn integrate(&mut self, span: Span, bytes: u64, frames: u64) {
        let add = |sum: u64, factor: u64| span.ps().checked_mul(factor).and_then(|product| sum.checked_add(product));
        match (add(self.byte_ps, bytes), add(self.frame_ps, frames)) {
            (Some(byte_ps), Some(frame_ps)) => (self.byte_ps, self.frame_ps) = (byte_ps, frame_ps),
            _ => self.integrate_much(span, bytes, frames),
        }
    }

    /// As `integrate`, for what 64 bits cannot hold.
    #[cold]
    pub(super) fn integrate_much(&mut self, span: Span, bytes: u64, frames: u64) {
        self.fold();
        self.sums.0.queue_byte_ps += u128::from(span.ps()) * u128::from(bytes);
        self.sums.0.queue_wait_ps += u128::from(span.ps()) * u128::from(frames);
    }

    /// Moves what was counted in short into `sums`.
    pub(super) fn fold(&mut self) {
        self.sums = Packed(self.counted());
        (self.alike, self.alike_wait, self.byte_ps, self.frame_ps) = (0, 0, 0, 0);
    }
}
