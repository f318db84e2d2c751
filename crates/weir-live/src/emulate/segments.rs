//! Packets that a network device gives and takes joined: up to 64 KiB of one TCP connection, or datagrams of one size, as
//! one packet with a header of its own before it. A path sees their segments: what the kernel or a network card would
//! have made of them.
//!
//! Source: Linux uapi, linux/virtio_net.h (the header of ten bytes, in the byte order of the machine)

use std::ops::Range;

use super::packet::{folded, mark_congestion, word_sum};

/// Length of what a device puts before each packet.
pub(super) const OFFLOAD_HEADER: usize = 10;
/// Longest headers of IP and transport together that are cut; what has longer ones stays whole.
const HEADERS_MAX: usize = 256;

const NEEDS_CHECKSUM: u8 = 1;
const SINGLE: u8 = 0;
const TCP_IPV4: u8 = 1;
const TCP_IPV6: u8 = 4;
const UDP: u8 = 5;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// What a device says of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OffloadHeader {
    flags: u8,
    kind: u8,
    headers: u16,
    /// Payload of each segment but the last, in bytes.
    payload: u16,
    checksum_from: u16,
    checksum_at: u16,
}

impl OffloadHeader {
    pub(super) fn from_bytes(bytes: [u8; OFFLOAD_HEADER]) -> OffloadHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        OffloadHeader {
            flags: bytes[0],
            kind: bytes[1],
            headers: word(2),
            payload: word(4),
            checksum_from: word(6),
            checksum_at: word(8),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; OFFLOAD_HEADER] {
        let mut bytes = [0; OFFLOAD_HEADER];
        (bytes[0], bytes[1]) = (self.flags, self.kind);
        let words = [self.headers, self.payload, self.checksum_from, self.checksum_at];
        for (to, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Whether it is joined.
    pub(super) fn is_joined(self) -> bool {
        self.kind != SINGLE
    }

    /// Whether the checksum of the transport holds the sum over the pseudo header only, and the receiver is not to
    /// look at it.
    pub(super) fn needs_checksum(self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }
}

/// How a joined packet falls into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    offload: OffloadHeader,
    /// Where the header of the transport begins.
    transport: usize,
    /// Where the payload begins.
    headers: usize,
    /// Of each segment but the last, in bytes.
    payload: usize,
    /// Length of the packet.
    length: usize,
}

impl Segments {
    /// Those of a packet of `length` bytes that begins with `front`; none where it is a single one, or nothing that a
    /// device joins.
    pub(super) fn of(offload: OffloadHeader, front: &[u8], length: usize) -> Option<Segments> {
        let transport = usize::from(offload.checksum_from);
        let own = match (offload.kind, front.first()? >> 4) {
            (TCP_IPV4, 4) | (TCP_IPV6, 6) => usize::from(*front.get(transport + 12)? >> 4) * 4,
            (UDP, 4 | 6) => UDP_HEADER,
            _ => return None,
        };
        let least = if offload.kind == UDP { UDP_HEADER } else { TCP_HEADER };
        let headers = transport + own;
        let fixed = if front[0] >> 4 == 4 { 20 } else { 40 };
        let payload = usize::from(offload.payload);
        let legal = offload.needs_checksum()
            && transport >= fixed
            && own >= least
            && usize::from(offload.checksum_at) + 2 <= own
            && headers <= front.len().min(HEADERS_MAX)
            && payload > 0
            && length > headers + payload
            && (length - headers).div_ceil(payload) <= usize::from(u16::MAX);
        legal.then_some(Segments { offload, transport, headers, payload, length })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u16 {
        (self.length - self.headers).div_ceil(self.payload) as u16
    }

    /// Length of a segment with its headers.
    pub(super) fn size(&self, index: u16) -> usize {
        let payload = self.payload_of(&(index..index + 1));
        self.headers + payload.len()
    }

    /// Which bytes of the packet are the payload of some segments in a row.
    pub(super) fn payload_of(&self, run: &Range<u16>) -> Range<usize> {
        let at = |index: u16| (self.headers + usize::from(index) * self.payload).min(self.length);
        at(run.start)..at(run.end)
    }

    /// What comes before that payload: what the device receives, and the headers, made from those of the packet.
    /// Sequence numbers and identifications go on from segment to segment, FIN and PSH belong to the last and CWR to
    /// the first.
    ///
    /// Source: RFC 9293, section 3.1 (TCP); RFC 791, section 3.1 (IPv4, and with it UDP and IPv6)
    pub(super) fn head(&self, front: &[u8], run: &Range<u16>, marked: bool) -> Head {
        let payload = self.payload_of(run).len();
        let single = run.len() == 1;
        let offload = OffloadHeader {
            kind: if single { SINGLE } else { self.offload.kind },
            headers: if single { 0 } else { self.headers as u16 },
            payload: if single { 0 } else { self.offload.payload },
            ..self.offload
        };
        let mut head = Head { bytes: [0; OFFLOAD_HEADER + HEADERS_MAX], length: OFFLOAD_HEADER + self.headers };
        head.bytes[..OFFLOAD_HEADER].copy_from_slice(&offload.to_bytes());
        let packet = &mut head.bytes[OFFLOAD_HEADER..OFFLOAD_HEADER + self.headers];
        packet.copy_from_slice(&front[..self.headers]);
        let (ip, transport) = packet.split_at_mut(self.transport);
        if self.offload.kind == UDP {
            put(transport, 4, UDP_HEADER + payload);
        } else {
            let sequence = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            let sequence = sequence.wrapping_add(u32::from(run.start) * self.payload as u32);
            transport[4..8].copy_from_slice(&sequence.to_be_bytes());
            if run.end < self.count() {
                transport[13] &= !(FIN | PSH);
            }
            if run.start > 0 {
                transport[13] &= !CWR;
            }
        }
        let at = usize::from(self.offload.checksum_at);
        let given = u16::from_be_bytes([transport[at], transport[at + 1]]);
        let (before, now) = (self.length - self.transport, transport.len() + payload);
        put(transport, at, usize::from(with_length(given, before as u16, now as u16)));
        if ip[0] >> 4 == 4 {
            let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(run.start);
            put(ip, 2, self.headers + payload);
            put(ip, 4, usize::from(identification));
            put(ip, 10, 0);
            let header = usize::from(ip[0] & 0xf) * 4;
            put(ip, 10, usize::from(!word_sum(&ip[..header.min(self.transport)])));
        } else {
            put(ip, 4, self.headers + payload - 40);
        }
        if marked {
            mark_congestion(packet);
        }
        head
    }
}

/// A sum over a pseudo header with another length. All else of it stays as it was given: behind a routing header, the
/// address that it is made of is not the one in the header of IP.
///
/// Source: RFC 1624, section 2, eqn. 1
fn with_length(sum: u16, before: u16, now: u16) -> u16 {
    folded(u32::from(sum) + u32::from(!before) + u32::from(now))
}

/// Puts a word into a header; out of its bounds nothing happens.
fn put(header: &mut [u8], at: usize, word: usize) {
    if let Some(to) = header.get_mut(at..at + 2) {
        to.copy_from_slice(&(word as u16).to_be_bytes());
    }
}

/// What comes before the payload of some segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    bytes: [u8; OFFLOAD_HEADER + HEADERS_MAX],
    length: usize,
}

impl Head {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
pub(super) mod tests;
