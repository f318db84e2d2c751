//! Work that takes long, next to a Python thread that looks at signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often the waiting Python thread looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs `work` in a thread of its own. This one lets go of Python, and every 50 ms looks for signals and calls
/// `look`; when either raises, `cancel` is called, the end of the work awaited, and the exception raised.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
    mut look: impl FnMut() -> PyResult<()>,
    cancel: impl FnOnce(),
) -> PyResult<T> {
    let done = AtomicBool::new(false);
    let waiting = thread::current();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work();
            done.store(true, Ordering::Release);
            waiting.unpark();
            result
        });
        let mut looked = Ok(());
        while looked.is_ok() && !done.load(Ordering::Acquire) && !worker.is_finished() {
            py.detach(|| thread::park_timeout(LOOK_EVERY));
            looked = py.check_signals().and_then(|()| look());
        }
        if looked.is_err() {
            cancel();
        }
        let result = py.detach(|| worker.join());
        looked?;
        Ok(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// As [`watched`], for work that a flag ends.
pub(crate) fn cancellable<T: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let cancel = AtomicBool::new(false);
    watched(py, || work(&cancel), || Ok(()), || cancel.store(true, Ordering::Relaxed))
}
