//! PAUSE: two thresholds of a queue that stop and release the neighbours, and how long a neighbour is held.
//!
//! Source: IEEE 802.3, annex 31B.

use crate::units::{Bytes, Rate, Span, Time};

/// What a PAUSE frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Begin no frame.
    Xoff,
    /// Go on.
    Xon,
}

/// The thresholds of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Watermarks {
    xoff: Bytes,
    xon: Bytes,
    above: bool,
}

impl Watermarks {
    /// Thresholds of a queue that is empty.
    pub fn new(xoff: Bytes, xon: Bytes) -> Watermarks {
        Watermarks { xoff, xon, above: false }
    }

    /// What waits now; what is to be asked for, if that changed.
    #[inline]
    pub fn on_level(&mut self, waiting: Bytes) -> Option<Pause> {
        if self.above {
            if waiting < self.xon {
                self.above = false;
                return Some(Pause::Xon);
            }
        } else if waiting > self.xoff {
            self.above = true;
            return Some(Pause::Xoff);
        }
        None
    }

    /// Whether the queue was too long and has not fallen below the lower threshold since.
    pub fn is_above(&self) -> bool {
        self.above
    }
}

/// How long a pause of `quanta` is on a link of this rate: 512 bit times each.
pub fn length(quanta: u16, rate: Rate) -> Span {
    Bytes::new(64 * u64::from(quanta)) / rate
}

/// How long a transmitter is held.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    until: Time,
}

impl Hold {
    /// Not at all.
    pub const NONE: Hold = Hold { until: Time::ZERO };

    /// An XOFF takes effect: for `length`, or until an XON.
    pub fn on_xoff(&mut self, now: Time, length: Option<Span>) {
        self.until = length.map_or(Time::NEVER, |length| now + length);
    }

    /// An XON takes effect.
    pub fn on_xon(&mut self) {
        self.until = Time::ZERO;
    }

    /// When it ends; [`Time::NEVER`] while only an XON can end it.
    pub fn until(&self) -> Time {
        self.until
    }
}
