//! Messages whose frames go without a connection, as those of RDMA over a lossless network: all frames of a message are handed to its
//! host when it comes, in the flow of its sender and receiver, which keeps their order. It has arrived when its last frame has, if none
//! was lost.

use std::collections::{BTreeMap, VecDeque};

use weir_core::units::Time;

/// What is still to arrive, by flow.
#[derive(Debug, Default)]
pub(crate) struct Bulk {
    flows: BTreeMap<u32, VecDeque<Pending>>,
    /// Messages that have arrived since somebody looked, and when.
    arrived: Vec<(u32, Time)>,
    /// Messages that lost frames, as a later one of their flow shows.
    lost: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    message: u32,
    /// When its frames were handed over.
    born: Time,
    frames: u64,
}

impl Bulk {
    /// So many frames of `message` are handed over in `flow`.
    pub(crate) fn begin(&mut self, flow: u32, message: u32, born: Time, frames: u64) {
        self.flows.entry(flow).or_default().push_back(Pending { message, born, frames });
    }

    /// The messages that have arrived since this was asked last, and when; and those that lost frames.
    pub(crate) fn take(&mut self) -> (Vec<(u32, Time)>, Vec<u32>) {
        (std::mem::take(&mut self.arrived), std::mem::take(&mut self.lost))
    }

    /// A frame of `flow` that was handed over at `born` has arrived; returns whether its message has.
    pub(crate) fn on_frame(&mut self, flow: u32, born: Time, now: Time) -> bool {
        let Some(waiting) = self.flows.get_mut(&flow) else { return false };
        let mut has_all = false;
        while let Some(first) = waiting.front_mut() {
            if first.born < born {
                self.lost.push(first.message);
                waiting.pop_front();
                continue;
            }
            first.frames -= 1;
            // Messages of one instant are distinguished by their number of frames alone: they arrive in order.
            if first.frames == 0 {
                has_all = true;
                self.arrived.push((first.message, now));
                waiting.pop_front();
            }
            break;
        }
        if waiting.is_empty() {
            self.flows.remove(&flow);
        }
        has_all
    }
}
