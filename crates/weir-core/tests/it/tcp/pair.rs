//! Two ends of a connection, half a round trip apart.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use weir_core::cc::CongestionControl;
use weir_core::tcp::{Config, Ecn, Flags, Phase, Receiver, Recovery, Segment, Sender, SenderCounters};
use weir_core::units::{Bytes, Span, Time};

use super::SEGMENT;

/// What the path does to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Passes,
    IsLost,
    IsMarked,
    ComesTwice(Span),
    IsLate(Span),
}

/// Two ends, half a round trip apart each way.
pub(crate) struct Pair<F> {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    delay: Span,
    pub(crate) now: Time,
    /// Segments under way by time of arrival and number: to the receiver, or to the sender.
    under_way: BinaryHeap<Reverse<(Time, u64)>>,
    segments: BTreeMap<u64, (bool, Segment)>,
    count: u64,
    /// The fate of each segment, in the order of sending in both directions.
    fate: F,
    /// What the sender sent with data, and when.
    pub(crate) sent: Vec<(Time, Segment)>,
    pub(crate) acks: Vec<(Time, Segment)>,
    /// What the sender was about when it sent each of them.
    pub(crate) when_sent: Vec<(Phase, SenderCounters)>,
    /// When reductions of the window were over, and the window then.
    pub(crate) recovered: Vec<(Time, Bytes)>,
    rate_halving: bool,
}

impl<F: FnMut(u64, &Segment) -> Fate> Pair<F> {
    pub(crate) fn new(config: &Config, delay: Span, fate: F) -> Pair<F> {
        Pair {
            sender: Sender::plain(config),
            receiver: Receiver::new(config),
            delay,
            now: Time::ZERO,
            under_way: BinaryHeap::new(),
            segments: BTreeMap::new(),
            count: 0,
            fate,
            sent: vec![],
            acks: vec![],
            when_sent: vec![],
            recovered: vec![],
            rate_halving: config.recovery == Recovery::RateHalving,
        }
    }

    pub(crate) fn transfer(config: &Config, bytes: u64, delay: Span, fate: F) -> Pair<F> {
        let mut pair = Pair::new(config, delay, fate);
        pair.sender.open(Time::ZERO);
        pair.sender.write(Bytes::new(bytes));
        pair.sender.close();
        pair
    }

    /// The same, on a path that does something else from now on.
    pub(super) fn with_fate<G>(self, fate: G) -> Pair<G> {
        let Pair {
            sender,
            receiver,
            delay,
            now,
            under_way,
            segments,
            count,
            sent,
            acks,
            when_sent,
            recovered,
            rate_halving,
            ..
        } = self;
        Pair {
            sender,
            receiver,
            delay,
            now,
            under_way,
            segments,
            count,
            fate,
            sent,
            acks,
            when_sent,
            recovered,
            rate_halving,
        }
    }

    /// Runs until nothing is left to do, or `until`.
    pub(crate) fn run(&mut self, until: Time) -> &mut Self {
        self.drain();
        while let Some(next) = self.next_time().filter(|&next| next <= until) {
            self.now = next;
            while let Some(&Reverse((_, number))) = self.under_way.peek().filter(|first| first.0.0 <= next) {
                self.under_way.pop();
                let (forward, segment) = self.segments.remove(&number).expect("it is under way");
                if forward {
                    self.receiver.handle_segment(next, &segment);
                } else {
                    self.hand_to_sender(&segment);
                }
                self.drain();
            }
            self.sender.handle_timeout(next);
            self.receiver.handle_timeout(next);
            self.drain();
        }
        self
    }

    /// After a reduction, the window is the threshold; less, if that of marks was overtaken by a pause.
    fn hand_to_sender(&mut self, segment: &Segment) {
        let before = self.sender.phase();
        self.sender.handle_segment(self.now, segment);
        let reduced = matches!(before, Phase::Recovery | Phase::Reduced) && !self.sender.control().needs().model;
        if reduced && self.sender.phase() == Phase::Open {
            let (window, threshold) = (self.sender.window(), self.sender.threshold());
            let may_be_less = self.rate_halving || before == Phase::Reduced;
            assert!(window == threshold || (may_be_less && window < threshold), "{window}, not {threshold}");
            self.recovered.push((self.now, window));
        }
    }

    fn next_time(&self) -> Option<Time> {
        let arrival = self.under_way.peek().map_or(Time::NEVER, |first| first.0.0);
        let timers = self.sender.poll_timeout().min(self.sender.poll_release()).min(self.receiver.poll_timeout());
        Some(arrival.min(timers)).filter(|&next| next != Time::NEVER)
    }

    fn drain(&mut self) {
        loop {
            let probes = |sender: &Sender| (sender.counters().loss_probes, sender.counters().window_probes);
            let before = probes(&self.sender);
            let Some(segment) = self.sender.poll_transmit(self.now) else { break };
            let is_probe = probes(&self.sender) != before;
            let is_of_window = probes(&self.sender).1 > before.1;
            let fresh = self.sent.iter().all(|(_, sent)| sent.seq < segment.seq) && segment.len > 0;
            if fresh {
                assert!(
                    is_probe || self.sender.bytes_in_flight() <= self.sender.window(),
                    "no new data beyond the window"
                );
                let right = self.sender.receive_window();
                assert!(
                    is_of_window || right.count() > 0 || !segment.flags.has(Flags::ACK),
                    "no data beyond the receiver's window"
                );
            }
            self.sent.push((self.now, segment));
            self.when_sent.push((self.sender.phase(), self.sender.counters()));
            self.post(true, segment);
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.acks.push((self.now, segment));
            self.post(false, segment);
        }
    }

    fn post(&mut self, forward: bool, segment: Segment) {
        let fate = (self.fate)(self.count, &segment);
        let mut add = |at: Time, segment: Segment| {
            self.under_way.push(Reverse((at, self.count)));
            self.segments.insert(self.count, (forward, segment));
            self.count += 1;
        };
        let at = self.now + self.delay;
        match fate {
            Fate::Passes => add(at, segment),
            Fate::IsLost => self.count += 1,
            Fate::IsMarked => {
                let ecn = if segment.ecn.is_capable() { Ecn::Ce } else { segment.ecn };
                add(at, Segment { ecn, ..segment });
            }
            Fate::ComesTwice(later) => {
                add(at, segment);
                add(at + later, segment);
            }
            Fate::IsLate(later) => add(at + later, segment),
        }
    }

    /// Times at which data was sent, in ms, and the number of each segment, counted in segments from 0.
    pub(crate) fn data_sent(&self) -> Vec<(u64, u64)> {
        let data = self.sent.iter().filter(|(_, segment)| segment.len > 0);
        data.map(|(at, segment)| (at.ps() / 1_000_000_000, (segment.seq - 1) / SEGMENT)).collect()
    }

    pub(crate) fn check_books(&self) {
        let counters = self.sender.counters();
        let parts = counters.fast_retransmits
            + counters.forward_retransmits
            + counters.slow_start_retransmits
            + counters.timeout_retransmits
            + counters.rescue_retransmits
            + counters.probe_retransmits;
        assert_eq!(counters.retransmits, parts);
        assert_eq!(counters.segments, self.sent.len() as u64);
        let again: u64 = (1..).zip(&counters.retransmitted_times[..7]).map(|(times, &segments)| times * segments).sum();
        assert!(again <= counters.retransmits);
        if counters.retransmitted_times[7] == 0 {
            assert_eq!(again, counters.retransmits);
        }
        assert_eq!(counters.bytes, self.sent.iter().map(|(_, segment)| u64::from(segment.len)).sum::<u64>());
        assert!(self.sender.counters().acked_bytes <= self.receiver.counters().delivered_bytes);
    }
}
