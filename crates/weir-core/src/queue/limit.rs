//! How much may wait.

use crate::spec;
use crate::units::Bytes;

/// How much may wait; the frame in transmission and the control lane are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub(super) most: u64,
    /// Whether `most` counts frames, or else bytes.
    pub(super) in_frames: bool,
}

impl Limit {
    /// Any amount.
    pub const UNLIMITED: Limit = Limit { most: u64::MAX, in_frames: false };

    /// Whether so many frames of so many bytes may wait.
    #[inline]
    pub const fn admits(self, frames: u64, bytes: u64) -> bool {
        (if self.in_frames { frames } else { bytes }) <= self.most
    }

    /// How many frames of `size` bytes may wait.
    pub const fn frames_of(self, size: Bytes) -> u64 {
        if self.in_frames { self.most } else { self.most / size.count() }
    }

    /// Frames of `limit` bytes together.
    pub const fn bytes(limit: Bytes) -> Limit {
        Limit { most: limit.count(), in_frames: false }
    }

    /// `limit` frames, whatever their size.
    pub const fn frames(limit: u64) -> Limit {
        Limit { most: limit, in_frames: true }
    }
}

impl From<spec::Limit> for Limit {
    fn from(limit: spec::Limit) -> Limit {
        match limit {
            spec::Limit::Bytes(bytes) => Limit::bytes(bytes),
            spec::Limit::Frames(frames) => Limit::frames(frames),
            spec::Limit::Unlimited => Limit::UNLIMITED,
        }
    }
}
