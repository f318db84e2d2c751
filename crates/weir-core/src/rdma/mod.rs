//! Messages in numbered packets, each answered: what network adapters do for RDMA over Ethernet, and what follows it.
//!
//! A [`Sender`] cuts a message into packets and sends what its window, its rate and the receiver's credit let go; it has no clock and no queue:
//! its adapter asks it for the next packet when the line is free. A [`Receiver`] answers each packet, or one of several. What is lost is sent
//! again by one of three rules ([`Recovery`]). Queues may cut the payload of a packet that finds no room ([`crate::spec::classes::Trim`]): its header
//! arrives, and tells the receiver what to ask for again.
//!
//! Congestion controls are those of [`crate::cc`]; some are told of each packet by itself.
//!
//! Reading order: this file (settings), `packet`, `sender` and `window` (what is in flight), `detection` and `sleek` (what is lost), `receiver`,
//! `adaption` (how much credit it gives), `paths` (which way a packet takes).

mod adaption;
mod detection;
mod packet;
mod paths;
mod receiver;
mod requests;
mod sender;
mod sleek;
mod window;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::adaption::Adaption;
pub use self::detection::Detection;
pub use self::packet::{Packet, PacketKind};
pub use self::paths::Paths;
pub use self::receiver::{Demand, Receiver};
pub use self::sender::{Counters, Sender};
pub use self::sleek::{Known, Sleek, SleekConfig};
use crate::cc;
use crate::error::{Part, SpecError, refuse};
use crate::spec::classes::CLASSES;
use crate::spec::messages::Packets;
use crate::tcp;
use crate::units::{Bytes, Span};

/// Settings of both ends of a message, as they cross the boundary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RdmaConfig")]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What sets window and rate.
    pub congestion_control: cc::Config,
    /// What is sent again.
    pub recovery: Recovery,
    /// How losses are found; with `selective`.
    pub detection: Detection,
    /// Frames of answers, telemetry not counted.
    pub answer_bytes: Bytes,
    /// Data after which the receiver answers; 0: each packet. It answers at once what is first, marked, cut, doubled or asked for.
    pub answer_every_bytes: Bytes,
    /// Traffic class of answers, credit and headers of packets that were cut.
    pub control_class: u8,
    /// What ports write into a data packet and its answer takes back, where the congestion control reads it: so much room is always there.
    pub telemetry_bytes: Bytes,
    /// Most data in flight; null: as the congestion control says.
    pub window_bytes: Option<Bytes>,
    /// Window at first of NSCC and of a congestion control of TCP; null: its greatest, and what the empty path holds.
    pub initial_window_bytes: Option<Bytes>,
    /// Round-trip time of the empty path that congestion controls reckon with; null: that of the sender and its receiver.
    pub round_trip_ps: Option<Span>,
    /// Time after which what was not answered is sent again.
    pub timeout_ps: Span,
    /// How the sender chooses among ways; null: all packets of a message take one.
    pub paths: Option<PathChoice>,
    /// Credit of the receiver; null: the sender needs none.
    pub credit: Option<Credit>,
}

impl Default for Config {
    /// At line rate; all else as a scenario has it that does not say.
    fn default() -> Config {
        Config {
            congestion_control: cc::Config::LineRate(cc::LineRateConfig {}),
            recovery: Recovery::GoBackN,
            detection: Detection::Timeout {},
            answer_bytes: Bytes::new(64),
            answer_every_bytes: Bytes::ZERO,
            control_class: 0,
            telemetry_bytes: Bytes::new(42),
            window_bytes: None,
            initial_window_bytes: None,
            round_trip_ps: None,
            timeout_ps: Span::from_us(500),
            paths: None,
            credit: None,
        }
    }
}

/// What a sender sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PacketRecovery")]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// The whole message: the receiver drops what it has.
    #[serde(rename = "go-back-0")]
    GoBackZero,
    /// From the first packet on that is missing: the receiver drops what is not next.
    GoBackN,
    /// What is missing: the receiver keeps what comes out of order.
    Selective,
}

/// How a sender chooses the way of each packet: by a value in its header that switches hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathChoice {
    /// By which rule.
    pub rule: PathRule,
    /// How many values there are, a power of two.
    pub values: u32,
}

/// The rule by which a sender chooses the value of each packet.
///
/// Source: uet-htsim, `uec_mp.cpp`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathRule {
    /// One after the other, in an order that changes with each round.
    Oblivious,
    /// The same, but values whose packets were marked, cut or lost are left out for some rounds.
    Bitmap,
    /// Values whose packets arrived without a mark, again; others by chance.
    Reps,
    /// Such values, and without any as `bitmap`.
    Mixed,
}

/// Credit that a receiver gives to its senders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credit {
    /// What a sender may send before it has any, as a multiple of what the empty path holds.
    pub initial: f64,
    /// Whether the first answer or credit takes away what is left of that.
    pub revokes: bool,
    /// What a sender may ask for ahead, as such a multiple.
    pub most: f64,
    /// Packets of credit that the receiver gives at a time; a part of one counts, too.
    pub packets: f64,
    /// Share of the receiver's line rate at which credit is given, all senders together.
    pub share: f64,
    /// How many times as much hosts may send as the network above them carries: credit follows marks and cuts there; null: it does not.
    pub oversubscription: Option<f64>,
}

/// Longest time that a timer is set to, and longest round trip.
const LONGEST: Span = Span::from_ms(60_000);

/// Credit is asked for and given in this many bytes of frames.
///
/// Source: uet-htsim, `uecpacket.h` (pull quanta)
pub const CREDIT_UNIT: u64 = 256;

impl Config {
    /// What both ends reckon with.
    pub(crate) fn telemetry(&self) -> Bytes {
        if self.congestion_control.reads_telemetry() { self.telemetry_bytes } else { Bytes::ZERO }
    }

    /// The frame of a packet with so much data.
    pub fn frame_of(&self, packets: Packets, data: Bytes) -> Bytes {
        packets.header_bytes + data + self.telemetry()
    }

    /// The frame of an answer.
    pub fn answer(&self) -> Bytes {
        self.answer_bytes + self.telemetry()
    }

    /// What a congestion control is made with. One of packets has a first window of its own, if none is given.
    pub fn connection(&self, packets: Packets, path: &cc::Path) -> tcp::Config {
        let segment = packets.payload_bytes;
        let own = if self.congestion_control.counts_packets() { Bytes::new(u64::MAX) } else { path.product() };
        let window = self.initial_window_bytes.unwrap_or(own);
        let segments = window.count().div_ceil(segment.count()).clamp(1, 1 << 20);
        tcp::Config {
            congestion_control: self.congestion_control.clone(),
            segment_bytes: segment,
            initial_window_segments: segments as u32,
            ..tcp::Config::default()
        }
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        use cc::Config::{Bbr, Custom, Prague, Rapid};
        if let Bbr(_) | Prague(_) | Rapid(_) | Custom(_) = self.congestion_control {
            let message = "one that knows numbered packets: dcqcn-sender, hpcc, nscc, line-rate, dctcp, swift, timely, reno or cubic";
            return Err(SpecError::new("/congestion_control", message));
        }
        self.congestion_control.check().under("/congestion_control")?;
        for (at, span) in [("/timeout_ps", Some(self.timeout_ps)), ("/round_trip_ps", self.round_trip_ps)] {
            if let Some(span) = span.filter(|&span| span == Span::ZERO || span > LONGEST) {
                return Err(SpecError::new(at, format!("a time above 0 s and at most {LONGEST} (got {span})")));
            }
        }
        refuse!(self.control_class >= CLASSES, "/control_class", "a class from 0 to 7 (got {})", self.control_class);
        for (at, bytes) in [("/answer_bytes", self.answer_bytes), ("/telemetry_bytes", self.telemetry_bytes)] {
            refuse!(!(1..=9000).contains(&bytes.count()), at, "1 B to 9000 B (got {bytes})");
        }
        refuse!(self.window_bytes == Some(Bytes::ZERO), "/window_bytes", "1 B or more (got 0 B)");
        if self.recovery != Recovery::Selective && (self.paths.is_some() || self.credit.is_some()) {
            let at = if self.paths.is_some() { "/paths" } else { "/credit" };
            let message =
                "packets of several ways, and those that are asked for one by one, come out of order: 'selective'";
            return Err(SpecError::new(at, message));
        }
        self.check_detection()?;
        if let Some(PathChoice { values, .. }) = self.paths
            && !(values.is_power_of_two() && (2..=1 << 15).contains(&values))
        {
            return Err(SpecError::new("/paths/values", format!("a power of two from 2 to 32768 (got {values})")));
        }
        self.credit.map_or(Ok(()), |credit| credit.check().under("/credit"))
    }

    fn check_detection(&self) -> Result<(), SpecError> {
        self.detection.check().under("/detection")?;
        if self.recovery != Recovery::Selective && self.detection != (Detection::Timeout {}) {
            let message = "a receiver that drops what comes out of order reports each gap: 'selective', or 'timeout'";
            return Err(SpecError::new("/detection", message));
        }
        let Detection::Sleek(sleek) = self.detection else { return Ok(()) };
        if self.window_bytes.is_none() && !self.congestion_control.has_window() {
            let message =
                "sleek follows the window, and this congestion control has none: 'window', or one such as nscc";
            return Err(SpecError::new("/detection", message));
        }
        if let Some(round_trip) = self.round_trip_ps
            && self.timeout_ps.ps() as f64 <= sleek.probe_after * round_trip.ps() as f64
        {
            let message = format!(
                "longer than the silence before a probe of sleek, {} round trips of {round_trip} (got {})",
                sleek.probe_after, self.timeout_ps
            );
            return Err(SpecError::new("/timeout_ps", message));
        }
        Ok(())
    }
}

impl Credit {
    fn check(&self) -> Result<(), SpecError> {
        for (name, value, most) in [
            ("initial", self.initial, 1000.0),
            ("most", self.most, 1000.0),
            ("packets", self.packets, 1000.0),
            ("share", self.share, 1.0),
        ] {
            refuse!(!(value > 0.0 && value <= most), format!("/{name}"), "above 0 and at most {most} (got {value})");
        }
        if let Some(value) = self.oversubscription {
            refuse!(!(1.0..=1000.0).contains(&value), "/oversubscription", "1 to 1000 (got {value})");
        }
        Ok(())
    }
}
