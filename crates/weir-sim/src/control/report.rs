//! What is reported of congestion management at the end of a run.

use weir_core::spec::LevelProbe;
use weir_core::units::{Bytes, Time};

/// How long how much waited at a port.
#[derive(Debug)]
pub(crate) struct Levels {
    /// Up to when it is counted; before its start nothing counts.
    pub(crate) settled: Time,
    pub(crate) end: Time,
    pub(crate) bin: u64,
    /// By bin, ps.
    pub(crate) times: Vec<u64>,
}

impl Levels {
    pub(crate) fn new(probe: &LevelProbe) -> Levels {
        Levels { settled: probe.from_ps, end: probe.to_ps, bin: probe.bin_bytes.count(), times: Vec::new() }
    }

    /// So much has waited up to `now`.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time, waiting: Bytes) {
        let now = now.min(self.end);
        if now <= self.settled {
            return;
        }
        let bin = (waiting.count() / self.bin) as usize;
        if bin >= self.times.len() {
            self.times.resize(bin + 1, 0);
        }
        self.times[bin] += (now - self.settled).ps();
        self.settled = now;
    }

    /// Every bin in which there was anything: its bounds in bytes, the lower one included, and the time in ps.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = (0..).zip(&self.times).filter(|&(_, &time)| time > 0);
        filled.map(|(bin, &time)| (bin * self.bin, (bin + 1) * self.bin, time))
    }
}
