//! Taking back what losses changed that were none.
//!
//! Source: BBR draft, 5.5.11.

use crate::cc::bbr::{Bbr, State, model::Bounds};
use crate::units::Rate;

/// What there was before the first loss of an episode, and what was given up because of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    bounds: Bounds,
    /// The state that the losses ended.
    state: Option<State>,
}

impl Bbr {
    /// An episode of losses begins, unless one is under way.
    ///
    /// Source: BBR draft, 5.5.11.1, `SaveStateUponLoss`. DEVIATION: the pseudocode saves again with the first loss of each
    /// round trip, and when losses begin to be repaired, which is after the first of them was reported here: what would be
    /// saved then has been reduced.
    pub(super) fn save_state(&mut self) {
        self.save_cwnd();
        let bounds = self.model.bounds();
        self.undo.get_or_insert(Undo { bounds, state: None });
    }

    /// Losses end the state, which comes back if they were none.
    pub(super) fn note_end_of_state(&mut self) {
        if let Some(undo) = &mut self.undo {
            undo.state = Some(self.state);
        }
    }

    /// Source: BBR draft, 5.5.11.2, `HandleSpuriousLossDetection`.
    pub(super) fn undo_losses(&mut self) {
        let Some(Undo { bounds, state }) = self.undo.take() else { return };
        self.restore_cwnd();
        self.full_pipe.reset(Rate::default());
        self.model.undo_losses(&bounds);
        match state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.is_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeBwUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => self.start_refill(),
            _ => {}
        }
    }
}
