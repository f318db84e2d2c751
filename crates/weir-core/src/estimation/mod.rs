//! Estimators that send trains of their own: pathload for the available bandwidth, PBProbe for the capacity.
//!
//! The receiving end decides: it asks the sender for a train of packets, each of which carries when it left, notes when
//! they arrive, and asks for the next one. So [`Estimation`] is the receiver; the sender does what an [`Ask`] says.
//!
//! Nothing here knows a clock or a socket. Trains are evaluated by functions of [`Sample`]s alone ([`trend()`],
//! [`Fleet`], [`RateSearch`], [`bulk()`], [`MinimumDelaySum`]), which recorded packets can feed as well.
//!
//! Reading order: [`Ask`], [`Packet`]; [`trend()`]; [`Fleet`]; [`RateSearch`]; [`bulk()`]; [`Estimation`]; [`Log`].
//!
//! Sources: Jain & Dovrolis 2003 (SLoPS, PCT, PDT, grey region), pathload 1.3.2 (thresholds, groups of medians, lossy
//! streams, rates); Chen 2008, PBProbe 3.0 (bulks). What is ours is said where it is decided, and in docs/estimators.md.

mod bulk;
mod fleet;
mod log;
mod machine;
mod pathload;
mod search;
mod trend;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Part, SpecError, refuse, some_rate, some_time};
pub use crate::rapid::Sample;
use crate::units::{Bytes, Rate, Span, Time};

pub use bulk::{Bulk, MinimumDelaySum, bulk};
pub use fleet::{Aggregate, Fleet};
pub use log::{Ending, EstimateRow, Log, Quantity, TrainRow};
pub use machine::Estimation;
pub use search::{Next, RateSearch};
pub use trend::{Trend, Verdict, trend};

/// Settings of both ends, as they cross the boundary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProberConfig")]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What is estimated, and how.
    pub method: Method,
    /// Length of the longest frames.
    pub frame_bytes: Bytes,
    /// What a frame takes on the link of the sender besides its bytes.
    pub framing_bytes: Bytes,
    /// Rate of that link.
    pub link_bps: Rate,
    /// How many measurements follow each other; null: as many as there is time for.
    pub measurements: Option<u32>,
}

/// How it is estimated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Method {
    /// The range of the available bandwidth: fleets of streams of constant rates, of which those above it see their
    /// delays grow.
    ///
    /// Source: Jain & Dovrolis 2003; pathload 1.3.2.
    Pathload {
        /// Packets of a stream: K.
        packets: u32,
        /// Streams of a fleet: N.
        streams: u32,
        /// Gap of slow streams, whose packets are shorter: T.
        gap_ps: Span,
        /// Share of the time that streams fill on average.
        share: f64,
        /// Width of the range at which the search ends: omega; null: 2 % of the rate at which a train arrives.
        resolution_bps: Option<Rate>,
        /// The greatest rate that is tried.
        most_bps: Rate,
        /// Packets that arrive closer to each other than that were held by the receiver: the last of them counts.
        batch_ps: Span,
        /// Unit of the stamps: delays that differ by less are the same.
        stamps_ps: Span,
    },
    /// The capacity of the narrow link: bulks of packets back to back, of which the one that waited least shows it.
    ///
    /// Source: Chen 2008; PBProbe 3.0.
    PbProbe {
        /// Bulks of a measurement, at most.
        bulks: u32,
        /// Bulks after which, if none of them had a lower delay, the measurement ends.
        stable: u32,
        /// Bulks are as long as it takes to last so long.
        dispersion_ps: Span,
        /// Share of the capacity that bulks take.
        share: f64,
    },
}

/// A train that the receiver asks the sender for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its number.
    pub train: u32,
    /// How many packets it has.
    pub packets: u32,
    /// Length of each frame.
    pub frame: Bytes,
    /// From one packet to the next; zero: back to back.
    pub gap: Span,
}

/// What a packet of a train carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The train.
    pub train: u32,
    /// Its place there, from 0.
    pub place: u32,
    /// When it was to leave.
    pub due: Time,
    /// When it left.
    pub sent: Time,
}

impl Config {
    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        some_rate("/link_bps", self.link_bps)?;
        if !(LEAST_FRAME..=MOST_FRAME).contains(&self.frame_bytes.count()) {
            let message = format!("frames of {LEAST_FRAME} B to {MOST_FRAME} B (got {})", self.frame_bytes);
            return Err(SpecError::new("/frame_bytes", message));
        }
        refuse!(self.measurements == Some(0), "/measurements", "at least 1 measurement (got 0)");
        self.method.check().under("/method")
    }
}

impl Method {
    fn check(&self) -> Result<(), SpecError> {
        let within = |field: &str, what: &str, got: u32, least: u32, most: u32| {
            let is_possible = (least..=most).contains(&got);
            refuse!(!is_possible, format!("/{field}"), "{least} to {most} {what} (got {got})");
            Ok(())
        };
        let share = match *self {
            Method::Pathload { packets, streams, gap_ps, share, resolution_bps, most_bps, .. } => {
                within("packets", "packets", packets, LEAST_STREAM, MOST_TRAIN)?;
                within("streams", "streams", streams, 2, 100)?;
                some_time("/gap_ps", gap_ps)?;
                resolution_bps.map_or(Ok(()), |rate| some_rate("/resolution_bps", rate))?;
                some_rate("/most_bps", most_bps)?;
                share
            }
            Method::PbProbe { bulks, stable, dispersion_ps, share } => {
                within("bulks", "bulks", bulks, 1, 100_000)?;
                within("stable", "bulks", stable, 1, bulks)?;
                if dispersion_ps == Span::ZERO || dispersion_ps > MOST_DISPERSION {
                    let message = format!("a time above 0 s and up to {MOST_DISPERSION} (got {dispersion_ps})");
                    return Err(SpecError::new("/dispersion_ps", message));
                }
                share
            }
        };
        refuse!(!(share > 0.0 && share <= 1.0), "/share", "a share above 0 and at most 1 (got {share})");
        Ok(())
    }

    /// What it estimates.
    pub fn quantity(&self) -> Quantity {
        match self {
            Method::Pathload { .. } => Quantity::AvailableBandwidth,
            Method::PbProbe { .. } => Quantity::Capacity,
        }
    }
}

/// Fewer packets have no trend.
///
/// Source: pathload 1.3.2, MIN_STREAM_LEN
const LEAST_STREAM: u32 = 36;
const MOST_TRAIN: u32 = 10_000;
const LEAST_FRAME: u64 = 64;
const MOST_FRAME: u64 = 9_216;
const MOST_DISPERSION: Span = Span::from_ms(1000);
