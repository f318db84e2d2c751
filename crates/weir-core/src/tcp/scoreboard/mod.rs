//! What was sent and not yet acknowledged, segment by segment: which segments have arrived, which are lost, and which
//! to send again.
//!
//! Segments are numbered in the order of their first transmission; a number is a place in a ring. No operation takes
//! time in proportion to the window: each segment is looked at a bounded number of times on its way through (when it
//! is sent, when it arrives, when it becomes lost, when it is sent again, when it is acknowledged).
//! - Runs of arrived segments are skipped by pointers that are shortened when they are followed (union-find).
//! - Which segments are lost is one number, `lost_below`: all below that have not arrived. It only grows.
//! - A timeout makes every segment lost and every retransmission void by moving that number and an epoch.

mod again;
mod lost;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::tcp::config::DUP_THRESHOLD;
use crate::units::{Bytes, Time};

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

/// What an acknowledgement reported of segments.
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

/// What every acknowledgement needs stands first.
#[derive(Clone, Debug, Default)]
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
    /// Bytes taken for arrived from duplicate acknowledgements, when these report no more.
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
        Scoreboard { epoch: 1, ..Scoreboard::default() }
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

    /// What an acknowledgement reports, before it is read.
    #[inline]
    pub(crate) fn news(&self) -> Delivered {
        Delivered { arrived_below: self.top[0], ..Delivered::default() }
    }

    /// Bytes in flight: sent, not arrived and not lost, and sent again.
    ///
    /// Source: RFC 6675, 4, `Pipe`.
    #[inline]
    pub(crate) fn pipe(&self) -> Bytes {
        Bytes::new(self.outstanding() - self.sacked - self.assumed - self.lost + self.resent)
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
