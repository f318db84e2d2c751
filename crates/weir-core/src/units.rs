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

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Picoseconds in one second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// An instant: picoseconds since the start of a run. 213 days fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time in picoseconds. One byte at 100 Gbit/s is exactly 80 ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

/// A bit rate in bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

/// A frame rate in thousandths of a frame per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

    /// Frames per second, for use inside an algorithm.
    pub fn as_fps_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
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

/// Why a text is not the quantity that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is no number in front.
    #[error("write {article} {quantity} as a number and a unit, such as '{example}' (got '{text}')")]
    NoNumber {
        /// "a" or "an".
        article: &'static str,
        /// What was asked for.
        quantity: &'static str,
        /// A text that would do.
        example: &'static str,
        /// What was found.
        text: String,
    },
    /// The number stands alone.
    #[error("write {article} {quantity} with its unit, such as '{example}' (got '{text}')")]
    NoUnit {
        /// "a" or "an".
        article: &'static str,
        /// What was asked for.
        quantity: &'static str,
        /// A text that would do.
        example: &'static str,
        /// What was found.
        text: String,
    },
    /// The unit is not one of this quantity.
    #[error("'{unit}' is not a unit of {quantity}{hint}; units: {units} (got '{text}')")]
    WrongUnit {
        /// The unit found.
        unit: String,
        /// What was asked for.
        quantity: &'static str,
        /// What the writer may have meant, or nothing.
        hint: String,
        /// All units of the quantity.
        units: String,
        /// What was found.
        text: String,
    },
    /// A negative quantity.
    #[error("{article} {quantity} cannot be negative (got '{text}')")]
    Negative {
        /// "a" or "an".
        article: &'static str,
        /// What was asked for.
        quantity: &'static str,
        /// What was found.
        text: String,
    },
    /// Finer than the stored unit.
    #[error("'{text}' is finer than {resolution}, the resolution of {article} {quantity}")]
    TooFine {
        /// "a" or "an".
        article: &'static str,
        /// What was asked for.
        quantity: &'static str,
        /// The stored unit.
        resolution: &'static str,
        /// What was found.
        text: String,
    },
    /// Beyond 2^64 of the stored unit.
    #[error("'{text}' is more than {article} {quantity} can hold ({limit})")]
    TooLarge {
        /// "a" or "an".
        article: &'static str,
        /// What was asked for.
        quantity: &'static str,
        /// The largest value.
        limit: String,
        /// What was found.
        text: String,
    },
}

/// A spelling of a unit and how many stored units it is; spellings with `print` false are read, never written.
struct Unit {
    name: &'static str,
    factor: u64,
    print: bool,
}

const fn unit(name: &'static str, factor: u64) -> Unit {
    Unit { name, factor, print: true }
}

const fn alias(name: &'static str, factor: u64) -> Unit {
    Unit { name, factor, print: false }
}

/// What a quantity is called and how it is written. Units stand from small to large.
struct Quantity {
    name: &'static str,
    article: &'static str,
    example: &'static str,
    resolution: &'static str,
    units: &'static [Unit],
}

const TIME_UNITS: &[Unit] = &[
    unit("ps", 1),
    unit("ns", 1_000),
    unit("us", 1_000_000),
    alias("µs", 1_000_000),
    alias("μs", 1_000_000),
    unit("ms", 1_000_000_000),
    unit("s", PS_PER_S),
    alias("min", 60 * PS_PER_S),
    alias("h", 3_600 * PS_PER_S),
];

static TIME: Quantity =
    Quantity { name: "time", article: "a", example: "20 ms", resolution: "1 ps", units: TIME_UNITS };
static SPAN: Quantity =
    Quantity { name: "duration", article: "a", example: "0.5 us", resolution: "1 ps", units: TIME_UNITS };
static BYTES: Quantity = Quantity {
    name: "size",
    article: "a",
    example: "150 kB",
    resolution: "1 B",
    units: &[
        unit("B", 1),
        unit("kB", 1_000),
        alias("KiB", 1 << 10),
        unit("MB", 1_000_000),
        alias("MiB", 1 << 20),
        unit("GB", 1_000_000_000),
        alias("GiB", 1 << 30),
        unit("TB", 1_000_000_000_000),
        alias("TiB", 1 << 40),
    ],
};
static RATE: Quantity = Quantity {
    name: "rate",
    article: "a",
    example: "10 Gbit/s",
    resolution: "1 bit/s",
    units: &[
        unit("bit/s", 1),
        alias("bps", 1),
        unit("kbit/s", 1_000),
        alias("kbps", 1_000),
        unit("Mbit/s", 1_000_000),
        alias("Mbps", 1_000_000),
        unit("Gbit/s", 1_000_000_000),
        alias("Gbps", 1_000_000_000),
        unit("Tbit/s", 1_000_000_000_000),
        alias("Tbps", 1_000_000_000_000),
        alias("B/s", 8),
        alias("kB/s", 8_000),
        alias("MB/s", 8_000_000),
        alias("GB/s", 8_000_000_000),
    ],
};
static FRAME_RATE: Quantity = Quantity {
    name: "frame rate",
    article: "a",
    example: "10.6 Mframe/s",
    resolution: "0.001 frame/s",
    units: &[
        unit("frame/s", 1_000),
        alias("frames/s", 1_000),
        alias("fps", 1_000),
        alias("pps", 1_000),
        unit("kframe/s", 1_000_000),
        alias("kframes/s", 1_000_000),
        alias("kfps", 1_000_000),
        alias("kpps", 1_000_000),
        unit("Mframe/s", 1_000_000_000),
        alias("Mframes/s", 1_000_000_000),
        alias("Mfps", 1_000_000_000),
        alias("Mpps", 1_000_000_000),
        unit("Gframe/s", 1_000_000_000_000),
        alias("Gframes/s", 1_000_000_000_000),
    ],
};

macro_rules! textual {
    ($($name:ident: $quantity:ident),*) => {$(
        impl FromStr for $name {
            type Err = ParseError;
            fn from_str(text: &str) -> Result<$name, ParseError> {
                parse(&$quantity, text).map($name)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print(&$quantity, self.0, f)
            }
        }
    )*};
}
textual!(Time: TIME, Span: SPAN, Bytes: BYTES, Rate: RATE, FrameRate: FRAME_RATE);

/// Reads a decimal number and a unit exactly: no floating point is involved.
fn parse(quantity: &'static Quantity, text: &str) -> Result<u64, ParseError> {
    let Quantity { name, article, example, .. } = *quantity;
    let trimmed = text.trim();
    let split = number_length(trimmed);
    let (number, unit_text) = (&trimmed[..split], trimmed[split..].trim());
    let Some((digits, scale)) = decimal(number.trim_start_matches(['+', '-'])) else {
        return Err(ParseError::NoNumber { article, quantity: name, example, text: text.into() });
    };
    if number.starts_with('-') && digits != 0 {
        return Err(ParseError::Negative { article, quantity: name, text: text.into() });
    }
    if unit_text.is_empty() {
        return Err(ParseError::NoUnit { article, quantity: name, example, text: text.into() });
    }
    let Some(unit) = quantity.units.iter().find(|unit| unit.name == unit_text) else {
        return Err(ParseError::WrongUnit {
            unit: unit_text.into(),
            quantity: name,
            hint: hint(quantity, unit_text),
            units: quantity.units.iter().filter(|u| u.name.is_ascii()).map(|u| u.name).collect::<Vec<_>>().join(", "),
            text: text.into(),
        });
    };
    let too_large = || ParseError::TooLarge {
        article,
        quantity: name,
        limit: format!("{} {}", u64::MAX / quantity.units[0].factor, quantity.units[0].name),
        text: text.into(),
    };
    let scaled = digits.checked_mul(u128::from(unit.factor)).ok_or_else(too_large)?;
    let value = if scale >= 0 {
        let factor = 10u128.checked_pow(scale.unsigned_abs()).ok_or_else(too_large)?;
        scaled.checked_mul(factor).ok_or_else(too_large)?
    } else {
        match 10u128.checked_pow(scale.unsigned_abs()) {
            Some(divisor) if scaled % divisor == 0 => scaled / divisor,
            _ => {
                let resolution = quantity.resolution;
                return Err(ParseError::TooFine { article, quantity: name, resolution, text: text.into() });
            }
        }
    };
    u64::try_from(value).map_err(|_| too_large())
}

/// Length of the leading number; an `e` belongs to it only when digits follow.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    while end < bytes.len() && matches!(bytes[end], b'0'..=b'9' | b'.' | b'_') {
        end += 1;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let digits = bytes[end + 1 + sign..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 {
            end += 1 + sign + digits;
        }
    }
    end
}

/// `digits x 10^scale`; trailing zeros of the fraction are dropped so that long exact texts still fit.
fn decimal(number: &str) -> Option<(u128, i32)> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok().filter(|e| e.abs() <= 60)?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut digits: u128 = 0;
    let mut seen = !mantissa.ends_with('_') && mantissa.bytes().any(|b| b.is_ascii_digit());
    for byte in whole.bytes().chain(fraction.bytes()) {
        match byte {
            b'0'..=b'9' => digits = digits.checked_mul(10)?.checked_add(u128::from(byte - b'0'))?,
            b'_' => {}
            _ => seen = false,
        }
    }
    let places = fraction.bytes().filter(u8::is_ascii_digit).count();
    seen.then_some((digits, exponent - i32::try_from(places).ok()?))
}

/// What a writer of a wrong unit may have meant: another case, or another quantity.
fn hint(quantity: &Quantity, unit_text: &str) -> String {
    if let Some(unit) = quantity.units.iter().find(|unit| unit.name.eq_ignore_ascii_case(unit_text)) {
        return format!("; did you mean '{}'?", unit.name);
    }
    [&SPAN, &BYTES, &RATE, &FRAME_RATE]
        .into_iter()
        .find(|other| other.name != quantity.name && other.units.iter().any(|unit| unit.name == unit_text))
        .map_or_else(String::new, |other| format!(": it is one of a {}", other.name))
}

/// Writes the value exactly in the largest unit that it fills at least once, so that parsing gives it back.
fn print(quantity: &Quantity, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let unit =
        quantity.units.iter().rev().find(|unit| unit.print && value >= unit.factor).unwrap_or(&quantity.units[0]);
    let (whole, rest) = (value / unit.factor, value % unit.factor);
    if rest == 0 {
        return f.pad(&format!("{whole} {}", unit.name));
    }
    let places = unit.factor.ilog10() as usize;
    let fraction = format!("{rest:0places$}");
    f.pad(&format!("{whole}.{} {}", fraction.trim_end_matches('0'), unit.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<Q: FromStr<Err = ParseError> + fmt::Debug>(text: &str) -> String {
        text.parse::<Q>().expect_err("an unacceptable text").to_string()
    }

    #[test]
    fn decimal_and_binary_sizes_are_told_apart() {
        assert_eq!("150 kB".parse(), Ok(Bytes::new(150_000)));
        assert_eq!("150 KiB".parse(), Ok(Bytes::new(153_600)));
    }

    #[test]
    fn fractions_and_exponents_are_read_exactly() {
        assert_eq!("0.5 us".parse(), Ok(Span::from_ns(500)));
        assert_eq!("1e-3 s".parse(), Ok(Span::from_ms(1)));
        assert_eq!("1.000000000001 s".parse(), Ok(Span::from_ps(PS_PER_S + 1)));
        assert_eq!("2.5e3 Mbit/s".parse(), Ok(Rate::from_bps(2_500_000_000)));
        assert_eq!("14.880952 Mframe/s".parse(), Ok(FrameRate::from_fps(14_880_952)));
    }

    #[test]
    fn a_number_without_its_unit_says_how_to_write_it() {
        assert_eq!(error::<Rate>("10"), "write a rate with its unit, such as '10 Gbit/s' (got '10')");
        assert_eq!(error::<Span>("soon"), "write a duration as a number and a unit, such as '0.5 us' (got 'soon')");
    }

    #[test]
    fn a_unit_of_another_quantity_or_case_is_named() {
        assert!(error::<Rate>("150 kB").contains("'kB' is not a unit of rate: it is one of a size"));
        assert!(error::<Rate>("10 gbit/s").contains("did you mean 'Gbit/s'?"));
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
        assert!(error::<Span>("0.5 ps").contains("finer than 1 ps"));
        assert!(error::<Span>("1e9 s").contains("more than a duration can hold"));
        assert!(error::<Span>("-1 s").contains("cannot be negative"));
    }

    #[test]
    fn transmission_time_is_rounded_up() {
        assert_eq!(Bytes::new(1) / Rate::from_bps(3), Span::from_ps(2_666_666_666_667));
        assert_eq!(Bytes::new(64) / Rate::from_gbit_per_s(10), Span::from_ps(51_200));
    }
}
