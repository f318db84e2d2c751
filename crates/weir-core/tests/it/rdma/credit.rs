//! Credit that receivers give, and requests for it.

use super::*;

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

#[test]
fn a_sender_may_send_a_packet_however_little_its_first_credit_is() {
    let config = Config { credit: Some(Credit { initial: 1e-6, ..CREDIT }), ..config(Recovery::Selective) };
    let (mut sender, mut receiver) = ends(&config, 3);
    let first = sent(&mut sender, us(0), 9);
    bring(&mut sender, &mut receiver, us(5), &first);
    assert_eq!((first.len(), receiver.demand()), (1, Demand::Urgent));
}
