//! When streams are sent.

use proptest::prelude::*;
use weir_core::rapid::{
    self, Adaptation, Config, Denoising, Estimator, LogWriter, ProbeState, Probing, Ramp, Sample, Schedule, Terms,
};
use weir_core::units::{Span, Time};

use super::{LINK, PACKET, chirp, config, gap, mbps, ramp, smooth, trend};

/// Sends `count` packets as `probing` says over a path of `delay`, acknowledged one by one.
fn drive(probing: &mut Probing, count: u64, delay: Span) -> Vec<Time> {
    let mut under_way = std::collections::VecDeque::new();
    let (mut now, mut departures) = (Time::ZERO, vec![]);
    for number in 1..=count {
        now = probing.due().unwrap_or(now).max(now);
        while under_way.front().is_some_and(|&(_, sent): &(u64, Time)| sent + delay * 2 <= now) {
            let (arrived, sent) = under_way.pop_front().expect("one was seen");
            probing.on_arrival(sent + delay * 2, arrived, sent + delay);
        }
        probing.on_sent(now, number, PACKET);
        under_way.push_back((number, now));
        departures.push(now);
    }
    departures
}

#[test]
fn streams_follow_each_other_without_a_pause_and_the_rate_grows_as_theory_says() {
    let config = Config { ramp: Ramp { clip: true, ..ramp() }, ..config(trend()) };
    let (writer, log) = LogWriter::new(false);
    let mut probing = Probing::new(&config, PACKET, writer);
    let departures = drive(&mut probing, 20_000, Span::from_us(750));
    let log = log.take();
    assert!(log.streams.len() >= 240);
    for pair in log.streams.windows(2) {
        let first_gap = PACKET / pair[1].low;
        let pause = pair[1].started - pair[0].ended;
        assert!(pause <= first_gap + Span::from_ns(2), "{pause} {first_gap}");
        assert_eq!((pair[0].packets, pair[0].fitting, pair[0].spilt), (80, 79, 0));
    }
    // Nothing grows on an empty path: dR/dt = (r_N / R - 1) R / tau, 4.1 R per second at rho 3, where streams are short
    // beside tau and the link's rate is far.
    let when = |rate: f64| {
        let row = log.streams.iter().find(|row| row.rate >= mbps(rate)).expect("a stream");
        row.started.ps() as f64 / 1e12
    };
    let growth = libm::log(3.0) / (when(450.0) - when(150.0));
    assert!((growth / 4.1 - 1.0).abs() < 0.1, "{growth} per second");
    let span = *departures.last().expect("packets") - departures[0];
    assert!(log.streams.iter().all(|row| row.rate.bps() <= 1_000_000_000) && span.as_secs_f64() < 3.0);
}

#[test]
fn losses_end_all_streams_until_they_are_repaired_and_halve_the_rate() {
    let config = Config { rate: Adaptation { initial_bps: mbps(400.0), ..config(trend()).rate }, ..config(trend()) };
    let (writer, log) = LogWriter::new(false);
    let mut probing = Probing::new(&config, PACKET, writer);
    drive(&mut probing, 200, Span::from_ms(50));
    let now = Time::ZERO + Span::from_ms(60);
    probing.on_off(now, ProbeState::OffRecovery);
    probing.on_sent(now, 900, PACKET);
    assert_eq!((probing.due(), probing.rate()), (None, mbps(200.0)));
    probing.on_off(now + Span::from_ms(200), ProbeState::OffTimeout);
    probing.on_on(now + Span::from_ms(203));
    assert_eq!(probing.rate(), mbps(100.0));
    let log = log.take();
    let states: Vec<ProbeState> = log.states.iter().map(|row| row.state).collect();
    assert_eq!(states, [ProbeState::OffRecovery, ProbeState::OffTimeout, ProbeState::On]);
    assert!(log.streams.iter().all(|row| row.outcome == rapid::Outcome::Recovery && row.available_bps.is_none()));
    assert_eq!(log.streams.iter().map(|row| row.packets).sum::<u32>(), 200);
}

#[test]
fn what_is_late_is_made_up_for_or_not_as_the_schedule_says() {
    let due_after = |schedule| {
        let config = Config {
            schedule,
            rate: Adaptation { initial_bps: mbps(100.0), ..config(trend()).rate },
            ..config(trend())
        };
        let mut probing = Probing::new(&config, PACKET, LogWriter::none());
        probing.on_sent(Time::ZERO, 1, PACKET);
        let late = Time::ZERO + Span::from_ms(10);
        (2..=20).for_each(|number| probing.on_sent(late, number, PACKET));
        (late, probing.due().expect("a stream is sent"))
    };
    let (late, due) = due_after(Schedule::Absolute);
    assert!(due < late, "nineteen gaps of 0.18 ms are over");
    let (late, due) = due_after(Schedule::Resync);
    assert!(due > late, "each packet is followed by its gap");
}

proptest! {
    /// Whatever is sent, idle, lost and acknowledged in whatever order: streams come to their end once and in order,
    /// packets are counted once, and the rate stays within its bounds.
    #[test]
    fn every_packet_of_a_stream_is_reported_once(
        steps in prop::collection::vec((0u8..8, 0u64..400), 1..400), packets in 4u32..20, start in prop::option::of(4u32..8),
    ) {
        let rate = Adaptation { start_packets: start, ..config(trend()).rate };
        let config = Config { ramp: Ramp { packets, ..ramp() }, rate, ..config(trend()) };
        let (writer, log) = LogWriter::new(true);
        let mut probing = Probing::new(&config, PACKET, writer);
        let (mut now, mut number, mut acked, mut reported) = (Time::ZERO, 0, 0, 0);
        for (what, size) in steps {
            now += Span::from_us(size);
            match what {
                0..=3 => {
                    now = probing.due().unwrap_or(now).max(now);
                    number += 1;
                    reported += u64::from(probing.state() == ProbeState::On);
                    probing.on_sent(now, number, PACKET);
                }
                4 | 5 => if acked < number {
                    acked += 1 + size % (number - acked);
                    probing.on_arrival(now, acked, now);
                },
                6 => probing.on_idle(now),
                _ => if size > 300 { probing.on_off(now, ProbeState::OffRecovery) } else { probing.on_on(now) },
            }
            prop_assert!(probing.rate() >= config.rate.least_bps && probing.rate() <= config.rate.most_bps);
        }
        probing.on_off(now, ProbeState::OffTimeout);
        let log = log.take();
        prop_assert_eq!(log.packets.len() as u64, reported);
        prop_assert_eq!(log.streams.iter().map(|row| u64::from(row.packets)).sum::<u64>(), reported);
        let mut streams: Vec<u64> = log.streams.iter().map(|row| row.stream).collect();
        streams.sort_unstable();
        prop_assert!(streams.iter().enumerate().all(|(place, &stream)| place as u64 == stream));
        for row in &log.streams {
            prop_assert!(row.samples <= row.packets && row.packets <= packets.max(start.unwrap_or(0)));
            prop_assert_eq!(row.available_bps.is_some(), matches!(row.outcome, rapid::Outcome::Estimated | rapid::Outcome::Passed));
        }
    }

    /// No estimate exceeds the highest rate that was tried, whatever the stamps say.
    #[test]
    fn no_estimate_is_above_what_was_tried(
        gaps in prop::collection::vec((0u64..100_000, 0u64..100_000), 4..100), which in 0usize..5, coarse: bool,
    ) {
        let estimator = [trend(), chirp(), smooth(), gap(Span::from_us(1), 1), Estimator::Fluid { bottleneck_bps: None }][which].clone();
        let denoising = if coarse { Denoising::Batches { within_ps: Span::from_us(6) } } else { Denoising::None {} };
        let config = Config { denoising, ..config(estimator) };
        let (mut sent, mut received) = (Time::ZERO, Time::ZERO + Span::from_ms(1));
        let mut samples = vec![];
        for (send, receive) in gaps {
            sent += Span::from_ns(send);
            received += Span::from_ns(receive);
            samples.push(Sample { due: sent, sent, received, wire: PACKET });
        }
        let high = mbps(900.0);
        if let Some(found) = rapid::estimate(&config, &samples, &Terms { high, link: LINK, backlog_s: 1e-4 }) {
            prop_assert!(found.rate_bps >= 0.0 && found.rate_bps <= high.bps() as f64, "{:?}", found);
            if let Some((start, length)) = found.excursion {
                prop_assert!(length > 0 && ((start + length) as usize) < samples.len() + 1, "{:?}", found);
            }
        }
    }
}
