//! A path between two ends: what it loses, how fast it transmits, how long it delays.
//!
//! Reading order: [`LossModel`] (frames lost at random), [`spec`] (one direction of a path), [`Line`] (its model, which the
//! live emulator feeds with the monotonic clock), [`LoadedPath`] (what is sent over a path of such lines), [`replay`] (what a
//! line does with recorded arrivals).

mod line;
mod load;
mod loss;
mod replay;
pub mod spec;

pub use line::{Arrival, Departure, Dropped, Line, LineCounters};
pub use load::{HopSpec, LoadedPath, ProbeSpec, TransferSpec};
pub use loss::{Loss, LossModel};
pub use replay::{Arrived, Replay, replay};
pub use spec::LineSpec;
