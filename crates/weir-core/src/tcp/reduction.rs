//! How the window comes down while losses are repaired.

use crate::tcp::config::Recovery;
use crate::units::Bytes;

/// The window of a sender that repairs losses, in place of that of its congestion control.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    kind: Kind,
    /// Where the window is to end.
    threshold: u64,
    segment: u64,
    window: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Halving,
    Prr {
        /// Bytes in flight at the beginning: RecoverFS.
        flight: u64,
        delivered: u64,
        sent: u64,
        /// Whether an acknowledgement must advance and show no further loss for the window to grow: SafeACK.
        is_safe: bool,
    },
    RateHalving {
        /// Whether the last acknowledgement took nothing.
        odd: bool,
    },
}

/// What a reduction begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) window: Bytes,
    /// What was in flight at first: RecoverFS.
    pub(crate) flight: Bytes,
    /// What is left of it.
    pub(crate) pipe: Bytes,
    /// Where the window is to end.
    pub(crate) threshold: Bytes,
}

impl Reduction {
    /// Of a sender with full segments of `segment`.
    pub(crate) fn new(recovery: Recovery, segment: Bytes, start: &Start) -> Reduction {
        let (window, threshold) = (start.window.count(), start.threshold.count());
        let prr = |is_safe| Kind::Prr { flight: start.flight.count().max(1), delivered: 0, sent: 0, is_safe };
        let (kind, window) = match recovery {
            Recovery::Halving => (Kind::Halving, threshold),
            Recovery::Prr => (prr(false), window),
            Recovery::SafePrr => (prr(true), window),
            Recovery::RateHalving => (Kind::RateHalving { odd: false }, window),
        };
        let mut reduction = Reduction { kind, threshold, segment: segment.count(), window };
        reduction.on_lost(start.pipe);
        reduction
    }

    /// Something was found lost though nothing has arrived, which left `pipe` in flight. What is lost makes no room: only what
    /// arrives does.
    pub(crate) fn on_lost(&mut self, pipe: Bytes) {
        let pipe = pipe.count();
        match &self.kind {
            Kind::Halving => {}
            Kind::Prr { .. } => self.follow(0, pipe, false),
            Kind::RateHalving { .. } => self.window = self.window.min(pipe + self.segment).max(self.segment),
        }
    }

    /// An acknowledgement reported `delivered` and left `pipe` in flight. `goes_well`: it acknowledges in order, and
    /// shows no further loss.
    pub(crate) fn on_ack(&mut self, delivered: Bytes, pipe: Bytes, goes_well: bool) {
        let (delivered_now, pipe) = (delivered.count(), pipe.count());
        match &mut self.kind {
            Kind::Halving => {}
            // Source: RFC 9937, 6: what reports nothing changes nothing.
            Kind::Prr { is_safe: true, .. } if delivered_now == 0 => {}
            Kind::Prr { .. } => self.follow(delivered_now, pipe, goes_well),
            Kind::RateHalving { odd } => {
                // The floor is half of the threshold, as Reno's `min_cwnd` had it.
                if *odd && self.window > (self.threshold / 2).max(self.segment) {
                    self.window -= self.segment;
                }
                *odd = !*odd;
                self.window = self.window.min(pipe + self.segment).max(self.segment);
            }
        }
    }

    /// Proportional reduction: `delivered_now` bytes have arrived, and `pipe` is in flight.
    fn follow(&mut self, delivered_now: u64, pipe: u64, goes_well: bool) {
        let Kind::Prr { flight, delivered, sent, is_safe } = &mut self.kind else { return };
        *delivered += delivered_now;
        let allowed = if pipe > self.threshold {
            // Proportional rate reduction.
            let share = u128::from(*delivered) * u128::from(self.threshold);
            (share.div_ceil(u128::from(*flight)) as u64).saturating_sub(*sent)
        } else {
            // Slow start reduction bound, or conservative reduction bound.
            let more = if goes_well || !*is_safe { self.segment } else { 0 };
            let limit = delivered.saturating_sub(*sent).max(delivered_now) + more;
            (self.threshold - pipe).min(limit)
        };
        // The first repair goes in any case. So does one when nothing is left in flight: nothing more would arrive.
        let least = if pipe == 0 || (*is_safe && *sent == 0) { self.segment } else { 0 };
        self.window = pipe + allowed.max(least);
    }

    /// `bytes` were sent.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: Bytes) {
        if let Kind::Prr { sent, .. } = &mut self.kind {
            *sent += bytes.count();
        }
    }

    /// What may be in flight.
    #[inline]
    pub(crate) fn window(&self) -> Bytes {
        Bytes::new(self.window)
    }

    /// The window that is left when all is repaired.
    pub(crate) fn last_window(&self) -> Bytes {
        Bytes::new(match self.kind {
            Kind::Halving | Kind::Prr { .. } => self.threshold,
            Kind::RateHalving { .. } => self.window.min(self.threshold),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: Bytes = Bytes::new(1000);

    /// With 20 segments in flight, of which `left` are, down to half.
    fn reduction(recovery: Recovery, left: u64) -> Reduction {
        let twenty = SEGMENT * 20;
        let start = Start { window: twenty, flight: twenty, pipe: SEGMENT * left, threshold: SEGMENT * 10 };
        Reduction::new(recovery, SEGMENT, &start)
    }

    /// One of 20 segments in flight is lost, and the others arrive one by one: how many are sent meanwhile.
    fn sent_while_repairing(recovery: Recovery) -> Vec<u64> {
        let mut reduction = reduction(recovery, 17);
        let mut pipe = SEGMENT * 17;
        let arrivals = (0..16).map(|_| {
            pipe -= SEGMENT;
            reduction.on_ack(SEGMENT, pipe, false);
            let mut sent = 0;
            while pipe + SEGMENT <= reduction.window() {
                pipe += SEGMENT;
                reduction.on_sent(SEGMENT);
                sent += 1;
            }
            sent
        });
        arrivals.collect()
    }

    #[test]
    fn halving_is_silent_for_half_of_a_round_trip() {
        let sent = sent_while_repairing(Recovery::Halving);
        assert_eq!(sent[..6], [0; 6]);
        assert_eq!(sent[7..], [1; 9]);
    }

    #[test]
    fn proportional_reduction_sends_one_for_every_two_that_arrive() {
        for recovery in [Recovery::Prr, Recovery::SafePrr] {
            let sent = sent_while_repairing(recovery);
            // The first repair goes at once; RFC 9937 says so.
            let first = usize::from(recovery == Recovery::SafePrr) * 2;
            assert!(sent[first..10].chunks(2).all(|pair| pair.iter().sum::<u64>() <= 1), "{recovery:?} {sent:?}");
            assert_eq!(17 - 16 + sent.iter().sum::<u64>(), 10, "what is in flight ends at the threshold");
        }
    }

    #[test]
    fn a_window_below_the_threshold_grows_only_while_repairs_go_well() {
        // All but 2 of 20 segments are lost: slow start back to the threshold, or as much as has arrived.
        for (recovery, goes_well, expected) in
            [(Recovery::Prr, false, 2), (Recovery::SafePrr, true, 2), (Recovery::SafePrr, false, 1)]
        {
            let mut reduction = reduction(recovery, 2);
            reduction.on_ack(SEGMENT, SEGMENT, false);
            reduction.on_sent(SEGMENT);
            reduction.on_ack(SEGMENT, SEGMENT, goes_well);
            assert_eq!(reduction.window(), SEGMENT + SEGMENT * expected, "{recovery:?} {goes_well}");
        }
    }

    #[test]
    fn rate_halving_sends_one_for_every_two_that_arrive() {
        let sent = sent_while_repairing(Recovery::RateHalving);
        assert!(sent[1..15].chunks(2).all(|pair| pair.iter().sum::<u64>() <= 1), "{sent:?}");
        assert!(sent.iter().sum::<u64>() >= 5, "{sent:?}");
    }
}
