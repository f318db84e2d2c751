//! Slow start, and HyStart++, which ends it before queues overflow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::Acked;
use crate::units::{Bytes, Span};

/// What ends the first slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SlowStart {
    /// A loss or a mark.
    ///
    /// Source: RFC 5681, 3.1; RFC 3465, 2.
    #[serde(rename = "standard")]
    Standard,
    /// Round-trip times that grow, too.
    ///
    /// Source: RFC 9406, 4.
    #[serde(rename = "hystart++")]
    HyStart,
}

/// Slow start of a controller: by how much each acknowledgement lets its window grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    segment: u64,
    /// Segments by which it grows at most for one acknowledgement: L.
    limit: u64,
    /// Only for the first slow start: later ones end at the threshold that was found (RFC 9406, 4.3).
    hystart: Option<HyStart>,
}

/// What an acknowledgement means for slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What is added to a window that bounds what is in flight.
    pub(super) bytes: u64,
    /// Whether slow start is over: the threshold becomes the window.
    pub(super) ends: bool,
}

/// L: a receiver that acknowledges every second segment does not slow it down.
///
/// Source: RFC 3465, 2.3.
const LIMIT: u64 = 2;
/// L after a timeout: an acknowledgement of what is sent again may cover much that had left the network long before.
///
/// Source: RFC 3465, 2.3.
pub(super) const LIMIT_AFTER_TIMEOUT: u64 = 1;
/// The same with HyStart++, for a sender that does not pace.
///
/// Source: RFC 9406, 4.3.
const HYSTART_LIMIT: u64 = 8;
/// Samples that a round must have before it is judged.
///
/// Source: RFC 9406, 4.3, `N_RTT_SAMPLE`.
const SAMPLES: u32 = 8;
/// The round-trip time must grow by an eighth of itself, but by so much at least and at most.
///
/// Source: RFC 9406, 4.3, `MIN_RTT_DIVISOR`, `MIN_RTT_THRESH`, `MAX_RTT_THRESH`.
const DIVISOR: u64 = 8;
const LEAST_GROWTH: Span = Span::from_ms(4);
const MOST_GROWTH: Span = Span::from_ms(16);
/// Conservative slow start grows by this part of what slow start would grow by.
///
/// Source: RFC 9406, 4.3, `CSS_GROWTH_DIVISOR`.
const CONSERVATIVE: u64 = 4;
/// Rounds of conservative slow start, the one in which it begins included.
///
/// Source: RFC 9406, 4.3, `CSS_ROUNDS`.
const ROUNDS: u32 = 5;

impl Growth {
    /// With full segments of `segment`.
    pub(super) fn new(segment: Bytes, slow_start: SlowStart) -> Growth {
        let hystart = (slow_start == SlowStart::HyStart).then(HyStart::default);
        Growth { segment: segment.count(), limit: LIMIT, hystart }
    }

    /// An acknowledgement while the window is below the threshold.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Acked) -> Step {
        let bytes = ack.bytes.count();
        let Some(hystart) = &mut self.hystart else {
            return Step { bytes: bytes.min(self.limit * self.segment), ends: false };
        };
        let part = if hystart.conservative.is_some() { CONSERVATIVE } else { 1 };
        let ends = hystart.on_ack(ack);
        if ends {
            self.hystart = None;
        }
        Step { bytes: bytes.min(HYSTART_LIMIT * self.segment) / part, ends }
    }

    /// The network is congested: the first slow start is over.
    pub(super) fn on_congestion(&mut self) {
        (self.limit, self.hystart) = (LIMIT, None);
    }

    /// Slow start begins with one segment, to send again what a timeout took for lost.
    pub(super) fn on_collapse(&mut self) {
        self.limit = LIMIT_AFTER_TIMEOUT;
    }

    /// Slow start begins again after a pause, with nothing to send again.
    pub(super) fn on_long_idle(&mut self) {
        self.limit = LIMIT;
    }
}

/// What the round-trip times of a round say, compared with those of the round before.
///
/// Source: RFC 9406, 4.2.
#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    /// The round is over when everything below is acknowledged: `windowEnd`; none: it has not begun.
    window_end: Option<u64>,
    /// `lastRoundMinRTT`.
    last_least: Option<Span>,
    /// `currentRoundMinRTT`, and how many samples it is the least of.
    least: Option<Span>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start: whether the round-trip time has grown indeed is still looked at.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The round-trip time that made slow start end: `cssBaselineMinRtt`.
    baseline: Span,
    /// Rounds that are over.
    rounds: u32,
}

impl HyStart {
    /// Whether congestion avoidance begins.
    fn on_ack(&mut self, ack: &Acked) -> bool {
        let window_end = *self.window_end.get_or_insert(ack.next);
        if let Some(rtt) = ack.rtt {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
            self.judge();
        }
        ack.number >= window_end && self.end_round(ack.next)
    }

    fn judge(&mut self) {
        let Some(least) = self.least.filter(|_| self.samples >= SAMPLES) else { return };
        match (self.conservative, self.last_least) {
            (None, Some(last)) => {
                let growth = Span::from_ps(last.ps() / DIVISOR).min(MOST_GROWTH).max(LEAST_GROWTH);
                if least >= last + growth {
                    self.conservative = Some(Conservative { baseline: least, rounds: 0 });
                }
            }
            // The delay was that of a moment: slow start goes on.
            (Some(conservative), _) if least < conservative.baseline => self.conservative = None,
            _ => {}
        }
    }

    /// The next round ends with `next`. Whether conservative slow start has had all of its rounds.
    fn end_round(&mut self, next: u64) -> bool {
        self.window_end = Some(next);
        (self.last_least, self.least, self.samples) = (self.least, None, 0);
        self.conservative.as_mut().is_some_and(|conservative| {
            conservative.rounds += 1;
            conservative.rounds >= ROUNDS
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    /// A sender in slow start that always fills its window.
    struct Sender {
        growth: Growth,
        window: u64,
        acknowledged: u64,
        next: u64,
        /// Where the round ends.
        end: u64,
    }

    /// What a round of acknowledgements did.
    #[derive(Debug, PartialEq)]
    struct Round {
        acks: u64,
        grown: u64,
        ends: bool,
    }

    impl Sender {
        fn new(slow_start: SlowStart, segments: u64) -> Sender {
            let (window, next) = (segments * SEGMENT, 1 + segments * SEGMENT);
            Sender { growth: Growth::new(Bytes::new(SEGMENT), slow_start), window, acknowledged: 1, next, end: next }
        }

        fn ack(&mut self, segments: u64, rtt: Span) -> Step {
            self.acknowledged += segments * SEGMENT;
            let ack = Acked {
                bytes: Bytes::new(segments * SEGMENT),
                number: self.acknowledged,
                next: self.next,
                prior_flight: Bytes::new(self.window),
                srtt: None,
                rtt: Some(rtt),
                may_grow: true,
            };
            let step = self.growth.on_ack(&ack);
            self.window += step.bytes;
            if self.acknowledged >= self.end {
                self.end = self.next;
            }
            self.next = self.acknowledged + self.window;
            step
        }

        /// Segments are acknowledged one by one, the first with the round-trip times `first` in ms and all others with `rest`,
        /// until the round is over.
        fn round_of(&mut self, first: &[u64], rest: u64) -> Round {
            let (before, end) = (self.window, self.end);
            let mut round = Round { acks: 0, grown: 0, ends: false };
            while self.acknowledged < end {
                let rtt = first.get(round.acks as usize).copied().unwrap_or(rest);
                round.ends |= self.ack(1, Span::from_ms(rtt)).ends;
                round.acks += 1;
            }
            round.grown = (self.window - before) / SEGMENT;
            round
        }

        fn round(&mut self, rtt: u64) -> Round {
            self.round_of(&[], rtt)
        }

        fn is_conservative(&self) -> bool {
            self.growth.hystart.is_some_and(|hystart| hystart.conservative.is_some())
        }
    }

    #[test]
    fn the_window_doubles_while_round_trip_times_stay() {
        for slow_start in [SlowStart::Standard, SlowStart::HyStart] {
            let mut sender = Sender::new(slow_start, 20);
            for _ in 0..6 {
                let round = sender.round(100);
                assert_eq!((round.grown, round.ends), (round.acks, false), "{slow_start:?}");
            }
            assert!(sender.window > 1_000 * SEGMENT);
        }
    }

    #[test]
    fn round_trip_times_that_have_grown_by_an_eighth_slow_it_down_and_end_it_after_five_rounds() {
        let mut sender = Sender::new(SlowStart::HyStart, 20);
        sender.round(96);
        sender.round(107);
        assert!(!sender.is_conservative(), "107 ms are less than 96 + 96 / 8");
        // Eight samples report; the growth is a quarter from then on.
        let round = sender.round(121);
        assert!(sender.is_conservative());
        assert_eq!(round.grown, 8 + (round.acks - 8) / 4, "{round:?}");
        // That round counts as the first of five.
        for more in 2..=5 {
            let round = sender.round(121);
            assert!(round.grown.abs_diff(round.acks / 4) <= 1, "{round:?}");
            assert_eq!(round.ends, more == 5, "round {more}");
        }
        assert_eq!(sender.ack(9, Span::from_ms(500)), Step { bytes: 2 * SEGMENT, ends: false }, "it is over for good");
    }

    #[test]
    fn it_needs_a_growth_of_4_ms_where_paths_are_short_and_of_16_ms_where_they_are_long() {
        for (last, too_little, enough) in [(1, 4, 5), (10, 13, 14), (80, 89, 90), (600, 615, 616)] {
            let after = |then| {
                let mut sender = Sender::new(SlowStart::HyStart, 20);
                sender.round(last);
                sender.round(then);
                sender.is_conservative()
            };
            assert_eq!((after(too_little), after(enough)), (false, true), "from {last} ms");
        }
    }

    #[test]
    fn slow_start_goes_on_when_the_delay_was_that_of_a_moment() {
        let mut sender = Sender::new(SlowStart::HyStart, 20);
        sender.round(100);
        sender.round(150);
        assert!(sender.is_conservative());
        // Seven samples of a new round say nothing, the eighth does.
        let round = sender.round_of(&[150; 7], 120);
        assert!(!sender.is_conservative());
        assert_eq!((round.grown, round.ends), (2 + round.acks - 8, false));
        // The next growth counts from there.
        sender.round(120);
        assert!(!sender.is_conservative());
        sender.round(140);
        assert!(sender.is_conservative());
    }

    #[test]
    fn a_round_of_fewer_than_eight_samples_says_nothing() {
        let mut sender = Sender::new(SlowStart::HyStart, 7);
        sender.round(10);
        // Two segments per acknowledgement: seven samples.
        let end = sender.end;
        while sender.acknowledged < end {
            sender.ack(2, Span::from_ms(100));
        }
        assert!(!sender.is_conservative());
    }

    #[test]
    fn losses_end_it_for_good() {
        let mut sender = Sender::new(SlowStart::HyStart, 20);
        sender.round(100);
        sender.growth.on_congestion();
        sender.round(200);
        sender.round(400);
        assert!(!sender.is_conservative());
    }

    #[test]
    fn an_acknowledgement_counts_for_two_segments_or_with_hystart_for_eight() {
        for (slow_start, most) in [(SlowStart::Standard, 2), (SlowStart::HyStart, 8)] {
            let mut sender = Sender::new(slow_start, 100);
            assert_eq!(sender.ack(20, Span::from_ms(10)).bytes, most * SEGMENT);
            assert_eq!(sender.ack(1, Span::from_ms(10)).bytes, SEGMENT);
        }
    }
}
