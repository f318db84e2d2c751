//! Specs in, columns out.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::ethernet::headroom as link;
use weir_core::network::{PortSpec, Topology};
use weir_core::routing::Router;
use weir_core::spec::buffers::Buffer;
use weir_core::spec::{Network, Node, Spec};
use weir_sim::{Counts, Plan, Progress, Sink, Table, Tables};

use crate::arrow::{schemas_to_python, table_to_python, tables_to_python};
use crate::errors::{simulation_error, spec_error};
use crate::watch::watched;

/// The nodes and ports of a network, by id.
#[pyfunction]
pub(crate) fn expand<'py>(py: Python<'py>, network_json: &str) -> PyResult<Bound<'py, PyDict>> {
    let network = Network::from_json(network_json).map_err(spec_error)?;
    let topology = py.detach(|| Topology::expand(&network)).map_err(spec_error)?;
    let node = |node: &Node| PyResult::Ok(dict!(py; "name": &node.name, "kind": node.kind.word()));
    let port = |PortSpec { name, from, to, link }: &PortSpec| {
        let (rate, framing) = (link.rate_bps.bps(), link.framing_bytes.count());
        PyResult::Ok(dict!(py; "name": name, "from": from, "to": to, "rate_bps": rate, "framing_bytes": framing))
    };
    let nodes: Vec<_> = topology.nodes.iter().map(node).collect::<PyResult<_>>()?;
    let ports: Vec<_> = topology.ports.iter().map(port).collect::<PyResult<_>>()?;
    Ok(dict!(py; "nodes": nodes, "ports": ports))
}

/// The ports that a frame passes from a host to another, by id, for each pair of hosts.
#[pyfunction]
pub(crate) fn paths(py: Python<'_>, network_json: &str, pairs: Vec<(u32, u32)>) -> PyResult<Vec<Vec<u32>>> {
    let network = Network::from_json(network_json).map_err(spec_error)?;
    let topology = py.detach(|| Topology::expand(&network)).map_err(spec_error)?;
    let is_host = |node: u32| (node as usize) < topology.nodes.len() && topology.is_host(node);
    let mut router = Router::new(&topology);
    let path = |(from, to): (u32, u32)| {
        let path = if is_host(from) && is_host(to) { router.path(from, to) } else { None };
        path.ok_or_else(|| PyValueError::new_err(format!("pairs: no way joins hosts {from} and {to}")))
    };
    pairs.into_iter().map(path).collect()
}

/// The spec again, in the one form that it is written in.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    py.detach(|| {
        let plan = Plan::new(Spec::read(spec_json)?)?;
        Ok(plan.spec().to_json())
    })
    .map_err(spec_error)
}

/// The headroom in bytes that each input of a switch with flow control by its buffer needs for a lossless class, by the id of the port that leads there.
#[pyfunction]
pub(crate) fn headroom(py: Python<'_>, spec_json: &str) -> PyResult<Vec<(u32, u64)>> {
    let needed = || {
        let spec = Spec::from_json(spec_json)?;
        let topology = Topology::expand(&spec.network)?;
        let of_node = |buffer: &Buffer, node: u32| {
            let needed = link::of_inputs(&spec, &topology, buffer, node);
            let inputs = link::inputs(&topology, node).into_iter().zip(needed);
            inputs.map(|(port, bytes)| (port, bytes.count())).collect::<Vec<_>>()
        };
        let buffers = spec.buffers.iter().filter(|buffer| buffer.flow_control.is_some());
        Ok(buffers.flat_map(|buffer| buffer.nodes.iter().flat_map(|&node| of_node(buffer, node))).collect())
    };
    py.detach(needed).map_err(spec_error)
}

/// A spec that the simulator takes, read and checked once for all its runs. With `sums` nobody asks for single flows: where the
/// slotted engine can, it counts what a source sends as one.
#[pyclass(frozen, name = "Plan", module = "weirlab._core")]
pub(crate) struct Checked(Arc<Plan>);

#[pymethods]
impl Checked {
    #[new]
    #[pyo3(signature = (spec_json, sums=false))]
    fn new(py: Python<'_>, spec_json: &str, sums: bool) -> PyResult<Self> {
        let make = if sums { Plan::with_sums } else { Plan::new };
        let plan = py.detach(|| make(Spec::read(spec_json)?)).map_err(spec_error)?;
        Ok(Self(Arc::new(plan)))
    }
}

/// What `simulate` takes.
#[derive(FromPyObject)]
pub(crate) enum Asked<'py> {
    Checked(PyRef<'py, Checked>),
    Json(String),
}

/// One run per seed, as tables of columns. About every 50 ms `watch` receives how much is done, of how much, and `news` what
/// the first run has counted since: rows of simulated time (ps), frames sent and delivered, bytes delivered, frames dropped,
/// frames under way and classes of ports in a deadlock. `parts`, a function and a number, get rows of series while runs go on, where there are so many or more: the replicate, the
/// name of the table and a part of it. Threads call it at the same time; what it raises ends the runs.
#[pyfunction]
#[pyo3(signature = (spec, seeds, threads=None, watch=None, news=None, parts=None))]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    spec: Asked<'py>,
    seeds: Vec<u64>,
    threads: Option<usize>,
    watch: Option<Bound<'py, PyAny>>,
    news: Option<Bound<'py, PyAny>>,
    parts: Option<(Py<PyAny>, usize)>,
) -> PyResult<Bound<'py, PyDict>> {
    let plan = match spec {
        Asked::Checked(checked) => Arc::clone(&checked.0),
        Asked::Json(text) => Checked::new(py, &text, false)?.0,
    };
    let threads = match threads {
        Some(0) => return Err(PyValueError::new_err("threads: at least 1 (got 0)")),
        Some(threads) => threads,
        None => thread::available_parallelism().map_or(1, NonZero::get),
    };
    let progress = if news.is_some() { Progress::with_news() } else { Progress::new() };
    let total = Progress::total(seeds.len());
    let raised = Mutex::new(None);
    let give = |replicate: u32, part: Table| {
        let given = Python::attach(|py| match &parts {
            Some((take, _)) => {
                let name = part.name;
                take.call1(py, (replicate, name, table_to_python(py, part)?)).map(drop)
            }
            None => Ok(()),
        });
        match given {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                raised.lock().expect("no thread panics while it holds the error").get_or_insert(error);
                ControlFlow::Break(())
            }
        }
    };
    let sink = parts.as_ref().map(|parts| Sink { rows: parts.1.max(1), take: &give });
    let work = || {
        let made = weir_sim::simulate_to(sink, &plan, &seeds, threads, &progress);
        match raised.lock().expect("no thread panics while it holds the error").take() {
            Some(error) => Err(error),
            None => made.map(|batch| Tables::new(&plan, &batch)).map_err(|error| simulation_error(&error)),
        }
    };
    let look = || {
        if let Some(news) = &news {
            let row =
                |c: Counts| (c.now.ps(), c.sent, c.delivered, c.delivered_bytes, c.dropped, c.alive, c.deadlocked);
            let rows: Vec<_> = progress.news().into_iter().map(row).collect();
            if !rows.is_empty() {
                news.call1((rows,))?;
            }
        }
        match &watch {
            Some(watch) => watch.call1((progress.done(), total)).map(drop),
            None => Ok(()),
        }
    };
    let tables: PyResult<Tables> = watched(py, work, look, || progress.cancel())?;
    let tables = tables?;
    look()?;
    tables_to_python(py, tables.0)
}

/// The tables that a run has, without rows: what they and their columns are called and mean.
#[pyfunction]
pub(crate) fn table_schemas(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    schemas_to_python(py, &Tables::of_no_run().0)
}
