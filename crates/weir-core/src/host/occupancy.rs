//! What waits somewhere: how much, for how long, and the most.

use super::Clock;

/// The integral of an amount over time, of which the changes are known: what comes counts less by all ticks before it, what leaves
/// more.
#[derive(Clone, Copy, Debug)]
pub struct Integral<C: Clock>(C::Sum);

impl<C: Clock> Default for Integral<C> {
    fn default() -> Integral<C> {
        Integral(C::Sum::default())
    }
}

impl<C: Clock> Integral<C> {
    /// So much comes at `now`.
    #[inline(always)]
    pub fn add(&mut self, now: C::Tick, amount: u64) {
        self.0 = C::minus(self.0, amount, now);
    }

    /// So much leaves at `now`.
    #[inline(always)]
    pub fn take(&mut self, now: C::Tick, amount: u64) {
        self.0 = C::plus(self.0, amount, now);
    }

    /// The integral up to `until`, if `amount` is there since the last change.
    #[inline]
    pub fn up_to(self, until: C::Tick, amount: u64) -> C::Sum {
        C::plus(self.0, amount, until)
    }
}

/// An amount with its integral over time, and the most that there was for longer than an instant.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy<C: Clock> {
    amount: u64,
    most: u64,
    integral: Integral<C>,
    /// All changes before this were looked at.
    settled: C::Tick,
}

impl<C: Clock> Occupancy<C> {
    /// Nothing is there from `start` on.
    pub fn new(start: C::Tick) -> Occupancy<C> {
        Occupancy { amount: 0, most: 0, integral: Integral::default(), settled: start }
    }

    /// How much there is.
    #[inline(always)]
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Up to when it was settled last.
    pub fn settled(&self) -> C::Tick {
        self.settled
    }

    /// What is there has been there up to `now`. Returns when things happen now: not before what was settled.
    #[inline(always)]
    pub fn settle(&mut self, now: C::Tick) -> C::Tick {
        if self.settled < now {
            self.settled = now;
            self.most = self.most.max(self.amount);
        }
        self.settled
    }

    /// So much comes.
    #[inline(always)]
    pub fn add(&mut self, now: C::Tick, amount: u64) {
        let now = self.settle(now);
        self.integral.add(now, amount);
        self.amount += amount;
    }

    /// So much leaves.
    #[inline(always)]
    pub fn take(&mut self, now: C::Tick, amount: u64) {
        let now = self.settle(now);
        self.integral.take(now, amount);
        self.amount -= amount;
    }

    /// There was so much, if only for an instant.
    #[inline(always)]
    pub fn reach(&mut self, amount: u64) {
        self.most = self.most.max(amount);
    }

    /// The integral up to what was settled: amount times ticks.
    pub fn integral(&self) -> C::Sum {
        self.integral.up_to(self.settled, self.amount)
    }

    /// The most since the last [`Occupancy::restart_most`], up to what was settled.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The same; the most is looked for again from what was settled on.
    pub fn restart_most(&mut self) -> u64 {
        std::mem::take(&mut self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Picoseconds, Slots};
    use super::*;
    use crate::units::Time;

    #[test]
    fn slots_and_picoseconds_have_the_same_integral_and_the_same_most() {
        let (mut slots, mut ps) = (Occupancy::<Slots>::new(0), Occupancy::<Picoseconds>::new(Time::ZERO));
        let changes = [(3, 5, true), (3, 2, false), (7, 4, true), (7, 7, false), (9, 1, true)];
        for (now, amount, comes) in changes {
            let at = Time::from_ps(now.into());
            match comes {
                true => (slots.add(now, amount), ps.add(at, amount)),
                false => (slots.take(now, amount), ps.take(at, amount)),
            };
        }
        slots.settle(12);
        ps.settle(Time::from_ps(12));
        // 3 for 4 ticks, nothing for 2, 1 for 3.
        assert_eq!((slots.integral(), slots.most()), (15, 3));
        assert_eq!((ps.integral(), ps.most()), (15, 3));
        assert_eq!((slots.restart_most(), slots.most(), slots.amount()), (3, 0, 1));
    }
}
