//! Whether there was anything to repair.
//!
//! Segments count as lost that are only late, behind others that overtook them or behind a delay that outlasts the timeout.
//! Then they arrive after all, and what was sent again arrives twice. The receiver echoes the time stamp of the segment
//! that filled a gap: if that one was sent before it was sent again, it had not been lost. Without time stamps, and for
//! what arrives out of order, it has not if it is reported sooner after it was sent again than any round trip took. That is
//! weaker: where a queue has become shorter than it ever was, what was lost is reported as soon. So time stamps decide
//! alone where they are echoed, though they do not show what was sent within one tick.
//!
//! Source: RFC 3522, 3; RFC 8985, 6.2, for what is reported too soon. DEVIATION: not the first acknowledgement decides, but
//! all of an episode of repairs: one segment that was lost is enough, and one that was sent again twice counts as lost.

use crate::tcp::segment::{Flags, Segment};
use crate::tcp::{is_older, ticks};
use crate::units::{Span, Time};

/// Of an episode of repairs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doubt {
    /// Whether a retransmission was needed, as far as anybody can know.
    is_needed: bool,
}

/// The earliest time at which what arrived now may have been sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    /// Of segments that are acknowledged in order.
    pub(crate) in_order: Option<Time>,
    /// Of the others.
    pub(crate) out_of_order: Option<Time>,
}

impl Doubt {
    /// `segment` acknowledges segments that had been sent again; no round trip has taken less than `least`.
    pub(crate) fn on_arrivals(&mut self, now: Time, segment: &Segment, least: Span, arrivals: &Arrivals) {
        let has_stamp = segment.flags.has(Flags::TIMESTAMPS);
        let is_answered = |again: Time| now.saturating_since(again) >= least;
        let is_of_again =
            |again: Time| if has_stamp { !is_older(segment.ts_ecr, ticks(again)) } else { is_answered(again) };
        self.is_needed |= arrivals.in_order.is_some_and(is_of_again);
        self.is_needed |= arrivals.out_of_order.is_some_and(is_answered);
    }

    /// Whether nothing had been lost.
    pub(crate) fn is_confirmed(self) -> bool {
        !self.is_needed
    }
}
