//! TCP connections as agents: they carry segments between the machines of [`weir_core::tcp`] and the network.

mod ends;

use weir_core::queue::Lane;
use weir_core::rapid::{Log, LogReader};
use weir_core::tcp::{Phase, Receiver, Segment, Sender};
use weir_core::traffic::Emissions;
use weir_core::units::{Bytes, Span, Time};

use crate::agent::Agent;
use crate::boundaries::Boundaries;
use crate::fabric::Fabric;
use crate::frames::{Body, Received};
use crate::totals::{ConnectionInterval, ConnectionTotals, MessageRow, Totals};

/// The sending end, and the application above it: a cache line, and what its machine needs next behind it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TcpSender {
    /// The flow of its data; acknowledgements come in the next.
    flow: u32,
    /// Segments sent, modulo 2^16.
    sent: u16,
    stopped: bool,
    /// Whether it times each segment by itself, and is to be notified when each leaves.
    is_timed: bool,
    start: Time,
    /// When the application ends; `stopped` says whether it has.
    stop: Time,
    load: Application,
    series: Option<Box<Series>>,
    /// What its controller writes down.
    log: Option<Box<Written>>,
    /// Frames that may wait in its adapter.
    adapter: usize,
    machine: Sender,
}

#[derive(Debug)]
enum Application {
    Endless,
    Transfer(Bytes),
    Writes(Box<Emissions>),
}

/// The receiving end.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TcpReceiver {
    flow: u32,
    /// Segments sent, modulo 2^16.
    sent: u16,
    /// What its adapter gathers, if it does.
    gathered: Option<Box<Gathered>>,
    machine: Receiver,
}

/// Segments that wait for an interrupt.
#[derive(Debug)]
struct Gathered {
    /// How long the first of them waits.
    time: Span,
    segments: Vec<Segment>,
    /// When the interrupt comes; [`Time::NEVER`] if nothing waits.
    interrupt: Time,
}

/// What a controller has written down.
#[derive(Debug)]
struct Written {
    reader: LogReader,
    log: Log,
    /// Place of the connection among all.
    connection: u32,
}

/// Rows of a sender's state at the end of each interval.
#[derive(Debug)]
struct Series {
    boundaries: Boundaries,
    /// The number of the next row, from 1, and when it is due.
    number: u32,
    due: Time,
    rows: Vec<ConnectionInterval>,
    /// Place of the connection among all.
    connection: u32,
}

/// After so long a sender looks again whether PAUSE still holds its full adapter: half of a full frame's time at 1 Gbit/s.
const LOOK_AGAIN: Span = Span::from_us(6);

impl TcpSender {
    /// The sender of a message, whose application has written all of it and ended.
    pub(crate) fn of_message(machine: Sender, flow: u32) -> TcpSender {
        TcpSender {
            flow,
            sent: 0,
            stopped: true,
            is_timed: false,
            start: Time::ZERO,
            stop: Time::NEVER,
            load: Application::Endless,
            series: None,
            log: None,
            adapter: usize::MAX,
            machine,
        }
    }

    /// Sends what may be sent at first; when the timer is to run out next.
    pub(crate) fn begin(&mut self, fabric: &mut Fabric<'_>) -> Time {
        self.send(fabric)
    }

    /// Whether the receiver has the whole stream, the FIN included.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.machine.finished().is_some()
    }

    /// Data that it knows to have arrived.
    #[inline]
    pub(crate) fn acked(&self) -> Bytes {
        self.machine.acked()
    }

    /// Writes down what became of its message.
    pub(crate) fn note_in(&self, row: &mut MessageRow) {
        let counters = self.machine.counters();
        row.retransmits = u32::try_from(counters.retransmits).unwrap_or(u32::MAX);
        row.timeouts = u32::try_from(counters.timeouts).unwrap_or(u32::MAX);
    }

    /// The application does what it does now.
    fn act(&mut self, now: Time) {
        if self.machine.opened().is_none() && now >= self.start {
            self.machine.open(now);
            match self.load {
                Application::Endless => self.machine.write_endlessly(),
                Application::Transfer(bytes) => {
                    self.machine.write(bytes);
                    self.stop(now);
                }
                Application::Writes(_) => {}
            }
        }
        if let Application::Writes(writes) = &mut self.load {
            while writes.peek() <= now && !self.stopped {
                let (_, bytes) = writes.draw();
                self.machine.write(bytes);
            }
        }
        if now >= self.stop {
            self.stop(now);
        }
    }

    fn stop(&mut self, now: Time) {
        if !self.stopped && now >= self.start {
            self.machine.close();
            self.stopped = true;
        }
    }

    /// Sends what may be sent; when the timer is to run out next.
    #[inline]
    fn send(&mut self, fabric: &mut Fabric<'_>) -> Time {
        let now = fabric.now();
        let mut room = Time::NEVER;
        loop {
            if self.adapter < usize::MAX && fabric.outlet(self.flow).waiting_frames() >= self.adapter {
                let outlet = fabric.outlet(self.flow);
                // Nobody notifies a sender that PAUSE has ended.
                room = if outlet.is_paused() { outlet.free_at().max(now) + LOOK_AGAIN } else { outlet.free_at() };
                break;
            }
            let Some(segment) = self.machine.poll_transmit(now) else { break };
            if self.is_timed {
                let leaves = fabric.outlet(self.flow).start_of_next(now);
                if leaves > now {
                    self.machine.note_departure(leaves);
                }
            }
            post(fabric, self.flow, segment, &mut self.sent);
        }
        let next = self.machine.poll_timeout().min(self.machine.poll_release()).min(room);
        if self.stopped { next } else { next.min(self.next_act()) }
    }

    fn next_act(&self) -> Time {
        if self.machine.opened().is_none() {
            return self.start;
        }
        match &self.load {
            Application::Writes(writes) => self.stop.min(writes.peek()),
            Application::Endless | Application::Transfer(_) => self.stop,
        }
    }

    #[inline]
    fn note(&mut self, now: Time) {
        if let Some(series) = &mut self.series
            && series.due <= now
        {
            series.advance(now, &self.machine);
        }
    }
}

impl Agent for TcpSender {
    fn receives(&self) -> Vec<u32> {
        vec![self.flow + 1]
    }

    fn start(&mut self) -> Time {
        self.start
    }

    #[inline]
    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        let now = fabric.now();
        self.note(now);
        if !self.stopped {
            self.act(now);
        }
        self.machine.handle_timeout(now);
        self.send(fabric)
    }

    #[inline]
    fn on_frame(&mut self, fabric: &mut Fabric<'_>, frame: Received) -> Time {
        let now = fabric.now();
        self.note(now);
        if let Body::Tcp(segment) = frame.body {
            self.machine.handle_segment(now, &segment);
        }
        self.send(fabric)
    }

    fn rows(&mut self) -> usize {
        let written = self.log.as_mut().map_or(0, |written| {
            written.reader.read(&mut written.log);
            written.log.rows()
        });
        written + self.series.as_ref().map_or(0, |series| series.rows.len())
    }

    fn take_rows(&mut self, totals: &mut Totals) {
        if let Some(series) = &mut self.series {
            totals.tcp.push((series.connection, std::mem::take(&mut series.rows)));
        }
        if let Some(written) = &mut self.log {
            written.reader.read(&mut written.log);
            totals.probing.push((written.connection, std::mem::take(&mut written.log)));
        }
    }

    fn report(&mut self, end: Time, totals: &mut Totals) {
        if let Some(series) = &mut self.series {
            series.advance(end, &self.machine);
        }
        self.take_rows(totals);
        totals.connections.push(ConnectionTotals {
            flow: self.flow,
            opened: self.machine.opened(),
            established: self.machine.established(),
            acknowledged: self.machine.finished(),
            delivered: None,
            srtt: self.machine.rtt().srtt(),
            min_rtt: self.machine.rtt().min(),
            sender: self.machine.counters(),
            ..ConnectionTotals::default()
        });
    }
}

impl Agent for TcpReceiver {
    fn receives(&self) -> Vec<u32> {
        vec![self.flow]
    }

    fn start(&mut self) -> Time {
        Time::NEVER
    }

    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        let now = fabric.now();
        if self.gathered.as_ref().is_some_and(|gathered| gathered.interrupt <= now) {
            self.interrupt(fabric);
        }
        self.machine.handle_timeout(now);
        self.answer(fabric)
    }

    #[inline]
    fn on_frame(&mut self, fabric: &mut Fabric<'_>, frame: Received) -> Time {
        let Body::Tcp(segment) = frame.body else { return self.timer() };
        if let Some(gathered) = &mut self.gathered {
            if gathered.segments.is_empty() {
                gathered.interrupt = fabric.now() + gathered.time;
            }
            gathered.segments.push(segment);
            return self.timer();
        }
        self.machine.handle_segment(fabric.now(), &segment);
        self.answer(fabric)
    }

    fn report(&mut self, _: Time, totals: &mut Totals) {
        let row = totals.connections.last_mut().expect("the sender of the connection comes before its receiver");
        (row.receiver, row.delivered) = (self.machine.counters(), self.machine.finished());
        row.paws_rejects = row.sender.paws_rejects + row.receiver.paws_rejects;
    }
}

impl TcpReceiver {
    /// Data delivered: all of a message may have arrived before the FIN.
    #[inline]
    pub(crate) fn delivered(&self) -> Bytes {
        self.machine.delivered()
    }

    /// The receiver of a message.
    pub(crate) fn of_message(machine: Receiver, flow: u32) -> TcpReceiver {
        TcpReceiver { flow, sent: 0, gathered: None, machine }
    }

    #[inline]
    fn answer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        while let Some(segment) = self.machine.poll_transmit(fabric.now()) {
            post(fabric, self.flow + 1, segment, &mut self.sent);
        }
        self.timer()
    }

    fn timer(&self) -> Time {
        let interrupt = self.gathered.as_ref().map_or(Time::NEVER, |gathered| gathered.interrupt);
        self.machine.poll_timeout().min(interrupt)
    }

    /// The adapter hands over what it has gathered.
    fn interrupt(&mut self, fabric: &mut Fabric<'_>) {
        let Some(gathered) = &mut self.gathered else { return };
        gathered.interrupt = Time::NEVER;
        for segment in std::mem::take(&mut gathered.segments) {
            self.machine.handle_segment(fabric.now(), &segment);
            self.answer(fabric);
        }
    }
}

#[inline]
fn post(fabric: &mut Fabric<'_>, flow: u32, segment: Segment, sent: &mut u16) {
    *sent = sent.wrapping_add(1);
    let segment = Segment { id: *sent, ..segment };
    fabric.send_loaded(flow, segment.frame_size(), Lane::Data, Body::Tcp(segment));
}

impl Series {
    /// Writes the rows up to `now`; nothing has changed since the last.
    #[cold]
    fn advance(&mut self, now: Time, machine: &Sender) {
        while self.due <= now {
            self.rows.push(ConnectionInterval {
                at: self.due,
                window: machine.window(),
                threshold: Some(machine.threshold()).filter(|&threshold| threshold < Bytes::new(u64::MAX)),
                srtt: machine.rtt().srtt(),
                flight: machine.bytes_in_flight(),
                acked: machine.acked(),
                retransmits: machine.retransmits(),
                repairs: machine.phase() != Phase::Open,
                marked: machine.marked(),
                alpha: machine.marked_share(),
            });
            self.number += 1;
            self.due = self.boundaries.at(self.number);
        }
    }
}
