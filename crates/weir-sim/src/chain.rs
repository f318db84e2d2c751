//! Tasks that wait for each other: which are ready, and when rounds of them began and were over.

use weir_core::spec::messages::Arrivals;
use weir_core::units::{Bytes, Span, Time};

use crate::totals::RoundTotals;

/// No task.
pub(crate) const NO_TASK: u32 = u32::MAX;

/// The tasks of a group.
#[derive(Debug)]
pub(crate) struct Chain {
    /// By task: for how many others it waits still.
    waits: Vec<u32>,
    /// Those that wait for task i are `behind[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    behind: Vec<u32>,
    /// By round: where it ends, and what is known of it.
    rounds: Vec<Round>,
    /// Tasks that are not over.
    left: u32,
    start: Time,
    /// How long all took.
    pub(crate) job: Option<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    end: u32,
    carried: Bytes,
    start: Option<Time>,
    over: Option<Time>,
    /// Messages that are not delivered.
    left: u32,
}

impl Chain {
    /// The tasks of `arrivals`, if there are any.
    pub(crate) fn of(arrivals: &Arrivals) -> Option<Chain> {
        let Arrivals::Chained { start_ps, tasks, rounds } = arrivals else { return None };
        let mut first = vec![0; tasks.len() + 1];
        for &before in tasks.iter().flat_map(|task| &task.4) {
            first[before as usize + 1] += 1;
        }
        for i in 0..tasks.len() {
            first[i + 1] += first[i];
        }
        let (mut free, mut behind) = (first.clone(), vec![0; first[tasks.len()] as usize]);
        for (place, task) in (0..).zip(tasks) {
            for &before in &task.4 {
                behind[free[before as usize] as usize] = place;
                free[before as usize] += 1;
            }
        }
        let mut begin = 0;
        let round = |&(end, carried): &(u32, Bytes)| {
            let messages = tasks[begin as usize..end as usize].iter().filter(|task| task.0 != task.1);
            begin = end;
            Round { end, carried, start: None, over: None, left: messages.count() as u32 }
        };
        Some(Chain {
            waits: tasks.iter().map(|task| task.4.len() as u32).collect(),
            first,
            behind,
            rounds: rounds.iter().map(round).collect(),
            left: tasks.len() as u32,
            start: *start_ps,
            job: None,
        })
    }

    fn round(&mut self, task: u32) -> Option<&mut Round> {
        let place = self.rounds.partition_point(|round| round.end <= task);
        self.rounds.get_mut(place)
    }

    /// The message of `task` comes.
    pub(crate) fn begin(&mut self, task: u32, now: Time) {
        if let Some(round) = self.round(task) {
            round.start.get_or_insert(now);
        }
    }

    /// `task`, of so much data, is over; calls `ready` with each that waits for nothing more.
    pub(crate) fn end(&mut self, task: u32, now: Time, bytes: Bytes, mut ready: impl FnMut(u32)) {
        self.left -= 1;
        if self.left == 0 {
            self.job = Some(now - self.start);
        }
        if bytes > Bytes::ZERO
            && let Some(round) = self.round(task)
        {
            round.left -= 1;
            if round.left == 0 {
                round.over = Some(now);
            }
        }
        for place in self.first[task as usize]..self.first[task as usize + 1] {
            let next = self.behind[place as usize];
            self.waits[next as usize] -= 1;
            if self.waits[next as usize] == 0 {
                ready(next);
            }
        }
    }

    /// What is known of its rounds.
    pub(crate) fn rounds(&self, traffic: u32) -> Vec<RoundTotals> {
        let row = |(round, known): (u32, &Round)| {
            let Round { start, over, carried, .. } = *known;
            RoundTotals { traffic, round, start, over, carried }
        };
        (0..).zip(&self.rounds).map(row).collect()
    }
}
