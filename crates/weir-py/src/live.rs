//! The live parts: trials over real sockets, namespaces, and how well the machine keeps time. Linux only.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::rng::Seed;
use weir_core::spec::{Departures, Destination, FrameSize, Source, Stream};
use weir_core::traffic::Emissions;
use weir_core::units::{Bytes, Span, Time};
use weir_live::distribution::Percentiles;
use weir_live::host::{Priority, Seat, Seated};
use weir_live::payloads::Payloads;
use weir_live::quality::ClockQuality;
use weir_live::trial::{Direction, DirectionReport, Look, Plan, Report, StopRule, run};

use crate::errors::live_error;
use crate::watch::watched;

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
    let answer = PyDict::new(py);
    answer.set_item("resolution_ns", ns(resolution))?;
    answer.set_item("reading_ns", ns(reading))?;
    answer.set_item("overshoot_ns", percentiles(py, Some(normal))?)?;
    answer.set_item("real_time_overshoot_ns", percentiles(py, real_time)?)?;
    Ok(answer)
}

/// Make a network namespace without a name; it lives as long as the descriptor returned, which the caller closes.
#[pyfunction]
pub(crate) fn create_namespace() -> PyResult<i32> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::{IntoRawFd, OwnedFd};
        let namespace = weir_live::host::namespace::Namespace::create().map_err(live_error)?;
        Ok(OwnedFd::from(namespace).into_raw_fd())
    }
    #[cfg(not(target_os = "linux"))]
    Err(live_error(LiveError::NeedsLinux { what: "a network namespace" }))
}

/// Move this process into a user namespace of its own, where it is the same user and may make network namespaces. It
/// must have one thread only.
#[pyfunction]
pub(crate) fn enter_own_user_namespace() -> PyResult<()> {
    #[cfg(target_os = "linux")]
    return weir_live::host::enter_own_user_namespace().map_err(live_error);
    #[cfg(not(target_os = "linux"))]
    Err(live_error(LiveError::NeedsLinux { what: "a user namespace" }))
}

/// Let programs that the calling thread starts from now on enter namespaces that this process has made.
#[pyfunction]
pub(crate) fn keep_administration() -> PyResult<()> {
    #[cfg(target_os = "linux")]
    return weir_live::host::keep_administration().map_err(live_error);
    #[cfg(not(target_os = "linux"))]
    Err(live_error(LiveError::NeedsLinux { what: "a user namespace" }))
}

/// Let the CPUs of `cpus` do the receive work of `interface` in the namespace at the path `namespace`.
#[pyfunction]
pub(crate) fn steer_receive(namespace: PathBuf, interface: &str, cpus: Vec<usize>) -> PyResult<()> {
    #[cfg(target_os = "linux")]
    {
        let namespace = weir_live::host::namespace::Namespace::open(&namespace).map_err(live_error)?;
        namespace.steer_receive(interface, &cpus).map_err(live_error)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (namespace, interface, cpus);
        Err(live_error(LiveError::NeedsLinux { what: "receive packet steering" }))
    }
}

/// One direction of a trial, as Python gives it.
#[derive(FromPyObject)]
pub(crate) struct DirectionArgument {
    #[pyo3(item)]
    source: String,
    #[pyo3(item)]
    destination: String,
    #[pyo3(item)]
    frames: u64,
    #[pyo3(item)]
    run_id: u32,
    #[pyo3(item)]
    sender_namespace: PathBuf,
    #[pyo3(item)]
    receiver_namespace: PathBuf,
    #[pyo3(item)]
    sender_cpu: Option<usize>,
    #[pyo3(item)]
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
    let cancel = AtomicBool::new(false);
    let trial = || run(&plan, &departures, &cancel);
    let report = watched(py, trial, || Ok(()), || cancel.store(true, Ordering::Relaxed))?.map_err(live_error)?;
    as_dict(py, &report)
}

impl DirectionArgument {
    fn planned(&self, real_time: bool) -> PyResult<Direction> {
        let seat = |namespace: &PathBuf, cpu, level| {
            let priority = if real_time { Priority::RealTime(level) } else { Priority::Normal };
            Seat { namespace: Some(namespace.clone()), cpu, priority }
        };
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
    let source = Source {
        from: 0,
        to: Destination::Node(1),
        start_ps: Time::ZERO,
        stop_ps: Time::NEVER,
        departures: Departures::Constant { gap_ps },
        frame_size: FrameSize::Fixed(size),
        stream: Stream::Named,
    };
    Ok(Emissions::new(&source, Seed::new(0).stream("traffic/offered/sender")).take(count).map(|emission| emission.at))
}

fn as_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    let directions =
        report.directions.iter().map(|direction| direction_as_dict(py, direction)).collect::<PyResult<Vec<_>>>()?;
    answer.set_item("directions", directions)?;
    answer.set_item("delay_ns", percentiles(py, report.delay)?)?;
    answer.set_item("clock_step_ns", report.clock_step_ns)?;
    answer.set_item("stopped", report.stopped)?;
    let accounts: Vec<_> = report.accounts.iter().map(|reading| (reading.at.ps(), reading.texts.clone())).collect();
    answer.set_item("accounts", accounts)?;
    Ok(answer)
}

fn direction_as_dict<'py>(py: Python<'py>, report: &DirectionReport) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("intended", report.intended)?;
    answer.set_item("sent", report.sent)?;
    answer.set_item("received", report.received)?;
    answer.set_item("lost_early", report.lost_early)?;
    answer.set_item("duplicated", report.duplicated)?;
    answer.set_item("reordered", report.reordered)?;
    answer.set_item("strangers", report.strangers)?;
    answer.set_item("receiver_drops", report.receiver_drops)?;
    answer.set_item("sending_ps", report.sending.ps())?;
    answer.set_item("lateness_ns", percentiles(py, report.lateness)?)?;
    answer.set_item("late", report.late)?;
    answer.set_item("delay_ns", percentiles(py, report.delay)?)?;
    answer.set_item("blocked", report.blocked)?;
    answer.set_item("batches", report.batches)?;
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
    let Some(Percentiles { min, p50, p90, p99, p99_9, max }) = found else { return Ok(None) };
    let answer = PyDict::new(py);
    for (name, value) in [("min", min), ("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p99_9), ("max", max)] {
        answer.set_item(name, ns(value))?;
    }
    Ok(Some(answer))
}

pub(crate) fn ns(span: Span) -> u64 {
    span.ps() / 1_000
}

fn address(text: &str) -> PyResult<SocketAddrV4> {
    text.parse().map_err(|_| PyValueError::new_err(format!("'{text}' is no IPv4 address with a port")))
}
