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
    last: Option<(u64, u64)>,
    acks: u32,
    ack_ps: u64,
    data_ps: u64,
}

impl Compression {
    /// An acknowledgment at `now` of a segment that left at `sent`: the time by which a group was compressed, when
    /// this acknowledgment ends one.
    pub(crate) fn take(&mut self, now: u64, sent: u64, round_trip_ps: u64) -> Option<u64> {
        let last = self.last.replace((now, sent))?;
        let (ack_ps, data_ps) = (now.saturating_sub(last.0), sent.saturating_sub(last.1));
        if u128::from(ack_ps) * 4 < u128::from(data_ps) * 3 {
            self.acks += 1;
            self.ack_ps = self.ack_ps.saturating_add(ack_ps);
            self.data_ps = self.data_ps.saturating_add(data_ps);
            return None;
        }
        let (acks, saved) = (self.acks, self.data_ps - self.ack_ps);
        *self = Compression { last: self.last, ..Compression::default() };
        (acks >= LEAST && saved >= SHIFT_PS.max(round_trip_ps / 2)).then_some(saved)
    }
}
