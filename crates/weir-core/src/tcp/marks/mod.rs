//! What the two ends of a connection report to each other of marks.
//!
//! Three ways: the receiver echoes a mark until the sender says that it has reduced its window (RFC 3168); it says of each
//! run of packets whether they were marked (RFC 8257); or it counts packets and bytes by mark, and reports the counters
//! (AccECN, RFC 9768). Which one is agreed on in the handshake; the second one cannot be distinguished from the first by the sender.
//!
//! Reading order: this file (settings, handshake), `receiver` (counts and echoes), `sender` (reads them).

mod receiver;
mod sender;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::receiver::ReceiverMarks;
pub(crate) use self::sender::{News, SenderMarks};
pub(crate) use crate::marking::Ecn;
use crate::tcp::segment::Flags;

/// What an end of a connection can do about marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnSupport {
    /// Nothing.
    None,
    /// One echo for each reduction.
    ///
    /// Source: RFC 3168, 6.1.
    Classic,
    /// The same in the handshake and as a sender; as a receiver, the state of each packet.
    ///
    /// Source: RFC 8257, 3.2.
    Dctcp,
    /// Counters; with a peer that cannot, as `Classic`.
    ///
    /// Source: RFC 9768, 3.
    Accurate,
}

/// What the ends of a connection can do about marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EcnConfig {
    /// The end that sends data, and opens the connection.
    pub sender: EcnSupport,
    /// The other one.
    pub receiver: EcnSupport,
    /// Whether counters of bytes are reported in an option.
    ///
    /// Source: RFC 9768, 3.2.3.
    pub options: bool,
}

impl EcnConfig {
    /// Neither end knows of marks.
    pub const NONE: EcnConfig = EcnConfig { sender: EcnSupport::None, receiver: EcnSupport::None, options: false };

    /// Both ends can do the same.
    pub const fn both(support: EcnSupport) -> EcnConfig {
        EcnConfig { sender: support, receiver: support, options: true }
    }
}

/// What the ends have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// Not to use ECN.
    #[default]
    None,
    /// A bit.
    Classic,
    /// Counters.
    Accurate,
}

/// The three bits of a header that are about ECN.
const BITS: Flags = Flags::AE.with(Flags::CWR).with(Flags::ECE);
/// SYNs that ask for AccECN before one asks for nothing: some middleboxes drop them.
///
/// Source: RFC 9768, 3.1.4.1.
const TRIES: u64 = 2;

impl EcnSupport {
    /// The bits of a SYN; `before` were sent before it.
    ///
    /// Source: RFC 3168, 6.1.1; RFC 9768, 3.1.1.
    pub(crate) fn offer(self, before: u64) -> Flags {
        match self {
            EcnSupport::None => Flags::NONE,
            EcnSupport::Classic | EcnSupport::Dctcp => Flags::CWR.with(Flags::ECE),
            EcnSupport::Accurate if before < TRIES => BITS,
            EcnSupport::Accurate => Flags::NONE,
        }
    }

    /// What a receiver answers to the bits of the first SYN that it sees.
    ///
    /// Source: RFC 3168, 6.1.1; RFC 9768, table 2 and 3.1.3.
    pub(crate) fn agree(self, offer: Flags) -> Feedback {
        let asks_for_classic = offer.has(Flags::CWR.with(Flags::ECE));
        match self {
            EcnSupport::None => Feedback::None,
            EcnSupport::Accurate if !offer.has_any(BITS) => Feedback::None,
            EcnSupport::Accurate if asks_for_classic && !offer.has(Flags::AE) => Feedback::Classic,
            EcnSupport::Accurate => Feedback::Accurate,
            EcnSupport::Classic | EcnSupport::Dctcp if asks_for_classic => Feedback::Classic,
            EcnSupport::Classic | EcnSupport::Dctcp => Feedback::None,
        }
    }

    /// What a sender makes of the bits of the answer.
    ///
    /// Source: RFC 3168, 6.1.1; RFC 9768, table 2 and 3.1.3.
    pub(crate) fn conclude(self, answer: Flags) -> Feedback {
        let is_classic = answer.has(Flags::ECE) && !answer.has_any(Flags::CWR);
        match self {
            EcnSupport::None => Feedback::None,
            EcnSupport::Classic | EcnSupport::Dctcp if is_classic => Feedback::Classic,
            EcnSupport::Classic | EcnSupport::Dctcp => Feedback::None,
            EcnSupport::Accurate if !answer.has_any(BITS) || answer.has(BITS) => Feedback::None,
            EcnSupport::Accurate if is_classic && !answer.has(Flags::AE) => Feedback::Classic,
            EcnSupport::Accurate => Feedback::Accurate,
        }
    }
}

impl Feedback {
    /// The bits of an answer to a SYN that arrived with `syn` in its IP header.
    ///
    /// Source: RFC 3168, 6.1.1; RFC 9768, table 2.
    pub(crate) fn answer(self, syn: Ecn) -> Flags {
        match self {
            Feedback::None => Flags::NONE,
            Feedback::Classic => Flags::ECE,
            Feedback::Accurate => Flags::of_ace(match syn {
                Ecn::NotEct => 0b010,
                Ecn::Ect1 => 0b011,
                Ecn::Ect0 => 0b100,
                Ecn::Ce => 0b110,
            }),
        }
    }
}

/// Where the counter of packets begins, so that zero shows that somebody cleared it.
///
/// Source: RFC 9768, 3.2.1.
pub(crate) const FIRST_PACKETS: u64 = 5;
/// Where the counters of ECT bytes begin. That of CE bytes begins at 0.
///
/// Source: RFC 9768, 3.2.1.
pub(crate) const FIRST_BYTES: u64 = 1;
/// The field has so many values.
pub(crate) const ACE: u64 = 8;
/// The fields of the option have so many values.
pub(crate) const FIELD: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: u8 = 0;
    const CLASSIC_SYN: u8 = 0b011;
    const ACCURATE_SYN: u8 = 0b111;

    fn bits(ace: u8) -> Flags {
        Flags::of_ace(ace)
    }

    #[test]
    fn the_handshake_is_that_of_table_2() {
        // RFC 9768, table 2: what A supports, what B does, the SYN, the SYN/ACK, the mode.
        let (none, classic, accurate) = (EcnSupport::None, EcnSupport::Classic, EcnSupport::Accurate);
        let rows = [
            (accurate, accurate, ACCURATE_SYN, 0b010, Feedback::Accurate),
            (accurate, classic, ACCURATE_SYN, 0b001, Feedback::Classic),
            (accurate, EcnSupport::Dctcp, ACCURATE_SYN, 0b001, Feedback::Classic),
            (accurate, none, ACCURATE_SYN, NONE, Feedback::None),
            (classic, accurate, CLASSIC_SYN, 0b001, Feedback::Classic),
            (EcnSupport::Dctcp, accurate, CLASSIC_SYN, 0b001, Feedback::Classic),
            (none, accurate, NONE, NONE, Feedback::None),
            (classic, classic, CLASSIC_SYN, 0b001, Feedback::Classic),
            (classic, none, CLASSIC_SYN, NONE, Feedback::None),
            (none, classic, NONE, NONE, Feedback::None),
        ];
        for (a, b, syn, answer, mode) in rows {
            assert_eq!(a.offer(0), bits(syn), "{a:?} {b:?}");
            let agreed = b.agree(a.offer(0));
            assert_eq!((agreed, agreed.answer(Ecn::NotEct)), (mode, bits(answer)), "{a:?} {b:?}");
            assert_eq!(a.conclude(bits(answer)), mode, "{a:?} {b:?}");
        }
    }

    #[test]
    fn an_answer_reports_how_the_syn_arrived_and_each_of_them_is_understood() {
        for (ecn, answer) in [(Ecn::NotEct, 2), (Ecn::Ect1, 3), (Ecn::Ect0, 4), (Ecn::Ce, 6)] {
            assert_eq!(Feedback::Accurate.answer(ecn), bits(answer));
            assert_eq!(EcnSupport::Accurate.conclude(bits(answer)), Feedback::Accurate);
        }
        // Reserved: as if it agreed. Broken: the answer repeats the offer.
        assert_eq!(EcnSupport::Accurate.conclude(bits(0b101)), Feedback::Accurate);
        assert_eq!(EcnSupport::Accurate.conclude(bits(0b111)), Feedback::None);
        for offer in [0b001, 0b010, 0b100, 0b101, 0b110, 0b111] {
            assert_eq!(EcnSupport::Accurate.agree(bits(offer)), Feedback::Accurate, "{offer:03b}");
        }
    }

    #[test]
    fn a_third_syn_asks_for_nothing_so_that_a_path_that_drops_the_others_is_passed() {
        assert_eq!(
            [0, 1, 2, 3].map(|before| EcnSupport::Accurate.offer(before)),
            [BITS, BITS, Flags::NONE, Flags::NONE]
        );
    }
}
