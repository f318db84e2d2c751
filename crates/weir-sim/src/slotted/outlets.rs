//! Outputs that are slower for a while, and the buffers of hosts behind them. All of them are lanes to hosts: lane and
//! host have the same number.

use std::collections::VecDeque;

use weir_core::spec::switching::Service;
use weir_core::units::{Rate, Span};

use crate::slotted::cell::Cell;
use crate::slotted::lanes::NONE;
use weir_core::ethernet::pause::{Pause, Watermarks};
use weir_core::host::credit::needed;

/// An output that is slower for a while: a share of a cell each slot, saved up to a whole one.
#[derive(Debug)]
struct Slow {
    host: usize,
    /// First slot, and the first after it.
    slots: (u32, u32),
    rate: i64,
}

/// The slow outputs, and how much of a cell each has saved.
#[derive(Debug)]
pub(super) struct Outlets {
    slow: Vec<Slow>,
    /// When the next one begins or ends.
    change: u32,
    /// What a cell is worth: the line rate, bit/s.
    whole: i64,
    /// Credit with which a cell may go.
    needed: i64,
    /// By host: what each slot gives, bit/s; the line rate where it is not slow.
    rate: Vec<i64>,
    credit: Vec<i64>,
    /// A bit for each with less than the line rate now, and no buffer behind it.
    pub(super) slow_now: Vec<u64>,
    buffers: Vec<Option<Box<Buffer>>>,
    buffered: Vec<usize>,
}

/// The buffer of a host.
#[derive(Debug)]
struct Buffer {
    cells: VecDeque<Cell>,
    marks: Watermarks<u32>,
}

impl Outlets {
    pub(super) fn new(services: &[Service], hosts: usize, slot: Span, line: Rate) -> Outlets {
        let number = |ps: u64| u32::try_from(ps / slot.ps()).unwrap_or(NONE);
        let slow = |service: &Service| Slow {
            host: service.port as usize / 2,
            slots: (number(service.from_ps.ps()), number(service.to_ps.ps())),
            rate: service.rate_bps.bps().cast_signed(),
        };
        let whole = line.bps().cast_signed();
        Outlets {
            slow: services.iter().map(slow).collect(),
            change: 0,
            whole,
            needed: needed(whole.into()) as i64,
            rate: vec![whole; hosts],
            credit: vec![0; hosts],
            slow_now: vec![0; hosts.div_ceil(64)],
            buffers: (0..hosts).map(|_| None).collect(),
            buffered: Vec::new(),
        }
    }

    /// Gives `host` a buffer with these thresholds, in cells.
    pub(super) fn buffer(&mut self, host: u32, xoff: u32, xon: u32) {
        self.buffers[host as usize] =
            Some(Box::new(Buffer { cells: VecDeque::new(), marks: Watermarks::down_to(xoff, xon) }));
        self.buffered.push(host as usize);
    }

    /// Whether `host` has a buffer.
    #[inline]
    pub(super) fn has_buffer(&self, host: usize) -> bool {
        self.buffers[host].is_some()
    }

    /// Whether there is any.
    #[inline]
    pub(super) fn has_buffers(&self) -> bool {
        !self.buffered.is_empty()
    }

    /// A slot begins.
    #[inline]
    pub(super) fn begin(&mut self, now: u32) {
        if now >= self.change {
            self.turn(now);
        }
    }

    #[cold]
    fn turn(&mut self, now: u32) {
        self.change = NONE;
        for slow in &self.slow {
            self.rate[slow.host] = self.whole;
        }
        for Slow { host, slots: (from, to), rate } in &self.slow {
            for &slot in [from, to] {
                if slot > now {
                    self.change = self.change.min(slot);
                }
            }
            if (*from..*to).contains(&now) {
                self.rate[*host] = *rate;
            }
        }
        for &Slow { host, .. } in &self.slow {
            let is_slow = self.rate[host] < self.whole && self.buffers[host].is_none();
            let word = &mut self.slow_now[host / 64];
            *word = *word & !(1 << (host % 64)) | u64::from(is_slow) << (host % 64);
        }
    }

    /// Whether a slow output may serve a cell in this slot; asked once a slot. `waits` says whether one waits.
    pub(super) fn serves(&mut self, host: usize, waits: bool) -> bool {
        let credit = &mut self.credit[host];
        *credit += self.rate[host];
        let serves = waits && *credit >= self.needed;
        *credit = if serves { *credit - self.whole } else { (*credit).min(self.whole) };
        serves
    }

    /// A cell arrives at the buffer of `host`.
    pub(super) fn arrive(&mut self, host: usize, cell: Cell) {
        if let Some(buffer) = &mut self.buffers[host] {
            buffer.cells.push_back(cell);
        }
    }

    /// The host behind each buffer takes what it may. `taken` receives each cell, `turned` each host whose link is to be
    /// held or released.
    pub(super) fn take(&mut self, mut taken: impl FnMut(Cell), mut turned: impl FnMut(usize, bool)) {
        for i in 0..self.buffered.len() {
            let host = self.buffered[i];
            let waits = self.buffers[host].as_ref().is_some_and(|buffer| !buffer.cells.is_empty());
            let takes = self.serves(host, waits);
            let Some(buffer) = &mut self.buffers[host] else { continue };
            if takes && let Some(cell) = buffer.cells.pop_front() {
                taken(cell);
            }
            if let Some(pause) = buffer.marks.on_level(buffer.cells.len() as u32) {
                turned(host, pause == Pause::Xoff);
            }
        }
    }

    /// The cells that wait in all buffers.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Cell> + '_ {
        self.buffers.iter().flatten().flat_map(|buffer| buffer.cells.iter().copied())
    }
}
