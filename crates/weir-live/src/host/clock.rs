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

    /// Sleep until `deadline`; returns at once when it has passed. Other threads may make it later, nothing earlier.
    pub fn sleep_until(&self, deadline: Time) {
        let ns = self.origin_ns + (deadline.ps() / PS_PER_NS) as i64;
        let request = TimeSpec::new(ns / NS_PER_S, ns % NS_PER_S);
        while let Err(Errno::EINTR) =
            clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &request)
        {}
    }

    /// Sleep until `spin` before `deadline`, then look at the clock until it has come: a short spin takes away the
    /// time that waking up needs. A thread that could not sleep at least as long as it would spin only sleeps.
    pub fn wait_until(&self, deadline: Time, spin: Span) {
        let wait = deadline.saturating_since(self.now());
        self.sleep_until(if wait < spin * 2 { deadline } else { deadline - spin });
        while self.now() < deadline {
            std::hint::spin_loop();
        }
    }

    /// What must be subtracted from a stamp of the real-time clock (ns since 1970) to have this clock (ns).
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

/// Sees to it that a thread sleeps enough.
///
/// The kernel takes a CPU away from real-time threads for 50 ms in each second in which they leave less than that to
/// the others (fair server, `sched_rt_runtime_us`). A thread that rests in small pieces whenever it was on its CPU
/// for more than 92 % of a millisecond leaves 8 % and is never stopped for long. What counts is time off the CPU, as
/// the kernel accounts it: a sleep of a few microseconds often ends before the thread has left its CPU. What it left
/// beyond that counts for the milliseconds that follow, up to `Rest::CREDIT`.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    since: Time,
    on_cpu_before: Span,
    credit: Span,
}

impl Rest {
    /// How often the thread's account is looked at.
    const EVERY: Span = Span::from_ms(1);
    /// Least time off the CPU, in per cent.
    const SHARE_PERCENT: u64 = 8;
    /// Most that counts for later.
    const CREDIT: Span = Span::from_ms(1);

    /// Of the calling thread, from `now` on.
    pub fn from(now: Time) -> Rest {
        Rest { since: now, on_cpu_before: on_cpu(), credit: Span::ZERO }
    }

    /// Sleep if the thread owes it to the others.
    pub fn take_if_owed(&mut self, clock: &Clock, now: Time) {
        let elapsed = now.saturating_since(self.since);
        if elapsed < Rest::EVERY {
            return;
        }
        let (owed, credit) = Rest::owed(elapsed, on_cpu() - self.on_cpu_before, self.credit);
        if owed > Span::ZERO {
            clock.sleep_until(now + owed);
        }
        *self = Rest { credit, ..Rest::from(clock.now()) };
    }

    /// How long a thread must rest that was on its CPU for `on_cpu` of the time `elapsed` and had `credit`, and what
    /// credit is left.
    fn owed(elapsed: Span, on_cpu: Span, credit: Span) -> (Span, Span) {
        let left = elapsed.ps().saturating_sub(on_cpu.ps()) + credit.ps();
        let due = elapsed.ps() / 100 * Rest::SHARE_PERCENT;
        (Span::from_ps(due.saturating_sub(left)), Span::from_ps(left.saturating_sub(due)).min(Rest::CREDIT))
    }
}

/// CPU time of the calling thread.
pub fn on_cpu() -> Span {
    Span::from_ns(u64::try_from(read_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)).unwrap_or(0))
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
    fn a_thread_that_never_left_its_cpu_owes_eight_per_cent() {
        let owed = Rest::owed(Span::from_ms(1), Span::from_ms(1), Span::ZERO);
        assert_eq!(owed, (Span::from_us(80), Span::ZERO));
    }

    #[test]
    fn time_off_the_cpu_counts_as_rest() {
        let owed =
            |on_cpu_us, credit_us| Rest::owed(Span::from_ms(1), Span::from_us(on_cpu_us), Span::from_us(credit_us));
        assert_eq!(owed(950, 0), (Span::from_us(30), Span::ZERO));
        assert_eq!(owed(900, 0), (Span::ZERO, Span::from_us(20)));
        assert_eq!(owed(1000, 200), (Span::ZERO, Span::from_us(120)), "what was left before counts");
        assert_eq!(owed(0, 500), (Span::ZERO, Rest::CREDIT), "but not for ever");
    }

    #[test]
    fn a_busy_thread_that_rests_leaves_some_of_its_cpu() {
        let clock = Clock::start();
        let (began, on_cpu_before) = (clock.now(), on_cpu());
        let mut rest = Rest::from(began);
        while clock.now() < began + Span::from_ms(100) {
            rest.take_if_owed(&clock, clock.now());
        }
        let share = (on_cpu() - on_cpu_before).as_secs_f64() / clock.now().saturating_since(began).as_secs_f64();
        assert!(share < 0.94, "the thread kept {share:.3} of its CPU");
    }
}
