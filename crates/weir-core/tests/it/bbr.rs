//! BBR over a line with a queue, against what its draft says that it does.

use proptest::prelude::*;
use weir_core::cc::{self, CongestionControl, Pace};
use weir_core::path::spec::RateSpec;
use weir_core::path::{LineSpec, LossModel};
use weir_core::spec::Limit;
use weir_core::tcp::{Config, EcnConfig, EcnSupport, Phase, Sender};
use weir_core::units::{Bytes, Span, Time};

use crate::tcp_line::{
    FRAME, Network, RTT, SEGMENT, Seen, at, bandwidth, config, goodput_share, line, mbit, nothing, queueing, stage,
    states,
};

#[test]
fn a_clean_path_is_full_while_its_queue_is_nearly_empty() {
    // The queue holds four times what the path does: a loss-based controller would fill it.
    let bdp = (mbit(100) * RTT).count();
    let mut network = Network::new(&[config(cc::Config::bbr())], &line(mbit(100), 4 * bdp), queueing);
    network.bulk(&[Time::ZERO], at(3_000));
    let before = network.delivered()[0];
    network.run(at(33_000));
    let share = goodput_share(network.delivered()[0] - before, mbit(100), Span::from_ms(30_000));
    // 1 % below the rate by the pacing margin, 2 % for probing the round-trip time (5.3.4.2).
    assert!(share > 0.95 && share <= 1.0, "{share}");
    let mean = network.seen.queueing.iter().sum::<f64>() / network.seen.queueing.len() as f64;
    assert!(mean < 0.1 * RTT.as_secs_f64(), "{mean} s of queueing on average");
    let most = network.seen.queueing.iter().copied().fold(0.0, f64::max);
    assert!(most < 1.0 * RTT.as_secs_f64(), "{most} s of queueing at most");
    assert_eq!(network.ends[0].0.counters().retransmits, 0);
}

#[test]
fn losses_at_random_cost_little_where_reno_loses_nearly_all() {
    let lossy = LineSpec { loss: LossModel::Random { probability: 0.01 }, ..line(mbit(50), 250_000) };
    let share = |control| {
        let mut network = Network::new(&[config(control)], &lossy, nothing);
        network.bulk(&[Time::ZERO], at(30_000));
        goodput_share(network.delivered()[0], mbit(50), Span::from_ms(30_000))
    };
    let (model, reno) = (share(cc::Config::bbr()), share(cc::Config::reno()));
    // Reno carries sqrt(3/2) / sqrt(p) segments per round trip (Mathis 1997).
    assert!(reno < 0.09, "{reno}");
    assert!(model > 0.75 && model > 8.0 * reno, "{model} beside {reno}");
}

#[test]
fn two_connections_that_start_apart_share_the_line() {
    let both = [config(cc::Config::bbr()), config(cc::Config::bbr())];
    let mut network = Network::new(&both, &line(mbit(50), 500_000), nothing);
    network.bulk(&[Time::ZERO, at(5_000)], at(30_000));
    let before = network.delivered();
    network.run(at(90_000));
    let rates: Vec<f64> = network.delivered().iter().zip(before).map(|(after, before)| after - before).collect();
    let sum: f64 = rates.iter().sum();
    let jain = sum * sum / (2.0 * rates.iter().map(|rate| rate * rate).sum::<f64>());
    assert!(jain > 0.95, "{rates:?}");
    assert!(goodput_share(sum, mbit(50), Span::from_ms(60_000)) > 0.94, "{rates:?}");
}

#[test]
fn the_states_come_in_the_order_of_the_draft() {
    let mut network = Network::new(&[config(cc::Config::bbr())], &line(mbit(50), 1_000_000), states);
    network.bulk(&[Time::ZERO], at(30_000));
    let seen = &network.seen.states;
    let order: Vec<&str> = seen.iter().map(|state| state.0).collect();
    // Where it ends to drain, there is nothing left to: the same acknowledgement leads on to cruise.
    assert_eq!(order[..6], ["startup", "drain", "probe-bw-cruise", "probe-bw-refill", "probe-bw-up", "probe-bw-down"]);
    for pair in order.windows(2) {
        let follows = match pair[0] {
            "startup" => pair[1] == "drain",
            "drain" => matches!(pair[1], "probe-bw-down" | "probe-bw-cruise"),
            "probe-bw-down" => matches!(pair[1], "probe-bw-cruise" | "probe-bw-refill" | "probe-rtt"),
            "probe-bw-cruise" => matches!(pair[1], "probe-bw-refill" | "probe-rtt"),
            "probe-bw-refill" => matches!(pair[1], "probe-bw-up" | "probe-rtt"),
            "probe-bw-up" => matches!(pair[1], "probe-bw-down" | "probe-rtt"),
            "probe-rtt" => pair[1] == "probe-bw-cruise",
            other => panic!("{other}"),
        };
        assert!(follows, "{pair:?}");
    }
    // The SYN and five doublings, from 10 segments to the 172 of the path, take 40 ms each; then the window of twice that
    // fills the queue, and round trips take up to 80 ms: one that still sees growth, three that see none, and a part.
    assert!(seen[1].1 < at(6 * 40 + 5 * 80), "{:?}", seen[1]);
    // Bandwidth is left alone for 2 to 3 s, or 62 round trips, which take 2.5 s here, and a round trip until it is noticed.
    let mut begun = None;
    let mut waits = vec![];
    for &(state, since) in seen {
        match (state, begun) {
            ("probe-bw-down" | "probe-bw-cruise", None) => begun = Some(since),
            ("probe-bw-refill", Some(begun)) => waits.push((since - begun).as_secs_f64()),
            _ => {}
        }
        begun = begun.filter(|_| matches!(state, "probe-bw-down" | "probe-bw-cruise"));
    }
    assert!(waits.len() >= 6 && waits.iter().all(|wait| (2.0..3.05).contains(wait)), "{waits:?}");
    // The round-trip time is probed when its least value is 5 s old (5.3.4.1), for 200 ms and a round trip.
    let probes: Vec<(Time, Span)> = seen
        .windows(2)
        .filter(|pair| pair[0].0 == "probe-rtt")
        .map(|pair| (pair[0].1, pair[1].1 - pair[0].1))
        .collect();
    assert!((4..=6).contains(&probes.len()), "{probes:?}");
    for pair in probes.windows(2) {
        let between = (pair[1].0 - pair[0].0).as_secs_f64();
        assert!((5.0..10.5).contains(&between), "{between} s between two probes");
    }
    for (_, long) in probes {
        assert!(long >= Span::from_ms(200) && long < Span::from_ms(400), "{long}");
    }
    let (flight, bdp) = network.seen.probe_rtt_flight.expect("it was probed");
    assert!(flight.count() <= bdp.count() / 2 + SEGMENT, "{flight} of {bdp} in flight");
}

#[test]
fn a_long_fat_path_is_filled_in_the_round_trips_that_doubling_takes() {
    // 1 Gbit/s and 100 ms: 8237 segments, of which the first round trip has ten.
    let long = Span::from_ms(100);
    let rate = mbit(1_000);
    let bdp = (rate * long).count();
    // In start-up as much may wait as is under way, and what comes in bursts.
    let spec = LineSpec { delay_ps: Span::from_ms(80), ..line(rate, bdp * 5 / 4) };
    let config = Config { receive_buffer_bytes: Bytes::new(1 << 26), ..config(cc::Config::bbr()) };
    let mut network = Network::new(&[config], &spec, states);
    network.bulk(&[Time::ZERO], at(3_000));
    let before = network.delivered()[0];
    network.run(at(8_000));
    // The SYN and ten doublings, of 100 ms each; then the queue holds as much again: a round trip that still sees growth,
    // three that see none, and a part.
    let seen = &network.seen.states;
    assert_eq!((seen[0].0, seen[1].0), ("startup", "drain"));
    assert!(seen[1].1 < at(11 * 100 + 5 * 200), "{:?}", seen[1]);
    let share = goodput_share(network.delivered()[0] - before, rate, Span::from_ms(5_000));
    assert!(share > 0.93, "{share}");
    assert_eq!(network.ends[0].0.counters().retransmits, 0);
}

#[test]
fn an_application_that_sends_little_does_not_lower_the_estimate() {
    let mut network = Network::new(&[config(cc::Config::bbr())], &line(mbit(50), 1_000_000), nothing);
    network.ends[0].0.open(Time::ZERO);
    network.ends[0].0.write(Bytes::new(20_000_000));
    network.run(at(10_000));
    let full = bandwidth(&mut network.ends[0].0);
    let most = mbit(50).bps() as f64 * SEGMENT as f64 / FRAME as f64;
    assert!((full.bps() as f64 / most - 1.0).abs() < 0.02, "{full}");
    // 20 s of 2 segments every 20 ms: 1.2 Mbit/s.
    for step in 0..1000 {
        network.ends[0].0.write(Bytes::new(2 * SEGMENT));
        network.run(at(10_000 + step * 20));
    }
    assert_eq!(bandwidth(&mut network.ends[0].0), full);
    // Then it carries at once as much as before, but for one probe of the round-trip time at half of the rate.
    let before = network.delivered()[0];
    network.ends[0].0.write_endlessly();
    network.run(at(33_000));
    let share = goodput_share(network.delivered()[0] - before, mbit(50), Span::from_ms(3_000));
    assert!(share > 0.93, "{share}");
}

#[test]
fn a_line_that_slows_down_or_speeds_up_is_followed() {
    for (first, then) in [(50, 10), (10, 50)] {
        let rate =
            RateSpec::Steps { steps: vec![(Time::ZERO, mbit(first)), (at(10_000), mbit(then))], period_ps: None };
        let spec = LineSpec { rate, ..line(mbit(50), 500_000) };
        let mut network = Network::new(&[config(cc::Config::bbr())], &spec, nothing);
        network.bulk(&[Time::ZERO], at(20_000));
        let before = network.delivered()[0];
        network.run(at(40_000));
        let share = goodput_share(network.delivered()[0] - before, mbit(then), Span::from_ms(20_000));
        assert!(share > 0.93, "{first} to {then} Mbit/s: {share}");
        let estimate = bandwidth(&mut network.ends[0].0).bps() as f64;
        let most = mbit(then).bps() as f64 * SEGMENT as f64 / FRAME as f64;
        assert!((estimate / most - 1.0).abs() < 0.1, "{first} to {then} Mbit/s: estimated {estimate}");
    }
}

#[test]
fn a_queue_that_holds_little_is_not_overrun_for_long() {
    // A tenth of what the path holds: loss-based controllers halve at each overflow.
    let bdp = (mbit(50) * RTT).count();
    let mut network = Network::new(&[config(cc::Config::bbr())], &line(mbit(50), bdp / 10), nothing);
    network.bulk(&[Time::ZERO], at(30_000));
    let share = goodput_share(network.delivered()[0], mbit(50), Span::from_ms(30_000));
    let counters = network.ends[0].0.counters();
    let lost = counters.retransmits as f64 / counters.segments as f64;
    assert!(share > 0.85, "{share}");
    assert!(lost < 0.02, "{lost} of the segments were lost");
}

#[test]
fn marks_are_obeyed() {
    // Nothing marks on these lines: marks come from the receiver's own echo, so the sender is notified by hand.
    let config = Config { ecn: EcnConfig::both(EcnSupport::Classic), ..config(cc::Config::bbr()) };
    let mut network = Network::new(&[config], &line(mbit(50), 1_000_000), nothing);
    network.bulk(&[Time::ZERO], at(100));
    let sender = &mut network.ends[0].0;
    assert_eq!(stage(sender), "startup");
    let flight = sender.bytes_in_flight();
    let mark = cc::SenderEvent::Congestion { cause: cc::Cause::EcnEcho, flight };
    sender.control().on_event(at(100), &mark);
    network.run(at(200));
    assert_ne!(stage(&mut network.ends[0].0), "startup");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the line: data arrives, the window never falls below a segment, nor below four but after a timeout, the
    /// pacing rate is never zero, and nothing new is sent beyond the window.
    #[test]
    fn window_and_rate_keep_their_bounds(
        mbps in 1u64..200, queue in 2u64..400, loss in 0.0f64..0.2, sack in any::<bool>(), delayed in 1u32..5,
        write in prop::option::of(1u64..100_000),
    ) {
        let spec = LineSpec {
            loss: LossModel::Random { probability: loss },
            limit: Limit::Frames(queue),
            ..line(mbit(mbps), 0)
        };
        let config = Config { sack, delayed_ack_segments: delayed, ..config(cc::Config::bbr()) };
        let observe = |sender: &mut Sender, _: Time, _: &mut Seen| {
            let allowance = sender.control().allowance();
            let least = if sender.phase() == Phase::Loss { 1 } else { 4 };
            assert!(allowance.window.count() >= least * SEGMENT, "{}", allowance.window);
            let Pace::Rate { rate, quantum } = allowance.pace else { panic!("{:?}", allowance.pace) };
            assert!(rate.bps() > 0 && (2 * SEGMENT..=65_536).contains(&quantum.count()), "{rate} {quantum}");
        };
        let mut network = Network::new(&[config], &spec, observe);
        network.ends[0].0.open(Time::ZERO);
        match write {
            Some(bytes) => for step in 0..50 {
                network.ends[0].0.write(Bytes::new(bytes));
                network.run(at(step * 60));
            },
            None => network.ends[0].0.write_endlessly(),
        }
        network.run(at(4_000));
        prop_assert!(network.delivered()[0] > 0.0);
    }
}
