//! What the kernel says of time: how long a thread ran, and how long it was ready and had to wait for a CPU.
//!
//! The account of the machine as a whole (time that a hypervisor took away, interrupts, other programs) is understood
//! in Python, `weirlab.testbed.account`. Here its files are only kept as they were at an instant that matters.

use std::fs;
use std::ops::Sub;
use std::path::{Path, PathBuf};

use weir_core::units::{Span, Time};

/// Sums since a thread was made, or between two readings.
///
/// Source: Linux accounts, sched-stats.rst, `/proc/<pid>/schedstat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// Time on a CPU. Interrupts that came meanwhile are part of it where the kernel does not account for them apart.
    pub on_cpu: Span,
    /// Time that it was ready to run, and something else had its CPU.
    pub waited: Span,
}

impl ThreadTime {
    /// Of the calling thread; nothing where the kernel keeps no such account (CONFIG_SCHED_INFO).
    pub fn here() -> Option<ThreadTime> {
        ThreadTime::read(Path::new("/proc/thread-self/schedstat"))
    }

    /// Of the calling thread, since an earlier reading of it; nothing where one of them is missing.
    pub fn since(before: Option<ThreadTime>) -> Option<ThreadTime> {
        Some(ThreadTime::here()? - before?)
    }

    /// Of a thread of this process that still lives, by its number.
    pub fn of(thread: u32) -> Option<ThreadTime> {
        ThreadTime::read(&PathBuf::from(format!("/proc/self/task/{thread}/schedstat")))
    }

    fn read(path: &Path) -> Option<ThreadTime> {
        parse(&fs::read_to_string(path).ok()?)
    }
}

impl Sub for ThreadTime {
    type Output = ThreadTime;

    /// What came after `before`.
    fn sub(self, before: ThreadTime) -> ThreadTime {
        ThreadTime { on_cpu: self.on_cpu - before.on_cpu, waited: self.waited - before.waited }
    }
}

/// Files of the kernel as they were at an instant; empty text for one that cannot be read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When.
    pub at: Time,
    /// Their contents, in the order of the paths.
    pub texts: Vec<String>,
}

impl Reading {
    /// Read them.
    pub fn of(paths: &[PathBuf], at: Time) -> Reading {
        Reading { at, texts: paths.iter().map(|path| fs::read_to_string(path).unwrap_or_default()).collect() }
    }
}

/// `ON_CPU_NS WAITED_NS TURNS`. A kernel without the account prints zeros: a thread that reads it has run.
fn parse(text: &str) -> Option<ThreadTime> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok().map(Span::from_ns));
    let (on_cpu, waited) = (fields.next()??, fields.next()??);
    (on_cpu > Span::ZERO).then_some(ThreadTime { on_cpu, waited })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_a_thread_is_read_in_nanoseconds() {
        let read = ThreadTime { on_cpu: Span::from_ns(395_204), waited: Span::from_ns(3_474_271) };
        assert_eq!(parse("395204 3474271 2\n"), Some(read));
    }

    #[test]
    fn a_kernel_without_the_account_is_not_taken_for_a_thread_that_never_waits() {
        assert_eq!(parse("0 0 0\n"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("a b c"), None);
    }

    #[test]
    fn what_a_thread_did_between_two_readings_is_their_difference() {
        let Some(before) = ThreadTime::here() else { return };
        let spent = (0..1_000_000_u64).fold(0_u64, |sum, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(spent);
        let between = ThreadTime::here().expect("the account was there before") - before;
        assert!(between.on_cpu > Span::ZERO);
    }
}
