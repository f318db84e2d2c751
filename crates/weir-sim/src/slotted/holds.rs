//! PAUSE by what waits in the memory of a switch: who is held, and for how long it was.

use weir_core::queue::Pauses;
use weir_core::spec::switching::{MemoryPause, PauseScope};
use weir_core::units::{Bytes, Span, Time};

/// The watermarks of a switch, in cells and slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watermarks {
    pub(super) scope: PauseScope,
    pub(super) xoff: u32,
    pub(super) xon: u32,
    /// Time until the PAUSE frame leaves.
    pub(super) delay: Span,
    /// Slots after which XOFF is repeated.
    pub(super) refresh: Option<u32>,
}

impl Watermarks {
    pub(super) fn new(pause: &MemoryPause, cell: Bytes, slot: Span) -> Watermarks {
        let cells = |bytes: Bytes| u32::try_from(bytes.count() / cell.count()).unwrap_or(u32::MAX);
        Watermarks {
            scope: pause.scope,
            xoff: cells(pause.xoff_bytes),
            xon: cells(pause.xon_bytes),
            delay: pause.delay_ps,
            refresh: pause.refresh_ps.map(|refresh| (refresh.ps() / slot.ps()).max(1) as u32),
        }
    }
}

/// Which transmitters are held, and the PAUSE frames that were sent to them.
#[derive(Debug)]
pub(super) struct Holds {
    /// By port.
    pub(super) held: Vec<bool>,
    since: Vec<u32>,
    pauses: Vec<Pauses>,
    /// Who was asked to stop, since when, and how often that is repeated.
    asked: Vec<Option<(u32, Option<u32>)>>,
    /// PAUSE frames to each port: stop, go on.
    frames: Vec<(u32, u32)>,
    slot: Span,
}

impl Holds {
    pub(super) fn new(ports: usize, slot: Span) -> Holds {
        Holds {
            held: vec![false; ports],
            since: vec![0; ports],
            pauses: vec![Pauses::default(); ports],
            asked: vec![None; ports],
            frames: vec![(0, 0); ports],
            slot,
        }
    }

    /// A PAUSE frame to `port` is sent in slot `now`.
    pub(super) fn ask(&mut self, port: u32, now: u32, stop: bool, refresh: Option<u32>) {
        let place = port as usize;
        self.repeat(place, now);
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
            self.frames[place].0 += (now - since) / every;
        }
    }

    /// A PAUSE frame takes effect.
    pub(super) fn obey(&mut self, port: u32, now: u32, stop: bool) {
        let place = port as usize;
        if self.held[place] == stop {
            return;
        }
        self.held[place] = stop;
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

    /// The pauses of a port.
    pub(super) fn pauses(&self, port: usize) -> Pauses {
        self.pauses[port]
    }

    /// PAUSE frames to a port: stop, go on.
    pub(super) fn frames(&self, port: usize) -> (u32, u32) {
        self.frames[port]
    }
}
