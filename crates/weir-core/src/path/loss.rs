//! Frames lost at random, before or behind a queue: independently, or in bursts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{SpecError, check_probability};
use crate::rng::Stream;

/// How frames are lost at random. Probabilities are per frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossModel {
    /// No frame is.
    #[default]
    None,
    /// Each frame for itself.
    Random {
        /// In [0, 1].
        probability: f64,
    },
    /// The Gilbert-Elliott channel: a good and a bad state with loss probabilities of their own, between which the
    /// channel may change at each frame.
    ///
    /// In the mean the share `to_bad` / (`to_bad` + `to_good`) of the frames meets the bad state, in runs of
    /// 1 / `to_good` frames. Source: Gilbert 1960; Elliott 1963.
    GilbertElliott {
        /// From good to bad.
        to_bad: f64,
        /// From bad to good.
        to_good: f64,
        /// Loss in the good state.
        loss_good: f64,
        /// Loss in the bad state.
        loss_bad: f64,
    },
}

impl LossModel {
    /// Share of the frames that are lost in the long run.
    pub fn mean(&self) -> f64 {
        match *self {
            LossModel::None => 0.0,
            LossModel::Random { probability } => probability,
            LossModel::GilbertElliott { loss_good, loss_bad, .. } => {
                let bad = self.bad_share();
                (1.0 - bad) * loss_good + bad * loss_bad
            }
        }
    }

    /// Whether all probabilities are such, and the channel changes at all.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        match *self {
            LossModel::None => Ok(()),
            LossModel::Random { probability } => check_probability("/probability", probability),
            LossModel::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                check_probability("/to_bad", to_bad)?;
                check_probability("/to_good", to_good)?;
                check_probability("/loss_good", loss_good)?;
                check_probability("/loss_bad", loss_bad)?;
                if to_bad + to_good > 0.0 {
                    return Ok(());
                }
                Err(SpecError::new(
                    "/to_good",
                    "a channel of two states changes between them (both probabilities are 0)",
                ))
            }
        }
    }

    /// Share of the frames that meet the bad state.
    fn bad_share(&self) -> f64 {
        match *self {
            LossModel::GilbertElliott { to_bad, to_good, .. } => to_bad / (to_bad + to_good),
            LossModel::None | LossModel::Random { .. } => 0.0,
        }
    }
}

/// A channel that loses frames: asked once for each frame.
///
/// Draws: for independent losses one per frame; for the channel of two states one before the first frame (its state,
/// in the proportion of the long run), then for each frame one for its loss and one for the state that the next frame
/// meets.
#[derive(Clone, Debug)]
pub struct Loss {
    model: LossModel,
    bad: bool,
    stream: Stream,
}

impl Loss {
    /// A channel with chance from `stream`. The model has passed [`LossModel::check`].
    pub fn new(model: LossModel, mut stream: Stream) -> Loss {
        let bad = matches!(model, LossModel::GilbertElliott { .. }) && stream.open_unit() < model.bad_share();
        Loss { model, bad, stream }
    }

    /// Whether the next frame is lost.
    #[inline]
    pub fn lose(&mut self) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Random { probability } => self.stream.open_unit() < probability,
            LossModel::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let lost = self.stream.open_unit() < if self.bad { loss_bad } else { loss_good };
                let change = if self.bad { to_good } else { to_bad };
                self.bad ^= self.stream.open_unit() < change;
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn losses(model: LossModel, frames: usize) -> Vec<bool> {
        let mut loss = Loss::new(model, Seed::new(3).stream("loss"));
        (0..frames).map(|_| loss.lose()).collect()
    }

    fn share(losses: &[bool]) -> f64 {
        losses.iter().filter(|&&lost| lost).count() as f64 / losses.len() as f64
    }

    #[test]
    fn independent_losses_are_as_many_as_they_should_be_and_do_not_cluster() {
        let (p, n) = (0.02, 200_000);
        let lost = losses(LossModel::Random { probability: p }, n);
        // Four standard deviations of a binomial share; of pairs, of a share p^2 (dependence of neighbours is small).
        assert!((share(&lost) - p).abs() < 4.0 * (p * (1.0 - p) / n as f64).sqrt());
        let pairs: Vec<bool> = lost.windows(2).map(|pair| pair[0] && pair[1]).collect();
        assert!((share(&pairs) - p * p).abs() < 5.0 * (p * p / n as f64).sqrt());
    }

    #[test]
    fn bursts_have_the_mean_and_the_length_of_their_theory() {
        let model = LossModel::GilbertElliott { to_bad: 0.002, to_good: 0.1, loss_good: 0.0, loss_bad: 1.0 };
        assert!((model.mean() - 0.002 / 0.102).abs() < 1e-12);
        let lost = losses(model, 500_000);
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let length = lost.iter().filter(|&&lost| lost).count() as f64 / bursts;
        // About 1000 bursts of geometric length: mean 10, standard deviation 9.5; four standard errors.
        assert!((length - 10.0).abs() < 4.0 * 9.5 / bursts.sqrt(), "mean burst {length}");
        // The share's relative error is about sqrt(2 / bursts).
        assert!((share(&lost) / model.mean() - 1.0).abs() < 4.0 * (2.0 / bursts).sqrt(), "{}", share(&lost));
    }

    #[test]
    fn a_channel_of_two_equal_states_loses_independently() {
        let model = LossModel::GilbertElliott { to_bad: 0.3, to_good: 0.1, loss_good: 0.05, loss_bad: 0.05 };
        let n = 100_000;
        assert!((share(&losses(model, n)) - 0.05).abs() < 4.0 * (0.05 * 0.95 / n as f64).sqrt());
    }

    #[test]
    fn the_first_frame_meets_the_bad_state_as_often_as_any_other() {
        let model = LossModel::GilbertElliott { to_bad: 0.01, to_good: 0.03, loss_good: 0.0, loss_bad: 1.0 };
        let first = |seed| Loss::new(model, Seed::new(seed).stream("loss")).lose();
        let lost = (0..4000).filter(|&seed| first(seed)).count() as f64 / 4000.0;
        assert!((lost - 0.25).abs() < 4.0 * (0.25 * 0.75 / 4000.0_f64).sqrt(), "{lost}");
    }

    #[test]
    fn no_loss_loses_nothing_and_full_loss_all() {
        assert!(!losses(LossModel::None, 100).contains(&true));
        assert!(!losses(LossModel::Random { probability: 0.0 }, 100).contains(&true));
        assert!(!losses(LossModel::Random { probability: 1.0 }, 100).contains(&false));
    }

    #[test]
    fn what_is_no_probability_is_refused_with_its_place() {
        let wrong = LossModel::GilbertElliott { to_bad: 0.1, to_good: 1.5, loss_good: 0.0, loss_bad: 1.0 };
        assert_eq!(wrong.check().expect_err("1.5 is none").pointer, "/to_good");
        let stuck = LossModel::GilbertElliott { to_bad: 0.0, to_good: 0.0, loss_good: 0.0, loss_bad: 1.0 };
        assert!(stuck.check().is_err());
        assert!(LossModel::Random { probability: f64::NAN }.check().is_err());
        assert!(LossModel::Random { probability: 1.0 }.check().is_ok());
    }
}
