//! What every live tool asks of the machine it runs on.
//!
//! A worker thread takes its [`Seat`] first: a network namespace, a CPU, a priority. It reads the one [`Clock`]
//! of its measurement, waits with [`Clock::sleep_until`] and rests as [`Rest`] tells it, so that a real-time
//! thread never keeps a CPU to itself. [`socket`] opens sockets with large buffers, kernel receive stamps and a
//! count of what they dropped.

#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
pub mod namespace;
mod seat;
#[cfg(target_os = "linux")]
pub mod socket;

#[cfg(target_os = "linux")]
pub use clock::{Clock, Rest, on_cpu};
pub use seat::{Priority, Seat, Seated};
