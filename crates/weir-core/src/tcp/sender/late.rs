//! Losses by time, and probes of the tail.
//!
//! Source: RFC 8985.

use crate::cc::{Cause, CongestionControl, SenderEvent};
use crate::tcp::rack::{Probe, Probed, duplicate};
use crate::tcp::scoreboard::Delivered;
use crate::tcp::segment::Segment;
use crate::tcp::sender::transmit::Resent;
use crate::tcp::sender::{Forced, Phase, Sender};
use crate::units::{Bytes, Span, Time};

impl Sender {
    /// Whether this acknowledgement shows losses; if it shows that a probe has repaired one, what was in flight before the
    /// probe.
    #[inline(never)]
    pub(super) fn detect_late(&mut self, now: Time, segment: &Segment, news: &Delivered) -> (bool, Option<Bytes>) {
        let Some(rack) = &mut self.rack else { return (false, None) };
        let twice = duplicate(segment);
        self.counters.duplicates_told += u64::from(twice.is_some());
        rack.on_delivered(now, segment, news, self.board.first(), self.rtt.min().unwrap_or(Span::ZERO));
        rack.adapt(self.board.una(), self.board.nxt(), twice.is_some());
        let flight = rack.probe.map(|probe| probe.flight);
        let probed = rack.judge_probe(segment, twice, news.bytes == 0);
        let repaired = flight.filter(|_| probed == Probed::Repaired && self.phase == Phase::Open);
        self.counters.loss_probe_recoveries += u64::from(repaired.is_some());
        (self.find_late(now), repaired)
    }

    /// A probe has repaired a loss. If the same acknowledgement began a reduction, that answers both.
    ///
    /// Source: RFC 8985, 7.4.2; RFC 5681, 4.3 (the losses of a window are one signal).
    pub(super) fn answer_probe(&mut self, now: Time, flight: Bytes) {
        if self.phase == Phase::Open {
            self.report_rarely(now, &SenderEvent::Congestion { cause: Cause::Loss, flight });
            if !self.control.needs().model {
                self.report_rarely(now, &SenderEvent::Recovered { window: self.threshold() });
            }
            self.report_rarely(now, &SenderEvent::Repaired);
        }
    }

    /// Whether anything has become lost by now.
    fn find_late(&mut self, now: Time) -> bool {
        let Some(rack) = &mut self.rack else { return false };
        let repairs = matches!(self.phase, Phase::Recovery | Phase::Loss) && self.board.una() < self.recover;
        let least = self.rtt.min().unwrap_or(Span::ZERO);
        let srtt = self.rtt.srtt().unwrap_or(Span::ZERO);
        let overdue = rack.patience(repairs || self.board.has_three_sacked(), least, srtt);
        let late = self.board.lose_late(now, rack.last(), overdue);
        rack.reorder_at = late.due;
        self.counters.lost_retransmits += late.again;
        late.any
    }

    /// A timer has run out that is not the one of retransmission.
    #[inline(never)]
    pub(super) fn on_early(&mut self, now: Time) {
        self.on_persist(now);
        if self.rack.as_ref().is_some_and(|rack| now >= rack.reorder_at) {
            let lost = self.find_late(now);
            self.report_losses(now);
            self.change_phase(now, lost, false, 0);
            if let Some(reduction) = self.reduction.as_mut().filter(|_| lost) {
                reduction.on_lost(self.board.pipe());
            }
        }
        if self.rack.as_ref().is_some_and(|rack| now >= rack.probe_at) {
            // Source: RFC 8985, 7.3.
            self.forced = Some(Forced::Probe);
            self.rto_at = now + self.rtt.rto();
        }
        self.settle(now, false);
        self.note_early();
    }

    /// When the first of the timers runs out that are not the one of retransmission.
    pub(super) fn note_early(&mut self) {
        let rack = self.rack.as_ref().map_or(Time::NEVER, |rack| rack.due());
        self.early_at = rack.min(self.persist_at());
    }

    /// When the tail is to be probed, and the timers as they are now. `restarts`: something new was sent, or acknowledged in
    /// order.
    ///
    /// Source: RFC 8985, 7.2.
    #[inline(never)]
    pub(super) fn settle(&mut self, now: Time, restarts: bool) {
        let Some(rack) = &mut self.rack else { return };
        let repairs = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let is_open = !repairs && self.board.sacked() == 0;
        if repairs {
            rack.end_probing();
        }
        if !is_open || self.board.outstanding() == 0 || rack.probe.is_some() || now >= rack.probe_at {
            rack.probe_at = Time::NEVER;
        }
        if restarts && is_open && self.board.outstanding() > 0 && rack.probe.is_none() {
            rack.schedule(now, self.rtt.srtt(), self.board.is_alone(), self.rto_at);
        }
        self.note_early();
    }

    /// The retransmission timer expired: what is lost.
    pub(super) fn lose_at_timeout(&mut self, now: Time) {
        let Some(rack) = &mut self.rack else { return self.board.lose_all() };
        rack.end_probing();
        rack.reorder_at = Time::NEVER;
        self.board.lose_old(now, rack.overdue());
        self.note_early();
    }

    /// A probe of the tail: something new, if there is any and the receiver has room, or the last segment again.
    ///
    /// Source: RFC 8985, 7.3.
    pub(super) fn probe(&mut self, now: Time) -> Option<Segment> {
        let flight = self.flight();
        let len = self.sendable();
        let (segment, is_again) = if len > 0 {
            (self.send_new(now, len), false)
        } else {
            let (place, len) = self.board.last_missing()?;
            (self.send_again(now, place, len, Resent::Probe), true)
        };
        self.counters.loss_probes += 1;
        let end = self.board.nxt();
        if let Some(rack) = &mut self.rack {
            rack.end_probing();
            rack.probe = Some(Probe { end, is_again, flight });
        }
        self.note_early();
        Some(segment)
    }
}
