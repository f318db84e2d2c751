//! Where a thread works: in which namespace, on which CPU, with which priority.

use std::path::PathBuf;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_timerslack;
use nix::unistd::Pid;

use crate::LiveError;
use crate::host::namespace::Namespace;

/// How a thread competes for its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Like any other thread.
    Normal,
    /// SCHED_FIFO at this level (1 to 99), where the system permits it.
    RealTime(u8),
}

/// Where a thread wants to work.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The namespace: a path such as `/run/netns/NAME` or `/proc/self/fd/7`; none: where the process is.
    pub namespace: Option<PathBuf>,
    /// The CPU; none: any.
    pub cpu: Option<usize>,
    /// The priority.
    pub priority: Priority,
}

/// What a thread was really given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seated {
    /// Whether it runs under SCHED_FIFO.
    pub real_time: bool,
    /// The CPU that it is bound to.
    pub cpu: Option<usize>,
}

impl Seat {
    /// Move the calling thread here. A priority that is not permitted is no error: see [`Seated`]. Meant
    /// for threads made for one measurement: nothing is put back.
    pub fn take(&self) -> Result<Seated, LiveError> {
        if let Some(path) = &self.namespace {
            Namespace::open(path)?.enter()?;
        }
        if let Some(cpu) = self.cpu {
            let this_thread = Pid::from_raw(0);
            let mut cpus = CpuSet::new();
            cpus.set(cpu)
                .and_then(|()| sched_setaffinity(this_thread, &cpus))
                .map_err(|errno| LiveError::system(format!("bind a thread to CPU {cpu}"), errno))?;
        }
        set_timerslack(1).map_err(|errno| LiveError::system("set the timer slack", errno))?;
        let real_time = match self.priority {
            Priority::Normal => false,
            Priority::RealTime(level) => become_real_time(level),
        };
        if !real_time && self.priority != Priority::Normal {
            ask_for_short_slices();
        }
        Ok(Seated { real_time, cpu: self.cpu })
    }
}

/// What is left to a thread without privilege: the shortest slices that a fair scheduler grants, so that its turn
/// comes sooner after it has woken. Kernels before 6.12 take no wish; nobody is notified.
/// From memory: struct sched_attr of linux/sched/types.h, of which `sched_runtime` is the slice of a fair task.
fn ask_for_short_slices() {
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    const SHORTEST_NS: u64 = 100_000;
    let size = std::mem::size_of::<Attributes>() as u32;
    let policy = libc::SCHED_OTHER as u32;
    let attributes = Attributes { size, policy, runtime_ns: SHORTEST_NS, ..Attributes::default() };
    // SAFETY: the structure lives, and says how long it is; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Put the calling thread under SCHED_FIFO; its children stay normal. False where that is not permitted.
fn become_real_time(level: u8) -> bool {
    let parameters = libc::sched_param { sched_priority: i32::from(level) };
    // SAFETY: the pointer is to a live local; pid 0 is the calling thread, so no other thread is touched.
    let answer =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters) };
    answer == 0
}
