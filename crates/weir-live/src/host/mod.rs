//! What every live tool asks of the machine it runs on.
//!
//! A worker thread takes its [`Seat`] first: a network namespace, a CPU, a priority. It reads the one [`Clock`]
//! of its measurement, waits with [`Clock::sleep_until`] and rests as [`Rest`] says, so that a real-time
//! thread never keeps a CPU to itself; [`ThreadTime`] says how long it ran, and how long it waited for its CPU.
//! [`socket`] opens sockets with large buffers, kernel receive stamps and a count of what they dropped.

mod account;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
pub mod namespace;
mod seat;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
mod user;

pub use account::{Reading, ThreadTime};
#[cfg(target_os = "linux")]
pub use clock::{Clock, Rest, on_cpu};
pub use seat::{Priority, Seat, Seated};
#[cfg(target_os = "linux")]
pub use user::{enter_own_user_namespace, keep_administration};
