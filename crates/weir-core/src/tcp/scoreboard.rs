//! What was sent and not yet acknowledged, segment by segment: which segments have arrived, which are lost, and which
//! to send again.
//!
//! Segments are numbered in the order of their first transmission; a number is a place in a ring. No operation takes
//! time in proportion to the window: each segment is looked at a bounded number of times on its way through (when it
//! is sent, when it arrives, when it becomes lost, when it is sent again, when it is acknowledged).
//! - Runs of arrived segments are skipped by pointers that are shortened when they are followed (union-find).
//! - Which segments are lost is one number, `lost_below`: all below that have not arrived. It only grows.
//! - A timeout makes every segment lost and every retransmission void by moving that number and an epoch.

use std::collections::VecDeque;

use crate::tcp::config::{DUP_THRESHOLD, LossMarking};
use crate::units::{Span, Time};

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its first number.
    seq: u64,
    /// When it was sent last.
    at: Time,
    /// Numbers it takes, those of SYN and FIN included.
    len: u32,
    /// 0 unless it has arrived: then no segment between it and the one `skip` places on is missing.
    skip: u32,
    /// The epoch of its last retransmission: of the current one while that is in flight.
    epoch: u32,
    /// How often it was sent again.
    resent: u32,
}

/// What an acknowledgement told of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Numbers acknowledged in order.
    pub(crate) acked: u64,
    /// Bytes that are newly known to have arrived, in order or not.
    pub(crate) bytes: u64,
    /// The segments that these are.
    pub(crate) segments: u64,
    /// Of the segments that arrived now and were sent once, the one that was sent last: when that was, and its number.
    pub(crate) last_once: Option<(Time, u64)>,
    /// The same of segments that had been sent again.
    pub(crate) last_again: Option<(Time, u64)>,
    /// No segment that had arrived before lies at this number or behind it.
    pub(crate) arrived_below: u64,
    /// Whether one that was sent once arrived now behind another that had been sent later.
    pub(crate) overtaken: bool,
    /// Of the segments that had been sent again and arrived now, the earliest time at which what arrived may have been sent
    /// again: that of the only time; the beginning, if there were more.
    pub(crate) resent: Option<Time>,
}

impl Delivered {
    /// Of the segments that arrived now, the one that was sent last: when that was, and its number.
    #[inline]
    pub(crate) fn last(&self) -> Option<(Time, u64)> {
        self.last_once.max(self.last_again)
    }
}

/// What is lost because it is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// Whether anything became lost, and how many retransmissions among it.
    pub(crate) any: bool,
    pub(crate) again: u64,
    /// When the next of what was overtaken becomes so.
    pub(crate) due: Time,
}

/// What every acknowledgement needs stands first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Scoreboard {
    sent: VecDeque<Sent>,
    /// Number of the segment at the front.
    first: u64,
    /// First number that is not acknowledged, and the next to be sent.
    una: u64,
    nxt: u64,
    /// Bytes that have arrived out of order.
    sacked: u64,
    /// Bytes taken for arrived from duplicate acknowledgements, when these tell no more.
    assumed: u64,
    /// Bytes of segments below `lost_below` that have not arrived.
    lost: u64,
    /// Bytes of retransmissions in flight.
    resent: u64,
    /// Segments below this one that have not arrived are lost.
    lost_below: u64,
    /// No segment below this one is to be sent again, but for those of `lost_again`.
    next_resend: u64,
    /// One more than the numbers of the last three segments that have arrived, the last one first; 0: none.
    top: [u64; DUP_THRESHOLD as usize],
    epoch: u32,
    /// Retransmissions in the order in which they were sent.
    in_order: VecDeque<(u64, Time)>,
    lost_again: VecDeque<u64>,
    /// How many segments were sent again once, twice, ...
    times: [u64; 8],
    /// Which segments were found lost, with their lengths, until somebody asks; none: nobody does.
    losses: Option<Vec<(u64, u32)>>,
}

/// Places for each segment that are too many, and places that never are.
const ROOMY: usize = 8;
const LEAST_ROOM: usize = 8;

impl Scoreboard {
    pub(crate) fn new() -> Scoreboard {
        Scoreboard {
            sent: VecDeque::new(),
            first: 0,
            una: 0,
            nxt: 0,
            sacked: 0,
            assumed: 0,
            lost: 0,
            resent: 0,
            lost_below: 0,
            next_resend: 0,
            epoch: 1,
            top: [0; DUP_THRESHOLD as usize],
            in_order: VecDeque::new(),
            lost_again: VecDeque::new(),
            times: [0; 8],
            losses: None,
        }
    }

    /// Remembers from now on which segments are found lost.
    pub(crate) fn keep_losses(&mut self) {
        self.losses = Some(vec![]);
    }

    /// The segments that were found lost since this was asked last.
    pub(crate) fn take_losses(&mut self) -> Vec<(u64, u32)> {
        self.losses.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The number of the first segment that is not acknowledged.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The first number that is not acknowledged.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The next number to be sent for the first time.
    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Bytes sent and not acknowledged in order.
    #[inline]
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Bytes that have arrived out of order.
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Whether three segments have arrived out of order and are not acknowledged.
    pub(crate) fn has_three_sacked(&self) -> bool {
        self.top[DUP_THRESHOLD as usize - 1] > self.first
    }

    /// Whether one segment is not acknowledged.
    pub(crate) fn is_alone(&self) -> bool {
        self.sent.len() == 1
    }

    /// What an acknowledgement tells, before it is read.
    #[inline]
    pub(crate) fn news(&self) -> Delivered {
        Delivered { arrived_below: self.top[0], ..Delivered::default() }
    }

    /// Bytes in flight: sent, not arrived and not lost, and sent again.
    ///
    /// Source: RFC 6675, 4, `Pipe`.
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        self.outstanding() - self.sacked - self.assumed - self.lost + self.resent
    }

    /// How many segments were sent again once, twice, ..., those that are not acknowledged included.
    pub(crate) fn resent_times(&self) -> [u64; 8] {
        let mut times = self.times;
        self.sent.iter().for_each(|sent| count_resent(&mut times, sent.resent));
        times
    }

    /// A segment of `len` numbers was sent for the first time.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, len: u32) {
        self.sent.push_back(Sent { seq: self.nxt, at: now, len, skip: 0, epoch: 0, resent: 0 });
        self.nxt += u64::from(len);
    }

    /// Everything below `ack` has arrived. A segment of which only a part has is still outstanding as a whole.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u64, news: &mut Delivered) {
        while let Some(&sent) = self.sent.front().filter(|sent| sent.seq + u64::from(sent.len) <= ack) {
            let len = u64::from(sent.len);
            news.acked += len;
            if sent.skip > 0 {
                self.sacked -= len;
            } else {
                self.deliver(self.first, &sent, news);
            }
            count_resent(&mut self.times, sent.resent);
            self.sent.pop_front();
            self.first += 1;
        }
        if self.sent.len() < self.sent.capacity() / ROOMY && self.sent.capacity() > LEAST_ROOM {
            self.take_less_room();
        }
        while self.in_order.front().is_some_and(|resent| resent.0 < self.first) {
            self.in_order.pop_front();
        }
        self.una = self.sent.front().map_or(self.nxt, |sent| sent.seq);
        self.lost_below = self.lost_below.max(self.first);
        self.next_resend = self.next_resend.max(self.first);
    }

    /// A ring goes through all of its places: those of many connections that once had large windows do not fit into a cache.
    #[cold]
    fn take_less_room(&mut self) {
        self.sent.shrink_to((2 * self.sent.len()).max(LEAST_ROOM));
    }

    /// What was assumed to have arrived is in part acknowledged, or no longer assumed.
    pub(crate) fn assume_less(&mut self, bytes: u64) {
        self.assumed = self.assumed.saturating_sub(bytes).min(self.unassumable());
    }

    /// A duplicate acknowledgement: another segment has arrived, nobody knows which. Not the first one.
    pub(crate) fn assume_more(&mut self, bytes: u64) {
        self.assumed = (self.assumed + bytes).min(self.unassumable());
    }

    fn unassumable(&self) -> u64 {
        let first = self.sent.front().map_or(0, |sent| u64::from(sent.len));
        (self.outstanding() - self.sacked - self.lost).saturating_sub(if self.lost == 0 { first } else { 0 })
    }

    /// All segments that lie between `start` and `end` have arrived.
    pub(crate) fn sack(&mut self, start: u64, end: u64, news: &mut Delivered) {
        if end <= self.una || end > self.nxt {
            return;
        }
        let mut place = self.first + self.sent.partition_point(|sent| sent.seq < start) as u64;
        loop {
            place = self.next_missing(place);
            let Some(&sent) = self.get(place).filter(|sent| sent.seq + u64::from(sent.len) <= end) else { return };
            self.deliver(place, &sent, news);
            self.sacked += u64::from(sent.len);
            self.at(place).skip = 1;
            self.rank(place + 1);
        }
    }

    /// Decides which segments are lost; whether any is newly lost.
    #[inline]
    pub(crate) fn detect(&mut self, marking: LossMarking) -> bool {
        let edge = match marking {
            LossMarking::Count => self.top[DUP_THRESHOLD as usize - 1].saturating_sub(1),
            LossMarking::Fack => self.top[0].saturating_sub(DUP_THRESHOLD),
            LossMarking::RackTlp => 0,
        };
        self.lose_below(edge)
    }

    /// The first segment is lost.
    pub(crate) fn lose_first(&mut self) -> bool {
        self.lose_below(self.first + 1)
    }

    // Every acknowledgement of a recovery comes here.
    #[inline(always)]
    fn lose_below(&mut self, edge: u64) -> bool {
        let before = self.lost;
        while self.lost_below < edge.min(self.last()) {
            let sent = self.sent[(self.lost_below - self.first) as usize];
            if sent.skip == 0 {
                self.lost += u64::from(sent.len);
                if let Some(losses) = &mut self.losses {
                    losses.push((self.lost_below, sent.len));
                }
            }
            self.lost_below += 1;
        }
        self.lost > before
    }

    /// What was sent before `last` (when, and which), and `overdue` ago or longer, is lost: what was sent once in the order in
    /// which it was sent, what was sent again in that order. Only the last segment is ever sent again before it is lost.
    ///
    /// Source: RFC 8985, 6.2, step 5.
    pub(crate) fn lose_late(&mut self, now: Time, last: (Time, u64), overdue: Span) -> Late {
        let mut late = Late { any: false, again: 0, due: Time::NEVER };
        while let Some(&sent) = self.get(self.lost_below) {
            if sent.skip == 0 {
                if (sent.at, self.lost_below) >= last {
                    break;
                }
                if sent.at + overdue > now {
                    late.due = sent.at + overdue;
                    break;
                }
                late.any = true;
                late.again += u64::from(self.lose_one(self.lost_below, &sent));
            }
            self.lost_below += 1;
        }
        while let Some(&(place, at)) = self.in_order.front() {
            if self.is_under_way_again(place, at) {
                if (at, place) >= last {
                    break;
                }
                if at + overdue > now {
                    late.due = late.due.min(at + overdue);
                    break;
                }
                (late.any, late.again) = (true, late.again + 1);
                self.lose_again(place);
            }
            self.in_order.pop_front();
        }
        late
    }

    /// The retransmission timer expired: the first segment is lost, and what was sent `overdue` ago or longer.
    ///
    /// Source: RFC 8985, 6.3.
    pub(crate) fn lose_old(&mut self, now: Time, overdue: Span) {
        if let Some(&head) = self.sent.front() {
            if head.skip == 0 && self.lost_below <= self.first {
                self.lose_one(self.first, &head);
                self.lost_below = self.first + 1;
            } else if head.skip == 0 && head.epoch == self.epoch {
                self.lose_again(self.first);
            }
        }
        self.lose_late(now, (Time::NEVER, u64::MAX), overdue);
    }

    /// The segment at `place`, which the caller puts below `lost_below`, is lost; whether it had been sent again.
    fn lose_one(&mut self, place: u64, sent: &Sent) -> bool {
        self.lost += u64::from(sent.len);
        if sent.epoch == self.epoch {
            self.lose_again(place);
            return true;
        }
        if let Some(losses) = &mut self.losses {
            losses.push((place, sent.len));
        }
        false
    }

    /// Whether the retransmission of the segment at `place` that was sent at `at` is in flight.
    fn is_under_way_again(&self, place: u64, at: Time) -> bool {
        self.get(place).is_some_and(|sent| sent.skip == 0 && sent.epoch == self.epoch && sent.at == at)
    }

    /// The retransmission of the segment at `place` is lost.
    fn lose_again(&mut self, place: u64) {
        let sent = self.at(place);
        sent.epoch = 0;
        let len = sent.len;
        self.resent -= u64::from(len);
        // What is sent again in order comes to it by itself.
        if place < self.next_resend {
            self.lost_again.push_back(place);
        }
        if let Some(losses) = &mut self.losses {
            losses.push((place, len));
        }
    }

    /// Retransmissions that were sent more than `patience` before something that has arrived are lost; how many.
    pub(crate) fn detect_lost_again(&mut self, last_sent: Time, patience: Span) -> u64 {
        let mut found = 0;
        while let Some(&(place, at)) = self.in_order.front().filter(|resent| resent.1 + patience < last_sent) {
            self.in_order.pop_front();
            if self.is_under_way_again(place, at) {
                self.lose_again(place);
                found += 1;
            }
        }
        found
    }

    /// The retransmission timer expired: whatever has not arrived is lost, sent again or not.
    pub(crate) fn lose_all(&mut self) {
        if let Some(losses) = &mut self.losses {
            let in_flight = |&(place, sent): &(u64, &Sent)| {
                sent.skip == 0 && (place >= self.lost_below || sent.epoch == self.epoch)
            };
            losses.extend((self.first..).zip(&self.sent).filter(in_flight).map(|(place, sent)| (place, sent.len)));
        }
        self.epoch += 1;
        (self.assumed, self.resent) = (0, 0);
        self.lost = self.outstanding() - self.sacked;
        self.lost_below = self.last();
        self.next_resend = self.first;
        self.in_order.clear();
        self.lost_again.clear();
    }

    /// Whether any segment is lost.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// The first lost segment that is to be sent again: its place and length.
    ///
    /// Source: RFC 6675, 4, `NextSeg` rule 1.
    pub(crate) fn next_lost(&mut self) -> Option<(u64, u32)> {
        while let Some(&place) = self.lost_again.front() {
            let missing = |sent: &&Sent| sent.skip == 0 && sent.epoch != self.epoch;
            if let Some(sent) = self.get(place).filter(missing) {
                return Some((place, sent.len));
            }
            self.lost_again.pop_front();
        }
        let (place, len) = self.next_unsent_again()?;
        (place < self.lost_below).then_some((place, len))
    }

    /// The first segment that has not arrived, was not sent again and lies before one that has arrived.
    ///
    /// Source: RFC 6675, 4, `NextSeg` rule 3.
    pub(crate) fn next_forward(&mut self) -> Option<(u64, u32)> {
        let (place, len) = self.next_unsent_again()?;
        (place + 1 < self.top[0]).then_some((place, len))
    }

    /// The last segment, if it has not arrived.
    ///
    /// Source: RFC 6675, 4, `NextSeg` rule 4.
    pub(crate) fn last_missing(&self) -> Option<(u64, u32)> {
        let sent = self.sent.back().filter(|sent| sent.skip == 0)?;
        Some((self.last() - 1, sent.len))
    }

    /// The first segment.
    pub(crate) fn head(&self) -> Option<(u64, u32)> {
        self.sent.front().map(|sent| (self.first, sent.len))
    }

    /// The segment at `place` was sent again; its first number.
    pub(crate) fn on_resent(&mut self, now: Time, place: u64) -> u64 {
        let epoch = self.epoch;
        let sent = self.at(place);
        let fresh = sent.epoch != epoch;
        (sent.at, sent.epoch) = (now, epoch);
        sent.resent += 1;
        let (seq, len) = (sent.seq, u64::from(sent.len));
        if fresh {
            self.resent += len;
        }
        if place >= self.next_resend && place < self.top[0].max(self.lost_below) {
            self.next_resend = place + 1;
        }
        self.in_order.push_back((place, now));
        seq
    }

    fn next_unsent_again(&mut self) -> Option<(u64, u32)> {
        loop {
            let place = self.next_missing(self.next_resend);
            self.next_resend = place;
            let sent = self.get(place)?;
            if sent.epoch != self.epoch {
                return Some((place, sent.len));
            }
            self.next_resend += 1;
        }
    }

    /// A segment that had not arrived has.
    #[inline]
    fn deliver(&mut self, place: u64, sent: &Sent, news: &mut Delivered) {
        let len = u64::from(sent.len);
        news.bytes += len;
        news.segments += 1;
        let last = Some((sent.at, place));
        if sent.resent == 0 {
            news.last_once = news.last_once.max(last);
            news.overtaken |= place < news.arrived_below;
        } else {
            news.last_again = news.last_again.max(last);
            let again = if sent.resent == 1 { sent.at } else { Time::ZERO };
            news.resent = Some(news.resent.map_or(again, |earliest| earliest.min(again)));
        }
        if sent.epoch == self.epoch {
            self.resent -= len;
        }
        if place < self.lost_below {
            self.lost -= len;
        }
    }

    /// The segment before `behind` has arrived.
    #[inline]
    fn rank(&mut self, behind: u64) {
        let mut behind = behind;
        for top in &mut self.top {
            if behind > *top {
                std::mem::swap(top, &mut behind);
            }
        }
    }

    /// The first segment from `place` on that has not arrived.
    #[inline]
    fn next_missing(&mut self, place: u64) -> u64 {
        let mut place = place.max(self.first);
        while let Some(skip) = self.get(place).map(|sent| sent.skip).filter(|&skip| skip > 0) {
            let next = place + u64::from(skip);
            if let Some(further) = self.get(next).map(|sent| sent.skip).filter(|&skip| skip > 0) {
                self.at(place).skip += further;
            }
            place = next;
        }
        place
    }

    #[inline]
    fn get(&self, place: u64) -> Option<&Sent> {
        self.sent.get(usize::try_from(place.checked_sub(self.first)?).ok()?)
    }

    #[inline]
    fn at(&mut self, place: u64) -> &mut Sent {
        &mut self.sent[(place - self.first) as usize]
    }

    /// The number of the segment that is sent next.
    #[inline]
    pub(crate) fn last(&self) -> u64 {
        self.first + self.sent.len() as u64
    }
}

#[inline]
fn count_resent(times: &mut [u64; 8], resent: u32) {
    if resent > 0 {
        times[(resent as usize - 1).min(7)] += 1;
    }
}

/// Checks that what is kept in sums is what the segments say.
#[cfg(test)]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        assert_eq!(board.pipe(), 5 * LEN);
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
        assert_eq!((board.pipe(), board.lost), (0, 5 * LEN));
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
        assert_eq!(board.pipe(), 4 * LEN);
        board.lose_old(at(60), Span::from_ps(58));
        board.check();
        assert_eq!(board.lost, 3 * LEN - LEN, "the probe is not late");
        board.lose_old(at(200), Span::from_ps(58));
        board.check();
        assert_eq!((board.lost, board.pipe()), (3 * LEN, 0));
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
        let mut young = super::tests::board(6);
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
        assert_eq!((news.acked, board.una(), board.outstanding(), board.pipe()), (LEN, LEN, 2 * LEN, 0));
        board.acknowledge(3 * LEN, &mut news);
        assert_eq!((news.acked, board.outstanding(), board.pipe()), (3 * LEN, 0, 0));
    }

    proptest! {
        /// Whatever is told in which order: the sums are those of the segments, losses only grow, and nothing that has
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
                prop_assert!(board.pipe() <= 2 * board.outstanding());
            }
        }
    }
}
