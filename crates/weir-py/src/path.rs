//! A loaded path in virtual time.

use std::sync::atomic::{AtomicBool, Ordering};

use numpy::IntoPyArray;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weir_core::path::LoadedPath;
use weir_core::rng::Seed;
use weir_core::units::Span;
use weir_sim::path::{PathTotals, StreamTotals, simulate_path};

use crate::errors::spec_error;
use crate::watch::watched;

/// Run what is sent over a path, as JSON, in virtual time.
#[pyfunction]
#[pyo3(name = "simulate_path", signature = (spec_json, seed))]
pub(crate) fn simulate_loaded_path<'py>(py: Python<'py>, spec_json: &str, seed: u64) -> PyResult<Bound<'py, PyDict>> {
    let spec = LoadedPath::from_json(spec_json).map_err(spec_error)?;
    let cancelled = AtomicBool::new(false);
    let work = || simulate_path(&spec, Seed::new(seed), &cancelled);
    let totals = watched(py, work, || Ok(()), || cancelled.store(true, Ordering::Relaxed))?;
    as_dict(py, totals.ok_or_else(|| PyKeyboardInterrupt::new_err("cancelled"))?)
}

fn as_dict(py: Python<'_>, totals: PathTotals) -> PyResult<Bound<'_, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("began_ps", totals.began.map(|began| began.ps()))?;
    answer.set_item("counted_ps", totals.counted.ps())?;
    let streams = PyList::empty(py);
    for stream in &totals.streams {
        streams.append(stream_as_dict(py, stream)?)?;
    }
    answer.set_item("streams", streams)?;
    let (numbers, times): (Vec<u32>, Vec<u64>) = totals.answers.iter().map(|&(number, rtt)| (number, rtt.ps())).unzip();
    answer.set_item("answers", numbers.into_pyarray(py))?;
    answer.set_item("rtt_ps", times.into_pyarray(py))?;
    let lines = PyList::empty(py);
    for counters in &totals.lines {
        let line = PyDict::new(py);
        line.set_item("arrived", counters.arrived)?;
        line.set_item("lost", counters.lost)?;
        line.set_item("dropped", counters.dropped + counters.dropped_early)?;
        line.set_item("left", counters.left)?;
        lines.append(line)?;
    }
    answer.set_item("lines", lines)?;
    Ok(answer)
}

fn stream_as_dict<'py>(py: Python<'py>, stream: &StreamTotals) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("delivered_bytes", stream.delivered.count())?;
    answer.set_item("retransmits", stream.sender.retransmits)?;
    answer.set_item("timeouts", stream.sender.timeouts)?;
    let intervals = &stream.intervals;
    let columns: [(&str, Vec<u64>); 4] = [
        ("interval_delivered_bytes", intervals.iter().map(|interval| interval.delivered.count()).collect()),
        ("interval_retransmits", intervals.iter().map(|interval| interval.retransmits).collect()),
        ("interval_window_bytes", intervals.iter().map(|interval| interval.window.count()).collect()),
        ("interval_flight_bytes", intervals.iter().map(|interval| interval.flight.count()).collect()),
    ];
    for (name, column) in columns {
        answer.set_item(name, column.into_pyarray(py))?;
    }
    // Without a measurement yet: 0, which no round trip takes.
    let srtt = intervals.iter().map(|interval| interval.srtt.map_or(0, Span::ps)).collect::<Vec<u64>>();
    answer.set_item("interval_srtt_ps", srtt.into_pyarray(py))?;
    Ok(answer)
}
