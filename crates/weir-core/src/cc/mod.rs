//! Congestion control: what a sender may have in flight, and how fast it may send.
//!
//! One contract for all: *report an event, then ask for the allowance.* A controller is made with its chance and its log, and knows no
//! segment and no clock; the sender keeps the scoreboard and repairs losses. While it does so after a reduction of the window, its own rules
//! ([`crate::tcp::Recovery`]) take the place of the controller's window, unless the controller takes care of itself.
//!
//! A controller that times each segment by itself learns of each departure and of each arrival that the receiver stamped. One that
//! keeps a model of the path receives a sample of the delivery rate with each acknowledgement, and learns of each segment that is lost. One
//! that answers marks in proportion learns how much of the data was marked; to the others a mark is congestion.
//!
//! A program can have controllers of its own: [`Controllers`].

mod bbr;
mod control;
mod cubic;
mod dcqcn;
mod dctcp;
mod event;
mod hpcc;
mod line_rate;
mod nscc;
mod prague;
mod rapid;
mod reno;
mod slow_start;
mod swift;
mod timely;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::custom::Custom;
pub use bbr::{Bbr, BbrConfig};
pub use control::{CongestionControl, Controllers, Settings, Setup};
pub use cubic::{Cubic, CubicConfig};
pub use dcqcn::{Dcqcn, DcqcnConfig};
pub use dctcp::{Dctcp, DctcpConfig};
pub use event::{
    Acked, Allowance, Answer, Cause, Departed, Hop, Marks, Metrics, Needs, Outcome, Pace, Path, SenderEvent,
};
pub use hpcc::{Hpcc, HpccConfig};
pub use line_rate::{LineRate, LineRateConfig};
pub use nscc::{Nscc, NsccConfig};
pub use prague::{Prague, PragueConfig};
pub use rapid::Rapid;
pub use reno::{Reno, RenoConfig};
pub use slow_start::SlowStart;
pub use swift::{Swift, SwiftConfig};
pub use timely::{Timely, TimelyConfig};

use crate::error::SpecError;
use crate::tcp::EcnSupport;
use crate::units::{Bytes, Time};

/// The list of all controllers: what a scenario says of each, its settings, and how a sender holds it. Specs, the classes and the
/// unions of the Python package and the pages of the documentation are made of it.
macro_rules! controllers {
    ($($(#[doc = $doc:literal])+ $kind:ident($settings:ty) as $held:ty;)+) => {
        /// Which controller, with its parameters, as it crosses the boundary.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[schemars(rename = "CongestionControl")]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        pub enum Config {
            $($(#[doc = $doc])+ $kind($settings),)+
            /// One that the program has besides these; see [`Controllers`].
            Custom(Custom),
        }

        /// A controller of any kind.
        #[derive(Debug)]
        pub enum Controller {
            $($(#[doc = $doc])+ $kind($held),)+
            /// One that the program has besides these; see [`Controllers`].
            Custom(Box<dyn CongestionControl>),
        }

        impl Config {
            /// All kinds but `custom`, with the settings of a scenario that gives none.
            pub fn kinds() -> Vec<Kind> {
                vec![$({
                    let preset = <$settings as Settings>::PRESET.map(|make| Config::$kind(make()));
                    let about = concat!($($doc, "\n"),+).trim();
                    Kind { name: stringify!($kind), about, ecn: <$settings as Settings>::ECN, preset }
                },)+]
            }

            /// Whether it times each segment by itself, or may.
            pub(crate) fn times_segments(&self) -> bool {
                match self {
                    $(Config::$kind(_) => <$settings as Settings>::TIMES_SEGMENTS,)+
                    Config::Custom(_) => true,
                }
            }

            /// Whether it learns of each packet by itself, which only senders of numbered packets can do.
            pub fn counts_packets(&self) -> bool {
                match self {
                    $(Config::$kind(_) => <$settings as Settings>::PACKETS,)+
                    Config::Custom(_) => false,
                }
            }

            /// Whether it bounds what is in flight.
            pub(crate) fn has_window(&self) -> bool {
                match self {
                    $(Config::$kind(_) => <$settings as Settings>::WINDOW,)+
                    Config::Custom(_) => true,
                }
            }

            /// Whether it reads what ports write into packets.
            pub fn reads_telemetry(&self) -> bool {
                match self {
                    $(Config::$kind(_) => <$settings as Settings>::TELEMETRY,)+
                    Config::Custom(_) => false,
                }
            }

            /// Checks what no type can express.
            ///
            /// # Errors
            /// The first fault found.
            pub fn check(&self) -> Result<(), SpecError> {
                match self {
                    $(Config::$kind(settings) => settings.check(),)+
                    Config::Custom(_) => Ok(()),
                }
            }
        }

        impl Controllers {
            /// The controller of a connection, from its settings.
            ///
            /// # Errors
            /// Nobody has added the controller, or it refuses its settings.
            pub fn make(&self, setup: Setup<'_>) -> Result<Controller, SpecError> {
                match &setup.connection.congestion_control {
                    $(Config::$kind(settings) => Ok(Controller::$kind(settings.make(setup).into())),)+
                    Config::Custom(custom) => self.make_custom(custom, setup).map(Controller::Custom),
                }
            }
        }

        // What every segment asks is a part of the allowance, of which the rest is not worked out.
        impl Controller {
            /// What may be in flight.
            #[inline(always)]
            pub(crate) fn window(&self) -> Bytes {
                match self {
                    $(Controller::$kind(controller) => controller.allowance().window,)+
                    Controller::Custom(controller) => controller.allowance().window,
                }
            }

            /// How it is spread over time.
            #[inline(always)]
            pub(crate) fn pace(&self) -> Pace {
                match self {
                    $(Controller::$kind(controller) => controller.allowance().pace,)+
                    Controller::Custom(controller) => controller.allowance().pace,
                }
            }
        }

        impl CongestionControl for Controller {
            #[inline(always)]
            fn on_event(&mut self, now: Time, event: &SenderEvent) {
                match self {
                    $(Controller::$kind(controller) => controller.on_event(now, event),)+
                    Controller::Custom(controller) => controller.on_event(now, event),
                }
            }

            fn on_answer(&mut self, now: Time, answer: &Answer<'_>) {
                match self {
                    $(Controller::$kind(controller) => controller.on_answer(now, answer),)+
                    Controller::Custom(controller) => controller.on_answer(now, answer),
                }
            }

            #[inline]
            fn allowance(&self) -> Allowance {
                match self {
                    $(Controller::$kind(controller) => controller.allowance(),)+
                    Controller::Custom(controller) => controller.allowance(),
                }
            }

            fn poll_timeout(&self) -> Time {
                match self {
                    $(Controller::$kind(controller) => controller.poll_timeout(),)+
                    Controller::Custom(controller) => controller.poll_timeout(),
                }
            }

            fn has_reduced(&self) -> bool {
                match self {
                    $(Controller::$kind(controller) => controller.has_reduced(),)+
                    Controller::Custom(controller) => controller.has_reduced(),
                }
            }

            fn needs(&self) -> Needs {
                match self {
                    $(Controller::$kind(controller) => controller.needs(),)+
                    Controller::Custom(controller) => controller.needs(),
                }
            }

            fn metrics(&self) -> Metrics {
                match self {
                    $(Controller::$kind(controller) => controller.metrics(),)+
                    Controller::Custom(controller) => controller.metrics(),
                }
            }
        }
    };
}

controllers! {
    /// NewReno (RFC 5681, RFC 6582).
    Reno(RenoConfig) as Reno;
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig) as Cubic;
    /// BBR: in the simulator version 3 (draft-ietf-ccwg-bbr-06); on real stacks that of the kernel, which in Linux is version 1.
    Bbr(BbrConfig) as Box<Bbr>;
    /// DCTCP (RFC 8257): marks take half of their average share of the window.
    Dctcp(DctcpConfig) as Box<Dctcp>;
    /// Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP for the Internet, paced, with ECT(1). Where there is no
    /// accurate feedback, Reno takes its place.
    Prague(PragueConfig) as Box<Prague>;
    /// Swift (Kumar 2020): the window follows the round-trip time towards a target that grows with the hops and shrinks with the window.
    Swift(SwiftConfig) as Box<Swift>;
    /// TIMELY (Mittal 2015): the rate follows the gradient of the round-trip time.
    Timely(TimelyConfig) as Box<Timely>;
    /// DCQCN (Zhu 2015) in the sender: marks that the receiver reports cut the rate, timers and a byte counter raise it; with `rdma`.
    DcqcnSender(DcqcnConfig) as Box<Dcqcn>;
    /// HPCC (2019): the window follows what waits at the ports on the way and what they send, as these write it into packets; with `rdma`.
    Hpcc(HpccConfig) as Box<Hpcc>;
    /// NSCC of Ultra Ethernet, as uet-htsim has it: the window follows delay and marks, and is measured again when much is lost; with `rdma`.
    Nscc(NsccConfig) as Box<Nscc>;
    /// None: what may be in flight does not change; with `rdma`.
    LineRate(LineRateConfig) as LineRate;
    /// Rapid: all packets leave in probe streams, whose rates grow exponentially about the mean rate (Konda & Kaur 2009).
    Rapid(Box<crate::rapid::Config>) as Box<Rapid>;
}

/// What is known of a kind of controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// As its type is called.
    pub name: &'static str,
    /// What it is, and after which document.
    pub about: &'static str,
    /// How the receiver is to report marks, unless a scenario says so.
    pub ecn: EcnSupport,
    /// Its settings in a scenario that gives none; none: a scenario's fields are others.
    pub preset: Option<Config>,
}

impl Config {
    /// Reno as RFC 5681 has it.
    pub fn reno() -> Config {
        Config::Reno(RenoConfig::default())
    }

    /// CUBIC with the constants of RFC 9438, and HyStart++, which it asks for (4.10).
    pub fn cubic() -> Config {
        Config::Cubic(CubicConfig::default())
    }

    /// BBR.
    pub fn bbr() -> Config {
        Config::Bbr(BbrConfig {})
    }

    /// DCTCP with the constants of RFC 8257.
    pub fn dctcp() -> Config {
        Config::Dctcp(DctcpConfig::default())
    }

    /// Prague with the constants of its draft.
    pub fn prague() -> Config {
        Config::Prague(PragueConfig::default())
    }

    /// A controller that the program has besides these, and its settings.
    pub fn custom(name: &str, settings: &[(&str, f64)]) -> Config {
        Config::Custom(Custom::new(name, settings))
    }
}

impl Controller {
    /// What a sender uses in the place of a controller that needs more than the receiver reports.
    pub(crate) fn fall_back(&mut self, segment: Bytes) {
        *self = Controller::Reno(Reno::new(segment, self.allowance().window, SlowStart::Standard));
    }
}
