//! Test packets of STAMP without authentication, and the times in them. Pure.
//!
//! Times are truncated PTPv2 (Z = 1).
//! Source: RFC 8762, sections 4.2.1 and 4.3.1

/// Length of a packet in both directions. Source: RFC 8762, section 4.3
pub const LEN: usize = 44;
const NS_PER_S: u64 = 1_000_000_000;
/// Not synchronised with a source outside (S = 0), truncated PTPv2 (Z = 1), off by 2^-32 2^12 s, about 1 us.
/// Source: RFC 4656, section 4.1.2; RFC 8186, section 2.1
const ERROR_ESTIMATE: u16 = 0x4c01;

/// What a sender says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub sequence: u32,
    /// When it left, ns since 1970.
    pub sent_ns: u64,
}

/// What a reflector answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The reflector's own number.
    pub sequence: u32,
    /// When it left, ns since 1970.
    pub sent_ns: u64,
    /// When the request had come, ns since 1970.
    pub received_ns: u64,
    /// The request that it answers.
    pub request: Request,
}

impl Request {
    /// Writes the packet at the beginning of `packet`; what follows is padding.
    ///
    /// # Panics
    /// `packet` is shorter than [`LEN`].
    pub fn encode(&self, packet: &mut [u8]) {
        packet[..LEN].fill(0);
        packet[..4].copy_from_slice(&self.sequence.to_be_bytes());
        packet[4..12].copy_from_slice(&timestamp(self.sent_ns));
        packet[12..14].copy_from_slice(&ERROR_ESTIMATE.to_be_bytes());
    }

    /// Reads a packet; none for what is too short or has times of another format.
    pub fn decode(packet: &[u8]) -> Option<Request> {
        let times = packet.len() >= LEN && packet[12] & 0x40 != 0;
        times.then(|| Request { sequence: word(packet, 0), sent_ns: time(packet, 4) })
    }
}

impl Reply {
    /// Writes the packet at the beginning of `packet`, which holds the request: its time to live is not known.
    ///
    /// # Panics
    /// `packet` is shorter than [`LEN`].
    pub fn encode(&self, packet: &mut [u8]) {
        Request { sequence: self.sequence, sent_ns: self.sent_ns }.encode(packet);
        packet[16..24].copy_from_slice(&timestamp(self.received_ns));
        packet[24..28].copy_from_slice(&self.request.sequence.to_be_bytes());
        packet[28..36].copy_from_slice(&timestamp(self.request.sent_ns));
        packet[36..38].copy_from_slice(&ERROR_ESTIMATE.to_be_bytes());
    }

    /// Reads a packet; none for what is too short or has times of another format.
    pub fn decode(packet: &[u8]) -> Option<Reply> {
        let times = packet.len() >= LEN && packet[12] & packet[36] & 0x40 != 0;
        times.then(|| Reply {
            sequence: word(packet, 0),
            sent_ns: time(packet, 4),
            received_ns: time(packet, 16),
            request: Request { sequence: word(packet, 24), sent_ns: time(packet, 28) },
        })
    }
}

/// Seconds and nanoseconds, of 32 bits each.
fn timestamp(ns: u64) -> [u8; 8] {
    let seconds = (ns / NS_PER_S) as u32;
    let rest = (ns % NS_PER_S) as u32;
    ((u64::from(seconds) << 32) | u64::from(rest)).to_be_bytes()
}

fn time(packet: &[u8], at: usize) -> u64 {
    u64::from(word(packet, at)) * NS_PER_S + u64::from(word(packet, at + 4))
}

fn word(packet: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(packet[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request = Request { sequence: 7, sent_ns: 1_700_000_000_123_456_789 };

    #[test]
    fn a_request_has_its_fields_where_the_standard_has_them() {
        let mut packet = [0xff; 60];
        REQUEST.encode(&mut packet);
        assert_eq!(packet[..4], [0, 0, 0, 7]);
        assert_eq!(packet[4..8], 1_700_000_000_u32.to_be_bytes());
        assert_eq!(packet[8..12], 123_456_789_u32.to_be_bytes());
        assert_eq!(packet[12..14], [0x4c, 0x01]);
        assert!(packet[14..LEN].iter().all(|&byte| byte == 0));
        assert_eq!(Request::decode(&packet), Some(REQUEST));
    }

    #[test]
    fn a_reply_has_its_fields_where_the_standard_has_them() {
        let reply = Reply { sequence: 9, sent_ns: 1_700_000_001_000_000_002, received_ns: 5, request: REQUEST };
        let mut packet = [0; LEN];
        reply.encode(&mut packet);
        assert_eq!(packet[16..24], [0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(packet[24..28], [0, 0, 0, 7]);
        assert_eq!(packet[36..38], [0x4c, 0x01]);
        assert_eq!(Reply::decode(&packet), Some(reply));
    }

    #[test]
    fn what_is_short_or_reports_another_time_is_none() {
        let mut packet = [0; LEN];
        REQUEST.encode(&mut packet);
        assert_eq!(Request::decode(&packet[..LEN - 1]), None);
        packet[12] &= !0x40;
        assert_eq!(Request::decode(&packet), None);
        assert_eq!(Reply::decode(&packet), None);
    }
}
