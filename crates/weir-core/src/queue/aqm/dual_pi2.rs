//! DualPI2: frames whose senders answer marks in proportion wait in a short queue of their own (L), all others in a second one
//! (C), and the marks of the first are coupled to the drops of the second, so that a flow in either gets the same rate.
//!
//! A proportional integral controller sets a probability p' at equal times by the wait of the frame that has waited longest. Frames
//! of C are dropped, or marked where they are ECN-capable, with its square; those of L are marked with k times p', or by a
//! ramp over their own wait where that asks for more. Both are spread: a sum of the probabilities passes 1 whenever one is due. In
//! overload, when k p' reaches 1, frames of L are dropped as those of C are, and ECN-capable ones of C are, too.
//!
//! Source: RFC 9332, appendix A.1 (parameters, enqueue, dequeue, ramp, controller) and A.2 (overload).
//! Source: Linux, net/sched/sch_dualpi2.c, the weighted round-robin by credit, which RFC 9332 leaves open.
//! DEVIATION: k p' counts as 1 where it is more, so that nothing of the sum of an overload is left over for the time after it.

use super::{Backlog, Fifo, Waiting};
use crate::marking::Ecn;
use crate::spec::aqm::{self as spec, DualScheduler};
use crate::units::{Span, Time};

/// The two queues and their controller.
#[derive(Clone, Debug)]
pub(super) struct DualPi2<H> {
    spec: spec::DualPi2,
    low: Fifo<H>,
    classic: Fifo<H>,
    /// p'.
    base: f64,
    /// The longest wait at the last update.
    wait_before: Span,
    next_update: Time,
    /// Sums of probabilities, less those of the frames that were struck.
    low_sum: f64,
    classic_sum: f64,
    /// What the first queue has sent beyond its share, in bytes, while the second had something to send.
    credit: f64,
}

/// Above it all frames of the first queue are marked, and some dropped: p_Lmax.
/// Source: RFC 9332, appendix A.1.
const MOST_MARKED: f64 = 1.0;

impl<H: Copy> DualPi2<H> {
    pub(super) fn new(spec: spec::DualPi2) -> DualPi2<H> {
        DualPi2 {
            spec,
            low: Fifo::new(),
            classic: Fifo::new(),
            base: 0.0,
            wait_before: Span::ZERO,
            next_update: Time::ZERO + spec.update_ps,
            low_sum: 0.0,
            classic_sum: 0.0,
            credit: 0.0,
        }
    }

    pub(super) fn enqueue(&mut self, frame: Waiting<H>) {
        self.update_until(frame.since);
        if frame.label.ecn.is_l4s() {
            self.low.push(frame);
        } else {
            self.classic.push(frame);
        }
    }

    pub(super) fn dequeue(&mut self, now: Time, backlog: &mut Backlog<H>) -> Option<Waiting<H>> {
        self.update_until(now);
        let coupled = (self.spec.coupling * self.base).min(MOST_MARKED);
        let squared = self.base * self.base;
        loop {
            let is_low = self.is_low_next(now);
            let queue = if is_low { &mut self.low } else { &mut self.classic };
            let mut frame = backlog.take(queue)?;
            let is_dropped = if is_low {
                self.strike_low(now, &mut frame, coupled, squared)
            } else {
                self.strike_classic(&mut frame, squared)
            };
            if is_dropped {
                backlog.drop_early(&frame);
                continue;
            }
            self.count_turn(is_low, &frame);
            return Some(frame);
        }
    }

    /// A frame of the first queue is perhaps marked; whether it is dropped.
    fn strike_low(&mut self, now: Time, frame: &mut Waiting<H>, coupled: f64, squared: f64) -> bool {
        if coupled < MOST_MARKED {
            let is_alone = self.low.len() as u64 <= self.spec.ramp_frames;
            let native = if is_alone { 0.0 } else { self.ramp(now - frame.since) };
            frame.marked = recur(&mut self.low_sum, native.max(coupled));
            return false;
        }
        let is_dropped = recur(&mut self.low_sum, squared);
        frame.marked = !is_dropped && recur(&mut self.low_sum, coupled);
        is_dropped
    }

    /// A frame of the second queue is perhaps marked; whether it is dropped.
    fn strike_classic(&mut self, frame: &mut Waiting<H>, squared: f64) -> bool {
        if !recur(&mut self.classic_sum, squared) {
            return false;
        }
        // p_Cmax. Source: RFC 9332, appendix A.1.
        let most = (self.spec.coupling * self.spec.coupling).recip().min(1.0);
        frame.marked = frame.label.ecn == Ecn::Ect0 && squared < most;
        !frame.marked
    }

    /// The probability of a mark by the wait in the first queue.
    fn ramp(&self, wait: Span) -> f64 {
        let (start, range) = (self.spec.ramp_start_ps, self.spec.ramp_range_ps);
        if wait >= start + range {
            return 1.0;
        }
        if wait > start { (wait - start).as_secs_f64() / range.as_secs_f64() } else { 0.0 }
    }

    fn is_low_next(&self, now: Time) -> bool {
        let (Some(low), Some(classic)) = (self.low.since(), self.classic.since()) else {
            return self.low.len() > 0;
        };
        match self.spec.scheduler {
            DualScheduler::Wrr { .. } => self.credit <= 0.0,
            DualScheduler::TimeShiftedFifo { shift_ps } => (now - low) + shift_ps >= now - classic,
        }
    }

    /// A queue has sent a frame: it counts against its share if the other one had something to send, too.
    fn count_turn(&mut self, is_low: bool, frame: &Waiting<H>) {
        let DualScheduler::Wrr { classic } = self.spec.scheduler else { return };
        let size = frame.size.count() as f64;
        match (is_low, self.low.len(), self.classic.len()) {
            (_, 0, 0) => self.credit = 0.0,
            (true, _, 1..) => self.credit += classic * size,
            (false, 1.., _) => self.credit -= (1.0 - classic) * size,
            _ => {}
        }
    }

    /// All updates up to `now`, between which nothing has happened.
    fn update_until(&mut self, now: Time) {
        while self.next_update <= now {
            if self.base == 0.0 && self.wait_before == Span::ZERO && self.low.len() + self.classic.len() == 0 {
                let updates = now.saturating_since(self.next_update).ps() / self.spec.update_ps.ps();
                self.next_update += self.spec.update_ps * (updates + 1);
                return;
            }
            self.update(self.next_update);
            self.next_update += self.spec.update_ps;
        }
    }

    fn update(&mut self, now: Time) {
        let of = |queue: &Fifo<H>| queue.since().map_or(Span::ZERO, |since| now.saturating_since(since));
        let longest = of(&self.low).max(of(&self.classic));
        let (wait, before, target) =
            (longest.as_secs_f64(), self.wait_before.as_secs_f64(), self.spec.target_ps.as_secs_f64());
        let step = self.spec.alpha * (wait - target) + self.spec.beta * (wait - before);
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.wait_before = longest;
    }

    /// The two queues, to be emptied.
    pub(super) fn queues_mut(&mut self) -> [&mut Fifo<H>; 2] {
        [&mut self.low, &mut self.classic]
    }

    /// The two queues.
    pub(super) fn queues(&self) -> [&Fifo<H>; 2] {
        [&self.low, &self.classic]
    }
}

/// Whether a frame is struck that is with the probability `likelihood`, of which `sum` is the rest of those before.
///
/// Source: RFC 9332, appendix A.1, `recur`.
fn recur(sum: &mut f64, likelihood: f64) -> bool {
    *sum += likelihood;
    if *sum > 1.0 {
        *sum -= 1.0;
        return true;
    }
    false
}
