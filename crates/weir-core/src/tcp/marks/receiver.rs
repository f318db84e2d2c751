//! The receiver's side of marks.

use super::{Ecn, EcnConfig, EcnSupport, FIRST_BYTES, FIRST_PACKETS, Feedback};
use crate::tcp::segment::{ByteCounts, Flags, Segment};

/// What the receiver of data has seen, and still has to report.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverMarks {
    support: EcnSupport,
    options: bool,
    /// What is echoed: until the sender has answered, or of the last packet.
    echo: bool,
    /// Whether the last packet was marked.
    was_marked: bool,
    counts: Counts,
    /// As the last acknowledgement had them.
    reported: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    /// Packets with CE: r.cep.
    ce_packets: u64,
    /// Bytes of data with CE, ECT(0) and ECT(1): r.ceb, r.e0b, r.e1b.
    ce: u64,
    ect0: u64,
    ect1: u64,
}

/// Marks since the last acknowledgement that make another one due.
///
/// Source: RFC 9768, 3.2.2.5.1 (n).
const MOST_UNREPORTED: u64 = 2;

impl ReceiverMarks {
    pub(crate) fn new(config: &EcnConfig) -> ReceiverMarks {
        let counts = Counts { ce_packets: FIRST_PACKETS, ce: 0, ect0: FIRST_BYTES, ect1: FIRST_BYTES };
        ReceiverMarks {
            support: config.receiver,
            options: config.options,
            echo: false,
            was_marked: false,
            counts,
            reported: counts,
        }
    }

    /// The first SYN arrived.
    pub(crate) fn agree(&self, syn: &Segment) -> Feedback {
        self.support.agree(syn.flags)
    }

    /// Whether data that has arrived begins a run of packets which are reported by themselves: what arrived before has to be
    /// acknowledged first, as it was.
    ///
    /// Source: RFC 8257, 3.2 (of what it lets an implementation choose: two acknowledgements).
    pub(crate) fn begins_run(&self, feedback: Feedback, segment: &Segment) -> bool {
        self.reports_runs(feedback) && (segment.ecn == Ecn::Ce) != self.echo
    }

    fn reports_runs(&self, feedback: Feedback) -> bool {
        feedback == Feedback::Classic && self.support == EcnSupport::Dctcp
    }

    /// Data arrived, of which the numbers from `next` on are new: whether its mark has to be reported at once.
    pub(crate) fn on_data(&mut self, feedback: Feedback, segment: &Segment, next: u64) -> bool {
        let marked = segment.ecn == Ecn::Ce;
        match feedback {
            Feedback::None => false,
            Feedback::Classic if self.reports_runs(feedback) => std::mem::replace(&mut self.echo, marked) != marked,
            Feedback::Classic => {
                // Source: RFC 3168, 6.1.3.
                self.echo = marked || self.echo && !segment.flags.has(Flags::CWR);
                false
            }
            Feedback::Accurate => self.count(segment, marked, next),
        }
    }

    /// Source: RFC 9768, 3.2 (what counts) and 3.2.2.5.1 (when it is reported).
    fn count(&mut self, segment: &Segment, marked: bool, next: u64) -> bool {
        let was_marked = std::mem::replace(&mut self.was_marked, marked);
        if segment.end() <= next {
            // Not acceptable: all of it has arrived before.
            return false;
        }
        let bytes = u64::from(segment.len);
        match segment.ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.counts.ect0 += bytes,
            Ecn::Ect1 => self.counts.ect1 += bytes,
            Ecn::Ce => {
                self.counts.ce_packets += 1;
                self.counts.ce += bytes;
            }
        }
        let unreported = self.counts.ce_packets - self.reported.ce_packets;
        marked && (!was_marked || unreported >= MOST_UNREPORTED)
    }

    /// What an acknowledgement says of marks: bits of its header, and counters for its option.
    pub(crate) fn report(&mut self, feedback: Feedback) -> (Flags, Option<ByteCounts>) {
        match feedback {
            Feedback::None => (Flags::NONE, None),
            Feedback::Classic => (Flags::NONE.with_if(self.echo, Flags::ECE), None),
            Feedback::Accurate => {
                let changed = self.counts != self.reported;
                self.reported = self.counts;
                let option = (self.options && changed).then(|| self.bytes());
                (Flags::of_ace(self.counts.ce_packets as u8), option)
            }
        }
    }

    /// The counters that an option reports: that of the codepoint which the sender uses, and that of marks once there was one.
    ///
    /// Source: RFC 9768, 3.2.3.3.
    fn bytes(&self) -> ByteCounts {
        let is_l4s = self.counts.ect1 > FIRST_BYTES;
        let ect = if is_l4s { self.counts.ect1 } else { self.counts.ect0 };
        let ce = (self.counts.ce > 0).then_some(self.counts.ce);
        ByteCounts::new(is_l4s, ect, ce)
    }

    /// The option of the answer to a SYN.
    ///
    /// Source: RFC 9768, 3.2.3.2.1.
    pub(crate) fn first_option(&self, feedback: Feedback) -> Option<ByteCounts> {
        (self.options && feedback == Feedback::Accurate).then(|| self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u32 = 1000;

    fn marks(support: EcnSupport) -> ReceiverMarks {
        ReceiverMarks::new(&EcnConfig::both(support))
    }

    fn packet(place: u64, ecn: Ecn, flags: Flags) -> Segment {
        Segment { seq: 1 + place * u64::from(LEN), len: LEN, ecn, flags, ..Segment::default() }
    }

    /// After which of the packets of `states` an acknowledgement is due.
    fn prompts(marks: &mut ReceiverMarks, feedback: Feedback, states: &[Ecn]) -> Vec<bool> {
        let data = |(place, &ecn): (u64, &Ecn)| {
            let segment = packet(place, ecn, Flags::ACK);
            marks.on_data(feedback, &segment, segment.seq)
        };
        (0..).zip(states).map(data).collect()
    }

    #[test]
    fn a_classic_echo_lasts_until_the_sender_has_reduced() {
        let mut marks = marks(EcnSupport::Classic);
        let mut echo = |ecn, flags: Flags| {
            marks.on_data(Feedback::Classic, &packet(0, ecn, flags), 1);
            marks.report(Feedback::Classic).0.has(Flags::ECE)
        };
        let ack = Flags::ACK;
        assert!(!echo(Ecn::Ect0, ack));
        assert!(echo(Ecn::Ce, ack) && echo(Ecn::Ect0, ack));
        assert!(!echo(Ecn::Ect0, ack.with(Flags::CWR)) && !echo(Ecn::Ect0, ack));
        // A mark on the segment that says so counts again.
        assert!(echo(Ecn::Ce, ack.with(Flags::CWR)));
    }

    #[test]
    fn the_state_of_each_run_of_packets_is_reported_by_itself() {
        let mut marks = marks(EcnSupport::Dctcp);
        let states = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ect0];
        assert_eq!(prompts(&mut marks, Feedback::Classic, &states), [false, true, false, true, false]);
        let next = |ecn| packet(9, ecn, Flags::ACK);
        assert_eq!([Ecn::Ect0, Ecn::Ce].map(|ecn| marks.begins_run(Feedback::Classic, &next(ecn))), [false, true]);
    }

    #[test]
    fn a_first_mark_and_each_second_one_are_reported_at_once() {
        let mut marks = marks(EcnSupport::Accurate);
        let mut after = |place, ecn| {
            let segment = packet(place, ecn, Flags::ACK);
            let is_due = marks.on_data(Feedback::Accurate, &segment, segment.seq);
            if is_due {
                marks.report(Feedback::Accurate);
            }
            is_due
        };
        let states = [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ce];
        let reported: Vec<bool> = (0..).zip(states).map(|(place, ecn)| after(place, ecn)).collect();
        assert_eq!(reported, [false, true, false, true, false, false, true]);
    }

    #[test]
    fn counters_report_packets_in_three_bits_and_bytes_by_codepoint() {
        let mut marks = marks(EcnSupport::Accurate);
        assert_eq!(marks.report(Feedback::Accurate), (Flags::of_ace(5), None), "nothing has changed");
        prompts(&mut marks, Feedback::Accurate, &[Ecn::Ect1, Ecn::Ect1]);
        assert_eq!(marks.report(Feedback::Accurate), (Flags::of_ace(5), Some(ByteCounts::new(true, 2001, None))));
        prompts(&mut marks, Feedback::Accurate, &[Ecn::Ce, Ecn::Ce, Ecn::Ce]);
        let (flags, option) = marks.report(Feedback::Accurate);
        assert_eq!(flags, Flags::of_ace(0), "5 + 3 = 8");
        assert_eq!(option, Some(ByteCounts::new(true, 2001, Some(3000))));
        // What has arrived before does not count.
        marks.on_data(Feedback::Accurate, &packet(0, Ecn::Ce, Flags::ACK), 5001);
        assert_eq!(marks.report(Feedback::Accurate), (Flags::of_ace(0), None));
    }
}
