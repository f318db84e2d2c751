//! A receiver that has no room, and pacing.

use crate::tcp::rtt::MAX_RTO;
use crate::tcp::segment::Segment;
use crate::tcp::sender::{Forced, Sender};
use crate::units::{Bytes, Span, Time};

/// While the window of the receiver is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persist {
    /// When it is probed next.
    at: Time,
    /// What is to be sent next: another number, and the window was open since.
    nxt: u64,
    doublings: u32,
    /// When it was probed last.
    probed: Option<Time>,
}

impl Sender {
    /// Everything is acknowledged, and the receiver has no room for what is left: its window is probed, as what opens it may
    /// be lost.
    ///
    /// Source: RFC 9293, 3.8.6.1.
    #[cold]
    pub(super) fn persist(&mut self, now: Time) {
        let nxt = self.board.nxt();
        if self.persist.as_ref().is_none_or(|persist| persist.nxt != nxt) {
            let at = now + self.rtt.rto();
            self.persist = Some(Box::new(Persist { at, nxt, doublings: 0, probed: None }));
        }
        self.note_early();
    }

    /// When the window of the receiver is probed.
    pub(super) fn persist_at(&self) -> Time {
        self.persist.as_ref().map_or(Time::NEVER, |persist| persist.at)
    }

    pub(super) fn on_persist(&mut self, now: Time) {
        let (nxt, rto) = (self.board.nxt(), self.rtt.rto());
        let Some(persist) = self.persist.as_mut().filter(|persist| now >= persist.at) else { return };
        if persist.nxt != nxt || self.board.outstanding() > 0 {
            self.persist = None;
            return;
        }
        persist.doublings += 1;
        persist.at = now + Span::from_ps(rto.ps().saturating_mul(1 << persist.doublings.min(20))).min(MAX_RTO);
        self.forced = Some(Forced::Window);
    }

    /// A byte beyond the window, or what has room in a window that is too small otherwise.
    ///
    /// Source: RFC 9293, 3.8.6.1; RFC 9293, 3.8.6.2.1, rule 4.
    pub(super) fn probe_window(&mut self, now: Time) -> Option<Segment> {
        let nxt = self.board.nxt();
        let data = self.written.saturating_sub(nxt).min(self.segment);
        let room = self.window_end.saturating_sub(nxt).min(data);
        if room > 0 {
            return Some(self.send_new(now, room));
        }
        if data == 0 {
            return None;
        }
        if let Some(persist) = &mut self.persist {
            persist.probed = Some(now);
        }
        let segment = self.segment_of(now, nxt, 1);
        self.last_sent = now;
        self.counters.window_probes += 1;
        self.counters.segments += 1;
        self.counters.bytes += 1;
        Some(segment)
    }

    /// Whether `ack` acknowledges the byte of a probe.
    #[cold]
    pub(super) fn is_of_probe(&self, ack: u64) -> bool {
        let Some(persist) = self.persist.as_ref() else { return false };
        persist.probed.is_some() && persist.nxt == self.board.nxt() && persist.nxt + 1 == ack
    }

    /// The byte of a probe has not counted as sent until it is acknowledged.
    #[inline]
    pub(super) fn take_probe(&mut self, ack: u64) {
        if ack > self.board.nxt() {
            self.count_probe();
        }
    }

    #[cold]
    fn count_probe(&mut self) {
        let Some(probed) = self.persist.as_ref().and_then(|persist| persist.probed) else { return };
        let before = self.sampled_pipe();
        self.board.on_sent(probed, 1);
        self.remember_sent(probed, self.board.last() - 1, before);
    }

    /// What has room in the window though a full segment has not: half of the widest, if nothing is under way.
    ///
    /// Source: RFC 9293, 3.8.6.2.1, rule 3.
    #[cold]
    pub(super) fn sendable_part(&self) -> u64 {
        let room = self.window_end.saturating_sub(self.board.nxt());
        if self.board.outstanding() == 0 && 2 * room >= self.widest { room } else { 0 }
    }

    /// Segments of a window leave over a part of the round trip.
    ///
    /// Source: Linux, net/ipv4/tcp_input.c, `tcp_update_pacing_rate`; Linux, net/ipv4/tcp_output.c, `tcp_update_skb_after_send`,
    /// `tcp_tso_autosize`.
    #[inline(never)]
    pub(super) fn pace_window(&mut self, now: Time, segment: &Segment) {
        let Some(srtt) = self.rtt.srtt().filter(|_| self.counters.segments > UNPACED) else { return };
        let window = self.window().count();
        let percent = if window < self.threshold().count() / 2 { IN_SLOW_START } else { LATER };
        let most = u128::from(window.max(self.board.outstanding()).max(1)) * percent;
        let takes = |bytes: u64| Span::from_ps((u128::from(bytes) * u128::from(srtt.ps()) * 100 / most) as u64);
        let per_ms = most * u128::from(QUANTUM.ps()) / (u128::from(srtt.ps().max(1)) * 100);
        let quantum = Bytes::new((per_ms as u64).min(MOST_TOGETHER).max(2 * self.segment));
        self.pace_for(now, segment, takes(segment.end() - segment.seq), quantum);
    }
}

/// Share of the window that leaves in a round trip, in percent: while it is below half of the threshold, and later.
///
/// Source: Linux, Documentation/networking/ip-sysctl.rst, `tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`.
const IN_SLOW_START: u128 = 200;
const LATER: u128 = 120;
/// Segments that leave unpaced at first, with the SYN.
const UNPACED: u64 = 11;
/// What leaves in such a time leaves together, up to so many bytes.
const QUANTUM: Span = Span::from_us(1_000);
const MOST_TOGETHER: u64 = 65_536;
