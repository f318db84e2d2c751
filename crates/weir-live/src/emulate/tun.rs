//! Ends of an emulated path: network devices whose frames a program reads and writes, one IP packet at a time.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::LiveError;
use crate::host::namespace::Namespace;

/// Longest name of a network device.
const NAME_MAX: usize = libc::IFNAMSIZ - 1;

/// Makes the device `name` in `namespace`, without addresses and down. It goes away with the descriptor, which does
/// not block. Needs CAP_NET_ADMIN there.
///
/// # Errors
/// A name that is no name of a device, or what the system refused.
pub fn create(namespace: &Namespace, name: &str) -> Result<OwnedFd, LiveError> {
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(LiveError::Plan(format!("a device's name has 1 to {NAME_MAX} letters and digits (got '{name}')")));
    }
    let open = || -> io::Result<OwnedFd> {
        let device = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: ifreq is plain old data, for which zero bytes are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, and TUNSETIFF reads and writes one ifreq, which lives.
        match unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } {
            0 => Ok(device.into()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    namespace.inside(open).map_err(|error| LiveError::system(format!("make the network device {name}"), error))
}
