//! Chance: one seed per run, and a named stream for each consumer, so that adding one does not shift another's
//! draws. The same on every machine.
//!
//! Sources: xoshiro256++ and SplitMix64, D. Blackman and S. Vigna, "Scrambled linear pseudorandom number
//! generators", ACM Trans. Math. Softw. 47 (2021); G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom
//! number generators", OOPSLA 2014.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// The seed of a run. Zero is a seed like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Of a run's seed and a name.
    Named(Xoshiro256),
    /// SplitMix64, for workloads with published exact counts.
    SplitMix64(SplitMix64),
}

impl Seed {
    /// The seed `seed`.
    pub const fn new(seed: u64) -> Seed {
        Seed(seed)
    }

    /// The stream that belongs to `name`.
    ///
    /// ```
    /// use weir_core::rng::Seed;
    /// let (mut a, mut b) = (Seed::new(0).stream("loss/spine-3"), Seed::new(0).stream("loss/spine-3"));
    /// assert_eq!(a.next_u64(), b.next_u64());
    /// assert_ne!(a.next_u64(), Seed::new(1).stream("loss/spine-3").next_u64());
    /// ```
    pub fn stream(self, name: &str) -> Stream {
        let mut state = mix(self.0);
        for chunk in name.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            state = mix(state ^ u64::from_le_bytes(word));
        }
        Stream::Named(Xoshiro256::new(mix(state ^ name.len() as u64)))
    }
}

/// xoshiro256++. Loops over many draws keep its state in registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xoshiro256([u64; 4]);

impl Xoshiro256 {
    /// With the first outputs of SplitMix64 from `state`, as its authors recommend.
    fn new(state: u64) -> Xoshiro256 {
        let mut words = SplitMix64::from_seed(state.to_le_bytes());
        Xoshiro256([(); 4].map(|()| Rng::next_u64(&mut words)))
    }
}

/// Where 64 random bits come from.
pub(crate) trait Chance: Clone {
    /// The next 64 bits.
    fn next_u64(&mut self) -> u64;
}

impl Chance for Xoshiro256 {
    #[inline(always)]
    fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let word = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ b << 17, d.rotate_left(45)];
        word
    }
}

impl Chance for SplitMix64 {
    #[inline(always)]
    fn next_u64(&mut self) -> u64 {
        Rng::next_u64(self)
    }
}

impl Stream {
    /// SplitMix64 from `state`.
    pub fn split_mix_64(state: u64) -> Stream {
        Stream::SplitMix64(SplitMix64::from_seed(state.to_le_bytes()))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        match self {
            Stream::Named(rng) => rng.next_u64(),
            Stream::SplitMix64(rng) => Rng::next_u64(rng),
        }
    }

    /// Uniform in the open interval (0, 1): `(k + 0.5) / 2^53`.
    #[inline]
    pub fn open_unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// Uniform in `0..bound`, but for a bias below `bound` / 2^64. `bound` is not zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        minus_ln(self.open_unit())
    }
}

/// `(k + 0.5) / 2^53` with `k` the first 53 bits of `word`.
#[inline]
pub(crate) fn unit(word: u64) -> f64 {
    ((word >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

/// The first output of SplitMix64 from `state`: a bijection that spreads every bit.
pub fn mix(state: u64) -> u64 {
    Rng::next_u64(&mut SplitMix64::from_seed(state.to_le_bytes()))
}

/// `-ln(u)` for `u` in (0, 1), by sums and products only, so that it is the same everywhere; three times as fast as
/// the general logarithm. The absolute error is below 1e-15, the spacing that uniform numbers of 53 bits give to
/// exponential ones near zero anyway.
///
/// `u = 2^k m`, with `m` in [1, 2) near the middle `c` of one of 32 intervals: `ln u = k ln 2 + ln c + ln(1 + r)`, and
/// `r` in (-1/64, 1/64).
#[inline]
fn minus_ln(u: f64) -> f64 {
    let bits = u.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let Middle { inverse, minus_ln } = MIDDLES[(bits >> 47) as usize & 31];
    let r = mantissa * inverse - 1.0;
    let (r2, r4) = (r * r, (r * r) * (r * r));
    let (low, high) = (0.5 - r * (1.0 / 3.0) + r2 * (0.25 - r * 0.2), 1.0 / 6.0 - r * (1.0 / 7.0) + r2 * 0.125);
    (minus_ln - f64::from(exponent) * std::f64::consts::LN_2) - (r - r2 * (low + r4 * high))
}

#[derive(Clone, Copy)]
struct Middle {
    /// `1 / c`.
    inverse: f64,
    /// `-ln c`.
    minus_ln: f64,
}

static MIDDLES: [Middle; 32] = middles();

const fn middles() -> [Middle; 32] {
    let mut middles = [Middle { inverse: 1.0, minus_ln: 0.0 }; 32];
    let mut i = 0;
    while i < 32 {
        let inverse = 1.0 / (1.0 + (i as f64 + 0.5) / 32.0);
        // ln x = 2 artanh z with z = (x - 1) / (x + 1), as a series of 24 terms, the smallest first.
        let z = (inverse - 1.0) / (inverse + 1.0);
        let (mut term, mut sum) = (24, 0.0);
        while term > 0 {
            term -= 1;
            sum = sum * z * z + 1.0 / (2 * term + 1) as f64;
        }
        middles[i] = Middle { inverse, minus_ln: 2.0 * z * sum };
        i += 1;
    }
    middles
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn xoshiro256_gives_the_numbers_of_another_implementation() {
        for state in [0, 1, 0x1234_5678_9abc_def0, u64::MAX] {
            let (mut ours, mut theirs) = (Xoshiro256::new(state), Xoshiro256PlusPlus::seed_from_u64(state));
            assert!((0..1000).all(|_| Chance::next_u64(&mut ours) == Rng::next_u64(&mut theirs)));
        }
    }

    #[test]
    fn splitmix64_gives_the_published_numbers() {
        // First outputs of the reference implementation from state 1234567.
        let mut stream = Stream::split_mix_64(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_named_stream_is_the_same_for_ever() {
        let mut stream = Seed::new(1).stream("traffic/load/host-3");
        assert_eq!(stream.next_u64(), Seed::new(1).stream("traffic/load/host-3").next_u64());
        assert_ne!(Seed::new(1).stream("ab").next_u64(), Seed::new(1).stream("ab\0").next_u64());
        assert_ne!(Seed::new(0).stream("").next_u64(), Seed::new(0).stream("a").next_u64());
    }

    #[test]
    fn the_fast_logarithm_agrees_with_the_exact_one() {
        let mut stream = Seed::new(11).stream("logarithm");
        let small = (1..60).map(|bits| 1.0 / (1u64 << bits) as f64);
        let edges = (0..=128).map(|i| 0.5 + f64::from(i) / 256.0).flat_map(|u| [u.next_down(), u, u.next_up()]);
        let units = [0.5 / (1u64 << 53) as f64, 1.0 - 0.5 / (1u64 << 53) as f64];
        let drawn: Vec<f64> = (0..100_000).map(|_| stream.open_unit()).collect();
        for u in small.chain(edges).chain(units).chain(drawn).filter(|&u| u < 1.0) {
            let (fast, exact) = (minus_ln(u), -libm::log(u));
            assert!((fast - exact).abs() <= 1e-15 * exact.max(1.0), "{u}: {fast} instead of {exact}");
        }
    }

    #[test]
    fn exponential_draws_have_mean_and_variance_one() {
        let mut stream = Seed::new(7).stream("exponential");
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        // Four standard errors: the variance of the mean is 1/n, that of the sample variance 8/n.
        assert!((mean - 1.0).abs() < 4.0 / f64::from(n).sqrt(), "mean {mean}");
        assert!((variance - 1.0).abs() < 4.0 * (8.0 / f64::from(n)).sqrt(), "variance {variance}");
    }
}
