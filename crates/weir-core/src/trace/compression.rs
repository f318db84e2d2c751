//! ACK compression: acknowledgments that arrive closer together than the data that they acknowledge had left.
//!
//! Source: Paxson 1997, section 16.3.1: at least three acknowledgments whose spacing shrank to less than 3/4.

/// Acknowledgments that make a group.
const LEAST: u32 = 3;
/// Shorter shifts do no harm: at least this and half a round trip must be saved, ps.
const SHIFT_PS: u64 = 1_000_000_000;

/// The group of acknowledgments that is being looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compression {
    last: Option<(u64, u64, u64)>,
    acks: u32,
    ack_ps: u64,
    data_ps: u64,
    bytes: u64,
}

/// A group of acknowledgments that came together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bunch {
    /// By how much sooner than their data had left.
    pub(crate) saved_ps: u64,
    /// In which time how much was acknowledged.
    pub(crate) took_ps: u64,
    pub(crate) bytes: u64,
}

impl Compression {
    /// An acknowledgment at `now` of all below `place`, whose last segment left at `sent`: the group that this one ends.
    pub(crate) fn take(&mut self, now: u64, sent: u64, place: u64, round_trip_ps: u64) -> Option<Bunch> {
        let last = self.last.replace((now, sent, place))?;
        let (ack_ps, data_ps) = (now.saturating_sub(last.0), sent.saturating_sub(last.1));
        if u128::from(ack_ps) * 4 < u128::from(data_ps) * 3 {
            self.acks += 1;
            self.ack_ps = self.ack_ps.saturating_add(ack_ps);
            self.data_ps = self.data_ps.saturating_add(data_ps);
            self.bytes += place.saturating_sub(last.2);
            return None;
        }
        let (acks, saved_ps) = (self.acks, self.data_ps - self.ack_ps);
        let bunch = Bunch { saved_ps, took_ps: self.ack_ps, bytes: self.bytes };
        *self = Compression { last: self.last, ..Compression::default() };
        (acks >= LEAST && saved_ps >= SHIFT_PS.max(round_trip_ps / 2)).then_some(bunch)
    }
}
