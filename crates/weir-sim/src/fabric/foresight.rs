//! What the next events need is looked at before they happen: in a large network it is far away in memory. Many looks at once wait as long as one,
//! as long as none depends on what another finds: so they are taken step by step, each for all events.

use std::hint::black_box;

use super::Fabric;
use crate::agenda::SHOWN;
use crate::frames::{FrameId, NO_FRAME};
use crate::route::ARRIVED;

impl Fabric<'_> {
    /// Looks at what the next events will need.
    #[inline(never)]
    pub(super) fn foresee(&mut self) {
        let Fabric { agenda, lines, links, frames, forwarding, ports, open, .. } = self;
        let (mut seen, mut coming, mut arrivals) = (0, [(0, 0); SHOWN], 0);
        agenda.show(|entity| {
            if let Some(line) = lines.get(entity as usize) {
                seen ^= line.port.next_waiting().map_or(0, |id| frames[id].next);
                return;
            }
            let port = entity.wrapping_sub(*ports);
            let Some(id) = links.get(port as usize).map(|link| link.head).filter(|&id| id != NO_FRAME) else { return };
            if open.is_none() {
                let onward = forwarding.at(frames[id].leg.wrapping_add(1));
                seen ^= lines.get(onward as usize).map_or(0, |line| line.port.waiting_bytes().count() as u32);
            } else if let Some(place) = coming.get_mut(arrivals) {
                *place = (port, id);
                arrivals += 1;
            }
        });
        black_box(seen ^ self.foresee_open(&coming[..arrivals]));
    }

    /// The same of frames that come by these ports, where some are of open flows.
    fn foresee_open(&self, coming: &[(u32, FrameId)]) -> u32 {
        let Some(open) = &self.open else { return 0 };
        let (mut seen, mut ends, mut known) = (0, [None; SHOWN], [(0, 0); SHOWN]);
        for &(_, id) in coming {
            seen ^= self.frames[id].leg;
        }
        let ends = &mut ends[..coming.len()];
        for (end, &(port, id)) in ends.iter_mut().zip(coming) {
            match self.plan.open.behind(port) {
                Some(node) => *end = self.frames.end(id).map(|end| (node, end)),
                None => seen ^= self.frames.glance(id),
            }
        }
        for (known, end) in known.iter_mut().zip(&*ends) {
            if let &Some((node, end)) = end {
                *known = open.entry_of(node, end);
            }
        }
        let mut onward = [ARRIVED; SHOWN];
        for ((port, end), &known) in onward.iter_mut().zip(ends).zip(&known) {
            if let &mut Some((node, _)) = end {
                *port = open.foresee(node, known);
            }
        }
        for line in onward.iter().filter_map(|&port| self.lines.get(port as usize)) {
            seen ^= (line.port.waiting_bytes() + line.unmarked).count() as u32;
        }
        seen
    }
}
