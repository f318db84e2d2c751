//! Segments that a host leaves to its card to cut, or that its card joined: how many of them the wire had.

/// Payloads of full packets on a path of 1500 bytes: IPv4 or IPv6, without and with timestamps.
const FULL: [u32; 4] = [1460, 1448, 1440, 1428];

/// Packets larger than these, in captures without a handshake that would show the size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Joined {
    /// First all packets, then those that were sent again.
    packets: [u64; 2],
    bytes: [u64; 2],
    /// How many of them hold a whole number of full payloads, by place in [`FULL`].
    multiples: [u64; 4],
}

impl Joined {
    pub(crate) fn take(&mut self, payload: u32, again: bool) {
        if payload <= FULL[0] {
            return;
        }
        for way in 0..=usize::from(again) {
            self.packets[way] += 1;
            self.bytes[way] += u64::from(payload);
        }
        for (count, full) in self.multiples.iter_mut().zip(FULL) {
            *count += u64::from(payload.is_multiple_of(full));
        }
    }

    /// Packets that the wire had more, of all and of those that were sent again: where at least half of the large ones hold a
    /// whole number of full payloads. Others are what they seem, on a path that carries more than 1500 bytes.
    pub(crate) fn more(&self) -> [u64; 2] {
        let (count, full) = self.multiples.into_iter().zip(FULL).max_by_key(|&(count, _)| count).unwrap_or_default();
        if count == 0 || 2 * count < self.packets[0] {
            return [0, 0];
        }
        [0, 1].map(|way| self.bytes[way].div_ceil(u64::from(full)).saturating_sub(self.packets[way]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_packets_count_as_the_wire_has_them() {
        let mut joined = Joined::default();
        joined.take(10 * 1448, false);
        joined.take(2 * 1448, true);
        joined.take(1448, true);
        joined.take(3 * 1448 + 100, false);
        assert_eq!(joined.more(), [9 + 1 + 3, 1]);
    }

    #[test]
    fn large_packets_of_another_size_are_what_they_seem() {
        let mut joined = Joined::default();
        (0..9).for_each(|_| joined.take(8948, false));
        joined.take(2 * 1448, false);
        assert_eq!(joined.more(), [0, 0]);
    }
}
