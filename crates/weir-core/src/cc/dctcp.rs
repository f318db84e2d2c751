//! DCTCP: the window comes down by as much as there are marks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::reno::Reno;
use crate::cc::{Acked, Allowance, CongestionControl, Marks, Metrics, Needs, SenderEvent, Settings, Setup, SlowStart};
use crate::error::{SpecError, above_zero_to};
use crate::tcp::EcnSupport;
use crate::units::{Bytes, Time};

/// Settings of [`Dctcp`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DctcpConfig {
    /// g: weight of the last window of data in the average share of marks.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
    /// What ends the first slow start, apart from marks and losses.
    pub slow_start: SlowStart,
}

/// The constants of RFC 8257.
impl Default for DctcpConfig {
    fn default() -> DctcpConfig {
        DctcpConfig { gain: 1.0 / 16.0, slow_start: SlowStart::Standard }
    }
}

impl Settings for DctcpConfig {
    type Control = Dctcp;
    const PRESET: Option<fn() -> Self> = Some(Self::default);
    const ECN: EcnSupport = EcnSupport::Dctcp;

    fn check(&self) -> Result<(), SpecError> {
        above_zero_to(1.0, "/gain", self.gain)
    }

    fn make(&self, setup: Setup<'_>) -> Dctcp {
        Dctcp::new(setup.connection.segment_bytes, setup.connection.initial_window(), self)
    }
}

/// Reno, but for marks: a moving average of the share of the data that is marked, alpha, takes alpha / 2 of the window, once per
/// window of data. Losses count as for Reno. What is acknowledged without a mark lets the window grow, also while others are marked.
///
/// Source: RFC 8257, 3.3 (alpha, window), 3.4 (loss).
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: Reno,
    segment: u64,
    share: MarkedShare,
    /// The window is not reduced again before this number is passed.
    recover: u64,
    /// Whether the last marks reduced it.
    has_reduced: bool,
    /// Bytes that the acknowledgement under way reports to be marked.
    withheld: u64,
}

/// Segments below which marks do not bring the window.
///
/// Source: RFC 5681, equation 4.
pub(super) const LEAST: u64 = 2;

impl Dctcp {
    /// Full segments of `segment`; starts with the window `initial`.
    pub fn new(segment: Bytes, initial: Bytes, config: &DctcpConfig) -> Dctcp {
        Dctcp {
            reno: Reno::new(segment, initial, config.slow_start),
            segment: segment.count(),
            share: MarkedShare::new(config.gain, Some(1.0)),
            recover: 0,
            has_reduced: false,
            withheld: 0,
        }
    }

    /// Whether the window was reduced.
    ///
    /// Source: RFC 8257, 3.3.
    fn on_marks(&mut self, marks: &Marks) -> bool {
        self.withheld = marks.marked.count();
        self.share.count(marks);
        if self.share.is_round_over(marks) {
            self.share.end_round(marks);
        }
        let reduces = marks.is_echo && marks.may_reduce && marks.number > self.recover;
        if reduces {
            let window = self.reno.allowance().window.count();
            let left = (window as f64 * (1.0 - self.share.alpha().unwrap_or(1.0) / 2.0)) as u64;
            self.reno.reduce_to(left.max(LEAST * self.segment));
            self.recover = marks.next;
        }
        reduces
    }
}

impl CongestionControl for Dctcp {
    #[inline]
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Ack(ack) => {
                let bytes = ack.bytes - ack.bytes.min(Bytes::new(std::mem::take(&mut self.withheld)));
                self.reno.on_event(now, &SenderEvent::Ack(Acked { bytes, ..ack }));
            }
            SenderEvent::Marks(ref marks) => self.has_reduced = self.on_marks(marks),
            _ => self.reno.on_event(now, event),
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        self.reno.allowance()
    }

    fn has_reduced(&self) -> bool {
        self.has_reduced
    }

    fn needs(&self) -> Needs {
        Needs { marks: true, ..Needs::PLAIN }
    }

    fn metrics(&self) -> Metrics {
        Metrics { marked_share: self.share.alpha(), ..Metrics::default() }
    }
}

/// The moving average of the share of the data that is marked.
#[derive(Clone, Debug)]
pub(super) struct MarkedShare {
    gain: f64,
    /// Alpha; none: not begun.
    alpha: Option<f64>,
    /// Of the window of data under way: bytes that were acknowledged, and those that were marked.
    counted: u64,
    marked: u64,
    /// The window of data is over when this number is passed.
    end: u64,
}

impl MarkedShare {
    pub(super) fn new(gain: f64, alpha: Option<f64>) -> MarkedShare {
        MarkedShare { gain, alpha, counted: 0, marked: 0, end: 0 }
    }

    pub(super) fn alpha(&self) -> Option<f64> {
        self.alpha
    }

    /// The average begins with the first mark, as if all had been marked until then.
    pub(super) fn begin(&mut self) {
        if self.alpha.is_none() {
            (self.alpha, self.counted, self.marked) = (Some(1.0), 0, 0);
        }
    }

    pub(super) fn count(&mut self, marks: &Marks) {
        self.counted += marks.counted.count();
        self.marked += marks.marked.count();
    }

    pub(super) fn is_round_over(&self, marks: &Marks) -> bool {
        marks.number > self.end
    }

    /// Source: RFC 8257, 3.3, steps 5 to 8.
    pub(super) fn end_round(&mut self, marks: &Marks) {
        if let Some(alpha) = &mut self.alpha
            && self.counted > 0
        {
            *alpha += self.gain * (self.marked.min(self.counted) as f64 / self.counted as f64 - *alpha);
        }
        (self.counted, self.marked, self.end) = (0, 0, marks.next);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::units::Span;

    const SEGMENT: u64 = 1000;

    /// An acknowledgement of `counted` segments, `marked` of them with a mark, up to segment `number` of `next`.
    pub(in crate::cc) fn marks(counted: u64, marked: u64, number: u64, next: u64) -> Marks {
        let bytes = |segments: u64| Bytes::new(segments * SEGMENT);
        Marks {
            counted: bytes(counted),
            marked: bytes(marked),
            is_echo: marked > 0,
            number: 1 + number * SEGMENT,
            next: 1 + next * SEGMENT,
            srtt: Some(Span::from_ms(10)),
            may_reduce: true,
        }
    }

    fn dctcp() -> Dctcp {
        Dctcp::new(Bytes::new(SEGMENT), Bytes::new(100 * SEGMENT), &DctcpConfig::default())
    }

    #[test]
    fn alpha_is_the_average_of_the_shares_of_windows_and_begins_with_all() {
        let mut dctcp = dctcp();
        assert_eq!(dctcp.metrics().marked_share, Some(1.0));
        // Windows of 100 segments of which 20 are marked, acknowledged by twos: the first is a window of its own.
        let mut alpha = 1.0;
        dctcp.on_marks(&marks(2, 0, 2, 102));
        alpha *= 15.0 / 16.0;
        for round in 1..=3 {
            for place in 1..=50 {
                let number = 2 + 100 * (round - 1) + 2 * place;
                dctcp.on_marks(&marks(2, u64::from(place <= 20), number, number + 100));
            }
            // The window under way ends with the first acknowledgement that passes its end.
            alpha = if round == 1 { alpha } else { alpha + (0.2 - alpha) / 16.0 };
        }
        let found = dctcp.metrics().marked_share.expect("it has one");
        assert!((found - alpha).abs() < 0.002, "{found} {alpha}");
    }

    #[test]
    fn marks_take_half_of_alpha_once_per_window_and_losses_take_half() {
        let mut dctcp = dctcp();
        assert!(dctcp.on_marks(&marks(2, 2, 2, 102)));
        // Alpha was 1 before, and the first round had all of its two segments marked.
        assert_eq!(dctcp.allowance().window, Bytes::new(50 * SEGMENT));
        assert!(!dctcp.on_marks(&marks(2, 2, 4, 102)), "not again");
        assert!(!dctcp.on_marks(&marks(2, 2, 102, 152)), "up to the end of the window");
        assert!(dctcp.on_marks(&marks(2, 2, 104, 152)));
        let flight = Bytes::new(20 * SEGMENT);
        let cause = crate::cc::Cause::Loss;
        dctcp.on_event(Time::ZERO, &SenderEvent::Congestion { cause, flight });
        assert_eq!(dctcp.allowance().threshold, Bytes::new(10 * SEGMENT));
    }

    #[test]
    fn nothing_is_reduced_twice_while_losses_are_repaired_and_two_segments_stay() {
        let config = DctcpConfig { gain: 0.5, ..DctcpConfig::default() };
        let mut dctcp = Dctcp::new(Bytes::new(SEGMENT), Bytes::new(3 * SEGMENT), &config);
        assert!(!dctcp.on_marks(&Marks { may_reduce: false, ..marks(2, 2, 2, 5) }));
        assert_eq!(dctcp.allowance().window, Bytes::new(3 * SEGMENT));
        assert!(dctcp.on_marks(&marks(2, 2, 2, 5)));
        assert_eq!(dctcp.allowance().window, Bytes::new(2 * SEGMENT));
    }

    #[test]
    fn only_what_is_not_marked_lets_the_window_grow() {
        let mut dctcp = dctcp();
        let ack = |segments: u64| Acked {
            bytes: Bytes::new(segments * SEGMENT),
            number: 0,
            next: 0,
            prior_flight: Bytes::new(1000 * SEGMENT),
            srtt: None,
            rtt: None,
            may_grow: true,
        };
        dctcp.on_marks(&marks(2, 2, 2, 102));
        dctcp.on_event(Time::ZERO, &SenderEvent::Ack(ack(2)));
        // Reduced to 50, in congestion avoidance: fifty more that are not marked make it 51.
        for place in 0..25 {
            dctcp.on_marks(&marks(2, 1, 4 + 2 * place, 102));
            dctcp.on_event(Time::ZERO, &SenderEvent::Ack(ack(2)));
        }
        assert_eq!(dctcp.allowance().window, Bytes::new(50 * SEGMENT));
        for place in 0..13 {
            dctcp.on_marks(&marks(2, 0, 54 + 2 * place, 102));
            dctcp.on_event(Time::ZERO, &SenderEvent::Ack(ack(2)));
        }
        assert_eq!(dctcp.allowance().window, Bytes::new(51 * SEGMENT));
    }
}
