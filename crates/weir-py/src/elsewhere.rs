//! What stands in for the live parts where there is no Linux.
#![expect(non_snake_case, reason = "one stands for a class")]

use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

macro_rules! need_linux {
    ($($name:ident: $what:literal,)+) => { $(
        /// Raises `NotImplementedError`.
        #[pyfunction]
        #[pyo3(signature = (*_arguments, **_options))]
        pub(crate) fn $name(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
            Err(PyNotImplementedError::new_err(concat!($what, " needs Linux")))
        }
    )+ };
}

need_linux! {
    Meters: "an emulated path",
    clock_quality: "measuring the clock",
    create_device: "a network device",
    create_namespace: "a network namespace",
    emulate: "an emulated path",
    enter_own_user_namespace: "a user namespace",
    keep_administration: "a user namespace",
    one_way_delays: "measuring one-way delays",
    probe_path: "probing a path",
    send_rapid: "Rapid over UDP",
    serve_rapid: "Rapid over UDP",
    steer_receive: "receive packet steering",
    udp_trial: "a live trial",
}
