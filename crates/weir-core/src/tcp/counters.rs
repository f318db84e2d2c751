//! What a connection counts, in the words of netstat where it has them.

use crate::row;

row! {
    /// Counts of a sender.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct SenderCounters {
        /// Segments with payload sent, retransmissions included.
        pub segments: u64 => sent_segments,
        /// Payload sent, retransmissions included.
        pub bytes: u64 => sent_bytes,
        /// Bytes acknowledged in order.
        pub acked_bytes: u64,
        /// Segments that arrived.
        pub acks: u64 => received_acks,
        /// Samples of the round-trip time.
        pub rtt_samples: u64,
        /// Segments sent again, for whatever reason (RetransSegs): the sum of the next five and of `probe_retransmits`.
        pub retransmits: u64,
        /// In a recovery, counted as lost (TCPFastRetrans).
        pub fast_retransmits: u64,
        /// In a recovery before counted as lost, as there was nothing new to send (TCPForwardRetrans).
        pub forward_retransmits: u64,
        /// After a timeout, beyond its first segment (TCPSlowStartRetrans).
        pub slow_start_retransmits: u64,
        /// By a timeout: the first segment that is not acknowledged, or the SYN.
        pub timeout_retransmits: u64,
        /// The last segment of a window, in a recovery, to bring an acknowledgement (RFC 6675, rule 4).
        pub rescue_retransmits: u64,
        /// Retransmissions that were lost again.
        pub lost_retransmits: u64,
        /// Retransmission timeouts (TCPTimeouts).
        pub timeouts: u64,
        /// Recoveries that a timeout ended (TCPSackRecoveryFail, TCPRenoRecoveryFail).
        pub recovery_failures: u64,
        /// Fast recoveries (TCPSackRecovery, TCPRenoRecovery).
        pub recoveries: u64,
        /// Recoveries and timeouts after which nothing turned out to be lost (RFC 3522).
        pub spurious_recoveries: u64,
        /// Reductions of the window because of marks.
        pub ecn_reductions: u64,
        /// Acknowledgements refused for their old time stamp (PAWSEstab).
        pub paws_rejects: u64 => paws_rejected_acks,
        /// Acknowledgements without data that acknowledge nothing new and leave the window as it is.
        pub duplicate_acks: u64,
        /// Bytes that the receiver reported as marked.
        pub marked_bytes: u64,
        /// Segments that the receiver reported as marked, if it counts them (TCPDeliveredCE).
        pub marked_segments: u64,
        /// How many segments were sent again once, twice, ..., up to seven times, and more often.
        pub retransmitted_times: [u64; 8],
        /// Probes of the tail (TCPLossProbes).
        pub loss_probes: u64,
        /// Probes of the tail that sent the last segment again.
        pub probe_retransmits: u64,
        /// Losses that a probe of the tail repaired (TCPLossProbeRecovery).
        pub loss_probe_recoveries: u64,
        /// Segments that the receiver reported as duplicates (TCPDSACKRecv).
        pub duplicates_told: u64,
        /// Probes of a closed window (TCPWinProbe).
        pub window_probes: u64,
    }
}

row! {
    /// Counts of a receiver.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct ReceiverCounters {
        /// Segments that arrived at the receiver with data, SYN or FIN.
        pub segments: u64 => received_segments,
        /// Bytes delivered in order to the receiving application.
        pub delivered_bytes: u64,
        /// Acknowledgements that the receiver sent.
        pub acks: u64,
        /// Of its segments, those that arrived before one that they follow.
        pub out_of_order: u64 => out_of_order_segments,
        /// Of its segments, those that brought nothing new.
        pub duplicates: u64 => duplicate_segments,
        /// Of its segments, those refused because they lie beyond the window.
        pub beyond_window: u64 => beyond_window_segments,
        /// Of its segments, those refused for their old time stamp (PAWSEstab).
        pub paws_rejects: u64 => paws_rejected_segments,
        /// Of its segments, those that met congestion on the way.
        pub ecn_marks: u64,
        /// Of its acknowledgements, those that had been held back for long enough.
        pub delayed_acks: u64,
        /// Of its acknowledgements, those sent because a closed window could be opened.
        pub window_updates: u64,
        /// How often the receiver closed the window (TCPToZeroWindowAdv).
        pub window_closures: u64,
    }
}
