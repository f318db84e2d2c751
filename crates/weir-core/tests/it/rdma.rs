//! The two ends of a message in numbered packets, joined by hand.

mod credit;
mod sleek;

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
