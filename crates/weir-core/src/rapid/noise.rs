//! Noise that receivers put on arrivals, and how it is taken away before an estimate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample::{Sample, Step, delays};
use crate::error::{SpecError, some_time};
use crate::units::Span;

/// What is done about arrivals that a receiver has gathered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Denoising {
    /// Nothing.
    None {},
    /// Gaps are averaged from one spike to the next.
    ///
    /// A gap between arrivals is a spike when it exceeds the one before by `rise` and the one behind by `fall`: packets
    /// waited there for an interrupt. What lies behind the last spike of a stream is carried into the next one, which
    /// begins with the rest of that batch; of a stream that follows no other, what lies before its first spike is left
    /// out.
    ///
    /// Source: Yin 2014, IV; Rapid UDP, the later pages of its authors.
    Spikes {
        /// 30 us in the original.
        rise_ps: Span,
        /// 20 us there.
        fall_ps: Span,
    },
    /// Of packets that arrive within `within` of each other only the last one is kept: the one that was held the least.
    Batches {
        /// Less than the time of a packet on the link.
        within_ps: Span,
    },
}

impl Denoising {
    /// The steps of a stream without the noise, and by how much longer than the first sample that at the beginning of
    /// the first step was under way, s.
    pub(super) fn steps(&self, samples: &[Sample]) -> (Vec<Step>, f64) {
        self.steps_after(&mut Vec::new(), samples)
    }

    /// The same of a stream that follows one which left `carried`; what it leaves stands there afterwards.
    pub(super) fn steps_after(&self, carried: &mut Vec<Sample>, samples: &[Sample]) -> (Vec<Step>, f64) {
        match *self {
            Denoising::None {} => (Step::all(samples), 0.0),
            Denoising::Spikes { rise_ps, fall_ps } => {
                let before = carried.len();
                carried.extend_from_slice(samples);
                let averaged = averaged(carried, before, rise_ps.as_secs_f64(), fall_ps.as_secs_f64());
                carried.drain(..averaged.used);
                (averaged.steps, averaged.offset)
            }
            Denoising::Batches { within_ps } => {
                let kept = last_of_batches(samples, within_ps);
                let longer = match (samples.first(), kept.first()) {
                    (Some(first), Some(kept)) => {
                        (kept.received - first.received).as_secs_f64() - (kept.sent - first.sent).as_secs_f64()
                    }
                    _ => 0.0,
                };
                (Step::all(&kept), longer)
            }
        }
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        match *self {
            Denoising::Batches { within_ps } => some_time("/within_ps", within_ps),
            _ => Ok(()),
        }
    }
}

/// A stream whose gaps were averaged.
struct Averaged {
    steps: Vec<Step>,
    /// See [`Denoising::steps`].
    offset: f64,
    /// Samples that the next stream does not need.
    used: usize,
}

/// The steps of a stream, of which the first `before` samples are what the stream before it left: from its last spike on.
fn averaged(samples: &[Sample], before: usize, rise: f64, fall: f64) -> Averaged {
    let steps = Step::all(samples);
    let is_spike = |place: usize| {
        let gap = steps[place].recv_gap;
        let earlier = place.checked_sub(1).map_or(0.0, |earlier| steps[earlier].recv_gap);
        let later = steps.get(place + 1).map_or(0.0, |step| step.recv_gap);
        (place == 0 && before > 0) || (gap > earlier + rise && gap > later + fall)
    };
    let spikes: Vec<usize> = (0..steps.len()).filter(|&place| is_spike(place)).collect();
    let last = spikes.last().copied().filter(|&last| last > 0 || before == 0);
    let used = last.unwrap_or(samples.len());
    if spikes.len() < 2 {
        return Averaged { steps: steps[before.min(steps.len())..].to_vec(), offset: 0.0, used };
    }
    let mut smooth = Vec::with_capacity(steps.len());
    // By how much the averages delay the first sample of this stream more than it was.
    let mut ahead = 0.0;
    for pair in spikes.windows(2) {
        let group = &steps[pair[0]..pair[1]];
        let mean = |of: fn(&Step) -> f64| group.iter().map(of).sum::<f64>() / group.len() as f64;
        let step = Step {
            asked_gap: mean(|step| step.asked_gap),
            send_gap: mean(|step| step.send_gap),
            recv_gap: mean(|step| step.recv_gap),
            bits: mean(|step| step.bits),
        };
        let own = pair[1].saturating_sub(before.max(pair[0]));
        smooth.extend(std::iter::repeat_n(step, own));
        ahead += (step.recv_gap - step.send_gap) * (group.len() - own) as f64;
    }
    if smooth.is_empty() {
        return Averaged { steps: steps[before.min(steps.len())..].to_vec(), offset: 0.0, used };
    }
    let offset = if before > 0 { ahead - delays(&steps)[before] } else { delays(&steps)[spikes[0]] };
    Averaged { steps: smooth, offset, used }
}

/// The last sample of each batch. The batch that the stream begins in is kept by its last sample, too.
fn last_of_batches(samples: &[Sample], within: Span) -> Vec<Sample> {
    let mut kept: Vec<Sample> = Vec::with_capacity(samples.len());
    for &sample in samples {
        match kept.last_mut() {
            Some(last) if sample.received.saturating_since(last.received) < within => {
                let wire = last.wire + sample.wire;
                *last = Sample { wire, ..sample };
            }
            _ => kept.push(sample),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Time};

    /// Packets every 20 us that a receiver takes in batches of 100 us.
    fn gathered() -> Vec<Sample> {
        let sample = |i: u64| Sample {
            due: Time::ZERO + Span::from_us(20 * i),
            sent: Time::ZERO + Span::from_us(20 * i),
            received: Time::ZERO + Span::from_us((20 * i / 100 + 1) * 100),
            wire: Bytes::new(1538),
        };
        (0..40).map(sample).collect()
    }

    #[test]
    fn averages_from_spike_to_spike_are_the_gaps_that_were_sent() {
        let spikes = Denoising::Spikes { rise_ps: Span::from_us(30), fall_ps: Span::from_us(20) };
        let (steps, longer) = spikes.steps(&gathered());
        assert!(
            (longer + 80e-6).abs() < 1e-9,
            "the last of the first batch waited 80 us less than the first: {longer}"
        );
        assert_eq!(steps.len(), 30, "six whole batches of five");
        for step in steps {
            assert!((step.recv_gap - 20e-6).abs() < 1e-9 && (step.send_gap - 20e-6).abs() < 1e-9, "{step:?}");
        }
    }

    #[test]
    fn a_batch_that_crosses_the_end_of_a_stream_is_carried_into_the_next_one() {
        let spikes = Denoising::Spikes { rise_ps: Span::from_us(30), fall_ps: Span::from_us(20) };
        let all = gathered();
        let mut carried = vec![];
        let (first, _) = spikes.steps_after(&mut carried, &all[..18]);
        // Batches end at packets 4, 9, 14 and 19: the last spike is before packet 15.
        assert_eq!((first.len(), carried.as_slice()), (10, &all[14..18]));
        let (second, longer) = spikes.steps_after(&mut carried, &all[18..]);
        // From the first packet of the stream to the last batch, and not from its first spike on.
        assert_eq!((second.len(), carried.as_slice()), (16, &all[34..]));
        for step in second {
            assert!((step.recv_gap - 20e-6).abs() < 1e-9 && (step.send_gap - 20e-6).abs() < 1e-9, "{step:?}");
        }
        // Packet 14 was held for 20 us, the last of its batch; packet 18 for 40 us.
        assert!((longer + 20e-6).abs() < 1e-9, "{longer}");
        let (alone, _) = spikes.steps(&all[18..]);
        assert_eq!(alone.len(), 15);
    }

    #[test]
    fn what_was_carried_is_left_when_batches_end() {
        let spikes = Denoising::Spikes { rise_ps: Span::from_us(30), fall_ps: Span::from_us(20) };
        let (mut carried, all) = (vec![], gathered());
        spikes.steps_after(&mut carried, &all[..18]);
        let even: Vec<Sample> =
            all[18..].iter().map(|sample| Sample { received: sample.sent + Span::from_us(50), ..*sample }).collect();
        let (steps, longer) = spikes.steps_after(&mut carried, &even);
        assert_eq!((steps, longer, carried.len()), (Step::all(&even), 0.0, 0));
    }

    #[test]
    fn the_last_of_each_batch_stands_for_all_of_them() {
        let (steps, longer) = Denoising::Batches { within_ps: Span::from_us(6) }.steps(&gathered());
        assert!((longer + 80e-6).abs() < 1e-9, "{longer}");
        assert_eq!(steps.len(), 7);
        for step in steps {
            assert!((step.recv_gap - 100e-6).abs() < 1e-9 && (step.send_gap - 100e-6).abs() < 1e-9, "{step:?}");
            assert!((step.bits - 5.0 * 1538.0 * 8.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_not_gathered_stays_as_it_is() {
        let even: Vec<Sample> =
            gathered().iter().map(|sample| Sample { received: sample.sent + Span::from_us(700), ..*sample }).collect();
        let plain = Denoising::None {}.steps(&even);
        for denoising in [
            Denoising::Spikes { rise_ps: Span::from_us(30), fall_ps: Span::from_us(20) },
            Denoising::Batches { within_ps: Span::from_us(6) },
        ] {
            assert_eq!(denoising.steps(&even), plain);
        }
    }
}
