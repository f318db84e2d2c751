//! What a probing sender writes down of its streams.

use std::collections::VecDeque;
use std::sync::mpsc;

use crate::units::{PS_PER_S, Rate, Span, Time};
use crate::{named, row};

row! {
    /// A probe stream of Rapid.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct StreamRow {
        /// Its number, from 0 in the order of sending.
        pub stream: u64,
        /// When its first packet left.
        pub started: Time => t,
        /// When its last packet left.
        pub ended: Time => end,
        /// When its end was known.
        pub closed: Time,
        /// Packets sent.
        pub packets: u32,
        /// Of these, those whose time of arrival the receiver reported.
        pub samples: u32,
        /// Mean rate asked for.
        pub rate: Rate,
        /// Rate of its first gap.
        pub low: Rate => low_rate,
        /// Rate of its last gap.
        pub high: Rate => high_rate,
        /// Id of why it ended.
        pub outcome: Outcome,
        /// Estimate of the available bandwidth; unknown where there is none.
        pub available_bps: Option<f64>,
        /// First gap of the excursion; unknown without one.
        pub excursion_start: Option<u32>,
        /// Gaps of the excursion; unknown without one.
        pub excursion_gaps: Option<u32>,
        /// Mean rate after it.
        pub next_rate: Rate,
        /// Queueing delay of its last sample, above the least ever seen; unknown without a sample.
        pub backlog: Option<Span>,
        /// Gaps that left within a quarter of what was asked for, or of what the link can.
        pub fitting: u32 => fitting_gaps,
        /// Of its first eight gaps, those of packets back to back though a larger gap was asked for.
        pub spilt: u32 => spilt_gaps,
    }
}

named! {
    /// Why a stream ended.
    pub enum Outcome {
        /// Its estimate changed the rate.
        Estimated = "estimated",
        /// Its estimate was not used: the rate had changed since it began, at the start of the connection.
        Passed = "passed",
        /// Too few of its packets have samples.
        Pruned = "pruned",
        /// There was nothing to send, or no window.
        Starved = "starved",
        /// Losses began to be repaired.
        Recovery = "recovery",
        /// The retransmission timer expired.
        Timeout = "timeout",
    }
}

named! {
    /// Whether p-streams are sent: PROBE_STREAM of the kernel's log.
    pub enum ProbeState {
        /// They are.
        On = "on",
        /// Losses are being repaired.
        OffRecovery = "off-recovery",
        /// Everything is sent again after a timeout.
        OffTimeout = "off-timeout",
    }
}

row! {
    /// A packet of a recorded probe stream.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PacketRow {
        /// Number of the stream.
        pub stream: u64,
        /// Place in the stream, from 0.
        pub place: u32 => packet,
        /// When it was to leave.
        pub due: Time,
        /// When it left.
        pub left: Time => sent,
        /// When it arrived, by the stamp of the receiver; unknown where that is not reported.
        pub received: Option<Time>,
    }
}

row! {
    /// A change of the state of a sender by Rapid.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StateRow {
        /// When.
        pub at: Time => t,
        /// Id of the state from then on.
        pub state: ProbeState,
    }
}

/// Everything that a sender has written down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Streams in the order in which they ended.
    pub streams: Vec<StreamRow>,
    /// Changes of the state.
    pub states: Vec<StateRow>,
    /// Packets of streams, if these are asked for.
    pub packets: Vec<PacketRow>,
}

#[derive(Debug)]
enum Row {
    Stream(Box<StreamRow>),
    State(StateRow),
    Packet(PacketRow),
}

/// Where a sender writes down what it does, as far as anybody reads it.
#[derive(Clone, Debug)]
pub struct LogWriter {
    rows: Option<mpsc::Sender<Row>>,
    packets: bool,
}

/// Where that is read.
#[derive(Debug)]
pub struct LogReader {
    rows: mpsc::Receiver<Row>,
}

impl LogWriter {
    /// Nobody reads.
    pub fn none() -> LogWriter {
        LogWriter { rows: None, packets: false }
    }

    /// A log of streams and states, and of packets, too, if asked.
    pub fn new(packets: bool) -> (LogWriter, LogReader) {
        let (writer, reader) = mpsc::channel();
        (LogWriter { rows: Some(writer), packets }, LogReader { rows: reader })
    }

    pub(super) fn is_read(&self) -> bool {
        self.rows.is_some()
    }

    pub(super) fn stream(&self, row: StreamRow) {
        self.write(Row::Stream(Box::new(row)));
    }

    pub(super) fn state(&self, at: Time, state: ProbeState) {
        self.write(Row::State(StateRow { at, state }));
    }

    pub(super) fn packets(&self, rows: impl Iterator<Item = PacketRow>) {
        if self.packets {
            rows.for_each(|row| self.write(Row::Packet(row)));
        }
    }

    fn write(&self, row: Row) {
        if let Some(rows) = &self.rows {
            // A reader that is gone wants no more.
            let _ = rows.send(row);
        }
    }
}

impl Log {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.streams.len() + self.states.len() + self.packets.len()
    }
}

impl LogReader {
    /// What was written since this was asked last.
    pub fn take(&self) -> Log {
        let mut log = Log::default();
        self.read(&mut log);
        log
    }

    /// Adds that to `log`.
    pub fn read(&self, log: &mut Log) {
        for row in self.rows.try_iter() {
            match row {
                Row::Stream(row) => log.streams.push(*row),
                Row::State(row) => log.states.push(row),
                Row::Packet(row) => log.packets.push(row),
            }
        }
    }
}

/// The least delay of the last ten to eleven seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct LeastDelay {
    /// Seconds, and the least delay in each, ps.
    of_second: VecDeque<(u64, i128)>,
}

impl LeastDelay {
    /// A packet sent at `sent` arrived at `received` of another clock: by how much its delay exceeds the least one.
    pub(super) fn on_sample(&mut self, sent: Time, received: Time) -> Span {
        let delay = i128::from(received.ps()) - i128::from(sent.ps());
        let second = sent.ps() / PS_PER_S;
        match self.of_second.back_mut() {
            Some(last) if last.0 == second => last.1 = last.1.min(delay),
            _ => self.of_second.push_back((second, delay)),
        }
        while self.of_second.front().is_some_and(|first| first.0 + SECONDS < second) {
            self.of_second.pop_front();
        }
        let least = self.of_second.iter().map(|&(_, delay)| delay).min().unwrap_or(delay);
        Span::from_ps(u64::try_from(delay - least).unwrap_or(u64::MAX))
    }
}

/// How long a delay is remembered.
const SECONDS: u64 = 10;
