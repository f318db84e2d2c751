//! Which segment is to be sent again.

use crate::tcp::scoreboard::{Scoreboard, Sent};
use crate::units::Time;

impl Scoreboard {
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
}
