//! Which frames a congestion point looks at: one in a mean amount of data, spread by chance.

use crate::rng::Stream;
use crate::spec::control::Sampling;
use crate::units::Bytes;

/// Counts data, and says which frame completes the distance to the next sample.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// Bytes until the next sample.
    left: f64,
    mean: f64,
    sampling: Sampling,
    stream: Stream,
}

impl Sampler {
    /// A sampler with a mean distance of `mean`, at the start of a distance.
    pub fn new(mean: Bytes, sampling: Sampling, stream: Stream) -> Sampler {
        let mut sampler = Sampler { left: 0.0, mean: mean.count() as f64, sampling, stream };
        sampler.restart(1.0);
        sampler
    }

    /// Counts a frame; whether it is a sample. After a sample [`Sampler::restart`] is due.
    #[inline]
    pub fn count(&mut self, size: Bytes) -> bool {
        if let Sampling::PerFrame = self.sampling {
            return self.stream.open_unit() * self.left < size.count() as f64;
        }
        self.left -= size.count() as f64;
        self.left <= 0.0
    }

    /// Begins a distance of `share` of the mean. What the last sample overshot its distance by is made up for, so
    /// that the mean is exact.
    pub fn restart(&mut self, share: f64) {
        let mean = self.mean * share;
        match self.sampling {
            Sampling::Uniform { jitter } => {
                let spread = if jitter > 0.0 { 1.0 + jitter * (2.0 * self.stream.open_unit() - 1.0) } else { 1.0 };
                self.left = self.left.min(0.0) + mean * spread;
            }
            Sampling::Exponential => self.left = self.left.min(0.0) + mean * self.stream.exponential(),
            Sampling::PerFrame => self.left = mean,
        }
    }
}
