//! The rate from which on the queueing delay only grows.

use super::estimate::{Estimate, Terms};
use super::sample::{Step, delays};

/// Delays that differ by this part of the tolerance are equal: the later one counts.
const SAME: f64 = 10.0;

/// Walks back from the end of the stream for as long as the delay stays within the tolerance of the least one met; where
/// that one is, the queue began to grow. If it is not higher at the end, nothing grew.
pub(super) fn estimate(steps: &[Step], tolerance: f64, tolerance_gaps: f64, terms: &Terms) -> Estimate {
    let delay = delays(steps);
    let shortest = steps.iter().map(|step| step.send_gap).fold(f64::INFINITY, f64::min);
    let tolerance = tolerance.max(tolerance_gaps * shortest);
    let mut turn = delay.len() - 1;
    for (place, &value) in delay.iter().enumerate().rev() {
        if value > delay[turn] + tolerance {
            break;
        }
        if value < delay[turn] - tolerance / SAME {
            turn = place;
        }
    }
    let end = delay[(delay.len() - 3).max(turn)..].iter().fold(f64::NEG_INFINITY, |most, &value| most.max(value));
    if end - delay[turn] <= tolerance {
        return terms.nothing_grew();
    }
    // The step before the delay of sample `turn`, or the first one.
    terms.grew(steps[turn.saturating_sub(1)].rate(), turn, steps.len() - turn)
}
