//! How far the window let a sender go when its data left, and whether what arrived was read.

use std::collections::VecDeque;

/// Most announcements that wait for data that answers them.
const MOST_EDGES: usize = 4096;
/// A window of this share of the largest one, or less, is what the receiver has not read.
const UNREAD: f64 = 0.9;
/// One of this share is, whatever came in a burst.
const HALF: f64 = 0.5;
/// Programs wake up later than this for reasons of their own, ps.
const LEAST_SLOT_PS: u64 = 10_000_000_000;

/// An announcement of a window, as it passed the point of the capture.
#[derive(Clone, Copy, Debug)]
struct Advertised {
    at: u64,
    /// Value of its timestamps option.
    value: Option<u32>,
    /// End of the window in the sequence space.
    edge: u64,
}

/// Ends of windows on their way to the sender. A capture sees them earlier than the sender does, and its data later
/// than they left: data answers what had passed a round trip of the part behind the point before, and, where there
/// are timestamps, nothing newer than what it echoes. Source: RFC 7323, section 4.3.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edges {
    coming: VecDeque<Advertised>,
    known: Option<u64>,
    answer: Option<Answer>,
    /// Since when the window has held the sender, as far as that is not yet counted.
    held_since: Option<u64>,
}

/// Data that answers the same announcement: what it left at once, a link spreads on its way to the point.
#[derive(Clone, Copy, Debug)]
struct Answer {
    echo: Option<u32>,
    edge: Option<u64>,
    /// When the first of it came.
    at: u64,
}

impl Edges {
    /// A window that ends at `edge` was announced, by an acknowledgment that is not an old one.
    pub(crate) fn advertised(&mut self, at: u64, value: Option<u32>, edge: u64) {
        let last = self.coming.back().map(|edge| edge.edge).or(self.known);
        if last == Some(edge) {
            return;
        }
        if self.coming.len() == MOST_EDGES {
            self.known = self.coming.pop_front().map(|edge| edge.edge);
        }
        self.coming.push_back(Advertised { at, value, edge });
    }

    /// New data up to `end` left, with what it echoes, where answers take `behind_ps` at least. Returns for how long
    /// the sender had been held by the window. It is, if less than `least` is left of it, since the first data that
    /// answered the same announcement.
    pub(crate) fn sent(&mut self, now: u64, echo: Option<u32>, behind_ps: u64, end: u64, least: u64) -> u64 {
        while let Some(coming) = self.coming.front() {
            let newer = coming.value.zip(echo).is_some_and(|(value, echo)| (echo.wrapping_sub(value) as i32) < 0);
            // What is sent beyond the edge that was known shows that a newer one is.
            if (newer || coming.at.saturating_add(behind_ps) > now) && self.known.is_some_and(|known| end <= known) {
                break;
            }
            self.known = Some(coming.edge);
            self.coming.pop_front();
        }
        let held_ps = self.held_since.take().map_or(0, |since| now.saturating_sub(since));
        if self.answer.is_none_or(|answer| answer.echo != echo || answer.edge != self.known) || held_ps > 0 {
            self.answer = Some(Answer { echo, edge: self.known, at: now });
        }
        if self.known.is_some_and(|known| end + least > known) {
            self.held_since = self.answer.map(|answer| answer.at);
        }
        held_ps
    }
}

/// Windows of a receiver against the largest one: what is missing has arrived and was not read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// The largest window until now, bytes: 0 until one was reported whose scale is known.
    top: u64,
    is_known: bool,
    /// Largest and last field of those that are not of a SYN: what they say of each other needs no scale.
    top_field: u16,
    field: u16,
    /// When the field was below half of the largest last.
    closed_until: u64,
    slot: Slot,
}

/// A stretch of time of two round trips: so long, what came in a burst is read in it.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    since: u64,
    /// The largest window in it, bytes.
    most: u64,
    /// The last one, and when it was reported.
    last: u64,
    at: u64,
    /// Time in which it was [`HALF`] of the largest or less, ps.
    half_ps: u64,
}

impl Room {
    /// A window was reported at `now`: its field, and its bytes where the scale is known. Returns, at the end of a slot of
    /// `slot_ps` or more, for how long what had arrived was not read: all of it, if the window was [`UNREAD`] of the
    /// largest or less all the time, else as long as it was [`HALF`] or less.
    pub(crate) fn advertised(&mut self, now: u64, field: u16, window: Option<u64>, slot_ps: u64) -> u64 {
        if self.is_closed() {
            self.closed_until = now;
        }
        (self.field, self.top_field) = (field, self.top_field.max(field));
        let Some(window) = window else { return 0 };
        let (slot, top) = (&mut self.slot, self.top as f64);
        let mut unread_ps = 0;
        if !self.is_known {
            *slot = Slot { since: now, most: window, ..Slot::default() };
        } else if slot.last as f64 <= HALF * top {
            slot.half_ps += now.saturating_sub(slot.at);
        }
        if now.saturating_sub(slot.since) >= slot_ps.max(LEAST_SLOT_PS) {
            unread_ps = if slot.most as f64 <= UNREAD * top { now - slot.since } else { slot.half_ps };
            *slot = Slot { since: now, most: slot.last, ..Slot::default() };
        }
        slot.most = slot.most.max(window);
        (slot.last, slot.at) = (window, now);
        self.is_known = true;
        self.top = self.top.max(window);
        unread_ps
    }

    /// Since when the window has been open: half of the largest field or more; `now` where it is not.
    pub(crate) fn open_since(&self, now: u64) -> u64 {
        if self.is_closed() { now } else { self.closed_until }
    }

    fn is_closed(&self) -> bool {
        self.field < self.top_field / 2
    }

    /// The largest window, bytes, where the scale is known.
    pub(crate) fn top(&self) -> Option<u64> {
        Some(self.top).filter(|&top| self.is_known && top > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Edges, Room};

    #[test]
    fn data_is_held_by_the_window_that_its_sender_knew_of_and_not_by_the_one_that_was_seen() {
        let mut edges = Edges::default();
        edges.advertised(0, Some(1), 3000);
        assert_eq!(edges.sent(20, Some(1), 20, 1000, 1000), 0);
        assert_eq!(edges.sent(21, Some(1), 20, 3000, 1000), 0);
        // On its way to the sender, a window is not yet room.
        edges.advertised(30, Some(30), 5000);
        assert_eq!(edges.sent(50, Some(30), 20, 4000, 1000), 30);
        edges.advertised(55, Some(55), 9000);
        assert_eq!(edges.sent(60, Some(30), 20, 5000, 1000), 0);
        // Both parts of the answer left at once, though they came apart.
        assert_eq!(edges.sent(75, Some(55), 20, 6000, 1000), 25);
        assert_eq!(edges.sent(99, Some(55), 20, 7000, 1000), 0);
    }

    #[test]
    fn echoes_show_which_window_a_sender_knew_of_that_was_slow_to_answer() {
        let mut edges = Edges::default();
        edges.advertised(0, Some(1), 2000);
        edges.advertised(10, Some(10), 4000);
        assert_eq!(edges.sent(40, Some(1), 20, 2000, 1000), 0);
        assert_eq!(edges.sent(41, Some(10), 20, 3000, 1000), 1);
    }
    #[test]
    fn a_window_that_comes_back_within_two_round_trips_is_read_and_one_that_does_not_is_not() {
        const MS: u64 = 1_000_000_000;
        let mut room = Room::default();
        let mut unread_ps = 0;
        // What a burst fills is free again when the next one comes.
        for round in 0..10 {
            unread_ps += room.advertised(20 * round * MS, 10, Some(1000), 40 * MS);
            unread_ps += room.advertised((20 * round + 5) * MS, 6, Some(600), 40 * MS);
        }
        assert_eq!(unread_ps, 0);
        for round in 10..20 {
            unread_ps += room.advertised(20 * round * MS, 6, Some(600), 40 * MS);
        }
        assert_eq!(unread_ps, 4 * 40 * MS);
        // A program that reads all of a buffer now and then leaves it full for most of the time.
        for round in 20..30 {
            unread_ps += room.advertised(20 * round * MS, 10, Some(1000), 40 * MS);
            unread_ps += room.advertised((20 * round + 5) * MS, 0, Some(0), 40 * MS);
        }
        assert_eq!(unread_ps, (5 * 40 + 8 * 15) * MS);
    }

    #[test]
    fn whether_a_window_is_open_needs_no_scale() {
        let mut room = Room::default();
        assert_eq!(room.advertised(10, 100, None, 5), 0);
        assert_eq!((room.open_since(30), room.top()), (0, None));
        room.advertised(20, 3, None, 5);
        assert_eq!(room.open_since(30), 30);
        room.advertised(40, 90, None, 5);
        assert_eq!(room.open_since(50), 40);
    }
}
