//! RED: what arrives is dropped, or marked, by chance, the more likely the longer the queue was on average.
//!
//! The average follows what waits, frame by frame: `avg += weight (q - avg)`. While nothing waits it decays as if frames of `idle_ps` had come. Below
//! `min` nothing happens, from `max` on everything; between, the probability `p = p_max (avg - min) / (max - min)` is spread:
//! after n frames without a drop it is `p / (1 - n p)`, so that the frames from drop to drop are uniform in 1 .. 1/p. With `gentle` the probability
//! grows from `p_max` at `max` to 1 at twice that.
//!
//! With a weight of 1 it is the ramp over what waits now, as switches have it (weighted RED: one for the queue of each class).
//!
//! Source: Floyd & Jacobson 1993, sections 4 (the average, idle times) and 7 (uniform distances)
//! DEVIATION: a frame beyond `max` is marked, too, where it can be; the limit of the queue drops.

use super::{Backlog, Waiting};
use crate::rng::Stream;
use crate::spec::aqm as spec;
use crate::units::{Span, Time};

/// The state of a queue.
#[derive(Clone, Debug)]
pub(super) struct Red {
    spec: spec::Red,
    stream: Stream,
    average: f64,
    /// Frames since the last drop, while the average lies between the thresholds.
    count: u64,
    /// Since when nothing waits.
    idle: Option<Time>,
}

impl Red {
    pub(super) fn new(spec: spec::Red, stream: Stream) -> Red {
        Red { spec, stream, average: 0.0, count: 0, idle: Some(Time::ZERO) }
    }

    /// The frame that comes, perhaps marked, if it is not dropped.
    pub(super) fn admit<H: Copy>(&mut self, frame: Waiting<H>, backlog: &mut Backlog<H>) -> Option<Waiting<H>> {
        self.follow(frame.since, backlog.bytes);
        if !self.strikes() {
            return Some(frame);
        }
        if self.spec.ecn && frame.label.ecn.is_capable() {
            return Some(Waiting { marked: true, ..frame });
        }
        backlog.drop_early(&frame);
        None
    }

    /// A frame has left; so much waits still.
    pub(super) fn on_departure(&mut self, now: Time, waiting: u64) {
        if waiting == 0 {
            self.idle = Some(now);
        }
    }

    /// The average follows what waits when a frame comes.
    fn follow(&mut self, now: Time, waiting: u64) {
        let kept = 1.0 - self.spec.weight;
        if let Some(since) = self.idle.take().filter(|_| self.spec.idle_ps > Span::ZERO) {
            let frames = now.saturating_since(since).ps() / self.spec.idle_ps.ps();
            self.average *= power(kept, frames);
        }
        self.average += self.spec.weight * (waiting as f64 - self.average);
    }

    fn strikes(&mut self) -> bool {
        let (least, most) = (self.spec.min_bytes.count() as f64, self.spec.max_bytes.count() as f64);
        let share = match self.average {
            average if average < least => {
                self.count = 0;
                return false;
            }
            average if average < most => self.spec.p_max * (average - least) / (most - least),
            average if self.spec.gentle && average < 2.0 * most => {
                self.spec.p_max + (1.0 - self.spec.p_max) * (average - most) / most
            }
            _ => 1.0,
        };
        let spread = 1.0 - self.count as f64 * share;
        let strikes = share >= spread || self.stream.open_unit() < share / spread;
        self.count = if strikes { 0 } else { self.count + 1 };
        strikes
    }
}

/// `base` to the power of `exponent`, the same on all machines.
fn power(base: f64, exponent: u64) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result *= square;
        }
        square *= square;
        left >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::units::Bytes;

    const SPEC: spec::Red = spec::Red {
        min_bytes: Bytes::new(5_000),
        max_bytes: Bytes::new(15_000),
        p_max: 0.2,
        weight: 1.0,
        idle_ps: Span::ZERO,
        gentle: false,
        ecn: false,
    };

    fn red(spec: spec::Red) -> Red {
        Red::new(spec, Seed::new(1).stream("red"))
    }

    #[test]
    fn frames_from_drop_to_drop_are_uniform() {
        let mut red = red(SPEC);
        red.average = 10_000.0;
        // p = 0.1: 1 to 10 frames, each as likely.
        let (mut counts, mut since) = ([0_u32; 11], 0);
        for _ in 0..55_000 {
            since += 1;
            if red.strikes() {
                counts[since] += 1;
                since = 0;
            }
        }
        assert_eq!(counts[0], 0);
        // 10 000 drops: 1000 of each distance, with a standard deviation of 30.
        assert!(counts[1..].iter().all(|count| count.abs_diff(1000) < 130), "{counts:?}");
    }

    #[test]
    fn nothing_is_dropped_below_and_all_above() {
        let mut red = red(SPEC);
        red.average = 4_999.0;
        assert!((0..1000).all(|_| !red.strikes()));
        red.average = 15_000.0;
        assert!((0..1000).all(|_| red.strikes()));
        red.spec.gentle = true;
        red.average = 22_500.0;
        // 0.2 + 0.8 / 2: every second frame or every frame.
        let strikes = (0..1000).filter(|_| red.strikes()).count();
        assert!((600..900).contains(&strikes), "{strikes}");
    }

    #[test]
    fn the_average_follows_and_decays_while_nothing_waits() {
        let spec = spec::Red { weight: 0.25, idle_ps: Span::from_us(1), ..SPEC };
        let mut red = red(spec);
        red.idle = None;
        red.follow(Time::ZERO, 8_000);
        assert!((red.average - 2_000.0).abs() < 1e-9);
        red.follow(Time::ZERO, 8_000);
        assert!((red.average - 3_500.0).abs() < 1e-9);
        red.on_departure(Time::ZERO, 1);
        assert_eq!(red.idle, None);
        red.on_departure(Time::ZERO, 0);
        red.follow(Time::ZERO + Span::from_us(2), 0);
        assert!((red.average - 3_500.0 * 0.75 * 0.75 * 0.75).abs() < 1e-9, "two frames, and the one that comes");
    }
}
