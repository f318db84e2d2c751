//! The sender of a trial: UDP probes that leave at the times of a schedule.
//!
//! The sender sleeps until a probe is due and then hands over everything that is due by then, at most
//! [`BATCH`] probes per system call, which the kernel cuts into single frames at the sender's interface. Deadlines
//! are absolute, so that lateness does not add up. What could not be sent is counted and never hidden in a longer
//! trial.
//!
//! Cutting must happen before the device under test: an interface that offers to do it (`tx-udp-segmentation`)
//! passes the whole batch on as one frame. Whoever builds the path switches that off, and compares the frames that
//! the interface counted with [`Offered::sent`].

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::iter::Peekable;
use std::net::UdpSocket;

use weir_core::units::{Bytes, Span, Time};

use crate::LiveError;
use crate::datagram::Header;
use crate::distribution::Distribution;
use crate::host::{Clock, Rest, socket};
use crate::payloads::Payloads;
use crate::shared::Shared;

/// Most probes per system call.
pub const BATCH: usize = 32;

/// Most payload of one UDP datagram, and so of one system call.
const MOST_BYTES: usize = 65_507;
/// How a sender that fell behind catches up: at one and a half times the rate of its schedule, so that the burst
/// after a stall is not mistaken for the intended load. `CATCH_UP_SHARE` of the scheduled time must pass.
const CATCH_UP_SHARE: (u64, u64) = (2, 3);
/// Being behind by less than this is made up at once: a little more than a thread of real-time priority wakes late. A
/// longer burst than a device meets otherwise would fill its queues, and its loss would be the sender's doing.
const SLACK: Span = Span::from_us(200);
/// A probe that leaves later than this is late: it stands in a burst that the load does not have.
const LATE: Span = Span::from_ms(1);
/// How often a waiting sender looks whether it shall end.
const GLANCE: Span = Span::from_ms(20);
/// Shortest sleep of a sender that does not spin: what is shorter would only keep its CPU busy.
const NAP: Span = Span::from_us(20);
/// How long to wait when the system has no room for a probe.
const FULL: Span = Span::from_us(50);

/// What a sender needs besides its socket and clock.
#[derive(Clone, Copy, Debug)]
pub struct Orders<'a> {
    /// The trial's number.
    pub run: u32,
    /// UDP payloads of the probes.
    pub payloads: &'a Payloads,
    /// When the schedule begins.
    pub start: Time,
    /// No probe leaves after this time.
    pub give_up: Time,
    /// How long before a deadline the sender wakes up to await it by looking at the clock.
    pub spin: Span,
}

/// What a sender did.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Probes that the kernel took.
    pub sent: u64,
    /// Probes that were not sent: of the whole schedule, or of what was due when the trial was stopped.
    pub unsent: u64,
    /// When the last probe left.
    pub last: Option<Time>,
    /// Time of handing over minus time due, of every probe sent.
    pub lateness: Distribution,
    /// How often the kernel had no room.
    pub blocked: u64,
    /// System calls that sent something.
    pub batches: u64,
}

impl Offered {
    /// How many probes left more than a millisecond late, in bursts that the load does not have.
    pub fn late(&self) -> u64 {
        self.lateness.counts(&[LATE])[1]
    }
}

/// Send a probe at each time of `departures`, which count from the start, rise, and end.
pub fn offer(
    socket: &UdpSocket,
    clock: Clock,
    orders: Orders<'_>,
    departures: impl Iterator<Item = Time>,
    shared: &Shared<'_>,
) -> Result<Offered, LiveError> {
    let mut schedule = Schedule::new(departures, orders.start);
    let mut batch = Batch::new(orders);
    let mut offered = Offered { sent: 0, unsent: 0, last: None, lateness: Distribution::new(), blocked: 0, batches: 0 };
    let mut rest = Rest::from(clock.now());
    loop {
        let now = clock.now();
        if shared.cancelled() {
            return Err(LiveError::Cancelled);
        }
        if shared.stopped() {
            offered.unsent = schedule.overdue(now);
            break;
        }
        if now > orders.give_up {
            offered.unsent = schedule.remaining();
            break;
        }
        schedule.advance(now);
        let Some(ready) = schedule.ready_at() else { break };
        if ready > now {
            let wake = if orders.spin == Span::ZERO { ready.max(now + NAP) } else { ready };
            clock.wait_until(wake.min(now + GLANCE), orders.spin);
            continue;
        }
        match batch.send(socket, offered.sent, schedule.pending.len(), now) {
            Ok(count) => {
                schedule.sent(count, now, &mut offered.lateness);
                offered.sent += count as u64;
                offered.batches += 1;
                offered.last = Some(now);
                shared.report_sent(offered.sent);
            }
            Err(error) if no_room(&error) => {
                offered.blocked += 1;
                clock.sleep_until(now + FULL);
            }
            Err(error) => return Err(LiveError::system("send a probe", error)),
        }
        rest.take_if_owed(&clock, clock.now());
    }
    Ok(offered)
}

/// Which probes are due, and when the next may leave.
struct Schedule<I: Iterator<Item = Time>> {
    departures: Peekable<I>,
    start: Time,
    /// Due times of the probes that were due when somebody last looked.
    pending: VecDeque<Time>,
    previous: Time,
    /// Earliest time of the next system call while catching up.
    not_before: Time,
}

impl<I: Iterator<Item = Time>> Schedule<I> {
    fn new(departures: I, start: Time) -> Schedule<I> {
        let pending = VecDeque::with_capacity(BATCH);
        Schedule { departures: departures.peekable(), start, pending, previous: start, not_before: Time::ZERO }
    }

    /// Take over what is due by `now`, up to a batch.
    fn advance(&mut self, now: Time) {
        while self.pending.len() < BATCH {
            let start = self.start;
            let Some(departure) = self.departures.next_if(|&departure| at(start, departure) <= now) else { break };
            self.pending.push_back(at(start, departure));
        }
    }

    /// When something may be sent; nothing when all has been sent.
    fn ready_at(&mut self) -> Option<Time> {
        let due = match self.pending.front() {
            Some(&due) => due,
            None => at(self.start, *self.departures.peek()?),
        };
        Some(due.max(self.not_before))
    }

    /// The first `count` of the pending probes left at `now`.
    fn sent(&mut self, count: usize, now: Time, lateness: &mut Distribution) {
        let (numerator, denominator) = CATCH_UP_SHARE;
        let mut spent = Span::ZERO;
        for due in self.pending.drain(..count) {
            lateness.record(now.saturating_since(due));
            spent += due.saturating_since(self.previous);
            self.previous = due;
        }
        let floor = Time::from_ps(now.ps().saturating_sub(SLACK.ps()));
        self.not_before = self.not_before.max(floor) + Span::from_ps(spent.ps() / denominator * numerator);
    }

    /// How many probes should have left by `now`, and have not.
    fn overdue(self, now: Time) -> u64 {
        let start = self.start;
        let late = self.departures.take_while(|&departure| at(start, departure) <= now).count();
        self.pending.len() as u64 + late as u64
    }

    /// How many probes have not left.
    fn remaining(self) -> u64 {
        self.pending.len() as u64 + self.departures.count() as u64
    }
}

/// Whether the kernel could take the probe a little later.
fn no_room(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

fn at(start: Time, departure: Time) -> Time {
    start + departure.saturating_since(Time::ZERO)
}

/// The probes of one system call: memory for them, and how they are handed over.
struct Batch<'a> {
    run: u32,
    payloads: &'a Payloads,
    memory: Vec<u8>,
    segments: Segments,
}

/// Whether one call may carry several probes, which the kernel cuts apart (UDP segmentation).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segments {
    /// Not asked for yet.
    Unasked,
    /// Pieces of this size.
    Of(Bytes),
    /// The system, or the interface, does not offer it.
    Refused,
}

impl<'a> Batch<'a> {
    fn new(orders: Orders<'a>) -> Batch<'a> {
        let largest = size_of(orders.payloads.largest());
        Batch {
            run: orders.run,
            payloads: orders.payloads,
            memory: vec![0; largest * BATCH],
            segments: Segments::Unasked,
        }
    }

    /// Most probes of a size that one call can carry; the socket then cuts into pieces of that size, or not at all.
    fn capacity(&mut self, socket: &UdpSocket, payload: Bytes) -> usize {
        if self.segments != Segments::Refused && self.segments != Segments::Of(payload) {
            let is_taken = socket::segment(socket, payload);
            self.segments = if is_taken { Segments::Of(payload) } else { Segments::Refused };
        }
        if self.segments == Segments::Refused { 1 } else { (MOST_BYTES / size_of(payload)).clamp(1, BATCH) }
    }

    /// Send up to `count` probes numbered from `first`, all of one size; says how many the kernel took.
    fn send(&mut self, socket: &UdpSocket, first: u64, count: usize, now: Time) -> io::Result<usize> {
        let (payload, alike) = self.payloads.at(first);
        let count = count.min(self.capacity(socket, payload)).min(usize::try_from(alike).unwrap_or(usize::MAX));
        let size = size_of(payload);
        for (sequence, probe) in (first..).zip(self.memory.chunks_exact_mut(size)).take(count) {
            let sequence = u32::try_from(sequence).expect("a trial has fewer than 2^32 probes");
            Header { run: self.run, sequence, departure: now }.encode(probe);
        }
        match socket.send(&self.memory[..count * size]) {
            Ok(_) => Ok(count),
            // What an interface answers that cannot fill in the checksums of the pieces.
            Err(error) if count > 1 && error.raw_os_error() == Some(libc::EIO) => {
                self.segments = Segments::Refused;
                socket::segment(socket, Bytes::new(0));
                self.send(socket, first, 1, now)
            }
            Err(error) => Err(error),
        }
    }
}

fn size_of(payload: Bytes) -> usize {
    usize::try_from(payload.count()).expect("a payload that fits into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Span = Span::from_us(10);

    fn schedule(count: u64) -> Schedule<impl Iterator<Item = Time>> {
        Schedule::new((0..count).map(|n| Time::ZERO + GAP * n), Time::ZERO)
    }

    #[test]
    fn only_what_is_due_is_pending_and_never_more_than_a_batch() {
        let mut schedule = schedule(1000);
        schedule.advance(Time::ZERO + GAP * 2);
        assert_eq!(schedule.pending.len(), 3);
        schedule.advance(Time::ZERO + GAP * 500);
        assert_eq!(schedule.pending.len(), BATCH);
    }

    #[test]
    fn a_sender_in_time_is_never_held_back() {
        let mut schedule = schedule(1000);
        let mut lateness = Distribution::new();
        for n in 0..1000 {
            let now = Time::ZERO + GAP * n;
            schedule.advance(now);
            assert_eq!(schedule.ready_at(), Some(now));
            schedule.sent(1, now, &mut lateness);
        }
        assert_eq!(schedule.ready_at(), None);
        assert_eq!(lateness.percentiles().map(|found| found.max), Some(Span::ZERO));
    }

    #[test]
    fn after_a_stall_the_load_is_at_most_half_as_much_again_as_intended() {
        let mut schedule = schedule(100_000);
        let mut lateness = Distribution::new();
        let stall = Span::from_ms(200);
        let mut now = Time::ZERO + stall;
        let resumed = now;
        let mut sent = 0_u64;
        while now < resumed + Span::from_ms(100) {
            schedule.advance(now);
            now = now.max(schedule.ready_at().expect("much is left"));
            let count = schedule.pending.len();
            schedule.sent(count, now, &mut lateness);
            sent += count as u64;
        }
        let intended = Span::from_ms(100).ps() / GAP.ps();
        let most = intended * 3 / 2 + SLACK.ps() * 3 / 2 / GAP.ps() + 2 * BATCH as u64;
        assert!(sent > intended, "{sent} probes do not catch up");
        assert!(sent <= most, "{sent} probes are more than {most}");
    }

    #[test]
    fn what_has_not_left_is_counted() {
        let mut schedule = schedule(100);
        schedule.advance(Time::ZERO + GAP * 9);
        schedule.sent(4, Time::ZERO + GAP * 9, &mut Distribution::new());
        assert_eq!(schedule.remaining(), 96);
    }

    #[test]
    fn a_stopped_sender_is_held_to_what_was_due() {
        let mut schedule = schedule(1000);
        schedule.advance(Time::ZERO + GAP * 9);
        schedule.sent(4, Time::ZERO + GAP * 9, &mut Distribution::new());
        assert_eq!(schedule.overdue(Time::ZERO + GAP * 99), 96);
    }
}
