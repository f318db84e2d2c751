//! Reading what others sent.

use super::super::keys::TAG;
use super::Kind;

/// What follows the first four bytes, in a body of the right kind and length.
pub(super) fn expect(kind: Kind, body: &[u8], whole: usize) -> Option<Reader<'_>> {
    (Kind::of(body) == Some(kind) && body.len() + TAG == whole).then(|| Reader(&body[4..]))
}

/// Takes fields from the front.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
