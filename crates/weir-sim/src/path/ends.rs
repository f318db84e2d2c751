//! What sends over a path: streams, applications that turn to one another, echo requests.

use weir_core::path::ProbeSpec;
use weir_core::tcp::{Receiver, Sender};
use weir_core::units::{Span, Time};

use super::{StreamInterval, StreamTotals};

/// A connection with the times at which its ends want to be asked.
pub(super) struct Stream {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) sender_due: Time,
    pub(super) receiver_due: Time,
    /// Choose among transmitters side by side, there and back.
    pub(super) flows: [u64; 2],
    pub(super) totals: StreamTotals,
}

/// The application above the connections.
pub(super) struct Application {
    pub(super) forward: bool,
    pub(super) every: Span,
    /// When all connections were open and it began to write.
    pub(super) began: Option<Time>,
    /// When it ends, and when the receivers' count ends.
    pub(super) stop: Time,
    pub(super) count_until: Time,
    pub(super) counted: bool,
    pub(super) next_interval: Time,
}

pub(super) struct Probe<'a> {
    pub(super) spec: &'a ProbeSpec,
    pub(super) sent: u32,
    pub(super) answered: Vec<bool>,
    /// Requests and replies on their way, copies included.
    pub(super) under_way: u64,
    pub(super) flows: [u64; 2],
}

impl Application {
    pub(super) fn due(&self) -> Time {
        self.next_interval.min(self.stop).min(self.count_until)
    }

    /// The end of an interval, if it lies within the transfer.
    pub(super) fn after(&self, end: Time) -> Time {
        if end <= self.stop { end } else { Time::NEVER }
    }
}

impl Stream {
    pub(super) fn note(&mut self) {
        self.totals.intervals.push(StreamInterval {
            delivered: self.receiver.delivered(),
            retransmits: self.sender.retransmits(),
            window: self.sender.window(),
            flight: self.sender.bytes_in_flight(),
            srtt: self.sender.rtt().srtt(),
        });
    }
}

impl Probe<'_> {
    pub(super) fn due(&self) -> Time {
        if self.sent < self.spec.count { self.sent_at(self.sent) } else { Time::NEVER }
    }

    pub(super) fn sent_at(&self, number: u32) -> Time {
        Time::ZERO + self.spec.every_ps * u64::from(number)
    }

    /// All were sent, and none can be answered any more in time.
    pub(super) fn is_over(&self, now: Time) -> bool {
        let last = self.sent_at(self.spec.count.saturating_sub(1)) + self.spec.timeout_ps;
        self.sent == self.spec.count && (self.under_way == 0 || now > last)
    }
}
