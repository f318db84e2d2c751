//! Time as hosts see it: continuous, or slot by slot.

use crate::units::{Span, Time};

/// How time goes by: in ticks of any length.
pub trait Clock: Copy + std::fmt::Debug {
    /// A point in time.
    type Tick: Copy + Ord + std::fmt::Debug;
    /// A sum of amounts times ticks; it wraps, so that a difference of two is right wherever it fits.
    type Sum: Copy + Default + std::fmt::Debug;
    /// No time.
    const NEVER: Self::Tick;

    /// The beginning of a tick.
    fn time(self, tick: Self::Tick) -> Time;

    /// The first tick that does not begin before `at`; [`Clock::NEVER`] if that never comes.
    fn from(self, at: Time) -> Self::Tick;

    /// Ticks from `from` until `to`, which is not before it.
    fn between(from: Self::Tick, to: Self::Tick) -> u64;

    /// So many ticks after `from`; [`Clock::NEVER`] if that never comes.
    fn after(from: Self::Tick, ticks: u64) -> Self::Tick;

    /// The sum and `amount` times the ticks from the start to `tick`.
    fn plus(sum: Self::Sum, amount: u64, tick: Self::Tick) -> Self::Sum;

    /// The sum less `amount` times the ticks from the start to `tick`.
    fn minus(sum: Self::Sum, amount: u64, tick: Self::Tick) -> Self::Sum;
}

/// Each picosecond is a tick.
#[derive(Clone, Copy, Debug)]
pub struct Picoseconds;

impl Clock for Picoseconds {
    type Tick = Time;
    type Sum = u128;
    const NEVER: Time = Time::NEVER;

    #[inline]
    fn time(self, tick: Time) -> Time {
        tick
    }

    #[inline]
    fn from(self, at: Time) -> Time {
        at
    }

    #[inline]
    fn between(from: Time, to: Time) -> u64 {
        (to - from).ps()
    }

    #[inline]
    fn after(from: Time, ticks: u64) -> Time {
        from + Span::from_ps(ticks)
    }

    #[inline]
    fn plus(sum: u128, amount: u64, tick: Time) -> u128 {
        sum.wrapping_add(u128::from(amount) * u128::from(tick.ps()))
    }

    #[inline]
    fn minus(sum: u128, amount: u64, tick: Time) -> u128 {
        sum.wrapping_sub(u128::from(amount) * u128::from(tick.ps()))
    }
}

/// Ticks are slots of this length, counted from 0.
#[derive(Clone, Copy, Debug)]
pub struct Slots(pub Span);

impl Clock for Slots {
    type Tick = u32;
    type Sum = u64;
    const NEVER: u32 = u32::MAX;

    #[inline]
    fn time(self, tick: u32) -> Time {
        Time::ZERO + self.0 * u64::from(tick)
    }

    #[inline]
    fn from(self, at: Time) -> u32 {
        if at == Time::NEVER { u32::MAX } else { u32::try_from(at.ps().div_ceil(self.0.ps())).unwrap_or(u32::MAX) }
    }

    #[inline]
    fn between(from: u32, to: u32) -> u64 {
        u64::from(to - from)
    }

    #[inline]
    fn after(from: u32, ticks: u64) -> u32 {
        u32::try_from(ticks).map_or(u32::MAX, |ticks| from.saturating_add(ticks))
    }

    #[inline]
    fn plus(sum: u64, amount: u64, tick: u32) -> u64 {
        sum.wrapping_add(amount.wrapping_mul(tick.into()))
    }

    #[inline]
    fn minus(sum: u64, amount: u64, tick: u32) -> u64 {
        sum.wrapping_sub(amount.wrapping_mul(tick.into()))
    }
}
