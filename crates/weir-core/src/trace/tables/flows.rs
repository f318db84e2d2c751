//! The table of flows.

use super::super::analysis::Connection;
use super::each_side;
use crate::columns::Table;
use crate::table;

/// One row for each direction.
pub(super) fn flows(connections: &[Connection]) -> Table {
    table!("flows", "A direction of a connection: its number times two, and one more for the way back.": each_side(connections) => |(flow, connection, side)|
        flow: U32 = flow,
        connection: U32 = flow / 2,
        protocol: U32 = u32::from(connection.key.protocol),
        from: Text = ends(connection, flow % 2).0,
        to: Text = ends(connection, flow % 2).1,
        first_ps: MaybeU64 = side.first_ps,
        last_ps: MaybeU64 = side.first_ps.map(|_| side.last_ps),
        first_data_ps: MaybeU64 = side.first_data_ps,
        last_data_ps: MaybeU64 = side.last_data_ps,
        packets: U64 = side.counts.packets,
        frame_bytes: U64 = side.counts.frame_bytes,
        ip_bytes: U64 = side.counts.ip_bytes,
        data_packets: U64 = side.counts.data_packets,
        payload_bytes: U64 = side.counts.payload_bytes,
        new_bytes: U64 = side.counts.new_bytes,
        acked_bytes: U64 = side.counts.acked_bytes,
        retransmitted: U64 = side.counts.retransmitted,
        retransmitted_bytes: U64 = side.counts.retransmitted_bytes,
        retransmitted_after_ack: U64 = side.counts.after_ack,
        timeouts: U64 = side.counts.timeouts,
        spurious: U64 = side.counts.spurious,
        reordered: U64 = side.counts.reordered,
        duplicates: U64 = side.counts.duplicates,
        copies: U64 = side.counts.copies,
        copies_ps: U64 = side.counts.copies_ps,
        elsewhere_packets: U64 = side.counts.elsewhere,
        segments: U64 = side.counts.segments + side.counts.joined.more()[0],
        retransmitted_segments: U64 = side.counts.retransmitted_segments + side.counts.joined.more()[1],
        probes: U64 = side.counts.probes,
        acks: U64 = side.counts.acks,
        dup_acks: U64 = side.counts.dup_acks,
        dsacks_for_this: U64 = side.counts.dsacks,
        zero_windows: U64 = side.counts.zero_windows,
        unseen_bytes: U64 = side.counts.unseen_bytes,
        flight_max_bytes: U64 = side.counts.flight_max,
        idle_ps: U64 = side.counts.idle_ps,
        application_ps: U64 = side.counts.application_ps,
        window_limited_ps: U64 = side.counts.window_limited_ps,
        window_max_bytes: MaybeU64 = side.tcp.as_ref().and_then(|sender| sender.room.top()),
        unread_ps: U64 = side.counts.unread_ps,
        zero_window_ps: U64 = side.counts.zero_window_ps,
        growing_ps: U64 = side.tcp.as_ref().map_or(0, |sender| sender.rounds.growing_ps),
        gap_min_ps: MaybeU64 = side.gap_range_ps.map(|(least, _)| least),
        gap_max_ps: MaybeU64 = side.gap_range_ps.map(|(_, most)| most),
        recoveries: U64 = side.counts.recoveries,
        compressions: U64 = side.counts.compressions,
        compressed_ps: U64 = side.counts.compressed_ps,
        congestion_marks: U64 = side.counts.congestion_marks,
        echoed_marks: U64 = side.counts.echoed_marks,
        cut_packets: U64 = side.counts.cut,
        headless_packets: U64 = side.counts.headless,
        syn: U64 = side.counts.syn,
        fin: U64 = side.counts.fin,
        rst: U64 = side.counts.rst,
        client: MaybeU64 = tcp(connection, |tcp| tcp.client.map(|client| u64::from(client == (flow % 2) as usize))),
        handshake_ps: MaybeU64 = tcp(connection, |tcp| tcp.handshake_ps),
        handshake_there_ps: MaybeU64 = tcp(connection, |tcp| tcp.handshake_there_ps),
        round_trip_ps: MaybeU64 = tcp(connection, |tcp| tcp.round_trip_ps(&connection.sides)),
        whole_trip_ps: MaybeU64 = tcp(connection, |tcp| tcp.whole_trip_ps(&connection.sides)),
        mss_bytes: MaybeU64 = tcp(connection, |tcp| tcp.mss[(flow % 2) as usize].map(u64::from)),
        sack_permitted: MaybeU64 = tcp(connection, |tcp| Some(u64::from(tcp.sack[(flow % 2) as usize]))),
        timestamps: MaybeU64 = tcp(connection, |tcp| Some(u64::from(tcp.timestamps[(flow % 2) as usize]))),
        ended: MaybeU64 = tcp(connection, |_| Some(u64::from(connection.life.ended()))),
        rtts: U64 = side.tcp.as_ref().map_or(0, |sender| sender.rtt.count),
        rtt_sum_ps: F64 = side.tcp.as_ref().map_or(0.0, |sender| sender.rtt.sum_ps as f64),
        rtt_min_ps: MaybeU64 = side.tcp.as_ref().and_then(|sender| sender.rtt.min_ps),
        rtt_max_ps: MaybeU64 = side.tcp.as_ref().filter(|sender| sender.rtt.count > 0).map(|sender| sender.rtt.max_ps),
        aheads: U64 = side.tcp.as_ref().map_or(0, |sender| sender.ahead.count),
        ahead_min_ps: MaybeU64 = side.tcp.as_ref().and_then(|sender| sender.ahead.min_ps),
        behinds: U64 = side.tcp.as_ref().map_or(0, |sender| sender.behind.count),
        behind_min_ps: MaybeU64 = side.tcp.as_ref().and_then(|sender| sender.behind.min_ps),
        echoes: U64 = side.tcp.as_ref().map_or(0, |sender| sender.echo.count),
        echo_min_ps: MaybeU64 = side.tcp.as_ref().and_then(|sender| sender.echo.min_ps),
    )
}

pub(super) fn tcp(
    connection: &Connection,
    fact: impl Fn(&super::super::connection::Tcp) -> Option<u64>,
) -> Option<u64> {
    connection.tcp.as_ref().and_then(fact)
}

fn ends(connection: &Connection, way: u32) -> (String, String) {
    let key = connection.key;
    let name = |(address, port): (super::super::Address, u16)| match key.protocol {
        6 | 17 => address.with_port(port),
        _ => address.to_string(),
    };
    if way == 0 { (name(key.from), name(key.to)) } else { (name(key.to), name(key.from)) }
}
