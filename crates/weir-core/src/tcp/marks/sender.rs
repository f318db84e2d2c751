//! The sender's side of counters.

use super::{ACE, FIELD, FIRST_PACKETS};
use crate::tcp::segment::{ByteCounts, Segment};

/// What a sender knows of the receiver's counters.
#[derive(Clone, Debug)]
pub(crate) struct SenderMarks {
    /// Packets with CE: s.cep.
    packets: u64,
    /// Bytes of data with CE, modulo 2^24: s.ceb.
    bytes: u64,
    /// Payload of a full segment.
    segment: u64,
}

/// What an acknowledgment reports besides its counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    /// Segments that are newly known to have arrived, in order or not.
    pub(crate) segments: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Whether any of them have arrived in order.
    pub(crate) in_order: bool,
}

impl SenderMarks {
    pub(crate) fn new(segment: u64) -> SenderMarks {
        SenderMarks { packets: FIRST_PACKETS, bytes: 0, segment }
    }

    /// Packets that were marked, as far as it is known; never fewer than the receiver reported.
    pub(crate) fn packets(&self) -> u64 {
        self.packets - FIRST_PACKETS
    }

    /// Bytes of data which an acknowledgement reports as marked.
    ///
    /// One that brings nothing new is superseded, or will be: its counters come again. So is one that reports more marks than
    /// packets, without progress: it was overtaken.
    ///
    /// Source: RFC 9768, 3.2.2.2 and 3.2.3.1. DEVIATION: where the bytes are reported, so many packets are marked as carry them at
    /// least, not those of the heuristic of appendix A.2.2.
    pub(crate) fn read(&mut self, segment: &Segment, news: &News) -> u64 {
        let least = u64::from(segment.flags.ace()).wrapping_sub(self.packets) % ACE;
        if news.segments == 0 || !news.in_order && least > news.segments {
            return 0;
        }
        let reported = segment.byte_counts().map(|counts| self.bytes_since(&counts));
        let packets = match reported {
            Some(bytes) => at_least(least, bytes.div_ceil(self.segment)),
            None => safest(least, news.segments),
        };
        self.packets += packets;
        let bytes = reported.unwrap_or_else(|| {
            // Source: RFC 9768, appendix A.3 (as many as their share of the packets).
            (news.bytes * packets.min(news.segments)).div_ceil(news.segments)
        });
        if reported.is_none() {
            self.bytes = (self.bytes + bytes) % FIELD;
        }
        bytes
    }

    /// What the counter of bytes says beyond what was reported, or was taken from the other one.
    fn bytes_since(&mut self, counts: &ByteCounts) -> u64 {
        let Some(ce) = counts.ce() else { return 0 };
        let more = ce.wrapping_sub(self.bytes) % FIELD;
        self.bytes = ce;
        // More had been taken for marked than was.
        if more < FIELD / 2 { more } else { 0 }
    }
}

/// The least number of packets from `bound` on that the field leaves open, of which `least` is the first.
fn at_least(least: u64, bound: u64) -> u64 {
    least + bound.saturating_sub(least).next_multiple_of(ACE)
}

/// The greatest number up to all `segments` that the field leaves open; but what it reports at least in any case.
///
/// Source: RFC 9768, appendix A.2.1 (dSafer.cep).
fn safest(least: u64, segments: u64) -> u64 {
    if segments < ACE { least } else { segments - segments.wrapping_sub(least) % ACE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::Flags;

    const LEN: u64 = 1000;

    fn ack(packets: u64, bytes: Option<u64>) -> Segment {
        let mut segment = Segment { flags: Flags::ACK.with(Flags::of_ace(packets as u8)), ..Segment::default() };
        if let Some(bytes) = bytes {
            segment.sacks.set_counts(&ByteCounts::new(true, 1, Some(bytes)));
        }
        segment
    }

    fn news(segments: u64) -> News {
        News { segments, bytes: segments * LEN, in_order: true }
    }

    #[test]
    fn the_field_alone_reports_up_to_seven_marks_and_the_safest_number_of_more() {
        let mut marks = SenderMarks::new(LEN);
        assert_eq!(marks.read(&ack(5, None), &news(2)), 0);
        assert_eq!((marks.read(&ack(7, None), &news(2)), marks.packets()), (2 * LEN, 2));
        // 7 + 7 = 14: the field says 6.
        assert_eq!((marks.read(&ack(6, None), &news(7)), marks.packets()), (7 * LEN, 9));
        // Of 20 packets 1, 9 or 17 were marked.
        assert_eq!((marks.read(&ack(7, None), &news(20)), marks.packets()), (17 * LEN, 26));
        // None, or 8.
        assert_eq!((marks.read(&ack(7, None), &news(8)), marks.packets()), (8 * LEN, 34));
    }

    #[test]
    fn bytes_report_how_often_the_field_has_wrapped() {
        let mut marks = SenderMarks::new(LEN);
        assert_eq!((marks.read(&ack(5 + 9, Some(9 * LEN)), &news(20)), marks.packets()), (9 * LEN, 9));
        assert_eq!((marks.read(&ack(5 + 9, Some(9 * LEN)), &news(20)), marks.packets()), (0, 9));
        // One mark on a short segment.
        assert_eq!((marks.read(&ack(5 + 10, Some(9 * LEN + 1)), &news(2)), marks.packets()), (1, 10));
    }

    #[test]
    fn counters_of_bytes_wrap() {
        let mut marks = SenderMarks::new(LEN);
        let mut total = 0;
        for _ in 0..40 {
            total += 900 * LEN;
            let reported = ack(5 + total / LEN, Some(total));
            assert_eq!(marks.read(&reported, &news(1000)), 900 * LEN);
        }
        assert!(total > FIELD && marks.packets() == total / LEN);
    }

    #[test]
    fn what_was_guessed_while_an_option_was_lost_is_put_right_by_the_next() {
        let mut marks = SenderMarks::new(LEN);
        // Two segments of which one was marked; in truth it was the short one.
        assert_eq!(marks.read(&ack(6, None), &News { segments: 2, bytes: 1100, in_order: true }), 550);
        assert_eq!(marks.read(&ack(6, Some(100)), &news(2)), 0);
        assert_eq!(marks.read(&ack(7, Some(1100)), &news(2)), 1000);
    }

    #[test]
    fn an_acknowledgement_that_was_overtaken_says_nothing() {
        let mut marks = SenderMarks::new(LEN);
        marks.read(&ack(10, None), &news(6));
        let late = News { in_order: false, ..news(1) };
        assert_eq!((marks.read(&ack(9, None), &late), marks.packets()), (0, 5));
        assert_eq!((marks.read(&ack(9, None), &news(0)), marks.packets()), (0, 5));
    }
}
