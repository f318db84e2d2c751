//! What a sender reports to a controller that keeps a model of the path.

use crate::cc::{CongestionControl, SenderEvent};
use crate::tcp::rate::Left;
use crate::tcp::scoreboard::Delivered;
use crate::tcp::sender::Sender;
use crate::units::{Bytes, Span, Time};

impl Sender {
    /// When the window and the application leave nothing to send but the window would allow it, what is sent next comes
    /// after a gap.
    ///
    /// Source: BBR draft, 4.1.2.4.
    #[inline]
    pub(super) fn note_if_app_limited(&mut self) {
        if self.sampler.is_some() {
            self.look_for_gap();
        }
    }

    #[inline(never)]
    fn look_for_gap(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            let pipe = self.board.pipe();
            let window = self.control.window();
            let has_unsent = self.written.saturating_sub(self.board.nxt()) > 0;
            if !has_unsent && pipe < window && self.board.next_lost().is_none() {
                sampler.limit(pipe);
            }
        }
    }

    #[inline]
    pub(super) fn note_full_window(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.on_full_window();
        }
    }

    /// Something new is about to be sent.
    pub(super) fn report_if_restarts(&mut self, now: Time) {
        let after_gap = self.sampler.as_ref().is_some_and(|sampler| sampler.is_app_limited());
        if after_gap && self.board.pipe() == Bytes::ZERO {
            self.report_rarely(now, &SenderEvent::Restart);
        }
    }

    /// What is in flight, if anybody takes samples.
    #[inline]
    pub(super) fn sampled_pipe(&self) -> Bytes {
        if self.sampler.is_some() { self.board.pipe() } else { Bytes::ZERO }
    }

    /// Segment `place` was sent, while `before` was in flight.
    #[inline]
    pub(super) fn remember_sent(&mut self, now: Time, place: u64, before: Bytes) {
        if let Some(sampler) = &mut self.sampler {
            sampler.on_sent(now, place, before, self.board.pipe());
        }
    }

    #[inline]
    pub(super) fn report_losses(&mut self, now: Time) {
        if self.sampler.is_some() {
            self.report_sampled_losses(now);
        }
    }

    #[inline(never)]
    fn report_sampled_losses(&mut self, now: Time) {
        if let Some(sampler) = &mut self.sampler {
            for (place, len) in self.board.take_losses() {
                if let Some(loss) = sampler.on_lost(place, len) {
                    self.control.on_event(now, &SenderEvent::Lost(loss));
                }
            }
        }
    }

    /// An acknowledgement reported new data.
    pub(super) fn report_sample(&mut self, now: Time, news: &Delivered, rtt: Option<Span>) {
        let left = Left {
            first: self.board.first(),
            in_flight: self.board.pipe(),
            least_rtt: self.rtt.min().unwrap_or(Span::ZERO),
            rtt,
        };
        if let Some(sampler) = &mut self.sampler
            && let Some(sample) = sampler.sample(now, news, &left)
        {
            self.control.on_event(now, &SenderEvent::Sample(sample));
            if self.control.allowance().holds_back {
                sampler.limit(left.in_flight);
            }
        }
    }
}
