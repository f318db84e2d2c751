//! What a line does with arrivals that were recorded.

use super::line::Line;
use super::spec::LineSpec;
use crate::queue::Label;
use crate::rng::Seed;
use crate::units::{Bytes, Time};

/// A frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// When; not before the one before it.
    pub at: Time,
    /// How long it is.
    pub size: Bytes,
    /// What chooses among several transmitters, and what their queues want to know.
    pub label: Label,
}

/// What becomes of recorded arrivals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replay {
    /// Frames that leave up to the end, in this order: the place of the arrival, and when.
    pub departures: Vec<(u64, Time)>,
    /// Frames that a queue dropped: the place of the arrival, once for each copy, in the order of the drops.
    pub dropped: Vec<u64>,
    /// Frames that left with a mark, in this order.
    pub marked: Vec<u64>,
    /// Frames lost at random.
    pub lost: Vec<u64>,
}

/// The departures and drops of `arrivals` on a line of its own; see [`Line::new`]. Ends at `until`, that time included.
pub fn replay(spec: &LineSpec, seed: Seed, name: &str, arrivals: &[Arrived], until: Time) -> Replay {
    let mut line = Line::new(spec, seed, name);
    let mut reported = Replay::default();
    for (place, arrived) in (0..).zip(arrivals) {
        let arrival = line.arrive(arrived.at, place, arrived.size, arrived.label);
        reported.dropped.extend((0..arrival.dropped).map(|_| place));
        reported.lost.extend((0..arrival.lost).map(|_| place));
        reported.dropped.extend(std::iter::from_fn(|| line.take_dropped()).map(|dropped| dropped.handle));
    }
    // A line may be asked as late as one likes.
    while let Some(departure) = line.leave(until) {
        reported.departures.push((departure.handle, departure.at));
        reported.marked.extend(departure.marked.then_some(departure.handle));
    }
    reported.dropped.extend(std::iter::from_fn(|| line.take_dropped()).map(|dropped| dropped.handle));
    reported
}
