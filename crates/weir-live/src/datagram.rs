//! The header of a probe: which trial it belongs to, its place there, and when it left.
//!
//! 16 bytes, so that it fits into the 18 bytes of UDP payload of a 64 B frame (64 - 14 Ethernet - 4 FCS - 20 IPv4
//! - 8 UDP). All fields are big-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | run: a number drawn per trial; another number marks a stranger |
//! | 4-7 | sequence, from 0 |
//! | 8-15 | departure: ns of the sender's monotonic clock since the start of the trial's clock |

use weir_core::units::{Bytes, Time};

/// What a frame has around the UDP payload: Ethernet header and FCS, IPv4 and UDP headers.
pub const FRAME_OVERHEAD: Bytes = Bytes::new(14 + 4 + 20 + 8);

const PS_PER_NS: u64 = 1_000;

/// The header of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which trial.
    pub run: u32,
    /// Which probe of the trial, from 0.
    pub sequence: u32,
    /// When it left; stored in whole nanoseconds.
    pub departure: Time,
}

impl Header {
    /// Length of an encoded header in bytes.
    pub const LEN: usize = 16;

    /// Write the header to the front of `payload`, which must hold at least [`Header::LEN`] bytes.
    pub fn encode(self, payload: &mut [u8]) {
        payload[0..4].copy_from_slice(&self.run.to_be_bytes());
        payload[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        payload[8..16].copy_from_slice(&(self.departure.ps() / PS_PER_NS).to_be_bytes());
    }

    /// Read the header of `payload`; nothing when it is too short or its time cannot be.
    pub fn decode(payload: &[u8]) -> Option<Header> {
        let (run, rest) = payload.split_first_chunk::<4>()?;
        let (sequence, rest) = rest.split_first_chunk::<4>()?;
        let (departure_ns, _) = rest.split_first_chunk::<8>()?;
        let departure_ps = u64::from_be_bytes(*departure_ns).checked_mul(PS_PER_NS)?;
        Some(Header {
            run: u32::from_be_bytes(*run),
            sequence: u32::from_be_bytes(*sequence),
            departure: Time::from_ps(departure_ps),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_fits_into_the_smallest_frame_and_is_read_back() {
        let smallest = 64 - FRAME_OVERHEAD.count();
        assert!(Header::LEN as u64 <= smallest);
        let header = Header { run: 0xdead_beef, sequence: 7, departure: Time::from_ps(123_000) };
        let mut payload = [0xff; 18];
        header.encode(&mut payload);
        assert_eq!(Header::decode(&payload), Some(header));
    }

    #[test]
    fn a_payload_that_is_too_short_or_absurd_is_no_header() {
        assert_eq!(Header::decode(&[0; Header::LEN - 1]), None);
        assert_eq!(Header::decode(&[0xff; Header::LEN]), None);
    }
}
