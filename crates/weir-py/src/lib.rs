//! The Python extension `weirlab._core`: translation, the one error map, and nothing else.

mod arrow;
mod emulate;
mod errors;
mod live;
mod path;
mod probe;
mod rapid;
mod simulate;
mod stamp;
mod trace;
mod units;
mod watch;

use pyo3::prelude::*;

/// Compiled core of Weirlab.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use crate::arrow::ArrowTable;
    #[pymodule_export]
    use crate::emulate::{Meters, check_line, create_device, emulate, replay_line};
    #[pymodule_export]
    use crate::errors::{SimulationError, SpecError};
    #[pymodule_export]
    use crate::live::{
        clock_quality, create_namespace, enter_own_user_namespace, keep_administration, steer_receive, udp_trial,
    };
    #[pymodule_export]
    use crate::path::simulate_loaded_path;
    #[pymodule_export]
    use crate::probe::probe_path;
    #[pymodule_export]
    use crate::rapid::{send_rapid, serve_rapid};
    #[pymodule_export]
    use crate::simulate::{Checked, check, expand, headroom, paths, simulate, table_schemas};
    #[pymodule_export]
    use crate::stamp::one_way_delays;
    #[pymodule_export]
    use crate::trace::{read_trace, write_timeline};
    #[pymodule_export]
    use crate::units::{format_quantity, parse_quantity};

    /// Version of the compiled core.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Digest of the sources of models and engines: where it is the same, results are, too.
    #[pyfunction]
    fn engine() -> &'static str {
        env!("WEIRLAB_ENGINE")
    }

    /// Whether the core was compiled with optimisation, as measurements need.
    #[pyfunction]
    fn is_release() -> bool {
        !cfg!(debug_assertions)
    }
}
