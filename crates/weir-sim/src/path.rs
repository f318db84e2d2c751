//! A bulk transfer and echo requests over a path of lines, in virtual time: what the live emulator does for real programs,
//! with the same lines, the same chance, and the machines of [`weir_core::tcp`] at its ends.

mod ends;
mod packet;

use std::sync::atomic::{AtomicBool, Ordering};

use weir_core::cc::{self, Controller, Controllers, Setup};
use weir_core::path::{Line, LineCounters, LoadedPath, TransferSpec};
use weir_core::queue::Label;
use weir_core::rapid::LogWriter;
use weir_core::rng::{self, Seed};
use weir_core::tcp::{self, Ecn, HEADERS, Receiver, ReceiverCounters, Segment, Sender, SenderCounters};
use weir_core::units::{Bytes, Span, Time};

use self::ends::{Application, Probe, Stream};
use self::packet::Packet;

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct PathTotals {
    /// Of each connection.
    pub streams: Vec<StreamTotals>,
    /// Round-trip times in the order of the answers: the number of the request, and how long it took.
    pub answers: Vec<(u32, Span)>,
    /// Of each direction of each hop: forward and backward of the first, of the second, and so on.
    pub lines: Vec<LineCounters>,
    /// When the transfer began to write.
    pub began: Option<Time>,
    /// How long its receivers counted.
    pub counted: Span,
}

/// What came of a connection.
#[derive(Clone, Debug, Default)]
pub struct StreamTotals {
    /// Delivered in order while the receiver counted.
    pub delivered: Bytes,
    /// Of the sender, at the end.
    pub sender: SenderCounters,
    /// Of the receiver, at the end.
    pub receiver: ReceiverCounters,
    /// Its state at the end of each interval.
    pub intervals: Vec<StreamInterval>,
}

/// A connection at the end of an interval.
#[derive(Clone, Copy, Debug)]
pub struct StreamInterval {
    /// Delivered in order so far.
    pub delivered: Bytes,
    /// Segments sent again so far.
    pub retransmits: u64,
    /// What its sender may have in flight.
    pub window: Bytes,
    /// What it has in flight.
    pub flight: Bytes,
    /// The smoothed round-trip time.
    pub srtt: Option<Span>,
}

/// Headers of IPv4 and ICMP.
const ECHO_HEADERS: Bytes = Bytes::new(28);
/// What a frame of Ethernet has besides its IP packet: lines carry packets.
const LINK_HEADERS: Bytes = Bytes::new(18);
/// How often the run looks whether it is to end early, in events.
const LOOK_EVERY: u32 = 1 << 16;

/// Runs the transfer for its duration, and the requests until each is answered or given up. The same for the same seed.
///
/// The receivers count, as those of iperf3 do, from when the sender is asked to begin until the word of its end has come:
/// for the duration and one propagation there and back.
///
/// Gives None when `cancelled` was set. The spec has passed its check.
pub fn simulate_path(spec: &LoadedPath, seed: Seed, cancelled: &AtomicBool) -> Option<PathTotals> {
    let mut run = Run::new(spec, seed);
    let mut events: u32 = 0;
    while !run.is_over() {
        events = events.wrapping_add(1);
        if events.is_multiple_of(LOOK_EVERY) && cancelled.load(Ordering::Relaxed) {
            return None;
        }
        let (at, event) = run.next();
        if at == Time::NEVER {
            break;
        }
        run.now = at;
        match event {
            Event::Line => run.lines_leave(),
            Event::Request => run.request(),
            Event::Application => run.application_turns(),
            Event::Sender(i) => run.sender_wakes(i),
            Event::Receiver(i) => run.receiver_wakes(i),
        }
    }
    Some(run.totals())
}

fn control(connection: &tcp::Config, chance: rng::Stream) -> Controller {
    let setup = Setup { connection, path: cc::Path::PLAIN, chance, log: LogWriter::none() };
    Controllers::new().make(setup).expect("the spec was checked")
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Line,
    Request,
    Application,
    Sender(usize),
    Receiver(usize),
}

struct Run<'a> {
    now: Time,
    /// Forward and backward of each hop in turn.
    lines: Vec<Line<Packet>>,
    application: Option<Application>,
    streams: Vec<Stream>,
    probe: Option<Probe<'a>>,
    answers: Vec<(u32, Span)>,
    duration: Span,
    /// Propagation forward and backward.
    propagation: [Span; 2],
}

impl<'a> Run<'a> {
    fn new(spec: &'a LoadedPath, seed: Seed) -> Run<'a> {
        let directions = |i: usize| {
            let hop = &spec.hops[i];
            [(&hop.forward, "forward"), (&hop.backward, "backward")]
                .map(|(line, direction)| Line::new(line, seed, &format!("hop-{i}/{direction}")))
        };
        let mut chance = seed.stream("path/flows");
        let mut flows = || [chance.next_u64(), chance.next_u64()];
        let strips = spec.hops.iter().any(|hop| hop.strips_window_scale);
        let probe = spec.probe.as_ref().map(|probe| Probe {
            spec: probe,
            sent: 0,
            answered: vec![false; probe.count as usize],
            under_way: 0,
            flows: flows(),
        });
        let stream = |(i, transfer): (u32, &TransferSpec)| {
            let mut config = transfer.config.clone();
            config.window_scaling &= !strips;
            let mut stream = Stream {
                sender: Sender::new(&config, control(&config, seed.stream(&format!("path/probes/{i}")))),
                receiver: Receiver::new(&config),
                sender_due: Time::ZERO,
                receiver_due: Time::NEVER,
                flows: flows(),
                totals: StreamTotals::default(),
            };
            stream.sender.open(Time::ZERO);
            stream
        };
        let streams = spec.transfer.iter().flat_map(|transfer| (0..transfer.streams).map(move |i| (i, transfer)));
        Run {
            now: Time::ZERO,
            lines: (0..spec.hops.len()).flat_map(directions).collect(),
            application: spec.transfer.as_ref().map(|transfer| Application {
                forward: transfer.forward,
                every: transfer.every_ps,
                began: None,
                stop: Time::NEVER,
                count_until: Time::NEVER,
                counted: false,
                next_interval: Time::NEVER,
            }),
            streams: streams.map(stream).collect(),
            probe,
            answers: Vec::new(),
            duration: spec.duration_ps,
            propagation: [
                spec.hops.iter().fold(Span::ZERO, |sum, hop| sum + hop.forward.greatest_delay()),
                spec.hops.iter().fold(Span::ZERO, |sum, hop| sum + hop.backward.greatest_delay()),
            ],
        }
    }

    /// The next event: of equal times lines first, then requests, the application, the ends of connections in their order.
    fn next(&self) -> (Time, Event) {
        let mut next = (self.lines.iter().map(Line::due).min().unwrap_or(Time::NEVER), Event::Line);
        let mut offer = |at: Time, event: Event| {
            if at < next.0 {
                next = (at, event);
            }
        };
        if let Some(probe) = &self.probe {
            offer(probe.due(), Event::Request);
        }
        if let Some(application) = &self.application {
            offer(application.due(), Event::Application);
        }
        for (i, stream) in self.streams.iter().enumerate() {
            offer(stream.sender_due, Event::Sender(i));
            offer(stream.receiver_due, Event::Receiver(i));
        }
        next
    }

    fn is_over(&self) -> bool {
        let counted = self.application.as_ref().is_none_or(|application| application.counted);
        counted && self.probe.as_ref().is_none_or(|probe| probe.is_over(self.now))
    }

    /// Everything that leaves a line now.
    fn lines_leave(&mut self) {
        for i in 0..self.lines.len() {
            while let Some(departure) = self.lines[i].leave(self.now) {
                let packet = if departure.marked { departure.handle.marked() } else { departure.handle };
                let next =
                    if i % 2 == 0 { Some(i + 2).filter(|&next| next < self.lines.len()) } else { i.checked_sub(2) };
                match next {
                    Some(next) => self.arrive(next, packet),
                    None => self.deliver(packet),
                }
            }
            self.forget_dropped(i);
        }
    }

    /// Requests and replies that a queue has dropped after it had taken them are under way no more.
    fn forget_dropped(&mut self, line: usize) {
        while let Some(dropped) = self.lines[line].take_dropped() {
            if let (Packet::Request(_) | Packet::Reply(_), Some(probe)) = (dropped.handle, &mut self.probe) {
                probe.under_way -= 1;
            }
        }
    }

    /// A packet enters the path at one of its ends.
    fn enter(&mut self, forward: bool, packet: Packet) {
        let line = if forward { 0 } else { self.lines.len() - 1 };
        self.arrive(line, packet);
    }

    /// A packet arrives at a line.
    fn arrive(&mut self, line: usize, packet: Packet) {
        let (size, flow) = match packet {
            Packet::Data { stream, segment } => (packet_size(&segment), self.streams[stream as usize].flows[0]),
            Packet::Ack { stream, segment } => (packet_size(&segment), self.streams[stream as usize].flows[1]),
            Packet::Request(_) => self.echo(0),
            Packet::Reply(_) => self.echo(1),
        };
        let ecn = if let Packet::Data { segment, .. } = packet { segment.ecn } else { Ecn::NotEct };
        let arrival = self.lines[line].arrive(self.now, packet, size, Label { flow, ecn, ..Label::default() });
        if let (Packet::Request(_) | Packet::Reply(_), Some(probe)) = (packet, &mut self.probe) {
            // It was one; of it there are now so many.
            probe.under_way = probe.under_way + u64::from(arrival.kept) - 1;
        }
        self.forget_dropped(line);
    }

    fn echo(&self, way: usize) -> (Bytes, u64) {
        self.probe
            .as_ref()
            .map_or((ECHO_HEADERS, 0), |probe| (ECHO_HEADERS + probe.spec.payload_bytes, probe.flows[way]))
    }

    /// A packet has come to the end of the path.
    fn deliver(&mut self, packet: Packet) {
        let now = self.now;
        match packet {
            Packet::Data { stream, segment } => {
                self.streams[stream as usize].receiver.handle_segment(now, &segment);
                self.receiver_sends(stream as usize);
            }
            Packet::Ack { stream, segment } => {
                self.streams[stream as usize].sender.handle_segment(now, &segment);
                self.sender_sends(stream as usize);
                self.begin_when_open();
            }
            Packet::Request(number) => {
                let forward = self.probe.as_ref().is_some_and(|probe| probe.spec.forward);
                self.enter(!forward, Packet::Reply(number));
            }
            Packet::Reply(number) => {
                if let Some(probe) = &mut self.probe {
                    probe.under_way -= 1;
                    let rtt = now - probe.sent_at(number);
                    let late = rtt > probe.spec.timeout_ps;
                    if !std::mem::replace(&mut probe.answered[number as usize], true) && !late {
                        self.answers.push((number, rtt));
                    }
                }
            }
        }
    }

    fn request(&mut self) {
        if let Some(probe) = &mut self.probe {
            let (number, forward) = (probe.sent, probe.spec.forward);
            probe.sent += 1;
            probe.under_way += 1;
            self.enter(forward, Packet::Request(number));
        }
    }

    fn sender_wakes(&mut self, i: usize) {
        self.streams[i].sender.handle_timeout(self.now);
        self.sender_sends(i);
    }

    fn sender_sends(&mut self, i: usize) {
        let forward = self.application.as_ref().is_some_and(|application| application.forward);
        while let Some(segment) = self.streams[i].sender.poll_transmit(self.now) {
            self.enter(forward, Packet::Data { stream: i as u32, segment });
        }
        let stream = &mut self.streams[i];
        stream.sender_due = stream.sender.poll_timeout().min(stream.sender.poll_release());
    }

    fn receiver_wakes(&mut self, i: usize) {
        self.streams[i].receiver.handle_timeout(self.now);
        self.receiver_sends(i);
    }

    fn receiver_sends(&mut self, i: usize) {
        let forward = self.application.as_ref().is_some_and(|application| application.forward);
        while let Some(segment) = self.streams[i].receiver.poll_transmit(self.now) {
            self.enter(!forward, Packet::Ack { stream: i as u32, segment });
        }
        self.streams[i].receiver_due = self.streams[i].receiver.poll_timeout();
    }

    /// The application writes once all connections are open.
    fn begin_when_open(&mut self) {
        let Some(application) = &mut self.application else { return };
        if application.began.is_some() || self.streams.iter().any(|stream| stream.sender.established().is_none()) {
            return;
        }
        let [forward, backward] = self.propagation;
        application.began = Some(self.now);
        application.stop = self.now + self.duration;
        application.count_until = application.stop + if application.forward { forward } else { backward };
        application.next_interval = self.now + application.every;
        for i in 0..self.streams.len() {
            self.streams[i].sender.write_endlessly();
            self.sender_sends(i);
        }
    }

    /// An interval ends, or the transfer, or its count.
    fn application_turns(&mut self) {
        let Some(application) = &mut self.application else { return };
        let now = self.now;
        if now >= application.next_interval {
            application.next_interval = application.after(application.next_interval + application.every);
            self.streams.iter_mut().for_each(Stream::note);
        }
        if now >= application.stop {
            application.stop = Time::NEVER;
            self.streams.iter_mut().for_each(|stream| stream.sender.close());
        }
        if now >= application.count_until {
            application.count_until = Time::NEVER;
            application.counted = true;
            for stream in &mut self.streams {
                stream.totals.delivered = stream.receiver.delivered();
            }
        }
    }

    fn totals(self) -> PathTotals {
        let finished = |stream: Stream| StreamTotals {
            sender: stream.sender.counters(),
            receiver: stream.receiver.counters(),
            ..stream.totals
        };
        PathTotals {
            streams: self.streams.into_iter().map(finished).collect(),
            answers: self.answers,
            lines: self.lines.iter().map(Line::counters).collect(),
            began: self.application.and_then(|application| application.began),
            counted: self.duration + self.propagation[0] + self.propagation[1],
        }
    }
}

/// The IP packet that carries a segment.
fn packet_size(segment: &Segment) -> Bytes {
    HEADERS - LINK_HEADERS + Bytes::new(segment.options_bytes() + u64::from(segment.len))
}
