//! What a sender learns of marks, and reports to its controller.

use crate::cc::{CongestionControl, Marks, SenderEvent};
use crate::tcp::marks::{Feedback, News, SenderMarks};
use crate::tcp::scoreboard::Delivered;
use crate::tcp::segment::{Ecn, Flags, Segment};
use crate::tcp::sender::{Phase, Sender};
use crate::units::{Bytes, Time};

impl Sender {
    /// The receiver has answered: how it will report marks.
    pub(super) fn agree_on_marks(&mut self, answer: &Segment) {
        self.feedback = self.rules.ecn.conclude(answer.flags);
        if self.control.needs().counters && self.feedback != Feedback::Accurate {
            self.control.fall_back(Bytes::new(self.segment));
            (self.times_segments, self.has_timer) = (false, false);
        }
        self.codepoint = if self.feedback == Feedback::None { Ecn::NotEct } else { self.control.needs().codepoint };
        if self.feedback == Feedback::Accurate {
            self.marks = Some(Box::new(SenderMarks::new(self.segment)));
        }
    }

    /// What an acknowledgement reports of marks, before anything follows from it.
    #[inline]
    pub(super) fn read_marks(&mut self, segment: &Segment, news: &Delivered) -> Marks {
        match self.feedback {
            Feedback::None => Marks::default(),
            Feedback::Classic => {
                // Source: RFC 8257, 3.3, steps 1 to 3.
                let is_echo = segment.flags.has(Flags::ECE);
                let counted = Bytes::new(news.acked);
                Marks { counted, marked: if is_echo { counted } else { Bytes::ZERO }, is_echo, ..Marks::default() }
            }
            Feedback::Accurate => self.read_counters(segment, news),
        }
    }

    fn read_counters(&mut self, segment: &Segment, news: &Delivered) -> Marks {
        let Some(marks) = &mut self.marks else { return Marks::default() };
        let before = marks.packets();
        let reported = News { segments: news.segments, bytes: news.bytes, in_order: news.acked > 0 };
        let marked = marks.read(segment, &reported);
        let packets = marks.packets() - before;
        self.counters.marked_segments += packets;
        let is_echo = packets > 0;
        Marks { counted: Bytes::new(news.bytes), marked: Bytes::new(marked), is_echo, ..Marks::default() }
    }

    /// A controller that answers marks in proportion hears of them.
    #[inline]
    pub(super) fn report_marks(&mut self, now: Time, marks: Marks) {
        if self.feedback == Feedback::None {
            return;
        }
        self.counters.marked_bytes += marks.marked.count();
        if !self.control.needs().marks {
            return;
        }
        let marks = Marks {
            number: self.board.una(),
            next: self.board.nxt(),
            srtt: self.rtt.srtt(),
            may_reduce: self.phase == Phase::Open,
            ..marks
        };
        self.report_rarely(now, &SenderEvent::Marks(marks));
        if self.control.has_reduced() {
            self.note_reduction();
        }
    }

    /// The window was reduced because of marks: a receiver that echoes until it knows is notified.
    pub(super) fn note_reduction(&mut self) {
        self.counters.ecn_reductions += 1;
        self.owes_cwr = self.feedback == Feedback::Classic;
    }
}
