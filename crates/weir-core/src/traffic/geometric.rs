//! Numbers of failures before a success.

use crate::rng::{Stream, unit};

/// Failures before the first success: `floor(ln u / ln(1 - p))` for `u` uniform in (0, 1).
///
/// Most draws are decided by comparing `u` with the first powers of `1 - p`, as the whole number of which it is a
/// multiple; only the rest needs a logarithm.
#[derive(Clone, Debug)]
pub struct Geometric {
    /// How many of the numbers that `u` is made of give one that does not exceed `(1 - p)^1 ..= (1 - p)^POWERS`.
    bounds: [u64; POWERS],
    /// `ln(1 - p)`.
    log_failure: f64,
    /// Whether the first try decides so often that a branch for each is predicted well.
    pub(super) is_likely: bool,
}

const POWERS: usize = 8;
/// From about here on, searching is faster than counting.
const LIKELY: f64 = 0.7;

impl Geometric {
    /// Successes with this probability, in (0, 1].
    pub fn new(probability: f64) -> Geometric {
        let failure = 1.0 - probability;
        let mut power = 1.0;
        let bounds = [(); POWERS].map(|()| {
            power *= failure;
            bound(power)
        });
        Geometric { bounds, log_failure: libm::log1p(-probability), is_likely: probability > LIKELY }
    }

    /// Failures before the next success.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        self.of(stream.next_u64())
    }

    /// Failures before the next success, for a word that was drawn.
    #[inline(always)]
    pub(super) fn of(&self, word: u64) -> u64 {
        if self.is_likely { self.of_likely(word) } else { self.of_unlikely(word) }
    }

    /// The bounds fall: the number of the first one that is reached.
    #[inline(always)]
    pub(super) fn of_likely(&self, word: u64) -> u64 {
        // The first two are counted: a branch on the first alone is often predicted wrongly.
        let (first, rest) = self.bounds.split_at(2);
        let few: usize = first.iter().map(|&bound| usize::from(word >> 11 < bound)).sum();
        if few < first.len() {
            return few as u64;
        }
        match rest.iter().position(|&bound| word >> 11 >= bound) {
            Some(more) => (few + more) as u64,
            None => self.of_many(word),
        }
    }

    /// The bounds fall: counts those that are not reached.
    #[inline(always)]
    pub(super) fn of_unlikely(&self, word: u64) -> u64 {
        let failures: usize = self.bounds.iter().map(|&bound| usize::from(word >> 11 < bound)).sum();
        if failures < POWERS { failures as u64 } else { self.of_many(word) }
    }

    #[inline(never)]
    fn of_many(&self, word: u64) -> u64 {
        (libm::log(unit(word)) / self.log_failure) as u64
    }
}

/// How many numbers of 53 bits give a [`unit`] that does not exceed `power`, which is below 1.
pub(super) fn bound(power: f64) -> u64 {
    let exceeds = |number: u64| unit(number << 11) > power;
    let mut bound = (power * (1_u64 << 53) as f64) as u64;
    while bound > 0 && exceeds(bound - 1) {
        bound -= 1;
    }
    while bound < 1 << 53 && !exceeds(bound) {
        bound += 1;
    }
    bound
}
