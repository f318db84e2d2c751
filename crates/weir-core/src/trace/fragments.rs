//! Segments and datagrams that came in fragments.
//!
//! A datagram counts when its last missing fragment is seen, with the transport header of the first. Fragments that
//! overlap are counted as they come, so that a datagram with doubled fragments may count early.

use super::packet::{Address, Packet, Part, Transport};

/// Datagrams that may be open at once; the oldest gives way.
const MOST: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Datagram {
    key: (Address, Address, u8, u32),
    transport: Transport,
    /// Whether the first fragment was seen.
    headed: bool,
    seen: u32,
    total: Option<u32>,
}

/// Datagrams of which fragments are missing.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    open: Vec<Datagram>,
    next: usize,
}

impl Fragments {
    /// Take a fragment: what the datagram carries once it is whole, with its whole length; and what is known of its
    /// ports until then.
    pub(crate) fn take(&mut self, packet: &Packet) -> (Option<Transport>, Transport) {
        let Part::Fragment { id, offset, bytes, last } = packet.part else {
            return (Some(packet.transport), packet.transport);
        };
        let key = (packet.from, packet.to, packet.protocol, id);
        let place = match self.open.iter().position(|datagram| datagram.key == key) {
            Some(place) => place,
            None => self.open_datagram(key),
        };
        let datagram = &mut self.open[place];
        if offset == 0 {
            datagram.headed = true;
            datagram.transport = packet.transport;
        }
        datagram.seen = datagram.seen.saturating_add(bytes);
        if last {
            datagram.total = Some(offset.saturating_add(bytes));
        }
        let known = datagram.transport;
        match datagram.total {
            Some(total) if datagram.headed && datagram.seen >= total => {
                let whole = whole(known, total);
                self.open.swap_remove(place);
                self.next = 0;
                (Some(whole), known)
            }
            _ => (None, known),
        }
    }

    fn open_datagram(&mut self, key: (Address, Address, u8, u32)) -> usize {
        let datagram = Datagram { key, transport: Transport::Other, headed: false, seen: 0, total: None };
        if self.open.len() < MOST {
            self.open.push(datagram);
            return self.open.len() - 1;
        }
        let place = self.next % MOST;
        self.next = place + 1;
        self.open[place] = datagram;
        place
    }
}

/// The transport header of the first fragment with the payload of the whole datagram of `total` bytes.
fn whole(first: Transport, total: u32) -> Transport {
    match first {
        Transport::Udp { from, to, .. } => Transport::Udp { from, to, payload: total.saturating_sub(8), content: 0 },
        Transport::Tcp(mut segment) => {
            segment.payload = total.saturating_sub(segment.header);
            Transport::Tcp(segment)
        }
        Transport::Other => Transport::Other,
    }
}
