//! Identifications of IPv4, where they count the packets of a sender.

/// Whether the identifications of a sender count its packets, which gives their order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ids {
    highest: Option<u16>,
    steps: u32,
    jumps: u32,
    /// Packets with the identification of the one before.
    same: u32,
}

impl Ids {
    /// Steps that must have been seen before identifications say anything, and how many of 16 must be small.
    const STEPS: u32 = 16;
    /// A counter shared by several flows moves on in steps of this size.
    const SMALL: i16 = 64;

    /// The step from the highest identification seen to `id`: negative when it was sent earlier.
    pub(crate) fn step(&mut self, id: Option<u16>) -> Option<i16> {
        let id = id?;
        let Some(highest) = self.highest else {
            self.highest = Some(id);
            return None;
        };
        let step = id.wrapping_sub(highest) as i16;
        let reported = self.report();
        self.steps = self.steps.saturating_add(1);
        self.same = self.same.saturating_add(u32::from(step == 0));
        if !(-Ids::SMALL..=Ids::SMALL).contains(&step) {
            self.jumps = self.jumps.saturating_add(1);
        }
        if step > 0 || !reported {
            self.highest = Some(id);
        }
        reported.then_some(step)
    }

    /// Whether `id` is none of the last ones that were sent, where they are counted; after 65 536 packets they come again.
    pub(crate) fn is_new(self, id: u16) -> Option<bool> {
        let step = id.wrapping_sub(self.highest?) as i16;
        self.report().then_some(step > 0)
    }

    /// Whether packets have identifications of their own, and not one for all.
    pub(crate) fn are_apart(self) -> bool {
        self.steps < Ids::STEPS || self.same <= self.steps / 16
    }

    fn report(self) -> bool {
        self.steps >= Ids::STEPS && self.jumps <= self.steps / 16
    }
}
