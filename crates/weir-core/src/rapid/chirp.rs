//! Estimates from excursions of the queueing delay, as pathChirp makes them.

use super::estimate::{Estimate, Terms};
use super::sample::{Step, delays};

/// Each step gets an estimate of its own: its rate where the delay grows within a valid excursion, the rate at which the
/// last excursion began from there on if it does not end, and the same (or the highest rate) elsewhere. Their mean is
/// weighted by the send gaps.
///
/// Source: Ribeiro 2003, 2.
pub(super) fn estimate(steps: &[Step], factor: f64, valid: usize, terms: &Terms) -> Estimate {
    let delay = delays(steps);
    let grows = |k: usize| delay[k] < delay[k + 1];
    let mut own: Vec<Option<f64>> = vec![None; steps.len()];
    let (mut first, mut last) = (None, None);
    let mut start = 0;
    while let Some(from) = (start..steps.len()).find(|&k| grows(k)) {
        let mut most = 0.0_f64;
        let end = (from + 1..delay.len()).find(|&j| {
            let height = delay[j] - delay[from];
            most = most.max(height);
            height < most / factor
        });
        let Some(end) = end else {
            if steps.len() - from >= valid {
                own[from..].fill(Some(steps[from].rate()));
                last = Some(from);
                first.get_or_insert(from);
            }
            break;
        };
        if end - from >= valid {
            for k in (from..end).filter(|&k| grows(k)) {
                own[k] = Some(steps[k].rate());
            }
            first.get_or_insert(from);
        }
        start = end;
    }
    let high = terms.high.bps() as f64;
    let elsewhere = last.map_or(high, |from| steps[from].rate());
    let (mut sum, mut time) = (0.0, 0.0);
    for (step, own) in steps.iter().zip(&own) {
        sum += own.unwrap_or(elsewhere).min(high) * step.send_gap;
        time += step.send_gap;
    }
    match first {
        Some(start) if time > 0.0 => terms.grew(sum / time, start, steps.len() - start),
        _ => terms.nothing_grew(),
    }
}
