//! What can go wrong with a live measurement.

use std::io;
use std::path::PathBuf;

/// Why a live measurement gave no result.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A namespace could not be made or entered.
    #[error("network namespace {}: {source}", path.display())]
    Namespace {
        /// Where it is, or `new`.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What it said.
        source: io::Error,
    },
    /// A plan that cannot be carried out.
    #[error("{0}")]
    Plan(String),
    /// The deadline passed before the measurement had ended.
    #[error("not finished after {seconds:.1} s: {what}")]
    Deadline {
        /// The whole time that was allowed.
        seconds: f64,
        /// What was under way.
        what: &'static str,
    },
    /// The other end did not answer, or refused.
    #[error("{text}")]
    Unanswered {
        /// Who, and what may be the reason.
        text: String,
    },
    /// Somebody asked to stop.
    #[error("interrupted")]
    Cancelled,
    /// A worker thread died. A fault of this program.
    #[error("the thread '{0}' panicked")]
    Panicked(&'static str),
}

impl LiveError {
    /// The system's answer to `what`.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> LiveError {
        LiveError::System { what: what.into(), source: source.into() }
    }
}
