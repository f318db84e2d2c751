//! What a receiver counts: distinct, duplicated and reordered probes, and which ones are missing.

/// Counts of the probes of one trial, exact whatever the order and number of copies.
#[derive(Clone, Debug)]
pub struct Tally {
    seen: Vec<u64>,
    expected: u64,
    next: u64,
    distinct: u64,
    duplicated: u64,
    reordered: u64,
    beyond: u64,
}

impl Tally {
    /// Of a trial with the sequence numbers `0..expected`. Takes one bit for each.
    pub fn new(expected: u64) -> Tally {
        let words = usize::try_from(expected.div_ceil(64)).expect("a bitmap that fits into memory");
        Tally { seen: vec![0; words], expected, next: 0, distinct: 0, duplicated: 0, reordered: 0, beyond: 0 }
    }

    /// A probe arrived. True when it is the first of its number.
    pub fn on_arrival(&mut self, sequence: u64) -> bool {
        if sequence >= self.expected {
            self.beyond += 1;
            return false;
        }
        let (word, bit) = ((sequence / 64) as usize, 1_u64 << (sequence % 64));
        if self.seen[word] & bit != 0 {
            self.duplicated += 1;
            return false;
        }
        self.seen[word] |= bit;
        self.distinct += 1;
        if sequence < self.next {
            self.reordered += 1;
        } else {
            self.next = sequence + 1;
        }
        true
    }

    /// Probes that arrived at least once.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Further copies of probes that had arrived before.
    pub fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// Probes whose number is smaller than one that arrived before (RFC 4737 section 3); copies do not count.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Probes with a number that this trial never had.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// How many of the numbers `from..to` have not arrived.
    pub fn missing(&self, from: u64, to: u64) -> u64 {
        let to = to.min(self.expected);
        if from >= to {
            return 0;
        }
        let seen: u64 = (from / 64..to.div_ceil(64))
            .map(|word| {
                let low = if word == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
                let high = if to - word * 64 >= 64 { u64::MAX } else { (1 << (to % 64)) - 1 };
                u64::from((self.seen[word as usize] & low & high).count_ones())
            })
            .sum();
        to - from - seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(expected: u64, arrivals: &[u64]) -> Tally {
        let mut tally = Tally::new(expected);
        for &sequence in arrivals {
            tally.on_arrival(sequence);
        }
        tally
    }

    #[test]
    fn copies_are_duplicates_and_not_received_twice() {
        let tally = after(4, &[0, 1, 1, 1, 2]);
        assert_eq!((tally.distinct(), tally.duplicated(), tally.reordered()), (3, 2, 0));
    }

    #[test]
    fn a_probe_overtaken_by_a_later_one_is_reordered() {
        let tally = after(5, &[0, 3, 1, 2, 4]);
        assert_eq!((tally.distinct(), tally.duplicated(), tally.reordered()), (5, 0, 2));
    }

    #[test]
    fn a_late_copy_is_a_duplicate_but_not_reordered() {
        let tally = after(3, &[0, 1, 2, 0]);
        assert_eq!((tally.duplicated(), tally.reordered()), (1, 0));
    }

    #[test]
    fn a_number_that_was_never_sent_does_not_count_as_received() {
        let tally = after(3, &[0, 3, 4_000_000_000]);
        assert_eq!((tally.distinct(), tally.beyond()), (1, 2));
    }

    #[test]
    fn the_missing_ones_of_any_range_agree_with_counting_one_by_one() {
        let arrivals: Vec<u64> = (0..300).filter(|n| n % 7 != 3 && n % 64 != 63).collect();
        let tally = after(300, &arrivals);
        for from in [0, 1, 63, 64, 65, 127, 200, 300] {
            for to in [0, 1, 64, 66, 128, 191, 192, 300, 999] {
                let counted = (from..to.min(300)).filter(|n| !arrivals.contains(n)).count() as u64;
                assert_eq!(tally.missing(from, to), counted, "{from}..{to}");
            }
        }
    }

    #[test]
    fn every_number_is_either_received_or_missing() {
        let tally = after(1000, &[5, 17, 17, 999, 64]);
        assert_eq!(tally.distinct() + tally.missing(0, 1000), 1000);
    }
}
