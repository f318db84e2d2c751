//! The two ends of a message in numbered packets, joined by hand.

use weir_core::cc::{self, Controllers, Path, Setup};
use weir_core::rdma::{Config, Credit, Packet, PacketKind, Receiver, Recovery, Sender};
use weir_core::rng::Seed;
use weir_core::spec::messages::Packets;
use weir_core::units::{Bytes, Rate, Span, Time};

const PACKETS: Packets = Packets { payload_bytes: Bytes::new(1000), header_bytes: Bytes::new(48) };
const PATH: Path = Path {
    line_rate: Rate::from_gbit_per_s(10),
    round_trip: Span::from_us(10),
    packet: (Bytes::new(1000), Bytes::new(1048)),
};

fn config(recovery: Recovery) -> Config {
    Config {
        congestion_control: cc::Config::LineRate(cc::LineRateConfig {}),
        recovery,
        reordering_packets: None,
        answer_bytes: Bytes::new(64),
        answer_every_bytes: Bytes::ZERO,
        control_class: 0,
        telemetry_bytes: Bytes::new(42),
        window_bytes: None,
        initial_window_bytes: None,
        round_trip_ps: None,
        timeout_ps: Span::from_us(100),
        paths: None,
        credit: None,
    }
}

fn ends(config: &Config, packets: u64) -> (Sender, Receiver) {
    let bytes = Bytes::new(1000 * packets);
    let connection = config.connection(PACKETS, &PATH);
    let setup = Setup { path: PATH, ..Setup::plain(&connection) };
    let control = Controllers::new().make(setup).expect("it is built in");
    (Sender::new(config, PACKETS, (0, bytes), &PATH, control, None), Receiver::new(config, PACKETS, bytes))
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn numbers(sender: &mut Sender, now: Time, most: usize) -> Vec<u64> {
    let next = || sender.poll_transmit(now).map(|packet| packet.number);
    std::iter::from_fn(next).take(most).collect()
}

fn sent(sender: &mut Sender, now: Time, most: usize) -> Vec<Packet> {
    std::iter::from_fn(|| sender.poll_transmit(now)).take(most).collect()
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
    let config = Config { reordering_packets: Some(2), ..config(Recovery::Selective) };
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

#[test]
fn everything_arrives_over_a_link_that_loses_doubles_and_cuts() {
    for recovery in [Recovery::GoBackN, Recovery::Selective] {
        for seed in 0..30 {
            let mut chance = Seed::new(seed).stream("link");
            let config = Config { reordering_packets: Some(3), ..config(recovery) };
            let (mut sender, mut receiver) = ends(&config, 200);
            let mut now = us(0);
            for _ in 0..10_000 {
                for mut packet in sent(&mut sender, now, 20) {
                    match chance.below(20) {
                        0 => continue,
                        1 if recovery == Recovery::Selective => packet.cut(0, true),
                        _ => {}
                    }
                    for _ in 0..=u64::from(chance.below(20) == 0) {
                        receiver.handle(now + Span::from_us(2), &packet);
                    }
                }
                now += Span::from_us(5);
                while let Some(answer) = receiver.poll_transmit() {
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
            assert!(receiver.finished().is_some() && sender.finished().is_some(), "{recovery:?} {seed}");
            assert_eq!(sender.flight(), Bytes::ZERO);
        }
    }
}

#[test]
fn a_sender_spends_its_first_credit_and_then_what_it_is_given() {
    let credit = Credit { initial: 1.0, revokes: true, most: 1.5, packets: 4, share: 1.0 };
    let config = Config { credit: Some(credit), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 100);
    // BDP 12.5 kB.
    let first = sent(&mut sender, us(0), 100);
    assert_eq!(first.len(), 13);
    bring(&mut sender, &mut receiver, us(10), &first);
    assert!(receiver.wants_credit());
    let (packet, given) = receiver.give_credit(4);
    assert_eq!(given, 4);
    sender.handle(us(12), &packet, &[]);
    let more = sent(&mut sender, us(12), 100);
    assert_eq!(more.iter().map(|packet| packet.number).collect::<Vec<u64>>(), [13, 14, 15, 16]);
    // It asks for 1.5 x 12.5 kB ahead, and is never given more than it asks for.
    bring(&mut sender, &mut receiver, us(20), &more);
    let mut all = 0;
    while receiver.wants_credit() {
        all += receiver.give_credit(4).1;
    }
    assert!((18..=19).contains(&all), "{all}");
}

#[test]
fn a_sender_whose_first_credit_is_taken_away_has_asked_and_asks_again_when_time_is_up() {
    let credit = Credit { initial: 4.0, revokes: true, most: 1.5, packets: 4, share: 1.0 };
    let config = Config { credit: Some(credit), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 40);
    let first = sent(&mut sender, us(0), 10);
    bring(&mut sender, &mut receiver, us(10), &first[..1]);
    assert!(receiver.wants_credit());
    assert_eq!(sender.poll_transmit(us(10)), None);
    // The nine others were lost, and so is whatever the receiver gives.
    assert_eq!(sender.poll_timeout(), us(100));
    sender.handle_timeout(us(100));
    let next = sender.poll_transmit(us(100)).expect("it asks");
    assert_eq!(next.kind, PacketKind::Request);
    assert_eq!(sender.poll_transmit(us(100)), None);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let place = |config: Config| config.check().expect_err("it makes no sense").pointer;
    let plain = config(Recovery::Selective);
    assert_eq!(plain.check(), Ok(()));
    let credit = Credit { initial: 1.0, revokes: true, most: 1.5, packets: 4, share: 1.0 };
    assert_eq!(place(Config { credit: Some(credit), ..config(Recovery::GoBackN) }), "/credit");
    assert_eq!(place(Config { credit: Some(Credit { share: 1.5, ..credit }), ..plain.clone() }), "/credit/share");
    assert_eq!(place(Config { timeout_ps: Span::ZERO, ..plain.clone() }), "/timeout_ps");
    assert_eq!(place(Config { control_class: 8, ..plain.clone() }), "/control_class");
    assert_eq!(place(Config { congestion_control: cc::Config::bbr(), ..plain }), "/congestion_control");
}
