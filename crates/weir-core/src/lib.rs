//! Pure network models: what a network is, how its queues, links and sources behave, told in numbers.
//!
//! Reading order:
//! 1. [`units`]: `Time`, `Span`, `Bytes`, `Rate`, `FrameRate`; a unit mistake does not compile.
//! 2. [`spec`]: one resolved experiment, as it crosses the boundary from Python.
//!
//! Nothing here knows a clock, a socket, a thread or a file: time and chance come in by argument, so the
//! simulator and the live tools run the same models.
#![forbid(unsafe_code)]

pub mod spec;
pub mod units;
