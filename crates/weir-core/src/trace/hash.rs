//! Hashes of words, for tables that nobody else sees: folded multiplications, the same on every machine.

const ODD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// A hash of two words.
#[inline]
pub(crate) fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one ^ ODD[0]) * u128::from(other ^ ODD[1]);
    product as u64 ^ (product >> 64) as u64
}
