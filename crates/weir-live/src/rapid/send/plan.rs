//! What is sent, and what came of it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};

use weir_core::cc::{CongestionControl, Controllers, Setup};
use weir_core::rapid::{Log, LogReader, LogWriter};
use weir_core::tcp::{Config, Sender, SenderCounters};
use weir_core::units::{Bytes, Rate, Span, Time};
use weir_core::{named, row};

use super::super::keys::Key;
use super::super::timing::Kept;
use super::super::wire::Closed;
use super::MOST_PACKETS;
use crate::host::{Seat, Seated};

/// What to send, to whom, and how.
#[derive(Debug)]
pub struct Plan {
    /// The receiver.
    pub peer: SocketAddr,
    /// The address to send from; none: any.
    pub source: Option<SocketAddr>,
    /// What both ends hold.
    pub secret: Key,
    /// The core's sender and receiver.
    pub config: Config,
    /// How long new data is sent.
    pub lasts: Span,
    /// Length of the intervals that are counted.
    pub every: Span,
    /// How long a session may take to open.
    pub patience: Span,
    /// How long before a packet is due the thread stays awake; 0: it only sleeps.
    pub spin: Span,
    /// Where it works.
    pub seat: Seat,
    /// Memory of the socket, each way.
    pub buffer: Bytes,
    /// Whether each packet's times are kept.
    pub packets: bool,
}

named! {
    /// How a session ended.
    pub enum Ending {
        /// All was sent and acknowledged.
        Complete = "complete",
        /// Some of the last was not acknowledged in time.
        Unfinished = "unfinished",
        /// Somebody asked to stop.
        Interrupted = "interrupted",
        /// The receiver ended it.
        HungUp = "hung-up",
        /// The other host says that nobody listens any more.
        Gone = "gone",
        /// Nothing was heard any more.
        Silent = "silent",
    }
}

/// What others may watch, and how they stop it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Set to stop.
    pub cancel: AtomicBool,
    /// ns since data is sent; 0: not yet.
    pub elapsed_ns: AtomicU64,
    /// Bytes acknowledged so far.
    pub acked: AtomicU64,
    /// The mean rate now, bit/s.
    pub rate: AtomicU64,
}

row! {
    /// An interval of a live transfer.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Interval {
        /// Its end.
        pub end: Time,
        /// Payload acknowledged in it.
        pub acked: u64 => acked_bytes,
        /// Payload sent in it, again or not.
        pub sent: u64 => sent_bytes,
        /// Segments sent again in it.
        pub retransmits: u64,
        /// The mean rate on the wire at its end.
        pub rate: Rate,
        /// The smoothed round-trip time then.
        pub srtt: Option<Span>,
        /// What was in flight then.
        pub flight: Bytes,
        /// Whether streams were sent then.
        pub probes: bool,
    }
}

/// What was sent, and what became of it. Times are since data was first sent.
#[derive(Debug)]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// Where the thread worked.
    pub seated: Seated,
    /// How long data was sent and awaited.
    pub elapsed: Span,
    /// How long of that the thread was on its CPU.
    pub on_cpu: Span,
    /// How long it was ready and something else had its CPU; nothing where the kernel does not say.
    pub waited: Option<Span>,
    /// What the sender counted.
    pub counters: SenderCounters,
    /// Least and smoothed round-trip time.
    pub rtt: (Option<Span>, Option<Span>),
    /// Streams and states.
    pub log: Log,
    /// Intervals.
    pub intervals: Vec<Interval>,
    /// How well times were kept.
    pub kept: Kept,
    /// Datagrams that the system had no room for; they count as lost on the way.
    pub blocked: u64,
    /// Datagrams that were not the receiver's, or came twice.
    pub strangers: u64,
    /// What the receiver counted, if it reported.
    pub far: Option<Closed>,
}

impl Plan {
    /// The sender, and what it writes down.
    pub(super) fn machine(&self) -> (Sender, LogReader) {
        let make = |log| {
            let setup = Setup { log, ..Setup::plain(&self.config) };
            Controllers::new().make(setup).expect("the plan was checked")
        };
        let starts_at = make(LogWriter::none()).metrics().rate.unwrap_or_default();
        let most = self.config.segment_bytes.count().max(1) as f64 * 8.0 * MOST_PACKETS as f64;
        let fits = starts_at.bps() as f64 * self.lasts.as_secs_f64() < most;
        let (writer, log) = LogWriter::new(self.packets && fits);
        (Sender::new(&self.config, make(writer)), log)
    }
}
