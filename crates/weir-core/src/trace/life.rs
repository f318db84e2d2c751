//! When a connection begins and ends, from the flags of all its packets, also of those that are not judged: so that
//! connections have the same numbers whenever a capture is read.

use super::segment::Segment;

/// What SYN, FIN and RST reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    /// The numbers of the SYN of each side.
    initial: [Option<u32>; 2],
    closed: [bool; 2],
    reset: bool,
}

impl Life {
    /// Whether `segment` of side `from` begins another connection between the same ports: a SYN with another number.
    #[inline]
    pub(crate) fn begins_anew(&self, from: usize, segment: &Segment) -> bool {
        segment.has(Segment::SYN)
            && !segment.has(Segment::ACK)
            && match self.initial[from] {
                Some(initial) => initial != segment.seq,
                None => self.ended(),
            }
    }

    /// A side sent `segment`.
    #[inline]
    pub(crate) fn note(&mut self, from: usize, segment: &Segment) {
        if segment.has(Segment::SYN) {
            self.initial[from] = Some(segment.seq);
        }
        self.closed[from] |= segment.has(Segment::FIN);
        self.reset |= segment.has(Segment::RST);
    }

    /// Whether the connection was reset, or closed from both sides.
    pub(crate) fn ended(&self) -> bool {
        self.reset || self.closed == [true; 2]
    }
}
