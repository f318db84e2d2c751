//! Tables of TCP connections.

use weir_core::columns::Table;
use weir_core::table;
use weir_core::units::{Bytes, Span, Time};

use super::{Rows, each, flat, numbered};
use crate::totals::{ConnectionInterval, ConnectionTotals, Totals};

pub(super) fn tables(batch: &[Totals]) -> Vec<Table> {
    vec![
        table!("connections", "A TCP connection, from its sender's side unless said otherwise.": each(batch, |run| numbered(&run.connections)) => |(i, (id, row))|
            replicate: U32 = i,
            connection: U32 = id,
            /// Id of the flow of its data.
            flow: U32 = row.flow,
            /// When it was opened; unknown where it was not.
            opened_ps: MaybeU64 = row.opened.map(Time::ps),
            /// When the handshake ended; unknown where it did not.
            established_ps: MaybeU64 = row.established.map(Time::ps),
            /// When all data of the application had been delivered; unknown where it was not.
            delivered_ps: MaybeU64 = row.delivered.map(Time::ps),
            /// When all of it was acknowledged; unknown where it was not.
            acknowledged_ps: MaybeU64 = row.acknowledged.map(Time::ps),
            /// Smoothed round-trip time at the end; unknown without a sample.
            srtt_ps: MaybeU64 = row.srtt.map(Span::ps),
            /// Least round-trip time; unknown without a sample.
            min_rtt_ps: MaybeU64 = row.min_rtt.map(Span::ps),
            /// Bytes delivered in order to the receiving application.
            delivered_bytes: U64 = row.receiver.delivered_bytes,
            /// Bytes acknowledged in order.
            acked_bytes: U64 = row.sender.acked_bytes,
            /// Payload sent, retransmissions included.
            sent_bytes: U64 = row.sender.bytes,
            /// Segments with payload sent, retransmissions included.
            sent_segments: U64 = row.sender.segments,
            /// Segments sent again, for whatever reason (RetransSegs): the sum of the next five and of `probe_retransmits`.
            retransmits: U64 = row.sender.retransmits,
            /// In a recovery, counted as lost (TCPFastRetrans).
            fast_retransmits: U64 = row.sender.fast_retransmits,
            /// In a recovery before counted as lost, as there was nothing new to send (TCPForwardRetrans).
            forward_retransmits: U64 = row.sender.forward_retransmits,
            /// After a timeout, beyond its first segment (TCPSlowStartRetrans).
            slow_start_retransmits: U64 = row.sender.slow_start_retransmits,
            /// By a timeout: the first segment that is not acknowledged, or the SYN.
            timeout_retransmits: U64 = row.sender.timeout_retransmits,
            /// The last segment of a window, in a recovery, to bring an acknowledgement (RFC 6675, rule 4).
            rescue_retransmits: U64 = row.sender.rescue_retransmits,
            /// Probes of the tail that sent the last segment again.
            probe_retransmits: U64 = row.sender.probe_retransmits,
            /// Retransmissions that were lost again.
            lost_retransmits: U64 = row.sender.lost_retransmits,
            /// Probes of the tail (TCPLossProbes).
            loss_probes: U64 = row.sender.loss_probes,
            /// Losses that a probe of the tail repaired (TCPLossProbeRecovery).
            loss_probe_recoveries: U64 = row.sender.loss_probe_recoveries,
            /// Segments that the receiver reported as duplicates (TCPDSACKRecv).
            duplicates_told: U64 = row.sender.duplicates_told,
            /// Probes of a closed window (TCPWinProbe).
            window_probes: U64 = row.sender.window_probes,
            /// Retransmission timeouts.
            timeouts: U64 = row.sender.timeouts,
            /// Fast recoveries.
            recoveries: U64 = row.sender.recoveries,
            /// Recoveries that a timeout ended (TCPSackRecoveryFail).
            recovery_failures: U64 = row.sender.recovery_failures,
            /// Recoveries and timeouts after which nothing turned out to be lost (RFC 3522).
            spurious_recoveries: U64 = row.sender.spurious_recoveries,
            /// Reductions of the window because of marks.
            ecn_reductions: U64 = row.sender.ecn_reductions,
            /// Bytes that the receiver reported as marked.
            marked_bytes: U64 = row.sender.marked_bytes,
            /// Acknowledgements without data that acknowledge nothing new and leave the window as it is.
            duplicate_acks: U64 = row.sender.duplicate_acks,
            /// Samples of the round-trip time.
            rtt_samples: U64 = row.sender.rtt_samples,
            /// Segments that either end refused for their old time stamp.
            paws_rejects: U64 = row.sender.paws_rejects + row.receiver.paws_rejects,
            /// Segments that arrived at the receiver with data, SYN or FIN.
            received_segments: U64 = row.receiver.segments,
            /// Of these, those that arrived before one that they follow.
            out_of_order_segments: U64 = row.receiver.out_of_order,
            /// Of these, those that brought nothing new.
            duplicate_segments: U64 = row.receiver.duplicates,
            /// Of these, those that met congestion on the way.
            ecn_marks: U64 = row.receiver.ecn_marks,
            /// Acknowledgements that the receiver sent.
            acks: U64 = row.receiver.acks,
            /// Of these, those that had been held back for long enough.
            delayed_acks: U64 = row.receiver.delayed_acks,
            /// Of these, those sent because a closed window could be opened.
            window_updates: U64 = row.receiver.window_updates,
            /// How often the receiver closed the window (TCPToZeroWindowAdv).
            window_closures: U64 = row.receiver.window_closures,
        ),
        table!("resent", "Segments of a connection that were sent again equally often.":
            each(batch, |run| numbered(&run.connections).flat_map(|(id, row)| resent(id, row)))
            => |(i, (id, row))|
            replicate: U32 = i,
            connection: U32 = id,
            /// How often; 8 stands for eight times or more.
            times: U32 = row.0,
            /// How many segments.
            segments: U64 = row.1,
        ),
        intervals(&mut each(batch, |run| flat(&run.tcp))),
    ]
}

/// How many segments of a connection were sent again once, twice, ...; the last row: eight times or more often.
fn resent(id: u32, row: &ConnectionTotals) -> impl Iterator<Item = (u32, (u32, u64))> {
    let times = row.sender.retransmitted_times;
    (1..).zip(times).filter(|row| row.1 > 0).map(move |row| (id, row))
}

pub(super) fn intervals(rows: Rows<'_, (u32, &ConnectionInterval)>) -> Table {
    table!("tcp", "An interval of the sender of a recorded connection.": rows => |(i, (id, row))|
        replicate: U32 = i,
        connection: U32 = id,
        t_ps: U64 = row.at.ps(),
        /// Congestion window at the end of the interval.
        window_bytes: U64 = row.window.count(),
        /// Slow-start threshold; unknown before the first reduction.
        threshold_bytes: MaybeU64 = row.threshold.map(Bytes::count),
        /// Smoothed round-trip time; unknown without a sample.
        srtt_ps: MaybeU64 = row.srtt.map(Span::ps),
        /// Bytes in flight.
        flight_bytes: U64 = row.flight.count(),
        /// Bytes acknowledged in order, so far.
        acked_bytes: U64 = row.acked.count(),
        /// Segments sent again, so far.
        retransmits: U64 = row.retransmits,
        /// 1 while losses are repaired, otherwise 0.
        repairs: U32 = row.repairs.into(),
        /// Bytes reported as marked, so far.
        marked_bytes: U64 = row.marked.count(),
        /// Average share of marks of DCTCP and Prague; unknown for others.
        alpha: MaybeF64 = row.alpha,
    )
}
