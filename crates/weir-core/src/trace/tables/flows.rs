//! The table of flows.

use super::super::analysis::Connection;
use super::super::counts::Counts;
use super::each_side;
use crate::columns::Table;
use crate::table;

/// One row for each direction.
pub(super) fn flows(connections: &[Connection]) -> Table {
    let counts = each_side(connections).map(|(_, _, side)| {
        let [more, again] = side.joined.more();
        let Counts { segments, retransmitted_segments, .. } = side.counts;
        (
            [],
            Counts { segments: segments + more, retransmitted_segments: retransmitted_segments + again, ..side.counts },
        )
    });
    let mut flows = table!("flows", "A direction of a connection: its number times two, and one more for the way back.": each_side(connections) => |(flow, connection, side)|
        flow: U32 = flow,
        connection: U32 = flow / 2,
        protocol: U32 = u32::from(connection.key.protocol),
        from: Text = ends(connection, flow % 2).0,
        to: Text = ends(connection, flow % 2).1,
        first_ps: MaybeU64 = side.first_ps,
        last_ps: MaybeU64 = side.first_ps.map(|_| side.last_ps),
        first_data_ps: MaybeU64 = side.first_data_ps,
        last_data_ps: MaybeU64 = side.last_data_ps,
        window_max_bytes: MaybeU64 = side.tcp.as_ref().and_then(|sender| sender.room.top()),
        growing_ps: U64 = side.tcp.as_ref().map_or(0, |sender| sender.rounds.growing_ps),
        gap_min_ps: MaybeU64 = side.gap_range_ps.map(|(least, _)| least),
        gap_max_ps: MaybeU64 = side.gap_range_ps.map(|(_, most)| most),
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
    );
    flows.columns.extend(Table::new("flows", [], counts).columns);
    flows
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
