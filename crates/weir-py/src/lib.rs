//! The Python extension `weirlab._core`: translation, the one error map, and nothing else.

mod units;

use pyo3::prelude::*;

/// Compiled core of Weirlab.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use crate::units::{format_quantity, parse_quantity};

    /// Version of the compiled core.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}
