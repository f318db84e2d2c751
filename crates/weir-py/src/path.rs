//! Paths in virtual time: loaded ones, and directions that replay recorded arrivals.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::marking::Ecn;
use weir_core::path::{Arrived, LineCounters, LineSpec, LoadedPath, replay};
use weir_core::queue::Label;
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Span, Time};
use weir_sim::path::{PathTotals, StreamInterval, StreamTotals, simulate_path};

use crate::errors::spec_error;
use crate::watch::cancellable;

/// Run what is sent over a path, as JSON, in virtual time.
#[pyfunction]
#[pyo3(name = "simulate_path", signature = (spec_json, seed))]
pub(crate) fn simulate_loaded_path<'py>(py: Python<'py>, spec_json: &str, seed: u64) -> PyResult<Bound<'py, PyDict>> {
    let spec = LoadedPath::from_json(spec_json).map_err(spec_error)?;
    let totals = cancellable(py, |cancelled| simulate_path(&spec, Seed::new(seed), cancelled))?;
    as_dict(py, totals.ok_or_else(|| PyKeyboardInterrupt::new_err("cancelled"))?)
}

fn as_dict(py: Python<'_>, totals: PathTotals) -> PyResult<Bound<'_, PyDict>> {
    let streams: PyResult<Vec<_>> = totals.streams.iter().map(|stream| stream_as_dict(py, stream)).collect();
    let (numbers, times): (Vec<u32>, Vec<u64>) = totals.answers.iter().map(|&(number, rtt)| (number, rtt.ps())).unzip();
    let line = |counters: &LineCounters| {
        let dropped = counters.dropped + counters.dropped_early;
        Ok(dict!(py; "dropped": dropped; counters => arrived lost left))
    };
    let lines: PyResult<Vec<_>> = totals.lines.iter().map(line).collect();
    Ok(dict!(py;
        "began_ps": totals.began.map(|began| began.ps()),
        "counted_ps": totals.counted.ps(),
        "streams": streams?,
        "answers": numbers.into_pyarray(py),
        "rtt_ps": times.into_pyarray(py),
        "lines": lines?,
    ))
}

fn stream_as_dict<'py>(py: Python<'py>, stream: &StreamTotals) -> PyResult<Bound<'py, PyDict>> {
    let column =
        |of: fn(&StreamInterval) -> u64| stream.intervals.iter().map(of).collect::<Vec<u64>>().into_pyarray(py);
    Ok(dict!(py;
        "delivered_bytes": stream.delivered.count(),
        "interval_delivered_bytes": column(|interval| interval.delivered.count()),
        "interval_retransmits": column(|interval| interval.retransmits),
        "interval_window_bytes": column(|interval| interval.window.count()),
        "interval_flight_bytes": column(|interval| interval.flight.count()),
        // Without a measurement yet: 0, which no round trip takes.
        "interval_srtt_ps": column(|interval| interval.srtt.map_or(0, Span::ps));
        stream.sender => retransmits timeouts
    ))
}

/// A direction of a path again, in the one form that it is written in.
#[pyfunction]
pub(crate) fn check_line(line_json: &str) -> PyResult<String> {
    let line = LineSpec::from_json(line_json).map_err(spec_error)?;
    serde_json::to_string(&line).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// What a direction of a path does with recorded arrivals up to `until_ps`: `departures` (places and times of those
/// that leave), `dropped`, `lost` and `marked` (places). `ecn` is the ECN field of each: 0 not capable, 1 ECT(1), 2
/// ECT(0), 3 CE.
#[pyfunction]
#[pyo3(signature = (line_json, *, seed, name, t_ps, size_bytes, flow, ecn, until_ps))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options")]
pub(crate) fn replay_line<'py>(
    py: Python<'py>,
    line_json: &str,
    seed: u64,
    name: &str,
    t_ps: PyReadonlyArray1<'py, u64>,
    size_bytes: PyReadonlyArray1<'py, u64>,
    flow: PyReadonlyArray1<'py, u64>,
    ecn: PyReadonlyArray1<'py, u64>,
    until_ps: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let line = LineSpec::from_json(line_json).map_err(spec_error)?;
    let (times, sizes, flows, ecn) = (t_ps.as_slice()?, size_bytes.as_slice()?, flow.as_slice()?, ecn.as_slice()?);
    if [sizes.len(), flows.len(), ecn.len()].iter().any(|&len| len != times.len()) {
        return Err(PyValueError::new_err("arrivals: as many times as sizes, flows and 'ecn'"));
    }
    if times.windows(2).any(|pair| pair[0] > pair[1]) || times.last().is_some_and(|&last| last > until_ps) {
        return Err(PyValueError::new_err("arrivals: times do not go back, nor beyond the end"));
    }
    if sizes.iter().any(|&size| size > 65_535) {
        return Err(PyValueError::new_err("arrivals: frames are at most 65535 bytes long"));
    }
    let labels =
        flows.iter().zip(ecn).map(|(&flow, &ecn)| Label { flow, ecn: Ecn::from_bits(ecn as u8), ..Label::default() });
    let arrivals: Vec<Arrived> = (times.iter().zip(sizes).zip(labels))
        .map(|((&at, &size), label)| Arrived { at: Time::from_ps(at), size: Bytes::new(size), label })
        .collect();
    let replayed = py.detach(|| replay(&line, Seed::new(seed), name, &arrivals, Time::from_ps(until_ps)));
    let answer = dict!(py; "marked": replayed.marked.into_pyarray(py));
    set_outcome(&answer, replayed.departures, replayed.dropped, replayed.lost)?;
    Ok(answer)
}

/// What became of the frames of a line: places and times of those that left, places of the others.
pub(crate) fn set_outcome(
    answer: &Bound<'_, PyDict>,
    departures: Vec<(u64, Time)>,
    dropped: Vec<u64>,
    lost: Vec<u64>,
) -> PyResult<()> {
    let py = answer.py();
    let (places, times): (Vec<u64>, Vec<u64>) = departures.into_iter().map(|(place, at)| (place, at.ps())).unzip();
    answer.set_item("departed", places.into_pyarray(py))?;
    answer.set_item("departed_ps", times.into_pyarray(py))?;
    answer.set_item("dropped", dropped.into_pyarray(py))?;
    answer.set_item("lost", lost.into_pyarray(py))
}
