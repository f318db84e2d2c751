//! A queue discipline that Weirlab does not have, in a crate of its own: what waited too long is dropped instead of sent.
//!
//! [`Management`] is asked about each frame when it comes and when it would leave. [`parts`] gives it a name, under which queues of a spec ask
//! for it; limits, counters and queues for traffic classes are Weirlab's.

use weir_core::SpecError;
use weir_core::queue::{Custom, Management, Managements, Queued, Verdict, Waits};
use weir_core::spec::aqm::Aqm;
use weir_core::spec::{Discipline, Limit, Spec};
use weir_core::units::{Span, Time};
use weir_sim::{Parts, workloads};

/// Drops frames that waited for longer than this.
#[derive(Debug)]
pub struct Deadline {
    most: Span,
}

impl Deadline {
    /// With the setting `most_us`.
    ///
    /// # Errors
    /// A setting is missing, unknown or below 0.
    pub fn new(custom: &Custom) -> Result<Deadline, SpecError> {
        if let Some(other) = custom.settings.keys().find(|name| *name != "most_us") {
            return Err(SpecError::new(format!("/settings/{other}"), format!("'most_us' (got '{other}')")));
        }
        match custom.settings.get("most_us") {
            Some(&most) if most >= 0.0 => Ok(Deadline { most: Span::from_ps((most * 1e6) as u64) }),
            Some(most) => Err(SpecError::new("/settings/most_us", format!("a time of at least 0 us (got {most})"))),
            None => Err(SpecError::new("/settings", "'most_us' is missing")),
        }
    }
}

impl Management for Deadline {
    fn on_departure(&mut self, now: Time, frame: &Queued, _: Waits) -> Verdict {
        if now - frame.since > self.most { Verdict::Drop } else { Verdict::Pass }
    }
}

/// The parts of this program.
pub fn parts() -> Parts {
    let managements = Managements::new().add("deadline", |custom, _| Ok(Box::new(Deadline::new(custom)?)));
    Parts { managements, ..Parts::default() }
}

/// Four hosts send to a fifth nearly twice what its link carries; the queues of the switch have this management and room for 150 kB.
pub fn incast(aqm: Aqm) -> Spec {
    let mut spec = workloads::incast();
    let limit = Limit::Bytes(weir_core::units::Bytes::new(150_000));
    spec.queues[0].discipline = Discipline::Managed { limit, aqm };
    spec
}
