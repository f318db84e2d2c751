use proptest::prelude::*;

use super::*;
use crate::tcp::config::LossMarking;
use crate::tcp::scoreboard::lost::Late;
use crate::units::Span;

/// Checks that what is kept in sums is what the segments say.
impl Scoreboard {
    fn check(&self) {
        let mut sums = [0; 3];
        for (place, sent) in (self.first..).zip(&self.sent) {
            let len = u64::from(sent.len);
            let arrived = sent.skip > 0;
            sums[0] += if arrived { len } else { 0 };
            sums[1] += if !arrived && place < self.lost_below { len } else { 0 };
            sums[2] += if !arrived && sent.epoch == self.epoch { len } else { 0 };
        }
        assert_eq!(sums, [self.sacked, self.lost, self.resent]);
        assert_eq!(self.outstanding(), self.sent.iter().map(|sent| u64::from(sent.len)).sum::<u64>());
    }
}

const LEN: u64 = 10;

fn board(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::new();
    (0..segments).for_each(|i| board.on_sent(Time::from_ps(i), LEN as u32));
    board
}

fn sack(board: &mut Scoreboard, from: u64, to: u64) -> u64 {
    let mut news = Delivered::default();
    board.sack(from * LEN, to * LEN, &mut news);
    board.check();
    news.bytes / LEN
}

#[test]
fn the_room_of_a_large_window_is_given_back_when_the_window_is_small() {
    let mut board = board(1000);
    let mut news = Delivered::default();
    board.acknowledge(997 * LEN, &mut news);
    board.check();
    assert_eq!((board.first(), board.outstanding(), news.acked), (997, 3 * LEN, 997 * LEN));
    assert!(board.sent.capacity() < 16, "{}", board.sent.capacity());
    (0..5).for_each(|i| board.on_sent(Time::from_ps(1000 + i), LEN as u32));
    assert_eq!(sack(&mut board, 999, 1003), 4);
}

#[test]
fn a_segment_is_lost_when_three_behind_it_have_arrived() {
    let mut board = board(10);
    assert_eq!(sack(&mut board, 2, 4), 2);
    assert!(!board.detect(LossMarking::Count));
    assert_eq!(sack(&mut board, 6, 7), 1);
    assert!(board.detect(LossMarking::Count));
    assert_eq!(board.lost, 2 * LEN, "segments 0 and 1, not 4 and 5");
    assert_eq!(board.pipe().count(), 5 * LEN);
}

#[test]
fn fack_takes_all_for_lost_that_lies_three_before_the_last_that_arrived() {
    let mut board = board(10);
    sack(&mut board, 6, 7);
    assert!(board.detect(LossMarking::Fack));
    assert_eq!(board.lost, 4 * LEN, "segments 0 to 3");
}

#[test]
fn lost_segments_are_sent_again_once_in_order_then_those_between() {
    let mut board = board(12);
    sack(&mut board, 1, 2);
    sack(&mut board, 4, 6);
    sack(&mut board, 7, 8);
    board.detect(LossMarking::Count);
    let mut again = Vec::new();
    while let Some((place, _)) = board.next_lost() {
        again.push(board.on_resent(Time::from_ps(100), place) / LEN);
        board.check();
    }
    assert_eq!(again, [0, 2, 3]);
    let (forward, _) = board.next_forward().expect("segment 6 lies before one that has arrived");
    assert_eq!(board.on_resent(Time::from_ps(101), forward) / LEN, 6);
    assert_eq!(board.next_forward(), None);
    // Sent at 100 again, not arrived, while what was sent at 101 has.
    assert_eq!(board.detect_lost_again(Time::from_ps(101), Span::ZERO), 3);
    board.check();
    assert_eq!(board.next_lost().map(|next| next.0), Some(0));
}

#[test]
fn after_a_timeout_everything_that_has_not_arrived_is_sent_again() {
    let mut board = board(6);
    sack(&mut board, 2, 3);
    board.lose_all();
    board.check();
    assert_eq!((board.pipe().count(), board.lost), (0, 5 * LEN));
    let again = std::iter::from_fn(|| {
        let (place, _) = board.next_lost()?;
        Some(board.on_resent(Time::from_ps(100), place) / LEN)
    });
    assert_eq!(again.collect::<Vec<_>>(), [0, 1, 3, 4, 5]);
}

#[test]
fn late_segments_are_lost_in_the_order_in_which_they_were_sent_last() {
    let at = |ps| Time::from_ps(ps);
    let overdue = Span::from_ps(100);
    // Sent at 0 to 9; segment 6 has arrived.
    let mut board = board(10);
    sack(&mut board, 6, 7);
    let late = board.lose_late(at(103), (at(6), 6), overdue);
    board.check();
    assert_eq!((late, board.lost), (Late { any: true, again: 0, due: at(104) }, 4 * LEN));
    while let Some((place, _)) = board.next_lost() {
        board.on_resent(at(110), place);
    }
    assert_eq!(board.lose_late(at(150), (at(6), 6), overdue), Late { any: true, again: 0, due: Time::NEVER });
    assert_eq!(board.lost, 6 * LEN);
    // Something that was sent after the retransmissions has arrived.
    assert_eq!(board.lose_late(at(209), (at(120), 9), overdue).due, at(210));
    let late = board.lose_late(at(210), (at(120), 9), overdue);
    board.check();
    assert_eq!((late.any, late.again, board.next_lost().map(|lost| lost.0)), (true, 4, Some(0)));
}

#[test]
fn a_probe_of_the_tail_is_in_flight_twice_and_lost_with_its_first_copy() {
    let at = |ps| Time::from_ps(ps);
    let mut board = board(3);
    let (place, _) = board.last_missing().expect("nothing has arrived");
    board.on_resent(at(50), place);
    board.check();
    assert_eq!(board.pipe().count(), 4 * LEN);
    board.lose_old(at(60), Span::from_ps(58));
    board.check();
    assert_eq!(board.lost, 3 * LEN - LEN, "the probe is not late");
    board.lose_old(at(200), Span::from_ps(58));
    board.check();
    assert_eq!((board.lost, board.pipe().count()), (3 * LEN, 0));
    let again = std::iter::from_fn(|| {
        let (place, _) = board.next_lost()?;
        Some(board.on_resent(at(201), place) / LEN)
    });
    assert_eq!(again.collect::<std::collections::BTreeSet<_>>().len(), 3);
    board.check();
}

#[test]
fn a_timeout_takes_the_first_for_lost_and_what_is_late() {
    let mut board = board(6);
    board.lose_old(Time::from_ps(102), Span::from_ps(100));
    board.check();
    assert_eq!(board.lost, 3 * LEN);
    let mut young = self::board(6);
    young.lose_old(Time::from_ps(50), Span::from_ps(100));
    young.check();
    assert_eq!(young.lost, LEN);
}

#[test]
fn a_segment_acknowledged_in_part_is_outstanding_as_a_whole() {
    let mut board = board(3);
    board.lose_all();
    let mut news = Delivered::default();
    board.acknowledge(LEN + 4, &mut news);
    board.check();
    assert_eq!((news.acked, board.una(), board.outstanding(), board.pipe().count()), (LEN, LEN, 2 * LEN, 0));
    board.acknowledge(3 * LEN, &mut news);
    assert_eq!((news.acked, board.outstanding(), board.pipe().count()), (3 * LEN, 0, 0));
}

proptest! {
    /// Whatever is reported in which order: the sums are those of the segments, losses only grow, and nothing that has
    /// arrived is sent again.
    #[test]
    fn the_sums_are_those_of_the_segments(
        steps in prop::collection::vec((0u8..8, 0u64..40, 1u64..10), 1..200), marking in 0u8..3,
    ) {
        let by_time = marking == 2;
        let marking = if marking == 1 { LossMarking::Fack } else { LossMarking::Count };
        let (mut board, mut now) = (board(5), 1000);
        for (what, at, length) in steps {
            now += 1;
            let time = Time::from_ps(now);
            let mut news = Delivered::default();
            let start = board.una() + at * LEN;
            match what {
                0 | 1 => (0..length).for_each(|_| board.on_sent(time, LEN as u32)),
                2 => board.sack(start, start + length * LEN, &mut news),
                3 => board.acknowledge((board.una() + length * LEN).min(board.nxt()), &mut news),
                7 => board.acknowledge((board.una() + at).min(board.nxt()), &mut news),
                4 if by_time && length == 1 => if let Some((place, _)) = board.last_missing() {
                    board.on_resent(time, place);
                },
                4 if by_time => {
                    let late = board.lose_late(time, (Time::from_ps(now - at), 0), Span::from_ps(length));
                    prop_assert!(late.due > time);
                },
                4 => _ = board.detect(marking),
                5 => if let Some((place, _)) = board.next_lost() {
                    prop_assert!(board.get(place).is_some_and(|sent| sent.skip == 0));
                    board.on_resent(time, place);
                },
                _ => if by_time {
                    board.lose_old(time, Span::from_ps(at));
                } else if at == 0 { board.lose_all() } else { _ = board.detect_lost_again(time, Span::from_ps(at)) },
            }
            board.check();
            prop_assert!(board.pipe().count() <= 2 * board.outstanding());
        }
    }
}
