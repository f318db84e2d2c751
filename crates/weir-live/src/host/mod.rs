//! What every live tool asks of the machine it runs on.
//!
//! A worker thread takes its [`Seat`] first: a network namespace, a CPU, a priority. It reads the one [`Clock`]
//! of its measurement, waits with [`Clock::sleep_until`] and rests as [`Rest`] says, so that a real-time
//! thread never keeps a CPU to itself; [`ThreadTime`] says how long it ran, and how long it waited for its CPU.
//! [`socket`] opens sockets with large buffers, kernel receive stamps and a count of what they dropped.

mod account;
mod clock;
pub mod namespace;
mod seat;
pub mod socket;
mod user;

pub use account::{Reading, ThreadTime};
pub use clock::{Clock, Rest, on_cpu};
pub use seat::{Priority, Seat, Seated};
pub use user::{enter_own_user_namespace, keep_administration};
