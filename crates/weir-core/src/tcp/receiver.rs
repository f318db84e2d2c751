//! The end of a connection that receives data.

use crate::tcp::config::Config;
use crate::tcp::counters::ReceiverCounters;
use crate::tcp::marks::{Feedback, ReceiverMarks};
use crate::tcp::ranges::Ranges;
use crate::tcp::reader::Reader;
use crate::tcp::segment::{Ecn, Flags, Sacks, Segment};
use crate::tcp::{is_older, stamp, ticks};
use crate::units::{Bytes, Span, Time};

/// The receiving end. Its application takes every byte as soon as it is complete up to there, so that the receive buffer holds
/// what is missing something before it, and the window never closes; or it reads slowly.
///
/// After [`Receiver::handle_segment`] and [`Receiver::handle_timeout`], ask [`Receiver::poll_transmit`] until it gives
/// nothing; then sleep until [`Receiver::poll_timeout`].
///
/// Fields stand in the order in which they are needed, as those of [`crate::tcp::Sender`].
#[derive(Debug)]
#[repr(C)]
pub struct Receiver {
    every: u32,
    /// Full segments that arrived since the last acknowledgement.
    unacknowledged: u32,
    ts_recent: u32,
    /// The field of the header.
    window: u16,
    window_scale: Option<u8>,
    owed: Owed,
    /// Flags of every segment that it sends.
    flags: Flags,
    sack: bool,
    /// Whether it reports what arrived twice, and what did last.
    reports_duplicates: bool,
    duplicate: Option<(u64, u64)>,
    /// How the sender is notified of marks.
    feedback: Feedback,
    /// Next number expected; 0 before the SYN.
    next: u64,
    buffer: u64,
    patience: Span,
    /// When the acknowledgement that is held back must go.
    deadline: Time,
    last_ack: u64,
    arrived: Time,
    /// The unit of stamps of arrival, if these are reported, and the last one.
    stamps: Option<Span>,
    /// The number of the FIN, once one arrived.
    fin: Option<u64>,
    ranges: Ranges,
    counters: ReceiverCounters,
    finished: Option<Time>,
    marks: ReceiverMarks,
    /// The field of the last SYN's IP header.
    syn_ecn: Ecn,
    /// An acknowledgement that goes before the one that is owed.
    early: Option<Box<Segment>>,
    /// An application that reads slowly.
    reader: Option<Box<Reader>>,
    segment: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    Nothing,
    Answer,
    Acknowledgement,
}

impl Receiver {
    /// A receiver that waits for a SYN.
    pub fn new(config: &Config) -> Receiver {
        let buffer = config.receive_buffer_bytes.count();
        let scale = config.window_scale();
        let window = (buffer >> scale.unwrap_or(0)).min(65_535);
        Receiver {
            every: config.delayed_ack_segments,
            unacknowledged: 0,
            ts_recent: 0,
            window: window as u16,
            window_scale: scale,
            owed: Owed::Nothing,
            flags: Flags::ACK.with_if(config.timestamps, Flags::TIMESTAMPS),
            sack: config.sack,
            reports_duplicates: config.has_rack(),
            duplicate: None,
            feedback: Feedback::None,
            next: 0,
            buffer: window << scale.unwrap_or(0),
            patience: config.delayed_ack_timeout_ps,
            deadline: Time::NEVER,
            last_ack: 0,
            arrived: Time::ZERO,
            stamps: config.arrival_stamps_ps,
            fin: None,
            ranges: Ranges::default(),
            counters: ReceiverCounters::default(),
            finished: None,
            marks: ReceiverMarks::new(&config.ecn),
            syn_ecn: Ecn::NotEct,
            early: None,
            reader: config.reading.as_ref().map(|reading| {
                let buffer = window << scale.unwrap_or(0);
                Box::new(Reader::new(reading, buffer, scale.unwrap_or(0), config.segment_bytes.count()))
            }),
            segment: config.segment_bytes.count(),
        }
    }

    /// A segment from the sender arrived.
    #[inline]
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        if segment.end() == segment.seq {
            return;
        }
        self.counters.segments += 1;
        self.arrived = now;
        if segment.flags.has(Flags::SYN) {
            if self.next == 0 {
                (self.next, self.ts_recent) = (1, segment.ts_val);
                self.feedback = self.marks.agree(segment);
            }
            self.syn_ecn = segment.ecn;
            self.owed = Owed::Answer;
            return;
        }
        if self.next == 0 {
            return;
        }
        if segment.flags.has(Flags::TIMESTAMPS) {
            // Source: RFC 7323, 5.3.
            if is_older(segment.ts_val, self.ts_recent) {
                self.counters.paws_rejects += 1;
                self.owed = Owed::Acknowledgement;
                self.note_duplicate(segment.seq, segment.end().min(self.next));
                return;
            }
        }
        self.note_ecn(now, segment);
        if segment.flags.has(Flags::TIMESTAMPS) && segment.seq <= self.last_ack {
            self.ts_recent = segment.ts_val;
        }
        self.take(now, segment);
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if now >= self.deadline {
            self.deadline = Time::NEVER;
            if self.unacknowledged > 0 {
                self.counters.delayed_acks += 1;
                self.owed = Owed::Acknowledgement;
            }
        }
        if let Some(reader) = self.reader.as_mut().filter(|reader| now >= reader.opens_at) {
            reader.opens_at = Time::NEVER;
            self.counters.window_updates += 1;
            self.owed = Owed::Acknowledgement;
        }
    }

    /// The next segment to send now, if there is one.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if let Some(early) = self.early.take() {
            return Some(*early);
        }
        match std::mem::replace(&mut self.owed, Owed::Nothing) {
            Owed::Nothing => None,
            Owed::Acknowledgement => Some(self.acknowledgement(now)),
            Owed::Answer => {
                let mut answer = self.acknowledgement(now);
                (answer.seq, answer.window_scale) = (0, self.window_scale);
                // Source: RFC 7323, 2.2: the window of a SYN is not scaled.
                answer.window = self.buffer.min(65_535) as u16;
                self.answer_ecn(&mut answer);
                Some(answer)
            }
        }
    }

    /// When [`Receiver::handle_timeout`] is due; [`Time::NEVER`] if not at all.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        match &self.reader {
            None => self.deadline,
            Some(reader) => self.deadline.min(reader.opens_at),
        }
    }

    /// What it holds of data, as it advertises by windows that are scaled.
    pub(crate) fn room(&self) -> u64 {
        self.buffer
    }

    /// Data delivered to the application.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.counters.delivered_bytes)
    }

    /// When the last byte of the stream was delivered.
    pub fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// What was counted.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    #[inline]
    fn note_ecn(&mut self, now: Time, segment: &Segment) {
        self.counters.ecn_marks += u64::from(segment.ecn == Ecn::Ce);
        if self.feedback == Feedback::None {
            return;
        }
        if self.unacknowledged > 0 && self.marks.begins_run(self.feedback, segment) {
            self.early = Some(Box::new(self.acknowledgement(now)));
        }
        if self.marks.on_data(self.feedback, segment, self.next) {
            self.owed = Owed::Acknowledgement;
        }
    }

    /// The answer to a SYN says how marks will be reported, and how the SYN arrived.
    fn answer_ecn(&self, answer: &mut Segment) {
        answer.flags = self.flags.with(Flags::SYN).with_if(self.sack, Flags::SACK_PERMITTED);
        answer.flags = answer.flags.with(self.feedback.answer(self.syn_ecn));
        answer.sacks = Sacks::default();
        if let Some(counts) = self.marks.first_option(self.feedback) {
            answer.sacks.set_counts(&counts);
        }
    }

    #[inline]
    fn take(&mut self, now: Time, segment: &Segment) {
        let (start, end) = (segment.seq, segment.end());
        // The FIN needs no room.
        let (edge, behind) = match &self.reader {
            None => (self.next + self.buffer, self.next + self.buffer + 1),
            Some(reader) => (reader.advertised, reader.advertised + u64::from(segment.flags.has(Flags::FIN))),
        };
        if start > edge || end > behind {
            self.counters.beyond_window += 1;
            self.owed = Owed::Acknowledgement;
            return;
        }
        if segment.flags.has(Flags::FIN) {
            self.fin = Some(end - 1);
        }
        if end <= self.next {
            self.counters.duplicates += 1;
            self.owed = Owed::Acknowledgement;
            self.note_duplicate(start, end);
        } else if start > self.next {
            if self.ranges.insert(start, end) {
                self.counters.out_of_order += 1;
            } else {
                self.counters.duplicates += 1;
                self.note_duplicate(start, end);
            }
            self.owed = Owed::Acknowledgement;
        } else {
            self.advance(now, end);
        }
    }

    /// What lies between `start` and `end` has arrived before.
    fn note_duplicate(&mut self, start: u64, end: u64) {
        if self.reports_duplicates && start < end {
            self.duplicate = Some((start, end));
        }
    }

    /// Source: RFC 2883, 4: what arrived twice comes first.
    #[cold]
    #[inline(never)]
    fn duplicate_and_sacks(&mut self) -> Sacks {
        let mut sacks = Sacks::default();
        if let Some((start, end)) = self.duplicate.take() {
            sacks.push(self.next, start, end);
        }
        let others = if self.ranges.is_empty() { Sacks::default() } else { self.ranges.sacks(self.next) };
        others.blocks(self.next).for_each(|(start, end)| sacks.push(self.next, start, end));
        sacks
    }

    /// Everything below `end` has arrived.
    #[inline]
    fn advance(&mut self, now: Time, end: u64) {
        let before = self.next;
        let fills = !self.ranges.is_empty();
        self.next = if fills { self.ranges.advance(end) } else { end };
        let finished = self.fin.is_some_and(|fin| self.next > fin);
        if finished && self.finished.is_none() {
            self.finished = Some(now);
        }
        let delivered = self.next - before - u64::from(finished);
        self.counters.delivered_bytes += delivered;
        if let Some(reader) = &mut self.reader {
            reader.add(now, delivered);
            reader.plan(now, self.next, self.segment);
        }
        self.unacknowledged += 1;
        // Source: RFC 5681, 4.2.
        if self.unacknowledged >= self.every || fills || finished {
            self.owed = Owed::Acknowledgement;
        } else if self.deadline == Time::NEVER {
            self.deadline = now + self.patience;
        }
    }

    /// The window that is left of what is not read.
    #[inline(never)]
    fn report_room(&mut self, now: Time) {
        if let Some(reader) = &mut self.reader {
            let window = reader.window(now, self.next);
            reader.plan(now, self.next, self.segment);
            self.counters.window_closures += u64::from(window == 0 && self.window > 0);
            self.window = window;
        }
    }

    #[inline]
    fn acknowledgement(&mut self, now: Time) -> Segment {
        self.unacknowledged = 0;
        self.deadline = Time::NEVER;
        self.last_ack = self.next;
        self.counters.acks += 1;
        let mut sacks = if self.duplicate.is_some() {
            self.duplicate_and_sacks()
        } else if self.sack && !self.ranges.is_empty() {
            self.ranges.sacks(self.next)
        } else {
            Sacks::default()
        };
        let mut flags = self.flags;
        if self.feedback != Feedback::None {
            let (bits, counts) = self.marks.report(self.feedback);
            flags = flags.with(bits);
            counts.inspect(|counts| sacks.set_counts(counts));
        }
        if self.reader.is_some() {
            self.report_room(now);
        }
        Segment {
            seq: 1,
            ack: self.next,
            ts_val: self.stamps.map_or_else(|| ticks(now), |unit| stamp(self.arrived, unit)),
            ts_ecr: self.ts_recent,
            window: self.window,
            flags,
            sacks,
            ..Segment::default()
        }
    }
}
