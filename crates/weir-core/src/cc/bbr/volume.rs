//! The pacing rate and the window that follow from the model.

use crate::cc::bbr::{Bbr, State, UNBOUNDED, scaled};
use crate::tcp::rate::Sample;
use crate::units::{Bytes, Rate, Span};

/// Gain of the pacing rate in start-up: 4 ln 2.
///
/// Source: BBR draft, 2.5.
const STARTUP_PACING_GAIN: f64 = 2.77;
/// Source: BBR draft, 2.5.
const DRAIN_PACING_GAIN: f64 = 0.5;
/// Share of the rate that is paced.
///
/// Source: BBR draft, 2.5, `BBR.PacingMarginPercent`.
const PACING_MARGIN: f64 = 0.99;
/// Source: BBR draft, 2.6.
const DEFAULT_CWND_GAIN: f64 = 2.0;
/// Source: BBR draft, 2.16.2.
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// Share of the volume that is left to others.
///
/// Source: BBR draft, 2.8.
const HEADROOM: f64 = 0.15;
/// Least window in segments.
///
/// Source: BBR draft, 2.8, `BBR.MinPipeCwnd`.
const MIN_PIPE_SEGMENTS: u64 = 4;
/// The round-trip time taken for pacing before there is one.
///
/// Source: BBR draft, 5.6.2.
const NOMINAL_RTT: Span = Span::from_ms(1);
/// What leaves together lasts so long at the pacing rate, and is bounded in bytes and segments.
///
/// Source: BBR draft, 5.6.3.
const QUANTUM_TIME: Span = Span::from_ms(1);
const MOST_QUANTUM: u64 = 64 * 1024;
const LEAST_QUANTUM_SEGMENTS: u64 = 2;
/// Quanta that must be in flight for hosts that take several segments for one.
///
/// Source: BBR draft, 5.5.8.1.
const OFFLOAD_QUANTA: u64 = 3;

impl Bbr {
    /// Source: BBR draft, 5.6.1, the table.
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain => DRAIN_PACING_GAIN,
            State::ProbeBwDown => 0.9,
            State::ProbeBwUp => 1.25,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 1.0,
        }
    }

    /// Source: BBR draft, 5.6.1, the table.
    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeBwUp => 2.25,
            State::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => DEFAULT_CWND_GAIN,
        }
    }

    pub(super) fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp)
    }

    pub(super) fn min_pipe(&self) -> u64 {
        MIN_PIPE_SEGMENTS * self.segment
    }

    /// Source: BBR draft, 5.6.2, `InitPacingRate`.
    pub(super) fn init_pacing(&mut self, rtt: Option<Span>) {
        let nominal = Bytes::new(self.initial_window) / rtt.unwrap_or(NOMINAL_RTT).max(Span::from_ns(1));
        self.has_rtt |= rtt.is_some();
        self.pace(scaled(nominal, STARTUP_PACING_GAIN));
    }

    /// Source: BBR draft, 5.6.2, `SetPacingRateWithGain`.
    pub(super) fn set_pacing(&mut self, gain: f64) {
        let rate = scaled(self.model.bw(), gain * PACING_MARGIN);
        if rate.bps() > 0 && (self.full_pipe.is_reached || rate > self.pacing) {
            self.pace(rate);
        }
    }

    pub(super) fn pace(&mut self, rate: Rate) {
        self.pacing = rate;
        let bps = u128::from(rate.bps()) * u128::from(self.frame) / u128::from(self.segment);
        self.frame_pacing = Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX).max(1));
        self.set_send_quantum();
    }

    /// Source: BBR draft, 5.6.3, `SetSendQuantum`.
    pub(super) fn set_send_quantum(&mut self) {
        let quantum = (self.pacing * QUANTUM_TIME).count();
        self.send_quantum = quantum.min(MOST_QUANTUM).max(LEAST_QUANTUM_SEGMENTS * self.segment);
    }

    /// Source: BBR draft, 5.5.8.1, `UpdateOffloadBudget`.
    pub(super) fn offload_budget(&self) -> u64 {
        OFFLOAD_QUANTA * self.send_quantum
    }

    /// `gain` times what the path holds at `bw`.
    ///
    /// Source: BBR draft, 5.6.4.2, `BDPMultiple`.
    pub(super) fn bdp_multiple(&self, bw: Rate, gain: f64) -> u64 {
        match self.model.min_rtt() {
            Some(min_rtt) => ((bw * min_rtt).count() as f64 * gain) as u64,
            None => self.initial_window,
        }
    }

    /// What the path holds, as estimated.
    pub(super) fn bdp(&self) -> u64 {
        self.bdp_multiple(self.model.bw(), 1.0)
    }

    /// Source: BBR draft, 5.6.4.2, `Inflight` and `QuantizationBudget`.
    pub(super) fn inflight(&self, bw: Rate, gain: f64) -> u64 {
        self.quantized(self.bdp_multiple(bw, gain))
    }

    pub(super) fn quantized(&self, inflight: u64) -> u64 {
        let probe = if self.state == State::ProbeBwUp { 2 * self.segment } else { 0 };
        inflight.max(self.offload_budget()).max(self.min_pipe()) + probe
    }

    /// Source: BBR draft, 5.3.3.8.3.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp().min(self.cwnd)
    }

    /// Source: BBR draft, 5.6.4.5.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(self.model.bw(), PROBE_RTT_CWND_GAIN).max(self.min_pipe())
    }

    /// Source: BBR draft, 5.6.4.6.
    pub(super) fn set_cwnd(&mut self, sample: &Sample) {
        let most = self.quantized(self.bdp_multiple(self.model.bw(), self.cwnd_gain()) + self.model.extra_acked());
        let grown = self.cwnd + sample.newly_delivered.count();
        if self.full_pipe.is_reached {
            self.cwnd = grown.min(most);
        } else if self.cwnd < most || sample.total_delivered.count() < self.initial_window {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd();
    }

    /// Source: BBR draft, 5.6.4.7.
    pub(super) fn bound_cwnd(&mut self) {
        let cap = match self.state {
            State::ProbeRtt | State::ProbeBwCruise => self.inflight_with_headroom(),
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.model.inflight_longterm,
            State::Startup | State::Drain => UNBOUNDED,
        };
        self.cwnd = self.cwnd.min(cap.min(self.model.inflight_shortterm).max(self.min_pipe()));
    }

    /// Source: BBR draft, 5.3.3.9.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let longterm = self.model.inflight_longterm;
        if longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = self.segment.max((longterm as f64 * HEADROOM) as u64);
        longterm.saturating_sub(headroom).max(self.min_pipe())
    }

    /// Source: BBR draft, 5.6.4.4.
    pub(super) fn save_cwnd(&mut self) {
        let is_good = !self.repairs && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_good { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// Source: BBR draft, 5.6.4.4.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
