//! Captures in, columns out.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, metadata};
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use weir_core::trace::{
    Analysis, Capture, Choices, DrawError, Drawing, Options, Selection, StreamOptions, Style, Timeline, TraceError,
    Track,
};
use weir_core::units::{Rate, Span};

use crate::arrow::tables_to_python;
use crate::errors::trace_error;
use crate::watch::watched;

/// A file, or a pipe that another program will open and writes to at its own pace: waiting for it can be given
/// up.
struct Patient<'a> {
    file: File,
    cancel: &'a AtomicBool,
}

impl<'a> Patient<'a> {
    fn open(path: &Path, cancel: &'a AtomicBool) -> io::Result<Patient<'a>> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::fcntl::OFlag::O_NONBLOCK.bits());
        Ok(Patient { file: options.open(path)?, cancel })
    }

    /// Whether this is a pipe that nobody has opened to write to yet: it reads as if it were at its end.
    #[cfg(unix)]
    fn is_awaited(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::{fd::AsFd, unix::fs::FileTypeExt};

        let is_pipe = self.file.metadata().is_ok_and(|facts| facts.file_type().is_fifo());
        let mut asked = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        is_pipe && poll(&mut asked, PollTimeout::ZERO) == Ok(0)
    }

    #[cfg(not(unix))]
    fn is_awaited(&self) -> bool {
        false
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Ok(0) if self.is_awaited() => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Err(io::Error::other("given up"));
            }
            std::thread::sleep(WAIT);
        }
    }
}

/// Between two looks at a pipe with nothing in it.
const WAIT: std::time::Duration = std::time::Duration::from_millis(20);

/// How many bytes have been read, and of how many.
#[derive(Default)]
struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    cancel: AtomicBool,
}

impl Progress {
    /// So many have been read; whether to go on.
    fn goes_on(&self, done: u64) -> bool {
        self.done.store(done, Ordering::Relaxed);
        !self.cancel.load(Ordering::Relaxed)
    }

    /// Does `work`, with reports to `watch` meanwhile and at its end.
    fn watched<T: Send>(
        &self,
        py: Python<'_>,
        watch: Option<Bound<'_, PyAny>>,
        work: impl FnOnce() -> T + Send,
    ) -> PyResult<T> {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let look = || match &watch {
            Some(watch) => watch.call1((load(&self.done), load(&self.total))).map(drop),
            None => Ok(()),
        };
        let result = watched(py, work, look, || self.cancel.store(true, Ordering::Relaxed))?;
        look().map(|()| result)
    }
}

/// The flows of a capture, as tables of columns, and the packets of the `detailed` connections with most payload. The file is
/// read once if all packets fit into `kept_rows` rows, and else twice; one that holds packets from several
/// points is read once more for the points that are judged. `watch(done, total)` receives the bytes read about
/// every 50 ms, and signals are looked at.
#[pyfunction]
#[pyo3(signature = (path, *, every_ps, detailed=0, detail_rows=1 << 20, kept_rows=1 << 21, connections=1 << 18,
    series_rows=1 << 23, stream_packets=None, link_rate_bps=None, watch=None))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options, which stand for one analysis")]
pub(crate) fn read_trace<'py>(
    py: Python<'py>,
    path: PathBuf,
    every_ps: u64,
    detailed: usize,
    detail_rows: usize,
    kept_rows: usize,
    connections: usize,
    series_rows: usize,
    stream_packets: Option<u32>,
    link_rate_bps: Option<u64>,
    watch: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let every = Span::from_ps(every_ps);
    let options = |detail, choices| Options { every, detail, detail_rows, connections, series_rows, choices };
    let streams = StreamOptions { packets: stream_packets, link_rate: link_rate_bps.map(Rate::from_bps) };
    let progress = Progress::default();
    let work = || {
        let read = |detail: Selection, choices: Choices, before: u64| -> Result<_, TraceError> {
            let facts = metadata(&path).map_err(TraceError::Read)?;
            if before > 0 && !facts.is_file() {
                let text = "it has to be read again, and a pipe can be read once: save it to a file first";
                return Err(TraceError::Unsupported(text.into()));
            }
            let file = Patient::open(&path, &progress.cancel).map_err(TraceError::Read)?;
            progress.total.store(before + facts.len(), Ordering::Relaxed);
            let mut capture = Capture::new(file)?;
            let mut analysis = Analysis::new(options(detail, choices));
            analysis.read(&mut capture, |place| progress.goes_on(before + place))?;
            Ok((analysis, capture))
        };
        let first = if detailed == 0 { Selection::Only(Vec::new()) } else { Selection::UpTo(kept_rows) };
        let (mut analysis, mut capture) = read(first.clone(), Choices::default(), 0)?;
        let mut before = capture.place();
        let choices = analysis.choices();
        if !choices.is_empty() {
            drop(analysis);
            (analysis, capture) = read(first, choices.clone(), before)?;
            before += capture.place();
        }
        let chosen = analysis.heaviest(detailed);
        if !analysis.report_only(&chosen) {
            drop(analysis);
            (analysis, capture) = read(Selection::Only(chosen), choices, before)?;
        }
        Ok(analysis.tables(&capture, streams))
    };
    tables_to_python(py, progress.watched(py, watch, work)?.map_err(trace_error)?)
}

/// Where a capture is.
#[derive(FromPyObject)]
pub(crate) enum Source {
    #[pyo3(transparent)]
    Content(PyBackedBytes),
    #[pyo3(transparent)]
    Path(PathBuf),
}

/// Values over time, with the tracks they stand below, their unit, and their times in ns.
type Counted = (Vec<String>, String, String, Vec<u64>, Vec<f64>);

/// Writes a timeline for Perfetto to the file `out`: the frames of each of `captures`, below tracks of their names, and `series`.
/// Returns how many frames and tracks it has. `watch` is as of `read_trace`.
#[pyfunction]
#[pyo3(signature = (out, captures, series, *, flows, framing, rate_bps=None, watch=None))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword-only options, which stand for one style")]
pub(crate) fn write_timeline(
    py: Python<'_>,
    out: PathBuf,
    captures: Vec<(Vec<String>, Source)>,
    series: Vec<Counted>,
    flows: BTreeMap<String, String>,
    framing: BTreeMap<String, u64>,
    rate_bps: Option<u64>,
    watch: Option<Bound<'_, PyAny>>,
) -> PyResult<(u64, usize)> {
    let style = Style { flows, framing, rate: rate_bps.map(Rate::from_bps) };
    let progress = Progress::default();
    let work = || -> Result<(u64, usize), DrawError> {
        let mut timeline = Timeline::new(BufWriter::new(File::create(&out)?));
        let (mut frames, mut before) = (0, 0);
        for (names, source) in &captures {
            let above = below(&mut timeline, names)?;
            let length = match source {
                Source::Path(path) => metadata(path).map_err(TraceError::Read)?.len(),
                Source::Content(content) => content.len() as u64,
            };
            progress.total.store(before + length, Ordering::Relaxed);
            let go_on = |place| progress.goes_on(before + place);
            let drawing = Drawing::new(&style);
            frames += match source {
                Source::Path(path) => {
                    let file = Patient::open(path, &progress.cancel).map_err(TraceError::Read)?;
                    drawing.draw(&mut Capture::new(file)?, &mut timeline, above, go_on)?
                }
                Source::Content(content) => {
                    drawing.draw(&mut Capture::new(Cursor::new(&content[..]))?, &mut timeline, above, go_on)?
                }
            };
            before += length;
        }
        for (names, name, unit, times, values) in &series {
            let above = below(&mut timeline, names)?;
            let track = timeline.counter(above, name, unit)?;
            for (&at, &value) in times.iter().zip(values) {
                timeline.value(track, at, value)?;
            }
        }
        let tracks = timeline.tracks();
        timeline.finish()?;
        Ok((frames, tracks))
    };
    progress.watched(py, watch, work)?.map_err(|error| match error {
        DrawError::Read(error) => trace_error(error),
        DrawError::Write(error) => error.into(),
    })
}

/// The innermost of the tracks `names`, one below the other.
fn below<W: Write>(timeline: &mut Timeline<W>, names: &[String]) -> io::Result<Option<Track>> {
    names.iter().try_fold(None, |above, name| timeline.track(above, name).map(Some))
}
