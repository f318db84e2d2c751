//! Prague: DCTCP for the Internet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::dctcp::{LEAST, MarkedShare};
use crate::cc::reno::is_limiting;
use crate::cc::slow_start::Growth;
use crate::cc::{
    Acked, Allowance, Cause, CongestionControl, Marks, Metrics, Needs, Pace, SenderEvent, Settings, Setup, SlowStart,
};
use crate::error::{SpecError, above_zero_to};
use crate::marking::Ecn;
use crate::tcp::{self, EcnSupport};
use crate::units::{Bytes, Rate, Span, Time};

/// Settings of [`Prague`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PragueConfig {
    /// g: weight of the last round in the average share of marks.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
    /// What a round trip counts as at least, once it is independent of round-trip times.
    pub virtual_rtt_ps: Span,
    /// Number of rounds after slow start from which the response is independent of round-trip times.
    pub transition_rounds: u32,
    /// What ends the first slow start, apart from marks and losses.
    pub slow_start: SlowStart,
}

/// The constants of the draft.
impl Default for PragueConfig {
    fn default() -> PragueConfig {
        PragueConfig {
            gain: 1.0 / 16.0,
            virtual_rtt_ps: Span::from_ms(25),
            transition_rounds: 500,
            slow_start: SlowStart::Standard,
        }
    }
}

impl Settings for PragueConfig {
    type Control = Prague;
    const PRESET: Option<fn() -> Self> = Some(Self::default);
    const ECN: EcnSupport = EcnSupport::Accurate;

    fn check(&self) -> Result<(), SpecError> {
        above_zero_to(1.0, "/gain", self.gain)
    }

    fn make(&self, setup: Setup<'_>) -> Prague {
        Prague::new(self, setup.connection)
    }
}

/// As DCTCP, but paced, with fractions of segments in its window, and less unfair to those with longer round trips: some rounds
/// after slow start it grows, and averages marks, as if a round trip took a virtual time at least. Its packets bear ECT(1), and it
/// needs counters of marks: without them the sender uses Reno in its place.
///
/// Source: Prague draft, 2.4.1 (average), 2.4.2 (decrease), 2.4.3 (increase), 2.4.4 (virtual round trips).
/// Source: Linux, net/ipv4/tcp_prague.c (L4STeam), for pacing and what leaves together.
#[derive(Clone, Debug)]
pub struct Prague {
    config: PragueConfig,
    segment: f64,
    /// Length of the frame of a full segment, without preamble and gap.
    frame: f64,
    initial: f64,
    /// In bytes, as the others.
    window: f64,
    threshold: f64,
    growth: Growth,
    share: MarkedShare,
    srtt: Option<Span>,
    /// When the round of the average began, and rounds since slow start.
    round_began: Time,
    rounds: u32,
    /// The last reduction because of marks: when, from which window, and up to which number no other one follows.
    reduced_at: Time,
    reduced_from: f64,
    recover: u64,
    /// Whether the last marks reduced the window.
    has_reduced: bool,
    /// Bytes that the acknowledgement under way reports to be marked.
    withheld: u64,
}

/// What may leave together takes so long at the pacing rate.
///
/// Source: Linux, net/ipv4/tcp_prague.c (L4STeam), `prague_burst_shift`.
const BURST: Span = Span::from_us(250);

impl Prague {
    /// The controller of a connection with the settings `config`.
    pub fn new(prague: &PragueConfig, config: &tcp::Config) -> Prague {
        let initial = config.initial_window().count() as f64;
        Prague {
            config: *prague,
            segment: config.segment_bytes.count() as f64,
            frame: config.full_frame().count() as f64,
            initial,
            window: initial,
            threshold: f64::INFINITY,
            growth: Growth::new(config.segment_bytes, prague.slow_start),
            share: MarkedShare::new(prague.gain, None),
            srtt: None,
            round_began: Time::ZERO,
            rounds: 0,
            reduced_at: Time::ZERO,
            reduced_from: 0.0,
            recover: 0,
            has_reduced: false,
            withheld: 0,
        }
    }

    /// Whether round trips count as long as the virtual one at least.
    fn is_independent(&self) -> bool {
        self.rounds >= self.config.transition_rounds && self.window >= self.threshold
    }

    /// The time between two looks at marks.
    fn patience(&self) -> Span {
        if self.is_independent() { self.config.virtual_rtt_ps } else { Span::ZERO }
    }

    /// Segments by which the window grows in a round trip.
    ///
    /// Source: Prague draft, 2.4.4.
    fn increase(&self) -> f64 {
        match self.srtt {
            Some(srtt) if self.is_independent() && srtt < self.config.virtual_rtt_ps => {
                let ratio = srtt.as_secs_f64() / self.config.virtual_rtt_ps.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        }
    }

    fn on_ack(&mut self, ack: &Acked) {
        self.srtt = ack.srtt.or(self.srtt);
        let withheld = Bytes::new(std::mem::take(&mut self.withheld));
        let ack = Acked { bytes: ack.bytes - ack.bytes.min(withheld), ..*ack };
        let in_slow_start = self.window < self.threshold;
        let is_used = is_limiting(self.window as u64, self.segment as u64, in_slow_start, ack.prior_flight);
        if in_slow_start {
            let step = self.growth.on_ack(&ack);
            self.window += if ack.may_grow && is_used { step.bytes as f64 } else { 0.0 };
            if step.ends {
                self.threshold = self.window;
            }
        } else if ack.may_grow && is_used {
            self.window += self.increase() * ack.bytes.count() as f64 * self.segment / self.window;
        }
    }

    fn reduce_to(&mut self, window: f64) {
        self.window = window.max(LEAST as f64 * self.segment);
        self.threshold = self.window;
        self.growth.on_congestion();
    }

    /// What a loss halves: the window is again what it was before marks of the same round trip reduced it.
    ///
    /// Source: Prague draft, 2.4.2.
    fn flight_before_marks(&self, now: Time, flight: Bytes) -> f64 {
        let is_same_round = self.srtt.is_some_and(|srtt| now.saturating_since(self.reduced_at) < srtt);
        let taken = if is_same_round { (self.reduced_from - self.window).max(0.0) } else { 0.0 };
        flight.count() as f64 + taken
    }

    #[inline]
    fn threshold(&self) -> Bytes {
        // An infinite threshold is the largest number.
        Bytes::new(self.threshold as u64)
    }

    fn on_congestion(&mut self, now: Time, cause: Cause, flight: Bytes) {
        let flight = if cause == Cause::Loss { self.flight_before_marks(now, flight) } else { flight.count() as f64 };
        self.threshold = (flight / 2.0).max(LEAST as f64 * self.segment);
        self.reduced_from = 0.0;
        self.growth.on_congestion();
    }

    /// Whether the window was reduced.
    ///
    /// Source: Prague draft, 2.4.1 and 2.4.2.
    fn on_marks(&mut self, now: Time, marks: &Marks) -> bool {
        self.srtt = marks.srtt.or(self.srtt);
        self.withheld = marks.marked.count();
        if marks.is_echo {
            self.share.begin();
        }
        self.share.count(marks);
        if self.share.is_round_over(marks) && now.saturating_since(self.round_began) >= self.patience() {
            self.share.end_round(marks);
            self.round_began = now;
            if self.window >= self.threshold {
                self.rounds = self.rounds.saturating_add(1);
            }
        }
        let is_next = marks.number > self.recover && now.saturating_since(self.reduced_at) >= self.patience();
        let reduces = marks.is_echo && marks.may_reduce && is_next;
        if reduces {
            self.reduced_from = self.window;
            self.reduce_to(self.window * (1.0 - self.share.alpha().unwrap_or(1.0) / 2.0));
            (self.reduced_at, self.recover) = (now, marks.next);
        }
        reduces
    }

    #[inline]
    fn pace(&self) -> Pace {
        let Some(srtt) = self.srtt.filter(|&srtt| srtt > Span::ZERO) else { return Pace::AtOnce };
        let gain = if self.window < self.threshold / 2.0 { 2.0 } else { 1.0 };
        let bytes_per_s = gain * self.window / srtt.as_secs_f64();
        let rate = Rate::from_bps(((8.0 * bytes_per_s * self.frame / self.segment) as u64).max(1));
        Pace::Rate { rate, quantum: Bytes::new((bytes_per_s * BURST.as_secs_f64()) as u64) }
    }
}

impl CongestionControl for Prague {
    #[inline]
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Ack(ref ack) => self.on_ack(ack),
            SenderEvent::Marks(ref marks) => self.has_reduced = self.on_marks(now, marks),
            SenderEvent::Congestion { cause, flight } => self.on_congestion(now, cause, flight),
            // Of whole bytes: the window is not below a threshold that has a part of one, or it would be in slow start.
            SenderEvent::Recovered { window } => {
                let is_threshold = window == self.threshold();
                self.window = if is_threshold { self.threshold } else { window.count() as f64 };
            }
            SenderEvent::Established { rtt } => self.srtt = rtt,
            // Source: RFC 5681, 3.1; RFC 6928, 2.
            SenderEvent::Collapse | SenderEvent::LostSyn => self.window = self.segment,
            // Source: RFC 5681, 4.1.
            SenderEvent::LongIdle => self.window = self.window.min(self.initial),
            _ => {}
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let window = Bytes::new(self.window as u64);
        Allowance { pace: self.pace(), ..Allowance::of_window(window, self.threshold()) }
    }

    fn has_reduced(&self) -> bool {
        self.has_reduced
    }

    fn needs(&self) -> Needs {
        Needs { marks: true, counters: true, codepoint: Ecn::Ect1, ..Needs::PLAIN }
    }

    fn metrics(&self) -> Metrics {
        Metrics { marked_share: self.share.alpha(), ..Metrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::dctcp::tests::marks;

    const SEGMENT: u64 = 1000;
    fn prague(initial: u32) -> Prague {
        let segment_bytes = Bytes::new(SEGMENT);
        let config = tcp::Config { segment_bytes, initial_window_segments: initial, ..tcp::Config::default() };
        Prague::new(&PragueConfig { transition_rounds: 3, ..PragueConfig::default() }, &config)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn ack(segments: u64) -> SenderEvent {
        SenderEvent::Ack(Acked {
            bytes: Bytes::new(segments * SEGMENT),
            number: 0,
            next: 0,
            prior_flight: Bytes::new(1000 * SEGMENT),
            srtt: Some(Span::from_ms(10)),
            rtt: None,
            may_grow: true,
        })
    }

    #[test]
    fn the_first_mark_takes_half_and_begins_the_average() {
        let mut prague = prague(100);
        assert!(!prague.on_marks(at(10), &marks(2, 0, 2, 102)));
        assert_eq!(prague.metrics().marked_share, None);
        assert!(prague.on_marks(at(10), &marks(2, 1, 4, 104)));
        assert_eq!((prague.metrics().marked_share, prague.window), (Some(1.0), 50_000.0));
        // The round ends behind the segment that was next when the last one ended.
        prague.on_marks(at(20), &marks(98, 0, 102, 152));
        assert_eq!(prague.metrics().marked_share, Some(1.0));
        prague.on_marks(at(20), &marks(2, 0, 104, 152));
        let share = 1.0 / 102.0;
        let alpha = prague.metrics().marked_share.expect("it has begun");
        assert!((alpha - (1.0 + (share - 1.0) / 16.0)).abs() < 1e-12, "{alpha}");
    }

    #[test]
    fn after_some_rounds_it_grows_as_if_a_round_trip_took_the_virtual_time() {
        let mut prague = prague(100);
        prague.on_marks(at(10), &marks(2, 2, 2, 102));
        let grows = |prague: &mut Prague| {
            let before = prague.window;
            prague.on_event(at(10), &ack(1));
            (prague.window - before) * prague.window / (SEGMENT * SEGMENT) as f64
        };
        prague.withheld = 0;
        assert!((grows(&mut prague) - 1.0).abs() < 1e-3);
        for round in 1..=3 {
            prague.on_marks(at(10 + 10 * round), &marks(2, 0, 100 * round + 6, 100 * round + 104));
        }
        // (10 / 25)^2.
        assert!((grows(&mut prague) - 0.16).abs() < 1e-3);
        assert!(prague.on_marks(at(100), &marks(2, 2, 410, 510)));
        assert!(!prague.on_marks(at(120), &marks(2, 2, 520, 620)), "within the virtual time");
        assert!(prague.on_marks(at(125), &marks(2, 2, 630, 730)));
    }

    #[test]
    fn a_loss_takes_half_of_the_window_before_marks_of_the_same_round_trip() {
        let mut prague = prague(100);
        prague.on_marks(at(10), &marks(2, 2, 2, 102));
        let loss = SenderEvent::Congestion { cause: Cause::Loss, flight: Bytes::new(50 * SEGMENT) };
        prague.on_event(at(15), &loss);
        assert_eq!(prague.threshold(), Bytes::new(50 * SEGMENT));
        prague.on_event(at(35), &loss);
        assert_eq!(prague.threshold(), Bytes::new(25 * SEGMENT));
    }

    #[test]
    fn it_is_paced_at_its_window_per_round_trip_and_twice_that_in_slow_start() {
        let mut prague = prague(100);
        assert_eq!(prague.allowance().pace, Pace::AtOnce, "nothing is known");
        prague.on_event(at(10), &SenderEvent::Established { rtt: Some(Span::from_ms(10)) });
        let rate = |prague: &Prague| match prague.allowance().pace {
            Pace::Rate { rate, quantum } => Some((rate.bps(), quantum)),
            _ => None,
        };
        // 100 kB in 10 ms: 80 Mbit/s of data, in frames of 1070 B for 1000 B; 250 us of it are 2.5 kB.
        assert_eq!(rate(&prague), Some((171_200_000, Bytes::new(5_000))));
        prague.on_marks(at(10), &marks(2, 2, 2, 102));
        assert_eq!(rate(&prague), Some((42_800_000, Bytes::new(1_250))));
    }
}
