//! Buffers for packets on their way.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::uio::{readv, writev};

use super::segments::{OFFLOAD_HEADER, OffloadHeader, Segments};

/// Longest packet of a device that joins, in bytes.
const JOINED_MAX: usize = 65_536;
/// Least size of a buffer where packets come joined, so that few hold the longest.
const BUFFER_LEAST: usize = 1500;

/// Packets in buffers of one size, which are used again. A packet that comes twice is kept once, and so are the
/// segments of a joined one.
#[derive(Debug)]
pub(super) struct Pool {
    /// Whether devices give and take packets with what they report of them.
    joined: bool,
    size: usize,
    /// How many more buffers may be made.
    more: usize,
    free: Vec<Box<[u8]>>,
    /// Those that the next packet is read into.
    ready: Vec<Box<[u8]>>,
    offload: [u8; OFFLOAD_HEADER],
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
}

/// A segment of a packet in the pool; a single packet is its only segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) slot: u32,
    pub(super) index: u16,
}

#[derive(Debug, Default)]
struct Slot {
    buffers: Vec<Box<[u8]>>,
    length: usize,
    offload: OffloadHeader,
    segments: Option<Segments>,
    /// Number of the first segment.
    number: u64,
    /// Pieces on their way.
    pieces: u32,
}

/// A packet that was read and is not kept yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    length: usize,
    offload: OffloadHeader,
    segments: Option<Segments>,
}

impl Incoming {
    /// Of how many segments it is.
    pub(super) fn count(&self) -> u16 {
        self.segments.map_or(1, |segments| segments.count())
    }

    /// Whether it came joined and is not cut: its header makes no sense to us.
    pub(super) fn stays_whole(&self) -> bool {
        self.offload.is_joined() && self.segments.is_none()
    }

    /// Length of a segment in bytes.
    pub(super) fn size(&self, index: u16) -> usize {
        self.segments.map_or(self.length, |segments| segments.size(index))
    }

    /// Whether the checksum of the transport covers the pseudo header only.
    pub(super) fn needs_checksum(&self) -> bool {
        self.offload.needs_checksum()
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl Pool {
    /// For packets of at most `mtu` bytes or, where they come joined, more; of at most `memory` bytes, allocated as
    /// they are needed, besides the buffers for the next packet.
    pub(super) fn new(mtu: usize, memory: usize, joined: bool) -> Pool {
        let size = if joined { mtu.max(BUFFER_LEAST) } else { mtu };
        let ready = if joined { JOINED_MAX.div_ceil(size) } else { 1 };
        Pool {
            joined,
            size,
            more: (memory / size).max(1),
            free: Vec::new(),
            ready: (0..ready).map(|_| vec![0; size].into()).collect(),
            offload: [0; OFFLOAD_HEADER],
            slots: Vec::new(),
            free_slots: Vec::new(),
        }
    }

    /// Reads the next packet; none where the device has none.
    pub(super) fn read(&mut self, input: impl AsFd) -> nix::Result<Option<Incoming>> {
        let before = if self.joined { OFFLOAD_HEADER } else { 0 };
        let offload = self.joined.then(|| IoSliceMut::new(&mut self.offload));
        let space = self.ready.iter_mut().map(|buffer| IoSliceMut::new(buffer));
        let length = readv(input, &mut offload.into_iter().chain(space).collect::<Vec<_>>())?;
        if length <= before {
            return Ok(None);
        }
        let length = (length - before).min(self.size * self.ready.len());
        let offload = OffloadHeader::from_bytes(self.offload);
        let front = &self.ready[0][..length.min(self.size)];
        Ok(Some(Incoming { length, offload, segments: Segments::of(offload, front, length) }))
    }

    /// The beginning of the packet that was read last: all of it where it is single.
    pub(super) fn front_mut(&mut self, incoming: &Incoming) -> &mut [u8] {
        &mut self.ready[0][..incoming.length.min(self.size)]
    }

    /// Keeps the packet that was read last, with a piece of its own that the caller releases; none without a free
    /// buffer. Its first segment has this `number`.
    pub(super) fn keep(&mut self, incoming: &Incoming, number: u64) -> Option<u32> {
        let needed = incoming.length.div_ceil(self.size);
        let made = needed.saturating_sub(self.free.len());
        if made > self.more {
            return None;
        }
        let place = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.more -= made;
        self.free.extend((0..made).map(|_| vec![0; self.size].into()));
        let slot = &mut self.slots[place as usize];
        for (ready, free) in self.ready.iter_mut().zip(self.free.drain(self.free.len() - needed..)) {
            slot.buffers.push(std::mem::replace(ready, free));
        }
        (slot.length, slot.offload, slot.segments) = (incoming.length, incoming.offload, incoming.segments);
        (slot.number, slot.pieces) = (number, 1);
        Some(place)
    }

    /// So many more pieces of a packet are on their way.
    pub(super) fn hold(&mut self, slot: u32, pieces: u32) {
        self.slots[slot as usize].pieces += pieces;
    }

    /// A piece has left.
    pub(super) fn release(&mut self, slot: u32, pieces: u32) {
        let place = &mut self.slots[slot as usize];
        place.pieces -= pieces;
        if place.pieces == 0 {
            self.free.append(&mut place.buffers);
            self.free_slots.push(slot);
        }
    }

    /// Length of a piece as a packet of its own, in bytes.
    pub(super) fn size(&self, piece: Piece) -> usize {
        let slot = &self.slots[piece.slot as usize];
        slot.segments.map_or(slot.length, |segments| segments.size(piece.index))
    }

    /// The number of a piece.
    pub(super) fn number(&self, piece: Piece) -> u64 {
        self.slots[piece.slot as usize].number + u64::from(piece.index)
    }

    /// Writes segments of one packet that follow each other as one packet, marked with congestion or not; gives its
    /// length.
    pub(super) fn write(
        &mut self,
        output: BorrowedFd<'_>,
        slot: u32,
        run: &Range<u16>,
        marked: bool,
    ) -> nix::Result<usize> {
        let size = self.size;
        let slot = &mut self.slots[slot as usize];
        if let Some(segments) = &slot.segments {
            let head = segments.head(&slot.buffers[0], run, marked);
            return writev(output, &gathered(head.bytes(), &slot.buffers, size, segments.payload_of(run)));
        }
        if marked {
            let front = slot.length.min(size);
            super::packet::mark_congestion(&mut slot.buffers[0][..front]);
        }
        let offload = slot.offload.to_bytes();
        let offload = if self.joined { &offload[..] } else { &[] };
        writev(output, &gathered(offload, &slot.buffers, size, 0..slot.length))
    }
}

/// What is to be written: `head`, then some of the bytes in buffers of `size`.
fn gathered<'a>(head: &'a [u8], buffers: &'a [Box<[u8]>], size: usize, bytes: Range<usize>) -> Vec<IoSlice<'a>> {
    let mut slices = Vec::with_capacity(2 + bytes.len().div_ceil(size));
    if !head.is_empty() {
        slices.push(IoSlice::new(head));
    }
    let mut at = bytes.start;
    while at < bytes.end {
        let end = bytes.end.min((at / size + 1) * size);
        slices.push(IoSlice::new(&buffers[at / size][at % size..at % size + (end - at)]));
        at = end;
    }
    slices
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn a_buffer_is_free_again_when_its_last_piece_has_left() {
        let (near, far) = UnixDatagram::pair().expect("a pair of sockets");
        let mut pool = Pool::new(8, 8, false);
        let next = |pool: &mut Pool| {
            near.send(b"ab").expect("room");
            pool.read(&far).expect("a socket").expect("a packet")
        };
        let incoming = next(&mut pool);
        assert_eq!((incoming.count(), incoming.size(0)), (1, 2));
        let slot = pool.keep(&incoming, 7).expect("one buffer");
        assert_eq!(pool.number(Piece { slot, index: 0 }), 7);
        pool.hold(slot, 1);
        pool.release(slot, 1);
        let incoming = next(&mut pool);
        assert_eq!(pool.keep(&incoming, 8), None);
        pool.release(slot, 1);
        assert_eq!(pool.keep(&incoming, 8), Some(slot));
    }

    #[test]
    fn what_lies_in_several_buffers_is_gathered_in_order() {
        let buffers: Vec<Box<[u8]>> = [&b"0123"[..], b"4567", b"89ab"].map(Box::from).into();
        let joined =
            |head, bytes| gathered(head, &buffers, 4, bytes).iter().map(|part| part.to_vec()).collect::<Vec<_>>();
        assert_eq!(joined(b"h", 2..9), [&b"h"[..], b"23", b"4567", b"8"]);
        assert_eq!(joined(b"", 4..8), [b"4567"]);
    }
}
