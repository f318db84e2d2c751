//! BBR: the rate and the volume that a model of the path allows.
//!
//! Of what acknowledgements show, [`model`] keeps the highest delivery rate, the least round-trip time and how bursty
//! acknowledgements are; how much may be in flight follows, less what losses forbid. [`cycle`] sends faster and slower
//! in turn so that these are seen. Here both become a pacing rate and a window.
//!
//! Source: BBR draft, 5. Names are those of its pseudocode where they mean the same. DEVIATION: an echoed mark counts as
//! a round trip with too much loss, which 3.7 leaves open.

mod cycle;
mod filters;
mod model;
mod undo;
mod volume;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::{Allowance, Cause, CongestionControl, Metrics, Needs, Pace, SenderEvent, Settings, Setup};
use crate::rng::Stream;
use crate::tcp::Config;
use crate::tcp::rate::{Loss, Sample};
use crate::units::{Bytes, Rate, Span, Time};

use cycle::Cycle;
use filters::FullPipe;
use model::Model;
use undo::Undo;

/// Settings of [`Bbr`]: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BbrConfig {}

impl Settings for BbrConfig {
    type Control = Bbr;
    const PRESET: Option<fn() -> Self> = Some(Self::default);

    fn make(&self, setup: Setup<'_>) -> Bbr {
        Bbr::new(setup.connection, setup.chance)
    }
}

/// What the sender does to learn about the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It doubles its rate in each round trip.
    Startup,
    /// It drains the queue that start-up left.
    Drain,
    /// It lets a queue drain, and others grow.
    ProbeBwDown,
    /// It sends as fast as the network delivers.
    ProbeBwCruise,
    /// It fills the pipe.
    ProbeBwRefill,
    /// It sends faster than the network delivers, to see whether it can.
    ProbeBwUp,
    /// It keeps little in flight, to see the round-trip time without queues.
    ProbeRtt,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBwDown => "probe-bw-down",
            State::ProbeBwCruise => "probe-bw-cruise",
            State::ProbeBwRefill => "probe-bw-refill",
            State::ProbeBwUp => "probe-bw-up",
            State::ProbeRtt => "probe-rtt",
        }
    }
}

/// BBR, version 3.
#[derive(Debug)]
pub struct Bbr {
    segment: u64,
    frame: u64,
    initial_window: u64,
    sack: bool,
    state: State,
    model: Model,
    full_pipe: FullPipe,
    cycle: Cycle,
    cwnd: u64,
    /// The window before losses were repaired, or before the round-trip time was probed.
    prior_cwnd: u64,
    /// Of data, without headers; and the same of frames.
    pacing: Rate,
    frame_pacing: Rate,
    /// Data that leaves together.
    send_quantum: u64,
    /// Whether the pacing rate at the start came from a round-trip time.
    has_rtt: bool,
    /// Whether losses are being repaired.
    repairs: bool,
    /// Of the losses that are being repaired, or are reported before that begins.
    undo: Option<Undo>,
    idle_restart: bool,
    /// `BBR.drain_start_round`.
    drain_start: u64,
    /// `BBR.probe_rtt_done_stamp`, and whether a round trip has passed meanwhile.
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    /// Whether the window was used up in this round trip, and in the one before.
    window_limited: [bool; 2],
    /// Runs of lost segments in this round trip.
    lost_ranges: u32,
    chance: Stream,
}

/// Share of losses in a round trip that is too much.
///
/// Source: BBR draft, 2.8.
const LOSS_THRESHOLD: f64 = 0.02;
/// What a reduction leaves at least.
///
/// Source: BBR draft, 2.8.
const BETA: f64 = 0.7;
/// Runs of lost segments in a round trip that end start-up.
///
/// Source: BBR draft, 5.3.1.3, `BBRStartupFullLossCnt`.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
/// More than anybody has in flight: a bound that is none.
const UNBOUNDED: u64 = u64::MAX;

impl Bbr {
    /// For a connection with the settings `config`; draws the times between probes from `chance`.
    pub fn new(config: &Config, chance: Stream) -> Bbr {
        let initial_window = config.initial_window().count();
        let mut bbr = Bbr {
            segment: config.segment_bytes.count(),
            frame: config.full_frame().count(),
            initial_window,
            sack: config.sack,
            state: State::Startup,
            model: Model::new(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(),
            cwnd: initial_window,
            prior_cwnd: 0,
            pacing: Rate::default(),
            frame_pacing: Rate::default(),
            send_quantum: 0,
            has_rtt: false,
            repairs: false,
            undo: None,
            idle_restart: false,
            drain_start: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            window_limited: [false; 2],
            lost_ranges: 0,
            chance,
        };
        bbr.init_pacing(None);
        bbr
    }

    /// Source: BBR draft, 5.5.10.2, `NoteLoss`.
    fn note_loss(&mut self, delivered: Bytes) {
        if self.model.note_loss(delivered) {
            self.save_state();
        }
    }

    /// Source: BBR draft, 3.7: marks are congestion.
    fn on_mark(&mut self, now: Time, flight: Bytes) {
        self.note_loss(self.model.delivered());
        if self.state == State::Startup {
            self.end_startup();
        } else if self.cycle.is_probe_sample {
            self.on_inflight_too_high(now, Some(flight.count()));
        }
    }

    /// Source: BBR draft, 5.2.3, `UpdateModelAndState`.
    fn update_model_and_state(&mut self, now: Time, sample: &Sample) {
        self.model.update_latest(sample);
        self.model.update_max_bw(sample);
        if self.model.round.starts {
            self.cycle.rounds_since_up += 1;
            self.window_limited = [sample.is_window_limited, self.window_limited[0]];
        } else {
            self.window_limited[0] |= sample.is_window_limited;
        }
        if self.model.loss_round_starts {
            let is_probing = matches!(self.state, State::Startup | State::ProbeBwRefill | State::ProbeBwUp);
            self.model.end_loss_round(is_probing, self.cwnd);
        }
        self.model.update_ack_aggregation(now, sample, self.cwnd, self.full_pipe.is_reached);
        if self.model.round.starts && !sample.is_app_limited {
            self.full_pipe.on_round(sample.rate().unwrap_or_default());
        }
        self.check_startup_done(sample);
        self.check_drain_done(now, sample);
        self.update_cycle(now, sample);
        let has_expired = self.model.update_min_rtt(now, sample.rtt);
        self.check_probe_rtt(now, sample, has_expired);
        self.model.advance_latest(sample);
        self.model.bound_bw();
    }

    /// Source: BBR draft, 5.2.1.
    fn on_established(&mut self, now: Time, rtt: Option<Span>) {
        self.model.start(now, rtt);
        if rtt.is_some() {
            self.init_pacing(rtt);
        }
    }

    fn on_repaired(&mut self) {
        self.undo = None;
        if self.repairs {
            self.repairs = false;
            self.restore_cwnd();
        }
    }

    /// Source: BBR draft, 5.4.1.
    fn on_restart(&mut self, now: Time) {
        self.idle_restart = true;
        self.model.restart_aggregation(now);
        if self.is_in_probe_bw() {
            self.set_pacing(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    /// Source: BBR draft, 5.5.10.2, `HandleLostPacket`.
    fn on_lost(&mut self, now: Time, loss: &Loss) {
        self.note_loss(loss.total_delivered);
        self.lost_ranges += u32::from(loss.begins_range);
        if self.cycle.is_probe_sample && self.is_too_high(loss.lost, loss.sent_into) {
            let known = (!loss.is_app_limited).then(|| inflight_at(loss));
            self.on_inflight_too_high(now, known);
        }
    }

    fn on_sample(&mut self, now: Time, sample: &Sample) {
        if !self.has_rtt && sample.rtt.is_some() {
            self.init_pacing(sample.rtt);
        }
        self.update_model_and_state(now, sample);
        self.set_pacing(self.pacing_gain());
        self.set_cwnd(sample);
    }
}

impl CongestionControl for Bbr {
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        match *event {
            SenderEvent::Sample(ref sample) => self.on_sample(now, sample),
            SenderEvent::Lost(ref loss) => self.on_lost(now, loss),
            SenderEvent::Congestion { cause: Cause::EcnEcho, flight } => self.on_mark(now, flight),
            SenderEvent::Congestion { cause: Cause::Loss, .. } => {
                self.save_state();
                self.repairs = true;
            }
            SenderEvent::Collapse => {
                self.save_state();
                (self.repairs, self.cwnd) = (true, self.segment);
            }
            SenderEvent::Spurious => self.undo_losses(),
            SenderEvent::Repaired => self.on_repaired(),
            SenderEvent::Established { rtt } => self.on_established(now, rtt),
            SenderEvent::Restart => self.on_restart(now),
            _ => {}
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let pace = Pace::Rate { rate: self.frame_pacing, quantum: Bytes::new(self.send_quantum) };
        let holds_back = self.state == State::ProbeRtt;
        // There is no threshold.
        Allowance { pace, holds_back, ..Allowance::of_window(Bytes::new(self.cwnd), Bytes::new(u64::MAX)) }
    }

    fn needs(&self) -> Needs {
        Needs { model: true, ..Needs::PLAIN }
    }

    fn metrics(&self) -> Metrics {
        let rate = Some(self.model.max_bw());
        Metrics { stage: Some(self.state.name()), rate, min_rtt: self.model.min_rtt(), marked_share: None }
    }
}

/// How much was in flight when losses became too many, within the segment that was lost.
///
/// Source: BBR draft, 5.5.10.2, `InflightAtLoss`.
fn inflight_at(loss: &Loss) -> u64 {
    let before = (loss.sent_into.count() - loss.size.count()) as f64;
    let lost_before = (loss.lost.count() - loss.size.count()) as f64;
    (before + (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD)).max(0.0) as u64
}

fn scaled(rate: Rate, factor: f64) -> Rate {
    Rate::from_bps((rate.bps() as f64 * factor) as u64)
}
