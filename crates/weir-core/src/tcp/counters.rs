//! What a connection counts, in the words of netstat where it has them.

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct SenderCounters {
    /// Segments with data, SYN or FIN, retransmissions included.
    pub segments: u64,
    /// Bytes of data sent, retransmissions included.
    pub bytes: u64,
    /// Bytes of data acknowledged in order.
    pub acked_bytes: u64,
    /// Segments that arrived.
    pub acks: u64,
    /// Round-trip times measured.
    pub rtt_samples: u64,
    /// RetransSegs: segments sent again, for whatever reason; the sum of the five that follow and of
    /// `probe_retransmits`.
    pub retransmits: u64,
    /// TCPFastRetrans: sent again in recovery because they count as lost.
    pub fast_retransmits: u64,
    /// TCPForwardRetrans: sent again in recovery before they count as lost, as there is nothing new to send.
    pub forward_retransmits: u64,
    /// TCPSlowStartRetrans: sent again after a timeout, but for the first.
    pub slow_start_retransmits: u64,
    /// Sent again by a timeout: the first segment that is not acknowledged, or the SYN.
    pub timeout_retransmits: u64,
    /// The last segment of a window, sent again in recovery to bring an acknowledgement.
    pub rescue_retransmits: u64,
    /// Retransmissions found to be lost again.
    pub lost_retransmits: u64,
    /// TCPTimeouts: expiries of the retransmission timer.
    pub timeouts: u64,
    /// TCPSackRecoveryFail, TCPRenoRecoveryFail: timeouts while losses were being repaired.
    pub recovery_failures: u64,
    /// TCPSackRecovery, TCPRenoRecovery: how often losses began to be repaired.
    pub recoveries: u64,
    /// How often losses were repaired and, as turned out, none of them was one.
    pub spurious_recoveries: u64,
    /// Reductions of the window because of ECN-Echo.
    pub ecn_reductions: u64,
    /// PAWSEstab: acknowledgements refused because of an old time stamp.
    pub paws_rejects: u64,
    /// Acknowledgements that acknowledge nothing new, arrive without data and advertise no other window.
    pub duplicate_acks: u64,
    /// Bytes of data which the receiver reported as marked.
    pub marked_bytes: u64,
    /// TCPDeliveredCE: segments of which the receiver reported so, if it counts them.
    pub marked_segments: u64,
    /// How many segments were sent again once, twice, ..., up to seven times, and more often.
    pub retransmitted_times: [u64; 8],
    /// TCPLossProbes: probes of the tail, new segments and such as were sent again.
    pub loss_probes: u64,
    /// Sent again by a probe of the tail: the last segment.
    pub probe_retransmits: u64,
    /// TCPLossProbeRecovery: probes that, as turned out, repaired a loss.
    pub loss_probe_recoveries: u64,
    /// TCPDSACKRecv: acknowledgements that reported a segment that arrived twice.
    pub duplicates_told: u64,
    /// TCPWinProbe: segments of a byte to a receiver without room.
    pub window_probes: u64,
}

/// Counts of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct ReceiverCounters {
    /// Segments that arrived with data, SYN or FIN.
    pub segments: u64,
    /// Bytes of data delivered in order.
    pub delivered_bytes: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// Segments that arrived before one that they follow.
    pub out_of_order: u64,
    /// Segments that brought nothing new.
    pub duplicates: u64,
    /// Segments refused because they lie beyond the window.
    pub beyond_window: u64,
    /// PAWSEstab: segments refused because of an old time stamp.
    pub paws_rejects: u64,
    /// Segments that met congestion on the way.
    pub ecn_marks: u64,
    /// Acknowledgements sent because they had been held back for long enough.
    pub delayed_acks: u64,
    /// Acknowledgements sent because a window that had closed could be opened.
    pub window_updates: u64,
    /// TCPToZeroWindowAdv: how often the window closed.
    pub window_closures: u64,
}
