//! Probes of a path: UDP datagrams that live for a number of hops, and the ICMP messages that answer them.
//!
//! The answers come through the error queue of the socket that sent the probes (IP_RECVERR, IPV6_RECVERR), stamped by
//! the kernel when they arrived: no privilege is needed, and nobody else's ICMP is seen. It stamps departures, too: what
//! this host does between a look at the clock and its network device is no part of a round trip. An answer is matched to its
//! probe by what it quotes of it: a token of the plan, and the number of the probe. Routers that quote the headers
//! only are distinguished by port: [`Ports::Rotating`], at the price that routers with several equal paths may send the
//! probes different ways.
//!
//! Probes carry noise, so that no link compresses them, and must not be fragmented.

mod plan;

mod socket;

pub use self::plan::{Answer, Plan, Ports, Probe, Report, Word};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Span, Time};

use self::socket::{Message, local_address, prepare, receive};
use crate::LiveError;
use crate::host::{Clock, Seated, ThreadTime};

/// Ports that [`Ports::Rotating`] uses: more than probes are ever under way.
const ROTATION: u16 = 1024;
/// Token and number.
const TAG: usize = 8;
/// What is read of a quotation: routers send 1280 B at most.
const MOST_QUOTED: usize = 2048;
/// Longest that the prober waits before it looks whether it shall stop.
const LOOK: Span = Span::from_ms(50);

/// Send the probes of `plan` and wait for their answers. Takes its seat for good: call it in a thread of its own.
///
/// # Errors
/// [`LiveError::Cancelled`] soon after `cancel` is set; what the system refuses, no route among it.
pub fn run(plan: &Plan, cancel: &AtomicBool) -> Result<Report, LiveError> {
    plan.check()?;
    let seated = plan.seat.take()?;
    let before = ThreadTime::here();
    let mut prober = Prober::new(plan, seated)?;
    for number in 0..plan.probes.len() {
        prober.wait_until(plan.probes[number].at, cancel)?;
        prober.send(number)?;
    }
    while let Some(end) = prober.patience() {
        prober.wait_until(end, cancel)?;
    }
    let waited = ThreadTime::since(before).map(|time| time.waited);
    Ok(Report { waited, ..prober.finish() })
}

struct Prober<'a> {
    plan: &'a Plan,
    socket: UdpSocket,
    clock: Clock,
    offset_ns: i64,
    payload: Vec<u8>,
    /// Probes without an answer, the oldest first; those answered meanwhile stay until they are at the front.
    open: VecDeque<usize>,
    /// The probe that this host refuses at the moment: its own messages quote nothing.
    refused: Option<usize>,
    /// The probe that was sent last, and when the kernel had taken it.
    last: Option<(usize, Time)>,
    report: Report,
}

impl<'a> Prober<'a> {
    fn new(plan: &'a Plan, seated: Seated) -> Result<Prober<'a>, LiveError> {
        let any: IpAddr =
            if plan.destination.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let bind = |address| UdpSocket::bind(address);
        let socket = bind(SocketAddr::new(any, plan.source_port))
            .map_err(|error| LiveError::system(format!("bind port {}", plan.source_port), error))?;
        let target = SocketAddr::new(plan.destination, plan.port);
        let source = local_address(target)?;
        let port = socket.local_addr().map_err(|error| LiveError::system("ask for the port", error))?.port();
        prepare(&socket, plan.destination.is_ipv4())?;
        let most = plan.probes.iter().map(|probe| probe.size.count()).max().unwrap_or(0) as usize;
        let mut chance = Seed::new(plan.token.into()).stream("probe/payload");
        let payload = (0..most.div_ceil(8)).flat_map(|_| chance.next_u64().to_le_bytes()).collect();
        let clock = Clock::start();
        let count = plan.probes.len();
        Ok(Prober {
            plan,
            socket,
            clock,
            offset_ns: clock.realtime_offset_ns(),
            payload,
            open: VecDeque::new(),
            refused: None,
            last: None,
            report: Report {
                source: SocketAddr::new(source, port),
                sent: vec![None; count],
                stamped: 0,
                answers: vec![None; count],
                duplicates: 0,
                strangers: 0,
                replies: 0,
                clock_step_ns: 0,
                seated,
                waited: None,
            },
        })
    }

    /// Take answers until `time`, or until there is nothing left to wait for after the last probe.
    fn wait_until(&mut self, time: Time, cancel: &AtomicBool) -> Result<(), LiveError> {
        loop {
            self.take_answers()?;
            let now = self.clock.now();
            let all_sent = self.report.sent.last().is_none_or(Option::is_some);
            if now >= time || (all_sent && self.patience().is_none()) {
                return Ok(());
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(LiveError::Cancelled);
            }
            let wait = time.saturating_since(now).min(LOOK);
            if wait < Span::from_ms(2) {
                self.clock.sleep_until(time);
                continue;
            }
            // Woken a little early: poll counts in ms, and the clock waits for the rest.
            let ms = u16::try_from(wait.ps() / Span::from_ms(1).ps() - 1).unwrap_or(u16::MAX);
            let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, PollTimeout::from(ms)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(LiveError::system("wait for answers", errno)),
            }
        }
    }

    /// When the last open probe is given up; none: none is open.
    fn patience(&mut self) -> Option<Time> {
        while self.open.front().is_some_and(|&number| self.report.answers[number].is_some()) {
            self.open.pop_front();
        }
        let now = self.clock.now();
        let end = |number: &usize| self.report.sent[*number].unwrap_or(Time::ZERO) + self.plan.timeout;
        let last = self.open.iter().rev().find(|&&number| self.report.answers[number].is_none()).map(end)?;
        (last > now).then_some(last)
    }

    fn send(&mut self, number: usize) -> Result<(), LiveError> {
        let probe = self.plan.probes[number];
        self.set_hops(probe.hops)?;
        let length = probe.size.count() as usize - self.plan.headers();
        self.payload[..4].copy_from_slice(&self.plan.token.to_be_bytes());
        self.payload[4..8].copy_from_slice(&(number as u32).to_be_bytes());
        let port = match self.plan.ports {
            Ports::Constant => self.plan.port,
            Ports::Rotating => self.plan.port + (number % usize::from(ROTATION)) as u16,
        };
        let target = SocketAddr::new(self.plan.destination, port);
        // What an earlier probe met is reported by the next call, too: that is over when it was reported.
        for attempt in 0.. {
            let now = self.clock.now();
            self.report.sent[number] = Some(now);
            match self.socket.send_to(&self.payload[..length], target) {
                Ok(_) => {
                    self.last = Some((number, self.clock.now()));
                    break;
                }
                Err(error) => {
                    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
                    let passing = matches!(
                        errno,
                        Errno::ECONNREFUSED
                            | Errno::EHOSTUNREACH
                            | Errno::ENETUNREACH
                            | Errno::EPROTO
                            | Errno::EINTR
                            | Errno::ENOPROTOOPT
                            | Errno::EACCES
                            | Errno::EHOSTDOWN
                            | Errno::EOPNOTSUPP
                    );
                    if errno == Errno::EMSGSIZE {
                        self.refused = Some(number);
                        self.take_answers()?;
                        self.refused = None;
                        break;
                    }
                    if matches!(errno, Errno::ENOBUFS | Errno::EAGAIN) {
                        self.report.sent[number] = None;
                        return Ok(());
                    }
                    if !passing || attempt == 16 {
                        return Err(LiveError::system(format!("send to {}", self.plan.destination), error));
                    }
                    self.take_answers()?;
                }
            }
        }
        self.open.push_back(number);
        Ok(())
    }

    fn set_hops(&self, hops: u8) -> Result<(), LiveError> {
        let hops = i32::from(hops);
        if self.plan.destination.is_ipv4() {
            setsockopt(&self.socket, sockopt::Ipv4Ttl, &hops)
        } else {
            setsockopt(&self.socket, sockopt::Ipv6Ttl, &hops)
        }
        .map_err(|errno| LiveError::system("set the time to live", errno))
    }

    fn take_answers(&mut self) -> Result<(), LiveError> {
        while let Some(message) = receive(&self.socket)? {
            self.take(&message);
        }
        let mut nowhere = [0; 1];
        while self.socket.recv(&mut nowhere).is_ok() {
            self.report.replies += 1;
        }
        Ok(())
    }

    fn take(&mut self, message: &Message) {
        if message.is_departure {
            self.take_departure(message);
            return;
        }
        let Some(number) = self.number(message) else {
            self.report.strangers += 1;
            return;
        };
        if self.report.answers[number].is_some() {
            self.report.duplicates += 1;
            return;
        }
        let sent = self.report.sent[number].unwrap_or(Time::ZERO);
        let rtt = self.time_of(message).saturating_since(sent);
        if rtt > self.plan.timeout {
            return;
        }
        let quoted = Bytes::new(message.quoted.len() as u64);
        self.report.answers[number] = Some(Answer { from: message.from, word: message.word, quoted, rtt });
    }

    /// The stamp of a probe that left. It is that of the last one if it lies within the call that sent it: one that
    /// waited in a queue of this host, or that has no stamp, keeps its time from before the call.
    fn take_departure(&mut self, message: &Message) {
        let Some((number, taken)) = self.last else { return };
        let left = self.time_of(message);
        if self.report.sent[number].is_some_and(|before| before <= left) && left <= taken {
            self.report.sent[number] = Some(left);
            self.report.stamped += 1;
            self.last = None;
        }
    }

    /// When the kernel stamped a message.
    fn time_of(&self, message: &Message) -> Time {
        let ns = u64::try_from(message.stamp_ns - self.offset_ns).unwrap_or(0);
        Time::from_ps(ns.saturating_mul(1_000))
    }

    /// Which probe a message is about.
    fn number(&self, message: &Message) -> Option<usize> {
        if message.from.is_none() && self.refused.is_some() {
            return self.refused;
        }
        let sent = |&number: &usize| self.report.sent.get(number).is_some_and(Option::is_some);
        if let Some((token, number)) = tag(&message.quoted) {
            return (token == self.plan.token).then_some(number).filter(sent);
        }
        if self.plan.ports == Ports::Constant {
            return None;
        }
        let place = usize::from(message.port.checked_sub(self.plan.port)?);
        // The latest probe to this port.
        let latest = self.report.sent.iter().rposition(Option::is_some)?;
        let turn = usize::from(ROTATION);
        (place < turn && latest >= place).then(|| latest - (latest - place) % turn).filter(sent)
    }

    fn finish(mut self) -> Report {
        self.report.clock_step_ns = self.clock.realtime_offset_ns() - self.offset_ns;
        self.report
    }
}

/// Token and number, if a quotation is long enough.
fn tag(quoted: &[u8]) -> Option<(u32, usize)> {
    let word = |from: usize| Some(u32::from_be_bytes(quoted.get(from..from + 4)?.try_into().ok()?));
    Some((word(0)?, word(4)? as usize))
}

#[cfg(test)]
mod tests;
