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

use weir_core::units::{Bytes, Span};

use self::reader::{Reader, expect};
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

/// "I know the secret."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Drawn by the sender for this session.
    pub nonce: Nonce,
}

/// "Then show that you are where you say."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Of the hello.
    pub nonce: Nonce,
    /// When it was made, ms of the receiver's clock.
    pub made_ms: u64,
    /// What the receiver makes of nonce, time and address; it keeps nothing.
    pub cookie: [u8; TAG],
}

/// "I am, and this is what I want."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The challenge.
    pub challenge: Challenge,
    /// How long the session is to last.
    pub lasts: Span,
    /// Full payload.
    pub payload: Bytes,
    /// Segments in order for one acknowledgement.
    pub every: u32,
    /// Longest time that an acknowledgement is held back.
    pub patience: Span,
    /// Unit of the stamps of arrival.
    pub unit: Span,
}

/// "The session is open."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// Of the hello.
    pub nonce: Nonce,
    /// Its number.
    pub session: u64,
    /// Drawn by the receiver for this session.
    pub other: Nonce,
}

/// Why a session is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// As many are under way as may be.
    Busy,
    /// It is to last longer than any may.
    TooLong,
    /// What is wanted is out of bounds.
    Unsuitable,
}

/// "No."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refuse {
    /// Of the hello.
    pub nonce: Nonce,
    /// Why.
    pub reason: Reason,
}

/// "No more comes."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// Number of its session.
    pub session: u64,
}

/// What the receiver counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Number of its session.
    pub session: u64,
    /// Segments that arrived, again or out of order ones included.
    pub segments: u64,
    /// Bytes that arrived without a gap before them, each counted once.
    pub delivered_bytes: u64,
    /// Segments that arrived before one that they follow.
    pub out_of_order: u64,
    /// Segments that brought nothing new.
    pub duplicates: u64,
    /// Segments beyond the window.
    pub beyond_window: u64,
    /// Acknowledgements.
    pub acks: u64,
    /// Datagrams that the receiver's socket dropped, of all sessions.
    pub socket_drops: u64,
    /// How often the receiver's real-time clock was stepped: stamps of arrival jumped then.
    pub clock_steps: u64,
    /// From the first to the last segment, ns.
    pub lasted_ns: u64,
}

/// "The session ends early."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bye {
    /// Number of its session.
    pub session: u64,
}

impl Hello {
    /// The whole datagram.
    pub fn sealed(&self, key: &Key) -> Vec<u8> {
        let mut body = Kind::Hello.head(0, 0);
        body.extend(self.nonce);
        body.resize(GREETING - TAG, 0);
        key.seal(body)
    }

    /// What a datagram says, its tag taken away.
    pub fn decode(body: &[u8]) -> Option<Hello> {
        let mut rest = expect(Kind::Hello, body, GREETING)?;
        Some(Hello { nonce: rest.array()? })
    }
}

impl Challenge {
    /// The whole datagram.
    pub fn sealed(&self, key: &Key) -> Vec<u8> {
        let mut body = Kind::Challenge.head(0, 0);
        self.append(&mut body);
        key.seal(body)
    }

    /// What a datagram says, its tag taken away.
    pub fn decode(body: &[u8]) -> Option<Challenge> {
        let mut rest = expect(Kind::Challenge, body, 60)?;
        Challenge::read(&mut rest)
    }

    fn append(&self, body: &mut Vec<u8>) {
        body.extend(self.nonce);
        body.extend(self.made_ms.to_be_bytes());
        body.extend(self.cookie);
    }

    fn read(rest: &mut Reader<'_>) -> Option<Challenge> {
        Some(Challenge { nonce: rest.array()?, made_ms: rest.u64()?, cookie: rest.array()? })
    }
}

impl Open {
    /// The whole datagram.
    pub fn sealed(&self, key: &Key) -> Vec<u8> {
        let mut body = Kind::Open.head(0, 0);
        self.challenge.append(&mut body);
        for span in [self.lasts, self.patience, self.unit] {
            body.extend(span.ps().to_be_bytes());
        }
        body.extend(self.payload.count().to_be_bytes());
        body.extend(self.every.to_be_bytes());
        body.resize(GREETING - TAG, 0);
        key.seal(body)
    }

    /// What a datagram says, its tag taken away.
    pub fn decode(body: &[u8]) -> Option<Open> {
        let mut rest = expect(Kind::Open, body, GREETING)?;
        let challenge = Challenge::read(&mut rest)?;
        let [lasts, patience, unit] = [rest.u64()?, rest.u64()?, rest.u64()?].map(Span::from_ps);
        Some(Open { challenge, lasts, patience, unit, payload: Bytes::new(rest.u64()?), every: rest.u32()? })
    }
}

impl Accept {
    /// The whole datagram.
    pub fn sealed(&self, key: &Key) -> Vec<u8> {
        let mut body = Kind::Accept.head(0, 0);
        body.extend(self.nonce);
        body.extend(self.session.to_be_bytes());
        body.extend(self.other);
        key.seal(body)
    }

    /// What a datagram says, its tag taken away.
    pub fn decode(body: &[u8]) -> Option<Accept> {
        let mut rest = expect(Kind::Accept, body, 60)?;
        Some(Accept { nonce: rest.array()?, session: rest.u64()?, other: rest.array()? })
    }
}

impl Refuse {
    const REASONS: [Reason; 3] = [Reason::Busy, Reason::TooLong, Reason::Unsuitable];

    /// The whole datagram.
    pub fn sealed(&self, key: &Key) -> Vec<u8> {
        let mut body = Kind::Refuse.head(0, 0);
        body.extend(self.nonce);
        body.push(self.reason as u8);
        key.seal(body)
    }

    /// What a datagram says, its tag taken away.
    pub fn decode(body: &[u8]) -> Option<Refuse> {
        let mut rest = expect(Kind::Refuse, body, 37)?;
        let nonce = rest.array()?;
        let [code] = rest.array()?;
        let reason = *Refuse::REASONS.get(usize::from(code))?;
        Some(Refuse { nonce, reason })
    }
}

impl Close {
    /// The whole datagram.
    pub fn sealed(&self, key: &Key) -> Vec<u8> {
        let mut body = Kind::Close.head(0, 0);
        body.extend(self.session.to_be_bytes());
        body.resize(FAREWELL - TAG, 0);
        key.seal(body)
    }

    /// What a datagram says, its tag taken away.
    pub fn decode(body: &[u8]) -> Option<Close> {
        Some(Close { session: expect(Kind::Close, body, FAREWELL)?.u64()? })
    }
}

impl Closed {
    const LEN: usize = 4 + 10 * 8 + TAG;

    /// The whole datagram.
    pub fn sealed(&self, key: &Key) -> Vec<u8> {
        let mut body = Kind::Closed.head(0, 0);
        for count in [
            self.session,
            self.segments,
            self.delivered_bytes,
            self.out_of_order,
            self.duplicates,
            self.beyond_window,
            self.acks,
            self.socket_drops,
            self.clock_steps,
            self.lasted_ns,
        ] {
            body.extend(count.to_be_bytes());
        }
        key.seal(body)
    }

    /// What a datagram says, its tag taken away.
    pub fn decode(body: &[u8]) -> Option<Closed> {
        let mut rest = expect(Kind::Closed, body, Closed::LEN)?;
        Some(Closed {
            session: rest.u64()?,
            segments: rest.u64()?,
            delivered_bytes: rest.u64()?,
            out_of_order: rest.u64()?,
            duplicates: rest.u64()?,
            beyond_window: rest.u64()?,
            acks: rest.u64()?,
            socket_drops: rest.u64()?,
            clock_steps: rest.u64()?,
            lasted_ns: rest.u64()?,
        })
    }
}

impl Bye {
    /// The whole datagram.
    pub fn sealed(&self, key: &Key) -> Vec<u8> {
        let mut body = Kind::Bye.head(0, 0);
        body.extend(self.session.to_be_bytes());
        key.seal(body)
    }

    /// What a datagram says, its tag taken away.
    pub fn decode(body: &[u8]) -> Option<Bye> {
        Some(Bye { session: expect(Kind::Bye, body, 28)?.u64()? })
    }
}

#[cfg(test)]
mod tests;
