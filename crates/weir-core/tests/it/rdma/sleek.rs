//! Losses by what has overtaken, and by probes.

use super::*;

/// A window of 10 packets, so that 15 behind a gap tell of a loss.
fn sleek() -> Config {
    Config { detection: SLEEK, window_bytes: Some(Bytes::new(10_000)), ..config(Recovery::Selective) }
}

#[test]
fn sleek_sends_again_what_a_window_and_a_half_has_passed_and_nothing_else() {
    let (mut sender, mut receiver) = ends(&sleek(), 60);
    let (mut numbers, mut now) = (vec![], us(0));
    while sender.finished().is_none() {
        let mut packets = sent(&mut sender, now, usize::MAX);
        let is_again = |packet: &Packet| numbers.contains(&packet.number);
        packets.retain(|packet| is_again(packet) || ![3, 7].contains(&packet.number));
        numbers.extend([3, 7].into_iter().chain(packets.iter().map(|packet| packet.number)));
        now += Span::from_us(10);
        bring(&mut sender, &mut receiver, now, &packets);
    }
    // 10, and twice 8 while two are missing: 19 is the 15th behind 3, and 20 to 25 have left. Then both are sent again, with 8 new ones, and 24 are left.
    assert_eq!((sender.counters().retransmits, sender.counters().timeouts), (2, 0));
    assert_eq!(now, us(10 * (3 + 1 + 3)));
}

/// A packet is not taken for lost as long as 14 have passed it, and is with 15.
#[test]
fn without_losses_sleek_sends_nothing_again_as_long_as_fewer_pass_than_its_threshold() {
    for (most, misleads) in [(14, false), (15, true)] {
        let mut retransmits = 0;
        for seed in 0..50 {
            let mut chance = Seed::new(seed).stream("order");
            // No timeouts, and no silence that is long enough for a probe.
            let (mut sender, mut receiver) = ends(&Config { timeout_ps: Span::from_ms(100), ..sleek() }, 300);
            let (mut under_way, mut now, mut passed): (Vec<Packet>, _, Vec<u64>) = (vec![], us(10), vec![]);
            while sender.finished().is_none() {
                under_way.extend(sent(&mut sender, now, usize::MAX));
                let first = under_way.iter().map(|packet| packet.number).min().expect("something is under way");
                passed.retain(|&number| number > first);
                let place = if passed.len() == most {
                    under_way.iter().position(|packet| packet.number == first).expect("it is")
                } else {
                    chance.below(under_way.len() as u64) as usize
                };
                now += Span::from_us(10);
                let packet = under_way.swap_remove(place);
                passed.push(packet.number);
                bring(&mut sender, &mut receiver, now, &[packet]);
                sender.handle_timeout(now);
            }
            retransmits += sender.counters().retransmits;
        }
        assert_eq!(retransmits > 0, misleads, "{most} pass: {retransmits}");
    }
}

/// Losses halve the window of Reno: what is sent again goes beyond it, what is new does not.
#[test]
fn what_sleek_sends_again_does_not_wait_for_the_window() {
    let config = Config {
        congestion_control: cc::Config::reno(),
        initial_window_bytes: Some(Bytes::new(11_000)),
        window_bytes: Some(Bytes::new(11_000)),
        ..sleek()
    };
    let (mut sender, mut receiver) = ends(&config, 200);
    let mut first = sent(&mut sender, us(0), usize::MAX);
    assert_eq!(first.len(), 11);
    first.retain(|packet| !(2..6).contains(&packet.number));
    bring(&mut sender, &mut receiver, us(10), &first);
    // 6 to 10 are behind the gap, and 16 tell of a loss.
    let second = sent(&mut sender, us(10), usize::MAX);
    bring(&mut sender, &mut receiver, us(20), &second);
    let third = sent(&mut sender, us(20), usize::MAX);
    bring(&mut sender, &mut receiver, us(30), &third[..3]);
    assert_eq!(numbers(&mut sender, us(30), 9), [25, 26, 27]);
    bring(&mut sender, &mut receiver, us(30), &third[3..4]);
    let window = sender.control().allowance().window;
    assert!(sender.flight() + Bytes::new(1000) > window, "{} of {window} are in flight", sender.flight());
    assert_eq!(numbers(&mut sender, us(30), 9), [2, 3, 4, 5]);
}

#[test]
fn a_probe_finds_what_was_lost_at_the_end_long_before_the_timeout() {
    let (mut sender, mut receiver) = ends(&sleek(), 6);
    let packets = sent(&mut sender, us(0), 6);
    bring(&mut sender, &mut receiver, us(10), &packets[..4]);
    assert_eq!(sender.poll_timeout(), us(30), "one round trip and the target");
    sender.handle_timeout(us(30));
    let probe = sender.poll_transmit(us(30), 1).expect("it asks");
    assert_eq!((probe.kind, probe.class, sender.poll_transmit(us(30), 1)), (PacketKind::Probe, 0, None));
    // One that waited as long as the data may says nothing.
    let (mut patient, mut other) = ends(&sleek(), 6);
    let again = sent(&mut patient, us(0), 6);
    bring(&mut patient, &mut other, us(10), &again[..4]);
    patient.handle_timeout(us(30));
    let late = patient.poll_transmit(us(30), 1).expect("it asks, too");
    assert_eq!(bring(&mut patient, &mut other, us(50), &[late]), [PacketKind::Probed]);
    assert_eq!(patient.poll_transmit(us(50), 1), None);

    assert_eq!(bring(&mut sender, &mut receiver, us(40), &[probe]), [PacketKind::Probed]);
    let again = sent(&mut sender, us(40), 9);
    assert_eq!(again.iter().map(|packet| packet.number).collect::<Vec<u64>>(), [4, 5]);
    bring(&mut sender, &mut receiver, us(50), &again);
    assert_eq!((sender.finished(), sender.counters().timeouts), (Some(us(50)), 0));
}

/// NSCC's greatest window follows the least round-trip time.
#[test]
fn a_probe_is_shorter_than_data_and_says_nothing_of_the_empty_path() {
    let nscc = cc::Config::Nscc(cc::NsccConfig::default());
    let config = Config { congestion_control: nscc, window_bytes: None, ..sleek() };
    let (mut sender, mut receiver) = ends(&config, 6);
    let packets = sent(&mut sender, us(0), 6);
    bring(&mut sender, &mut receiver, us(10), &packets[..4]);
    let window = sender.control().allowance().window;
    // 1.5 x 10 us at 10 Gbit/s, of data.
    assert_eq!(window, Bytes::new(17_891));
    sender.handle_timeout(us(30));
    let probe = sender.poll_transmit(us(30), 1).expect("it asks");
    bring(&mut sender, &mut receiver, us(35), &[probe]);
    assert!(sender.control().allowance().window >= window);
}

#[test]
fn a_probe_tells_of_arrivals_whose_answers_were_lost() {
    let (mut sender, mut receiver) = ends(&sleek(), 6);
    let packets = sent(&mut sender, us(0), 6);
    bring(&mut sender, &mut receiver, us(10), &packets[..4]);
    for packet in &packets[4..] {
        receiver.handle(us(11), packet);
        while receiver.poll_transmit().is_some() {}
    }
    sender.handle_timeout(us(30));
    let probe = sender.poll_transmit(us(30), 1).expect("it asks");
    bring(&mut sender, &mut receiver, us(40), &[probe]);
    assert_eq!((sender.finished(), sender.counters().retransmits), (Some(us(40)), 0));
}

#[test]
fn detections_that_make_no_sense_are_refused() {
    let place = |config: Config| config.check().expect_err("it makes no sense").pointer;
    let plain = sleek();
    assert_eq!(plain.check(), Ok(()));
    assert_eq!(place(Config { recovery: Recovery::GoBackN, ..plain.clone() }), "/detection");
    assert_eq!(place(Config { window_bytes: None, ..plain.clone() }), "/detection");
    assert_eq!(
        Config { congestion_control: cc::Config::Nscc(cc::NsccConfig::default()), window_bytes: None, ..plain.clone() }
            .check(),
        Ok(())
    );
    assert_eq!(place(Config { detection: Detection::Overtaken { packets: 0 }, ..plain.clone() }), "/detection/packets");
    let config = SleekConfig { factor: -1.0, ..SleekConfig::default() };
    assert_eq!(place(Config { detection: Detection::Sleek(config), ..plain.clone() }), "/detection/factor");
    let slow = |us| Config { round_trip_ps: Some(Span::from_us(us)), ..plain.clone() };
    assert_eq!((slow(33).check(), place(slow(34))), (Ok(()), "/timeout_ps".to_owned()));
}
