//! The sending end: the core's sender, its times kept by a thread that sleeps and then spins briefly.
//!
//! The thread sleeps until [`Plan::spin`] before a packet is due, or an acknowledgement comes; then it looks at the clock
//! until the packet is due. Where gaps are shorter than that it stays awake from one packet to the next, and rests as
//! [`Rest`] says.

mod plan;

pub use self::plan::{Ending, Interval, Plan, Report, Watch};

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

use weir_core::cc::{CongestionControl, Controllers, Pace, Setup};
use weir_core::columns::Named;
use weir_core::rapid::{LogReader, ProbeState};
use weir_core::tcp::{Flags, Segment, Sender};
use weir_core::units::{Rate, Span, Time};

use super::greet::{self, Session, is_passing};
use super::timing::Timing;
use super::wire::{Bye, Closed, DATA_HEADER, Data, Kind, MOST_ACKS, MOST_PAYLOAD, decode_acks, session_of};
use crate::LiveError;
use crate::host::{Clock, Rest, Seated, ThreadTime, on_cpu, socket};

/// How often a waiting sender looks whether it shall end.
const GLANCE: Span = Span::from_ms(20);
/// A sender that hears nothing for so long gives up.
const SILENCE: Span = Span::from_ms(8_000);
/// How long the last losses may take to be repaired.
const DRAIN: Span = Span::from_ms(5_000);
/// What acknowledgements may cost, with the estimate at the end of a stream: they are read when there is as much time
/// before the next packet.
const READING: Span = Span::from_us(20);
/// Or after this time, however little there is.
const READ_AFTER: Span = Span::from_ms(1);
/// Shortest sleep.
const NAP: Span = Span::from_us(5);
/// Most packets in a row before the sender looks elsewhere.
const BURST: usize = 32;
/// Packets whose rows are kept.
const MOST_PACKETS: usize = 4_000_000;

/// Sends as `plan` says. Takes its seat for good: call it in a thread of its own.
///
/// # Errors
/// No session is opened, or the system refuses something.
pub fn send(plan: &Plan, watch: &Watch) -> Result<Report, LiveError> {
    plan.config.check().map_err(|error| LiveError::Plan(error.to_string()))?;
    Controllers::new().make(Setup::plain(&plan.config)).map_err(|error| LiveError::Plan(error.to_string()))?;
    if plan.config.segment_bytes.count() > MOST_PAYLOAD {
        let got = plan.config.segment_bytes.count();
        return Err(LiveError::Plan(format!("a payload is at most {MOST_PAYLOAD} bytes (got {got})")));
    }
    let anywhere = if plan.peer.is_ipv4() { SocketAddr::from(([0; 4], 0)) } else { SocketAddr::from(([0_u16; 8], 0)) };
    let socket = socket::sending(plan.source.unwrap_or(anywhere), plan.peer, plan.buffer)?;
    socket::never_fragment(&socket, plan.peer.is_ipv6())?;
    let greeting = Clock::start();
    let wanted = (&plan.config, plan.lasts);
    let session = greet::open(&socket, plan.peer, greeting, &plan.secret, wanted, plan.patience, &watch.cancel)?;
    let seated = plan.seat.take()?;
    let clock = Clock::start();
    let before = ThreadTime::here();
    let mut work = Work::new(plan, &socket, clock, &session);
    let ending = work.run(watch);
    let elapsed = clock.now().saturating_since(Time::ZERO);
    work.series.advance(clock.now() + plan.every, &mut work.machine);
    let far = match ending {
        Ok(Ending::HungUp | Ending::Gone | Ending::Silent) => None,
        _ => greet::close(&socket, clock, &session),
    };
    let waited = ThreadTime::since(before).map(|time| time.waited);
    Ok(Report { waited, ..work.report(ending?, seated, elapsed, far) })
}

/// A sender at work.
struct Work<'a> {
    plan: &'a Plan,
    socket: &'a UdpSocket,
    clock: Clock,
    session: &'a Session,
    machine: Sender,
    /// What its controller writes down.
    log: LogReader,
    /// The number behind the last byte that was sent.
    sent: u64,
    series: Series,
    timing: Timing,
    heard: Time,
    /// Since when the other host says that nobody listens.
    refused: Option<Time>,
    window: Window,
    datagram: Vec<u8>,
    blocked: u64,
    strangers: u64,
}

impl<'a> Work<'a> {
    fn new(plan: &'a Plan, socket: &'a UdpSocket, clock: Clock, session: &'a Session) -> Work<'a> {
        let (machine, log) = plan.machine();
        Work {
            plan,
            socket,
            clock,
            session,
            machine,
            log,
            sent: 0,
            series: Series::new(plan.every),
            timing: Timing::default(),
            heard: clock.now(),
            refused: None,
            window: Window::default(),
            datagram: vec![0; DATA_HEADER + plan.config.segment_bytes.count() as usize],
            blocked: 0,
            strangers: 0,
        }
    }

    fn run(&mut self, watch: &Watch) -> Result<Ending, LiveError> {
        let stop = self.clock.now() + self.plan.lasts;
        let mut rest = Rest::from(self.clock.now());
        let mut read = self.clock.now();
        let mut closed = false;
        self.machine.open(self.clock.now());
        self.machine.write_endlessly();
        loop {
            let now = self.clock.now();
            if let Some(ending) = self.ended(now, stop, watch) {
                return Ok(ending);
            }
            if now >= stop && !closed {
                closed = true;
                self.machine.close();
            }
            if self.series.due <= now {
                self.series.advance(now, &mut self.machine);
                watch.acked.store(self.machine.acked().count(), Ordering::Relaxed);
                watch.rate.store(self.series.rate.bps(), Ordering::Relaxed);
                watch.elapsed_ns.store(now.ps() / 1_000, Ordering::Relaxed);
            }
            self.machine.handle_timeout(now);
            if self.transmit()? {
                // More may be due; what has arrived must not wait for it.
                read = self.clock.now();
                self.receive()?;
                continue;
            }
            let now = self.clock.now();
            let due = self.machine.poll_release();
            let next = due.min(self.machine.poll_timeout()).min(if closed { Time::NEVER } else { stop });
            let spare = next.saturating_since(now);
            if spare > self.plan.spin + NAP {
                let sleep = if next == due { spare - self.plan.spin } else { spare };
                socket::await_input(self.socket, sleep.min(GLANCE))?;
                (_, read) = (self.receive()?, self.clock.now());
            } else {
                if spare > READING || now.saturating_since(read) > READ_AFTER {
                    (_, read) = (self.receive()?, self.clock.now());
                }
                self.spin_until(next);
            }
            rest.take_if_owed(&self.clock, self.clock.now());
        }
    }

    /// Await `next`, which is near.
    fn spin_until(&self, next: Time) {
        // What an acknowledgement has brought nearer is found at the next look.
        let next = next.min(self.machine.poll_release());
        if self.plan.spin == Span::ZERO {
            self.clock.sleep_until(next);
        }
        while self.clock.now() < next {
            std::hint::spin_loop();
        }
    }

    fn ended(&self, now: Time, stop: Time, watch: &Watch) -> Option<Ending> {
        if watch.cancel.load(Ordering::Relaxed) {
            return Some(Ending::Interrupted);
        }
        if self.machine.finished().is_some() {
            return Some(Ending::Complete);
        }
        if self.window.hung_up {
            return Some(Ending::HungUp);
        }
        if self.refused.is_some_and(|since| now.saturating_since(since) > GLANCE * 25) {
            return Some(Ending::Gone);
        }
        if now.saturating_since(self.heard) > SILENCE {
            return Some(Ending::Silent);
        }
        (now > stop + DRAIN).then_some(Ending::Unfinished)
    }

    /// Sends what may be sent; whether there may be more.
    fn transmit(&mut self) -> Result<bool, LiveError> {
        for _ in 0..BURST {
            let due = match self.machine.control().allowance().pace {
                Pace::At(due) => Some(due),
                Pace::AtOnce | Pace::Rate { .. } => None,
            };
            let now = self.clock.now();
            let Some(segment) = self.machine.poll_transmit(now) else { return Ok(false) };
            let is_new = segment.end() > self.sent;
            self.sent = self.sent.max(segment.end());
            if is_new && !segment.flags.has(Flags::SYN) {
                self.timing.on_departure(due, now);
            } else {
                self.timing.on_break();
            }
            self.series.sent += u64::from(segment.len);
            self.post(segment)?;
        }
        Ok(true)
    }

    fn post(&mut self, segment: Segment) -> Result<(), LiveError> {
        let data = Data { session: self.session.number, segment };
        let length = data.write(&self.session.up, &mut self.datagram);
        match self.socket.send(&self.datagram[..length]) {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                let payload = self.plan.config.segment_bytes.count();
                let text = format!("a payload of {payload} bytes makes packets too long for the path: ask for less");
                Err(LiveError::Plan(text))
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.refused.get_or_insert(self.clock.now());
                Ok(())
            }
            Err(error) if is_passing(&error) => {
                self.blocked += 1;
                Ok(())
            }
            Err(error) => Err(LiveError::system("send a datagram", error)),
        }
    }

    /// Takes one datagram that has arrived, if there is one.
    fn receive(&mut self) -> Result<(), LiveError> {
        let mut memory = [0; MOST_ACKS + 1];
        let length = match self.socket.recv(&mut memory) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.refused.get_or_insert(self.clock.now());
                return Ok(());
            }
            Err(error) if is_passing(&error) => return Ok(()),
            Err(error) => return Err(LiveError::system("receive a datagram", error)),
        };
        let datagram = &memory[..length];
        let is_ours = session_of(datagram) == Some(self.session.number);
        let body = if is_ours { self.session.down.open(datagram) } else { None };
        let now = self.clock.now();
        match body.and_then(Kind::of) {
            Some(Kind::Acks) => {
                let acks = body.and_then(|body| decode_acks(body, self.sent, self.plan.config.segment_bytes));
                let Some((_, acks)) = acks.filter(|&(number, _)| self.window.take(number)) else {
                    self.strangers += 1;
                    return Ok(());
                };
                (self.heard, self.refused) = (now, None);
                acks.iter().for_each(|ack| self.machine.handle_segment(now, ack));
            }
            Some(Kind::Bye) => self.window.hung_up = body.and_then(Bye::decode).is_some(),
            // The last greeting may be answered twice.
            _ => self.strangers += u64::from(Kind::of(datagram) != Some(Kind::Accept)),
        }
        Ok(())
    }

    fn report(self, ending: Ending, seated: Seated, elapsed: Span, far: Option<Closed>) -> Report {
        Report {
            ending,
            seated,
            elapsed,
            on_cpu: on_cpu(),
            waited: None,
            counters: self.machine.counters(),
            rtt: (self.machine.rtt().min(), self.machine.rtt().srtt()),
            log: self.log.take(),
            intervals: self.series.rows,
            kept: self.timing.kept(),
            blocked: self.blocked,
            strangers: self.strangers,
            far,
        }
    }
}

/// Which numbered datagrams came already, as far as that is remembered.
#[derive(Debug, Default)]
struct Window {
    /// The number behind the highest one.
    next: u64,
    /// Whether those before it came, the last one in the lowest bit.
    came: u64,
    hung_up: bool,
}

impl Window {
    /// Whether the datagram `number` comes for the first time. What is 64 or more behind is not taken.
    fn take(&mut self, number: u32) -> bool {
        let number = u64::from(number);
        if number >= self.next {
            let step = number - self.next + 1;
            self.came = if step < 64 { self.came << step } else { 0 } | 1;
            self.next = number + 1;
            return true;
        }
        let behind = self.next - 1 - number;
        let is_new = behind < 64 && self.came >> behind & 1 == 0;
        if is_new {
            self.came |= 1 << behind;
        }
        is_new
    }
}

/// Counts interval by interval.
#[derive(Debug)]
struct Series {
    every: Span,
    due: Time,
    rows: Vec<Interval>,
    sent: u64,
    reported: (u64, u64, u64),
    rate: Rate,
}

impl Series {
    fn new(every: Span) -> Series {
        Series {
            every,
            due: Time::ZERO + every,
            rows: Vec::new(),
            sent: 0,
            reported: (0, 0, 0),
            rate: Rate::from_bps(0),
        }
    }

    /// Writes the intervals that have ended by `now`.
    fn advance(&mut self, now: Time, machine: &mut Sender) {
        let metrics = machine.control().metrics();
        self.rate = metrics.rate.unwrap_or(self.rate);
        let probes = metrics.stage == Some(ProbeState::On.name());
        while self.due <= now {
            let counts = (machine.acked().count(), self.sent, machine.retransmits());
            let before = std::mem::replace(&mut self.reported, counts);
            self.rows.push(Interval {
                end: self.due,
                acked: counts.0 - before.0,
                sent: counts.1 - before.1,
                retransmits: counts.2 - before.2,
                rate: self.rate,
                srtt: machine.rtt().srtt(),
                flight: machine.bytes_in_flight(),
                probes,
            });
            self.due += self.every;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_numbered_datagram_is_taken_twice_in_whatever_order_they_come() {
        let mut window = Window::default();
        let taken: Vec<bool> = [0, 1, 3, 2, 2, 3, 70, 6, 7, 7, 70, 134, 70].map(|number| window.take(number)).into();
        let expected = [true, true, true, true, false, false, true, false, true, false, false, true, false];
        assert_eq!(taken, expected);
    }
}
