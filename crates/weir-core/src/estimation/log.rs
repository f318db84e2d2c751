//! What a receiver writes down of its trains and measurements.

use super::fleet::Aggregate;
use super::trend::Verdict;
use crate::units::{Rate, Time};
use crate::{named, row};

row! {
    /// A measurement of an estimator of bandwidth.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct EstimateRow {
        /// Start of the measurement.
        pub started: Time => start,
        /// Its end.
        pub ended: Time => t,
        /// Id of the quantity.
        pub quantity: Quantity,
        /// Lower end of the range found, on the wire.
        pub low_bps: f64,
        /// Its upper end; the same where a single value was found.
        pub high_bps: f64,
        /// Id of why it ended.
        pub ending: Ending,
        /// Trains that it took.
        pub trains: u32,
    }
}

row! {
    /// A train of packets that an estimator asked for.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TrainRow {
        /// Its number, from 0.
        pub train: u32,
        /// Number of the measurement, from 0.
        pub measurement: u32,
        /// When the receiver asked for it.
        pub asked: Time,
        /// When its end was known.
        pub closed: Time,
        /// Rate asked for on the wire; unknown for trains back to back.
        pub rate: Option<Rate>,
        /// Packets asked for.
        pub packets: u32,
        /// Packets that arrived.
        pub received: u32,
        /// Rate at which they arrived; unknown where that cannot be said.
        pub received_bps: Option<f64>,
        /// Share of the medians of the delays that exceed the one before, 0 to 1; unknown where no trend is looked for.
        pub pct: Option<f64>,
        /// Growth from the first median to the last over all steps up and down, -1 to 1; unknown where no trend is looked for.
        pub pdt: Option<f64>,
        /// Id of what the delays do.
        pub trend: Option<Verdict>,
        /// Id of what the fleet says; none but for its last train.
        pub fleet: Option<Aggregate>,
    }
}

named! {
    /// What is estimated.
    pub enum Quantity {
        /// What others leave of the link that leaves least.
        AvailableBandwidth = "available-bandwidth",
        /// The rate of the slowest link.
        Capacity = "capacity",
    }
}

named! {
    /// Why a measurement ended.
    pub enum Ending {
        /// The range is as narrow as was asked.
        Resolution = "resolution",
        /// What lies next to the grey region is: that is the range.
        GreyRegion = "grey-region",
        /// The greatest rate is not too high: the range is open above.
        AboveMost = "above-most",
        /// The least rate is too high.
        BelowLeast = "below-least",
        /// Too few streams could be used.
        Unusable = "unusable",
        /// The least delay did not change any more.
        Stable = "stable",
        /// There were as many bulks as there may be.
        AllBulks = "all-bulks",
    }
}

/// Everything that a receiver writes down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Trains in the order in which they ended.
    pub trains: Vec<TrainRow>,
    /// Measurements.
    pub estimates: Vec<EstimateRow>,
}

impl Log {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.trains.len() + self.estimates.len()
    }
}
