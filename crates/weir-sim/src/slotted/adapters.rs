//! The hosts: a queue for each destination (or one for all), served in turn, and the rate limiters of flows.

mod limiters;
mod passing;
mod runs;

use std::ops::Range;

use weir_core::host::{Chain, Occupancy, Ready, Slots};
use weir_core::rng::Seed;

use self::runs::Runs;
use crate::slotted::bits;
use crate::slotted::cell::Cell;
use crate::slotted::lanes::NONE;
use crate::slotted::sources::Sources;
pub(super) use limiters::Obedience;
use limiters::OfHost;

/// What is seldom looked at.
#[derive(Debug)]
struct Host {
    /// Its queues: `first .. first + count` among all.
    first: usize,
    /// One for each host, or one.
    count: u32,
    obeys: bool,
}

/// All hosts.
#[derive(Debug)]
pub(super) struct Adapters {
    pub(super) sources: Sources,
    hosts: Vec<Host>,
    /// By host: cells that wait.
    backlog: Vec<Occupancy<Slots>>,
    /// Cells sent, and whose turn it is.
    sent: Vec<u32>,
    turn: Vec<u32>,
    /// What hosts sent from this slot on neither [`Adapters::sent`] nor [`Adapters::turn`] know yet; what lies in the batch of
    /// the sources is what they sent. Where hosts have several sources, both are kept up in each slot.
    passed_from: u32,
    /// Whether each host has one source at most.
    is_single: bool,
    /// When the first of its gated limiters has a whole cell's worth.
    next_due: Vec<u32>,
    /// No host is due before.
    soonest: u32,
    voqs: Vec<Chain>,
    /// Queues that have something to send and may.
    ready: Ready,
    runs: Runs,
    /// The limiters of each host; empty without obedience.
    of_host: Vec<OfHost>,
    /// Pairs with a rate, a bit for each: words by host.
    limited: Vec<u64>,
    row: usize,
    /// How many pairs have a rate, and to which hosts any has or had one, a bit for each.
    rates: u32,
    limited_to: Vec<u64>,
    /// Of the chance of limiters, if hosts obey.
    seed: Option<Seed>,
    /// Sets of hosts: with a limiter that is due, and whether there are any; with one queue or several sources; where
    /// something waits; where what is generated now may pass.
    due: Vec<u64>,
    any_due: bool,
    strict: Vec<u64>,
    waits: Vec<u64>,
    open: Vec<u64>,
    /// Hosts that served what waited and have not been open since: [`Adapters::turn`] holds.
    shut: Vec<u64>,
    /// Hosts with several sources that sent in this slot.
    sends: Vec<u64>,
    /// What is sent in this slot, in the order of hosts: what the batch of the sources has at these places, or so many of
    /// `cells` where hosts have several sources.
    passing: Option<Range<usize>>,
    outgoing: usize,
    cells: Vec<Cell>,
    /// What hosts that waited send in this slot.
    served: Vec<Cell>,
}

/// What a host is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) has_voqs: bool,
    pub(super) obeys: bool,
}

impl Adapters {
    /// Hosts of these kinds, with their sources.
    pub(super) fn new(kinds: &[Kind], sources: Sources, obedience: Option<Obedience>) -> Adapters {
        let n = kinds.len();
        let mut first = 0;
        let mut hosts = Vec::with_capacity(n);
        for kind in kinds {
            let count = if kind.has_voqs { n } else { 1 };
            hosts.push(Host { first, count: count as u32, obeys: kind.obeys });
            first += count;
        }
        let row = n.div_ceil(64);
        let mut strict = vec![0; row];
        for (host, kind) in kinds.iter().enumerate() {
            let is_strict = !kind.has_voqs || sources.has_several(host as u16);
            strict[host / 64] |= u64::from(is_strict) << (host % 64);
        }
        let of_host =
            |(obedience, kind): (&Obedience, &Kind)| OfHost::new(&obedience.how, if kind.obeys { n } else { 0 });
        let is_single = (0..n).all(|host| !sources.has_several(host as u16));
        Adapters {
            sources,
            hosts,
            backlog: vec![Occupancy::new(0); n],
            sent: vec![0; n],
            turn: vec![0; n],
            passed_from: 0,
            is_single,
            next_due: vec![NONE; n],
            soonest: NONE,
            voqs: vec![Chain::EMPTY; first],
            ready: Ready::new(n, n),
            runs: Runs { runs: Vec::new(), free: NONE },
            of_host: obedience
                .iter()
                .flat_map(|obedience| kinds.iter().map(move |kind| (obedience, kind)))
                .map(of_host)
                .collect(),
            limited: vec![0; if obedience.is_some() { n * row } else { 0 }],
            row,
            rates: 0,
            limited_to: vec![0; row],
            seed: obedience.map(|obedience| obedience.seed),
            due: vec![0; row],
            any_due: false,
            strict,
            waits: vec![0; row],
            open: vec![0; row],
            shut: vec![0; row],
            sends: vec![0; row],
            cells: vec![Cell::NONE; n],
            passing: None,
            outgoing: 0,
            served: Vec::with_capacity(n),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// Runs of waiting cells in memory.
    pub(super) fn runs(&self) -> usize {
        self.runs.runs.len()
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
    /// [`Adapters::sends`].
    #[inline]
    pub(super) fn step(&mut self, now: u32, held: &[u64]) {
        if now >= self.sources.generated_to() {
            self.catch_up(now);
            self.sources.generate();
        }
        if self.is_single {
            if self.rates == 0 && self.waits.iter().zip(held).all(|(waits, held)| waits | held == 0) {
                // Nothing stands in the way of anything.
                self.shut.fill(0);
                self.passing = Some(self.sources.slot(now));
                return;
            }
            self.find_due(now);
            self.pass_all_but(now, held);
            self.serve_backlogs(now, held);
            self.passing = Some(self.sources.slot(now));
        } else {
            self.passed_from = now + 1;
            self.find_due(now);
            self.outgoing = 0;
            match self.seed.is_some() {
                true => self.pass::<true>(now, held),
                false => self.pass::<false>(now, held),
            }
            self.serve_backlogs(now, held);
        }
    }

    /// What the hosts send in this slot, in their order.
    #[inline]
    pub(super) fn sends(&self) -> &[Cell] {
        match &self.passing {
            Some(places) => self.sources.cells(places.clone()),
            None => &self.cells[..self.outgoing],
        }
    }

    /// Enters what hosts sent before slot `now`.
    pub(super) fn catch_up(&mut self, now: u32) {
        let (turn, sent) = (&mut self.turn[..], &mut self.sent[..]);
        self.sources.passed(self.passed_from.min(now), now, |host, cells, to| {
            turn[host] = u32::from(to).wrapping_add(1);
            sent[host] = sent[host].wrapping_add(cells);
        });
        self.passed_from = now;
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

    /// Hosts that sent nothing yet serve what waits. One with a single source has nothing that may go if a cell passed it.
    #[inline]
    fn serve_backlogs(&mut self, now: u32, held: &[u64]) {
        for (word, held) in held.iter().enumerate() {
            let todo = (self.ready.hosts()[word] | self.due[word]) & !(held | self.sends[word]);
            for bit in bits::of(todo) {
                let host = 64 * word + bit;
                if self.next_due[host] <= now {
                    self.open_gates(host, now);
                }
                if let Some(cell) = self.serve(host, now) {
                    self.served.push(cell);
                }
            }
        }
        if self.any_due {
            self.soonest = self.next_due.iter().copied().min().unwrap_or(NONE);
        }
        match (self.served.is_empty(), self.is_single) {
            (true, _) => {}
            (false, true) => self.sources.put_in(now, &mut self.served),
            (false, false) => self.merge(),
        }
    }

    /// Puts what hosts served in between what passed others, in the order of hosts.
    fn merge(&mut self) {
        let host = |cell: Cell| self.sources.host_of[usize::from(cell.source())];
        let (mut passed, mut place) = (self.outgoing, self.outgoing + self.served.len());
        self.outgoing = place;
        while let Some(cell) = self.served.pop() {
            place -= 1;
            while passed > 0 && host(self.cells[passed - 1]) > host(cell) {
                passed -= 1;
                self.cells[place] = self.cells[passed];
                place -= 1;
            }
            self.cells[place] = cell;
        }
    }

    /// The place of the queue for `to` among those of a host.
    #[inline]
    fn queue(&self, host: u32, to: u16) -> usize {
        if self.hosts[host as usize].count == 1 { 0 } else { to.into() }
    }

    fn enqueue(&mut self, host: u32, cell: Cell, now: u32) {
        let queue = self.queue(host, cell.to());
        let place = host as usize;
        self.backlog[place].add(now, 1);
        self.waits[place / 64] |= 1 << (place % 64);
        let voq = &mut self.voqs[self.hosts[host as usize].first + queue];
        if let Some(last) = voq.last() {
            let tail = &mut self.runs[last];
            if cell.follows(tail.first, tail.len) {
                tail.len += 1;
                return;
            }
        }
        let run = self.runs.put(cell);
        if voq.push(&mut self.runs, run) {
            self.admit(host, queue, cell.to(), now);
        }
    }

    /// The queue behind that of the cell that a host sent last.
    fn whose_turn(&self, id: usize, now: u32) -> usize {
        if self.shut[id / 64] >> (id % 64) & 1 != 0 {
            return self.turn[id] as usize;
        }
        let last = self.sources.last_sent(id as u16, self.passed_from.min(now), now);
        last.map_or(self.turn[id] as usize, |to| usize::from(to) + 1)
    }

    /// The first cell of the next queue in turn that is ready.
    #[inline]
    fn serve(&mut self, id: usize, now: u32) -> Option<Cell> {
        let queue = match self.ready.only(id) {
            Some(queue) => queue,
            None => self.ready.next(id, self.whose_turn(id, now))?,
        };
        let count = self.hosts[id].count;
        let voq = &mut self.voqs[self.hosts[id].first + queue];
        let place = voq.first();
        let run = &mut self.runs[place];
        let cell = run.first;
        run.len -= 1;
        if run.len == 0 {
            voq.pop(&self.runs);
            self.runs.free(place);
        } else {
            run.first = cell.next();
        }
        let head = voq.first();
        self.backlog[id].take(now, 1);
        self.waits[id / 64] &= !(u64::from(self.backlog[id].amount() == 0) << (id % 64));
        self.turn[id] = queue as u32 + 1;
        self.shut[id / 64] |= 1 << (id % 64);
        if !self.is_single {
            self.sent[id] = self.sent[id].wrapping_add(1);
        }
        if head == NONE {
            self.ready.clear(id, queue);
        }
        if self.seed.is_some() && self.hosts[id].obeys {
            let is_limited = self.spend(id as u32, cell.to(), now);
            if head != NONE && (is_limited || count == 1) {
                self.ready.clear(id, queue);
                let to = self.runs[head].first.to();
                self.admit(id as u32, queue, to, now);
            }
        }
        Some(cell)
    }

    /// What a host sent and what waits there, with all slots before `until`.
    pub(super) fn totals(&self, host: u32, until: u32) -> (u32, Occupancy<Slots>) {
        let mut backlog = self.backlog[host as usize];
        backlog.settle(until);
        (self.sent[host as usize], backlog)
    }

    /// Looks for the greatest backlog again, from slot `from` on.
    pub(super) fn restart_peak(&mut self, host: u32, from: u32) {
        self.backlog[host as usize].settle(from);
        self.backlog[host as usize].restart_most();
    }

    /// Reports the cells that wait in hosts: the first of each run, and the length of the run. The queues are walked abreast,
    /// since what came at about the same time lies close together.
    pub(super) fn waiting(&self, mut report: impl FnMut(Cell, u32)) {
        let mut heads: Vec<u32> = self.voqs.iter().map(|voq| voq.first()).filter(|&head| head != NONE).collect();
        while !heads.is_empty() {
            heads.retain_mut(|head| {
                let run = &self.runs[*head];
                report(run.first, run.len);
                *head = run.next;
                run.next != NONE
            });
        }
    }
}
