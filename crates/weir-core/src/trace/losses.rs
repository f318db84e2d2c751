//! Segments that were lost, each with what round trips next to it took: a queue that overflows was full for its neighbours.

use crate::row;

row! {
    /// A segment that was sent again, or came later than what is beyond it though it was sent again.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Loss {
        pub(crate) flow: u32,
        /// When it was sent again.
        pub(crate) again_ps: u64 => t_ps,
        /// When it was seen first, or missed.
        pub(crate) sent_ps: u64,
        /// Lost before the point of the capture, where it was missed, and not behind it.
        pub(crate) before: bool,
        /// Of a segment next to it: from the data to its acknowledgment; where it was lost before the point, from an acknowledgment
        /// to the data that it let go.
        pub(crate) beside_ps: Option<u64>,
        /// Its first byte in the sequence space, which goes on where its numbers wrap.
        pub(crate) start: u64,
        /// The one after its last.
        pub(crate) end: u64,
        /// Sent again for nothing: it was acknowledged already, or the receiver reported later that it had arrived.
        pub(crate) spurious: bool,
    }
}

/// What a segment that was sent again for the first time says about its loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    pub(crate) places: (u64, u64),
    pub(crate) sent_ps: u64,
    pub(crate) before: bool,
    pub(crate) beside_ps: Option<u64>,
    /// It was acknowledged already.
    pub(crate) arrived: bool,
}
