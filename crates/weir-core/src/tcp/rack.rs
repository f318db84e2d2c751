//! Losses by time: what was sent before something that has arrived is lost when it is late; and probes of the tail, where
//! nothing behind would show.
//!
//! Source: RFC 8985.

use crate::tcp::scoreboard::Delivered;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::{is_older, ticks};
use crate::units::{Bytes, Span, Time};

/// What a sender knows of the order in which segments arrive, and of its probes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// Of the segments that have arrived, the one that was sent last: when, and its number. `RACK.xmit_ts`, `RACK.end_seq`.
    last: (Time, u64),
    /// `RACK.rtt`.
    rtt: Span,
    /// `RACK.reordering_seen`.
    has_reordering: bool,
    /// `RACK.reo_wnd_mult`, and for how many more recoveries it holds.
    quarters: u64,
    persists: u32,
    /// `RACK.dsack_round`.
    round: Option<u64>,
    /// `RACK.reo_wnd`, as it was worked out last.
    window: Span,
    /// When something that is not lost yet will be.
    pub(crate) reorder_at: Time,
    /// When the tail is probed.
    pub(crate) probe_at: Time,
    /// The probe of which nothing is known yet.
    pub(crate) probe: Option<Probe>,
    /// `TLP.max_ack_delay`.
    ack_delay: Span,
}

/// A probe of the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// The number behind it: `TLP.end_seq`.
    pub(crate) end: u64,
    /// Whether it was sent before: `TLP.is_retrans`.
    pub(crate) is_again: bool,
    /// What was in flight before it.
    pub(crate) flight: Bytes,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probed {
    Pending,
    /// Nothing was lost, as far as anybody can know.
    InVain,
    /// What was sent again had been lost: the network is congested.
    Repaired,
}

/// Recoveries without a duplicate after which the window is again a quarter of a round trip.
///
/// Source: RFC 8985, 6.2, step 4.
const PERSISTENCE: u32 = 16;
/// Time until a probe where no round trip was measured.
///
/// Source: RFC 8985, 7.2.
const UNMEASURED: Span = Span::from_ms(1_000);

impl Rack {
    /// A receiver holds acknowledgements back for `ack_delay`.
    pub(crate) fn new(ack_delay: Span) -> Rack {
        Rack { quarters: 1, reorder_at: Time::NEVER, probe_at: Time::NEVER, ack_delay, ..Rack::default() }
    }

    /// The handshake took `rtt`.
    pub(crate) fn on_established(&mut self, rtt: Option<Span>) {
        self.rtt = rtt.unwrap_or(Span::ZERO);
    }

    /// What has arrived, and was sent last. A segment that was sent again counts unless what arrived may be its first
    /// copy: the echoed time stamp is older than the second, or it arrives sooner than anything did. Segments below
    /// `first` are acknowledged in order.
    ///
    /// Source: RFC 8985, 6.2, steps 2 and 3. DEVIATION: the time stamp is asked only about what is acknowledged in order,
    /// as nothing else is echoed (RFC 7323, 4.3).
    pub(crate) fn on_delivered(&mut self, now: Time, segment: &Segment, news: &Delivered, first: u64, least: Span) {
        self.has_reordering |= news.overtaken;
        let is_second = |&(at, place): &(Time, u64)| {
            let has_stamp = place < first && segment.flags.has(Flags::TIMESTAMPS);
            !(has_stamp && is_older(segment.ts_ecr, ticks(at))) && now.saturating_since(at) >= least
        };
        let again = news.last_again.filter(is_second);
        if let Some(last) = news.last_once.max(again) {
            self.rtt = now.saturating_since(last.0);
            self.last = self.last.max(last);
        }
    }

    /// The window grows with each round in which the receiver reported a duplicate.
    ///
    /// Source: RFC 8985, 6.2, step 4.
    pub(crate) fn adapt(&mut self, una: u64, nxt: u64, has_duplicate: bool) {
        self.round = self.round.filter(|&round| una < round);
        if has_duplicate && self.round.is_none() {
            self.round = Some(nxt);
            self.quarters += 1;
            self.persists = PERSISTENCE;
        }
    }

    /// Losses were repaired.
    pub(crate) fn on_repaired(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }

    /// For how long a segment may be late. `is_certain`: losses are being repaired, or three segments have arrived out of
    /// order.
    ///
    /// Source: RFC 8985, 6.2, step 4.
    pub(crate) fn patience(&mut self, is_certain: bool, least: Span, srtt: Span) -> Span {
        let at_most = Span::from_ps(least.ps() / 4 * self.quarters).min(srtt);
        self.window = if is_certain && !self.has_reordering { Span::ZERO } else { at_most };
        self.overdue()
    }

    /// The time after which a segment that was overtaken is lost.
    pub(crate) fn overdue(&self) -> Span {
        self.rtt + self.window
    }

    /// Of what has arrived, the segment that was sent last.
    pub(crate) fn last(&self) -> (Time, u64) {
        self.last
    }

    /// The tail is probed after two round trips, later where the only segment may wait for its acknowledgement, and not after
    /// the timeout `rto_at`.
    ///
    /// Source: RFC 8985, 7.2.
    pub(crate) fn schedule(&mut self, now: Time, srtt: Option<Span>, is_alone: bool, rto_at: Time) {
        let wait = srtt.map_or(UNMEASURED, |srtt| srtt * 2 + if is_alone { self.ack_delay } else { Span::ZERO });
        self.probe_at = (now + wait).min(rto_at);
    }

    /// What `segment` reports of the probe. `is_plain`: it acknowledges nothing new, selectively neither.
    ///
    /// Source: RFC 8985, 7.4.
    pub(crate) fn judge_probe(&mut self, segment: &Segment, duplicate: Option<u64>, is_plain: bool) -> Probed {
        let Some(probe) = self.probe.filter(|probe| segment.ack >= probe.end) else { return Probed::Pending };
        let judged = match probe.is_again {
            false => Probed::InVain,
            true if duplicate == Some(probe.end) => Probed::InVain,
            true if segment.ack > probe.end => Probed::Repaired,
            true if is_plain => Probed::InVain,
            true => Probed::Pending,
        };
        if judged != Probed::Pending {
            self.probe = None;
        }
        judged
    }

    /// Losses are being repaired: no probes meanwhile.
    pub(crate) fn end_probing(&mut self) {
        (self.probe, self.probe_at) = (None, Time::NEVER);
    }

    /// The next time at which something is to be done.
    pub(crate) fn due(&self) -> Time {
        self.reorder_at.min(self.probe_at)
    }
}

/// The end of the segment which `segment` reports as arrived twice.
///
/// Source: RFC 2883, 4.
pub(crate) fn duplicate(segment: &Segment) -> Option<u64> {
    let mut blocks = segment.sacks.blocks(segment.ack);
    let (start, end) = blocks.next()?;
    let within = |(from, to): (u64, u64)| from <= start && end <= to;
    (end <= segment.ack || blocks.next().is_some_and(within)).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_ms(40);

    fn rack() -> Rack {
        let mut rack = Rack::new(Span::from_ms(40));
        rack.on_established(Some(RTT));
        rack
    }

    #[test]
    fn segments_may_be_late_by_a_quarter_of_a_round_trip_unless_losses_are_certain() {
        let mut rack = rack();
        assert_eq!(rack.patience(false, RTT, RTT), RTT + Span::from_ms(10));
        assert_eq!(rack.patience(true, RTT, RTT), RTT);
        rack.has_reordering = true;
        assert_eq!(rack.patience(true, RTT, RTT), RTT + Span::from_ms(10));
    }

    #[test]
    fn the_window_grows_once_a_round_with_duplicates_and_is_forgotten_after_sixteen_recoveries() {
        let mut rack = rack();
        for (una, expected) in [(1, 2), (50, 2), (101, 3)] {
            rack.adapt(una, 100 + una, true);
            assert_eq!(rack.quarters, expected, "{una}");
        }
        assert_eq!(rack.patience(false, RTT, RTT * 2), RTT + Span::from_ms(30));
        assert_eq!(
            rack.patience(false, RTT, Span::from_ms(20)),
            RTT + Span::from_ms(20),
            "a smoothed round trip at most"
        );
        (0..15).for_each(|_| rack.on_repaired());
        assert_eq!(rack.quarters, 3);
        rack.on_repaired();
        assert_eq!(rack.quarters, 1);
    }

    #[test]
    fn a_probe_comes_after_two_round_trips_and_before_the_timeout() {
        let mut rack = rack();
        let now = Time::ZERO + Span::from_ms(500);
        for (srtt, alone, rto_ms, expected_ms) in [
            (Some(RTT), false, 900, 580),
            (Some(RTT), true, 900, 620),
            (Some(RTT), true, 600, 600),
            (None, false, 9000, 1500),
        ] {
            rack.schedule(now, srtt, alone, Time::ZERO + Span::from_ms(rto_ms));
            assert_eq!(rack.probe_at, Time::ZERO + Span::from_ms(expected_ms));
        }
    }

    #[test]
    fn a_probe_that_repaired_a_loss_is_distinguished_from_one_in_vain() {
        let ack = |number: u64| Segment { ack: number, flags: Flags::ACK, ..Segment::default() };
        for (is_again, number, duplicate, is_plain, expected) in [
            (false, 100, None, false, Probed::InVain),
            (true, 99, None, false, Probed::Pending),
            (true, 100, None, false, Probed::Pending),
            (true, 100, Some(100), true, Probed::InVain),
            (true, 100, None, true, Probed::InVain),
            (true, 101, None, false, Probed::Repaired),
        ] {
            let mut rack = rack();
            rack.probe = Some(Probe { end: 100, is_again, flight: Bytes::ZERO });
            assert_eq!(rack.judge_probe(&ack(number), duplicate, is_plain), expected, "{is_again} {number}");
        }
    }

    #[test]
    fn a_first_block_below_the_acknowledgement_or_within_the_next_reports_a_duplicate() {
        let with = |blocks: &[(u64, u64)]| {
            let mut segment = Segment { ack: 1000, flags: Flags::ACK, ..Segment::default() };
            blocks.iter().for_each(|&(start, end)| segment.sacks.push(1000, start, end));
            duplicate(&segment)
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[(1100, 1200)]), None);
        assert_eq!(with(&[(800, 900)]), Some(900));
        assert_eq!(with(&[(800, 900), (1100, 1300)]), Some(900));
        assert_eq!(with(&[(1100, 1200), (1100, 1300)]), Some(1200));
        assert_eq!(with(&[(1400, 1500), (1100, 1300)]), None);
    }
}
