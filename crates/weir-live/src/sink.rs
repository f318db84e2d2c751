//! The receiver of a trial: counts every probe exactly and knows when it reached the machine.
//!
//! It never blocks in its socket: it sleeps and then takes everything that waits. So the softirq that delivers a
//! frame pays for no wake-up, and the time of arrival is the kernel's stamp, however late the receiver looks.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, MultiHeaders, recvmmsg};
use nix::sys::time::TimeSpec;
use weir_core::units::{Span, Time};

use crate::LiveError;
use crate::datagram::Header;
use crate::distribution::Distribution;
use crate::host::{Clock, Rest, socket};
use crate::shared::Shared;
use crate::tally::Tally;
use crate::trial::StopRule;

/// Most probes per system call.
const BATCH: usize = 64;
/// Most system calls between two looks at the clock.
const BATCHES: usize = 16;
/// How long the receiver sleeps when nothing waits.
const NAP: Span = Span::from_us(500);
const NS_PER_S: i64 = 1_000_000_000;

/// What a receiver needs besides its socket and clock.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    /// The trial's number; other probes are strangers.
    pub run: u32,
    /// Number of probes in the trial.
    pub expected: u64,
    /// How long nothing must arrive after the sender has ended.
    pub settle: Span,
    /// When to give up waiting for quiet.
    pub give_up: Time,
    /// When the outcome is decided.
    pub stop: Option<StopRule>,
}

/// What a receiver saw.
#[derive(Clone, Debug)]
pub struct Received {
    /// Counts of the trial's probes.
    pub tally: Tally,
    /// Datagrams that belong to no or another trial.
    pub strangers: u64,
    /// Frames that this socket dropped: lost by the tester, not by the device.
    pub drops: u64,
    /// Kernel receive stamp minus departure, of the first copy of each probe.
    pub delay: Distribution,
    /// How much the real-time clock moved against the monotonic one meanwhile, in ns; delays are only as good as this is small.
    pub clock_step_ns: i64,
}

/// Receive until the sender has ended and nothing came for the settle time.
pub fn receive(socket: &UdpSocket, clock: Clock, orders: Orders, shared: &Shared<'_>) -> Result<Received, LiveError> {
    let mut reader = Reader::new(clock, orders);
    let mut judge = orders.stop.map(Judge::new);
    let mut quiet_since = clock.now();
    let mut rest = Rest::from(quiet_since);
    loop {
        let reading = reader.read(socket)?;
        let now = clock.now();
        if shared.cancelled() {
            return Err(LiveError::Cancelled);
        }
        if now > orders.give_up {
            let seconds = orders.give_up.saturating_since(Time::ZERO).as_secs_f64();
            return Err(LiveError::Deadline { seconds, what: "probes still arrive" });
        }
        if reading.arrived || !shared.sender_ended() {
            quiet_since = now;
        } else if now.saturating_since(quiet_since) >= orders.settle {
            break;
        }
        if reading.drained {
            if let Some(judge) = &mut judge
                && judge.decided(now, shared.sent(), &reader.tally)
            {
                shared.stop();
            }
            clock.sleep_until(now + NAP);
        } else {
            rest.take_if_owed(&clock, now);
        }
    }
    let drops = socket::drops(socket).map_err(|error| LiveError::system("read the drops of a socket", error))?;
    Ok(Received {
        tally: reader.tally,
        strangers: reader.strangers,
        drops: u64::from(drops),
        delay: reader.delay,
        clock_step_ns: clock.realtime_offset_ns() - reader.offset_ns,
    })
}

/// What one round of reading found.
struct Reading {
    arrived: bool,
    drained: bool,
}

/// Takes datagrams out of the socket and counts them.
struct Reader {
    orders: Orders,
    offset_ns: i64,
    payloads: Vec<[u8; Header::LEN]>,
    headers: MultiHeaders<()>,
    tally: Tally,
    strangers: u64,
    delay: Distribution,
}

impl Reader {
    fn new(clock: Clock, orders: Orders) -> Reader {
        Reader {
            orders,
            offset_ns: clock.realtime_offset_ns(),
            payloads: vec![[0; Header::LEN]; BATCH],
            headers: MultiHeaders::preallocate(BATCH, Some(nix::cmsg_space!(TimeSpec))),
            tally: Tally::new(orders.expected),
            strangers: 0,
            delay: Distribution::new(),
        }
    }

    fn read(&mut self, socket: &UdpSocket) -> Result<Reading, LiveError> {
        let mut arrived = false;
        for _ in 0..BATCHES {
            let count = match self.read_batch(socket) {
                Ok(count) => count,
                Err(Errno::EAGAIN) => return Ok(Reading { arrived, drained: true }),
                Err(Errno::EINTR | Errno::ECONNREFUSED) => 0,
                Err(errno) => return Err(LiveError::system("receive", io::Error::from(errno))),
            };
            arrived |= count > 0;
        }
        Ok(Reading { arrived, drained: false })
    }

    /// One system call; says how many probes of this trial it gave.
    fn read_batch(&mut self, socket: &UdpSocket) -> nix::Result<usize> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.payloads.iter_mut().map(|payload| [IoSliceMut::new(payload)]).collect();
        let messages =
            recvmmsg(socket.as_raw_fd(), &mut self.headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
        let mut ours = 0;
        for message in messages {
            let stamp_ns = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp.tv_sec() * NS_PER_S + stamp.tv_nsec()),
                _ => None,
            });
            let length = message.bytes.min(Header::LEN);
            let header = message.iovs().next().and_then(|payload| Header::decode(&payload[..length]));
            match header.filter(|header| header.run == self.orders.run) {
                Some(header) => {
                    ours += 1;
                    if self.tally.on_arrival(u64::from(header.sequence))
                        && let Some(stamp_ns) = stamp_ns
                    {
                        let arrival_ns = u64::try_from(stamp_ns - self.offset_ns).unwrap_or(0);
                        let arrival = Time::ZERO + Span::from_ns(arrival_ns);
                        self.delay.record(arrival.saturating_since(header.departure));
                    }
                }
                None => self.strangers += 1,
            }
        }
        Ok(ours)
    }
}

/// Decides whether more probes are lost for certain than a trial may lose.
///
/// A probe that has not arrived [`StopRule::flight`] after it was sent, although the socket was emptied since, is
/// held for lost; one that may still be in flight is not. Every range of numbers is judged once.
struct Judge {
    rule: StopRule,
    /// When how many probes had been sent.
    marks: VecDeque<(Time, u64)>,
    judged: u64,
    lost: u64,
}

/// How often a mark is set.
const MARK_EVERY: Span = Span::from_ms(10);

impl Judge {
    fn new(rule: StopRule) -> Judge {
        Judge { rule, marks: VecDeque::new(), judged: 0, lost: 0 }
    }

    fn decided(&mut self, now: Time, sent: u64, tally: &Tally) -> bool {
        if self.marks.back().is_none_or(|(at, _)| now.saturating_since(*at) >= MARK_EVERY) {
            self.marks.push_back((now, sent));
        }
        while let Some(&(at, sent)) = self.marks.front()
            && now.saturating_since(at) >= self.rule.flight
        {
            self.lost += tally.missing(self.judged, sent);
            self.judged = sent;
            self.marks.pop_front();
        }
        self.lost > self.rule.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: Span = Span::from_ms(50);

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn a_probe_in_flight_is_not_held_for_lost() {
        let mut judge = Judge::new(StopRule { budget: 0, flight: FLIGHT });
        let mut tally = Tally::new(100);
        assert!(!judge.decided(at_ms(0), 100, &tally));
        assert!(!judge.decided(at_ms(49), 100, &tally));
        for sequence in 0..100 {
            tally.on_arrival(sequence);
        }
        assert!(!judge.decided(at_ms(500), 100, &tally));
    }

    #[test]
    fn the_outcome_is_decided_once_more_is_lost_than_the_budget() {
        let mut judge = Judge::new(StopRule { budget: 3, flight: FLIGHT });
        let mut tally = Tally::new(100);
        for sequence in (0..100).filter(|n| ![10, 20, 30, 40].contains(n)) {
            tally.on_arrival(sequence);
        }
        assert!(!judge.decided(at_ms(0), 35, &tally));
        assert!(!judge.decided(at_ms(50), 100, &tally), "three of the first 35 are lost, as many as may be");
        assert!(judge.decided(at_ms(100), 100, &tally));
    }

    #[test]
    fn no_loss_is_counted_twice() {
        let mut judge = Judge::new(StopRule { budget: 1, flight: FLIGHT });
        let mut tally = Tally::new(10);
        for sequence in 1..10 {
            tally.on_arrival(sequence);
        }
        for ms in (0..1000).step_by(5) {
            assert!(!judge.decided(at_ms(ms), 10, &tally));
        }
    }
}
