//! What passes a host in the slot that generates it, and what waits there.

use std::ops::Range;

use super::Adapters;
use crate::slotted::cell::Cell;

impl Adapters {
    /// Finds the hosts that what is generated passes: no queue there may send and none is about to; but a host with one queue,
    /// or with several sources, must have nothing waiting.
    #[inline]
    fn find_open(&mut self, held: &[u64]) {
        for (word, held) in held.iter().enumerate() {
            let busy = self.strict[word] & self.waits[word] | self.ready.hosts()[word] | self.due[word];
            self.open[word] = !(held | busy);
            self.shut[word] &= !self.open[word];
        }
    }

    /// What was generated at hosts with one source each passes where nothing stands in its way, and waits elsewhere. Those that
    /// pass stay where they lie.
    #[inline]
    pub(super) fn pass_all_but(&mut self, now: u32, held: &[u64]) {
        self.find_open(held);
        let row = self.sources.slot(now);
        let (mut from, mut kept) = (row.start, row.start);
        while let Some(at) = self.next_waiting(from..row.end) {
            let cell = self.sources.take_out(from, at, &mut kept);
            from = at + 1;
            self.enqueue(self.host_of(cell.source()).into(), cell, now);
        }
        if from > row.start {
            self.sources.end_slot(now, from..row.end, kept);
        }
    }

    /// The place of the next cell that has to wait.
    #[inline]
    fn next_waiting(&self, mut places: Range<usize>) -> Option<usize> {
        loop {
            let host_of = &self.sources.host_of[..];
            let host = |cell: Cell| usize::from(host_of[usize::from(cell.source())]);
            let cells = self.sources.cells(places.clone());
            let found = match (&self.open[..], &self.limited_to[..]) {
                // Up to 64 hosts.
                (&[open], &[limited_to]) => cells
                    .iter()
                    .position(|&cell| (!open >> (host(cell) % 64) | limited_to >> (cell.to() % 64)) & 1 != 0),
                (open, limited_to) => cells.iter().position(|&cell| {
                    let (host, to) = (host(cell), usize::from(cell.to()));
                    (!open[host / 64] >> (host % 64) | limited_to[to / 64] >> (to % 64)) & 1 != 0
                }),
            };
            let found = found?;
            let (host, to) = (host(cells[found]), cells[found].to());
            if self.open[host / 64] >> (host % 64) & 1 == 0 || self.seed.is_some() && self.is_limited(host as u32, to) {
                return Some(places.start + found);
            }
            places.start += found + 1;
        }
    }

    /// The same at hosts of which some have several sources.
    #[inline(always)]
    pub(super) fn pass<const OBEYS: bool>(&mut self, now: u32, held: &[u64]) {
        self.find_open(held);
        self.sends.fill(0);
        let mut places = self.sources.slot(now);
        while let Some((host, cell)) = self.pass_some::<OBEYS>(&mut places) {
            // A host with several sources sends what was generated first, unless that has to wait.
            let (word, bit) = (host as usize / 64, 1 << (host % 64));
            if self.strict[word] & bit != 0 {
                self.open[word] &= !bit;
            }
            self.enqueue(host, cell, now);
        }
    }

    /// Cells pass their hosts, up to one that has to wait.
    #[inline(always)]
    fn pass_some<const OBEYS: bool>(&mut self, places: &mut Range<usize>) -> Option<(u32, Cell)> {
        let (open, sends, limited_to) = (&mut self.open[..], &mut self.sends[..], &self.limited_to[..]);
        let (turn, sent, host_of) = (&mut self.turn[..], &mut self.sent[..], &self.sources.host_of[..]);
        let (limited, row) = (&self.limited[..], self.row);
        let (cells, mut outgoing) = (&mut self.cells[..], self.outgoing);
        let mut waits = None;
        for &cell in self.sources.cells(places.clone()) {
            places.start += 1;
            let (host, to) = (usize::from(host_of[usize::from(cell.source())]), usize::from(cell.to()));
            let (word, bit) = (host / 64, 1 << (host % 64));
            let is_limited = OBEYS
                && limited_to[to / 64] >> (to % 64) & 1 != 0
                && limited[host * row + to / 64] >> (to % 64) & 1 != 0;
            if open[word] & bit == 0 || is_limited {
                waits = Some((host as u32, cell));
                break;
            }
            open[word] &= !bit;
            sends[word] |= bit;
            cells[outgoing] = cell;
            outgoing += 1;
            turn[host] = (to as u32).wrapping_add(1);
            sent[host] = sent[host].wrapping_add(1);
        }
        self.outgoing = outgoing;
        waits
    }
}
