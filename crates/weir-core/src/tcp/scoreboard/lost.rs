//! Which segments are lost.

use crate::tcp::config::{DUP_THRESHOLD, LossMarking};
use crate::tcp::scoreboard::{Scoreboard, Sent};
use crate::units::{Span, Time};

/// What is lost because it is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// Whether anything became lost, and how many retransmissions among it.
    pub(crate) any: bool,
    pub(crate) again: u64,
    /// When the next of what was overtaken becomes so.
    pub(crate) due: Time,
}

impl Scoreboard {
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
}
