//! Queues that are linked through a pool.

/// No place of a pool.
pub const NOWHERE: u32 = u32::MAX;

/// A pool whose places name the ones behind them.
pub trait Links {
    /// The place behind `place`; [`NOWHERE`] behind the last.
    fn next(&self, place: u32) -> u32;

    /// `next` is behind `place` from now on.
    fn link(&mut self, place: u32, next: u32);
}

/// A queue: its first place and its last.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    first: u32,
    last: u32,
}

impl Chain {
    /// Nothing waits.
    pub const EMPTY: Chain = Chain { first: NOWHERE, last: NOWHERE };

    /// The first place; [`NOWHERE`] if nothing waits.
    #[inline(always)]
    pub fn first(self) -> u32 {
        self.first
    }

    /// The last place, if anything waits.
    #[inline(always)]
    pub fn last(self) -> Option<u32> {
        (self.first != NOWHERE).then_some(self.last)
    }

    /// A place that nothing is behind comes last. Returns whether it is the first, too.
    #[inline(always)]
    pub fn push(&mut self, links: &mut impl Links, place: u32) -> bool {
        let is_first = self.first == NOWHERE;
        if is_first {
            self.first = place;
        } else {
            links.link(self.last, place);
        }
        self.last = place;
        is_first
    }

    /// The first place leaves. Returns the next one.
    #[inline(always)]
    pub fn pop(&mut self, links: &impl Links) -> u32 {
        self.first = links.next(self.first);
        self.first
    }

    /// All places, in order.
    pub fn places(self, links: &impl Links) -> impl Iterator<Item = u32> {
        places_from(self.first, links)
    }
}

/// All places from `first` on.
pub fn places_from(first: u32, links: &impl Links) -> impl Iterator<Item = u32> {
    let known = |place: u32| Some(place).filter(|&place| place != NOWHERE);
    std::iter::successors(known(first), move |&place| known(links.next(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Links for [u32; 4] {
        fn next(&self, place: u32) -> u32 {
            self[place as usize]
        }

        fn link(&mut self, place: u32, next: u32) {
            self[place as usize] = next;
        }
    }

    #[test]
    fn what_came_first_leaves_first_and_an_empty_queue_begins_anew() {
        let (mut pool, mut queue) = ([NOWHERE; 4], Chain::EMPTY);
        assert!(queue.push(&mut pool, 2));
        assert!(!queue.push(&mut pool, 0));
        assert_eq!(queue.places(&pool).collect::<Vec<_>>(), [2, 0]);
        assert_eq!((queue.pop(&pool), queue.last()), (0, Some(0)));
        assert_eq!((queue.pop(&pool), queue.last()), (NOWHERE, None));
        assert!(queue.push(&mut pool, 3));
        assert_eq!(queue.first(), 3);
    }
}
