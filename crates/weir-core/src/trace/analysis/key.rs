//! The two ends of a connection.

use super::super::hash::fold;
use super::super::packet::Address;

/// Who speaks with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) from: (Address, u16),
    pub(crate) to: (Address, u16),
    pub(crate) protocol: u8,
}

impl Key {
    /// Whether `other` is the same, or that of the other direction.
    #[inline]
    pub(super) fn is_of(&self, other: &Key) -> bool {
        *self == *other || (self.from, self.to, self.protocol) == (other.to, other.from, other.protocol)
    }

    /// The same for both directions.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        let end =
            |(address, port): (Address, u16)| fold(address.0 as u64, (address.0 >> 64) as u64 ^ u64::from(port) << 40);
        let (from, to) = (end(self.from), end(self.to));
        fold(from.wrapping_add(to), from ^ to ^ u64::from(self.protocol))
    }
}
