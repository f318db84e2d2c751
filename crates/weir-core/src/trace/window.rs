//! Bytes of a reader, looked at in order through a window that grows as far as a record needs.

use std::io::{self, Read};

/// Size of the window to begin with.
const SIZE: usize = 1 << 18;

/// What is read of a stream and not yet used.
#[derive(Debug)]
pub(crate) struct Window<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    passed: u64,
    ended: bool,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(reader: R) -> Window<R> {
        Window { reader, buffer: vec![0; SIZE], start: 0, end: 0, passed: 0, ended: false }
    }

    /// Reads on until `count` bytes are there or the stream ends; true when they are there.
    #[inline]
    pub(crate) fn ask(&mut self, count: usize) -> io::Result<bool> {
        if self.end - self.start >= count {
            return Ok(true);
        }
        self.read_on(count)
    }

    #[cold]
    fn read_on(&mut self, count: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < count {
            self.buffer.resize(count.next_power_of_two(), 0);
        }
        while self.end < count && !self.ended {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end >= count)
    }

    /// What is there.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The place of the window in the stream.
    #[inline]
    pub(crate) fn place(&self) -> u64 {
        self.passed
    }

    /// Go on by `count` bytes, all of which must be there, and look at them for the last time.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        self.passed += count as u64;
        &self.buffer[start..start + count]
    }
}

/// An unsigned number of two bytes in either order; 0 where `bytes` is too short, which callers rule out.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], place: usize, order: Order) -> u16 {
    let Some(field) = bytes.get(place..).and_then(<[u8]>::first_chunk) else { return 0 };
    match order {
        Order::Little => u16::from_le_bytes(*field),
        Order::Big => u16::from_be_bytes(*field),
    }
}

/// The same of four bytes.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], place: usize, order: Order) -> u32 {
    let Some(field) = bytes.get(place..).and_then(<[u8]>::first_chunk) else { return 0 };
    match order {
        Order::Little => u32::from_le_bytes(*field),
        Order::Big => u32::from_be_bytes(*field),
    }
}

/// The same of eight bytes.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], place: usize, order: Order) -> u64 {
    let Some(field) = bytes.get(place..).and_then(<[u8]>::first_chunk) else { return 0 };
    match order {
        Order::Little => u64::from_le_bytes(*field),
        Order::Big => u64::from_be_bytes(*field),
    }
}

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The least significant one.
    #[default]
    Little,
    /// The most significant one.
    Big,
}
