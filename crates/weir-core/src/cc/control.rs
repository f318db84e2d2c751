//! What a controller is, and how it is made.

use std::fmt;
use std::sync::Arc;

use crate::cc::{Allowance, Answer, Metrics, Needs, Path, SenderEvent};
use crate::custom::{Custom, Makers};
use crate::error::SpecError;
use crate::rapid::LogWriter;
use crate::rng::{Seed, Stream};
use crate::tcp::{self, EcnSupport};
use crate::units::Time;

/// What sets a sender's window and rate.
///
/// *Report an event, then ask for the allowance.* Only the first two methods are needed; a controller that answers marks, paces or
/// keeps a model says so in [`CongestionControl::needs`].
pub trait CongestionControl: fmt::Debug + Send {
    /// Something happened at `now`.
    fn on_event(&mut self, now: Time, event: &SenderEvent);

    /// With [`Needs::packets`]: an answer of the receiver to one packet.
    fn on_answer(&mut self, now: Time, answer: &Answer<'_>) {
        let _ = (now, answer);
    }

    /// What may be done now.
    fn allowance(&self) -> Allowance;

    /// When [`SenderEvent::Timer`] is due, for a controller with [`Needs::timer`]; [`Time::NEVER`] if not at all.
    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    /// Whether the last [`SenderEvent::Marks`] reduced the window, of which a receiver that echoes marks is notified.
    fn has_reduced(&self) -> bool {
        false
    }

    /// What it learns, and asks of the connection.
    fn needs(&self) -> Needs {
        Needs::PLAIN
    }

    /// What it shows of its state.
    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}

/// What a controller is made with.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The settings of its connection.
    pub connection: &'a tcp::Config,
    /// Its path, as far as it is known before anything is sent.
    pub path: Path,
    /// Its chance.
    pub chance: Stream,
    /// Where it writes down what it does, if anybody reads that.
    pub log: LogWriter,
}

impl<'a> Setup<'a> {
    /// For a connection that leaves nothing to chance, and of which nothing is written down.
    pub fn plain(connection: &'a tcp::Config) -> Setup<'a> {
        Setup {
            connection,
            path: Path::PLAIN,
            chance: Seed::new(0).stream("congestion control"),
            log: LogWriter::none(),
        }
    }
}

/// Settings of a controller, as they cross the boundary, from which it is made.
pub trait Settings: Sized {
    /// The controller.
    type Control: CongestionControl;

    /// Those of a scenario that gives none; none: a scenario's fields are others than these.
    const PRESET: Option<fn() -> Self> = None;
    /// Whether it times each segment by itself, as [`Needs::departures`] says.
    const TIMES_SEGMENTS: bool = false;
    /// Whether it sees each packet by itself, as [`Needs::packets`] says.
    const PACKETS: bool = false;
    /// Whether it bounds what is in flight.
    const WINDOW: bool = true;
    /// Whether it reads what ports write into packets, as [`Needs::telemetry`] says.
    const TELEMETRY: bool = false;
    /// How the receiver is to report marks, unless a scenario says so.
    const ECN: EcnSupport = EcnSupport::None;

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }

    /// The controller of a connection.
    fn make(&self, setup: Setup<'_>) -> Self::Control;
}

/// Makes a controller with such settings for a connection.
type Maker = dyn Fn(&Custom, Setup<'_>) -> Result<Box<dyn CongestionControl>, SpecError> + Send + Sync;

/// The controllers that a program has besides those of this crate.
#[derive(Clone, Debug, Default)]
pub struct Controllers {
    makers: Makers<Maker>,
}

impl Controllers {
    /// None besides those of this crate.
    pub fn new() -> Controllers {
        Controllers::default()
    }

    /// Connections with `kind: custom` and this name have the controller that `make` makes. It says which setting is wrong.
    #[must_use]
    pub fn add(
        mut self,
        name: &str,
        make: impl Fn(&Custom, Setup<'_>) -> Result<Box<dyn CongestionControl>, SpecError> + Send + Sync + 'static,
    ) -> Controllers {
        self.makers.add(name, Arc::new(make));
        self
    }

    pub(super) fn make_custom(
        &self,
        custom: &Custom,
        setup: Setup<'_>,
    ) -> Result<Box<dyn CongestionControl>, SpecError> {
        self.makers.find(custom, "a controller")?(custom, setup)
    }
}
