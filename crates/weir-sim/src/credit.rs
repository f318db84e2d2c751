//! Credit of slow outputs and of limiters: whole numbers in both engines, so that they agree at every rate.
//!
//! Where time goes by in slots the worth of a frame is the line rate, in bit/s; where it does not, that times what the frame takes
//! on the line, in ps.

use weir_core::spec::control::Limiter;
use weir_core::units::Rate;

/// A frame may go that misses less than this part of its worth: a third of a line is no whole number of bit/s.
const PART: i128 = 1_000_000_000;

/// The credit that a frame of worth `whole` needs.
#[inline]
pub(crate) fn needed(whole: i128) -> i128 {
    whole - whole / PART
}

/// What a limiter may send when it is made, and what it saves at most; of a frame whose worth is the line rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Savings {
    line: i128,
    /// Absent: nothing at first, and later what the limiter of the pair before it left over.
    pub(crate) initial: Option<i128>,
    cap: Option<i128>,
}

impl Savings {
    /// Those of `limiter` at a port with this line rate.
    pub(crate) fn new(limiter: Option<&Limiter>, line: Rate) -> Savings {
        let worth = |frames: f64| (frames * line.bps() as f64).round() as i128;
        let (initial, cap) = limiter.map_or((None, None), |limiter| (limiter.initial_credit, limiter.most_credit));
        Savings { line: line.bps().into(), initial: initial.map(worth), cap: cap.map(worth) }
    }

    /// The most that is saved at `rate`: absent of the spec, a frame and what the rate gives while one takes the line.
    #[inline]
    pub(crate) fn most(&self, rate: Rate) -> i128 {
        self.cap.unwrap_or(self.line + i128::from(rate.bps()))
    }
}
