//! Quantities whose unit is their type, and the texts that people write for them.
//!
//! | type | stored as | written as |
//! |---|---|---|
//! | [`Time`] | ps since the start | `20 ms` |
//! | [`Span`] | ps | `0.5 us`, `1 min` |
//! | [`Bytes`] | bytes | `150 kB` (150 000), `150 KiB` (153 600) |
//! | [`Rate`] | bit/s | `10 Gbit/s` |
//! | [`FrameRate`] | 1/1000 frame/s | `10.6 Mframe/s` |
//!
//! Operators exist only where physics has them:
//!
//! ```
//! use weir_core::units::{Bytes, Rate, Span, Time};
//! let tx: Span = Bytes::new(1500) / Rate::from_gbit_per_s(10);
//! assert_eq!(tx, Span::from_ns(1200));
//! assert_eq!(Time::ZERO + tx, Time::from_ps(1_200_000));
//! ```
//!
//! Mistakes do not compile: bytes are no time,
//! ```compile_fail,E0277
//! # use weir_core::units::{Bytes, Span};
//! let wrong = Bytes::new(1500) + Span::from_ns(1);
//! ```
//! two instants have no sum,
//! ```compile_fail,E0277
//! # use weir_core::units::Time;
//! let wrong = Time::from_ps(1) + Time::from_ps(2);
//! ```
//! a frame rate is no bit rate,
//! ```compile_fail,E0308
//! # use weir_core::units::{FrameRate, Rate};
//! let wrong: Rate = FrameRate::from_fps(1_000);
//! ```
//! and a bare number is no quantity.
//! ```compile_fail,E0308
//! # use weir_core::units::Span;
//! let wrong: Span = 500;
//! ```

mod text;

use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use text::ParseError;

/// Picoseconds in one second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// An instant: picoseconds since the start of a run. 213 days fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time in picoseconds. One byte at 100 Gbit/s is exactly 80 ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Span(u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Bytes(u64);

/// A bit rate in bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rate(u64);

/// A frame rate in thousandths of a frame per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FrameRate(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    #[inline]
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Picoseconds since the start.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// The time since `earlier`, or zero when `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// `ps` picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns * 1_000)
    }

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us * 1_000_000)
    }

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms * 1_000_000_000)
    }

    /// Picoseconds.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Seconds, for use inside an algorithm.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
}

impl Bytes {
    /// No data.
    pub const ZERO: Bytes = Bytes(0);

    /// `count` bytes.
    #[inline]
    pub const fn new(count: u64) -> Bytes {
        Bytes(count)
    }

    /// The number of bytes.
    #[inline]
    pub const fn count(self) -> u64 {
        self.0
    }
}

impl Rate {
    /// `bps` bits per second.
    #[inline]
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// `gbps` times 10^9 bits per second.
    pub const fn from_gbit_per_s(gbps: u64) -> Rate {
        Rate(gbps * 1_000_000_000)
    }

    /// Bits per second.
    #[inline]
    pub const fn bps(self) -> u64 {
        self.0
    }
}

impl FrameRate {
    /// `fps` frames per second.
    pub const fn from_fps(fps: u64) -> FrameRate {
        FrameRate(fps * 1_000)
    }

    /// `mfps` thousandths of a frame per second.
    pub const fn from_millifps(mfps: u64) -> FrameRate {
        FrameRate(mfps)
    }

    /// Thousandths of a frame per second.
    pub const fn millifps(self) -> u64 {
        self.0
    }
}

macro_rules! additive {
    ($($left:ident + $right:ident => $out:ident),* $(,)?) => {$(
        impl Add<$right> for $left {
            type Output = $out;
            #[inline]
            fn add(self, other: $right) -> $out {
                $out(self.0 + other.0)
            }
        }
        impl AddAssign<$right> for $left {
            #[inline]
            fn add_assign(&mut self, other: $right) {
                self.0 += other.0;
            }
        }
        impl Sub<$right> for $left {
            type Output = $out;
            #[inline]
            fn sub(self, other: $right) -> $out {
                $out(self.0 - other.0)
            }
        }
        impl SubAssign<$right> for $left {
            #[inline]
            fn sub_assign(&mut self, other: $right) {
                self.0 -= other.0;
            }
        }
    )*};
}
additive!(
    Time + Span => Time,
    Span + Span => Span,
    Bytes + Bytes => Bytes,
    Rate + Rate => Rate,
    FrameRate + FrameRate => FrameRate,
);

macro_rules! scalable {
    ($($name:ident),*) => {$(
        impl Mul<u64> for $name {
            type Output = $name;
            #[inline]
            fn mul(self, factor: u64) -> $name {
                $name(self.0 * factor)
            }
        }
    )*};
}
scalable!(Span, Bytes, Rate, FrameRate);

impl Sub<Time> for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}

/// Transmission time, rounded up to the next picosecond.
impl Div<Rate> for Bytes {
    type Output = Span;
    fn div(self, rate: Rate) -> Span {
        let ps = (u128::from(self.0) * 8 * u128::from(PS_PER_S)).div_ceil(u128::from(rate.0));
        Span(u64::try_from(ps).expect("a transmission ends within 213 days"))
    }
}

/// Whole bytes that fit into a span, rounded down.
impl Mul<Span> for Rate {
    type Output = Bytes;
    fn mul(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.0) / (8 * u128::from(PS_PER_S));
        Bytes(u64::try_from(bytes).expect("fewer than 2^64 bytes"))
    }
}

/// Average bit rate, rounded down.
impl Div<Span> for Bytes {
    type Output = Rate;
    fn div(self, span: Span) -> Rate {
        let bps = u128::from(self.0) * 8 * u128::from(PS_PER_S) / u128::from(span.0);
        Rate(u64::try_from(bps).expect("less than 2^64 bit/s"))
    }
}
