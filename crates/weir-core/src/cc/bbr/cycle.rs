//! In which order BBR sends faster and slower.

use crate::cc::bbr::{BETA, Bbr, LOSS_THRESHOLD, STARTUP_FULL_LOSS_COUNT, State, UNBOUNDED};
use crate::tcp::rate::Sample;
use crate::units::{Bytes, Span, Time};

/// Where it is in its cycle of probing for bandwidth.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    phase: AckPhase,
    started: Time,
    /// The longest time until the next probe.
    wait: Span,
    pub(super) rounds_since_up: u64,
    /// Round trips over which the volume has grown, what was acknowledged since it grew last, and what it takes.
    up_rounds: u32,
    up_acked: u64,
    up_acked_per_segment: u64,
    /// Whether what arrives was sent while probing, and losses are not answered yet.
    pub(super) is_probe_sample: bool,
    prev_too_high: bool,
    prev_precautionary: bool,
}

/// What acknowledgements report.
///
/// Source: BBR draft, 2.14.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AckPhase {
    /// Nothing that has to do with a probe.
    #[default]
    Init,
    /// Sending that fills the pipe.
    Refilling,
    /// What was sent before the probe.
    ProbeStarting,
    /// The probe.
    ProbeFeedback,
    /// The end of the probe.
    ProbeStopping,
}

/// Most round trips between two probes.
///
/// Source: BBR draft, 5.3.3.8.3.
const MAX_ROUNDS: u64 = 63;
/// Least time between two probes; up to a second is added at random.
///
/// Source: BBR draft, 5.3.3.8.3.
const LEAST_WAIT: Span = Span::from_ms(2_000);
const RANDOM_WAIT: Span = Span::from_ms(1_000);
/// How long little is kept in flight.
///
/// Source: BBR draft, 2.16.2.
const PROBE_RTT_DURATION: Span = Span::from_ms(200);
/// Round trips after which start-up's queue counts as drained.
///
/// Source: BBR draft, 5.3.2.
const DRAIN_ROUNDS: u64 = 3;

impl Cycle {
    pub(super) fn new() -> Cycle {
        Cycle { up_acked_per_segment: u64::MAX, ..Cycle::default() }
    }
}

impl Bbr {
    /// Source: BBR draft, 5.5.10.2, `IsInflightTooHigh`.
    pub(super) fn is_too_high(&self, lost: Bytes, sent_into: Bytes) -> bool {
        if self.sack { lost.count() as f64 > sent_into.count() as f64 * LOSS_THRESHOLD } else { lost > Bytes::ZERO }
    }

    /// Source: BBR draft, 5.3.1.1 and 5.3.1.3, `CheckStartupHighLoss`, of which it gives the conditions in words.
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        if !self.full_pipe.is_reached && self.repairs {
            let too_much = self.is_too_high(sample.lost, sample.sent_into);
            let in_a_round = self.model.loss_round_starts && self.lost_ranges >= STARTUP_FULL_LOSS_COUNT && too_much;
            if in_a_round || (!self.sack && sample.newly_lost > Bytes::ZERO) {
                self.end_startup();
            }
        }
        if self.model.loss_round_starts {
            self.lost_ranges = 0;
        }
        if self.state == State::Startup && self.full_pipe.is_reached {
            (self.state, self.drain_start) = (State::Drain, self.model.round.count);
        }
    }

    /// Losses show that the pipe is full.
    pub(super) fn end_startup(&mut self) {
        self.note_end_of_state();
        self.full_pipe.is_reached = true;
        self.model.inflight_longterm = self.bdp().max(self.model.inflight_latest());
    }

    /// Source: BBR draft, 5.3.2.
    pub(super) fn check_drain_done(&mut self, now: Time, sample: &Sample) {
        let is_drained = || {
            sample.in_flight.count() <= self.inflight(self.model.bw(), 1.0)
                || self.model.round.count > self.drain_start + DRAIN_ROUNDS
        };
        if self.state == State::Drain && is_drained() {
            self.start_down(now);
        }
    }

    /// Source: BBR draft, 5.3.3.9, `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, now: Time, sample: &Sample) {
        if !self.full_pipe.is_reached || self.adapt_longterm(sample) {
            return;
        }
        match self.state {
            State::ProbeBwDown => {
                if self.is_time_to_probe(now) {
                    self.start_refill();
                } else if self.is_time_to_cruise(sample) {
                    self.state = State::ProbeBwCruise;
                }
            }
            State::ProbeBwCruise => {
                if self.is_time_to_probe(now) {
                    self.start_refill();
                }
            }
            State::ProbeBwRefill => {
                if self.model.round.starts {
                    self.cycle.is_probe_sample = true;
                    self.start_up(sample);
                }
            }
            State::ProbeBwUp => {
                if self.is_time_to_go_down(sample) {
                    self.cycle.prev_too_high = false;
                    self.start_down(now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// Follows what acknowledgements report, and raises the volume that losses allow; whether it changed the state.
    ///
    /// Source: BBR draft, 5.3.3.9, `AdaptLongTermModel`.
    fn adapt_longterm(&mut self, sample: &Sample) -> bool {
        let starts = self.model.round.starts;
        if self.cycle.phase == AckPhase::ProbeStarting && starts {
            self.cycle.phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.phase == AckPhase::ProbeStopping && starts {
            self.cycle.is_probe_sample = false;
            self.cycle.phase = AckPhase::Init;
            if self.is_in_probe_bw() && !sample.is_app_limited {
                self.model.advance_max_bw();
            }
            if self.is_in_probe_bw() && self.cycle.prev_precautionary && !self.cycle.prev_too_high {
                self.start_refill();
                return true;
            }
        }
        let longterm = self.model.inflight_longterm;
        if !self.is_too_high(sample.lost, sample.sent_into) && longterm != UNBOUNDED {
            self.model.inflight_longterm = longterm.max(sample.sent_into.count());
            if self.state == State::ProbeBwUp {
                self.probe_volume(sample);
            }
        }
        false
    }

    /// Source: BBR draft, 5.3.3.9, `ProbeInflightLongtermUpward`.
    fn probe_volume(&mut self, sample: &Sample) {
        if !self.is_window_limited() || self.cwnd < self.model.inflight_longterm {
            return;
        }
        self.cycle.up_acked += sample.newly_delivered.count();
        let steps = self.cycle.up_acked / self.cycle.up_acked_per_segment;
        self.cycle.up_acked -= steps * self.cycle.up_acked_per_segment;
        self.model.inflight_longterm += steps * self.segment;
        if self.model.round.starts {
            self.raise_slope();
        }
    }

    /// Source: BBR draft, 5.3.3.9, `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self) {
        self.cycle.up_acked_per_segment = (self.cwnd >> self.cycle.up_rounds).max(self.segment);
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
    }

    /// Whether the window was used up within the last round trip.
    fn is_window_limited(&self) -> bool {
        self.window_limited.contains(&true)
    }

    /// Source: BBR draft, 5.3.3.8.3.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let rounds = (self.target_inflight() / self.segment).min(MAX_ROUNDS);
        now > self.cycle.started + self.cycle.wait || self.cycle.rounds_since_up >= rounds
    }

    /// Source: BBR draft, 5.3.3.9, `IsTimeToCruise`.
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        let in_flight = sample.in_flight.count();
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.model.max_bw(), 1.0)
    }

    /// Source: BBR draft, 5.3.3.9, `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        let longterm = self.model.inflight_longterm;
        if self.cycle.prev_too_high && sample.in_flight.count() >= longterm {
            self.cycle.prev_precautionary = true;
            return true;
        }
        if self.is_window_limited() && self.cwnd >= longterm {
            self.full_pipe.reset(sample.rate().unwrap_or_default());
            return false;
        }
        self.full_pipe.is_reached_now
    }

    /// Source: BBR draft, 5.3.3.9, `StartProbeBW_DOWN`, and 5.3.3.8.3, `PickProbeWait`.
    pub(super) fn start_down(&mut self, now: Time) {
        self.model.reset_congestion();
        self.cycle.up_acked_per_segment = u64::MAX;
        self.cycle.rounds_since_up = self.chance.below(2);
        let random = (RANDOM_WAIT.ps() as f64 * self.chance.open_unit()) as u64;
        self.cycle.wait = LEAST_WAIT + Span::from_ps(random);
        self.cycle.started = now;
        self.cycle.phase = AckPhase::ProbeStopping;
        self.model.start_round();
        self.state = State::ProbeBwDown;
    }

    /// Source: BBR draft, 5.3.3.9, `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self) {
        self.model.reset_shortterm();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.prev_precautionary = false;
        self.cycle.phase = AckPhase::Refilling;
        self.model.start_round();
        self.state = State::ProbeBwRefill;
    }

    /// Source: BBR draft, 5.3.3.9, `StartProbeBW_UP`.
    fn start_up(&mut self, sample: &Sample) {
        self.cycle.phase = AckPhase::ProbeStarting;
        self.model.start_round();
        self.full_pipe.reset(sample.rate().unwrap_or_default());
        self.state = State::ProbeBwUp;
        self.raise_slope();
    }

    /// Losses show that a probe had too much in flight: `inflight`, if that was not little for want of data.
    ///
    /// Source: BBR draft, 5.5.10.2, `HandleInflightTooHigh`.
    pub(super) fn on_inflight_too_high(&mut self, now: Time, inflight: Option<u64>) {
        self.cycle.prev_too_high = true;
        self.cycle.is_probe_sample = false;
        if let Some(inflight) = inflight {
            self.model.inflight_longterm = inflight.max((self.target_inflight() as f64 * BETA) as u64);
        }
        if self.state == State::ProbeBwUp {
            self.note_end_of_state();
            self.start_down(now);
        }
    }

    /// Source: BBR draft, 5.3.4.3, `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, now: Time, sample: &Sample, has_expired: bool) {
        if self.state != State::ProbeRtt && has_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done = None;
            self.cycle.phase = AckPhase::ProbeStopping;
            self.model.start_round();
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(now, sample);
        }
        if sample.delivered > Bytes::ZERO {
            self.idle_restart = false;
        }
    }

    /// Source: BBR draft, 5.3.4.3, `HandleProbeRTT`.
    fn probe_rtt(&mut self, now: Time, sample: &Sample) {
        if self.probe_rtt_done.is_none() {
            if sample.in_flight.count() <= self.probe_rtt_cwnd() {
                self.probe_rtt_done = Some(now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.model.start_round();
            }
            return;
        }
        self.probe_rtt_round_done |= self.model.round.starts;
        if self.probe_rtt_round_done {
            self.check_probe_rtt_done(now);
        }
    }

    /// Source: BBR draft, 5.3.4.3, `CheckProbeRTTDone`, and 5.3.4.4.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.model.probe_rtt_min_at = now;
        self.restore_cwnd();
        self.model.reset_shortterm();
        if self.full_pipe.is_reached {
            self.start_down(now);
            self.state = State::ProbeBwCruise;
        } else {
            self.state = State::Startup;
        }
    }
}
