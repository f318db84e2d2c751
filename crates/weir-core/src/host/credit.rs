//! Rate limiters by credit, one for each pair of hosts: credit grows at the rate, a frame goes when there is one's worth of it, and
//! what is not used is saved up to a bound. Until then the limiter is *gated*.
//!
//! Credit is a whole number, in bit/s times ticks, so that both engines agree at every rate. The worth of a frame is the rate of the line times
//! the ticks that the frame takes on it. A limiter outlives its removal: what it did is reported at the end.

use super::clock::Clock;
use crate::ethernet::reaction::{Allowance, Change, Feedback, Meter, ReactionPoint, Rules};
use crate::rng::Stream;
use crate::spec::control;
use crate::units::{Bytes, Rate, Time};

/// A frame may go that misses less than this part of its worth: a third of a line is no whole number of bit/s.
const PART: i128 = 1_000_000_000;

/// The credit that a frame of worth `whole` needs. Mostly it fits into a word, whose division is much faster.
#[inline]
pub fn needed(whole: i128) -> i128 {
    whole - u64::try_from(whole).map_or_else(|_| whole / PART, |word| (word / PART as u64).into())
}

/// What a limiter may send when it is made, and what it saves at most; of a frame whose worth is the line rate.
#[derive(Clone, Copy, Debug)]
pub struct Savings {
    line: i128,
    /// Absent: nothing at first, and later what the limiter of the pair before it left over.
    initial: Option<i128>,
    cap: Option<i128>,
}

impl Savings {
    /// Those of `limiter` at a port with this line rate.
    pub fn new(limiter: Option<&control::Limiter>, line: Rate) -> Savings {
        let worth = |frames: f64| (frames * line.bps() as f64).round() as i128;
        let (initial, cap) = limiter.map_or((None, None), |limiter| (limiter.initial_credit, limiter.most_credit));
        Savings { line: line.bps().into(), initial: initial.map(worth), cap: cap.map(worth) }
    }

    /// The most that is saved at `rate`: absent of the spec, a frame and what the rate gives while one takes the line.
    #[inline]
    fn most(&self, rate: Rate) -> i128 {
        self.cap.unwrap_or(self.line + i128::from(rate.bps()))
    }
}

/// What the limiters of a host have in common.
#[derive(Clone, Debug)]
pub struct Manner<C> {
    /// How time goes by.
    pub clock: C,
    /// What feedback does to their rates.
    pub rules: Rules,
    /// What they save.
    pub savings: Savings,
    /// Random share of what a frame costs.
    pub jitter: f64,
}

impl<C: Clock> Manner<C> {
    /// What `control` says, at a port with this line rate; none if it has no limiters.
    pub fn new(clock: C, control: &control::Control, line: Rate) -> Option<Manner<C>> {
        let limiter = control.limiter();
        let jitter = limiter.map_or(0.0, |limiter| limiter.pacing_jitter);
        Some(Manner { clock, rules: Rules::new(control, line)?, savings: Savings::new(limiter, line), jitter })
    }
}

/// The limiter of a pair of hosts.
#[derive(Debug)]
struct Limiter<C: Clock> {
    place: u32,
    point: ReactionPoint,
    /// The congestion point that last asked for less.
    cause: u32,
    /// None while nothing is limited.
    rate: Option<Rate>,
    /// What it may send at `at`.
    credit: i128,
    /// Credit that a new limiter has, as soon as the size of a frame is known; a frame's worth is the line rate.
    owed: i128,
    at: C::Tick,
    /// What the frame that waits first takes on the line, or the last one took, and the most that any took; 0 before any.
    tx: u64,
    longest: u64,
    is_gated: bool,
    /// When the change that is entered next happens by itself.
    planned: Time,
    /// Of the random share of what a frame costs.
    chance: Stream,
}

impl<C: Clock> Limiter<C> {
    /// Takes over what the reaction point allows from `now` on.
    fn settle(&mut self, now: C::Tick, savings: &Savings) {
        self.accrue(now, savings);
        let before = self.rate;
        self.rate = match self.point.allowance() {
            Allowance::Unlimited => None,
            Allowance::Limited(rate) => Some(rate),
            Allowance::Stopped(_) => Some(Rate::from_bps(0)),
        };
        if let (None, Some(_), Some(initial)) = (before, self.rate, savings.initial) {
            (self.credit, self.owed) = (0, initial);
            self.pay();
        }
    }

    /// Adds what the rate gave since the last look, up to the most that is saved of the largest frame.
    #[inline]
    fn accrue(&mut self, now: C::Tick, savings: &Savings) {
        if let Some(rate) = self.rate {
            self.credit += i128::from(rate.bps()) * i128::from(C::between(self.at, now));
            if self.longest > 0 {
                self.credit = self.credit.min(savings.most(rate) * i128::from(self.longest));
            }
        }
        self.at = now;
    }

    /// A frame that takes `tx` waits first, or is sent.
    #[inline]
    fn know(&mut self, tx: u64) {
        (self.tx, self.longest) = (tx, self.longest.max(tx));
        self.pay();
    }

    /// Credits what a new limiter has, of the largest frame so far.
    #[inline]
    fn pay(&mut self) {
        if self.longest > 0 {
            self.credit += std::mem::take(&mut self.owed) * i128::from(self.longest);
        }
    }

    /// What the frame that waits first is worth.
    #[inline]
    fn whole(&self, savings: &Savings) -> i128 {
        savings.line * i128::from(self.tx)
    }

    fn may_send(&mut self, now: C::Tick, tx: u64, savings: &Savings) -> bool {
        self.know(tx);
        self.accrue(now, savings);
        self.rate.is_none() || self.credit >= needed(self.whole(savings))
    }

    #[inline]
    fn spend(&mut self, now: C::Tick, tx: u64, how: &Manner<C>) {
        self.know(tx);
        self.accrue(now, &how.savings);
        if self.rate.is_some() {
            let whole = self.whole(&how.savings);
            self.credit -= whole;
            if how.jitter > 0.0 {
                self.credit -= (whole as f64 * (how.jitter * (self.chance.exponential() - 1.0))) as i128;
            }
        }
    }

    /// When there will be a whole frame's worth: after a number of times that the frame takes on the line.
    fn when_whole(&self, now: C::Tick, savings: &Savings) -> C::Tick {
        let missing = needed(self.whole(savings)) - self.credit;
        match self.rate {
            None => now,
            Some(rate) if rate.bps() == 0 => C::NEVER,
            Some(_) if missing <= 0 => now,
            Some(rate) => {
                let each = i128::from(rate.bps()) * i128::from(self.tx);
                let times = div_ceil(missing, each);
                if times < MOST_TIMES { C::after(now, self.tx * times as u64) } else { C::NEVER }
            }
        }
    }
}

/// What is positive divided by what is, rounded up; as [`needed`], mostly by words.
#[inline]
fn div_ceil(amount: i128, each: i128) -> i128 {
    match (u64::try_from(amount), u64::try_from(each)) {
        (Ok(amount), Ok(each)) => amount.div_ceil(each).into(),
        _ => (amount + each - 1) / each,
    }
}

/// Nobody waits for longer.
const MOST_TIMES: i128 = 1 << 31;

/// The limiters of a host, by the place of the destination among its own.
#[derive(Debug)]
pub struct Limiters<C: Clock> {
    how: Manner<C>,
    /// By place; [`NONE`] until feedback asked for a limiter.
    of_place: Vec<u32>,
    list: Vec<Limiter<C>>,
    /// Of each limiter: when its credit will be whole; only while it is gated.
    dues: Vec<C::Tick>,
    /// Those that wait for credit, and when the first of them has it, at the earliest.
    gated: Vec<u32>,
    next_due: C::Tick,
}

const NONE: u32 = u32::MAX;

impl<C: Clock> Limiters<C> {
    /// None yet, for so many places.
    pub fn new(how: Manner<C>, places: usize) -> Limiters<C> {
        let of_place = vec![NONE; places];
        Limiters { how, of_place, list: Vec::new(), dues: Vec::new(), gated: Vec::new(), next_due: C::NEVER }
    }

    /// The number of the limiter of `place`, in the order in which they were made; `None` if there never was one.
    #[inline]
    pub fn number(&self, place: u32) -> Option<usize> {
        self.of_place.get(place as usize).filter(|&&number| number != NONE).map(|&number| number as usize)
    }

    #[inline]
    fn of(&self, place: u32) -> Option<&Limiter<C>> {
        self.list.get(self.number(place)?)
    }

    /// Whether what goes to `place` has a rate.
    #[inline]
    pub fn is_limited(&self, place: u32) -> bool {
        self.of(place).is_some_and(|limiter| limiter.rate.is_some())
    }

    /// The congestion point that limits what goes to `place`, if there is one.
    pub fn cause(&self, place: u32) -> Option<u32> {
        self.of(place).filter(|limiter| limiter.rate.is_some()).map(|limiter| limiter.cause)
    }

    /// Whether what goes to `place` waits for credit.
    #[inline]
    pub fn is_gated(&self, place: u32) -> bool {
        self.of(place).is_some_and(|limiter| limiter.is_gated)
    }

    /// When a limiter may have a whole frame's worth, at the earliest.
    #[inline]
    pub fn next_due(&self) -> C::Tick {
        self.next_due
    }

    /// A frame to `place` that takes `tx` waits first: whether it may be sent as far as its limiter goes. If not, the limiter is gated.
    #[inline]
    pub fn admit(&mut self, now: C::Tick, place: u32, tx: u64) -> bool {
        match self.number(place) {
            Some(number) => self.admit_limited(now, number, tx),
            None => true,
        }
    }

    fn admit_limited(&mut self, now: C::Tick, number: usize, tx: u64) -> bool {
        let limiter = &mut self.list[number];
        if limiter.may_send(now, tx, &self.how.savings) {
            return true;
        }
        limiter.is_gated = true;
        self.expect(now, number);
        self.gated.push(number as u32);
        false
    }

    /// Works out when a gated limiter is due.
    #[inline]
    fn expect(&mut self, now: C::Tick, number: usize) {
        let due = self.list[number].when_whole(now, &self.how.savings);
        self.dues[number] = due;
        self.next_due = self.next_due.min(due);
    }

    /// Opens the limiters that have a whole frame's worth; `opened` receives their places.
    #[inline]
    pub fn open(&mut self, now: C::Tick, mut opened: impl FnMut(u32)) {
        if self.next_due > now {
            return;
        }
        let mut next_due = C::NEVER;
        let (list, dues, savings) = (&mut self.list, &self.dues, &self.how.savings);
        self.gated.retain(|&number| {
            let due = dues[number as usize];
            if due > now {
                next_due = next_due.min(due);
                return true;
            }
            let limiter = &mut list[number as usize];
            limiter.is_gated = false;
            limiter.accrue(now, savings);
            opened(limiter.place);
            false
        });
        self.next_due = next_due;
    }

    /// A frame to `place` that takes `tx` is sent.
    #[inline]
    pub fn spend(&mut self, now: C::Tick, place: u32, tx: u64) {
        if let Some(number) = self.number(place) {
            self.list[number].spend(now, tx, &self.how);
        }
    }

    /// As [`Limiters::spend`], where rates depend on what is sent, too.
    pub fn on_sent(&mut self, now: C::Tick, place: u32, tx: u64, size: Bytes) {
        let Some(number) = self.number(place) else { return };
        let (limiter, how) = (&mut self.list[number], &self.how);
        limiter.spend(now, tx, how);
        limiter.point.advance(how.clock.time(now), &how.rules);
        limiter.point.on_sent(how.clock.time(now), size, &how.rules);
        self.settle(now, place);
    }

    /// Feedback of the congestion point `cause` about frames to `place` takes effect. The first that asks for less makes a limiter, with two
    /// streams of `chance`: of its rate, and of what frames cost. Whether there is one.
    pub fn on_feedback(
        &mut self,
        now: C::Tick,
        place: u32,
        cause: u32,
        feedback: Feedback,
        chance: impl FnOnce() -> (Stream, Stream),
    ) -> bool {
        if self.number(place).is_none() {
            if !feedback.is_negative() {
                return false;
            }
            self.of_place[place as usize] = self.list.len() as u32;
            let (rate, cost) = chance();
            self.list.push(Limiter {
                place,
                point: ReactionPoint::new(rate),
                cause: NONE,
                rate: None,
                credit: 0,
                owed: 0,
                at: now,
                tx: 0,
                longest: 0,
                is_gated: false,
                planned: Time::NEVER,
                chance: cost,
            });
            self.dues.push(C::NEVER);
        }
        let limiter = &mut self.list[self.of_place[place as usize] as usize];
        let change = limiter.point.on_feedback(self.how.clock.time(now), feedback, &self.how.rules);
        if change != Change::Ignored && feedback.is_negative() {
            limiter.cause = cause;
        }
        self.settle(now, place);
        true
    }

    /// A change of the limiter of `place` is due.
    pub fn on_timeout(&mut self, now: C::Tick, place: u32) {
        let Some(number) = self.number(place) else { return };
        self.list[number].point.advance(self.how.clock.time(now), &self.how.rules);
        self.settle(now, place);
    }

    fn settle(&mut self, now: C::Tick, place: u32) {
        let Some(number) = self.number(place) else { return };
        let limiter = &mut self.list[number];
        limiter.settle(now, &self.how.savings);
        if limiter.is_gated {
            self.expect(now, number);
        }
    }

    /// When the limiter of `place` changes by itself, if that was not reported yet.
    pub fn poll_timeout(&mut self, place: u32) -> Option<C::Tick> {
        let clock = self.how.clock;
        let number = self.number(place)?;
        let limiter = &mut self.list[number];
        let timeout = limiter.point.poll_timeout();
        let before = std::mem::replace(&mut limiter.planned, timeout);
        (timeout != Time::NEVER && timeout != before).then(|| clock.from(timeout))
    }

    /// What limits frames to `place`, and by which rules.
    pub fn reaction(&self, place: u32) -> Option<(&ReactionPoint, &Rules)> {
        self.of(place).map(|limiter| (&limiter.point, &self.how.rules))
    }

    /// What each limiter did up to `end`: its place and its meter.
    pub fn meters(&mut self, end: C::Tick) -> impl Iterator<Item = (u32, Meter)> + '_ {
        let (end, rules) = (self.how.clock.time(end), &self.how.rules);
        self.list.iter_mut().map(move |limiter| {
            limiter.point.advance(end, rules);
            (limiter.place, limiter.point.meter())
        })
    }
}

#[cfg(test)]
mod tests;
