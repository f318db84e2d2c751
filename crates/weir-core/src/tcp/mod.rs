//! TCP: a sender and a receiver of one stream: they learn what arrives and what time it is, and are asked what to send.
//!
//! Neither end knows a clock, a queue or a peer: `handle_*` methods report, `poll_*` methods ask, and the caller carries
//! segments between them. So the same ends run in a simulated network, over a live path, or against each other in a
//! test.
//!
//! Reading order: [`Segment`]; [`Config`]; [`Sender`] with its scoreboard of what is in flight and its rules of
//! reduction; [`Receiver`] with its ranges of what arrived out of order; `marks`, what they report to each other of
//! congestion; [`crate::cc`] for what sets the window.
//!
//! Sources: RFC 9293 (the protocol), RFC 5681 and 3465 (slow start and congestion avoidance), RFC 6582 (recovery without
//! selective acknowledgements), RFC 2018 and 6675 (recovery with them), RFC 8985 and 2883 (losses by time, probes of the tail),
//! RFC 6937 and 9937 (proportional rate reduction), RFC 6298 (timeout), RFC 3042 (limited transmit), RFC 6928 (initial window), RFC 7323 (windows, time stamps, PAWS), RFC 3168, 8257
//! and 9768 (ECN), RFC 9293, 3.8.6 (closed windows); [`rate`]: delivery-rate samples.
//!
//! Limits: data flows in one direction; a receiver keeps what it has reported of (no reneging); segments are
//! not cut again when they are sent again; no Nagle algorithm, no undo of a needless reduction.

mod config;
mod counters;
mod doubt;
mod marks;
mod rack;
mod ranges;
pub mod rate;
mod reader;
mod receiver;
mod reduction;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod stamps;
mod timers;

pub use config::{Config, LossMarking, LostRetransmissions, Recovery};
pub use counters::{ReceiverCounters, SenderCounters};
pub use marks::{EcnConfig, EcnSupport, Feedback};
pub use reader::Reading;
pub use receiver::Receiver;
pub use rtt::RttEstimator;
pub use segment::{ByteCounts, Ecn, Flags, HEADERS, LEAST_FRAME, MAX_SACKS, Sacks, Segment};
pub use sender::{Phase, Sender};
pub use timers::{Timers, Timing};

use crate::units::{Span, Time};

/// Length of a tick of time stamps: 1 ms.
const PS_PER_TICK: u64 = 1_000_000_000;

/// The time stamp of `now`.
#[inline]
fn ticks(now: Time) -> u32 {
    (now.ps() / PS_PER_TICK) as u32
}

/// The stamp of an arrival at `at`, in units of `unit`.
#[inline]
fn stamp(at: Time, unit: Span) -> u32 {
    (at.ps() / unit.ps()) as u32
}

/// Whether the time stamp `value` is older than `recent`.
///
/// Source: RFC 7323, 5.2.
#[inline]
fn is_older(value: u32, recent: u32) -> bool {
    (value.wrapping_sub(recent) as i32) < 0
}
