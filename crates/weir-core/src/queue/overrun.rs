//! What a full queue costs before it: a ring of frames at an input, in front of the queue, overruns.

use crate::rng::Stream;
use crate::spec;

/// An input that loses a run of frames after the queue behind it was full.
///
/// A frame that the queue has no room for starts a run with some probability. Runs have geometric lengths; an overflow
/// during a run changes nothing, which for this law is the same as starting again. What is lost never comes to the queue,
/// whose counters do not see it.
///
/// Draws: one for each frame that the queue has no room for outside of a run, if it is not certain that it starts one; one
/// for each frame that is lost, for whether the run ends with it.
#[derive(Clone, Debug)]
pub struct Overrun {
    is_on: bool,
    /// Probability that an overflow starts a run.
    starts: f64,
    /// Probability that a run ends with a frame.
    ends: f64,
    stream: Stream,
}

impl Overrun {
    /// The input of `spec`, which has passed its check.
    pub fn new(spec: &spec::Overrun, stream: Stream) -> Overrun {
        Overrun { is_on: false, starts: spec.probability, ends: 1.0 / spec.mean_frames, stream }
    }

    /// The queue had no room for a frame.
    pub fn overflowed(&mut self) {
        self.is_on = self.is_on || self.starts >= 1.0 || self.stream.open_unit() < self.starts;
    }

    /// Whether the next frame of the input is lost.
    #[inline]
    pub fn loses(&mut self) -> bool {
        if !self.is_on {
            return false;
        }
        self.is_on = self.stream.open_unit() >= self.ends;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn overrun(mean_frames: f64) -> Overrun {
        starting(1.0, mean_frames)
    }

    fn starting(probability: f64, mean_frames: f64) -> Overrun {
        Overrun::new(&spec::Overrun { inputs: vec![0], probability, mean_frames }, Seed::new(5).stream("overrun"))
    }

    /// Frames lost after one overflow.
    fn lost(overrun: &mut Overrun) -> u64 {
        overrun.overflowed();
        (0..).find(|_| !overrun.loses()).unwrap_or(0)
    }

    #[test]
    fn nothing_is_lost_before_an_overflow() {
        let mut overrun = overrun(100.0);
        assert!(!(0..1000).any(|_| overrun.loses()));
    }

    #[test]
    fn runs_are_geometric() {
        let mut overrun = overrun(40.0);
        let runs: Vec<f64> = (0..10_000).map(|_| lost(&mut overrun) as f64).collect();
        let n = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / n;
        // A geometric length of mean m has the standard deviation sqrt(m (m - 1)); four standard errors.
        assert!((mean - 40.0).abs() < 4.0 * (40.0f64 * 39.0 / n).sqrt(), "{mean}");
        let longer = runs.iter().filter(|&&run| run > 40.0).count() as f64 / n;
        let expected = (0..40).fold(1.0, |left, _| left * (1.0 - 1.0 / 40.0));
        assert!((longer - expected).abs() < 4.0 * (expected * (1.0 - expected) / n).sqrt(), "{longer}");
    }

    #[test]
    fn an_overflow_starts_a_run_as_often_as_its_probability_says() {
        let mut overrun = starting(0.1, 1.0);
        let runs = (0..10_000).filter(|_| lost(&mut overrun) == 1).count() as f64;
        // Binomial: four standard deviations.
        assert!((runs - 1000.0).abs() < 4.0 * (10_000.0f64 * 0.1 * 0.9).sqrt(), "{runs}");
    }

    #[test]
    fn a_mean_of_one_frame_loses_one() {
        let mut overrun = overrun(1.0);
        assert!((0..100).all(|_| lost(&mut overrun) == 1));
    }
}
