//! What is wrong with a resolved spec, and where.

use std::fmt;

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

pub(crate) use refuse;
