//! How holds spread: which output made a switch stop whom, and where it all began.

use std::collections::BTreeMap;

use weir_core::units::{Span, Time};

use crate::totals::CauseTotals;

/// A transmitter whose class was asked to stop: the port and the class.
type Stopped = (u32, u8);

/// Why a class of a transmitter was asked to stop.
#[derive(Clone, Copy, Debug)]
struct Reason {
    since: Time,
    /// The output that most of what came from there waits for.
    cause: u32,
    /// The output where nothing else held what waited.
    root: u32,
    /// How many stops lie between: 1 next to the root.
    depth: u32,
}

/// Who was stopped because of whom.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    current: BTreeMap<Stopped, Reason>,
    /// The last reasons of those that may go on.
    ended: BTreeMap<Stopped, Reason>,
    /// By port, class, cause and root.
    counted: BTreeMap<(u32, u8, u32, u32), Counted>,
}

/// How often, how long, and how deep at most.
#[derive(Debug, Default)]
struct Counted {
    stops: u64,
    time: Span,
    depth: u32,
}

impl Spread {
    /// `stopped` is asked to stop at `now`, as most of what came from there waits for the output `cause`; whether that `is_held`, or was while it filled.
    pub(crate) fn stop(&mut self, now: Time, stopped: Stopped, cause: u32, is_held: bool) {
        let output = (cause, stopped.1);
        let before = self.current.get(&output).or_else(|| self.ended.get(&output)).filter(|_| is_held);
        // An output may be held by one who is no switch of this kind.
        let (root, depth) = before.map_or((cause, u32::from(is_held)), |reason| (reason.root, reason.depth));
        self.current.insert(stopped, Reason { since: now, cause, root, depth: depth + 1 });
    }

    /// `stopped` may go on at `now`.
    pub(crate) fn go(&mut self, now: Time, stopped: Stopped) {
        if let Some(reason) = self.current.remove(&stopped) {
            self.count(now, stopped, reason);
            self.ended.insert(stopped, reason);
        }
    }

    fn count(&mut self, now: Time, stopped: Stopped, reason: Reason) {
        let key = (stopped.0, stopped.1, reason.cause, reason.root);
        let counted = self.counted.entry(key).or_default();
        counted.stops += 1;
        counted.time += now.saturating_since(reason.since);
        counted.depth = counted.depth.max(reason.depth);
    }

    /// All of it, up to `end`.
    pub(crate) fn totals(&mut self, end: Time) -> Vec<CauseTotals> {
        for (stopped, reason) in std::mem::take(&mut self.current) {
            self.count(end, stopped, reason);
        }
        let row = |(&(port, class, cause, root), counted): (&(u32, u8, u32, u32), &Counted)| {
            let &Counted { stops, time, depth } = counted;
            CauseTotals { port, class, cause, root, stops, time, depth }
        };
        self.counted.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_stop_is_traced_to_where_nothing_else_holds() {
        let mut spread = Spread::default();
        spread.stop(us(1), (5, 3), 9, false);
        spread.stop(us(2), (4, 3), 5, true);
        spread.stop(us(3), (2, 3), 4, true);
        spread.go(us(6), (2, 3));
        spread.go(us(7), (7, 3));
        let rows = spread.totals(us(10));
        let reported: Vec<_> =
            rows.iter().map(|row| (row.port, row.cause, row.root, row.depth, row.time.ps())).collect();
        assert_eq!(reported, [(2, 4, 9, 3, 3_000_000), (4, 5, 9, 2, 8_000_000), (5, 9, 9, 1, 9_000_000)]);
    }

    #[test]
    fn what_a_host_holds_is_a_root_one_further_away() {
        let mut spread = Spread::default();
        spread.stop(us(1), (5, 3), 9, true);
        let rows = spread.totals(us(2));
        assert_eq!(rows.iter().map(|row| (row.root, row.depth)).collect::<Vec<_>>(), [(9, 2)]);
    }
}
