//! Packets that a capture holds more than once: taken at several points of their way, or twice at one.
//!
//! A copy has everything that a network leaves alone: identification, numbers, flags, window, timestamps, length. Which
//! point is judged is known when all were read: so a capture of several points is read once more.

use std::collections::BTreeMap;

use super::capture::{Link, Record};
use super::packet::{Packet, Part, Transport};
use super::window::{Order, u16_at, u32_at};
use crate::rng::mix;

/// Packets that are remembered, of all flows together: more than are on the way at once.
const MOST: usize = 1 << 16;
/// Points of a connection that are told apart; packets of others count as they are.
const MOST_POINTS: usize = 16;

/// Where a packet was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Point {
    /// Place of the interface in the file.
    pub(crate) interface: u32,
    /// What a cooked capture tells beside it: the index of the interface, or whether the host itself sent the frame.
    pub(crate) inner: u32,
}

impl Point {
    /// Of `record`. Source: tcpdump LINKTYPE, LINUX_SLL and LINUX_SLL2.
    #[inline]
    pub(crate) fn of(record: &Record<'_>) -> Point {
        let inner = match record.link {
            Link::Cooked2 if record.bytes.len() >= 8 => u32_at(record.bytes, 4, Order::Big),
            Link::Cooked if record.bytes.len() >= 2 => u32::from(u16_at(record.bytes, 0, Order::Big) == 4),
            _ => 0,
        };
        Point { interface: record.interface, inner }
    }
}

/// What was seen of one direction at one point.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) packets: u64,
    /// Packets that had been seen at another point before.
    after: u64,
    /// Packets that were seen at another point later.
    followed: u64,
}

/// The points at which a connection was captured, and both directions at each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Points(pub(crate) Vec<(Point, [Seen; 2])>);

impl Points {
    fn at(&mut self, point: Point, from: usize) -> Option<&mut Seen> {
        let place = match self.0.iter().position(|(known, _)| *known == point) {
            Some(place) => place,
            None if self.0.len() < MOST_POINTS => {
                self.0.push((point, Default::default()));
                self.0.len() - 1
            }
            None => return None,
        };
        Some(&mut self.0[place].1[from])
    }

    /// The points at which each direction is judged, if there is a choice: near the sender of direction `heavy`, which
    /// carries most. There its packets are seen first, and those of the other direction last. Points that share no
    /// packets with others, as the two fibers of a tap or the links of a bundle, are no choice.
    pub(crate) fn choose(&self, heavy: usize) -> Option<[Option<Point>; 2]> {
        let shared = |seen: &Seen| seen.packets > 0 && 2 * seen.after.max(seen.followed) >= seen.packets;
        let group: Vec<_> = self.0.iter().filter(|(_, seen)| seen.iter().any(shared)).collect();
        let of = |way: usize| group.iter().filter(move |(_, seen)| seen[way].packets > 0);
        if of(0).count() < 2 && of(1).count() < 2 {
            return None;
        }
        let share = |count: u64, seen: &Seen| count as f64 / seen.packets.max(1) as f64;
        let least = |way: usize, value: &dyn Fn(&[Seen; 2]) -> f64| {
            of(way).min_by(|one, other| value(&one.1).total_cmp(&value(&other.1))).map(|(point, _)| *point)
        };
        let light = 1 - heavy;
        let matched = of(heavy).any(|(_, seen)| seen[heavy].after > 0);
        // Where a host joins segments only one direction is alike at both points.
        let first = |seen: &[Seen; 2]| match matched {
            true => share(seen[heavy].after, &seen[heavy]),
            false => share(seen[light].followed, &seen[light]),
        };
        let main = least(heavy, &first);
        let back = match main.filter(|main| of(light).any(|(point, _)| point == main)) {
            Some(main) => Some(main),
            None => least(light, &|seen: &[Seen; 2]| share(seen[light].followed, &seen[light])),
        };
        Some(if heavy == 0 { [main, back] } else { [back, main] })
    }

    /// Whether packets of direction `from` at `point` are left out where `chosen` are judged.
    pub(crate) fn leaves_out(&self, chosen: &[Option<Point>; 2], from: usize, point: Point) -> bool {
        let shared = |seen: &Seen| seen.packets > 0 && 2 * seen.after.max(seen.followed) >= seen.packets;
        chosen[from].is_some_and(|judged| judged != point)
            && self.0.iter().any(|(known, seen)| *known == point && seen.iter().any(shared))
    }
}

/// What of each connection is left out when a capture of several points is read once more.
#[derive(Clone, Debug, Default)]
pub struct Choices(pub(crate) BTreeMap<u32, (Points, [Option<Point>; 2])>);

impl Choices {
    /// Whether all packets count.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a packet of side `from` of a connection was captured at another point than that which is judged.
    #[inline]
    pub(crate) fn leave_out(&self, connection: u32, from: usize, point: Point) -> bool {
        !self.0.is_empty()
            && self.0.get(&connection).is_some_and(|(points, chosen)| points.leaves_out(chosen, from, point))
    }
}

/// The last packets of all flows: the place of each is that of its hash.
#[derive(Debug, Default)]
pub(crate) struct Copies(Vec<(u64, Point)>);

impl Copies {
    /// A packet of side `from` of connection `place`: whether it is one that was seen at the same point.
    #[inline]
    pub(crate) fn again(
        &mut self,
        (place, from): (u32, usize),
        packet: &Packet,
        point: Point,
        points: &mut Points,
    ) -> bool {
        if let Some(seen) = points.at(point, from) {
            seen.packets += 1;
        }
        let Some(print) = fingerprint(place, from, packet) else { return false };
        if self.0.is_empty() {
            self.0 = vec![(0, Point { interface: 0, inner: 0 }); MOST];
        }
        let slot = &mut self.0[print as usize % MOST];
        if slot.0 != print {
            *slot = (print, point);
            return false;
        }
        if slot.1 == point {
            return packet.id.is_some();
        }
        let before = std::mem::replace(&mut slot.1, point);
        if let Some(seen) = points.at(before, from) {
            seen.followed += 1;
        }
        if let Some(seen) = points.at(point, from) {
            seen.after += 1;
        }
        false
    }
}

/// What copies of a packet have in common, and no other packet has. Fragments have none, nor datagrams without an
/// identification.
#[inline]
fn fingerprint(place: u32, from: usize, packet: &Packet) -> Option<u64> {
    if packet.part != Part::Whole {
        return None;
    }
    let word = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let id = u32::from(packet.id.unwrap_or(0));
    let told = match packet.transport {
        Transport::Tcp(segment) => {
            let (value, echo) = segment.timestamps.unwrap_or_default();
            let rest = u32::from(segment.window) << 16 | u32::from(segment.flags);
            mix(word(segment.seq, segment.ack) ^ mix(word(value, echo) ^ mix(word(segment.payload, rest))))
        }
        Transport::Udp { payload, .. } if packet.id.is_some() => mix(u64::from(payload)),
        Transport::Udp { .. } | Transport::Other => return None,
    };
    Some(mix(told ^ mix(word(place * 2 + from as u32, id))).max(1))
}
