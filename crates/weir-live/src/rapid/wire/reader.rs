//! Fields of datagrams, and reading what others sent.

use weir_core::units::{Bytes, Span};

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

/// What stands in a datagram, big-endian.
pub(super) trait Field: Sized {
    /// Puts it behind what is there.
    fn append(&self, body: &mut Vec<u8>);

    /// Takes it from the front.
    fn read(rest: &mut Reader<'_>) -> Option<Self>;
}

macro_rules! fields {
    ($($of:ty: |$value:ident| $bytes:expr, |$rest:ident| $read:expr;)+) => {$(
        impl Field for $of {
            fn append(&self, body: &mut Vec<u8>) {
                let $value = self;
                body.extend($bytes);
            }

            fn read($rest: &mut Reader<'_>) -> Option<$of> {
                $read
            }
        }
    )+};
}

fields! {
    u32: |value| value.to_be_bytes(), |rest| rest.u32();
    u64: |value| value.to_be_bytes(), |rest| rest.u64();
    Span: |value| value.ps().to_be_bytes(), |rest| rest.u64().map(Span::from_ps);
    Bytes: |value| value.count().to_be_bytes(), |rest| rest.u64().map(Bytes::new);
}

impl<const N: usize> Field for [u8; N] {
    fn append(&self, body: &mut Vec<u8>) {
        body.extend(self);
    }

    fn read(rest: &mut Reader<'_>) -> Option<[u8; N]> {
        rest.array()
    }
}
