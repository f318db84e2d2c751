//! What both ends of a connection are set to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc;
use crate::error::{Part, SpecError, among, refuse};
use crate::tcp::marks::EcnConfig;
use crate::tcp::reader::Reading;
use crate::tcp::segment::{Flags, Segment};
use crate::units::{Bytes, Span};

/// Settings of a connection, as they cross the boundary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TcpConfig")]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What sets the sending rate.
    pub congestion_control: cc::Config,
    /// What is sent while losses are repaired.
    pub recovery: Recovery,
    /// Which segments count as lost.
    pub loss_marking: LossMarking,
    /// What finds a retransmission that is lost again.
    pub lost_retransmissions: LostRetransmissions,
    /// Payload of a full segment.
    pub segment_bytes: Bytes,
    /// Full segments that may be sent before the first acknowledgement of data.
    ///
    /// Source: RFC 6928, 2.
    pub initial_window_segments: u32,
    /// What the receiver holds of data that is missing something before it.
    pub receive_buffer_bytes: Bytes,
    /// What the sender holds of data that is not acknowledged; null: any amount.
    pub send_buffer_bytes: Option<Bytes>,
    /// Whether windows above 65 535 B can be advertised.
    ///
    /// Source: RFC 7323, 2.
    pub window_scaling: bool,
    /// Whether the receiver reports what arrived out of order.
    pub sack: bool,
    /// Whether segments carry time stamps, which cost 12 B.
    pub timestamps: bool,
    /// What the ends can do about marks.
    pub ecn: EcnConfig,
    /// Full segments in order for one acknowledgement.
    pub delayed_ack_segments: u32,
    /// Longest time that an acknowledgement is held back.
    pub delayed_ack_timeout_ps: Span,
    /// Least retransmission timeout.
    pub min_rto_ps: Span,
    /// Whether a window from which nothing was sent for longer than the timeout shrinks to the initial one, if its
    /// controller has no model of the path.
    ///
    /// Source: RFC 5681, 4.1.
    pub slow_start_after_idle: bool,
    /// Whether Reno, CUBIC and DCTCP spread the segments of a window over a part of the round trip; BBR and Prague pace by
    /// themselves.
    ///
    /// Source: Linux, net/ipv4/tcp_input.c, `tcp_update_pacing_rate`.
    pub pacing: bool,
    /// How the application at the receiver reads; null: everything at once.
    pub reading: Option<Reading>,
    /// Unit in which acknowledgements report, in the place of their time stamp, when the segment arrived that made the
    /// receiver send them; null: they do not. Such stamps are no clock of the acknowledgements: PAWS is not applied to
    /// them.
    ///
    /// Source: Rapid UDP, (3).
    pub arrival_stamps_ps: Option<Span>,
}

/// How the window comes down while losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LossRecovery")]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// At once.
    ///
    /// Source: RFC 6675, 5.
    Halving,
    /// In proportion to what is delivered.
    ///
    /// Source: RFC 6937, 3.
    Prr,
    /// The same, growing only while repairs go well.
    ///
    /// Source: RFC 9937, 6.
    #[serde(rename = "prr-9937")]
    SafePrr,
    /// By a segment for every two acknowledgements.
    ///
    /// Source: Linux 2.6, net/ipv4/tcp_input.c, `tcp_cwnd_down`.
    RateHalving,
}

/// Which segments count as lost when others behind them have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossMarking {
    /// Those behind which three or more have arrived.
    ///
    /// Source: RFC 6675, 4.
    Count,
    /// Those that lie three or more before the last that has arrived.
    ///
    /// Source: Mathis & Mahdavi 1996, 2.2.
    Fack,
    /// Those that are late, when something that was sent after them has arrived; the tail is probed. The receiver reports
    /// what arrived twice. Without selective acknowledgements as the others.
    ///
    /// Source: RFC 8985; RFC 2883.
    RackTlp,
}

/// What finds a retransmission that is lost again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LostRetransmissions {
    /// Something sent later has arrived, and a quarter of the least round-trip time has passed since.
    ///
    /// Source: RFC 8985, 6.2.
    Detect,
    /// Only the timeout.
    Timeout,
}

/// Segments behind a hole that make it a loss.
///
/// Source: RFC 5681, 3.2.
pub(crate) const DUP_THRESHOLD: u64 = 3;
/// Longest payload of a segment: that of the longest frame.
const MAX_SEGMENT: u64 = 65_000;
/// Largest buffer: windows are scaled by 14 bits at most.
///
/// Source: RFC 7323, 2.3.
const MAX_BUFFER: u64 = 65_535 << MAX_SCALE;
const MAX_SCALE: u8 = 14;

/// Reno with selective acknowledgements, time stamps and large windows, without ECN.
impl Default for Config {
    fn default() -> Config {
        Config {
            congestion_control: cc::Config::reno(),
            recovery: Recovery::Prr,
            loss_marking: LossMarking::Count,
            lost_retransmissions: LostRetransmissions::Detect,
            segment_bytes: Bytes::new(1448),
            initial_window_segments: 10,
            receive_buffer_bytes: Bytes::new(16 << 20),
            send_buffer_bytes: None,
            window_scaling: true,
            sack: true,
            timestamps: true,
            ecn: EcnConfig::NONE,
            delayed_ack_segments: 2,
            delayed_ack_timeout_ps: Span::from_ms(40),
            min_rto_ps: Span::from_ms(200),
            slow_start_after_idle: true,
            pacing: false,
            reading: None,
            arrival_stamps_ps: None,
        }
    }
}

impl Config {
    /// Shift of the windows that the receiver advertises: the least that its buffer needs.
    pub fn window_scale(&self) -> Option<u8> {
        let fits = |&scale: &u8| self.receive_buffer_bytes.count() >> scale <= 65_535;
        self.window_scaling.then(|| (0..MAX_SCALE).find(fits).unwrap_or(MAX_SCALE))
    }

    /// Whether losses are found by time.
    pub(crate) fn has_rack(&self) -> bool {
        self.sack && self.loss_marking == LossMarking::RackTlp
    }

    /// What may be sent before the first acknowledgement of data.
    pub fn initial_window(&self) -> Bytes {
        self.segment_bytes * u64::from(self.initial_window_segments)
    }

    /// Length of the frame of a full segment, without preamble and gap.
    pub fn full_frame(&self) -> Bytes {
        self.frame_of(self.segment_bytes.count())
    }

    /// Length of the frame of a segment with so many bytes of data, without preamble and gap.
    pub fn frame_of(&self, bytes: u64) -> Bytes {
        let flags = Flags::ACK.with_if(self.timestamps, Flags::TIMESTAMPS);
        let len = u32::try_from(bytes).unwrap_or(u32::MAX);
        Segment { len, flags, ..Segment::default() }.frame_size()
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        let segment = self.segment_bytes.count();
        among("/segment_bytes", segment, 1..=MAX_SEGMENT)?;
        among("/initial_window_segments", self.initial_window_segments, 1..=1 << 20)?;
        among("/receive_buffer_bytes", self.receive_buffer_bytes.count(), segment..=MAX_BUFFER)?;
        if let Some(buffer) = self.send_buffer_bytes {
            among("/send_buffer_bytes", buffer.count(), segment..=1 << 40)?;
        }
        among("/delayed_ack_segments", self.delayed_ack_segments, 1..=1 << 20)?;
        let span = |at: &str, span: Span| {
            let is_possible = span > Span::ZERO && span <= LONGEST;
            refuse!(!is_possible, at, "a time above 0 s and at most {LONGEST} (got {span})");
            Ok(())
        };
        span("/delayed_ack_timeout_ps", self.delayed_ack_timeout_ps)?;
        span("/min_rto_ps", self.min_rto_ps)?;
        if let Some(unit) = self.arrival_stamps_ps {
            span("/arrival_stamps_ps", unit)?;
            if !self.timestamps {
                let message = "acknowledgements without time stamps have no place for it: set 'timestamps' (got false)";
                return Err(SpecError::new("/arrival_stamps_ps", message));
            }
        }
        if self.loss_marking == LossMarking::RackTlp && self.lost_retransmissions == LostRetransmissions::Timeout {
            let message = "rack-tlp finds lost retransmissions by time: 'detect' (got timeout)";
            return Err(SpecError::new("/lost_retransmissions", message));
        }
        if self.congestion_control.counts_packets() {
            let message = "a controller of TCP: this one is told of each packet, as 'transport: {kind: rdma}' does";
            return Err(SpecError::new("/congestion_control", message));
        }
        if matches!(self.congestion_control, cc::Config::Rapid(_)) && self.pacing {
            return Err(SpecError::new("/pacing", "rapid times each segment by itself: 'false' (got true)"));
        }
        if let Some(reading) = &self.reading {
            reading.check().under("/reading")?;
        }
        if matches!(self.congestion_control, cc::Config::Rapid(_)) && self.arrival_stamps_ps.is_none() {
            return Err(SpecError::new("/arrival_stamps_ps", "rapid needs the times of arrival (got null)"));
        }
        self.congestion_control.check().under("/congestion_control")
    }
}

/// Longest time that a timer is set to.
const LONGEST: Span = Span::from_ms(60_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_the_least_that_the_buffer_needs() {
        let scale = |bytes| Config { receive_buffer_bytes: Bytes::new(bytes), ..Config::default() }.window_scale();
        assert_eq!(
            (scale(65_535), scale(65_536), scale(4 << 20), scale(1 << 30)),
            (Some(0), Some(1), Some(7), Some(14))
        );
        assert_eq!(Config { window_scaling: false, ..Config::default() }.window_scale(), None);
    }

    #[test]
    fn a_fault_is_reported_with_its_place_and_value() {
        Config::default().check().expect("the default is legal");
        let faulty = Config { delayed_ack_segments: 0, ..Config::default() }.check().expect_err("0 segments");
        assert_eq!(faulty.pointer, "/delayed_ack_segments");
        assert!(faulty.message.contains("(got 0)"), "{}", faulty.message);
    }
}
