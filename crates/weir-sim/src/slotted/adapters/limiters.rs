//! The rate limiters of hosts: one for each destination that feedback asked to limit. What they do is [`Limiters`]; here is what they do it to.

use weir_core::ethernet::reaction::{Feedback, Meter};
use weir_core::host::{Limiters, Manner, Slots};
use weir_core::rng::Seed;
use weir_core::units::Time;

use super::{Adapters, Host};
use crate::limiting::HostSeries;
use crate::slotted::cell::Cell;
use crate::slotted::lanes::NONE;

/// Cells leave a host for another in the order in which they were generated: those from this one on have this tag.
#[derive(Clone, Copy, Debug)]
struct Tagged {
    from: u64,
    /// The lane whose congestion point it names; [`NONE`] for none.
    cause: u32,
}

/// The limiters of a host.
#[derive(Debug)]
pub(super) struct OfHost {
    pub(super) limiters: Limiters<Slots>,
    /// By limiter: the tags of its cells that are on their way, and of those to come, in order.
    tags: Vec<Vec<Tagged>>,
}

impl OfHost {
    pub(super) fn new(how: &Manner<Slots>, places: usize) -> OfHost {
        OfHost { limiters: Limiters::new(how.clone(), places), tags: Vec::new() }
    }
}

/// What hosts with limiters have in common.
#[derive(Debug)]
pub(in crate::slotted) struct Obedience {
    pub(in crate::slotted) how: Manner<Slots>,
    pub(in crate::slotted) seed: Seed,
}

/// What a cell takes on the line.
const TX: u64 = 1;

impl Adapters {
    /// Whether a limiter has a rate for cells from `host` to `to`.
    #[inline]
    pub(super) fn is_limited(&self, host: u32, to: u16) -> bool {
        self.limited[host as usize * self.row + usize::from(to / 64)] >> (to % 64) & 1 != 0
    }

    /// A cell from `host` to `to` is sent: whether a limiter has a rate for it.
    #[inline]
    pub(super) fn spend(&mut self, host: u32, to: u16, now: u32) -> bool {
        let is_limited = self.is_limited(host, to);
        if is_limited {
            self.of_host[host as usize].limiters.spend(now, to.into(), TX);
        }
        is_limited
    }

    /// The congestion point that the tag of a cell names, if it has one: that which limited its flow when it left its host. After
    /// its last switch nobody asks for the tags of those before it.
    pub(in crate::slotted) fn tag(&mut self, cell: Cell, is_last: bool) -> Option<u32> {
        let host = usize::from(self.host_of(cell.source()));
        let of_host = self.of_host.get_mut(host)?;
        let tags = &mut of_host.tags[of_host.limiters.number(cell.to().into())?];
        let place = tags.iter().rposition(|tagged| tagged.from <= order(cell))?;
        let cause = tags[place].cause;
        if is_last && place > 0 {
            tags.drain(..place);
        }
        Some(cause).filter(|&cause| cause != NONE)
    }

    /// The cells that leave `host` for `to` from now on have another tag, if they have.
    fn settle_tag(&mut self, host: u32, to: u16, now: u32) {
        let from = self.first_to_leave(host, to, now);
        let OfHost { limiters, tags } = &mut self.of_host[host as usize];
        let Some(number) = limiters.number(to.into()) else { return };
        tags.resize(tags.len().max(number + 1), Vec::new());
        let (cause, tags) = (limiters.cause(to.into()).unwrap_or(NONE), &mut tags[number]);
        if tags.last().map_or(NONE, |tagged| tagged.cause) == cause {
            return;
        }
        // No cell has the tag of a moment before.
        while tags.last().is_some_and(|tagged| tagged.from >= from) {
            tags.pop();
        }
        if tags.last().map_or(NONE, |tagged| tagged.cause) != cause {
            tags.push(Tagged { from, cause });
        }
    }

    /// The cell that leaves `host` next for `to`, as `order` shows it: the first that waits, or one that slot `now` generates.
    fn first_to_leave(&self, host: u32, to: u16, now: u32) -> u64 {
        let queue = self.voqs[self.hosts[host as usize].first + self.queue(host, to)];
        let mut waiting = queue.places(&self.runs).map(|place| self.runs[place].first);
        waiting.find(|cell| cell.to() == to).map_or(u64::from(now) << SOURCES, order)
    }

    /// A queue has its first cell, to host `to`: it is ready, or waits for its limiter.
    pub(super) fn admit(&mut self, host: u32, queue: usize, to: u16, now: u32) {
        let is_limited = !self.of_host.is_empty() && self.is_limited(host, to);
        if is_limited && !self.of_host[host as usize].limiters.admit(now, to.into(), TX) {
            self.look_at_due(host as usize);
        } else {
            self.ready.set(host as usize, queue);
        }
    }

    fn look_at_due(&mut self, host: usize) {
        let due = self.of_host[host].limiters.next_due();
        self.next_due[host] = due;
        self.soonest = self.soonest.min(due);
    }

    /// Makes the queues ready whose limiters have a whole cell's worth.
    pub(super) fn open_gates(&mut self, host: usize, now: u32) {
        let (ready, count) = (&mut self.ready, self.hosts[host].count);
        let limiters = &mut self.of_host[host].limiters;
        limiters.open(now, |to| ready.set(host, if count == 1 { 0 } else { to as usize }));
        self.next_due[host] = limiters.next_due();
    }

    /// Feedback of the congestion point `cause` about cells from `host` to `to` takes effect in slot `now`. Returns when
    /// the limiter changes by itself, if it does.
    pub(in crate::slotted) fn on_feedback(
        &mut self,
        (host, to): (u32, u16),
        cause: u32,
        feedback: Feedback,
        now: u32,
    ) -> Option<u32> {
        let seed = self.seed.filter(|_| self.hosts[host as usize].obeys)?;
        let name = |what: &str| seed.stream(&format!("{what}/{host}/{to}"));
        let chance = || (name("limiter"), name("control/pacing"));
        let limiters = &mut self.of_host[host as usize].limiters;
        limiters.on_feedback(now, to.into(), cause, feedback, chance).then(|| self.settle(host, to, now))?
    }

    /// A change of the limiter of cells from `host` to `to` was due in slot `now`.
    pub(in crate::slotted) fn on_timeout(&mut self, (host, to): (u32, u16), now: u32) -> Option<u32> {
        self.of_host[host as usize].limiters.on_timeout(now, to.into());
        self.settle(host, to, now)
    }

    /// Takes over the rate of a limiter.
    fn settle(&mut self, host: u32, to: u16, now: u32) -> Option<u32> {
        let is_limited = self.of_host[host as usize].limiters.is_limited(to.into());
        let word = &mut self.limited[host as usize * self.row + usize::from(to / 64)];
        let was_limited = *word >> (to % 64) & 1 != 0;
        self.rates = self.rates + u32::from(is_limited) - u32::from(was_limited);
        if is_limited {
            self.limited_to[usize::from(to / 64)] |= 1 << (to % 64);
        }
        *word = *word & !(1 << (to % 64)) | u64::from(is_limited) << (to % 64);
        self.settle_tag(host, to, now);
        if self.of_host[host as usize].limiters.is_gated(to.into()) {
            self.look_at_due(host as usize);
        } else {
            // A queue that was ready under the old rate may have to wait now.
            let queue = self.queue(host, to);
            let voq = self.voqs[self.hosts[host as usize].first + queue];
            if voq.first() != NONE && self.runs[voq.first()].first.to() == to {
                self.ready.clear(host as usize, queue);
                self.admit(host, queue, to, now);
            }
        }
        let timeout = self.of_host[host as usize].limiters.poll_timeout(to.into());
        timeout.filter(|&slot| slot != NONE).map(|slot| slot.max(now + 1))
    }

    /// Writes down the intervals of the limiters of `host` that ended up to `now`, the beginning of a slot; by destination.
    pub(in crate::slotted) fn mark_limiters(&self, host: u32, now: Time, size: u64, series: &mut HostSeries) {
        let Some(of_host) = self.of_host.get(host as usize).filter(|_| series.boundary() <= now) else { return };
        let mut waiting = vec![0; self.hosts.len()];
        let Host { first, count, .. } = self.hosts[host as usize];
        for voq in &self.voqs[first..first + count as usize] {
            for run in voq.places(&self.runs).map(|place| self.runs[place]) {
                waiting[usize::from(run.first.to())] += u64::from(run.len) * size;
            }
        }
        while series.boundary() <= now {
            series.mark(|to| of_host.limiters.reaction(to as u32), |to| waiting[to]);
        }
    }

    /// What each limiter did up to slot `end`: its host, its destination and its meter.
    pub(in crate::slotted) fn meters(&mut self, end: u32) -> impl Iterator<Item = (u32, u32, Meter)> + '_ {
        let hosts = (0..).zip(&mut self.of_host);
        hosts.flat_map(move |(host, of_host)| of_host.limiters.meters(end).map(move |(to, meter)| (host, to, meter)))
    }
}

/// In which order cells leave a host for another: as they were generated, those of one slot source by source.
#[inline]
fn order(cell: Cell) -> u64 {
    u64::from(cell.born()) << SOURCES | u64::from(cell.source())
}

/// Bits of the number of a source.
const SOURCES: u32 = 16;
