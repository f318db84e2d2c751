//! BBR as hosts run it: segments that leave together, and losses that were none; and beside CUBIC.

use weir_core::cc::{self, CongestionControl};
use weir_core::path::LineSpec;
use weir_core::path::spec::ReorderSpec;
use weir_core::tcp::Config;
use weir_core::units::{Bytes, Span, Time};

use crate::tcp_line::{FRAME, Network, RTT, SEGMENT, at, config, goodput_share, line, mbit, nothing, stage};

#[test]
fn segments_leave_together_for_a_millisecond() {
    // 64 kB at most and two segments at least: 5.6.3 of the draft.
    for (mbps, window) in [(5, 1 << 24), (100, 1 << 24), (1_000, 1 << 26)] {
        let config = Config { receive_buffer_bytes: Bytes::new(window), ..config(cc::Config::bbr()) };
        let bdp = (mbit(mbps) * RTT).count();
        let mut network = Network::new(&[config], &line(mbit(mbps), 4 * bdp), nothing);
        network.bulk(&[Time::ZERO], at(6_000));
        let data = mbps as f64 * 1e6 * SEGMENT as f64 / FRAME as f64;
        let quantum = |gain: f64| (gain * data / 8.0 * 1e-3).clamp(2.0 * SEGMENT as f64, 65_536.0);
        let mut together: Vec<u64> =
            network.seen.quanta.iter().filter(|left| left.0 > at(3_000)).map(|left| left.1).collect();
        together.sort_unstable();
        let (middle, most) = (together[together.len() / 2] as f64, together[together.len() - 1] as f64);
        let whole = |bytes: f64| (bytes / SEGMENT as f64).floor() * SEGMENT as f64;
        assert!(most <= whole(quantum(1.25 * 1.01)), "{mbps} Mbit/s: {most} at most");
        assert!((middle - whole(quantum(0.99))).abs() < 1.0, "{mbps} Mbit/s: {middle}, not {}", quantum(0.99));
        let share = goodput_share(network.delivered()[0], mbit(mbps), Span::from_ms(6_000));
        assert!(share > 0.9, "{mbps} Mbit/s: {share}");
    }
}

#[test]
fn frames_that_others_overtake_cost_next_to_nothing() {
    let reorder = Some(ReorderSpec { probability: 0.01, later_ps: Span::from_ms(5) });
    let late = LineSpec { reorder, ..line(mbit(50), 500_000) };
    for (timestamps, least) in [(false, 0.9), (true, 0.8)] {
        let config = Config { timestamps, ..config(cc::Config::bbr()) };
        let mut network = Network::new(&[config], &late, nothing);
        network.bulk(&[Time::ZERO], at(30_000));
        let share = goodput_share(network.delivered()[0], mbit(50), Span::from_ms(30_000));
        let counters = network.ends[0].0.counters();
        // A hundred segments in flight at least: nearly every round trip has one that is late by twenty.
        assert!(counters.recoveries > 200, "{counters:?}");
        // Nothing is ever lost; but where segments have time stamps, what was sent again and was not needed makes those
        // look old that it overtakes.
        let rejects = network.ends[0].1.counters().paws_rejects;
        assert!(timestamps || rejects == 0);
        let needed = counters.recoveries - counters.spurious_recoveries;
        assert!(needed <= rejects, "{needed} of {} were needed, {rejects} refused", counters.recoveries);
        assert!(share > least, "time stamps {timestamps}: {share}");
    }
}

/// A mark ends a probe as losses do, and can be reported by hand.
fn report_mark(network: &mut Network, now: Time) {
    let sender = &mut network.ends[0].0;
    let flight = sender.bytes_in_flight();
    sender.control().on_event(now, &cc::SenderEvent::Congestion { cause: cc::Cause::EcnEcho, flight });
}

#[test]
fn a_probe_that_losses_ended_begins_again_when_they_were_none() {
    for is_needless in [true, false] {
        let mut network = Network::new(&[config(cc::Config::bbr())], &line(mbit(50), 1_000_000), nothing);
        network.bulk(&[Time::ZERO], at(100));
        assert_eq!(stage(&mut network.ends[0].0), "startup");
        report_mark(&mut network, at(100));
        network.run(at(130));
        assert_ne!(stage(&mut network.ends[0].0), "startup");
        let control = network.ends[0].0.control();
        if is_needless {
            control.on_event(at(130), &cc::SenderEvent::Spurious);
        }
        control.on_event(at(130), &cc::SenderEvent::Repaired);
        assert_eq!(stage(&mut network.ends[0].0) == "startup", is_needless);
        // The next probe for bandwidth.
        let mut now = 130;
        while stage(&mut network.ends[0].0) != "probe-bw-up" {
            now += 1;
            assert!(now < 10_000, "bandwidth is never probed");
            network.run(at(now));
        }
        report_mark(&mut network, at(now));
        assert_eq!(stage(&mut network.ends[0].0), "probe-bw-down");
        let control = network.ends[0].0.control();
        if is_needless {
            control.on_event(at(now), &cc::SenderEvent::Spurious);
        }
        control.on_event(at(now), &cc::SenderEvent::Repaired);
        let expected = if is_needless { "probe-bw-refill" } else { "probe-bw-down" };
        assert_eq!(stage(&mut network.ends[0].0), expected);
    }
}

/// Shares of the line of BBR and of `other` over a minute, where the queue holds `bdps` times what the path does.
fn beside(other: cc::Config, bdps: f64) -> (f64, f64) {
    let bdp = (mbit(50) * RTT).count() as f64;
    let both = [config(cc::Config::bbr()), config(other)];
    let mut network = Network::new(&both, &line(mbit(50), (bdps * bdp) as u64), nothing);
    network.bulk(&[Time::ZERO, Time::ZERO], at(10_000));
    let before = network.delivered();
    network.run(at(70_000));
    let share = |flow: usize| goodput_share(network.delivered()[flow] - before[flow], mbit(50), Span::from_ms(60_000));
    (share(0), share(1))
}

#[test]
fn cubic_takes_more_beside_it_the_more_a_queue_holds() {
    let shares: Vec<(f64, f64)> = [1.0, 2.0, 4.0].into_iter().map(|bdps| beside(cc::Config::cubic(), bdps)).collect();
    for &(model, cubic) in &shares {
        assert!(model > 0.1 && cubic > 0.1 && model + cubic > 0.93, "{shares:?}");
    }
    assert!(shares[0].0 > shares[2].0, "{shares:?}");
}

#[test]
fn neither_starves_the_other_whatever_queues_hold() {
    for (name, other) in [("cubic", cc::Config::cubic()), ("reno", cc::Config::reno())] {
        for bdps in [0.1, 0.5, 1.0, 8.0] {
            let (model, other) = beside(other.clone(), bdps);
            assert!(model > 0.2 && other > 0.2 && model + other > 0.9, "{name}, {bdps}: {model} and {other}");
        }
    }
}
