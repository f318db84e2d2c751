//! The clock of a measurement, and how a real-time thread waits on it.

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use weir_core::units::{Span, Time};

const PS_PER_NS: u64 = 1_000;
const NS_PER_S: i64 = 1_000_000_000;

/// The monotonic clock as [`Time`] since the clock was started. Copies agree, in every thread.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ns: i64,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Clock {
        Clock { origin_ns: read_ns(ClockId::CLOCK_MONOTONIC) }
    }

    /// The time now.
    #[inline]
    pub fn now(&self) -> Time {
        let ns = read_ns(ClockId::CLOCK_MONOTONIC) - self.origin_ns;
        Time::from_ps(u64::try_from(ns).unwrap_or(0) * PS_PER_NS)
    }

    /// Sleep until `deadline`; returns at once when it has passed. Another thread or an interrupt may make it
    /// later, never earlier.
    pub fn sleep_until(&self, deadline: Time) {
        let ns = self.origin_ns + (deadline.ps() / PS_PER_NS) as i64;
        let request = TimeSpec::new(ns / NS_PER_S, ns % NS_PER_S);
        while let Err(Errno::EINTR) =
            clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &request)
        {}
    }

    /// Sleep until `spin` before `deadline`, then look at the clock until it has come: a short spin takes away the
    /// time that waking up needs. A thread that could not sleep at least as long as it would spin does not spin,
    /// so that it never keeps a CPU busy with waiting.
    pub fn wait_until(&self, deadline: Time, spin: Span) {
        let wait = deadline.saturating_since(self.now());
        if spin == Span::ZERO || wait < spin * 2 {
            return self.sleep_until(deadline);
        }
        self.sleep_until(deadline - spin);
        while self.now() < deadline {
            std::hint::spin_loop();
        }
    }

    /// What must be subtracted from a stamp of the real-time clock [ns since 1970] to have this clock [ns].
    ///
    /// The kernel stamps received frames with CLOCK_REALTIME, senders stamp with CLOCK_MONOTONIC. Both run alike,
    /// but CLOCK_REALTIME may be stepped: read the offset before and after a measurement, and do not believe its
    /// delays when the two differ. The best of several readings is right to about half the time of a reading.
    pub fn realtime_offset_ns(&self) -> i64 {
        let readings = (0..16).map(|_| {
            let before = read_ns(ClockId::CLOCK_MONOTONIC);
            let real = read_ns(ClockId::CLOCK_REALTIME);
            let after = read_ns(ClockId::CLOCK_MONOTONIC);
            (after - before, real - (before + (after - before) / 2))
        });
        let (_, offset) = readings.min().expect("sixteen readings");
        offset + self.origin_ns
    }
}

fn read_ns(clock: ClockId) -> i64 {
    let reading = clock_gettime(clock).expect("every Linux has this clock");
    reading.tv_sec() * NS_PER_S + reading.tv_nsec()
}

/// Sees to it that a thread sleeps often enough.
///
/// The kernel takes a CPU away from real-time threads for 50 ms in each second in which they leave nothing to the
/// others (fair server, `sched_rt_runtime_us`). A thread that instead sleeps [`Rest::LENGTH`] after each
/// [`Rest::AFTER`] of work leaves 7 % in small pieces and is never stopped for long.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    awake_since: Time,
}

impl Rest {
    /// Longest time at work.
    pub const AFTER: Span = Span::from_ms(1);
    /// Length of a rest.
    pub const LENGTH: Span = Span::from_us(75);

    /// Of a thread that begins to work at `now`.
    pub fn from(now: Time) -> Rest {
        Rest { awake_since: now }
    }

    /// The thread woke from a sleep of its own at `now`.
    pub fn slept(&mut self, now: Time) {
        self.awake_since = now;
    }

    /// Until when to sleep, if it is time to rest.
    pub fn due(&self, now: Time) -> Option<Time> {
        (now.saturating_since(self.awake_since) >= Rest::AFTER).then(|| now + Rest::LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_wakes_a_sleeper_too_early() {
        let clock = Clock::start();
        for _ in 0..20 {
            let deadline = clock.now() + Span::from_us(300);
            clock.sleep_until(deadline);
            assert!(clock.now() >= deadline);
        }
    }

    #[test]
    fn a_deadline_that_has_passed_is_not_waited_for() {
        let clock = Clock::start();
        let before = clock.now();
        clock.wait_until(Time::ZERO, Span::from_us(10));
        assert!(clock.now().saturating_since(before) < Span::from_ms(100));
    }

    #[test]
    fn the_offset_turns_a_reading_of_the_real_time_clock_into_ours() {
        let clock = Clock::start();
        let (before, real, after) = (clock.now(), read_ns(ClockId::CLOCK_REALTIME), clock.now());
        let ours = real - clock.realtime_offset_ns();
        let slack_ns = 1_000_000;
        assert!(ours > (before.ps() / PS_PER_NS) as i64 - slack_ns);
        assert!(ours < (after.ps() / PS_PER_NS) as i64 + slack_ns);
    }

    #[test]
    fn a_thread_that_works_on_rests_and_one_that_slept_does_not() {
        let mut rest = Rest::from(Time::ZERO);
        assert_eq!(rest.due(Time::ZERO + Span::from_us(999)), None);
        let late = Time::ZERO + Rest::AFTER;
        assert_eq!(rest.due(late), Some(late + Rest::LENGTH));
        rest.slept(late);
        assert_eq!(rest.due(late), None);
    }
}
