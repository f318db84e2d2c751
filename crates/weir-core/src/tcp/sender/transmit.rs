//! What a sender sends: which segment next, and what it says.

use crate::cc::{Departed, Pace, SenderEvent};
use crate::tcp::config::Recovery;
use crate::tcp::marks::{FIRST_PACKETS, Feedback};
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sender::{Forced, Phase, Sender};
use crate::tcp::ticks;
use crate::units::{Bytes, Span, Time};

impl Sender {
    pub(super) fn syn(&mut self, now: Time) -> Option<Segment> {
        let again = self.board.nxt() > 0;
        if again && self.forced.take().is_none() {
            return None;
        }
        if again {
            self.board.on_resent(now, 0);
            self.count_again(Resent::Timeout);
        } else {
            self.board.on_sent(now, 1);
            self.rto_at = now + self.rtt.rto();
        }
        let before = self.counters.segments;
        self.counters.segments += 1;
        let flags = Flags::SYN
            .with_if(self.rules.sack, Flags::SACK_PERMITTED)
            .with_if(self.rules.timestamps, Flags::TIMESTAMPS)
            .with(self.rules.ecn.offer(before));
        let window_scale = self.offered_scale;
        let window = u16::MAX;
        Some(Segment { flags, window, window_scale, ts_val: ticks(now), ..Segment::default() })
    }

    #[inline]
    pub(super) fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if let Some(forced) = self.forced.take() {
            let resent = match forced {
                Forced::Timeout => self.board.head().map(|head| (head, Resent::Timeout)),
                Forced::First => self.board.next_lost().map(|lost| (lost, Resent::Fast)),
                Forced::Probe => return self.probe(now),
                Forced::Window => return self.probe_window(now),
            };
            if let Some(((place, len), why)) = resent {
                return Some(self.send_again(now, place, len, why));
            }
        }
        let (pipe, window) = (self.board.pipe().count(), self.window().count());
        if pipe >= window {
            self.note_full_window();
            self.report_if_idle(now);
            return None;
        }
        if self.release > now && (self.board.has_lost() || self.sendable() > 0) {
            self.wake = self.release;
            return None;
        }
        let room = window - pipe;
        if self.board.has_lost()
            && let Some((place, len)) = self.board.next_lost()
        {
            let why = if self.phase == Phase::Loss { Resent::SlowStart } else { Resent::Fast };
            return (u64::from(len) <= room).then(|| self.send_again(now, place, len, why));
        }
        let mut len = self.sendable();
        if len == room + 1 && self.fin_number().is_some_and(|fin| self.board.nxt() + room == fin) {
            // The window has no room for the FIN: it leaves by itself.
            len = room;
        }
        if len > 0 && len <= room {
            return (!self.must_wait(now)).then(|| self.send_new(now, len));
        }
        self.report_if_idle(now);
        if len > 0 {
            self.note_full_window();
            return None;
        }
        if self.phase == Phase::Recovery && self.rules.sack && self.rack.is_none() {
            return self.nothing_new(now, room);
        }
        if self.board.outstanding() == 0 && self.written > self.board.nxt() {
            self.persist(now);
        }
        None
    }

    #[inline]
    fn report_if_idle(&mut self, now: Time) {
        if self.times_segments {
            self.report_rarely(now, &SenderEvent::Idle);
        }
    }

    /// Whether the next new segment has a time of its own that has not come.
    #[inline]
    fn must_wait(&mut self, now: Time) -> bool {
        if !self.times_segments {
            return false;
        }
        let Pace::At(due) = self.control.pace() else { return false };
        if self.timer.0 != due {
            let at = match &mut self.timers {
                // What is due already waits for no timer.
                Some(timers) if due > now => timers.runs_out(due),
                _ => due,
            };
            self.timer = (due, at);
        }
        self.wake = if now < self.timer.1 { self.timer.1 } else { Time::NEVER };
        now < self.timer.1
    }

    /// In recovery, with nothing new to send.
    ///
    /// Source: RFC 6675, 4, `NextSeg` rules 3 and 4.
    fn nothing_new(&mut self, now: Time, room: u64) -> Option<Segment> {
        if let Some((place, len)) = self.board.next_forward() {
            return (u64::from(len) <= room).then(|| self.send_again(now, place, len, Resent::Forward));
        }
        if self.rescued || self.rules.recovery == Recovery::RateHalving {
            return None;
        }
        let (place, len) = self.board.last_missing().filter(|&(_, len)| u64::from(len) <= room)?;
        self.rescued = true;
        Some(self.send_again(now, place, len, Resent::Rescue))
    }

    /// The number of the FIN, once it is known.
    #[inline]
    pub(super) fn fin_number(&self) -> Option<u64> {
        self.closed.then_some(self.written)
    }

    /// Numbers that may be sent for the first time as one segment, as far as the application and the receiver say.
    #[inline]
    pub(super) fn sendable(&self) -> u64 {
        let nxt = self.board.nxt();
        let data = self.written.saturating_sub(nxt).min(self.segment);
        let fin = u64::from(self.closed && nxt + data == self.written);
        if nxt + data <= self.window_end { data + fin } else { self.sendable_part() }
    }

    #[inline]
    pub(super) fn send_new(&mut self, now: Time, len: u64) -> Segment {
        let seq = self.board.nxt();
        if self.sampler.is_some() {
            self.report_if_restarts(now);
        }
        if self.board.outstanding() == 0 {
            self.shrink_if_idle(now);
        }
        let before = self.sampled_pipe();
        self.board.on_sent(now, len as u32);
        self.remember_sent(now, self.board.last() - 1, before);
        if self.rto_at == Time::NEVER {
            // Source: RFC 6298, 5.1.
            self.rto_at = now + self.rtt.rto();
        }
        if self.rack.is_some() {
            self.settle(now, true);
        }
        let cwr = std::mem::take(&mut self.owes_cwr);
        let mut segment = self.segment_of(now, seq, len);
        segment.flags = segment.flags.with_if(cwr, Flags::CWR);
        segment.ecn = self.codepoint;
        self.after_sending(now, &segment);
        if self.times_segments {
            let sent = Departed { number: segment.end(), frame: segment.frame_size() };
            self.report_rarely(now, &SenderEvent::Sent(sent));
        }
        segment
    }

    pub(super) fn send_again(&mut self, now: Time, place: u64, len: u32, why: Resent) -> Segment {
        let before = self.sampled_pipe();
        let seq = self.board.on_resent(now, place);
        self.remember_sent(now, place, before);
        self.count_again(why);
        let segment = self.segment_of(now, seq, len.into());
        self.after_sending(now, &segment);
        segment
    }

    #[inline]
    pub(super) fn segment_of(&self, now: Time, seq: u64, len: u64) -> Segment {
        let has_fin = self.fin_number().is_some_and(|fin| seq + len > fin);
        let flags = Flags::ACK
            .with_if(self.rules.timestamps, Flags::TIMESTAMPS)
            .with_if(has_fin, Flags::FIN)
            .with_if(self.feedback == Feedback::Accurate, NOTHING_MARKED);
        Segment {
            seq,
            ack: 1,
            len: (len - u64::from(has_fin)) as u32,
            ts_val: ticks(now),
            ts_ecr: self.ts_recent,
            window: u16::MAX,
            flags,
            ..Segment::default()
        }
    }

    /// Nothing is outstanding: the window may be that of a path as it was long ago.
    ///
    /// Source: RFC 5681, 4.1.
    #[inline(never)]
    fn shrink_if_idle(&mut self, now: Time) {
        if self.rules.slow_start_after_idle && now.saturating_since(self.last_sent) > self.rtt.rto() {
            // A reduction after marks goes on until something more is acknowledged, which never came.
            self.end_reduction(now);
            self.report_rarely(now, &SenderEvent::LongIdle);
        }
    }

    #[inline]
    fn after_sending(&mut self, now: Time, segment: &Segment) {
        self.last_sent = now;
        self.counters.segments += 1;
        self.counters.bytes += u64::from(segment.len);
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent(Bytes::new(segment.end() - segment.seq));
        }
        if let Pace::Rate { rate, quantum } = self.control.pace() {
            self.pace_for(now, segment, segment.frame_size() / rate, quantum);
        } else if self.rules.paces {
            self.pace_window(now, segment);
        }
    }

    /// A segment, which `takes` so long at the pacing rate, leaves as part of a quantum: the next one begins when this one would
    /// be over.
    #[inline(never)]
    pub(super) fn pace_for(&mut self, now: Time, segment: &Segment, takes: Span, quantum: Bytes) {
        if self.quantum_left == 0 {
            (self.quantum_left, self.quantum_over) = (quantum.count(), self.release.max(now));
        }
        self.quantum_over += takes;
        self.quantum_left = self.quantum_left.saturating_sub(segment.end() - segment.seq);
        if self.quantum_left < self.segment {
            self.end_quantum();
        }
    }

    /// Nothing more leaves together with what has left.
    #[inline]
    pub(super) fn end_quantum(&mut self) {
        self.release = self.release.max(self.quantum_over);
        self.quantum_left = 0;
    }

    fn count_again(&mut self, why: Resent) {
        self.counters.retransmits += 1;
        let counter = match why {
            Resent::Fast => &mut self.counters.fast_retransmits,
            Resent::Forward => &mut self.counters.forward_retransmits,
            Resent::SlowStart => &mut self.counters.slow_start_retransmits,
            Resent::Timeout => &mut self.counters.timeout_retransmits,
            Resent::Rescue => &mut self.counters.rescue_retransmits,
            Resent::Probe => &mut self.counters.probe_retransmits,
        };
        *counter += 1;
    }
}

/// The counter of an end to which no data comes.
///
/// Source: RFC 9768, 3.2.1.
const NOTHING_MARKED: Flags = Flags::of_ace(FIRST_PACKETS as u8);

/// Why a segment is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resent {
    Fast,
    Forward,
    SlowStart,
    Timeout,
    Rescue,
    Probe,
}
