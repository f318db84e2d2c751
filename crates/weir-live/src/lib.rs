//! The live parts of Weirlab: whatever needs a clock, a socket, a thread of its own or unsafe code.
//!
//! Reading order:
//! 1. [`host`]: what every live tool asks of the machine: network namespaces, a seat on a CPU with real-time
//!    priority, the clock, sockets with large buffers and kernel stamps.
//! 2. [`datagram`], [`payloads`], [`tally`], [`distribution`]: what a probe carries and how large it is, what a
//!    receiver counts, how times are summed up. Pure.
//! 3. [`load`] and [`sink`]: the sender and the receiver of a trial.
//! 4. [`trial`]: both together; [`quality`]: how well this machine keeps time.
//! 5. [`emulate`]: a path between two namespaces, which real programs use.
//! 6. [`probe`]: probes of a path that live for some hops, and what answers them.
//! 7. [`rapid`]: Rapid over UDP between two hosts.
//! 8. [`stamp`]: one-way delays between two namespaces.
//!
//! Linux only. Elsewhere the crate is empty.
#![cfg(target_os = "linux")]
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod datagram;
pub mod distribution;
pub mod emulate;
mod error;
pub mod host;
pub mod load;
pub mod payloads;
pub mod probe;
pub mod quality;
pub mod rapid;
pub mod shared;
pub mod sink;
pub mod stamp;
pub mod tally;
pub mod trial;

pub use error::LiveError;
