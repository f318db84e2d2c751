//! One-way delays: small datagrams to a reflector and back, with the time of each departure and arrival.
//!
//! Packets are those of STAMP (RFC 8762) without authentication, in the reflector's stateful mode. Departures are
//! stamped with CLOCK_REALTIME right before the system call, arrivals by the kernel. Both ends are threads of this
//! process, in namespaces of this machine: the one clock makes the difference of two stamps a one-way delay, and what
//! the reflector saw is known even where its answer was lost. Between two machines the same difference would have the
//! offset of their clocks in it.

pub mod wire;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockaddrStorage, recvmsg};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use weir_core::units::{Bytes, Span, Time};

use crate::LiveError;
use crate::host::{Clock, Seat, socket};
use wire::{Reply, Request};

/// How long an end waits at a time before it looks whether it is to stop.
const NAP: Span = Span::from_ms(20);
const BUFFER: Bytes = Bytes::new(1 << 20);
const MOST_PAYLOAD: usize = 65_507;
const NS_PER_S: i64 = 1_000_000_000;

/// What is sent, from where to where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the sender works.
    pub near: Seat,
    /// Where the reflector works.
    pub far: Seat,
    /// The reflector's address.
    pub to: IpAddr,
    /// Its port; 0: any.
    pub port: u16,
    /// How many packets.
    pub count: u32,
    /// Between two of them.
    pub every: Span,
    /// Of a datagram, [`wire::LEN`] at least.
    pub payload: Bytes,
    /// How long to wait for answers after the last one was sent.
    pub timeout: Span,
}

/// What came of it; an entry for each packet.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// From the departure of a request to its arrival at the reflector, ns; none: it did not arrive.
    pub forward_ns: Vec<Option<i64>>,
    /// From the departure of the answer to its arrival, ns; none: there was none, or it did not arrive.
    pub backward_ns: Vec<Option<i64>>,
    /// From the departure of a request to the arrival of its answer, less what the reflector took, ns.
    pub round_trip_ns: Vec<Option<i64>>,
    /// How far behind its time a request left, ns.
    pub late_ns: Vec<u64>,
    /// How much the clock of the stamps moved against the monotonic one meanwhile, ns; delays are only as good as
    /// this is small.
    pub clock_step_ns: i64,
}

/// Sends all packets and waits for what comes back.
///
/// # Errors
/// The plan cannot be carried out, or the system refuses something.
pub fn run(plan: &Plan, cancel: &AtomicBool) -> Result<Report, LiveError> {
    let length = usize::try_from(plan.payload.count()).unwrap_or(usize::MAX);
    if !(wire::LEN..=MOST_PAYLOAD).contains(&length) {
        let text = format!("one-way delays: datagrams of {} to {MOST_PAYLOAD} B (got {length})", wire::LEN);
        return Err(LiveError::Plan(text));
    }
    let over = AtomicBool::new(false);
    let stop = || over.load(Ordering::Relaxed) || cancel.load(Ordering::Relaxed);
    let (report, reported) = mpsc::channel();
    thread::scope(|scope| {
        let reflector = scope.spawn(|| {
            let opened = open(&plan.far, SocketAddr::new(plan.to, plan.port));
            let (socket, answer) = match opened {
                Ok((socket, address)) => (Some(socket), Ok(address)),
                Err(error) => (None, Err(error)),
            };
            let _ = report.send(answer);
            socket.map_or(Ok(Vec::new()), |socket| reflect(&socket, plan.count, &stop))
        });
        let address = reported.recv().map_err(|_| LiveError::Panicked("reflector"))?;
        let sender = scope.spawn(|| address.and_then(|address| send(plan, address, length, cancel)));
        let sent = sender.join().map_err(|_| LiveError::Panicked("sender"))?;
        over.store(true, Ordering::Relaxed);
        let arrived = reflector.join().map_err(|_| LiveError::Panicked("reflector"))??;
        let mut report = sent?;
        for (sequence, received_ns) in arrived {
            let Some((place, sent_ns)) = usize::try_from(sequence).ok().and_then(|place| report.entry(place)) else {
                continue;
            };
            report.report.forward_ns[place].get_or_insert(received_ns - sent_ns);
        }
        Ok(report.report)
    })
}

/// A socket of a seat, and where it is.
fn open(seat: &Seat, address: SocketAddr) -> Result<(UdpSocket, SocketAddr), LiveError> {
    seat.take()?;
    let socket = socket::receiving(address, BUFFER)?;
    let address = socket.local_addr().map_err(|error| LiveError::system("read an address", error))?;
    Ok((socket, address))
}

/// Answers until it is to stop; the numbers of what came, and when.
fn reflect(socket: &UdpSocket, most: u32, stop: &impl Fn() -> bool) -> Result<Vec<(u32, i64)>, LiveError> {
    let mut memory = vec![0; MOST_PAYLOAD];
    let (mut arrived, mut sequence) = (Vec::new(), 0_u32);
    while !stop() {
        socket::await_input(socket, NAP)?;
        while let Some(arrival) = receive(socket, &mut memory)? {
            let packet = &mut memory[..arrival.length];
            let (Some(request), Some(from)) = (Request::decode(packet), arrival.from) else { continue };
            if request.sequence >= most {
                continue; // a stranger's
            }
            arrived.push((request.sequence, arrival.at_ns));
            let reply = Reply {
                sequence,
                sent_ns: u64::try_from(now_ns()).unwrap_or(0),
                received_ns: u64::try_from(arrival.at_ns).unwrap_or(0),
                request,
            };
            sequence += 1;
            reply.encode(packet);
            // An answer that the system does not take is lost, as any other may be.
            let _ = socket.send_to(packet, from);
        }
    }
    Ok(arrived)
}

/// What the sender knows.
struct Sent {
    report: Report,
    /// When each left, ns since 1970.
    at_ns: Vec<i64>,
}

impl Sent {
    /// The place and the departure of a packet that was sent.
    fn entry(&self, place: usize) -> Option<(usize, i64)> {
        self.at_ns.get(place).map(|&at_ns| (place, at_ns))
    }
}

fn send(plan: &Plan, to: SocketAddr, length: usize, cancel: &AtomicBool) -> Result<Sent, LiveError> {
    let anywhere: IpAddr = if to.is_ipv6() { "::".parse() } else { "0.0.0.0".parse() }.expect("an address");
    let (socket, _) = open(&plan.near, SocketAddr::new(anywhere, 0))?;
    socket.connect(to).map_err(|error| LiveError::system(format!("send to {to}"), error))?;
    let clock = Clock::start();
    let offset_ns = clock.realtime_offset_ns();
    let count = plan.count as usize;
    let mut sent = Sent {
        report: Report {
            forward_ns: vec![None; count],
            backward_ns: vec![None; count],
            round_trip_ns: vec![None; count],
            ..Report::default()
        },
        at_ns: Vec::with_capacity(count),
    };
    let (mut memory, mut packet) = (vec![0; MOST_PAYLOAD], vec![0; length]);
    let (mut left, mut until) = (count, Time::NEVER);
    while left > 0 && !cancel.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= until {
            break;
        }
        let next = sent.at_ns.len();
        let due = if next < count { Time::ZERO + plan.every * next as u64 } else { until };
        if next < count && now >= due {
            let at_ns = now_ns();
            Request { sequence: next as u32, sent_ns: u64::try_from(at_ns).unwrap_or(0) }.encode(&mut packet);
            // What the system does not take, as when a queue is full, is lost.
            let _ = socket.send(&packet);
            sent.at_ns.push(at_ns);
            sent.report.late_ns.push(now.saturating_since(due).ps() / 1_000);
            if next + 1 == count {
                until = clock.now() + plan.timeout;
            }
            continue;
        }
        socket::await_input(&socket, due.saturating_since(now).min(NAP))?;
        while let Some(arrival) = receive(&socket, &mut memory)? {
            left -= usize::from(note(&mut sent, &memory[..arrival.length], arrival.at_ns));
        }
    }
    sent.report.clock_step_ns = clock.realtime_offset_ns() - offset_ns;
    Ok(sent)
}

/// Notes an answer; whether it is the first one to its request.
fn note(sent: &mut Sent, packet: &[u8], arrived_ns: i64) -> bool {
    let Some(reply) = Reply::decode(packet) else { return false };
    let Some((place, at_ns)) = sent.entry(reply.request.sequence as usize) else { return false };
    if sent.report.backward_ns[place].is_some() || at_ns != signed(reply.request.sent_ns) {
        return false;
    }
    let took_ns = signed(reply.sent_ns) - signed(reply.received_ns);
    sent.report.backward_ns[place] = Some(arrived_ns - signed(reply.sent_ns));
    sent.report.round_trip_ns[place] = Some(arrived_ns - at_ns - took_ns);
    true
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// A datagram that came.
struct Arrival {
    length: usize,
    from: Option<SocketAddr>,
    /// When, ns since 1970: as the kernel says, else now.
    at_ns: i64,
}

/// Takes a datagram; none when nothing waits.
fn receive(socket: &UdpSocket, memory: &mut [u8]) -> Result<Option<Arrival>, LiveError> {
    let mut control = nix::cmsg_space!(TimeSpec);
    loop {
        let mut space = [IoSliceMut::new(memory)];
        let descriptor = socket.as_raw_fd();
        match recvmsg::<SockaddrStorage>(descriptor, &mut space, Some(&mut control), MsgFlags::MSG_DONTWAIT) {
            Ok(message) => {
                let stamp = socket::stamp_ns(&message).map_err(|errno| LiveError::system("read a stamp", errno))?;
                return Ok(Some(Arrival {
                    length: message.bytes,
                    from: message.address.as_ref().and_then(socket::address_of),
                    at_ns: stamp.unwrap_or_else(now_ns),
                }));
            }
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EINTR | Errno::ECONNREFUSED) => {}
            Err(errno) => return Err(LiveError::system("receive", io::Error::from(errno))),
        }
    }
}

/// Time of the stamps, ns since 1970.
fn now_ns() -> i64 {
    let reading = clock_gettime(ClockId::CLOCK_REALTIME).expect("every Linux has this clock");
    reading.tv_sec() * NS_PER_S + reading.tv_nsec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Priority;

    fn plan(payload: u64) -> Plan {
        let seat = Seat { namespace: None, cpu: None, priority: Priority::Normal };
        Plan {
            near: seat.clone(),
            far: seat,
            to: IpAddr::from([127, 0, 0, 1]),
            port: 0,
            count: 20,
            every: Span::from_ms(2),
            payload: Bytes::new(payload),
            timeout: Span::from_ms(1_000),
        }
    }

    #[test]
    fn both_ways_and_the_round_trip_are_of_the_same_stamps() {
        for payload in [44, 1_200] {
            let report = run(&plan(payload), &AtomicBool::new(false)).expect("the loopback carries it");
            assert_eq!(report.late_ns.len(), 20);
            for place in 0..20 {
                let there = report.forward_ns[place].expect("it arrived");
                let back = report.backward_ns[place].expect("it was answered");
                assert_eq!(report.round_trip_ns[place], Some(there + back));
                assert!(there >= 0 && back >= 0, "no packet arrives before it leaves");
            }
        }
    }

    #[test]
    fn what_is_too_short_for_its_times_is_refused() {
        let error = run(&plan(43), &AtomicBool::new(false)).expect_err("too short");
        assert!(error.to_string().contains("datagrams of 44 to 65507 B (got 43)"), "{error}");
    }
}
