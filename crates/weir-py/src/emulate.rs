//! Paths for real programs: devices, the emulator, and the replay of what it recorded. The emulator is Linux only.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::marking::Ecn;
use weir_core::path::{Arrived, LineSpec, replay};
use weir_core::queue::Label;
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Time};

use crate::errors::{live_error, spec_error};

/// One hop, as Python gives it: descriptors of its two devices, and each direction as JSON.
#[derive(FromPyObject)]
pub(crate) struct HopArgument {
    #[pyo3(item)]
    near: i32,
    #[pyo3(item)]
    far: i32,
    #[pyo3(item)]
    forward: String,
    #[pyo3(item)]
    backward: String,
    #[pyo3(item)]
    strips_window_scale: bool,
}

/// What an emulator at work has counted, for whoever looks at it meanwhile.
#[pyclass(frozen)]
pub(crate) struct Meters {
    #[cfg(target_os = "linux")]
    inner: std::sync::Arc<weir_live::emulate::Meters>,
}

#[pymethods]
impl Meters {
    /// For a path of so many hops.
    #[new]
    fn new(hops: usize) -> Meters {
        #[cfg(not(target_os = "linux"))]
        let _ = hops;
        Meters {
            #[cfg(target_os = "linux")]
            inner: std::sync::Arc::new(weir_live::emulate::Meters::of(hops)),
        }
    }

    /// Each direction: forward and backward of the first hop, of the second, and so on.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        #[cfg(target_os = "linux")]
        return self
            .inner
            .read()
            .into_iter()
            .map(|reading| {
                let figures = PyDict::new(py);
                for (name, figure) in [
                    ("arrived", reading.arrived),
                    ("left", reading.left),
                    ("left_bytes", reading.left_bytes),
                    ("lost", reading.lost),
                    ("dropped", reading.dropped),
                    ("marked", reading.marked),
                    ("waiting_bytes", reading.waiting_bytes),
                ] {
                    figures.set_item(name, figure)?;
                }
                Ok(figures)
            })
            .collect();
        #[cfg(not(target_os = "linux"))]
        {
            let _ = py;
            Ok(Vec::new())
        }
    }
}

/// Make the network device `name` in the namespace at the path `namespace`; it lives as long as the descriptor
/// returned, which the caller closes. With it come the transports whose packets it joins, of those that the kernel
/// can where `joined` asks for it.
#[pyfunction]
#[pyo3(signature = (namespace, name, *, joined=false))]
pub(crate) fn create_device(namespace: PathBuf, name: &str, joined: bool) -> PyResult<(i32, Vec<&'static str>)> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::IntoRawFd;
        use weir_live::emulate::tun::Joined;
        let namespace = weir_live::host::namespace::Namespace::open(&namespace).map_err(live_error)?;
        let (device, joined) = weir_live::emulate::tun::create(&namespace, name, joined).map_err(live_error)?;
        let transports = match joined {
            Joined::Nothing => vec![],
            Joined::Tcp => vec!["tcp"],
            Joined::TcpAndUdp => vec!["tcp", "udp"],
        };
        Ok((device.into_raw_fd(), transports))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (namespace, name, joined);
        Err(live_error(weir_live::LiveError::NeedsLinux { what: "a network device" }))
    }
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
    let answer = PyDict::new(py);
    set_outcome(&answer, replayed.departures, replayed.dropped, replayed.lost)?;
    answer.set_item("marked", replayed.marked.into_pyarray(py))?;
    Ok(answer)
}

/// Emulate a path until the descriptor `stop` can be read or is closed at its other end; what happened comes as a
/// dictionary, times in ns but for the records', which are in ps. Signals are not looked at: call it in a thread.
#[pyfunction]
#[pyo3(signature = (*, hops, seed, stop, real_time=true, cpu=None, spin_ps=50_000_000, mtu=1500,
    joined=false, memory_bytes=268_435_456, record=0, edges_ps=Vec::new(), meters=None))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options, which stand for one plan")]
pub(crate) fn emulate<'py>(
    py: Python<'py>,
    hops: Vec<HopArgument>,
    seed: u64,
    stop: i32,
    real_time: bool,
    cpu: Option<usize>,
    spin_ps: u64,
    mtu: usize,
    joined: bool,
    memory_bytes: usize,
    record: usize,
    edges_ps: Vec<u64>,
    meters: Option<PyRef<'py, Meters>>,
) -> PyResult<Bound<'py, PyDict>> {
    #[cfg(target_os = "linux")]
    {
        let meters = meters.map(|meters| std::sync::Arc::clone(&meters.inner)).unwrap_or_default();
        let plan = live::plan(&hops, seed, real_time, cpu, spin_ps, mtu, joined, memory_bytes, record, meters)?;
        let report = py.detach(|| live::run(&plan, stop)).map_err(live_error)?;
        live::as_dict(py, report, &edges_ps)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (py, hops, seed, stop, real_time, cpu, spin_ps, mtu, joined, memory_bytes, record, edges_ps);
        let _ = meters;
        Err(live_error(weir_live::LiveError::NeedsLinux { what: "an emulated path" }))
    }
}

fn set_outcome(
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

#[cfg(target_os = "linux")]
mod live {
    use std::os::fd::AsFd;

    use weir_core::units::Span;
    use weir_live::LiveError;
    use weir_live::emulate::{self, Hop, LineReport, Plan, Report, descriptor, line_name};
    use weir_live::host::{Priority, Seat};

    use super::*;
    use crate::live::{ns, percentiles};

    /// Above that of anything that uses the path.
    const PRIORITY: u8 = 50;

    #[expect(clippy::too_many_arguments, reason = "the options of `emulate`")]
    pub(super) fn plan(
        hops: &[HopArgument],
        seed: u64,
        real_time: bool,
        cpu: Option<usize>,
        spin_ps: u64,
        mtu: usize,
        joined: bool,
        memory: usize,
        record: usize,
        meters: std::sync::Arc<emulate::Meters>,
    ) -> PyResult<Plan> {
        if hops.is_empty() || !(68..=65_535).contains(&mtu) {
            return Err(PyValueError::new_err(format!(
                "a path has hops, and packets of 68 to 65535 bytes (got {mtu})"
            )));
        }
        let hop = |hop: &HopArgument| {
            Ok(Hop {
                near: descriptor(hop.near).map_err(live_error)?,
                far: descriptor(hop.far).map_err(live_error)?,
                forward: LineSpec::from_json(&hop.forward).map_err(spec_error)?,
                backward: LineSpec::from_json(&hop.backward).map_err(spec_error)?,
                strips_window_scale: hop.strips_window_scale,
            })
        };
        let priority = if real_time { Priority::RealTime(PRIORITY) } else { Priority::Normal };
        Ok(Plan {
            hops: hops.iter().map(hop).collect::<PyResult<_>>()?,
            seed: Seed::new(seed),
            seat: Seat { namespace: None, cpu, priority },
            spin: Span::from_ps(spin_ps),
            mtu,
            joined,
            memory,
            record,
            meters,
        })
    }

    pub(super) fn run(plan: &Plan, stop: i32) -> Result<Report, LiveError> {
        let stop = descriptor(stop)?;
        std::thread::scope(|scope| {
            let emulator = std::thread::Builder::new().name("emulator".into());
            let emulator = emulator
                .spawn_scoped(scope, || emulate::run(plan, stop.as_fd()))
                .map_err(|source| LiveError::System { what: "start a thread".into(), source })?;
            emulator.join().map_err(|_| LiveError::Panicked("emulator"))?
        })
    }

    pub(super) fn as_dict<'py>(py: Python<'py>, report: Report, edges_ps: &[u64]) -> PyResult<Bound<'py, PyDict>> {
        let edges: Vec<Span> = edges_ps.iter().copied().map(Span::from_ps).collect();
        let answer = PyDict::new(py);
        answer.set_item("real_time", report.seated.real_time)?;
        answer.set_item("cpu", report.seated.cpu)?;
        answer.set_item("elapsed_ns", ns(report.elapsed))?;
        answer.set_item("on_cpu_ns", ns(report.on_cpu))?;
        answer.set_item("waited_ns", report.waited.map(ns))?;
        let lines =
            report.lines.into_iter().map(|line| line_as_dict(py, line, &edges)).collect::<PyResult<Vec<_>>>()?;
        answer.set_item("lines", lines)?;
        Ok(answer)
    }

    fn line_as_dict<'py>(py: Python<'py>, line: LineReport, edges: &[Span]) -> PyResult<Bound<'py, PyDict>> {
        let answer = PyDict::new(py);
        answer.set_item("hop", line.hop)?;
        answer.set_item("direction", line.direction)?;
        answer.set_item("name", line_name(line.hop, line.direction))?;
        let counters = line.counters;
        for (name, count) in [
            ("arrived", counters.arrived),
            ("arrived_bytes", counters.arrived_bytes),
            ("lost", counters.lost),
            ("duplicated", counters.duplicated),
            ("dropped", counters.dropped),
            ("dropped_early", counters.dropped_early),
            ("marked", counters.marked),
            ("reordered", counters.reordered),
            ("left", counters.left),
            ("cross_dropped", counters.cross_dropped),
            ("refused", line.refused),
            ("unbuffered", line.unbuffered),
            ("whole", line.whole),
            ("stripped", line.stripped),
        ] {
            answer.set_item(name, count)?;
        }
        let transmitters = line.transmitters.iter().map(|counters| {
            let counts = PyDict::new(py);
            counts.set_item("frames", counters.frames)?;
            counts.set_item("bytes", counters.bytes)?;
            counts.set_item("busy_ps", counters.busy_ps)?;
            counts.set_item("drops", counters.drops)?;
            counts.set_item("queue_max_bytes", counters.queue_max_bytes)?;
            Ok(counts)
        });
        answer.set_item("transmitters", transmitters.collect::<PyResult<Vec<_>>>()?)?;
        answer.set_item("lateness_ns", percentiles(py, line.lateness.percentiles())?)?;
        answer.set_item("lateness_counts", line.lateness.counts(edges))?;
        let record = PyDict::new(py);
        let arrivals = line.record.arrivals;
        let column = |of: fn(&Arrived) -> u64| arrivals.iter().map(of).collect::<Vec<u64>>().into_pyarray(py);
        record.set_item("t_ps", column(|arrived| arrived.at.ps()))?;
        record.set_item("size_bytes", column(|arrived| arrived.size.count()))?;
        record.set_item("flow", column(|arrived| arrived.label.flow))?;
        record.set_item("ecn", column(|arrived| u64::from(arrived.label.ecn.bits())))?;
        set_outcome(&record, line.record.departures, line.record.dropped, line.record.lost)?;
        record.set_item("until_ps", line.record.until.ps())?;
        answer.set_item("record", record)?;
        Ok(answer)
    }
}
