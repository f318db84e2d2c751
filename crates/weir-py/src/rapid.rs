//! Rapid over UDP: the sending and the receiving end.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weir_core::SpecError;
use weir_core::columns::{Named, Table};
use weir_core::rapid::{Outcome, ProbeState};
use weir_core::tcp::Config;
use weir_core::units::{Bytes, Span};
use weir_live::LiveError;
use weir_live::host::Seated;
use weir_live::rapid::keys::Key;
use weir_live::rapid::send::{self, Report, Watch};
use weir_live::rapid::serve;
use weir_live::rapid::service::{Bounds, Counts, Event};
use weir_live::rapid::timing::{Kept, QUANTILES};
use weir_live::rapid::wire::Closed;

use crate::arrow::tables_to_python;
use crate::errors::{live_error, spec_error};
use crate::live::{ns, percentiles, seat};
use crate::watch::watched;

/// Send over UDP to `peer`, where `serve_rapid` runs, as `config_json` (a TCP of the core) says, for `duration_ps`. Every
/// 50 ms `watch` receives the time since the start (ns), bytes acknowledged and the mean rate (bit/s); when it answers true,
/// the transfer ends. Gives a dictionary: counts, times in ns, and `tables`.
#[pyfunction]
#[pyo3(signature = (*, peer, secret, config_json, duration_ps, watch, source=None, every_ps=100_000_000_000,
    patience_ps=5_000_000_000_000, spin_ps=50_000_000, real_time=true, cpu=None, buffer_bytes=4_194_304, packets=false))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options, which stand for one plan")]
pub(crate) fn send_rapid<'py>(
    py: Python<'py>,
    peer: &str,
    secret: &[u8],
    config_json: &str,
    duration_ps: u64,
    watch: Bound<'py, PyAny>,
    source: Option<&str>,
    every_ps: u64,
    patience_ps: u64,
    spin_ps: u64,
    real_time: bool,
    cpu: Option<usize>,
    buffer_bytes: u64,
    packets: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (peer, source) = (address(peer)?, source.map(address).transpose()?);
    let config: Config =
        serde_json::from_str(config_json).map_err(|error| spec_error(SpecError::new("", error.to_string())))?;
    config.check().map_err(spec_error)?;
    let plan = send::Plan {
        peer,
        source,
        secret: key(secret)?,
        config,
        lasts: Span::from_ps(duration_ps),
        every: Span::from_ps(every_ps.max(1_000_000_000)),
        patience: Span::from_ps(patience_ps),
        spin: Span::from_ps(spin_ps),
        seat: seat(None, cpu, real_time, SENDER_PRIORITY),
        buffer: Bytes::new(buffer_bytes),
        packets,
    };
    send(py, &plan, &watch)
}

/// Receive what `send_rapid` sends from those who hold `secret`, until `watch` answers true or `sessions` have ended. Every
/// 50 ms `watch` is given what happened, a list of dictionaries; the first says where the service listens. Gives what was
/// counted.
#[pyfunction]
#[pyo3(signature = (*, listen, secret, watch, sessions=None, most_sessions=4, longest_ps=600_000_000_000_000,
    most_bytes=1_000_000_000_000, memory_bytes=16_777_216, real_time=true, cpu=None, buffer_bytes=8_388_608))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options, which stand for one plan")]
pub(crate) fn serve_rapid<'py>(
    py: Python<'py>,
    listen: &str,
    secret: &[u8],
    watch: Bound<'py, PyAny>,
    sessions: Option<u64>,
    most_sessions: usize,
    longest_ps: u64,
    most_bytes: u64,
    memory_bytes: u64,
    real_time: bool,
    cpu: Option<usize>,
    buffer_bytes: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let listen = address(listen)?;
    let plan = serve::Plan {
        listen,
        secret: key(secret)?,
        bounds: Bounds {
            sessions: most_sessions,
            longest: Span::from_ps(longest_ps),
            most: Bytes::new(most_bytes),
            buffer: Bytes::new(memory_bytes),
        },
        sessions,
        buffer: Bytes::new(buffer_bytes),
        seat: seat(None, cpu, real_time, RECEIVER_PRIORITY),
    };
    serve(py, &plan, &watch)
}

fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| PyValueError::new_err(format!("'{text}' is no IP address with a port")))
}

/// Below an emulator of paths, and the sender before the receiver, whose datagrams wait in its socket.
const SENDER_PRIORITY: u8 = 40;
const RECEIVER_PRIORITY: u8 = 30;

fn key(secret: &[u8]) -> PyResult<Key> {
    Key::of_secret(secret).map_err(live_error)
}

fn send<'py>(py: Python<'py>, plan: &send::Plan, watch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let shared = Watch::default();
    let look = || {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let reported = (load(&shared.elapsed_ns), load(&shared.acked), load(&shared.rate));
        if watch.call1(reported)?.is_truthy()? {
            shared.cancel.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    let work = || send::send(plan, &shared);
    let report = watched(py, work, look, || shared.cancel.store(true, Ordering::Relaxed))?.map_err(live_error)?;
    as_dict(py, report)
}

fn serve<'py>(py: Python<'py>, plan: &serve::Plan, watch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let cancel = AtomicBool::new(false);
    let place: Mutex<Option<(SocketAddr, Seated)>> = Mutex::new(None);
    let happened: Mutex<Vec<Event>> = Mutex::new(Vec::new());
    let look = || -> PyResult<()> {
        let reported = PyList::empty(py);
        if let Some((address, seated)) = lock(&place).take() {
            let (address, real_time) = (address.to_string(), seated.real_time);
            reported.append(dict!(py; "what": "listening", "address": address, "real_time": real_time))?;
        }
        let events = std::mem::take(&mut *lock(&happened));
        for event in &events {
            reported.append(event_as_dict(py, event)?)?;
        }
        if watch.call1((reported,))?.is_truthy()? {
            cancel.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    let work = || {
        let ready = |address, seated| *lock(&place) = Some((address, seated));
        serve::serve(plan, &cancel, ready, |event| lock(&happened).push(event))
    };
    let mut look = look;
    let counts: Result<Counts, LiveError> = watched(py, work, &mut look, || cancel.store(true, Ordering::Relaxed))?;
    look()?;
    let counts = counts.map_err(live_error)?;
    Ok(dict!(py;; counts => strangers unanswered replayed sessions))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn event_as_dict<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let name = |peer: &SocketAddr| SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string();
    Ok(match event {
        Event::Opened { peer } => dict!(py; "what": "opened", "peer": name(peer)),
        Event::Ended { peer, end, counts } => {
            let counts = far_as_dict(py, counts)?;
            dict!(py; "what": "ended", "peer": name(peer), "end": end.name(), "counts": counts)
        }
        Event::Refused { peer, reason } => {
            dict!(py; "what": "refused", "peer": name(peer), "reason": reason.name())
        }
    })
}

fn far_as_dict<'py>(py: Python<'py>, counts: &Closed) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py;
        "out_of_order_segments": counts.out_of_order,
        "duplicate_segments": counts.duplicates,
        "beyond_window_segments": counts.beyond_window;
        counts => segments delivered_bytes acks socket_drops clock_steps lasted_ns
    ))
}

fn as_dict(py: Python<'_>, report: Report) -> PyResult<Bound<'_, PyDict>> {
    let counts = dict!(py;; report.counters =>
        segments bytes acked_bytes retransmits fast_retransmits forward_retransmits slow_start_retransmits
        timeout_retransmits rescue_retransmits lost_retransmits timeouts recoveries recovery_failures acks
    );
    Ok(dict!(py;
        "ending": report.ending.name(),
        "elapsed_ns": ns(report.elapsed),
        "on_cpu_ns": ns(report.on_cpu),
        "waited_ns": report.waited.map(ns),
        "min_rtt_ns": report.rtt.0.map(ns),
        "srtt_ns": report.rtt.1.map(ns),
        "counts": counts,
        "receiver": report.far.as_ref().map(|far| far_as_dict(py, far)).transpose()?,
        "gaps": kept_as_dict(py, &report.kept)?,
        "outcomes": Outcome::NAMES.to_vec(),
        "states": ProbeState::NAMES.to_vec(),
        "tables": tables_of(py, &report)?;
        report.seated => real_time cpu;
        report => blocked strangers
    ))
}

fn kept_as_dict<'py>(py: Python<'py>, kept: &Kept) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py;
        "count": kept.gaps,
        "within_1_us": kept.exact,
        "within_a_quarter": kept.near,
        "quantiles": QUANTILES.to_vec(),
        "error_ns": kept.error_ns.clone(),
        "lateness_ns": percentiles(py, kept.late)?,
    ))
}

fn tables_of<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let tables = vec![
        Table::new("probe_streams", [], report.log.streams.iter().map(|row| ([], row))),
        Table::new("probe_states", [], report.log.states.iter().map(|row| ([], row))),
        Table::new("probe_packets", [], report.log.packets.iter().map(|row| ([], row))),
        Table::new("rates", [], report.intervals.iter().map(|row| ([], row))),
    ];
    tables_to_python(py, tables)
}
