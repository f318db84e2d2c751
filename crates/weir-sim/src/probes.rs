//! Series of ports, for those who ask. No probe has an event: when a port is touched after the end of an interval, what
//! it had done by then is written down first.
//!
//! An interval holds what happens from its start up to, but not at, its end.

use weir_core::queue::Port;
use weir_core::row;
use weir_core::spec;
use weir_core::units::{Bytes, Span, Time};

use crate::boundaries::{Boundaries, Held, Mark};
use crate::frames::FrameId;
use crate::reckoning::Reckoning;

row! {
    /// An interval of a recorded port.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PortInterval {
        pub t_ps: u64,
        /// Bytes of the frames whose transmission began.
        pub bytes: u64,
        /// Frames whose transmission began.
        pub frames: u64,
        /// Frames that the queue dropped.
        pub drops: u64,
        /// Bytes that waited at the end of the interval.
        pub queue_bytes: u64,
        /// Most bytes that waited.
        pub queue_max_bytes: u64,
        /// Integral over the interval of the bytes that waited.
        pub queue_byte_ps: u128,
        /// Time held by PAUSE.
        pub paused_ps: u64,
    }
}

/// Writes down the intervals of ports, one after the other as they end.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortProbes {
    probes: Vec<PortProbe>,
    /// Place in `probes` of each port that has one.
    of_port: Vec<u32>,
    pub(crate) log: Vec<Mark>,
    pub(crate) held: Vec<Held>,
    /// The last intervals of the probes that were taken.
    taken: Vec<Before>,
}

#[derive(Clone, Copy, Debug)]
struct PortProbe {
    port: u32,
    boundaries: Boundaries,
    /// The interval under way.
    number: u32,
    /// Most bytes that waited in the intervals before.
    peak: u64,
}

/// The place of the probe of a port without one.
const NOWHERE: u32 = u32::MAX;

impl PortProbes {
    pub(crate) fn new(probes: &[spec::PortProbe], ports: usize, end: Time) -> PortProbes {
        let probe = |probe: &spec::PortProbe| PortProbe {
            port: probe.port,
            boundaries: Boundaries::new(probe.every_ps, end),
            number: 1,
            peak: 0,
        };
        let mut of_port = vec![NOWHERE; if probes.is_empty() { 0 } else { ports }];
        for (place, probe) in (0..).zip(probes) {
            of_port[probe.port as usize] = place;
        }
        PortProbes {
            probes: probes.iter().map(probe).collect(),
            of_port,
            log: Vec::new(),
            held: Vec::new(),
            taken: vec![Before::default(); probes.len()],
        }
    }

    /// Each port that has a probe, and when its first interval ends.
    pub(crate) fn first(&self) -> impl Iterator<Item = (u32, Time)> + '_ {
        self.probes.iter().map(|probe| (probe.port, probe.boundaries.at(1)))
    }

    /// Marks the ends of the intervals of `id` that ended up to `now`; `port` has not been touched since. Returns when
    /// the interval ends that holds `now`.
    pub(crate) fn mark(&mut self, id: u32, now: Time, port: &mut Port<FrameId>) -> Time {
        let place = self.of_port[id as usize];
        let PortProbe { boundaries, number, peak, .. } = &mut self.probes[place as usize];
        loop {
            let counters = port.counters_at(boundaries.at(*number));
            port.restart_maximum();
            *peak = counters.queue_max_bytes.max(*peak);
            self.log.push(Mark {
                probe: place,
                number: *number,
                bytes: counters.bytes,
                frames: counters.frames,
                drops: counters.drops,
                queue_bytes: port.waiting_bytes().count(),
                queue_max_bytes: counters.queue_max_bytes,
                queue_byte_ps: counters.queue_byte_ps,
            });
            let pauses = port.pauses_until(boundaries.at(*number));
            if pauses.count > 0 {
                let (paused_ps, is_paused) = (pauses.total.ps(), port.is_paused());
                self.held.push(Held { probe: place, number: *number, paused_ps, is_paused });
            }
            *number += 1;
            let next = boundaries.at(*number);
            if next > now {
                return next;
            }
            if !port.is_ahead() {
                // Nothing happened in the intervals up to `now`.
                *number = boundaries.number(now);
                port.restart_maximum_at(boundaries.at(*number - 1));
                return boundaries.at(*number);
            }
        }
    }

    /// When the interval under way of a port with a probe began, as far as was marked.
    pub(crate) fn begin(&self, id: u32) -> Time {
        let probe = &self.probes[self.of_port[id as usize] as usize];
        probe.boundaries.at(probe.number - 1)
    }

    /// Takes over the marks of a port whose queue is not kept; all its frames have one `size` and take `tx`.
    pub(crate) fn reckon(&self, id: u32, size: Bytes, tx: Span) -> Reckoning {
        let probe = self.of_port[id as usize];
        let mark = Mark { probe, ..Mark::default() };
        Reckoning::new(mark, self.probes[probe as usize].boundaries, size, tx)
    }

    /// Most bytes that waited at a port, up to its last mark.
    pub(crate) fn peak(&self, id: u32) -> u64 {
        let place = self.of_port.get(id as usize).copied().unwrap_or(NOWHERE);
        self.probes.get(place as usize).map_or(0, |probe| probe.peak)
    }

    /// The intervals up to the last mark of each port, without those that were taken before.
    pub(crate) fn take(&mut self) -> Intervals {
        let mut until: Vec<u32> = self.taken.iter().map(|before| before.number).collect();
        let (log, held) = (std::mem::take(&mut self.log), std::mem::take(&mut self.held));
        let (mut last, mut last_held) = (vec![None; until.len()], vec![None; until.len()]);
        log.iter().for_each(|mark| last[mark.probe as usize] = Some(mark));
        held.iter().for_each(|held| last_held[held.probe as usize] = Some(held));
        let from = self.taken.clone();
        for (place, mark) in last.into_iter().enumerate() {
            let Some(mark) = mark else { continue };
            until[place] = mark.number;
            let held = last_held[place].filter(|held| held.number == mark.number);
            self.taken[place].row(mark.number, self.probes[place].boundaries, Some(mark), held);
        }
        Intervals { probes: self.probes.clone(), from, until, log, held }
    }

    /// After the last mark: all intervals that were not taken before.
    pub(crate) fn finish(self) -> Intervals {
        let until = self.probes.iter().map(|probe| probe.boundaries.count()).collect();
        Intervals { probes: self.probes, from: self.taken, until, log: self.log, held: self.held }
    }
}

/// Intervals of the recorded ports, all or those of a part of the run. Intervals in which nothing happened are not kept, but reported.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    probes: Vec<PortProbe>,
    /// The interval before the first, and the last one, of each probe.
    from: Vec<Before>,
    until: Vec<u32>,
    log: Vec<Mark>,
    held: Vec<Held>,
}

impl Intervals {
    /// Every interval of every recorded port, ports in the order of the spec.
    pub fn rows(&self) -> impl Iterator<Item = (u32, PortInterval)> + '_ {
        // Places in the log, probe by probe; within a probe it is in order of time.
        let mut order: Vec<u32> = (0..self.log.len() as u32).collect();
        order.sort_by_key(|&place| self.log[place as usize].probe);
        let mut marks = order.into_iter().map(|place| &self.log[place as usize]).peekable();
        let mut order: Vec<u32> = (0..self.held.len() as u32).collect();
        order.sort_by_key(|&place| self.held[place as usize].probe);
        let mut held = order.into_iter().map(|place| &self.held[place as usize]).peekable();
        let of_probe =
            |place: usize| (self.from[place].number + 1..=self.until[place]).map(move |number| (place, number));
        (0..self.probes.len()).flat_map(of_probe).scan(Before::default(), move |before, (place, number)| {
            let PortProbe { port, boundaries, .. } = self.probes[place];
            if number == self.from[place].number + 1 {
                *before = self.from[place];
            }
            let mark = marks.next_if(|mark| mark.number == number && mark.probe as usize == place);
            let held = held.next_if(|held| held.number == number && held.probe as usize == place);
            Some((port, before.row(number, boundaries, mark, held)))
        })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.from.iter().zip(&self.until).map(|(before, &until)| (until - before.number) as usize).sum()
    }
}

impl PartialEq for Intervals {
    fn eq(&self, other: &Intervals) -> bool {
        self.rows().eq(other.rows())
    }
}

/// What a port had done by the end of the interval before.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    number: u32,
    t_ps: u64,
    bytes: u64,
    frames: u64,
    drops: u64,
    queue_bytes: u64,
    queue_byte_ps: u128,
    paused_ps: u64,
    is_paused: bool,
}

impl Before {
    /// The interval `number`, with its marks if it has some.
    fn row(&mut self, number: u32, boundaries: Boundaries, mark: Option<&Mark>, held: Option<&Held>) -> PortInterval {
        let end = boundaries.at(number);
        let quiet = Mark {
            probe: 0,
            number: 0,
            bytes: self.bytes,
            frames: self.frames,
            drops: self.drops,
            queue_bytes: self.queue_bytes,
            queue_max_bytes: self.queue_bytes,
            queue_byte_ps: self.queue_byte_ps + u128::from(self.queue_bytes) * u128::from(end.ps() - self.t_ps),
        };
        let mark = mark.unwrap_or(&quiet);
        let still = self.paused_ps + if self.is_paused { end.ps() - self.t_ps } else { 0 };
        let (paused_ps, is_paused) = held.map_or((still, self.is_paused), |held| (held.paused_ps, held.is_paused));
        let row = PortInterval {
            t_ps: end.ps(),
            bytes: mark.bytes - self.bytes,
            frames: mark.frames - self.frames,
            drops: mark.drops - self.drops,
            queue_bytes: mark.queue_bytes,
            queue_max_bytes: mark.queue_max_bytes,
            queue_byte_ps: mark.queue_byte_ps - self.queue_byte_ps,
            paused_ps: paused_ps - self.paused_ps,
        };
        *self = Before {
            number,
            t_ps: end.ps(),
            bytes: mark.bytes,
            frames: mark.frames,
            drops: mark.drops,
            queue_bytes: mark.queue_bytes,
            queue_byte_ps: mark.queue_byte_ps,
            paused_ps,
            is_paused,
        };
        row
    }
}
