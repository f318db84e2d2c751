//! Which way a packet takes: its sender writes a value into it that switches hash.

use std::collections::VecDeque;

use super::{PathChoice, PathRule};
use crate::rng::Stream;

/// Most penalties of a value.
const MOST: u8 = 15;
/// Penalties of a packet that was marked, that was cut, and of one that was lost.
const MARKED: u8 = 1;
const CUT: u8 = 4;
/// Values that `reps` keeps for another use.
const KEPT: usize = 8;

/// What became of a packet, as far as its way is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived without a mark.
    Clean,
    /// It arrived with one.
    Marked,
    /// A queue cut it.
    Cut,
    /// It was lost.
    Lost,
}

/// The values of a sender's packets.
///
/// Source: uet-htsim, `uec_mp.cpp` (penalties 1, 4 and 15, of values that are left out in a row the first has one less then, 8 values kept by REPS, all
/// by `mixed`)
/// DEVIATION: REPS does not freeze after a timeout.
#[derive(Clone, Debug)]
pub struct Paths {
    choice: PathChoice,
    chance: Stream,
    turn: u32,
    mask: u32,
    penalties: Vec<u8>,
    clean: VecDeque<u16>,
}

impl Paths {
    /// Values by `choice`, with this chance.
    pub fn new(choice: PathChoice, mut chance: Stream) -> Paths {
        let mask = chance.below(choice.values.into()) as u32;
        let counts = matches!(choice.rule, PathRule::Bitmap | PathRule::Mixed);
        let penalties = vec![0; if counts { choice.values as usize } else { 0 }];
        Paths { choice, chance, turn: 0, mask, penalties, clean: VecDeque::new() }
    }

    /// The value of the next packet.
    pub fn pick(&mut self) -> u16 {
        if let Some(value) = self.clean.pop_front() {
            return value;
        }
        if self.choice.rule == PathRule::Reps {
            return self.chance.below(self.choice.values.into()) as u16;
        }
        for left_out in 0.. {
            let value = self.turn ^ self.mask;
            self.turn += 1;
            if self.turn == self.choice.values {
                self.turn = 0;
                self.mask = self.chance.below(self.choice.values.into()) as u32;
            }
            match self.penalties.get_mut(value as usize) {
                Some(penalty) if *penalty > 0 && left_out < self.choice.values => *penalty -= u8::from(left_out == 0),
                _ => return value as u16,
            }
        }
        unreachable!("one of all values is taken")
    }

    /// What became of a packet with this value.
    pub fn learn(&mut self, value: u16, fate: Fate) {
        if fate == Fate::Clean {
            if matches!(self.choice.rule, PathRule::Reps | PathRule::Mixed) {
                if self.choice.rule == PathRule::Reps && self.clean.len() == KEPT {
                    self.clean.pop_front();
                }
                self.clean.push_back(value);
            }
            return;
        }
        if let Some(penalty) = self.penalties.get_mut(usize::from(value)) {
            *penalty = match fate {
                Fate::Clean => *penalty,
                Fate::Marked => *penalty + MARKED,
                Fate::Cut => *penalty + CUT,
                Fate::Lost => MOST,
            }
            .min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn paths(rule: PathRule) -> Paths {
        Paths::new(PathChoice { rule, values: 16 }, Seed::new(7).stream("paths"))
    }

    fn round(paths: &mut Paths) -> Vec<u16> {
        let mut values: Vec<u16> = (0..16).map(|_| paths.pick()).collect();
        values.sort_unstable();
        values
    }

    #[test]
    fn each_round_has_each_value_once() {
        let mut paths = paths(PathRule::Oblivious);
        for _ in 0..5 {
            assert_eq!(round(&mut paths), (0..16).collect::<Vec<u16>>());
        }
    }

    #[test]
    fn a_value_is_left_out_once_for_each_penalty() {
        let mut paths = paths(PathRule::Bitmap);
        paths.learn(3, Fate::Cut);
        paths.learn(5, Fate::Marked);
        let values: Vec<u16> = (0..16 * 6).map(|_| paths.pick()).collect();
        let count = |value| values.iter().filter(|&&other| other == value).count();
        // 5 of 101 looks at 3 and 5 were wasted.
        assert!((count(3), count(5)) == (2, 5) || (count(3), count(5)) == (3, 6), "{} {}", count(3), count(5));
        paths.learn(1, Fate::Lost);
        paths.learn(1, Fate::Lost);
        assert_eq!(paths.penalties[1], MOST);
    }

    #[test]
    fn clean_values_come_again_and_oldest_first() {
        for (rule, first) in [(PathRule::Reps, 2), (PathRule::Mixed, 0)] {
            let mut paths = paths(rule);
            (0..10).for_each(|value| paths.learn(value, Fate::Clean));
            let values: Vec<u16> = (first..10).map(|_| paths.pick()).collect();
            assert_eq!(values, (first..10).collect::<Vec<u16>>(), "{rule:?} keeps eight, or all");
        }
    }

    #[test]
    fn values_that_are_all_bad_are_used_in_the_end() {
        let mut paths = paths(PathRule::Bitmap);
        (0..16).for_each(|value| paths.learn(value, Fate::Lost));
        paths.pick();
        let left: u32 = paths.penalties.iter().map(|&penalty| u32::from(penalty)).sum();
        assert_eq!(left, 16 * 15 - 1, "a row of values that are left out costs one penalty");
    }
}
