//! Ports with queues for traffic classes, against what their schedulers promise.

use proptest::prelude::*;
use weir_core::marking::Ecn;
use weir_core::queue::{ClassSet, Label, Lane, Limit, Managements, Offer, Port, SharedMemory};
use weir_core::rng::Seed;
use weir_core::spec;
use weir_core::spec::Discipline;
use weir_core::spec::aqm::{Aqm, Codel};
use weir_core::spec::classes::{Class, Classes, Order};
use weir_core::units::{Bytes, Rate, Span, Time};

const SIZE: Bytes = Bytes::new(1250);
/// Of `SIZE` at 10 Mbit/s.
const TX: Span = Span::from_ms(1);
const BY_CLASS: Order = Order::Class { quantum_bytes: Bytes::new(1500) };

fn class(class: u8, weight: Option<u32>) -> Class {
    limited(class, weight, spec::Limit::Unlimited)
}

fn limited(class: u8, weight: Option<u32>, limit: spec::Limit) -> Class {
    Class { class, weight, discipline: Discipline::DropTail { limit, marking: None, overrun: None }, trim: None }
}

fn port(order: Order, list: Vec<Class>) -> Port<(u8, u32)> {
    let stream = |class| Seed::new(3).stream(&format!("queue/{class}"));
    Port::new(Rate::from_bps(10_000_000), Bytes::ZERO, Limit::UNLIMITED).classed(
        &Classes { order, list },
        stream,
        &Managements::new(),
    )
}

fn offer(port: &mut Port<(u8, u32)>, now: Time, class: u8, number: u32, size: Bytes) -> Offer {
    let label = Label { flow: 0, ecn: Ecn::NotEct, class, trims: false };
    port.offer_labeled(now, (class, number), size, Lane::Data, label).became
}

/// The classes of all that waits, in the order in which it leaves.
fn drain(port: &mut Port<(u8, u32)>) -> Vec<u8> {
    std::iter::from_fn(|| (port.due() != Time::NEVER).then(|| port.wake(port.due())).flatten())
        .map(|sent| sent.handle.0)
        .collect()
}

/// A port whose transmitter is busy until 1 ms, where `frames` of each of these classes wait.
fn loaded(order: Order, list: Vec<Class>, frames: u32) -> Port<(u8, u32)> {
    let classes: Vec<u8> = list.iter().map(|class| class.class).collect();
    let mut port = port(order, list);
    offer(&mut port, Time::ZERO, classes[0], 0, SIZE);
    for number in 1..=frames {
        for &class in &classes {
            offer(&mut port, Time::ZERO, class, number, SIZE);
        }
    }
    port
}

#[test]
fn the_highest_class_goes_first_and_no_frame_is_interrupted() {
    let mut port = loaded(BY_CLASS, vec![class(0, None), class(7, None), class(3, None)], 2);
    assert_eq!(port.due(), Time::ZERO + TX, "the frame of class 0 ends");
    assert_eq!(drain(&mut port), [7, 7, 3, 3, 0, 0]);
}

#[test]
fn frames_leave_in_order_of_arrival_whatever_their_class() {
    let mut port = loaded(Order::Arrival, vec![class(0, None), class(7, None), class(3, None)], 2);
    assert_eq!(drain(&mut port), [0, 7, 3, 0, 7, 3]);
}

#[test]
fn classes_with_weights_share_what_strict_ones_leave() {
    let list = vec![class(5, None), class(0, Some(1)), class(1, Some(3))];
    let order = drain(&mut loaded(BY_CLASS, list, 400));
    assert!(order[..400].iter().all(|&class| class == 5), "strict classes go first");
    let of_first = order[400..800].iter().filter(|&&class| class == 0).count();
    assert!((98..=102).contains(&of_first), "a quarter of what is left, up to a turn: {of_first}");
}

#[test]
fn a_hold_of_one_class_lets_the_others_pass() {
    let mut port = loaded(BY_CLASS, vec![class(0, None), class(7, None)], 2);
    port.hold(Time::ZERO, ClassSet::of(7));
    assert_eq!(drain(&mut port), [0, 0]);
    assert_eq!((port.due(), port.waiting_frames()), (Time::NEVER, 2));
    let now = Time::ZERO + TX * 10;
    assert!(matches!(offer(&mut port, now, 0, 9, SIZE), Offer::Sent { .. }), "the transmitter is free");
    assert_eq!(offer(&mut port, now, 7, 9, SIZE), Offer::Waits);
    port.release(now, ClassSet::of(7));
    assert_eq!(port.due(), now + TX, "as soon as the frame of class 0 has ended");
    assert_eq!(drain(&mut port), [7, 7, 7]);
    let counters = port.class_counters_at(now + TX * 10);
    let (_, held) = counters.iter().find(|row| row.0 == 7).expect("a queue of class 7");
    assert_eq!((held.holds.count, held.holds.total), (1, TX * 10));
    assert_eq!((held.frames, held.queue_wait_ps), (3, u128::from((TX * (11 + 12 + 3)).ps())));
}

#[test]
fn a_hold_of_all_classes_is_a_pause() {
    let mut port = loaded(BY_CLASS, vec![class(0, None), class(7, None)], 2);
    port.hold(Time::ZERO, ClassSet::ALL);
    assert!(port.is_paused());
    assert!(drain(&mut port).is_empty());
    port.release(Time::ZERO + TX * 5, ClassSet::ALL);
    assert_eq!(port.pauses_until(Time::ZERO + TX * 9).total, TX * 5);
    assert_eq!(drain(&mut port), [7, 7, 0, 0]);
}

#[test]
fn each_class_has_a_limit_and_a_discipline_of_its_own() {
    let codel = Aqm::Codel(Codel { target_ps: Span::from_ms(5), interval_ps: Span::from_ms(20), ecn: false });
    let managed = Discipline::Managed { limit: spec::Limit::Unlimited, aqm: codel };
    let list = vec![
        limited(1, Some(1), spec::Limit::Frames(3)),
        Class { class: 0, weight: Some(1), discipline: managed, trim: None },
    ];
    let mut port = loaded(BY_CLASS, list, 300);
    let sent = drain(&mut port);
    let dropped = std::iter::from_fn(|| port.take_discarded()).collect::<Vec<_>>();
    assert_eq!(sent.len() + dropped.len(), 600);
    let of_full = dropped.iter().filter(|gone| gone.handle.0 == 1).collect::<Vec<_>>();
    assert_eq!(of_full.len(), 297);
    assert!(of_full.iter().all(|gone| !gone.early), "drop-tail drops when it is full");
    let of_codel = dropped.iter().filter(|gone| gone.handle.0 == 0).count();
    assert!(of_codel > 10, "CoDel drops what has waited for long");
    for (class, counters) in port.class_counters_at(Time::ZERO + TX * 700) {
        let drops = if class == 1 { 297 } else { of_codel as u64 };
        assert_eq!((counters.drops, counters.dropped_bytes), (drops, drops * SIZE.count()));
        assert_eq!(counters.queue_max_bytes, SIZE.count() * if class == 1 { 3 } else { 300 });
    }
}

#[test]
fn overloaded_queues_share_a_memory_as_the_threshold_settles() {
    // Source: Choudhury Hahne 1998, equation 2: each of n queues gets alpha / (1 + n alpha) of the memory.
    for (queues, alpha) in [(1, 1.0), (2, 1.0), (3, 0.5), (5, 2.0)] {
        let size = 1_000_000;
        let mut memory = SharedMemory::new(Bytes::new(size), Some(alpha));
        let mut waiting = vec![Bytes::ZERO; queues];
        for _ in 0..3000 {
            for queue in &mut waiting {
                if memory.admits(*queue, Bytes::new(500)) {
                    memory.add(Time::ZERO, Bytes::new(500));
                    *queue += Bytes::new(500);
                }
            }
        }
        let theory = alpha * size as f64 / (1.0 + queues as f64 * alpha);
        for queue in waiting {
            assert!((queue.count() as f64 - theory).abs() <= 1500.0, "{queues} x {alpha}: {queue} for {theory}");
        }
    }
}

proptest! {
    /// Lag of deficit round-robin: while classes stay backlogged, what each got differs from its share by a few quanta.
    #[test]
    fn backlogged_classes_get_their_shares_within_a_turn(
        weights in prop::collection::vec(1_u32..9, 2..8),
        sizes in prop::collection::vec(64_u64..1519, 8),
    ) {
        let list: Vec<Class> = (0..).zip(&weights).map(|(number, &weight)| class(number, Some(weight))).collect();
        let mut port = port(BY_CLASS, list);
        for number in 0..400 {
            for class in 0..weights.len() as u8 {
                let size = Bytes::new(sizes[(usize::from(class) + number as usize) % sizes.len()]);
                offer(&mut port, Time::ZERO, class, number, size);
            }
        }
        let mut got = vec![0_f64; weights.len()];
        while got.iter().sum::<f64>() < 60_000.0 {
            let sent = port.wake(port.due()).expect("something waits");
            let (class, number) = sent.handle;
            got[usize::from(class)] += sizes[(usize::from(class) + number as usize) % sizes.len()] as f64;
        }
        let all: u32 = weights.iter().sum();
        let sent: f64 = got.iter().sum();
        for (got, weight) in got.iter().zip(&weights) {
            let share = sent * f64::from(*weight) / f64::from(all);
            // A turn of each, a frame beyond it, and the frame with which the port began.
            let bound = 1500.0 * f64::from(*weight) * 2.0 + 1518.0 * 2.0;
            prop_assert!((got - share).abs() <= bound, "{got} of {share}, weights {weights:?}");
        }
    }

    /// What comes to a port leaves it or is dropped, and classes overtake only as their order says.
    #[test]
    fn no_frame_of_a_class_overtakes_another_of_it(
        steps in prop::collection::vec((0_u64..2000, 0_u8..4, 64_u64..1519, 0_u8..12), 1..200),
        in_order in any::<bool>(),
    ) {
        let weights = [None, Some(2), Some(1), None];
        let weight = |class: u8| if in_order { None } else { weights[usize::from(class)] };
        let list = (0..4).map(|class| limited(class, weight(class), spec::Limit::Frames(6))).collect();
        let order = if in_order { Order::Arrival } else { BY_CLASS };
        let mut port = port(order, list);
        let (mut now, mut came, mut gone) = (Time::ZERO, 0, 0);
        let mut last = [None; 4];
        let mut note = |handle: (u8, u32)| {
            let before = last[usize::from(handle.0)].replace(handle.1);
            assert!(before < Some(handle.1), "class {} out of order", handle.0);
        };
        for (number, (gap, class, size, act)) in (0..).zip(steps) {
            let next = now + Span::from_us(gap);
            while port.due() <= next {
                now = now.max(port.due());
                if let Some(sent) = port.wake(now) {
                    note(sent.handle);
                    gone += 1;
                }
            }
            now = next;
            match act {
                0 => port.hold(now, ClassSet::of(class)),
                1 => port.release(now, ClassSet::of(class)),
                2 => port.hold(now, ClassSet::ALL),
                3 => port.release(now, ClassSet::ALL),
                _ => {
                    came += 1;
                    if let Offer::Sent { .. } = offer(&mut port, now, class, number, Bytes::new(size)) {
                        note((class, number));
                        gone += 1;
                    }
                }
            }
            gone += std::iter::from_fn(|| port.take_discarded()).count();
            prop_assert_eq!(came - gone, port.waiting_frames());
            prop_assert_eq!(port.waiting().count(), port.waiting_frames());
        }
        port.release(now, ClassSet::ALL);
        (0..4).for_each(|class| port.release(now, ClassSet::of(class)));
        prop_assert_eq!(drain(&mut port).len(), came - gone);
    }
}

/// A link goes down while a class has credit left: its queue is emptied, not served.
#[test]
fn a_class_whose_queue_was_emptied_has_no_credit_left() {
    // A turn is worth four frames. Class 0 sends two of its three.
    let order = Order::Class { quantum_bytes: Bytes::new(5000) };
    let mut port = port(order, vec![class(0, Some(1)), class(1, Some(1))]);
    for number in 0..3 {
        offer(&mut port, Time::ZERO, 0, number, SIZE);
    }
    port.wake(Time::ZERO + TX);
    let now = Time::ZERO + TX + Span::from_us(500);
    assert_eq!(port.purge(now).len(), 1);
    for number in 10..18 {
        offer(&mut port, now, 0, number, SIZE);
        offer(&mut port, now, 1, number, SIZE);
    }
    assert_eq!(drain(&mut port), [1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0]);
}
