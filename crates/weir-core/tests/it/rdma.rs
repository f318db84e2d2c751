//! The two ends of a message in numbered packets, joined by hand.

use weir_core::cc::{self, CongestionControl, Controllers, Path, Setup};
use weir_core::rdma::{Config, Credit, Demand, Detection, Packet, PacketKind, Receiver, Recovery, Sender, SleekConfig};
use weir_core::rng::Seed;
use weir_core::spec::messages::Packets;
use weir_core::units::{Bytes, Rate, Span, Time};

const PACKETS: Packets = Packets { payload_bytes: Bytes::new(1000), header_bytes: Bytes::new(48) };
const PATH: Path = Path {
    line_rate: Rate::from_gbit_per_s(10),
    round_trip: Span::from_us(10),
    packet: (Bytes::new(1000), Bytes::new(1048)),
};

const CREDIT: Credit =
    Credit { initial: 1.0, revokes: true, most: 1.5, packets: 4.0, share: 1.0, oversubscription: None };

const SLEEK: Detection = Detection::Sleek(SleekConfig {
    factor: 1.5,
    least_packets: 5,
    most: 1.5,
    target: 1.0,
    probe_after: 3.0,
    probe_again: 5.0,
});

fn config(recovery: Recovery) -> Config {
    Config { recovery, timeout_ps: Span::from_us(100), ..Config::default() }
}

fn ends(config: &Config, packets: u64) -> (Sender, Receiver) {
    let bytes = Bytes::new(1000 * packets);
    let connection = config.connection(PACKETS, &PATH);
    let setup = Setup { path: PATH, ..Setup::plain(&connection) };
    let control = Controllers::new().make(setup).expect("it is built in");
    (
        Sender::new(config, PACKETS, (0, bytes), &PATH, control, None),
        Receiver::new(config, PACKETS, bytes, PATH.product()),
    )
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn numbers(sender: &mut Sender, now: Time, most: usize) -> Vec<u64> {
    let next = || sender.poll_transmit(now, 1).map(|packet| packet.number);
    std::iter::from_fn(next).take(most).collect()
}

fn sent(sender: &mut Sender, now: Time, most: usize) -> Vec<Packet> {
    std::iter::from_fn(|| sender.poll_transmit(now, 1)).take(most).collect()
}

/// Brings what comes to the receiver, and its answers back.
fn bring(sender: &mut Sender, receiver: &mut Receiver, now: Time, packets: &[Packet]) -> Vec<PacketKind> {
    let mut kinds = vec![];
    for packet in packets {
        receiver.handle(now, packet);
        while let Some(answer) = receiver.poll_transmit() {
            kinds.push(answer.kind);
            sender.handle(now, &answer, &[]);
        }
    }
    kinds
}

#[test]
fn go_back_n_sends_again_from_what_is_missing_and_asks_once_for_each_gap() {
    let (mut sender, mut receiver) = ends(&config(Recovery::GoBackN), 10);
    let packets = sent(&mut sender, us(0), 6);
    let kinds = bring(&mut sender, &mut receiver, us(5), &[packets[0], packets[1], packets[3]]);
    assert_eq!(kinds, [PacketKind::Arrived, PacketKind::Arrived, PacketKind::GoBack]);
    assert_eq!(bring(&mut sender, &mut receiver, us(6), &[packets[4], packets[5]]), []);
    assert_eq!(numbers(&mut sender, us(10), 3), [2, 3, 4]);
    assert_eq!(sender.counters().retransmits, 3);
}

#[test]
fn go_back_0_begins_the_message_anew() {
    let (mut sender, mut receiver) = ends(&config(Recovery::GoBackZero), 10);
    let packets = sent(&mut sender, us(0), 6);
    bring(&mut sender, &mut receiver, us(5), &[packets[0], packets[1], packets[3]]);
    let again = sent(&mut sender, us(10), 10);
    assert_eq!(again.iter().map(|packet| packet.number).collect::<Vec<u64>>(), (0..10).collect::<Vec<u64>>());
    bring(&mut sender, &mut receiver, us(20), &again);
    assert_eq!((receiver.finished(), sender.finished()), (Some(us(20)), Some(us(20))));
}

#[test]
fn selective_repeat_sends_what_was_overtaken_or_cut_and_nothing_else() {
    let config = Config { detection: Detection::Overtaken { packets: 2 }, ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 10);
    let mut packets = sent(&mut sender, us(0), 8);
    packets[6].cut(0, false);
    bring(&mut sender, &mut receiver, us(5), &[packets[0], packets[2]]);
    assert_eq!(sender.counters().retransmits, 0);
    // 3 is two behind 1, and the header of 6 has come.
    bring(&mut sender, &mut receiver, us(6), &[packets[3], packets[6], packets[4], packets[5]]);
    assert_eq!(numbers(&mut sender, us(10), 9), [1, 6, 8, 9]);
    assert_eq!((sender.counters().retransmits, sender.counters().cuts), (2, 1));
}

#[test]
fn what_is_not_answered_is_sent_again_after_its_time() {
    for (recovery, again) in [(Recovery::GoBackN, vec![2, 3, 4, 5]), (Recovery::Selective, vec![2, 4])] {
        let (mut sender, mut receiver) = ends(&config(recovery), 6);
        let packets = sent(&mut sender, us(0), 6);
        let come = [packets[0], packets[1], packets[3], packets[5]];
        let come = if recovery == Recovery::GoBackN { &come[..2] } else { &come[..] };
        bring(&mut sender, &mut receiver, us(8), come);
        let due = if recovery == Recovery::GoBackN { us(108) } else { us(100) };
        assert_eq!(sender.poll_timeout(), due, "{recovery:?}");
        sender.handle_timeout(due);
        assert_eq!(numbers(&mut sender, due, 9), again, "{recovery:?}");
        assert_eq!(sender.counters().timeouts, 1);
    }
}

/// Swift counts timeouts in a row, and TIMELY and Swift cut with each.
#[test]
fn packets_of_one_window_that_expire_one_after_the_other_are_one_timeout() {
    let swift = cc::Config::Swift(cc::SwiftConfig::default());
    let config = Config { congestion_control: swift, window_bytes: None, ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 50);
    let first = sent(&mut sender, us(0), 1);
    bring(&mut sender, &mut receiver, us(10), &first);
    let window = |sender: &Sender| sender.control().allowance().window.count();
    let before = window(&sender);
    for round in 1..4 {
        let begin = 1000 * round;
        let lost: usize = (0..8).map(|place| sent(&mut sender, us(begin + place), 1).len()).sum();
        assert!(lost >= 1);
        for place in 0..8 {
            sender.handle_timeout(us(begin + 100 + place));
        }
        assert_eq!((sender.flight(), window(&sender)), (Bytes::ZERO, (before >> round).max(1000)));
    }
}

/// Answers say which of 64 packets have arrived; nothing that arrived is sent again, though holes are farther apart.
#[test]
fn gathered_answers_leave_nothing_out() {
    let config = Config { answer_every_bytes: Bytes::new(4000), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 400);
    let packets = sent(&mut sender, us(0), 400);
    let mut chance = Seed::new(3).stream("order");
    let mut order: Vec<usize> = (0..400).filter(|place| place % 97 != 5).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, chance.below(place as u64 + 1) as usize);
    }
    let come: Vec<Packet> = order.iter().map(|&place| packets[place]).collect();
    bring(&mut sender, &mut receiver, us(50), &come);
    sender.handle_timeout(us(100));
    let left = numbers(&mut sender, us(100), 400);
    let missing: Vec<u64> = (0..400).filter(|number| number % 97 == 5).collect();
    // At most what came after the last answer.
    assert!(missing.iter().all(|number| left.contains(number)) && left.len() < missing.len() + 4, "{left:?}");
}

/// Data, requests, answers and credit are lost, doubled, cut and late; whatever comes first, each packet arrives and its sender knows that.
#[test]
fn everything_arrives_over_a_link_that_loses_doubles_and_cuts() {
    let timeout = Detection::Timeout {};
    for (recovery, detection, credit) in [
        (Recovery::GoBackZero, timeout, None),
        (Recovery::GoBackN, timeout, None),
        (Recovery::Selective, timeout, None),
        (Recovery::Selective, Detection::Overtaken { packets: 3 }, None),
        (Recovery::Selective, Detection::Overtaken { packets: 3 }, Some(CREDIT)),
        (Recovery::Selective, SLEEK, None),
        (Recovery::Selective, SLEEK, Some(CREDIT)),
    ] {
        for seed in 0..30 {
            let mut chance = Seed::new(seed).stream("link");
            let config =
                Config { detection, answer_every_bytes: Bytes::new(4000 * (seed % 2)), credit, ..config(recovery) };
            let (mut sender, mut receiver) = ends(&config, if recovery == Recovery::GoBackZero { 20 } else { 200 });
            let mut now = us(0);
            for _ in 0..20_000 {
                for mut packet in sent(&mut sender, now, 20) {
                    match chance.below(20) {
                        0 => continue,
                        1 if packet.kind == PacketKind::Data => packet.cut(0, true),
                        _ => {}
                    }
                    for _ in 0..=u64::from(chance.below(20) == 0) {
                        receiver.handle(now + Span::from_us(2), &packet);
                    }
                }
                now += Span::from_us(5);
                let granted = (receiver.demand() > Demand::Nothing).then(|| receiver.give_credit(4.0).0);
                for answer in
                    std::iter::from_fn(|| receiver.poll_transmit()).chain(granted.filter(|_| credit.is_some()))
                {
                    if chance.below(20) > 0 {
                        sender.handle(now, &answer, &[]);
                    }
                }
                now = now.max(sender.poll_timeout().min(now + Span::from_us(5)));
                sender.handle_timeout(now);
                if sender.finished().is_some() {
                    break;
                }
            }
            assert!(
                receiver.finished().is_some() && sender.finished().is_some(),
                "{recovery:?} {detection:?} {credit:?} {seed}"
            );
            assert_eq!(
                (sender.flight(), sender.poll_timeout()),
                (Bytes::ZERO, Time::NEVER),
                "{recovery:?} {detection:?} {credit:?} {seed}"
            );
        }
    }
}

#[test]
fn a_sender_spends_its_first_credit_and_then_what_it_is_given() {
    let credit = CREDIT;
    let config = Config { credit: Some(credit), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 100);
    // BDP 12.5 kB, frames of 1048 B.
    let first = sent(&mut sender, us(0), 100);
    assert_eq!(first.len(), 12);
    bring(&mut sender, &mut receiver, us(10), &first);
    // Until it heard from the receiver it asked for what its first credit leaves, a packet at least; then for what it may have ahead.
    assert_eq!(receiver.demand(), Demand::Urgent);
    let (packet, given) = receiver.give_credit(4.0);
    assert_eq!(given, Bytes::new(4096));
    sender.handle(us(12), &packet, &[]);
    let more = sent(&mut sender, us(12), 100);
    assert_eq!(more.iter().map(|packet| packet.number).collect::<Vec<u64>>(), [12, 13, 14, 15]);
    // It asks for 1.5 x 12.5 kB ahead, in units of 256 B, and gets as much again if nobody else wants any.
    bring(&mut sender, &mut receiver, us(20), &more);
    let mut all = [Bytes::ZERO; 2];
    while receiver.demand() != Demand::Nothing {
        let place = usize::from(receiver.demand() == Demand::Idle);
        all[place] += receiver.give_credit(4.0).1;
    }
    assert_eq!(all, [Bytes::new(18_944), Bytes::new(20_480)]);
}

#[test]
fn the_first_credit_counts_in_what_a_sender_asks_for_and_active_ones_share_it() {
    let credit = Credit { initial: 1.0, most: 2.0, ..CREDIT };
    let config = Config { credit: Some(credit), ..config(Recovery::Selective) };
    for (active, asked) in [(1, 13_568), (3, 4608)] {
        let (mut sender, _) = ends(&config, 100);
        // 25 kB ahead; 12.5 kB less a packet are left of the first.
        assert_eq!(sender.poll_transmit(us(0), active).expect("it may").from, asked);
    }
}

#[test]
fn a_cut_payload_brings_a_packet_of_credit_though_nothing_was_asked_for() {
    let credit = Credit { initial: 4.0, most: 1.5, ..CREDIT };
    let config = Config { credit: Some(credit), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 10);
    let mut first = sent(&mut sender, us(0), 10);
    first[9].cut(0, true);
    bring(&mut sender, &mut receiver, us(10), &first[9..]);
    assert_eq!((first[9].from, receiver.demand()), (0, Demand::Urgent));
    assert_eq!(receiver.give_credit(4.0).1, Bytes::ZERO);
    assert_eq!(receiver.demand(), Demand::Idle);
    // Earlier packets asked for one: all of them were sent at once.
    bring(&mut sender, &mut receiver, us(11), &first[..1]);
    assert_eq!(receiver.demand(), Demand::Urgent);
}

#[test]
fn a_sender_without_credit_asks_for_some_when_time_is_up() {
    let credit = Credit { initial: 4.0, most: 1.5, ..CREDIT };
    let config = Config { credit: Some(credit), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 40);
    let first = sent(&mut sender, us(0), 10);
    bring(&mut sender, &mut receiver, us(10), &first[..1]);
    assert_eq!(receiver.demand(), Demand::Urgent);
    assert_eq!(sender.poll_transmit(us(10), 1), None);
    // The nine others were lost, and so is whatever the receiver gives.
    assert_eq!(sender.poll_timeout(), us(100));
    sender.handle_timeout(us(100));
    let next = sender.poll_transmit(us(100), 1).expect("it asks");
    // What its last packet asked for: nothing, as all of them were within the first credit.
    assert_eq!((next.kind, next.number, next.from), (PacketKind::Request, 0, first[9].from));
    assert_eq!(sender.poll_transmit(us(100), 1), None);
}

#[test]
fn a_sender_without_credit_hears_of_arrivals_whose_answers_were_lost() {
    let config = Config { credit: Some(CREDIT), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 16);
    let first = sent(&mut sender, us(0), 100);
    bring(&mut sender, &mut receiver, us(10), &first);
    sender.handle(us(12), &receiver.give_credit(4.0).0, &[]);
    for packet in sent(&mut sender, us(12), 100) {
        receiver.handle(us(20), &packet);
    }
    assert_eq!(receiver.finished(), Some(us(20)));
    while receiver.poll_transmit().is_some() {}
    sender.handle_timeout(us(112));
    let request = sender.poll_transmit(us(112), 1).expect("it has no credit to send again");
    assert_eq!(request.kind, PacketKind::Request);
    bring(&mut sender, &mut receiver, us(120), &[request]);
    assert_eq!((sender.finished(), sender.counters().retransmits), (Some(us(120)), 0));
}

/// Ten packets leave with the first credit; one of the first nine arrives, the others are lost.
fn starving() -> (Sender, Receiver) {
    let credit = Credit { initial: 4.0, most: 1.5, ..CREDIT };
    let (mut sender, mut receiver) = ends(&Config { credit: Some(credit), ..config(Recovery::Selective) }, 10);
    let first = sent(&mut sender, us(0), 10);
    bring(&mut sender, &mut receiver, us(10), &first[..1]);
    (sender, receiver)
}

#[test]
fn a_request_that_was_lost_is_sent_again_as_data_is_and_belongs_to_the_message() {
    let (mut sender, mut receiver) = starving();
    let next = |sender: &mut Sender, at: u64| {
        sender.handle_timeout(us(at));
        sender.poll_transmit(us(at), 1).expect("it asks")
    };
    assert_eq!((next(&mut sender, 100).number, sender.counters().retransmits), (0, 0));
    // Time is up for the request, too: another one is asked, and goes before it.
    let again = next(&mut sender, 200);
    assert_eq!((again.kind, again.number), (PacketKind::Request, 1));
    assert_eq!(bring(&mut sender, &mut receiver, us(210), &[again]), [PacketKind::Heard]);
    while sender.finished().is_none() {
        let (credit, _) = receiver.give_credit(4.0);
        sender.handle(us(220), &credit, &[]);
        let packets = sent(&mut sender, us(220), 20);
        assert!(!packets.is_empty());
        for packet in packets {
            // Data is whole before the first request has been heard.
            assert!(packet.kind == PacketKind::Data || packet.number == 0);
            assert_eq!(sender.finished(), None);
            bring(&mut sender, &mut receiver, us(230), &[packet]);
        }
    }
    assert_eq!(sender.counters().retransmits, 10);
}

#[test]
fn a_request_that_is_sent_again_gives_no_turn_unless_it_asks_for_more() {
    let (mut sender, mut receiver) = starving();
    sender.handle_timeout(us(100));
    let mut request = sender.poll_transmit(us(100), 1).expect("it asks");
    while receiver.demand() != Demand::Nothing {
        receiver.give_credit(4.0);
    }
    for (asks, demand) in [(false, Demand::Nothing), (true, Demand::Urgent)] {
        assert!(request.asks);
        let again = Packet { asks, ..request };
        receiver.handle(us(210), &again);
        assert_eq!(receiver.demand(), demand);
    }
    receiver.give_credit(4.0);
    (request.asks, request.from) = (false, request.from + (1 << 20));
    receiver.handle(us(220), &request);
    assert_eq!(receiver.demand(), Demand::Urgent);
}

#[test]
fn a_sender_with_nothing_in_flight_asks_when_it_has_waited_for_credit_for_a_hundred_timeouts() {
    let (mut sender, mut receiver) = starving();
    sender.handle_timeout(us(100));
    let request = sender.poll_transmit(us(100), 1).expect("it asks");
    bring(&mut sender, &mut receiver, us(110), &[request]);
    assert_eq!((sender.flight(), sender.poll_transmit(us(110), 1)), (Bytes::ZERO, None));
    // Whatever the receiver gives is lost.
    let at = sender.poll_timeout();
    assert!(at >= us(100 + 100 * 100) && at <= us(110 + 100 * 100), "{at}");
    sender.handle_timeout(at);
    let next = sender.poll_transmit(at, 1).map(|packet| (packet.kind, packet.number));
    assert_eq!(next, Some((PacketKind::Request, 1)));
}

#[test]
fn a_sender_with_a_window_asks_once_in_a_round_trip() {
    let nscc = cc::Config::Nscc(cc::NsccConfig::default());
    for (control, asked) in [(cc::Config::LineRate(cc::LineRateConfig {}), 9), (nscc, 1)] {
        let credit = Credit { initial: 4.0, most: 1.5, ..CREDIT };
        let config = Config { credit: Some(credit), congestion_control: control, ..config(Recovery::Selective) };
        let (mut sender, mut receiver) = ends(&config, 10);
        let mut leave = |at: u64| sender.poll_transmit(Time::ZERO + Span::from_ns(500 * at), 1).expect("it may");
        let first: Vec<Packet> = (0..10).map(&mut leave).collect();
        bring(&mut sender, &mut receiver, us(10), &first[..1]);
        let mut requests = 0;
        while sender.poll_timeout() < us(110) {
            let now = sender.poll_timeout();
            sender.handle_timeout(now);
            requests += sent(&mut sender, now, 20).iter().filter(|packet| packet.kind == PacketKind::Request).count();
        }
        assert_eq!(requests, asked);
    }
}

#[test]
fn who_asks_for_more_has_a_turn_though_it_has_been_given_more_in_spare_time() {
    let config = Config { credit: Some(CREDIT), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 100);
    let first = sent(&mut sender, us(0), 100);
    bring(&mut sender, &mut receiver, us(10), &first[..1]);
    while receiver.demand() != Demand::Nothing {
        receiver.give_credit(4.0);
    }
    bring(&mut sender, &mut receiver, us(11), &first[8..9]);
    assert!(first[8].from > first[0].from);
    assert_eq!((receiver.demand(), receiver.give_credit(4.0).1), (Demand::Urgent, Bytes::ZERO));
    assert_eq!((receiver.demand(), receiver.give_credit(4.0).1), (Demand::Idle, Bytes::new(4096)));
}

#[test]
fn the_header_of_what_has_come_before_is_answered_as_that_and_asks_for_nothing() {
    let config = Config { credit: Some(CREDIT), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 100);
    let mut first = sent(&mut sender, us(0), 3);
    bring(&mut sender, &mut receiver, us(10), &first);
    while receiver.demand() == Demand::Urgent {
        receiver.give_credit(4.0);
    }
    first[1].cut(0, true);
    assert_eq!(bring(&mut sender, &mut receiver, us(11), &first[1..2]), [PacketKind::Arrived]);
    assert_eq!((receiver.demand(), sender.counters().cuts), (Demand::Idle, 0));
}

#[test]
fn credit_in_spare_time_goes_on_when_all_has_arrived() {
    let config = Config { credit: Some(CREDIT), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 3);
    let first = sent(&mut sender, us(0), 3);
    bring(&mut sender, &mut receiver, us(10), &first);
    assert!(receiver.finished().is_some());
    let mut all = Bytes::ZERO;
    while receiver.demand() != Demand::Nothing {
        all += receiver.give_credit(4.0).1;
    }
    // A packet that was asked for, and 1.5 x 12.5 kB beyond in four packets at a time.
    assert_eq!(all, Bytes::new(1280 + 5 * 4096));
}

/// The message has come from its start since the first gap, and another one is news.
#[test]
fn go_back_0_asks_again_for_a_second_gap() {
    let (mut sender, mut receiver) = ends(&config(Recovery::GoBackZero), 10);
    for at in [5, 20, 35] {
        let packets = sent(&mut sender, us(at - 5), 10);
        let kinds = bring(&mut sender, &mut receiver, us(at), &[packets[0], packets[1], packets[3], packets[4]]);
        assert_eq!(kinds, [PacketKind::Arrived, PacketKind::Arrived, PacketKind::GoBack], "{at} us");
    }
}

#[test]
fn a_sender_may_send_a_packet_however_little_its_first_credit_is() {
    let config = Config { credit: Some(Credit { initial: 1e-6, ..CREDIT }), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 3);
    let first = sent(&mut sender, us(0), 9);
    bring(&mut sender, &mut receiver, us(5), &first);
    assert_eq!((first.len(), receiver.demand()), (1, Demand::Urgent));
}

#[test]
fn answers_that_come_after_the_sender_went_back_count() {
    let (mut sender, mut receiver) = ends(&config(Recovery::GoBackN), 6);
    let packets = sent(&mut sender, us(0), 4);
    sender.handle_timeout(us(100));
    bring(&mut sender, &mut receiver, us(101), &packets);
    assert_eq!(numbers(&mut sender, us(101), 9), [4, 5]);
    assert_eq!((sender.flight(), sender.counters().retransmits), (Bytes::new(2000), 0));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let place = |config: Config| config.check().expect_err("it makes no sense").pointer;
    let plain = config(Recovery::Selective);
    assert_eq!(plain.check(), Ok(()));
    let credit = CREDIT;
    assert_eq!(place(Config { credit: Some(credit), ..config(Recovery::GoBackN) }), "/credit");
    assert_eq!(place(Config { credit: Some(Credit { share: 1.5, ..credit }), ..plain.clone() }), "/credit/share");
    let below = Credit { oversubscription: Some(0.5), ..credit };
    assert_eq!(place(Config { credit: Some(below), ..plain.clone() }), "/credit/oversubscription");
    assert_eq!(place(Config { timeout_ps: Span::ZERO, ..plain.clone() }), "/timeout_ps");
    for round_trip_ps in [Span::ZERO, Span::from_ms(60_001)] {
        assert_eq!(place(Config { round_trip_ps: Some(round_trip_ps), ..plain.clone() }), "/round_trip_ps");
    }
    assert_eq!(place(Config { control_class: 8, ..plain.clone() }), "/control_class");
    assert_eq!(place(Config { congestion_control: cc::Config::bbr(), ..plain }), "/congestion_control");
}

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
