//! What BBR takes the path for.

use crate::cc::bbr::filters::{MaxBandwidth, WindowedMax};
use crate::cc::bbr::{BETA, UNBOUNDED, scaled};
use crate::tcp::rate::Sample;
use crate::units::{Bytes, Rate, Span, Time};

/// The path, as samples show it.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) round: Round,
    max_bw: MaxBandwidth,
    /// `BBR.bw`: what the rate follows.
    bw: Rate,
    min_rtt: Span,
    min_rtt_at: Time,
    /// The least round-trip time since the last probe of it.
    probe_rtt_min: Span,
    pub(super) probe_rtt_min_at: Time,
    aggregation: Aggregation,
    /// Of the current round trip.
    bw_latest: Rate,
    inflight_latest: u64,
    /// What losses forbid until the next probe for bandwidth.
    bw_shortterm: Rate,
    pub(super) inflight_shortterm: u64,
    /// What losses while probing forbid.
    pub(super) inflight_longterm: u64,
    /// Where the current round trip of the response to losses ends, and whether it does now.
    loss_round_ends: u64,
    pub(super) loss_round_starts: bool,
    loss_in_round: bool,
    delivered: Bytes,
}

/// Round trips, counted by segments that are sent after others have arrived.
///
/// Source: BBR draft, 5.5.1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) count: u64,
    /// Whether one starts with this sample.
    pub(super) starts: bool,
    ends: u64,
}

/// How much arrives beyond what the rate lets expect.
///
/// Source: BBR draft, 5.5.9.
#[derive(Clone, Debug, Default)]
struct Aggregation {
    since: Time,
    delivered: u64,
    extra: WindowedMax,
}

/// How long a least round-trip time is believed.
///
/// Source: BBR draft, 2.16.1.
const MIN_RTT_FILTER: Span = Span::from_ms(10_000);
/// How long it is left alone.
///
/// Source: BBR draft, 2.16.2, `BBR.ProbeRTTInterval`.
const PROBE_RTT_INTERVAL: Span = Span::from_ms(5_000);
/// Round trips over which aggregation is looked for.
///
/// Source: BBR draft, 2.12.
const EXTRA_ACKED_FILTER: u64 = 10;
const NO_RTT: Span = Span::from_ps(u64::MAX);
const NO_BOUND: Rate = Rate::from_bps(u64::MAX);

/// What losses forbid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    bw_shortterm: Rate,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Model {
    pub(super) fn new() -> Model {
        Model {
            min_rtt: NO_RTT,
            probe_rtt_min: NO_RTT,
            bw_shortterm: NO_BOUND,
            inflight_shortterm: UNBOUNDED,
            inflight_longterm: UNBOUNDED,
            ..Model::default()
        }
    }

    /// The connection is established, with a first round-trip time.
    pub(super) fn start(&mut self, now: Time, rtt: Option<Span>) {
        (self.min_rtt_at, self.probe_rtt_min_at, self.aggregation.since) = (now, now, now);
        if let Some(rtt) = rtt {
            (self.min_rtt, self.probe_rtt_min) = (rtt, rtt);
        }
    }

    pub(super) fn max_bw(&self) -> Rate {
        self.max_bw.largest()
    }

    pub(super) fn bw(&self) -> Rate {
        self.bw
    }

    pub(super) fn min_rtt(&self) -> Option<Span> {
        Some(self.min_rtt).filter(|&rtt| rtt < NO_RTT)
    }

    pub(super) fn extra_acked(&self) -> u64 {
        self.aggregation.extra.largest()
    }

    pub(super) fn inflight_latest(&self) -> u64 {
        self.inflight_latest
    }

    pub(super) fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// Source: BBR draft, 5.5.10.3, `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest(&mut self, sample: &Sample) {
        self.delivered = sample.total_delivered;
        self.bw_latest = self.bw_latest.max(sample.rate().unwrap_or_default());
        self.inflight_latest = self.inflight_latest.max(sample.delivered.count());
        self.loss_round_starts = sample.prior_delivered.count() >= self.loss_round_ends;
        if self.loss_round_starts {
            self.loss_round_ends = sample.total_delivered.count();
        }
    }

    /// Source: BBR draft, 5.5.10.3, `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest(&mut self, sample: &Sample) {
        if self.loss_round_starts {
            self.bw_latest = sample.rate().unwrap_or_default();
            self.inflight_latest = sample.delivered.count();
        }
    }

    /// Source: BBR draft, 5.5.5, and 5.5.1 for the round trip.
    pub(super) fn update_max_bw(&mut self, sample: &Sample) {
        self.round.starts = sample.prior_delivered.count() >= self.round.ends;
        if self.round.starts {
            self.start_round();
            self.round.count += 1;
        }
        if let Some(rate) = sample.rate()
            && (rate >= self.max_bw() || !sample.is_app_limited)
        {
            self.max_bw.update(rate);
        }
    }

    /// From now on a round trip is counted when a segment arrives that is sent later.
    pub(super) fn start_round(&mut self) {
        self.round.ends = self.delivered.count();
    }

    pub(super) fn advance_max_bw(&mut self) {
        self.max_bw.advance();
    }

    /// A round trip of the response to losses is over, while the rate `is_probing` or not.
    ///
    /// Source: BBR draft, 5.5.10.3, `AdaptLowerBoundsFromCongestion`.
    pub(super) fn end_loss_round(&mut self, is_probing: bool, cwnd: u64) {
        if self.loss_in_round && !is_probing {
            let bw = if self.bw_shortterm == NO_BOUND { self.max_bw() } else { self.bw_shortterm };
            let inflight = if self.inflight_shortterm == UNBOUNDED { cwnd } else { self.inflight_shortterm };
            self.bw_shortterm = self.bw_latest.max(scaled(bw, BETA));
            self.inflight_shortterm = self.inflight_latest.max((inflight as f64 * BETA) as u64);
        }
        self.loss_in_round = false;
    }

    /// Something was lost when `delivered` had arrived; whether it is the first in its round trip.
    pub(super) fn note_loss(&mut self, delivered: Bytes) -> bool {
        let is_first = !self.loss_in_round;
        self.delivered = delivered;
        if is_first {
            self.loss_round_ends = delivered.count();
        }
        self.loss_in_round = true;
        is_first
    }

    /// Source: BBR draft, 5.5.10.3, `ResetCongestionSignals`.
    pub(super) fn reset_congestion(&mut self) {
        (self.loss_in_round, self.bw_latest, self.inflight_latest) = (false, Rate::default(), 0);
    }

    /// Source: BBR draft, 5.5.10.3.
    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (NO_BOUND, UNBOUNDED);
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        }
    }

    /// Losses were none: nothing is forbidden that was allowed before them.
    ///
    /// Source: BBR draft, 5.5.11.2.
    pub(super) fn undo_losses(&mut self, before: &Bounds) {
        self.loss_in_round = false;
        self.bw_shortterm = self.bw_shortterm.max(before.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(before.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(before.inflight_longterm);
    }

    /// Source: BBR draft, 5.5.10.3.
    pub(super) fn bound_bw(&mut self) {
        self.bw = self.max_bw().min(self.bw_shortterm);
    }

    /// Source: BBR draft, 5.5.9.
    pub(super) fn update_ack_aggregation(&mut self, now: Time, sample: &Sample, cwnd: u64, is_pipe_full: bool) {
        let aggregation = &mut self.aggregation;
        let mut expected = (self.bw * now.saturating_since(aggregation.since)).count();
        if aggregation.delivered <= expected {
            (aggregation.delivered, aggregation.since, expected) = (0, now, 0);
        }
        aggregation.delivered += sample.newly_delivered.count();
        let extra = aggregation.delivered.saturating_sub(expected).min(cwnd);
        let length = if is_pipe_full { EXTRA_ACKED_FILTER } else { 1 };
        aggregation.extra.update(self.round.count, extra, length);
    }

    /// After a pause, acknowledgements are looked at again.
    pub(super) fn restart_aggregation(&mut self, now: Time) {
        self.aggregation.since = now;
    }

    /// Takes a round-trip time; whether the least one has not been seen for so long that it is to be probed.
    ///
    /// Source: BBR draft, 5.3.4.3, `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, now: Time, rtt: Option<Span>) -> bool {
        let has_expired = now > self.probe_rtt_min_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (rtt < self.probe_rtt_min || has_expired)
        {
            (self.probe_rtt_min, self.probe_rtt_min_at) = (rtt, now);
        }
        if self.probe_rtt_min < self.min_rtt || now > self.min_rtt_at + MIN_RTT_FILTER {
            (self.min_rtt, self.min_rtt_at) = (self.probe_rtt_min, self.probe_rtt_min_at);
        }
        has_expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_ms(10);

    /// A sample of `delivered` bytes in a round trip, the last of them sent when `prior` had arrived.
    fn sample(prior: u64, total: u64, delivered: u64) -> Sample {
        Sample {
            delivered: Bytes::new(delivered),
            interval: Some(RTT),
            is_app_limited: false,
            prior_delivered: Bytes::new(prior),
            sent_into: Bytes::new(delivered),
            lost: Bytes::ZERO,
            newly_delivered: Bytes::new(1_000),
            newly_lost: Bytes::ZERO,
            total_delivered: Bytes::new(total),
            in_flight: Bytes::new(10_000),
            is_window_limited: true,
            rtt: Some(RTT),
        }
    }

    /// What an acknowledgement does to the response to losses, outside of probes; whether a round of it ended.
    fn acknowledge(model: &mut Model, sample: &Sample) -> bool {
        model.update_latest(sample);
        model.update_max_bw(sample);
        if model.loss_round_starts {
            model.end_loss_round(false, 20_000);
        }
        model.advance_latest(sample);
        model.bound_bw();
        model.loss_round_starts
    }

    #[test]
    fn a_round_of_losses_ends_when_something_arrives_that_was_sent_after_the_first_and_has_those_that_it_reports() {
        let mut model = Model::new();
        model.start(Time::ZERO, Some(RTT));
        acknowledge(&mut model, &sample(0, 10_000, 10_000));
        // From now on the path delivers half of that, and the first loss begins a round.
        assert!(acknowledge(&mut model, &sample(10_000, 20_000, 5_000)));
        assert_eq!((model.bw(), model.bw_shortterm), (Rate::from_bps(8_000_000), NO_BOUND));
        assert!(model.note_loss(Bytes::new(20_000)));
        assert!(!acknowledge(&mut model, &sample(15_000, 21_000, 5_000)));
        assert!(!model.note_loss(Bytes::new(22_000)), "it is not the first");
        assert!(!acknowledge(&mut model, &sample(19_999, 23_000, 5_000)));
        assert_eq!(model.bw(), Rate::from_bps(8_000_000), "the round is not over");
        // A loss of which the acknowledgement reports that ends the round belongs to it.
        assert!(!model.note_loss(Bytes::new(26_000)));
        assert!(acknowledge(&mut model, &sample(20_000, 26_000, 5_000)));
        assert_eq!(model.bw(), Rate::from_bps(5_600_000), "0.7 of what it was");
        assert_eq!(model.inflight_shortterm, 14_000);
        // The next round has none, and changes nothing.
        assert!(acknowledge(&mut model, &sample(26_000, 36_000, 5_000)));
        assert_eq!(model.bw(), Rate::from_bps(5_600_000));
        // Another loss, another round; no less than what was delivered in it.
        assert!(model.note_loss(Bytes::new(40_000)));
        assert!(acknowledge(&mut model, &sample(40_000, 46_000, 6_000)));
        assert_eq!(model.bw(), Rate::from_bps(4_800_000));
    }
}
