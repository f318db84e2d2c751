//! What messages would meet in an empty network.

use weir_core::messages::Message;
use weir_core::spec::messages::{Messages as Spec, Packets};
use weir_core::units::{Bytes, Span};

use crate::fabric::Fabric;
use crate::open::empty_time;
use crate::plan::Plan;

/// What a message would meet alone.
pub(super) struct Empty {
    /// Time until its last byte has arrived.
    pub(super) delivery: Span,
    /// Time from a full segment, or its only one, to its acknowledgement.
    pub(super) round_trip: Span,
}

impl Fabric<'_> {
    /// What `message` would meet in an empty network.
    pub(super) fn empty(&mut self, spec: &Spec, message: Message) -> Empty {
        let none = Empty { delivery: Span::ZERO, round_trip: Span::from_ps(1) };
        let topology = &self.plan.topology;
        let Some(open) = &mut self.open else { return none };
        let (size, answer) = match (&spec.config, &spec.rdma) {
            (Some(config), _) => (config.segment_bytes, config.frame_of(0)),
            (None, Some(config)) => (spec.packets.payload_bytes, config.answer()),
            (None, None) => return none,
        };
        let frame_of = |data: u64| match (&spec.config, &spec.rdma) {
            (Some(config), _) => config.frame_of(data),
            (None, Some(config)) => config.frame_of(spec.packets, Bytes::new(data)),
            (None, None) => Bytes::ZERO,
        };
        let ways = (open.way(topology, message.from, message.to), open.way(topology, message.to, message.from));
        let (Some(there), Some(back)) = ways else { return none };
        let full = frame_of(size.count());
        let (fulls, rest) = (message.bytes.count() / size.count(), message.bytes.count() % size.count());
        let last = if rest == 0 { Bytes::ZERO } else { frame_of(rest) };
        // Congestion controls of numbered packets assume full ones.
        let longest = if fulls == 0 && spec.rdma.is_none() { last } else { full };
        let round = |way: &[u32], frame: Bytes| empty_time(topology, way, frame, 1, Bytes::ZERO).ps();
        Empty {
            delivery: empty_time(topology, &there, full, fulls, last),
            round_trip: Span::from_ps(round(&there, longest) + round(&back, answer)),
        }
    }
}

/// Time until a message of frames alone has arrived over the way of `flow` in an empty network.
pub(super) fn empty_of(plan: &Plan, flow: u32, packets: Packets, bytes: Bytes) -> Span {
    let full = packets.payload_bytes.count();
    let (fulls, rest) = (bytes.count() / full, bytes.count() % full);
    let last = if rest == 0 { Bytes::ZERO } else { Bytes::new(rest) + packets.header_bytes };
    empty_time(&plan.topology, plan.way(flow), packets.payload_bytes + packets.header_bytes, fulls, last)
}
