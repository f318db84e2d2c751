//! Paths for real programs: devices and the emulator.

use std::os::fd::{AsFd, IntoRawFd};
use std::path::PathBuf;
use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::path::{Arrived, LineSpec};
use weir_core::queue::Counters;
use weir_core::rng::Seed;
use weir_core::units::Span;
use weir_live::LiveError;
use weir_live::emulate as live;
use weir_live::emulate::tun::{self, Joined};
use weir_live::emulate::{Hop, LineReport, Plan, Report, descriptor, line_name};
use weir_live::host::namespace::Namespace;

use crate::errors::{live_error, spec_error};
use crate::live::{ns, percentiles, seat};
use crate::path::set_outcome;

/// Above that of anything that uses the path.
const PRIORITY: u8 = 50;

/// One hop, as Python gives it: descriptors of its two devices, and each direction as JSON.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct HopArgument {
    near: i32,
    far: i32,
    forward: String,
    backward: String,
    strips_window_scale: bool,
}

/// What an emulator at work has counted, for whoever looks at it meanwhile.
#[pyclass(frozen)]
pub(crate) struct Meters {
    inner: Arc<live::Meters>,
}

#[pymethods]
impl Meters {
    /// For a path of so many hops.
    #[new]
    fn new(hops: usize) -> Meters {
        Meters { inner: Arc::new(live::Meters::of(hops)) }
    }

    /// Each direction: forward and backward of the first hop, of the second, and so on.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let figures = |reading: live::Reading| {
            Ok(dict!(py;; reading => arrived left left_bytes lost dropped marked waiting_bytes))
        };
        self.inner.read().into_iter().map(figures).collect()
    }
}

/// Make the network device `name` in the namespace at the path `namespace`; it lives as long as the descriptor
/// returned, which the caller closes. With it come the transports whose packets it joins, of those that the kernel
/// can where `joined` asks for it.
#[pyfunction]
#[pyo3(signature = (namespace, name, *, joined=false))]
pub(crate) fn create_device(namespace: PathBuf, name: &str, joined: bool) -> PyResult<(i32, Vec<&'static str>)> {
    let namespace = Namespace::open(&namespace).map_err(live_error)?;
    let (device, joined) = tun::create(&namespace, name, joined).map_err(live_error)?;
    let transports = match joined {
        Joined::Nothing => vec![],
        Joined::Tcp => vec!["tcp"],
        Joined::TcpAndUdp => vec!["tcp", "udp"],
    };
    Ok((device.into_raw_fd(), transports))
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
    let meters = meters.map(|meters| Arc::clone(&meters.inner)).unwrap_or_default();
    if hops.is_empty() || !(68..=65_535).contains(&mtu) {
        return Err(PyValueError::new_err(format!("a path has hops, and packets of 68 to 65535 bytes (got {mtu})")));
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
    let plan = Plan {
        hops: hops.iter().map(hop).collect::<PyResult<_>>()?,
        seed: Seed::new(seed),
        seat: seat(None, cpu, real_time, PRIORITY),
        spin: Span::from_ps(spin_ps),
        mtu,
        joined,
        memory: memory_bytes,
        record,
        meters,
    };
    let report = py.detach(|| run(&plan, stop)).map_err(live_error)?;
    as_dict(py, report, &edges_ps)
}

fn run(plan: &Plan, stop: i32) -> Result<Report, LiveError> {
    let stop = descriptor(stop)?;
    std::thread::scope(|scope| {
        let emulator = std::thread::Builder::new().name("emulator".into());
        let emulator = emulator
            .spawn_scoped(scope, || live::run(plan, stop.as_fd()))
            .map_err(|source| LiveError::System { what: "start a thread".into(), source })?;
        emulator.join().map_err(|_| LiveError::Panicked("emulator"))?
    })
}

fn as_dict<'py>(py: Python<'py>, report: Report, edges_ps: &[u64]) -> PyResult<Bound<'py, PyDict>> {
    let edges: Vec<Span> = edges_ps.iter().copied().map(Span::from_ps).collect();
    let lines: PyResult<Vec<_>> = report.lines.into_iter().map(|line| line_as_dict(py, line, &edges)).collect();
    Ok(dict!(py;
        "elapsed_ns": ns(report.elapsed),
        "on_cpu_ns": ns(report.on_cpu),
        "waited_ns": report.waited.map(ns),
        "lines": lines?;
        report.seated => real_time cpu
    ))
}

fn line_as_dict<'py>(py: Python<'py>, line: LineReport, edges: &[Span]) -> PyResult<Bound<'py, PyDict>> {
    let transmitter = |counters: &Counters| Ok(dict!(py;; counters => frames bytes busy_ps drops queue_max_bytes));
    let transmitters: PyResult<Vec<_>> = line.transmitters.iter().map(transmitter).collect();
    let arrivals = line.record.arrivals;
    let column = |of: fn(&Arrived) -> u64| arrivals.iter().map(of).collect::<Vec<u64>>().into_pyarray(py);
    let record = dict!(py;
        "t_ps": column(|arrived| arrived.at.ps()),
        "size_bytes": column(|arrived| arrived.size.count()),
        "flow": column(|arrived| arrived.label.flow),
        "ecn": column(|arrived| u64::from(arrived.label.ecn.bits())),
        "until_ps": line.record.until.ps(),
    );
    set_outcome(&record, line.record.departures, line.record.dropped, line.record.lost)?;
    Ok(dict!(py;
        "name": line_name(line.hop, line.direction),
        "transmitters": transmitters?,
        "lateness_ns": percentiles(py, line.lateness.percentiles())?,
        "lateness_counts": line.lateness.counts(edges),
        "record": record;
        line => hop direction refused unbuffered whole stripped;
        line.counters => arrived arrived_bytes lost duplicated dropped dropped_early marked reordered left cross_dropped
    ))
}
