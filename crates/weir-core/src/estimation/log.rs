//! What a receiver writes down of its trains and measurements.

use super::fleet::Aggregate;
use super::trend::Trend;
use crate::units::{Rate, Time};

/// A measurement that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimateRow {
    /// When it began.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
    /// Of what.
    pub quantity: Quantity,
    /// The range that was found, bit/s on the wire; twice the same where a single value was found.
    pub low_bps: f64,
    /// See `low_bps`.
    pub high_bps: f64,
    /// Why it ended.
    pub ending: Ending,
    /// Trains that it took.
    pub trains: u32,
}

/// A train that has come to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainRow {
    /// Its number.
    pub train: u32,
    /// Number of the measurement.
    pub measurement: u32,
    /// When it was asked for.
    pub asked: Time,
    /// When its end was known.
    pub closed: Time,
    /// The rate that was asked for on the wire; none: back to back.
    pub rate: Option<Rate>,
    /// Packets that were asked for.
    pub packets: u32,
    /// Packets that arrived.
    pub received: u32,
    /// The rate at which they arrived, bit/s; none if that cannot be reported.
    pub received_bps: Option<f64>,
    /// Trend of its delays; none where it was not looked for, or has too few packets.
    pub trend: Option<Trend>,
    /// What its fleet says; none but for the last stream of one.
    pub fleet: Option<Aggregate>,
}

/// What is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// What others leave of the link that leaves least.
    AvailableBandwidth,
    /// The rate of the slowest link.
    Capacity,
}

impl Quantity {
    /// The names of all; the id of one is its place.
    pub const NAMES: [&str; 2] = ["available-bandwidth", "capacity"];
}

/// Why a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The range is as narrow as was asked.
    Resolution,
    /// What lies next to the grey region is: that is the range.
    GreyRegion,
    /// The greatest rate is not too high: the range is open above.
    AboveMost,
    /// The least rate is too high.
    BelowLeast,
    /// Too few streams could be used.
    Unusable,
    /// The least delay did not change any more.
    Stable,
    /// There were as many bulks as there may be.
    AllBulks,
}

impl Ending {
    /// The names of all; the id of one is its place.
    pub const NAMES: [&str; 7] =
        ["resolution", "grey-region", "above-most", "below-least", "unusable", "stable", "all-bulks"];
}

impl Aggregate {
    /// The names of all; the id of one is its place.
    pub const NAMES: [&str; 4] = ["above", "below", "grey", "unusable"];
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
