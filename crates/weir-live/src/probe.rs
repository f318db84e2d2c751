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

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, recvmsg, setsockopt, sockopt,
};
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Span, Time};

use crate::LiveError;
use crate::host::{Clock, Seat, Seated, ThreadTime};

/// Ports that [`Ports::Rotating`] uses: more than probes are ever under way.
const ROTATION: u16 = 1024;
/// Token and number.
const TAG: usize = 8;
/// What is read of a quotation: routers send 1280 B at most.
const MOST_QUOTED: usize = 2048;
/// Longest that the prober waits before it looks whether it shall stop.
const LOOK: Span = Span::from_ms(50);

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it leaves, since the start.
    pub at: Time,
    /// Time to live, or hop limit.
    pub hops: u8,
    /// Of the IP packet.
    pub size: Bytes,
}

/// To which ports probes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// All to one: a single flow, for which routers choose one path.
    Constant,
    /// Each to the next one.
    Rotating,
}

/// What to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whom the probes are for.
    pub destination: IpAddr,
    /// The first destination port; nobody should listen there.
    pub port: u16,
    /// See [`Ports`].
    pub ports: Ports,
    /// Port to send from; 0: any.
    pub source_port: u16,
    /// Marks the probes of this plan.
    pub token: u32,
    /// In the order of their departure.
    pub probes: Vec<Probe>,
    /// How long an answer may take.
    pub timeout: Span,
    /// Where to work.
    pub seat: Seat,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Its time to live ended at a router.
    TimeExceeded,
    /// The destination has nobody at this port.
    PortUnreachable,
    /// Refused on the way, with the code of the ICMP message.
    Unreachable(u8),
    /// Longer than the next link takes, whose MTU this is; 0 when it was not reported.
    TooBig(u32),
    /// Any other message: its type and code.
    Other(u8, u8),
}

/// The answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Who answered; none: this host itself.
    pub from: Option<IpAddr>,
    /// What was said.
    pub word: Word,
    /// UDP payload that the answer quoted.
    pub quoted: Bytes,
    /// From when the probe was sent to the arrival of the answer.
    pub rtt: Span,
}

/// What a plan came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where the probes came from.
    pub source: SocketAddr,
    /// When each was sent: handed to the network device as the kernel stamped it or, where it does not say, just
    /// before it was handed to the kernel. None: this host could not.
    pub sent: Vec<Option<Time>>,
    /// How many of these times are the kernel's.
    pub stamped: u64,
    /// The first answer to each.
    pub answers: Vec<Option<Answer>>,
    /// Further answers to probes that had one.
    pub duplicates: u64,
    /// Messages that no probe of this plan asked for, or that do not tell which did.
    pub strangers: u64,
    /// Datagrams that came back: somebody listens at the port.
    pub replies: u64,
    /// How far the real-time clock was stepped against the monotonic one meanwhile, in ns.
    pub clock_step_ns: i64,
    /// What the thread was given.
    pub seated: Seated,
    /// How long it was ready and something else had its CPU; nothing where the kernel does not tell.
    pub waited: Option<Span>,
}

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

impl Plan {
    /// Bytes of headers in front of the payload of a probe.
    fn headers(&self) -> usize {
        if self.destination.is_ipv4() { 20 + 8 } else { 40 + 8 }
    }

    fn check(&self) -> Result<(), LiveError> {
        let least = (self.headers() + TAG) as u64;
        let short = self.probes.iter().find(|probe| probe.size.count() < least || probe.size.count() > 65_535);
        if let Some(probe) = short {
            return Err(LiveError::Plan(format!("a probe has from {least} B to 65535 B (got {})", probe.size)));
        }
        if self.probes.iter().any(|probe| probe.hops == 0) {
            return Err(LiveError::Plan("a probe lives for one hop or more".into()));
        }
        if self.port.checked_add(ROTATION).is_none() {
            return Err(LiveError::Plan(format!(
                "the first port is at most {} (got {})",
                u16::MAX - ROTATION,
                self.port
            )));
        }
        Ok(())
    }
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

/// One entry of the error queue.
struct Message {
    /// It tells nothing but when a probe left.
    is_departure: bool,
    from: Option<IpAddr>,
    word: Word,
    /// Where the probe went.
    port: u16,
    quoted: Vec<u8>,
    /// CLOCK_REALTIME.
    stamp_ns: i64,
}

/// The address that this host sends from to `target`.
fn local_address(target: SocketAddr) -> Result<IpAddr, LiveError> {
    let any: IpAddr = if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).map_err(|error| LiveError::system("open a socket", error))?;
    let connected = socket.connect(target).and_then(|()| socket.local_addr());
    Ok(connected.map_err(|error| LiveError::system(format!("find a way to {}", target.ip()), error))?.ip())
}

/// Ask for messages and stamps; forbid fragments, whatever is known of the path.
fn prepare(socket: &UdpSocket, is_ipv4: bool) -> Result<(), LiveError> {
    socket.set_nonblocking(true).map_err(|error| LiveError::system("make a socket non-blocking", error))?;
    let (level, option, probe) = if is_ipv4 {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
    };
    if is_ipv4 {
        setsockopt(socket, sockopt::Ipv4RecvErr, &true)
    } else {
        setsockopt(socket, sockopt::Ipv6RecvErr, &true)
    }
    .map_err(|errno| LiveError::system("ask for messages about probes", errno))?;
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)
        .map_err(|errno| LiveError::system("ask for receive stamps", errno))?;
    // Where departures are not stamped, the time before the call stands.
    let departures = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    let _ = setsockopt(socket, sockopt::Timestamping, &departures);
    // SAFETY: the pointer is to a live local of the size given; the descriptor is open as long as `socket` is borrowed.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const probe).cast(),
            size_of_val(&probe) as libc::socklen_t,
        )
    };
    if answer == 0 { Ok(()) } else { Err(LiveError::system("forbid fragments", std::io::Error::last_os_error())) }
}

/// The next message, if there is one.
fn receive(socket: &UdpSocket) -> Result<Option<Message>, LiveError> {
    let mut quoted = vec![0; MOST_QUOTED];
    let mut control = cmsg_space!(libc::timespec, libc::sock_extended_err, libc::sockaddr_in6);
    let mut space = [IoSliceMut::new(&mut quoted)];
    let descriptor = socket.as_fd().as_raw_fd();
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<SockaddrStorage>(descriptor, &mut space, Some(&mut control), flags) {
        Ok(message) => message,
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
        Err(errno) => return Err(LiveError::system("read messages about probes", errno)),
    };
    let length = message.bytes;
    let port = message.address.and_then(|address| {
        let v4 = address.as_sockaddr_in().map(nix::sys::socket::SockaddrIn::port);
        v4.or_else(|| address.as_sockaddr_in6().map(nix::sys::socket::SockaddrIn6::port))
    });
    let (mut stamp_ns, mut found) = (None, None);
    for part in message.cmsgs().map_err(|errno| LiveError::system("read messages about probes", errno))? {
        match part {
            ControlMessageOwned::ScmTimestampns(at) => stamp_ns = Some(at.tv_sec() * 1_000_000_000 + at.tv_nsec()),
            ControlMessageOwned::Ipv4RecvErr(error, from) => {
                let from = from.filter(|from| i32::from(from.sin_family) == libc::AF_INET);
                found = Some((error, from.map(|from| Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr)).into())));
            }
            ControlMessageOwned::Ipv6RecvErr(error, from) => {
                let from = from.filter(|from| i32::from(from.sin6_family) == libc::AF_INET6);
                found = Some((error, from.map(|from| Ipv6Addr::from(from.sin6_addr.s6_addr).into())));
            }
            _ => {}
        }
    }
    let Some((error, from)) = found else {
        return Err(LiveError::Plan("the kernel queued an error without saying which".into()));
    };
    quoted.truncate(length);
    let local = error.ee_origin == libc::SO_EE_ORIGIN_LOCAL;
    Ok(Some(Message {
        is_departure: error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING,
        from: if local { None } else { from },
        word: word(&error),
        port: port.unwrap_or(0),
        quoted,
        // A message of this host itself has no stamp.
        stamp_ns: stamp_ns.unwrap_or(0),
    }))
}

/// What an error of the queue says.
/// Source: RFC 792, Destination Unreachable and Time Exceeded; RFC 4443, sections 3.1 to 3.3.
fn word(error: &libc::sock_extended_err) -> Word {
    if error.ee_errno == libc::EMSGSIZE as u32 {
        return Word::TooBig(error.ee_info);
    }
    match (error.ee_origin, error.ee_type, error.ee_code) {
        (libc::SO_EE_ORIGIN_ICMP, 11, 0) | (libc::SO_EE_ORIGIN_ICMP6, 3, 0) => Word::TimeExceeded,
        (libc::SO_EE_ORIGIN_ICMP, 3, 3) | (libc::SO_EE_ORIGIN_ICMP6, 1, 4) => Word::PortUnreachable,
        (libc::SO_EE_ORIGIN_ICMP, 3, code) | (libc::SO_EE_ORIGIN_ICMP6, 1, code) => Word::Unreachable(code),
        (_, kind, code) => Word::Other(kind, code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Priority;

    fn plan(destination: IpAddr, count: u64, ports: Ports) -> Plan {
        let probe = |i| Probe { at: Time::from_ps(Span::from_ms(i).ps()), hops: 3, size: Bytes::new(100 + 10 * i) };
        // A port that was free a moment ago.
        let free = UdpSocket::bind((destination, 0)).and_then(|socket| socket.local_addr()).expect("a port");
        Plan {
            destination,
            port: free.port().min(u16::MAX - ROTATION),
            ports,
            source_port: 0,
            token: 7,
            probes: (0..count).map(probe).collect(),
            timeout: Span::from_ms(500),
            seat: Seat { namespace: None, cpu: None, priority: Priority::Normal },
        }
    }

    fn probed(plan: Plan) -> Report {
        std::thread::spawn(move || run(&plan, &AtomicBool::new(false)))
            .join()
            .expect("no panic")
            .expect("the loopback takes probes")
    }

    #[test]
    fn a_closed_port_of_this_host_answers_each_probe_in_order() {
        for ports in [Ports::Constant, Ports::Rotating] {
            let report = probed(plan(Ipv4Addr::LOCALHOST.into(), 10, ports));
            for answer in &report.answers {
                let answer = answer.expect("an answer");
                assert_eq!(answer.word, Word::PortUnreachable);
                assert_eq!(answer.from, Some(Ipv4Addr::LOCALHOST.into()));
                assert!(answer.rtt > Span::ZERO && answer.rtt < Span::from_ms(400));
            }
            assert_eq!((report.duplicates, report.strangers, report.replies), (0, 0, 0));
            assert_eq!(report.stamped, 10, "departures that the kernel stamped");
        }
    }

    #[test]
    fn ipv6_answers_too_and_quotes_all_of_a_short_probe() {
        if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
            return; // a host without IPv6
        }
        let report = probed(plan(Ipv6Addr::LOCALHOST.into(), 3, Ports::Constant));
        let quoted: Vec<_> = report.answers.iter().flatten().map(|answer| answer.quoted.count()).collect();
        assert_eq!(quoted, [52, 62, 72]);
    }

    #[test]
    fn a_port_where_somebody_listens_gives_no_answer_within_the_timeout() {
        let listener = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let mut plan = plan(Ipv4Addr::LOCALHOST.into(), 2, Ports::Constant);
        plan.port = listener.local_addr().expect("a bound socket").port().min(u16::MAX - ROTATION);
        if plan.port != listener.local_addr().expect("a bound socket").port() {
            return;
        }
        plan.timeout = Span::from_ms(30);
        let report = probed(plan);
        assert_eq!(report.answers, [None, None]);
        assert!(report.sent.iter().all(Option::is_some));
    }

    #[test]
    fn a_probe_without_room_for_its_tag_is_refused() {
        let mut plan = plan(Ipv4Addr::LOCALHOST.into(), 1, Ports::Constant);
        plan.probes[0].size = Bytes::new(35);
        let error = run(&plan, &AtomicBool::new(false)).expect_err("too short");
        assert_eq!(error.to_string(), "a probe has from 36 B to 65535 B (got 35 B)");
    }

    #[test]
    fn a_short_quotation_names_no_probe() {
        assert_eq!(tag(&[0, 0, 0, 7, 0, 0, 0]), None);
        assert_eq!(tag(&[0, 0, 0, 7, 0, 0, 1, 2, 9]), Some((7, 258)));
    }
}
