//! Rapid: a sender that probes the path with all of its packets.
//!
//! Packets leave in p-streams: groups whose rates grow exponentially about the mean rate. From the gaps with which they
//! left and arrived the available bandwidth is estimated, and the mean rate follows it. While losses are repaired, no
//! streams are sent.
//!
//! Everything here receives times and knows no clock, no segment and no socket: [`Probing`] serves a TCP sender in a
//! simulated network ([`crate::cc::Rapid`]) and can serve a sender of datagrams alike.
//!
//! Reading order: [`Ramp`] (gaps) and [`Schedule`]; [`Sample`] and [`Denoising`]; [`Estimator`]; [`Adaptation`];
//! [`Probing`]; [`Log`].
//!
//! Sources: Konda & Kaur 2009 (p-streams, adaptation), Yin 2014 (noise), Ribeiro 2003 (chirps), Rapid UDP (states,
//! counters, the estimator of version 0.9.2). What these leave open is said where it is decided, and in docs/rapid.md.

mod adapter;
mod chirp;
mod estimate;
mod excursion;
mod fluid;
mod log;
mod noise;
mod probing;
mod ramp;
mod sample;
mod trend;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use adapter::{Adaptation, Backlog};
pub use estimate::{Estimate, Estimator, Terms};
pub use log::{Log, LogReader, LogWriter, Outcome, PacketRow, ProbeState, StateRow, StreamRow};
pub use noise::Denoising;
pub use probing::Probing;
pub use ramp::{Ramp, Schedule};
pub use sample::Sample;

use crate::error::{Part, SpecError, some_rate};
use crate::units::{Bytes, Rate, Span};

/// Settings of a probing sender, as they cross the boundary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RapidConfig")]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Gaps of a stream.
    pub ramp: Ramp,
    /// When the next packet is due.
    pub schedule: Schedule,
    /// What is done about arrivals that were gathered.
    pub denoising: Denoising,
    /// How the available bandwidth is reported.
    pub estimator: Estimator,
    /// How the rate follows it.
    pub rate: Adaptation,
    /// Rate of the link that the sender is at.
    pub link_bps: Rate,
    /// What a frame takes on it besides its bytes.
    pub framing_bytes: Bytes,
    /// Rate of frames while losses are repaired; null: as the window lets them.
    pub repair_bps: Option<Rate>,
}

impl Config {
    /// Streams of 80 packets and the trend of their delays, over Ethernet at `link_bps`; all else as a scenario has it that does not say.
    pub fn over(link_bps: Rate) -> Config {
        Config {
            ramp: Ramp { packets: 80, rho: 3.0, rates: None, clip: true },
            schedule: Schedule::Absolute,
            denoising: Denoising::None {},
            estimator: Estimator::Trend { tolerance_ps: Span::from_us(15), tolerance_gaps: 1.5 },
            rate: Adaptation {
                tau_ps: Span::from_ms(200),
                eta: 3.0,
                initial_bps: Rate::from_bps(8_000_000),
                least_bps: Rate::from_bps(1_000_000),
                most_bps: link_bps,
                beta: 0.5,
                start_packets: None,
                backlog: None,
            },
            link_bps,
            framing_bytes: Bytes::new(20),
            repair_bps: None,
        }
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        self.ramp.check().under("/ramp")?;
        self.denoising.check().under("/denoising")?;
        self.estimator.check().under("/estimator")?;
        self.rate.check().under("/rate")?;
        some_rate("/link_bps", self.link_bps)?;
        self.repair_bps.map_or(Ok(()), |rate| some_rate("/repair_bps", rate))
    }
}

/// The available bandwidth that the samples of one stream report: for streams that others have sent. `terms.backlog_s` is
/// that of the first sample.
pub fn estimate(config: &Config, samples: &[Sample], terms: &Terms) -> Option<Estimate> {
    let (steps, offset) = config.denoising.steps(samples);
    let backlog_s = (terms.backlog_s + offset).max(0.0);
    config.estimator.estimate(&steps, &Terms { backlog_s, ..*terms })
}
