//! Sources that a port pulls: they own no event.
//!
//! A host's port that serves nothing but its own sources is a world of its own: what it sends depends on nothing
//! else. So its next transmission is worked out when the frame before it has arrived, and no event but that arrival
//! is needed. A queue without a limit is not even kept: its frames are drawn when they are sent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_core::traffic::Emissions;
use weir_core::units::{Bytes, Span, Time};

use crate::reckoning::Reckoning;

/// The sources of one port, merged in order of time, at equal times in order of the sources.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Feed {
    /// Longest time that a frame waited in a queue that is not kept.
    pub(crate) longest_wait: Span,
    /// Whether the first source is the only one.
    is_alone: bool,
    reckons: bool,
    /// Up to here two cache lines, which is all that a frame of a lone source needs.
    first: Source,
    /// When the next frame of several sources is generated; [`Time::NEVER`] when there is none.
    next: Time,
    /// Whose it is: the first source, or a place after it.
    whose: usize,
    /// When the port would have sent what was drawn after the end of the run.
    pub(crate) busy_until: Time,
    /// Intervals of a queue that is not kept, if they are asked for.
    reckoning: Option<Box<Reckoning>>,
    /// The sources behind the first.
    others: Vec<Source>,
    /// The next emission of every source but the next one's.
    order: BinaryHeap<Reverse<(Time, usize)>>,
    /// The size of all frames, if they have one.
    pub(crate) fixed_size: Option<Bytes>,
}

/// Frames of one source.
#[derive(Debug)]
pub(crate) struct Source {
    emissions: Emissions,
    /// The flow to its first destination.
    first_flow: u32,
    /// Its place among all sources.
    place: u32,
}

/// A frame that was generated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) flow: u32,
    /// Place of its source.
    pub(crate) source: u32,
    pub(crate) size: Bytes,
    /// Whether it is the last of its burst.
    pub(crate) ends_burst: bool,
}

impl Source {
    pub(crate) fn new(emissions: Emissions, first_flow: u32, place: u32) -> Source {
        Source { emissions, first_flow, place }
    }

    #[inline]
    fn take(&mut self) -> (u32, Bytes) {
        let (destination, size) = self.emissions.draw();
        (self.first_flow + destination, size)
    }
}

impl Feed {
    /// A feed of `first` and `others`.
    pub(crate) fn new(first: Source, others: Vec<Source>) -> Feed {
        let size = first.emissions.fixed_size();
        let fixed_size = size.filter(|_| others.iter().all(|source| source.emissions.fixed_size() == size));
        let order = (1..).zip(&others).map(|(whose, source)| Reverse((source.emissions.peek(), whose))).collect();
        let next = first.emissions.peek();
        let (longest_wait, busy_until) = (Span::ZERO, Time::ZERO);
        let mut feed = Feed {
            next,
            whose: 0,
            first,
            longest_wait,
            busy_until,
            reckoning: None,
            is_alone: others.is_empty(),
            reckons: false,
            others,
            order,
            fixed_size,
        };
        feed.choose();
        feed
    }

    /// Asks for intervals of a queue that is not kept.
    pub(crate) fn reckon(&mut self, reckoning: Reckoning) {
        (self.reckons, self.reckoning) = (true, Some(Box::new(reckoning)));
    }

    /// The intervals of a queue that is not kept, if they are asked for.
    #[inline]
    pub(crate) fn reckoning(&mut self) -> Option<&mut Reckoning> {
        if self.reckons { self.asked_for() } else { None }
    }

    /// Apart, so that a feed without it is not looked at where it stands.
    #[cold]
    #[inline(never)]
    fn asked_for(&mut self) -> Option<&mut Reckoning> {
        self.reckoning.as_deref_mut()
    }

    /// The same, which ends.
    pub(crate) fn take_reckoning(&mut self) -> Option<Box<Reckoning>> {
        self.reckons = false;
        self.reckoning.take()
    }

    /// When the next frame is generated; [`Time::NEVER`] when there is none.
    #[inline]
    pub(crate) fn peek(&self) -> Time {
        if self.is_alone { self.first.emissions.peek() } else { self.next }
    }

    /// The flow and the size of the frame that is generated next. There must be one.
    #[inline]
    pub(crate) fn take(&mut self) -> (u32, Bytes) {
        if self.is_alone {
            return self.first.take();
        }
        let source = if self.whose == 0 { &mut self.first } else { &mut self.others[self.whose - 1] };
        let taken = source.take();
        self.next = source.emissions.peek();
        self.choose();
        taken
    }

    /// As [`Feed::take`], with all that is known of the frame.
    #[inline]
    pub(crate) fn draw(&mut self) -> Drawn {
        if self.is_alone {
            let (flow, size) = self.first.take();
            return Drawn { flow, source: self.first.place, size, ends_burst: self.first.emissions.burst_ended() };
        }
        let source = if self.whose == 0 { &mut self.first } else { &mut self.others[self.whose - 1] };
        let (flow, size) = source.take();
        let (ends_burst, source_place) = (source.emissions.burst_ended(), source.place);
        self.next = source.emissions.peek();
        self.choose();
        Drawn { flow, source: source_place, size, ends_burst }
    }

    /// Makes the source with the least next emission the next one.
    fn choose(&mut self) {
        if let Some(mut least) = self.order.peek_mut().filter(|least| least.0 < (self.next, self.whose)) {
            (least.0, (self.next, self.whose)) = ((self.next, self.whose), least.0);
        }
    }
}
