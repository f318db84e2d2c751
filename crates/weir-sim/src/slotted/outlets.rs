//! Outputs that are slower for a while, and the buffers of hosts behind them.

use std::collections::VecDeque;

use weir_core::spec::switching::Service;
use weir_core::units::Span;

use crate::slotted::switches::{Cell, NONE};

/// A port that is slower for a while: a share of a cell each slot, saved up to a whole one.
#[derive(Debug)]
struct Slow {
    port: u32,
    /// First slot, and the first after it.
    slots: (u32, u32),
    share: f64,
}

/// The slow ports, and how much of a cell each has saved.
#[derive(Debug)]
pub(super) struct Outlets {
    slow: Vec<Slow>,
    /// When the next one begins or ends.
    change: u32,
    /// By port: the share of each slot, 1 for the line rate.
    share: Vec<f64>,
    credit: Vec<f64>,
    /// Ports with a share below 1 now, behind which there is no buffer.
    pub(super) is_slow: Vec<bool>,
    /// The buffer behind each port, if there is one.
    buffers: Vec<Option<Box<Buffer>>>,
    buffered: Vec<u32>,
}

/// The buffer of a host.
#[derive(Debug)]
struct Buffer {
    cells: VecDeque<Cell>,
    xoff: u32,
    xon: u32,
    above: bool,
}

impl Outlets {
    pub(super) fn new(services: &[Service], ports: usize, slot: Span, line_bps: u64) -> Outlets {
        let number = |ps: u64| u32::try_from(ps / slot.ps()).unwrap_or(NONE);
        let slow = |service: &Service| Slow {
            port: service.port,
            slots: (number(service.from_ps.ps()), number(service.to_ps.ps())),
            share: service.rate_bps.bps() as f64 / line_bps as f64,
        };
        Outlets {
            slow: services.iter().map(slow).collect(),
            change: 0,
            share: vec![1.0; ports],
            credit: vec![0.0; ports],
            is_slow: vec![false; ports],
            buffers: (0..ports).map(|_| None).collect(),
            buffered: Vec::new(),
        }
    }

    /// Puts a buffer with these thresholds, in cells, behind `port`.
    pub(super) fn buffer(&mut self, port: u32, xoff: u32, xon: u32) {
        self.buffers[port as usize] = Some(Box::new(Buffer { cells: VecDeque::new(), xoff, xon, above: false }));
        self.buffered.push(port);
    }

    /// Whether there is a buffer behind `port`.
    #[inline]
    pub(super) fn has_buffer(&self, port: u32) -> bool {
        !self.buffered.is_empty() && self.buffers[port as usize].is_some()
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
            self.share[slow.port as usize] = 1.0;
        }
        for Slow { port, slots: (from, to), share } in &self.slow {
            for &slot in [from, to] {
                if slot > now {
                    self.change = self.change.min(slot);
                }
            }
            if (*from..*to).contains(&now) {
                self.share[*port as usize] = *share;
            }
        }
        for slow in &self.slow {
            let port = slow.port as usize;
            self.is_slow[port] = self.share[port] < 1.0 && self.buffers[port].is_none();
        }
    }

    /// Whether a slow port may serve a cell in this slot; asked once a slot. `waits` tells whether one waits.
    pub(super) fn serves(&mut self, port: u32, waits: bool) -> bool {
        let credit = &mut self.credit[port as usize];
        *credit += self.share[port as usize];
        if *credit >= 1.0 - 1e-9 {
            if waits {
                *credit -= 1.0;
                return true;
            }
            *credit = 1.0;
        }
        false
    }

    /// A cell arrives at the buffer behind `port`.
    pub(super) fn arrive(&mut self, port: u32, cell: Cell) {
        if let Some(buffer) = &mut self.buffers[port as usize] {
            buffer.cells.push_back(cell);
        }
    }

    /// The host behind each buffer takes what it may. `taken` is told each cell, `turned` each port that is to be held
    /// or released.
    pub(super) fn take(&mut self, mut taken: impl FnMut(Cell), mut turned: impl FnMut(u32, bool)) {
        for i in 0..self.buffered.len() {
            let port = self.buffered[i];
            let waits = self.buffers[port as usize].as_ref().is_some_and(|buffer| !buffer.cells.is_empty());
            let takes = self.serves(port, waits);
            let Some(buffer) = &mut self.buffers[port as usize] else { continue };
            if takes && let Some(cell) = buffer.cells.pop_front() {
                taken(cell);
            }
            let level = buffer.cells.len() as u32;
            if !buffer.above && level > buffer.xoff {
                buffer.above = true;
                turned(port, true);
            } else if buffer.above && level <= buffer.xon {
                buffer.above = false;
                turned(port, false);
            }
        }
    }

    /// The cells that wait in all buffers.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Cell> + '_ {
        self.buffers.iter().flatten().flat_map(|buffer| buffer.cells.iter().copied())
    }
}
