//! What a receiving end allows, and what it reports.

use std::net::SocketAddr;

use weir_core::named;
use weir_core::units::{Bytes, Span};

use super::super::wire::{Closed, Reason};

/// What nobody gets more of.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Sessions at one time.
    pub sessions: usize,
    /// Length of a session.
    pub longest: Span,
    /// Bytes of payload of a session.
    pub most: Bytes,
    /// Memory for what is missing something before it, of each session.
    pub buffer: Bytes,
}

/// Something to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// To whom.
    pub to: SocketAddr,
    /// What.
    pub datagram: Vec<u8>,
}

named! {
    /// Why a session ended.
    pub enum End {
        /// Its sender said so.
        Closed = "closed",
        /// Nothing came any more.
        Silent = "silent",
        /// It took longer than it may.
        TooLong = "too-long",
        /// It brought more than it may.
        TooMuch = "too-much",
        /// The receiver ended.
        Ended = "ended",
    }
}

/// Something that somebody may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session began.
    Opened {
        /// Its sender.
        peer: SocketAddr,
    },
    /// A session ended.
    Ended {
        /// Its sender.
        peer: SocketAddr,
        /// Why.
        end: End,
        /// What was counted in it.
        counts: Closed,
    },
    /// A sender that holds the secret was refused.
    Refused {
        /// Who.
        peer: SocketAddr,
        /// Why.
        reason: Reason,
    },
}

/// What the service counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams of nobody's, or whose tag is wrong.
    pub strangers: u64,
    /// Greetings that were not answered because too many came.
    pub unanswered: u64,
    /// Greetings that had been answered before.
    pub replayed: u64,
    /// Sessions that began.
    pub sessions: u64,
}
