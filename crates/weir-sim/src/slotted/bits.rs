//! Sets of small numbers, a bit for each.

/// The numbers of the set bits of a word, in order.
#[inline(always)]
pub(super) fn of(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}

/// A word with the bits set whose turn is true, at most 64.
#[inline]
pub(super) fn collect(bits: impl Iterator<Item = bool>) -> u64 {
    (0..64).zip(bits).fold(0, |word, (place, bit)| word | u64::from(bit) << place)
}
