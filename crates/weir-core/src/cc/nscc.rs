//! NSCC, the congestion control of Ultra Ethernet's senders, as uet-htsim has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::{Allowance, Answer, CongestionControl, Metrics, Needs, Outcome, Path, SenderEvent, Settings, Setup};
use crate::error::{SpecError, refuse};
use crate::units::{Bytes, Span, Time};

/// Settings of [`Nscc`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NsccConfig {
    /// Delay that is aimed at, as a part of the round-trip time of the empty path: 0.75 where queues trim, 1 where they drop.
    #[schemars(range(min = 0.0))]
    pub target: f64,
    /// The greatest window, and the first one if none is given, as a multiple of what the empty path holds.
    #[schemars(range(min = 0.0))]
    pub most: f64,
    /// How much of the excess of the delay over the target a decrease takes.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gamma: f64,
    /// The window is measured again when less than the greatest window divided by 2 to this power arrives in a period; see [`Nscc`].
    pub gate_rounds: u32,
    /// Whether packets that only the last queue on their way trimmed leave the window as it is, because a receiver's credit answers for them.
    pub spares_last_hop: bool,
}

impl Default for NsccConfig {
    fn default() -> NsccConfig {
        NsccConfig { target: 0.75, most: 1.5, gamma: 0.8, gate_rounds: 3, spares_last_hop: false }
    }
}

impl Settings for NsccConfig {
    type Control = Nscc;
    const PRESET: Option<fn() -> Self> = Some(Self::default);
    const PACKETS: bool = true;

    fn check(&self) -> Result<(), SpecError> {
        for (name, value) in [("target", self.target), ("most", self.most), ("gamma", self.gamma)] {
            refuse!(!(value > 0.0 && value.is_finite()), format!("/{name}"), "a number above 0 (got {value})");
        }
        Ok(())
    }

    fn make(&self, setup: Setup<'_>) -> Nscc {
        let nscc = Nscc::new(*self, setup.path);
        let first = setup.connection.initial_window().count() as f64;
        Nscc { window: nscc.window.min(first), ..nscc }
    }
}

/// What an empty path of the reference network holds, 100 Gbit/s x 12 us, and its round-trip time.
const REFERENCE: (f64, f64) = (150_000.0, 12e-6);
/// Weight of a sample in the average delay.
const WEIGHT: f64 = 1.0 / 80.0;
/// A delay below which the network counts as empty.
const EMPTY: f64 = 1e-6;
/// Packets after which what was counted changes the window.
const FULFIL: f64 = 8.0;

/// A window by delay (d: round-trip time less that of the empty path) and marks. With a = BDP / 150 kB, b = Q / 12 us, target delay Q, m data of a
/// packet, n newly arrived data:
///
/// ```text
/// no mark, d >= Q:  inc += 5 m a n
/// no mark, d < Q:   inc += (4 m a b / Q) (Q - d) n;   after a window of data with d < 1 us: W += 0.25 a n
/// mark, d >= Q:     W *= max(1 - gamma (avg - Q) / avg, 0.5), once per round trip, if avg > Q
/// mark, d < Q:      nothing (the packet's path changes)
/// each 8 packets or round trip:  W += inc / W;  each round trip: W += 0.15 m a
/// trimmed or lost:  W -= packet
/// ```
///
/// *Quick adapt*: a period is the empty round trip and Q. At its end, if something was lost since the last time or d > 4 Q, and less than most / 2^gate
/// arrived in it, W is what arrived; marks and losses of what is in flight then do not count.
///
/// The round-trip time of the empty path is what it is said to be, or the least sample: d and the greatest window follow it, a and Q do not.
///
/// Source: uet-htsim, `uec.cpp`, as described in its comments (constants, order of rules)
/// DEVIATION: only the specification of the Ultra Ethernet Consortium is normative; it was not at hand.
#[derive(Clone, Debug)]
pub struct Nscc {
    config: NsccConfig,
    /// Data of a packet.
    mss: f64,
    /// Data that the line takes, B/s.
    rate: f64,
    /// Round-trip time of the empty path as it is said to be, and as it is known, s.
    network: f64,
    base: f64,
    target: f64,
    /// a, and m a.
    scale: f64,
    step: f64,
    window: f64,
    average: f64,
    /// What was counted since the window was changed: increments, data.
    counted: (f64, f64),
    grown: Time,
    decreased: Time,
    /// Data that arrived in an empty network in a row; whether it grows fast because of that.
    fast: (f64, bool),
    /// The end of the period, what arrived in it, whether something was lost.
    period: (Time, f64, bool),
    /// Data of which marks and losses do not count.
    ignored: f64,
    /// Data that arrived as answers to other packets, which did not, said: the next arrival counts it.
    late: f64,
}

impl Nscc {
    /// A sender on `path`.
    pub fn new(config: NsccConfig, path: Path) -> Nscc {
        let (mss, frame) = (path.packet.0.count() as f64, path.packet.1.count() as f64);
        let network = path.round_trip.as_secs_f64();
        let line = path.line_rate.bps() as f64 / 8.0;
        let (scale, rate) = (line * network / REFERENCE.0, line * mss / frame);
        Nscc {
            config,
            mss,
            rate,
            network,
            base: network,
            target: config.target * network,
            scale,
            // Of data in a window of data; both are of frames in the source.
            step: mss * mss / frame * scale,
            window: (config.most * rate * network).max(mss),
            average: 0.0,
            counted: (0.0, 0.0),
            grown: Time::ZERO,
            decreased: Time::ZERO,
            fast: (0.0, false),
            period: (Time::ZERO, 0.0, false),
            ignored: 0.0,
            late: 0.0,
        }
    }

    /// The window in bytes of data.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// The greatest window.
    fn most(&self) -> f64 {
        self.config.most * self.rate * self.base
    }

    fn bound(&mut self) {
        self.window = self.window.min(self.most()).max(self.mss);
    }

    fn average_in(&mut self, sample: f64) {
        self.average += WEIGHT * (sample - self.average);
    }

    /// Whether this answer has no effect of its own: it is of what was in flight when the window was measured again, or that happens now.
    fn adapt(&mut self, now: Time, delay: f64, flight: f64, is_bad: bool) -> bool {
        let (end, arrived, lost) = self.period;
        let mut adapts = is_bad && self.ignored > 0.0;
        if !adapts && now > end {
            let gate = self.most() / f64::from(2_u32.saturating_pow(self.config.gate_rounds));
            adapts = end > Time::ZERO && (lost || delay > 4.0 * self.target) && arrived < gate;
            if adapts {
                (self.window, self.ignored) = (arrived.max(self.mss), flight);
            }
            let length = Span::from_ps(((self.base + self.target) * 1e12) as u64);
            self.period = (now + length, 0.0, lost && !adapts);
        }
        if adapts {
            self.counted = (0.0, 0.0);
        }
        adapts
    }

    fn on_arrival(&mut self, now: Time, bytes: f64, delay: f64, marked: bool, flight: f64) {
        let sample = if !marked && delay > self.target { self.base / 4.0 } else { delay };
        self.average_in(sample);
        self.period.1 += bytes;
        self.counted.1 += bytes;
        self.ignored -= bytes;
        if self.adapt(now, delay, flight, marked) {
            return;
        }
        match (marked, delay >= self.target) {
            (false, true) => self.counted.0 += 5.0 * self.step * bytes,
            (false, false) => self.increase(bytes, delay),
            (true, true) => self.decrease(now),
            (true, false) => {}
        }
        self.bound();
        if self.counted.1 > FULFIL * self.mss || seconds(self.grown, now) > self.network {
            self.fulfil(now);
        }
    }

    /// Data arrives early and without a mark.
    fn increase(&mut self, bytes: f64, delay: f64) {
        let counted = if delay < EMPTY { self.fast.0 + bytes } else { 0.0 };
        self.fast = (counted, counted > self.window || self.fast.1 && delay < EMPTY);
        if self.fast.1 {
            self.window += 0.25 * self.scale * bytes;
        } else {
            let slope = 4.0 * self.step * (self.target / REFERENCE.1) / self.target;
            self.counted.0 += slope * (self.target - delay) * bytes;
        }
    }

    fn decrease(&mut self, now: Time) {
        self.fast = (0.0, false);
        if self.average > self.target && seconds(self.decreased, now) > self.base {
            let factor = 1.0 - self.config.gamma * (self.average - self.target) / self.average;
            self.window *= factor.max(0.5);
            self.decreased = now;
        }
    }

    fn fulfil(&mut self, now: Time) {
        self.window += self.counted.0 / self.window;
        if seconds(self.grown, now) >= self.network {
            self.window += 0.15 * self.step;
            self.grown = now;
        }
        self.counted = (0.0, 0.0);
        self.bound();
    }

    /// A packet did not arrive. It is spared if its loss leaves the window as it is.
    fn on_loss(&mut self, now: Time, bytes: f64, flight: f64, is_spared: bool) {
        self.average_in(self.network);
        self.period.2 = true;
        self.ignored -= bytes;
        if !self.adapt(now, 0.0, flight + bytes, true) && !is_spared {
            self.window -= bytes;
            self.bound();
        }
    }
}

fn seconds(since: Time, now: Time) -> f64 {
    now.saturating_since(since).as_secs_f64()
}

impl CongestionControl for Nscc {
    fn on_event(&mut self, _: Time, event: &SenderEvent) {
        if let SenderEvent::Collapse = event {
            self.window -= self.mss;
            self.bound();
        }
    }

    fn on_answer(&mut self, now: Time, answer: &Answer<'_>) {
        let rtt = answer.rtt.as_secs_f64();
        self.base = self.base.min(rtt);
        self.late += answer.bytes.count() as f64;
        let flight = answer.flight.count() as f64;
        match answer.outcome {
            Outcome::Arrived => {
                let bytes = std::mem::take(&mut self.late);
                self.on_arrival(now, bytes, rtt - self.base, answer.marked, flight);
            }
            Outcome::Trimmed { at_last_hop } => {
                self.on_loss(now, self.mss, flight, at_last_hop && self.config.spares_last_hop);
            }
            Outcome::Refused => self.on_loss(now, self.mss, flight, false),
        }
    }

    fn allowance(&self) -> Allowance {
        let window = Bytes::new((self.window as u64).max(1));
        Allowance::of_window(window, window)
    }

    fn needs(&self) -> Needs {
        Needs { packets: true, ..Needs::PLAIN }
    }

    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp;
    use crate::units::Rate;

    /// The reference network: a = 1, BDP 150 kB, Q = 9 us.
    const PATH: Path = Path {
        line_rate: Rate::from_gbit_per_s(100),
        round_trip: Span::from_us(12),
        packet: (Bytes::new(4000), Bytes::new(4000)),
    };

    fn nscc() -> Nscc {
        Nscc::new(NsccConfig::default(), PATH)
    }

    /// A packet of 4000 B arrives, `delay_ns` above the empty round trip.
    fn tell(nscc: &mut Nscc, at_ns: u64, delay_ns: u64, marked: bool, outcome: Outcome) {
        let answer = Answer {
            number: 0,
            next: 0,
            bytes: Bytes::new(if outcome == Outcome::Arrived { 4000 } else { 0 }),
            outcome,
            marked,
            rtt: Span::from_ns(12_000 + delay_ns),
            flight: Bytes::new(100_000),
            hops: &[],
        };
        nscc.on_answer(Time::ZERO + Span::from_ns(at_ns), &answer);
    }

    #[test]
    fn it_starts_with_one_and_a_half_times_the_path() {
        assert_eq!(nscc().window(), 225_000.0);
    }

    #[test]
    fn it_starts_with_a_window_that_is_given() {
        let connection =
            tcp::Config { segment_bytes: Bytes::new(4000), initial_window_segments: 20, ..tcp::Config::default() };
        let setup = Setup { path: PATH, ..Setup::plain(&connection) };
        assert_eq!(NsccConfig::default().make(setup).window(), 80_000.0);
    }

    #[test]
    fn without_marks_the_window_grows_in_proportion_to_what_is_left_of_the_target() {
        for (delay_ns, gain) in [(3000, 4.0 * 4000.0 * 0.75 / 9.0 * 6.0), (9001, 5.0 * 4000.0)] {
            let mut nscc = Nscc { window: 100_000.0, grown: Time::ZERO, ..nscc() };
            for place in 0..9 {
                tell(&mut nscc, 1 + place, delay_ns, false, Outcome::Arrived);
            }
            // More than 8 packets of 4000 B, divided by the window.
            let expected = 100_000.0 + gain * 36_000.0 / 100_000.0;
            assert!((nscc.window() - expected).abs() < 1e-6, "{} {expected}", nscc.window());
        }
    }

    #[test]
    fn marks_with_a_long_delay_take_their_share_once_in_a_round_trip() {
        let mut nscc = Nscc { average: 18e-6, window: 100_000.0, ..nscc() };
        tell(&mut nscc, 12_001, 18_000, true, Outcome::Arrived);
        // 1 - 0.8 (18 - 9) / 18, and 0.15 m once in a round trip.
        assert!((nscc.window() - 60_000.0 - 600.0).abs() < 1e-6, "{}", nscc.window());
        tell(&mut nscc, 13_000, 18_000, true, Outcome::Arrived);
        assert!((nscc.window() - 60_600.0).abs() < 1e-6);
        tell(&mut nscc, 14_000, 3000, true, Outcome::Arrived);
        assert!((nscc.window() - 60_600.0).abs() < 1e-6, "a mark with a short delay concerns the path");
    }

    #[test]
    fn a_trimmed_packet_takes_itself_from_the_window() {
        let mut nscc = Nscc { window: 100_000.0, period: (Time::NEVER, 0.0, false), ..nscc() };
        tell(&mut nscc, 1, 0, false, Outcome::Trimmed { at_last_hop: false });
        assert_eq!(nscc.window(), 96_000.0);
        let config = NsccConfig { spares_last_hop: true, ..NsccConfig::default() };
        let mut spared = Nscc { config, ..nscc };
        tell(&mut spared, 2, 0, false, Outcome::Trimmed { at_last_hop: true });
        assert_eq!(spared.window(), 96_000.0);
    }

    #[test]
    fn a_period_in_which_little_arrives_and_something_is_lost_sets_the_window_to_what_arrived() {
        let mut nscc = nscc();
        tell(&mut nscc, 1000, 20_000, true, Outcome::Arrived);
        assert_eq!(nscc.period.0, Time::ZERO + Span::from_ns(1000 + 21_000));
        for at in [5000, 9000] {
            tell(&mut nscc, at, 20_000, true, Outcome::Arrived);
        }
        tell(&mut nscc, 10_000, 20_000, false, Outcome::Trimmed { at_last_hop: false });
        tell(&mut nscc, 22_001, 20_000, true, Outcome::Arrived);
        assert_eq!(nscc.window(), 12_000.0, "three packets, the one at the end counted");
        let before = nscc.window();
        tell(&mut nscc, 22_100, 20_000, false, Outcome::Trimmed { at_last_hop: false });
        assert_eq!(nscc.window(), before, "it was in flight");
    }

    #[test]
    fn the_least_round_trip_is_that_of_the_empty_path() {
        let mut nscc = nscc();
        let answer = |rtt_us| Answer {
            number: 0,
            next: 0,
            bytes: Bytes::new(4000),
            outcome: Outcome::Arrived,
            marked: true,
            rtt: Span::from_us(rtt_us),
            flight: Bytes::ZERO,
            hops: &[],
        };
        nscc.on_answer(Time::ZERO + Span::from_us(1), &answer(4));
        assert_eq!(nscc.window(), 75_000.0, "1.5 x 4 us x 100 Gbit/s");
        nscc.on_answer(Time::ZERO + Span::from_us(2), &answer(84));
        assert!((nscc.average - 1e-6).abs() < 1e-12, "80 us above 4 us, by 1/80");
        assert_eq!(nscc.target, 9e-6);
    }

    #[test]
    fn in_an_empty_network_it_grows_fast_after_a_window_of_data() {
        let mut nscc = Nscc { window: 8000.0, ..nscc() };
        let mut windows = vec![];
        for place in 0..4 {
            tell(&mut nscc, 1 + place, 0, false, Outcome::Arrived);
            windows.push(nscc.window());
        }
        assert_eq!(windows, [8000.0, 8000.0, 9000.0, 10_000.0]);
    }

    #[test]
    fn data_that_arrived_as_the_answer_to_a_cut_packet_says_counts_with_the_next_arrival() {
        let mut nscc = Nscc { period: (Time::NEVER, 0.0, false), ..nscc() };
        let answer = Answer {
            number: 0,
            next: 0,
            bytes: Bytes::new(4000),
            outcome: Outcome::Trimmed { at_last_hop: true },
            marked: false,
            rtt: Span::from_us(15),
            flight: Bytes::new(100_000),
            hops: &[],
        };
        nscc.on_answer(Time::ZERO + Span::from_ns(1), &answer);
        tell(&mut nscc, 2, 3000, false, Outcome::Arrived);
        assert_eq!((nscc.period.1, nscc.late), (8000.0, 0.0));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let place = |config: NsccConfig| config.check().expect_err("it makes no sense").pointer;
        assert_eq!(place(NsccConfig { target: 0.0, ..NsccConfig::default() }), "/target");
        assert_eq!(place(NsccConfig { gamma: f64::NAN, ..NsccConfig::default() }), "/gamma");
    }
}
