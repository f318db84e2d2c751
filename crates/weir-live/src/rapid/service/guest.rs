//! One sender at a receiving end.

use std::net::SocketAddr;

use weir_core::tcp::{Receiver, Segment};
use weir_core::units::{Span, Time};

use super::super::keys::{Key, Nonce};
use super::super::wire::{Closed, MOST_ACKS, ack_bytes, encode_acks};
use super::events::Reply;
use super::{AROUND_ACKS, MOST_ACK, REPEAT};

/// A session.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) peer: SocketAddr,
    pub(super) nonce: Nonce,
    pub(super) up: Key,
    pub(super) down: Key,
    pub(super) accept: Vec<u8>,
    /// When the acceptance or the last word was sent last.
    pub(super) answered: Time,
    pub(super) receiver: Receiver,
    pub(super) acks: Vec<Segment>,
    /// Length of the datagram that these would make.
    pub(super) acks_bytes: usize,
    /// Number of the next datagram of acknowledgements.
    pub(super) number: u32,
    pub(super) heard: Time,
    pub(super) until: Time,
    /// Stamps of the first and the last segment; they do not go back.
    pub(super) stamped: Option<(Time, Time)>,
    /// The last word, and when it was said first.
    pub(super) closed: Option<(Time, Vec<u8>)>,
    pub(super) counted: Closed,
}

impl Guest {
    /// Whether the last word may be sent again.
    pub(super) fn may_repeat(&mut self, now: Time) -> bool {
        let may = now.saturating_since(self.answered) >= REPEAT;
        if may {
            self.answered = now;
        }
        may
    }

    /// Takes the acknowledgements that the receiver has; whether they fill a datagram.
    pub(super) fn collect(&mut self, now: Time) -> bool {
        while let Some(segment) = self.receiver.poll_transmit(now) {
            self.acks_bytes += ack_bytes(&segment);
            self.acks.push(segment);
        }
        self.acks_bytes + MOST_ACK > MOST_ACKS
    }

    pub(super) fn flush(&mut self, session: u64) -> Reply {
        let datagram = encode_acks(&self.down, session, self.number, &self.acks);
        self.number = self.number.wrapping_add(1);
        self.acks.clear();
        self.acks_bytes = AROUND_ACKS;
        Reply { to: self.peer, datagram }
    }

    pub(super) fn counts(&self, socket_drops: u64, clock_steps: u64) -> Closed {
        let counters = self.receiver.counters();
        let lasted = self.stamped.map_or(Span::ZERO, |(first, last)| last.saturating_since(first));
        Closed {
            segments: counters.segments,
            delivered_bytes: counters.delivered_bytes,
            out_of_order: counters.out_of_order,
            duplicates: counters.duplicates,
            beyond_window: counters.beyond_window,
            acks: counters.acks,
            socket_drops,
            clock_steps,
            lasted_ns: lasted.ps() / 1_000,
            ..self.counted
        }
    }
}
