//! The watchdog of flow control: a class that is held for too long is let go, or its frames are dropped, until nobody asks for it any more.
//!
//! A switch looks at the class at equal times. A *storm* is there if the class was held at two looks in a row, was asked to stop in between and never to go on; and that
//! for the detection time, counted in looks. Any other look starts the count again. The storm is *over* when no frame has asked the class to stop or to go on for
//! the restoration time; each one starts it again.
//!
//! Source: SONiC, `pfc_detect_broadcom.lua` and `pfc_restore.lua` (both rules), `pfcwd/main.py` (defaults)

use crate::spec::buffers::Watchdog as Spec;
use crate::units::Span;

/// What was seen of a class since the look before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether it is held now.
    pub is_held: bool,
    /// Frames that asked it to stop.
    pub stops: u64,
    /// Frames that asked it to go on while it was held.
    pub releases: u64,
}

/// What a look finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A storm.
    Storm,
    /// That it is over.
    Over,
}

/// The watchdog of a class at a port.
#[derive(Clone, Debug)]
pub struct Watchdog {
    spec: Spec,
    /// Whether it was held at the look before.
    was_held: bool,
    in_storm: bool,
    /// What is left of the detection or the restoration time.
    left: Span,
}

impl Watchdog {
    /// One that has seen nothing.
    pub fn new(spec: Spec) -> Watchdog {
        Watchdog { spec, was_held: false, in_storm: false, left: spec.detection_ps }
    }

    /// Whether it found a storm that is not over.
    pub fn is_in_storm(&self) -> bool {
        self.in_storm
    }

    /// A look.
    pub fn look(&mut self, seen: Seen) -> Option<Found> {
        let goes_on = match self.in_storm {
            true => seen.stops == 0 && seen.releases == 0,
            false => self.was_held && seen.is_held && seen.stops > 0 && seen.releases == 0,
        };
        self.was_held = seen.is_held;
        let (whole, found) = match self.in_storm {
            true => (self.spec.restoration_ps, Found::Over),
            false => (Some(self.spec.detection_ps), Found::Storm),
        };
        // Without a restoration time a storm is never over.
        let whole = whole?;
        if !goes_on {
            self.left = whole;
            return None;
        }
        self.left = self.left - self.left.min(self.spec.poll_ps);
        if self.left > Span::ZERO {
            return None;
        }
        self.in_storm = !self.in_storm;
        self.left = if self.in_storm { self.spec.restoration_ps.unwrap_or(Span::ZERO) } else { self.spec.detection_ps };
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::buffers::WatchdogAction;

    const SPEC: Spec = Spec {
        detection_ps: Span::from_ms(200),
        restoration_ps: Some(Span::from_ms(300)),
        poll_ps: Span::from_ms(100),
        action: WatchdogAction::Drop,
    };
    const HELD: Seen = Seen { is_held: true, stops: 3, releases: 0 };
    const QUIET: Seen = Seen { is_held: false, stops: 0, releases: 0 };

    fn looks(spec: Spec, seen: &[Seen]) -> Vec<Option<Found>> {
        let mut dog = Watchdog::new(spec);
        seen.iter().map(|&seen| dog.look(seen)).collect()
    }

    #[test]
    fn a_storm_is_found_after_the_detection_time_from_the_second_look_on() {
        assert_eq!(looks(SPEC, &[HELD, HELD, HELD]), [None, None, Some(Found::Storm)]);
        let released = Seen { releases: 1, ..HELD };
        assert_eq!(looks(SPEC, &[HELD, HELD, released, HELD, HELD]), [None, None, None, None, Some(Found::Storm)]);
        let silent = Seen { stops: 0, ..HELD };
        assert_eq!(looks(SPEC, &[HELD, silent, silent, silent]), [None; 4], "nobody asks for it any more");
    }

    #[test]
    fn it_is_over_when_nobody_has_asked_for_the_restoration_time() {
        let storm = [HELD, HELD, HELD];
        let calm = [QUIET, QUIET, HELD, QUIET, QUIET, QUIET];
        let found = looks(SPEC, &[&storm[..], &calm[..]].concat());
        assert_eq!(found[3..], [None, None, None, None, None, Some(Found::Over)], "a frame starts it anew");
        let never = Spec { restoration_ps: None, ..SPEC };
        assert_eq!(looks(never, &[&storm[..], &[QUIET; 50][..]].concat())[3..], [None; 50]);
    }
}
