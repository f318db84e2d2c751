//! Numbered packets in frames under way. One that goes to the receiver takes ten bytes, whatever holds its frame: of such packets
//! the most wait. Answers, and what does not fit, are kept whole.

use weir_core::rdma::{CREDIT_UNIT, Packet, PacketKind};
use weir_core::units::Time;

use super::FrameId;

/// Packets, at the places of their frames.
#[derive(Debug, Default)]
pub(super) struct Packets {
    slots: Vec<Slot>,
    whole: Vec<Packet>,
    /// Places in `whole` that are free.
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Empty,
    Compact(Compact),
    /// At this place of those that are kept whole, in bytes, so that slots need no alignment.
    Whole([u8; 4]),
}

/// What a frame does not tell of a packet that goes to the receiver.
#[derive(Clone, Copy, Debug)]
struct Compact {
    /// The number in 24 bits, credit that was asked for in as many, and the value for the way in 16.
    numbers: [u8; 8],
    kind: PacketKind,
    /// The class in three bits, and four flags.
    flags: u8,
}

impl Compact {
    const BITS: u32 = 24;
    const LARGEST: u64 = (1 << Compact::BITS) - 1;

    /// `packet`, if its frame was generated at `born` and nothing is lost.
    fn new(packet: &Packet, born: Time) -> Option<Compact> {
        let credit = packet.from / CREDIT_UNIT;
        let numbers = packet.number & Compact::LARGEST
            | (credit & Compact::LARGEST) << Compact::BITS
            | u64::from(packet.entropy) << (2 * Compact::BITS);
        let flags = [packet.marked, packet.is_capable, packet.asks, packet.at_last_hop];
        let flags = (3..).zip(flags).fold(packet.class, |all, (bit, flag)| all | u8::from(flag) << bit);
        let compact = Compact { numbers: numbers.to_le_bytes(), kind: packet.kind, flags };
        (compact.packet(born) == *packet).then_some(compact)
    }

    fn packet(self, born: Time) -> Packet {
        let numbers = u64::from_le_bytes(self.numbers);
        let flag = |bit: u8| self.flags >> bit & 1 == 1;
        Packet {
            number: numbers & Compact::LARGEST,
            next: 0,
            arrived: 0,
            from: (numbers >> Compact::BITS & Compact::LARGEST) * CREDIT_UNIT,
            sent: born,
            entropy: (numbers >> (2 * Compact::BITS)) as u16,
            kind: self.kind,
            class: self.flags & 7,
            marked: flag(3),
            is_capable: flag(4),
            asks: flag(5),
            at_last_hop: flag(6),
        }
    }
}

impl Packets {
    /// Frame `id`, generated at `born`, carries `packet` from now on.
    pub(super) fn put(&mut self, id: FrameId, packet: &Packet, born: Time) {
        let place = id as usize;
        if self.slots.len() <= place {
            super::reserve_once(&mut self.slots, place);
            self.slots.resize(place + 1, Slot::Empty);
        }
        self.forget(id);
        self.slots[place] = Compact::new(packet, born).map_or_else(|| self.keep(packet), Slot::Compact);
    }

    fn keep(&mut self, packet: &Packet) -> Slot {
        let place = self.free.pop().unwrap_or(self.whole.len() as u32);
        if place as usize == self.whole.len() {
            self.whole.push(*packet);
        } else {
            self.whole[place as usize] = *packet;
        }
        Slot::Whole(place.to_le_bytes())
    }

    /// Frame `id` carries no packet.
    #[inline(always)]
    pub(super) fn forget(&mut self, id: FrameId) {
        if let Some(slot) = self.slots.get_mut(id as usize)
            && let Slot::Whole(place) = std::mem::replace(slot, Slot::Empty)
        {
            self.free.push(u32::from_le_bytes(place));
        }
    }

    /// The packet of frame `id`, generated at `born`, if it carries one.
    #[inline(always)]
    pub(super) fn get(&self, id: FrameId, born: Time) -> Option<Packet> {
        match *self.slots.get(id as usize)? {
            Slot::Empty => None,
            Slot::Compact(compact) => Some(compact.packet(born)),
            Slot::Whole(place) => Some(self.whole[u32::from_le_bytes(place) as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Packet = Packet {
        number: 3,
        next: 0,
        arrived: 0,
        from: 7 * CREDIT_UNIT,
        sent: Time::from_ps(11),
        entropy: 40_000,
        kind: PacketKind::Data,
        class: 5,
        marked: false,
        is_capable: true,
        asks: true,
        at_last_hop: false,
    };

    #[test]
    fn a_packet_to_the_receiver_takes_ten_bytes() {
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (10, 1));
        assert!(Compact::new(&DATA, DATA.sent).is_some());
    }

    #[test]
    fn every_packet_comes_out_as_it_went_in() {
        let mut header = DATA;
        header.cut(6, true);
        let marked = Packet { marked: true, ..DATA };
        let answer = Packet { kind: PacketKind::Arrived, next: 2, arrived: 5, ..DATA };
        let large = [Compact::LARGEST, Compact::LARGEST + 1].map(|number| Packet { number, ..DATA });
        let credit = [Compact::LARGEST, Compact::LARGEST + 1].map(|units| Packet { from: units * CREDIT_UNIT, ..DATA });
        let odd = [Packet { from: 1, ..DATA }, Packet { class: 8, ..DATA }, Packet { sent: Time::ZERO, ..DATA }];
        let mut packets = Packets::default();
        for packet in [DATA, header, marked, answer].into_iter().chain(large).chain(credit).chain(odd) {
            packets.put(2, &packet, DATA.sent);
            assert_eq!(packets.get(2, DATA.sent), Some(packet));
        }
        assert_eq!((packets.get(1, DATA.sent), packets.get(3, DATA.sent)), (None, None));
        packets.forget(2);
        assert_eq!((packets.get(2, DATA.sent), packets.whole.len()), (None, 1));
    }
}
