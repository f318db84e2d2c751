//! The one map from errors of the compiled core to exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use weir_core::SpecError as CoreSpecError;
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
