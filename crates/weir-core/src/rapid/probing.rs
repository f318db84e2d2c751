//! A sender's p-streams: when each packet is due, what became of it, and what follows for the rate.

use std::collections::VecDeque;

use super::Config;
use super::adapter::RateAdapter;
use super::estimate::{Estimate, Terms};
use super::log::{LeastDelay, LogWriter, Outcome, PacketRow, ProbeState, StreamRow};
use super::ramp::{Ramp, Schedule};
use super::sample::{Sample, delays};
use crate::units::{Bytes, Rate, Span, Time};

/// The machine of a sender that probes with every packet.
///
/// Packets have numbers that grow: over TCP the number behind the last byte, elsewhere their own. Call
/// [`Probing::on_sent`] of each packet at [`Probing::due`], [`Probing::on_left`] if it left later than that,
/// [`Probing::on_arrival`] when the receiver has reported when it arrived.
#[derive(Debug)]
pub struct Probing {
    config: Config,
    /// Length of a full packet on the wire.
    packet: Bytes,
    adapter: RateAdapter,
    state: ProbeState,
    /// Streams that have not come to their end; the last one may still be sent.
    open: VecDeque<Stream>,
    /// Gaps of the stream that is being sent, or comes next.
    gaps: Vec<Span>,
    /// When the next packet is due; none: at once.
    due: Option<Time>,
    next_stream: u64,
    /// Whether the last stream of `open` is still being sent.
    sending: bool,
    /// When the rate was doubled last.
    doubled: Time,
    least_delay: LeastDelay,
    /// The stream whose denoising begins with these samples of the one before.
    carried: (u64, Vec<Sample>),
    log: LogWriter,
}

/// A stream that is under way.
#[derive(Clone, Debug)]
struct Stream {
    number: u64,
    rate: Rate,
    gaps: Vec<Span>,
    packets: Vec<Packet>,
    samples: Vec<Sample>,
    /// Queueing delays of the first and the last sample above the least one.
    backlog: (Span, Span),
    /// Packets up to here have their sample, or will have none.
    reported: usize,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    wire: Bytes,
    due: Time,
    left: Time,
    received: Option<Time>,
}

impl Probing {
    /// A sender of full packets that take `packet` on the wire; it writes streams, states and packets to `log`.
    pub fn new(config: &Config, packet: Bytes, log: LogWriter) -> Probing {
        let adapter = RateAdapter::new(&config.rate);
        Probing {
            config: config.clone(),
            packet,
            adapter,
            state: ProbeState::On,
            open: VecDeque::new(),
            gaps: Vec::new(),
            due: None,
            next_stream: 0,
            sending: false,
            doubled: Time::ZERO,
            least_delay: LeastDelay::default(),
            carried: (u64::MAX, Vec::new()),
            log,
        }
    }

    /// Whether p-streams are sent.
    pub fn state(&self) -> ProbeState {
        self.state
    }

    /// The mean rate on the wire.
    pub fn rate(&self) -> Rate {
        self.adapter.rate()
    }

    /// When the next packet is due; none: as soon as there is one, or (while losses are repaired) when others say so.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// The packet `number`, which takes `wire` on the link, leaves now. One that is not part of a stream is not reported.
    pub fn on_sent(&mut self, now: Time, number: u64, wire: Bytes) {
        if self.state != ProbeState::On {
            return;
        }
        if !self.sending {
            self.begin(now);
        }
        let due = self.due.unwrap_or(now);
        let stream = self.open.back_mut().expect("a stream is being sent");
        stream.packets.push(Packet { number, wire, due, left: now, received: None });
        let place = stream.packets.len();
        let mut next = place;
        if place == stream.gaps.len() {
            self.sending = false;
            self.prepare();
            next = 0;
        }
        let gap = self.gaps[next];
        let from = match self.config.schedule {
            Schedule::Absolute => due,
            Schedule::Resync => due.max(now),
        };
        self.due = Some(from + gap);
    }

    /// The packet sent last left at `at`.
    #[inline]
    pub fn on_left(&mut self, at: Time) {
        if let Some(packet) = self.open.back_mut().and_then(|stream| stream.packets.last_mut()) {
            packet.left = at;
        }
    }

    /// A packet could leave now by its time, and there is none or nothing may be sent: the stream ends.
    pub fn on_idle(&mut self, now: Time) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.break_off(now, Outcome::Starved);
        }
    }

    /// Everything up to the packet `number` has arrived, that one at `received` of the receiver's clock.
    pub fn on_arrival(&mut self, now: Time, number: u64, received: Time) {
        while let Some(stream) = self.open.front() {
            let Some(last) = stream.packets.last() else { return };
            let is_whole = stream.packets.len() == stream.gaps.len();
            if number > last.number {
                // Its last packets have no acknowledgement of their own.
                if !is_whole {
                    return;
                }
                self.finish(now);
                continue;
            }
            self.sample(number, received);
            if is_whole && self.open.front().is_some_and(|stream| stream.reported == stream.packets.len()) {
                self.finish(now);
            }
            return;
        }
    }

    /// Losses begin to be repaired, or a timeout came: no streams, and those under way say nothing.
    pub fn on_off(&mut self, now: Time, state: ProbeState) {
        let outcome = if state == ProbeState::OffTimeout { Outcome::Timeout } else { Outcome::Recovery };
        self.adapter.on_congestion();
        while !self.open.is_empty() {
            self.discard(now, outcome);
        }
        (self.sending, self.due) = (false, None);
        self.enter(now, state);
    }

    /// All losses are repaired: streams are sent again.
    pub fn on_on(&mut self, now: Time) {
        if self.state != ProbeState::On {
            self.enter(now, ProbeState::On);
        }
    }

    fn enter(&mut self, now: Time, state: ProbeState) {
        self.state = state;
        self.log.state(now, state);
    }

    /// A stream begins, at the rate of now unless its first gap was already waited for.
    fn begin(&mut self, now: Time) {
        if self.due.is_none() {
            self.prepare();
        }
        let number = self.next_stream;
        self.next_stream += 1;
        self.sending = true;
        let gaps = self.gaps.clone();
        let rate = mean_rate(&gaps, self.packet);
        let packets = Vec::with_capacity(gaps.len());
        let samples = Vec::with_capacity(gaps.len());
        self.open.push_back(Stream {
            number,
            rate,
            gaps,
            packets,
            samples,
            backlog: (Span::ZERO, Span::ZERO),
            reported: 0,
        });
        self.due = self.due.or(Some(now));
    }

    /// Works out the gaps of the stream that comes next.
    fn prepare(&mut self) {
        let starting = self.config.rate.start_packets.filter(|_| self.adapter.is_starting());
        let ramp = match starting {
            Some(packets) => &Ramp { packets, rates: None, ..self.config.ramp.clone() },
            None => &self.config.ramp,
        };
        self.gaps = ramp.gaps(self.adapter.rate(), self.packet, self.config.link_bps);
    }

    /// Notes when the packet `number` of the first stream arrived, if it is one of it.
    fn sample(&mut self, number: u64, received: Time) {
        let Some(stream) = self.open.front_mut() else { return };
        let place =
            stream.reported + stream.packets[stream.reported..].partition_point(|packet| packet.number < number);
        let Some(packet) = stream.packets.get_mut(place).filter(|packet| packet.number == number) else { return };
        packet.received = Some(received);
        let (due, sent) = (packet.due, packet.left);
        let wire = stream.packets[stream.reported..=place].iter().fold(Bytes::ZERO, |sum, packet| sum + packet.wire);
        let backlog = self.least_delay.on_sample(sent, received);
        if stream.samples.is_empty() {
            stream.backlog.0 = backlog;
        }
        stream.backlog.1 = backlog;
        stream.reported = place + 1;
        stream.samples.push(Sample { due, sent, received, wire });
    }

    /// The first stream has come to its end.
    fn finish(&mut self, now: Time) {
        let Some(stream) = self.open.front() else { return };
        // What the stream before left belongs to this one only if nothing lies between them.
        if self.carried.0 != stream.number {
            self.carried.1.clear();
        }
        let (steps, offset) = self.config.denoising.steps_after(&mut self.carried.1, &stream.samples);
        let is_reported = stream.reported == stream.gaps.len();
        self.carried.0 = if is_reported { stream.number + 1 } else { u64::MAX };
        let high = Ramp::ends(&stream.gaps, self.packet).1;
        let backlog = (stream.backlog.0.as_secs_f64() + offset).max(0.0);
        let terms = Terms { high, link: self.config.link_bps, backlog_s: backlog };
        let estimate = self.config.estimator.estimate(&steps, &terms);
        let outcome = match estimate {
            None => Outcome::Pruned,
            Some(_) if self.adapter.is_starting() && stream.packets[0].left < self.doubled => Outcome::Passed,
            Some(found) => {
                let length = stream.gaps.iter().fold(Span::ZERO, |sum, &gap| sum + gap);
                self.doubled = now;
                let delay = backlog + delays(&steps).last().copied().unwrap_or(0.0);
                self.adapter.on_estimate(found.rate_bps, found.excursion.is_some(), length, delay);
                Outcome::Estimated
            }
        };
        self.close(now, outcome, estimate);
    }

    fn break_off(&mut self, now: Time, outcome: Outcome) {
        if std::mem::take(&mut self.sending)
            && let Some(stream) = self.open.pop_back()
        {
            // Those before it go on.
            self.open.push_front(stream);
            self.discard(now, outcome);
        }
    }

    fn discard(&mut self, now: Time, outcome: Outcome) {
        self.close(now, outcome, None);
    }

    /// Takes the first stream away, and writes it down.
    fn close(&mut self, now: Time, outcome: Outcome, estimate: Option<Estimate>) {
        let Some(stream) = self.open.pop_front() else { return };
        let next_rate = self.adapter.rate();
        if !self.log.is_read() {
            return;
        }
        self.log.packets((0..).zip(&stream.packets).map(|(place, packet)| PacketRow {
            stream: stream.number,
            place,
            due: packet.due,
            left: packet.left,
            received: packet.received,
        }));
        let (low, high) = Ramp::ends(&stream.gaps, self.packet);
        let (Some(first), Some(last)) = (stream.packets.first(), stream.packets.last()) else { return };
        let excursion = estimate.and_then(|estimate| estimate.excursion);
        let (fitting, spilt) = stream.shape(self.packet / self.config.link_bps);
        self.log.stream(StreamRow {
            stream: stream.number,
            started: first.left,
            ended: last.left,
            closed: now,
            packets: stream.packets.len() as u32,
            samples: stream.samples.len() as u32,
            rate: stream.rate,
            low,
            high,
            outcome,
            available_bps: estimate.map(|estimate| estimate.rate_bps.min(self.config.rate.most_bps.bps() as f64)),
            excursion_start: excursion.map(|(start, _)| start),
            excursion_gaps: excursion.map(|(_, gaps)| gaps),
            next_rate,
            backlog: (!stream.samples.is_empty()).then_some(stream.backlog.1),
            fitting,
            spilt,
        });
    }
}

impl Stream {
    /// How many gaps are as they were asked for (within a quarter of that, or of what the link can), and how many of the
    /// first eight are those of the link though they were to be larger.
    fn shape(&self, floor: Span) -> (u32, u32) {
        let floor = floor.ps() as f64;
        let (mut fitting, mut spilt) = (0, 0);
        for (place, pair) in self.packets.windows(2).enumerate() {
            let wanted = self.gaps[place + 1].ps() as f64;
            let gap = pair[1].left.saturating_since(pair[0].left).ps() as f64;
            let possible = wanted.max(floor);
            fitting += u32::from((gap - possible).abs() <= CLOSE * possible);
            spilt += u32::from(place < HEAD && gap <= LINE * floor && wanted > ASKED * floor);
        }
        (fitting, spilt)
    }
}

/// A gap fits when it is this close to the one that was asked for.
const CLOSE: f64 = 0.25;
/// Gaps at the head of a stream that are looked at; those up to `LINE` times the gap of the link are its, although more
/// than `ASKED` times that was asked for.
const HEAD: usize = 8;
const LINE: f64 = 1.1;
const ASKED: f64 = 1.3;

fn mean_rate(gaps: &[Span], packet: Bytes) -> Rate {
    let whole = gaps.iter().fold(Span::ZERO, |sum, &gap| sum + gap);
    (packet * gaps.len() as u64) / whole.max(Span::from_ps(1))
}
