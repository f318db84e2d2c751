//! Estimates from gaps that grow on the way: one by one, or smoothed.

use super::estimate::{Estimate, Terms};
use super::sample::Step;

/// The rate before the first run of `valid` steps whose receive gap exceeds the send gap by more than `epsilon`, each
/// step being the sum of `sum` successive ones; the one that was asked for, if `scheduled`.
pub(super) fn first(
    steps: &[Step],
    epsilon: f64,
    valid: usize,
    sum: usize,
    scheduled: bool,
    terms: &Terms,
) -> Estimate {
    let steps = summed(steps, sum);
    let mut run = 0;
    for (place, step) in steps.iter().enumerate() {
        run = if step.recv_gap > step.send_gap + epsilon { run + 1 } else { 0 };
        if run == valid {
            let start = place + 1 - valid;
            let length = run_from(&steps, start, epsilon);
            let before = steps[start.saturating_sub(1)];
            let rate = if scheduled { before.asked_rate() } else { before.rate() };
            return terms.grew(rate, start, length);
        }
    }
    terms.nothing_grew()
}

/// The rate before the run of at least `valid` steps that lasts to the end of the stream, of gaps of which what came
/// before keeps `weight`.
///
/// A queue that drains makes the first receive gaps too short, so none is taken for less than `weight` of its send gap.
pub(super) fn last_of_smoothed(steps: &[Step], weight: f64, epsilon: f64, valid: usize, terms: &Terms) -> Estimate {
    let mut smooth: Vec<Step> = Vec::with_capacity(steps.len());
    for &step in steps {
        let blend = |before: f64, now: f64| weight * before + (1.0 - weight) * now;
        smooth.push(match smooth.last() {
            None => Step { recv_gap: step.recv_gap.max(weight * step.send_gap), ..step },
            Some(last) => Step {
                asked_gap: blend(last.asked_gap, step.asked_gap),
                send_gap: blend(last.send_gap, step.send_gap),
                recv_gap: blend(last.recv_gap, step.recv_gap),
                bits: blend(last.bits, step.bits),
            },
        });
    }
    let calm = |step: &Step| step.recv_gap <= step.send_gap + epsilon;
    let start = smooth.iter().rposition(calm).map_or(0, |last_calm| last_calm + 1);
    let length = smooth.len() - start;
    if length < valid {
        return terms.nothing_grew();
    }
    terms.grew(smooth[start.saturating_sub(1)].rate(), start, length)
}

fn run_from(steps: &[Step], start: usize, epsilon: f64) -> usize {
    steps[start..].iter().take_while(|step| step.recv_gap > step.send_gap + epsilon).count()
}

fn summed(steps: &[Step], sum: usize) -> Vec<Step> {
    let add = |window: &[Step]| Step {
        asked_gap: window.iter().map(|step| step.asked_gap).sum(),
        send_gap: window.iter().map(|step| step.send_gap).sum(),
        recv_gap: window.iter().map(|step| step.recv_gap).sum(),
        bits: window.iter().map(|step| step.bits).sum(),
    };
    steps.windows(sum).map(add).collect()
}
