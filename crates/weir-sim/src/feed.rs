//! Sources that a port pulls: they own no event.
//!
//! A host's port that serves nothing but its own sources is a world of its own: what it sends depends on nothing
//! else. So its next transmission is worked out when the frame before it has arrived, and no event but that arrival
//! is needed. A queue without a limit is not even kept: its frames are drawn when they are sent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_core::traffic::{Emission, Emissions};
use weir_core::units::{Bytes, Span, Time};

/// The sources of one port, merged in order of time, at equal times in order of the sources.
#[derive(Debug)]
pub(crate) struct Feed {
    sources: Vec<Source>,
    /// The next emission of each source but for a single source's.
    order: BinaryHeap<Reverse<(Time, u32)>>,
    /// The size of all frames, if they have one.
    pub(crate) fixed_size: Option<Bytes>,
    /// Longest time that a frame waited in a queue that is not kept.
    pub(crate) longest_wait: Span,
    /// When the port would have sent what was drawn after the end of the run.
    pub(crate) busy_until: Time,
}

#[derive(Debug)]
struct Source {
    emissions: Emissions,
    first_flow: u32,
}

impl Feed {
    /// A feed of `sources`: their frames and the flows to their first destinations.
    pub(crate) fn new(sources: Vec<(Emissions, u32)>) -> Feed {
        let sources: Vec<Source> =
            sources.into_iter().map(|(emissions, first_flow)| Source { emissions, first_flow }).collect();
        let size = sources[0].emissions.fixed_size();
        let fixed_size = size.filter(|_| sources.iter().all(|source| source.emissions.fixed_size() == size));
        let order = match sources.len() {
            1 => BinaryHeap::new(),
            _ => (0..).zip(&sources).map(|(place, source)| Reverse((source.emissions.peek(), place))).collect(),
        };
        Feed { sources, order, fixed_size, longest_wait: Span::ZERO, busy_until: Time::ZERO }
    }

    /// When the next frame is generated; [`Time::NEVER`] when there is none.
    #[inline]
    pub(crate) fn peek(&self) -> Time {
        match self.order.peek() {
            None => self.sources[0].emissions.peek(),
            Some(&Reverse((next, _))) => next,
        }
    }

    /// The next frame and its flow.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Emission, u32)> {
        let Some(mut first) = self.order.peek_mut() else {
            return self.sources[0].take();
        };
        let source = &mut self.sources[first.0.1 as usize];
        let taken = source.take();
        first.0.0 = source.emissions.peek();
        taken
    }
}

impl Source {
    #[inline]
    fn take(&mut self) -> Option<(Emission, u32)> {
        let emission = self.emissions.next()?;
        Some((emission, self.first_flow + emission.destination))
    }
}
