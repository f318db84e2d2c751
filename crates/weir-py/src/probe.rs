//! Probes of a path and their answers, as columns.

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::units::{Bytes, Span, Time};
use weir_live::probe::{Answer, Plan, Ports, Probe, Report, Word, run};

use crate::errors::live_error;
use crate::live::{ns, seat};
use crate::watch::cancellable;

/// Real-time priority of the prober: it sleeps nearly all the time.
const PRIORITY: u8 = 40;

/// Send UDP probes from where the caller stands, each at its time with its time to live and its size as an IP packet,
/// and wait for the ICMP messages that answer them. Columns have a row for each probe.
#[pyfunction]
#[pyo3(signature = (*, destination, port, rotating, source_port, token, at_ps, hops, size_bytes, timeout_ps,
    real_time=true))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options, which stand for one plan")]
pub(crate) fn probe_path<'py>(
    py: Python<'py>,
    destination: &str,
    port: u16,
    rotating: bool,
    source_port: u16,
    token: u32,
    at_ps: Vec<u64>,
    hops: Vec<u8>,
    size_bytes: Vec<u64>,
    timeout_ps: u64,
    real_time: bool,
) -> PyResult<Bound<'py, PyDict>> {
    if at_ps.len() != hops.len() || at_ps.len() != size_bytes.len() {
        return Err(PyValueError::new_err("at_ps, hops and size_bytes: one value for each probe"));
    }
    let destination =
        destination.parse().map_err(|_| PyValueError::new_err(format!("'{destination}' is no IP address")))?;
    let probes = at_ps.iter().zip(&hops).zip(&size_bytes).map(|((&at, &hops), &size)| Probe {
        at: Time::from_ps(at),
        hops,
        size: Bytes::new(size),
    });
    let plan = Plan {
        destination,
        port,
        ports: if rotating { Ports::Rotating } else { Ports::Constant },
        source_port,
        token,
        probes: probes.collect(),
        timeout: Span::from_ps(timeout_ps),
        seat: seat(None, None, real_time, PRIORITY),
    };
    let report = cancellable(py, |cancel| run(&plan, cancel))?.map_err(live_error)?;
    as_dict(py, &report)
}

fn as_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let mut routers = Vec::new();
    let router: Vec<i32> = report
        .answers
        .iter()
        .map(|answer| {
            let Some(from) = answer.and_then(|answer| answer.from) else { return -1 };
            let known = routers.iter().position(|&known| known == from).unwrap_or_else(|| {
                routers.push(from);
                routers.len() - 1
            });
            i32::try_from(known).unwrap_or(i32::MAX)
        })
        .collect();
    let word = |answer: &Option<_>| match answer.as_ref().map(|answer: &Answer| answer.word) {
        None => ("", 0, 0),
        Some(Word::TimeExceeded) => ("time-exceeded", 0, 0),
        Some(Word::PortUnreachable) => ("port-unreachable", 0, 0),
        Some(Word::Unreachable(code)) => ("unreachable", code, 0),
        Some(Word::TooBig(mtu)) => ("too-big", 0, mtu),
        Some(Word::Other(_, code)) => ("other", code, 0),
    };
    let words: Vec<(&str, u8, u32)> = report.answers.iter().map(word).collect();
    let rtt = |answer: &Option<Answer>| answer.map_or(f64::NAN, |answer| answer.rtt.ps() as f64);
    let quoted = |answer: &Option<Answer>| answer.map_or(0, |answer| answer.quoted.count());
    let sent = |sent: &Option<Time>| sent.map_or(f64::NAN, |at| at.saturating_since(Time::ZERO).ps() as f64);
    Ok(dict!(py;
        "source": report.source.ip().to_string(),
        "source_port": report.source.port(),
        "sent_ps": report.sent.iter().map(sent).collect::<Vec<f64>>().into_pyarray(py),
        "rtt_ps": report.answers.iter().map(rtt).collect::<Vec<f64>>().into_pyarray(py),
        "quoted_bytes": report.answers.iter().map(quoted).collect::<Vec<u64>>().into_pyarray(py),
        "word": words.iter().map(|&(word, ..)| word).collect::<Vec<_>>(),
        "code": words.iter().map(|&(_, code, _)| code).collect::<Vec<u8>>().into_pyarray(py),
        "mtu_bytes": words.iter().map(|&(.., mtu)| mtu).collect::<Vec<u32>>().into_pyarray(py),
        "router": router.into_pyarray(py),
        "routers": routers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "real_time": report.seated.real_time,
        "waited_ns": report.waited.map(ns);
        report => stamped duplicates strangers replies clock_step_ns
    ))
}
