//! The texts that people write for quantities: read exactly, without floating point, and written so that they can be read back.

use std::fmt;
use std::str::FromStr;

use super::{Bytes, FrameRate, PS_PER_S, Rate, Span, Time};

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

/// What a writer of a wrong unit may have meant: another case, another quantity, or per second (`mbit`, as `tc` writes).
fn hint(quantity: &Quantity, unit_text: &str) -> String {
    let meant = |unit: &Unit| format!("; did you mean '{}'?", unit.name);
    if let Some(unit) = quantity.units.iter().find(|unit| unit.name.eq_ignore_ascii_case(unit_text)) {
        return meant(unit);
    }
    let mut others = [&SPAN, &BYTES, &RATE, &FRAME_RATE].into_iter();
    if let Some(other) = others.find(|o| o.name != quantity.name && o.units.iter().any(|u| u.name == unit_text)) {
        return format!(": it is one of a {}", other.name);
    }
    let per_second =
        |unit: &&Unit| unit.name.strip_suffix("/s").is_some_and(|stem| stem.eq_ignore_ascii_case(unit_text));
    quantity.units.iter().find(per_second).map_or_else(String::new, meant)
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
    fn decimal_and_binary_sizes_are_distinguished() {
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
        assert!(error::<Rate>("20mbit").contains("'mbit' is not a unit of rate; did you mean 'Mbit/s'?"));
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
