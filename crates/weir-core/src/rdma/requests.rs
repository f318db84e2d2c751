//! Requests for credit: packets without data that are numbered, answered and sent again as data is.

use std::collections::{BTreeSet, VecDeque};

use crate::units::{Span, Time};

/// The requests of a message.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    /// The least time between two new ones, and when the last one left.
    between: Span,
    last: Option<Time>,
    /// How many there were.
    count: u64,
    /// Those in flight, in the order of their departures.
    flying: VecDeque<(Time, u64)>,
    lost: BTreeSet<u64>,
}

impl Requests {
    /// None yet; new ones keep so much time between them.
    pub(super) fn new(between: Span) -> Requests {
        Requests { between, last: None, count: 0, flying: VecDeque::new(), lost: BTreeSet::new() }
    }

    /// Whether a new one may go.
    pub(super) fn may_ask(&self, now: Time) -> bool {
        self.last.is_none_or(|last| now >= last + self.between)
    }

    /// A new one goes; its number.
    pub(super) fn ask(&mut self, now: Time) -> u64 {
        (self.last, self.count) = (Some(now), self.count + 1);
        self.flying.push_back((now, self.count - 1));
        self.count - 1
    }

    /// The first that is to be sent again.
    pub(super) fn due(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// How many are to be sent again.
    pub(super) fn backlog(&self) -> u64 {
        self.lost.len() as u64
    }

    /// Number `number` goes again.
    pub(super) fn send_again(&mut self, now: Time, number: u64) {
        self.lost.remove(&number);
        self.flying.push_back((now, number));
    }

    /// Number `number` has arrived.
    pub(super) fn arrive(&mut self, number: u64) {
        self.lost.remove(&number);
        self.flying.retain(|&(_, other)| other != number);
    }

    /// When the first left of those in flight.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.flying.front().map(|first| first.0)
    }

    /// What was sent until `until` and is in flight is lost.
    pub(super) fn expire(&mut self, until: Time) {
        while let Some(&(_, number)) = self.flying.front().filter(|first| first.0 <= until) {
            self.flying.pop_front();
            self.lost.insert(number);
        }
    }

    /// Whether all have arrived.
    pub(super) fn are_over(&self) -> bool {
        self.flying.is_empty() && self.lost.is_empty()
    }
}
