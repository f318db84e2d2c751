//! The live parts: trials over real sockets, namespaces, and how well the machine keeps time.

use std::net::SocketAddrV4;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::rng::Seed;
use weir_core::spec::{Departures, FrameSize, Source};
use weir_core::traffic::Emissions;
use weir_core::units::{Bytes, Span, Time};
use weir_live::distribution::Percentiles;
use weir_live::host::namespace::Namespace;
use weir_live::host::{self, Priority, Seat, Seated};
use weir_live::payloads::Payloads;
use weir_live::quality::ClockQuality;
use weir_live::trial::{Direction, DirectionReport, Look, Plan, Report, StopRule, run};

use crate::errors::live_error;
use crate::watch::{cancellable, watched};

/// Real-time priorities: the sender goes before the receiver, whose frames wait in its socket.
const SENDER_PRIORITY: u8 = 40;
const RECEIVER_PRIORITY: u8 = 30;
/// See [`Plan::patience`].
const PATIENCE: Span = Span::from_ms(5_000);

/// Measure how well this machine keeps time; takes about a second. Times in ns.
#[pyfunction]
pub(crate) fn clock_quality(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let ClockQuality { resolution, reading, normal, real_time } =
        watched(py, weir_live::quality::clock_quality, || Ok(()), || ())?.map_err(live_error)?;
    Ok(dict!(py;
        "resolution_ns": ns(resolution),
        "reading_ns": ns(reading),
        "overshoot_ns": percentiles(py, Some(normal))?,
        "real_time_overshoot_ns": percentiles(py, real_time)?,
    ))
}

/// Make a network namespace without a name; it lives as long as the descriptor returned, which the caller closes.
#[pyfunction]
pub(crate) fn create_namespace() -> PyResult<i32> {
    let namespace = Namespace::create().map_err(live_error)?;
    Ok(OwnedFd::from(namespace).into_raw_fd())
}

/// Move this process into a user namespace of its own, where it is the same user and may make network namespaces. It
/// must have one thread only.
#[pyfunction]
pub(crate) fn enter_own_user_namespace() -> PyResult<()> {
    host::enter_own_user_namespace().map_err(live_error)
}

/// Let programs that the calling thread starts from now on enter namespaces that this process has made.
#[pyfunction]
pub(crate) fn keep_administration() -> PyResult<()> {
    host::keep_administration().map_err(live_error)
}

/// Let the CPUs of `cpus` do the receive work of `interface` in the namespace at the path `namespace`.
#[pyfunction]
pub(crate) fn steer_receive(namespace: PathBuf, interface: &str, cpus: Vec<usize>) -> PyResult<()> {
    let namespace = Namespace::open(&namespace).map_err(live_error)?;
    namespace.steer_receive(interface, &cpus).map_err(live_error)
}

/// One direction of a trial, as Python gives it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DirectionArgument {
    source: String,
    destination: String,
    frames: u64,
    run_id: u32,
    sender_namespace: PathBuf,
    receiver_namespace: PathBuf,
    sender_cpu: Option<usize>,
    receiver_cpu: Option<usize>,
}

/// Measure one trial of UDP probes, in each direction of `directions` as many as it says, equally spaced over the duration.
/// `payload_runs`: sizes and how many probes in a row have each, over and over again.
/// `accounts`: files of the kernel to keep as they are before the first departure and after the last.
/// `loss_budget_frames` and `look_budget_frames` count the losses of all directions together. Signals are looked at
/// every 50 ms.
#[pyfunction]
#[pyo3(signature = (*, directions, payload_runs, duration_ps, settle_ps, real_time=true, send_buffer_bytes=4_194_304,
    receive_buffer_bytes=67_108_864, spin_ps=0, loss_budget_frames=None, look_ps=None, look_budget_frames=0,
    flight_ps=100_000_000_000, accounts=Vec::new()))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options, which stand for one plan")]
pub(crate) fn udp_trial<'py>(
    py: Python<'py>,
    directions: Vec<DirectionArgument>,
    payload_runs: Vec<(u64, u64)>,
    duration_ps: u64,
    settle_ps: u64,
    real_time: bool,
    send_buffer_bytes: u64,
    receive_buffer_bytes: u64,
    spin_ps: u64,
    loss_budget_frames: Option<u64>,
    look_ps: Option<u64>,
    look_budget_frames: u64,
    flight_ps: u64,
    accounts: Vec<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let runs: Vec<_> = payload_runs.iter().map(|&(size, count)| (Bytes::new(size), count)).collect();
    let payloads = Payloads::cycle(&runs).ok_or_else(|| PyValueError::new_err("a trial needs probes of some size"))?;
    let look = look_ps.map(|until_ps| Look { until: Span::from_ps(until_ps), budget: look_budget_frames });
    let flight = Span::from_ps(flight_ps);
    let plan = Plan {
        directions: directions.iter().map(|direction| direction.planned(real_time)).collect::<PyResult<_>>()?,
        payloads,
        duration: Span::from_ps(duration_ps),
        settle: Span::from_ps(settle_ps),
        patience: PATIENCE,
        send_buffer: Bytes::new(send_buffer_bytes),
        receive_buffer: Bytes::new(receive_buffer_bytes),
        spin: Span::from_ps(spin_ps),
        stop: loss_budget_frames.map(|budget| StopRule { budget, flight, look }),
        accounts,
    };
    let departures = directions
        .iter()
        .map(|direction| constant(direction.frames, plan.duration, plan.payloads.largest()))
        .collect::<PyResult<Vec<_>>>()?;
    let report = cancellable(py, |cancel| run(&plan, &departures, cancel))?.map_err(live_error)?;
    as_dict(py, &report)
}

impl DirectionArgument {
    fn planned(&self, real_time: bool) -> PyResult<Direction> {
        let seat = |namespace: &PathBuf, cpu, level| seat(Some(namespace.clone()), cpu, real_time, level);
        let destination = address(&self.destination)?;
        Ok(Direction {
            sender: seat(&self.sender_namespace, self.sender_cpu, SENDER_PRIORITY),
            receiver: seat(&self.receiver_namespace, self.receiver_cpu, RECEIVER_PRIORITY),
            source: address(&self.source)?,
            destination,
            listen: destination,
            run: self.run_id,
        })
    }
}

/// `frames` departures of core's constant schedule, spread over `duration`; the live clock only decides when they
/// are looked at.
fn constant(frames: u64, duration: Span, size: Bytes) -> PyResult<impl Iterator<Item = Time> + Clone + Send + Sync> {
    let wrong = |text: String| Err(PyValueError::new_err(text));
    if frames == 0 {
        return wrong("a trial needs a frame".into());
    }
    let gap_ps = duration.ps() as f64 / frames as f64;
    if gap_ps < 1.0 {
        return wrong(format!("{frames} frames do not fit into {duration}"));
    }
    let Ok(count) = usize::try_from(frames) else {
        return wrong(format!("{frames} frames are more than this machine can count"));
    };
    let source = Source::between(0, 1, Departures::Constant { gap_ps }, FrameSize::Fixed(size));
    Ok(Emissions::new(&source, Seed::new(0).stream("traffic/offered/sender")).take(count).map(|emission| emission.at))
}

fn as_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let directions: PyResult<Vec<_>> = report.directions.iter().map(|each| direction_as_dict(py, each)).collect();
    let accounts: Vec<_> = report.accounts.iter().map(|reading| (reading.at.ps(), reading.texts.clone())).collect();
    Ok(dict!(py;
        "directions": directions?,
        "delay_ns": percentiles(py, report.delay)?,
        "accounts": accounts;
        report => clock_step_ns stopped
    ))
}

fn direction_as_dict<'py>(py: Python<'py>, report: &DirectionReport) -> PyResult<Bound<'py, PyDict>> {
    let answer = dict!(py;
        "sending_ps": report.sending.ps(),
        "lateness_ns": percentiles(py, report.lateness)?,
        "delay_ns": percentiles(py, report.delay)?;
        report => intended sent received lost_early duplicated reordered strangers receiver_drops late blocked batches
    );
    for (name, Seated { real_time, cpu }) in [("sender", report.sender), ("receiver", report.receiver)] {
        answer.set_item(format!("{name}_real_time"), real_time)?;
        answer.set_item(format!("{name}_cpu"), cpu)?;
    }
    for (name, time) in [("sender", report.sender_time), ("receiver", report.receiver_time)] {
        answer.set_item(format!("{name}_on_cpu_ns"), time.map(|time| ns(time.on_cpu)))?;
        answer.set_item(format!("{name}_waited_ns"), time.map(|time| ns(time.waited)))?;
    }
    Ok(answer)
}

pub(crate) fn percentiles<'py>(py: Python<'py>, found: Option<Percentiles>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let entry = |Percentiles { min, p50, p90, p99, p99_9, max }| {
        let (p99_9, max) = (ns(p99_9), ns(max));
        Ok(dict!(py; "min": ns(min), "p50": ns(p50), "p90": ns(p90), "p99": ns(p99), "p99.9": p99_9, "max": max))
    };
    found.map(entry).transpose()
}

/// Where a thread works; with `real_time` at this level, where the system permits it.
pub(crate) fn seat(namespace: Option<PathBuf>, cpu: Option<usize>, real_time: bool, level: u8) -> Seat {
    Seat { namespace, cpu, priority: if real_time { Priority::RealTime(level) } else { Priority::Normal } }
}

pub(crate) fn ns(span: Span) -> u64 {
    span.ps() / 1_000
}

fn address(text: &str) -> PyResult<SocketAddrV4> {
    text.parse().map_err(|_| PyValueError::new_err(format!("'{text}' is no IPv4 address with a port")))
}
