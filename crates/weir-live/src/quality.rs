//! How well this machine keeps time.

use std::thread;

use nix::time::{ClockId, clock_getres};
use weir_core::units::{Span, Time};

use crate::LiveError;
use crate::distribution::{Distribution, Percentiles};
use crate::host::{Clock, Priority, Seat};

/// What a live measurement on this machine can rely on.
#[derive(Clone, Copy, Debug)]
pub struct ClockQuality {
    /// Resolution of the monotonic clock, as the system shows it.
    pub resolution: Span,
    /// Time that one reading takes.
    pub reading: Span,
    /// How much later than asked a normal thread wakes up.
    pub normal: Percentiles,
    /// The same under SCHED_FIFO; nothing where that is not permitted.
    pub real_time: Option<Percentiles>,
}

const SLEEP: Span = Span::from_us(500);
/// Sleeping stops after this time, whatever the count.
const AT_MOST: Span = Span::from_ms(400);
const READINGS: u64 = 10_000;
/// Below the priority of most kernel threads that keep a machine alive.
const PRIORITY: u8 = 40;

/// Measure it, in less than a second on an idle machine.
pub fn clock_quality() -> Result<ClockQuality, LiveError> {
    let resolution = clock_getres(ClockId::CLOCK_MONOTONIC)
        .map_err(|errno| LiveError::system("read the resolution of the clock", errno))?;
    let clock = Clock::start();
    for _ in 1..READINGS {
        clock.now();
    }
    let reading = Span::from_ps(clock.now().saturating_since(Time::ZERO).ps() / READINGS);
    let (_, normal) = overshoot(Priority::Normal)?;
    let (real_time, late) = overshoot(Priority::RealTime(PRIORITY))?;
    Ok(ClockQuality {
        resolution: Span::from_ns(resolution.tv_sec() as u64 * 1_000_000_000 + resolution.tv_nsec() as u64),
        reading,
        normal,
        real_time: real_time.then_some(late),
    })
}

/// How late a thread wakes; and whether it had real-time priority.
fn overshoot(priority: Priority) -> Result<(bool, Percentiles), LiveError> {
    let sleeper = move || -> Result<(bool, Percentiles), LiveError> {
        let seated = Seat { namespace: None, cpu: None, priority }.take()?;
        let clock = Clock::start();
        let mut late = Distribution::new();
        while clock.now() < Time::ZERO + AT_MOST {
            let deadline = clock.now() + SLEEP;
            clock.sleep_until(deadline);
            late.record(clock.now().saturating_since(deadline));
        }
        Ok((seated.real_time, late.percentiles().expect("at least one sleep")))
    };
    thread::spawn(sleeper).join().unwrap_or(Err(LiveError::Panicked("sleeper")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_this_machine_is_finer_than_its_sleep() {
        let quality = clock_quality().expect("Linux has clocks");
        assert!(quality.resolution <= Span::from_ms(10));
        assert!(quality.reading < Span::from_us(100));
        assert!(quality.normal.p50 > Span::ZERO && quality.normal.p50 <= quality.normal.max);
    }
}
