//! The receiver of a trial: counts every probe exactly and knows when it reached the machine.
//!
//! It never blocks in its socket: it sleeps and then takes everything that waits. So the softirq that delivers a
//! frame pays for no wake-up, and the time of arrival is the kernel's stamp, however late the receiver looks.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg};
use nix::sys::time::TimeSpec;
use weir_core::units::{Span, Time};

use crate::LiveError;
use crate::datagram::Header;
use crate::distribution::Distribution;
use crate::host::{Clock, Rest, socket};
use crate::shared::{Missing, Shared};
use crate::tally::Tally;
use crate::trial::StopRule;

/// Most probes per system call.
const BATCH: usize = 64;
/// Most system calls between two looks at the clock.
const BATCHES: usize = 16;
/// How long the receiver sleeps when nothing waits.
const NAP: Span = Span::from_us(500);

/// What a receiver needs besides its socket and clock.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    /// The trial's number; other probes are strangers.
    pub run: u32,
    /// Number of probes in the trial.
    pub expected: u64,
    /// How many of them are due before the look of the stop rule.
    pub before_look: u64,
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
    /// Probes due before the look of the stop rule that were sent and did not arrive.
    pub lost_early: u64,
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
    let mut judge = orders.stop.map(|rule| Judge::new(rule, orders.before_look));
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
        // What waits in the socket came after what was read last.
        let seen = if reading.drained { now } else { reader.last_arrival.min(now) };
        if let Some(judge) = &mut judge
            && judge.decided(now, seen, shared, &reader.tally, drops_of(socket)?)
        {
            shared.stop();
        }
        if reading.drained {
            clock.sleep_until(now + NAP);
        } else {
            rest.take_if_owed(&clock, now);
        }
    }
    Ok(Received {
        lost_early: reader.tally.missing(0, shared.sent().min(orders.before_look)),
        tally: reader.tally,
        strangers: reader.strangers,
        drops: drops_of(socket)?,
        delay: reader.delay,
        clock_step_ns: clock.realtime_offset_ns() - reader.offset_ns,
    })
}

fn drops_of(socket: &UdpSocket) -> Result<u64, LiveError> {
    socket::drops(socket).map(u64::from).map_err(|error| LiveError::system("read the drops of a socket", error))
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
    /// When the datagram arrived that was read last, by the kernel's stamp.
    last_arrival: Time,
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
            last_arrival: Time::ZERO,
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
            let arrival = socket::stamp_ns(&message)?.map(|stamp_ns| {
                let arrival_ns = u64::try_from(stamp_ns - self.offset_ns).unwrap_or(0);
                Time::ZERO + Span::from_ns(arrival_ns)
            });
            self.last_arrival = arrival.unwrap_or(self.last_arrival);
            let length = message.bytes.min(Header::LEN);
            let header = message.iovs().next().and_then(|payload| Header::decode(&payload[..length]));
            match header.filter(|header| header.run == self.orders.run) {
                Some(header) => {
                    ours += 1;
                    if self.tally.on_arrival(u64::from(header.sequence))
                        && let Some(arrival) = arrival
                    {
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
/// A probe that has not arrived [`StopRule::flight`] after it was sent, although all that arrived until then was read,
/// is held for lost; one that may still be in flight, or waits in the socket, is not. Every range of numbers is judged once. What a receiver's own
/// socket dropped is no loss; which probes those were is not known, so that they count for both budgets.
struct Judge {
    rule: StopRule,
    before_look: u64,
    /// When how many probes had been sent.
    marks: VecDeque<(Time, u64)>,
    judged: u64,
    drops: u64,
}

/// How often a mark is set.
const MARK_EVERY: Span = Span::from_ms(10);

impl Judge {
    fn new(rule: StopRule, before_look: u64) -> Judge {
        Judge { rule, before_look, marks: VecDeque::new(), judged: 0, drops: 0 }
    }

    /// All that arrived until `seen` is in the tally.
    fn decided(&mut self, now: Time, seen: Time, shared: &Shared<'_>, tally: &Tally, drops: u64) -> bool {
        if self.marks.back().is_none_or(|(at, _)| now.saturating_since(*at) >= MARK_EVERY) {
            self.marks.push_back((now, shared.sent()));
        }
        let (mut lost, mut lost_early) = (0, 0);
        while let Some(&(at, sent)) = self.marks.front()
            && seen.saturating_since(at) >= self.rule.flight
        {
            lost += tally.missing(self.judged, sent);
            lost_early += tally.missing(self.judged, sent.min(self.before_look));
            self.judged = sent;
            self.marks.pop_front();
        }
        let all = shared.add(Missing { lost, lost_early, drops: drops - self.drops });
        self.drops = drops;
        all.lost > self.rule.budget + all.drops
            || self.rule.look.is_some_and(|look| all.lost_early > look.budget + all.drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::atomic::AtomicBool;

    use crate::shared::Common;
    use crate::trial::Look;

    const FLIGHT: Span = Span::from_ms(50);

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// A judge of probes of which the first `before_look` have a budget of their own.
    fn judge(budget: u64, before_look: u64, early_budget: u64) -> Judge {
        let look = Some(Look { until: Span::from_ms(10), budget: early_budget });
        Judge::new(StopRule { budget, flight: FLIGHT, look }, before_look)
    }

    fn decides(common: &Common<'_>, judge: &mut Judge, ms: u64, sent: u64, tally: &Tally) -> bool {
        let shared = Shared::new(common);
        shared.report_sent(sent);
        judge.decided(at_ms(ms), at_ms(ms), &shared, tally, 0)
    }

    fn without(lost: &[u64], of: u64) -> Tally {
        let mut tally = Tally::new(of);
        for sequence in (0..of).filter(|n| !lost.contains(n)) {
            tally.on_arrival(sequence);
        }
        tally
    }

    #[test]
    fn a_probe_in_flight_is_not_held_for_lost() {
        let cancel = AtomicBool::new(false);
        let common = Common::new(&cancel);
        let mut judge = judge(0, 0, 0);
        let mut tally = Tally::new(100);
        assert!(!decides(&common, &mut judge, 0, 100, &tally));
        assert!(!decides(&common, &mut judge, 49, 100, &tally));
        for sequence in 0..100 {
            tally.on_arrival(sequence);
        }
        assert!(!decides(&common, &mut judge, 500, 100, &tally));
    }

    #[test]
    fn a_probe_that_may_wait_in_the_socket_is_not_held_for_lost() {
        let cancel = AtomicBool::new(false);
        let common = Common::new(&cancel);
        let shared = Shared::new(&common);
        shared.report_sent(100);
        let mut judge = judge(0, 0, 0);
        let tally = without(&[3], 10);
        assert!(!judge.decided(at_ms(0), at_ms(0), &shared, &tally, 0));
        assert!(!judge.decided(at_ms(500), at_ms(49), &shared, &tally, 0), "it reads what came half a second ago");
        assert!(judge.decided(at_ms(501), at_ms(50), &shared, &tally, 0));
    }

    #[test]
    fn the_outcome_is_decided_once_more_is_lost_than_the_budget() {
        let cancel = AtomicBool::new(false);
        let common = Common::new(&cancel);
        let mut judge = judge(3, 0, 0);
        let tally = without(&[10, 20, 30, 40], 100);
        assert!(!decides(&common, &mut judge, 0, 35, &tally));
        assert!(!decides(&common, &mut judge, 50, 100, &tally), "three of the first 35 are lost, as many as may be");
        assert!(decides(&common, &mut judge, 100, 100, &tally));
    }

    #[test]
    fn no_loss_is_counted_twice() {
        let cancel = AtomicBool::new(false);
        let common = Common::new(&cancel);
        let mut judge = judge(1, 0, 0);
        let tally = without(&[0], 10);
        for ms in (0..1000).step_by(5) {
            assert!(!decides(&common, &mut judge, ms, 10, &tally));
        }
    }

    #[test]
    fn the_budget_of_the_beginning_counts_its_own_probes_alone() {
        let cancel = AtomicBool::new(false);
        let (late, early) = (without(&[50, 60, 70], 100), without(&[0, 8, 9], 100));
        for (tally, before_look, decided) in [(&late, 10, false), (&early, 10, true), (&early, 9, false)] {
            let common = Common::new(&cancel);
            let mut judge = judge(5, before_look, 2);
            decides(&common, &mut judge, 0, 30, tally);
            decides(&common, &mut judge, 50, 100, tally);
            assert_eq!(decides(&common, &mut judge, 100, 100, tally), decided);
        }
    }

    #[test]
    fn what_a_receivers_own_socket_dropped_is_no_loss() {
        let cancel = AtomicBool::new(false);
        for (drops, decided) in [(2, true), (3, false)] {
            let common = Common::new(&cancel);
            let shared = Shared::new(&common);
            shared.report_sent(10);
            let mut judge = judge(0, 0, 0);
            let tally = without(&[1, 2, 3], 10);
            assert!(!judge.decided(at_ms(0), at_ms(0), &shared, &tally, drops));
            assert_eq!(judge.decided(at_ms(50), at_ms(50), &shared, &tally, drops), decided);
        }
    }

    #[test]
    fn the_losses_of_all_directions_count_together() {
        let cancel = AtomicBool::new(false);
        let common = Common::new(&cancel);
        let (mut there, mut back) = (judge(3, 0, 0), judge(3, 0, 0));
        let tally = without(&[1, 2], 10);
        assert!(!decides(&common, &mut there, 0, 10, &tally) && !decides(&common, &mut back, 0, 10, &tally));
        assert!(!decides(&common, &mut there, 50, 10, &tally), "two are lost, three may be");
        assert!(decides(&common, &mut back, 50, 10, &tally), "two more are lost on the way back");
    }
}
