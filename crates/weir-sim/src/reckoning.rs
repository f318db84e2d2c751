//! Intervals of a port whose queue is not kept, reckoned from the times of its frames alone.
//!
//! Frames come in order, each with the time at which it is generated and the later one at which its transmission
//! begins. Between them it waits: in the interval of its generation, through whole intervals, and in that of its
//! start. An interval is over when a frame is generated after it: then every frame is known that waits in it.

use std::collections::VecDeque;

use weir_core::units::{Bytes, Span, Time};

use crate::boundaries::{Boundaries, Mark};

#[derive(Debug)]
pub(crate) struct Reckoning {
    /// The mark at the end of the interval before: what was counted up to there.
    mark: Mark,
    boundaries: Boundaries,
    /// The intervals that are not over, from `mark.number + 1` on.
    open: VecDeque<Open>,
    /// When the first of them ends.
    boundary: Time,
    size: Bytes,
    tx: Span,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    /// Frames whose transmission begins.
    frames: u64,
    /// Frames that wait at the end, but not at the start.
    enter: u64,
    /// Frames that wait at the start, but not at the end.
    leave: u64,
    /// Most frames that waited when one was generated.
    most: u64,
    /// Waiting times of frames that do not wait all the time.
    wait_ps: u128,
}

impl Reckoning {
    /// For frames of one `size`, which take `tx`. `mark` is one at the start.
    pub(crate) fn new(mark: Mark, boundaries: Boundaries, size: Bytes, tx: Span) -> Reckoning {
        Reckoning { mark, boundaries, open: VecDeque::from([Open::default()]), boundary: boundaries.at(1), size, tx }
    }

    /// The next frame, generated before the end of the run. Its transmission may begin after that.
    #[inline]
    pub(crate) fn on_frame(&mut self, generated: Time, start: Time, log: &mut Vec<Mark>) {
        while self.boundary <= generated {
            self.close(log);
        }
        let open = &mut self.open[0];
        let wait = start - generated;
        if wait > Span::ZERO {
            // The port is busy until the start: every transmission ends where the next begins.
            open.most = open.most.max(wait.ps().div_ceil(self.tx.ps()));
        }
        if start < self.boundary {
            open.frames += 1;
            open.wait_ps += u128::from(wait.ps());
            return;
        }
        open.enter += 1;
        open.wait_ps += u128::from((self.boundary - generated).ps());
        let number = self.boundaries.number(start);
        let place = (number - self.mark.number - 1) as usize;
        if place >= self.open.len() {
            self.open.resize(place + 1, Open::default());
        }
        let open = &mut self.open[place];
        open.frames += 1;
        open.leave += 1;
        open.wait_ps += u128::from(start.saturating_since(self.boundaries.at(number - 1)).ps());
    }

    /// After the last frame.
    pub(crate) fn finish(mut self, log: &mut Vec<Mark>) {
        while self.boundary != Time::NEVER {
            self.close(log);
        }
    }

    /// The first open interval is over.
    fn close(&mut self, log: &mut Vec<Mark>) {
        let open = self.open.pop_front().unwrap_or_default();
        if self.open.is_empty() {
            self.open.push_back(Open::default());
        }
        let size = self.size.count();
        let length = self.boundary - self.boundaries.at(self.mark.number);
        let through = self.mark.queue_bytes - open.leave * size;
        let mark = &mut self.mark;
        mark.number += 1;
        mark.frames += open.frames;
        mark.bytes += open.frames * size;
        mark.queue_max_bytes = mark.queue_bytes.max(open.most * size);
        mark.queue_byte_ps += u128::from(through) * u128::from(length.ps()) + open.wait_ps * u128::from(size);
        mark.queue_bytes = through + open.enter * size;
        if open.frames + open.enter + open.leave > 0 {
            log.push(*mark);
        }
        self.boundary = self.boundaries.at(mark.number + 1);
    }
}
