//! A path between namespaces that real programs use: what they send is read from a network device, goes through the
//! models of `weir_core::path`, and is written to the device at the other end when the model says so.
//!
//! The models are fed with the monotonic clock and never with how late the emulator was: recorded arrivals, replayed
//! in the pure model, give the same departures and drops. What the emulator could not keep up with is a fact of its
//! report: how late packets were written, what it had no buffer for, what the system did not take.
//!
//! Devices may give packets joined, 64 KiB of a connection as one. The models see the segments; what leaves them together is
//! written joined, so that a path without a rate carries several times as much.
//!
//! Reading order: [`tun`] (the ends), [`packet`] (what is looked at), `segments` (of joined packets), [`run`] (the loop),
//! [`Meters`] (what others see of it meanwhile).

mod engine;
mod meters;
pub mod packet;
mod pool;
mod segments;
pub mod tun;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use weir_core::path::{Arrived, LineCounters, LineSpec};
use weir_core::queue::Counters;
use weir_core::rng::Seed;
use weir_core::units::{Span, Time};

use crate::LiveError;
use crate::distribution::Distribution;
use crate::host::{Seat, Seated};

pub use engine::run;
pub use meters::{Meters, Reading};

/// What to emulate.
#[derive(Debug)]
pub struct Plan {
    /// The hops of the path, each between two devices of its own.
    pub hops: Vec<Hop>,
    /// Of all chance.
    pub seed: Seed,
    /// Where the emulator works.
    pub seat: Seat,
    /// How long before a packet is due the emulator stays awake.
    pub spin: Span,
    /// Longest packet, in bytes.
    pub mtu: usize,
    /// Whether the devices give and take joined packets, each behind a `virtio_net_hdr`: see [`tun::Joined`].
    pub joined: bool,
    /// Most bytes in buffers, over all hops.
    pub memory: usize,
    /// How many arrivals of each direction to record, with what became of them.
    pub record: usize,
    /// What others may read while it works, of [`Meters::of`] as many hops.
    pub meters: Arc<Meters>,
}

/// A hop between two descriptors that give and take whole packets, joined or not, and do not block.
#[derive(Debug)]
pub struct Hop {
    /// The end on the near side.
    pub near: OwnedFd,
    /// The end on the far side.
    pub far: OwnedFd,
    /// From near to far.
    pub forward: LineSpec,
    /// From far to near.
    pub backward: LineSpec,
    /// Whether the hop takes the window scale out of TCP connections, both ways.
    pub strips_window_scale: bool,
}

/// The name of a direction for [`weir_core::path::Line::new`]: what its chance depends on besides the seed.
pub fn line_name(hop: usize, direction: &str) -> String {
    format!("hop-{hop}/{direction}")
}

/// A descriptor of one's own for what `number` stands for in this process.
///
/// # Errors
/// A number that stands for nothing.
pub fn descriptor(number: RawFd) -> Result<OwnedFd, LiveError> {
    // SAFETY: no memory is touched; a number that stands for nothing is refused.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(LiveError::system(format!("use the descriptor {number}"), io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// What an emulation was.
#[derive(Debug)]
pub struct Report {
    /// Where the emulator really worked.
    pub seated: Seated,
    /// How long it worked; times of the lines are since its start.
    pub elapsed: Span,
    /// How long of that it was on its CPU.
    pub on_cpu: Span,
    /// How long it was ready and something else had its CPU; nothing where the kernel does not say.
    pub waited: Option<Span>,
    /// Each hop forward and backward, in the order of the plan.
    pub lines: Vec<LineReport>,
}

/// One direction of a hop.
#[derive(Debug, Default)]
pub struct LineReport {
    /// The hop, from 0 on.
    pub hop: usize,
    /// `forward` or `backward`.
    pub direction: &'static str,
    /// What the model counted.
    pub counters: LineCounters,
    /// What its transmitters counted.
    pub transmitters: Vec<Counters>,
    /// How late packets were written: end of the write less the time that the model said.
    pub lateness: Distribution,
    /// Packets that the far device did not take.
    pub refused: u64,
    /// Packets that were thrown away because no buffer was free.
    pub unbuffered: u64,
    /// Packets that came joined and could not be cut: the model saw each as one.
    pub whole: u64,
    /// Connections' first packets whose window scale was taken out.
    pub stripped: u64,
    /// What was recorded.
    pub record: Record,
}

/// Arrivals and what became of them. Places are those in `arrivals`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The first arrivals, as many as were asked for.
    pub arrivals: Vec<Arrived>,
    /// Which of them left, and when they were due.
    pub departures: Vec<(u64, Time)>,
    /// Which of them found a queue full, once for each copy.
    pub dropped: Vec<u64>,
    /// Which of them were lost at random.
    pub lost: Vec<u64>,
    /// Up to when this is all that happened to them: the time of the first arrival that was not recorded, or the end.
    pub until: Time,
}
