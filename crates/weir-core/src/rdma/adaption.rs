//! The share of its line at which a receiver gives credit, where hosts may send more than the network above them carries.

use super::packet::{Packet, PacketKind};
use crate::rng::Stream;
use crate::units::{Span, Time};

/// Weight of a round's share of marked packets in their average, and the average above which the share falls.
const WEIGHT: f64 = 0.5;
const TARGET: f64 = 0.3;
/// How much of the excess it falls by.
const FALL: f64 = 0.5;
/// What it gains in a round without a reason to fall.
const STEP: f64 = 0.01;
/// The least share, as a part of what the network carries.
const LEAST: f64 = 0.9;
/// More than 2^7 steps are more than all.
const MOST_DOUBLINGS: u32 = 7;

/// The share of a receiver's line, adapted in rounds of 0.75 to 1.25 times one and a half round trips, each drawn:
///
/// ```text
/// packets were cut before the last queue:  share -= cut / arrived
/// marked, on average, above 0.3:           share *= 1 - (marked - 0.3) / 2
/// neither:                                 share += 0.01, or 0.01 x 2^k in a round without marks that k such rounds came before
/// 0.9 / oversubscription <= share <= 1
/// ```
///
/// Source: uet-htsim, `oversubscribed_cc.cpp`
/// DEVIATION: of rounds in which nothing comes while the share is 1, only the last one is drawn.
#[derive(Clone, Debug)]
pub struct Adaption {
    least: f64,
    round: Span,
    chance: Stream,
    share: f64,
    marked: f64,
    /// Rounds in a row in which the share did not fall, up to [`MOST_DOUBLINGS`].
    rising: u32,
    /// The end of the round, and what came in it.
    end: Time,
    came: Came,
}

/// Packets of a round: all, with a mark, and without payload, cut before the last queue or there.
#[derive(Clone, Copy, Debug, Default)]
struct Came {
    all: u32,
    marked: u32,
    cut: u32,
    cut_last: u32,
}

impl Adaption {
    /// At `now`, of a receiver whose network carries one part in `oversubscription` of what hosts may send.
    pub fn new(oversubscription: f64, round_trip: Span, now: Time, chance: Stream) -> Adaption {
        let round = Span::from_ps(round_trip.ps() * 3 / 2);
        let mut new = Adaption {
            least: LEAST / oversubscription,
            round,
            chance,
            share: 1.0,
            marked: 0.0,
            rising: 0,
            end: now,
            came: Came::default(),
        };
        new.begin_round();
        new
    }

    fn begin_round(&mut self) {
        let part = 0.75 + self.chance.open_unit() / 2.0;
        self.end += Span::from_ps((part * self.round.ps() as f64) as u64);
    }

    /// A packet came from a sender.
    pub fn count(&mut self, now: Time, packet: &Packet) {
        self.end_rounds(now);
        let came = &mut self.came;
        came.all += 1;
        match packet.kind {
            PacketKind::Header if packet.at_last_hop => came.cut_last += 1,
            PacketKind::Header => came.cut += 1,
            _ => came.marked += u32::from(packet.marked),
        }
    }

    /// The share at `now`.
    pub fn share(&mut self, now: Time) -> f64 {
        self.end_rounds(now);
        self.share
    }

    fn end_rounds(&mut self, now: Time) {
        while self.end <= now {
            self.adapt();
            self.begin_round();
            if self.share == 1.0 {
                self.skip_rounds(now);
            }
        }
    }

    /// Rounds in which nothing comes leave a whole share as it is, and halve the average of marks.
    fn skip_rounds(&mut self, now: Time) {
        let rounds = now.saturating_since(self.end).ps() / self.round.ps();
        self.end += self.round * rounds;
        // Of 64 halves nothing is left that counts.
        (0..rounds.min(64)).for_each(|_| self.marked *= 1.0 - WEIGHT);
    }

    fn adapt(&mut self) {
        let Came { all, marked, cut, cut_last } = std::mem::take(&mut self.came);
        let whole = all - cut - cut_last;
        let of_whole = if whole > 0 { f64::from(marked) / f64::from(whole) } else { 0.0 };
        self.marked += WEIGHT * (of_whole - self.marked);
        if cut > 0 {
            self.share -= f64::from(cut) / f64::from(all);
        }
        let excess = self.marked - TARGET;
        if excess > 0.0 {
            self.share *= 1.0 - FALL * excess;
        }
        if cut > 0 || excess > 0.0 {
            self.rising = 0;
        } else {
            self.share += STEP * f64::from(if marked == 0 { 1_u32 << self.rising } else { 1 });
            self.rising = (self.rising + 1).min(MOST_DOUBLINGS);
        }
        self.share = self.share.clamp(self.least, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    const ROUND_TRIP: Span = Span::from_us(10);

    fn adaption(oversubscription: f64) -> Adaption {
        Adaption::new(oversubscription, ROUND_TRIP, Time::ZERO, Seed::new(1).stream("rounds"))
    }

    /// A round in which these packets come: whole ones without and with marks, cut ones before the last queue and there.
    fn round(adaption: &mut Adaption, [clean, marked, cut, cut_last]: [u32; 4]) -> f64 {
        let data = Packet::new(PacketKind::Data, 0, 0);
        let header = Packet { kind: PacketKind::Header, ..data };
        let kinds = [
            (clean, data),
            (marked, Packet { marked: true, ..data }),
            (cut, header),
            (cut_last, Packet { at_last_hop: true, ..header }),
        ];
        let now = adaption.end - Span::from_ps(1);
        kinds.iter().for_each(|(count, packet)| (0..*count).for_each(|_| adaption.count(now, packet)));
        adaption.share(adaption.end)
    }

    fn is(share: f64, expected: f64) {
        assert!((share - expected).abs() < 1e-12, "{share} {expected}");
    }

    #[test]
    fn cuts_in_the_network_take_their_share_and_those_of_the_last_queue_none() {
        let mut adaption = adaption(8.0);
        is(round(&mut adaption, [60, 0, 0, 40]), 1.0);
        is(round(&mut adaption, [60, 0, 30, 10]), 0.7);
        is(round(&mut adaption, [0, 0, 50, 0]), 0.9 / 8.0);
    }

    #[test]
    fn marks_take_half_of_what_their_average_has_above_three_tenths() {
        let mut adaption = adaption(4.0);
        // Of what came whole 0.8 is marked: 0.4 on average, then 0.6.
        let first = 1.0 - 0.1 * 0.5;
        is(round(&mut adaption, [10, 40, 0, 50]), first);
        is(round(&mut adaption, [10, 40, 0, 0]), first * (1.0 - 0.3 * 0.5));
    }

    #[test]
    fn the_share_returns_by_steps_that_double_while_nothing_is_marked() {
        let mut adaption = adaption(8.0);
        round(&mut adaption, [1, 0, 1, 0]);
        let shares = [0.51, 0.53, 0.57, 0.65, 0.81, 1.0, 1.0];
        shares.into_iter().for_each(|share| is(round(&mut adaption, [9, 0, 0, 0]), share));
        round(&mut adaption, [1, 0, 1, 0]);
        is(round(&mut adaption, [9, 1, 0, 0]), 0.51);
        is(round(&mut adaption, [9, 0, 0, 0]), 0.53);
    }

    #[test]
    fn a_receiver_that_was_idle_for_long_goes_on_with_a_whole_share_and_without_marks() {
        for round_trip in [Span::from_ps(1), ROUND_TRIP] {
            let new = Adaption::new(4.0, round_trip, Time::ZERO, Seed::new(1).stream("rounds"));
            let mut adaption = Adaption { share: 0.5, marked: 0.8, ..new };
            let late = Time::ZERO + Span::from_ms(3_600_000);
            is(adaption.share(late), 1.0);
            assert!(adaption.end > late && adaption.end <= late + adaption.round * 2, "{}", adaption.end);
            assert!(adaption.marked < 1e-9, "{}", adaption.marked);
        }
    }

    #[test]
    fn rounds_last_one_and_a_half_round_trips_within_a_quarter_and_are_drawn() {
        let mut adaption = adaption(4.0);
        let mut length = || {
            let before = adaption.end;
            adaption.begin_round();
            adaption.end.saturating_since(before).ps() / 1000
        };
        let mut lengths: Vec<u64> = (0..200).map(|_| length()).collect();
        lengths.sort_unstable();
        assert!(lengths[0] >= 11_250 && lengths[199] <= 18_750, "{lengths:?}");
        assert!(lengths[0] < 11_800 && lengths[199] > 18_200, "{lengths:?}");
        let mean = lengths.iter().sum::<u64>() / 200;
        // Standard error: 7500 / sqrt(12 x 200) = 153.
        assert!(mean.abs_diff(15_000) < 600, "{mean}");
    }
}
