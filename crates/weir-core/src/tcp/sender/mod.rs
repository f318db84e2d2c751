//! The end of a connection that sends data.

mod acks;
mod closed;
mod late;
mod marks;
mod model;
mod shown;
mod transmit;

use crate::cc::{Cause, CongestionControl, Controller, Controllers, SenderEvent, Setup};
use crate::tcp::config::{Config, LossMarking, LostRetransmissions, Recovery};
use crate::tcp::counters::SenderCounters;
use crate::tcp::doubt::Doubt;
use crate::tcp::is_older;
use crate::tcp::marks::{EcnSupport, Feedback, SenderMarks};
use crate::tcp::rack::Rack;
use crate::tcp::rate::Sampler;
use crate::tcp::reduction::Reduction;
use crate::tcp::rtt::RttEstimator;
use crate::tcp::scoreboard::Scoreboard;
use crate::tcp::segment::{Ecn, Flags, Segment};
use crate::tcp::sender::closed::Persist;
use crate::tcp::stamps::StampReader;
use crate::tcp::timers::Timers;
use crate::units::{Bytes, Time};

/// The sending end: learns what arrives and when time has passed, is asked what to send and when to come back.
///
/// After [`Sender::open`], [`Sender::write`], [`Sender::close`], [`Sender::handle_segment`] and
/// [`Sender::handle_timeout`], ask [`Sender::poll_transmit`] until it gives nothing; then sleep until the earlier of
/// [`Sender::poll_timeout`] and [`Sender::poll_release`].
///
/// Fields stand in the order in which they are needed: a simulator of many connections finds the state of each far away in
/// memory. What every acknowledgement needs comes first, also in the parts.
#[derive(Debug)]
#[repr(C)]
pub struct Sender {
    rules: Rules,
    state: State,
    phase: Phase,
    /// A segment is to be sent again whatever the window says.
    forced: Option<Forced>,
    /// While losses are repaired: whether there were any.
    doubt: Option<Doubt>,
    /// Whether the application writes no more.
    closed: bool,
    /// Whether the last segment was sent again in this recovery.
    rescued: bool,
    /// Whether the controller times each segment by itself, and whether it has a timer.
    times_segments: bool,
    has_timer: bool,
    /// The receiver is to be notified that the window was reduced.
    owes_cwr: bool,
    /// How the receiver reports marks, and what packets say about them.
    feedback: Feedback,
    codepoint: Ecn,
    window_scale: u8,
    ts_recent: u32,
    segment: u64,
    /// The number behind the last byte that the application has written.
    written: u64,
    /// No number from this one on may be sent: the window that the receiver advertised.
    window_end: u64,
    /// The current phase ends when everything below this number is acknowledged.
    recover: u64,
    /// Bytes that have arrived out of order and may let the window grow when they are acknowledged in order.
    uncredited: u64,
    opened: Time,
    rto_at: Time,
    /// When data was sent last.
    last_sent: Time,
    /// When the pacing rate lets the next segment go.
    release: Time,
    /// When a segment that waits for its time may go; [`Time::NEVER`] if none does.
    wake: Time,
    /// Of the segments that leave together: what is left of their quantum, and when it is over at the pacing rate.
    quantum_left: u64,
    quantum_over: Time,
    reduction: Option<Box<Reduction>>,
    stamps: Option<Box<StampReader>>,
    /// For a controller that keeps a model, once the connection is established.
    sampler: Option<Box<Sampler>>,
    rtt: RttEstimator,
    control: Controller,
    board: Scoreboard,

    /// For losses by time.
    rack: Option<Box<Rack>>,
    /// While the receiver has no room.
    persist: Option<Box<Persist>>,
    /// The window that the receiver advertised at first.
    widest: u64,
    /// When something is due before the retransmission timer expires.
    early_at: Time,
    counters: SenderCounters,
    /// The receiver's counters, if it reports them.
    marks: Option<Box<SenderMarks>>,
    duplicates: u64,
    /// The departure for which the timer was set last, and when that runs out.
    timer: (Time, Time),
    timers: Option<Timers>,
    established: Option<Time>,
    finished: Option<Time>,
    /// Shift of windows that the SYN offers, if it does.
    offered_scale: Option<u8>,
    /// What is still sent of endless data when the application ends.
    send_buffer: u64,
}

/// What is asked of the settings again and again.
#[derive(Clone, Copy, Debug)]
struct Rules {
    recovery: Recovery,
    loss_marking: LossMarking,
    lost_retransmissions: LostRetransmissions,
    sack: bool,
    timestamps: bool,
    ecn: EcnSupport,
    slow_start_after_idle: bool,
    paces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    SynSent,
    Established,
}

/// What the sender does about congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Open,
    /// It reduces its window because marks were echoed.
    Reduced,
    /// It repairs losses that selective or duplicate acknowledgements report.
    Recovery,
    /// It starts again after a timeout.
    Loss,
}

/// Why a segment is sent again whatever the window says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forced {
    /// The first lost one, when recovery begins.
    First,
    /// The first one, by a timeout.
    Timeout,
    /// A probe of the tail: something new if there is any, or the last one.
    Probe,
    /// A probe of the window of the receiver.
    Window,
}

/// More than any stream has.
const ENDLESS: u64 = 1 << 62;

impl Sender {
    /// A sender that has nothing to do until it is opened, and sends as `control` lets it.
    pub fn new(config: &Config, control: Controller) -> Sender {
        Sender {
            rules: Rules {
                recovery: config.recovery,
                loss_marking: config.loss_marking,
                lost_retransmissions: config.lost_retransmissions,
                sack: config.sack,
                timestamps: config.timestamps,
                ecn: config.ecn.sender,
                slow_start_after_idle: config.slow_start_after_idle,
                paces: config.pacing,
            },
            state: State::Closed,
            phase: Phase::Open,
            forced: None,
            doubt: None,
            closed: false,
            rescued: false,
            times_segments: control.needs().departures,
            has_timer: control.needs().timer,
            owes_cwr: false,
            feedback: Feedback::None,
            codepoint: Ecn::NotEct,
            window_scale: 0,
            ts_recent: 0,
            segment: config.segment_bytes.count(),
            written: 1,
            window_end: 0,
            recover: 0,
            uncredited: 0,
            opened: Time::NEVER,
            rto_at: Time::NEVER,
            last_sent: Time::NEVER,
            release: Time::ZERO,
            wake: Time::NEVER,
            quantum_left: 0,
            quantum_over: Time::ZERO,
            reduction: None,
            stamps: config.arrival_stamps_ps.map(|unit| Box::new(StampReader::new(unit))),
            sampler: None,
            rtt: RttEstimator::new(config.min_rto_ps),
            control,
            board: Scoreboard::new(),
            rack: config.has_rack().then(|| Box::new(Rack::new(config.delayed_ack_timeout_ps))),
            persist: None,
            widest: 0,
            early_at: Time::NEVER,
            counters: SenderCounters::default(),
            marks: None,
            duplicates: 0,
            timer: (Time::NEVER, Time::NEVER),
            timers: None,
            established: None,
            finished: None,
            offered_scale: config.window_scale(),
            send_buffer: config.send_buffer_bytes.map_or(0, Bytes::count),
        }
    }

    /// The same with a controller of this crate that leaves nothing to chance and writes nothing down.
    ///
    /// # Panics
    /// The controller is not one of this crate.
    pub fn plain(config: &Config) -> Sender {
        let control = Controllers::new().make(Setup::plain(config));
        Sender::new(config, control.expect("a controller of this crate"))
    }

    /// The timers that hold segments back until their time run out as `timers` say.
    pub fn set_timers(&mut self, timers: Timers) {
        self.timers = Some(timers);
    }

    /// What sets the window and the rate.
    pub fn control(&mut self) -> &mut Controller {
        &mut self.control
    }

    /// The segment that [`Sender::poll_transmit`] gave last leaves at `at`, later than it was given.
    pub fn note_departure(&mut self, at: Time) {
        self.report_rarely(at, &SenderEvent::Left { at });
    }

    /// Begins the connection.
    pub fn open(&mut self, now: Time) {
        if self.state == State::Closed {
            (self.state, self.opened) = (State::SynSent, now);
        }
    }

    /// The application writes `bytes`; any amount is held.
    pub fn write(&mut self, bytes: Bytes) {
        self.note_if_app_limited();
        if !self.closed {
            self.written = (self.written + bytes.count()).min(ENDLESS);
        }
    }

    /// The application writes as much as it can from now on.
    pub fn write_endlessly(&mut self) {
        self.write(Bytes::new(ENDLESS));
    }

    /// The application writes no more. Of endless data, what the send buffer holds is still sent.
    pub fn close(&mut self) {
        if self.written >= ENDLESS {
            self.written = self.board.nxt().max(self.board.una() + self.send_buffer).max(1);
        }
        self.closed = true;
    }

    /// A segment from the receiver arrived.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        self.counters.acks += 1;
        match self.state {
            State::SynSent if segment.flags.has(Flags::SYN.with(Flags::ACK)) && segment.ack == 1 => {
                self.establish(now, segment);
            }
            State::Established
                if segment.flags.has(Flags::ACK)
                    && (segment.ack <= self.board.nxt() || self.is_of_probe(segment.ack)) =>
            {
                if segment.flags.has(Flags::TIMESTAMPS) && self.stamps.is_none() {
                    if is_older(segment.ts_val, self.ts_recent) {
                        self.counters.paws_rejects += 1;
                        return;
                    }
                    self.ts_recent = segment.ts_val;
                }
                self.take_probe(segment.ack);
                self.on_ack(now, segment);
            }
            _ => {}
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if now >= self.early_at {
            self.on_early(now);
        }
        if self.has_timer && now >= self.control.poll_timeout() {
            self.report_rarely(now, &SenderEvent::Timer);
        }
        if now < self.rto_at {
            return;
        }
        self.counters.timeouts += 1;
        self.rtt.back_off();
        self.rto_at = now + self.rtt.rto();
        self.forced = Some(Forced::Timeout);
        if self.state == State::SynSent {
            return;
        }
        self.note_if_app_limited();
        if self.phase == Phase::Recovery {
            self.counters.recovery_failures += 1;
        }
        // A threshold that was set for these losses is not set again.
        //
        // Source: RFC 5681, 3.1; RFC 6298, 5.
        if matches!(self.phase, Phase::Open | Phase::Reduced) {
            self.report_rarely(now, &SenderEvent::Congestion { cause: Cause::Timeout, flight: self.flight() });
        }
        self.report_rarely(now, &SenderEvent::Collapse);
        self.lose_at_timeout(now);
        self.report_losses(now);
        self.phase = Phase::Loss;
        self.doubt.get_or_insert_default();
        self.recover = self.board.nxt();
        self.reduction = None;
        (self.duplicates, self.uncredited) = (0, 0);
    }

    /// The next segment to send now, if there is one.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        self.wake = Time::NEVER;
        match self.state {
            State::Closed => None,
            State::SynSent => self.syn(now),
            State::Established => {
                let segment = self.next_segment(now);
                if segment.is_none() {
                    self.end_quantum();
                }
                segment
            }
        }
    }

    /// When [`Sender::handle_timeout`] is due; [`Time::NEVER`] if not at all.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        let due = self.rto_at.min(self.early_at);
        if self.has_timer { due.min(self.control.poll_timeout()) } else { due }
    }

    /// When the next segment may go that waits for its time; [`Time::NEVER`] if none does.
    #[inline]
    pub fn poll_release(&self) -> Time {
        self.wake
    }

    /// What may be in flight.
    #[inline]
    pub fn window(&self) -> Bytes {
        match &self.reduction {
            Some(reduction) => reduction.window(),
            None => self.control.window(),
        }
    }

    #[inline]
    fn report(&mut self, now: Time, event: &SenderEvent) {
        self.control.on_event(now, event);
    }

    /// The same, where it does not happen with each segment.
    #[inline(never)]
    fn report_rarely(&mut self, now: Time, event: &SenderEvent) {
        self.report(now, event);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn what_every_acknowledgement_needs_stands_in_the_first_cache_lines() {
        assert_eq!(offset_of!(Sender, rtt), 144);
        assert_eq!(offset_of!(SenderCounters, rtt_samples), 32);
    }
}
