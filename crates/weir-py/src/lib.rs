//! The Python extension `weirlab._core`: translation, the one error map, and nothing else.

#[macro_use]
mod dict;

mod arrow;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod emulate;
mod errors;
#[cfg(target_os = "linux")]
mod live;
mod path;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod rapid;
mod simulate;
#[cfg(target_os = "linux")]
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
    #[cfg(not(target_os = "linux"))]
    #[pymodule_export]
    use crate::elsewhere::{
        Meters, clock_quality, create_device, create_namespace, emulate, enter_own_user_namespace, keep_administration,
        one_way_delays, probe_path, send_rapid, serve_rapid, steer_receive, udp_trial,
    };
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::emulate::{Meters, create_device, emulate};
    #[pymodule_export]
    use crate::errors::{SimulationError, SpecError};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::live::{
        clock_quality, create_namespace, enter_own_user_namespace, keep_administration, steer_receive, udp_trial,
    };
    #[pymodule_export]
    use crate::path::{check_line, replay_line, simulate_loaded_path};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::probe::probe_path;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::rapid::{send_rapid, serve_rapid};
    #[pymodule_export]
    use crate::simulate::{Checked, check, expand, headroom, paths, simulate, table_schemas};
    #[cfg(target_os = "linux")]
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
