//! PAUSE: two thresholds of a queue that stop and release the neighbours. How long a neighbour is held: [`super::pfc::Holds`].
//!
//! Source: IEEE 802.3, annex 31B.

use crate::units::{Bytes, Rate, Span};

/// What a PAUSE frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Begin no frame.
    Xoff,
    /// Go on.
    Xon,
}

/// An amount that waits: bytes or frames.
pub trait Amount: Copy + Ord {
    /// The least.
    const LEAST: Self;
    /// The greatest.
    const MOST: Self;

    /// The next greater one, if there is one.
    #[must_use]
    fn next(self) -> Self;

    /// The sum, which is in range.
    #[must_use]
    fn plus(self, more: Self) -> Self;

    /// The difference, which is not below 0.
    #[must_use]
    fn less(self, less: Self) -> Self;
}

macro_rules! amounts {
    ($($number:ty),*) => {$(
        impl Amount for $number {
            const LEAST: $number = 0;
            const MOST: $number = <$number>::MAX;

            fn next(self) -> $number {
                self.saturating_add(1)
            }

            #[inline(always)]
            fn plus(self, more: $number) -> $number {
                debug_assert!(self.checked_add(more).is_some());
                self.wrapping_add(more)
            }

            #[inline(always)]
            fn less(self, less: $number) -> $number {
                debug_assert!(less <= self);
                self.wrapping_sub(less)
            }
        }
    )*};
}

amounts!(u32, u64);

/// Two watermarks of what waits: above the upper one somebody is asked to stop, at the lower one to go on.
#[derive(Clone, Copy, Debug)]
pub struct Watermarks<L> {
    /// A level above it is news, and one below `relief`: [`Amount::MOST`] and [`Amount::LEAST`] where none is.
    alarm: L,
    relief: L,
    xoff: L,
    /// The least level that is too much to go on.
    too_much: L,
}

impl<L: Amount> Watermarks<L> {
    /// None: nothing is news.
    pub const NONE: Watermarks<L> = Watermarks { alarm: L::MOST, relief: L::LEAST, xoff: L::MOST, too_much: L::LEAST };

    /// Of what is empty; it goes on at `xon` or below.
    pub fn down_to(xoff: L, xon: L) -> Watermarks<L> {
        Watermarks::below(xoff, xon.next())
    }

    /// Of what is empty; it goes on below `xon`.
    pub fn below(xoff: L, xon: L) -> Watermarks<L> {
        Watermarks { alarm: xoff, relief: L::LEAST, xoff, too_much: xon }
    }

    /// Whether so much waits that it is to stop, and was not asked to yet.
    #[inline(always)]
    pub fn is_high(&self, waiting: L) -> bool {
        waiting > self.alarm
    }

    /// Whether so little waits that it is to go on, after it was asked to stop.
    #[inline(always)]
    pub fn is_low(&self, waiting: L) -> bool {
        waiting < self.relief
    }

    /// What waits now; what is to be asked for, if that changed.
    #[inline]
    pub fn on_level(&mut self, waiting: L) -> Option<Pause> {
        if self.is_high(waiting) {
            (self.alarm, self.relief) = (L::MOST, self.too_much);
            Some(Pause::Xoff)
        } else if self.is_low(waiting) {
            (self.alarm, self.relief) = (self.xoff, L::LEAST);
            Some(Pause::Xon)
        } else {
            None
        }
    }
}

/// How long a pause of `quanta` is on a link of this rate: 512 bit times each.
pub fn length(quanta: u16, rate: Rate) -> Span {
    Bytes::new(64 * u64::from(quanta)) / rate
}
