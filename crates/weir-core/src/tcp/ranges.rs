//! What arrived behind a hole: disjoint ranges of numbers, and which of them to report first.

use std::collections::VecDeque;

use crate::tcp::segment::{MAX_SACKS, Sacks};

/// Ranges of numbers, none touching another. Time per segment grows with the logarithm of their number, but for
/// holes in the middle that are filled or opened, where half of the ranges may move.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// First number and the one behind the last, in order.
    ranges: VecDeque<(u64, u64)>,
    /// A number of each of the ranges that grew last, the latest first.
    recent: [u64; MAX_SACKS],
}

impl Ranges {
    /// Adds the numbers from `start` to before `end`; whether any of them is new.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> bool {
        // The ranges that touch the new one.
        let first = self.ranges.partition_point(|range| range.1 < start);
        let mut behind = first;
        let (mut low, mut high) = (start, end);
        while let Some(&(from, to)) = self.ranges.get(behind).filter(|range| range.0 <= end) {
            if from <= start && end <= to {
                self.remember(start, (from, to));
                return false;
            }
            (low, high) = (low.min(from), high.max(to));
            behind += 1;
        }
        match behind - first {
            0 => self.ranges.insert(first, (low, high)),
            1 => self.ranges[first] = (low, high),
            _ => {
                self.ranges[first] = (low, high);
                self.ranges.drain(first + 1..behind);
            }
        }
        self.remember(start, (low, high));
        true
    }

    /// Everything below `next` is complete: takes out the range that begins there or before, and gives the number
    /// behind it.
    #[inline]
    pub(crate) fn advance(&mut self, next: u64) -> u64 {
        let mut next = next;
        while let Some(&(_, end)) = self.ranges.front().filter(|range| range.0 <= next) {
            next = next.max(end);
            self.ranges.pop_front();
        }
        next
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The blocks to report with `ack`: the range that grew last, then others that grew lately.
    ///
    /// Source: RFC 2018, 4.
    pub(crate) fn sacks(&self, ack: u64) -> Sacks {
        let mut sacks = Sacks::default();
        let mut reported = [u64::MAX; MAX_SACKS];
        for (place, &number) in self.recent.iter().enumerate() {
            if number < ack {
                continue;
            }
            let Some((start, end)) = self.around(number) else { continue };
            if !reported.contains(&start) {
                reported[place] = start;
                sacks.push(ack, start, end);
            }
        }
        sacks
    }

    fn around(&self, number: u64) -> Option<(u64, u64)> {
        let place = self.ranges.partition_point(|range| range.1 <= number);
        self.ranges.get(place).copied().filter(|range| range.0 <= number)
    }

    /// `range` holds `number`, and grew last.
    fn remember(&mut self, number: u64, range: (u64, u64)) {
        let mut shifted = [number; MAX_SACKS];
        // The others, without those of the same range.
        let mut others = self.recent.iter().filter(|&&recent| recent < range.0 || recent >= range.1);
        for place in &mut shifted[1..] {
            *place = others.next().copied().unwrap_or(0);
        }
        self.recent = shifted;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_sets_of_numbers(inserts in prop::collection::vec((1u64..60, 1u64..8, 0u64..4), 0..60)) {
            let (mut ranges, mut set, mut next) = (Ranges::default(), BTreeSet::new(), 1);
            for (start, length, step) in inserts {
                if step == 0 && !set.contains(&next) {
                    // The hole at the front is filled.
                    set.insert(next);
                    next = ranges.advance(next + 1);
                    while set.contains(&next) { next += 1; }
                    prop_assert_eq!(ranges.advance(next), next);
                }
                let (start, end) = (next + start, next + start + length);
                let fresh = (start..end).filter(|number| !set.contains(number)).count();
                prop_assert_eq!(ranges.insert(start, end), fresh > 0);
                set.extend(start..end);
                let above: Vec<u64> = set.iter().copied().filter(|&number| number >= next).collect();
                let held: Vec<u64> = ranges.ranges.iter().flat_map(|&(low, high)| low..high).collect();
                prop_assert_eq!(held, above);
                prop_assert!(ranges.ranges.iter().zip(ranges.ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
                let blocks: Vec<(u64, u64)> = ranges.sacks(next).blocks(next).collect();
                prop_assert!(blocks[0].0 <= start && end <= blocks[0].1, "the latest comes first");
                prop_assert_eq!(blocks.len(), ranges.ranges.len().min(blocks.len()));
                let distinct: BTreeSet<_> = blocks.iter().collect();
                prop_assert_eq!(distinct.len(), blocks.len());
            }
        }
    }
}
