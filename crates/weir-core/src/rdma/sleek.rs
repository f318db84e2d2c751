//! SLEEK, the loss detection of Ultra Ethernet's senders, as uet-htsim has it.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::Path;
use crate::error::SpecError;
use crate::units::{Span, Time};

/// Settings of [`Sleek`].
///
/// Source: uet-htsim, `uec.cpp` (SLEEK parameters, `setMaxWnd`, `initNsccParams`)
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SleekConfig {
    /// Something is lost when so many packets have arrived behind a gap, as a multiple of the window.
    pub factor: f64,
    /// At least so many of them.
    pub least_packets: u32,
    /// At most so many, as a multiple of what the empty path holds.
    pub most: f64,
    /// Something is lost, too, when a probe is answered with less delay than this, as a multiple of the round-trip time of the empty path.
    pub target: f64,
    /// A probe leaves so many round trips after the last answer; once all has been sent, after one and the target.
    pub probe_after: f64,
    /// Round trips after a probe until the next one.
    pub probe_again: f64,
}

impl Default for SleekConfig {
    fn default() -> SleekConfig {
        SleekConfig { factor: 1.5, least_packets: 5, most: 1.5, target: 1.0, probe_after: 3.0, probe_again: 5.0 }
    }
}

/// Greatest multiple.
const MOST: f64 = 1000.0;

impl SleekConfig {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.least_packets == 0 {
            return Err(SpecError::new("/least_packets", "1 or more (got 0)"));
        }
        for (name, value) in [
            ("factor", self.factor),
            ("most", self.most),
            ("target", self.target),
            ("probe_after", self.probe_after),
            ("probe_again", self.probe_again),
        ] {
            if !(value > 0.0 && value <= MOST) {
                return Err(SpecError::new(format!("/{name}"), format!("above 0 and at most {MOST} (got {value})")));
            }
        }
        Ok(())
    }
}

/// What a sender knows when an answer has come. Packets have numbers, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// How many the message has.
    pub packets: u64,
    /// The first that is not known to have arrived.
    pub base: u64,
    /// The first that was not sent.
    pub next: u64,
    /// Those behind the first that are known to have arrived.
    pub early: u64,
    /// Whether any wait to be sent again.
    pub is_repairing: bool,
    /// Data that may be in flight.
    pub window: u64,
}

/// Takes packets for lost by how many have arrived behind a gap, or because a probe that left after a silence has come back soon.
/// With W and m, data of the window and of a packet:
///
/// ```text
/// threshold     max(min(factor W, most BDP), least m) / m packets, rounded down
/// starts        at an answer by which so many have arrived behind a gap and none waits to be sent again;
///               or at the answer to a probe with a delay below the target, anew if one is under way
/// is over       when all that had been sent at its start has arrived
/// in it         at each answer, of the next min(W, most BDP) / m packets, one at least, from the first gap on those are lost that were sent before its start,
///               have not arrived and were not looked at in it before; they are sent again whatever the window
/// a probe       leaves after a silence; each answer ends it, each probe starts a longer one
/// ```
///
/// It does not change the window: congestion controls that count packets by themselves hear nothing of it.
///
/// The round-trip time of the empty path is what it is said to be, or the least sample of data: the BDP and silences follow it, the target does not.
///
/// Source: uet-htsim, `uec.cpp` (`processAck`, `runSleek`, `sendProbe`, `can_send_NSCC`)
/// DEVIATION: the sender counts arrivals that it knows of, where the receiver reports a number: both are the same unless answers are lost or overtaken.
/// DEVIATION: an answer to a probe has its own round trip; there, one to an earlier probe counts with the average delay.
/// DEVIATION: the window counts data, and is that before the answer; there it counts frames, and the answer has changed it.
/// DEVIATION: the value of a packet that is lost is penalised as with other rules; there it is not.
/// DEVIATION: a timeout in a recovery is like others; there, the first of a packet does nothing, and a later one starts again from it.
#[derive(Clone, Debug)]
pub struct Sleek {
    config: SleekConfig,
    /// Data of a packet, and what the line takes, bytes per second.
    full: f64,
    rate: f64,
    base: Span,
    target: Span,
    /// In a recovery: the first packet that had not been sent at its start.
    end: Option<u64>,
    /// All before it were looked at.
    looked: u64,
    probe: Time,
}

impl Sleek {
    /// Of a sender on `path`.
    pub fn new(config: SleekConfig, path: &Path) -> Sleek {
        let (data, frame) = (path.packet.0.count() as f64, path.packet.1.count() as f64);
        Sleek {
            config,
            full: data,
            rate: path.line_rate.bps() as f64 / 8.0 * data / frame,
            base: path.round_trip,
            target: times(path.round_trip, config.target),
            end: None,
            looked: 0,
            probe: Time::NEVER,
        }
    }

    /// A round trip of data, or of its header.
    pub fn measure(&mut self, rtt: Span) {
        self.base = self.base.min(rtt);
    }

    /// The round-trip time of the empty path, as it is known.
    pub fn base(&self) -> Span {
        self.base
    }

    /// Packets behind a gap that tell of a loss, with data `window` that may be in flight.
    pub fn threshold(&self, window: u64) -> u64 {
        let data = (self.config.factor * window as f64).min(self.most());
        (data / self.full).max(f64::from(self.config.least_packets)) as u64
    }

    /// What counts at most of a window.
    fn most(&self) -> f64 {
        self.config.most * self.rate * self.base.as_secs_f64()
    }

    /// Whether packets that are lost are sent whatever the window.
    pub fn is_recovering(&self) -> bool {
        self.end.is_some()
    }

    /// An answer came at `now`; of one to a probe its round trip. Packets in this range that are in flight are lost.
    pub fn on_answer(&mut self, now: Time, probed: Option<Span>, known: &Known) -> Range<u64> {
        self.probe = if known.base == known.packets {
            Time::NEVER
        } else if known.next == known.packets {
            now + self.base + self.target
        } else {
            now + times(self.base, self.config.probe_after)
        };
        if probed.is_some_and(|rtt| rtt < self.base + self.target) {
            (self.end, self.looked) = (Some(known.next), known.base);
        }
        self.end = self.end.filter(|&end| known.base < end);
        if self.end.is_none() && !known.is_repairing && known.early >= self.threshold(known.window) {
            self.end = Some(known.next);
        }
        let Some(end) = self.end else { return 0..0 };
        let from = self.looked.max(known.base);
        let window = (known.window as f64).min(self.most()) / self.full;
        self.looked = (known.base + (window as u64).max(1)).min(end).max(from);
        from..self.looked
    }

    /// When a probe is due.
    pub fn poll_timeout(&self) -> Time {
        self.probe
    }

    /// Whether a probe is due by `now`; the next one is, later.
    pub fn takes_probe(&mut self, now: Time) -> bool {
        let is_due = self.probe <= now;
        if is_due {
            self.probe = now + times(self.base, self.config.probe_again);
        }
        is_due
    }
}

fn times(span: Span, factor: f64) -> Span {
    Span::from_ps((span.ps() as f64 * factor).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::units::{Bytes, Rate};

    /// 150 kB in 12 us, packets of 4000 B.
    const PATH: Path = Path {
        line_rate: Rate::from_gbit_per_s(100),
        round_trip: Span::from_us(12),
        packet: (Bytes::new(4000), Bytes::new(4000)),
    };
    /// 10 packets may be in flight: 15 behind a gap tell of a loss.
    const KNOWN: Known = Known { packets: 100, base: 3, next: 30, early: 0, is_repairing: false, window: 40_000 };

    fn sleek() -> Sleek {
        Sleek::new(SleekConfig::default(), &PATH)
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn the_threshold_is_one_and_a_half_windows_within_five_packets_and_one_and_a_half_paths() {
        let mut sleek = sleek();
        for (window, packets) in [(100_000, 37), (8000, 5), (13_334, 5), (16_000, 6), (200_000, 56), (u64::MAX, 56)] {
            assert_eq!(sleek.threshold(window), packets, "{window} B");
        }
        sleek.measure(Span::from_us(8));
        sleek.measure(Span::from_us(10));
        assert_eq!(sleek.threshold(200_000), 37, "1.5 x 100 kB");
    }

    #[test]
    fn a_recovery_takes_a_window_from_the_first_gap_on_and_ends_where_sending_was_at_its_start() {
        let mut sleek = sleek();
        let mut tell = |base, early, next| {
            let range = sleek.on_answer(us(1), None, &Known { base, early, next, ..KNOWN });
            (range, sleek.is_recovering())
        };
        assert_eq!(tell(3, 14, 30), (0..0, false));
        assert_eq!(tell(3, 15, 30), (3..13, true));
        assert_eq!(tell(3, 16, 31), (13..13, true), "each once");
        assert_eq!(tell(8, 11, 33), (13..18, true), "fewer than at its start");
        assert_eq!(tell(25, 1, 35), (25..30, true), "what was sent later is not its concern");
        assert_eq!(tell(30, 14, 50), (0..0, false));
        assert_eq!(tell(30, 15, 50), (30..40, true));
    }

    #[test]
    fn no_recovery_starts_while_packets_wait_to_be_sent_again() {
        let mut sleek = sleek();
        let known = Known { early: 50, is_repairing: true, ..KNOWN };
        assert_eq!(sleek.on_answer(us(1), None, &known), 0..0);
        assert_eq!(sleek.on_answer(us(1), None, &Known { is_repairing: false, ..known }), 3..13);
    }

    #[test]
    fn a_probe_leaves_three_round_trips_after_the_last_answer_and_five_after_a_probe() {
        let mut sleek = sleek();
        assert_eq!(sleek.poll_timeout(), Time::NEVER, "nothing is known of the receiver");
        sleek.on_answer(us(10), None, &KNOWN);
        assert_eq!(sleek.poll_timeout(), us(46));
        sleek.on_answer(us(20), None, &Known { next: 100, ..KNOWN });
        assert_eq!(sleek.poll_timeout(), us(44), "once all has been sent: one round trip and the target");
        assert!(!sleek.takes_probe(us(43)) && sleek.takes_probe(us(44)));
        assert_eq!(sleek.poll_timeout(), us(104));
        sleek.on_answer(us(50), None, &Known { base: 100, next: 100, ..KNOWN });
        assert_eq!(sleek.poll_timeout(), Time::NEVER, "all has arrived");
    }

    #[test]
    fn silences_follow_the_least_round_trip_and_the_target_does_not() {
        let mut sleek = sleek();
        sleek.measure(Span::from_us(8));
        sleek.on_answer(us(0), None, &KNOWN);
        assert_eq!(sleek.poll_timeout(), us(24));
        sleek.on_answer(us(0), None, &Known { next: 100, ..KNOWN });
        assert_eq!(sleek.poll_timeout(), us(20));
    }

    #[test]
    fn a_probe_that_comes_back_soon_starts_a_recovery_and_one_that_waited_does_not() {
        let late = Some(Span::from_us(24));
        let soon = Some(Span::from_ps(24_000_000 - 1));
        let mut sleek = sleek();
        assert_eq!(sleek.on_answer(us(50), late, &Known { early: 1, ..KNOWN }), 0..0);
        assert_eq!(sleek.on_answer(us(50), soon, &Known { early: 1, ..KNOWN }), 3..13);
        // What was sent again is lost, too: nothing else has come back for so long.
        assert_eq!(sleek.on_answer(us(90), soon, &Known { early: 1, next: 40, ..KNOWN }), 3..13);
        assert_eq!(sleek.on_answer(us(91), None, &Known { base: 35, next: 40, ..KNOWN }), 35..40);
    }

    /// Whatever comes in whatever order: within one recovery no packet is lost twice, none that was sent after its start, none that has
    /// arrived, and none without evidence.
    #[test]
    fn no_packet_is_recovered_twice_in_one_recovery() {
        let mut recovered = 0;
        for seed in 0..200 {
            let mut chance = Seed::new(seed).stream("answers");
            let mut sleek = sleek();
            let (mut base, mut next, mut end, mut until) = (0, 0, None, 0);
            for turn in 0..400 {
                next = (next + chance.below(6)).min(900);
                base = (base + chance.below(5) * chance.below(2)).min(next);
                let window = 4000 * (1 + chance.below(30));
                let early = chance.below(next - base + 1);
                let is_repairing = chance.below(8) == 0;
                let known = Known { packets: 1000, base, next, early, is_repairing, window };
                let probed = (chance.below(10) == 0).then(|| Span::from_us(chance.below(40)));
                let is_soon = probed.is_some_and(|rtt| rtt < Span::from_us(24));
                let is_told = early >= sleek.threshold(window) && !is_repairing;
                if is_soon || end.is_none_or(|end| base >= end) {
                    // One is over, or another starts.
                    (end, until) = (if is_soon || is_told { Some(next) } else { None }, base);
                }
                let range = sleek.on_answer(us(turn), probed, &known);
                if !range.is_empty() {
                    let end = end.expect("there is evidence");
                    assert!(range.start >= until.max(base) && range.end <= end, "{seed} {turn} {range:?}");
                    assert!(range.end <= base + window / 4000, "{seed} {turn} {range:?}");
                    (until, recovered) = (range.end, recovered + 1);
                }
            }
        }
        assert!(recovered > 1000, "{recovered}");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let plain = SleekConfig::default();
        assert_eq!(plain.check(), Ok(()));
        for (config, at) in [
            (SleekConfig { least_packets: 0, ..plain }, "/least_packets"),
            (SleekConfig { factor: 0.0, ..plain }, "/factor"),
            (SleekConfig { most: f64::NAN, ..plain }, "/most"),
            (SleekConfig { target: -1.0, ..plain }, "/target"),
            (SleekConfig { probe_after: f64::INFINITY, ..plain }, "/probe_after"),
            (SleekConfig { probe_again: 0.0, ..plain }, "/probe_again"),
        ] {
            assert_eq!(config.check().expect_err("it makes no sense").pointer, at);
        }
    }
}
