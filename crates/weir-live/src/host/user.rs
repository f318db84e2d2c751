//! What an ordinary user needs to make network namespaces: a user namespace of one's own.

use std::{fs, io};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::LiveError;

/// Version of the structures of capset(2) that has 64 capabilities. From memory: linux/capability.h.
const CAPABILITIES_V3: u32 = 0x2008_0522;
/// What programs started from here keep: binding to low ports, settings of interfaces, sockets of their own make
/// (`ping`, `tcpdump`). From memory: CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW of linux/capability.h.
const KEPT: [u32; 3] = [10, 12, 13];
/// CAP_SYS_ADMIN, which entering a namespace takes. From memory: linux/capability.h.
const ADMINISTRATION: u32 = 21;

/// Moves the calling process into a user namespace of its own, in which it has the same user and group as before, and
/// all capabilities over what it makes there: network namespaces above all. Programs that it starts are the same user,
/// too, and keep the capabilities over networks (`KEPT`). The process must have one thread only.
///
/// # Errors
/// What the system refused: a second thread, or user namespaces for ordinary users.
pub fn enter_own_user_namespace() -> Result<(), LiveError> {
    let refused = |what: &str, error: io::Error| LiveError::system(what, error);
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| refused("make a user namespace", errno.into()))?;
    // Whoever may not change groups outside must give that up before it maps one. Source: Linux, user_namespaces(7).
    for (file, text) in [
        ("setgroups", "deny".to_string()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| refused("keep one's user and group", error))?;
    }
    keep_over_programs(&KEPT).map_err(|error| refused("keep capabilities", error))
}

/// Lets a program that this thread starts enter the namespaces that this process has made.
///
/// # Errors
/// This thread may not do so itself.
pub fn keep_administration() -> Result<(), LiveError> {
    keep_over_programs(&[ADMINISTRATION]).map_err(|error| LiveError::system("keep CAP_SYS_ADMIN", error))
}

/// Lets capabilities pass to programs that this thread starts.
fn keep_over_programs(kept: &[u32]) -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Sets {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header { version: CAPABILITIES_V3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: header and sets live, and have the layout of this version of the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    sets[0].inheritable |= kept.iter().map(|capability| 1 << capability).sum::<u32>();
    // SAFETY: as above; the kernel only reads.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) })?;
    for &capability in kept {
        // SAFETY: numbers alone.
        let answer = unsafe {
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, libc::c_ulong::from(capability), 0, 0)
        };
        check(answer.into())?;
    }
    Ok(())
}

fn check(answer: i64) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
