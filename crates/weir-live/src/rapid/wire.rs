//! The datagrams of live Rapid. All fields are big-endian; each datagram begins with four bytes: [`MARK`], its kind, and
//! two that depend on it. A tag ends each, but in [`Data`], where it comes before the payload, which is filling.
//!
//! | kind | from | bytes | says |
//! |---|---|---|---|
//! | hello | sender | 128 | I know the secret; a nonce |
//! | challenge | receiver | 60 | a cookie for that nonce and address |
//! | open | sender | 128 | the cookie; what is wanted |
//! | accept | receiver | 60 | the number of the session, a nonce |
//! | refuse | receiver | 37 | why not |
//! | data | sender | 42 and payload | a segment |
//! | acks | receiver | 53 to 1200 | acknowledgements |
//! | close | sender | 256 | no more comes |
//! | closed | receiver | 100 | what was counted |
//! | bye | receiver | 28 | the session ends early |
//!
//! With 42 bytes before the payload, an IPv4 packet is as long as the frame that the core takes a TCP segment of the same
//! payload for. So its bytes on a link differ from that by what [`extra`] says.

mod reader;

use weir_core::columns::Named;
use weir_core::named;
use weir_core::units::{Bytes, Span};

use self::reader::{Field, Reader, expect};
use super::keys::{Key, Nonce, TAG};

mod segments;

pub use segments::{Data, ack_bytes, decode_acks, encode_acks};

/// First byte of every datagram: the version of this format.
pub const MARK: u8 = 0xb1;
/// Length of a hello and of an open: nothing that answers them is longer.
pub const GREETING: usize = 128;
/// Length of a close: nothing that answers it is longer.
pub const FAREWELL: usize = 256;
/// What stands before the payload of a data datagram.
pub const DATA_HEADER: usize = 42;
/// Longest datagram of acknowledgements.
pub const MOST_ACKS: usize = 1200;
/// Longest payload: that of a jumbo frame.
pub const MOST_PAYLOAD: u64 = 8_900;
/// Kinds of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// See [`Hello`].
    Hello = 1,
    /// See [`Challenge`].
    Challenge,
    /// See [`Open`].
    Open,
    /// See [`Accept`].
    Accept,
    /// See [`Refuse`].
    Refuse,
    /// See [`Data`].
    Data,
    /// See [`encode_acks`].
    Acks,
    /// See [`Close`].
    Close,
    /// See [`Closed`].
    Closed,
    /// See [`Bye`].
    Bye,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Hello,
        Kind::Challenge,
        Kind::Open,
        Kind::Accept,
        Kind::Refuse,
        Kind::Data,
        Kind::Acks,
        Kind::Close,
        Kind::Closed,
        Kind::Bye,
    ];

    /// What `datagram` says that it is.
    pub fn of(datagram: &[u8]) -> Option<Kind> {
        let &[MARK, kind, _, _, ..] = datagram else { return None };
        Kind::ALL.into_iter().find(|&known| known as u8 == kind)
    }

    fn head(self, first: u8, second: u8) -> Vec<u8> {
        vec![MARK, self as u8, first, second]
    }
}

/// The number of the session that a datagram of kind data, acks, close, closed or bye belongs to.
pub fn session_of(datagram: &[u8]) -> Option<u64> {
    Reader(datagram.get(4..)?).u64()
}

/// What a link carries of a packet beyond what the core takes its segment for: `around` is what it puts around IP
/// packets.
pub fn extra(is_ipv6: bool, around: Bytes) -> Bytes {
    around + Bytes::new(if is_ipv6 { 20 } else { 0 })
}

named! {
    /// Why a session is refused.
    pub enum Reason {
        /// As many are under way as may be.
        Busy = "busy",
        /// It is to last longer than any may.
        TooLong = "too-long",
        /// What is wanted is out of bounds.
        Unsuitable = "unsuitable",
    }
}

impl Field for Reason {
    fn append(&self, body: &mut Vec<u8>) {
        body.push(*self as u8);
    }

    fn read(rest: &mut Reader<'_>) -> Option<Reason> {
        let [code] = rest.array()?;
        Reason::ALL.get(usize::from(code)).copied()
    }
}

/// Datagrams of fields alone, in this order, and zeros up to their lengths.
macro_rules! datagrams {
    ($($(#[$meta:meta])+ $type:ident[$length:expr] { $($(#[doc = $doc:literal])+ $field:ident: $of:ty),+ $(,)? })+) => {$(
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $type {
            $($(#[doc = $doc])+ pub $field: $of),+
        }

        impl Field for $type {
            fn append(&self, body: &mut Vec<u8>) {
                $(self.$field.append(body);)+
            }

            fn read(rest: &mut Reader<'_>) -> Option<$type> {
                Some($type { $($field: Field::read(rest)?),+ })
            }
        }

        impl $type {
            /// The whole datagram.
            pub fn sealed(&self, key: &Key) -> Vec<u8> {
                let mut body = Kind::$type.head(0, 0);
                self.append(&mut body);
                body.resize($length - TAG, 0);
                key.seal(body)
            }

            /// What a datagram says, its tag taken away.
            pub fn decode(body: &[u8]) -> Option<$type> {
                $type::read(&mut expect(Kind::$type, body, $length)?)
            }
        }
    )+};
}

datagrams! {
    /// "I know the secret."
    Hello[GREETING] {
        /// Drawn by the sender for this session.
        nonce: Nonce,
    }

    /// "Then show that you are where you say."
    Challenge[60] {
        /// Of the hello.
        nonce: Nonce,
        /// When it was made, ms of the receiver's clock.
        made_ms: u64,
        /// What the receiver makes of nonce, time and address; it keeps nothing.
        cookie: [u8; TAG],
    }

    /// "I am, and this is what I want."
    Open[GREETING] {
        /// The challenge.
        challenge: Challenge,
        /// How long the session is to last.
        lasts: Span,
        /// Longest time that an acknowledgement is held back.
        patience: Span,
        /// Unit of the stamps of arrival.
        unit: Span,
        /// Full payload.
        payload: Bytes,
        /// Segments in order for one acknowledgement.
        every: u32,
    }

    /// "The session is open."
    Accept[60] {
        /// Of the hello.
        nonce: Nonce,
        /// Its number.
        session: u64,
        /// Drawn by the receiver for this session.
        other: Nonce,
    }

    /// "No."
    Refuse[37] {
        /// Of the hello.
        nonce: Nonce,
        /// Why.
        reason: Reason,
    }

    /// "No more comes."
    Close[FAREWELL] {
        /// Number of its session.
        session: u64,
    }

    /// What the receiver counted.
    #[derive(Default)]
    Closed[100] {
        /// Number of its session.
        session: u64,
        /// Segments that arrived, again or out of order ones included.
        segments: u64,
        /// Bytes that arrived without a gap before them, each counted once.
        delivered_bytes: u64,
        /// Segments that arrived before one that they follow.
        out_of_order: u64,
        /// Segments that brought nothing new.
        duplicates: u64,
        /// Segments beyond the window.
        beyond_window: u64,
        /// Acknowledgements.
        acks: u64,
        /// Datagrams that the receiver's socket dropped, of all sessions.
        socket_drops: u64,
        /// How often the receiver's real-time clock was stepped: stamps of arrival jumped then.
        clock_steps: u64,
        /// From the first to the last segment, ns.
        lasted_ns: u64,
    }

    /// "The session ends early."
    Bye[28] {
        /// Number of its session.
        session: u64,
    }
}

#[cfg(test)]
mod tests;
