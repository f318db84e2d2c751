//! HPCC: the window follows the utilisation of the most loaded link on the way, as the ports there report it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::{
    Allowance, Answer, CongestionControl, Hop, Metrics, Needs, Outcome, Pace, Path, SenderEvent, Settings, Setup,
};
use crate::error::{SpecError, above_zero_to};
use crate::units::{Bytes, Rate, Span, Time};

/// Settings of [`Hpcc`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HpccConfig {
    /// Utilisation that is aimed at.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub eta: f64,
    /// Additive increases in a row after which the window follows the utilisation again; 0: it always does, as in the authors' simulations.
    pub max_stage: u32,
    /// What is added to the window at each change, W_AI.
    pub w_ai_bytes: Bytes,
    /// The least rate.
    pub min_rate_bps: Rate,
}

/// Source: HPCC 2019, 5.1 (80 B: 100 flows at 100 Gbit/s and 13 us)
/// Source: HPCC simulator, `config.txt` (least rate)
impl Default for HpccConfig {
    fn default() -> HpccConfig {
        HpccConfig { eta: 0.95, max_stage: 5, w_ai_bytes: Bytes::new(80), min_rate_bps: Rate::from_bps(100_000_000) }
    }
}

impl Settings for HpccConfig {
    type Control = Hpcc;
    const PRESET: Option<fn() -> Self> = Some(Self::default);
    const PACKETS: bool = true;
    const TELEMETRY: bool = true;

    fn check(&self) -> Result<(), SpecError> {
        above_zero_to(1.0, "/eta", self.eta)
    }

    fn make(&self, setup: Setup<'_>) -> Hpcc {
        Hpcc::new(*self, setup.path)
    }
}

/// With C the rate of the sender's line, T the round-trip time of the empty path, and for each port on the way its rate B, its queue q and what
/// it has sent since the answer before:
///
/// ```text
/// u = max over ports of  min(q, q before) / (B T) + (sent rate) / B,   U = (1 - t/T) U + (t/T) u,   t: time since the answer before, at most T
/// U >= eta, or max_stage increases in a row:   W = Wc / (U / eta) + W_AI
/// else:                                        W = Wc + W_AI
/// R = W / T
/// ```
///
/// Once per round trip, with the answer to the first packet sent after the last time, Wc becomes W.
///
/// Source: HPCC 2019, algorithm 1, section 3.3
/// DEVIATION: numbers are exact; packets of the paper carry them rounded to units of 80 and 128 B and 1 ns.
/// DEVIATION: what a port has sent counts framing, so that it is the rate of the line at most.
#[derive(Clone, Debug)]
pub struct Hpcc {
    config: HpccConfig,
    path: Path,
    /// Bytes.
    window: f64,
    current: f64,
    utilisation: f64,
    stage: u32,
    /// The current window changes with the answer to a packet from here on.
    update: u64,
    before: Vec<Hop>,
}

impl Hpcc {
    /// A sender on `path`, which starts at the rate of its line.
    pub fn new(config: HpccConfig, path: Path) -> Hpcc {
        let window = path.product().count() as f64;
        Hpcc { config, path, window, current: window, utilisation: 1.0, stage: 0, update: 0, before: Vec::new() }
    }

    /// The window in bytes.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Brings the utilisation up to date; whether that is possible: the ports are those of the answer before.
    fn measure(&mut self, hops: &[Hop]) -> bool {
        let is_alike = self.before.len() == hops.len()
            && self.before.iter().zip(hops).all(|(before, hop)| before.port == hop.port && before.at < hop.at);
        if is_alike && !hops.is_empty() {
            let base = self.path.round_trip.as_secs_f64();
            let of = |(before, hop): (&Hop, &Hop)| {
                let (rate, span) = (hop.rate_bps as f64 / 8.0, (hop.at - before.at).as_secs_f64());
                let sent = (hop.sent_bytes - before.sent_bytes) as f64 / span;
                let queue = f64::from(hop.queue_bytes.min(before.queue_bytes));
                (queue / (rate * base) + sent / rate, span)
            };
            let most = self.before.iter().zip(hops).map(of).max_by(|one, other| one.0.total_cmp(&other.0));
            if let Some((used, span)) = most {
                let weight = (span / base).min(1.0);
                self.utilisation += weight * (used - self.utilisation);
            }
        }
        self.before.clear();
        self.before.extend_from_slice(hops);
        is_alike
    }
}

impl CongestionControl for Hpcc {
    fn on_event(&mut self, _: Time, _: &SenderEvent) {}

    fn on_answer(&mut self, _: Time, answer: &Answer<'_>) {
        if answer.outcome != Outcome::Arrived || !self.measure(answer.hops) {
            return;
        }
        let HpccConfig { eta, max_stage, w_ai_bytes, min_rate_bps } = self.config;
        let follows = self.utilisation >= eta || self.stage >= max_stage;
        let scale = if follows { eta / self.utilisation } else { 1.0 };
        let least = (min_rate_bps * self.path.round_trip).count() as f64;
        let window = self.current * scale + w_ai_bytes.count() as f64;
        let most = self.path.product().count() as f64;
        self.window = window.clamp(least.min(most), most);
        if answer.number >= self.update {
            (self.current, self.update) = (self.window, answer.next);
            self.stage = if follows { 0 } else { self.stage + 1 };
        }
    }

    fn allowance(&self) -> Allowance {
        let window = Bytes::new(self.window as u64);
        let bps = self.window * 8.0 / self.path.round_trip.max(Span::from_ps(1)).as_secs_f64();
        let rate = Rate::from_bps((bps as u64).max(1));
        let pace = Pace::Rate { rate, quantum: Bytes::new(1) };
        Allowance { pace, ..Allowance::of_window(window.max(Bytes::new(1)), window) }
    }

    fn needs(&self) -> Needs {
        Needs { packets: true, telemetry: true, ..Needs::PLAIN }
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            rate: match self.allowance().pace {
                Pace::Rate { rate, .. } => Some(rate),
                _ => None,
            },
            ..Metrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path {
        line_rate: Rate::from_gbit_per_s(100),
        round_trip: Span::from_us(8),
        packet: (Bytes::new(1000), Bytes::new(1090)),
    };
    const PRODUCT: f64 = 100_000.0;

    fn hpcc(config: HpccConfig) -> Hpcc {
        Hpcc::new(config, PATH)
    }

    /// The answer that comes at `us`, of a port at 100 Gbit/s that has sent the share `used` of the time since the answer before, 1 us ago.
    fn tell(hpcc: &mut Hpcc, us: u64, number: u64, used: f64, queue_bytes: u32) {
        let sent = hpcc.before.first().map_or(0, |hop| hop.sent_bytes) + (used * 12_500.0) as u64;
        let at = Time::ZERO + Span::from_us(us);
        let hops = [Hop { port: 1, queue_bytes, at, sent_bytes: sent, rate_bps: 100_000_000_000 }];
        let answer = Answer {
            number,
            next: number + 100_000,
            bytes: Bytes::new(1000),
            outcome: Outcome::Arrived,
            marked: false,
            rtt: Span::from_us(8),
            flight: Bytes::ZERO,
            hops: &hops,
        };
        hpcc.on_answer(at, &answer);
    }

    #[test]
    fn it_starts_at_the_rate_of_its_line() {
        let hpcc = hpcc(HpccConfig::default());
        assert_eq!(hpcc.allowance().window, Bytes::new(100_000));
        let Pace::Rate { rate, .. } = hpcc.allowance().pace else { panic!("it is paced") };
        assert_eq!(rate, Rate::from_gbit_per_s(100));
    }

    #[test]
    fn a_line_slower_than_the_least_rate_is_what_it_takes() {
        let mut hpcc = Hpcc::new(HpccConfig::default(), Path { line_rate: Rate::from_bps(10_000_000), ..PATH });
        (0..3).for_each(|us| tell(&mut hpcc, us, 0, 1.0, 50_000));
        assert_eq!(hpcc.window(), 10.0);
    }

    #[test]
    fn the_utilisation_is_the_queue_over_b_t_and_the_rate_over_b() {
        let mut hpcc = hpcc(HpccConfig { max_stage: 0, ..HpccConfig::default() });
        tell(&mut hpcc, 0, 0, 0.0, 50_000);
        assert_eq!(hpcc.utilisation, 1.0, "nothing to compare with");
        tell(&mut hpcc, 1, 1000, 1.0, 60_000);
        // min(50, 60) kB / 100 kB + 1, with weight 1/8.
        assert!((hpcc.utilisation - (1.0 + 0.125 * 0.5)).abs() < 1e-12, "{}", hpcc.utilisation);
        assert!((hpcc.window() - (PRODUCT * 0.95 / hpcc.utilisation + 80.0)).abs() < 1e-6);
    }

    #[test]
    fn at_a_full_link_without_a_queue_windows_settle_at_eta_and_what_is_added() {
        let mut hpcc = hpcc(HpccConfig { max_stage: 0, w_ai_bytes: Bytes::new(500), ..HpccConfig::default() });
        // A sender alone: what the port sends is its window per round trip.
        for us in 0..4000 {
            let used = hpcc.window() / PRODUCT;
            tell(&mut hpcc, us, us * 12_500, used, 0);
        }
        // W = W eta / U + W_AI and U = W / (C T): W = eta C T + W_AI
        // What a port has sent is rounded to whole bytes in each microsecond: 1/12 500 of it.
        assert!((hpcc.window() - (0.95 * PRODUCT + 500.0)).abs() < 8.0, "{}", hpcc.window());
    }

    #[test]
    fn below_eta_it_grows_additively_so_often_and_then_by_the_utilisation() {
        let mut hpcc = hpcc(HpccConfig { max_stage: 3, ..HpccConfig::default() });
        (hpcc.window, hpcc.current, hpcc.utilisation) = (10_000.0, 10_000.0, 0.1);
        let mut windows = vec![];
        for us in 0..5 {
            // Each answer is one to a packet sent after the last change.
            tell(&mut hpcc, us, us * 1_000_000, 0.1, 0);
            windows.push(hpcc.window().round());
        }
        assert_eq!(windows, [10_000.0, 10_080.0, 10_160.0, 10_240.0, 97_360.0]);
    }

    #[test]
    fn within_a_round_trip_the_window_follows_and_its_base_stays() {
        let mut hpcc = hpcc(HpccConfig { max_stage: 0, ..HpccConfig::default() });
        tell(&mut hpcc, 0, 0, 0.0, 0);
        tell(&mut hpcc, 1, 0, 2.0, 0);
        let first = hpcc.current;
        assert_eq!(first, hpcc.window());
        for us in 2..7 {
            tell(&mut hpcc, us, us * 1000, 2.0, 0);
            assert_eq!(hpcc.current, first);
        }
        assert!((hpcc.window() - (first * 0.95 / hpcc.utilisation + 80.0)).abs() < 1e-6, "not the product of six");
        tell(&mut hpcc, 7, 100_000, 2.0, 0);
        assert!(hpcc.current < first);
    }

    #[test]
    fn ports_of_another_way_are_not_compared() {
        let mut hpcc = hpcc(HpccConfig::default());
        tell(&mut hpcc, 0, 0, 0.0, 0);
        hpcc.before[0].port = 2;
        tell(&mut hpcc, 1, 1000, 0.1, 0);
        assert_eq!((hpcc.utilisation, hpcc.window()), (1.0, PRODUCT));
    }
}
