//! PAUSE by what waits in the memory of a switch: who is held, and for how long it was.

use weir_core::ethernet::pause::Watermarks;
use weir_core::queue::Pauses;
use weir_core::spec::switching::{MemoryPause, PauseScope};
use weir_core::units::{Bytes, Span, Time};

use crate::noticed::ControlProbes;
use crate::slotted::lanes::Lanes;
use crate::totals::ControlKind;

/// By what a switch asks its neighbours to stop and to go on, in cells and slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) scope: PauseScope,
    /// Of what is empty.
    pub(super) marks: Watermarks<u32>,
    /// Time until the PAUSE frame leaves.
    pub(super) delay: Span,
    /// Slots after which XOFF is repeated.
    pub(super) refresh: Option<u32>,
}

impl Asking {
    pub(super) fn new(pause: &MemoryPause, cell: Bytes, slot: Span) -> Asking {
        let cells = |bytes: Bytes| u32::try_from(bytes.count() / cell.count()).unwrap_or(u32::MAX);
        Asking {
            scope: pause.scope,
            marks: Watermarks::down_to(cells(pause.xoff_bytes), cells(pause.xon_bytes)),
            delay: pause.delay_ps,
            refresh: pause.refresh_ps.map(|refresh| (refresh.ps() / slot.ps()).max(1) as u32),
        }
    }

    /// The watermarks of what PAUSE goes by.
    pub(super) fn marks_of(asking: Option<&Asking>, scope: PauseScope) -> Watermarks<u32> {
        asking.filter(|asking| asking.scope == scope).map_or(Watermarks::NONE, |asking| asking.marks)
    }
}

/// Which transmitters are held, and the PAUSE frames that were sent to them.
#[derive(Debug)]
pub(super) struct Holds {
    lanes: Lanes,
    /// A bit for each lane, and for each host.
    pub(super) lanes_held: Vec<u64>,
    pub(super) hosts_held: Vec<u64>,
    /// By link.
    held: Vec<bool>,
    since: Vec<u32>,
    pauses: Vec<Pauses>,
    /// Who was asked to stop, since when, and how often that is repeated.
    asked: Vec<Option<(u32, Option<u32>)>>,
    /// PAUSE frames to each: stop, go on.
    frames: Vec<(u32, u32)>,
    slot: Span,
    pub(super) probes: ControlProbes,
}

impl Holds {
    pub(super) fn new(lanes: Lanes, slot: Span, probes: ControlProbes) -> Holds {
        let links = lanes.links();
        Holds {
            lanes,
            lanes_held: vec![0; lanes.count.div_ceil(64)],
            hosts_held: vec![0; lanes.hosts.div_ceil(64)],
            held: vec![false; links],
            since: vec![0; links],
            pauses: vec![Pauses::default(); links],
            asked: vec![None; links],
            frames: vec![(0, 0); links],
            slot,
            probes,
        }
    }

    /// A PAUSE frame to the transmitter of `link` is sent in slot `now`.
    pub(super) fn ask(&mut self, link: u32, now: u32, stop: bool, refresh: Option<u32>) {
        let place = link as usize;
        self.repeat(place, now);
        self.note(place, now, if stop { ControlKind::Xoff } else { ControlKind::Xon });
        if stop {
            self.asked[place] = Some((now, refresh));
            self.frames[place].0 += 1;
        } else {
            self.asked[place] = None;
            self.frames[place].1 += 1;
        }
    }

    /// Counts the repetitions up to `now`.
    fn repeat(&mut self, place: usize, now: u32) {
        if let Some((since, Some(every))) = self.asked[place] {
            let times = (now - since) / every;
            self.frames[place].0 += times;
            (1..=times).for_each(|number| self.note(place, since + number * every, ControlKind::Xoff));
        }
    }

    /// A PAUSE frame to the transmitter of a link, from the port at its other end.
    fn note(&mut self, place: usize, slot: u32, kind: ControlKind) {
        let at = Time::ZERO + self.slot * u64::from(slot);
        self.probes.note(self.lanes.port(place as u32) ^ 1, kind, at);
    }

    /// A PAUSE frame takes effect.
    pub(super) fn obey(&mut self, link: u32, now: u32, stop: bool) {
        let place = link as usize;
        if self.held[place] == stop {
            return;
        }
        self.held[place] = stop;
        let (words, bit) = match place.checked_sub(self.lanes.count) {
            Some(host) => (&mut self.hosts_held, host),
            None => (&mut self.lanes_held, place),
        };
        words[bit / 64] = words[bit / 64] & !(1 << (bit % 64)) | u64::from(stop) << (bit % 64);
        if stop {
            self.since[place] = now;
            self.pauses[place].count += 1;
        } else {
            self.close(place, now);
        }
    }

    fn close(&mut self, place: usize, now: u32) {
        let length = self.slot * u64::from(now - self.since[place]);
        let pauses = &mut self.pauses[place];
        pauses.total += length;
        pauses.longest = pauses.longest.max(length);
        pauses.last = Some(Time::ZERO + self.slot * u64::from(now));
    }

    /// Ends the run in slot `end`.
    pub(super) fn finish(&mut self, end: u32) {
        for place in 0..self.held.len() {
            self.repeat(place, end.saturating_sub(1));
            if self.held[place] {
                self.close(place, end);
            }
        }
    }

    /// The pauses of the transmitter of a link.
    pub(super) fn pauses(&self, link: u32) -> Pauses {
        self.pauses[link as usize]
    }

    /// The pauses of the transmitter of a link up to slot `now`, and whether it is held.
    pub(super) fn pauses_until(&self, link: u32, now: u32) -> (Pauses, bool) {
        let (mut pauses, held) = (self.pauses[link as usize], self.held[link as usize]);
        if held {
            pauses.total += self.slot * u64::from(now.saturating_sub(self.since[link as usize]));
        }
        (pauses, held)
    }

    /// PAUSE frames to the transmitter of a link: stop, go on.
    pub(super) fn frames(&self, link: u32) -> (u32, u32) {
        self.frames[link as usize]
    }
}
