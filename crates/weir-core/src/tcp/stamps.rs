//! Stamps of arrival, read at the other end.

use crate::units::{Span, Time};

/// Makes times of stamps, which are the low 32 bits of a clock that may differ from the own one by any amount.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StampReader {
    unit: Span,
    /// The other clock less the own one, in units, as the first stamp showed it.
    offset: Option<i64>,
}

impl StampReader {
    pub(crate) fn new(unit: Span) -> StampReader {
        StampReader { unit, offset: None }
    }

    /// The time of the stamp `value`, read at `now`: the one nearest to it. Only differences of such times mean
    /// anything.
    pub(crate) fn read(&mut self, now: Time, value: u32) -> Time {
        let own = (now.ps() / self.unit.ps()) as i64;
        // Far from zero, so that no time before the first stamp is negative.
        let offset = *self.offset.get_or_insert(i64::from(value.wrapping_sub(own as u32) as i32));
        let expected = own + offset;
        let exact = expected + i64::from(value.wrapping_sub(expected as u32) as i32);
        Time::from_ps((exact - offset.min(0)).max(0) as u64 * self.unit.ps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::stamp;

    const UNIT: Span = Span::from_ns(1);

    #[test]
    fn differences_survive_the_wrap_of_32_bits_and_clocks_that_differ() {
        // 2^32 ns are 4.29 s; a stamp is read 2 ms after it was made.
        for (ahead_ms, gap_ms) in [(0, 3), (0, 4_400), (1_000_000, 9_000), (4_294, 1)] {
            let mut reader = StampReader::new(UNIT);
            let made = |at_ms: u64| stamp(Time::ZERO + Span::from_ms(at_ms + ahead_ms), UNIT);
            let read =
                |reader: &mut StampReader, at_ms| reader.read(Time::ZERO + Span::from_ms(at_ms + 2), made(at_ms));
            let first = read(&mut reader, 10);
            let second = read(&mut reader, 10 + gap_ms);
            assert_eq!(second - first, Span::from_ms(gap_ms), "{ahead_ms} {gap_ms}");
        }
    }
}
