//! A path between two ends, told in numbers: what it loses, how fast it transmits, how long it delays.
//!
//! Reading order: [`loss`] (frames lost at random), [`spec`] (one direction of a path), [`mod@line`] (its model, which the
//! live emulator feeds with the monotonic clock), [`load`] (what is sent over a path of such lines), [`replay`] (what a
//! line does with recorded arrivals).

pub mod line;
pub mod load;
pub mod loss;
mod replay;
pub mod spec;

pub use line::{Arrival, Departure, Dropped, Line, LineCounters};
pub use load::{HopSpec, LoadedPath, ProbeSpec, TransferSpec};
pub use loss::{Loss, LossModel};
pub use replay::{Arrived, Replay, replay};
pub use spec::LineSpec;
