//! UDP sockets of a measurement: large buffers, kernel receive stamps, a count of what the socket dropped.

use std::io;
use std::mem::size_of_val;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{ControlMessageOwned, RecvMsg, SockaddrStorage, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use weir_core::units::{Bytes, Span};

use crate::LiveError;

/// A UDP socket at `address` for receiving, with `buffer` of memory for what waits and kernel stamps
/// (CLOCK_REALTIME) on what arrives.
pub fn receiving(address: impl Into<SocketAddr>, buffer: Bytes) -> Result<UdpSocket, LiveError> {
    let socket = bound(address.into())?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)
        .map_err(|errno| LiveError::system("ask for receive stamps", errno))?;
    let size = usize::try_from(buffer.count()).unwrap_or(usize::MAX).min(i32::MAX as usize / 2);
    force(
        || setsockopt(&socket, sockopt::RcvBufForce, &size),
        || setsockopt(&socket, sockopt::RcvBuf, &size),
        "set the receive buffer",
    )?;
    Ok(socket)
}

/// A UDP socket at `address` that sends to `peer`, with `buffer` of memory for what has not left.
pub fn sending(
    address: impl Into<SocketAddr>,
    peer: impl Into<SocketAddr>,
    buffer: Bytes,
) -> Result<UdpSocket, LiveError> {
    let (socket, peer) = (bound(address.into())?, peer.into());
    socket.connect(peer).map_err(|error| LiveError::system(format!("send to {peer}"), error))?;
    let size = usize::try_from(buffer.count()).unwrap_or(usize::MAX).min(i32::MAX as usize / 2);
    force(
        || setsockopt(&socket, sockopt::SndBufForce, &size),
        || setsockopt(&socket, sockopt::SndBuf, &size),
        "set the send buffer",
    )?;
    Ok(socket)
}

/// Sleep until something can be read from `socket`, or `wait` is over.
pub fn await_input(socket: &UdpSocket, wait: Span) -> Result<(), LiveError> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let timeout = TimeSpec::from_duration(Duration::from_nanos(wait.ps() / 1_000));
    match ppoll(&mut polled, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(LiveError::system("wait for datagrams", errno)),
    }
}

/// Let no datagram of `socket` be cut into fragments: what is too long for the path is refused.
pub fn never_fragment(socket: &UdpSocket, is_ipv6: bool) -> Result<(), LiveError> {
    let (level, option, value) = if is_ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
    };
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which outlives the call. The descriptor is open as long as
    // `socket` is borrowed.
    let answer =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if answer == 0 { Ok(()) } else { Err(LiveError::system("forbid fragments", io::Error::last_os_error())) }
}

/// Let `socket` cut what it is given into datagrams of `payload`, so that one system call sends many. False where
/// the system does not offer it.
pub fn segment(socket: &UdpSocket, payload: Bytes) -> bool {
    i32::try_from(payload.count()).is_ok_and(|size| setsockopt(socket, sockopt::UdpGsoSegment, &size).is_ok())
}

/// How many frames this socket has dropped so far, most of them because its buffer was full.
///
/// Unlike the counter that SO_RXQ_OVFL attaches to received frames, this also knows of drops after which nothing
/// was received any more.
pub fn drops(socket: &UdpSocket) -> io::Result<u32> {
    const FIELDS: usize = 9;
    const DROPS: usize = 8;
    let mut memory = [0_u32; FIELDS];
    let mut length = size_of_val(&memory) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, the size of `memory`, which outlives the call; any bit
    // pattern is a legal u32. The descriptor is open as long as `socket` is borrowed.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            memory.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer == 0 { Ok(memory[DROPS]) } else { Err(io::Error::last_os_error()) }
}

fn bound(address: SocketAddr) -> Result<UdpSocket, LiveError> {
    let socket = UdpSocket::bind(address).map_err(|error| LiveError::system(format!("bind {address}"), error))?;
    socket.set_nonblocking(true).map_err(|error| LiveError::system("make a socket non-blocking", error))?;
    Ok(socket)
}

/// Set a buffer beyond the system's limit where that is permitted, else up to the limit.
fn force(
    beyond: impl Fn() -> nix::Result<()>,
    within: impl Fn() -> nix::Result<()>,
    what: &str,
) -> Result<(), LiveError> {
    beyond().or_else(|_| within()).map_err(|errno| LiveError::system(what, errno))
}

/// When the kernel received a message, ns since 1970, if it says so.
///
/// # Errors
/// What comes with the message does not fit.
pub fn stamp_ns<S>(message: &RecvMsg<'_, '_, S>) -> nix::Result<Option<i64>> {
    Ok(message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::ScmTimestampns(at) => Some(at.tv_sec() * 1_000_000_000 + at.tv_nsec()),
        _ => None,
    }))
}

/// An address of the system, if it is one of IP.
pub fn address_of(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let four = storage.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    four.or_else(|| storage.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    #[test]
    fn a_full_socket_counts_what_it_dropped_even_when_nothing_follows() {
        let anywhere = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let receiver = receiving(anywhere, Bytes::new(4_096)).expect("a receiving socket");
        let peer = match receiver.local_addr().expect("a bound socket") {
            std::net::SocketAddr::V4(address) => address,
            other => panic!("{other} is not IPv4"),
        };
        let sender = sending(anywhere, peer, Bytes::new(1 << 20)).expect("a sending socket");
        for _ in 0..200 {
            sender.send(&[0; 100]).expect("the loopback takes it");
        }
        let mut received = 0;
        while receiver.recv(&mut [0; 200]).is_ok() {
            received += 1;
        }
        let dropped = drops(&receiver).expect("a counter");
        assert!(dropped > 0);
        assert_eq!(received + dropped, 200);
    }
}
