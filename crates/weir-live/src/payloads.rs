//! How large the probes of a trial are: runs of one size, over and over again.
//!
//! A run leaves in few system calls, as the kernel cuts only pieces of one size (UDP segmentation).

use weir_core::units::Bytes;

/// UDP payloads of the probes by their sequence numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payloads {
    /// Size of each run, and the place in the cycle where it ends.
    runs: Vec<(Bytes, u64)>,
}

impl Payloads {
    /// All of one size.
    pub fn fixed(payload: Bytes) -> Payloads {
        Payloads { runs: vec![(payload, 1)] }
    }

    /// Runs of a size each, with how many probes they have; after the last comes the first again. Nothing where there is
    /// no probe in them, or more than a number can hold.
    pub fn cycle(runs: &[(Bytes, u64)]) -> Option<Payloads> {
        let mut end = 0_u64;
        let mut made = Vec::with_capacity(runs.len());
        for &(payload, count) in runs.iter().filter(|(_, count)| *count > 0) {
            end = end.checked_add(count)?;
            made.push((payload, end));
        }
        if made.is_empty() { None } else { Some(Payloads { runs: made }) }
    }

    /// The payload of a probe, and how many in a row have that size from there on.
    pub fn at(&self, sequence: u64) -> (Bytes, u64) {
        if let [(payload, _)] = self.runs[..] {
            return (payload, u64::MAX);
        }
        let place = sequence % self.runs[self.runs.len() - 1].1;
        let (payload, end) = self.runs[self.runs.partition_point(|&(_, end)| end <= place)];
        (payload, end - place)
    }

    /// The smallest.
    pub fn smallest(&self) -> Bytes {
        self.sizes().min().expect("there is a run")
    }

    /// The largest.
    pub fn largest(&self) -> Bytes {
        self.sizes().max().expect("there is a run")
    }

    fn sizes(&self) -> impl Iterator<Item = Bytes> {
        self.runs.iter().map(|&(payload, _)| payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Bytes = Bytes::new(18);
    const LARGE: Bytes = Bytes::new(1472);

    #[test]
    fn one_size_has_no_end() {
        assert_eq!(Payloads::fixed(SMALL).at(7), (SMALL, u64::MAX));
        assert_eq!(Payloads::cycle(&[(SMALL, 3)]).expect("a size").at(7), (SMALL, u64::MAX));
    }

    #[test]
    fn runs_come_in_their_order_over_and_over_again() {
        let payloads = Payloads::cycle(&[(SMALL, 2), (Bytes::new(100), 0), (LARGE, 1)]).expect("sizes");
        let sizes: Vec<_> = (0..7).map(|sequence| payloads.at(sequence)).collect();
        let cycle = [(SMALL, 2), (SMALL, 1), (LARGE, 1)];
        assert_eq!(sizes[..3], cycle);
        assert_eq!(sizes[3..6], cycle);
        assert_eq!(sizes[6], cycle[0]);
        assert_eq!((payloads.smallest(), payloads.largest()), (SMALL, LARGE));
    }

    #[test]
    fn a_cycle_without_probes_is_none() {
        assert_eq!(Payloads::cycle(&[]), None);
        assert_eq!(Payloads::cycle(&[(SMALL, 0)]), None);
        assert_eq!(Payloads::cycle(&[(SMALL, u64::MAX), (LARGE, 1)]), None);
    }
}
