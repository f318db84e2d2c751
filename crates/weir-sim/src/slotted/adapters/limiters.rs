//! The rate limiters of hosts: one for each destination that feedback asked to limit.

use weir_core::ethernet::reaction::{Allowance, Change, Feedback, Meter, ReactionPoint, Rules};
use weir_core::rng::{Seed, Stream};
use weir_core::units::{Rate, Span, Time};

use super::{Adapters, Host};
use crate::credit::{Savings, needed};
use crate::limiting::HostSeries;
use crate::slotted::cell::Cell;
use crate::slotted::lanes::NONE;

/// The limiter of a pair of hosts. It outlives its removal: what it did is told at the end.
#[derive(Debug)]
pub(super) struct Limiter {
    host: u32,
    to: u16,
    point: ReactionPoint,
    /// The congestion point that last asked for less.
    cause: u32,
    /// None while nothing is limited.
    rate: Option<Rate>,
    /// What it may send at `at`: a cell's worth is the line rate, in bit/s.
    credit: i128,
    /// The most that it saves at its rate.
    most: i128,
    /// What a cell is worth.
    whole: i128,
    at: u32,
    /// When `credit` will be a whole cell; only while gated.
    due: u32,
    is_gated: bool,
    /// The tags of its cells that are on their way, and of those to come, in order.
    tags: Vec<Tagged>,
}

/// Cells leave a host for another in the order in which they were generated: those from this one on have this tag.
#[derive(Clone, Copy, Debug)]
struct Tagged {
    from: u64,
    /// The lane whose congestion point it names; [`NONE`] for none.
    cause: u32,
}

/// What all limiters have in common.
#[derive(Debug)]
pub(in crate::slotted) struct Obedience {
    pub(in crate::slotted) rules: Rules,
    pub(in crate::slotted) line_rate: Rate,
    pub(in crate::slotted) savings: Savings,
    pub(in crate::slotted) seed: Seed,
}

impl Adapters {
    /// Whether a limiter has a rate for cells from `host` to `to`.
    #[inline]
    pub(super) fn is_limited(&self, host: u32, to: u16) -> bool {
        self.limited[host as usize * self.row + usize::from(to / 64)] >> (to % 64) & 1 != 0
    }

    /// The limiter of cells from `host` to `to`, if it has a rate.
    #[inline]
    pub(super) fn limiter(&self, host: u32, to: u16) -> Option<u32> {
        (self.obedience.is_some() && self.is_limited(host, to))
            .then(|| self.limiter_of[host as usize * self.hosts.len() + usize::from(to)])
    }

    /// The congestion point that the tag of a cell names, if it has one: that which limited its flow when it left its host. After
    /// its last switch nobody asks for the tags of those before it.
    pub(in crate::slotted) fn tag(&mut self, cell: Cell, is_last: bool) -> Option<u32> {
        let limiter = self.any_limiter(cell) as usize;
        let tags = &mut self.limiters.get_mut(limiter)?.tags;
        let place = tags.iter().rposition(|tagged| tagged.from <= order(cell))?;
        let cause = tags[place].cause;
        if is_last && place > 0 {
            tags.drain(..place);
        }
        Some(cause).filter(|&cause| cause != NONE)
    }

    /// The limiter of the cells between the hosts of a cell, with a rate or without; [`NONE`] if there never was one.
    #[inline]
    fn any_limiter(&self, cell: Cell) -> u32 {
        let pair = usize::from(self.host_of(cell.source())) * self.hosts.len() + usize::from(cell.to());
        self.limiter_of.get(pair).copied().unwrap_or(NONE)
    }

    /// The cells that leave `host` for `to` from now on have another tag, if they have.
    fn settle_tag(&mut self, id: u32, now: u32) {
        let limiter = &self.limiters[id as usize];
        let cause = if limiter.rate.is_some() { limiter.cause } else { NONE };
        if limiter.tags.last().map_or(NONE, |tagged| tagged.cause) == cause {
            return;
        }
        let from = self.first_to_leave(limiter.host, limiter.to, now);
        let tags = &mut self.limiters[id as usize].tags;
        // No cell has the tag of a moment before.
        while tags.last().is_some_and(|tagged| tagged.from >= from) {
            tags.pop();
        }
        if tags.last().map_or(NONE, |tagged| tagged.cause) != cause {
            tags.push(Tagged { from, cause });
        }
    }

    /// The cell that leaves `host` next for `to`, as `order` tells it: the first that waits, or one that slot `now` generates.
    fn first_to_leave(&self, host: u32, to: u16, now: u32) -> u64 {
        let mut place = self.voqs[self.hosts[host as usize].first + self.queue(host, to)].head;
        while place != NONE {
            let run = &self.runs[place as usize];
            if run.first.to() == to {
                return order(run.first);
            }
            place = run.next;
        }
        u64::from(now) << SOURCES
    }

    /// A queue has its first cell, to host `to`: it is ready, or waits for its limiter.
    pub(super) fn admit(&mut self, host: u32, queue: usize, to: u16, now: u32) {
        if let Some(limiter) = self.limiter(host, to)
            && !self.limiters[limiter as usize].may_send(now)
        {
            self.gate(limiter, now);
        } else {
            self.ready.set(host as usize, queue);
        }
    }

    fn gate(&mut self, id: u32, now: u32) {
        let limiter = &mut self.limiters[id as usize];
        limiter.is_gated = true;
        limiter.due = limiter.when_whole(now);
        let (host, due) = (limiter.host as usize, limiter.due);
        self.hosts[host].gated.push(id);
        self.is_due(host, due);
    }

    fn is_due(&mut self, host: usize, due: u32) {
        self.next_due[host] = self.next_due[host].min(due);
        self.soonest = self.soonest.min(due);
    }

    /// Makes the queues ready whose limiters have a whole cell's worth.
    pub(super) fn open_gates(&mut self, id: usize, now: u32) {
        let host = &mut self.hosts[id];
        let mut next_due = NONE;
        let (limiters, ready, count) = (&mut self.limiters, &mut self.ready, host.count);
        host.gated.retain(|&limiter| {
            let limiter = &mut limiters[limiter as usize];
            if limiter.due > now {
                next_due = next_due.min(limiter.due);
                return true;
            }
            limiter.is_gated = false;
            limiter.accrue(now);
            ready.set(id, if count == 1 { 0 } else { limiter.to.into() });
            false
        });
        self.next_due[id] = next_due;
    }

    /// Feedback of the congestion point `cause` about cells from `host` to `to` takes effect in slot `now`. Returns when
    /// the limiter changes by itself, if it does.
    pub(in crate::slotted) fn on_feedback(
        &mut self,
        host: u32,
        to: u16,
        cause: u32,
        feedback: Feedback,
        now: u32,
    ) -> Option<(u32, u32)> {
        let obedience = self.obedience.as_ref().filter(|_| self.hosts[host as usize].obeys)?;
        let pair = host as usize * self.hosts.len() + usize::from(to);
        if self.limiter_of[pair] == NONE {
            if !feedback.is_negative() {
                return None;
            }
            self.limiter_of[pair] = self.limiters.len() as u32;
            let stream = obedience.seed.stream(&format!("limiter/{host}/{to}"));
            self.limiters.push(Limiter::new(host, to, stream, obedience.line_rate, now));
        }
        let id = self.limiter_of[pair];
        let limiter = &mut self.limiters[id as usize];
        let change = limiter.point.on_feedback(at(now, self.slot), feedback, &obedience.rules);
        if change != Change::Ignored && feedback.is_negative() {
            limiter.cause = cause;
        }
        self.settle(id, now)
    }

    /// A change of limiter `id` that was due in slot `now`.
    pub(in crate::slotted) fn on_timeout(&mut self, id: u32, now: u32) -> Option<(u32, u32)> {
        let obedience = self.obedience.as_ref()?;
        self.limiters[id as usize].point.advance(at(now, self.slot), &obedience.rules);
        self.settle(id, now)
    }

    /// Takes over the rate of a limiter.
    fn settle(&mut self, id: u32, now: u32) -> Option<(u32, u32)> {
        let savings = self.obedience.as_ref()?.savings;
        let limiter = &mut self.limiters[id as usize];
        limiter.take_rate(now, savings);
        let (host, to, is_limited) = (limiter.host, limiter.to, limiter.rate.is_some());
        let timeout = limiter.point.poll_timeout();
        let word = &mut self.limited[host as usize * self.row + usize::from(to / 64)];
        let was_limited = *word >> (to % 64) & 1 != 0;
        self.rates = self.rates + u32::from(is_limited) - u32::from(was_limited);
        if is_limited {
            self.limited_to[usize::from(to / 64)] |= 1 << (to % 64);
        }
        *word = *word & !(1 << (to % 64)) | u64::from(is_limited) << (to % 64);
        self.settle_tag(id, now);
        let limiter = &mut self.limiters[id as usize];
        if limiter.is_gated {
            limiter.due = limiter.when_whole(now);
            let due = limiter.due;
            self.is_due(host as usize, due);
        } else {
            // A queue that was ready under the old rate may have to wait now.
            let queue = self.queue(host, to);
            let voq = self.voqs[self.hosts[host as usize].first + queue];
            if voq.head != NONE && self.runs[voq.head as usize].first.to() == to {
                self.ready.clear(host as usize, queue);
                self.admit(host, queue, to, now);
            }
        }
        let slots = timeout.ps().div_ceil(self.slot.ps());
        u32::try_from(slots).ok().filter(|_| timeout != Time::NEVER).map(|slot| (slot.max(now + 1), id))
    }

    /// Writes down the intervals of the limiters of `host` that ended up to `now`, the beginning of a slot; by destination.
    pub(in crate::slotted) fn mark_limiters(&self, host: u32, now: Time, size: u64, series: &mut HostSeries) {
        let Some(obedience) = &self.obedience else { return };
        if series.boundary() > now {
            return;
        }
        let mut waiting = vec![0; self.hosts.len()];
        let Host { first, count, .. } = self.hosts[host as usize];
        for voq in &self.voqs[first..first + count as usize] {
            let mut place = voq.head;
            while place != NONE {
                let run = &self.runs[place as usize];
                waiting[usize::from(run.first.to())] += u64::from(run.len) * size;
                place = run.next;
            }
        }
        let row = host as usize * self.hosts.len();
        while series.boundary() <= now {
            let reaction = |to: usize| {
                let limiter = self.limiters.get(self.limiter_of[row + to] as usize)?;
                Some((&limiter.point, &obedience.rules))
            };
            series.mark(reaction, |to| waiting[to]);
        }
    }

    /// What each limiter did up to slot `end`: its host, its destination and its meter.
    pub(in crate::slotted) fn meters(&mut self, end: u32) -> Vec<(u32, u16, Meter)> {
        let Some(obedience) = &self.obedience else { return Vec::new() };
        let slot = self.slot;
        let meter = |limiter: &mut Limiter| {
            limiter.point.advance(at(end, slot), &obedience.rules);
            (limiter.host, limiter.to, limiter.point.meter())
        };
        self.limiters.iter_mut().map(meter).collect()
    }
}

impl Limiter {
    fn new(host: u32, to: u16, stream: Stream, line: Rate, now: u32) -> Limiter {
        Limiter {
            host,
            to,
            point: ReactionPoint::new(stream),
            cause: NONE,
            rate: None,
            credit: 0,
            most: 0,
            whole: line.bps().into(),
            at: now,
            due: 0,
            is_gated: false,
            tags: Vec::new(),
        }
    }

    /// Takes over what the reaction point allows from slot `now` on.
    fn take_rate(&mut self, now: u32, savings: Savings) {
        self.accrue(now);
        let before = self.rate;
        self.rate = match self.point.allowance() {
            Allowance::Unlimited => None,
            Allowance::Limited(rate) => Some(rate),
            Allowance::Stopped(_) => Some(Rate::from_bps(0)),
        };
        self.most = self.rate.map_or(0, |rate| savings.most(rate));
        if let (None, Some(_), Some(initial)) = (before, self.rate, savings.initial) {
            self.credit = initial;
        }
    }

    /// Adds what the rate gave since the last look, up to the most that is saved.
    fn accrue(&mut self, now: u32) {
        if let Some(rate) = self.rate {
            self.credit = (self.credit + i128::from(rate.bps()) * i128::from(now - self.at)).min(self.most);
        }
        self.at = now;
    }

    fn may_send(&mut self, now: u32) -> bool {
        self.accrue(now);
        self.rate.is_none() || self.credit >= needed(self.whole)
    }

    pub(super) fn spend(&mut self, now: u32) {
        self.accrue(now);
        if self.rate.is_some() {
            self.credit -= self.whole;
        }
    }

    /// When there will be a whole cell's worth.
    fn when_whole(&self, now: u32) -> u32 {
        match self.rate {
            None => now,
            Some(rate) if rate.bps() == 0 => NONE,
            Some(rate) => {
                // No more than a few cells' worth is missing.
                let missing = (needed(self.whole) - self.credit).max(0) as u64;
                u32::try_from(missing.div_ceil(rate.bps())).map_or(NONE, |slots| now.saturating_add(slots))
            }
        }
    }
}

/// In which order cells leave a host for another: as they were generated, those of one slot source by source.
#[inline]
fn order(cell: Cell) -> u64 {
    u64::from(cell.born()) << SOURCES | u64::from(cell.source())
}

/// Bits of the number of a source.
const SOURCES: u32 = 16;

/// The beginning of a slot.
fn at(slot: u32, length: Span) -> Time {
    Time::from_ps(u64::from(slot) * length.ps())
}
