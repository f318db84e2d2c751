//! Congestion control: what a sender may have in flight, and how fast it may send.
//!
//! One contract for all: *tell an event, then ask for the allowance.* A controller knows no segment and no clock; the
//! sender keeps the scoreboard and repairs losses. While it does so after a reduction of the window, its own rules
//! ([`crate::tcp::Recovery`]) take the place of the controller's window, unless the controller takes care of itself.
//!
//! | controller | file | source |
//! |---|---|---|
//! | [`Reno`] | `reno.rs` | RFC 5681 |
//! | [`Cubic`] | `cubic.rs` | RFC 9438 |
//! | slow start of both, with HyStart++ | `slow_start.rs` | RFC 5681, RFC 9406 |
//! | [`Dctcp`] | `dctcp.rs` | RFC 8257 |
//! | [`Prague`] | `prague.rs` | draft-briscoe-iccrg-prague-congestion-control-04 |
//! | [`Rapid`] | `rapid.rs` | Konda & Kaur 2009 |
//! | [`Bbr`] | `bbr/` | draft-ietf-ccwg-bbr-06 |
//!
//! A controller that times each segment by itself says when the next one departs, and is told of each departure and of
//! each arrival that the receiver stamped. One that keeps a model of the path is told a sample of the delivery rate with
//! each acknowledgement, and of each segment that is lost. One that answers marks in proportion is told how much of the data was
//! marked; to the others a mark is congestion.

mod bbr;
mod cubic;
mod dctcp;
mod prague;
mod rapid;
mod reno;
mod slow_start;

use serde::{Deserialize, Serialize};

pub use bbr::{Bbr, State as BbrState};
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use prague::Prague;
pub use rapid::Rapid;
pub use reno::Reno;
pub use slow_start::SlowStart;

use crate::error::SpecError;
use crate::marking::Ecn;
use crate::tcp::{self, rate};
use crate::units::{Bytes, Rate, Span, Time};

/// What a controller is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SenderEvent {
    /// Segments were acknowledged, in order or not.
    Ack(Acked),
    /// The network is congested; told once per window of data.
    Congestion {
        /// What shows it.
        cause: Cause,
        /// Bytes outstanding, but for what limited transmit added.
        flight: Bytes,
    },
    /// The losses are repaired; the window that is left.
    Recovered {
        /// Of the sender's recovery.
        window: Bytes,
    },
    /// The retransmission timer expired: nothing is known to be in flight.
    Collapse,
}

/// What shows congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Segments are lost.
    Loss,
    /// The retransmission timer expired.
    Timeout,
    /// The receiver echoes a mark.
    EcnEcho,
}

/// An acknowledgement in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acked {
    /// Bytes for which the window may grow: each counts once, when it is acknowledged in order, unless it arrived while
    /// losses were repaired or after marks.
    pub bytes: Bytes,
    /// The first number that is not acknowledged.
    pub number: u64,
    /// The next number to be sent for the first time.
    pub next: u64,
    /// Bytes in flight before.
    pub prior_flight: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// A round-trip time, if this acknowledgement gave one.
    pub rtt: Option<Span>,
    /// Whether the window may grow: no reduction is under way, nor ends with this acknowledgement.
    pub may_grow: bool,
}

/// What an acknowledgement tells of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marks {
    /// Bytes of which it tells whether they were marked.
    pub counted: Bytes,
    /// Those that were.
    pub marked: Bytes,
    /// Whether any were, or whatever else the receiver echoes for.
    pub is_echo: bool,
    /// The first number that is not acknowledged.
    pub number: u64,
    /// The next number to be sent for the first time.
    pub next: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Whether the window may be reduced: losses are not being repaired.
    pub may_reduce: bool,
}

/// What a sender may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes in flight.
    pub window: Bytes,
    /// How what may be sent is spread over time; none: it leaves at once.
    pub pacing: Option<Pacing>,
}

/// How fast segments leave, and how many together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Rate of leaving, frames without preamble and gap.
    pub rate: Rate,
    /// Data that leaves together, as far as there is so much to send; after it the sender waits for as long as it takes at
    /// the rate. Less than two segments: each leaves by itself.
    pub quantum: Bytes,
}

/// A segment that leaves for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    /// The number behind its last byte.
    pub number: u64,
    /// The length of its frame, without preamble and gap.
    pub frame: Bytes,
}

/// What sets a sender's rate.
pub trait CongestionControl {
    /// Something happened at `now`.
    fn on_event(&mut self, now: Time, event: &SenderEvent);

    /// What may be done now.
    fn allowance(&self) -> Allowance;

    /// Where a reduction of the window ends.
    fn threshold(&self) -> Bytes;

    /// When the next new segment is to leave, for a controller that times each by itself; none: when the window and the
    /// pacing rate let it.
    fn departure(&self) -> Option<Time> {
        None
    }

    /// A segment leaves for the first time.
    fn on_sent(&mut self, now: Time, sent: &Departed) {
        let _ = (now, sent);
    }

    /// The segment of which [`CongestionControl::on_sent`] told last left at `at`, later than that.
    fn on_left(&mut self, at: Time) {
        let _ = at;
    }

    /// A new segment could leave by its time, but there is none, or no window for it.
    fn on_idle(&mut self, now: Time) {
        let _ = now;
    }

    /// Everything below `number` has arrived in order and without loss, the last of it at `received` of the receiver's
    /// clock.
    fn on_arrival(&mut self, now: Time, number: u64, received: Time) {
        let _ = (now, number, received);
    }

    /// What was lost is repaired, and what was reduced stays so: the sender is open again.
    fn on_repaired(&mut self, now: Time) {
        let _ = now;
    }

    /// What was repaired since segments were last taken for lost, had not been lost; told before
    /// [`CongestionControl::on_repaired`].
    fn on_spurious(&mut self, now: Time) {
        let _ = now;
    }

    /// Whether it keeps a model of the path: then the methods below tell it what that takes, and its own window holds while
    /// losses are repaired.
    fn keeps_model(&self) -> bool {
        false
    }

    /// What its packets say about marks, where the ends have agreed to use ECN.
    fn codepoint(&self) -> Ecn {
        Ecn::Ect0
    }

    /// Whether it answers marks in proportion: then [`CongestionControl::on_marks`] tells it of them, and
    /// [`SenderEvent::Congestion`] does not.
    fn answers_marks(&self) -> bool {
        false
    }

    /// Whether that takes counters of marks: without them the sender uses Reno in its place.
    fn needs_counters(&self) -> bool {
        false
    }

    /// What an acknowledgement tells of marks; told before the acknowledgement. Whether the window was reduced.
    fn on_marks(&mut self, now: Time, marks: &Marks) -> bool {
        let _ = (now, marks);
        false
    }

    /// The average share of the data that is marked, if it keeps one: alpha.
    fn marked_share(&self) -> Option<f64> {
        None
    }

    /// The connection is established; `rtt` is its first round-trip time, unless the SYN was sent twice.
    fn on_established(&mut self, now: Time, rtt: Option<Span>) {
        let _ = (now, rtt);
    }

    /// The connection is established, and the SYN had to be sent again more than once.
    fn on_lost_syn(&mut self) {}

    /// Nothing was sent for longer than the retransmission timeout, and now is.
    fn on_long_idle(&mut self) {}

    /// Nothing is in flight, the application had nothing to send for a while, and now has.
    fn on_restart(&mut self, now: Time) {
        let _ = now;
    }

    /// A segment was found lost.
    fn on_lost(&mut self, now: Time, loss: &rate::Loss) {
        let _ = (now, loss);
    }

    /// New data has arrived; told after all other events of the acknowledgement. Whether the controller sends so little
    /// now that samples of it count as limited by the application.
    fn on_sample(&mut self, now: Time, sample: &rate::Sample) -> bool {
        let _ = (now, sample);
        false
    }
}

/// Which controller, with its parameters, as it crosses the boundary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CongestionControl"))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Config {
    /// [`Reno`].
    Reno {
        /// What ends the first slow start.
        slow_start: SlowStart,
    },
    /// [`Cubic`].
    Cubic {
        /// How fast the window grows, segments/s^3.
        c: f64,
        /// What is left of the window after a reduction.
        beta: f64,
        /// Whether the window of the last reduction is forgotten faster while windows shrink.
        fast_convergence: bool,
        /// What ends the first slow start.
        slow_start: SlowStart,
    },
    /// [`Rapid`].
    Rapid(Box<crate::rapid::Config>),
    /// [`Bbr`].
    Bbr {},
    /// [`Dctcp`].
    Dctcp {
        /// Weight of the last window in the average share of marks: g.
        gain: f64,
        /// What ends the first slow start beside marks and losses.
        slow_start: SlowStart,
    },
    /// [`Prague`].
    Prague(PragueConfig),
}

/// Settings of [`Prague`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PragueConfig {
    /// Weight of the last round in the average share of marks: g.
    pub gain: f64,
    /// What a round trip counts as at least.
    pub virtual_rtt_ps: Span,
    /// Rounds after slow start from which on it does so.
    pub transition_rounds: u32,
    /// What ends the first slow start beside marks and losses.
    pub slow_start: SlowStart,
}

impl Config {
    /// Reno as RFC 5681 has it.
    pub fn reno() -> Config {
        Config::Reno { slow_start: SlowStart::Standard }
    }

    /// CUBIC with the constants of RFC 9438, and HyStart++, which it asks for (4.10).
    pub fn cubic() -> Config {
        Config::Cubic { c: 0.4, beta: 0.7, fast_convergence: true, slow_start: SlowStart::HyStart }
    }

    /// DCTCP with the constants of RFC 8257.
    pub fn dctcp() -> Config {
        Config::Dctcp { gain: 1.0 / 16.0, slow_start: SlowStart::Standard }
    }

    /// Prague with the constants of its draft.
    pub fn prague() -> Config {
        Config::Prague(PragueConfig {
            gain: 1.0 / 16.0,
            virtual_rtt_ps: Span::from_ms(25),
            transition_rounds: 500,
            slow_start: SlowStart::Standard,
        })
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        match *self {
            Config::Reno { .. } | Config::Bbr {} => Ok(()),
            Config::Dctcp { gain, .. } => check_gain(gain),
            Config::Prague(ref prague) => check_gain(prague.gain),
            Config::Cubic { c, beta, .. } => {
                if !(c > 0.0 && c <= 1000.0) {
                    return Err(SpecError::new("/c", format!("a number above 0 and at most 1000 (got {c})")));
                }
                if !(beta > 0.0 && beta < 1.0) {
                    return Err(SpecError::new("/beta", format!("a number between 0 and 1 (got {beta})")));
                }
                Ok(())
            }
            Config::Rapid(ref rapid) => rapid.check(),
        }
    }
}

fn check_gain(gain: f64) -> Result<(), SpecError> {
    if gain > 0.0 && gain <= 1.0 {
        return Ok(());
    }
    Err(SpecError::new("/gain", format!("a number above 0 and at most 1 (got {gain})")))
}

/// A controller of any kind.
#[derive(Debug)]
pub enum Controller {
    /// RFC 5681.
    Reno(Reno),
    /// RFC 9438.
    Cubic(Cubic),
    /// RFC 8257.
    Dctcp(Box<Dctcp>),
    /// The draft of the IRTF.
    Prague(Box<Prague>),
    /// Konda & Kaur 2009.
    Rapid(Box<Rapid>),
    /// The draft of the IETF.
    Bbr(Box<Bbr>),
    /// A user's own.
    Custom(Box<dyn CustomControl>),
}

/// A controller of a user's own.
pub trait CustomControl: CongestionControl + std::fmt::Debug + Send {}

impl Controller {
    /// The controller of a connection with the settings `config`.
    pub fn new(config: &tcp::Config) -> Controller {
        let (segment, initial) = (config.segment_bytes, config.initial_window());
        match config.congestion_control {
            Config::Reno { slow_start } => Controller::Reno(Reno::new(segment, initial, slow_start)),
            Config::Cubic { c, beta, fast_convergence, slow_start } => {
                Controller::Cubic(Cubic::new(segment, initial, c, beta, fast_convergence, slow_start))
            }
            Config::Rapid(ref rapid) => Controller::Rapid(Box::new(Rapid::new(rapid, segment, config.full_frame()))),
            Config::Bbr {} => Controller::Bbr(Box::new(Bbr::new(config))),
            Config::Dctcp { gain, slow_start } => {
                Controller::Dctcp(Box::new(Dctcp::new(segment, initial, gain, slow_start)))
            }
            Config::Prague(ref prague) => Controller::Prague(Box::new(Prague::new(prague, config))),
        }
    }

    /// What a sender uses in the place of a controller that needs more than the receiver tells.
    pub(crate) fn fall_back(&mut self, segment: Bytes) {
        *self = Controller::Reno(Reno::new(segment, self.allowance().window, SlowStart::Standard));
    }
}

macro_rules! delegate {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            Controller::Reno($controller) => $call,
            Controller::Cubic($controller) => $call,
            Controller::Dctcp($controller) => $call,
            Controller::Prague($controller) => $call,
            Controller::Rapid($controller) => $call,
            Controller::Bbr($controller) => $call,
            Controller::Custom($controller) => $call,
        }
    };
}

impl CongestionControl for Controller {
    #[inline]
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        delegate!(self, controller => controller.on_event(now, event));
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        delegate!(self, controller => controller.allowance())
    }

    #[inline]
    fn threshold(&self) -> Bytes {
        delegate!(self, controller => controller.threshold())
    }

    #[inline]
    fn departure(&self) -> Option<Time> {
        delegate!(self, controller => controller.departure())
    }

    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Departed) {
        delegate!(self, controller => controller.on_sent(now, sent));
    }

    fn on_left(&mut self, at: Time) {
        delegate!(self, controller => controller.on_left(at));
    }

    #[inline]
    fn on_idle(&mut self, now: Time) {
        delegate!(self, controller => controller.on_idle(now));
    }

    fn on_arrival(&mut self, now: Time, number: u64, received: Time) {
        delegate!(self, controller => controller.on_arrival(now, number, received));
    }

    fn on_repaired(&mut self, now: Time) {
        delegate!(self, controller => controller.on_repaired(now));
    }

    fn on_spurious(&mut self, now: Time) {
        delegate!(self, controller => controller.on_spurious(now));
    }

    fn codepoint(&self) -> Ecn {
        delegate!(self, controller => controller.codepoint())
    }

    #[inline]
    fn answers_marks(&self) -> bool {
        delegate!(self, controller => controller.answers_marks())
    }

    fn needs_counters(&self) -> bool {
        delegate!(self, controller => controller.needs_counters())
    }

    fn on_marks(&mut self, now: Time, marks: &Marks) -> bool {
        delegate!(self, controller => controller.on_marks(now, marks))
    }

    fn marked_share(&self) -> Option<f64> {
        delegate!(self, controller => controller.marked_share())
    }

    fn keeps_model(&self) -> bool {
        delegate!(self, controller => controller.keeps_model())
    }

    fn on_established(&mut self, now: Time, rtt: Option<Span>) {
        delegate!(self, controller => controller.on_established(now, rtt));
    }

    fn on_lost_syn(&mut self) {
        delegate!(self, controller => controller.on_lost_syn());
    }

    fn on_long_idle(&mut self) {
        delegate!(self, controller => controller.on_long_idle());
    }

    fn on_restart(&mut self, now: Time) {
        delegate!(self, controller => controller.on_restart(now));
    }

    fn on_lost(&mut self, now: Time, loss: &rate::Loss) {
        delegate!(self, controller => controller.on_lost(now, loss));
    }

    fn on_sample(&mut self, now: Time, sample: &rate::Sample) -> bool {
        delegate!(self, controller => controller.on_sample(now, sample))
    }
}
