//! The buffer that the ports of a switch share, counted twice: by the input that a frame came over, and by the output that it waits for, each by class.
//!
//! A queue (an input or an output, and a class) has bytes reserved for it. Beyond those it takes of its pool, up to a share: a number of bytes, or
//! `alpha` times what is free of the pool (a dynamic threshold). Beyond its share a frame is dropped; but if its class is lossless there it takes of the
//! headroom of its input, and its sender is asked to stop. The sender may go on when no headroom is used and what the queue has of the pool
//! is below its share by an offset.
//!
//! A frame that leaves gives back headroom first, then what is shared, then what is reserved. Shares change with what others hold; that a queue is above
//! or below is noticed when a frame of its own comes or leaves, as in switches.
//!
//! Source: Choudhury Hahne 1998, section III (dynamic threshold)
//! Source: HPCC simulator, `switch-mmu.cc` (what is reserved, shared and headroom, when to stop and to go on)
//! DEVIATION: what waits counts: a frame gives back its bytes when its transmission begins, as everywhere in Weirlab; switches hold them until it ends.
//! DEVIATION: bytes count, not cells.

use super::{ClassSet, SharedMemory};
use crate::row;
use crate::spec::buffers::{Buffer as Spec, Share};
use crate::units::{Bytes, Time};

/// Where a frame came in and where it goes: numbers of ports of the switch, and its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The number of the port that it came by.
    pub input: usize,
    /// The number of the port that it waits for.
    pub output: usize,
    /// Its traffic class.
    pub class: u8,
}

/// What became of a frame that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It has room.
    Stored,
    /// It has room, and no more of its class is to come over its input.
    Stops,
    /// It has none.
    Dropped,
}

row! {
    /// What an input of a switch counted, of a class.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InputCounters {
        /// Most bytes that waited, headroom included.
        pub max_bytes: u64,
        /// Most bytes of headroom that were used.
        pub headroom_max_bytes: u64,
        /// Frames for which the buffer had no room.
        pub drops: u64,
        /// How often the sender was asked to stop, without repetitions.
        pub stops: u64,
    }
}

/// The buffer of a switch.
#[derive(Clone, Debug)]
pub struct Buffer {
    total: SharedMemory,
    limit: u64,
    ingress: Side,
    egress: Side,
    inputs: Vec<Input>,
    /// Headroom that is used at all inputs.
    headroom: u64,
    /// Bytes by input, output and class.
    among: Vec<[u64; 8]>,
}

/// The pools of one side and what each queue has of them.
#[derive(Clone, Debug)]
struct Side {
    pools: Vec<Pool>,
    /// The pool of each class.
    of_class: [Option<u8>; 8],
    /// Bytes by port and class: what is reserved and what is shared.
    queues: Vec<[u64; 8]>,
}

#[derive(Clone, Copy, Debug)]
struct Pool {
    size: u64,
    used: u64,
    share: Share,
    reserved: u64,
    /// Of a lossless one.
    xon_offset: Option<u64>,
}

/// The headroom of an input.
#[derive(Clone, Copy, Debug, Default)]
struct Input {
    room: [u64; 8],
    used: [u64; 8],
    stopped: ClassSet,
    counters: [InputCounters; 8],
}

impl Pool {
    /// What a queue may have of it.
    fn threshold(&self) -> u64 {
        match self.share {
            Share::Dynamic { alpha } => (alpha * (self.size - self.used) as f64) as u64,
            Share::Static { bytes } => bytes.count(),
        }
    }

    /// What a queue with so many bytes has of it.
    fn shared(&self, held: u64) -> u64 {
        held.saturating_sub(self.reserved)
    }
}

impl Side {
    fn new(ports: usize) -> Side {
        Side { pools: Vec::new(), of_class: [None; 8], queues: vec![[0; 8]; ports] }
    }

    fn add(&mut self, classes: &[u8], pool: Pool) {
        for &class in classes {
            self.of_class[usize::from(class)] = Some(self.pools.len() as u8);
        }
        self.pools.push(pool);
    }

    fn pool(&self, class: usize) -> Option<&Pool> {
        Some(&self.pools[usize::from(self.of_class[class]?)])
    }

    /// Whether a queue may have `size` more.
    fn admits(&self, port: usize, class: usize, size: u64) -> bool {
        let (Some(pool), held) = (self.pool(class), self.queues[port][class]) else { return true };
        let wanted = pool.shared(held + size);
        let more = wanted - pool.shared(held);
        more == 0 || pool.used + more <= pool.size && wanted <= pool.threshold()
    }

    fn change(&mut self, port: usize, class: usize, change: impl FnOnce(u64) -> u64) {
        let held = self.queues[port][class];
        let after = change(held);
        self.queues[port][class] = after;
        if let Some(pool) = self.of_class[class] {
            let pool = &mut self.pools[usize::from(pool)];
            pool.used = pool.used + pool.shared(after) - pool.shared(held);
        }
    }
}

impl Buffer {
    /// The empty buffer of a switch; for each of its inputs the headroom of a lossless class, if that is not given.
    pub fn new(spec: &Spec, headroom: &[Bytes]) -> Buffer {
        let ports = headroom.len();
        let mut inputs = vec![Input::default(); ports];
        for (pool, lossless) in spec.ingress.iter().filter_map(|pool| Some((pool, pool.lossless.as_ref()?))) {
            for (input, &needed) in inputs.iter_mut().zip(headroom) {
                let room = lossless.headroom_bytes.unwrap_or(needed).count();
                pool.classes.iter().for_each(|&class| input.room[usize::from(class)] = room);
            }
        }
        let limit = spec.bytes.count();
        let left = spec.left(headroom);
        let (mut ingress, mut egress) = (Side::new(ports), Side::new(ports));
        for pool in &spec.ingress {
            let xon_offset = pool.lossless.as_ref().map(|lossless| lossless.xon_offset_bytes.count());
            let (size, reserved) = (pool.bytes.unwrap_or(left).count(), pool.reserved_bytes.count());
            ingress.add(&pool.classes, Pool { size, used: 0, share: pool.share, reserved, xon_offset });
        }
        for pool in &spec.egress {
            let (size, reserved) = (pool.bytes.unwrap_or(spec.bytes).count(), pool.reserved_bytes.count());
            egress.add(&pool.classes, Pool { size, used: 0, share: pool.share, reserved, xon_offset: None });
        }
        let among = vec![[0; 8]; ports * ports];
        let total = SharedMemory::new(spec.bytes, None);
        Buffer { total, limit, ingress, egress, inputs, headroom: 0, among }
    }

    /// A frame comes at `now`.
    pub fn enter(&mut self, now: Time, passage: Passage, size: Bytes) -> Entered {
        let (Passage { input, output, .. }, class) = (passage, usize::from(passage.class));
        let bytes = size.count();
        let fits = self.total.level().count() + bytes <= self.limit && self.egress.admits(output, class, bytes);
        let of_input = &mut self.inputs[input];
        if fits && self.ingress.admits(input, class, bytes) {
            self.ingress.change(input, class, |held| held + bytes);
        } else if fits && of_input.used[class] + bytes <= of_input.room[class] {
            of_input.used[class] += bytes;
            self.headroom += bytes;
        } else {
            of_input.counters[class].drops += 1;
            return Entered::Dropped;
        }
        self.egress.change(output, class, |held| held + bytes);
        let ports = self.egress.queues.len();
        self.among[input * ports + output][class] += bytes;
        self.total.add(now, size);
        let counters = &mut of_input.counters[class];
        let used = of_input.used[class];
        counters.max_bytes = counters.max_bytes.max(self.ingress.queues[input][class] + used);
        counters.headroom_max_bytes = counters.headroom_max_bytes.max(used);
        if !of_input.stopped.contains(passage.class) && self.is_above(input, class) {
            let of_input = &mut self.inputs[input];
            of_input.stopped = of_input.stopped.with(ClassSet::of(passage.class));
            of_input.counters[class].stops += 1;
            return Entered::Stops;
        }
        Entered::Stored
    }

    /// A frame that was stored leaves at `now`, or is dropped. Whether its sender, who was asked to stop, may go on.
    pub fn leave(&mut self, now: Time, passage: Passage, size: Bytes) -> bool {
        let (Passage { input, output, .. }, class) = (passage, usize::from(passage.class));
        let bytes = size.count();
        let of_headroom = self.inputs[input].used[class].min(bytes);
        self.inputs[input].used[class] -= of_headroom;
        self.headroom -= of_headroom;
        self.ingress.change(input, class, |held| held - (bytes - of_headroom));
        self.egress.change(output, class, |held| held - bytes);
        let ports = self.egress.queues.len();
        self.among[input * ports + output][class] -= bytes;
        self.total.take(now, size);
        let goes_on = self.inputs[input].stopped.contains(passage.class) && self.is_below(input, class);
        if goes_on {
            let of_input = &mut self.inputs[input];
            of_input.stopped = of_input.stopped.without(ClassSet::of(passage.class));
        }
        goes_on
    }

    /// The outputs that frames of `class` wait for that came over an input, with what waits.
    pub fn waits(&self, input: usize, class: u8) -> impl Iterator<Item = (usize, Bytes)> + '_ {
        let ports = self.egress.queues.len();
        let outputs = self.among[input * ports..][..ports].iter().map(move |bytes| bytes[usize::from(class)]);
        outputs.enumerate().filter(|row| row.1 > 0).map(|(output, bytes)| (output, Bytes::new(bytes)))
    }

    /// The classes that are stopped at an input.
    pub fn stopped(&self, input: usize) -> ClassSet {
        self.inputs[input].stopped
    }

    /// What it holds, the most that it held and the integral of it up to `now`, byte ps.
    pub fn totals_at(&mut self, now: Time) -> (Bytes, Bytes, u128) {
        let (most, byte_ps) = self.total.totals_at(now);
        (self.total.level(), most, byte_ps)
    }

    /// What each of its parts holds, in the order of [`Spec::parts`].
    pub fn levels(&self) -> impl Iterator<Item = u64> + '_ {
        let pools = self.ingress.pools.iter().chain(&self.egress.pools);
        [self.total.level().count(), self.headroom].into_iter().chain(pools.map(|pool| pool.used))
    }

    /// What the queues of an input counted.
    pub fn counters(&self, input: usize) -> impl Iterator<Item = (u8, InputCounters)> + '_ {
        (0..).zip(self.inputs[input].counters).filter(|row| row.1 != InputCounters::default())
    }

    fn is_above(&self, input: usize, class: usize) -> bool {
        let Some(pool) = self.ingress.pool(class).filter(|pool| pool.xon_offset.is_some()) else { return false };
        let shared = pool.shared(self.ingress.queues[input][class]);
        self.inputs[input].used[class] > 0 || shared > 0 && shared >= pool.threshold()
    }

    fn is_below(&self, input: usize, class: usize) -> bool {
        let Some(pool) = self.ingress.pool(class) else { return true };
        let shared = pool.shared(self.ingress.queues[input][class]);
        let offset = pool.xon_offset.unwrap_or(0);
        self.inputs[input].used[class] == 0 && (shared == 0 || shared + offset <= pool.threshold())
    }
}

/// What a part of a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All that waits.
    Whole,
    /// The headroom of all inputs.
    Headroom,
    /// What is shared of a pool by input.
    Ingress,
    /// What is shared of a pool by output.
    Egress,
}

impl Spec {
    /// The parts of the buffer of a switch: what each is, its classes and its size; `headroom` as of [`Spec::committed`]. What is reserved is in no part
    /// but the whole.
    pub fn parts<'s>(&'s self, headroom: &[Bytes]) -> Vec<(Part, &'s [u8], Bytes)> {
        let room = |pool: &'s crate::spec::buffers::IngressPool| {
            let lossless = pool.lossless.as_ref()?;
            let each = headroom.iter().map(|needed| lossless.headroom_bytes.unwrap_or(*needed).count());
            Some(each.fold(0, u64::saturating_add).saturating_mul(pool.classes.len() as u64))
        };
        let rooms = self.ingress.iter().filter_map(room).fold(0, u64::saturating_add);
        let left = self.left(headroom);
        let ingress = self.ingress.iter().map(|pool| (Part::Ingress, &pool.classes[..], pool.bytes.unwrap_or(left)));
        let egress = self.egress.iter().map(|pool| (Part::Egress, &pool.classes[..], pool.bytes.unwrap_or(self.bytes)));
        let whole = [(Part::Whole, &[][..], self.bytes), (Part::Headroom, &[][..], Bytes::new(rooms))];
        whole.into_iter().chain(ingress).chain(egress).collect()
    }

    /// What is left for a pool that leaves its size out.
    fn left(&self, headroom: &[Bytes]) -> Bytes {
        Bytes::new(self.bytes.count().saturating_sub(self.committed(headroom).count()))
    }

    /// What no pool can share that leaves its size out: what is reserved at inputs, headroom, and pools of a given size. `headroom` has for each input that
    /// of a lossless class, if that is not given.
    pub fn committed(&self, headroom: &[Bytes]) -> Bytes {
        let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
        let of_pool = |pool: &crate::spec::buffers::IngressPool| {
            let classes = pool.classes.len() as u64;
            let room =
                |needed: &Bytes| pool.lossless.as_ref().map_or(0, |how| how.headroom_bytes.unwrap_or(*needed).count());
            let each = headroom.iter().map(|needed| room(needed).saturating_add(pool.reserved_bytes.count()));
            let of_queues = sum(&mut each.map(|bytes| bytes.saturating_mul(classes)));
            of_queues.saturating_add(pool.bytes.map_or(0, Bytes::count))
        };
        Bytes::new(sum(&mut self.ingress.iter().map(of_pool)))
    }
}
