//! The synchronous engine: frames of one size on stars and trees, slot by slot. It takes no event for a frame; what it
//! does for one is a few array accesses.
//!
//! In each slot, in this order: control messages that are due take effect; outputs of switches serve; hosts generate,
//! and send; what was sent arrives, at the beginning of the slot after its transmission and the delay of the link.
//! So a frame is at the same place at the same time as in the event engine, where ends of service come before arrivals.
//! - A congestion point looks at a queue when a frame has been put into it and before one is served.
//! - Control messages travel beside the frames and take no slot from them; delays are rounded up to slots.
//! - A reaction point limits a pair of hosts, whatever groups of traffic their frames belong to.
//!
//! 1. [`switches`]: queues in shared memories, routes. 2. [`adapters`]: sources, queues and limiters of hosts.
//! 3. [`outlets`]: slow outputs, buffers behind them. 4. [`holds`]: PAUSE. 5. [`books`]: what is counted.
//! 6. [`report`]: the totals, and the law of conservation.

mod adapters;
mod bits;
mod books;
mod cell;
mod holds;
mod outlets;
mod points;
mod report;
mod setup;
mod sources;
mod switches;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;

use weir_core::units::{Bytes, Span, Time};

use crate::plan::Plan;
use crate::probes::PortProbes;
use crate::sim::SimError;
use crate::totals::Totals;
use adapters::Adapters;
use books::{Books, Series};
use cell::Cell;
use holds::{Holds, Watermarks};
use outlets::Outlets;
use points::Points;
use switches::{Admission, Lanes, NONE, Queues, Routes};

/// One run of `plan`, whose engine is the slotted one. `ask` is told the time now and then and says whether to go on.
pub(crate) fn run(plan: &Plan, seed: u64, ask: impl FnMut(Time) -> ControlFlow<()>) -> Result<Totals, SimError> {
    let mut kernel = setup::kernel(plan, seed);
    // What only some runs need costs the others nothing.
    if kernel.queues.of_input.is_empty() { kernel.run::<false>(seed, ask) } else { kernel.run::<true>(seed, ask) }?;
    report::close(kernel, plan, seed)
}

/// About how many cells may be sent between two questions whether to go on.
const CELLS_PER_QUESTION: u32 = 1 << 16;
/// Most bursts that may wait in hosts.
const MAX_RUNS: usize = 1 << 26;

/// What takes effect later.
#[derive(Clone, Copy, Debug)]
enum Message {
    /// PAUSE holds the transmitter of a link, or releases it.
    Hold { link: u32, stop: bool },
    /// Feedback of `points.sent[place]`.
    Feedback { place: u32 },
    /// A limiter changes by itself.
    Limiter { id: u32 },
}

/// A cell on a link.
#[derive(Clone, Copy, Debug)]
struct Flight {
    cell: Cell,
    link: u32,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
struct Wire {
    /// The switch that it leads to, counted among switches; [`NONE`] for a host.
    switch: u32,
    /// More cells than this that came by it, waiting, are news; [`NONE`] where they are not.
    xoff: u32,
    /// Whether its transmitter was asked to stop because of them.
    is_above: bool,
    /// Time until PAUSE that was sent to its transmitter is obeyed.
    hold: Span,
}

/// Slots from the end of a transmission until the cell can go on.
#[derive(Clone, Copy, Debug)]
struct Lags {
    to_host: u32,
    to_switch: u32,
}

#[derive(Debug)]
struct Kernel {
    /// The slot that begins.
    now: u32,
    end: u32,
    slot: Span,
    size: Bytes,
    lanes: Lanes,
    adapters: Adapters,
    queues: Queues,
    routes: Routes,
    outlets: Outlets,
    holds: Holds,
    books: Books,
    points: Option<Points>,
    lags: Lags,
    /// By link.
    wires: Vec<Wire>,
    /// By switch.
    watermarks: Vec<Option<Watermarks>>,
    /// Whether a switch asked all its neighbours to stop, by switch; and how many did.
    above: Vec<bool>,
    all_above: u32,
    /// Links that lead to each switch, in order of their ports.
    inputs: Vec<Vec<u32>>,
    /// How often a switch asked its neighbours to stop.
    xoffs: Vec<u64>,
    /// Cells on links, by the slot of their arrival, round about.
    flights: Vec<Vec<Flight>>,
    /// How many of them came from switches.
    split: Vec<usize>,
    /// Cells that hosts receive at the end of this slot.
    received: Vec<Cell>,
    /// Cells on the last link when the run ends.
    stranded: Vec<Cell>,
    agenda: BinaryHeap<Reverse<(u32, u32, u32)>>,
    messages: Vec<Message>,
    free_messages: Vec<u32>,
    counter: u32,
    /// Cells dropped: port, flow.
    drops: BTreeMap<(u32, u32), u64>,
    /// Drops of each lane, and when the first and the last were.
    lane_drops: Vec<(u32, u32, u32)>,
    probes: PortProbes,
    recorded: Vec<Recorded>,
    /// The slot whose beginning ends the next interval of a recorded port.
    next_mark: u32,
    series: Vec<Series>,
    /// The slot whose beginning ends the next interval of deliveries.
    next_series: u64,
}

/// A recorded port.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    link: u32,
    /// Slots of an interval.
    every: u32,
    /// Interval.
    number: u32,
    /// Greatest queue of the intervals that ended.
    peak: u32,
}

impl Kernel {
    fn run<const BY_INPUT: bool>(
        &mut self,
        seed: u64,
        mut ask: impl FnMut(Time) -> ControlFlow<()>,
    ) -> Result<(), SimError> {
        let every = (CELLS_PER_QUESTION / self.adapters.count() as u32).max(1);
        while self.now < self.end {
            let until = (self.now + every).min(self.end);
            while self.now < until {
                self.slot::<BY_INPUT>();
            }
            let (now, frames) = (self.time(self.now), self.adapters.runs());
            if ask(now).is_break() {
                return Err(SimError::Interrupted);
            }
            if frames > MAX_RUNS {
                return Err(SimError::TooManyFrames { seed, now, frames });
            }
        }
        Ok(())
    }

    /// One slot.
    fn slot<const BY_INPUT: bool>(&mut self) {
        let now = self.now;
        self.outlets.begin(now);
        self.take_messages(now);
        self.end_intervals_of_deliveries(now);
        self.serve::<BY_INPUT>(now);
        self.record(now, false);
        self.send::<BY_INPUT>(now);
        self.record(now, true);
        self.now += 1;
        self.arrive::<BY_INPUT>(self.now);
    }

    fn time(&self, slot: u32) -> Time {
        Time::ZERO + self.slot * u64::from(slot)
    }

    /// A message takes effect `delay` after the beginning of slot `from`.
    fn later(&mut self, from: u32, delay: Span, message: Message) {
        let slots = delay.ps().div_ceil(self.slot.ps());
        self.schedule(u32::try_from(u64::from(from) + slots).unwrap_or(NONE), message);
    }

    fn schedule(&mut self, slot: u32, message: Message) {
        let place = match self.free_messages.pop() {
            Some(place) => {
                self.messages[place as usize] = message;
                place
            }
            None => {
                self.messages.push(message);
                (self.messages.len() - 1) as u32
            }
        };
        self.agenda.push(Reverse((slot, self.counter, place)));
        self.counter = self.counter.wrapping_add(1);
    }

    #[inline]
    fn take_messages(&mut self, now: u32) {
        while let Some(&Reverse((slot, _, place))) = self.agenda.peek()
            && slot <= now
        {
            self.agenda.pop();
            self.free_messages.push(place);
            self.take(now, self.messages[place as usize]);
        }
    }

    fn take(&mut self, now: u32, message: Message) {
        let timeout = match message {
            Message::Hold { link, stop } => {
                self.holds.obey(link, now, stop);
                None
            }
            Message::Feedback { place } => self.points.as_mut().and_then(|points| {
                let notice = points.take(place);
                self.adapters.on_feedback(notice.host, notice.to, notice.lane, notice.feedback, now)
            }),
            Message::Limiter { id } => self.adapters.on_timeout(id, now),
        };
        if let Some((slot, id)) = timeout {
            self.schedule(slot, Message::Limiter { id });
        }
    }

    /// Outputs of switches serve.
    #[inline]
    fn serve<const BY_INPUT: bool>(&mut self, now: u32) {
        let words = self.lanes.first / 64;
        for word in 0..words {
            self.serve_hosts::<BY_INPUT>(word, now);
        }
        let arrival = now + 1 + self.lags.to_host;
        if arrival < self.end {
            self.books.deliver(&self.received, arrival);
        } else {
            self.stranded.extend(&self.received);
        }
        self.received.clear();
        for word in words..self.queues.busy.len() {
            self.serve_switches::<BY_INPUT>(word, now);
        }
        for memory in &mut self.queues.memories {
            memory.level_slots = memory.level_slots.wrapping_add(memory.level.into());
        }
        if self.all_above > 0 {
            (0..self.above.len()).for_each(|switch| self.release(switch, now));
        }
    }

    /// The lanes of a word, which lead to hosts.
    #[inline(always)]
    fn serve_hosts<const BY_INPUT: bool>(&mut self, word: usize, now: u32) {
        let (busy, slow) = (self.queues.busy[word], self.outlets.slow_now[word]);
        let has_buffers = self.outlets.has_buffers();
        let mut todo = busy & !self.holds.lanes_held[word] | slow;
        let (mut served, mut emptied) = (0, 0);
        while todo != 0 {
            let place = todo.trailing_zeros();
            let (lane, bit) = (64 * word + place as usize, 1 << place);
            todo &= todo - 1;
            if slow & bit != 0 {
                let waits = busy & !self.holds.lanes_held[word] & bit != 0;
                if !self.outlets.serves(lane, waits) {
                    continue;
                }
            }
            let (cell, input, remains) = self.queues.pop::<BY_INPUT>(lane);
            served |= bit;
            emptied |= u64::from(!remains) << place;
            if has_buffers {
                self.depart(now + 1 + self.lags.to_host, lane as u32, cell);
            } else {
                self.received.push(cell);
            }
            if BY_INPUT && self.wires[input as usize].is_above && self.release_input(input, now) {
                todo = (busy & !self.holds.lanes_held[word] | slow) & later(place);
            }
        }
        self.queues.busy[word] = busy & !emptied;
        for place in bits::of(busy & !served) {
            self.queues.outputs[64 * word + place].account();
        }
    }

    /// The lanes of a word, which lead to switches.
    #[inline(always)]
    fn serve_switches<const BY_INPUT: bool>(&mut self, word: usize, now: u32) {
        let busy = self.queues.busy[word];
        let mut todo = busy & !self.holds.lanes_held[word];
        let (mut served, mut emptied) = (0, 0);
        let round = self.flights.len();
        let mut flights = std::mem::take(&mut self.flights[(now + 1 + self.lags.to_switch) as usize % round]);
        while todo != 0 {
            let place = todo.trailing_zeros();
            let lane = 64 * word + place as usize;
            todo &= todo - 1;
            let (cell, input, remains) = self.queues.pop::<BY_INPUT>(lane);
            served |= 1 << place;
            emptied |= u64::from(!remains) << place;
            flights.push(Flight { cell, link: lane as u32 });
            if BY_INPUT && self.wires[input as usize].is_above && self.release_input(input, now) {
                todo = busy & !self.holds.lanes_held[word] & later(place);
            }
        }
        self.flights[(now + 1 + self.lags.to_switch) as usize % round] = flights;
        self.queues.busy[word] = busy & !emptied;
        for place in bits::of(busy & !served) {
            self.queues.outputs[64 * word + place].account();
        }
    }

    /// XON, if the memory has fallen to its lower watermark.
    fn release(&mut self, switch: usize, now: u32) {
        let Some(marks) = self.watermarks[switch].filter(|_| self.above[switch]) else { return };
        let memory = &mut self.queues.memories[switch];
        if memory.level <= marks.xon {
            memory.alarm = marks.xoff;
            self.above[switch] = false;
            self.all_above -= 1;
            for i in 0..self.inputs[switch].len() {
                self.pause(self.inputs[switch][i], now, false, &marks);
            }
        }
    }

    /// XON to the transmitter of a link, if few cells that came by it still wait; whether it was sent.
    #[cold]
    fn release_input(&mut self, input: u32, now: u32) -> bool {
        let wire = &mut self.wires[input as usize];
        let Some(marks) = self.watermarks[wire.switch as usize] else { return false };
        let goes_on = self.queues.of_input[input as usize] <= marks.xon;
        if goes_on {
            wire.is_above = false;
            self.pause(input, now, false, &marks);
        }
        goes_on
    }

    /// Sends PAUSE to the transmitter of `link`.
    fn pause(&mut self, link: u32, now: u32, stop: bool, marks: &Watermarks) {
        self.holds.ask(link, now, stop, marks.refresh);
        let delay = marks.delay + self.wires[link as usize].hold;
        if delay == Span::ZERO {
            self.holds.obey(link, now, stop);
        } else {
            self.later(now, delay, Message::Hold { link, stop });
        }
    }

    fn depart(&mut self, at: u32, link: u32, cell: Cell) {
        let round = self.flights.len() as u32;
        self.flights[(at % round) as usize].push(Flight { cell, link });
    }

    /// Hosts generate and send.
    #[inline]
    fn send<const BY_INPUT: bool>(&mut self, now: u32) {
        self.adapters.step(now, self.end, &self.holds.hosts_held, &mut self.books.flows);
        let arrival = now + 1 + self.lags.to_switch;
        let place = arrival as usize % self.flights.len();
        self.split[place] = self.flights[place].len();
        let is_direct = self.lags.to_switch == 0 && arrival < self.end;
        let mut hops = 0_u64;
        for word in 0..self.adapters.sends.len() {
            for bit in bits::of(self.adapters.sends[word]) {
                let host = 64 * word + bit;
                let (cell, link) = (self.adapters.cells[host], self.lanes.uplink(host as u32));
                if is_direct {
                    hops = hops.wrapping_add(1);
                    self.enter::<BY_INPUT>(link, cell, arrival);
                } else {
                    self.flights[place].push(Flight { cell, link });
                }
            }
        }
        self.books.hops += hops;
    }

    /// What arrives at the beginning of slot `now`, and what the switches make of it.
    #[inline]
    fn arrive<const BY_INPUT: bool>(&mut self, now: u32) {
        if now >= self.end {
            return;
        }
        let place = (now % self.flights.len() as u32) as usize;
        if !self.flights[place].is_empty() {
            let mut flights = std::mem::take(&mut self.flights[place]);
            // Links of hosts come first, as their ids do.
            let (of_switches, of_hosts) = flights.split_at(std::mem::take(&mut self.split[place]).min(flights.len()));
            for &Flight { link, cell } in of_hosts.iter().chain(of_switches) {
                let is_last = self.wires[link as usize].switch == NONE;
                if is_last && self.outlets.has_buffer(link as usize) {
                    self.outlets.arrive(link as usize, cell);
                } else if is_last {
                    self.books.deliver(&[cell], now);
                } else {
                    self.books.hops += 1;
                    self.enter::<BY_INPUT>(link, cell, now);
                }
            }
            flights.clear();
            self.flights[place] = flights;
        }
        self.take_from_buffers(now);
        for switch in 0..self.queues.memories.len() {
            let memory = &mut self.queues.memories[switch];
            memory.peak = memory.peak.max(memory.level);
            if memory.level > memory.alarm {
                self.stop_all(switch, now);
            }
        }
    }

    /// A memory has grown above its upper watermark: XOFF to all neighbours.
    #[cold]
    fn stop_all(&mut self, switch: usize, now: u32) {
        let Some(marks) = self.watermarks[switch] else { return };
        self.queues.memories[switch].alarm = NONE;
        self.above[switch] = true;
        self.all_above += 1;
        self.xoffs[switch] += 1;
        for i in 0..self.inputs[switch].len() {
            self.pause(self.inputs[switch][i], now, true, &marks);
        }
    }

    fn take_from_buffers(&mut self, now: u32) {
        if !self.outlets.has_buffers() {
            return;
        }
        let books = &mut self.books;
        let mut turned = Vec::new();
        self.outlets.take(|cell| books.deliver(&[cell], now), |host, stop| turned.push((host, stop)));
        for (host, stop) in turned {
            let link = host as u32;
            self.holds.ask(link, now, stop, None);
            self.later(now, self.wires[host].hold, Message::Hold { link, stop });
        }
    }

    /// A cell that came over `input` enters a switch at the beginning of slot `now`.
    #[inline(always)]
    fn enter<const BY_INPUT: bool>(&mut self, input: u32, cell: Cell, now: u32) {
        let wire = &self.wires[input as usize];
        let lane = self.routes.lane(wire.switch, cell.to(), || self.adapters.host_of(cell.source()));
        let (xoff, is_above) = (wire.xoff, wire.is_above);
        let admission = self.queues.push::<BY_INPUT>(lane, cell, input);
        if admission == Admission::Dropped {
            self.drop(lane, cell, now);
            return;
        }
        if BY_INPUT && self.queues.of_input[input as usize] > xoff && !is_above {
            self.hold_input(input, now);
        }
        if admission == Admission::Sampled {
            self.sample(lane, cell, now);
        }
    }

    /// Too many cells wait that came by one link: XOFF to its transmitter.
    #[cold]
    fn hold_input(&mut self, input: u32, now: u32) {
        let wire = &mut self.wires[input as usize];
        let Some(marks) = self.watermarks[wire.switch as usize] else { return };
        wire.is_above = true;
        self.xoffs[wire.switch as usize] += 1;
        self.pause(input, now, true, &marks);
    }

    /// The congestion point of `lane` looks at its queue.
    #[cold]
    fn sample(&mut self, lane: usize, cell: Cell, now: u32) {
        let Some(points) = &mut self.points else { return };
        let is_sampled = points.is_sampled(lane);
        let output = &mut self.queues.outputs[lane];
        let skip = points.skip(lane).and_then(|skip| u32::try_from(skip).ok()).unwrap_or(NONE);
        output.next_sample = output.taken().saturating_add(1).saturating_add(skip);
        if !is_sampled {
            return;
        }
        let (queue, switch) = (self.size * u64::from(output.len()), output.switch);
        let host = self.adapters.host_of(cell.source()).into();
        let tag = self.adapters.tag(host, cell.to());
        if let Some((delay, place)) = points.sample((lane as u32, switch), queue, tag, (host, cell.to())) {
            self.later(now, delay, Message::Feedback { place });
        }
    }

    #[cold]
    fn drop(&mut self, lane: usize, cell: Cell, now: u32) {
        let drops = &mut self.lane_drops[lane];
        if drops.0 == 0 {
            drops.1 = now;
        }
        drops.0 += 1;
        drops.2 = now;
        if !self.books.flows.is_empty() {
            let flow = self.books.flow(cell) as u32;
            *self.drops.entry((self.lanes.port(lane as u32), flow)).or_default() += 1;
        }
        let output = &mut self.queues.outputs[lane];
        if self.points.as_ref().is_some_and(|points| points.counts_drops) && output.next_sample != NONE {
            output.next_sample -= 1;
            if output.taken() == output.next_sample {
                self.sample(lane, cell, now);
            }
        }
    }
}

/// The bits behind `place`.
fn later(place: u32) -> u64 {
    u64::MAX << place << 1
}
