//! What is counted of a direction.

use crate::row;

row! {
    /// Counts of a direction: columns of the table `flows`.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Counts {
        pub(crate) packets: u64,
        pub(crate) frame_bytes: u64,
        pub(crate) ip_bytes: u64,
        pub(crate) payload_bytes: u64,
        pub(crate) new_bytes: u64,
        pub(crate) data_packets: u64,
        pub(crate) retransmitted: u64,
        pub(crate) retransmitted_bytes: u64,
        pub(crate) after_ack: u64 => retransmitted_after_ack,
        pub(crate) timeouts: u64,
        pub(crate) spurious: u64,
        pub(crate) reordered: u64,
        pub(crate) duplicates: u64,
        /// Packets that came again as they were.
        pub(crate) copies: u64,
        /// Time from packets to their copies, all together.
        pub(crate) copies_ps: u64,
        /// Packets that were captured at another point than the one that is judged.
        pub(crate) elsewhere: u64 => elsewhere_packets,
        /// Packets with data as the wire has them, where a host joins segments, as far as their size is known.
        pub(crate) segments: u64,
        pub(crate) retransmitted_segments: u64,
        /// Time in which the sender had nothing more to send.
        pub(crate) application_ps: u64,
        pub(crate) probes: u64,
        pub(crate) acks: u64,
        pub(crate) dup_acks: u64,
        pub(crate) dsacks: u64 => dsacks_for_this,
        pub(crate) zero_windows: u64,
        pub(crate) unseen_bytes: u64,
        pub(crate) acked_bytes: u64,
        pub(crate) flight_max: u64 => flight_max_bytes,
        pub(crate) idle_ps: u64,
        /// Time after data that left less than a segment of the window that its sender knew of, until the next data.
        pub(crate) window_limited_ps: u64,
        pub(crate) zero_window_ps: u64,
        /// Time in which the window never came back to what it had been: see [`super::edges::Room`].
        pub(crate) unread_ps: u64,
        pub(crate) recoveries: u64,
        pub(crate) compressions: u64,
        pub(crate) compressed_ps: u64,
        pub(crate) congestion_marks: u64,
        /// Acknowledgments that report such marks.
        pub(crate) echoed_marks: u64,
        /// TCP packets of which options were cut off.
        pub(crate) cut: u64 => cut_packets,
        /// TCP packets that were cut off before their flags: their lengths and numbers do not fit.
        pub(crate) headless: u64 => headless_packets,
        pub(crate) syn: u64,
        pub(crate) fin: u64,
        pub(crate) rst: u64,
    }
}
