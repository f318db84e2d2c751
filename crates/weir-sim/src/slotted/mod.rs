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
mod books;
mod holds;
mod outlets;
mod points;
mod report;
mod setup;
mod switches;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use weir_core::spec::switching::PauseScope;
use weir_core::units::{Bytes, Span, Time};

use crate::plan::Plan;
use crate::probes::PortProbes;
use crate::sim::SimError;
use crate::totals::Totals;
use adapters::Adapters;
use books::{Books, Series};
use holds::{Holds, Watermarks};
use outlets::Outlets;
use points::Points;
use switches::{Admission, Cell, NONE, Queues, Routes};

/// One run of `plan`, whose engine is the slotted one. `ask` is told the time now and then and says whether to go on.
pub(crate) fn run(plan: &Plan, seed: u64, mut ask: impl FnMut(Time) -> ControlFlow<()>) -> Result<Totals, SimError> {
    let mut kernel = setup::kernel(plan, seed);
    let every = (CELLS_PER_QUESTION / kernel.adapters.count() as u32).max(1);
    while kernel.now < kernel.end {
        kernel.slot();
        if kernel.now.is_multiple_of(every) {
            let now = kernel.time(kernel.now);
            if ask(now).is_break() {
                return Err(SimError::Interrupted);
            }
            let frames = kernel.adapters.runs();
            if frames > MAX_RUNS {
                return Err(SimError::TooManyFrames { seed, now, frames });
            }
        }
    }
    report::close(kernel, plan, seed)
}

/// About how many cells may be sent between two questions whether to go on.
const CELLS_PER_QUESTION: u32 = 1 << 16;
/// Most bursts that may wait in hosts.
const MAX_RUNS: usize = 1 << 26;

/// What takes effect later.
#[derive(Clone, Copy, Debug)]
enum Message {
    /// PAUSE holds a port, or releases it.
    Hold { port: u32, stop: bool },
    /// Feedback of `points.sent[place]`.
    Feedback { place: u32 },
    /// A limiter changes by itself.
    Limiter { id: u32 },
}

/// A cell on a link.
#[derive(Clone, Copy, Debug)]
struct Flight {
    port: u32,
    cell: Cell,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
struct Wire {
    /// The switch that it leads to, counted among switches; [`NONE`] for a host.
    switch: u32,
    /// Slots from the end of a transmission until the cell can go on.
    lag: u32,
    /// Time until PAUSE that was sent to its transmitter is obeyed.
    hold: Span,
}

#[derive(Debug)]
struct Kernel {
    /// The slot that begins.
    now: u32,
    end: u32,
    slot: Span,
    size: Bytes,
    hosts: usize,
    adapters: Adapters,
    queues: Queues,
    routes: Routes,
    outlets: Outlets,
    holds: Holds,
    books: Books,
    points: Option<Points>,
    /// By port.
    wires: Vec<Wire>,
    /// Ports of switches, in order.
    outputs: Vec<u32>,
    /// Host of each source.
    host_of: Vec<u16>,
    /// By switch.
    watermarks: Vec<Option<Watermarks>>,
    /// Whether a switch asked all its neighbours to stop, by switch.
    above: Vec<bool>,
    /// Whether a neighbour was asked to stop, by its port.
    input_above: Vec<bool>,
    /// Ports that lead to each switch.
    inputs: Vec<Vec<u32>>,
    /// How often a switch asked its neighbours to stop.
    xoffs: Vec<u64>,
    /// Whether any switch has watermarks for each input.
    by_input: bool,
    /// Cells on links, by the slot of their arrival, round about.
    flights: Vec<Vec<Flight>>,
    /// How many of them came from switches.
    split: Vec<usize>,
    /// Cells on the last link when the run ends.
    stranded: Vec<Cell>,
    agenda: BinaryHeap<Reverse<(u32, u32, u32)>>,
    messages: Vec<Message>,
    free_messages: Vec<u32>,
    counter: u32,
    /// Cells dropped: port, flow.
    drops: std::collections::BTreeMap<(u32, u32), u64>,
    /// Drops of each port, and when the first and the last were.
    port_drops: Vec<(u32, u32, u32)>,
    probes: PortProbes,
    /// Recorded ports: place of the probe, port, slots of an interval, interval.
    recorded: Vec<Recorded>,
    series: Vec<Series>,
}

/// A recorded port.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    port: u32,
    every: u32,
    number: u32,
    /// Greatest queue of the intervals that ended.
    peak: u32,
}

impl Kernel {
    /// One slot.
    fn slot(&mut self) {
        let now = self.now;
        self.outlets.begin(now);
        self.take_messages(now);
        self.end_intervals_of_deliveries(now);
        self.serve(now);
        self.record(now, false);
        self.send(now);
        self.record(now, true);
        self.now += 1;
        self.arrive(self.now);
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
            Message::Hold { port, stop } => {
                self.holds.obey(port, now, stop);
                None
            }
            Message::Feedback { place } => self.points.as_mut().and_then(|points| {
                let notice = points.take(place);
                self.adapters.on_feedback(notice.host, notice.to, notice.port, notice.feedback, now)
            }),
            Message::Limiter { id } => self.adapters.on_timeout(id, now),
        };
        if let Some((slot, id)) = timeout {
            self.schedule(slot, Message::Limiter { id });
        }
    }

    /// Outputs of switches serve.
    fn serve(&mut self, now: u32) {
        let next = now + 1;
        for i in 0..self.outputs.len() {
            let port = self.outputs[i];
            let is_slow = self.outlets.is_slow[port as usize];
            if self.queues.outputs[port as usize].len == 0 && !is_slow {
                continue;
            }
            let mut may = self.queues.outputs[port as usize].len > 0 && !self.holds.held[port as usize];
            if is_slow {
                may = self.outlets.serves(port, may);
            }
            if may {
                let (cell, input) = self.queues.pop(port);
                let wire = self.wires[port as usize];
                if wire.switch != NONE || self.outlets.has_buffer(port) {
                    self.depart(next + wire.lag, port, cell);
                } else if next + wire.lag < self.end {
                    self.books.deliver(cell, next + wire.lag);
                } else {
                    self.stranded.push(cell);
                }
                if self.by_input && self.input_above[input as usize] {
                    self.release_input(input, now);
                }
            }
            let output = &mut self.queues.outputs[port as usize];
            output.len_slots += u64::from(output.len);
            output.peak = output.peak.max(output.len);
        }
        for switch in 0..self.queues.memories.len() {
            let memory = &mut self.queues.memories[switch];
            memory.level_slots += u64::from(memory.level);
            if self.above[switch] {
                self.release(switch, now);
            }
        }
    }

    /// XON, if the memory has fallen to its lower watermark.
    fn release(&mut self, switch: usize, now: u32) {
        let Some(marks) = self.watermarks[switch] else { return };
        if self.queues.memories[switch].level <= marks.xon {
            self.above[switch] = false;
            for i in 0..self.inputs[switch].len() {
                self.pause(self.inputs[switch][i], now, false, &marks);
            }
        }
    }

    fn release_input(&mut self, input: u32, now: u32) {
        let switch = self.wires[input as usize].switch;
        let Some(marks) = self.watermarks[switch as usize] else { return };
        if self.queues.of_input[input as usize] <= marks.xon {
            self.input_above[input as usize] = false;
            self.pause(input, now, false, &marks);
        }
    }

    /// Sends PAUSE to the transmitter `port`.
    fn pause(&mut self, port: u32, now: u32, stop: bool, marks: &Watermarks) {
        self.holds.ask(port, now, stop, marks.refresh);
        let delay = marks.delay + self.wires[port as usize].hold;
        if delay == Span::ZERO {
            self.holds.obey(port, now, stop);
        } else {
            self.later(now, delay, Message::Hold { port, stop });
        }
    }

    fn depart(&mut self, at: u32, port: u32, cell: Cell) {
        let round = self.flights.len() as u32;
        self.flights[(at % round) as usize].push(Flight { port, cell });
    }

    /// Hosts generate and send.
    fn send(&mut self, now: u32) {
        let hosts = self.hosts;
        let round = self.flights.len();
        let place = (now + 1 + self.wires[0].lag) as usize % round;
        self.split[place] = self.flights[place].len();
        for host in 0..hosts as u32 {
            let (adapters, books) = (&mut self.adapters, &mut self.books);
            let port = 2 * host;
            let held = self.holds.held[port as usize];
            if let Some(cell) = adapters.step(host, now, held, |cell| books.generate(cell)) {
                let wire = self.wires[port as usize];
                if wire.lag == 0 && now + 1 < self.end {
                    self.enter(wire.switch, port, cell, now + 1);
                } else {
                    self.depart(now + 1 + wire.lag, port, cell);
                }
            }
        }
    }

    /// What arrives at the beginning of slot `now`, and what the switches make of it.
    fn arrive(&mut self, now: u32) {
        if now >= self.end {
            return;
        }
        let place = (now % self.flights.len() as u32) as usize;
        if !self.flights[place].is_empty() {
            let mut flights = std::mem::take(&mut self.flights[place]);
            // Links of hosts come first, as their ids do.
            let (of_switches, of_hosts) = flights.split_at(std::mem::take(&mut self.split[place]).min(flights.len()));
            for &Flight { port, cell } in of_hosts.iter().chain(of_switches) {
                let switch = self.wires[port as usize].switch;
                if switch == NONE {
                    self.outlets.arrive(port, cell);
                } else {
                    self.enter(switch, port, cell, now);
                }
            }
            flights.clear();
            self.flights[place] = flights;
        }
        self.take_from_buffers(now);
        for switch in 0..self.watermarks.len() {
            let memory = &mut self.queues.memories[switch];
            memory.peak = memory.peak.max(memory.level);
            if let Some(marks) = self.watermarks[switch]
                && marks.scope == PauseScope::Switch
                && !self.above[switch]
                && memory.level > marks.xoff
            {
                self.above[switch] = true;
                self.xoffs[switch] += 1;
                for i in 0..self.inputs[switch].len() {
                    self.pause(self.inputs[switch][i], now, true, &marks);
                }
            }
        }
    }

    fn take_from_buffers(&mut self, now: u32) {
        if !self.outlets.has_buffers() {
            return;
        }
        let books = &mut self.books;
        let mut turned = Vec::new();
        self.outlets.take(|cell| books.deliver(cell, now), |port, stop| turned.push((port, stop)));
        for (port, stop) in turned {
            self.holds.ask(port, now, stop, None);
            self.later(now, self.wires[port as usize].hold, Message::Hold { port, stop });
        }
    }

    /// A cell that came over `input` enters `switch` at the beginning of slot `now`.
    #[inline]
    fn enter(&mut self, switch: u32, input: u32, cell: Cell, now: u32) {
        self.books.hops += 1;
        let port = self.routes.port(switch, cell.to, || self.host_of[usize::from(cell.source)]);
        let admission = self.queues.push(port, cell, input);
        if admission == Admission::Dropped {
            self.drop(port, cell, now);
        } else if self.by_input {
            self.hold_input(switch, input, now);
        }
        if let Some(points) = &mut self.points
            && points.counts(port, admission)
        {
            self.sample(port, cell, now);
        }
    }

    fn hold_input(&mut self, switch: u32, input: u32, now: u32) {
        if let Some(marks) = self.watermarks[switch as usize]
            && marks.scope == PauseScope::Input
            && !self.input_above[input as usize]
            && self.queues.of_input[input as usize] > marks.xoff
        {
            self.input_above[input as usize] = true;
            self.xoffs[switch as usize] += 1;
            self.pause(input, now, true, &marks);
        }
    }

    #[cold]
    fn sample(&mut self, port: u32, cell: Cell, now: u32) {
        let Some(points) = &mut self.points else { return };
        let output = &self.queues.outputs[port as usize];
        let (queue, switch) = (self.size * u64::from(output.len), output.switch);
        let host = u32::from(self.host_of[usize::from(cell.source)]);
        let tag = self.adapters.tag(host, cell.to);
        if let Some((delay, place)) = points.sample((port, switch), queue, tag, (host, cell.to)) {
            self.later(now, delay, Message::Feedback { place });
        }
    }

    #[cold]
    fn drop(&mut self, port: u32, cell: Cell, now: u32) {
        let drops = &mut self.port_drops[port as usize];
        if drops.0 == 0 {
            drops.1 = now;
        }
        drops.0 += 1;
        drops.2 = now;
        if let Some(flow) = self.books.flows.get_mut(cell.flow()) {
            flow.dropped += 1;
            *self.drops.entry((port, cell.flow() as u32)).or_default() += 1;
        }
    }
}
