//! When nothing comes, and why.

use super::super::losses::{Loss, Missed};
use super::super::segment::Segment;
use super::super::side::{Data, Kind, Sender, Side};
use super::events::{At, Events, Recovery, Stall};
use super::{FIRST_TIMEOUT_PS, HELD_UP, KEPT_BACK_PS, STALL_PS, STOOD, TIMEOUT_PS, Tcp};

impl Tcp {
    /// Data was sent again: part of a recovery, or the beginning of one. It was a timeout that asked for the first segment
    /// that is not acknowledged, if the sender had been silent for as long as a timeout takes; or if it went on meanwhile,
    /// as duplicate acknowledgments let it, but nothing new was acknowledged, and the segment had been sent again two round
    /// trips before, or no acknowledgment came that could have asked for it.
    pub(super) fn recover(
        &mut self,
        At { now, from, flows }: At,
        data: Data,
        silence: Silence,
        side: &mut Side,
        events: &mut Events,
    ) {
        let Some(sender) = &mut side.tcp else { return };
        if let Some(Missed { places, sent_ps, before, beside_ps, arrived }) = data.missed {
            let flow = flows[from];
            let (start, end) = places;
            let loss = Loss { flow, again_ps: now, sent_ps, before, beside_ps, start, end, spurious: arrived };
            if let Some(row) = events.loss(loss) {
                sender.reported_in(data.start, row);
            }
        }
        let quiet = side.last_data_ps.map_or(0, |last| now.saturating_sub(last));
        let round_trip = silence.round_trip.unwrap_or(0);
        let smoothed = sender.smoothed.mean_ps().unwrap_or(0).max(round_trip);
        let timeout = data.waited.is_some_and(|waited| {
            let silent = silence.length_ps >= smoothed / 2 && waited.first_ps >= smoothed.saturating_add(smoothed / 4);
            quiet >= TIMEOUT_PS.max(round_trip)
                || waited.again_ps >= TIMEOUT_PS.max(smoothed.saturating_mul(2))
                || waited.first_ps >= TIMEOUT_PS && silent
        });
        side.counts.timeouts += u64::from(timeout);
        let (recovery, _) = self.recovering[from].get_or_insert_with(|| {
            side.counts.recoveries += 1;
            let recovery = Recovery {
                flow: flows[from],
                start_ps: now,
                end_ps: now,
                ended: false,
                retransmitted: 0,
                timeouts: 0,
                flight_bytes: sender.outstanding(),
                rtt_ps: sender.smoothed.mean_ps(),
                acked_bytes: 0,
            };
            (recovery, sender.highest)
        });
        recovery.retransmitted += 1;
        recovery.timeouts += u64::from(timeout);
        recovery.end_ps = now;
    }

    /// Nothing of the connection was seen for longer than its round trips explain, though data was outstanding.
    /// Source: Zhou 2015, section 3: min(2 SRTT, RTO).
    #[allow(clippy::too_many_arguments)] // parts of one connection that are borrowed apart
    pub(super) fn look_at_silence(
        &self,
        At { now, from, flows }: At,
        kind: Option<Kind>,
        silence: Silence,
        held_ps: u64,
        before: [u64; 2],
        sides: &[Side; 2],
        events: &mut Events,
    ) {
        if silence.length_ps < STALL_PS {
            return;
        }
        let usual_of = |sender: &Sender| {
            let round_trip = silence.round_trip.unwrap_or(0);
            // Near the receiver what waits shows behind the point of the capture.
            let behind = sender.behind.last_ps.unwrap_or(0).min(round_trip.saturating_mul(4));
            let rtt = round_trip.max(sender.smoothed.mean_ps().unwrap_or(0)).max(behind);
            let timeout = sender.smoothed.timeout_ps(TIMEOUT_PS).unwrap_or(FIRST_TIMEOUT_PS);
            // Before any round trip is known, only a timeout is longer than the network can take.
            STALL_PS.max(if rtt == 0 { timeout } else { rtt.saturating_mul(2).min(timeout.max(rtt)) })
        };
        // Where only one direction was captured, all its data is outstanding.
        let waits = |side: &usize| before[*side] > 0 && sides[1 - side].counts.packets > 0;
        let Some(side) = [from, 1 - from].into_iter().find(waits) else {
            if held_ps > sides[from].tcp.as_ref().map_or(STALL_PS, |sender| usual_of(sender)) {
                let start_ps = now.saturating_sub(held_ps);
                events.stall(Stall { flow: flows[from], start_ps, length_ps: held_ps, cause: HELD_UP });
            }
            return;
        };
        let Some(sender) = &sides[side].tcp else { return };
        // A receiver may keep the acknowledgment of less than two segments back. Source: RFC 5681, section 4.2
        let kept_back = before[side] < 2 * u64::from(sender.mss) && kind.is_none() && side != from;
        if kept_back && silence.length_ps <= KEPT_BACK_PS.saturating_add(silence.round_trip.unwrap_or(0)) {
            return;
        }
        if silence.length_ps <= usual_of(sender) {
            return;
        }
        let cause = match kind {
            _ if sender.window == Some(0) => 1,
            Some(Kind::Retransmitted) if side == from => 0,
            Some(_) if side == from => 3,
            _ => 2,
        };
        let start_ps = self.last_ps;
        events.stall(Stall { flow: flows[side], start_ps, length_ps: silence.length_ps, cause });
    }

    /// The trace or the connection has ended: recoveries that go on are reported as such.
    pub(crate) fn end(&mut self, events: &mut Events) {
        for recovery in &mut self.recovering {
            if let Some((recovery, _)) = recovery.take() {
                events.recovery(recovery);
            }
        }
    }
}

/// For how much of a silence its data was under way, after the clock of its sender; 0 where that is not known, or where the
/// sender was silent itself.
pub(super) fn held_up(side: &Side, length_ps: u64, segment: &Segment, now: u64) -> u64 {
    if length_ps < STALL_PS {
        return 0;
    }
    let (Some(sender), Some((value, _))) = (&side.tcp, segment.timestamps) else { return 0 };
    sender.stood_ps(value, now, length_ps).filter(|&stood| stood as f64 >= STOOD * length_ps as f64).unwrap_or(0)
}

/// How long nothing of a connection was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) length_ps: u64,
    pub(super) round_trip: Option<u64>,
}

pub(super) fn outstanding(side: &Side) -> u64 {
    side.tcp.as_ref().map_or(0, |sender| sender.outstanding())
}
