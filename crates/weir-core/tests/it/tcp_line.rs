//! Connections that share a line, for tests of what they do to it and to each other.

use weir_core::cc::{self, CongestionControl, Controllers, Setup};
use weir_core::path::spec::RateSpec;
use weir_core::path::{Line, LineSpec};
use weir_core::queue::Label;
use weir_core::rng::Seed;
use weir_core::spec::Limit;
use weir_core::tcp::{Config, Ecn, Receiver, Segment, Sender};
use weir_core::units::{Bytes, Rate, Span, Time};

/// Payload of a full segment, and its frame.
pub(crate) const SEGMENT: u64 = 1448;
pub(crate) const FRAME: u64 = 1518;
/// Of the path.
pub(crate) const RTT: Span = Span::from_ms(40);

/// A connection of today, with segments of `segment` bytes.
pub(crate) fn connection(congestion_control: cc::Config, segment: u64) -> Config {
    Config { congestion_control, segment_bytes: Bytes::new(segment), ..Config::default() }
}

/// The same with full segments.
pub(crate) fn config(congestion_control: cc::Config) -> Config {
    connection(congestion_control, SEGMENT)
}

/// A line of `rate` with a queue of `limit`, and half of [`RTT`] behind it.
pub(crate) fn line(rate: Rate, limit: u64) -> LineSpec {
    LineSpec {
        rate: RateSpec::Constant { rate_bps: rate },
        limit: Limit::Bytes(Bytes::new(limit)),
        delay_ps: Span::from_ps(RTT.ps() / 2),
        ..LineSpec::transparent()
    }
}

/// A rate in Mbit/s.
pub(crate) fn mbit(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000)
}

/// So many ms after the beginning.
pub(crate) fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

#[derive(Clone, Copy)]
struct Packet {
    flow: usize,
    segment: Segment,
}

/// Connections that share a line, and come back over another that is not the bottleneck.
pub(crate) struct Network {
    now: Time,
    pub(crate) ends: Vec<(Sender, Receiver)>,
    lines: [Line<Packet>; 2],
    /// What is asked after each event.
    observe: fn(&mut Sender, Time, &mut Seen),
    pub(crate) seen: Seen,
}

/// What was seen of the first connection.
#[derive(Default)]
pub(crate) struct Seen {
    /// Each state, and when it began.
    pub(crate) states: Vec<(&'static str, Time)>,
    /// Round-trip times beyond that of the path, in seconds.
    pub(crate) queueing: Vec<f64>,
    /// The most in flight while the round-trip time was probed for longer than a round trip.
    pub(crate) probe_rtt_flight: Option<(Bytes, Bytes)>,
    /// When segments left, and how much of its data left together.
    pub(crate) quanta: Vec<(Time, u64)>,
}

impl Seen {
    fn note_departure(&mut self, now: Time, len: u64) {
        match self.quanta.last_mut() {
            Some(last) if last.0 == now => last.1 += len,
            _ => self.quanta.push((now, len)),
        }
    }
}

/// What a sender with BBR does to learn about the path.
pub(crate) fn stage(sender: &mut Sender) -> &'static str {
    sender.control().metrics().stage.expect("BBR says so")
}

/// The rate that a sender with BBR takes the path for.
pub(crate) fn bandwidth(sender: &mut Sender) -> Rate {
    sender.control().metrics().rate.expect("BBR knows one")
}

/// Follows the states.
pub(crate) fn states(sender: &mut Sender, now: Time, seen: &mut Seen) {
    let state = stage(sender);
    if seen.states.last().map(|last| last.0) != Some(state) {
        seen.states.push((state, now));
    }
    let (_, since) = *seen.states.last().expect("just added");
    if state == "probe-rtt" && now > since + RTT * 2 {
        let flight = sender.bytes_in_flight();
        let known = sender.control().metrics();
        let bdp = bandwidth(sender) * known.min_rtt.expect("a sample");
        seen.probe_rtt_flight = Some((flight.max(seen.probe_rtt_flight.map_or(flight, |most| most.0)), bdp));
    }
}

/// Follows the round-trip times from 3 s on.
pub(crate) fn queueing(sender: &mut Sender, now: Time, seen: &mut Seen) {
    if now > at(3_000)
        && let Some(rtt) = sender.rtt().latest()
    {
        seen.queueing.push(rtt.as_secs_f64() - RTT.as_secs_f64());
    }
}

/// Asks nothing.
pub(crate) fn nothing(_: &mut Sender, _: Time, _: &mut Seen) {}

impl Network {
    pub(crate) fn new(configs: &[Config], forward: &LineSpec, observe: fn(&mut Sender, Time, &mut Seen)) -> Network {
        let backward = LineSpec { delay_ps: Span::from_ps(RTT.ps() / 2), ..LineSpec::transparent() };
        let seed = Seed::new(1);
        let end = |(flow, config): (usize, &Config)| {
            let chance = seed.stream(&format!("bbr/{flow}"));
            let control = Controllers::new().make(Setup { chance, ..Setup::plain(config) }).expect("it is built in");
            (Sender::new(config, control), Receiver::new(config))
        };
        Network {
            now: Time::ZERO,
            ends: configs.iter().enumerate().map(end).collect(),
            lines: [Line::new(forward, seed, "forward"), Line::new(&backward, seed, "backward")],
            observe,
            seen: Seen::default(),
        }
    }

    /// All write as much as they can, from `starts` on.
    pub(crate) fn bulk(&mut self, starts: &[Time], until: Time) -> &mut Network {
        for (flow, &start) in starts.iter().enumerate() {
            self.run(start);
            self.now = start;
            let sender = &mut self.ends[flow].0;
            sender.open(start);
            sender.write_endlessly();
            self.drain();
        }
        self.run(until)
    }

    pub(crate) fn run(&mut self, until: Time) -> &mut Network {
        self.drain();
        loop {
            let lines = self.lines[0].due().min(self.lines[1].due());
            let timers = self.ends.iter().map(|(sender, receiver)| {
                sender.poll_timeout().min(sender.poll_release()).min(receiver.poll_timeout())
            });
            let next = timers.min().unwrap_or(Time::NEVER).min(lines);
            if next > until {
                self.now = until;
                return self;
            }
            self.now = next;
            while let Some(departure) = self.lines[0].leave(next) {
                let Packet { flow, segment } = departure.handle;
                let ecn = if departure.marked { Ecn::Ce } else { segment.ecn };
                self.ends[flow].1.handle_segment(next, &Segment { ecn, ..segment });
            }
            while let Some(departure) = self.lines[1].leave(next) {
                self.ends[departure.handle.flow].0.handle_segment(next, &departure.handle.segment);
                if departure.handle.flow == 0 {
                    (self.observe)(&mut self.ends[0].0, next, &mut self.seen);
                }
            }
            for (sender, receiver) in &mut self.ends {
                sender.handle_timeout(next);
                receiver.handle_timeout(next);
            }
            self.drain();
        }
    }

    fn drain(&mut self) {
        for (flow, (sender, receiver)) in self.ends.iter_mut().enumerate() {
            while let Some(segment) = sender.poll_transmit(self.now) {
                if flow == 0 {
                    self.seen.note_departure(self.now, segment.len.into());
                }
                let label = Label { flow: flow as u64, ecn: segment.ecn, class: 0, trims: false };
                self.lines[0].arrive(self.now, Packet { flow, segment }, segment.frame_size(), label);
            }
            while let Some(segment) = receiver.poll_transmit(self.now) {
                self.lines[1].arrive(self.now, Packet { flow, segment }, segment.frame_size(), Label::default());
            }
        }
    }

    /// Bytes that each receiver has.
    pub(crate) fn delivered(&self) -> Vec<f64> {
        self.ends.iter().map(|(_, receiver)| receiver.delivered().count() as f64).collect()
    }
}

/// The share of a line of `rate` that is data.
pub(crate) fn goodput_share(bytes: f64, rate: Rate, time: Span) -> f64 {
    bytes * 8.0 / time.as_secs_f64() / (rate.bps() as f64 * SEGMENT as f64 / FRAME as f64)
}
