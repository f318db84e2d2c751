//! Round-trip times: samples, their smoothing, and their distribution.

use std::collections::VecDeque;

use crate::histogram::SparseHistogram;
use crate::units::Span;

/// Most values of the timestamps option that wait for their echo.
const MOST_VALUES: usize = 4096;

/// Samples of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    pub(crate) count: u64,
    pub(crate) sum_ps: u128,
    pub(crate) min_ps: Option<u64>,
    pub(crate) max_ps: u64,
    pub(crate) histogram: SparseHistogram,
}

impl Samples {
    pub(crate) fn take(&mut self, ps: u64) {
        self.count += 1;
        self.sum_ps += u128::from(ps);
        self.min_ps = Some(self.min_ps.map_or(ps, |min| min.min(ps)));
        self.max_ps = self.max_ps.max(ps);
        self.histogram.count(Span::from_ps(ps.min(u64::MAX - 1)));
    }
}

/// The smoothed round-trip time and its variation. Source: RFC 6298, section 2.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Smoothed {
    state: Option<(f64, f64)>,
}

impl Smoothed {
    pub(crate) fn take(&mut self, ps: u64) {
        let sample = ps as f64;
        self.state = Some(match self.state {
            None => (sample, sample / 2.0),
            Some((mean, variation)) => {
                let variation = 0.75 * variation + 0.25 * (mean - sample).abs();
                (0.875 * mean + 0.125 * sample, variation)
            }
        });
    }

    /// The smoothed round-trip time, ps.
    pub(crate) fn mean_ps(&self) -> Option<u64> {
        self.state.map(|(mean, _)| mean as u64)
    }

    /// The timeout that a sender would have, with a smallest one of `least_ps`.
    pub(crate) fn timeout_ps(&self, least_ps: u64) -> Option<u64> {
        self.state.map(|(mean, variation)| (mean as u64).saturating_add(least_ps.max((4.0 * variation) as u64)))
    }
}

/// First sights of the values of the timestamps option, waiting for their echo. A value is matched once, so that
/// what is kept back at the receiver does not count. Source: RFC 7323, section 4.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echoes(VecDeque<(u32, Stamped, u64)>);

/// What carried a value of the timestamps option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamped {
    /// Data, which its receiver answers.
    Data,
    /// An acknowledgment alone, which lets its receiver send on.
    Acknowledgment,
}

/// The first echo of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    pub(crate) of: Stamped,
    /// Since the value was seen first.
    pub(crate) ps: u64,
}

impl Echoes {
    /// A segment with the value `value` was sent at `now_ps`.
    pub(crate) fn sent(&mut self, value: u32, of: Stamped, now_ps: u64) {
        if self.0.back().is_some_and(|&(last, ..)| (value.wrapping_sub(last) as i32) <= 0) {
            return;
        }
        if self.0.len() == MOST_VALUES {
            self.0.pop_front();
        }
        self.0.push_back((value, of, now_ps));
    }

    /// `value` came back at `now_ps`: the time it took, if this is its first echo.
    pub(crate) fn came(&mut self, value: u32, now_ps: u64) -> Option<Echo> {
        while let Some(&(first, of, at)) = self.0.front() {
            let ahead = value.wrapping_sub(first) as i32;
            if ahead < 0 {
                return None;
            }
            self.0.pop_front();
            if ahead == 0 {
                return Some(Echo { of, ps: now_ps.saturating_sub(at) });
            }
        }
        None
    }
}
