//! The loop of the emulator: one thread that reads, asks the models, writes and sleeps.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use weir_core::path::{Arrived, Departure, Line, LineSpec};
use weir_core::queue::Label;
use weir_core::units::{Bytes, Span, Time};

use super::packet::{ecn, flow, strip_window_scale};
use super::pool::{Piece, Pool};
use super::{Hop, LineReport, Plan, Record, Report, line_name};
use crate::LiveError;
use crate::host::{Clock, Rest, ThreadTime, on_cpu};

/// Packets read or written in a row before the emulator looks elsewhere.
const TURN_PACKETS: usize = 64;
/// Bytes of them: four joined packets of the greatest length.
const TURN_BYTES: usize = 262_144;

/// Emulates until `stop` can be read or is closed at its other end. Takes its seat for good: call it in a thread of
/// its own.
///
/// # Errors
/// A line that is not legal, a seat that cannot be taken, or a device that failed.
pub fn run(plan: &Plan, stop: BorrowedFd<'_>) -> Result<Report, LiveError> {
    for (i, hop) in plan.hops.iter().enumerate() {
        for (direction, line) in [("forward", &hop.forward), ("backward", &hop.backward)] {
            let wrong = |error| LiveError::Plan(format!("hop {i}, {direction}: {error}"));
            line.check().map_err(wrong)?;
        }
    }
    let seated = plan.seat.take()?;
    let clock = Clock::start();
    let before = ThreadTime::here();
    let hops = plan.hops.iter().enumerate();
    let mut runners: Vec<Runner<'_>> = hops.flat_map(|(i, hop)| Runner::pair(plan, i, hop)).collect();
    let mut pool = Pool::new(plan.mtu, plan.memory, plan.joined);
    let inputs = runners.iter().map(|runner| runner.input).chain([stop]);
    let mut polled: Vec<PollFd<'_>> = inputs.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let mut rest = Rest::from(clock.now());
    let mut behind = false;
    loop {
        let now = clock.now();
        let due =
            if behind { now } else { runners.iter().map(|runner| runner.line.due()).min().unwrap_or(Time::NEVER) };
        wait_for_input(&mut polled, now, due, plan.spin)?;
        if polled.last().and_then(PollFd::any) == Some(true) {
            break;
        }
        behind = false;
        for (number, (runner, input)) in runners.iter_mut().zip(&polled).enumerate() {
            behind |= runner.write_due(&clock, clock.now(), &mut pool)?;
            if input.any() == Some(true) {
                behind |= runner.read_arrived(&clock, &mut pool)?;
            }
            plan.meters.set(number, &runner.line.counters(), runner.left_bytes, runner.line.waiting_bytes());
        }
        rest.take_if_owed(&clock, clock.now());
    }
    let now = clock.now();
    let lines = runners.into_iter().map(|runner| runner.finish(&clock, now, &mut pool)).collect::<Result<_, _>>()?;
    let elapsed = now.saturating_since(Time::ZERO);
    let waited = ThreadTime::since(before).map(|time| time.waited);
    Ok(Report { seated, elapsed, on_cpu: on_cpu(), waited, lines })
}

/// Sleep until a packet comes, or until shortly before `due`.
fn wait_for_input(polled: &mut [PollFd<'_>], now: Time, due: Time, spin: Span) -> Result<(), LiveError> {
    let timeout = (due != Time::NEVER).then(|| {
        let awake = due.saturating_since(now).ps().saturating_sub(spin.ps());
        TimeSpec::from_duration(std::time::Duration::from_nanos(awake / 1_000))
    });
    match ppoll(polled, timeout, None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(LiveError::system("wait for packets", errno)),
    }
}

/// One direction of a hop at work.
struct Runner<'a> {
    input: BorrowedFd<'a>,
    output: BorrowedFd<'a>,
    line: Line<Piece>,
    /// What has left the line and is to be written next.
    pending: Option<Departure<Piece>>,
    strips_window_scale: bool,
    left_bytes: u64,
    /// Number of the next arrival.
    next: u64,
    most: usize,
    /// What is reported at the end, without what the line counts.
    report: LineReport,
}

impl<'a> Runner<'a> {
    fn pair(plan: &Plan, i: usize, hop: &'a Hop) -> [Runner<'a>; 2] {
        let (near, far) = (hop.near.as_fd(), hop.far.as_fd());
        let runner = |direction, input, output, line: &LineSpec| Runner {
            input,
            output,
            line: Line::new(line, plan.seed, &line_name(i, direction)),
            pending: None,
            strips_window_scale: hop.strips_window_scale,
            left_bytes: 0,
            next: 0,
            most: plan.record,
            report: LineReport {
                hop: i,
                direction,
                record: Record { until: Time::NEVER, ..Record::default() },
                ..LineReport::default()
            },
        };
        [runner("forward", near, far, &hop.forward), runner("backward", far, near, &hop.backward)]
    }

    /// Write what is due up to `now`; true if there may be more. Segments of one packet that leave one after the other
    /// at the same instant are written as one.
    fn write_due(&mut self, clock: &Clock, now: Time, pool: &mut Pool) -> Result<bool, LiveError> {
        let mut turn = Turn::default();
        while turn.goes_on() {
            let Some(first) = self.pending.take().or_else(|| self.line.leave(now)) else {
                self.forget_dropped(pool);
                return Ok(false);
            };
            let mut run = Run::from(first);
            while let Some(next) = self.line.leave(now) {
                if !run.takes(&next) {
                    self.pending = Some(next);
                    break;
                }
            }
            turn.packet(self.write(clock, pool, &run)?);
        }
        self.forget_dropped(pool);
        Ok(true)
    }

    /// Writes segments as one packet; gives its length.
    fn write(&mut self, clock: &Clock, pool: &mut Pool, run: &Run) -> Result<usize, LiveError> {
        let count = run.pieces.len() as u64;
        let length = match pool.write(self.output, run.slot, &run.pieces, run.marked) {
            Ok(length) => {
                self.report.lateness.record_n(clock.now().saturating_since(run.at), count);
                length
            }
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EIO | Errno::EINVAL) => {
                self.report.refused += count;
                0
            }
            Err(errno) => return Err(LiveError::system("write to the end of a path", errno)),
        };
        for index in run.pieces.clone() {
            let piece = Piece { slot: run.slot, index };
            self.left_bytes += pool.size(piece) as u64;
            let number = pool.number(piece);
            if number < self.report.record.arrivals.len() as u64 {
                self.report.record.departures.push((number, run.at));
            }
        }
        pool.release(run.slot, count as u32);
        Ok(length)
    }

    /// Frees what a queue has dropped after it had taken it.
    fn forget_dropped(&mut self, pool: &mut Pool) {
        while let Some(dropped) = self.line.take_dropped() {
            let number = pool.number(dropped.handle);
            if number < self.report.record.arrivals.len() as u64 && dropped.at <= self.report.record.until {
                self.report.record.dropped.push(number);
            }
            pool.release(dropped.handle.slot, 1);
        }
    }

    /// Read what has come; true if there may be more. The line sees the segments of a joined packet one by one, at
    /// the time at which all of them came.
    fn read_arrived(&mut self, clock: &Clock, pool: &mut Pool) -> Result<bool, LiveError> {
        let mut turn = Turn::default();
        while turn.goes_on() {
            let incoming = match pool.read(self.input) {
                Ok(Some(incoming)) => incoming,
                Ok(None) | Err(Errno::EAGAIN) => return Ok(false),
                Err(errno) => return Err(LiveError::system("read from the end of a path", errno)),
            };
            let now = clock.now();
            let front = pool.front_mut(&incoming);
            if self.strips_window_scale {
                self.report.stripped += u64::from(strip_window_scale(front, !incoming.needs_checksum()));
            }
            let label = Label { flow: flow(front), ecn: ecn(front), ..Label::default() };
            turn.packet(incoming.length());
            self.report.whole += u64::from(incoming.stays_whole());
            let Some(slot) = pool.keep(&incoming, self.next) else {
                self.report.unbuffered += u64::from(incoming.count());
                continue;
            };
            for index in 0..incoming.count() {
                let arrived = Arrived { at: now, size: Bytes::new(incoming.size(index) as u64), label };
                self.arrive(arrived, Piece { slot, index }, pool);
            }
            pool.release(slot, 1);
        }
        Ok(true)
    }

    /// A packet, or a segment of one, comes to the line.
    fn arrive(&mut self, arrived: Arrived, piece: Piece, pool: &mut Pool) {
        let number = self.next;
        self.next += 1;
        let arrival = self.line.arrive(arrived.at, piece, arrived.size, arrived.label);
        pool.hold(piece.slot, arrival.kept);
        if self.report.record.arrivals.len() < self.most {
            self.report.record.arrivals.push(arrived);
            self.report.record.dropped.extend((0..arrival.dropped).map(|_| number));
            self.report.record.lost.extend((0..arrival.lost).map(|_| number));
        } else {
            self.report.record.until = self.report.record.until.min(arrived.at);
        }
        self.forget_dropped(pool);
    }

    fn finish(mut self, clock: &Clock, now: Time, pool: &mut Pool) -> Result<LineReport, LiveError> {
        while self.write_due(clock, now, pool)? {}
        let mut record = self.report.record;
        record.until = record.until.min(now);
        record.departures.retain(|&(_, at)| at <= record.until);
        let (counters, transmitters) = (self.line.counters(), self.line.transmitters());
        Ok(LineReport { counters, transmitters, record, ..self.report })
    }
}

/// How much was read or written in a row.
#[derive(Debug, Default)]
struct Turn {
    packets: usize,
    bytes: usize,
}

impl Turn {
    fn goes_on(&self) -> bool {
        self.packets < TURN_PACKETS && self.bytes < TURN_BYTES
    }

    fn packet(&mut self, length: usize) {
        self.packets += 1;
        self.bytes += length;
    }
}

/// Segments of one packet that leave together.
#[derive(Debug)]
struct Run {
    slot: u32,
    pieces: Range<u16>,
    at: Time,
    marked: bool,
}

impl Run {
    fn from(first: Departure<Piece>) -> Run {
        let Departure { handle: Piece { slot, index }, at, marked } = first;
        Run { slot, pieces: index..index + 1, at, marked }
    }

    /// Whether the next to leave goes with them.
    fn takes(&mut self, next: &Departure<Piece>) -> bool {
        let Departure { handle: Piece { slot, index }, at, marked } = *next;
        let goes = (slot, index, at, marked) == (self.slot, self.pieces.end, self.at, self.marked);
        self.pieces.end += u16::from(goes);
        goes
    }
}

#[cfg(test)]
mod tests;
