//! The available bandwidth that explains the delays of a stream best.

use super::estimate::{Estimate, Terms};
use super::sample::{Step, delays};

/// A queue of the bottleneck's rate C (that of the terms' link) that others fill at C - a: a step of `bits` in the time g changes its delay by
/// `(bits - a g) / C`, down to 0. Of all a, the one whose delays are nearest to those seen, by least squares.
///
/// Unlike a turning point, it rests on every sample: bursts of others and errors of stamps average out. Of the delay that
/// the stream begins with, any part may be that of a receiver that held packets back instead: that part is fitted, too.
///
/// Where the queue never empties, nothing needs to be fitted: what the link carried in the time of the stream is known,
/// and how much the queue grew. What is left of it is what others sent.
pub(super) fn estimate(steps: &[Step], terms: &Terms) -> Estimate {
    let path = Path { steps, seen: &delays(steps), link: terms.link.bps() as f64 };
    let most = (terms.high.bps() as f64).min(path.link);
    if path.is_never_empty(terms.backlog_s) {
        return path.explained(path.balance().clamp(0.0, most), terms);
    }
    let (mut rate, mut least, mut end) = (most, f64::INFINITY, 0.0);
    for part in (0..=PARTS).rev() {
        let start = terms.backlog_s * f64::from(part) / f64::from(PARTS);
        let at = |step: usize| most * step as f64 / COARSE as f64;
        let mut best = COARSE;
        let mut value = path.misfit(start, most);
        for step in (0..COARSE).rev() {
            let other = path.misfit(start, at(step));
            if other < value {
                (best, value) = (step, other);
            }
        }
        let found = golden(at(best.saturating_sub(1)), at((best + 1).min(COARSE)), |rate| path.misfit(start, rate));
        let value = path.misfit(start, found);
        if value < least {
            (rate, least, end) = (found, value, path.end(start, found));
        }
    }
    // Above the highest rate tried, every rate explains a queue that stays empty.
    if rate >= most * ALL && end < EMPTY_BITS / path.link {
        return terms.nothing_grew();
    }
    path.explained(rate, terms)
}

/// What a stream met.
struct Path<'a> {
    steps: &'a [Step],
    seen: &'a [f64],
    link: f64,
}

impl Path<'_> {
    /// Whether every sample of a stream that met a delay of `backlog` at first was delayed by more than a queue that
    /// empties now and then shows, and by more than the receiver may have held it back.
    fn is_never_empty(&self, backlog: f64) -> bool {
        let frame = self.steps.iter().map(|step| step.bits).fold(f64::INFINITY, f64::min);
        // What arrived together had been gathered, at most since what came before.
        let gathered = self.steps.iter().filter(|step| step.bits > frame);
        let held = gathered.map(|step| step.recv_gap).fold(0.0, f64::max);
        let least = self.seen.iter().copied().fold(f64::INFINITY, f64::min);
        backlog + least > held.max(EMPTY_BITS / self.link)
    }

    /// The available bandwidth where the queue was never empty: what was sent, less what the queue grew by, over the time
    /// that the sending took.
    fn balance(&self) -> f64 {
        let sent: f64 = self.steps.iter().map(|step| step.bits).sum();
        let time: f64 = self.steps.iter().map(|step| step.send_gap).sum();
        let grown = self.seen.last().copied().unwrap_or(0.0) * self.link;
        (sent - grown) / time.max(1e-12)
    }

    /// The available bandwidth is `rate`: the queue grew from the first step on that is faster.
    fn explained(&self, rate: f64, terms: &Terms) -> Estimate {
        let grows = self.steps.iter().position(|step| step.rate() > rate).unwrap_or(self.steps.len() - 1);
        terms.grew(rate, grows, self.steps.len() - grows)
    }

    /// Sum of the squared differences from what would be seen behind a queue that delays by `start` at first, but for
    /// a delay that all samples share.
    fn misfit(&self, start: f64, rate: f64) -> f64 {
        let (mut delay, mut sum, mut squares) = (start, start, start * start);
        for (step, seen) in self.steps.iter().zip(&self.seen[1..]) {
            delay = self.next(delay, step, rate);
            let error = delay - seen;
            sum += error;
            squares += error * error;
        }
        squares - sum * sum / self.seen.len() as f64
    }

    /// The delay of the last sample.
    fn end(&self, start: f64, rate: f64) -> f64 {
        self.steps.iter().fold(start, |delay, step| self.next(delay, step, rate))
    }

    #[inline]
    fn next(&self, delay: f64, step: &Step, rate: f64) -> f64 {
        (delay + (step.bits - rate * step.send_gap) / self.link).max(0.0)
    }
}

/// The least value of `of` between `low` and `high`, where it has one minimum.
fn golden(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (mut one, mut two) = (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut at_one, mut at_two) = (of(one), of(two));
    for _ in 0..STEPS {
        if at_one < at_two {
            (high, two, at_two) = (two, one, at_one);
            one = high - RATIO * (high - low);
            at_one = of(one);
        } else {
            (low, one, at_one) = (one, two, at_two);
            two = low + RATIO * (high - low);
            at_two = of(two);
        }
    }
    0.5 * (low + high)
}

/// The golden ratio less 1.
const RATIO: f64 = 0.618_033_988_749_894_9;
/// Narrows an interval of two coarse steps to a thousandth.
const STEPS: usize = 12;
/// Rates that are tried before.
const COARSE: usize = 40;
/// The delay at the beginning is tried in so many parts.
const PARTS: u32 = 4;
/// A rate of this part of the highest one is that one.
const ALL: f64 = 0.995;
/// Two frames: what a queue holds now and then that is empty otherwise.
const EMPTY_BITS: f64 = 2.0 * 12_304.0;
