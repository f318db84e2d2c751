//! What the process of an example has cost so far.

/// CPU time of this process, and the time of the clock [s].
#[cfg(unix)]
pub(crate) fn times() -> Result<[f64; 2], String> {
    use nix::time::{ClockId, clock_gettime};
    let seconds = |clock: ClockId| -> Result<f64, String> {
        let time = clock_gettime(clock).map_err(|error| error.to_string())?;
        Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
    };
    Ok([seconds(ClockId::CLOCK_PROCESS_CPUTIME_ID)?, seconds(ClockId::CLOCK_MONOTONIC)?])
}

#[cfg(not(unix))]
pub(crate) fn times() -> Result<[f64; 2], String> {
    Err("CPU time is read on Unix only".into())
}

/// Most memory that this program has occupied, as JSON [B]; `null` where the system does not say. What the kernel counts for a child that
/// has ended is no less than what its parent occupied when it started the child.
pub(crate) fn peak_rss_bytes() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or("null".into(), |kib| (kib * 1024).to_string())
}
