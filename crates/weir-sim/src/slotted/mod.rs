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
//! 1. [`transit`]: the way of the cells through a slot. 2. [`switches`]: queues in shared memories; [`routes`] between them.
//! 3. [`adapters`]: sources, queues and limiters of hosts. 4. [`outlets`]: slow outputs, buffers behind them.
//! 5. [`holds`]: PAUSE. 6. [`books`]: what is counted. 7. [`report`]: the totals, and the law of conservation.

mod adapters;
mod bits;
mod books;
mod cell;
mod holds;
mod lanes;
mod outlets;
mod points;
mod report;
mod routes;
mod setup;
mod sources;
mod switches;
mod transit;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use std::thread;

use weir_core::ethernet::pause::Pause;
use weir_core::units::{Bytes, Span, Time};

use crate::limiting::HostSeries;
use crate::plan::Plan;
use crate::probes::PortProbes;
use crate::sim::{Seen, SimError};
use crate::spill::Spill;
use crate::totals::Totals;
use adapters::Adapters;
use books::{Books, Series};
use cell::{Cell, Flight};
use holds::{Asking, Holds};
use lanes::{Lanes, NONE};
use outlets::Outlets;
use points::Points;
use routes::Routes;
use switches::{Queues, Turn};

/// One run of `plan`, whose engine is the slotted one, on one thread or two, which changes nothing but the time it takes.
/// `ask` is shown now and then what was counted, and says whether to go on.
pub(crate) fn run(
    plan: &Plan,
    seed: u64,
    draws_ahead: bool,
    mut spill: Spill<'_>,
    ask: impl FnMut(Seen<'_>) -> ControlFlow<()>,
) -> Result<Totals, SimError> {
    let mut kernel = setup::kernel(plan, seed);
    let spilled = &mut spill;
    let kernel = thread::scope(move |scope| {
        let drawing = if draws_ahead { kernel.adapters.sources.draw_ahead(scope) } else { None };
        // What only some runs need costs the others nothing.
        let ended = match (kernel.queues.by_input, kernel.queues.memories.len() == 1) {
            (true, true) => kernel.run::<true, true>(plan, seed, spilled, ask),
            (true, false) => kernel.run::<true, false>(plan, seed, spilled, ask),
            (false, true) => kernel.run::<false, true>(plan, seed, spilled, ask),
            (false, false) => kernel.run::<false, false>(plan, seed, spilled, ask),
        };
        if let Some(drawing) = drawing {
            kernel.adapters.sources.end_drawing(drawing);
        }
        // The kernel lives in here: a panic drops it, so that the drawer sees that nobody takes what it draws.
        ended.map(|()| kernel)
    })?;
    let mut totals = report::close(kernel, plan, seed)?;
    spill.finish(&mut totals)?;
    Ok(totals)
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
    Limiter { host: u32, to: u16 },
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
    /// Time until PAUSE that was sent to the transmitter of each link is obeyed.
    hold_delays: Vec<Span>,
    /// By switch.
    asking: Vec<Option<Asking>>,
    /// Links that lead to each switch, in order of their ports.
    inputs: Vec<Vec<u32>>,
    /// How often a switch asked its neighbours to stop.
    xoffs: Vec<u64>,
    /// Cells on links, by the slot of their arrival, round about: a power of two of them.
    flights: Vec<Vec<Flight>>,
    /// How many of them came from switches.
    split: Vec<usize>,
    /// The lanes that serve.
    turn: Turn,
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
    /// Limiters of hosts that are recorded, by host, and the slot whose beginning ends the next interval of any.
    limiting: Vec<(u32, HostSeries)>,
    next_limiting: u64,
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
    fn run<const BY_INPUT: bool, const STAR: bool>(
        &mut self,
        plan: &Plan,
        seed: u64,
        spill: &mut Spill<'_>,
        mut ask: impl FnMut(Seen<'_>) -> ControlFlow<()>,
    ) -> Result<(), SimError> {
        let every = (CELLS_PER_QUESTION / self.adapters.count() as u32).max(1);
        while self.now < self.end {
            let until = (self.now + every).min(self.end);
            while self.now < until {
                self.slot::<BY_INPUT, STAR>();
            }
            let (now, frames) = (self.time(self.now), self.adapters.runs());
            if ask(Seen(self)).is_break() {
                return Err(SimError::Interrupted);
            }
            if frames > MAX_RUNS {
                return Err(SimError::TooManyFrames { seed, now, frames });
            }
            if spill.limit().is_some_and(|limit| self.rows() >= limit) {
                let mut part = Totals { intervals: self.probes.take(), ..Totals::default() };
                self.take_rows(now, plan, &mut part);
                spill.give(&part)?;
            }
        }
        Ok(())
    }

    /// One slot.
    fn slot<const BY_INPUT: bool, const STAR: bool>(&mut self) {
        let now = self.now;
        self.outlets.begin(now);
        self.take_messages(now);
        self.end_intervals_of_deliveries(now);
        self.serve::<BY_INPUT, STAR>(now);
        self.record(now, false);
        self.send::<BY_INPUT, STAR>(now);
        self.record(now, true);
        if u64::from(now) + 1 >= self.next_limiting {
            self.mark_limiters(now + 1);
        }
        self.now += 1;
        self.arrive::<BY_INPUT, STAR>(self.now);
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
                let pair = (notice.host, notice.to);
                Some((self.adapters.on_feedback(pair, notice.lane, notice.feedback, now)?, pair))
            }),
            Message::Limiter { host, to } => {
                self.adapters.on_timeout((host, to), now).map(|timeout| (timeout, (host, to)))
            }
        };
        if let Some((slot, (host, to))) = timeout {
            self.schedule(slot, Message::Limiter { host, to });
        }
    }

    /// The level of a memory has crossed one of its watermarks: all neighbours are asked.
    #[cold]
    fn ask_all(&mut self, switch: usize, now: u32) {
        let memory = &mut self.queues.memories[switch];
        let (Some(pause), Some(asking)) = (memory.marks.on_level(memory.space.level()), self.asking[switch]) else {
            return;
        };
        for i in 0..self.inputs[switch].len() {
            self.pause(self.inputs[switch][i], now, pause, &asking);
        }
        self.xoffs[switch] += u64::from(pause == Pause::Xoff);
    }

    /// What waits of a link has crossed one of its watermarks: its transmitter is asked.
    #[cold]
    fn ask_one(&mut self, link: u32, now: u32) {
        let input = &mut self.queues.inputs[link as usize];
        let switch = input.switch as usize;
        let (Some(pause), Some(asking)) = (input.marks.on_level(input.waiting), self.asking[switch]) else { return };
        self.xoffs[switch] += u64::from(pause == Pause::Xoff);
        self.pause(link, now, pause, &asking);
    }

    /// Sends PAUSE to the transmitter of `link`.
    fn pause(&mut self, link: u32, now: u32, pause: Pause, asking: &Asking) {
        let stop = pause == Pause::Xoff;
        self.holds.ask(link, now, stop, asking.refresh);
        let delay = asking.delay + self.hold_delays[link as usize];
        if delay == Span::ZERO {
            self.holds.obey(link, now, stop);
        } else {
            self.later(now, delay, Message::Hold { link, stop });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, RecvTimeoutError};
    use std::time::Duration;

    use super::*;
    use crate::hotspots::Benchmark;

    #[test]
    fn a_run_that_panics_ends_the_thread_that_draws_ahead() {
        let plan = Plan::new(Benchmark { slots: 1 << 20, ..Benchmark::single_stage(8) }.spec()).expect("a legal spec");
        let (alive, over) = mpsc::channel::<()>();
        let running = thread::spawn(move || {
            let _alive = alive;
            let _ = run(&plan, 1, true, Spill::default(), |_| panic!("on purpose"));
        });
        assert_eq!(over.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected), "it hangs");
        assert!(running.join().is_err());
    }
}
