//! The parts of which a host's adapter is put together: queues that take turns, limiters that say when a frame may begin, what waits.
//!
//! 1. [`clock`]: time that goes by in picoseconds or in slots; the parts are the same for both.
//! 2. [`credit`]: limiters that save credit ([`Limiters`]); [`paced`]: limiters that space frames by the time since the last one ([`Paced`]);
//!    [`Limiting`]: either of them, or none.
//! 3. [`ready`]: which queues may send ([`Ready`]); [`turns`]: whose turn it is among those of a host ([`Turns`]).
//! 4. [`occupancy`]: an amount that changes over time, its integral and the most ([`Occupancy`]); [`load`]: the frames that wait ([`Load`]).
//! 5. [`chain`]: a queue that is linked through a pool ([`Chain`]).
//!
//! Hosts follow one of two laws, and a part has a value for each where they differ:
//!
//! | | a queue for each flow | a queue for each destination |
//! |---|---|---|
//! | limiters | [`Paced`]: as the rate limiters of 802.1Qau, one for each flow | [`Limiters`]: credit, one for each pair of hosts |
//! | turns | [`Turns::longest_first`] | [`Turns::in_order`] |
//! | maximum | [`Load::counting_instants`]: what waits for an instant counts | [`Load::default`]: what waits for longer than an instant counts |
//!
//! Source: IEEE 802.1Qau, limiters for flows; ZRL benchmark, adapter: queues for destinations, limiters by credit.

pub mod chain;
pub mod clock;
pub mod credit;
pub mod limiting;
pub mod load;
pub mod occupancy;
pub mod paced;
pub mod ready;
pub mod turns;

pub use self::chain::Chain;
pub use self::clock::{Clock, Picoseconds, Slots};
pub use self::credit::{Limiters, Manner, Savings};
pub use self::limiting::Limiting;
pub use self::load::Load;
pub use self::occupancy::{Integral, Occupancy};
pub use self::paced::Paced;
pub use self::ready::Ready;
pub use self::turns::Turns;
