//! Active queue management: what drops or marks before a queue is full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Marking;
use crate::custom::Custom;
use crate::error::{SpecError, among, refuse, some_time};
use crate::units::{Bytes, Span};

/// Most queues of [`FqCodel`].
pub(crate) const MAX_FLOW_QUEUES: u32 = 1 << 16;

/// An active queue management.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Aqm {
    /// See [`Codel`].
    Codel(Codel),
    /// See [`FqCodel`].
    FqCodel(FqCodel),
    /// See [`Pie`].
    Pie(Pie),
    /// See [`Red`].
    Red(Red),
    /// Marks by how much waits; see [`crate::marking`].
    Threshold(Marking),
    /// See [`DualPi2`].
    DualPi2(DualPi2),
    /// One that the program has besides these; see [`crate::queue::Managements`].
    Custom(Custom),
}

/// Drops when frames have waited for longer than `target_ps` all through `interval_ps`. See [`crate::queue::aqm::codel`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Codel {
    /// The wait that may stand.
    pub target_ps: Span,
    /// For how long it may be exceeded; about the greatest round-trip time.
    pub interval_ps: Span,
    /// Whether ECN-capable frames are marked instead of dropped.
    pub ecn: bool,
}

impl Codel {
    /// The parameters of RFC 8289.
    pub const RFC_8289: Codel = Codel { target_ps: Span::from_ms(5), interval_ps: Span::from_ms(100), ecn: false };
}

/// Flows in queues of their own, served in turn, each under CoDel. See [`crate::queue::aqm::fq_codel`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl FqCodel {
    /// The parameters of RFC 8290, without its marks.
    pub const RFC_8290: FqCodel = FqCodel {
        target_ps: Codel::RFC_8289.target_ps,
        interval_ps: Codel::RFC_8289.interval_ps,
        ecn: false,
        queues: 1024,
        quantum_bytes: Bytes::new(1514),
    };
}

/// Drops what arrives with a probability that a proportional integral controller sets. See [`crate::queue::aqm::pie`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl Pie {
    /// The parameters of RFC 8033.
    pub const RFC_8033: Pie = Pie {
        target_ps: Span::from_ms(15),
        update_ps: Span::from_ms(15),
        max_burst_ps: Span::from_ms(150),
        alpha: 0.125,
        beta: 1.25,
        ecn: false,
    };
}

/// Drops what arrives by chance, the more likely the longer the queue was on average. See [`crate::queue::aqm::red`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Average below which nothing is dropped.
    pub min_bytes: Bytes,
    /// Average from which on everything is.
    pub max_bytes: Bytes,
    /// Probability just below the upper threshold.
    pub p_max: f64,
    /// Weight of what waits now in the average, above 0 and at most 1; 1: there is no average.
    pub weight: f64,
    /// What a frame takes: the average decays with as many frames while nothing waits; 0: it stands still.
    pub idle_ps: Span,
    /// Whether the probability grows on to 1 at twice the upper threshold.
    pub gentle: bool,
    /// Whether ECN-capable frames are marked instead of dropped.
    pub ecn: bool,
}

/// Two queues, one for frames whose senders answer marks in proportion, with coupled marks. See
/// [`crate::queue::aqm::dual_pi2`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DualPi2 {
    /// The wait that the controller aims at in the queue of the others.
    pub target_ps: Span,
    /// How often it sets the probability.
    pub update_ps: Span,
    /// Weight of the distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the change of the wait, 1/s.
    pub beta: f64,
    /// By how much more likely marks are than drops, before these are squared: k.
    pub coupling: f64,
    /// The wait in the first queue above which it marks by itself.
    pub ramp_start_ps: Span,
    /// By how much more all are marked; 0: a step.
    pub ramp_range_ps: Span,
    /// Frames that may be left in the first queue without marks of its own.
    pub ramp_frames: u64,
    /// Which queue sends next.
    pub scheduler: DualScheduler,
}

impl DualPi2 {
    /// The defaults of RFC 9332.
    pub const RFC_9332: DualPi2 = DualPi2 {
        target_ps: Span::from_ms(15),
        update_ps: Span::from_ms(15),
        alpha: 0.15,
        beta: 3.0,
        coupling: 2.0,
        ramp_start_ps: Span::from_us(800),
        ramp_range_ps: Span::from_us(400),
        ramp_frames: 1,
        scheduler: DualScheduler::Wrr { classic: 0.1 },
    };
}

/// Which of two queues sends next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DualScheduler {
    /// The first one, but for a share of the bytes while both wait.
    Wrr {
        /// Share of the second one.
        classic: f64,
    },
    /// The one whose first frame has waited longer, if that of the second has come so much later than it did.
    TimeShiftedFifo {
        /// How much.
        shift_ps: Span,
    },
}

impl Aqm {
    /// Whether it marks ECN-capable frames.
    pub fn marks(&self) -> bool {
        match self {
            Aqm::Codel(codel) => codel.ecn,
            Aqm::FqCodel(fq) => fq.ecn,
            Aqm::Pie(pie) => pie.ecn,
            Aqm::Red(red) => red.ecn,
            Aqm::Threshold(_) | Aqm::DualPi2(_) | Aqm::Custom(_) => true,
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
                refuse!(fq.quantum_bytes == Bytes::ZERO, "/quantum_bytes", "a turn is more than 0 B (got 0)");
                Ok(())
            }
            Aqm::Pie(pie) => {
                some_time("/target_ps", pie.target_ps)?;
                check_controller(pie.update_ps, pie.alpha, pie.beta)
            }
            Aqm::Red(red) => {
                if red.max_bytes <= red.min_bytes {
                    let message = format!("above the lower threshold, {} (got {})", red.min_bytes, red.max_bytes);
                    return Err(SpecError::new("/max_bytes", message));
                }
                among("/p_max", red.p_max, 0.0..=1.0)?;
                among("/weight", red.weight, LEAST_WEIGHT..=1.0)
            }
            Aqm::Threshold(marking) => marking.check(),
            Aqm::DualPi2(dual) => dual.check(),
            Aqm::Custom(_) => Ok(()),
        }
    }
}

impl DualPi2 {
    fn check(&self) -> Result<(), SpecError> {
        some_time("/target_ps", self.target_ps)?;
        check_controller(self.update_ps, self.alpha, self.beta)?;
        among("/coupling", self.coupling, 1.0..=MAX_COUPLING)?;
        match self.scheduler {
            DualScheduler::Wrr { classic } => among("/scheduler/classic", classic, LEAST_SHARE..=1.0 - LEAST_SHARE),
            DualScheduler::TimeShiftedFifo { .. } => Ok(()),
        }
    }
}

/// So that a run of days does not do nothing but update.
const LEAST_UPDATE: Span = Span::from_us(1);
const MAX_WEIGHT: f64 = 1e6;
/// So that an average is one.
const LEAST_WEIGHT: f64 = 1e-9;
const MAX_COUPLING: f64 = 1e3;
/// So that no queue waits forever.
const LEAST_SHARE: f64 = 1e-3;

fn check_controller(update: Span, alpha: f64, beta: f64) -> Result<(), SpecError> {
    refuse!(update < LEAST_UPDATE, "/update_ps", "at least {LEAST_UPDATE} (got {update})");
    among("/alpha", alpha, 0.0..=MAX_WEIGHT)?;
    among("/beta", beta, 0.0..=MAX_WEIGHT)
}

fn check_codel(target: Span, interval: Span) -> Result<(), SpecError> {
    some_time("/target_ps", target)?;
    refuse!(interval < target, "/interval_ps", "at least the target, {target} (got {interval})");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MarkingTime;

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let (codel, fq, pie, dual) = (Codel::RFC_8289, FqCodel::RFC_8290, Pie::RFC_8033, DualPi2::RFC_9332);
        let place = |aqm: Aqm| aqm.check().expect_err("it makes no sense").pointer;
        assert_eq!(place(Aqm::Codel(Codel { target_ps: Span::ZERO, ..codel })), "/target_ps");
        assert_eq!(place(Aqm::Codel(Codel { interval_ps: Span::from_ms(4), ..codel })), "/interval_ps");
        assert_eq!(place(Aqm::FqCodel(FqCodel { queues: 0, ..fq })), "/queues");
        assert_eq!(place(Aqm::FqCodel(FqCodel { quantum_bytes: Bytes::ZERO, ..fq })), "/quantum_bytes");
        assert_eq!(place(Aqm::Pie(Pie { target_ps: Span::ZERO, ..pie })), "/target_ps");
        assert_eq!(place(Aqm::Pie(Pie { update_ps: Span::ZERO, ..pie })), "/update_ps");
        assert_eq!(place(Aqm::Pie(Pie { alpha: f64::NAN, ..pie })), "/alpha");
        assert_eq!(place(Aqm::Pie(Pie { beta: -1.0, ..pie })), "/beta");
        let red = Red {
            min_bytes: Bytes::new(5),
            max_bytes: Bytes::new(15),
            p_max: 0.1,
            weight: 0.002,
            idle_ps: Span::ZERO,
            gentle: true,
            ecn: false,
        };
        assert_eq!(place(Aqm::Red(Red { max_bytes: Bytes::new(5), ..red })), "/max_bytes");
        assert_eq!(place(Aqm::Red(Red { p_max: 1.1, ..red })), "/p_max");
        assert_eq!(place(Aqm::Red(Red { weight: 0.0, ..red })), "/weight");
        assert_eq!(Aqm::Red(red).check(), Ok(()));
        let threshold = Marking {
            k_min_bytes: Bytes::new(30_000),
            k_max_bytes: Bytes::new(30_000),
            p_max: 1.0,
            when: MarkingTime::Arrival,
        };
        assert_eq!(place(Aqm::Threshold(Marking { k_min_bytes: Bytes::new(30_001), ..threshold })), "/k_max_bytes");
        assert_eq!(place(Aqm::Threshold(Marking { p_max: 1.5, ..threshold })), "/p_max");
        assert_eq!(place(Aqm::DualPi2(DualPi2 { target_ps: Span::ZERO, ..dual })), "/target_ps");
        assert_eq!(place(Aqm::DualPi2(DualPi2 { update_ps: Span::ZERO, ..dual })), "/update_ps");
        assert_eq!(place(Aqm::DualPi2(DualPi2 { coupling: 0.5, ..dual })), "/coupling");
        let all = DualScheduler::Wrr { classic: 1.0 };
        assert_eq!(place(Aqm::DualPi2(DualPi2 { scheduler: all, ..dual })), "/scheduler/classic");
        let fifo = DualScheduler::TimeShiftedFifo { shift_ps: Span::from_ms(50) };
        let others = [Aqm::Threshold(threshold), Aqm::DualPi2(DualPi2 { scheduler: fifo, ..dual })];
        for aqm in [Aqm::Codel(codel), Aqm::FqCodel(fq), Aqm::Pie(pie), Aqm::DualPi2(dual)].into_iter().chain(others) {
            assert_eq!(aqm.check(), Ok(()));
            let json = serde_json::to_string(&aqm).expect("it has text keys only");
            assert_eq!(serde_json::from_str::<Aqm>(&json).expect("the same again"), aqm);
        }
    }
}
