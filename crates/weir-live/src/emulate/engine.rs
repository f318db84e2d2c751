//! The loop of the emulator: one thread that reads, asks the models, writes and sleeps.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::unistd::{read, write};
use weir_core::path::{Arrived, Line, LineSpec};
use weir_core::queue::Label;
use weir_core::units::{Bytes, Span, Time};

use super::packet::{flow, is_ecn_capable, mark_congestion, strip_window_scale};
use super::pool::Pool;
use super::{Hop, Plan, Record, Report, Way, line_name};
use crate::LiveError;
use crate::distribution::Distribution;
use crate::host::{Clock, Rest, on_cpu};

/// Packets read or written in a row before the emulator looks elsewhere.
const BATCH: usize = 64;

/// Emulates until `stop` can be read or is closed at its other end. Takes its seat for good: call it in a thread of
/// its own.
///
/// # Errors
/// A line that is not legal, a seat that cannot be taken, or a device that failed.
pub fn run(plan: &Plan, stop: BorrowedFd<'_>) -> Result<Report, LiveError> {
    for (i, hop) in plan.hops.iter().enumerate() {
        for (direction, line) in [("forward", &hop.forward), ("backward", &hop.backward)] {
            let wrong = |error| LiveError::Plan(format!("hop {i}, {direction}: {error}"));
            line.check().map_err(wrong)?;
        }
    }
    let seated = plan.seat.take()?;
    let clock = Clock::start();
    let hops = plan.hops.iter().enumerate();
    let mut ways: Vec<Runner<'_>> = hops.flat_map(|(i, hop)| Runner::pair(plan, i, hop)).collect();
    let mut pool = Pool::new(plan.mtu, (plan.memory / plan.mtu).max(1));
    let inputs = ways.iter().map(|way| way.input).chain([stop]);
    let mut polled: Vec<PollFd<'_>> = inputs.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let mut rest = Rest::from(clock.now());
    let mut behind = false;
    loop {
        let now = clock.now();
        let due = if behind { now } else { ways.iter().map(|way| way.line.due()).min().unwrap_or(Time::NEVER) };
        wait_for_input(&mut polled, now, due, plan.spin)?;
        if polled.last().and_then(PollFd::any) == Some(true) {
            break;
        }
        behind = false;
        for (way, input) in ways.iter_mut().zip(&polled) {
            behind |= way.write_due(&clock, clock.now(), &mut pool)?;
            if input.any() == Some(true) {
                behind |= way.read_arrived(&clock, &mut pool)?;
            }
        }
        rest.take_if_owed(&clock, clock.now());
    }
    let now = clock.now();
    let ways = ways.into_iter().map(|way| way.finish(&clock, now, &mut pool)).collect::<Result<_, _>>()?;
    let elapsed = now.saturating_since(Time::ZERO);
    Ok(Report { seated, elapsed, on_cpu: on_cpu(), ways })
}

/// Sleep until a packet comes, or until shortly before `due`.
fn wait_for_input(polled: &mut [PollFd<'_>], now: Time, due: Time, spin: Span) -> Result<(), LiveError> {
    let timeout = (due != Time::NEVER).then(|| {
        let awake = due.saturating_since(now).ps().saturating_sub(spin.ps());
        TimeSpec::from_duration(std::time::Duration::from_nanos(awake / 1_000))
    });
    match ppoll(polled, timeout, None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(LiveError::system("wait for packets", errno)),
    }
}

/// One direction of a hop at work.
struct Runner<'a> {
    hop: usize,
    direction: &'static str,
    input: BorrowedFd<'a>,
    output: BorrowedFd<'a>,
    line: Line<u32>,
    strips_window_scale: bool,
    lateness: Distribution,
    refused: u64,
    unbuffered: u64,
    stripped: u64,
    /// Number of the next arrival.
    next: u64,
    most: usize,
    record: Record,
}

impl<'a> Runner<'a> {
    fn pair(plan: &Plan, i: usize, hop: &'a Hop) -> [Runner<'a>; 2] {
        let (near, far) = (hop.near.as_fd(), hop.far.as_fd());
        let runner = |direction, input, output, line: &LineSpec| Runner {
            hop: i,
            direction,
            input,
            output,
            line: Line::new(line, plan.seed, &line_name(i, direction)),
            strips_window_scale: hop.strips_window_scale,
            lateness: Distribution::new(),
            refused: 0,
            unbuffered: 0,
            stripped: 0,
            next: 0,
            most: plan.record,
            record: Record { until: Time::NEVER, ..Record::default() },
        };
        [runner("forward", near, far, &hop.forward), runner("backward", far, near, &hop.backward)]
    }

    /// Write what is due up to `now`; true if there may be more.
    fn write_due(&mut self, clock: &Clock, now: Time, pool: &mut Pool) -> Result<bool, LiveError> {
        for _ in 0..BATCH {
            let Some(departure) = self.line.leave(now) else {
                self.forget_dropped(pool);
                return Ok(false);
            };
            if departure.marked {
                mark_congestion(pool.packet_mut(departure.handle));
            }
            let (packet, number) = pool.packet(departure.handle);
            match write(self.output, packet) {
                Ok(_) => self.lateness.record(clock.now().saturating_since(departure.at)),
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EIO | Errno::EINVAL) => self.refused += 1,
                Err(errno) => return Err(LiveError::system("write to the end of a path", errno)),
            }
            if number < self.record.arrivals.len() as u64 {
                self.record.departures.push((number, departure.at));
            }
            pool.release(departure.handle);
        }
        self.forget_dropped(pool);
        Ok(true)
    }

    /// Frees the buffers of packets that a queue has dropped after it had taken them.
    fn forget_dropped(&mut self, pool: &mut Pool) {
        while let Some(dropped) = self.line.take_dropped() {
            let (_, number) = pool.packet(dropped.handle);
            if number < self.record.arrivals.len() as u64 && dropped.at <= self.record.until {
                self.record.dropped.push(number);
            }
            pool.release(dropped.handle);
        }
    }

    /// Read what has come; true if there may be more.
    fn read_arrived(&mut self, clock: &Clock, pool: &mut Pool) -> Result<bool, LiveError> {
        for _ in 0..BATCH {
            let Some(handle) = pool.take() else { return self.throw_away() };
            let length = match read(self.input, pool.space(handle)) {
                Ok(length) => length,
                Err(Errno::EAGAIN) => 0,
                Err(errno) => return Err(LiveError::system("read from the end of a path", errno)),
            };
            let now = clock.now();
            if length == 0 {
                pool.keep(handle, 0, 0, 0);
                return Ok(false);
            }
            let packet = &mut pool.space(handle)[..length];
            self.stripped += u64::from(self.strips_window_scale && strip_window_scale(packet));
            let label = Label { flow: flow(packet), ecn_capable: is_ecn_capable(packet) };
            let arrived = Arrived { at: now, size: Bytes::new(length as u64), label };
            let number = self.next;
            self.next += 1;
            let arrival = self.line.arrive(now, handle, arrived.size, arrived.label);
            pool.keep(handle, length, number, arrival.kept);
            if self.record.arrivals.len() < self.most {
                self.record.arrivals.push(arrived);
                self.record.dropped.extend((0..arrival.dropped).map(|_| number));
                self.record.lost.extend((0..arrival.lost).map(|_| number));
            } else {
                self.record.until = self.record.until.min(now);
            }
            self.forget_dropped(pool);
        }
        Ok(true)
    }

    /// Without a free buffer, packets are taken from the device all the same.
    fn throw_away(&mut self) -> Result<bool, LiveError> {
        let mut nowhere = [0; 1];
        for _ in 0..BATCH {
            match read(self.input, &mut nowhere) {
                Ok(0) | Err(Errno::EAGAIN) => return Ok(false),
                Ok(_) => self.unbuffered += 1,
                Err(errno) => return Err(LiveError::system("read from the end of a path", errno)),
            }
        }
        Ok(true)
    }

    fn finish(mut self, clock: &Clock, now: Time, pool: &mut Pool) -> Result<Way, LiveError> {
        while self.write_due(clock, now, pool)? {}
        let mut record = self.record;
        record.until = record.until.min(now);
        record.departures.retain(|&(_, at)| at <= record.until);
        Ok(Way {
            hop: self.hop,
            direction: self.direction,
            counters: self.line.counters(),
            transmitters: self.line.transmitters(),
            lateness: self.lateness,
            refused: self.refused,
            unbuffered: self.unbuffered,
            stripped: self.stripped,
            record,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixDatagram;
    use std::thread;

    use weir_core::path::spec::{JitterSpec, RateSpec};
    use weir_core::path::{LossModel, replay};
    use weir_core::rng::Seed;
    use weir_core::spec::Limit;
    use weir_core::units::Rate;

    use super::*;
    use crate::host::{Priority, Seat};

    /// Emulates one hop between datagram sockets while `work` uses their other ends.
    fn emulate(forward: LineSpec, work: impl FnOnce(&UnixDatagram, &UnixDatagram)) -> Report {
        let pair = || UnixDatagram::pair().expect("a pair of sockets");
        let ((near, near_end), (far, far_end)) = (pair(), pair());
        near_end.set_nonblocking(true).expect("a socket");
        far_end.set_nonblocking(true).expect("a socket");
        let (stop, mut stopper) = std::io::pipe().expect("a pipe");
        thread::scope(|scope| {
            let emulator = scope.spawn(move || {
                let hop = Hop {
                    near: near_end.into(),
                    far: far_end.into(),
                    forward,
                    backward: LineSpec::transparent(),
                    strips_window_scale: false,
                };
                let plan = Plan {
                    hops: vec![hop],
                    seed: Seed::new(4),
                    seat: Seat { namespace: None, cpu: None, priority: Priority::Normal },
                    spin: Span::ZERO,
                    mtu: 1500,
                    memory: 1_000_000,
                    record: 10_000,
                };
                run(&plan, stop.as_fd())
            });
            work(&near, &far);
            stopper.write_all(b".").expect("the emulator listens");
            emulator.join().expect("no panic").expect("a report")
        })
    }

    fn receive(socket: &UnixDatagram) -> Vec<u8> {
        let mut buffer = [0; 2000];
        let length = socket.recv(&mut buffer).expect("a packet");
        buffer[..length].to_vec()
    }

    #[test]
    fn packets_come_out_as_they_went_in_both_ways() {
        let report = emulate(LineSpec::transparent(), |near, far| {
            near.send(b"there").expect("room");
            assert_eq!(receive(far), b"there");
            far.send(b"back").expect("room");
            assert_eq!(receive(near), b"back");
        });
        let left: Vec<u64> = report.ways.iter().map(|way| way.counters.left).collect();
        assert_eq!(left, [1, 1]);
        assert_eq!(report.ways[1].direction, "backward");
    }

    #[test]
    fn the_pure_model_repeats_what_happened() {
        let spec = LineSpec {
            rate: RateSpec::Constant { rate_bps: Rate::from_bps(20_000_000) },
            limit: Limit::Bytes(Bytes::new(5_000)),
            delay_ps: Span::from_ms(3),
            loss: LossModel::Random { probability: 0.1 },
            duplicate: 0.1,
            jitter: JitterSpec::Uniform { most_ps: Span::from_ms(1), keeps_order: false },
            lanes: 2,
            ..LineSpec::transparent()
        };
        let told = spec.clone();
        let report = emulate(spec, |near, far| {
            let frame = |i: u8, size: usize| [vec![0x45; 20], vec![i; size]].concat();
            far.set_nonblocking(true).expect("a socket");
            for i in 0..100 {
                near.send(&frame(i, 80 + usize::from(i) * 10)).expect("room");
                if i % 10 == 0 {
                    thread::sleep(std::time::Duration::from_millis(2));
                }
                while far.recv(&mut [0; 2000]).is_ok() {}
            }
            // Until the last is through: what is inside takes less than 10 ms.
            thread::sleep(std::time::Duration::from_millis(50));
            while far.recv(&mut [0; 2000]).is_ok() {}
        });
        let record = &report.ways[0].record;
        let again = replay(&told, Seed::new(4), "hop-0/forward", &record.arrivals, record.until);
        assert_eq!(record.arrivals.len(), 100);
        assert_eq!(record.departures, again.departures);
        assert_eq!(record.dropped, again.dropped);
        assert_eq!(record.lost, again.lost);
        assert!(!record.dropped.is_empty() && !record.lost.is_empty(), "the test needs some of both");
    }
}
