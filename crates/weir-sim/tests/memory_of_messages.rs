//! The memory of runs of messages in numbered packets: in a process of its own, since what other tests occupy would count as well.
#![cfg(target_os = "linux")]

mod resident;

use weir_core::rdma::{Config, Recovery};
use weir_core::spec::events::{Change, Event};
use weir_core::spec::messages::{Arrivals, Balancing, Messages, Packets};
use weir_core::spec::{Spec, Traffic};
use weir_core::units::{Bytes, Span, Time};
use weir_sim::workloads::incast;

/// Four hosts send a message each to a fifth, which asks the switch by PAUSE to stop, again and again.
fn held(duration_ps: Span) -> Spec {
    let mut spec = incast();
    spec.queues.clear();
    let messages = Messages {
        config: None,
        rdma: Some(Config { recovery: Recovery::Selective, timeout_ps: Span::from_ms(60_000), ..Config::default() }),
        packets: Packets { payload_bytes: Bytes::new(1000), header_bytes: Bytes::new(48) },
        handshake: false,
        balancing: Balancing::Flow { weighted: false },
        arrivals: Arrivals::Listed { list: (0..4).map(|host| (Time::ZERO, host, 4, Bytes::new(1 << 30))).collect() },
        rows: 4,
    };
    spec.traffic = vec![Traffic { messages: Some(messages), ..Traffic::of_sources("messages", vec![]) }];
    let storm = Change::Storm { ports: vec![8], classes: (0..8).collect(), every_ps: Span::from_ms(1) };
    spec.events = vec![Event { at_ps: Time::ZERO, change: storm }];
    spec.run.duration_ps = duration_ps;
    spec
}

/// 32 bytes are the frame, 10 the packet and 4 its end; 8 are its place in the queue of the switch, and 16 what the sender keeps until it
/// is answered. The last two lie in rings that grow to twice their sizes.
#[test]
fn a_packet_that_is_held_by_pause_costs_at_most_110_bytes_with_what_its_sender_keeps_of_it() {
    let costs = resident::costs_of_held(held, [30_000, 45_000, 60_000, 90_000, 120_000]);
    assert!(costs.iter().all(|&(_, bytes)| bytes <= 110.0), "frames held, and bytes for each: {costs:?}");
}
