//! What holds frames back at their host, whatever the law of the limiters is.

use super::clock::Picoseconds;
use super::credit::Limiters;
use super::paced::Paced;
use crate::ethernet::reaction::{Meter, ReactionPoint, Rules};
use crate::units::Time;

/// The limiters of a host.
#[derive(Debug)]
pub enum Limiting {
    /// None.
    Off,
    /// Frames are spaced by the time since the last one.
    Paced(Paced),
    /// Frames go when there is credit for them.
    Credit(Box<Limiters<Picoseconds>>),
}

impl Limiting {
    /// Whether a frame to `place` may begin at `now`, up to which all was done, if nothing waits.
    pub fn is_open(&self, now: Time, place: u32) -> bool {
        match self {
            Limiting::Off => true,
            Limiting::Paced(paced) => paced.may_send(now, place),
            Limiting::Credit(limiters) => !limiters.is_limited(place),
        }
    }

    /// The congestion point that limits frames to `place`, if there is one.
    #[inline]
    pub fn cause(&self, place: u32) -> Option<u32> {
        match self {
            Limiting::Off => None,
            Limiting::Paced(paced) => paced.cause(place),
            Limiting::Credit(limiters) => limiters.cause(place),
        }
    }

    /// What limits frames to `place`, and by which rules.
    pub fn reaction(&self, place: u32) -> Option<(&ReactionPoint, &Rules)> {
        match self {
            Limiting::Off => None,
            Limiting::Paced(paced) => Some(paced.reaction(place)),
            Limiting::Credit(limiters) => limiters.reaction(place),
        }
    }

    /// What each limiter did up to `end`: its place and its meter.
    pub fn meters(&mut self, end: Time) -> Vec<(u32, Meter)> {
        match self {
            Limiting::Off => Vec::new(),
            Limiting::Paced(paced) => paced.meters(end).collect(),
            Limiting::Credit(limiters) => limiters.meters(end).collect(),
        }
    }
}
