//! What acknowledgments show of the data of a sender: what arrived, when, and whether it had been sent again for nothing.

use super::{Acked, Sender};
use crate::trace::counts::Counts;
use crate::trace::pace::Mark;
use crate::trace::segment::Segment;

/// For so many round trips data from before the first frame may be acknowledged, or follow what was sent again.
const CUT_ROUNDS: u64 = 2;
/// A round trip where none is known yet. Source: RFC 6298, section 2.1.
const UNKNOWN_TRIP_PS: u64 = 1_000_000_000_000;

impl Sender {
    /// An acknowledgment of this data was seen at `now`. `window_changed` says whether the window did.
    pub(crate) fn on_ack(&mut self, now: u64, segment: &Segment, window_changed: bool, counts: &mut Counts) -> Acked {
        let place = self.place(segment.ack);
        let mut acked = Acked { place, ..Acked::default() };
        if let Some((_, echo)) = segment.timestamps {
            acked.echo = self.echoes.came(echo, now);
        }
        if place > self.una {
            acked.bytes = place - self.una;
            counts.acked_bytes += acked.bytes;
            counts.unseen_bytes += self.holes.close_below(place);
            if !self.began.is_none_or(|began| self.may_precede(now, began, None)) {
                counts.unseen_bytes += place.saturating_sub(self.highest);
            }
            self.highest = self.highest.max(place);
            let waited = self.una < self.disturbed;
            self.arrived_before(segment);
            self.una = place;
            self.advanced = now;
            // Two segments are acknowledged at once (RFC 5681, section 4.2), also those that the receiver's card joins.
            let kept_back = acked.bytes <= 2 * u64::from(self.mss) && self.brings_more(segment);
            acked.rtt_ps = self.pop_acked(now, waited, kept_back, counts);
            if waited {
                self.trains.broken()
            } else if self.acked_sent > 0 {
                let sent = self.acked_sent;
                let took_ps = now.saturating_sub(sent);
                let waited_ps = took_ps.saturating_sub(self.ahead.min_ps.unwrap_or(took_ps));
                self.trains.acknowledged(Mark { now, place, sent }, waited_ps, self.mss);
            }
            if self.outstanding() == 0 {
                self.empty_since = Some(now);
            }
        } else if place == self.una
            && segment.length() == 0
            && !segment.has(Segment::RST)
            && self.outstanding() > 0
            && (segment.sacks > 0 || !window_changed)
        {
            acked.duplicate = true;
        }
        if let Some(&block) = segment.blocks().first()
            && !self.duplicate_sack(block, segment, place, counts)
        {
            self.arrived(now, block.1);
        }
        self.arrived_early(now, segment);
        acked
    }

    /// Whether data that is missed now may have left before the first frame of a capture that began within the connection.
    pub(super) fn may_precede(&self, now: u64, began: u64, round_trip_ps: Option<u64>) -> bool {
        let trip_ps = self.smoothed.mean_ps().max(round_trip_ps).unwrap_or(UNKNOWN_TRIP_PS);
        self.headless && now.saturating_sub(began) <= CUT_ROUNDS * trip_ps
    }

    /// What is acknowledged after less than three quarters of the least round trip since it was sent again had arrived before: jitter
    /// makes some round trips shorter than all until then.
    ///
    /// Source: RFC 8985, section 6.2, step 2, of round trips that are less than the least
    fn arrived_early(&mut self, now: u64, segment: &Segment) {
        if self.fresh.is_empty() {
            return;
        }
        let least_ps = self.ahead.min_ps.unwrap_or(0) / 4 * 3;
        while self.fresh.front().is_some_and(|fresh| now.saturating_sub(fresh.at) >= least_ps) {
            self.fresh.pop_front();
        }
        let blocks: Vec<_> = segment.blocks().iter().map(|&(l, r)| (self.place(l), self.place(r))).collect();
        let una = self.una;
        let rows = &mut self.spurious_rows;
        self.fresh.retain(|fresh| {
            let arrived = fresh.end <= una || blocks.iter().any(|&(l, r)| l <= fresh.start && fresh.end <= r);
            if arrived {
                rows.push(fresh.row);
            }
            !arrived
        });
    }

    /// An acknowledgment of the first segment that was not acknowledged echoes an older time than that at which it was sent
    /// again: it had arrived before.
    ///
    /// Source: RFC 3522, section 3.2
    fn arrived_before(&mut self, segment: &Segment) {
        let Some((_, echo)) = segment.timestamps else { return };
        let first = self.repeats.range(..=self.una).next_back().map(|(_, repeat)| repeat);
        let once = first.filter(|repeat| repeat.end > self.una && repeat.times == 1);
        if let Some((value, row)) = once.and_then(|repeat| repeat.value.zip(repeat.row))
            && value.wrapping_sub(echo) as i32 > 0
        {
            self.spurious_rows.push(row);
        }
    }

    /// Whether an acknowledgment reports for the first time a segment beyond a hole.
    fn brings_more(&self, segment: &Segment) -> bool {
        segment.blocks().first().is_some_and(|&(_, right)| {
            let right = self.place(right);
            let place = self.in_flight.partition_point(|sent| sent.end < right);
            self.in_flight.get(place).is_some_and(|sent| sent.start < right && sent.took_ps == 0)
        })
    }

    /// The segment that ends at `right` arrived beyond others that did not, and was acknowledged at once: its
    /// round trip, unless it was known. Source: RFC 2018, section 4: the first block has the segment that made the receiver send it.
    fn arrived(&mut self, now: u64, right: u32) {
        let right = self.place(right);
        let place = self.in_flight.partition_point(|sent| sent.end < right);
        let Some(sent) = self.in_flight.get_mut(place).filter(|sent| sent.start < right && !sent.again) else { return };
        let took_ps = now.saturating_sub(sent.at).max(1);
        if sent.took_ps == 0 {
            sent.took_ps = took_ps;
        }
        // The block that a repair joins to others ends where one ended before: that is no news.
        if right > sent.known {
            // A hole within it may count with what is beyond.
            self.ahead.take(took_ps, (right - sent.known).div_ceil(u64::from(self.mss.max(1))));
            sent.known = right;
            let at = sent.at;
            self.arrived_at(right, at, took_ps);
        }
    }

    /// Forget what is acknowledged; a round-trip time if the end of a segment was acknowledged that was sent once, by
    /// an acknowledgment that cannot have `waited` for others. Source: RFC 6298, section 3 (Karn's algorithm).
    /// An acknowledgment that was `kept_back` until data beyond a hole came says nothing about what waits in queues.
    fn pop_acked(&mut self, now: u64, waited: bool, kept_back: bool, counts: &mut Counts) -> Option<u64> {
        let mut last = None;
        let mut packets = 0;
        let full = u64::from(self.mss.max(1));
        while let Some(sent) = self.in_flight.front().copied().filter(|sent| sent.end <= self.una) {
            self.in_flight.pop_front();
            if !sent.again {
                packets += sent.end.saturating_sub(sent.known).div_ceil(full);
            }
            last = Some(sent);
            self.acked_sent = sent.at;
        }
        // Up to here a packet that the host joined arrived.
        let part = self.in_flight.front_mut().filter(|sent| sent.start < self.una && !sent.again && !waited);
        if let Some(part) = part {
            let took_ps = now.saturating_sub(part.at);
            self.acked_sent = part.at;
            packets += self.una.saturating_sub(part.known).div_ceil(full);
            part.known = part.known.max(self.una);
            if !kept_back {
                let at = part.at;
                self.edge = Some((at, took_ps));
                self.arrived_at(self.una, at, took_ps);
                if packets > 0 {
                    self.ahead.take(took_ps, packets);
                }
            }
        }
        let sent = last.filter(|sent| sent.end == self.una && !sent.again && !waited)?;
        let rtt = now.saturating_sub(sent.at);
        self.rtt.take(rtt);
        if !kept_back {
            self.edge = Some((sent.at, rtt));
            self.arrived_at(self.una, sent.at, rtt);
        }
        if packets > 0 && !kept_back {
            self.ahead.take(rtt, packets);
        }
        self.smoothed.take(rtt);
        // What a queue let go at the rate of the path was not compressed, though it had left more slowly.
        let bunch = self.compression.take(now, sent.at, self.una, self.rtt.min_ps.unwrap_or(0));
        if let Some(bunch) = bunch.filter(|bunch| self.trains.slower_than(bunch.bytes, bunch.took_ps)) {
            counts.compressions += 1;
            counts.compressed_ps = counts.compressed_ps.saturating_add(bunch.saved_ps);
        }
        Some(rtt)
    }

    /// Whether the first block reports data that came twice: when it lies below the acknowledgment or within the second.
    /// Source: RFC 2883, section 4.
    fn duplicate_sack(&mut self, (left, right): (u32, u32), segment: &Segment, ack: u64, counts: &mut Counts) -> bool {
        let (left, right) = (self.place(left), self.place(right));
        let within = segment.blocks().get(1).is_some_and(|&(second_left, second_right)| {
            self.place(second_left) <= left && right <= self.place(second_right)
        });
        if left >= right || !(right <= ack || within) {
            return false;
        }
        counts.dsacks += 1;
        for (&start, repeat) in self.repeats.range_mut(..right).rev() {
            if repeat.end <= left {
                break;
            }
            if start < right && !repeat.spurious {
                repeat.spurious = true;
                counts.spurious += 1;
                self.spurious_rows.extend(repeat.row);
            }
        }
        true
    }
}
