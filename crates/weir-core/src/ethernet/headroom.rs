//! Headroom: what still comes over a link after its other end was asked to stop.
//!
//! The end that is asked to stop is silent after its longest frame, if it had just begun that. Before, the frame that asks waits for the
//! longest frame in its way, is sent, travels, and is obeyed; and what is on the cable still comes:
//!
//! ```text
//! delay value = 2 x longest frame + frame that asks + 2 x cable + response + other delays
//! ```
//!
//! [`Loop::delay_value`] is that, as the standard has it, at the rate of the link. [`Loop::headroom`] adds one longest frame: a switch that counts frames
//! when they are whole sees that a share is used up by up to a frame too late. Frames count with their framing, so both are upper bounds.
//!
//! Source: IEEE 802.1Qbb, annex O (delay value, as vendors quote it)
//! Source: SONiC, `buffer_headroom_mellanox.lua` (the same terms)

use crate::network::Topology;
use crate::spec::Spec;
use crate::spec::buffers::{Buffer, FlowControl};
use crate::units::{Bytes, Rate, Span};

/// One direction of a link over which data comes, and the way back of what asks its sender to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Rate of the data.
    pub rate: Rate,
    /// Rate of the way back.
    pub back: Rate,
    /// What a frame occupies beyond its size, both ways.
    pub framing: Bytes,
    /// The longest frame of either direction.
    pub longest: Bytes,
    /// The frame that asks.
    pub asks: Bytes,
    /// Propagation, one way.
    pub cable: Span,
    /// From the reception of the frame that asks until no further frame begins.
    pub response: Span,
    /// All other delays: from the change of the buffer until the frame that asks is queued, and from the reception of data until it counts.
    pub others: Span,
}

impl Loop {
    /// That of the link behind port `input`, whose other end is asked to stop.
    pub fn of(spec: &Spec, topology: &Topology, flow_control: &FlowControl, input: u32) -> Loop {
        let (link, back) = (&topology.ports[input as usize], &topology.ports[input as usize ^ 1].link);
        let of_sender = spec.control.responses.iter().find(|response| response.nodes.contains(&link.from));
        Loop {
            rate: link.link.rate_bps,
            back: back.rate_bps,
            framing: link.link.framing_bytes.max(back.framing_bytes),
            longest: flow_control.longest_bytes,
            asks: flow_control.frame_bytes,
            cable: link.link.delay_ps.max(back.delay_ps),
            response: of_sender.map_or(Span::ZERO, |response| response.pause_ps),
            others: flow_control.delay_ps + topology.nodes[link.to as usize].latency_ps,
        }
    }

    /// The delay value of the standard, in bytes on the wire.
    pub fn delay_value(&self) -> Bytes {
        let back = (self.longest + self.asks + self.framing * 2) / self.back;
        let time = back + self.cable * 2 + self.response + self.others;
        let bits = u128::from(time.ps()) * u128::from(self.rate.bps());
        let bytes = bits.div_ceil(8 * 1_000_000_000_000);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX / 2)) + self.longest + self.framing
    }

    /// What a switch needs that counts whole frames.
    pub fn headroom(&self) -> Bytes {
        self.delay_value() + self.longest
    }
}

/// The ports that lead to `node`, in order: its inputs.
pub fn inputs(topology: &Topology, node: u32) -> Vec<u32> {
    (0..).zip(&topology.ports).filter(|(_, port)| port.to == node).map(|(id, _)| id).collect()
}

/// The headroom that each input of `node` needs for a lossless class; none needs any without flow control.
pub fn of_inputs(spec: &Spec, topology: &Topology, buffer: &Buffer, node: u32) -> Vec<Bytes> {
    let needed = |input: u32| {
        let flow_control = buffer.flow_control.as_ref();
        flow_control.map_or(Bytes::ZERO, |how| Loop::of(spec, topology, how, input).headroom())
    };
    inputs(topology, node).into_iter().map(needed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ethernet::pause::length;

    /// A cable of so many metres at 198 000 km/s.
    fn loop_of(gbit_per_s: u64, wire: u64, metres: u64) -> Loop {
        let rate = Rate::from_gbit_per_s(gbit_per_s);
        let response = length(if gbit_per_s == 100 { 394 } else { 905 }, rate);
        let cable = Span::from_ps(metres * 1_000_000 / 198);
        let framing = Bytes::new(20);
        let longest = Bytes::new(wire) - framing;
        let (asks, others) = (Bytes::new(64), Span::ZERO);
        Loop { rate, back: rate, framing, longest, asks, cable, response, others }
    }

    #[test]
    fn delay_values_are_those_worked_out_by_hand() {
        // 2 x frame + 84 B + cable both ways + response of 394 or 905 quanta of 64 B.
        let rows = [
            (100, 1538, 5, 29_007),
            (100, 4178, 100, 46_282),
            (100, 9254, 300, 81_687),
            (400, 1538, 5, 63_605),
            (400, 4178, 100, 116_865),
            (400, 9254, 300, 228_027),
        ];
        for (gbit_per_s, wire, metres, bytes) in rows {
            let value = loop_of(gbit_per_s, wire, metres).delay_value().count();
            assert!(value.abs_diff(bytes) <= 1, "{gbit_per_s}G, {wire} B, {metres} m: {value}");
        }
    }

    #[test]
    fn the_slower_way_back_lets_more_come() {
        let even = loop_of(100, 1538, 5);
        let slow = Loop { back: Rate::from_gbit_per_s(10), ..even };
        // The frame in the way and the one that asks, 1538 + 84 B, take ten times as long.
        assert_eq!((slow.delay_value() - even.delay_value()).count(), 9 * (1538 + 84));
        assert_eq!(slow.headroom() - slow.delay_value(), slow.longest);
    }
}
