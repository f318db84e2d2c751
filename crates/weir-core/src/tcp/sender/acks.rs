//! What acknowledgements report to a sender.

use crate::cc::{Acked, Cause, CongestionControl, SenderEvent};
use crate::tcp::config::{LostRetransmissions, Recovery};
use crate::tcp::doubt::{Arrivals, Doubt};
use crate::tcp::rate::Sampler;
use crate::tcp::receiver::Receiver;
use crate::tcp::reduction::{Reduction, Start};
use crate::tcp::scoreboard::Delivered;
use crate::tcp::segment::Segment;
use crate::tcp::sender::{Forced, Phase, Sender, State};
use crate::units::{Bytes, Span, Time};

impl Sender {
    pub(super) fn establish(&mut self, now: Time, answer: &Segment) {
        let mut news = Delivered::default();
        self.board.acknowledge(answer.ack, &mut news);
        if self.sample(now, news.last_once).is_none() {
            self.rtt.on_lost_syn();
            // Once may be in vain, as the timeout is one second.
            //
            // Source: RFC 6928, 2.
            if self.counters.retransmits > 1 {
                self.report_rarely(now, &SenderEvent::LostSyn);
            }
        }
        self.begin(now, answer);
    }

    /// What both ends agreed on with the handshake holds from now on.
    fn begin(&mut self, now: Time, answer: &Segment) {
        self.state = State::Established;
        self.established = Some(now);
        self.forced = None;
        self.rto_at = Time::NEVER;
        self.window_scale = answer.window_scale.unwrap_or(0);
        self.window_end = answer.ack + u64::from(answer.window);
        self.widest = answer.window.into();
        if self.stamps.is_none() {
            self.ts_recent = answer.ts_val;
        }
        self.agree_on_marks(answer);
        if self.control.needs().model {
            self.sampler = Some(Box::new(Sampler::new(now, self.board.first())));
            self.board.keep_losses();
        }
        if let Some(rack) = &mut self.rack {
            rack.on_established(self.rtt.srtt());
        }
        self.report_rarely(now, &SenderEvent::Established { rtt: self.rtt.srtt() });
    }

    /// Begins a connection that is there already: both ends have agreed, and know that a round trip takes `rtt`.
    pub fn resume(&mut self, now: Time, receiver: &mut Receiver, rtt: Span) {
        self.open(now);
        let Some(syn) = self.poll_transmit(now) else { return };
        receiver.handle_segment(now, &syn);
        let Some(answer) = receiver.poll_transmit(now) else { return };
        let mut news = Delivered::default();
        self.board.acknowledge(answer.ack, &mut news);
        self.rtt.on_sample(rtt);
        self.begin(now, &answer);
        // The window of a SYN is not scaled; later ones were.
        self.widest = self.widest.max(receiver.room());
        self.window_end = answer.ack + self.widest;
    }

    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, segment: &Segment) {
        self.note_if_app_limited();
        let prior_flight = self.bytes_in_flight();
        let mut news = self.board.news();
        let is_duplicate = self.is_duplicate(segment);
        if segment.ack > self.board.una() {
            self.board.acknowledge(segment.ack, &mut news);
        }
        let (in_order, once_in_order) = (news.resent.take(), news.last_once);
        for (start, end) in segment.sacks.blocks(segment.ack) {
            self.board.sack(start, end, &mut news);
        }
        if let Some(doubt) = &mut self.doubt {
            let least = self.rtt.min().unwrap_or(Span::ZERO);
            doubt.on_arrivals(now, segment, least, &Arrivals { in_order, out_of_order: news.resent });
        }
        if is_duplicate {
            self.counters.duplicate_acks += 1;
        }
        if !self.rules.sack {
            self.count_without_sacks(is_duplicate, news.acked);
        }
        let window = u64::from(segment.window) << self.window_scale;
        self.window_end = self.window_end.max(segment.ack + window);
        // What lies behind a repair has waited at the receiver for it, unless it is reported only now out of order.
        let measures = in_order.is_none() || news.last_once > once_in_order;
        let rtt = self.sample(now, news.last_once.filter(|_| measures));
        if news.acked > 0 {
            self.on_progress(now, news.acked);
            self.read_stamp(now, segment);
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.on_delivered(now, &news);
        }
        let marks = self.read_marks(segment, &news);
        let again_before = self.counters.lost_retransmits;
        let by_time = self.rack.is_some();
        let (lost, repaired) = if by_time {
            self.detect_late(now, segment, &news)
        } else {
            (self.detect(now, &news, is_duplicate, news.acked > 0), None)
        };
        self.report_losses(now);
        // What ends a reduction belongs to it: RFC 6582, 3.2, step 3.
        let reduces = repaired.is_some() || self.reduction.is_some();
        self.change_phase(now, lost, marks.is_echo, news.bytes);
        if let Some(flight) = repaired {
            self.answer_probe(now, flight);
        }
        let may_grow = !reduces && matches!(self.phase, Phase::Open | Phase::Loss);
        self.report_marks(now, marks);
        if let Some(reduction) = &mut self.reduction {
            let goes_well = news.acked > 0 && !lost && self.counters.lost_retransmits == again_before;
            if news.bytes == 0 && lost && self.rules.sack {
                reduction.on_lost(self.board.pipe());
            } else {
                reduction.on_ack(Bytes::new(news.bytes), self.board.pipe(), goes_well);
            }
        }
        if by_time {
            self.settle(now, news.acked > 0);
        }
        if news.bytes > 0 {
            let event = Acked {
                bytes: Bytes::new(self.credit(&news, may_grow)),
                number: self.board.una(),
                next: self.board.nxt(),
                prior_flight,
                srtt: self.rtt.srtt(),
                rtt,
                may_grow,
            };
            self.report(now, &SenderEvent::Ack(event));
            if self.sampler.is_some() {
                self.report_sample(now, &news, rtt);
            }
        }
    }

    /// The bytes for which the window may grow now. What has arrived out of order counts when it is acknowledged in order,
    /// unless it arrived while a reduction was under way, or before a timeout.
    ///
    /// Source: RFC 5681, 3.1; RFC 3465, 2.1.
    #[inline]
    fn credit(&mut self, news: &Delivered, may_grow: bool) -> u64 {
        let arrived = if may_grow { self.uncredited + news.bytes } else { 0 };
        let credited = if news.acked > 0 { arrived } else { 0 };
        self.uncredited = arrived - credited;
        credited
    }

    /// A segment that everything before it has reached the receiver with has a time of arrival that means something.
    #[inline]
    fn read_stamp(&mut self, now: Time, segment: &Segment) {
        if let Some(stamps) = &mut self.stamps
            && self.phase == Phase::Open
            && segment.sacks.is_empty()
        {
            let received = stamps.read(now, segment.ts_val);
            if self.times_segments {
                self.report_rarely(now, &SenderEvent::Arrived { number: segment.ack, received });
            }
        }
    }

    /// Source: RFC 5681, 2, duplicate acknowledgement.
    #[inline]
    fn is_duplicate(&self, segment: &Segment) -> bool {
        segment.ack == self.board.una()
            && self.board.outstanding() > 0
            && segment.len == 0
            && segment.ack + (u64::from(segment.window) << self.window_scale) == self.window_end
    }

    /// A duplicate acknowledgement stands for a segment that has arrived; one that acknowledges `acked` bytes in
    /// recovery, for the end of all but the first of them.
    ///
    /// Source: RFC 6582, 3.2.
    fn count_without_sacks(&mut self, is_duplicate: bool, acked: u64) {
        if acked > 0 {
            self.duplicates = 0;
            let arrived = if self.phase == Phase::Open { u64::MAX } else { acked.saturating_sub(self.segment) };
            self.board.assume_less(arrived);
        } else if is_duplicate {
            self.duplicates += 1;
            if self.phase != Phase::Loss {
                self.board.assume_more(self.segment);
            }
        }
    }

    /// Which segments this acknowledgement shows to be lost; whether any is newly lost.
    #[inline]
    fn detect(&mut self, now: Time, news: &Delivered, is_duplicate: bool, progress: bool) -> bool {
        if !self.rules.sack {
            let third = is_duplicate && self.duplicates == 3 && self.phase == Phase::Open;
            let partial = progress && self.phase == Phase::Recovery && self.board.una() < self.recover;
            // Duplicates of what was sent before the last recovery or timeout ended say nothing (RFC 6582, 3.2).
            return ((third && self.board.una() > self.recover) || partial) && self.board.lose_first();
        }
        if self.rules.lost_retransmissions == LostRetransmissions::Detect
            && let Some((last_sent, _)) = news.last()
        {
            let least = self.rtt.min().unwrap_or(Span::ZERO);
            // What was sent again and arrives sooner than anything ever did was sent before.
            if news.last_once.is_some_and(|once| once.0 == last_sent) || now.saturating_since(last_sent) >= least {
                let patience = Span::from_ps(least.ps() / 4);
                self.counters.lost_retransmits += self.board.detect_lost_again(last_sent, patience);
            }
        }
        self.board.detect(self.rules.loss_marking)
    }

    /// `delivered` bytes are newly known to have arrived.
    #[inline(always)]
    pub(super) fn change_phase(&mut self, now: Time, lost: bool, echo: bool, delivered: u64) {
        if self.phase == Phase::Open && !lost && !echo && !self.board.has_lost() {
            return;
        }
        // Something beyond must be acknowledged before the receiver can know of a reduction after an echo.
        let over = self.board.una() >= self.recover + u64::from(self.phase == Phase::Reduced);
        if self.phase != Phase::Open && over {
            self.end_reduction(now);
            if let Some(rack) = self.rack.as_mut().filter(|_| self.phase != Phase::Reduced) {
                rack.on_repaired();
            }
            self.phase = Phase::Open;
            if self.doubt.take().is_some_and(|doubt| doubt.is_confirmed()) {
                self.counters.spurious_recoveries += 1;
                self.report_rarely(now, &SenderEvent::Spurious);
            }
            self.report_rarely(now, &SenderEvent::Repaired);
        }
        match self.phase {
            Phase::Open | Phase::Reduced if lost || (self.phase == Phase::Open && self.board.has_lost()) => {
                self.counters.recoveries += 1;
                self.reduce(now, Phase::Recovery, Cause::Loss, delivered);
                self.doubt = Some(Doubt::default());
                self.forced = Some(Forced::First);
                self.rescued = false;
            }
            Phase::Open if echo && !self.control.needs().marks => {
                self.note_reduction();
                self.reduce(now, Phase::Reduced, Cause::EcnEcho, delivered);
            }
            _ => {}
        }
    }

    /// The window is again that of the controller, as large as the reduction has left it.
    pub(super) fn end_reduction(&mut self, now: Time) {
        if let Some(reduction) = self.reduction.take() {
            self.report_rarely(now, &SenderEvent::Recovered { window: reduction.last_window() });
        }
    }

    /// `delivered` bytes are newly known to have arrived.
    fn reduce(&mut self, now: Time, phase: Phase, cause: Cause, delivered: u64) {
        let window = self.window();
        // A reduction that is under way is not made twice.
        if self.phase == Phase::Open {
            let flight = self.flight();
            self.report_rarely(now, &SenderEvent::Congestion { cause, flight });
        }
        if !self.control.needs().model {
            let recovery = match (phase, self.rules.recovery) {
                (Phase::Reduced, Recovery::Halving | Recovery::RateHalving) => Recovery::Prr,
                (_, recovery) => recovery,
            };
            // Source: RFC 6937, 3; RFC 9937, 6.
            let flight = Bytes::new(match recovery {
                Recovery::SafePrr => self.board.outstanding() - self.board.sacked() + delivered,
                _ => self.board.outstanding(),
            });
            let start = Start { window, flight, pipe: self.board.pipe(), threshold: self.threshold() };
            self.reduction = Some(Box::new(Reduction::new(recovery, Bytes::new(self.segment), &start)));
        }
        self.phase = phase;
        self.recover = self.board.nxt();
    }

    /// What is outstanding, without what limited transmit added: no more than the full segments that the window holds.
    ///
    /// Source: RFC 5681, 3.2; RFC 3042, 2.
    pub(super) fn flight(&self) -> Bytes {
        let window = self.window().count();
        let full = (window - window % self.segment).max(self.segment);
        Bytes::new(self.board.outstanding().min(full))
    }

    #[inline]
    fn on_progress(&mut self, now: Time, acked: u64) {
        if self.rules.timestamps && self.stamps.is_none() {
            self.rtt.on_stamp();
        }
        // Source: RFC 6298, 5.2 and 5.3.
        self.rto_at = if self.board.outstanding() == 0 { Time::NEVER } else { now + self.rtt.rto() };
        let fin = self.fin_number().filter(|&fin| self.board.una() > fin);
        self.counters.acked_bytes += acked - u64::from(fin.is_some());
        if fin.is_some() && self.finished.is_none() {
            self.finished = Some(now);
        }
    }

    /// `once`: of the segments that arrived now and were sent once, the last one, if it shows a round-trip time.
    ///
    /// Source: RFC 6298, 3 (Karn's algorithm).
    #[inline]
    fn sample(&mut self, now: Time, once: Option<(Time, u64)>) -> Option<Span> {
        let rtt = now.saturating_since(once?.0);
        self.rtt.on_sample(rtt);
        self.counters.rtt_samples += 1;
        Some(rtt)
    }
}
