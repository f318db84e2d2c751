//! Whose turn it is among the queues of a host.

use std::collections::VecDeque;

use super::Ready;

/// The queues that may have something to send, in one of two orders.
#[derive(Clone, Debug)]
pub struct Turns {
    order: Order,
    /// Where the queue stands that has its turn, if the order is a list.
    place: usize,
}

#[derive(Clone, Debug)]
enum Order {
    /// The one that was served last at the end.
    LongestFirst(VecDeque<u32>),
    /// By number, round about: the queues of one host, and the number from which on the next is looked for.
    InOrder { ready: Ready, turn: usize },
}

impl Turns {
    /// The queue comes first that has waited longest for its turn.
    pub fn longest_first() -> Turns {
        Turns { order: Order::LongestFirst(VecDeque::new()), place: 0 }
    }

    /// `queues` queues take turns in the order of their numbers.
    pub fn in_order(queues: usize) -> Turns {
        Turns { order: Order::InOrder { ready: Ready::new(1, queues), turn: 0 }, place: 0 }
    }

    /// A queue has something to send; it has no turn yet.
    #[inline]
    pub fn add(&mut self, queue: u32) {
        match &mut self.order {
            Order::LongestFirst(queues) => queues.push_back(queue),
            Order::InOrder { ready, .. } => ready.set(0, queue as usize),
        }
    }

    /// A queue has nothing to send for now.
    pub fn remove(&mut self, queue: u32) {
        match &mut self.order {
            Order::LongestFirst(queues) => queues.retain(|&other| other != queue),
            Order::InOrder { ready, .. } => ready.clear(0, queue as usize),
        }
    }

    /// A queue sends out of turn, before all that waits: its turn is over.
    pub fn pass(&mut self, queue: u32) {
        if let Order::InOrder { turn, .. } = &mut self.order {
            *turn = queue as usize + 1;
        }
    }

    /// The queue whose turn it is, until [`Turns::end`].
    #[inline]
    pub fn first(&self) -> Option<u32> {
        match &self.order {
            Order::LongestFirst(queues) => queues.front().copied(),
            Order::InOrder { ready, turn } => ready.next(0, *turn).map(|queue| queue as u32),
        }
    }

    /// If the queue may not send whose turn it is, that is `first`: the next one that `may`, which has its turn then.
    pub fn behind(&mut self, first: u32, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        match &self.order {
            Order::LongestFirst(queues) => {
                self.place = 1 + queues.iter().skip(1).position(|&queue| may(queue))?;
                Some(queues[self.place])
            }
            Order::InOrder { ready, .. } => {
                let queues = ready.queues(0).map(|queue| queue as u32);
                let (behind, before) = (queues.clone().filter(|&q| q > first), queues.filter(|&q| q < first));
                behind.chain(before).find(|&queue| may(queue))
            }
        }
    }

    /// The turn of the queue is over that [`Turns::first`] or [`Turns::behind`] named last; whether it `goes_on`.
    #[inline]
    pub fn end(&mut self, queue: u32, goes_on: bool) {
        match &mut self.order {
            Order::LongestFirst(queues) if goes_on && queues.len() == 1 => {}
            Order::LongestFirst(queues) => {
                queues.remove(std::mem::take(&mut self.place));
                if goes_on {
                    queues.push_back(queue);
                }
            }
            Order::InOrder { ready, turn } => {
                *turn = queue as usize + 1;
                if !goes_on {
                    ready.clear(0, queue as usize);
                }
            }
        }
    }

    /// Whether no queue has anything to send.
    pub fn is_empty(&self) -> bool {
        match &self.order {
            Order::LongestFirst(queues) => queues.is_empty(),
            Order::InOrder { ready, .. } => ready.hosts()[0] == 0,
        }
    }

    /// The least that `of` says of a queue that has something to send.
    #[inline]
    pub fn least<T: Ord>(&self, of: impl Fn(u32) -> T) -> Option<T> {
        match &self.order {
            Order::LongestFirst(queues) => queues.iter().map(|&queue| of(queue)).min(),
            Order::InOrder { ready, .. } => ready.queues(0).map(|queue| of(queue as u32)).min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mut turns: Turns) -> Vec<u32> {
        [70, 3, 5].into_iter().for_each(|queue| turns.add(queue));
        let mut taken = Vec::new();
        for _ in 0..5 {
            let first = turns.first().expect("three have something to send");
            let queue = if first == 5 { turns.behind(5, |queue| queue != 5).expect("two may send") } else { first };
            turns.end(queue, true);
            taken.push(queue);
        }
        turns.remove(70);
        assert_eq!(turns.least(|queue| queue), Some(3));
        assert_eq!(turns.first().and_then(|first| turns.behind(first, |queue| queue == 70)), None);
        [3, 5].into_iter().for_each(|queue| turns.remove(queue));
        assert!(turns.is_empty());
        taken
    }

    #[test]
    fn queues_take_turns_and_those_that_may_not_send_are_passed_over() {
        assert_eq!(taken(Turns::longest_first()), [70, 3, 70, 3, 70]);
        assert_eq!(taken(Turns::in_order(71)), [3, 70, 3, 70, 3]);
    }
}
