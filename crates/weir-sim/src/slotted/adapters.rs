//! The hosts: sources, a queue for each destination (or one for all), served in turn, and the rate limiters of flows.

use weir_core::ethernet::reaction::{Allowance, Change, Feedback, Meter, ReactionPoint, Rules};
use weir_core::rng::{Seed, Stream};
use weir_core::traffic::Emissions;
use weir_core::units::{Rate, Span, Time};

use crate::slotted::switches::{Cell, NONE};

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

#[derive(Debug)]
struct Host {
    /// Cells that wait.
    backlog: u32,
    peak: u32,
    backlog_slots: u64,
    sent: u32,
    /// Whose turn it is.
    turn: u32,
    /// Its queues: `first .. first + count` among all.
    first: usize,
    /// One for each host, or one.
    count: u32,
    /// Its words among all of `ready`.
    words: std::ops::Range<usize>,
    /// Sources: a range.
    sources: std::ops::Range<usize>,
    /// Its limiters that wait for a whole cell's worth.
    gated: Vec<u32>,
    /// When the first of them has it.
    next_due: u32,
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
    hosts: Vec<Host>,
    voqs: Vec<Voq>,
    /// Queues that have something to send and may.
    ready: Vec<u64>,
    runs: Vec<Run>,
    free: u32,
    limiters: Vec<Limiter>,
    /// By pair of hosts; empty without obedience.
    limiter_of: Vec<u32>,
    obedience: Option<Obedience>,
    emissions: Vec<Emissions>,
    /// When the next cell of each source is generated, ps.
    due: Vec<u64>,
    /// The destinations of each source: `targets[first_target[source] ..]`.
    targets: Vec<u16>,
    first_target: Vec<u32>,
    /// The flow to its first destination.
    first_flow: Vec<u32>,
    slot: Span,
}

/// A source: its host, what it generates, and for whom.
pub(super) struct PlacedSource {
    pub(super) host: u32,
    pub(super) emissions: Emissions,
    pub(super) targets: Vec<u16>,
    /// The flow to the first of them; those to the others follow.
    pub(super) first_flow: u32,
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
        let (mut first, mut word, mut source) = (0, 0, 0);
        let mut hosts = Vec::with_capacity(n);
        for (id, kind) in (0..).zip(kinds) {
            let count = if kind.has_voqs { n } else { 1 };
            let begin = source;
            source += sources[begin..].iter().take_while(|source| source.host == id).count();
            hosts.push(Host {
                backlog: 0,
                peak: 0,
                backlog_slots: 0,
                sent: 0,
                turn: 0,
                first,
                count: count as u32,
                words: word..word + count.div_ceil(64),
                sources: begin..source,
                gated: Vec::new(),
                next_due: NONE,
                obeys: kind.obeys,
            });
            first += count;
            word += count.div_ceil(64);
        }
        let limiter_of = if obedience.is_some() { vec![NONE; n * n] } else { Vec::new() };
        let mut emissions = Vec::with_capacity(sources.len());
        let (mut targets, mut first_target, mut first_flow) = (Vec::new(), Vec::new(), Vec::new());
        for source in sources {
            emissions.push(source.emissions);
            first_target.push(targets.len() as u32);
            targets.extend(source.targets);
            first_flow.push(source.first_flow);
        }
        Adapters {
            hosts,
            voqs: vec![EMPTY; first],
            ready: vec![0; word],
            runs: Vec::new(),
            free: NONE,
            limiters: Vec::new(),
            limiter_of,
            obedience,
            due: emissions.iter().map(|source| source.peek().ps()).collect(),
            emissions,
            targets,
            first_target,
            first_flow,
            slot,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// Runs of waiting cells in memory.
    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// What host `id` generates in slot `now`, and the cell that it sends in it, unless it is `held`.
    /// `generated` is told each cell.
    #[inline]
    pub(super) fn step(&mut self, id: u32, now: u32, held: bool, mut generated: impl FnMut(Cell)) -> Option<Cell> {
        let now_ps = u64::from(now) * self.slot.ps();
        let mut sent = None;
        for source in self.hosts[id as usize].sources.clone() {
            if self.due[source] != now_ps {
                continue;
            }
            let emissions = &mut self.emissions[source];
            let (place, _) = emissions.draw();
            self.due[source] = emissions.peek().ps();
            let is_last = emissions.burst_ended();
            let to = self.targets[(self.first_target[source] + place) as usize];
            let cell = Cell::new(now, self.first_flow[source] + place, to, source as u16, is_last);
            generated(cell);
            let host = &mut self.hosts[id as usize];
            if host.backlog == 0 && !held && sent.is_none() && (!host.obeys || self.is_free(id, to)) {
                let host = &mut self.hosts[id as usize];
                if host.count > 1 {
                    host.turn = u32::from(to) + 1;
                }
                host.sent += 1;
                sent = Some(cell);
            } else {
                self.enqueue(id, cell, now);
            }
        }
        let host = &self.hosts[id as usize];
        if sent.is_none() && !held && host.backlog > 0 {
            if host.next_due <= now {
                self.open_gates(id, now);
            }
            sent = self.serve(id, now);
        }
        let host = &mut self.hosts[id as usize];
        host.backlog_slots += u64::from(host.backlog);
        host.peak = host.peak.max(host.backlog);
        sent
    }

    /// Whether nothing limits cells from `host` to `to`.
    #[inline]
    fn is_free(&self, host: u32, to: u16) -> bool {
        match self.limiter(host, to) {
            None => true,
            Some(limiter) => self.limiters[limiter as usize].rate.is_none(),
        }
    }

    #[inline]
    fn limiter(&self, host: u32, to: u16) -> Option<u32> {
        let id = *self.limiter_of.get(host as usize * self.hosts.len() + usize::from(to))?;
        (id != NONE).then_some(id)
    }

    /// The congestion point that the tag of cells from `host` to `to` names, if they have one.
    #[inline]
    pub(super) fn tag(&self, host: u32, to: u16) -> Option<u32> {
        let limiter = &self.limiters[self.limiter(host, to)? as usize];
        limiter.rate.is_some().then_some(limiter.cause)
    }

    fn enqueue(&mut self, id: u32, cell: Cell, now: u32) {
        let host = &mut self.hosts[id as usize];
        let queue = if host.count == 1 { 0 } else { usize::from(cell.to) };
        host.backlog += 1;
        let voq = &mut self.voqs[host.first + queue];
        if voq.head != NONE {
            let tail = &mut self.runs[voq.tail as usize];
            let follows = !tail.first.is_last()
                && tail.first.born + tail.len == cell.born
                && tail.first.flow() == cell.flow()
                && !cell.is_last();
            if follows {
                tail.len += 1;
                return;
            }
        }
        let run = Run { first: cell, len: 1, next: NONE };
        let place = if self.free == NONE {
            self.runs.push(run);
            (self.runs.len() - 1) as u32
        } else {
            let place = self.free;
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
        self.admit(id, queue, now);
    }

    /// A queue has its first cell: it is ready, or waits for its limiter.
    fn admit(&mut self, id: u32, queue: usize, now: u32) {
        let host = &self.hosts[id as usize];
        let to = self.runs[self.voqs[host.first + queue].head as usize].first.to;
        let limiter = if host.obeys { self.limiter(id, to) } else { None };
        match limiter {
            Some(limiter) if !self.limiters[limiter as usize].may_send(now) => self.gate(limiter, now),
            _ => self.ready[self.hosts[id as usize].words.start + queue / 64] |= 1 << (queue % 64),
        }
    }

    fn gate(&mut self, id: u32, now: u32) {
        let limiter = &mut self.limiters[id as usize];
        limiter.is_gated = true;
        limiter.due = limiter.when_whole(now);
        let host = &mut self.hosts[limiter.host as usize];
        host.gated.push(id);
        host.next_due = host.next_due.min(limiter.due);
    }

    /// Makes the queues ready whose limiters have a whole cell's worth.
    #[cold]
    fn open_gates(&mut self, id: u32, now: u32) {
        let host = &mut self.hosts[id as usize];
        let mut next_due = NONE;
        let (limiters, ready) = (&mut self.limiters, &mut self.ready);
        let (count, start) = (host.count, host.words.start);
        host.gated.retain(|&id| {
            let limiter = &mut limiters[id as usize];
            if limiter.due > now {
                next_due = next_due.min(limiter.due);
                return true;
            }
            limiter.is_gated = false;
            limiter.accrue(now);
            let queue = if count == 1 { 0 } else { usize::from(limiter.to) };
            ready[start + queue / 64] |= 1 << (queue % 64);
            false
        });
        host.next_due = next_due;
    }

    /// The first cell of the next queue in turn that is ready.
    #[inline]
    fn serve(&mut self, id: u32, now: u32) -> Option<Cell> {
        let host = &self.hosts[id as usize];
        let queue = next_ready(&self.ready[host.words.clone()], host.turn as usize)?;
        let first = host.first;
        let voq = &mut self.voqs[first + queue];
        let place = voq.head;
        let run = &mut self.runs[place as usize];
        let cell = run.first;
        run.len -= 1;
        let mut is_empty = false;
        if run.len == 0 {
            voq.head = run.next;
            run.next = self.free;
            self.free = place;
            is_empty = voq.head == NONE;
        } else {
            run.first.born += 1;
        }
        let host = &mut self.hosts[id as usize];
        host.backlog -= 1;
        host.sent += 1;
        host.turn = queue as u32 + 1;
        let word = host.words.start + queue / 64;
        let obeys = host.obeys;
        if is_empty {
            self.ready[word] &= !(1 << (queue % 64));
        }
        if obeys {
            let limiter = self.limiter(id, cell.to);
            if let Some(limiter) = limiter {
                self.limiters[limiter as usize].spend(now);
            }
            let single = self.hosts[id as usize].count == 1;
            if !is_empty && (limiter.is_some() || single) {
                self.ready[word] &= !(1 << (queue % 64));
                self.admit(id, queue, now);
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
        let timeout = limiter.point.poll_timeout();
        if limiter.is_gated {
            limiter.due = limiter.when_whole(now);
            let host = &mut self.hosts[limiter.host as usize];
            host.next_due = host.next_due.min(limiter.due);
        } else {
            // A queue that was ready under the old rate may have to wait now.
            let (host, to) = (limiter.host, limiter.to);
            let adapter = &self.hosts[host as usize];
            let queue = if adapter.count == 1 { 0 } else { usize::from(to) };
            let voq = self.voqs[adapter.first + queue];
            if voq.head != NONE && self.runs[voq.head as usize].first.to == to {
                let word = adapter.words.start + queue / 64;
                self.ready[word] &= !(1 << (queue % 64));
                self.admit(host, queue, now);
            }
        }
        let slots = timeout.ps().div_ceil(self.slot.ps());
        u32::try_from(slots).ok().filter(|_| timeout != Time::NEVER).map(|slot| (slot.max(now + 1), id))
    }

    /// What waits at a host now.
    pub(super) fn backlog(&self, host: u32) -> u32 {
        self.hosts[host as usize].backlog
    }

    /// What a host sent, its greatest backlog since the last look, and the sum of its backlog over the slots.
    pub(super) fn totals(&self, host: u32) -> (u32, u32, u64) {
        let host = &self.hosts[host as usize];
        (host.sent, host.peak, host.backlog_slots)
    }

    /// Begins to look for the greatest backlog anew.
    pub(super) fn restart_peak(&mut self, host: u32) {
        self.hosts[host as usize].peak = 0;
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

/// The first set bit from `turn` on, round about.
#[inline]
fn next_ready(words: &[u64], turn: usize) -> Option<usize> {
    let (first, bit) = (turn / 64, turn % 64);
    if let Some(&word) = words.get(first) {
        let rest = word & (u64::MAX << bit);
        if rest != 0 {
            return Some(first * 64 + rest.trailing_zeros() as usize);
        }
    }
    let after = (first + 1).min(words.len());
    let place = |(i, word): (usize, &u64)| (*word != 0).then(|| i * 64 + word.trailing_zeros() as usize);
    let later = words[after..].iter().enumerate().find_map(place);
    later.map(|place| place + after * 64).or_else(|| words[..after].iter().enumerate().find_map(place))
}

/// The beginning of a slot.
fn at(slot: u32, length: Span) -> Time {
    Time::from_ps(u64::from(slot) * length.ps())
}
