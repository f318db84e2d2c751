//! Ends of an emulated path: network devices whose frames a program reads and writes, one IP packet at a time.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::LiveError;
use crate::host::namespace::Namespace;

/// Longest name of a network device.
const NAME_MAX: usize = libc::IFNAMSIZ - 1;

/// What a device gives and takes joined: several segments as one packet, behind a header that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// Nothing, and there is no header: every packet is one of its own.
    Nothing,
    /// Segments of a TCP connection.
    Tcp,
    /// These, and datagrams of UDP that were given to the kernel together.
    TcpAndUdp,
}

/// Makes the device `name` in `namespace`, without addresses and down. It goes away with the descriptor, which does
/// not block. Needs CAP_NET_ADMIN there. If it is to give and take joined packets, the kernel may refuse that in
/// part or altogether: the answer says what it does.
///
/// # Errors
/// A name that is no name of a device, or what the system refused.
pub fn create(namespace: &Namespace, name: &str, joined: bool) -> Result<(OwnedFd, Joined), LiveError> {
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(LiveError::Plan(format!("a device's name has 1 to {NAME_MAX} letters and digits (got '{name}')")));
    }
    let open = || -> io::Result<(OwnedFd, Joined)> {
        if joined {
            let device = device(name, libc::IFF_VNET_HDR);
            let joins = device.as_ref().map_or(Joined::Nothing, |device| join(device.as_raw_fd()));
            if joins != Joined::Nothing {
                return Ok((device?, joins));
            }
        }
        Ok((device(name, 0)?, Joined::Nothing))
    };
    namespace.inside(open).map_err(|error| LiveError::system(format!("make the network device {name}"), error))
}

/// A device with these flags besides the usual ones.
fn device(name: &str, flags: libc::c_int) -> io::Result<OwnedFd> {
    let device = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: ifreq is plain old data, for which zero bytes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | flags) as libc::c_short;
    // SAFETY: the descriptor is open, and TUNSETIFF reads and writes one ifreq, which lives.
    match unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } {
        0 => Ok(device.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks a device for joined packets: first for all that newer kernels can join, then for what older ones can.
fn join(device: RawFd) -> Joined {
    const TCP: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    let asked = [(TCP | libc::TUN_F_USO4 | libc::TUN_F_USO6, Joined::TcpAndUdp), (TCP, Joined::Tcp)];
    let granted = asked.iter().find(|&&(flags, _)| {
        // SAFETY: the descriptor is open, and TUNSETOFFLOAD takes its flags by value.
        unsafe { libc::ioctl(device, libc::TUNSETOFFLOAD as _, libc::c_ulong::from(flags)) == 0 }
    });
    granted.map_or(Joined::Nothing, |&(_, joined)| joined)
}
