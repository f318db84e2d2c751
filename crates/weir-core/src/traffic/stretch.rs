//! Frames of many slots, drawn at once.

use super::Bursts;
use super::geometric::Geometric;
use crate::rng::Chance;
use crate::units::{Span, Time};

/// Draws of one source over many slots.
pub(super) struct Stretch<'a, R> {
    pub(super) next: &'a mut Time,
    pub(super) stop: Time,
    pub(super) end: u64,
    pub(super) slot: Span,
    pub(super) chance: &'a mut R,
}

impl<R: Chance> Stretch<'_, R> {
    /// Runs `step` for each frame, from the slot of the next one on: it is given the slot and the source of chance, and
    /// returns the slots to the frame after it.
    #[inline(always)]
    fn run(&mut self, mut step: impl FnMut(u64, &mut R) -> u64) {
        if *self.next == Time::NEVER {
            return;
        }
        let mut at = self.next.ps() / self.slot.ps();
        let stop = self.stop.ps().div_ceil(self.slot.ps());
        let end = self.end.min(stop);
        // A copy stays in registers.
        let mut chance = self.chance.clone();
        while at < end {
            at = at.saturating_add(step(at, &mut chance));
        }
        *self.chance = chance;
        *self.next = if at >= stop { Time::NEVER } else { Time::from_ps(at * self.slot.ps()) };
    }

    /// Frames that are bursts of their own.
    #[inline(always)]
    pub(super) fn single(&mut self, failures: &Geometric, destinations: Below, mut frame: impl FnMut(u64, u32, bool)) {
        match failures.is_likely {
            true => self.run(|at, chance| {
                frame(at, destinations.draw(chance), true);
                failures.of_likely(chance.next_u64()).saturating_add(1)
            }),
            false => self.run(|at, chance| {
                frame(at, destinations.draw(chance), true);
                failures.of_unlikely(chance.next_u64()).saturating_add(1)
            }),
        }
    }

    #[inline(always)]
    pub(super) fn bursts(&mut self, bursts: &mut Bursts, destinations: Below, mut frame: impl FnMut(u64, u32, bool)) {
        let (idle, more) = (&bursts.idle, &bursts.more);
        let (mut left, mut is_fresh, mut destination) = (bursts.left, bursts.is_fresh, bursts.destination);
        self.run(|at, chance| {
            if is_fresh {
                destination = destinations.draw(chance);
            }
            left = left.saturating_sub(1);
            is_fresh = left == 0;
            frame(at, destination, is_fresh);
            if !is_fresh {
                return 1;
            }
            let idle = idle.of(chance.next_u64());
            left = 1 + more.as_ref().map_or(0, |more| more.of(chance.next_u64()));
            idle.saturating_add(1)
        });
        (bursts.left, bursts.is_fresh, bursts.destination) = (left, is_fresh, destination);
    }
}

/// `word mod bound` without a division: its product with a rounded reciprocal is the quotient, or one less.
#[derive(Clone, Copy)]
pub(super) struct Below {
    bound: u64,
    reciprocal: u64,
}

impl Below {
    pub(super) fn new(bound: u32) -> Below {
        Below { bound: bound.into(), reciprocal: u64::MAX / u64::from(bound) }
    }

    #[inline(always)]
    fn of(self, word: u64) -> u64 {
        let quotient = ((u128::from(word) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = word.wrapping_sub(quotient.wrapping_mul(self.bound));
        if rest >= self.bound { rest - self.bound } else { rest }
    }

    /// As [`Stream::below`]; with one choice there is nothing to draw.
    #[inline(always)]
    pub(super) fn draw(self, chance: &mut impl Chance) -> u32 {
        if self.bound == 1 { 0 } else { self.of(chance.next_u64()) as u32 }
    }
}
