//! The pairs of a source and a destination, whether or not their flows are counted.

use super::Plan;
use crate::control::plan::Law;
use crate::route::{ARRIVED, Flow};

/// Where the frames of each source go to each of its destinations.
#[derive(Debug)]
pub(super) struct Pairs {
    /// Where the way begins in [`Plan::route`].
    pub(super) legs: Vec<u32>,
    /// The destination.
    pub(super) to: Vec<u32>,
}

impl Plan {
    /// How many pairs of a source and a destination there are, and connections: flows.
    pub(crate) fn pairs(&self) -> u32 {
        self.pairs.as_ref().map_or(self.flows.len(), |pairs| pairs.legs.len()) as u32
    }

    /// The pairs that count as `flow`.
    pub(crate) fn pairs_of(&self, flow: u32) -> std::ops::Range<u32> {
        if self.pairs.is_none() {
            return flow..flow + 1;
        }
        let first = |place: usize| self.sources.get(place).map_or(self.pairs(), |source| source.first_flow);
        first(flow as usize)..first(flow as usize + 1)
    }

    /// The flow as which a frame of a pair counts that the source with this place generated.
    pub(crate) fn counted_as(&self, pair: u32, source: u32) -> u32 {
        if self.pairs.is_none() { pair } else { source }
    }

    /// Where the way of a pair begins in `route`.
    pub(crate) fn first_leg(&self, pair: u32) -> u32 {
        self.pairs.as_ref().map_or_else(|| self.flows[pair as usize].first_leg, |pairs| pairs.legs[pair as usize])
    }

    /// The first port on the way of a pair.
    pub(crate) fn first_port(&self, pair: u32) -> u32 {
        self.route[self.first_leg(pair) as usize]
    }

    /// The destination of a pair.
    pub(crate) fn target(&self, pair: u32) -> u32 {
        self.pairs.as_ref().map_or_else(|| self.flows[pair as usize].to, |pairs| pairs.to[pair as usize])
    }

    /// The law of hosts with queues of their own.
    #[inline]
    pub(crate) fn law(&self) -> Law {
        if self.is_switched { Law::Destinations } else { Law::Flows }
    }

    /// What names the queue of a pair at its host.
    #[inline]
    pub(crate) fn key(&self, pair: u32) -> u32 {
        if self.is_switched { self.target(pair) } else { pair }
    }

    /// The flows that are reported.
    pub(crate) fn counted_flows(&self) -> &[Flow] {
        if self.pairs.is_none() || self.reports_sums { &self.flows } else { &[] }
    }

    /// Whether each pair counts by itself.
    pub(crate) fn counts_pairs(&self) -> bool {
        self.pairs.is_none()
    }

    /// Whether a pair is the flow of messages, which leave any host.
    pub(crate) fn is_open(&self, pair: u32) -> bool {
        self.pairs.is_none() && self.flows.get(pair as usize).is_some_and(|flow| flow.is_open)
    }

    /// The places of the plan at which frames of a pair are counted, each with its port.
    pub(crate) fn legs_of(&self, pair: u32) -> impl Iterator<Item = (u32, usize)> + '_ {
        let first = self.first_leg(pair) as usize;
        let open = self.is_open(pair);
        let (step, from, words) = if open { (3, first + 1, self.open.words as usize) } else { (1, first, usize::MAX) };
        let legs = (from..first.saturating_add(words)).step_by(step).map(|leg| (self.route[leg], leg));
        legs.take_while(|row| row.0 != ARRIVED)
    }
}
