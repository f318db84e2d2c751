//! The hosts: a queue for each destination (or one for all), served in turn, and the rate limiters of flows.

use weir_core::ethernet::reaction::{Allowance, Change, Feedback, Meter, ReactionPoint, Rules};
use weir_core::rng::{Seed, Stream};
use weir_core::units::{Rate, Span, Time};

use crate::slotted::bits::{self, Ready};
use crate::slotted::books::Flow;
use crate::slotted::cell::Cell;
use crate::slotted::sources::{PlacedSource, Sources};
use crate::slotted::switches::NONE;

/// Cells of one burst that wait: born in successive slots.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Cell,
    len: u32,
    next: u32,
}

/// A queue of a host.
#[derive(Clone, Copy, Debug)]
struct Voq {
    head: u32,
    tail: u32,
}

const EMPTY: Voq = Voq { head: NONE, tail: NONE };

/// What is seldom looked at.
#[derive(Debug)]
struct Host {
    /// Its queues: `first .. first + count` among all.
    first: usize,
    /// One for each host, or one.
    count: u32,
    /// Its limiters that wait for a whole cell's worth.
    gated: Vec<u32>,
    obeys: bool,
}

/// The limiter of a pair of hosts. It outlives its removal: what it did is told at the end.
#[derive(Debug)]
struct Limiter {
    host: u32,
    to: u16,
    point: ReactionPoint,
    /// The congestion point that last asked for less.
    cause: u32,
    /// Cells per slot; none while nothing is limited.
    rate: Option<f64>,
    /// What it may send, in cells, at `at`.
    credit: f64,
    at: u32,
    /// When `credit` will be a whole cell; only while gated.
    due: u32,
    is_gated: bool,
}

/// A limiter that has so much of a cell's worth may send it: what sums of rounded shares miss does not count.
const WHOLE: f64 = 1.0 - 1e-9;

/// What all limiters have in common.
#[derive(Debug)]
pub(super) struct Obedience {
    pub(super) rules: Rules,
    pub(super) line_rate: Rate,
    pub(super) seed: Seed,
}

/// All hosts.
#[derive(Debug)]
pub(super) struct Adapters {
    sources: Sources,
    hosts: Vec<Host>,
    /// By host: cells that wait, their greatest number, their sum over the slots, cells sent.
    backlog: Vec<u32>,
    peak: Vec<u32>,
    backlog_slots: Vec<u64>,
    sent: Vec<u32>,
    /// Whose turn it is.
    turn: Vec<u32>,
    /// When the first of its gated limiters has a whole cell's worth.
    next_due: Vec<u32>,
    /// No host is due before.
    soonest: u32,
    voqs: Vec<Voq>,
    /// Queues that have something to send and may.
    ready: Ready,
    runs: Vec<Run>,
    free: u32,
    limiters: Vec<Limiter>,
    /// By pair of hosts; empty without obedience.
    limiter_of: Vec<u32>,
    /// Pairs with a rate, a bit for each: words by host.
    limited: Vec<u64>,
    row: usize,
    obedience: Option<Obedience>,
    slot: Span,
    /// Sets of hosts: with a limiter that is due, and whether there are any; with one queue or several sources; where
    /// something waits; where what is generated now may pass.
    due: Vec<u64>,
    any_due: bool,
    strict: Vec<u64>,
    waits: Vec<u64>,
    open: Vec<u64>,
    /// Hosts that send in this slot, and what.
    pub(super) sends: Vec<u64>,
    pub(super) cells: Vec<Cell>,
}

/// What a host is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) has_voqs: bool,
    pub(super) obeys: bool,
}

impl Adapters {
    /// Hosts of these kinds; sources stand in order of their hosts.
    pub(super) fn new(
        kinds: &[Kind],
        sources: Vec<PlacedSource>,
        obedience: Option<Obedience>,
        slot: Span,
    ) -> Adapters {
        let n = kinds.len();
        let mut first = 0;
        let mut hosts = Vec::with_capacity(n);
        for kind in kinds {
            let count = if kind.has_voqs { n } else { 1 };
            hosts.push(Host { first, count: count as u32, gated: Vec::new(), obeys: kind.obeys });
            first += count;
        }
        let row = n.div_ceil(64);
        let sources = Sources::new(sources, slot);
        let mut strict = vec![0; row];
        for (host, kind) in kinds.iter().enumerate() {
            let is_strict = !kind.has_voqs || sources.has_several(host as u16);
            strict[host / 64] |= u64::from(is_strict) << (host % 64);
        }
        Adapters {
            sources,
            hosts,
            backlog: vec![0; n],
            peak: vec![0; n],
            backlog_slots: vec![0; n],
            sent: vec![0; n],
            turn: vec![0; n],
            next_due: vec![NONE; n],
            soonest: NONE,
            voqs: vec![EMPTY; first],
            ready: Ready::new(n),
            runs: Vec::new(),
            free: NONE,
            limiters: Vec::new(),
            limiter_of: vec![NONE; if obedience.is_some() { n * n } else { 0 }],
            limited: vec![0; if obedience.is_some() { n * row } else { 0 }],
            row,
            obedience,
            slot,
            due: vec![0; row],
            any_due: false,
            strict,
            waits: vec![0; row],
            open: vec![0; row],
            sends: vec![0; row],
            cells: vec![Cell::NONE; n],
        }
    }

    pub(super) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// Runs of waiting cells in memory.
    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The host of a source.
    #[inline]
    pub(super) fn host_of(&self, source: u16) -> u16 {
        self.sources.host_of[usize::from(source)]
    }

    /// The host of each source.
    #[inline]
    pub(super) fn hosts_of_sources(&self) -> &[u16] {
        &self.sources.host_of
    }

    /// Generates the cells of slot `now` and decides what each host sends in it, unless it is `held`: see
    /// [`Adapters::sends`] and [`Adapters::cells`]. `flows` count what is generated.
    #[inline]
    pub(super) fn step(&mut self, now: u32, end: u32, held: &[u64], flows: &mut [Flow]) {
        if now >= self.sources.generated_to() {
            self.sources.generate(now, end, flows);
        }
        self.find_due(now);
        if self.obedience.is_some() {
            self.pass::<true>(now, held)
        } else {
            self.pass::<false>(now, held)
        }
        self.serve_backlogs(now, held);
        if self.waits.iter().all(|&hosts| hosts == 0) {
            return;
        }
        for ((slots, peak), &backlog) in self.backlog_slots.iter_mut().zip(&mut self.peak).zip(&self.backlog) {
            *slots = slots.wrapping_add(backlog.into());
            *peak = backlog.max(*peak);
        }
    }

    /// Finds the hosts with a limiter that may have a whole cell's worth.
    #[inline]
    fn find_due(&mut self, now: u32) {
        if self.soonest > now {
            if self.any_due {
                self.due.fill(0);
                self.any_due = false;
            }
            return;
        }
        self.any_due = true;
        for (word, next_due) in self.due.iter_mut().zip(self.next_due.chunks(64)) {
            *word = bits::collect(next_due.iter().map(|&due| due <= now));
        }
    }

    /// What was generated passes a host where nothing stands in its way, and waits elsewhere. Nothing does where no
    /// queue may send and none is about to; but a host with one queue, or with several sources, must have nothing waiting.
    #[inline(always)]
    fn pass<const OBEYS: bool>(&mut self, now: u32, held: &[u64]) {
        for (word, held) in held.iter().enumerate() {
            let busy = self.strict[word] & self.waits[word] | self.ready.hosts[word] | self.due[word];
            self.open[word] = !(held | busy);
            self.sends[word] = 0;
        }
        for place in self.sources.slot(now) {
            let cell = self.sources.cells[place];
            let host = usize::from(self.sources.host_of[usize::from(cell.source())]);
            let (word, bit) = (host / 64, 1 << (host % 64));
            if self.open[word] & bit != 0 && !(OBEYS && self.is_limited(host as u32, cell.to())) {
                self.open[word] &= !bit;
                self.sends[word] |= bit;
                self.cells[host] = cell;
                self.turn[host] = u32::from(cell.to()).wrapping_add(1);
                self.sent[host] = self.sent[host].wrapping_add(1);
            } else {
                // A host with several sources sends what was generated first, unless that has to wait.
                if self.strict[word] & bit != 0 {
                    self.open[word] &= !bit;
                }
                self.enqueue(host as u32, cell, now);
            }
        }
    }

    /// Hosts that sent nothing yet serve what waits.
    #[inline]
    fn serve_backlogs(&mut self, now: u32, held: &[u64]) {
        for (word, held) in held.iter().enumerate() {
            let todo = (self.ready.hosts[word] | self.due[word]) & !(held | self.sends[word]);
            for bit in bits::of(todo) {
                let host = 64 * word + bit;
                if self.next_due[host] <= now {
                    self.open_gates(host, now);
                }
                if let Some(cell) = self.serve(host, now) {
                    self.sends[word] |= 1 << bit;
                    self.cells[host] = cell;
                }
            }
        }
        if self.any_due {
            self.soonest = self.next_due.iter().copied().min().unwrap_or(NONE);
        }
    }

    /// Whether a limiter has a rate for cells from `host` to `to`.
    #[inline]
    fn is_limited(&self, host: u32, to: u16) -> bool {
        self.limited[host as usize * self.row + usize::from(to / 64)] >> (to % 64) & 1 != 0
    }

    /// The limiter of cells from `host` to `to`, if it has a rate.
    #[inline]
    fn limiter(&self, host: u32, to: u16) -> Option<u32> {
        (self.obedience.is_some() && self.is_limited(host, to))
            .then(|| self.limiter_of[host as usize * self.hosts.len() + usize::from(to)])
    }

    /// The congestion point that the tag of cells from `host` to `to` names, if they have one.
    #[inline]
    pub(super) fn tag(&self, host: u32, to: u16) -> Option<u32> {
        Some(self.limiters[self.limiter(host, to)? as usize].cause)
    }

    /// The place of the queue for `to` among those of a host.
    #[inline]
    fn queue(&self, host: u32, to: u16) -> usize {
        if self.hosts[host as usize].count == 1 { 0 } else { to.into() }
    }

    fn enqueue(&mut self, host: u32, cell: Cell, now: u32) {
        let queue = self.queue(host, cell.to());
        self.backlog[host as usize] += 1;
        self.waits[host as usize / 64] |= 1 << (host % 64);
        let voq = &mut self.voqs[self.hosts[host as usize].first + queue];
        if voq.head != NONE {
            let tail = &mut self.runs[voq.tail as usize];
            if cell.follows(tail.first, tail.len) {
                tail.len += 1;
                return;
            }
        }
        let run = Run { first: cell, len: 1, next: NONE };
        let place = self.free;
        let place = if place == NONE {
            self.runs.push(run);
            (self.runs.len() - 1) as u32
        } else {
            self.free = self.runs[place as usize].next;
            self.runs[place as usize] = run;
            place
        };
        if voq.head != NONE {
            self.runs[voq.tail as usize].next = place;
            voq.tail = place;
            return;
        }
        *voq = Voq { head: place, tail: place };
        self.admit(host, queue, cell.to(), now);
    }

    /// A queue has its first cell, to host `to`: it is ready, or waits for its limiter.
    fn admit(&mut self, host: u32, queue: usize, to: u16, now: u32) {
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
    fn open_gates(&mut self, id: usize, now: u32) {
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

    /// The first cell of the next queue in turn that is ready.
    #[inline]
    fn serve(&mut self, id: usize, now: u32) -> Option<Cell> {
        let queue = self.ready.next(id, self.turn[id] as usize)?;
        let count = self.hosts[id].count;
        let voq = &mut self.voqs[self.hosts[id].first + queue];
        let place = voq.head;
        let run = &mut self.runs[place as usize];
        let cell = run.first;
        run.len -= 1;
        if run.len == 0 {
            voq.head = run.next;
            run.next = self.free;
            self.free = place;
        } else {
            run.first = cell.next();
        }
        let head = voq.head;
        self.backlog[id] -= 1;
        self.waits[id / 64] &= !(u64::from(self.backlog[id] == 0) << (id % 64));
        self.sent[id] = self.sent[id].wrapping_add(1);
        self.turn[id] = queue as u32 + 1;
        if head == NONE {
            self.ready.clear(id, queue);
        }
        if self.obedience.is_some() && self.hosts[id].obeys {
            let limiter = self.limiter(id as u32, cell.to());
            if let Some(limiter) = limiter {
                self.limiters[limiter as usize].spend(now);
            }
            if head != NONE && (limiter.is_some() || count == 1) {
                self.ready.clear(id, queue);
                let to = self.runs[head as usize].first.to();
                self.admit(id as u32, queue, to, now);
            }
        }
        Some(cell)
    }

    /// Feedback of the congestion point `cause` about cells from `host` to `to` takes effect in slot `now`. Returns when
    /// the limiter changes by itself, if it does.
    pub(super) fn on_feedback(
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
            self.limiters.push(Limiter::new(host, to, stream, now));
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
    pub(super) fn on_timeout(&mut self, id: u32, now: u32) -> Option<(u32, u32)> {
        let obedience = self.obedience.as_ref()?;
        self.limiters[id as usize].point.advance(at(now, self.slot), &obedience.rules);
        self.settle(id, now)
    }

    /// Takes over the rate of a limiter.
    fn settle(&mut self, id: u32, now: u32) -> Option<(u32, u32)> {
        let line_rate = self.obedience.as_ref()?.line_rate;
        let limiter = &mut self.limiters[id as usize];
        limiter.accrue(now);
        limiter.rate = match limiter.point.allowance() {
            Allowance::Unlimited => None,
            Allowance::Limited(rate) => Some(rate.bps() as f64 / line_rate.bps() as f64),
            Allowance::Stopped(_) => Some(0.0),
        };
        let (host, to, is_limited) = (limiter.host, limiter.to, limiter.rate.is_some());
        let timeout = limiter.point.poll_timeout();
        let word = &mut self.limited[host as usize * self.row + usize::from(to / 64)];
        *word = *word & !(1 << (to % 64)) | u64::from(is_limited) << (to % 64);
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

    /// What waits at a host now.
    pub(super) fn backlog(&self, host: u32) -> u32 {
        self.backlog[host as usize]
    }

    /// What a host sent, its greatest backlog since the last look, and the sum of its backlog over the slots.
    pub(super) fn totals(&self, host: u32) -> (u32, u32, u64) {
        let host = host as usize;
        (self.sent[host], self.peak[host], self.backlog_slots[host])
    }

    /// Begins to look for the greatest backlog anew.
    pub(super) fn restart_peak(&mut self, host: u32) {
        self.peak[host as usize] = 0;
    }

    /// The cells that wait in hosts, as the first of each run and the length of the run.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Cell, u32)> + '_ {
        self.voqs.iter().flat_map(move |voq| {
            let mut next = voq.head;
            std::iter::from_fn(move || {
                let run = self.runs.get(next as usize)?;
                next = run.next;
                Some((run.first, run.len))
            })
        })
    }

    /// What each limiter did up to slot `end`: its host, its destination and its meter.
    pub(super) fn meters(&mut self, end: u32) -> Vec<(u32, u16, Meter)> {
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
    fn new(host: u32, to: u16, stream: Stream, now: u32) -> Limiter {
        let point = ReactionPoint::new(stream);
        Limiter { host, to, point, cause: NONE, rate: None, credit: 0.0, at: now, due: 0, is_gated: false }
    }

    /// Adds what the rate gave since the last look. A flow that sends nothing saves one cell's worth at most.
    fn accrue(&mut self, now: u32) {
        if let Some(rate) = self.rate {
            self.credit = (self.credit + rate * f64::from(now - self.at)).min(1.0 + rate);
        }
        self.at = now;
    }

    fn may_send(&mut self, now: u32) -> bool {
        self.accrue(now);
        self.rate.is_none() || self.credit >= WHOLE
    }

    fn spend(&mut self, now: u32) {
        self.accrue(now);
        if self.rate.is_some() {
            self.credit -= 1.0;
        }
    }

    /// When there will be a whole cell's worth.
    fn when_whole(&self, now: u32) -> u32 {
        match self.rate {
            None => now,
            Some(rate) if rate <= 0.0 => NONE,
            Some(_) if self.credit >= WHOLE => now,
            Some(rate) => {
                let slots = ((WHOLE - self.credit) / rate).ceil();
                if slots < f64::from(NONE - now) { now + (slots as u32).max(1) } else { NONE }
            }
        }
    }
}

/// The beginning of a slot.
fn at(slot: u32, length: Span) -> Time {
    Time::from_ps(u64::from(slot) * length.ps())
}
