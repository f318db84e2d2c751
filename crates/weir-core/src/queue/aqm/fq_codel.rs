//! FQ-CoDel: each flow waits in a queue of its own, chosen by a hash. Queues take turns by bytes; those that have just
//! become busy come before those that have been busy for long, so that what sends little hardly waits. CoDel looks after
//! each queue. When there is no room, the longest queue loses frames from its head.
//!
//! Source: RFC 8290, sections 4.1 (enqueue) and 4.2 (dequeue).

use std::collections::VecDeque;

use super::codel::Codel;
use super::{Backlog, Fifo, Waiting};
use crate::queue::limit::Limit;
use crate::rng::mix;
use crate::spec::aqm as spec;
use crate::units::Time;

#[derive(Clone, Debug)]
pub(super) struct FqCodel<H> {
    quantum: i64,
    /// What the hash depends on besides the flow.
    perturbation: u64,
    flows: Vec<Flow<H>>,
    /// Queues whose turn comes first.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

#[derive(Clone, Debug)]
struct Flow<H> {
    queue: Fifo<H>,
    /// What it may still send in its turn.
    credit: i64,
    control: Codel,
    /// Whether it stands in one of the lists.
    is_active: bool,
}

/// Most frames that the longest queue loses at once. Source: RFC 8290, section 4.1.
const MOST_SHED: usize = 64;

impl<H: Copy> FqCodel<H> {
    pub(super) fn new(spec: spec::FqCodel, perturbation: u64) -> FqCodel<H> {
        let spec::FqCodel { target_ps, interval_ps, ecn, queues, quantum_bytes } = spec;
        let codel = spec::Codel { target_ps, interval_ps, ecn };
        let flow = |_| Flow { queue: Fifo::new(), credit: 0, control: Codel::new(codel), is_active: false };
        FqCodel {
            quantum: i64::try_from(quantum_bytes.count()).unwrap_or(i64::MAX / 2),
            perturbation,
            flows: (0..queues).map(flow).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    pub(super) fn enqueue(&mut self, frame: Waiting<H>) {
        let place = mix(frame.label.flow ^ self.perturbation) % self.flows.len() as u64;
        let flow = &mut self.flows[place as usize];
        flow.queue.push(frame);
        if !flow.is_active {
            flow.is_active = true;
            flow.credit = self.quantum;
            self.new.push_back(place as u32);
        }
    }

    /// The longest queue loses half of its frames, and again until the rest has room.
    pub(super) fn shed(&mut self, backlog: &mut Backlog<H>, limit: Limit) {
        while !limit.admits(backlog.frames, backlog.bytes) {
            let Some(flow) = self.flows.iter_mut().max_by_key(|flow| flow.queue.bytes) else { return };
            let most = flow.queue.len().div_ceil(2).min(MOST_SHED);
            for _ in 0..most {
                let Some(frame) = backlog.take(&mut flow.queue) else { return };
                backlog.drop_full(&frame);
            }
        }
    }

    pub(super) fn dequeue(&mut self, now: Time, backlog: &mut Backlog<H>) -> Option<Waiting<H>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let place = *list.front()?;
            let flow = &mut self.flows[place as usize];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            let frame = flow.control.dequeue(now, &mut flow.queue, backlog);
            match frame {
                Some(frame) => {
                    flow.credit = flow.credit.saturating_sub_unsigned(frame.size.count());
                    return Some(frame);
                }
                None => {
                    list.pop_front();
                    // A new queue that ran empty waits among the old, so that it cannot come first again and again.
                    if is_new && !self.old.is_empty() {
                        self.old.push_back(place);
                    } else {
                        flow.is_active = false;
                    }
                }
            }
        }
    }

    /// The queues, to be emptied.
    pub(super) fn queues_mut(&mut self) -> impl Iterator<Item = &mut Fifo<H>> {
        self.flows.iter_mut().map(|flow| &mut flow.queue)
    }

    /// The queues, one by one.
    pub(super) fn queues(&self) -> impl Iterator<Item = &Fifo<H>> {
        self.flows.iter().map(|flow| &flow.queue)
    }
}
