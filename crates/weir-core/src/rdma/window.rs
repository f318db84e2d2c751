//! The packets of a message from the first that is not known to have arrived on.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use crate::units::Time;

/// What is known of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Time,
    pub(super) entropy: u16,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    InFlight,
    /// In flight, and not for the first time.
    Again,
    Lost,
    Arrived,
}

/// The packets of a message, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// How many there are, the data of a full one and of the last.
    packets: u64,
    full: u64,
    last: u64,
    /// The first that has not arrived.
    base: u64,
    /// Those sent from there on.
    sent: VecDeque<Sent>,
    lost: BTreeSet<u64>,
    /// Data in flight.
    flight: u64,
    /// Nothing before it is in flight for the first time.
    fresh: u64,
    /// Departures of what was sent again, in order, with those that were answered since.
    again: VecDeque<(Time, u64)>,
    /// The last that has arrived.
    highest: u64,
}

impl Window {
    pub(super) fn new(bytes: u64, full: u64) -> Window {
        let packets = bytes.div_ceil(full).max(1);
        Window { packets, full, last: bytes - (packets - 1) * full, ..Window::default() }
    }

    /// Data of packet `number`.
    pub(super) fn bytes_of(&self, number: u64) -> u64 {
        if number + 1 == self.packets { self.last } else { self.full }
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The next that was not sent, since the last time that the sender went back.
    pub(super) fn next(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    pub(super) fn flight(&self) -> u64 {
        self.flight
    }

    /// The last that has arrived.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// How many there are.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// How many have arrived behind the first that has not: all that were sent but what is in flight or lost. Only the last may be shorter.
    pub(super) fn early(&self) -> u64 {
        self.sent.len() as u64 - self.flight.div_ceil(self.full) - self.lost.len() as u64
    }

    /// Whether any are to be sent again.
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(super) fn is_over(&self) -> bool {
        self.base == self.packets
    }

    /// Packets that were not sent, or are to be sent again, and their data.
    pub(super) fn backlog(&self) -> (u64, u64) {
        let packets = self.lost.len() as u64 + self.packets - self.next();
        // Only the last one may be shorter.
        let has_last = self.next() < self.packets || self.lost.last() == Some(&(self.packets - 1));
        (packets, packets * self.full - if has_last { self.full - self.last } else { 0 })
    }

    /// The packet that is to be sent next: what is lost first.
    pub(super) fn due(&self) -> Option<u64> {
        self.lost.first().copied().or_else(|| Some(self.next()).filter(|&next| next < self.packets))
    }

    /// Whether it is the last one for now.
    pub(super) fn is_last(&self) -> bool {
        self.lost.is_empty() && self.next() == self.packets
    }

    pub(super) fn send(&mut self, number: u64, at: Time, entropy: u16) {
        self.flight += self.bytes_of(number);
        if number == self.next() {
            return self.sent.push_back(Sent { at, entropy, state: State::InFlight });
        }
        self.again.push_back((at, number));
        self.lost.remove(&number);
        let place = (number - self.base) as usize;
        self.sent[place] = Sent { at, entropy, state: State::Again };
    }

    fn of(&mut self, number: u64) -> Option<&mut Sent> {
        let place = number.checked_sub(self.base)?;
        self.sent.get_mut(place as usize)
    }

    /// Packet `number` has arrived; its data, if that was not known.
    pub(super) fn arrive(&mut self, number: u64) -> u64 {
        let bytes = self.bytes_of(number);
        let Some(sent) = self.of(number) else { return 0 };
        match std::mem::replace(&mut sent.state, State::Arrived) {
            State::Arrived => return 0,
            State::InFlight | State::Again => self.flight -= bytes,
            State::Lost => _ = self.lost.remove(&number),
        }
        self.highest = self.highest.max(number);
        while self.sent.front().is_some_and(|sent| sent.state == State::Arrived) {
            self.sent.pop_front();
            self.base += 1;
        }
        bytes
    }

    /// All before `next` has arrived; the data of which that was not known.
    pub(super) fn arrive_until(&mut self, next: u64) -> u64 {
        let mut bytes = 0;
        while self.base < next && !self.sent.is_empty() {
            bytes += self.arrive(self.base);
        }
        // Sent before the sender went back.
        while self.base < next {
            bytes += self.bytes_of(self.base);
            self.base += 1;
        }
        bytes
    }

    /// Packet `number`, sent at `at`, is lost; its value, if that was not known.
    pub(super) fn lose(&mut self, number: u64, at: Time) -> Option<u16> {
        let bytes = self.bytes_of(number);
        let in_flight = |sent: &&mut Sent| matches!(sent.state, State::InFlight | State::Again) && sent.at == at;
        let sent = self.of(number).filter(in_flight)?;
        sent.state = State::Lost;
        let entropy = sent.entropy;
        self.flight -= bytes;
        self.lost.insert(number);
        Some(entropy)
    }

    /// Packets of these that are in flight are lost. Their values go to `report`.
    pub(super) fn lose_all(&mut self, range: Range<u64>, mut report: impl FnMut(u16)) {
        for number in range {
            if let Some(at) = self.of(number).map(|sent| sent.at)
                && let Some(entropy) = self.lose(number, at)
            {
                report(entropy);
            }
        }
    }

    /// When the first departure was that nothing is known of.
    pub(super) fn oldest(&mut self) -> Option<Time> {
        self.first_departure().map(|(at, _)| at)
    }

    /// The first departure that nothing is known of: of what was sent once, or again.
    fn first_departure(&mut self) -> Option<(Time, u64)> {
        while let Some(&(at, number)) = self.again.front()
            && self.of(number).is_none_or(|sent| sent.state != State::Again || sent.at != at)
        {
            self.again.pop_front();
        }
        self.fresh = self.fresh.max(self.base);
        while self.of(self.fresh).is_some_and(|sent| sent.state != State::InFlight) {
            self.fresh += 1;
        }
        let number = self.fresh;
        let fresh = self.of(number).map(|sent| (sent.at, number));
        self.again.front().copied().into_iter().chain(fresh).min_by_key(|&(at, _)| at)
    }

    /// What was sent until `until` and is in flight is lost. Values go to `report`.
    pub(super) fn expire(&mut self, until: Time, mut report: impl FnMut(u16)) {
        while let Some((at, number)) = self.first_departure().filter(|&(at, _)| at <= until) {
            self.lose(number, at).into_iter().for_each(&mut report);
        }
    }

    /// What was sent from `number` on was not: it will be sent again, also if it has arrived.
    pub(super) fn go_back(&mut self, number: u64) {
        (self.base, self.flight, self.highest) = (number, 0, 0);
        self.fresh = number;
        self.again.clear();
        self.sent.clear();
        self.lost.clear();
    }
}
