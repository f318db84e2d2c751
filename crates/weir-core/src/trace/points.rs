//! Packets that a capture holds more than once: taken at several points of their way, or twice at one.
//!
//! A copy has everything that a network leaves alone: identification, numbers, flags, window, timestamps, length. Which
//! points are judged is known when all were read: so a capture of several points is read once more.

use std::collections::BTreeMap;

use super::capture::{Link, Record};
use super::hash::fold;
use super::packet::{Packet, Part, Transport};
use super::window::{Order, u16_at, u32_at};

/// Packets that are remembered, of all flows together: more than are on the way at once.
const MOST: usize = 1 << 16;
/// Points of a connection that are distinguished; packets of others count as they are. A loop between two routers brings a
/// packet past one interface up to 127 times.
const MOST_POINTS: usize = 128;
/// Pairs of points of a connection that are counted: more than a loop has.
const MOST_PAIRS: usize = 512;
/// A mark of a packet has the place of its point in these bits.
const PLACE: u64 = MOST_POINTS as u64 - 1;
/// In `inner`: the rest says which way a frame went through the host, which is no place.
const WAY: u32 = 1 << 31;
/// Shares of packets that were seen at another point, too: of a point that has nothing of its own, and of one that has at
/// least as much in common.
const NOTHING_OF_ITS_OWN: f64 = 0.75;
const MUCH_IN_COMMON: f64 = 0.5;

/// Where a packet was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    /// Place of the interface in the file.
    pub(crate) interface: u32,
    /// What a cooked capture reports in addition: the index of the interface, or whether the host itself sent the frame.
    pub(crate) inner: u32,
    /// Numbers of VLANs: a router with one leg has a packet twice on it.
    pub(crate) vlans: u32,
    /// The innermost tunnel: where it ends, the same packets go on without it.
    pub(crate) tunnel: u32,
    /// Routers that packets may still pass: where captures were merged into one interface, these distinguish them.
    pub(crate) hops: u8,
}

impl Point {
    /// Of `record`, which holds `packet`. Source: tcpdump LINKTYPE, LINUX_SLL and LINUX_SLL2.
    #[inline]
    pub(crate) fn of(record: &Record<'_>, packet: &Packet) -> Point {
        let inner = match record.link {
            Link::Cooked2 if record.bytes.len() >= 8 => u32_at(record.bytes, 4, Order::Big) & !WAY,
            Link::Cooked if record.bytes.len() >= 2 => WAY | u32::from(u16_at(record.bytes, 0, Order::Big) == 4),
            _ => 0,
        };
        Point { interface: record.interface, inner, vlans: packet.vlans, tunnel: packet.tunnel, hops: packet.hops }
    }

    /// Whether both are the same interface, as far as the capture shows.
    pub(crate) fn shares_place(self, other: Point) -> bool {
        let place = |point: Point| (point.interface, point.inner, point.vlans, point.tunnel);
        place(self) == place(other)
    }

    /// Whether it is half of a cooked capture that does not name interfaces.
    fn is_way(self) -> bool {
        self.inner & WAY != 0
    }

    /// Whether the host itself sent the frames of such a half.
    pub(crate) fn is_outgoing(self) -> bool {
        self.inner & !WAY == 1
    }
}

/// Packets of one direction that were seen at one point and then at another.
#[derive(Clone, Copy, Debug)]
struct Pair {
    first: u8,
    then: u8,
    way: u8,
    count: u64,
    sum_ps: u64,
}

/// The points at which a connection was captured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Points {
    /// Each with the packets of both directions.
    pub(crate) seen: Vec<(Point, [u64; 2])>,
    pairs: Vec<Pair>,
}

impl Points {
    /// A packet of direction `way` was seen at `point`: its place among the points.
    #[inline]
    fn count(&mut self, point: Point, way: usize) -> Option<usize> {
        let place = match self.seen.iter().position(|(known, _)| *known == point) {
            Some(place) => place,
            None if self.seen.len() < MOST_POINTS => {
                self.seen.reserve_exact(1);
                self.seen.push((point, [0; 2]));
                self.seen.len() - 1
            }
            None => return None,
        };
        self.seen[place].1[way] += 1;
        Some(place)
    }

    fn pair(&mut self, first: usize, then: usize, way: usize, passed_ps: u64) {
        let (first, then, way) = (first as u8, then as u8, way as u8);
        let is_it = |pair: &&mut Pair| (pair.first, pair.then, pair.way) == (first, then, way);
        match self.pairs.iter_mut().find(is_it) {
            Some(pair) => {
                pair.count += 1;
                pair.sum_ps = pair.sum_ps.saturating_add(passed_ps);
            }
            None => {
                if self.pairs.len() < MOST_PAIRS {
                    self.pairs.push(Pair { first, then, way, count: 1, sum_ps: passed_ps });
                }
            }
        }
    }

    /// How many packets of direction `way` were seen in each order by points that `is_one` and points that `is_other`, and how
    /// long after each other.
    fn orders(&self, way: usize, is_one: impl Fn(usize) -> bool, is_other: impl Fn(usize) -> bool) -> [(u64, f64); 2] {
        let mut sums = [(0u64, 0u64); 2];
        for pair in self.pairs.iter().filter(|pair| usize::from(pair.way) == way) {
            let (first, then) = (usize::from(pair.first), usize::from(pair.then));
            let order = match (is_one(first) && is_other(then), is_other(first) && is_one(then)) {
                (true, false) => 0,
                (false, true) => 1,
                _ => continue,
            };
            sums[order].0 += pair.count;
            sums[order].1 = sums[order].1.saturating_add(pair.sum_ps);
        }
        sums.map(|(count, sum)| (count, sum as f64 / count.max(1) as f64))
    }

    /// By how much later packets of direction `way` were seen at the interface of `other` than at that of `one`, ps, if
    /// enough were seen at both. Packets that all look alike follow each other in both orders, and say nothing.
    fn lag(&self, one: usize, other: usize, way: usize) -> Option<f64> {
        let is_at = |place: usize| move |point: usize| self.seen[point].0.shares_place(self.seen[place].0);
        let packets = |place: usize| -> u64 {
            (0..self.seen.len()).filter(|&point| is_at(place)(point)).map(|point| self.seen[point].1[way]).sum()
        };
        let [forth, back] = self.orders(way, is_at(one), is_at(other));
        let lag = reported(forth, back)?;
        (2 * forth.0.max(back.0) >= packets(one).min(packets(other))).then_some(lag)
    }

    /// Whether `one` is nearer than `other` to the sender of direction `heavy`, as packets of direction `way` show: they have
    /// passed fewer routers, or more on the way back. Else its packets are seen there first, and those of the other
    /// direction last. Clocks of hosts differ, but the sum of both holds for any clocks.
    fn is_nearer(&self, one: usize, other: usize, heavy: usize, way: usize) -> bool {
        let (point, beside) = (self.seen[one].0, self.seen[other].0);
        if point.hops != beside.hops {
            return (point.hops > beside.hops) == (way == heavy);
        }
        let lag = |of: usize| self.lag(one, other, of).map(|lag| if of == heavy { lag } else { -lag });
        let halves = point.is_way() && beside.is_way();
        let lag = match (lag(heavy), lag(1 - heavy)) {
            (Some(there), Some(back)) if !halves => there + back,
            _ => lag(way).or(lag(1 - way)).unwrap_or(0.0),
        };
        lag > 0.0 || lag == 0.0 && one < other
    }

    /// Packets of direction `way` that both points saw.
    fn in_common(&self, one: usize, other: usize, way: usize) -> u64 {
        let [forth, back] = self.orders(way, |point| point == one, |point| point == other);
        reported(forth, back).map_or(0, |_| forth.0.max(back.0))
    }

    fn share(&self, count: u64, place: usize, way: usize) -> f64 {
        count as f64 / self.seen[place].1[way].max(1) as f64
    }

    /// What of the packets of `way` at `place` was seen at points that are nearer to the sender of `heavy`.
    fn behind(&self, place: usize, way: usize, heavy: usize) -> f64 {
        let nearer = (0..self.seen.len()).filter(|&one| one != place && self.is_nearer(one, place, heavy, way));
        self.share(nearer.map(|one| self.in_common(one, place, way)).sum(), place, way)
    }

    /// Whether packets of `way` at `place` are copies of those at other points: of nearer ones; or of farther ones, where
    /// these have more.
    fn is_spare(&self, place: usize, way: usize, heavy: usize) -> bool {
        let others = || (0..self.seen.len()).filter(|&other| other != place);
        let behind = self.behind(place, way, heavy);
        if behind >= NOTHING_OF_ITS_OWN {
            return true;
        }
        let held = |part: usize, whole: usize| {
            self.share(self.in_common(part, whole, way), part, way) >= NOTHING_OF_ITS_OWN
                && self.is_nearer(part, whole, heavy, way)
                && self.behind(whole, way, heavy) < NOTHING_OF_ITS_OWN
        };
        others().any(|other| held(place, other))
            || behind >= MUCH_IN_COMMON && !others().any(|other| held(other, place))
    }

    /// The points at which packets of each direction are left out, if there are any: what is judged is seen as near as
    /// possible to the sender of direction `heavy`, which carries most. Points that share no packets with others, as the two
    /// fibers of a tap or the links of a bundle, are all judged.
    pub(crate) fn spare(&self, heavy: usize) -> Option<[Vec<Point>; 2]> {
        if self.pairs.is_empty() {
            return None;
        }
        let all = 0..self.seen.len();
        let packets = |place: usize, way: usize| self.seen[place].1[way];
        let own = [0, 1].map(|way| -> Vec<bool> {
            all.clone().map(|place| packets(place, way) > 0 && self.is_spare(place, way, heavy)).collect()
        });
        // Where a host joins segments only one direction is alike at all points: the other follows it.
        let main = if own[heavy].contains(&true) { heavy } else { 1 - heavy };
        let back = 1 - main;
        let beside = |place: usize| {
            let point = self.seen[place].0;
            all.clone().filter(move |&other| self.seen[other].0.shares_place(point))
        };
        let stays = |place: usize| {
            let mut here = beside(place).filter(|&other| packets(other, main) > 0).map(|other| !own[main][other]);
            here.next().map(|first| here.all(|stays| stays == first).then_some(first))
        };
        let is_spare = |place: usize, way: usize| {
            if way == main || self.seen[place].0.is_way() {
                return own[way][place];
            }
            match stays(place) {
                Some(Some(true)) => false,
                Some(Some(false)) => {
                    let elsewhere = |other: usize| packets(other, back) > 0 && stays(other) != Some(Some(false));
                    all.clone().any(elsewhere) || own[back][place]
                }
                Some(None) if !beside(place).any(|other| own[back][other]) => {
                    let nearer = |other: usize| other != place && self.is_nearer(other, place, heavy, back);
                    beside(place).any(|other| 4 * packets(other, back) >= packets(place, back) && nearer(other))
                }
                _ => own[back][place],
            }
        };
        let spare = [0, 1].map(|way| -> Vec<Point> {
            let left = all.clone().filter(|&place| packets(place, way) > 0 && is_spare(place, way));
            left.map(|place| self.seen[place].0).collect()
        });
        (spare != [const { Vec::new() }; 2]).then_some(spare)
    }
}

/// The time from the first to the second point, where most packets were seen in one order: negative when it is the other.
fn reported(forth: (u64, f64), back: (u64, f64)) -> Option<f64> {
    match (forth.0, back.0) {
        (count, less) if count > 4 * less => Some(forth.1),
        (less, count) if count > 4 * less => Some(-back.1),
        _ => None,
    }
}

/// What of each connection is left out when a capture of several points is read once more.
#[derive(Clone, Debug, Default)]
pub struct Choices(pub(crate) BTreeMap<u32, (Points, [Vec<Point>; 2])>);

impl Choices {
    /// Whether all packets count.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The points at which packets of each direction of a connection are left out.
    pub(crate) fn of(&self, connection: u32) -> Option<Box<[Vec<Point>; 2]>> {
        self.0.get(&connection).map(|(_, spare)| Box::new(spare.clone()))
    }
}

/// The last packets of all flows: the place of each is that of its hash.
#[derive(Debug, Default)]
pub(crate) struct Copies(Vec<(u64, u64)>);

impl Copies {
    /// A packet of side `from` of connection `connection` at `now`: how long ago it was seen at the same point, ps.
    #[inline]
    pub(crate) fn again(
        &mut self,
        now: u64,
        (connection, from): (u32, usize),
        packet: &Packet,
        point: Point,
        points: &mut Points,
    ) -> Option<u64> {
        let here = points.count(point, from)?;
        let print = fingerprint(connection, from, packet)?;
        if self.0.is_empty() {
            self.0 = vec![(0, 0); MOST];
        }
        let mark = print & !(MOST as u64 - 1) | here as u64;
        let slot = &mut self.0[print as usize % MOST];
        let (before, at) = std::mem::replace(slot, (mark, now));
        if before ^ mark >= MOST as u64 {
            return None;
        }
        let passed_ps = now.saturating_sub(at);
        let there = (before & PLACE) as usize;
        if there == here {
            return Some(passed_ps);
        }
        points.pair(there, here, from, passed_ps);
        None
    }
}

/// What copies of a packet have in common, and no other packet has. Fragments have none.
#[inline]
fn fingerprint(connection: u32, from: usize, packet: &Packet) -> Option<u64> {
    if packet.part != Part::Whole {
        return None;
    }
    let word = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let id = u32::from(packet.id.unwrap_or(0)) << 1 | from as u32;
    let reported = match &packet.transport {
        Transport::Tcp(segment) => {
            let (value, echo) = segment.timestamps.unwrap_or_default();
            let (left, right) = segment.blocks().first().copied().unwrap_or_default();
            let rest = u32::from(segment.window) << 16 | u32::from(segment.flags) << 1;
            let numbers = fold(word(segment.seq, segment.ack), word(value, echo));
            fold(numbers ^ word(left, right), word(segment.payload, rest))
        }
        Transport::Udp { payload, content, .. } => word(*payload, *content),
        Transport::Other => return None,
    };
    Some(fold(reported, word(connection, id)) | 1 << 63)
}
