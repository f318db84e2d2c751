//! What a sender shows of itself.

use crate::cc::CongestionControl;
use crate::tcp::counters::SenderCounters;
use crate::tcp::rtt::RttEstimator;
use crate::tcp::sender::{Phase, Sender};
use crate::units::{Bytes, Time};

impl Sender {
    /// Where the last reduction of the window was to end; the largest number before the first.
    pub fn threshold(&self) -> Bytes {
        self.control.allowance().threshold
    }

    /// What is in flight, as far as the sender can know.
    #[inline]
    pub fn bytes_in_flight(&self) -> Bytes {
        self.board.pipe()
    }

    /// What the receiver may still be sent, from the first number that is not acknowledged.
    pub fn receive_window(&self) -> Bytes {
        Bytes::new(self.window_end.saturating_sub(self.board.una()))
    }

    /// What it does about congestion.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Round-trip times and the timeout.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// When the connection was opened.
    pub fn opened(&self) -> Option<Time> {
        Some(self.opened).filter(|&opened| opened != Time::NEVER)
    }

    /// When the receiver answered.
    pub fn established(&self) -> Option<Time> {
        self.established
    }

    /// When everything up to the end of the stream was acknowledged.
    pub fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// Bytes of data acknowledged in order.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.counters.acked_bytes)
    }

    /// Data that the receiver has reported as marked.
    pub fn marked(&self) -> Bytes {
        Bytes::new(self.counters.marked_bytes)
    }

    /// The average share of marks, if the controller keeps one: alpha.
    pub fn marked_share(&self) -> Option<f64> {
        self.control.metrics().marked_share
    }

    /// Segments sent again so far.
    pub fn retransmits(&self) -> u64 {
        self.counters.retransmits
    }

    /// All that was counted; takes time in proportion to the window.
    pub fn counters(&self) -> SenderCounters {
        SenderCounters { retransmitted_times: self.board.resent_times(), ..self.counters }
    }
}
