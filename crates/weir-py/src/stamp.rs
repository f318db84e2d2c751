//! One-way delays between two namespaces, as columns.

use std::path::PathBuf;

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::units::{Bytes, Span};
use weir_live::stamp::{Plan, run};

use crate::errors::live_error;
use crate::live::seat;
use crate::watch::cancellable;

/// Real-time priority of both ends: they sleep nearly all the time.
const PRIORITY: u8 = 40;

/// Send `count` test packets of STAMP from the namespace `near` to a reflector at `to` in the namespace `far`. Columns have
/// a row for each packet, not-a-number where it did not arrive.
#[pyfunction]
#[pyo3(signature = (*, near, far, to, port, count, every_ps, payload_bytes, timeout_ps, real_time=true))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options, which stand for one plan")]
pub(crate) fn one_way_delays<'py>(
    py: Python<'py>,
    near: PathBuf,
    far: PathBuf,
    to: &str,
    port: u16,
    count: u32,
    every_ps: u64,
    payload_bytes: u64,
    timeout_ps: u64,
    real_time: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let seat = |path| seat(Some(path), None, real_time, PRIORITY);
    let plan = Plan {
        near: seat(near),
        far: seat(far),
        to: to.parse().map_err(|_| PyValueError::new_err(format!("'{to}' is no IP address")))?,
        port,
        count,
        every: Span::from_ps(every_ps),
        payload: Bytes::new(payload_bytes),
        timeout: Span::from_ps(timeout_ps),
    };
    let report = cancellable(py, |cancel| run(&plan, cancel))?.map_err(live_error)?;
    let column = |column: Vec<Option<i64>>| {
        let seconds = column.iter().map(|ns| ns.map_or(f64::NAN, |ns| ns as f64 / 1e9));
        seconds.collect::<Vec<_>>().into_pyarray(py)
    };
    let late: Vec<f64> = report.late_ns.iter().map(|&ns| ns as f64 / 1e9).collect();
    Ok(dict!(py;
        "forward_s": column(report.forward_ns),
        "backward_s": column(report.backward_ns),
        "round_trip_s": column(report.round_trip_ns),
        "late_s": late.into_pyarray(py),
        "clock_step_s": report.clock_step_ns as f64 / 1e9,
    ))
}
