use proptest::prelude::*;
use weir_core::queue::{Counters, Lane, Limit, Offer, Port};
use weir_core::units::{Bytes, Rate, Span, Time};

const FRAME: Bytes = Bytes::new(1500);
/// Transmission time of [`FRAME`].
const TX: Span = Span::from_ns(1200);

fn port(limit: Limit) -> Port<u32> {
    Port::new(Rate::from_gbit_per_s(10), Bytes::ZERO, limit)
}

fn at(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// Wakes `port` as its contract asks until `now`, inclusive; the frames that began, with their ends.
fn run_until(port: &mut Port<u32>, now: Time) -> Vec<(u32, Time)> {
    let mut sent = Vec::new();
    while port.due() <= now {
        let due = port.due();
        if due == Time::NEVER {
            break;
        }
        sent.extend(port.wake(due).map(|sent| (sent.handle, sent.end)));
    }
    sent
}

#[test]
fn framing_takes_time_but_no_room() {
    let mut port = Port::new(Rate::from_gbit_per_s(10), Bytes::new(20), Limit::bytes(Bytes::new(128)));
    let size = Bytes::new(64);
    assert_eq!(port.offer(at(0), 0, size, Lane::Data), Offer::Sent { end: Time::from_ps(67_200) });
    assert_eq!(port.offer(at(0), 1, size, Lane::Data), Offer::Waits);
    assert_eq!(port.offer(at(0), 2, size, Lane::Data), Offer::Waits);
    assert_eq!(port.waiting_bytes(), Bytes::new(128));
    assert_eq!(port.offer(at(0), 3, Bytes::new(1), Lane::Data), Offer::Dropped);
}

#[test]
fn an_end_of_transmission_makes_room_for_a_frame_that_arrives_at_the_same_time() {
    let mut port = port(Limit::frames(1));
    port.offer(at(0), 0, FRAME, Lane::Data);
    port.offer(at(0), 1, FRAME, Lane::Data);
    assert_eq!(port.offer(at(1199), 2, FRAME, Lane::Data), Offer::Dropped);
    assert_eq!(run_until(&mut port, at(1200)), [(1, at(2400))]);
    assert_eq!(port.offer(at(1200), 3, FRAME, Lane::Data), Offer::Waits);
}

#[test]
fn a_limit_of_nothing_still_serves_an_idle_port() {
    let mut port = port(Limit::frames(0));
    assert_eq!(port.offer(at(0), 0, FRAME, Lane::Data), Offer::Sent { end: at(1200) });
    assert_eq!(port.offer(at(100), 1, FRAME, Lane::Data), Offer::Dropped);
    assert_eq!(port.due(), Time::NEVER);
    assert_eq!(port.offer(at(1200), 2, FRAME, Lane::Data), Offer::Sent { end: at(2400) });
}

#[test]
fn a_pause_lets_the_frame_in_transmission_end_and_holds_the_next() {
    let mut port = port(Limit::UNLIMITED);
    assert_eq!(port.offer(at(0), 0, FRAME, Lane::Data), Offer::Sent { end: at(1200) });
    port.offer(at(10), 1, FRAME, Lane::Data);
    port.pause(at(600));
    assert_eq!(port.due(), Time::NEVER);
    assert_eq!(port.wake(at(1200)), None);
    port.resume(at(5000));
    assert_eq!(port.due(), at(5000));
    assert_eq!(run_until(&mut port, at(5000)), [(1, at(6200))]);
    assert_eq!(port.pauses_until(at(9000)).total, Span::from_ns(4400));
    assert_eq!(port.counters_at(at(9000)).queue_wait_ps, u128::from(Span::from_ns(4990).ps()));
}

#[test]
fn a_pause_that_ends_within_a_transmission_changes_nothing() {
    let mut port = port(Limit::UNLIMITED);
    port.offer(at(0), 0, FRAME, Lane::Data);
    port.offer(at(0), 1, FRAME, Lane::Data);
    port.pause(at(100));
    port.pause(at(200));
    port.resume(at(300));
    port.resume(at(400));
    assert_eq!(port.due(), at(1200));
    assert_eq!(port.pauses_until(at(1200)).total, Span::from_ns(200));
}

#[test]
fn a_frame_that_comes_to_an_idle_paused_port_waits() {
    let mut port = port(Limit::frames(1));
    port.pause(at(0));
    assert_eq!(port.offer(at(10), 0, FRAME, Lane::Data), Offer::Waits);
    assert_eq!(port.offer(at(20), 1, FRAME, Lane::Data), Offer::Dropped);
    assert_eq!(port.due(), Time::NEVER);
    assert_eq!(port.pauses_until(at(30)).total, Span::from_ns(30));
    port.resume(at(40));
    assert_eq!(run_until(&mut port, at(40)), [(0, at(1240))]);
}

#[test]
fn control_frames_go_first_and_past_a_pause_and_a_full_queue() {
    let mut port = port(Limit::frames(1));
    port.offer(at(0), 0, FRAME, Lane::Data);
    port.offer(at(0), 1, FRAME, Lane::Data);
    assert_eq!(port.offer(at(1), 10, FRAME, Lane::Control), Offer::Waits);
    assert_eq!(port.offer(at(2), 11, FRAME, Lane::Control), Offer::Waits);
    assert_eq!(port.waiting().collect::<Vec<_>>(), [10, 11, 1]);
    assert_eq!(port.waiting_bytes(), FRAME, "the control lane does not count");
    assert_eq!(run_until(&mut port, at(1200)), [(10, at(2400))]);
    port.pause(at(1300));
    assert_eq!(run_until(&mut port, at(9000)), [(11, at(3600))]);
    assert_eq!(port.offer(at(9000), 12, FRAME, Lane::Control), Offer::Sent { end: at(10_200) });
    assert_eq!(port.offer(at(9100), 13, FRAME, Lane::Control), Offer::Waits);
    port.resume(at(9200));
    assert_eq!(run_until(&mut port, at(20_000)), [(13, at(11_400)), (1, at(12_600))]);
}

#[test]
fn the_integral_is_bytes_times_time() {
    let mut port = port(Limit::UNLIMITED);
    for handle in 0..3 {
        port.offer(at(0), handle, FRAME, Lane::Data);
    }
    run_until(&mut port, at(1200));
    // 3000 B for 1.2 us, then 1500 B for 0.6 us.
    let counters = port.counters_at(at(1800));
    assert_eq!(counters.queue_byte_ps, 3000 * 1_200_000 + 1500 * 600_000);
    assert_eq!(counters.queue_wait_ps, 2 * 1_200_000 + 600_000);
    assert_eq!((counters.frames, counters.bytes, counters.busy_ps), (2, 3000, 2 * TX.ps()));
    assert_eq!(counters.queue_max_bytes, 3000);
    port.restart_maximum();
    assert_eq!(port.counters_at(at(1900)).queue_max_bytes, 1500, "the next maximum begins with what waits");
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    gap: Span,
    size: Bytes,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    // Gaps in steps of 64 B times, so that arrivals often coincide with ends of transmission.
    let gap = prop_oneof![3 => (0u64..30).prop_map(|slots| slots * 51_200), 1 => 0u64..2_000_000];
    let size = prop_oneof![Just(64u64), Just(1500), Just(640), 1u64..9000];
    let arrival = (gap, size).prop_map(|(gap, size)| Arrival { gap: Span::from_ps(gap), size: Bytes::new(size) });
    prop::collection::vec(arrival, 1..120)
}

fn limits() -> impl Strategy<Value = (Limit, u64, u64)> {
    prop_oneof![
        (0u64..20_000).prop_map(|bytes| (Limit::bytes(Bytes::new(bytes)), bytes, u64::MAX)),
        (0u64..12).prop_map(|frames| (Limit::frames(frames), u64::MAX, frames)),
        Just((Limit::UNLIMITED, u64::MAX, u64::MAX)),
    ]
}

proptest! {
    /// The model that decides on arrival, by looking at the starts of all frames before.
    #[test]
    fn a_port_that_decides_at_departure_agrees_with_one_that_decides_at_arrival(
        arrivals in arrivals(), (limit, bytes, frames) in limits(), mbps in 1u64..100_000,
    ) {
        let rate = Rate::from_bps(mbps * 1_000_000);
        let framing = Bytes::new(20);
        let mut port = Port::new(rate, framing, limit);
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        let (mut accepted, mut dropped, mut peak) = (Vec::<(Time, Time, Bytes)>::new(), 0, 0);
        let mut now = Time::ZERO;
        for (handle, arrival) in (0..).zip(&arrivals) {
            now += arrival.gap;
            found.extend(run_until(&mut port, now));
            match port.offer(now, handle, arrival.size, Lane::Data) {
                Offer::Sent { end } => found.push((handle, end)),
                Offer::Waits | Offer::Dropped => {}
            }
            let waiting: Vec<u64> =
                accepted.iter().filter(|(_, start, _)| *start > now).map(|(_, _, size)| size.count()).collect();
            let free_at = accepted.last().map_or(Time::ZERO, |&(_, start, size)| start + (size + framing) / rate);
            let held: u64 = waiting.iter().sum();
            if free_at > now && (held + arrival.size.count() > bytes || waiting.len() as u64 >= frames) {
                dropped += 1;
                continue;
            }
            let start = free_at.max(now);
            if start > now {
                peak = peak.max(held + arrival.size.count());
            }
            accepted.push((now, start, arrival.size));
            expected.push((handle, start + (arrival.size + framing) / rate));
        }
        let end = now + Span::from_ms(10_000);
        found.extend(run_until(&mut port, end));
        prop_assert_eq!(found, expected);
        let counters = port.counters_at(end);
        let wait = |&(arrived, start, _): &(Time, Time, Bytes)| u128::from((start - arrived).ps());
        prop_assert_eq!(counters.drops, dropped);
        prop_assert_eq!(counters.frames, accepted.len() as u64);
        prop_assert_eq!(counters.queue_wait_ps, accepted.iter().map(wait).sum::<u128>());
        let weighted = accepted.iter().map(|frame| wait(frame) * u128::from(frame.2.count()));
        prop_assert_eq!(counters.queue_byte_ps, weighted.sum::<u128>());
        prop_assert_eq!(counters.queue_max_bytes, peak);
    }

    /// A queue that the port does not keep gives what a kept one gives.
    #[test]
    fn passing_frames_through_agrees_with_keeping_them(arrivals in arrivals()) {
        let (mut kept, mut passed) = (port(Limit::UNLIMITED), port(Limit::UNLIMITED));
        let (mut now, mut ends, mut expected) = (Time::ZERO, Vec::new(), Vec::new());
        for (handle, arrival) in (0..).zip(&arrivals) {
            now += arrival.gap;
            expected.extend(run_until(&mut kept, now));
            if let Offer::Sent { end } = kept.offer(now, handle, arrival.size, Lane::Data) {
                expected.push((handle, end));
            }
            ends.push((handle, passed.pass(now, arrival.size).end));
        }
        let end = now + Span::from_ms(10_000);
        expected.extend(run_until(&mut kept, end));
        prop_assert_eq!(ends, expected);
        let (passed, kept) = (passed.counters_at(end), kept.counters_at(end));
        prop_assert_eq!(passed, Counters { queue_max_bytes: 0, ..kept });
    }

    /// What was sent ahead begins when it would have begun otherwise, and counts from then on; pauses and control frames
    /// find the same frames waiting.
    #[test]
    fn a_port_that_sends_ahead_agrees_with_one_that_keeps(
        arrivals in arrivals(), acts in prop::collection::vec(0u8..12, 120), (limit, ..) in limits(),
        mbps in 1u64..100_000,
    ) {
        let new = || Port::new(Rate::from_bps(mbps * 1_000_000), Bytes::new(20), limit);
        let (mut kept, mut ahead) = (new(), new());
        ahead.go_ahead();
        let (mut expected, mut found, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
        let take_back = |ahead: &mut Port<u32>, found: &mut Vec<(u32, Time)>, now| {
            let last = |count| found[found.len() - count..].iter().map(|sent| sent.0).collect();
            let first = ahead.keep(now, last);
            let waiting: Vec<u32> = ahead.waiting().collect();
            prop_assert!(first.is_none_or(|first| waiting.contains(&first)));
            found.retain(|(handle, _)| !waiting.contains(handle));
            Ok::<(), TestCaseError>(())
        };
        for ((handle, arrival), act) in (0..).zip(&arrivals).zip(acts) {
            now += arrival.gap;
            if act == 0 && now > Time::ZERO {
                // What happens at `now` has not happened before.
                let before = Time::from_ps(now.ps() - 1);
                expected.extend(run_until(&mut kept, before));
                found.extend(run_until(&mut ahead, before));
                prop_assert_eq!(ahead.counters_at(now), kept.counters_at(now));
                prop_assert_eq!(ahead.waiting_bytes(), kept.waiting_bytes());
                kept.restart_maximum();
                ahead.restart_maximum();
            }
            expected.extend(run_until(&mut kept, now));
            found.extend(run_until(&mut ahead, now));
            match act {
                1 => {
                    take_back(&mut ahead, &mut found, now)?;
                    kept.pause(now);
                    ahead.pause(now);
                }
                2 | 3 => {
                    kept.resume(now);
                    ahead.resume(now);
                    expected.extend(run_until(&mut kept, now));
                    found.extend(run_until(&mut ahead, now));
                }
                4 => {
                    take_back(&mut ahead, &mut found, now)?;
                    for (port, sent) in [(&mut kept, &mut expected), (&mut ahead, &mut found)] {
                        if let Offer::Sent { end } = port.offer(now, 1_000_000 + handle, Bytes::new(64), Lane::Control) {
                            sent.push((1_000_000 + handle, end));
                        }
                    }
                }
                _ => {}
            }
            let offers = [(&mut kept, &mut expected), (&mut ahead, &mut found)].map(|(port, sent)| {
                let became = port.offer(now, handle, arrival.size, Lane::Data);
                if let Offer::Sent { end } = became {
                    sent.push((handle, end));
                }
                became == Offer::Dropped
            });
            prop_assert_eq!(offers[0], offers[1]);
        }
        let end = now + Span::from_ms(30_000);
        kept.resume(now);
        ahead.resume(now);
        expected.extend(run_until(&mut kept, end));
        found.extend(run_until(&mut ahead, end));
        prop_assert_eq!(found, expected);
        prop_assert_eq!(ahead.counters_at(end), kept.counters_at(end));
        prop_assert_eq!(ahead.drop_times(), kept.drop_times());
    }

    /// Whatever is done to a port: one frame at a time, in order, none lost, none begun in a pause, none held up
    /// without one.
    #[test]
    fn no_sequence_of_calls_breaks_the_laws_of_a_port(
        calls in prop::collection::vec((0u64..3000, 0u8..6), 1..200), frames in 0u64..6,
    ) {
        let mut port = port(Limit::frames(frames));
        let (mut now, mut paused, mut busy_until) = (Time::ZERO, false, Time::ZERO);
        let (mut begun, mut offered, mut dropped) = (Vec::new(), 0u32, 0u32);
        let mut control_waits = 0;
        for (gap, call) in calls {
            let next = now + Span::from_ns(gap);
            while port.due() <= next {
                let due = port.due();
                let sent = port.wake(due).expect("what is due goes");
                prop_assert!(due >= busy_until && sent.end == due + TX);
                prop_assert!(!paused || sent.handle >= 1_000_000);
                prop_assert!(control_waits == 0 || sent.handle >= 1_000_000, "control goes first");
                control_waits -= i32::from(sent.handle >= 1_000_000);
                busy_until = sent.end;
                begun.push(sent.handle);
            }
            now = next;
            match call {
                0 => { port.pause(now); paused = true; }
                1 => { port.resume(now); paused = false; }
                _ => {
                    let (lane, handle) =
                        if call == 2 { (Lane::Control, 1_000_000 + offered) } else { (Lane::Data, offered) };
                    offered += 1;
                    match port.offer(now, handle, FRAME, lane) {
                        Offer::Sent { end } => {
                            prop_assert!(busy_until <= now && end == now + TX);
                            prop_assert!(!paused || lane == Lane::Control);
                            busy_until = end;
                            begun.push(handle);
                        }
                        Offer::Waits => control_waits += i32::from(lane == Lane::Control),
                        Offer::Dropped => { prop_assert!(lane == Lane::Data); dropped += 1; }
                    }
                }
            }
            prop_assert!(!paused || control_waits > 0 || port.due() == Time::NEVER);
            let held_up = !paused && port.waiting().count() > 0 && port.due() > busy_until.max(now);
            prop_assert!(!held_up, "something waits, nothing holds it up, and it is not due");
        }
        let waiting: Vec<u32> = port.waiting().collect();
        prop_assert_eq!(offered as usize, begun.len() + waiting.len() + dropped as usize);
        begun.extend(waiting);
        for lane in [0..1_000_000, 1_000_000..u32::MAX] {
            let order: Vec<u32> = begun.iter().copied().filter(|handle| lane.contains(handle)).collect();
            prop_assert!(order.is_sorted());
        }
    }
}
