//! What a port counts.

use crate::units::{Span, Time};

/// What a port counted. A transmission counts when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Frames transmitted.
    pub frames: u64,
    /// Their sizes.
    pub bytes: u64,
    /// Their transmission times, ps.
    pub busy_ps: u64,
    /// Frames dropped.
    pub drops: u64,
    /// Their sizes.
    pub dropped_bytes: u64,
    /// Most bytes that waited, since the start or the last [`Port::restart_maximum`].
    pub queue_max_bytes: u64,
    /// Integral of the waiting bytes over time, byte ps.
    pub queue_byte_ps: u128,
    /// Integral of the waiting frames over time, ps: the sum of their waiting times.
    pub queue_wait_ps: u128,
}

/// How often and how long a port was paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Pauses, the current one included.
    pub count: u64,
    /// All together.
    pub total: Span,
    /// The longest.
    pub longest: Span,
    /// When the last one ended, or up to when it was told; none without a pause.
    pub last: Option<Time>,
}
