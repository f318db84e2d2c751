//! Packets that a capture has twice.

use super::super::connection::TIMEOUT_PS;
use super::super::packet::{Packet, Transport};
use super::super::segment::Segment;
use super::{Connection, SHORT_PS};

impl Connection {
    /// Whether a packet of side `from` that was seen at this point `passed_ps` before is a copy, and was not sent again. Where the sender
    /// counts its packets, their identifications show it. Else time does: what was lost is asked for a round trip later at
    /// the earliest. Acknowledgments alike follow each other faster, but say more of what came where they may; a RST answers
    /// each segment.
    pub(super) fn is_copy(&self, from: usize, packet: &Packet, passed_ps: u64) -> bool {
        let ids = self.sides[from].ids;
        if let Some(id) = packet.id.filter(|_| ids.are_apart()) {
            // Numbers of TCP do not come again so soon.
            let is_new = ids.is_new(id).unwrap_or(passed_ps >= SHORT_PS);
            return matches!(packet.transport, Transport::Tcp(_)) || !is_new;
        }
        let (Transport::Tcp(segment), Some(tcp)) = (&packet.transport, &self.tcp) else { return false };
        if segment.has(Segment::RST) || segment.length() == 0 && (segment.cut || tcp.sack != [true; 2]) {
            return false;
        }
        let round_trip = match tcp.round_trip_ps(&self.sides) {
            Some(round_trip) => round_trip,
            None if segment.has(Segment::SYN) => TIMEOUT_PS,
            None => return false,
        };
        passed_ps < round_trip / 2
    }
}

/// Whether a packet has data, or takes a sequence number like data.
pub(super) fn takes_numbers(packet: &Packet) -> bool {
    match packet.transport {
        Transport::Tcp(ref segment) => segment.payload > 0 || segment.has(Segment::SYN) || segment.has(Segment::FIN),
        Transport::Udp { payload, .. } => payload > 0,
        Transport::Other => false,
    }
}
