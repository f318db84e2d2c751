//! What is wrong with a resolved spec, and where.

use std::fmt;
use std::ops::RangeInclusive;

use crate::units::{Rate, Span};

/// A spec that is not legal: what is wrong, and the place as a JSON pointer (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at {})", if pointer.is_empty() { "the top" } else { pointer })]
#[non_exhaustive]
pub struct SpecError {
    /// What is wrong, with the value.
    pub message: String,
    /// Where, such as `/traffic/0/sources/2/to`; empty for the whole document.
    pub pointer: String,
}

impl SpecError {
    /// An error at `pointer`.
    pub fn new(pointer: impl fmt::Display, message: impl Into<String>) -> SpecError {
        SpecError { message: message.into(), pointer: pointer.to_string() }
    }

    /// The same error, one level further out: `prefix` is put before its pointer.
    #[must_use]
    pub fn under(mut self, prefix: impl fmt::Display) -> SpecError {
        self.pointer = format!("{prefix}{}", self.pointer);
        self
    }
}

/// Ends a check with an error at a place, with a message as of `format!`, if a condition holds.
macro_rules! refuse {
    ($condition:expr, $pointer:expr, $($message:tt)+) => {
        if $condition {
            return Err($crate::error::SpecError::new($pointer, format!($($message)+)));
        }
    };
}

/// What a check of a part of a spec gives.
pub(crate) type Checked<T = ()> = Result<T, SpecError>;

/// A check of a part, of which the whole says where it stands.
pub(crate) trait Part {
    /// The same, with `prefix` before the pointer of an error.
    fn under(self, prefix: impl fmt::Display) -> Self;
}

impl<T> Part for Checked<T> {
    fn under(self, prefix: impl fmt::Display) -> Self {
        self.map_err(|error| error.under(prefix))
    }
}

/// Checks each part of the list at `pointer`.
pub(crate) fn each<P, T>(
    list: impl IntoIterator<Item = P>,
    pointer: impl fmt::Display,
    mut check: impl FnMut(P) -> Checked<T>,
) -> Checked {
    list.into_iter().enumerate().try_for_each(|(i, part)| check(part).map(drop).under(format_args!("{pointer}/{i}")))
}

/// Checks that `value` lies in `range`.
pub(crate) fn among<T: PartialOrd + fmt::Display>(
    pointer: impl fmt::Display,
    value: T,
    range: RangeInclusive<T>,
) -> Checked {
    let (least, most) = (range.start(), range.end());
    refuse!(!range.contains(&value), pointer, "a number from {least} to {most} (got {value})");
    Ok(())
}

/// Checks that `value` is greater than 0 and at most `most`.
pub(crate) fn above_zero_to(most: f64, pointer: impl fmt::Display, value: f64) -> Checked {
    refuse!(!(value > 0.0 && value <= most), pointer, "a number above 0 and at most {most} (got {value})");
    Ok(())
}

/// Checks that `span` takes time.
pub(crate) fn some_time(pointer: impl fmt::Display, span: Span) -> Checked {
    refuse!(span == Span::ZERO, pointer, "a time above 0 s (got 0 s)");
    Ok(())
}

/// Checks that `rate` carries anything.
pub(crate) fn some_rate(pointer: impl fmt::Display, rate: Rate) -> Checked {
    refuse!(rate == Rate::from_bps(0), pointer, "a rate above 0 bit/s (got 0 bit/s)");
    Ok(())
}

/// Checks that `value` is a probability.
pub(crate) fn check_probability(pointer: impl fmt::Display, value: f64) -> Checked {
    refuse!(!(0.0..=1.0).contains(&value), pointer, "a probability lies in 0 to 1 (got {value})");
    Ok(())
}

pub(crate) use refuse;
