//! What holds for any configuration, losses and reading.

use proptest::prelude::*;
use weir_core::cc;
use weir_core::tcp::{Config, EcnConfig, EcnSupport, LossMarking, LostRetransmissions, Reading, Recovery, Segment};
use weir_core::units::{Bytes, Rate, Span, Time};

use super::{Fate, LONG, Pair, SEGMENT, TEN_MS, config};

fn any_config() -> impl Strategy<Value = Config> {
    let recovery =
        prop::sample::select(vec![Recovery::Halving, Recovery::Prr, Recovery::SafePrr, Recovery::RateHalving]);
    let (detect, timeout) = (LostRetransmissions::Detect, LostRetransmissions::Timeout);
    let marking = prop::sample::select(vec![
        (LossMarking::Count, detect),
        (LossMarking::Count, timeout),
        (LossMarking::Fack, detect),
        (LossMarking::Fack, timeout),
        (LossMarking::RackTlp, detect),
        (LossMarking::RackTlp, detect),
    ]);
    let presets = cc::Config::kinds().into_iter().filter_map(|kind| kind.preset);
    let presets: Vec<cc::Config> = presets.filter(|preset| !preset.counts_packets()).collect();
    let control = prop::sample::select(presets);
    let options = (any::<bool>(), any::<bool>(), any_ecn(), any::<bool>(), any::<bool>(), any_reading());
    (recovery, marking, control, options, (1u32..12, 4u64..60, 1u32..5)).prop_map(
        |(recovery, (loss_marking, lost_retransmissions), congestion_control, options, sizes)| Config {
            recovery,
            loss_marking,
            lost_retransmissions,
            congestion_control,
            sack: options.0,
            timestamps: options.1,
            ecn: options.2,
            window_scaling: options.3,
            pacing: options.4,
            reading: options.5,
            initial_window_segments: sizes.0,
            receive_buffer_bytes: Bytes::new(sizes.1 * SEGMENT),
            delayed_ack_segments: sizes.2,
            ..config()
        },
    )
}

fn any_reading() -> impl Strategy<Value = Option<Reading>> {
    let at = |ms| Time::ZERO + Span::from_ms(ms);
    let pauses = prop_oneof![
        Just(vec![]),
        (0u64..300, 1u64..900).prop_map(move |(from, long)| vec![(at(from), at(from + long))])
    ];
    let reading = (1u64..200, pauses)
        .prop_map(|(mbps, pauses_ps)| Reading { rate_bps: Rate::from_bps(mbps * 1_000_000), pauses_ps });
    prop_oneof![2 => Just(None), 1 => reading.prop_map(Some)]
}

pub(crate) fn any_ecn() -> impl Strategy<Value = EcnConfig> {
    let support =
        || prop::sample::select(vec![EcnSupport::None, EcnSupport::Classic, EcnSupport::Dctcp, EcnSupport::Accurate]);
    (support(), support(), any::<bool>()).prop_map(|(sender, receiver, options)| EcnConfig {
        sender,
        receiver,
        options,
    })
}

fn any_fate() -> impl Strategy<Value = Fate> {
    let late = || (0u64..60).prop_map(Span::from_ms);
    prop_oneof![
        6 => Just(Fate::Passes),
        2 => Just(Fate::IsLost),
        1 => Just(Fate::IsMarked),
        1 => late().prop_map(Fate::ComesTwice),
        1 => late().prop_map(Fate::IsLate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever the path does, the stream arrives in order and completely, once each byte, and never more is in flight
    /// than the window allows (checked at every new segment).
    #[test]
    fn any_stream_arrives_whole(
        config in any_config(), fates in prop::collection::vec(any_fate(), 1..400), bytes in 0u64..150_000,
    ) {
        // The pattern is not repeated for ever: a path that always loses delivers nothing.
        let fate = |count: u64, _: &Segment| fates.get(count as usize).copied().unwrap_or(Fate::Passes);
        let mut pair = Pair::transfer(&config, bytes, TEN_MS, fate);
        pair.run(LONG);
        prop_assert_eq!(pair.receiver.delivered(), Bytes::new(bytes));
        prop_assert_eq!(pair.sender.counters().acked_bytes, bytes);
        prop_assert!(pair.sender.finished() >= pair.receiver.finished() && pair.receiver.finished().is_some());
        prop_assert!(pair.sender.poll_timeout() == Time::NEVER, "nothing is left to wait for");
        pair.check_books();
        for pairs in pair.acks.windows(2) {
            prop_assert!(pairs[0].1.ack <= pairs[1].1.ack, "acknowledgements never go back");
        }
        let limit = config.receive_buffer_bytes.count().min(if config.window_scaling { u64::MAX } else { 65_535 });
        let mut acked = 1;
        let mut events: Vec<(Time, bool, Segment)> = pair.acks.iter().map(|&(at, ack)| (at, false, ack)).collect();
        events.extend(pair.sent.iter().map(|&(at, segment)| (at, true, segment)));
        events.sort_by_key(|event| (event.0, event.1));
        for (_, is_data, segment) in events {
            if is_data {
                // A probe of a closed window has one byte.
                prop_assert!(segment.len == 1 || segment.end() <= acked + limit + 1, "beyond the window of the receiver");
            } else {
                acked = segment.ack.max(acked);
            }
        }
    }

    /// Without a queue no measured round trip is longer than that of the path and the receiver's delay, whatever is lost.
    #[test]
    fn no_repair_is_measured_as_a_round_trip(
        config in any_config(), lost in prop::collection::vec(prop::bool::weighted(0.2), 1..300), bytes in 0u64..150_000,
    ) {
        let config = Config { reading: None, ..config };
        let fate = |count: u64, segment: &Segment| {
            let is_lost = segment.len > 0 && lost.get(count as usize).copied().unwrap_or(false);
            if is_lost { Fate::IsLost } else { Fate::Passes }
        };
        let mut pair = Pair::transfer(&config, bytes, TEN_MS, fate);
        let longest = TEN_MS * 2 + config.delayed_ack_timeout_ps;
        for ms in 0..4_000 {
            pair.run(Time::ZERO + Span::from_ms(ms));
            prop_assert!(pair.sender.rtt().srtt().is_none_or(|srtt| srtt <= longest), "{:?}", pair.sender.rtt());
        }
    }

    /// Where data is lost and nothing is ever late or twice, every repair was needed.
    #[test]
    fn no_repair_of_a_loss_is_taken_for_needless(
        config in any_config(), lost in prop::collection::vec(prop::bool::weighted(0.2), 1..300), bytes in 0u64..150_000,
    ) {
        let fate = |count: u64, segment: &Segment| {
            let is_lost = segment.len > 0 && lost.get(count as usize).copied().unwrap_or(false);
            if is_lost { Fate::IsLost } else { Fate::Passes }
        };
        let mut pair = Pair::transfer(&config, bytes, TEN_MS, fate);
        pair.run(LONG);
        prop_assert_eq!(pair.sender.counters().spurious_recoveries, 0);
    }

    #[test]
    fn the_same_fates_give_the_same_segments(fates in prop::collection::vec(any_fate(), 1..200), config in any_config()) {
        let run = || {
            let fate = |count: u64, _: &Segment| fates.get(count as usize).copied().unwrap_or(Fate::Passes);
            let mut pair = Pair::transfer(&config, 100_000, TEN_MS, fate);
            pair.run(LONG);
            (pair.sent, pair.acks)
        };
        prop_assert_eq!(run(), run());
    }
}
