//! A TCP connection: handshake, round trips, recoveries, stalls, and what limits its senders.

mod events;
mod stalls;

pub(crate) use self::events::{At, CAUSES, Events, Log, Recovery};
use self::stalls::{Silence, held_up, outstanding};
use super::rtt::{Echo, Stamped};
use super::segment::Segment;
use super::series::Series;
use super::side::{Data, Kind, Sender, Side};

/// Shortest minimum retransmission timeout in common use, ps (Linux: 200 ms); a little less, as clocks tick.
pub(crate) const TIMEOUT_PS: u64 = 190_000_000_000;
/// Timeout before any round trip is known, ps. Source: RFC 6298, section 2, rule 2.1.
const FIRST_TIMEOUT_PS: u64 = 1_000_000_000_000;
/// Silences below this are not called stalls, ps: timers and schedulers of hosts are no better.
const STALL_PS: u64 = 10_000_000_000;
/// Longest time for which acknowledgments are kept back in common systems, ps (RFC 5681 allows 500 ms).
const KEPT_BACK_PS: u64 = 200_000_000_000;
/// The share of a silence by which the clock of a sender must have gone on less than that of the capture: what comes then was
/// sent before the silence.
const STOOD: f64 = 0.5;
/// Most rows of events that are kept for a whole trace.
pub(crate) const MOST_EVENTS: usize = 1 << 18;

/// The place of `held-up` in [`CAUSES`].
const HELD_UP: u32 = 4;

/// What a segment did, for those who look at single packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Did {
    /// What the data of the segment is, with its place relative to the first.
    pub(crate) data: Option<(Kind, u64)>,
    /// What it says of the other side's data.
    pub(crate) ack: Option<Reported>,
}

/// What an acknowledgment says, with places relative to the first byte of the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    /// The first byte that did not arrive.
    pub(crate) place: u64,
    /// The end of the window.
    pub(crate) edge: Option<u64>,
    pub(crate) duplicate: bool,
    /// Blocks of selective acknowledgment, the first `sacks` of them.
    pub(crate) blocks: [(u64, u64); 4],
    pub(crate) sacks: u8,
}

/// The state that both sides share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tcp {
    last_ps: u64,
    syn_ps: Option<u64>,
    syn_ack_ps: Option<u64>,
    /// From SYN to the acknowledgment of its answer: a whole round trip wherever the capture was made.
    pub(crate) handshake_ps: Option<u64>,
    /// From SYN to its answer: the part of it between the point and the server.
    pub(crate) handshake_there_ps: Option<u64>,
    /// The side that sent the SYN.
    pub(crate) client: Option<usize>,
    /// Of the SYN of each side, if it was seen; none where it did not offer to scale windows.
    shifts: [Option<Option<u8>>; 2],
    pub(crate) mss: [Option<u16>; 2],
    pub(crate) sack: [bool; 2],
    pub(crate) timestamps: [bool; 2],
    /// The last window of each side, not scaled.
    windows: [Option<u16>; 2],
    /// Whether marks are reported by counters, as both SYN say. Source: RFC 9768, section 3.1.1.
    accurate: bool,
    asked_accurate: bool,
    /// The last flags of each side that report marks.
    reported_marks: [Option<u8>; 2],
    /// By side: its recovery, and up to where all must be acknowledged until it is over.
    recovering: [Option<(Recovery, u64)>; 2],
}

impl Tcp {
    /// The least time of a whole round trip, as far as it is known.
    pub(crate) fn round_trip_ps(&self, sides: &[Side; 2]) -> Option<u64> {
        let half = |side: &Side| side.tcp.as_ref().and_then(|sender| sender.rtt.min_ps);
        self.whole_trip_ps(sides).or_else(|| half(&sides[0]).or(half(&sides[1])))
    }

    /// The same, where both parts of it are known: that ahead of the point and that behind it.
    pub(crate) fn whole_trip_ps(&self, sides: &[Side; 2]) -> Option<u64> {
        let half = |side: &Side| side.tcp.as_ref().and_then(|sender| sender.rtt.min_ps);
        let both = |side: &Side| {
            let behind_ps = side.tcp.as_ref().and_then(|sender| sender.behind.min_ps)?;
            half(side).map(|ahead_ps| ahead_ps.saturating_add(behind_ps))
        };
        let halves = || half(&sides[0]).zip(half(&sides[1])).map(|(there, back)| there.saturating_add(back));
        self.handshake_ps.or_else(halves).or_else(|| both(&sides[0])).or_else(|| both(&sides[1]))
    }

    /// A side sent `segment`.
    pub(crate) fn on_segment(
        &mut self,
        at: At,
        segment: &Segment,
        id: Option<u16>,
        sides: &mut [Side; 2],
        log: &mut Log,
    ) -> Did {
        let At { now, from, .. } = at;
        let step = sides[from].ids.step(id);
        let apart = sides[from].ids.are_apart();
        let (id, step) = (id.filter(|_| apart), step.filter(|_| apart));
        self.greet(now, from, segment);
        self.pass_time(now, sides);
        let round_trip = self.round_trip_ps(sides);
        let silence = Silence { length_ps: now.saturating_sub(self.last_ps), round_trip };
        let before = [outstanding(&sides[0]), outstanding(&sides[1])];
        let held_ps = if segment.length() > 0 { held_up(&sides[from], silence.length_ps, segment, now) } else { 0 };
        let mut did = Did::default();
        let mut data = None;
        if segment.length() > 0 {
            let found = self.take_data(at, segment, (id, step), round_trip, sides, &mut log.series);
            let base = sender(&mut sides[from].tcp, segment.seq).base;
            did.data = Some((found.kind, found.start.saturating_sub(base)));
            data = Some(found);
        } else {
            let sender = sender(&mut sides[from].tcp, segment.seq);
            if let Some((value, _)) = segment.timestamps {
                sender.stamp(value, now);
            }
        }
        self.look_at_silence(at, data.map(|data| data.kind), silence, held_ps, before, sides, &mut log.events);
        if let Some(data) = data.filter(|data| data.kind == Kind::Retransmitted) {
            self.recover(at, data, silence, &mut sides[from], &mut log.events);
        }
        if segment.has(Segment::ACK) && !segment.has(Segment::RST) {
            let jumped = data.is_some_and(|data| data.jumped);
            did.ack = Some(self.take_ack(at, segment, jumped, sides, log));
        }
        self.windows[from] = Some(segment.window);
        self.last_ps = now;
        did
    }

    /// What the handshake reports.
    fn greet(&mut self, now: u64, from: usize, segment: &Segment) {
        self.timestamps[from] |= segment.timestamps.is_some();
        if !segment.has(Segment::SYN) {
            let answers = self.syn_ack_ps.is_some() && self.client == Some(from) && segment.has(Segment::ACK);
            if answers && self.handshake_ps.is_none() {
                self.handshake_ps = self.syn_ps.map(|syn| now.saturating_sub(syn));
            }
            return;
        }
        self.mss[from] = segment.mss.or(self.mss[from]);
        if segment.window_shift.is_some() || !segment.cut {
            self.shifts[from] = Some(segment.window_shift);
        }
        self.sack[from] |= segment.sack_permitted;
        if segment.has(Segment::ACK) {
            self.accurate = self.asked_accurate && !matches!(segment.mark_counter(), 0 | 1 | 5 | 7);
            self.client = Some(1 - from);
            self.syn_ack_ps = Some(now);
            self.handshake_there_ps = self.syn_ps.map(|syn| now.saturating_sub(syn));
        } else {
            self.client = Some(from);
            self.asked_accurate = segment.ae;
            self.syn_ps = Some(now); // of the last one, when it was sent again
        }
    }

    /// By how much the windows of side `from` are shifted; `None` where that is not known. Scaling holds only when both
    /// sides offered it, and a server offers it only to a client that did. Source: RFC 7323, section 2.2.
    fn shift(&self, from: usize) -> Option<u8> {
        match (self.shifts[from], self.shifts[1 - from]) {
            (Some(None), _) | (_, Some(None)) => Some(0),
            (Some(Some(shift)), Some(Some(_))) => Some(shift),
            (Some(Some(shift)), None) if self.client == Some(1 - from) => Some(shift),
            _ => None,
        }
    }

    /// Bytes of the window in `segment` of side `from`; `None` where its scale is not known. The window of a SYN is
    /// not scaled. Source: RFC 7323, section 2.2.
    fn window(&self, from: usize, segment: &Segment) -> Option<u64> {
        let window = u64::from(segment.window);
        if segment.has(Segment::SYN) || window == 0 {
            return Some(window);
        }
        self.shift(from).map(|shift| window << shift)
    }

    /// Whether `segment` of side `from` reports that data was marked for congestion: by the echo, or by a counter that
    /// went on. Source: RFC 3168, section 6.1; RFC 9768, section 3.2.2.
    fn reports_mark(&mut self, from: usize, segment: &Segment) -> bool {
        let reported = segment.mark_counter();
        let last = self.reported_marks[from].replace(reported);
        if self.accurate { last.is_some_and(|last| last != reported) } else { segment.has(Segment::ECE) }
    }

    /// Until `now`, senders were in the state that the last packet left.
    fn pass_time(&self, now: u64, sides: &mut [Side; 2]) {
        let passed = now.saturating_sub(self.last_ps);
        for side in sides {
            let Some(sender) = &side.tcp else { continue };
            let Some(window) = sender.window else { continue };
            let counts = &mut side.counts;
            if window == 0 {
                counts.zero_window_ps = counts.zero_window_ps.saturating_add(passed);
            }
        }
    }

    /// Payload of a full segment like `segment`, where the handshake was seen. Source: RFC 9293, section 3.7.1. Options are
    /// no part of it, but leave less room: those of time stamps, or with data in both directions of blocks, too.
    fn full_payload(&self, segment: &Segment) -> Option<u32> {
        let mss = self.mss[0].zip(self.mss[1]).map(|(one, other)| u32::from(one.min(other)))?;
        let options = segment.header.saturating_sub(Segment::LEAST_HEADER);
        Some(mss.saturating_sub(options)).filter(|&full| full > 0)
    }

    fn take_data(
        &mut self,
        At { now, from, flows }: At,
        segment: &Segment,
        (id, step): (Option<u16>, Option<i16>),
        round_trip: Option<u64>,
        sides: &mut [Side; 2],
        series: &mut Series,
    ) -> Data {
        let full = self.full_payload(segment);
        // From an announcement to what answers it, as the handshake had it.
        let answered_ps = self
            .handshake_there_ps
            .zip(self.handshake_ps)
            .map(|(there, whole)| if self.client == Some(from) { whole.saturating_sub(there) } else { there });
        let whole_trip = self.whole_trip_ps(sides);
        let side = &mut sides[from];
        let sender = sender(&mut side.tcp, segment.seq);
        let mut waited = 0;
        if let Some(since) = sender.empty_since.take() {
            // Nothing was outstanding; a round trip of it is owed to the network, the rest to the application, as far as
            // the window was open.
            let since = sender.room.open_since(now).max(since);
            let idle = whole_trip.map_or(0, |whole| now.saturating_sub(since).saturating_sub(whole));
            if !segment.has(Segment::SYN | Segment::FIN) {
                side.counts.idle_ps = side.counts.idle_ps.saturating_add(idle);
                waited = idle;
            }
        }
        let data = sender.on_data(now, segment, id, step, round_trip);
        if data.kind == Kind::New {
            let least = u64::from(sender.mss.max(segment.payload.min(u32::from(self.mss[1 - from].unwrap_or(1460)))));
            let behind_ps = sender.behind.min_ps.into_iter().chain(answered_ps).min().unwrap_or(0);
            let echo = segment.timestamps.map(|(_, echo)| echo);
            let held_ps = sender.edges.sent(now, echo, behind_ps, sender.highest, least);
            let counts = &mut side.counts;
            counts.window_limited_ps = counts.window_limited_ps.saturating_add(held_ps.saturating_sub(waited));
        }
        let full = full.filter(|_| !segment.has(Segment::SYN));
        if data.kind == Kind::New && segment.payload > 0 {
            // After less than a full segment nothing more was there to send, until the next one.
            if let Some(since) = sender.drained_since.take() {
                waited = waited.max(now.saturating_sub(since));
            }
            side.counts.application_ps = side.counts.application_ps.saturating_add(waited);
            let part = full.is_some_and(|full| !segment.payload.is_multiple_of(full));
            let room = sender.window.is_some_and(|window| sender.outstanding() + u64::from(sender.mss) <= window);
            sender.drained_since = (part && room).then_some(now);
        }
        sender.mss = sender.mss.max(segment.payload.min(u32::from(self.mss[1 - from].unwrap_or(1460))));
        let (place, outstanding) = (sender.una, sender.outstanding());
        let payload = u64::from(segment.payload);
        let (counts, joined) = (&mut side.counts, &mut side.joined);
        let row = side.open.at(flows[from], now, series);
        let handshake = u64::from(segment.length() - segment.payload);
        let new_bytes = data.new_bytes.saturating_sub(handshake);
        if let Some(round_trip) = round_trip.filter(|_| new_bytes > 0) {
            // What waits in queues makes rounds longer; an idle application does not.
            let behind = sender.behind.last_ps.unwrap_or(0).min(round_trip.saturating_mul(4));
            let length = round_trip.max(sender.smoothed.mean_ps().unwrap_or(0)).max(behind);
            sender.rounds.sent(now, new_bytes, length);
        }
        counts.new_bytes += new_bytes;
        row.new_bytes += new_bytes;
        counts.flight_max = counts.flight_max.max(outstanding);
        row.flight_max = row.flight_max.max(outstanding);
        let again = data.kind == Kind::Retransmitted;
        if segment.payload > 0 {
            let segments = full.map_or(1, |full| u64::from(segment.payload.div_ceil(full)));
            counts.segments += segments;
            counts.retransmitted_segments += if again { segments } else { 0 };
            if full.is_none() {
                joined.take(segment.payload, again);
            }
        }
        match data.kind {
            Kind::New => {}
            Kind::Retransmitted => {
                counts.retransmitted += 1;
                counts.retransmitted_bytes += payload;
                counts.after_ack += u64::from(data.start + u64::from(segment.length()) <= place);
                row.retransmitted += 1;
            }
            Kind::Reordered => {
                counts.reordered += 1;
                row.reordered += 1;
            }
            Kind::Duplicate => counts.duplicates += 1,
            Kind::Probe => counts.probes += 1,
        }
        data
    }

    fn take_ack(
        &mut self,
        At { now, from, flows }: At,
        segment: &Segment,
        jumped: bool,
        sides: &mut [Side; 2],
        Log { series, events }: &mut Log,
    ) -> Reported {
        let other = 1 - from;
        let mut behind_ps = None;
        let window = self.window(from, segment);
        let changed = self.windows[from] != Some(segment.window);
        let (scaled, syn) = (self.shift(from).is_some(), segment.has(Segment::SYN));
        let marked = !syn && self.reports_mark(from, segment);
        let round_trip = self.round_trip_ps(sides).unwrap_or(0);
        let data_side = &mut sides[other];
        let sender = sender(&mut data_side.tcp, segment.ack);
        let acked = sender.on_ack(now, segment, changed, &mut data_side.counts);
        data_side.counts.echoed_marks += u64::from(marked);
        sender.window = window;
        if let Some(window) = window.filter(|_| scaled && acked.place >= sender.una) {
            sender.edges.advertised(now, segment.timestamps.map(|(value, _)| value), acked.place + window);
        }
        if !syn {
            let slot_ps = round_trip.max(sender.smoothed.mean_ps().unwrap_or(0)).saturating_mul(2);
            let unread_ps = sender.room.advertised(now, segment.window, window.filter(|_| scaled), slot_ps);
            data_side.counts.unread_ps = data_side.counts.unread_ps.saturating_add(unread_ps);
        }
        for row in sender.spurious_rows.drain(..) {
            events.losses[row as usize].spurious = true;
        }
        let row = data_side.open.at(flows[other], now, series);
        row.acked_bytes += acked.bytes;
        // The window of a SYN says nothing of those that follow.
        if let Some(window) = window.filter(|_| !segment.has(Segment::SYN)) {
            row.window_min = Some(row.window_min.map_or(window, |least| least.min(window)));
        }
        if let Some(rtt) = acked.rtt_ps {
            row.rtt(rtt);
        }
        match acked.echo {
            Some(Echo { of: Stamped::Data, ps }) => sender.echo.take(ps),
            Some(Echo { of: Stamped::Acknowledgment, ps }) if segment.payload > 0 => behind_ps = Some(ps),
            _ => {}
        }
        let relative = |place: u64| place.saturating_sub(sender.base);
        let mut blocks = [(0, 0); 4];
        for (block, &(left, right)) in blocks.iter_mut().zip(&segment.blocks).take(usize::from(segment.sacks)) {
            *block = (relative(sender.place(left)), relative(sender.place(right)));
        }
        let reported = Reported {
            place: relative(acked.place),
            edge: window.map(|window| relative(acked.place + window)),
            duplicate: acked.duplicate,
            blocks,
            sacks: segment.sacks,
        };
        let una = sender.una;
        if let Some((recovery, point)) = &mut self.recovering[other] {
            recovery.acked_bytes += acked.bytes;
            recovery.end_ps = now;
            if una >= *point {
                events.recovery(Recovery { ended: true, ..*recovery });
                self.recovering[other] = None;
            }
        }
        if let (Some(behind_ps), Some(sender)) = (behind_ps, &mut sides[from].tcp) {
            sender.let_go(now, segment.timestamps.map(|(value, _)| value), behind_ps, jumped);
            sides[from].open.at(flows[from], now, series).behind(behind_ps);
        }
        let acks = &mut sides[from].counts;
        acks.acks += u64::from(segment.length() == 0);
        if acked.duplicate {
            acks.dup_acks += 1;
            sides[from].open.at(flows[from], now, series).dup_acks += 1;
        }
        let zero = segment.window == 0 && !segment.has(Segment::SYN);
        sides[from].counts.zero_windows += u64::from(zero && changed);
        reported
    }
}

fn sender(tcp: &mut Option<Box<Sender>>, seq: u32) -> &mut Sender {
    tcp.get_or_insert_with(|| Box::new(Sender::new(seq)))
}
