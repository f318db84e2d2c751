//! Network namespaces without names: they live as long as somebody holds them, so none can be left behind.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{io, thread};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use crate::LiveError;

/// A network namespace, held open. The kernel takes a nameless one down, with all its interfaces, once no process
/// holds or uses it, also when its maker was killed.
#[derive(Debug)]
pub struct Namespace {
    handle: OwnedFd,
    path: PathBuf,
}

impl Namespace {
    /// A new and empty one, without a name. Needs CAP_SYS_ADMIN.
    pub fn create() -> Result<Namespace, LiveError> {
        let path = PathBuf::from("new");
        let refused = |source| LiveError::Namespace { path: path.clone(), source };
        let handle = in_own_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        })
        .map_err(refused)?;
        Ok(Namespace { handle: handle.into(), path })
    }

    /// One that exists, by its path: `/run/netns/NAME`, `/proc/PID/ns/net`, `/proc/self/fd/N`.
    pub fn open(path: &Path) -> Result<Namespace, LiveError> {
        let handle = File::open(path).map_err(|source| LiveError::Namespace { path: path.into(), source })?;
        Ok(Namespace { handle: handle.into(), path: path.into() })
    }

    /// Move the calling thread into it. Needs CAP_SYS_ADMIN.
    pub fn enter(&self) -> Result<(), LiveError> {
        setns(self.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(|errno| LiveError::Namespace { path: self.path.clone(), source: errno.into() })
    }

    /// What `work` gives, done by a thread that stands in the namespace.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_own_thread(|| {
            setns(self.as_fd(), CloneFlags::CLONE_NEWNET)?;
            work()
        })
    }

    /// Let the receive work of `interface` be done by `cpus` (receive packet steering) instead of the CPU that
    /// hands the frame over. The setting is only to be had through sysfs, which shows the namespace that mounted
    /// it: so this happens in a thread with a mount table of its own.
    pub fn steer_receive(&self, interface: &str, cpus: &[usize]) -> Result<(), LiveError> {
        let mask = cpu_mask(cpus);
        let set = || -> io::Result<()> {
            setns(self.as_fd(), CloneFlags::CLONE_NEWNET)?;
            unshare(CloneFlags::CLONE_NEWNS)?;
            let nothing: Option<&str> = None;
            mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)?;
            mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), nothing)?;
            fs::write(Path::new("/sys/class/net").join(interface).join("queues/rx-0/rps_cpus"), &mask)
        };
        in_own_thread(set).map_err(|source| LiveError::system(format!("steer the receive work of {interface}"), source))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl From<Namespace> for OwnedFd {
    fn from(namespace: Namespace) -> OwnedFd {
        namespace.handle
    }
}

/// What a thread does to its namespaces ends with the thread.
fn in_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

/// CPUs as the kernel writes them: hexadecimal words of 32 bits, the highest first, separated by commas.
fn cpu_mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(1, |highest| highest / 32 + 1);
    let mut mask = vec![0_u32; words];
    for cpu in cpus {
        mask[cpu / 32] |= 1 << (cpu % 32);
    }
    mask.iter().rev().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::cpu_mask;

    #[test]
    fn a_cpu_mask_is_written_in_words_of_32_bits() {
        assert_eq!(cpu_mask(&[]), "00000000");
        assert_eq!(cpu_mask(&[0, 1]), "00000003");
        assert_eq!(cpu_mask(&[33, 0]), "00000002,00000001");
    }
}
