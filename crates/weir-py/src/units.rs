//! Quantities as text: one parser for both languages.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weir_core::units::{Bytes, FrameRate, ParseError, Rate, Span};

/// Read `text` as a quantity of `kind`: "span" (ps), "size" (bytes), "rate" (bit/s) or "frame-rate" (1/1000 frame/s).
#[pyfunction]
pub(crate) fn parse_quantity(kind: &str, text: &str) -> PyResult<u64> {
    let refused = |error: ParseError| PyValueError::new_err(error.to_string());
    match kind {
        "span" => text.parse::<Span>().map(Span::ps).map_err(refused),
        "size" => text.parse::<Bytes>().map(Bytes::count).map_err(refused),
        "rate" => text.parse::<Rate>().map(Rate::bps).map_err(refused),
        "frame-rate" => text.parse::<FrameRate>().map(FrameRate::millifps).map_err(refused),
        other => Err(PyValueError::new_err(format!("'{other}' is not a kind of quantity"))),
    }
}

/// Write a stored value of `kind` as text that `parse_quantity` reads back.
#[pyfunction]
pub(crate) fn format_quantity(kind: &str, value: u64) -> PyResult<String> {
    match kind {
        "span" => Ok(Span::from_ps(value).to_string()),
        "size" => Ok(Bytes::new(value).to_string()),
        "rate" => Ok(Rate::from_bps(value).to_string()),
        "frame-rate" => Ok(FrameRate::from_millifps(value).to_string()),
        other => Err(PyValueError::new_err(format!("'{other}' is not a kind of quantity"))),
    }
}
