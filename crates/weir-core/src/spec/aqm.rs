//! Active queue management: what drops or marks before a queue is full.

use serde::{Deserialize, Serialize};

use crate::error::SpecError;
use crate::units::{Bytes, Span};

/// Most queues of [`FqCodel`].
pub const MAX_FLOW_QUEUES: u32 = 1 << 16;

/// An active queue management.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Aqm {
    /// See [`Codel`].
    Codel(Codel),
    /// See [`FqCodel`].
    FqCodel(FqCodel),
    /// See [`Pie`].
    Pie(Pie),
}

/// Drops when frames have waited for longer than `target_ps` all through `interval_ps`. See [`crate::queue::codel`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codel {
    /// The wait that may stand.
    pub target_ps: Span,
    /// For how long it may be exceeded; about the greatest round-trip time.
    pub interval_ps: Span,
    /// Whether ECN-capable frames are marked instead of dropped.
    pub ecn: bool,
}

/// Flows in queues of their own, served in turn, each under CoDel. See [`crate::queue::fq_codel`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqCodel {
    /// As [`Codel::target_ps`].
    pub target_ps: Span,
    /// As [`Codel::interval_ps`].
    pub interval_ps: Span,
    /// As [`Codel::ecn`].
    pub ecn: bool,
    /// How many queues there are; a hash of the flow chooses one.
    pub queues: u32,
    /// What a queue may send in its turn.
    pub quantum_bytes: Bytes,
}

/// Drops what arrives with a probability that a proportional integral controller sets. See [`crate::queue::pie`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pie {
    /// The wait that the controller aims at.
    pub target_ps: Span,
    /// How often it sets the probability.
    pub update_ps: Span,
    /// How long a burst may last before anything is dropped.
    pub max_burst_ps: Span,
    /// Weight of the distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the change of the wait, 1/s.
    pub beta: f64,
    /// Whether ECN-capable frames are marked instead of dropped, while few are.
    pub ecn: bool,
}

impl Aqm {
    /// Whether it marks ECN-capable frames.
    pub fn marks(&self) -> bool {
        match self {
            Aqm::Codel(codel) => codel.ecn,
            Aqm::FqCodel(fq) => fq.ecn,
            Aqm::Pie(pie) => pie.ecn,
        }
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Aqm::Codel(Codel { target_ps, interval_ps, .. }) => check_codel(*target_ps, *interval_ps),
            Aqm::FqCodel(fq) => {
                check_codel(fq.target_ps, fq.interval_ps)?;
                if !(1..=MAX_FLOW_QUEUES).contains(&fq.queues) {
                    let message = format!("1 to {MAX_FLOW_QUEUES} queues (got {})", fq.queues);
                    return Err(SpecError::new("/queues", message));
                }
                if fq.quantum_bytes == Bytes::ZERO {
                    return Err(SpecError::new("/quantum_bytes", "a turn is more than 0 B (got 0)"));
                }
                Ok(())
            }
            Aqm::Pie(pie) => {
                above_zero("/target_ps", pie.target_ps)?;
                if pie.update_ps < LEAST_UPDATE {
                    let message = format!("at least {LEAST_UPDATE} (got {})", pie.update_ps);
                    return Err(SpecError::new("/update_ps", message));
                }
                for (at, weight) in [("/alpha", pie.alpha), ("/beta", pie.beta)] {
                    if !(0.0..=MAX_WEIGHT).contains(&weight) {
                        let message = format!("a number from 0 to {MAX_WEIGHT} (got {weight})");
                        return Err(SpecError::new(at, message));
                    }
                }
                Ok(())
            }
        }
    }
}

/// So that a run of days does not do nothing but update.
const LEAST_UPDATE: Span = Span::from_us(1);
const MAX_WEIGHT: f64 = 1e6;

fn check_codel(target: Span, interval: Span) -> Result<(), SpecError> {
    above_zero("/target_ps", target)?;
    if interval < target {
        let message = format!("at least the target, {target} (got {interval})");
        return Err(SpecError::new("/interval_ps", message));
    }
    Ok(())
}

fn above_zero(at: &str, span: Span) -> Result<(), SpecError> {
    if span > Span::ZERO { Ok(()) } else { Err(SpecError::new(at, "a time above 0 s (got 0 s)")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODEL: Codel = Codel { target_ps: Span::from_ms(5), interval_ps: Span::from_ms(100), ecn: false };

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let place = |aqm: Aqm| aqm.check().expect_err("it makes no sense").pointer;
        assert_eq!(place(Aqm::Codel(Codel { target_ps: Span::ZERO, ..CODEL })), "/target_ps");
        assert_eq!(place(Aqm::Codel(Codel { interval_ps: Span::from_ms(4), ..CODEL })), "/interval_ps");
        let fq = FqCodel {
            target_ps: CODEL.target_ps,
            interval_ps: CODEL.interval_ps,
            ecn: true,
            queues: 1,
            quantum_bytes: Bytes::new(1514),
        };
        assert_eq!(place(Aqm::FqCodel(FqCodel { queues: 0, ..fq })), "/queues");
        assert_eq!(place(Aqm::FqCodel(FqCodel { quantum_bytes: Bytes::ZERO, ..fq })), "/quantum_bytes");
        let pie = Pie {
            target_ps: Span::from_ms(15),
            update_ps: Span::from_ms(15),
            max_burst_ps: Span::from_ms(150),
            alpha: 0.125,
            beta: 1.25,
            ecn: false,
        };
        assert_eq!(place(Aqm::Pie(Pie { target_ps: Span::ZERO, ..pie })), "/target_ps");
        assert_eq!(place(Aqm::Pie(Pie { update_ps: Span::ZERO, ..pie })), "/update_ps");
        assert_eq!(place(Aqm::Pie(Pie { alpha: f64::NAN, ..pie })), "/alpha");
        assert_eq!(place(Aqm::Pie(Pie { beta: -1.0, ..pie })), "/beta");
        for aqm in [Aqm::Codel(CODEL), Aqm::FqCodel(fq), Aqm::Pie(pie)] {
            assert_eq!(aqm.check(), Ok(()));
            let json = serde_json::to_string(&aqm).expect("it has text keys only");
            assert_eq!(serde_json::from_str::<Aqm>(&json).expect("the same again"), aqm);
        }
    }
}
