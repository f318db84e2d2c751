//! What the threads of a trial report to each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What all directions of a trial share.
#[derive(Debug)]
pub struct Common<'a> {
    cancel: &'a AtomicBool,
    failed: AtomicBool,
    stop: AtomicBool,
    lost: AtomicU64,
    lost_early: AtomicU64,
    drops: AtomicU64,
}

/// Probes that did not arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing {
    /// All of them.
    pub lost: u64,
    /// Those that were due before the look of the stop rule.
    pub lost_early: u64,
    /// How many of them were dropped by sockets of the tester.
    pub drops: u64,
}

impl<'a> Common<'a> {
    /// Of a trial that `cancel` can end.
    pub fn new(cancel: &'a AtomicBool) -> Common<'a> {
        Common {
            cancel,
            failed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            lost_early: AtomicU64::new(0),
            drops: AtomicU64::new(0),
        }
    }

    /// One direction has failed: the others need not go on.
    pub(crate) fn give_up(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What the sender and the receiver of one direction report to each other while they work.
#[derive(Debug)]
pub struct Shared<'a> {
    common: &'a Common<'a>,
    ended: AtomicBool,
    sent: AtomicU64,
}

impl<'a> Shared<'a> {
    /// Of a direction of a trial.
    pub fn new(common: &'a Common<'a>) -> Shared<'a> {
        Shared { common, ended: AtomicBool::new(false), sent: AtomicU64::new(0) }
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.common.cancel.load(Ordering::Relaxed) || self.common.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.common.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.common.stopped()
    }

    /// Add what this direction misses; what all directions miss now.
    pub(crate) fn add(&self, more: Missing) -> Missing {
        let add = |sum: &AtomicU64, more: u64| sum.fetch_add(more, Ordering::Relaxed) + more;
        Missing {
            lost: add(&self.common.lost, more.lost),
            lost_early: add(&self.common.lost_early, more.lost_early),
            drops: add(&self.common.drops, more.drops),
        }
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
