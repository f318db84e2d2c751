//! The receiving end at work: a socket, the kernel's stamps, and [`Service`].

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use nix::sys::time::TimeSpec;
use weir_core::units::{Bytes, Span, Time};

use super::keys::Key;
use super::service::{Bounds, Counts, Event, Service};
use super::wire::FAREWELL;
use crate::LiveError;
use crate::host::{Clock, Rest, Seat, Seated, socket};

/// Most datagrams per system call.
const BATCH: usize = 64;
/// Most system calls between two looks at the clock.
const BATCHES: usize = 8;
/// How long the receiver sleeps when nothing waits: acknowledgements gather meanwhile.
const NAP: Span = Span::from_us(250);
/// And when nobody sends: until something comes, or this.
const LONG_NAP: Span = Span::from_ms(50);
/// A stamp that differs by more from the time at which it is read shows that a clock was stepped.
const STEP: Span = Span::from_ms(1_000);

/// Where to listen, for whom, and what they get.
#[derive(Debug)]
pub struct Plan {
    /// The address and port.
    pub listen: SocketAddr,
    /// What both ends hold.
    pub secret: Key,
    /// What nobody gets more of.
    pub bounds: Bounds,
    /// End when so many sessions have ended; none: when asked to.
    pub sessions: Option<u64>,
    /// Memory of the socket.
    pub buffer: Bytes,
    /// Where the receiver works.
    pub seat: Seat,
}

/// Serves until `cancel`, or until the sessions that were asked for have ended; `report` receives first where it listens and
/// how it is seated, then what happens. Takes its seat for good: call it in a thread of its own.
///
/// # Errors
/// The system refuses something.
pub fn serve(
    plan: &Plan,
    cancel: &AtomicBool,
    mut ready: impl FnMut(SocketAddr, Seated),
    mut report: impl FnMut(Event),
) -> Result<Counts, LiveError> {
    let socket = socket::receiving(plan.listen, plan.buffer)?;
    let address = socket.local_addr().map_err(|error| LiveError::system("read an address", error))?;
    let seated = plan.seat.take()?;
    let clock = Clock::start();
    let mut reader = Reader::new(clock);
    let mut service = Service::new(&plan.secret, plan.bounds)?;
    let mut rest = Rest::from(clock.now());
    let mut ended = 0;
    ready(address, seated);
    loop {
        let drained = reader.read(&socket, &mut service)?;
        let now = clock.now();
        let last =
            cancel.load(Ordering::Relaxed) || plan.sessions.is_some_and(|all| ended >= all && service.is_empty());
        let drops = socket::drops(&socket).map_err(|error| LiveError::system("read the drops of a socket", error))?;
        service.note_host(drops.into(), reader.steps);
        service.advance(now);
        if last {
            service.end(now);
        }
        for reply in service.take_replies() {
            // A datagram that the system does not take is lost, as any other may be.
            let _ = socket.send_to(&reply.datagram, reply.to);
        }
        for event in service.take_events() {
            ended += u64::from(matches!(event, Event::Ended { .. }));
            report(event);
        }
        if last {
            return Ok(service.counts());
        }
        if !drained {
            rest.take_if_owed(&clock, now);
        } else if service.is_busy() {
            clock.sleep_until(now + NAP);
        } else {
            socket::await_input(&socket, LONG_NAP)?;
        }
    }
}

/// Takes datagrams out of the socket. Of data only the header is copied.
struct Reader {
    clock: Clock,
    offset_ns: i64,
    /// How often the real-time clock was stepped.
    steps: u64,
    memory: Vec<[u8; FAREWELL]>,
    headers: MultiHeaders<SockaddrStorage>,
}

impl Reader {
    fn new(clock: Clock) -> Reader {
        Reader {
            clock,
            offset_ns: clock.realtime_offset_ns(),
            steps: 0,
            memory: vec![[0; FAREWELL]; BATCH],
            headers: MultiHeaders::preallocate(BATCH, Some(nix::cmsg_space!(TimeSpec))),
        }
    }

    /// Hands what waits to `service`; whether that was all.
    fn read(&mut self, socket: &UdpSocket, service: &mut Service) -> Result<bool, LiveError> {
        for _ in 0..BATCHES {
            match self.read_batch(socket, service) {
                Ok(answer) => answer?,
                Err(Errno::EAGAIN) => return Ok(true),
                Err(Errno::EINTR | Errno::ECONNREFUSED) => {}
                Err(errno) => return Err(LiveError::system("receive", io::Error::from(errno))),
            }
        }
        Ok(false)
    }

    fn read_batch(&mut self, socket: &UdpSocket, service: &mut Service) -> nix::Result<Result<(), LiveError>> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.memory.iter_mut().map(|memory| [IoSliceMut::new(memory)]).collect();
        // The lengths are those of the datagrams, however little of them is copied.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let messages = recvmmsg(socket.as_raw_fd(), &mut self.headers, slices.iter_mut(), flags, None)?;
        let now = self.clock.now();
        for message in messages {
            let stamp_ns = socket::stamp_ns(&message)?;
            let at = |stamp_ns: i64, offset_ns: i64| {
                Time::ZERO + Span::from_ns(u64::try_from(stamp_ns - offset_ns).unwrap_or(0))
            };
            let mut stamp = stamp_ns.map_or(now, |stamp_ns| at(stamp_ns, self.offset_ns));
            if Span::from_ps(stamp.ps().abs_diff(now.ps())) > STEP {
                self.steps += 1;
                self.offset_ns = self.clock.realtime_offset_ns();
                stamp = stamp_ns.map_or(now, |stamp_ns| at(stamp_ns, self.offset_ns)).min(now);
            }
            let Some(from) = message.address.as_ref().and_then(socket::address_of) else { continue };
            let whole = message.bytes;
            let Some(front) = message.iovs().next() else { continue };
            let answer = service.handle(now, stamp, from, &front[..whole.min(FAREWELL)], whole);
            if answer.is_err() {
                return Ok(answer);
            }
        }
        Ok(Ok(()))
    }
}
