//! Outputs that are slower for a while: service by credit.
//!
//! Credit grows at the rate of the phase, up to the worth of the largest frame so far, and a frame may begin when its credit will be whole by the
//! end of its transmission. The valve is looked at once in each transmission time of the frame that waits, counted from the
//! start of the phase: so frames of one size keep to their slots. What is left over of the credit is carried.

use weir_core::host::credit::needed;
use weir_core::spec::switching::Service;
use weir_core::units::{Rate, Span, Time};

/// Service of one port, or of the host behind it.
#[derive(Clone, Debug)]
pub(crate) struct Valve {
    /// Start and rate of each phase, in order of time; without a rate the output serves all it can.
    pub(crate) phases: Vec<(Time, Option<Rate>)>,
    /// The rate of a phase that has none; absent: credit stands still meanwhile.
    pub(crate) open: Option<Rate>,
    pub(crate) line: Rate,
    /// In bit ps / s, at `at`.
    pub(crate) credit: i128,
    pub(crate) at: Time,
    /// Worth of the largest frame so far.
    pub(crate) largest: i128,
    /// When the frame before began.
    pub(crate) last: Option<(Time, Span)>,
}

impl Valve {
    /// The valve of a port with these services; the last of several at a time counts.
    pub(crate) fn of_port(services: &[Service], line: Rate) -> Valve {
        Valve { phases: phases(services), open: None, line, credit: 0, at: Time::ZERO, largest: 0, last: None }
    }

    /// The valve of a buffer: what takes from it is slower while there is a service, and otherwise as fast as the line.
    pub(crate) fn of_buffer(services: &[Service], line: Rate) -> Valve {
        Valve { open: Some(line), ..Valve::of_port(services, line) }
    }

    /// The phase at `now`: its place, start and rate.
    pub(crate) fn phase(&self, now: Time) -> (usize, Time, Option<Rate>) {
        let place = self.phases.partition_point(|phase| phase.0 <= now) - 1;
        let (start, rate) = self.phases[place];
        (place, start, rate)
    }

    /// The credit at `now`, not before `at`, without a bound.
    pub(crate) fn credit_at(&self, now: Time) -> i128 {
        let mut credit = self.credit;
        let (mut place, _, mut rate) = self.phase(self.at);
        let mut from = self.at;
        loop {
            let end = self.phases.get(place + 1).map_or(Time::NEVER, |phase| phase.0);
            let to = end.min(now);
            credit += rate.or(self.open).map_or(0, |rate| product(rate, to.saturating_since(from)));
            if end >= now {
                return credit;
            }
            (place, from, rate) = (place + 1, end, self.phases[place + 1].1);
        }
    }

    /// When a frame that takes `tx` on the line may begin, at `from` or later.
    pub(crate) fn ready(&self, from: Time, tx: Span) -> Time {
        let whole = product(self.line, tx);
        let from = self.last.map_or(from, |(last, lasted)| from.max(last + lasted));
        let mut from = from.max(self.at);
        loop {
            let (place, start, rate) = self.phase(from);
            let end = self.phases.get(place + 1).map_or(Time::NEVER, |phase| phase.0);
            let Some(rate) = rate else { return from };
            let grid = |at: Time| start + tx * (at - start).ps().div_ceil(tx.ps());
            let first = grid(from);
            if first >= end {
                from = end;
                continue;
            }
            let missing = needed(whole) - product(rate, tx) - self.credit_at(first).min(whole.max(self.largest));
            if missing <= 0 {
                return first;
            }
            let wait = u64::try_from(missing).unwrap_or(u64::MAX).div_ceil(rate.bps());
            let at = grid(first + Span::from_ps(wait));
            if at < end {
                return at;
            }
            from = end;
        }
    }

    /// A frame that takes `tx` on the line began at `now`.
    pub(crate) fn spend(&mut self, now: Time, tx: Span) {
        self.last = Some((now, tx));
        if self.phase(now).2.is_none() && self.open.is_none() {
            // The output is not slow: what it may send does not count.
            return;
        }
        let whole = product(self.line, tx);
        self.largest = self.largest.max(whole);
        (self.credit, self.at) = (self.credit_at(now).min(self.largest) - whole, now);
    }
}

pub(crate) fn product(rate: Rate, span: Span) -> i128 {
    i128::from(rate.bps()) * i128::from(span.ps())
}

/// When the rate changes, and to what.
pub(crate) fn phases(services: &[Service]) -> Vec<(Time, Option<Rate>)> {
    let mut times: Vec<Time> = services.iter().flat_map(|service| [service.from_ps, service.to_ps]).collect();
    times.push(Time::ZERO);
    times.sort_unstable();
    times.dedup();
    let rate = |now: Time| {
        let lasting = services.iter().rev().find(|service| service.from_ps <= now && now < service.to_ps);
        lasting.map(|service| service.rate_bps)
    };
    times.into_iter().map(|now| (now, rate(now))).collect()
}
