//! The socket of probes, and its error queue.

use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, recvmsg, setsockopt, sockopt,
};

use super::{MOST_QUOTED, Word};
use crate::LiveError;

/// One entry of the error queue.
pub(super) struct Message {
    /// It says nothing but when a probe left.
    pub(super) is_departure: bool,
    pub(super) from: Option<IpAddr>,
    pub(super) word: Word,
    /// Where the probe went.
    pub(super) port: u16,
    pub(super) quoted: Vec<u8>,
    /// CLOCK_REALTIME.
    pub(super) stamp_ns: i64,
}

/// The address that this host sends from to `target`.
pub(super) fn local_address(target: SocketAddr) -> Result<IpAddr, LiveError> {
    let any: IpAddr = if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).map_err(|error| LiveError::system("open a socket", error))?;
    let connected = socket.connect(target).and_then(|()| socket.local_addr());
    Ok(connected.map_err(|error| LiveError::system(format!("find a way to {}", target.ip()), error))?.ip())
}

/// Ask for messages and stamps; forbid fragments, whatever is known of the path.
pub(super) fn prepare(socket: &UdpSocket, is_ipv4: bool) -> Result<(), LiveError> {
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
pub(super) fn receive(socket: &UdpSocket) -> Result<Option<Message>, LiveError> {
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
pub(super) fn word(error: &libc::sock_extended_err) -> Word {
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
