//! What the threads of a trial tell each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What sender and receiver tell each other while they work.
#[derive(Debug)]
pub struct Shared<'a> {
    cancel: &'a AtomicBool,
    stop: AtomicBool,
    ended: AtomicBool,
    sent: AtomicU64,
}

impl<'a> Shared<'a> {
    /// Of a trial that `cancel` can end.
    pub fn new(cancel: &'a AtomicBool) -> Shared<'a> {
        Shared { cancel, stop: AtomicBool::new(false), ended: AtomicBool::new(false), sent: AtomicU64::new(0) }
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn report_sent(&self, sent: u64) {
        self.sent.store(sent, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn sender_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}
