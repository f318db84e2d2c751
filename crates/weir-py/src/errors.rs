//! The one map from errors of the compiled core to exceptions.

use std::io;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use weir_core::SpecError as CoreSpecError;
use weir_core::trace::TraceError;
use weir_sim::SimError;

create_exception!(
    weirlab._core,
    SpecError,
    PyException,
    "A resolved spec is not legal. `args` are the message and the place as a JSON pointer."
);
create_exception!(weirlab._core, SimulationError, PyException, "A run broke a law or could not finish.");

/// `SpecError(message, pointer)`.
pub(crate) fn spec_error(error: CoreSpecError) -> PyErr {
    SpecError::new_err((error.message, error.pointer))
}

/// `SimulationError(message)`.
pub(crate) fn simulation_error(error: &SimError) -> PyErr {
    SimulationError::new_err(error.to_string())
}

/// The built-in exception that is meant for such a thing; an `OSError` where the system refused something.
#[cfg(target_os = "linux")]
pub(crate) fn live_error(error: weir_live::LiveError) -> PyErr {
    use pyo3::exceptions::{PyRuntimeError, PyTimeoutError};
    use weir_live::LiveError;

    let text = error.to_string();
    match error {
        LiveError::Namespace { source, .. } | LiveError::System { source, .. } => refused(&source, text),
        LiveError::Plan(_) => PyValueError::new_err(text),
        LiveError::Deadline { .. } | LiveError::Unanswered { .. } => PyTimeoutError::new_err(text),
        LiveError::Cancelled => PyKeyboardInterrupt::new_err(text),
        LiveError::Panicked(_) => PyRuntimeError::new_err(text),
    }
}

/// A `ValueError` where the file is wrong, an `OSError` where the system refused to read it.
pub(crate) fn trace_error(error: TraceError) -> PyErr {
    let text = error.to_string();
    match error {
        TraceError::NotACapture(_) | TraceError::Unsupported(_) => PyValueError::new_err(text),
        TraceError::Read(source) => refused(&source, text),
        TraceError::Cancelled => PyKeyboardInterrupt::new_err(text),
    }
}

/// An `OSError` that keeps the number, so that Python makes it a `PermissionError` where it is one.
fn refused(source: &io::Error, text: String) -> PyErr {
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text)),
        None => PyOSError::new_err(text),
    }
}
