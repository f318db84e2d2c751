//! Buffers of packets on their way.

/// Buffers of one size, which are used again. A packet that comes twice is kept once.
#[derive(Debug)]
pub(super) struct Pool {
    size: usize,
    most: usize,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    bytes: Box<[u8]>,
    length: usize,
    copies: u32,
    number: u64,
}

impl Pool {
    /// Of at most `most` buffers of `size` bytes, allocated as they are needed.
    pub(super) fn new(size: usize, most: usize) -> Pool {
        Pool { size, most, slots: Vec::new(), free: Vec::new() }
    }

    /// A free buffer, if there is one.
    pub(super) fn take(&mut self) -> Option<u32> {
        if let Some(handle) = self.free.pop() {
            return Some(handle);
        }
        if self.slots.len() == self.most {
            return None;
        }
        let handle = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot { bytes: vec![0; self.size].into(), length: 0, copies: 0, number: 0 });
        Some(handle)
    }

    /// All of a buffer, to be filled.
    pub(super) fn space(&mut self, handle: u32) -> &mut [u8] {
        &mut self.slots[handle as usize].bytes
    }

    /// The buffer holds `length` bytes of packet `number`, which will leave in so many copies.
    pub(super) fn keep(&mut self, handle: u32, length: usize, number: u64, copies: u32) {
        let slot = &mut self.slots[handle as usize];
        (slot.length, slot.number, slot.copies) = (length, number, copies);
        if copies == 0 {
            self.free.push(handle);
        }
    }

    /// The packet in a buffer, and its number.
    pub(super) fn packet(&self, handle: u32) -> (&[u8], u64) {
        let slot = &self.slots[handle as usize];
        (&slot.bytes[..slot.length], slot.number)
    }

    /// The packet in a buffer, to be changed.
    pub(super) fn packet_mut(&mut self, handle: u32) -> &mut [u8] {
        let slot = &mut self.slots[handle as usize];
        &mut slot.bytes[..slot.length]
    }

    /// A copy has left.
    pub(super) fn release(&mut self, handle: u32) {
        let slot = &mut self.slots[handle as usize];
        slot.copies -= 1;
        if slot.copies == 0 {
            self.free.push(handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn a_buffer_is_free_again_when_its_last_copy_has_left() {
        let mut pool = Pool::new(8, 1);
        let handle = pool.take().expect("one buffer");
        pool.space(handle)[..2].copy_from_slice(b"ab");
        pool.keep(handle, 2, 7, 2);
        assert_eq!(pool.packet(handle), (&b"ab"[..], 7));
        pool.release(handle);
        assert_eq!(pool.take(), None);
        pool.release(handle);
        assert_eq!(pool.take(), Some(handle));
        pool.keep(handle, 2, 8, 0);
        assert_eq!(pool.take(), Some(handle));
    }
}
