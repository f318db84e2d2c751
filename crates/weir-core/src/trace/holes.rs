//! What of a stream of bytes has not been seen, up to the highest byte seen.

/// Most holes that are remembered; the oldest are forgotten first, so that their bytes pass for seen.
const MOST: usize = 4096;

/// A range of bytes that was jumped over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When it was jumped over, ps.
    pub(crate) since: u64,
    /// From an acknowledgment to the data that it let go: of the last before the jump, else of the data that jumped.
    pub(crate) behind_ps: Option<u64>,
    /// Whether it may have left before the capture began, so that nothing was lost by that.
    pub(crate) cut: bool,
}

/// Holes in the order of their places, none of them empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes(Vec<Hole>);

impl Holes {
    /// The bytes from `start` to `end`, all beyond what was seen, were jumped over.
    pub(crate) fn jump(&mut self, hole: Hole) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(hole);
    }

    /// What waited behind what jumped over the last one: one neighbour counts, since the more of two is more than what waits.
    pub(crate) fn reported_last(&mut self, behind_ps: u64) {
        if let Some(last) = self.0.last_mut() {
            last.behind_ps = last.behind_ps.or(Some(behind_ps));
        }
    }

    /// Bytes from `start` to `end` are seen: how many of them were missing, and the first of the holes that they fill.
    pub(crate) fn fill(&mut self, start: u64, end: u64) -> (u64, Option<Hole>) {
        let first = self.0.partition_point(|hole| hole.end <= start);
        let (mut filled, mut found, mut place) = (0, None, first);
        while let Some(&hole) = self.0.get(place).filter(|hole| hole.start < end) {
            let (low, high) = (hole.start.max(start), hole.end.min(end));
            filled += high - low;
            found = found.or(Some(hole));
            match (hole.start < low, high < hole.end) {
                (false, false) => {
                    self.0.remove(place);
                }
                (false, true) => {
                    self.0[place].start = high;
                    place += 1;
                }
                (true, false) => {
                    self.0[place].end = low;
                    place += 1;
                }
                (true, true) => {
                    self.0[place].end = low;
                    self.0.insert(place + 1, Hole { start: high, ..hole });
                    place += 2;
                }
            }
        }
        (filled, found)
    }

    /// Bytes below `place` are acknowledged: how many of them were never seen, though they left while the capture ran.
    pub(crate) fn close_below(&mut self, place: u64) -> u64 {
        if self.0.first().is_none_or(|hole| hole.start >= place) {
            return 0;
        }
        let below = self.0.iter().take_while(|hole| hole.start < place);
        let cut: u64 = below.filter(|hole| hole.cut).map(|hole| hole.end.min(place) - hole.start).sum();
        self.fill(0, place).0 - cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes() -> Holes {
        let mut holes = Holes::default();
        holes.jump(Hole { start: 10, end: 20, since: 1, behind_ps: None, cut: false });
        holes.jump(Hole { start: 30, end: 40, since: 2, behind_ps: None, cut: false });
        holes
    }

    fn filled(holes: &mut Holes, start: u64, end: u64) -> (u64, Option<u64>) {
        let (filled, hole) = holes.fill(start, end);
        (filled, hole.map(|hole| hole.since))
    }

    #[test]
    fn filling_a_part_leaves_the_rest_missing() {
        let mut holes = holes();
        assert_eq!(filled(&mut holes, 12, 15), (3, Some(1)));
        assert_eq!(filled(&mut holes, 0, 100), (7 + 10, Some(1)));
        assert_eq!(holes.close_below(100), 0);
    }

    #[test]
    fn what_was_seen_fills_nothing() {
        let mut holes = holes();
        assert_eq!(filled(&mut holes, 20, 30), (0, None));
        assert_eq!(filled(&mut holes, 0, 10), (0, None));
        assert_eq!(holes.close_below(35), 15);
        assert_eq!(filled(&mut holes, 0, 100), (5, Some(2)));
    }

    #[test]
    fn what_left_before_the_capture_began_does_not_count_as_missed_by_it() {
        let mut holes = holes();
        holes.0[0].cut = true;
        assert_eq!(holes.close_below(15), 0);
        assert_eq!(holes.close_below(100), 10);
    }
}
