//! Pure network models: what a network is, and how its queues, links and sources behave.
//!
//! Reading order:
//! 1. [`units`]: `Time`, `Span`, `Bytes`, `Rate`, `FrameRate`; a unit mistake does not compile.
//! 2. [`spec`]: one resolved experiment, as it crosses the boundary from Python, and its check.
//! 3. [`network`]: nodes and ports out of a graph or a generator; [`routing`]: which ports a flow passes.
//! 4. [`rng`]: one seed, many named streams; [`traffic`]: when which frames are generated; [`messages`]: when which messages come.
//! 5. [`queue`]: an output port, fed with virtual or real time; [`marking`]: its marks; [`path`]: what else happens to frames on their way.
//! 6. [`tcp`]: the two ends of a connection; [`rdma`]: those of a message in numbered packets; [`cc`]: congestion control.
//! 7. [`ethernet`]: congestion management: BCN, QCN, DCQCN, PAUSE.
//! 8. [`host`]: the parts of a host's adapter: turns, limiters, what waits.
//! 9. [`estimation`]: estimators of available bandwidth and capacity that send trains of their own.
//! 10. [`trace`]: captures of packets, read and analysed.
//!
//! Nothing here knows a clock, a socket, a thread or a file: time and chance come in by argument, so the
//! simulator and the live tools run the same models.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod cc;
pub mod check;
pub mod columns;
mod custom;
mod error;
pub mod estimation;
pub mod ethernet;
pub mod histogram;
pub mod host;
pub mod marking;
pub mod messages;
pub mod network;
pub mod path;
pub mod queue;
pub mod rapid;
pub mod rdma;
mod ring;
pub mod rng;
pub mod routing;
pub mod spec;
pub mod tcp;
pub mod trace;
pub mod traffic;
pub mod units;

pub use error::SpecError;

/// The examples of the README, which run as tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
