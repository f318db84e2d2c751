//! A queue of small values in one block of memory: the standard one, but smaller and with less to ask.

/// First in, first out. Places that hold nothing hold a copy of an old value.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// A power of two of places, or none.
    places: Box<[T]>,
    first: u32,
    len: u32,
}

/// Places at first.
const LEAST: usize = 4;

impl<T: Copy> Ring<T> {
    pub(crate) fn new() -> Ring<T> {
        Ring { places: Box::new([]), first: 0, len: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        if self.len() == self.places.len() {
            self.grow(value);
        }
        let last = self.first.wrapping_add(self.len) as usize & (self.places.len() - 1);
        self.places[last] = value;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.places[self.first as usize & (self.places.len() - 1)];
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
        Some(value)
    }

    /// The next value takes the first place again, so that few places are used while little waits.
    pub(crate) fn clear(&mut self) {
        (self.first, self.len) = (0, 0);
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<T> {
        if self.len == 0 { None } else { Some(self.places[self.first as usize & (self.places.len() - 1)]) }
    }

    /// From the first to the last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let place = |i: u32| self.first.wrapping_add(i) as usize & (self.places.len() - 1);
        (0..self.len).map(move |i| self.places[place(i)])
    }

    #[cold]
    fn grow(&mut self, filler: T) {
        let mut places = vec![filler; (2 * self.len()).max(LEAST)];
        for (place, value) in places.iter_mut().zip(self.iter()) {
            *place = value;
        }
        (self.places, self.first) = (places.into_boxed_slice(), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_is_a_queue(steps in prop::collection::vec(any::<(bool, u32)>(), 0..300), clear in 1u32..50) {
            let (mut ring, mut queue) = (Ring::new(), VecDeque::new());
            for (push, value) in steps {
                if value % clear == 7 {
                    ring.clear();
                    queue.clear();
                } else if push {
                    ring.push(value);
                    queue.push_back(value);
                } else {
                    prop_assert_eq!(ring.pop(), queue.pop_front());
                }
                prop_assert!(ring.len() == queue.len() && ring.is_empty() == queue.is_empty());
                prop_assert!(ring.iter().eq(queue.iter().copied()));
            }
        }
    }
}
